"""What a corpus or an experiment will take, before any of it is done.

The rates were measured on two cores of a 2023 server (see `experiments/benchmarks/`); they are there to tell minutes
from days, and an estimate says so by its "about".
"""

import shutil
from collections import Counter
from pathlib import Path

from ifqa import artifacts, sources
from ifqa.errors import IfqaError
from ifqa.experiment import Corpus, Experiment, check_sources, load_corpus, load_experiment
from ifqa.files import find_resource, list_resources
from ifqa.inputs import open_reader, questions_of
from ifqa.plugins import load, unknown
from ifqa.provenance import wanted_index, wanted_passages

_TEXT_BYTES = {".bz2": 4.5, ".xz": 4.0, ".gz": 3.0}  # bytes of text in a compressed byte
_PASSAGE_BYTES = 640  # 100 words with title, id and JSON around
_MARKUP = {"dump": 0.55, "articles": 1.0}  # share of the text that is left as passages
_TEXT_PER_SECOND = {"dump": 10e6, "articles": 40e6}
_INDEXED_PER_SECOND = 20_000  # passages
_INDEX_BYTES = 330  # Lucene, a passage
_READ_PER_SECOND = 25  # passages, span reader, two cores


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
        "experiment or corpus", name, [*list_resources("experiments", ".toml"), *list_resources("indexes", ".toml")]
    )


def _corpus(corpus: Corpus) -> list[str]:
    check_sources(corpus)
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
    todo = [name for name in corpus.indexes if not _index_made(corpus, name)]
    for name in corpus.indexes:
        lines.append(f"  index {name}: {'to build' if name in todo else 'built'}")
    disk = count * ((_PASSAGE_BYTES + 16) * bool(seconds) + _INDEX_BYTES * len(todo))
    seconds += len(todo) * (3 + count / _INDEXED_PER_SECOND)
    free = shutil.disk_usage(Path.cwd()).free
    if disk:
        lines.append(f"  takes about {_size(disk)} of disk ({_size(free)} free) and {_duration(seconds)} on two cores")
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


def _index_made(corpus: Corpus, name: str) -> bool:
    manifest = artifacts.read_manifest(corpus.folder / "passages")
    return manifest is not None and artifacts.is_made(corpus.folder / name, wanted_index(corpus, name))


def _experiment(experiment: Experiment) -> list[str]:
    questions = questions_of(experiment)
    lines = [f"experiment {experiment.name}: {len(questions):,} questions of {experiment.benchmark} {experiment.split}"]
    if experiment.retriever:
        lines.append(f"  retriever {experiment.retriever['name']}, {experiment.retriever['k']} passages a question")
        if "index" in experiment.retriever:
            corpus = load_corpus(experiment.corpus)
            if experiment.retriever["index"] not in corpus.indexes:
                raise IfqaError(f"corpus {corpus.name} has no [index.{experiment.retriever['index']}]")
            lines += ["  " + line for line in _corpus(corpus)]
        else:
            load("retriever", experiment.retriever["name"])(**experiment.search_settings)
    if experiment.reader:
        open_reader(experiment)
        passages = len(questions) * experiment.reader["passages"]
        lines.append(f"  reader {experiment.reader['name']}, {experiment.reader['passages']} passages a question")
        if experiment.reader["name"] == "extractive":
            lines.append(f"  reading takes about {_duration(passages / _READ_PER_SECOND)} on two cores; costs nothing")
    for stage in ("retrieve", "read", "score"):
        if artifacts.read_manifest(experiment.folder / stage):
            lines.append(f"  {stage}: made before, used again if nothing it depends on has changed")
    return lines


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
