"""`ifqa init`: what it writes runs as it stands, and nothing of the user's is overwritten."""

from pathlib import Path

import pytest

from ifqa.benchmarks.file import File
from ifqa.config.experiment import load_experiment
from ifqa.config.start import files_of, start
from ifqa.config.variants import override
from ifqa.errors import IfqaError
from ifqa.pipeline import stages
from ifqa.scoring.stored import read_scores


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_what_is_written_runs_and_finds_its_gold_passages():
    assert [str(path) for path in start("trial")] == list(files_of("trial"))
    experiment = load_experiment("trial")
    assert len(File().questions(experiment.split)) == 3
    scores = read_scores(stages.run(override(experiment, {"reader": "none"})))  # docs/scoring.md runs it whole
    assert scores["measures"]["gold_any@1"]["value"] == 100.0  # three articles, each of a passage
    assert set(scores["subsets"]) >= {"one passage", "computed"}
    assert set(scores["groups"]) == {"people", "things"}


@pytest.mark.parametrize("there", files_of("trial"))
def test_a_file_that_is_there_is_kept_and_nothing_else_written(there):
    Path(there).parent.mkdir(parents=True, exist_ok=True)
    Path(there).write_text("mine")
    with pytest.raises(IfqaError, match=f"{there} is there already; name another: ifqa init NAME"):
        start("trial")
    assert [str(path) for path in Path().rglob("*") if path.is_file()] == [there]
    assert Path(there).read_text() == "mine"


def test_a_link_to_nothing_is_not_written_through(tmp_path):
    Path("trial").mkdir()
    Path("trial/questions.csv").symlink_to(tmp_path / "elsewhere.csv")
    with pytest.raises(IfqaError, match=r"questions\.csv is there already"):
        start("trial")
    assert not Path("elsewhere.csv").exists()


@pytest.mark.parametrize("name", ["../up", "a b", "", "RESULTS.md", "mine+k=5", "sample"])
def test_a_name_that_is_none_or_taken_is_refused(name):
    with pytest.raises(IfqaError):
        start(name)
    assert list(Path().iterdir()) == []
