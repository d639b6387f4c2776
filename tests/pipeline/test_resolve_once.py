"""A command with nothing to do reads each manifest, loads each plugin and fetches the questions
once.
"""

import importlib
import shutil
from collections import Counter
from functools import wraps
from pathlib import Path

import pytest

from ifqa import plugins
from ifqa.benchmarks.ifqa import Sample
from ifqa.config.experiment import load_experiment
from ifqa.pipeline import stages
from ifqa.pipeline.run import Run
from ifqa.reading.llm import Llm
from ifqa.report.console import show_scores
from ifqa.retrieval.bm25 import BM25
from ifqa.storage import artifacts

KINDS = ("benchmark", "retriever", "reader", "llm")


@pytest.fixture
def counts(here, sample_llm_run, monkeypatch):
    """What the commands of a test read, load and compute, counted from when the sample was run."""
    for part in ("indexes", "experiments"):
        shutil.copytree(sample_llm_run / part, here / part)
    stages.run(Run(load_experiment("sample-llm")))
    counted: Counter[str] = Counter()

    def count(owner, name, key):
        function = getattr(owner, name)

        @wraps(function)
        def counting(*arguments, **settings):
            if what := key(*arguments):
                counted[what] += 1
            return function(*arguments, **settings)

        monkeypatch.setattr(owner, name, counting)

    modules = {
        target.partition(":")[0] for kind in KINDS for target in plugins.plugin_names(kind).values()
    }
    count(artifacts, "read_json", lambda path: str(path))
    count(Path, "read_text", lambda path, *_: str(path) if path.name == "sample.toml" else "")
    count(importlib, "import_module", lambda name, *_: name if name in modules else "")
    count(Sample, "questions", lambda _, split: f"questions of {split}")
    count(BM25, "build_fingerprint", lambda *_: "fingerprint of the index")
    count(Llm, "fingerprint", lambda *_: "fingerprint of the reader")
    return counted


def test_a_run_with_nothing_to_do_and_its_scores_resolve_everything_once(counts):
    run = Run(load_experiment("sample-llm"))
    show_scores(run, stages.run(run))
    assert {path for path in counts if path.endswith("manifest.json")} == {
        *(f"indexes/sample/{part}/manifest.json" for part in ("passages", "bm25")),
        *(
            f"experiments/sample-llm/{stage}/manifest.json"
            for stage in ("retrieve", "read", "score")
        ),
    }
    assert {what: number for what, number in counts.items() if number > 1} == {}
    assert (
        counts["questions of hard"]
        == counts["fingerprint of the index"]
        == counts["fingerprint of the reader"]
        == 1
    )
