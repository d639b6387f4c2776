"""Opening an experiment's retriever, reader and language model from the tables of its file."""

import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

from ifqa.config.corpus import build_settings, load_corpus
from ifqa.config.experiment import Experiment, RetrieverSettings, retriever_tables, search_settings
from ifqa.corpus.store import PassageStore, Store, fetch
from ifqa.errors import IfqaError
from ifqa.llms.budget import Budget
from ifqa.plugins import accepted_arguments, load, open_benchmark, settings_at, takes
from ifqa.progress import counted, say
from ifqa.protocols import Indexed, LanguageModel, Learned, Plugin, Reader, Retriever
from ifqa.retrieval.queries import Part
from ifqa.storage.files import json_line, sha256

_P = TypeVar("_P", bound=Plugin)


class Session:
    """The budget and the opened language models that the experiments of a command share, or the calls of an opened system.

    Stages and experiments that name a model with the same settings share it. The caps of the budget hold for all models
    together.
    """

    def __init__(self) -> None:
        self.budget = Budget()
        self._lock = threading.Lock()
        self._models: dict[bytes, LanguageModel] = {}

    def llm(self, experiment: Experiment) -> LanguageModel:
        """The experiment's language model.

        Raises:
            IfqaError: a setting is out of range, the model cannot be opened, or it was tuned on another split family of the
                benchmark.
        """
        assert experiment.llm is not None
        with self._lock:
            key = json_line({"root": str(experiment.root.absolute()), **experiment.llm})
            if key not in self._models:
                plugin = load("llm", experiment.llm["name"])
                self._models[key] = opened(plugin, experiment.llm_settings, experiment.root, budget=self.budget)
            model = self._models[key]
        _refuse(f"language model {experiment.llm['name']!r} {model.learnt}", model.family, experiment)
        return model


def opened(plugin: type[_P], settings: Mapping[str, object], root: Path, **given: object) -> _P:
    """Construct a plugin with its settings, and with those of the objects `given` that its constructor takes."""
    taken = accepted_arguments(plugin.__init__, root=root, **given)
    return plugin(**taken, **settings_at(plugin.__init__, settings, root))


def open_retriever(experiment: Experiment, session: Session) -> Retriever:
    """Open the retriever with its index and its parts; its `search` takes `queries_of` the questions.

    Raises:
        IfqaError: something it needs is missing, or a model in it was trained on another split family of the same benchmark.
    """
    assert experiment.retriever is not None
    return _open(experiment.retriever, experiment, session)


def _open(table: RetrieverSettings, experiment: Experiment, session: Session) -> Retriever:
    name = table["name"]
    corpus, given = experiment.corpus_folder, dict[str, object]()
    if "parts" in table:
        given["parts"] = [
            Part(_open(part, experiment, session), part["k"], part["weight"], part.get("query", "question"))
            for part in table["parts"]
        ]
    if takes("retriever", name, "passages"):
        stores: list[Store] = [PassageStore(corpus / "passages")] if experiment.corpus else []
        given["passages"] = partial(fetch, stores)
    if takes("retriever", name, "corpus"):
        given["corpus"] = PassageStore(corpus / "passages")
    if takes("retriever", name, "llm"):
        given["llm"] = session.llm(experiment)
    if "index" in table:
        given["index"] = corpus / table["index"]
    retriever = opened(load("retriever", name), search_settings(table), experiment.root, **given)
    _refuse(f"retriever {name!r} {retriever.learnt}", retriever.family, experiment)
    _refuse_strange(table, retriever, experiment)
    return retriever


def open_reader(experiment: Experiment, session: Session) -> Reader:
    """Open the reader.

    Raises:
        IfqaError: something it needs is missing, or its weights were trained on another split family of the same benchmark.
    """
    assert experiment.reader is not None
    name = experiment.reader["name"]
    given = {"llm": session.llm(experiment)} if takes("reader", name, "llm") else {}
    reader = opened(load("reader", name), experiment.reader_settings, experiment.root, **given)
    _refuse(f"reader {name!r} {reader.learnt}", reader.family, experiment)
    _refuse_strange(experiment.reader, reader, experiment)
    say_label(name, reader.label)
    return reader


