"""The results that a report shows: a run that is here, else a valid record, else none."""

import json
import shutil
from pathlib import Path

import pytest
from answered import run_answers, write_answers

from ifqa.config.experiment import load_experiment
from ifqa.config.overrides import override
from ifqa.errors import IfqaError
from ifqa.pipeline import stages
from ifqa.pipeline.run import Run
from ifqa.plugins import load
from ifqa.report import results
from ifqa.report.results import RECORDS, identities, needs, read_records, sealed, updated
from ifqa.storage.files import json_line
from ifqa.storage.resources import BUNDLED


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


def test_a_finished_experiment_has_scores_and_their_circumstances():
    run_answers("mine", range(20))
    found = result("mine")
    assert found.here
    assert found.scores == json.loads(Path("experiments/mine/score/scores.json").read_text())
    made = json.loads(Path("experiments/mine/read/manifest.json").read_text())["record"]
    assert {key: found.made[key] for key in ("at", "hardware", "commit")} == {
        key: made[key] for key in ("at", "hardware", "commit")
    }
    assert found.made["seconds"] == {"read": made["seconds"]}


def test_a_record_replaces_a_run_that_is_no_longer_here():
    run_answers("mine", range(20))
    before = result("mine")
    keep()
    shutil.rmtree("experiments/mine")
    after = result("mine")
    assert (after.scores, after.made, after.here) == (before.scores, before.made, False)


def test_a_record_of_other_settings_is_out_of_date():
    run_answers("mine", range(20))
    keep()
    shutil.rmtree("experiments/mine")
    file = Path("experiments/mine.toml")
    file.write_text(file.read_text() + "\n[expected.EM]\nvalue = 3.0\n")
    assert result("mine").scores is not None, "expected values do not change what was measured"
    file.write_text(file.read_text().replace('split = "dev"', 'split = "dev"\nlimit = 9'))
    assert result("mine").scores is None


def test_a_run_of_other_settings_is_stale_despite_a_record():
    run_answers("mine", range(20))
    keep()
    write_answers("mine", range(30))
    assert result("mine").scores is None
    assert "changed: reader" in result("mine").stale


def test_a_run_whose_inputs_are_gone_is_stale():
    stages.run(Run(override(load_experiment("sample"), {"limit": 2, "retriever": "gold"})))
    shutil.rmtree("experiments/sample+limit=2+retriever=gold/retrieve")
    assert "retrieve" in result("sample+limit=2+retriever=gold").stale


def test_the_same_run_made_again_keeps_the_date_of_its_record():
    run_answers("mine", range(20))
    keep()
    before = result("mine").made
    path = Path("experiments/mine/read/manifest.json")
    path.write_text(path.read_text().replace(before["at"], "2030-01-01T00:00:00+00:00"))
    assert (result("mine").made, result("mine").here) == (before, True)


