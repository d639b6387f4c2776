"""A few of the kills of kill_stages.py: in the middle of each stage, around its manifest, and during Lucene's input."""

import signal

import pytest
from kill_stages import STAGES, kill_stage, prepare, run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kills")
    prepare(folder)
    return folder


@pytest.mark.parametrize("stage", [stage for stage in STAGES if stage != "index"])
def test_a_killed_stage_ends_as_an_undisturbed_stage(folder, stage):
    """All stages rename their output in the same function: `score`, the quickest, is killed around its last renames."""
    kills = kill_stage(folder, stage, renames=stage == "score")
    assert all(kill.landed for kill in kills)
    assert all(kill.identical for kill in kills)
    if stage == "score":
        where = {kill.where.split(" (")[-1]: kill.middle for kill in kills if "rename" in kill.where}
        assert where == {"to score)": False, "to .score.old)": True}


def test_the_next_run_builds_an_index_killed_while_lucene_reads(folder):
    assert run(folder, STAGES["passages"][1])[0] == 0
    assert run(folder, STAGES["index"][1], {"kind": "lucene"})[0] == -signal.SIGKILL
    assert any(path.is_symlink() for path in (folder / "indexes/small/.bm25.partial").rglob("*"))
    code, said = run(folder, STAGES["index"][1])
    assert code == 0, said
    assert not (folder / "indexes/small/.bm25.partial").exists()
