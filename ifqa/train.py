"""What `ifqa train` does: a benchmark's questions, and passages retrieved for them, to weights."""

import importlib
import importlib.util
from pathlib import Path
from typing import Any

from ifqa.artifacts import lock
from ifqa.errors import IfqaError
from ifqa.experiment import Corpus
from ifqa.files import sha256
from ifqa.passages import PassageStore
from ifqa.plugins import check_settings, load
from ifqa.progress import say
from ifqa.stages import build_index, build_passages

DEPTH = {"extractive": 20, "rerank": 20, "dense": 100}  # passages that a training question's negatives are drawn from
_NEEDS = {"rerank": ("peft", "datasets", "accelerate"), "dense": ("datasets", "accelerate")}
GIVEN = ("questions", "rankings", "folder", "setting", "sources", "seed", "progress")


def train(
    what: str, benchmark: str, split: str, corpus: Corpus, folder: Path, seed: int | None, settings: dict[str, Any]
) -> Path:
    """Train the span reader, the reranker or a dense retriever on a benchmark's split; its negatives are BM25's best.

    Args:
        what: "extractive", "rerank" or "dense": a module of `ifqa.training`, whose `train` takes the settings.
        benchmark, split: what is trained on.
        corpus: its index named bm25 gives the negatives.
        folder: where the weights go.
        seed: of all that is drawn; None for the default, or the recipe's.
        settings: keyword arguments of that `train`.

    Raises:
        IfqaError: a setting is unknown, the corpus has no index named bm25, an extra is not installed, or the folder holds
            another training.
    """
    for library in _NEEDS.get(what, ()):
        if importlib.util.find_spec(library) is None:
            raise IfqaError(f"training needs {library}; install it with: pip install 'ifqa[train]'")
    module = importlib.import_module(f"ifqa.training.{what}")
    function = module.train
    if what == "dense":  # its settings are those of a recipe
        module.resolve(**settings)
    else:
        check_settings("training setting", function, settings, given=GIVEN)
    source = load("benchmark", benchmark)()
    questions = source.questions(split)
    with lock(corpus.folder):
        build_passages(corpus)
        index = build_index(corpus, "bm25")
    say(f"{folder}: searching negatives for {len(questions):,} questions")
    rankings = load("retriever", "bm25")(index).search(questions, DEPTH[what])
    store = PassageStore(corpus.folder / "passages")
    negatives = [store.get([hit.passage_id for hit in ranking]) for ranking in rankings]
    files = {str(source.path(split)): sha256(source.path(split))}
    with lock(folder):
        drawn = {} if seed is None else {"seed": seed}
        function(questions, negatives, folder, setting=source.setting(split), sources=files, **drawn, **settings)
    return folder
