"""A stage's inputs decide whether it is reused: a change that matters changes them, and no other
change does.
"""

import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from outside_plugins import answers, experiment, passages
from scored_experiments import benchmark, write

from ifqa.benchmarks.ifqa import IfQA
from ifqa.config.corpus import load_corpus
from ifqa.corpus import work_units
from ifqa.errors import IfqaError
from ifqa.pipeline import stages
from ifqa.pipeline.corpus_build import CorpusBuild
from ifqa.pipeline.index import Index
from ifqa.pipeline.passages import PASSAGES
from ifqa.pipeline.read import READ
from ifqa.pipeline.retrieve import RETRIEVE
from ifqa.pipeline.run import Run
from ifqa.pipeline.score import SCORE
from ifqa.plugins import load_plugin
from ifqa.reading.predictions import Predictions
from ifqa.retrieval import queries
from ifqa.retrieval.question_texts import Gold
from ifqa.scoring import per_question
from ifqa.storage.artifacts import compute_fingerprint

GOLD = {"name": "gold"}
BM25 = {"name": "bm25"}
FILE = {"name": "predictions", "path": "answers.jsonl"}
FIRST = {"name": "outside_of_provenance:First", "index": "first"}
READER = {"name": "outside_of_provenance:Reader"}

PLUGINS = '''
from pathlib import Path
from ifqa.records import Hit, Prediction
class First:
    """Finds the same passage for every question; its index is built from a file, if the file exists."""
    version = 1
    runtime_only = ("threads", "patience")
    def __init__(self, index, *, depth: int = 1, patience: int = 1) -> None: pass
    def search(self, questions, k): return [[Hit("p0", 1.0)] for _ in questions]
    @classmethod
    def build(cls, passages, folder, *, most: int = 100, threads: int = 0, least: float = 0.0):
        (folder / "first").write_text("p0")
    @classmethod
    def build_fingerprint(cls, most=100, threads=0, least=0.0):
        model = Path("model")
        return model.read_text() if model.exists() else "no model"
class Reader:
    """Gives the same answer to every question."""
    version = 1
    runtime_only = ("device",)
    def __init__(self, said: str = "captain0", device: str = "auto") -> None: self.said = said
    def answer(self, questions, passages): return [Prediction(one.id, self.said) for one in questions]
class Model:
    """A language model in a file."""
    version = 1
    def __init__(self, *, model: str) -> None: pass
    def complete(self, requests): return []
    @classmethod
    def fingerprint(cls, model): return Path(model).read_text()
class Looking(Reader):
    """A retriever that looks through the corpus without an index."""
    def __init__(self, corpus) -> None: pass
    def search(self, questions, k): return [[Hit("p0", 1.0)] for _ in questions]
'''


@pytest.fixture(autouse=True)
def _files(importable):
    """Two questions, a file that answers them, two passages with an index to build, and plugins
    from outside.
    """
    questions("captain0", "captain1")
    answers({0: "captain0", 1: "nobody"})
    passages((0, 1))
    write("outside_of_provenance.py", PLUGINS)
    corpus()


def questions(*golds):
    benchmark(
        *(
            {"question": f"If {n}, who?", "answers": [message], "context": [f"gold {n}"]}
            for n, message in enumerate(golds)
        )
    )


def corpus(source='path = "few.jsonl"', index="", top="", more=""):
    sources = f'{top}[[passages.sources]]\nformat = "passages"\n{source}\n{more}'
    write(
        "indexes/few.toml",
        f'{sources}[index.first]\nretriever = "outside_of_provenance:First"\n{index}\n',
    )
    return load_corpus("few")


def searching(**tables):
    return experiment(corpus="few", retriever=FIRST, **tables)


def fingerprint_of(kind, **tables):
    """The fingerprint of the retriever or the reader of an experiment."""
    run = Run(experiment(**tables))
    return run.fingerprint(getattr(run.experiment, kind))


