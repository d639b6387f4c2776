"""A failed stage leaves no folder; earlier folders and resumable drafts stay."""

from pathlib import Path

import pytest
from prediction_files import write_answers

from ifqa.config.experiment import load_experiment
from ifqa.config.overrides import override
from ifqa.errors import IfqaError
from ifqa.pipeline import stages
from ifqa.pipeline.run import Run

FAILS = """
from ifqa.errors import IfqaError
class Fails:
    def answer(self, questions, passages): raise IfqaError("no more")
"""


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("fails_for_tidying.py").write_text(FAILS)
    write_answers("mine", range(3), "limit = 3")


def variant():
    return override(load_experiment("mine"), {"reader": "fails_for_tidying:Fails"})


@pytest.mark.parametrize("stage", [stages.read, stages.run])
def test_a_variant_whose_reading_fails_leaves_nothing(stage):
    with pytest.raises(IfqaError, match="no more"):
        stage(Run(variant()))
    assert [path.name for path in Path("experiments").iterdir()] == ["mine.toml"]


def test_a_copied_stage_is_removed_with_the_folder():
    write_answers("mine", range(3), 'limit = 3\n[retriever]\nname = "gold"\n')
    stages.retrieve(Run(load_experiment("mine")))
    with pytest.raises(IfqaError, match="no more"):
        stages.read(Run(variant()))
    assert sorted(path.name for path in Path("experiments").iterdir()) == ["mine", "mine.toml"]
    retriever = override(load_experiment("mine"), {"reader": "fails_for_tidying:Fails", "retriever.k": 1})
    with pytest.raises(IfqaError, match="no more"):
        stages.run(Run(retriever))
    assert (retriever.folder / "retrieve/run.trec").exists()  # made here, and used by the next attempt


def test_a_finished_stage_and_the_users_files_stay():
    experiment = load_experiment("mine")
    stages.read(Run(experiment))
    Path("mine.jsonl").unlink()
    before = sorted(Path("experiments").rglob("*"))
    with pytest.raises(IfqaError, match=r"mine\.jsonl"):
        stages.read(Run(experiment))
    assert sorted(Path("experiments").rglob("*")) == before
    folder = variant().folder
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(IfqaError, match="no more"):
        stages.read(Run(variant()))
    assert (folder / "notes.txt").read_text() == "mine"
    assert not (folder / ".read.partial").exists()
