"""What an experiment or a corpus needs before it can run here: questions, sources, models, files and a key.

Only names and files are looked at; nothing is opened or fetched.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ifqa.config.experiment import Experiment, retriever_tables
from ifqa.errors import IfqaError
from ifqa.llms.cache import CompletionCache
from ifqa.llms.credentials import address_of, is_local, key_for
from ifqa.llms.replay import recording
from ifqa.models import causal
from ifqa.models.encoders import SHORT, is_found, is_mpnet
from ifqa.models.hub import FETCHED, is_here, is_packaged, partner
from ifqa.pipeline.run import CorpusBuild, Run, as_run
from ifqa.plugins import Plugins
from ifqa.progress import say
from ifqa.reading.span.reader import SHIPPED
from ifqa.reading.span.weights import manifest_of
from ifqa.reading.t5.checkpoint import DEFAULT, mend_of
from ifqa.reading.unifiedqa import group_folders
from ifqa.retrieval import prebuilt
from ifqa.settings import settings_of
from ifqa.storage.artifacts import MANIFEST


@dataclass(frozen=True)
class Need:
    """A thing that is needed; `how` says how to get it, and is empty if the thing is here."""

    what: str
    how: str = ""

    @property
    def here(self) -> bool:
        """Whether it is here."""
        return not self.how


def needs(experiment: Experiment | Run) -> list[Need]:
    """All that an experiment needs, each thing once."""
    return list(dict.fromkeys(_needs(as_run(experiment))))


def needs_of_corpus(build: CorpusBuild, indexes: Collection[str]) -> list[Need]:
    """All that a corpus needs with these of its indexes, each thing once."""
    return list(dict.fromkeys([*_sources(build), *_encoders(build, indexes), *_prebuilt(build, indexes)]))


def missing(experiment: Experiment) -> list[str]:
    """What is missing, each thing in a few words; empty if the experiment can run."""
    return [need.what for need in needs(experiment) if not need.here]


def is_scored(experiment: Experiment) -> bool:
    """Whether it has been scored, with its present settings or with earlier ones."""
    return (experiment.folder / "score" / MANIFEST).exists()


def require_key(experiment: Experiment) -> None:
    """Notice before hours of work that there is no key for the experiment's server; completions kept from before need none.

    Raises:
        IfqaError: there is no key, and nothing is kept.
    """
    settings = experiment.llm_settings
    if not experiment.llm or experiment.llm["name"] != "openai":
        return
    try:
        key_for(address_of(str(settings.get("base_url", ""))))
    except IfqaError as error:
        store = experiment.root / str(settings.get("store", "completions"))
        if not CompletionCache(store).has_completions():
            raise
        say(f"{error}; what is kept in {store} needs no key")


def _needs(run: Run) -> Iterator[Need]:
    experiment = run.experiment
    yield _split(experiment.benchmark, experiment.split, run.plugins)
    if run.corpus:
        yield from needs_of_corpus(run.corpus, experiment.indexes)
    tables: list[Mapping[str, object]] = [*retriever_tables(experiment.retriever)] if experiment.retriever else []
    for table in (*tables, experiment.reader or {}, experiment.llm or {}):
        yield from _named(table, experiment.root)


def _split(benchmark: str, split: str, plugins: Plugins) -> Need:
    what = f"{benchmark} {split}"
    try:
        files = plugins.benchmark(benchmark).files(split)
    except IfqaError as error:
        return Need(what, str(error).removeprefix(f"{what}: "))
    lacking = [str(path) for path in files if not path.exists()]
    return Need(what, f"{', '.join(lacking)} is not there; put it there" if lacking else "")


def _sources(build: CorpusBuild) -> Iterator[Need]:
    corpus = build.corpus
    for source in corpus.sources:
        if source.get("format") == "gold" and source.get("splits"):
            yield from (_split(source["benchmark"], split, corpus.plugins) for split in source["splits"])
            continue
        what = str(source.get("path", f"a source of {corpus.name}"))
        try:
            _ = CorpusBuild(replace(corpus, sources=(source,))).sources
        except IfqaError as error:
            about = f" ({corpus.about.rstrip('.')})" if corpus.about else ""
            yield Need(what, str(error).removeprefix("passage source not found: ").removeprefix(f"{what} ") + about)
        else:
            yield Need(what)


def _encoders(build: CorpusBuild, indexes: Collection[str]) -> Iterator[Need]:
    corpus = build.corpus
    for table in (corpus.indexes[name] for name in indexes if name in corpus.indexes):
        settings = settings_of(corpus.plugins.indexed(table["retriever"]).build) | table
        if model := str(settings.get("model", "")):
            yield _model(model, corpus.root)
            yield _model(str(settings.get("query_model") or partner(model)), corpus.root)


def _prebuilt(build: CorpusBuild, indexes: Collection[str]) -> Iterator[Need]:
    corpus = build.corpus
    for index in indexes:
        table = corpus.indexes.get(index)
        if table and (name := table.get("prebuilt")):
            what = f"the prebuilt index {name}"
            try:
                folder, size = prebuilt.place(name), prebuilt.entry(name).bytes
            except IfqaError as error:
                yield Need(what, str(error))
                continue
            here = folder.exists() or (corpus.folder / index / MANIFEST).exists()
            yield Need(
                what, "" if here else f"{size:,} bytes, fetched into {folder.parent} by: ifqa index {corpus.name}"
            )


def _named(table: Mapping[str, object], root: Path) -> Iterator[Need]:
    """What the table of a retriever, reader or language model of this package names: models, files, a server."""
    name, path, model = str(table.get("name", "")), str(table.get("path", "")), str(table.get("model", ""))
    if name in ("run", "predictions"):
        yield Need(path, "" if (root / path).exists() else "no such file; put it there or name another")
    elif name == "replay":
        try:
            recording(str(root / path) if (root / path).exists() else path)
        except IfqaError as error:
            yield Need(f"the recording {path}", str(error))
        else:
            yield Need(f"the recording {path}")
    elif name in DEFAULT:
        yield _checkpoint(str(table.get("checkpoint") or DEFAULT[name]), name, root)
    elif name == "extractive":
        yield from _span_reader(str(table.get("weights", "")), str(table.get("encoder", "")), root)
    elif name == "hf":
        yield Need(model, causal.lacks(model, root))
    elif name == "rerank" and model not in ("ifqa", "extractive"):
        yield _model(model, root)
    elif name == "openai":
        yield from _key(str(table.get("base_url", "")))


def _span_reader(weights: str, encoder: str, root: Path) -> Iterator[Need]:
    """The weights that are named, and their encoder if it is not part of this installation."""
    folder = root / weights if weights else SHIPPED
    if weights:
        yield _model(weights, root)
    if not encoder and (folder / "manifest.json").exists():
        try:
            encoder = manifest_of(folder)["encoder"]["name"]
        except IfqaError as error:
            yield Need(f"the manifest of {weights}", str(error))
    if encoder and not is_packaged(encoder):
        how = f"fetch it with: ifqa data {SHORT}" if is_mpnet(encoder) else FETCHED
        yield Need(encoder, "" if is_found(encoder, root) else how)


def _checkpoint(checkpoint: str, reader: str, root: Path) -> Need:
    what = f"the checkpoint {checkpoint}"
    try:
        here = all(_model(one, root).here for one in group_folders(checkpoint, root).values())
    except IfqaError as error:
        return Need(what, str(error).removeprefix(f"checkpoint {checkpoint}: "))
    return Need(what, "" if here else mend_of(reader))


def _model(name: str, root: Path) -> Need:
    return Need(name, "" if is_here(str(root / name)) or is_here(name) else FETCHED)


def _key(base_url: str) -> Iterator[Need]:
    try:
        address = address_of(base_url)
        if not is_local(address):
            key_for(address)
            yield Need("an API key")
    except IfqaError as error:
        yield Need("an API key", str(error))
