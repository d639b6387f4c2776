"""Every retriever and every reader of ifqa runs on the bundled causal questions."""

import json
from pathlib import Path

import pytest
import tiny_t5
from tiny_encoder import tiny_colbert, tiny_splade

from ifqa.config.experiment import parse_experiment
from ifqa.pipeline import stages
from ifqa.pipeline.run import Run
from ifqa.plugins import names
from ifqa.storage.files import read_json

CORPUS = """
[[passages.sources]]
format = "gold"
benchmark = "sample-causal"
splits = ["train"]
[index]
bm25 = { retriever = "bm25" }
dense = { retriever = "dense" }
colbert = { retriever = "colbert", model = "late" }
splade = { retriever = "splade", model = "sparse" }
"""
MODEL = """
from ifqa.records import Completion


class Says:
    def complete(self, requests):
        return [Completion("Answer: the corner flags were missing", 9, 9, "stop") for _ in requests]
"""
RETRIEVERS = {  # the settings that they cannot do without
    "fusion": {"parts": [{"name": "bm25"}, {"name": "context"}]},
    "rerank": {"parts": [{"name": "context"}]},
    "run": {"path": "run.trec"},
    **{name: {"parts": [{"name": "bm25"}]} for name in ("colbert", "ranker", "steps", "steps-llm")},
}
OF_THE_QUESTION = ("context", "fusion", "gold", "rerank")  # these rank its own paragraph; the corpus has others
OF_CHOICES = {"adaboost", "choice", "decomp-attn", "majority", "polarity"}  # of a question, which these lack
READERS = {
    "cascade": {"sure": 1.0},
    "fid": {"checkpoint": "tiny"},
    "llm": {"prompt": "open-book"},
    "predictions": {"path": "answers.jsonl"},
    "rag": {"checkpoint": "tiny"},
    "unifiedqa": {"checkpoint": "tiny", "max_answer_tokens": 9},
}


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A corpus of the training questions' paragraphs, tiny models, a ranking and answers of two questions."""
    folder = tmp_path_factory.mktemp("every")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(folder)
        Path("indexes").mkdir()
        Path("indexes/paragraphs.toml").write_text(CORPUS)
        Path("my_says.py").write_text(MODEL)
        tiny_t5.save(Path("tiny"))
        tiny_colbert(Path("late"))
        tiny_splade(Path("sparse"))
        found = run("first", {"name": "bm25", "k": 3})
        Path("run.trec").write_bytes((found.parent / "retrieve/run.trec").read_bytes())
        said = [{"question_id": f"sample-causal/dev/{n}", "answer": "the corner flags were missing"} for n in range(2)]
        Path("answers.jsonl").write_text("".join(json.dumps(one) + "\n" for one in said))
        yield folder


def run(name, retriever, reader=None):
    tables = {"benchmark": "sample-causal", "split": "dev", "corpus": "paragraphs", "retriever": retriever, "limit": 2}
    more = {"reader": reader} if reader else {}
    return stages.run(Run(parse_experiment(name, tables | more | {"llm": {"name": "my_says:Says"}}, name)))


@pytest.mark.parametrize("name", names("retriever"))
def test_a_retriever_finds_passages_for_causal_questions(work, name):
    scores = read_json(run(f"by-{name}", {"name": name, "k": 3, **RETRIEVERS.get(name, {})}) / "scores.json")
    assert set(scores["groups"]) == {"cause"}
    assert scores["measures"]["gold_any@1"]["value"] == (100.0 if name in OF_THE_QUESTION else 0.0)


@pytest.mark.parametrize("name", sorted(set(names("reader")) - OF_CHOICES))
def test_a_reader_answers_causal_questions(work, name):
    folder = run(f"with-{name}", {"name": "context", "k": 1}, {"name": name, **READERS.get(name, {})})
    scores = read_json(folder / "scores.json")
    assert scores["questions"] == 2
    assert 0 <= scores["measures"]["ROUGE-L"]["value"] <= 100
    if name in ("llm", "predictions"):  # they say the same
        assert scores["measures"]["F1"]["value"] > 0
