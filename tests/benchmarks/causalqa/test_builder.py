"""The corpus of causal questions: the random split, interrupted builds, absent datasets, the authors' release."""

import json
from pathlib import Path

import pytest
from causal_publishers import WRITERS, write_publishers, write_release
from command_line import ifqa_here
from hypothesis import given
from hypothesis import strategies as st

from ifqa.benchmarks.causalqa import builder
from ifqa.benchmarks.causalqa.benchmark import CausalQA
from ifqa.benchmarks.causalqa.builder import build_causalqa, question_splits
from ifqa.errors import IfqaError
from ifqa.formats.causalqa_files import Details


def read_corpus(root):
    """The corpus's files, and the inputs and counts of its manifest."""
    place = root / "data/causalqa"
    manifest = json.loads((place / "manifest.json").read_text())
    files = {path.relative_to(place).as_posix(): path.read_bytes() for path in place.glob("*/*")}
    return files, manifest["inputs"], manifest["record"]["datasets"]


def random_part(number, dataset="paq", seed=0):
    return question_splits(Details(str(number), "", (), ""), dataset, seed)[0]


@given(st.text("ab0 é\n", min_size=1), st.sampled_from(["train", "valid", "both", ""]), st.integers(0, 9))
def test_a_question_is_in_one_random_part_and_in_its_original_one(number, split, seed):
    splits = question_splits(Details(number, "", ["x"], split), "paq", seed)
    [part] = [name.removeprefix("random-") for name in splits if name.startswith("random-")]
    original = [name for name in splits if name.startswith("original-")]
    assert original == {"": [], "both": [f"original-{part}"]}.get(split, [f"original-{split}"])
    assert question_splits(Details(number, "other", ["y"], split), "paq", seed) == splits, (
        "by id, dataset and seed only"
    )


def test_a_tenth_is_for_validation_with_any_seed():
    for seed in range(3):
        parts = [random_part(n, seed=seed) for n in range(20_000)]
        assert 1850 < parts.count("random-valid") < 2150  # 2,000 with a standard deviation of 42
    first, second, eli5 = ([random_part(n, **kw) for n in range(999)] for kw in ({}, {"seed": 1}, {"dataset": "eli5"}))
    assert first not in (second, eli5)


@pytest.fixture(scope="module")
def publishers(tmp_path_factory):
    return write_publishers(tmp_path_factory.mktemp("publishers"))


def test_a_resumed_build_does_not_read_a_complete_dataset_again(tmp_path, monkeypatch):
    write_publishers(tmp_path, "paq", "eli5")
    list(build_causalqa(tmp_path / "whole", tmp_path))
    parsed, match = [], builder.match_rules

    def interrupt(question, rules):
        parsed.append(question)
        if len(parsed) == 14:  # the fourth question of the second dataset
            raise KeyboardInterrupt
        return match(question, rules)

    monkeypatch.setattr(builder, "match_rules", interrupt)
    with pytest.raises(KeyboardInterrupt):
        list(build_causalqa(tmp_path, tmp_path))
    assert not (tmp_path / "data/causalqa").exists()
    lines = list(build_causalqa(tmp_path, tmp_path))
    assert len(parsed) == 10 + 4 + 10  # the interrupted dataset starts again
    assert read_corpus(tmp_path) == read_corpus(tmp_path / "whole")
    assert lines[0].startswith("paq: 10 questions, 4 causal")
    assert lines[4].startswith("eli5: 10 questions, 3 causal, 1 left out without an answer")
    write_publishers(tmp_path, "triviaqa")
    path = tmp_path / "triviaqa/unfiltered-web-dev.json"
    whole = path.read_text()
    path.write_text("{")
    with pytest.raises(IfqaError, match=r"unfiltered-web-dev.json:1: the JSON ends too early"):
        list(build_causalqa(tmp_path, tmp_path))
    path.write_text(whole.replace("lamp 6", "lamp 60"))
    list(build_causalqa(tmp_path, tmp_path))  # the partial output of another file is not reused
    assert b"why does lamp 60 glow" in read_corpus(tmp_path)[0]["original-valid/triviaqa.jsonl"]


