"""What `ifqa train` does: a benchmark's questions, and passages retrieved for them, to weights."""

from pathlib import Path
from typing import Any

from ifqa.artifacts import lock
from ifqa.experiment import Corpus
from ifqa.files import sha256
from ifqa.passages import PassageStore
from ifqa.plugins import check_settings, load
from ifqa.progress import say
from ifqa.stages import build_index, build_passages

NEGATIVES = 20  # passages a training question's negatives are drawn from
GIVEN = ("questions", "rankings", "folder", "setting", "sources", "seed", "progress")


def train_extractive(
    benchmark: str, split: str, corpus: Corpus, folder: Path, seed: int, settings: dict[str, Any]
) -> Path:
    """Train the span reader on a benchmark's split, with BM25's best passages of a corpus as negatives.

    Raises:
        IfqaError: a setting is unknown, the corpus has no index named bm25, or the folder holds another training.
    """
    from ifqa.training.extractive import train

    check_settings("training setting", train, settings, given=GIVEN)
    source = load("benchmark", benchmark)()
    questions = source.questions(split)
    with lock(corpus.folder):
        build_passages(corpus)
        index = build_index(corpus, "bm25")
    say(f"{folder}: searching negatives for {len(questions):,} questions")
    rankings = load("retriever", "bm25")(index).search(questions, NEGATIVES)
    store = PassageStore(corpus.folder / "passages")
    negatives = [store.get([hit.passage_id for hit in ranking]) for ranking in rankings]
    files = {str(source.path(split)): sha256(source.path(split))}
    with lock(folder):
        train(
            questions,
            negatives,
            folder,
            setting=source.setting(split),
            sources=files,
            seed=seed,
            progress=say,
            **settings,
        )
    return folder
