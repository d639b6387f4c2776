"""A training that cannot succeed is refused before passages are built and searched.

Nothing is written.
"""

from pathlib import Path

import pytest
from scored_experiments import write

from ifqa.errors import IfqaError
from ifqa.pipeline import train as module


@pytest.fixture(autouse=True)
def _nothing_is_built(here, monkeypatch):
    def build(*_):
        raise AssertionError("passages were built")

    for name in ("build_passages", "build_index", "prepare", "retrieve"):
        monkeypatch.setattr(module, name, build)
    for path, text in {
        "reading.jsonl": '{"question": "Who?", "context": "", "answers": ["x"]}\n',
        "answers.csv": "question,answers\nIf so?,x\n",
        "other/manifest.json": '{"family": "another", "encoder": {"name": "one", "sha256": "2"}}',
        "other/adapter.safetensors": "",
        "other/heads.safetensors": "",
        "t5/config.json": '{"model_type": "t5"}',
        "t5/manifest.json": '{"family": "another"}',
    }.items():
        write(path, text)


def train(
    what, settings, benchmark="sample", split="train", corpus="sample", dev="", experiment=""
):
    module.train(what, benchmark, split, Path("to"), settings, corpus, dev, experiment)


@pytest.mark.parametrize(
    ("what", "settings", "complaint"),
    [
        ("extractive", {"batch": 0}, "'batch': wanted a whole number from 1, found 0"),
        ("extractive", {"average": 2}, "wanted a common start"),
        ("extractive", {"start_share": 0.5}, "wanted a common start"),
        ("extractive", {"reading": ["none.jsonl"]}, "file not found: none.jsonl"),
        ("extractive", {"reading": ["reading.jsonl"]}, "none of 1 reading questions has a passage"),
        ("extractive", {"start": "none"}, "none/manifest.json does not exist"),
        ("extractive", {"start": "other"}, "other was trained on another"),
        ("calibration", {}, "no weights with a manifest"),
        ("rerank", {"device": "tpu"}, "unknown device 'tpu'"),
        (
            "dense",
            {"recipe": "small", "negatives": 9, "pool": 3},
            "training setting pool: wanted 9 or more",
        ),
        (
            "fid",
            {"recipe": "ifqa", "batch": 7, "device_batch": 2},
            "training setting batch: wanted a multiple of 2",
        ),
        (
            "fid",
            {"recipe": "ifqa", "model": "other"},
            "other has no model.*name a T5 with --set model=DIR$",
        ),
        (
            "fid",
            {"recipe": "ifqa", "model": "t5"},
            "t5 was trained on another and may not be used in a training on",
        ),
        ("unifiedqa", {"model": "t5"}, "t5 was trained on another"),
    ],
)
def test_an_impossible_setting_is_refused_before_any_work(what, settings, complaint):
    with pytest.raises(IfqaError, match=complaint):
        train(what, settings)
    assert not Path("to").exists()


@pytest.mark.parametrize("what", ["extractive", "rerank", "dense"])
def test_questions_without_a_gold_passage_are_refused_before_any_work(what):
    with pytest.raises(IfqaError, match=r"none of 1 training questions has .* gold passage"):
        train(what, {}, "file", "answers.csv")


def test_a_corpus_without_bm25_is_refused_before_any_work():
    Path("indexes").mkdir()
    Path("indexes/mine.toml").write_text(
        '[[passages.sources]]\nformat = "articles"\npath = "reading.jsonl"\n'
    )
    with pytest.raises(IfqaError, match=r"corpus mine has no \[index.bm25\]; it has: none"):
        train("rerank", {}, corpus="mine")


def test_a_wrong_dev_split_is_refused_before_any_work():
    Path("t5/manifest.json").unlink()
    with pytest.raises(IfqaError, match="unknown split of sample 'dve'"):
        train("fid", {"recipe": "ifqa", "model": "t5"}, dev="dve")
