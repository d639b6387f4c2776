"""The entries of a report: scores of a local run, else of a valid record, else none."""

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
from ifqa.storage.resources import find_resource

MINE = Path("experiments/mine.toml")


def gather():
    return results_log.gather_entries(read_records())


def entry_of(name="mine"):
    return next(entry for entry in gather() if entry.experiment.name == name)


def save_records():
    RECORDS.write_bytes(b"".join(map(json_line, update_records(read_records(), gather()))))


def record_alone():
    """Run and record the experiment `mine`; its file and its record are left."""
    run_answers("mine", range(20))
    save_records()
    shutil.rmtree("experiments/mine")
    return json.loads(RECORDS.read_text())


def write_record(content):
    RECORDS.write_bytes(json_line(seal(content)))


def run_variant():
    stages.run(Run(override(load_experiment("mine"), {"limit": 5})))


def change_manifest(path, **changes):
    content = json.loads(Path(path).read_text())
    Path(path).write_text(json.dumps(content | {"record": content["record"] | changes}))


def test_a_record_of_a_finished_experiment_replaces_a_deleted_run():
    write_answers("mine", range(20))
    assert (entry_of().scores, update_records({}, gather())) == (None, [])
    run_answers("mine", range(20))
    before = entry_of()
    assert before.run
    assert before.scores == json.loads(Path("experiments/mine/score/scores.json").read_text())
    read = json.loads(Path("experiments/mine/read/manifest.json").read_text())["record"]
    assert all(before.facts[key] == read[key] for key in ("at", "hardware", "commit"))
    assert before.facts["seconds"] == {"read": read["seconds"]}
    save_records()
    # As if the run was repeated
    change_manifest("experiments/mine/read/manifest.json", at="2030-01-01T00:00:00+00:00")
    assert entry_of().run
    assert entry_of().facts == before.facts
    shutil.rmtree("experiments/mine")
    assert (entry_of().scores, entry_of().facts, entry_of().run) == (
        before.scores,
        before.facts,
        None,
    )


def test_a_record_is_valid_while_what_it_depends_on_is_the_same():
    content = record_alone()
    MINE.write_text(text := MINE.read_text() + "\n[expected.EM]\nvalue = 3.0\n")
    assert entry_of().scores, "expected values do not change what was measured"
    MINE.write_text(text.replace('split = "dev"', 'split = "dev"\nlimit = 9'))
    assert entry_of().scores is None
    MINE.write_text(text)
    write_record(content | {"identities": content["identities"] | {"questions": "0" * 64}})
    assert entry_of().scores is None
    write_record(content)
    answers = Path("mine.jsonl").read_text()
    write_answers("mine", range(30))
    assert entry_of().scores is None
    Path("mine.jsonl").write_text(answers)
    assert entry_of().scores
    Path("mine.jsonl").unlink()
    assert entry_of().scores, "the file may be on another machine"


def test_a_record_over_a_split_of_another_size_is_out_of_date():
    content = record_alone()
    write_record(content | {"scores": content["scores"] | {"of": 82}})
    assert entry_of().scores is None


def test_a_run_with_other_settings_or_without_its_inputs_is_stale_despite_a_record():
    run_answers("mine", range(20))
    save_records()
    write_answers("mine", range(30))
    assert entry_of().scores is None
    assert "changed: reader" in entry_of().stale
    stages.run(Run(override(load_experiment("sample"), {"limit": 2, "retriever": "gold"})))
    shutil.rmtree("experiments/sample+limit=2+retriever=gold/retrieve")
    assert "retrieve" in entry_of("sample+limit=2+retriever=gold").stale


def test_a_recorded_variant_is_listed_without_its_folder_under_its_heading():
    run_answers("mine", range(20), 'table = "Mine"\nabout = "Of mine."')
    stages.read(Run(override(load_experiment("mine"), {"limit": 5})))
    assert len([entry for entry in gather() if entry.experiment.name.startswith("mine")]) == 1, (
        "it was not scored"
    )
    run_variant()
    save_records()
    shutil.rmtree("experiments/mine+limit=5")
    variant = entry_of("mine+limit=5")
    assert (variant.scores["questions"], variant.experiment.limit, variant.run) == (5, 5, None)
    assert (variant.experiment.table, variant.experiment.about) == ("Mine", "Of mine.")