def changes(*inputs):
    """The keys whose values change from each table to the next."""
    return [
        {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
        for old, new in pairwise(inputs)
    ]


def edit():
    write("outside_of_provenance.py", PLUGINS + "# edited\n")


def build_few():
    few = load_corpus("few")
    stages.build_passages(few)
    stages.build_index(few, "first")


@pytest.mark.parametrize(
    ("kind", "tables", "more", "counts"),
    [
        ("retriever", {"retriever": BM25, "corpus": "few"}, {"threads": 3}, False),
        ("retriever", {"retriever": BM25, "corpus": "few"}, {"k1": 1.2}, True),
        ("retriever", {"retriever": BM25, "corpus": "few"}, {"k": 7, "index": "other"}, True),
        ("retriever", {"retriever": BM25, "corpus": "few"}, {"query": "names"}, True),
        (
            "retriever",
            {"retriever": BM25, "corpus": "few"},
            {"k": 100, "b": 0.4, "query": "question"},
            False,
        ),
        ("reader", {"reader": {"name": "extractive"}}, {"device": "cuda"}, False),
        ("reader", {"reader": {"name": "extractive"}}, {"precision": "bfloat16"}, True),
        ("reader", {"reader": READER}, {"device": "cpu"}, False),
        ("reader", {"reader": READER}, {"said": "nobody"}, True),
        (
            "reader",
            {"reader": {"name": "llm", "prompt": "closed-book"}, "llm": {"model": "m"}},
            {"samples": 3, "temperature": 0.5},
            True,
        ),
        (
            "llm",
            {"reader": {"name": "llm", "prompt": "closed-book"}, "llm": {"model": "m"}},
            {"concurrency": 2, "max_cost": 3.0},
            False,
        ),
        (
            "llm",
            {"reader": {"name": "llm", "prompt": "closed-book"}, "llm": {"model": "m"}},
            {"model": "gpt-4o"},
            True,
        ),
    ],
)
def test_a_setting_counts_unless_it_only_changes_speed(kind, tables, more, counts):
    plugin = "reader" if kind == "llm" else kind
    changed = fingerprint_of(plugin, **{**tables, kind: {**tables[kind], **more}})
    assert (changed != fingerprint_of(plugin, **tables)) is counts


def test_a_shipped_plugin_is_identified_by_its_version(monkeypatch):
    before = fingerprint_of("retriever", retriever=GOLD)
    monkeypatch.setattr(Gold, "version", Gold.version + 1)
    assert fingerprint_of("retriever", retriever=GOLD) == {
        **before,
        "code": f"version {Gold.version}",
    }


def test_a_plugin_from_outside_is_identified_by_its_file(monkeypatch):
    before = fingerprint_of("reader", reader=READER)
    monkeypatch.setattr(load_plugin("reader", READER["name"]), "version", 2)
    assert fingerprint_of("reader", reader=READER) == before
    edit()
    assert changes(before, fingerprint_of("reader", reader=READER)) == [{"code"}]


def test_settings_of_a_retrievers_part_count_like_the_retrievers():
    def fused(**more):
        return fingerprint_of(
            "retriever", corpus="few", retriever={"name": "fusion", "parts": [BM25 | more, GOLD]}
        )

    plain = fused()
    assert fused(threads=3) == plain
    for change in ({"k": 7}, {"weight": 2.0}, {"b": 0.75}, {"query": "main"}):
        assert fused(**change) != plain, change
    swapped = fingerprint_of(
        "retriever", corpus="few", retriever={"name": "fusion", "parts": [GOLD, BM25]}
    )
    assert swapped != plain


def test_a_file_that_a_plugin_reads_counts_by_its_content():
    before = fingerprint_of("reader", reader=FILE)
    answers({0: "captain0", 1: "nobody"})
    os.utime("answers.jsonl", (1, 1))
    assert fingerprint_of("reader", reader=FILE) == before
    answers({0: "captain0", 1: "captain1"})
    assert fingerprint_of("reader", reader=FILE)["files"] != before["files"]
    Path("answers.jsonl").unlink()
    with pytest.raises(IfqaError, match=r"predictions not found: answers\.jsonl does not exist"):
        fingerprint_of("reader", reader=FILE)


def test_the_version_of_queries_counts_only_where_queries_are_rewritten(monkeypatch):
    rewritten = {"corpus": "few", "retriever": BM25 | {"query": "main"}}
    reading = {"retriever": {"name": "rerank", "reads": "presupposition", "parts": [GOLD]}}
    plain = {"corpus": "few", "retriever": BM25}
    before = [fingerprint_of("retriever", **tables) for tables in (rewritten, reading, plain)]
    monkeypatch.setattr(queries, "VERSION", queries.VERSION + 1)
    after = [fingerprint_of("retriever", **tables) for tables in (rewritten, reading, plain)]
    assert [old != new for old, new in zip(before, after, strict=True)] == [True, True, False]


def test_a_language_model_counts_only_for_the_stage_that_asks_it():
    tables = {"retriever": GOLD, "reader": {"name": "llm"}}
    generated = {"retriever": {"name": "genread"}}
    for kind, plugins, equal in (
        ("reader", tables, False),
        ("retriever", tables, True),
        ("retriever", generated, False),
    ):
        fingerprints = [
            fingerprint_of(kind, **plugins, llm={"model": model}) for model in ("gpt-4o", "gpt-4.1")
        ]
        assert (fingerprints[0] == fingerprints[1]) is equal
    llm = {"name": "outside_of_provenance:Model", "model": "model"}
    fingerprints = []
    for weights in ("weights", "other weights"):
        write("model", weights)
        fingerprints.append(fingerprint_of("reader", reader={"name": "llm"}, llm=llm))
    assert changes(*fingerprints) == [{"llm"}]
    assert [fingerprint["llm"]["files"] for fingerprint in fingerprints] == [
        "weights",
        "other weights",
    ]


def fingerprint_of_passages(few=None):
    return compute_fingerprint(CorpusBuild(few or load_corpus("few")).inputs(PASSAGES))


def test_passages_are_known_by_their_sources():
    before = fingerprint_of_passages()
    passages([3], "more.jsonl")
    more = '[[passages.sources]]\nformat = "passages"\n'
    both = ('path = "few.jsonl"\n', 'path = "more.jsonl"\n')
    ordered = [
        fingerprint_of_passages(corpus(first, more=more + second))
        for first, second in (both, reversed(both))
    ]
    corpus()
    passages((0, 2))
    assert len({before, fingerprint_of_passages(), *ordered}) == 4
    passages((0, 1))
    assert fingerprint_of_passages() == before


def test_passages_are_known_by_the_version(monkeypatch):
    before = fingerprint_of_passages()
    monkeypatch.setattr(work_units, "VERSION", work_units.VERSION + 1)
    assert fingerprint_of_passages() != before


def test_a_sources_path_changes_no_identity():
    before = CorpusBuild(load_corpus("few")).inputs(PASSAGES)
    Path("elsewhere").mkdir()
    Path("few.jsonl").rename("elsewhere/other.jsonl")
    os.utime("elsewhere/other.jsonl", (1, 1))
    moved = corpus('path = "elsewhere/other.jsonl"')
    assert CorpusBuild(moved).inputs(PASSAGES) == before


def test_the_engine_changes_no_identity():
    before = CorpusBuild(load_corpus("few")).inputs(PASSAGES)
    by_ray = corpus(top='[passages]\nworkers = 1\nengine = "ray"\n')
    assert CorpusBuild(by_ray).inputs(PASSAGES) == before


def test_the_training_split_counts_where_a_subset_depends_on_it():
    mine = experiment(reader=FILE)
    stages.read(Run(mine))
    scores = [Run(mine).inputs(SCORE)]
    for passage in ("one", "two"):
        record = {"idx": 1, "question": "If?", "answers": ["x"], "context": [passage]}
        write("data/ifqa/full_split/train.json", json.dumps([record]))
        scores.append(Run(mine).inputs(SCORE))
    assert changes(*scores) == [{"training"}, {"training"}]


def test_inputs_of_an_index_name_the_present_passages():
    stages.build_passages(load_corpus("few"))
    before = CorpusBuild(load_corpus("few")).inputs(Index("first"))
    assert before["passages"] == compute_fingerprint(
        CorpusBuild(load_corpus("few")).inputs(PASSAGES)
    )
    inputs = [before]
    for change in (lambda: write("model", "weights"), edit, lambda: passages((0, 2))):
        change()
        stages.build_passages(load_corpus("few"))
        inputs.append(CorpusBuild(load_corpus("few")).inputs(Index("first")))
    assert changes(*inputs) == [{"files"}, {"code"}, {"passages"}]


@pytest.mark.parametrize(
    ("setting", "counts"),
    [("most = 100", False), ("least = 0", False), ("threads = 4", False), ("most = 9", True)],
)
def test_a_build_setting_counts_unless_it_only_changes_speed(setting, counts):
    stages.build_passages(load_corpus("few"))
    before = CorpusBuild(load_corpus("few")).inputs(Index("first"))
    assert (CorpusBuild(corpus(index=setting)).inputs(Index("first")) != before) is counts


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        (lambda: None, "indexes/few/passages is not there yet; make it with: ifqa passages few"),
        (
            lambda: stages.build_passages(load_corpus("few")),
            "indexes/few/first is not there yet; make it with: ifqa index few",
        ),
        (
            lambda: (build_few(), passages([7]), stages.build_passages(load_corpus("few"))),
            (
                r"indexes/few/first was made from other inputs \(changed: passages\); "
                r"make it again: ifqa index few"
            ),
        ),
        (
            lambda: (build_few(), passages([7])),
            r"indexes/few/passages was made from other inputs \(changed: sources\)",
        ),
        (
            lambda: (build_few(), corpus(index="most = 9")),
            (
                r"indexes/few/first was made from other inputs \(changed: settings\); "
                r"make it again: ifqa index few"
            ),
        ),
        (
            lambda: (build_few(), edit()),
            r"indexes/few/first was made from other inputs \(changed: code\)",
        ),
    ],
)
def test_a_retrieval_needs_an_index_of_the_present_passages(broken, complaint):
    broken()
    with pytest.raises(IfqaError, match=complaint):
        Run(searching()).inputs(RETRIEVE)


