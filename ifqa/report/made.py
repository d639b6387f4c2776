"""How an experiment's scores were made, and the identities of what they were made from."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ifqa.config.corpus import load_corpus
from ifqa.config.experiment import Experiment, retriever_tables
from ifqa.corpus import blocks
from ifqa.corpus.sources import FORMATS, Known
from ifqa.errors import IfqaError
from ifqa.identities import questions_identity
from ifqa.pipeline.provenance import fingerprint, identifying
from ifqa.pipeline.upstream import questions_of
from ifqa.plugins import Kind, code_of, file_of, load, load_indexed, open_benchmark
from ifqa.report.records import How
from ifqa.retrieval import queries
from ifqa.settings import settings_of, with_fractions
from ifqa.storage.artifacts import StageRecord, identity, read_manifest
from ifqa.storage.files import sha256
from ifqa.storage.resources import PACKAGE


def made(experiment: Experiment) -> How:
    """How the scores of a finished experiment were made, from the manifests of its corpus and its stages.

    Raises:
        IfqaError: a manifest is missing or lacks something; or a file that was read is missing.
    """
    stages = {stage: stage_record(experiment.folder / stage) for stage in experiment.stages}
    last = stages[experiment.stages[-1]]
    found: How = {"at": last["at"], "hardware": last["hardware"], "python": last["python"], "commit": last["commit"]}
    found["seconds"] = {stage: one["seconds"] for stage, one in stages.items()}
    found["libraries"] = last["libraries"]
    corpus = stage_record(experiment.corpus_folder / "passages") if experiment.corpus else None
    found["inputs"] = _inputs(experiment, corpus.get("sources", {}) if corpus else {})
    if "retrieve" in stages and (run := stages["retrieve"]["files"].get("run.trec")):
        found["run"] = run["sha256"]
        if "passages.jsonl" in stages["retrieve"]["files"]:
            found["own_passages"] = True
    if corpus:
        found["passages"] = corpus["passages"]
    asked = [one["spent"] for one in stages.values() if "spent" in one]
    if asked:
        costs = [spent["cost"] for spent in asked if spent["cost"] is not None]
        found["cost"] = sum(costs) if len(costs) == len(asked) else None
        found["tokens"] = sum(sum(one["took"]) for one in stages.values() if "took" in one)
    if experiment.llm and (model := experiment.llm.get("model")):
        found["model"] = model
    if servers := [one["server"] for one in stages.values() if "server" in one]:
        found["server"] = " and ".join(dict.fromkeys(servers))
    if "read" in stages and (label := stages["read"].get("label")):
        found["label"] = label
    if any(one.get("trained_on_them") for one in stages.values()):
        found["trained_on_them"] = True
    return found


def stage_record(folder: Path) -> StageRecord:
    """The half `record` of the manifest of a finished artifact.

    Raises:
        IfqaError: there is no manifest, or it is malformed.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        raise IfqaError(f"{folder} is not there")
    return manifest["record"]


def _inputs(experiment: Experiment, sources: Known) -> dict[str, str]:
    """SHA-256 of the files of the benchmark, the corpus and the reader's weights, by path within the project."""
    splits = [(experiment.benchmark, experiment.split)]
    for source in load_corpus(experiment.corpus, experiment.root).sources if experiment.corpus else ():
        splits += [(source["benchmark"], split) for split in source.get("splits", ()) if "benchmark" in source]
    files = [path for name, split in splits for path in open_benchmark(name, experiment.root).files(split)]
    hashes = {_within(path): sha256(path) for path in files}
    hashes |= {_within(Path(path)): str(facts[2]) for path, facts in sources.items()}
    weights = fingerprint("reader", experiment).get("files") if experiment.reader else None
    return dict(sorted(hashes.items())) | ({"the reader's weights": str(weights)} if weights else {})


def _within(path: Path) -> str:
    """A path relative to the working directory or the repository; else its name, so that no record holds a local path."""
    path = path.absolute()
    for place in (Path.cwd(), PACKAGE.parent):
        if path.is_relative_to(place):
            return path.relative_to(place).as_posix()
    return path.name


def identities(experiment: Experiment) -> dict[str, str]:
    """Identities of what an experiment's scores are made from, beside its own tables; a record with others is out of date.

    Returns:
        "code": of the plugins, by version or by the SHA-256 of their files; "corpus": of the settings of its sources and
        of the searched indexes, without paths; "questions": of the questions; "training": of the training questions, if
        the benchmark has some; "files": of the files that retriever and reader read. Missing files leave a key out.
    """
    found = {"code": identity(_code(experiment))}
    with suppress(IfqaError):
        found["questions"] = questions_identity(questions_of(experiment))
    with suppress(IfqaError):
        benchmark = open_benchmark(experiment.benchmark, experiment.root)
        if split := benchmark.training(experiment.split):
            found["training"] = questions_identity(benchmark.questions(split))
    with suppress(IfqaError):
        prints = {"retriever": fingerprint("retriever", experiment)} if experiment.retriever else {}
        prints |= {"reader": fingerprint("reader", experiment)} if experiment.reader else {}
        found["files"] = identity({kind: _files(one) for kind, one in prints.items()})
    if experiment.corpus:
        found["corpus"] = identity(_corpus(experiment))
    return found


def _code(experiment: Experiment) -> dict[str, object]:
    """The version or hash of each plugin by its kind and name."""
    retrievers = list(retriever_tables(experiment.retriever)) if experiment.retriever else []
    named: list[tuple[Kind, str]] = [("benchmark", experiment.benchmark)]
    named += [("retriever", one["name"]) for one in retrievers]
    named += [("reader", experiment.reader["name"])] if experiment.reader else []
    named += [("llm", experiment.llm["name"])] if experiment.llm else []
    code: dict[str, object] = {f"{kind} {name}": code_of(load(kind, name)) for kind, name in named}
    modules = {name.partition(":")[0] for name in experiment.measures if ":" in name}
    code |= {f"measures of {name}": sha256(file_of(name)) for name in modules}
    rewritten = any("query" in one or one.get("reads", "question") != "question" for one in retrievers)
    return code | ({"queries": queries.VERSION} if rewritten else {})


def _files(found: Mapping[str, Any]) -> dict[str, object]:
    """The hashes of files in a fingerprint, and in those of its parts and its language model."""
    inner = {key: _files(found[key]) for key in ("llm",) if key in found}
    return {"files": found.get("files", ""), "parts": [_files(one) for one in found.get("parts", ())]} | inner


def _corpus(experiment: Experiment) -> dict[str, object]:
    """The settings of a corpus's sources, and of those of its indexes that the experiment searches; without paths.

    Settings at their defaults are left out, so that a setting that is new in a later version changes nothing.
    """
    corpus = load_corpus(experiment.corpus, experiment.root)
    sources = []
    for source in corpus.sources:
        kind = FORMATS.get(str(source.get("format")))
        own = {key: value for key, value in source.items() if key != "path"}
        sources.append(_changed(kind, with_fractions(kind, own)) if kind else own)
    indexes = {}
    for name in experiment.indexes:
        if name in corpus.indexes:
            table = corpus.indexes[name]
            plugin = load_indexed(table["retriever"])
            indexes[name] = [_changed(plugin.build, identifying(plugin, table)), code_of(plugin)]
    return {"sources": sources, "version": blocks.VERSION, "indexes": indexes}


def _changed(function: Callable[..., object], settings: Mapping[str, object]) -> dict[str, object]:
    defaults = settings_of(function)
    return {key: value for key, value in settings.items() if key not in defaults or value != defaults[key]}
