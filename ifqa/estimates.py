"""What a corpus or an experiment will take, before any of it is done.

The rates are what building a corpus of 410,612 passages took on two cores; they are there to tell minutes from days, and an
estimate says so by its "about".
"""

import shutil
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ifqa import artifacts, sources
from ifqa.errors import IfqaError
from ifqa.experiment import Corpus, Experiment, load_corpus, load_experiment
from ifqa.files import find_resource, list_resources
from ifqa.inputs import open_reader, questions_of
from ifqa.plugins import unknown
from ifqa.provenance import fingerprint, wanted_index, wanted_passages, wanted_read, wanted_retrieve, wanted_score

_TEXT_BYTES = {".bz2": 4.5, ".xz": 4.0, ".gz": 3.0}  # bytes of text in a compressed byte
_PASSAGE_BYTES = 640  # 100 words with title, id and JSON around
_MARKUP = {"dump": 0.55, "articles": 1.0}  # share of the text that is left as passages
_TEXT_PER_SECOND = {"dump": 10e6, "articles": 40e6}
_INDEXED_PER_SECOND = 20_000  # passages
_MEMORY = 500e6  # bytes: Java and Python; and 36 for each passage while their ids are sorted
_INDEX_BYTES = 330  # Lucene, a passage


def check(name: str) -> str:
    """Check an experiment or a corpus without doing its work, and say what it will take.

    Raises:
        IfqaError: something is unknown, missing or will not fit; or nothing has that name.
    """
    if find_resource(f"experiments/{name}.toml") or find_resource(f"experiments/{name}/experiment.toml"):
        return "\n".join(_experiment(load_experiment(name)))
    if find_resource(f"indexes/{name}.toml"):
        return "\n".join(_corpus(load_corpus(name)))
    raise unknown(
        "experiment or corpus", name, {*list_resources("experiments", ".toml"), *list_resources("indexes", ".toml")}
    )


def _corpus(corpus: Corpus) -> list[str]:
    for source in corpus.sources:
        sources.check(source)
    folder = corpus.folder / "passages"
    if artifacts.is_made(folder, wanted_passages(corpus)):
        manifest = artifacts.read_manifest(folder)
        assert manifest is not None
        count: float = manifest["made"]["passages"]
        lines = [f"corpus {corpus.name}: {count:,} passages, built"]
        seconds = 0.0
    else:
        estimates = [_source(source) for source in corpus.sources]
        count, seconds = sum(passages for passages, _ in estimates), sum(taken for _, taken in estimates)
        lines = [f"corpus {corpus.name}: about {count:,.0f} passages to build from {len(corpus.sources)} sources"]
    todo = [name for name in corpus.indexes if not _is_made(corpus.folder / name, partial(wanted_index, corpus, name))]
    for name in corpus.indexes:
        lines.append(f"  index {name}: {'to build' if name in todo else 'built'}")
    disk = count * ((_PASSAGE_BYTES + 16) * bool(seconds) + _INDEX_BYTES * len(todo))
    seconds += len(todo) * (3 + count / _INDEXED_PER_SECOND)
    free = shutil.disk_usage(Path.cwd()).free
    if disk:
        lines.append(
            f"  takes about {_size(disk)} of disk ({_size(free)} free), {_size(_MEMORY + 36 * count)} of memory "
            f"and {_duration(seconds)} on two cores"
        )
    if disk > free:
        raise IfqaError(
            f"corpus {corpus.name} needs about {_size(disk)} of disk, {_size(free)} is free in {Path.cwd()}; "
            "make room or work on a larger disk"
        )
    return lines


def _source(source: sources.Source) -> tuple[float, float]:
    """Passages and seconds of a source."""
    if source["format"] == "gold":
        return float(sum(len(article) for article in sources.read(source, Counter()))), 1.0
    text = sum(path.stat().st_size * _TEXT_BYTES.get(path.suffix, 1.0) for path in sources.files_of(source))
    return text * _MARKUP[source["format"]] / _PASSAGE_BYTES, text / _TEXT_PER_SECOND[source["format"]]


def _experiment(experiment: Experiment) -> list[str]:
    questions = questions_of(experiment)
    lines = [f"experiment {experiment.name}: {len(questions):,} questions of {experiment.benchmark} {experiment.split}"]
    if experiment.corpus:
        corpus = load_corpus(experiment.corpus)
        index = (experiment.retriever or {}).get("index")
        if index and index not in corpus.indexes:
            raise IfqaError(
                f"corpus {corpus.name} has no [index.{index}]; it has: {', '.join(corpus.indexes) or 'none'}"
            )
        lines += ["  " + line for line in _corpus(corpus)]
    if experiment.retriever:
        fingerprint("retriever", experiment)
        lines.append(f"  retriever {experiment.retriever['name']}, {experiment.retriever['k']} passages a question")
    if experiment.reader:
        reader = open_reader(experiment)
        passages = len(questions) * experiment.reader["passages"]
        rate = getattr(reader, "passages_per_second", 0)
        taken = f": about {_duration(passages / rate)} on two cores, no money" if rate else ""
        lines.append(
            f"  reader {experiment.reader['name']}, {experiment.reader['passages']} passages a question{taken}"
        )
    wanted = {"retrieve": wanted_retrieve, "read": wanted_read, "score": wanted_score}
    if experiment.retriever is None:
        del wanted["retrieve"]
    if experiment.reader is None:
        del wanted["read"]
    for stage, wanted_by in wanted.items():
        lines.append(
            f"  {stage}: {'made' if _is_made(experiment.folder / stage, partial(wanted_by, experiment)) else 'to do'}"
        )
    return lines


def _is_made(folder: Path, wanted_by: Callable[[], dict[str, Any]]) -> bool:
    try:
        return artifacts.is_made(folder, wanted_by())
    except IfqaError:  # what comes before it is not made
        return False


def _size(count: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def _duration(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 120
        else f"{seconds / 60:.0f} min"
        if seconds < 7200
        else f"{seconds / 3600:.1f} h"
    )
