"""What an experiment or a corpus needs before it can run here: questions, sources, models, files and a key.

Each plugin says what it needs (`Plugin.requirements`). Only names and files are looked at; nothing is opened or fetched.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace

from ifqa.config.corpus import Corpus, build_settings
from ifqa.config.experiment import Experiment, retriever_tables, search_settings
from ifqa.corpus.sources import splits_of
from ifqa.errors import IfqaError
from ifqa.pipeline.run import CorpusBuild, Run, as_run
from ifqa.plugins import Plugins
from ifqa.protocols import Requirement
from ifqa.settings import settings_of
from ifqa.storage.artifacts import MANIFEST


def requirements(experiment: Experiment | Run) -> list[Requirement]:
    """All that an experiment needs, each thing once."""
    return list(dict.fromkeys(_requirements(as_run(experiment))))


def corpus_requirements(corpus: Corpus, indexes: Collection[str]) -> list[Requirement]:
    """All that a corpus needs with these of its indexes, each thing once."""
    return list(dict.fromkeys([*_sources(corpus), *_indexes(corpus, indexes)]))


def missing(experiment: Experiment) -> list[str]:
    """What is missing, each thing in a few words; empty if the experiment can run."""
    return [requirement.what for requirement in requirements(experiment) if not requirement.here]


def is_scored(experiment: Experiment) -> bool:
    """Whether it has been scored, with its present settings or with earlier ones."""
    return (experiment.folder / "score" / MANIFEST).exists()


def _requirements(run: Run) -> Iterator[Requirement]:
    experiment, plugins = run.experiment, run.plugins
    yield _split(experiment.benchmark, experiment.split, plugins)
    if run.corpus:
        yield from corpus_requirements(run.corpus.corpus, experiment.indexes)
    for table in retriever_tables(experiment.retriever) if experiment.retriever else ():
        yield from plugins.retriever(table["name"]).requirements(root=experiment.root, **search_settings(table))
    if experiment.reader:
        reader = plugins.reader(experiment.reader["name"])
        yield from reader.requirements(root=experiment.root, **experiment.reader_settings)
    if experiment.llm:
        yield from plugins.llm(experiment.llm["name"]).requirements(root=experiment.root, **experiment.llm_settings)


def _split(benchmark: str, split: str, plugins: Plugins) -> Requirement:
    what = f"{benchmark} {split}"
    try:
        files = plugins.benchmark(benchmark).files(split)
    except IfqaError as error:
        return Requirement(what, str(error).removeprefix(f"{what}: "))
    lacking = [str(path) for path in files if not path.exists()]
    return Requirement(what, f"{', '.join(lacking)} is not there; put it there" if lacking else "")


def _sources(corpus: Corpus) -> Iterator[Requirement]:
    for source in corpus.sources:
        if splits := splits_of(source):
            yield from (_split(benchmark, split, corpus.plugins) for benchmark, split in splits)
            continue
        what = str(source.get("path", f"a source of {corpus.name}"))
        try:
            _ = CorpusBuild(replace(corpus, sources=(source,))).sources
        except IfqaError as error:
            about = f" ({corpus.about.rstrip('.')})" if corpus.about else ""
            reason = str(error).removeprefix("passage source not found: ").removeprefix(f"{what} ")
            yield Requirement(what, reason + about)
        else:
            yield Requirement(what)


def _indexes(corpus: Corpus, indexes: Collection[str]) -> Iterator[Requirement]:
    for name in indexes:
        if name in corpus.indexes:
            plugin = corpus.plugins.indexed(corpus.indexes[name]["retriever"])
            settings = settings_of(plugin.build) | build_settings(corpus.indexes[name])
            yield from plugin.build_requirements(corpus.folder / name, root=corpus.root, **settings)