def changed_inputs(before, **tables):
    """The inputs of `retrieve` that differ from those before."""
    after = Run(experiment(**{"corpus": "few", "retriever": FIRST, **tables})).inputs(RETRIEVE)
    return changes(before, after)[0]


def test_indexes_are_inputs_of_retrieve():
    build_few()
    assert Run(searching()).inputs(RETRIEVE)["indexes"] == {
        "first": compute_fingerprint(CorpusBuild(load_corpus("few")).inputs(Index("first")))
    }


def test_settings_are_inputs_of_retrieve():
    build_few()
    before = Run(searching()).inputs(RETRIEVE)
    others = {"about": "Another.", "seed": 3, "reader": READER, "expected": {"EM": {"value": 1.0}}}
    assert changed_inputs(before, **others) == set()
    assert changed_inputs(before, retriever=FIRST | {"patience": 9}) == set()
    assert changed_inputs(before, retriever=FIRST | {"depth": 2}) == {"retriever"}


def test_questions_are_inputs_of_retrieve():
    build_few()
    before = Run(searching()).inputs(RETRIEVE)
    assert changed_inputs(before, limit=1) == {"questions"}
    assert changed_inputs(before, questions=["ifqa/full-dev/1"]) == {"questions"}
    questions("captain0", "captain2")
    assert changed_inputs(before) == {"questions"}


