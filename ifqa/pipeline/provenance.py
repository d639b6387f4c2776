"""The inputs of each stage, which decide reuse: settings, identities of input artifacts, code of the plugin.

An artifact is identified by the hash of its own inputs, so a change shows in every later stage. Nothing is written here.
"""

import inspect
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Literal

from ifqa.config.corpus import Corpus, build_settings, load_corpus
from ifqa.config.declared import declared_for
from ifqa.config.experiment import Experiment, RetrieverSettings, retriever_tables, search_settings
from ifqa.corpus import blocks, sources
from ifqa.corpus.shards import known_files
from ifqa.errors import IfqaError
from ifqa.identities import questions_identity
from ifqa.pipeline.opening import reads_passages
from ifqa.pipeline.upstream import questions_of, sources_of
from ifqa.plugins import Kind, accepted_arguments, code_of, file_of, load, load_indexed, open_benchmark, settings_at
from ifqa.protocols import Plugin
from ifqa.retrieval import queries
from ifqa.scoring import summary
from ifqa.settings import settings_of
from ifqa.storage import artifacts
from ifqa.storage.files import sha256


def inputs_of_passages(corpus: Corpus, known: sources.Known | None = None) -> dict[str, object]:
    """The sources' settings and the SHA-256 of their files; `known` as `sources.identify` takes it."""
    if known is None:
        folder = corpus.folder / "passages"
        manifest = artifacts.read_manifest(folder)
        known = manifest["record"].get("sources", {}) | known_files(folder) if manifest else {}
    return {
        "stage": "passages",
        "version": blocks.VERSION,
        "sources": [sources.identify(source, known) for source in sources_of(corpus)],
    }


def inputs_of_index(corpus: Corpus, name: str) -> dict[str, object]:
    """The build settings with their defaults, the retriever's code, and the identity of the passages.

    Raises:
        IfqaError: the corpus has no such index, or its passages are not built.
    """
    if name not in corpus.indexes:
        raise IfqaError(f"corpus {corpus.name} has no [index.{name}]; it has: {', '.join(corpus.indexes) or 'none'}")
    table = corpus.indexes[name]
    plugin = load_indexed(table["retriever"])
    settings = identifying(plugin, settings_of(plugin.build) | table)
    named = settings_at(plugin.build, build_settings(table), corpus.root)
    files = {"files": found} if (found := plugin.built_from(**named)) else {}
    return {"stage": "index", "settings": settings, "code": code_of(plugin), **files, "passages": _passages(corpus)}


def inputs_of_retrieve(experiment: Experiment) -> dict[str, object]:
    """The search settings, the questions, and the identities of the indexes, which must be built from the present passages.

    Raises:
        IfqaError: the passages or an index are not built, or older than the corpus's file.
    """
    assert experiment.retriever is not None
    inputs: dict[str, object] = {"stage": "retrieve", "retriever": fingerprint("retriever", experiment)}
    inputs |= _questions(experiment)
    indexes: dict[str, str] = {}
    corpus = load_corpus(experiment.corpus, experiment.root) if experiment.corpus else None
    for name in experiment.indexes:
        assert corpus is not None  # load_experiment has checked that
        index = inputs_of_index(corpus, name)
        found = require_finished(corpus.folder / name, f"ifqa index {corpus.name}")["inputs"]
        if found.get("passages") != index["passages"]:
            raise IfqaError(
                f"{corpus.folder / name} was built from other passages than {corpus.folder / 'passages'} holds; "
                f"build it again: ifqa index {corpus.name}"
            )
        _require_same(corpus.folder / name, found, index, f"ifqa index {corpus.name}")
        indexes[name] = artifacts.identity(index)
    if indexes:
        inputs["indexes"] = indexes
    if corpus and any(map(reads_passages, retriever_tables(experiment.retriever))):
        inputs["passages"] = _passages(corpus)
    return inputs


