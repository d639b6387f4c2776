"""Stages killed in the middle, around the rename of their artifact, and during Lucene's input."""

import signal

import pytest
from kill_stages import STAGES, kill_stage, prepare, run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kills")
    prepare(folder)
    return folder


@pytest.mark.parametrize("stage", [stage for stage in STAGES if stage != "index"])
def test_a_killed_stage_ends_as_an_undisturbed_stage(folder, stage):
    """All stages rename their output in the same function, so only `score`, the quickest, is killed
    around its renames.
    """
    kills = kill_stage(folder, stage, renames=stage == "score")
    if stage == "score":
        assert kills.items() >= {"to score)": False, "to .score.old)": True}.items()


def test_the_next_run_builds_an_index_killed_while_lucene_reads(folder):
    assert run(folder, "passages")[0] == 0
    assert run(folder, "index", {"kind": "lucene"})[0] == -signal.SIGKILL
    assert any(path.is_symlink() for path in (folder / "indexes/small/.bm25.partial").rglob("*"))
    code, stderr = run(folder, "index")
    assert code == 0, stderr
    assert not (folder / "indexes/small/.bm25.partial").exists()
