"""`experiments/RESULTS.jsonl`: recorded scores of finished experiments, how they were made and from what, one record a line."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NotRequired, Required, cast

from typing_extensions import TypedDict

from ifqa.config.corpus import Corpus
from ifqa.config.experiment import retriever_tables
from ifqa.corpus import work_units
from ifqa.corpus.sources import kind_of, splits_of
from ifqa.corpus.work_units import Known
from ifqa.errors import IfqaError
from ifqa.pipeline.run import Run, identifying
from ifqa.plugins import code_of, file_of
from ifqa.records import questions_identity
from ifqa.retrieval import queries
from ifqa.scoring.per_question import VERSION, Content
from ifqa.scoring.score_files import scores_in
from ifqa.settings import Natural, NotNegative, check_shape, settings_of, with_fractions
from ifqa.storage.artifacts import Artifact, StageRecord, identity
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


def made(run: Run) -> RunFacts:
    """How the scores of a finished experiment were made, from the manifests of its corpus and its stages.

    Raises:
        IfqaError: a manifest is missing or lacks something; or a file that was read is missing.
    """
    experiment, llm = run.experiment, run.experiment.llm
    stages = {stage: _record(run.artifact(stage)) for stage in experiment.stages}
    last = stages[experiment.stages[-1]]
    corpus = _record(run.corpus.artifact("passages")) if run.corpus else None
    facts: RunFacts = {
        "at": last["at"],
        "hardware": last["hardware"],
        "python": last["python"],
        "commit": last["commit"],
        "seconds": {stage: record["seconds"] for stage, record in stages.items()},
        "libraries": last["libraries"],
        "inputs": _inputs(run, corpus.get("sources", {}) if corpus else {}),
    }
    files = stages["retrieve"]["files"] if "retrieve" in stages else {}
    if "run.trec" in files:
        facts["run"] = files["run.trec"]["sha256"]
        if "passages.jsonl" in files:
            facts["own_passages"] = True
    if corpus:
        facts["passages"] = corpus["passages"]
    if spent := [record["spent"] for record in stages.values() if "spent" in record]:
        costs = [usage["cost"] for usage in spent if usage["cost"] is not None]
        facts["cost"] = sum(costs) if len(costs) == len(spent) else None
        facts["tokens"] = sum(sum(record["took"]) for record in stages.values() if "took" in record)
    if llm and (model := llm.get("model")):
        facts["model"] = model
    if servers := [record["server"] for record in stages.values() if "server" in record]:
        facts["server"] = " and ".join(dict.fromkeys(servers))
    if "read" in stages and (label := stages["read"].get("label")):
        facts["label"] = label
    if any(record.get("trained_on_them") for record in stages.values()):
        facts["trained_on_them"] = True
    return facts


def _record(artifact: Artifact) -> StageRecord:
    if artifact.manifest is None:
        raise IfqaError(f"{artifact.folder} is not there")
    return artifact.manifest["record"]


def _inputs(run: Run, sources: Known) -> dict[str, str]:
    """SHA-256 of the files of the benchmark, the corpus and the reader's weights, by path within the project."""
    splits = [(run.experiment.benchmark, run.experiment.split)]
    for source in run.corpus.corpus.sources if run.corpus else ():
        splits += splits_of(source)
    files = [path for name, split in splits for path in run.plugins.benchmark(name).files(split)]
    hashes = {_within(path): sha256(path) for path in files}
    hashes |= {_within(Path(path)): str(facts[2]) for path, facts in sources.items()}
    weights = run.fingerprint("reader").get("files") if run.experiment.reader else None
    return dict(sorted(hashes.items())) | ({"the reader's weights": str(weights)} if weights else {})


def _within(path: Path) -> str:
    """A path relative to the working directory or the repository; else its name, so that no record holds a local path."""
    path = path.absolute()
    for place in (Path.cwd(), PACKAGE.parent):
        if path.is_relative_to(place):
            return path.relative_to(place).as_posix()
    return path.name


def identities(run: Run) -> dict[str, str]:
    """Identities of what an experiment's scores are made from, beside its own tables; a record with others is out of date.

    Returns:
        "code": of the plugins, by version or by the SHA-256 of their files; "corpus": of the settings of its sources and
        of the searched indexes, without paths; "questions": of the questions; "training": of the training questions, if
        the benchmark has some; "files": of the files that retriever and reader read. Missing files leave a key out.
    """
    experiment = run.experiment
    known = {"code": identity(_code(run))}
    with suppress(IfqaError):
        known["questions"] = questions_identity(run.questions)
    with suppress(IfqaError):
        if split := run.benchmark.training(experiment.split):
            known["training"] = questions_identity(run.questions_of(experiment.benchmark, split))
    with suppress(IfqaError):
        prints = {"retriever": run.fingerprint("retriever")} if experiment.retriever else {}
        prints |= {"reader": run.fingerprint("reader")} if experiment.reader else {}
        known["files"] = identity({kind: _files(fingerprint) for kind, fingerprint in prints.items()})
    if run.corpus:
        known["corpus"] = identity(_corpus(run.corpus.corpus, experiment.indexes))
    return known


def _code(run: Run) -> dict[str, object]:
    """The version or hash of each plugin by its kind and name."""
    experiment = run.experiment
    retrievers = list(retriever_tables(experiment.retriever)) if experiment.retriever else []
    named: list[tuple[Literal["retriever", "reader", "llm"], str]] = [("retriever", t["name"]) for t in retrievers]
    named += [("reader", experiment.reader["name"])] if experiment.reader else []
    named += [("llm", experiment.llm["name"])] if experiment.llm else []
    code: dict[str, object] = {f"benchmark {experiment.benchmark}": code_of(type(run.benchmark))}
    code |= {f"{kind} {name}": code_of(run.plugins.load(kind, name)) for kind, name in named}
    modules = {name.partition(":")[0] for name in experiment.measures if ":" in name}
    code |= {f"measures of {name}": sha256(file_of(name)) for name in modules}
    rewritten = any("query" in table or table.get("reads", "question") != "question" for table in retrievers)
    return code | ({"queries": queries.VERSION} if rewritten else {})


def _files(fingerprint: Mapping[str, Any]) -> dict[str, object]:
    """The hashes of files in a fingerprint, and in those of its parts and its language model."""
    inner = {key: _files(fingerprint[key]) for key in ("llm",) if key in fingerprint}
    return {
        "files": fingerprint.get("files", ""),
        "parts": [_files(part) for part in fingerprint.get("parts", ())],
    } | inner


def _corpus(corpus: Corpus, indexes: Iterable[str]) -> dict[str, object]:
    """The settings of a corpus's sources, and of those of its indexes that the experiment searches; without paths.

    Settings at their defaults are left out, so that a setting that is new in a later version changes nothing.
    """
    sources = []
    for source in corpus.sources:
        kind = kind_of(source)
        settings = {key: value for key, value in source.items() if key != "path"}
        sources.append(_changed(kind, with_fractions(kind, settings)) if kind else settings)
    searched = {}
    for name in indexes:
        if name in corpus.indexes:
            table = corpus.indexes[name]
            plugin = corpus.plugins.indexed(table["retriever"])
            searched[name] = [_changed(plugin.build, identifying(plugin, table)), code_of(plugin)]
    return {"sources": sources, "version": work_units.VERSION, "indexes": searched}


def _changed(function: Callable[..., object], settings: Mapping[str, object]) -> dict[str, object]:
    defaults = settings_of(function)
    return {key: value for key, value in settings.items() if key not in defaults or value != defaults[key]}
