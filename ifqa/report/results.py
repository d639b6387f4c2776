"""The results of all experiments: scores from runs below the working directory, or from records.

`experiments/RESULTS.jsonl` keeps the scores of finished experiments, so that a report needs no new run. A record is used if the
experiment was not run here, and its file, corpus, questions and plugins are unchanged. A record that is not used stays in the
file.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from ifqa.config.corpus import load_corpus
from ifqa.config.experiment import Experiment, RetrieverSettings, bases, load_experiment, parse_experiment
from ifqa.config.overrides import as_tables
from ifqa.corpus.sources import FORMATS, kind_of
from ifqa.errors import IfqaError
from ifqa.models.hub import is_packaged
from ifqa.models.pypi_weights import SMOLLM2
from ifqa.pipeline.run import Run, identifying
from ifqa.plugins import load
from ifqa.progress import say
from ifqa.report.results_log import RECORDS, Record, RunFacts, identities, made, outside_plugins, sealed
from ifqa.scoring.per_question import VERSION, Content
from ifqa.scoring.score_files import read_scores
from ifqa.storage.artifacts import identity
from ifqa.storage.files import read_toml
from ifqa.storage.resources import list_resources, plain_name

#: Reader -> the file or weights that it needs.
_WEIGHTS = {
    "adaboost": "trained trees",
    "choice": "a trained encoder",
    "decomp-attn": "a trained decomp-attn",
    "fid": "a trained FiD",
    "predictions": "a file of answers",
    "rag": "a trained RAG",
    "unifiedqa": "UnifiedQA's weights",
}
_ON_GPU = ("choice", "fid", "rag", "unifiedqa")


@dataclass(frozen=True)
class Result:
    """One experiment and its scores.

    Attributes:
        experiment: the experiment.
        scores: as `stages.score` writes them; None if it was not run, or its run is stale.
        made: how the scores were made; empty without scores.
        inputs: the identity of what the scores were made from.
        here: whether the run is below the root that was asked for.
        stale: why the run no longer counts; empty if it does.
        needs: what it takes to run an experiment that was not run.
        run: what is known of a run below the root.
    """

    experiment: Experiment
    scores: Content | None = None
    made: RunFacts = field(default_factory=lambda: cast(RunFacts, {}))
    inputs: str = ""
    here: bool = False
    stale: str = ""
    needs: tuple[str, ...] = ()
    run: Run | None = field(default=None, compare=False, repr=False)


def gather(records: Mapping[str, Record], root: Path = Path()) -> list[Result]:
    """The results of all experiments below `root`, by name: those with a file, and variants that were scored or recorded.

    An experiment whose file is wrong, or whose plugin is missing, is left out; a line on stderr says so.
    """
    scored = [path.parent.parent.name for path in (root / "experiments").glob("*/score/manifest.json")]
    here = {*list_resources("experiments", ".toml", root), *(name for name in scored if bases(name, root))}
    results = []
    for name in sorted({*here, *records}):
        try:
            if name in here:
                results.append(_result(load_experiment(name, root), records.get(name)))
            elif bases(plain_name(name, "experiment"), root):
                results.append(_result(_recorded_variant(records[name], root), records[name]))
        except IfqaError as error:
            say(f"experiment {name} is left out: {error}")
    return results


def _recorded_variant(record: Record, root: Path) -> Experiment:
    """The experiment of a recorded variant, which has no file here.

    Raises:
        IfqaError: its tables are wrong, or they name an outside plugin that the base experiment's file does not name.
            Loading such a plugin would run code because a file of results asks for it.
    """
    name, files = record["experiment"], list_resources("experiments", ".toml", root)
    base = next((files[one] for one in bases(name, root) if one in files), None)
    if strange := outside_plugins(record["tables"]) - (outside_plugins(read_toml(base)) if base else set()):
        raise IfqaError(
            f"its record in {RECORDS} names the plugin {min(strange)}, which no experiment file here names; "
            "plugins are not loaded for a record, so run the experiment here"
        )
    return parse_experiment(name, record["tables"], str(RECORDS), root)


def _result(experiment: Experiment, record: Record | None) -> Result:
    """The run below the root; else the record, if it is still valid; else what a run needs."""
    run = Run(experiment)
    result = _measured_here(run)
    if result is None:
        if record and _is_of(record, run):
            return Result(experiment, record["scores"], record["made"], record["inputs"])
        return Result(experiment, needs=needs(experiment))
    if record and (result.inputs, result.scores) == (record["inputs"], record["scores"]):
        return replace(result, made=record["made"])  # the same run made again
    return result


def updated(records: Mapping[str, Record], results: Iterable[Result]) -> list[Record]:
    """The records by name, with those replaced that differ from a run below the working directory; none is dropped."""
    kept = dict(records)
    for result in results:
        if not result.run or not result.here:
            continue
        name, current = result.experiment.name, identities(result.run)
        known, new = records.get(name), (result.inputs, result.scores, current)
        if not known or (known["inputs"], known["scores"], known.get("identities")) != new:
            head = {"experiment": name, "version": VERSION, "tables": as_tables(result.experiment)}
            measured = {"inputs": result.inputs, "identities": current, "scores": result.scores}
            kept[name] = sealed(head | measured | {"made": dict(result.made)})
    return [kept[name] for name in sorted(kept)]


def _is_of(record: Record, run: Run) -> bool:
    """Whether a record is still valid for an experiment: the same scorer and tables; settings that change speed may differ.

    Where the record has `identities`, those that can be computed on this machine must be the same too.
    """
    experiment = run.experiment
    if record["version"] != VERSION or outside_plugins(record["tables"]) - outside_plugins(as_tables(experiment)):
        return False
    try:
        recorded = parse_experiment(experiment.name, record["tables"], str(RECORDS), experiment.root)
    except IfqaError:  # a setting was removed since
        return False
    if _settings(recorded) != _settings(experiment):
        return False
    known = record.get("identities", {})
    return not known or all(known.get(key, value) == value for key, value in identities(run).items())


def _settings(experiment: Experiment) -> dict[str, object]:
    """The tables that decide what an experiment does: not its description, its heading and its expected values."""
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
    """What a run needs beside this package and the benchmark; from the experiment's file alone, the same on every machine.

    Raises:
        IfqaError: its corpus's file is wrong or missing.
    """
    found = []
    corpus = load_corpus(experiment.corpus, experiment.root) if experiment.corpus else None
    kinds = set(map(kind_of, corpus.sources)) if corpus and corpus.name != "sample" else set()
    found += [kind.needs for kind in FORMATS.values() if kind in kinds and kind.needs]
    indexes = corpus.indexes if corpus else {}
    models = [indexes[index].get("model", "") for index in experiment.indexes if index in indexes]
    hub = any(model and not is_packaged(model) for model in models)
    llm: Mapping[str, object] = experiment.llm or {}
    small = llm.get("model") == SMOLLM2.name
    found += ["a model of the hub"] if hub or (llm.get("name") == "hf" and not small) else []
    found += [f"SmolLM2 (ifqa data {SMOLLM2.name})"] if small else []
    reader = experiment.reader["name"] if experiment.reader else ""
    found += [_WEIGHTS[reader]] if reader in _WEIGHTS else []
    found += ["a GPU"] if hub or reader in _ON_GPU else []
    if llm.get("name") == "openai":
        found.append("a language model's server" if llm.get("base_url") else "a key")
    return tuple(found)


def _measured_here(run: Run) -> Result | None:
    """The scores below the working directory, or why they are stale; None if there are none."""
    experiment, artifact = run.experiment, run.artifact("score")
    if artifact.manifest is None:
        return None
    try:
        inputs = run.inputs("score")
    except IfqaError as error:
        return Result(experiment, stale=str(error))
    if not artifact.is_made_from(inputs):
        return Result(experiment, stale=f"its settings, or a stage before, are others now: ifqa run {experiment.name}")
    scores = read_scores(artifact.folder)
    return Result(experiment, scores, made(run), identity(inputs), here=True, run=run)