def inputs_of_read(experiment: Experiment) -> dict[str, object]:
    """The reader's settings and weights, the questions, the run, and the corpus's passages."""
    assert experiment.reader is not None
    reader = fingerprint("reader", experiment)
    return {"stage": "read", "reader": reader, **_questions(experiment), **_run(experiment)}


def inputs_of_score(experiment: Experiment) -> dict[str, object]:
    """The questions, the benchmark that scores them, the run with its passages, the predictions, and the scorer's version.

    The measures that the experiment names belong to them, and the files outside this package that define measures and subsets.
    """
    benchmark = {"name": experiment.benchmark, "code": code_of(load("benchmark", experiment.benchmark))}
    inputs: dict[str, object] = {"stage": "score", "version": summary.VERSION}
    inputs |= {"seed": experiment.seed, "benchmark": benchmark} | _measures(experiment)
    inputs |= _questions(experiment) | _training(experiment) | _run(experiment)
    if experiment.reader:
        inputs["predictions"] = _stage(experiment, "read", inputs_of_read)
    return inputs


def _measures(experiment: Experiment) -> dict[str, object]:
    """The measures that an experiment adds, and the SHA-256 of each module outside this package that defines any."""
    by = declared_for(experiment)
    modules = {name.partition(":")[0] for name in experiment.measures if ":" in name}
    modules |= {_module(one.score) for one in by.measures} | {_module(one.holds) for one in by.subsets}
    files = {name: sha256(file_of(name)) for name in sorted(modules) if name.partition(".")[0] != "ifqa"}
    named = {"measures": list(experiment.measures)} if experiment.measures else {}
    return named | ({"measured_by": files} if files else {})


def _module(function: Callable[..., object]) -> str:
    """The module of a function, of the function in a `partial`, or of the class of a callable object."""
    while isinstance(function, partial):
        function = function.func
    return function.__module__ if inspect.isroutine(function) else type(function).__module__


def fingerprint(kind: Literal["retriever", "reader"], experiment: Experiment) -> dict[str, object]:
    """What determines the output of an experiment's retriever or reader: its settings, its code, and hashes of its files.

    Raises:
        IfqaError: a file that it reads is missing.
    """
    if kind == "reader":
        assert experiment.reader is not None
        made = _fingerprint(
            kind, experiment.reader["name"], experiment.reader, experiment.reader_settings, experiment.root
        )
    else:
        assert experiment.retriever is not None
        made = _of_retriever(experiment.retriever, experiment.root)
    if experiment.asks_llm(kind):
        assert experiment.llm is not None  # load_experiment has checked that
        llm, own = experiment.llm, experiment.llm_settings
        made["llm"] = _fingerprint("llm", llm["name"], llm, own, experiment.root)
    return made


def _of_retriever(table: RetrieverSettings, root: Path) -> dict[str, object]:
    own = {key: value for key, value in table.items() if key != "parts"}
    rewritten = {"queries": queries.VERSION} if "query" in table or table.get("reads", "question") != "question" else {}
    parts = {"parts": [_of_retriever(part, root) for part in table["parts"]]} if "parts" in table else {}
    return _fingerprint("retriever", table["name"], own, search_settings(table), root) | rewritten | parts


def _fingerprint(
    kind: Kind, name: str, table: Mapping[str, object], own: Mapping[str, object], root: Path
) -> dict[str, object]:
    plugin = load(kind, name)
    named = settings_at(plugin.__init__, own, root)
    files = (
        {"files": found}
        if (found := plugin.fingerprint(**accepted_arguments(plugin.fingerprint, root=root), **named))
        else {}
    )
    return {"settings": identifying(plugin, table), "code": code_of(plugin), **files}


def require_finished(folder: Path, command: str) -> artifacts.Manifest:
    """The manifest of an artifact that another stage needs.

    Raises:
        IfqaError: the artifact is not there, or a file of it is damaged; the message names the `command` that makes it.
    """
    manifest = artifacts.read_manifest(folder)
    if manifest is None:
        raise IfqaError(f"{folder} is not there yet; make it with: {command}")
    if wrong := next(artifacts.damaged(folder, manifest), ""):
        raise IfqaError(f"{folder} is damaged: {wrong} is missing, or not as it was written; make it again: {command}")
    return manifest


