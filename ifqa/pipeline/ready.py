"""What an experiment still needs before it can run here, for `ifqa list`.

The check looks at names and files only; it opens nothing.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from ifqa.config.corpus import load_corpus
from ifqa.config.experiment import Experiment
from ifqa.errors import IfqaError
from ifqa.llms.keys import address_of, key_for
from ifqa.models.hub import is_here
from ifqa.pipeline.upstream import sources_of
from ifqa.plugins import open_benchmark
from ifqa.reading.t5.checkpoint import DEFAULT
from ifqa.reading.unifiedqa import group_folders
from ifqa.storage.artifacts import MANIFEST


def missing(experiment: Experiment) -> list[str]:
    """What is missing, each thing in a few words; empty if the experiment can run."""
    return list(dict.fromkeys(_missing(experiment)))


def is_scored(experiment: Experiment) -> bool:
    """Whether it has been scored, with its present settings or with earlier ones."""
    return (experiment.folder / "score" / MANIFEST).exists()


def _missing(experiment: Experiment) -> Iterator[str]:
    try:
        files = open_benchmark(experiment.benchmark, experiment.root).files(experiment.split)
    except IfqaError:
        files = [Path(os.devnull) / experiment.split]
    if not all(path.exists() for path in files):
        yield f"{experiment.benchmark} {experiment.split}"
    if experiment.corpus:
        yield from _missing_of_corpus(experiment)
    reader: Mapping[str, object] = experiment.reader or {}
    llm: Mapping[str, object] = experiment.llm or {}
    if reader.get("name") in DEFAULT:
        yield from _missing_checkpoint(
            str(reader.get("checkpoint", "") or DEFAULT[str(reader["name"])]), experiment.root
        )
    if llm.get("name") == "hf" and not is_here(str(llm.get("model", ""))):
        yield str(llm.get("model"))
    if llm.get("name") == "openai":
        try:
            key_for(address_of(str(llm.get("base_url", ""))))
        except IfqaError:
            yield "an API key"


def _missing_checkpoint(checkpoint: str, root: Path) -> Iterator[str]:
    try:
        there = all(map(is_here, group_folders(checkpoint, root).values()))
    except IfqaError:  # no folder has such a name
        there = False
    if not there:
        yield f"the checkpoint {checkpoint}"


def _missing_of_corpus(experiment: Experiment) -> Iterator[str]:
    corpus = load_corpus(experiment.corpus, experiment.root)
    if not (corpus.folder / "passages" / MANIFEST).exists():
        try:
            sources_of(corpus)
        except IfqaError:
            yield f"the sources of {corpus.name}"
    for name in experiment.indexes:
        table = corpus.indexes.get(name)
        model = str(table.get("model", "")) if table else ""
        if model and not (corpus.folder / name / MANIFEST).exists() and not is_here(model):
            yield model