def test_a_dataset_is_added_and_removed_with_its_folder(tmp_path):
    write_publishers(tmp_path, "paq", "squad2")
    list(build_causalqa(tmp_path, tmp_path))
    before, _, _ = read_corpus(tmp_path)
    write_publishers(tmp_path, "eli5")
    lines = list(build_causalqa(tmp_path, tmp_path))
    after, _, facts = read_corpus(tmp_path)
    assert before.items() < after.items()
    assert facts["paq"]["questions"] == 10
    assert lines == list(build_causalqa(tmp_path, tmp_path))  # nothing to do
    list(build_causalqa(tmp_path, tmp_path, seed=1))
    assert read_corpus(tmp_path)[0].keys() == after.keys()
    assert read_corpus(tmp_path)[0] != after
    write_publishers(tmp_path / "one", "squad2")
    lines = list(build_causalqa(tmp_path, tmp_path / "one"))
    assert {Path(name).name for name in read_corpus(tmp_path)[0]} == {"squad2.jsonl"}
    assert f"eli5: absent, {tmp_path / 'one/eli5'} is missing; wanted in it: train_eli5.jsonl" in lines[4]
    (tmp_path / "none/squad2").mkdir(parents=True)
    (tmp_path / "none/squad2/train.tar.gz").write_bytes(b"")
    with pytest.raises(IfqaError, match=r"squad2: wanted train-v2.0.json and dev-v2.0.json; found train.tar$"):
        list(build_causalqa(tmp_path, tmp_path / "none"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["causalqa", "--from", "nowhere"], "--from nowhere: no such folder"),
        (["causalqa", "--from", "."], "--from .: wanted folders named paq, gooaq, msmarco"),
        (["causalqa", "--from", ".", "--rules", "notebok"], "unknown reading of the rules 'notebok'; did you mean 'notebook'?"),
        (["sample", "--rules", "fixed"], "No such option: --rules"),
        (["ifqa", "--seed", "3"], "No such option: --seed"),
    ],
)  # fmt: skip
def test_an_invalid_command_is_refused(arguments, message, tmp_path):
    process = ifqa_here("data", *arguments, folder=tmp_path)
    assert (process.returncode, process.stdout) == (2, "")
    assert message in process.stderr


