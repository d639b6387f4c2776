"""What every experiment scored, here or where it was recorded before, and how that was made.

`experiments/RESULTS.jsonl` keeps the scores of finished experiments, so that a report needs no run to be made again. A record
stands for its experiment where that is not run here and its file still says the same; one that stands for nothing just now is
kept all the same.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict, cast

from ifqa.config.corpus import load_corpus
from ifqa.config.experiment import Experiment, RetrieverSettings, load_experiment, parse_experiment
from ifqa.config.variants import as_tables
from ifqa.corpus.sources import Known
from ifqa.errors import IfqaError
from ifqa.models.hub import is_packaged
from ifqa.pipeline.provenance import fingerprint, identifying, inputs_of_score
from ifqa.plugins import load, open_benchmark
from ifqa.progress import say
from ifqa.scoring.stored import read_scores
from ifqa.scoring.summary import VERSION, Content
from ifqa.storage.artifacts import identity, is_made, read_manifest
from ifqa.storage.files import json_line, read_jsonl, sha256, text_field
from ifqa.storage.resources import PACKAGE, list_resources

RECORDS = Path("experiments/RESULTS.jsonl")
_KEYS = {"experiment", "version", "tables", "inputs", "scores", "made"}


class How(TypedDict, total=False):
    """How scores were made; `run` and what follows it where there is something to tell."""

    at: str  # ISO time
    hardware: str
    python: str
    commit: str
    seconds: dict[str, float]  # by stage
    libraries: dict[str, str]  # versions
    inputs: dict[str, str]  # file -> SHA-256: the benchmark's, the corpus's, the reader's weights
    run: str  # SHA-256 of run.trec
    passages: int  # of the corpus
    model: str
    cost: float | None  # of the last attempt in US dollars; None where the price is unknown
    tokens: int  # of all answers
    label: str
    trained_on_them: bool


class Record(TypedDict):
    """A line of RESULTS.jsonl."""

    experiment: str
    version: int
    tables: dict[str, object]
    inputs: str
    scores: Content
    made: How
    sha256: str


@dataclass(frozen=True)
class Result:
    """One experiment and what came of it.

    `scores` are as `stages.score` writes them, None where it was not run, or where `stale` says why what is here no longer
    counts. `made` says how, and is empty without scores. `inputs` is the identity of what the scores were made from, and
    `here` whether they lie below the working directory. `needs` is what it takes to run one that was not.
    """

    experiment: Experiment
    scores: Content | None = None
    made: How = field(default_factory=How)
    inputs: str = ""
    here: bool = False
    stale: str = ""
    needs: tuple[str, ...] = ()


def gather(records: Mapping[str, Record]) -> list[Result]:
    """Every experiment there is, by name: files, and the variants of flags that were scored here or are recorded.

    One whose file is wrong, or whose plugin is not here, is left out with a line that says so.
    """
    scored = [path.parent.parent.name for path in Path("experiments").glob("*+*/score/manifest.json")]
    recorded = [name for name in records if "+" in name]
    results = []
    for name in sorted({*list_resources("experiments", ".toml"), *scored, *recorded}):
        try:
            if name in recorded and name not in scored:
                experiment = parse_experiment(name, records[name]["tables"], str(RECORDS))
            else:
                experiment = load_experiment(name)
            results.append(_result(experiment, records.get(name)))
        except IfqaError as error:
            say(f"experiment {name} is left out: {error}")
    return results


def _result(experiment: Experiment, record: Record | None) -> Result:
    """What is here; else what is recorded of just this experiment; else what it takes to run it."""
    found = _measured_here(experiment)
    if found is None:
        if record and _is_of(record, experiment):
            return Result(experiment, record["scores"], record["made"], record["inputs"])
        return Result(experiment, needs=needs(experiment))
    if record and (found.inputs, found.scores) == (record["inputs"], record["scores"]):
        return Result(experiment, found.scores, record["made"], found.inputs, here=True)  # the same, made again
    return found


def read_records() -> dict[str, Record]:
    """The recorded results by experiment.

    Raises:
        IfqaError: a line is not one that `updated` gives, or another one stands for the same experiment.
    """
    found: dict[str, Record] = {}
    for number, record in read_jsonl(RECORDS) if RECORDS.exists() else ():
        where = f"{RECORDS}:{number}"
        name = text_field(record, "experiment", where)
        content = {key: value for key, value in record.items() if key != "sha256"}
        if record.get("sha256") != _sha256(content) or content.keys() != _KEYS:
            raise IfqaError(f"{where}: the record of {name} was changed by hand; take the line out, and report again")
        if found.setdefault(name, cast(Record, record)) != record:
            raise IfqaError(f"{where}: there is another record of {name}; keep one of them, and report again")
    return found


def updated(records: Mapping[str, Record], results: Iterable[Result]) -> list[Record]:
    """The records, those of what is here and differs from them replaced, by name; none is dropped.

    A hash in each tells one that was changed by hand.
    """
    kept = dict(records)
    for one in results:
        name = one.experiment.name
        known = records.get(name)
        same = known and (known["inputs"], known["scores"]) == (one.inputs, one.scores)
        if one.here and not same:
            measured = {"inputs": one.inputs, "scores": one.scores, "made": dict(one.made)}
            content = {"experiment": name, "version": VERSION, "tables": as_tables(one.experiment), **measured}
            kept[name] = cast(Record, content | {"sha256": _sha256(content)})
    return [kept[name] for name in sorted(kept)]


def _sha256(record: Mapping[str, object]) -> str:
    return hashlib.sha256(json_line(record)).hexdigest()


def _is_of(record: Record, experiment: Experiment) -> bool:
    """Whether a record is of an experiment that does the same, scored as scores are now; what changes its speed aside."""
    if record["version"] != VERSION:
        return False
    try:
        recorded = parse_experiment(experiment.name, record["tables"], str(RECORDS))
    except IfqaError:  # a setting it had is no more
        return False
    return _settings(recorded) == _settings(experiment)


def _settings(experiment: Experiment) -> dict[str, object]:
    """All that decides what an experiment does; not what it expects, or how it is called."""
    tables = {key: value for key, value in as_tables(experiment).items() if key not in ("about", "table", "expected")}
    if experiment.retriever:
        tables["retriever"] = _of_retriever(experiment.retriever)
    if experiment.reader:
        tables["reader"] = identifying(load("reader", experiment.reader["name"]), experiment.reader)
    if experiment.llm:
        tables["llm"] = identifying(load("llm", experiment.llm["name"]), experiment.llm)
    return tables


def _of_retriever(table: RetrieverSettings) -> dict[str, object]:
    own = identifying(load("retriever", table["name"]), table)
    return own | ({"parts": [_of_retriever(part) for part in table["parts"]]} if "parts" in table else {})


def needs(experiment: Experiment) -> tuple[str, ...]:
    """What an experiment takes beside this package and its benchmark; told from its file alone, the same on every machine.

    Raises:
        IfqaError: its corpus's file is wrong or missing.
    """
    found = []
    corpus = load_corpus(experiment.corpus) if experiment.corpus else None
    formats = {source.get("format") for source in corpus.sources} if corpus and corpus.name != "sample" else set()
    found += ["the Wikipedia dump"] if "dump" in formats else []
    found += ["articles"] if "articles" in formats else []
    indexes = corpus.indexes if corpus else {}
    models = [indexes[index].get("model", "") for index in experiment.indexes if index in indexes]
    hub = any(model and not is_packaged(model) for model in models)
    trained = experiment.reader is not None and experiment.reader["name"] == "fid"
    llm: Mapping[str, object] = experiment.llm or {}
    found += ["a model of the hub"] if hub or llm.get("name") == "hf" else []
    found += ["a trained FiD"] if trained else []
    found += ["a GPU"] if hub or trained else []
    if llm.get("name") == "openai":
        found.append("a language model's server" if llm.get("base_url") else "a key")
    return tuple(found)


def _measured_here(experiment: Experiment) -> Result | None:
    """The scores below the working directory, if what they were made from is there still and is the same; None without any."""
    folder = experiment.folder / "score"
    if read_manifest(folder) is None:
        return None
    try:
        inputs = inputs_of_score(experiment)
    except IfqaError as error:
        return Result(experiment, stale=str(error))
    if not is_made(folder, inputs):
        return Result(experiment, stale=f"its settings, or a stage before, are others now: ifqa run {experiment.name}")
    return Result(experiment, read_scores(folder), _made(experiment), identity(inputs), here=True)


def _inputs(experiment: Experiment, sources: Known) -> dict[str, str]:
    """SHA-256 of the benchmark's files, the corpus's, and the reader's weights; each by its path within the project."""
    splits = [(experiment.benchmark, experiment.split)]
    for source in load_corpus(experiment.corpus, experiment.root).sources if experiment.corpus else ():
        splits += [(source["benchmark"], split) for split in source.get("splits", ()) if "benchmark" in source]
    files = [path for name, split in splits for path in open_benchmark(name, experiment.root).files(split)]
    hashes = {_within(path): sha256(path) for path in files}
    hashes |= {_within(Path(path)): str(facts[2]) for path, facts in sources.items()}
    weights = fingerprint("reader", experiment).get("files") if experiment.reader else None
    return dict(sorted(hashes.items())) | ({"the reader's weights": str(weights)} if weights else {})