def up_to_date(folder: Path, inputs_of: Callable[[], dict[str, object]]) -> bool:
    """Whether an artifact was made from exactly the present inputs; False if an input is missing."""
    try:
        return artifacts.is_made(folder, inputs_of())
    except IfqaError:
        return False


def is_made(experiment: Experiment, stage: str) -> bool:
    """Whether a stage's artifact was made from exactly the present inputs."""
    inputs_of = {"retrieve": inputs_of_retrieve, "read": inputs_of_read, "score": inputs_of_score}[stage]
    return up_to_date(experiment.folder / stage, partial(inputs_of, experiment))


def will_ask(experiment: Experiment) -> bool:
    """Whether a stage that asks a language model is still to be made."""
    kinds: dict[str, Literal["retriever", "reader"]] = {"retrieve": "retriever", "read": "reader"}
    asking = [stage for stage in experiment.stages if experiment.asks_llm(kinds[stage])]
    return bool(experiment.llm) and not all(is_made(experiment, stage) for stage in asking)


def up_to_date_passages(corpus: Corpus) -> artifacts.Manifest:
    """The manifest of a corpus's passages.

    Raises:
        IfqaError: they are not built, damaged, or older than the corpus's file.
    """
    folder, command = corpus.folder / "passages", f"ifqa passages {corpus.name}"
    manifest = require_finished(folder, command)
    _require_same(folder, manifest["inputs"], inputs_of_passages(corpus), command)
    return manifest


def identifying(plugin: type[Plugin], settings: Mapping[str, object]) -> dict[str, object]:
    """Settings without those in the plugin's `not_identity`, which change its speed and not its output."""
    return {key: value for key, value in sorted(settings.items()) if key not in plugin.not_identity}


def _questions(experiment: Experiment) -> dict[str, str]:
    return {"questions": questions_identity(questions_of(experiment))}


def _training(experiment: Experiment) -> dict[str, str]:
    """The identity of the training questions, if the benchmark needs them to tell a subset apart."""
    benchmark = open_benchmark(experiment.benchmark, experiment.root)
    split = benchmark.training(experiment.split)
    return {"training": questions_identity(benchmark.questions(split))} if split else {}


def _passages(corpus: Corpus) -> str:
    """Identity of a corpus's passages, which must be up to date with its file."""
    return artifacts.identity(up_to_date_passages(corpus)["inputs"])


def _run(experiment: Experiment) -> dict[str, str]:
    inputs = {"run": _stage(experiment, "retrieve", inputs_of_retrieve)} if experiment.retriever else {}
    return inputs | (
        {"passages": _passages(load_corpus(experiment.corpus, experiment.root))} if experiment.corpus else {}
    )


def _stage(experiment: Experiment, stage: str, inputs_of: Callable[[Experiment], dict[str, object]]) -> str:
    """Identity of an earlier stage, which must be up to date with the experiment's file."""
    folder, command = experiment.folder / stage, f"ifqa {stage} {experiment.name}"
    manifest, inputs = require_finished(folder, command), inputs_of(experiment)
    _require_same(folder, manifest["inputs"], inputs, command)
    made = manifest["record"]
    half_answered = (
        json.dumps(made["files"], sort_keys=True) if made.get("retry") else ""
    )  # the next try gives other files
    return artifacts.identity(inputs) + half_answered


def _require_same(folder: Path, found: dict[str, object], inputs: dict[str, object], command: str) -> None:
    if artifacts.identity(found) != artifacts.identity(inputs):
        changed = sorted(key for key in found.keys() | inputs.keys() if found.get(key) != inputs.get(key))
        raise IfqaError(
            f"{folder} was made from something else (changed: {', '.join(changed)}); make it again: {command}"
        )
