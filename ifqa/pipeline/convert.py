"""`ifqa convert`: runs, questions and judgements in the formats of other tools.

An experiment's run becomes the ctxs JSON of DPR and FiD, a TREC run, or TREC qrels. Questions (of
an experiment, a split or a file) become Pyserini's topics, a file of the benchmark `file`, a folder
for the library `datasets`, or, with a corpus, TREC qrels of all its passages. The retriever `run`
reads runs of other tools.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ifqa.benchmarks.file import write_questions
from ifqa.config.experiment import load_experiment
from ifqa.errors import ConfigError, IfqaError, unknown_name
from ifqa.formats.ctxs import write_ctxs
from ifqa.formats.hf_dataset import is_dataset, write_dataset
from ifqa.formats.questions import read_questions, write_topics
from ifqa.formats.runs import write_run
from ifqa.formats.tables import unpacked_suffix
from ifqa.pipeline.qrels import judge_corpus, judge_run
from ifqa.pipeline.run import Run
from ifqa.pipeline.score import SCORE
from ifqa.pipeline.stage_outputs import passages_of, rankings_of
from ifqa.plugins import known_names, open_benchmark
from ifqa.records import Question
from ifqa.storage.files import require_file

logger = logging.getLogger(__name__)

# Each writes questions of a source and returns how many it wrote
WRITERS: dict[str, Callable[[Path, Sequence[Question], str], int]] = {
    "topics": lambda to, questions, _: write_topics(to, questions),
    "file": lambda to, questions, _: write_questions(to, questions),
    "dataset": write_dataset,
}
RUNS = ("ctxs", "trec", "qrels")
_BY_SUFFIX = {
    ".json": "ctxs",
    ".trec": "trec",
    ".qrels": "qrels",
    ".tsv": "topics",
    ".jsonl": "file",
    "": "dataset",  # a folder
}


def convert(
    source: str, to: Path, k: int | None = None, force: bool = False, corpus: str = ""
) -> Path:
    """Write a run, questions or judgements to a file of another format; returns that file.

    Args:
        source: an experiment, a benchmark's split ("ifqa:full-dev"), or a file of questions.
        to: the file to write; its suffix gives the format, and a name without a suffix is a folder
            for `datasets`. If it is a link, its target is written.
        k: keep the first `k` passages of each question; None keeps all.
        force: overwrite an existing file.
        corpus: judge all passages of this corpus instead of those of a run; only for qrels.
    """
    path = Path(source)
    is_split = source.find(":") > 1 and not path.exists()  # not 1: a Windows path begins with "C:"
    is_file = path.is_file() or (
        not is_split and (bool(unpacked_suffix(path)) or path.name != source)
    )
    form = _BY_SUFFIX.get(to.suffix, "")
    if not form:
        raise unknown_name("format", to.suffix, filter(None, _BY_SUFFIX))
    if k is not None and k < 1:
        raise ConfigError(f"--k, the number of passages to keep, must be at least 1; found {k}")
    if corpus and form != "qrels":
        raise ConfigError(f"--corpus is for .qrels; {source} becomes {form}: leave it out")
    if k and (form not in RUNS or corpus):
        raise ConfigError(f"--k has no effect where {source} becomes {form}; leave it out")
    if form == "qrels" and (is_file or is_split) and not corpus:
        raise ConfigError(
            f"{source}: wanted an experiment, whose run is judged, or --corpus NAME, to judge all "
            "passages of a corpus"
        )
    if form in RUNS and (is_file or is_split) and not corpus:
        raise ConfigError(
            f"{source}: wanted an experiment with a run for {form}; questions become "
            f"{', '.join(WRITERS)}, and the retriever 'run' reads runs of other tools"
        )
    _refuse_existing(to, form, force)
    to = to.resolve() if to.is_symlink() else to  # so that a link stays a link
    if is_file:
        require_file(path, "file")
    if corpus:
        logger.info(judge_corpus(corpus, _questions(source, is_file), to))
    elif form in WRITERS:
        questions = _questions(source, is_file)
        written = WRITERS[form](to, questions, source)
        left_out = (
            f"; {len(questions) - written:,} left out: no answer"
            if written < len(questions)
            else ""
        )
        logger.info(f"{to}: {written:,} questions{left_out}")
    else:
        _write_run(source, to, k, form)
    return to


def _refuse_existing(to: Path, form: str, force: bool) -> None:
    """Raise IfqaError if something is there that may not be overwritten."""
    if not to.exists():
        return
    if form == "dataset":
        replaceable = to.is_dir() and is_dataset(to)
        what = "a folder that ifqa did not write" if to.is_dir() else "a file"
    else:
        replaceable = to.is_file()
        what = "not a regular file"
    if not replaceable:
        raise IfqaError(f"{to} is {what}; name another one")
    if not force:
        raise IfqaError(f"{to} is there already; overwrite it with --force")


def _questions(source: str, is_file: bool) -> list[Question]:
    if is_file:
        return read_questions(Path(source))
    if ":" not in source:
        return Run(load_experiment(source)).questions
    benchmark, _, split = source.partition(":")  # the split may be a path with colons
    if benchmark not in known_names("benchmark"):
        benchmark, _, split = source.rpartition(":")  # a plugin's, such as my_module:Class:SPLIT
    return open_benchmark(benchmark).questions(split)


def _write_run(name: str, to: Path, k: int | None, form: str) -> None:
    """Write an experiment's up-to-date run, or relevance judgements of it."""
    experiment = load_experiment(name)
    run = Run(replace(experiment, reader=None))
    retriever = run.require_retriever()
    # Raises if the run or the passages are older than the experiment's settings
    run.inputs(SCORE)
    rankings = [ranking[:k] for ranking in rankings_of(experiment, run.questions)]
    if form == "qrels":
        logger.info(judge_run(experiment, run.questions, rankings, to))
        return
    if form == "ctxs":
        write_ctxs(to, run.questions, rankings, passages_of(experiment, rankings))
    else:
        ids = (question.id for question in run.questions)
        write_run(to, dict(zip(ids, rankings, strict=True)), f"ifqa-{retriever.name}")
    logger.info(f"{to}: passages of {len(rankings):,} questions")
