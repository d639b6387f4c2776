"""What a report is made from: a run that is here counts, else a record of just this experiment, else nothing."""

import json
import shutil
from pathlib import Path

import pytest
from answered import run_answers, write_answers

from ifqa.errors import IfqaError
from ifqa.experiment import load_experiment, parse_experiment
from ifqa.files import json_line
from ifqa.report.results import RECORDS, gather, needs, records, settings_identity


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def result(name):
    return next(one for one in gather() if one.experiment.name == name)


def keep():
    RECORDS.write_bytes(b"".join(map(json_line, records(gather()))))


def test_what_was_not_run_has_no_score():
    write_answers("mine", range(20))
    assert result("mine").scores is None
    assert list(records(gather())) == []


def test_a_finished_experiment_tells_its_scores_and_how_they_were_made():
    run_answers("mine", range(20))
    found = result("mine")
    assert found.here
    assert found.scores == json.loads(Path("experiments/mine/score/scores.json").read_text())
    made = json.loads(Path("experiments/mine/read/manifest.json").read_text())["made"]
    assert {key: found.made[key] for key in ("at", "hardware", "commit")} == {
        key: made[key] for key in ("at", "hardware", "commit")
    }
    assert found.made["seconds"] == {"read": made["seconds"]}


def test_a_record_stands_for_a_run_that_is_no_longer_here():
    run_answers("mine", range(20))
    before = result("mine")
    keep()
    shutil.rmtree("experiments/mine")
    after = result("mine")
    assert (after.scores, after.made, after.here) == (before.scores, before.made, False)


def test_a_record_of_other_settings_counts_no_more():
    run_answers("mine", range(20))
    keep()
    shutil.rmtree("experiments/mine")
    file = Path("experiments/mine.toml")
    file.write_text(file.read_text() + "\n[expected.EM]\nvalue = 3.0\n")
    assert result("mine").scores is not None, "what is expected changes nothing in what was measured"
    file.write_text(file.read_text().replace('split = "dev"', 'split = "dev"\nlimit = 9'))
    assert result("mine").scores is None


def test_a_run_of_other_settings_counts_no_more(capsys):
    run_answers("mine", range(20))
    write_answers("mine", range(30))
    assert result("mine").scores is None
    assert "experiments/mine/score is left out" in capsys.readouterr().err


def test_the_same_run_made_again_keeps_the_date_of_its_record():
    run_answers("mine", range(20))
    keep()
    at = result("mine").made["at"]
    recorded = json.loads(RECORDS.read_text())
    recorded["made"]["at"] = "2020-01-01T00:00:00+00:00"
    RECORDS.write_text(json.dumps(recorded) + "\n")
    assert result("mine").made["at"] == "2020-01-01T00:00:00+00:00" != at
    recorded["scores"]["measures"]["EM"]["value"] = 99.0
    RECORDS.write_text(json.dumps(recorded) + "\n")
    assert result("mine").made["at"] == at, "a record that says another score is not of this run"


@pytest.mark.parametrize("line", ['{"experiment": "mine"}', "[]", '{"experiment": "mine", "settings": 3}', "nonsense"])
def test_a_wrong_record_is_refused_by_its_line(line):
    write_answers("mine", range(20))
    RECORDS.write_text(line + "\n")
    with pytest.raises(IfqaError, match=r"RESULTS\.jsonl:1"):
        gather()


def test_names_and_expectations_are_not_settings():
    tables = {"benchmark": "sample", "split": "dev", "reader": {"name": "extractive"}}
    plain = settings_identity(parse_experiment("a", tables, "a"))
    named = tables | {"about": "x", "table": "y", "expected": {"EM": {"value": 1}}}
    assert settings_identity(parse_experiment("b", named, "b")) == plain
    assert settings_identity(parse_experiment("a", tables | {"seed": 1}, "a")) != plain


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("sample", []),
        ("sample-hybrid", []),
        ("sample-llm", []),
        ("ifqa-dev-bm25", []),
        ("table3-full-qa-prompt", ["a key"]),
        ("table3-full-bm25", ["the Wikipedia dump", "a key"]),
        ("table3-full-dpr", ["the Wikipedia dump", "a model of the hub", "a GPU", "a key"]),
        ("figure2-bm25-fid-large", ["the Wikipedia dump", "a trained FiD", "a GPU"]),
    ],
)
def test_what_an_experiment_needs_is_told_from_its_file(name, wanted):
    assert needs(load_experiment(name)) == wanted