def test_a_recorded_variant_is_shown_without_its_folder():
    run_answers("mine", range(20))
    stages.run(Run(override(load_experiment("mine"), {"limit": 5})))
    keep()
    shutil.rmtree("experiments/mine+limit=5")
    found = result("mine+limit=5")
    assert (found.scores["questions"], found.experiment.limit, found.here) == (5, 5, False)


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line.replace('"value": 24.1', '"value": 99.9'),
        lambda line: line.replace('"made": {', '"made": {"more": 1, '),
        lambda line: line[: len(line) // 2],
        lambda line: "[]",
        lambda line: '{"experiment": "mine"}',
        lambda line: json_line(sealed(json.loads(line) | {"inputs": "x"})).decode() + line,
        lambda line: json_line(sealed({"experiment": "mine"})).decode(),
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
def test_a_record_that_is_not_used_is_kept(spoil):
    run_answers("mine", range(20))
    stages.run(Run(override(load_experiment("mine"), {"limit": 5})))
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
        recorded = [json_line(sealed(json.loads(line) | {"version": 0})).decode() for line in before.splitlines()]
        shutil.rmtree("experiments/mine")
        shutil.rmtree("experiments/mine+limit=5")
        RECORDS.write_text(before := "".join(recorded))
        assert result("mine").scores is None, "scored otherwise than today"
    keep()
    assert RECORDS.read_text() == before


def test_a_record_is_valid_if_a_setting_is_new_or_only_changes_speed(sample_indexes):
    shutil.copytree(sample_indexes, "indexes")
    stages.run(Run(override(load_experiment("sample"), {"retriever": "bm25", "limit": 2})))
    keep()
    shutil.rmtree(f"experiments/{(name := 'sample+limit=2+retriever=bm25')}")
    record = json.loads(RECORDS.read_text())
    del record["tables"]["retriever"]["k1"]  # as in a version without k1
    record["tables"]["retriever"]["threads"] = 7
    RECORDS.write_bytes(json_line(sealed(record)))
    assert result(name).scores
    record["tables"]["retriever"]["k1"] = 1.2
    RECORDS.write_bytes(json_line(sealed(record)))
    assert result(name).experiment.retriever["k1"] == 1.2, "a variant is what its record says"


def test_an_experiment_with_a_plus_in_its_name_is_no_variant():
    run_answers("a+b", range(20))
    stages.run(Run(override(load_experiment("a+b"), {"limit": 5})))
    keep()
    assert [one["experiment"] for one in map(json.loads, RECORDS.read_text().splitlines())] == ["a+b", "a+b+limit=5"]
    shutil.rmtree("experiments/a+b")
    shutil.rmtree("experiments/a+b+limit=5")
    assert result("a+b").scores["questions"] == 83
    assert result("a+b+limit=5").scores["questions"] == 5
    file = Path("experiments/a+b.toml")
    file.write_text(file.read_text().replace('split = "dev"', 'split = "dev"\nlimit = 9'))
    assert result("a+b").scores is None, "its file counts, not its record"


def test_a_variant_that_was_not_scored_is_no_row():
    run_answers("mine", range(20))
    stages.read(Run(override(load_experiment("mine"), {"limit": 5})))
    assert [one.experiment.name for one in gather() if "+" in one.experiment.name] == []


def test_a_recorded_variant_stands_under_its_heading():
    run_answers("mine", range(20), 'table = "Mine"\nabout = "Of mine."')
    stages.run(Run(override(load_experiment("mine"), {"limit": 5})))
    keep()
    shutil.rmtree("experiments/mine+limit=5")
    experiment = result("mine+limit=5").experiment
    assert (experiment.table, experiment.about) == ("Mine", "Of mine.")


def test_the_stage_of_a_removed_reader_is_ignored():
    retriever = '[retriever]\nname = "gold"\n'
    run_answers("mine", range(20), retriever)
    file = Path("experiments/mine.toml")
    file.write_text(file.read_text().split("[reader]")[0])
    stages.run(Run(load_experiment("mine")))
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


def test_a_report_does_not_check_that_an_index_exists():
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
        ("sample-smollm2-gold", ["SmolLM2 (ifqa data smollm2)"]),
        ("figure2-bm25-fid-large", ["the Wikipedia dump", "a trained FiD", "a GPU"]),
    ],
)
def test_what_an_experiment_needs_is_told_from_its_file(name, wanted):
    assert needs(load_experiment(name)) == tuple(wanted)


def corpus_file(words, stemmer="porter", more=""):
    text = f"""[passages]
[[passages.sources]]
format = "dump"
path = "{ENCYCLOPEDIA}"
words = {words}
[index.bm25]
retriever = "bm25"
stemmer = "{stemmer}"
{more}
"""
    Path("indexes").mkdir(exist_ok=True)
    Path("indexes/sample.toml").write_text(text)


ENCYCLOPEDIA = BUNDLED / "sample/encyclopedia.xml"


def test_a_record_is_out_of_date_if_its_corpus_changed():
    run_answers("mine", range(20), 'corpus = "sample"')
    keep()
    shutil.rmtree("experiments/mine")
    corpus_file(100, more='[index.other]\nretriever = "bm25"')
    assert result("mine").scores, "the same in other words, and an index that nobody searches"
    corpus_file(20)
    assert result("mine").scores is None


@pytest.mark.parametrize(
    ("words", "stemmer", "same"), [(100, "porter", True), (20, "porter", False), (100, "none", False)]
)
def test_a_corpus_with_other_settings_has_another_identity(words, stemmer, same):
    before = identities(Run(load_experiment("sample")))
    corpus_file(words, stemmer)
    after = identities(Run(load_experiment("sample")))
    assert (before["corpus"] == after["corpus"]) is same
    assert {key for key in before if before[key] != after[key]} <= {"corpus"}


def test_a_record_is_out_of_date_if_its_questions_changed():
    run_answers("mine", range(20))
    keep()
    shutil.rmtree("experiments/mine")
    record = json.loads(RECORDS.read_text())
    assert result("mine").scores
    record["identities"]["questions"] = "0" * 64
    RECORDS.write_bytes(json_line(sealed(record)))
    assert result("mine").scores is None


def test_a_record_is_out_of_date_if_its_readers_files_changed():
    run_answers("mine", range(20))
    keep()
    shutil.rmtree("experiments/mine")
    write_answers("mine", range(30))
    assert result("mine").scores is None


def test_a_record_is_valid_if_its_inputs_are_not_on_this_machine():
    run_answers("mine", range(20))
    keep()
    shutil.rmtree("experiments/mine")
    Path("mine.jsonl").unlink()
    assert result("mine").scores


@pytest.mark.parametrize("kind", ["benchmark sample", "reader predictions"])
def test_a_record_is_out_of_date_if_a_plugins_code_changed(kind, monkeypatch):
    run_answers("mine", range(20))
    keep()
    shutil.rmtree("experiments/mine")
    assert result("mine").scores
    plugin = load(*kind.split())
    monkeypatch.setattr(plugin, "version", plugin.version + 1)
    assert result("mine").scores is None