def _refuse_strange(table: Mapping[str, object], plugin: Learned, experiment: Experiment) -> None:
    """Refuse a file of another split, and one that has questions beside those of the split."""
    if not plugin.question_ids:
        return
    split = [one.id for one in open_benchmark(experiment.benchmark, experiment.root).questions(experiment.split)]
    known = set(split)
    if strange := [one for one in plugin.question_ids if one not in known]:
        raise IfqaError(
            f"{table.get('path', table['name'])} has {counted(len(strange), 'question')}, of {len(plugin.question_ids):,}, that "
            f"{experiment.benchmark} {experiment.split} does not have: {', '.join(strange[:3])}{', …' if strange[3:] else ''}; "
            f"wanted ids as {split[0]}"
        )


def say_label(reader: str, label: str) -> None:
    """Say a reader's label, if it has one."""
    if label:
        say(f"reader {reader!r}: {label}")


def reads_passages(table: RetrieverSettings) -> bool:
    """Whether the retriever of a table reads passages itself: by id, as a reranker does, or the whole corpus."""
    return takes("retriever", table["name"], "passages") or takes("retriever", table["name"], "corpus")


def refuse_other_families(experiment: Experiment) -> None:
    """Check the split families of all weights before anything is built; `open_retriever` and `open_reader` check them later.

    Raises:
        IfqaError: a retriever's or the reader's weights were trained on another split family of the same benchmark.
    """
    if experiment.llm:
        name, llm = experiment.llm["name"], load("llm", experiment.llm["name"])
        tuned = _family(llm, experiment.llm_settings, experiment.root, builds=False)
        _refuse(f"language model {name!r} {llm.learnt}", tuned, experiment)
    plugins: list[tuple[Literal["retriever", "reader"], str, dict[str, object], bool]] = []
    if experiment.reader:
        plugins.append(("reader", experiment.reader["name"], experiment.reader_settings, False))
    for table in retriever_tables(experiment.retriever) if experiment.retriever else ():
        indexes = load_corpus(experiment.corpus, experiment.root).indexes if "index" in table else {}
        built = build_settings(indexes[table["index"]]) if "index" in table and table["index"] in indexes else {}
        plugins.append(("retriever", table["name"], built or search_settings(table), bool(built)))
    for kind, name, settings, builds in plugins:
        plugin = load(kind, name)
        _refuse(f"{kind} {name!r} {plugin.learnt}", _family(plugin, settings, experiment.root, builds), experiment)


def _family(plugin: type[Learned], settings: Mapping[str, object], root: Path, builds: bool) -> str:
    named = settings_at(plugin.build if builds and issubclass(plugin, Indexed) else plugin.__init__, settings, root)
    return plugin.trained(**accepted_arguments(plugin.trained, root=root), **named)


def _refuse(what: str, trained: str, experiment: Experiment) -> None:
    """IfQA's split families divide the same questions, so a model of one family has seen test questions of the other."""
    known_benchmark = trained.partition("/")[0] == experiment.benchmark
    tested = open_benchmark(experiment.benchmark, experiment.root).family(experiment.split) if known_benchmark else ""
    if tested and trained != tested:
        raise IfqaError(
            f"{what} {trained} and may not be tested on {tested}, "
            "which holds the same questions; take that family's training split"
        )


def was_trained_on(plugin: Learned, experiment: Experiment) -> bool:
    """Whether a plugin's weights were trained on the experiment's own questions; its scores then mean little."""
    if not plugin.trained_on:
        return False
    files = open_benchmark(experiment.benchmark, experiment.root).files(experiment.split)
    return any(sha256(path) in plugin.trained_on for path in files)
