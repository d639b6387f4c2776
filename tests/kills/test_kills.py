"""A few of the kills of kill_stages.py, which does many: in the middle of each stage, and around its manifest."""

import pytest
from kill_stages import STAGES, kill_stage, prepare, run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kills")
    prepare(folder, articles=40)
    return folder


@pytest.mark.parametrize("stage", STAGES)
def test_a_killed_stage_ends_as_if_it_had_not_been(folder, stage):
    if stage == "index":  # two seconds a run: left to kill_stages.py
        assert run(folder, STAGES["index"][1])[0] == 0
        return
    kills = kill_stage(folder, stage, kills=1, seed=0, every_rename=False)
    assert all(kill.landed for kill in kills)
    where = {kill.where.split(" (")[-1]: kill.middle for kill in kills if "rename" in kill.where}
    name = STAGES[stage][0].rpartition("/")[2]
    assert where == {f"to {name})": False, f"to .{name}.old)": True}
    assert all(kill.identical for kill in kills)