def test_the_rules_select_the_questions_and_absent_datasets_are_named(tmp_path):
    questions = ["Who was affected?", "Whyalla is in which state?", "Why?", "Who?", "why \ud83d"]
    (tmp_path / "gooaq").mkdir()
    records = [{"id": n, "question": question, "answer": "a\tb"} for n, question in enumerate(questions)]
    (tmp_path / "gooaq/gooaq.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    selected = {}
    for rules in ("notebook", "fixed"):
        process = ifqa_here("data", "causalqa", "--from", ".", "--rules", rules, folder=tmp_path)
        assert process.returncode == 0, process.stderr
        files, _, _ = read_corpus(tmp_path)
        lines = b"".join(files[f"random-{part}/gooaq.jsonl"] for part in ("train", "valid")).splitlines()
        selected[rules] = {int(record["id"]): record for record in map(json.loads, lines)}
    assert [set(records) for records in selected.values()] == [{1, 2, 4}, {0, 2, 4}]
    assert selected["fixed"][4] == {"id": "4", "question": "why ?", "context": "", "answers": ["a b"], "rules": ["R1"]}
    assert [line.split(":")[0] for line in process.stdout.splitlines()] == list(WRITERS)
    assert process.stdout.count(": absent, ") == 9
    path = tmp_path / "data/causalqa/manifest.json"
    manifest = json.loads(path.read_text())
    assert manifest["record"]["absent"].keys() == WRITERS.keys() - {"gooaq"}
    manifest["record"]["datasets"] = {"gooaq": 3}
    path.write_text(json.dumps(manifest))
    process = ifqa_here("stats", "causal-corpus", folder=tmp_path)
    assert process.returncode == 2
    assert "manifest.json: 'record': not as ifqa writes it (datasets.gooaq" in process.stderr


def test_the_statistics_are_those_of_the_files_next_to_the_papers(publishers, tmp_path):
    process = ifqa_here("stats", "causal-corpus", folder=tmp_path)
    assert (process.returncode, "run: ifqa data causalqa --from FOLDER" in process.stderr) == (2, True)
    list(build_causalqa(tmp_path, publishers))
    files, _, facts = read_corpus(tmp_path)
    for name, fact in facts.items():
        for split in builder.SPLITS:
            records = [json.loads(line) for line in files[f"{split}/{name}.jsonl"].splitlines()]
            words = [(len(record["question"].split()), len(record["answers"][0].split())) for record in records]
            assert fact["splits"][split] == [len(records), sum(q for q, _ in words), sum(a for _, a in words)]
    process = ifqa_here("stats", "causal-corpus", folder=tmp_path)
    assert process.returncode == 0, process.stderr
    rows = [line.split() for line in process.stdout.splitlines()]
    for row in (
        "eli5 10 3 1 30.0% 6.0 2.0", "paper 64,875,601 769,606 - 1.2% 9.6 2.7", "all 103 35 8 34.0% 5.1 2.0",
        "squad2 2 1 2 1", "paper - 252 - 321",
    ):  # fmt: skip
        assert row.split() in rows
    newsqa = json.loads(ifqa_here("stats", "causal-corpus", "--json", folder=tmp_path).stdout)["newsqa"]
    assert newsqa["splits"]["original-valid"] == {"questions": 1, "question_words": 5, "answer_words": 2}
    assert newsqa["paper"]["original"] == 29


@pytest.mark.parametrize("packed", [False, True])
def test_the_authors_release_keeps_its_splits(packed, tmp_path):
    write_release(tmp_path / "release", packed)
    lines = list(build_causalqa(tmp_path, tmp_path / "release"))
    place = tmp_path / "data/causalqa"
    facts = json.loads((place / "manifest.json").read_text())["record"]["datasets"]
    assert "eli5: absent, the release has only its ids" in lines[4]
    assert lines[0].startswith("paq: from the release, 8 causal, 0 left out without an answer")
    assert lines[6].startswith("squad2: from the release, 6 causal, 2 left out without an answer")
    records = [json.loads(line) for line in (place / "random-valid/squad2.jsonl").read_bytes().splitlines()]
    assert records[1] == {
        "id": "1", "question": "Why, valid 1?", "context": 'A "lamp",\nhot.', "answers": ["hot", "hot 1"], "rules": ["R1"],
    }  # fmt: skip
    lines = (place / "original-train/paq.jsonl").read_bytes().splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["0.0", "0.1", "1.2", "1.3"]
    assert facts["squad2"]["splits"]["original-train"] == [3, 9, 3]


def test_a_publishers_dataset_replaces_the_releases_and_duplicate_ids_become_unique(tmp_path):
    write_release(tmp_path)
    path = tmp_path / "Webis-CausalQA-22-v-1.0/input/random-splits/squad2_train_random_split.csv"
    path.write_text(path.read_text() + "1,Why again?,why,c,c,hot\n")
    write_publishers(tmp_path, "eli5", "paq")
    lines = list(build_causalqa(tmp_path, tmp_path))
    assert lines[0].startswith("paq: 10 questions, 4 causal")
    assert lines[4].startswith("eli5: 10 questions, 3 causal")
    assert lines[6].startswith("squad2: from the release")
    questions = CausalQA(tmp_path).questions("random-train/squad2")
    assert [question.id.rpartition("/")[2] for question in questions] == ["0", "1", "2", "1.4"]


def test_a_release_with_other_columns_is_refused(tmp_path):
    write_release(tmp_path)
    path = tmp_path / "Webis-CausalQA-22-v-1.0/input/original-splits/squad2_train_original_split.csv"
    text, short = path.read_text(), "split.csv:9: found fewer cells than columns"
    renamed = "squad2_train_original_split.csv:1: column 'answer' is missing; found id, question"
    for changed, message in {text.replace("answer", "gold"): renamed, text + "4,why\n": short}.items():
        path.write_text(changed)
        with pytest.raises(IfqaError, match=message):
            list(build_causalqa(tmp_path, tmp_path))


def test_the_release_is_fetched_once(tmp_path, monkeypatch):
    write_release(tmp_path / "server", packed=True)
    monkeypatch.setattr(builder.release, "URL", (tmp_path / "server/Webis-CausalQA-22-v-1.0.zip").as_uri())
    lines = list(build_causalqa(tmp_path, None))
    assert lines[6].startswith("squad2: from the release, 6 causal")
    assert (tmp_path / "data/causalqa-release/Webis-CausalQA-22-v-1.0.zip").is_file()
    monkeypatch.setattr(builder.release, "URL", "file:///nowhere.zip")
    assert list(build_causalqa(tmp_path, None)) == lines
