"""What every experiment scored, here or where it was recorded before, and how that was made.

`experiments/RESULTS.jsonl` keeps the scores of finished experiments, so that a report needs no run to be made again. A record
counts as long as its experiment's file says the same.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ifqa.artifacts import identity, is_made, read_manifest
from ifqa.errors import IfqaError
from ifqa.experiment import Experiment, load_corpus, load_experiment
from ifqa.files import field, list_resources, read_json, read_jsonl, text_field
from ifqa.hub import is_packaged
from ifqa.progress import say
from ifqa.provenance import wanted_score
from ifqa.variants import as_tables

RECORDS = Path("experiments/RESULTS.jsonl")


@dataclass(frozen=True)
class Result:
    """One experiment and what came of it.

    `scores` are as `summarise` gives them, None where it was not run. `made` says how: "at" (ISO time), "hardware", "python",
    "commit", "seconds" (stage -> seconds), "passages" (of the corpus), "cost" (US dollars, None where the price is unknown)
    and "tokens" where a language model was asked, "label", "trained_on_them". `here` is whether its stages lie below the
    working directory.
    """

    experiment: Experiment
    scores: dict[str, Any] | None
    made: dict[str, Any]
    here: bool = False


def gather() -> list[Result]:
    """Every experiment there is, flags' variants too, by name. What is recorded of one that is gone goes with it.

    Raises:
        IfqaError: an experiment's file or the records are wrong.
    """
    records = read_records()
    variants = [path.parent.name for path in Path("experiments").glob("*/experiment.toml")]
    results = []
    for name in sorted({*list_resources("experiments", ".toml"), *variants}):
        experiment = load_experiment(name)
        record = records.get(name, {})
        here = _measured_here(experiment)
        if here and record.get("wanted") == here.made["wanted"] and record.get("scores") == here.scores:
            results.append(Result(experiment, here.scores, record["made"] | {"wanted": record["wanted"]}, here=True))
        elif here:
            results.append(here)
        elif record.get("settings") == settings_identity(experiment):
            results.append(Result(experiment, record["scores"], record["made"] | {"wanted": record["wanted"]}))
        else:
            results.append(Result(experiment, None, {}))
    return results


def read_records() -> dict[str, Any]:
    """The recorded results by experiment.

    Raises:
        IfqaError: the file is not what `records` gives.
    """
    found = dict[str, Any]()
    for number, record in read_jsonl(RECORDS) if RECORDS.exists() else ():
        where = f"{RECORDS}:{number}"
        name = text_field(record, "experiment", where)
        for key, kind in (("settings", str), ("wanted", str), ("scores", dict), ("made", dict)):
            field(record, key, kind, where)
        found[name] = record
    return found


def records(results: Iterable[Result]) -> Iterator[dict[str, Any]]:
    """What is kept of results."""
    for one in results:
        if one.scores:
            yield {
                "experiment": one.experiment.name,
                "settings": settings_identity(one.experiment),
                "wanted": one.made["wanted"],
                "scores": one.scores,
                "made": {key: value for key, value in one.made.items() if key != "wanted"},
            }


def settings_identity(experiment: Experiment) -> str:
    """Hash of all that an experiment's file says of what is to be done; not of what it expects or how it is called."""
    tables = {key: value for key, value in as_tables(experiment).items() if key not in ("about", "table", "expected")}
    return hashlib.sha256(json.dumps(tables, sort_keys=True).encode()).hexdigest()


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
    folder = experiment.folder / "score"
    if read_manifest(folder) is None:
        return None
    try:
        wanted = wanted_score(experiment)
    except IfqaError as error:
        say(f"{folder} is left out: {error}")
        return None
    if not is_made(folder, wanted):
        say(f"{folder} is left out, for it is not of what the experiment says now: ifqa run {experiment.name}")
        return None
    return Result(
        experiment, read_json(folder / "scores.json"), _made(experiment) | {"wanted": identity(wanted)}, here=True
    )


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
    if label := made.get("read", {}).get("label"):
        told["label"] = label
    if any(one.get("trained_on_them") for one in made.values()):
        told["trained_on_them"] = True
    return told