def test_a_record_without_identities_is_valid_until_it_is_made_again():
    run_answers("mine", range(20))
    keep()
    record = json.loads(RECORDS.read_text())
    del record["identities"]
    record["made"]["at"] = "2020-01-01T00:00:00+00:00"
    RECORDS.write_bytes(json_line(sealed(record)))
    shutil.rmtree("experiments/mine")
    assert result("mine").scores
    keep()
    assert "identities" not in json.loads(RECORDS.read_text())
    run_answers("mine", range(20))
    keep()
    again = json.loads(RECORDS.read_text())
    assert (set(again["identities"]), again["made"]) == ({"code", "questions", "training", "files"}, record["made"])


EVIL = "open('ran', 'w').close()\n"


@pytest.mark.parametrize(
    "change",
    [
        {"benchmark": "evil_plugin:X"},
        {"measures": ["evil_plugin:X"]},
        {"reader": {"name": "evil_plugin:X"}},
        {"llm": {"name": "evil_plugin:X"}},
        {"retriever": {"name": "fusion", "parts": [{"name": "evil_plugin:X"}]}},
    ],
)
@pytest.mark.parametrize("name", ["mine", "mine+limit=5"])
def test_no_record_makes_a_report_import_a_module(change, name, capsys):
    run_answers("mine", range(20))
    keep()
    shutil.rmtree("experiments/mine")
    Path("evil_plugin.py").write_text(EVIL)
    record = json.loads(RECORDS.read_text())
    RECORDS.write_bytes(json_line(sealed(record | {"experiment": name, "tables": record["tables"] | change})))
    before = RECORDS.read_bytes()
    found = {one.experiment.name: one.scores for one in gather()}
    assert not Path("ran").exists()
    assert found["mine"] is None
    assert "mine+limit=5" not in found
    if "+" in name:
        assert "experiment mine+limit=5 is left out: its record in" in capsys.readouterr().err
    keep()
    assert RECORDS.read_bytes() == before


def test_a_recorded_variant_may_use_the_plugin_of_its_base_experiment():
    Path("my_own_reader.py").write_text(
        "class Mine:\n    def answer(self, questions, passages):\n        from ifqa.records import Prediction\n"
        "        return [Prediction(one.id, 'yes') for one in questions]\n"
    )
    Path("experiments").mkdir()
    Path("experiments/mine.toml").write_text(
        'benchmark = "sample"\nsplit = "dev"\n[reader]\nname = "my_own_reader:Mine"\n'
    )
    stages.run(Run(override(load_experiment("mine"), {"limit": 5})))
    keep()
    shutil.rmtree("experiments/mine+limit=5")
    assert result("mine+limit=5").scores["questions"] == 5


def test_a_record_that_cannot_be_written_again_is_refused():
    run_answers("mine", range(20))
    keep()
    record = json.loads(RECORDS.read_text())
    record["tables"]["about"] = "\ud800"
    RECORDS.write_text(json.dumps(sealed(record)))
    with pytest.raises(IfqaError, match=r"RESULTS\.jsonl:1: .* half a surrogate pair"):
        gather()


@pytest.mark.parametrize(
    ("key", "value", "place"),
    [
        ("version", "5", "version"),
        ("tables", [], "tables"),
        ("inputs", 3, "inputs"),
        ("made", {}, "made.at"),
        ("identities", {"code": 3}, "identities.code"),
        ("scores", {"questions": 3}, "scores: .*n_failed"),
    ],
)
def test_a_record_of_another_shape_is_refused_by_its_line(key, value, place):
    run_answers("mine", range(20))
    keep()
    RECORDS.write_bytes(json_line(sealed(json.loads(RECORDS.read_text()) | {key: value})))
    with pytest.raises(IfqaError, match=rf"RESULTS\.jsonl:1: .*{place}"):
        gather()


@pytest.mark.parametrize(
    ("key", "value"),
    [("at", None), ("seconds", "long"), ("spent", 3), ("label", float("inf")), ("libraries", [])],
)
def test_an_experiment_with_a_broken_manifest_is_stale(key, value):
    run_answers("mine", range(20))
    run_answers("other", range(20))
    path = Path("experiments/mine/read/manifest.json")
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps(manifest | {"record": manifest["record"] | {key: value}}))
    assert result("other").scores
    assert f"not as ifqa writes it (record.{key}" in result("mine").stale


@pytest.mark.parametrize("value", [..., "x", -1])
def test_a_corpus_manifest_without_its_count_of_passages_is_named(value):
    run_answers("mine", range(20), 'corpus = "sample"')
    path = Path("indexes/sample/passages/manifest.json")
    manifest = json.loads(path.read_text())
    del manifest["record"]["passages"]
    path.write_text(
        json.dumps(manifest | {"record": manifest["record"] | ({} if value is ... else {"passages": value})})
    )
    assert "passages/manifest.json: not as ifqa writes it (record.passages: " in result("mine").stale
