"""What a report is made from: a run that is here counts, else a record of just this experiment, else nothing."""

import json
import shutil
from pathlib import Path

import pytest
from answered import run_answers, write_answers

from ifqa.config.experiment import load_experiment
from ifqa.config.variants import override
from ifqa.errors import IfqaError
from ifqa.pipeline import stages
from ifqa.report import results
from ifqa.report.results import RECORDS, needs, read_records, updated
from ifqa.storage.files import json_line


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def gather():
    return results.gather(read_records())


def result(name):
    return next(one for one in gather() if one.experiment.name == name)


def keep():
    RECORDS.write_bytes(b"".join(map(json_line, updated(read_records(), gather()))))


def test_what_was_not_run_has_no_score():
    write_answers("mine", range(20))
    assert result("mine").scores is None
    assert updated({}, gather()) == []


def test_a_finished_experiment_tells_its_scores_and_how_they_were_made():
    run_answers("mine", range(20))
    found = result("mine")
    assert found.here
    assert found.scores == json.loads(Path("experiments/mine/score/scores.json").read_text())
    made = json.loads(Path("experiments/mine/read/manifest.json").read_text())["record"]
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


def test_a_run_of_other_settings_is_stale_and_no_record_hides_that():
    run_answers("mine", range(20))
    keep()
    write_answers("mine", range(30))
    assert result("mine").scores is None
    assert "changed: reader" in result("mine").stale


def test_a_run_whose_inputs_are_gone_is_stale():
    stages.run(override(load_experiment("sample"), {"limit": 2, "retriever": "gold"}))
    shutil.rmtree("experiments/sample+limit=2+retriever=gold/retrieve")
    assert "retrieve" in result("sample+limit=2+retriever=gold").stale


def test_the_same_run_made_again_keeps_the_date_of_its_record():
    run_answers("mine", range(20))
    keep()
    before = result("mine").made
    path = Path("experiments/mine/read/manifest.json")
    path.write_text(path.read_text().replace(before["at"], "2030-01-01T00:00:00+00:00"))
    assert (result("mine").made, result("mine").here) == (before, True)


def test_a_recorded_variant_outlives_its_folder_which_no_clone_has():
    run_answers("mine", range(20))
    stages.run(override(load_experiment("mine"), {"limit": 5}))
    keep()
    shutil.rmtree("experiments/mine+limit=5")
    found = result("mine+limit=5")
    assert (found.scores["questions"], found.experiment.limit, found.here) == (5, 5, False)


def resealed(record):
    content = {key: value for key, value in record.items() if key != "sha256"}
    return content | {"sha256": results._sha256(content)}


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line.replace('"value": 24.1', '"value": 99.9'),
        lambda line: line.replace('"made": {', '"made": {"more": 1, '),
        lambda line: line[: len(line) // 2],
        lambda line: "[]",
        lambda line: '{"experiment": "mine"}',
        lambda line: json_line(resealed(json.loads(line) | {"inputs": "x"})).decode() + line,
        lambda line: json_line(resealed({"experiment": "mine"})).decode(),
    ],
)
def test_a_record_changed_by_hand_is_refused_by_its_line(change):
    run_answers("mine", range(20))
    keep()
    line = RECORDS.read_text().rstrip("\n")
    assert change(line) != line
    RECORDS.write_text(change(line) + "\n")
    with pytest.raises(IfqaError, match=r"RESULTS\.jsonl:[12]"):
        gather()


def test_two_lines_that_are_the_same_are_one():
    run_answers("mine", range(20))
    keep()
    RECORDS.write_text(RECORDS.read_text() * 2)
    assert result("mine").scores
    keep()
    assert len(RECORDS.read_text().splitlines()) == 1


@pytest.mark.parametrize("spoil", ["stale", "broken", "gone", "older"])
def test_no_record_is_dropped_because_it_does_not_count_just_now(spoil):
    run_answers("mine", range(20))
    stages.run(override(load_experiment("mine"), {"limit": 5}))
    keep()
    before, file = RECORDS.read_text(), Path("experiments/mine.toml")
    if spoil == "stale":
        write_answers("mine", range(30))
    elif spoil == "broken":
        file.write_text("no toml")
    elif spoil == "gone":
        file.unlink()
        shutil.rmtree("experiments/mine+limit=5")
    else:
        recorded = [json_line(resealed(json.loads(line) | {"version": 0})).decode() for line in before.splitlines()]
        shutil.rmtree("experiments/mine")
        shutil.rmtree("experiments/mine+limit=5")
        RECORDS.write_text(before := "".join(recorded))
        assert result("mine").scores is None, "scored otherwise than today"
    keep()
    assert RECORDS.read_text() == before


