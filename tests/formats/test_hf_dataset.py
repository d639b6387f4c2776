"""A folder of questions that the library `datasets` loads, read back by it."""

import json

import pytest
from refusals import refused

from ifqa.formats.hf_dataset import is_dataset, write_dataset
from ifqa.records import Question

QUESTIONS = [
    Question("q/1", "If so, who?", ("Ada", "Ada \u2028 L."), ("One.", "Two."), group="people"),
    Question("q/2", "If not?", choices=("a", "b"), context="…", labels=(("label", "easy"),)),
]


def load(folder, cache):
    from datasets import load_dataset

    return load_dataset(str(folder), cache_dir=str(cache))


def test_datasets_loads_what_was_written(tmp_path):
    assert write_dataset(tmp_path / "mine", QUESTIONS, "ifqa:full-dev") == 2
    splits = load(tmp_path / "mine", tmp_path / "cache")
    assert list(splits) == ["full_dev"]
    read = [
        Question(
            row["id"],
            row["question"],
            tuple(row["answers"]),
            tuple(row["passages"]),
            choices=tuple(row["choices"]),
            context=row["context"],
            group=row["group"],
            labels=tuple((name, label) for name, label in row["labels"]),
        )
        for row in splits["full_dev"]
    ]
    assert read == QUESTIONS


def test_columns_without_values_keep_their_type(tmp_path):
    write_dataset(tmp_path / "mine", [Question("q/1", "Who?", ("Ada",))], "mine")
    features = load(tmp_path / "mine", tmp_path / "cache")["mine"].features
    assert features["passages"].feature.dtype == "string"


@pytest.mark.parametrize(
    ("source", "split"),
    [("file:mine/a b.csv", "mine_a_b_csv"), ("sample", "sample"), ("x:+", "questions")],
)
def test_the_split_has_a_name_that_datasets_allows(tmp_path, source, split):
    write_dataset(tmp_path / "mine", QUESTIONS, source)
    assert [path.stem for path in (tmp_path / "mine/data").iterdir()] == [split]
    assert f"- split: {split}" in (tmp_path / "mine/README.md").read_text()


def test_a_folder_is_replaced_as_a_whole(tmp_path):
    write_dataset(tmp_path / "mine", QUESTIONS, "a:dev")
    write_dataset(tmp_path / "mine", QUESTIONS[:1], "a:test")
    [file] = (tmp_path / "mine/data").iterdir()
    assert [json.loads(line)["id"] for line in file.read_bytes().splitlines()] == ["q/1"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine"]


def test_a_folder_with_other_files_is_not_ours(tmp_path):
    write_dataset(tmp_path / "mine", QUESTIONS, "a:dev")
    assert is_dataset(tmp_path / "mine")
    (tmp_path / "mine/notes.txt").touch()
    assert not is_dataset(tmp_path / "mine")


def test_a_folder_without_questions_is_refused(tmp_path):
    with refused("mine would be empty: wanted questions, found none in a:dev"):
        write_dataset(tmp_path / "mine", [], "a:dev")
