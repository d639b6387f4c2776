"""Reading the IfQA release: once, and again when a file changes."""

import json
import os
from pathlib import Path

import pytest
from scored_experiments import benchmark

from ifqa.benchmarks import ifqa
from ifqa.benchmarks.ifqa import IfQA, Sample
from ifqa.errors import IfqaError
from ifqa.scoring.scheme import load_scheme

RECORD = {
    "question": "If Ann had won, who would lead?",
    "answers": ["Bo"],
    "context": ["Bo came second."],
}
FILE = Path("data/ifqa/full_split/dev.json")


@pytest.fixture(autouse=True)
def _files(here):
    benchmark(RECORD, RECORD | {"answers": ["Cy", "Cyrus"]})


def test_a_split_is_parsed_once_and_again_when_its_file_changes(monkeypatch):
    first = IfQA().questions("full-dev")
    with monkeypatch.context() as patch:
        patch.setattr(ifqa, "read_json", None)
        first.clear()  # callers cannot change it
        answers = {question.id: question.answers for question in IfQA().questions("full-dev")}
    assert answers == {"ifqa/full-dev/0": ("Bo",), "ifqa/full-dev/1": ("Cy", "Cyrus")}
    benchmark(RECORD | {"answers": ["Di"]})
    assert [question.answers for question in IfQA().questions("full-dev")] == [("Di",)]
    half = RECORD | {"idx": "a\ud800"}
    for record, message in (
        (RECORD, "key 'idx' is missing"),
        (half, "'idx' holds half a surrogate pair"),
    ):
        FILE.write_text(json.dumps([record]))
        for _ in range(2):
            with pytest.raises(IfqaError, match=f"question 0: {message}"):
                IfQA().questions("full-dev")


def test_the_same_name_below_another_folder_is_another_file(tmp_path, monkeypatch):
    IfQA().questions("full-dev")
    stat = FILE.stat()
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    benchmark(RECORD, RECORD | {"answers": ["Ed", "Edwar"]})
    os.utime(FILE, ns=(stat.st_mtime_ns, stat.st_mtime_ns))
    assert FILE.stat().st_size == stat.st_size
    assert IfQA().questions("full-dev")[1].answers == ("Ed", "Edwar")


def release(**contexts):
    """Write the release's six files below the working directory, with the gold passages of each
    split's questions.
    """
    for name in (
        f"{family}_{part}" for family in ("full", "few") for part in ("train", "dev", "test")
    ):
        path = Path("data/ifqa") / f"{name.replace('_', '_split/')}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        records = [
            {"idx": n, **RECORD, "context": texts}
            for n, texts in enumerate(contexts.get(name, [["other"]]))
        ]
        path.write_text(json.dumps(records))


def apart(split, root=Path()):
    """The indexes of the questions that share no gold passage with training; None if unknown."""
    source = IfQA(root)
    subset = source.subsets[-1]
    assert subset.name == "no_overlap"
    is_apart = {
        question.id.rpartition("/")[2]: subset.holds(question)
        for question in source.questions(split)
    }
    return None if None in is_apart.values() else [index for index in is_apart if is_apart[index]]


def test_no_overlap_leaves_out_questions_on_training_passages_and_is_unknown_without_them(
    tmp_path, monkeypatch
):
    dev = [
        ["the bridge fell in 1895."],
        ["new"],
        ["new", "three"],
        ["The Bridge fell in 1896."],
        [],
    ]
    few = {"few_train": [["new"]], "few_dev": [["new"], ["three"]]}
    release(full_train=[["The Bridge  fell in\n1895."], ["two", "three"]], full_dev=dev, **few)
    assert (apart("full-dev"), apart("few-dev"), apart("full-train")) == (
        ["1", "3", "4"],
        ["1"],
        [],
    )
    assert (IfQA().training_split("full-test"), IfQA().training_split("few-dev")) == (
        "full-train",
        "few-train",
    )
    release(full_dev=[["new"]], full_train=[["another"]])
    monkeypatch.chdir("/")
    assert apart("full-dev", tmp_path) == ["0"]
    assert [subset.name for subset in load_scheme("ifqa", root=tmp_path).subsets][
        -1
    ] == "no_overlap"
    monkeypatch.chdir(tmp_path)
    Path("data/ifqa/full_split/train.json").unlink()
    assert (apart("full-dev"), IfQA().training_split("full-dev")) == (None, "")
    assert (apart("few-dev"), IfQA().training_split("few-dev")) == ([], "few-train")
    for split in ("dev", "hard"):
        held = [Sample().subsets[-1].holds(question) for question in Sample().questions(split)]
        assert (held.count(True), held.count(False), len(held)) == (83 - 9, 9, 83)