def test_passages_are_inputs_of_a_retriever_that_reads_them():
    build_few()
    looking = experiment(corpus="few", retriever={"name": "outside_of_provenance:Looking"})
    fused = experiment(
        corpus="few",
        retriever={"name": "fusion", "parts": [GOLD, {"name": "outside_of_provenance:Looking"}]},
    )
    inputs = compute_fingerprint(CorpusBuild(load_corpus("few")).inputs(PASSAGES))
    assert (
        Run(looking).inputs(RETRIEVE)["passages"]
        == Run(fused).inputs(RETRIEVE)["passages"]
        == inputs
    )
    assert "passages" not in Run(searching()).inputs(RETRIEVE)
    assert "passages" not in Run(experiment(retriever={"name": "rerank", "parts": [GOLD]})).inputs(
        RETRIEVE
    )
    assert set(Run(experiment(reader=FILE)).inputs(READ)) == {"stage", "reader", "questions"}
    assert Run(experiment(reader=FILE, corpus="few")).inputs(READ)["passages"] == inputs


def test_a_stage_with_changed_inputs_is_refused_by_name():
    tables = {"retriever": GOLD, "reader": FILE}
    stages.run(Run(experiment(**tables)))
    for changed, stage, complaint in (
        (
            tables | {"retriever": GOLD | {"k": 3}, "limit": 1},
            READ,
            (
                r"mine/retrieve .* \(changed: questions, retriever\); make it again: "
                r"ifqa retrieve mine"
            ),
        ),
        (
            tables | {"reader": FILE | {"passages": 9}},
            SCORE,
            r"mine/read .* \(changed: reader\); make it again: ifqa read mine",
        ),
        ({"reader": FILE}, SCORE, r"mine/read .* \(changed: reader, run\)"),
    ):
        with pytest.raises(IfqaError, match=complaint):
            Run(experiment(**changed)).inputs(stage)