def test_a_record_changed_by_hand_or_with_another_shape_is_refused_by_its_line():
    content = record_alone()
    line = RECORDS.read_text()
    shapes = {
        "version": "5",
        "tables": [],
        "inputs": 3,
        "made": {},
        "identities": {"code": 3},
        "scores": {"questions": 3},
    }
    for text in (
        line.replace('"value": 24.0963855422', '"value": 99.9'),
        line[: len(line) // 2],
        "[]",
        json_line(seal(content | {"inputs": "x"})).decode() + line,
        json_line(seal({"experiment": "mine"})).decode(),
        json.dumps(seal(content | {"tables": content["tables"] | {"about": "\ud800"}})),
        *(json_line(seal(content | {key: shapes[key]})).decode() for key in shapes),
    ):
        assert text != line
        RECORDS.write_text(text)
        with pytest.raises(IfqaError, match=r"RESULTS\.jsonl:[12]"):
            gather()


def save_two_records():
    run_answers("mine", range(20), '[[expected.EM]]\nvalue = 3\nretired = "m"\n')
    run_answers("other", range(30))
    save_records()


def test_records_are_read_back():
    save_two_records()
    assert set(read_records()) == {"mine", "other"}


def test_equal_lines_are_merged():
    save_two_records()
    before = RECORDS.read_bytes()
    RECORDS.write_bytes(before * 2)
    save_records()
    assert RECORDS.read_bytes() == before


@pytest.mark.parametrize("spoil", ["stale", "broken", "gone", "older"])
def test_an_unused_record_stays_in_the_file(spoil):
    run_answers("mine", range(20))
    run_variant()
    save_records()
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
        older = [
            json_line(seal(json.loads(line) | {"version": 0})).decode()
            for line in before.splitlines()
        ]
        RECORDS.write_text(before := "".join(older))
        assert entry_of().scores is None, "it is from another scorer"
    save_records()
    assert RECORDS.read_text() == before


def test_a_record_is_valid_if_a_setting_is_new_or_only_changes_speed(sample_indexes):
    shutil.copytree(sample_indexes, "indexes")
    stages.run(Run(override(load_experiment("sample"), {"retriever": "bm25", "limit": 2})))
    save_records()
    shutil.rmtree(f"experiments/{(name := 'sample+limit=2+retriever=bm25')}")
    content = json.loads(RECORDS.read_text())
    del content["tables"]["retriever"]["k1"]  # as in a version without k1
    content["tables"]["retriever"]["threads"] = 7
    write_record(content)
    assert entry_of(name).scores
    content["tables"]["retriever"]["k1"] = 1.2
    write_record(content)
    assert entry_of(name).experiment.retriever.settings.k1 == 1.2, (
        "a variant has the settings of its record"
    )


def test_the_stage_of_a_removed_reader_is_ignored():
    run_answers("mine", range(20), '[retriever]\nname = "gold"\n')
    MINE.write_text(MINE.read_text().split("[reader]")[0])
    stages.run(Run(load_experiment("mine")))
    assert set(entry_of().facts["seconds"]) == {"retrieve"}


WRONG = [
    "no toml",
    '[reader]\nname = "gone:Reader"\n',
    'corpus = "no"\n[retriever]\nname = "bm25"\n',
]


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_experiment_is_skipped_with_a_message(text, capsys):
    run_answers("mine", range(20))
    Path("experiments/wrong.toml").write_text(f'benchmark = "sample"\nsplit = "dev"\n{text}')
    assert entry_of().scores
    assert "skipping experiment " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("[index.", "[index.unused]\nretriever = 'bm25'\n[index.", True),
        ("path", "words = 20\npath", False),
        ('= "bm25"', '= "bm25"\nstemmer = "none"', False),
    ],
)
def test_a_corpus_with_other_settings_has_another_identity(old, new, same):
    before = compute_identities(Run(load_experiment("sample")))
    path = find_resource("indexes/sample.toml")
    assert path is not None
    text = path.read_text()
    Path("indexes").mkdir(exist_ok=True)
    Path("indexes/sample.toml").write_text(text.replace(old, new, 1))
    after = compute_identities(Run(load_experiment("sample")))
    assert (before["corpus"] == after["corpus"]) is same
    assert {key for key in before if before[key] != after[key]} <= {"corpus"}


@pytest.mark.parametrize("kind", ["benchmark sample", "reader predictions"])
def test_a_record_is_out_of_date_if_a_plugins_code_changed(kind, monkeypatch):
    record_alone()
    plugin = load_plugin(*kind.split())
    monkeypatch.setattr(plugin, "version", plugin.version + 1)
    assert entry_of().scores is None


def test_a_record_without_identities_is_valid_until_the_next_run():
    content = record_alone()
    del content["identities"]
    content["made"]["at"] = "2020-01-01T00:00:00+00:00"
    write_record(content)
    assert entry_of().scores
    save_records()
    assert "identities" not in json.loads(RECORDS.read_text())
    run_answers("mine", range(20))
    save_records()
    again = json.loads(RECORDS.read_text())
    assert (set(again["identities"]), again["made"]) == (
        {"code", "questions", "training", "files"},
        content["made"],
    )


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
    content = record_alone()
    Path("evil_plugin.py").write_text("open('ran', 'w').close()\n")
    write_record(content | {"experiment": name, "tables": content["tables"] | change})
    before = RECORDS.read_bytes()
    scores = {entry.experiment.name: entry.scores for entry in gather()}
    assert not Path("ran").exists()
    assert scores["mine"] is None
    assert "mine+limit=5" not in scores
    assert ("skipping experiment mine+limit=5: its record in" in capsys.readouterr().err) == (
        "+" in name
    )
    save_records()
    assert RECORDS.read_bytes() == before


def test_a_recorded_variant_may_use_the_plugin_of_its_base_experiment():
    Path("my_own_reader.py").write_text(
        "class Mine:\n    def answer(self, questions, passages):\n        from ifqa.records "
        "import Prediction\n"
        "        return [Prediction(question.id, 'yes') for question in questions]\n"
    )
    MINE.parent.mkdir()
    MINE.write_text('benchmark = "sample"\nsplit = "dev"\n[reader]\nname = "my_own_reader:Mine"\n')
    run_variant()
    save_records()
    shutil.rmtree("experiments/mine+limit=5")
    assert entry_of("mine+limit=5").scores["questions"] == 5


def test_an_experiment_with_a_broken_manifest_is_stale():
    run_answers("mine", range(20), 'corpus = "sample"')
    run_answers("other", range(20))
    stage = Path("experiments/mine/read/manifest.json")
    corpus = Path("indexes/sample/passages/manifest.json")
    broken = {"at": None, "seconds": "long", "spent": 3, "label": float("inf")}
    for path, key, wrong in (
        *((stage, *pair) for pair in broken.items()),
        (corpus, "passages", -1),
    ):
        before = path.read_text()
        change_manifest(path, **{key: wrong})
        assert f"not as ifqa writes it (record.{key}" in entry_of().stale
        assert entry_of("other").scores
        path.write_text(before)