def test_a_setting_that_is_new_or_changes_speed_alone_orphans_no_record():
    stages.run(override(load_experiment("sample"), {"limit": 2}))
    keep()
    shutil.rmtree("experiments/sample+limit=2")
    record = json.loads(RECORDS.read_text())
    del record["tables"]["retriever"]["k1"]  # as of a time before there was a k1
    record["tables"]["retriever"]["threads"] = 7
    RECORDS.write_bytes(json_line(resealed(record)))
    assert result("sample+limit=2").scores
    record["tables"]["retriever"]["k1"] = 1.2
    RECORDS.write_bytes(json_line(resealed(record)))
    assert result("sample+limit=2").experiment.retriever["k1"] == 1.2, "a variant is what its record says"


def test_a_variant_that_was_not_scored_is_no_row():
    run_answers("mine", range(20))
    stages.read(override(load_experiment("mine"), {"limit": 5}))
    assert [one.experiment.name for one in gather() if "+" in one.experiment.name] == []


def test_a_recorded_variant_stands_under_its_heading():
    run_answers("mine", range(20), 'table = "Mine"\nabout = "Of mine."')
    stages.run(override(load_experiment("mine"), {"limit": 5}))
    keep()
    shutil.rmtree("experiments/mine+limit=5")
    experiment = result("mine+limit=5").experiment
    assert (experiment.table, experiment.about) == ("Mine", "Of mine.")


def test_a_reader_that_was_taken_out_has_no_say_any_more():
    retriever = '[retriever]\nname = "gold"\n'
    run_answers("mine", range(20), retriever)
    file = Path("experiments/mine.toml")
    file.write_text(file.read_text().split("[reader]")[0])
    stages.run(load_experiment("mine"))
    assert set(result("mine").made["seconds"]) == {"retrieve"}


def test_records_survive_the_way_into_the_file_and_back():
    run_answers("mine", range(20), '[[expected.EM]]\nvalue = 3\nretired = "m"\n')
    run_answers("other", range(30))
    keep()
    assert set(read_records()) == {"mine", "other"}
    before = RECORDS.read_bytes()
    keep()
    assert RECORDS.read_bytes() == before


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("experiments/broken.toml", "no toml"),
        ("experiments/my copy.toml", 'benchmark = "sample"'),
        ("experiments/away.toml", 'benchmark = "sample"\nsplit = "dev"\n[reader]\nname = "gone_from_here:Reader"\n'),
        (
            "experiments/lost.toml",
            'benchmark = "sample"\nsplit = "dev"\ncorpus = "nowhere"\n[retriever]\nname = "bm25"\n',
        ),
    ],
)
def test_an_experiment_that_is_wrong_is_left_out_and_said(path, text, capsys):
    run_answers("mine", range(20))
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_text(text)
    assert result("mine").scores
    assert "is left out: " in capsys.readouterr().err


def test_an_index_that_the_corpus_has_not_is_for_the_run_to_refuse():
    Path("experiments").mkdir()
    text = 'benchmark = "sample"\nsplit = "dev"\ncorpus = "sample"\n[retriever]\nname = "bm25"\nindex = "nope"\n'
    Path("experiments/mine.toml").write_text(text)
    assert result("mine").needs == ()


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("sample", []),
        ("sample-hybrid", []),
        ("sample-llm", []),
        ("ifqa-dev-gold", []),
        ("ifqa-dev-bm25", ["articles"]),
        ("table3-full-qa-prompt", ["a key"]),
        ("table3-full-bm25", ["the Wikipedia dump", "a key"]),
        ("table3-full-dpr", ["the Wikipedia dump", "a model of the hub", "a GPU", "a key"]),
        ("figure2-bm25-fid-large", ["the Wikipedia dump", "a trained FiD", "a GPU"]),
    ],
)
def test_what_an_experiment_needs_is_told_from_its_file(name, wanted):
    assert needs(load_experiment(name)) == tuple(wanted)