@pytest.fixture
def scored():
    """An experiment with scores."""
    mine = experiment(reader=FILE)
    stages.run(Run(mine))
    return mine


def test_scores_depend_on_the_scorer(scored, monkeypatch):
    before = Run(scored).inputs(SCORE)
    monkeypatch.setattr(per_question, "VERSION", per_question.VERSION + 1)
    assert changes(before, Run(scored).inputs(SCORE)) == [{"version"}]


def test_scores_depend_on_the_benchmark(scored, monkeypatch):
    before = Run(scored).inputs(SCORE)
    monkeypatch.setattr(IfQA, "version", IfQA.version + 1)
    assert changes(before, Run(scored).inputs(SCORE)) == [{"benchmark"}]


def test_scores_need_a_reading_by_the_present_reader(scored, monkeypatch):
    monkeypatch.setattr(Predictions, "version", Predictions.version + 1)
    with pytest.raises(IfqaError, match=r"mine/read .* \(changed: reader\)"):
        Run(scored).inputs(SCORE)


MINE = """
from ifqa.protocols import Measure
from ifqa.scoring.measures.exact_match import F1

OURS = Measure("ours", F1.score, best="{best}")
"""


def test_scores_depend_on_the_measures_that_an_experiment_names():
    plain = experiment(reader=FILE)
    stages.run(Run(plain))
    write("mine_of_tests.py", MINE.format(best="high"))
    names = ("accuracy", "mine_of_tests:OURS")
    ours, theirs = (Run(experiment(reader=FILE, measures=[name])).inputs(SCORE) for name in names)
    assert changes(Run(plain).inputs(SCORE), ours) == [{"measures"}]
    assert (ours["measures"], "measured_by" in ours) == (["accuracy"], False)
    measured_by: Any = theirs["measured_by"]
    assert list(measured_by) == ["mine_of_tests"]
    write("mine_of_tests.py", MINE.format(best="low"))
    edited = Run(experiment(reader=FILE, measures=["mine_of_tests:OURS"])).inputs(SCORE)
    assert changes(theirs, edited) == [{"measured_by"}]
