"""What retrieval found, for other tools: an experiment's run as the ctxs JSON of DPR and FiD or as TREC, ctxs as TREC.

DPR's *training* JSON (positive_ctxs, negative_ctxs) is another format and not written here. What other tools found
comes in with the retriever `run`, which reads both.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ifqa.ctxs import is_ctxs, read_ctxs, refuse_pickle, write_ctxs
from ifqa.errors import IfqaError
from ifqa.experiment import Experiment, load_experiment
from ifqa.files import require
from ifqa.inputs import passages_of, predictions_of, questions_of, rankings_of
from ifqa.plugins import load, unknown
from ifqa.progress import say
from ifqa.provenance import wanted_score
from ifqa.records import Hit, Question
from ifqa.retrievers.run import Run
from ifqa.runs import write_run

_FILES = (".json", ".jsonl", ".trec", ".gz", ".xz", ".bz2", ".pkl")


def convert(
    source: str, to: Path, k: int | None = None, benchmark: str = "ifqa", split: str | None = None, force: bool = False,
    scores: str = "run",
) -> Path:  # fmt: skip
    """Write what was retrieved into a file of another format; that file.

    Args:
        source: an experiment whose run is done, to a `.json` (ctxs, with the passages' texts) or a `.trec`; or a ctxs
            file, to a `.trec`.
        to: the file to write; its suffix says the format.
        k: only the first so many passages of each question; None: all.
        benchmark: whose questions a ctxs file's are, if there is a `split`.
        split: the split to find them in, by id or text as the retriever `run` does; the TREC run then has our ids.
            None: by the file's own ids.
        force: whether a file that is there is overwritten.
        scores: "run" for an experiment's ranking as it is, "reader" for its passages as the reader scored them, best first:
            FiD's `dataset_wscores.json`, from which a retriever is distilled (FiD src/util.py:187-209).

    Raises:
        IfqaError: `to` is there or of another format, the run is not done or not what the experiment says now, or the
            ctxs file is not fit.
    """
    if k is not None and k < 1:
        raise IfqaError(f"--k, the number of passages to keep, must be at least 1; found {k}")
    if scores not in ("run", "reader"):
        raise unknown("--scores", scores, ("run", "reader"))
    is_file = Path(source).is_file() or source.endswith(_FILES) or Path(source).name != source
    if is_file:
        refuse_pickle(require(Path(source), "file"))
    elif split is not None:
        raise IfqaError(f"--split {split} is for a ctxs file; experiment {source} knows its split")
    if to.suffix not in (".json", ".trec"):
        raise IfqaError(f"--to {to}: wanted a file that ends in .json (ctxs) or .trec")
    if to.is_dir() or (to.exists() and not force):
        raise IfqaError(f"{to} is {'a folder' if to.is_dir() else 'there already; overwrite it with --force'}")
    count = _from_file(Path(source), to, k, benchmark, split) if is_file else _from_experiment(source, to, k, scores)
    say(f"{to}: passages of {count:,} questions")
    return to


def _from_experiment(name: str, to: Path, k: int | None, scores: str) -> int:
    experiment = load_experiment(name)
    if experiment.retriever is None:
        raise IfqaError(f"experiment {name} has no [retriever], so no run to convert")
    tag = f"ifqa-{experiment.retriever['name']}"
    if scores == "run":
        experiment = replace(experiment, reader=None)
    wanted_score(experiment)  # stops where run, passages or predictions are not what the experiment says now
    questions = questions_of(experiment)
    rankings = rankings_of(experiment, questions) if scores == "run" else _rankings_of_reader(experiment, questions)
    rankings = [ranking[:k] for ranking in rankings]
    if to.suffix == ".json":
        return write_ctxs(to, questions, rankings, passages_of(experiment, rankings))
    return _write_trec(to, questions, rankings, tag)


def _rankings_of_reader(experiment: Experiment, questions: Sequence[Question]) -> list[list[Hit]]:
    if experiment.reader is None:
        raise IfqaError(f"experiment {experiment.name} has no [reader] that could have scored passages")
    predictions = predictions_of(experiment, questions)
    if not any(one.passage_scores for one in predictions):
        raise IfqaError(
            f"reader {experiment.reader['name']!r} of {experiment.name} scores no passages; reader 'fid' does"
        )
    return [
        [Hit(*pair) for pair in zip(one.passage_ids, one.passage_scores, strict=True)] if one.passage_scores else []
        for one in predictions
    ]


def _from_file(path: Path, to: Path, k: int | None, benchmark: str, split: str | None) -> int:
    if not is_ctxs(path):
        raise IfqaError(f"{path}: wanted an experiment, or a ctxs JSON ([{{...}}, ...]); found neither")
    if to.suffix != ".trec":
        raise IfqaError(f"{path} has ctxs already; wanted --to FILE.trec, found {to}")
    if split is not None:
        questions = load("benchmark", benchmark)().questions(split)
        return _write_trec(to, questions, Run(str(path)).search(questions, k or sys.maxsize), "ctxs")
    asked: dict[str, Question] = {}
    rankings: list[list[Hit]] = []
    for number, (question, ranking) in enumerate(read_ctxs(path), start=1):
        if question.id.split() != [question.id] or question.id in asked:
            raise IfqaError(
                f"{path}: entry {number}: wanted an 'id' of its own without white space, found {question.id!r}; "
                "take the ids from a benchmark: --benchmark NAME --split SPLIT"
            )
        asked[question.id] = question
        rankings.append([Hit(passage.id, score) for passage, score in ranking[:k]])
    return _write_trec(to, list(asked.values()), rankings, "ctxs")


def _write_trec(to: Path, questions: Sequence[Question], rankings: Sequence[list[Hit]], tag: str) -> int:
    write_run(to, dict(zip((question.id for question in questions), rankings, strict=True)), tag)
    return len(questions)
