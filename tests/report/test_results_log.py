"""The results that a report shows: a run that is here, else a valid record, else none."""

import json
import shutil
from pathlib import Path

import pytest
from prediction_files import run_answers, write_answers

from ifqa.config.experiment import load_experiment
from ifqa.config.overrides import override
from ifqa.errors import IfqaError
from ifqa.pipeline import stages
from ifqa.pipeline.run import Run
from ifqa.plugins import load_plugin
from ifqa.report import results_log
from ifqa.report.results_log import RECORDS, compute_identities, read_records, seal, update_records
from ifqa.storage.files import json_line
from ifqa.storage.resources import BUNDLED

MINE = Path("experiments/mine.toml")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def gather():
    return results_log.gather_entries(read_records())


def result(name="mine"):
    return next(entry for entry in gather() if entry.experiment.name == name)


def keep():
    RECORDS.write_bytes(b"".join(map(json_line, update_records(read_records(), gather()))))


def recorded(more=""):
    """Leave of the experiment `mine` its file and its record."""
    run_answers("mine", range(20), more)
    keep()
    shutil.rmtree("experiments/mine")
    return json.loads(RECORDS.read_text())


def record(content):
    RECORDS.write_bytes(json_line(seal(content)))


def run_variant(name="mine"):
    stages.run(Run(override(load_experiment(name), {"limit": 5})))


def change_record_of(manifest, **changes):
    content = json.loads(Path(manifest).read_text())
    Path(manifest).write_text(json.dumps(content | {"record": content["record"] | changes}))


def test_a_record_of_a_finished_experiment_replaces_a_run_that_is_no_longer_here():
    write_answers("mine", range(20))
    assert (result().scores, update_records({}, gather())) == (None, [])
    run_answers("mine", range(20))
    before = result()
    assert before.run
    assert before.scores == json.loads(Path("experiments/mine/score/scores.json").read_text())
    made = json.loads(Path("experiments/mine/read/manifest.json").read_text())["record"]
    assert all(before.facts[key] == made[key] for key in ("at", "hardware", "commit"))
    assert before.facts["seconds"] == {"read": made["seconds"]}
    keep()
    change_record_of("experiments/mine/read/manifest.json", at="2030-01-01T00:00:00+00:00")  # the same run made again
    assert result().run
    assert result().facts == before.facts
    shutil.rmtree("experiments/mine")
    assert (result().scores, result().facts, result().run) == (before.scores, before.facts, None)


def test_a_record_is_valid_as_long_as_settings_questions_and_files_are_the_same():
    content, file = recorded(), Path("experiments/mine.toml")
    file.write_text(file.read_text() + "\n[expected.EM]\nvalue = 3.0\n")
    assert result().scores, "expected values do not change what was measured"
    file.write_text((text := file.read_text()).replace('split = "dev"', 'split = "dev"\nlimit = 9'))
    assert result().scores is None
    file.write_text(text)
    record(content | {"identities": content["identities"] | {"questions": "0" * 64}})
    assert result().scores is None
    record(content)
    answers = Path("mine.jsonl").read_text()
    write_answers("mine", range(30))
    assert result().scores is None
    Path("mine.jsonl").write_text(answers)
    assert result().scores
    Path("mine.jsonl").unlink()
    assert result().scores, "the file may be on another machine"


def test_a_run_of_other_settings_or_without_its_inputs_is_stale_despite_a_record():
    run_answers("mine", range(20))
    keep()
    write_answers("mine", range(30))
    assert result().scores is None
    assert "changed: reader" in result().stale
    stages.run(Run(override(load_experiment("sample"), {"limit": 2, "retriever": "gold"})))
    shutil.rmtree("experiments/sample+limit=2+retriever=gold/retrieve")
    assert "retrieve" in result("sample+limit=2+retriever=gold").stale


def test_a_recorded_variant_is_shown_without_its_folder_under_its_heading():
    run_answers("mine", range(20), 'table = "Mine"\nabout = "Of mine."')
    stages.read(Run(override(load_experiment("mine"), {"limit": 5})))
    assert len([entry for entry in gather() if entry.experiment.name.startswith("mine")]) == 1, "it was not scored"
    run_variant()
    keep()
    shutil.rmtree("experiments/mine+limit=5")
    found = result("mine+limit=5")
    assert (found.scores["questions"], found.experiment.limit, found.run) == (5, 5, None)
    assert (found.experiment.table, found.experiment.about) == ("Mine", "Of mine.")


