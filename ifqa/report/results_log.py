"""`experiments/RESULTS.jsonl`: recorded scores of finished experiments, how they were made and from what, one record a line."""

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NotRequired, Required, cast

from typing_extensions import TypedDict

from ifqa.config.corpus import load_corpus
from ifqa.config.experiment import Experiment, retriever_tables
from ifqa.corpus import blocks
from ifqa.corpus.sources import FORMATS, Known
from ifqa.errors import IfqaError
from ifqa.identities import questions_identity
from ifqa.pipeline.run import Run, identifying
from ifqa.plugins import Kind, code_of, file_of, load, load_indexed, open_benchmark
from ifqa.retrieval import queries
from ifqa.scoring.stored import scores_in
from ifqa.scoring.summary import VERSION, Content
from ifqa.settings import Natural, NotNegative, check_shape, settings_of, with_fractions
from ifqa.storage.artifacts import StageRecord, identity, read_manifest
from ifqa.storage.files import json_line, read_jsonl, sha256, text_field, unicode_text
from ifqa.storage.resources import PACKAGE

RECORDS = Path("experiments/RESULTS.jsonl")
_KEYS = {"experiment", "version", "tables", "inputs", "scores", "made"}
_LATER = {"identities"}  # keys that older records lack


class RunFacts(TypedDict, total=False):
    """How scores were made; `run` and the keys after it are there only where they apply."""

    at: Required[str]  # ISO time
    hardware: Required[str]
    python: Required[str]
    commit: Required[str]
    seconds: Required[dict[str, NotNegative]]  # by stage
    libraries: dict[str, str]  # versions
    inputs: dict[str, str]  # file -> SHA-256: the benchmark's, the corpus's, the reader's weights
    run: str  # SHA-256 of run.trec
    own_passages: bool  # whether the run names passages that the retriever made
    passages: Natural  # of the corpus
    model: str
    server: str  # scheme, host and port of who was asked
    cost: NotNegative | None  # of the last attempt in US dollars; None where the price is unknown
    tokens: Natural  # of all answers
    label: str
    trained_on_them: bool


class _Head(TypedDict):
    experiment: str
    version: int
    tables: dict[str, object]
    inputs: str
    made: RunFacts
    sha256: str
    identities: NotRequired[dict[str, str]]


class Record(_Head):
    """A line of RESULTS.jsonl; `identities` are as `identities` gives them."""

    scores: Content


def read_records(root: Path = Path()) -> dict[str, Record]:
    """The results by experiment that are recorded below `root`.

    Raises:
        IfqaError: a line is no record, was changed by hand, or another line records the same experiment.
    """
    found: dict[str, Record] = {}
    for number, line in read_jsonl(root / RECORDS) if (root / RECORDS).exists() else ():
        where = f"{RECORDS}:{number}"
        name = text_field(line, "experiment", where)
        unicode_text(json.dumps(line, ensure_ascii=False), "experiment", where)
        content = {key: value for key, value in line.items() if key != "sha256"}
        if line.get("sha256") != _sha256(content) or content.keys() - _LATER != _KEYS:
            raise IfqaError(f"{where}: the record of {name} was changed by hand; take the line out, and report again")
        record = _checked(line, where)
        if found.setdefault(name, record) != record:
            raise IfqaError(f"{where}: there is another record of {name}; keep one of them, and report again")
    return found


def _checked(line: Mapping[str, object], where: str) -> Record:
    """A line, checked; the scores only if they are of the current scorer, because older ones may have another shape."""
    head = check_shape(_Head, line, where)
    if head["version"] == VERSION:
        scores_in(line["scores"], f"{where}: scores")
    return cast(Record, line)


def sealed(content: Mapping[str, object]) -> Record:
    """A record with the hash that shows a change by hand."""
    own = {key: value for key, value in content.items() if key != "sha256"}
    return cast(Record, own | {"sha256": _sha256(own)})


def _sha256(content: Mapping[str, object]) -> str:
    return hashlib.sha256(json_line(content)).hexdigest()


def outside_plugins(tables: object) -> set[str]:
    """The plugins "my_module:Class" that an experiment's tables name; loading such a plugin runs the module's code."""
    if isinstance(tables, Mapping):
        named = [tables.get("name"), tables.get("benchmark")]
        named += tables["measures"] if isinstance(tables.get("measures"), list) else []
        own = {name for name in named if isinstance(name, str) and ":" in name}
        return own.union(*map(outside_plugins, tables.values()))
    return set[str]().union(*map(outside_plugins, tables)) if isinstance(tables, list) else set()


def made(experiment: Experiment) -> RunFacts:
    """How the scores of a finished experiment were made, from the manifests of its corpus and its stages.

    Raises:
        IfqaError: a manifest is missing or lacks something; or a file that was read is missing.
    """
    stages = {stage: stage_record(experiment.folder / stage) for stage in experiment.stages}
    last = stages[experiment.stages[-1]]
    found: RunFacts = {
        "at": last["at"],
        "hardware": last["hardware"],
        "python": last["python"],
        "commit": last["commit"],
        "seconds": {stage: record["seconds"] for stage, record in stages.items()},
        "libraries": last["libraries"],
    }
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
    weights = Run(experiment).fingerprint("reader").get("files") if experiment.reader else None
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
        found["questions"] = questions_identity(Run(experiment).questions)
    with suppress(IfqaError):
        benchmark = open_benchmark(experiment.benchmark, experiment.root)
        if split := benchmark.training(experiment.split):
            found["training"] = questions_identity(benchmark.questions(split))
    with suppress(IfqaError):
        prints = {"retriever": Run(experiment).fingerprint("retriever")} if experiment.retriever else {}
        prints |= {"reader": Run(experiment).fingerprint("reader")} if experiment.reader else {}
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
