"""What every experiment scored, here or where it was recorded before, and how that was made.

`experiments/RESULTS.jsonl` keeps the scores of finished experiments, so that a report needs no run to be made again. A record
stands for its experiment where that is not run here and its file still says the same.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ifqa.artifacts import identity, is_made, read_manifest
from ifqa.errors import IfqaError
from ifqa.experiment import Experiment, load_corpus, load_experiment, parse_experiment
from ifqa.files import json_line, list_resources, read_json, read_jsonl, text_field
from ifqa.hub import is_packaged
from ifqa.progress import say
from ifqa.provenance import wanted_score
from ifqa.variants import as_tables

RECORDS = Path("experiments/RESULTS.jsonl")
_NOT_SETTINGS = ("about", "table", "expected")


@dataclass(frozen=True)
class Result:
    """One experiment and what came of it.

    `scores` are as `stages.score` writes them, None where it was not run, or where `stale` says why what is here no longer
    counts. `made` says how: "at" (ISO time), "hardware", "python", "commit", "seconds" (stage -> seconds), "passages" (of the
    corpus), "model", "cost" of the last attempt (US dollars, None where the price is unknown) and "tokens" of all answers where
    a language model was asked, "label", "trained_on_them". `wanted` is the identity of what the scores were made from, and
    `here` whether they lie below the working directory.
    """

    experiment: Experiment
    scores: dict[str, Any] | None = None
    made: Mapping[str, Any] = field(default_factory=dict)
    wanted: str = ""
    here: bool = False
    stale: str = ""


def gather() -> list[Result]:
    """Every experiment there is, by name: files, flags' variants, and variants that are only recorded.

    One whose file is wrong, or whose plug is not here, is left out with a line that says so.

    Raises:
        IfqaError: the records are wrong.
    """
    records = read_records()
    variants = [path.parent.name for path in Path("experiments").glob("*/experiment.toml")]
    results = []
    for name in sorted({*list_resources("experiments", ".toml"), *variants, *(one for one in records if "+" in one)}):
        record = records.get(name)
        try:
            if record and "+" in name and name not in variants:
                experiment = parse_experiment(name, record["tables"], str(RECORDS))
            else:
                experiment = load_experiment(name)
            results.append(_result(experiment, record))
        except IfqaError as error:
            say(f"experiment {name} is left out: {error}")
    return results


def _result(experiment: Experiment, record: Mapping[str, Any] | None) -> Result:
    """What is here; else what is recorded of just this experiment; else nothing."""
    found = _measured_here(experiment)
    if found is None:
        if record and _settings(record["tables"]) == _settings(as_tables(experiment)):
            return Result(experiment, record["scores"], record["made"], record["wanted"])
        return Result(experiment)
    if record and (found.wanted, found.scores) == (record["wanted"], record["scores"]):
        return Result(experiment, found.scores, record["made"], found.wanted, here=True)  # the same, made again
    return found


def read_records() -> dict[str, dict[str, Any]]:
    """The recorded results by experiment.

    Raises:
        IfqaError: a line is not one that `records` gives, or stands for an experiment that has one already.
    """
    found: dict[str, dict[str, Any]] = {}
    for number, record in read_jsonl(RECORDS) if RECORDS.exists() else ():
        where = f"{RECORDS}:{number}"
        name, known = text_field(record, "experiment", where), record.pop("sha256", "")
        if known != _sha256(record) or name in found:
            what = "stands there twice" if name in found else "was changed by hand"
            raise IfqaError(f"{where}: the record of {name} {what}; take the line out, and report again")
        found[name] = record
    return found


def records(results: Iterable[Result]) -> Iterator[dict[str, Any]]:
    """What is kept of results; a hash in each tells a line that was changed by hand."""
    for one in results:
        if one.scores:
            tables = _settings(as_tables(one.experiment))
            made = {"wanted": one.wanted, "scores": one.scores, "made": dict(one.made)}
            record = {"experiment": one.experiment.name, "tables": tables, **made}
            yield record | {"sha256": _sha256(record)}


def _sha256(record: dict[str, Any]) -> str:
    return hashlib.sha256(json_line(record)).hexdigest()


def _settings(tables: Mapping[str, Any]) -> dict[str, Any]:
    """All that an experiment's file says of what is to be done; not what it expects or how it is called."""
    return {key: value for key, value in tables.items() if key not in _NOT_SETTINGS}


def needs(experiment: Experiment) -> list[str]:
    """What an experiment takes that not everybody has; told from its file alone, so that it is the same everywhere."""
    found = []
    corpus = load_corpus(experiment.corpus) if experiment.corpus else None
    dump = corpus is not None and any(source.get("format") == "dump" for source in corpus.sources)
    if dump and experiment.corpus != "sample":
        found.append("the Wikipedia dump")
    models = [corpus.indexes[index].get("model", "") for index in experiment.indexes] if corpus else []
    if any(model and not is_packaged(model) for model in models):
        found.append("a model of the hub")
    if experiment.reader and experiment.reader["name"] == "fid":
        found.append("a trained FiD")
    if "a model of the hub" in found or "a trained FiD" in found:
        found.append("a GPU")
    llm: Mapping[str, Any] = experiment.llm or {}
    if llm.get("name") == "openai":
        found.append("a language model's server" if llm.get("base_url") else "a key")
    if llm.get("name") == "hf":
        found.append("a model of the hub")
    return list(dict.fromkeys(found))


def _measured_here(experiment: Experiment) -> Result | None:
    """The scores below the working directory, if what they were made from is there still and is the same; None without any."""
    folder = experiment.folder / "score"
    if read_manifest(folder) is None:
        return None
    try:
        wanted = wanted_score(experiment)
    except IfqaError as error:
        return Result(experiment, stale=str(error))
    if not is_made(folder, wanted):
        return Result(experiment, stale=f"its settings, or a stage before, are others now: ifqa run {experiment.name}")
    return Result(experiment, read_json(folder / "scores.json"), _made(experiment), identity(wanted), here=True)


def _made(experiment: Experiment) -> dict[str, Any]:
    found = {stage: read_manifest(experiment.folder / stage) for stage in ("retrieve", "read", "score")}
    made = {stage: manifest["made"] for stage, manifest in found.items() if manifest}
    work = made.get("read") or made["retrieve"]
    told: dict[str, Any] = {key: work[key] for key in ("at", "hardware", "python", "commit")}
    told["seconds"] = {stage: one["seconds"] for stage, one in made.items() if stage != "score"}
    corpus = read_manifest(Path("indexes") / experiment.corpus / "passages") if experiment.corpus else None
    if corpus:
        told["passages"] = corpus["made"]["passages"]
    asked = [one["spent"] for one in made.values() if "spent" in one]
    if asked:
        costs = [spent["cost"] for spent in asked]
        told["cost"] = None if None in costs else sum(costs)
        told["tokens"] = sum(sum(one["took"]) for one in made.values() if "took" in one)
    if model := (experiment.llm or {}).get("model"):
        told["model"] = model
    if label := made.get("read", {}).get("label"):
        told["label"] = label
    if any(one.get("trained_on_them") for one in made.values()):
        told["trained_on_them"] = True
    return told