def test_a_record_changed_by_hand_or_of_another_shape_is_refused_by_its_line():
    content = recorded()
    line = RECORDS.read_text()
    shapes = {
        "version": "5", "tables": [], "inputs": 3, "made": {}, "identities": {"code": 3}, "scores": {"questions": 3},
    }  # fmt: skip
    for text in (
        line.replace('"value": 24.1', '"value": 99.9'),
        line[: len(line) // 2],
        "[]",
        json_line(seal(content | {"inputs": "x"})).decode() + line,
        json_line(seal({"experiment": "mine"})).decode(),
        json.dumps(seal(content | {"tables": content["tables"] | {"about": "\ud800"}})),
        *(json_line(seal(content | {key: value})).decode() for key, value in shapes.items()),
    ):
        assert text != line
        RECORDS.write_text(text)
        with pytest.raises(IfqaError, match=r"RESULTS\.jsonl:[12]"):
            gather()


def test_records_survive_the_way_into_the_file_and_back_and_equal_lines_are_one():
    run_answers("mine", range(20), '[[expected.EM]]\nvalue = 3\nretired = "m"\n')
    run_answers("other", range(30))
    keep()
    assert set(read_records()) == {"mine", "other"}
    before = RECORDS.read_bytes()
    RECORDS.write_bytes(before * 2)
    keep()
    assert RECORDS.read_bytes() == before


@pytest.mark.parametrize("spoil", ["stale", "broken", "gone", "older"])
def test_a_record_that_is_not_used_is_kept(spoil):
    run_answers("mine", range(20))
    run_variant()
    keep()
    before = RECORDS.read_text()
    if spoil == "stale":
        write_answers("mine", range(30))
    elif spoil == "broken":
        MINE.write_text("no toml")
    else:
        shutil.rmtree("experiments/mine+limit=5")
    if spoil == "gone":
        MINE.unlink()
    elif spoil == "older":
        shutil.rmtree("experiments/mine")
        older = [json_line(seal(json.loads(line) | {"version": 0})).decode() for line in before.splitlines()]
        RECORDS.write_text(before := "".join(older))
        assert result().scores is None, "scored otherwise than today"
    keep()
    assert RECORDS.read_text() == before


def test_a_record_is_valid_if_a_setting_is_new_or_only_changes_speed(sample_indexes):
    shutil.copytree(sample_indexes, "indexes")
    stages.run(Run(override(load_experiment("sample"), {"retriever": "bm25", "limit": 2})))
    keep()
    shutil.rmtree(f"experiments/{(name := 'sample+limit=2+retriever=bm25')}")
    content = json.loads(RECORDS.read_text())
    del content["tables"]["retriever"]["k1"]  # as in a version without k1
    content["tables"]["retriever"]["threads"] = 7
    record(content)
    assert result(name).scores
    content["tables"]["retriever"]["k1"] = 1.2
    record(content)
    assert result(name).experiment.retriever["k1"] == 1.2, "a variant is what its record says"


def test_the_stage_of_a_removed_reader_is_ignored():
    run_answers("mine", range(20), '[retriever]\nname = "gold"\n')
    MINE.write_text(MINE.read_text().split("[reader]")[0])
    stages.run(Run(load_experiment("mine")))
    assert set(result().facts["seconds"]) == {"retrieve"}


@pytest.mark.parametrize(
    "text", ["no toml", '[reader]\nname = "gone:Reader"\n', 'corpus = "no"\n[retriever]\nname = "bm25"\n']
)
def test_an_experiment_that_is_wrong_is_left_out_and_said(text, capsys):
    run_answers("mine", range(20))
    Path("experiments/wrong.toml").write_text(f'benchmark = "sample"\nsplit = "dev"\n{text}')
    assert result().scores
    assert "skipping experiment " in capsys.readouterr().err


def corpus_file(words, stemmer):
    source = f'format = "dump"\npath = "{BUNDLED / "sample/encyclopedia.xml"}"\nwords = {words}'
    Path("indexes").mkdir(exist_ok=True)
    Path("indexes/sample.toml").write_text(
        f'[[passages.sources]]\n{source}\n[index.bm25]\nretriever = "bm25"\nstemmer = "{stemmer}"\n'
        '[index.nobody-searches]\nretriever = "bm25"\n'
    )


@pytest.mark.parametrize(
    ("words", "stemmer", "same"), [(100, "porter", True), (20, "porter", False), (100, "none", False)]
)
def test_a_corpus_with_other_settings_has_another_identity(words, stemmer, same):
    before = compute_identities(Run(load_experiment("sample")))
    corpus_file(words, stemmer)
    after = compute_identities(Run(load_experiment("sample")))
    assert (before["corpus"] == after["corpus"]) is same
    assert {key for key in before if before[key] != after[key]} <= {"corpus"}


@pytest.mark.parametrize("kind", ["benchmark sample", "reader predictions"])
def test_a_record_is_out_of_date_if_a_plugins_code_changed(kind, monkeypatch):
    recorded()
    plugin = load_plugin(*kind.split())
    monkeypatch.setattr(plugin, "version", plugin.version + 1)
    assert result().scores is None


def test_a_record_without_identities_is_valid_until_it_is_made_again():
    content = recorded()
    del content["identities"]
    content["made"]["at"] = "2020-01-01T00:00:00+00:00"
    record(content)
    assert result().scores
    keep()
    assert "identities" not in json.loads(RECORDS.read_text())
    run_answers("mine", range(20))
    keep()
    again = json.loads(RECORDS.read_text())
    assert (set(again["identities"]), again["made"]) == ({"code", "questions", "training", "files"}, content["made"])


@pytest.mark.parametrize(
    "change",
    [
        {"benchmark": "evil_plugin:X"}, {"measures": ["evil_plugin:X"]}, {"reader": {"name": "evil_plugin:X"}},
        {"llm": {"name": "evil_plugin:X"}}, {"retriever": {"name": "fusion", "parts": [{"name": "evil_plugin:X"}]}},
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["mine", "mine+limit=5"])
def test_no_record_makes_a_report_import_a_module(change, name, capsys):
    content = recorded()
    Path("evil_plugin.py").write_text("open('ran', 'w').close()\n")
    record(content | {"experiment": name, "tables": content["tables"] | change})
    before = RECORDS.read_bytes()
    found = {entry.experiment.name: entry.scores for entry in gather()}
    assert not Path("ran").exists()
    assert found["mine"] is None
    assert "mine+limit=5" not in found
    assert ("skipping experiment mine+limit=5: its record in" in capsys.readouterr().err) == ("+" in name)
    keep()
    assert RECORDS.read_bytes() == before


def test_a_recorded_variant_may_use_the_plugin_of_its_base_experiment():
    Path("my_own_reader.py").write_text(
        "class Mine:\n    def answer(self, questions, passages):\n        from ifqa.records import Prediction\n"
        "        return [Prediction(question.id, 'yes') for question in questions]\n"
    )
    MINE.parent.mkdir()
    MINE.write_text('benchmark = "sample"\nsplit = "dev"\n[reader]\nname = "my_own_reader:Mine"\n')
    run_variant()
    keep()
    shutil.rmtree("experiments/mine+limit=5")
    assert result("mine+limit=5").scores["questions"] == 5


def test_an_experiment_with_a_broken_manifest_is_stale():
    run_answers("mine", range(20), 'corpus = "sample"')
    run_answers("other", range(20))
    stage, corpus = Path("experiments/mine/read/manifest.json"), Path("indexes/sample/passages/manifest.json")
    broken = {"at": None, "seconds": "long", "spent": 3, "label": float("inf")}
    for path, key, value in (*((stage, *pair) for pair in broken.items()), (corpus, "passages", -1)):
        before = path.read_text()
        change_record_of(path, **{key: value})
        assert f"not as ifqa writes it (record.{key}" in result().stale
        assert result("other").scores
        path.write_text(before)