def _within(path: Path) -> str:
    """A path as it is in the project, or below a folder that is a link there: not where this machine keeps it."""
    for place in (Path.cwd(), PACKAGE.parent):
        if path.is_relative_to(place):
            return path.relative_to(place).as_posix()
    return path.name


def _made(experiment: Experiment) -> How:
    found = {stage: read_manifest(experiment.folder / stage) for stage in experiment.stages}
    made = {stage: manifest["record"] for stage, manifest in found.items() if manifest}
    last = made[experiment.stages[-1]]
    told: How = {"at": last["at"], "hardware": last["hardware"], "python": last["python"], "commit": last["commit"]}
    told["seconds"] = {stage: one["seconds"] for stage, one in made.items()}
    told["libraries"] = last["libraries"]
    corpus = read_manifest(experiment.corpus_folder / "passages") if experiment.corpus else None
    told["inputs"] = _inputs(experiment, corpus["record"].get("sources", {}) if corpus else {})
    if "retrieve" in made:
        told["run"] = made["retrieve"]["files"]["run.trec"]["sha256"]
    if corpus:
        told["passages"] = corpus["record"]["passages"]
    asked = [one["spent"] for one in made.values() if "spent" in one]
    if asked:
        costs = [spent["cost"] for spent in asked if spent["cost"] is not None]
        told["cost"] = sum(costs) if len(costs) == len(asked) else None
        told["tokens"] = sum(sum(one["took"]) for one in made.values() if "took" in one)
    if experiment.llm and (model := experiment.llm.get("model")):
        told["model"] = model
    if "read" in made and (label := made["read"].get("label")):
        told["label"] = label
    if any(one.get("trained_on_them") for one in made.values()):
        told["trained_on_them"] = True
    return told
