"""The scores of all experiments, from runs below the root or from records.

`experiments/RESULTS.jsonl` keeps the scores of finished experiments and their provenance, one
record per line, so that a report needs no new run. A record is used if the experiment was not run
here and its file, corpus, questions and plugins are unchanged. Unused records stay in the file.
"""

import hashlib
import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NotRequired, Required

from typing_extensions import TypedDict

from ifqa.config.corpus import CorpusConfig, load_corpus
from ifqa.config.experiment import (
    Experiment,
    base_experiments,
    load_experiment,
    model_name,
    parse_experiment,
)
from ifqa.config.overrides import as_sections
from ifqa.corpus import work_units
from ifqa.errors import DamagedArtifact, IfqaError, MissingInput, PluginError
from ifqa.models.ledger import ModelFacts
from ifqa.models.places import FLAN_T5, SMOLLM2, is_packaged
from ifqa.pipeline.judge import VERSION as JUDGE_VERSION
from ifqa.pipeline.passages import PASSAGES
from ifqa.pipeline.run import Run
from ifqa.pipeline.score import SCORE
from ifqa.pipeline.served import OtherServer
from ifqa.pipeline.stages import stages_of
from ifqa.plugins import ConfiguredPlugin, code_fingerprint, plugin_names, source_file
from ifqa.prompting.judging import judge_prompt_path
from ifqa.records import fingerprint_questions
from ifqa.report.exposure import collect_models, exposure_mark
from ifqa.retrieval import queries
from ifqa.scoring.intervals import mend_intervals
from ifqa.scoring.per_question import VERSION
from ifqa.scoring.stored_scores import ScoresJson, parse_scores, read_scores
from ifqa.settings import Natural, NotNegative, check_shape
from ifqa.storage.artifacts import Artifact, StageRecord, compute_fingerprint
from ifqa.storage.files import json_line, read_jsonl, read_toml, sha256, text_field, unicode_text
from ifqa.storage.resources import PACKAGE, check_name, list_resources

logger = logging.getLogger(__name__)

RECORDS = Path("experiments/RESULTS.jsonl")
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


class RunFacts(TypedDict, total=False):
    """The provenance of scores; `run` and later keys are present only if they apply."""

    at: Required[str]  # ISO time
    hardware: Required[str]
    python: Required[str]
    commit: Required[str]
    seconds: Required[dict[str, NotNegative]]  # by stage
    libraries: dict[str, str]  # versions
    inputs: dict[str, str]  # file -> SHA-256: the benchmark's, the corpus's, the reader's weights
    run: str  # SHA-256 of run.trec
    passages: Natural  # of the corpus
    model: str
    # The user's own name for what a server has answered with; its address is in the manifest alone
    served_as: str
    cost: NotNegative | None  # of the last attempt in US dollars; None if the price is unknown
    tokens: Natural  # of all answers
    label: str
    trained_on_them: bool
    calibrated_on_them: bool
    models: dict[str, ModelFacts]  # what their files say of the models that the settings name


class Record(TypedDict):
    """A line of RESULTS.jsonl; `scores` is a `ScoresJson` of this version or an older one.

    Older records have no `identities`.
    """

    experiment: str
    version: int
    tables: dict[str, object]
    inputs: str
    scores: dict[str, object]
    made: RunFacts
    sha256: str
    identities: NotRequired[dict[str, str]]


@dataclass(frozen=True)
class Entry:
    """An experiment in the report, and its scores."""

    experiment: Experiment
    scores: ScoresJson | None = None  # None if it was not run, or its run is stale
    facts: RunFacts = field(
        default_factory=lambda: RunFacts(at="", hardware="", python="", commit="", seconds={})
    )
    inputs: str = ""  # the fingerprint of the scores' inputs
    stale: str = ""  # why its run is out of date
    needs: tuple[str, ...] = ()  # the requirements of an experiment that was not run
    # The scores of a local run as they are in its folder; `scores` have the reported intervals
    stored: ScoresJson | None = field(default=None, compare=False, repr=False)
    # The local run, if the scores are from it
    run: Run | None = field(default=None, compare=False, repr=False)

    @cached_property  # several tables show it
    def mark(self) -> str:
        """What its models have seen of the benchmark, by today's ledger; empty without scores."""
        return (
            exposure_mark(self.run or Run(self.experiment), self.facts.get("models"))
            if self.scores
            else ""
        )


def local_entries(root: Path = Path()) -> Iterator[tuple[str, Entry]]:
    """The scored experiments below the root: when each was scored, as ISO time, and its entry.

    Skips and logs any with a bad file or plugin.
    """
    for name in _scored_names(root):
        try:
            run = Run(load_experiment(name, root))
            if entry := _local_entry(run):
                yield _record_of(run.artifact(SCORE.name))["at"], entry
        except IfqaError as error:
            logger.info(f"skipping experiment {name}: {error}")


def _scored_names(root: Path) -> list[str]:
    paths = (root / "experiments").glob("*/score/manifest.json")
    return sorted(path.parent.parent.name for path in paths)


def gather_entries(records: Mapping[str, Record], root: Path = Path()) -> list[Entry]:
    """All experiments with a file, and scored or recorded variants, by name.

    Skips and logs any with a bad file or plugin.
    """
    local = {
        *list_resources("experiments", ".toml", root),
        *(name for name in _scored_names(root) if base_experiments(name, root)),
    }
    entries = []
    for name in sorted({*local, *records}):
        try:
            if name in local:
                entries.append(_make_entry(load_experiment(name, root), records.get(name)))
            elif base_experiments(check_name(name, "experiment"), root):
                entries.append(_make_entry(_recorded_variant(records[name], root), records[name]))
        except IfqaError as error:
            logger.info(f"skipping experiment {name}: {error}")
    return entries


def _recorded_variant(record: Record, root: Path) -> Experiment:
    """The experiment of a recorded variant, which has no file here."""
    name = record["experiment"]
    files = list_resources("experiments", ".toml", root)
    base = next((files[base] for base in base_experiments(name, root) if base in files), None)
    # Loading a plugin that no file here names would let a results file run code
    if strange := outside_plugins(record["tables"]) - (
        outside_plugins(read_toml(base)) if base else set()
    ):
        raise PluginError(
            f"its record in {RECORDS} names the plugin {min(strange)}, which no experiment "
            "file here names; plugins are not loaded for a record, so run the experiment here"
        )
    return parse_experiment(name, record["tables"], str(RECORDS), root)


def _make_entry(experiment: Experiment, record: Record | None) -> Entry:
    """The entry of the run below the root; without a run, of the valid record.

    Without both, with what a run needs.
    """
    run = Run(experiment)
    entry = _local_entry(run)
    if entry and record and (entry.inputs, entry.stored) == (record["inputs"], record["scores"]):
        return replace(entry, facts=record["made"])  # the recorded run was repeated
    if entry:
        return entry
    if record and _is_valid(record, run):
        stored = parse_scores(record["scores"], f"{RECORDS}: {experiment.name}")
        scores = mend_intervals(stored, experiment.scheme)
        return Entry(experiment, scores, record["made"], record["inputs"])
    return Entry(experiment, needs=list_needs(experiment))


def update_records(
    records: Mapping[str, Record], entries: Iterable[Entry]
) -> list[Mapping[str, object]]:
    """The records by name.

    Those that differ from a run below the working directory are replaced, and none are dropped.
    """
    updated: dict[str, Mapping[str, object]] = dict(records)
    for entry in entries:
        if entry.run:
            name = entry.experiment.name
            measured = {
                "inputs": entry.inputs,
                "identities": compute_identities(entry.run),
                "scores": entry.stored,
            }
            record: Mapping[str, object] = records.get(name, {})
            if any(record.get(key) != measured[key] for key in measured):
                head = {
                    "experiment": name,
                    "version": VERSION,
                    "tables": as_sections(entry.experiment),
                }
                updated[name] = seal(head | measured | {"made": dict(entry.facts)})
    return [updated[name] for name in sorted(updated)]


def _is_valid(record: Record, run: Run) -> bool:
    """Whether a record has a run's scorer, settings (except those that only change speed) and those
    `identities` known here.
    """
    experiment = run.experiment
    if record["version"] != VERSION or outside_plugins(record["tables"]) - outside_plugins(
        as_sections(experiment)
    ):
        return False
    try:
        recorded = parse_experiment(
            experiment.name, record["tables"], str(RECORDS), experiment.root
        )
    except IfqaError:  # a setting has been removed since
        return False
    if _identity_sections(recorded) != _identity_sections(experiment):
        return False
    with suppress(IfqaError):  # a part's questions stay the same if the split grows
        size = len(run.split)
        if record["scores"].get("of", size) != size:
            return False
    known = record.get("identities", {})
    return not known or all(
        known.get(key, digest) == digest for key, digest in compute_identities(run).items()
    )


def _identity_sections(experiment: Experiment) -> dict[str, object]:
    """The sections that determine the scores: all but name, description, heading and expected
    values.
    """
    sections = {
        key: part
        for key, part in as_sections(experiment).items()
        if key not in ("name", "about", "table", "expected")
    }
    plugins = {
        "retriever": experiment.retriever,
        "reader": experiment.reader,
        "llm": experiment.llm,
        "judge": experiment.judge,
    }
    return sections | {key: plugin.identity_section for key, plugin in plugins.items() if plugin}


def list_needs(experiment: Experiment) -> tuple[str, ...]:
    """What a run needs besides this package and the benchmark, by its file alone, so that every
    machine lists the same.
    """
    corpus = load_corpus(experiment.corpus, experiment.root) if experiment.corpus else None
    needs = _needs_of_sources(corpus) if corpus else []
    uses_hub = corpus is not None and _searches_hub_model(corpus, experiment)
    is_small = experiment.llm_setting("model") == SMOLLM2.name
    if uses_hub or (experiment.llm and experiment.llm.name == "hf" and not is_small):
        needs.append("a model of the hub")
    if is_small:
        needs.append(f"SmolLM2 (ifqa data {SMOLLM2.name})")
    reader = experiment.reader.name if experiment.reader else ""
    is_shipped = reader == "fid" and not experiment.reader_setting("checkpoint")
    if is_shipped:
        needs.append(f"Flan-T5-small (ifqa data {FLAN_T5.name})")
    elif reader in _WEIGHTS:
        needs.append(_WEIGHTS[reader])
    if uses_hub or (reader in _ON_GPU and not is_shipped):
        needs.append("a GPU")
    judge = experiment.judge.model if experiment.judge else None
    for model in (experiment.llm, judge):
        if model and model.name == "openai":
            has_address = model.section().get("base_url")
            needs.append("a language model's server" if has_address else "a key")
    if judge and judge.name != "openai":
        needs.append(f"the judge {model_name(judge)}")
    return tuple(dict.fromkeys(needs))


def _needs_of_sources(corpus: CorpusConfig) -> list[str]:
    """What the sources of a corpus need, each once; the bundled sample needs nothing."""
    if corpus.name == "sample":
        return []
    needs = {source.name: source.plugin.needs for source in corpus.sources}
    in_order = [*plugin_names("source"), *needs]
    return [needs[name] for name in dict.fromkeys(in_order) if needs.get(name)]


def _searches_hub_model(corpus: CorpusConfig, experiment: Experiment) -> bool:
    """Whether a searched index is of a model that does not ship with ifqa."""
    searched = [corpus.indexes[name] for name in experiment.indexes if name in corpus.indexes]
    models = [str(index.section().get("model", "")) for index in searched]
    return any(model and not is_packaged(model) for model in models)


def _local_entry(run: Run) -> Entry | None:
    """The scores below the working directory, or why they are stale; None without scores."""
    experiment = run.experiment
    artifact = run.artifact(SCORE.name)
    if artifact.manifest is None:
        return None
    try:
        inputs = run.inputs(SCORE)
    except OtherServer:  # whose message has addresses
        return Entry(experiment, stale="its answers are of another server than its settings name")
    except IfqaError as error:
        return Entry(experiment, stale=str(error))
    if not artifact.is_current_for(inputs):
        return Entry(
            experiment,
            stale=f"its settings or an earlier stage changed: ifqa run {experiment.name}",
        )
    stored = read_scores(artifact.folder)
    return Entry(
        experiment,
        mend_intervals(stored, experiment.scheme),
        collect_facts(run),
        compute_fingerprint(inputs),
        stored=stored,
        run=run,
    )


def read_records(root: Path = Path()) -> dict[str, Record]:
    records: dict[str, Record] = {}
    for number, line in read_jsonl(root / RECORDS) if (root / RECORDS).exists() else ():
        where = f"{RECORDS}:{number}"
        name = text_field(line, "experiment", where)
        unicode_text(json.dumps(line, ensure_ascii=False), "experiment", where)
        if line != seal(line):
            raise DamagedArtifact(
                f"{where}: the record of {name} was changed by hand; remove it, then report again"
            )
        record = check_shape(Record, line, where)
        if record["version"] == VERSION:  # the scores of an older scorer may have another shape
            parse_scores(record["scores"], f"{where}: scores")
        if records.setdefault(name, record) != record:
            raise DamagedArtifact(
                f"{where}: a second record of {name}; remove one of them, then report again"
            )
    return records


def seal(record: Mapping[str, object]) -> dict[str, object]:
    """A record with a hash that reveals changes by hand."""
    content = {key: record[key] for key in record if key != "sha256"}
    return content | {"sha256": hashlib.sha256(json_line(content)).hexdigest()}


def outside_plugins(sections: object) -> set[str]:
    """The plugins "my_module:Class" in an experiment's settings.

    Loading one runs the module's code.
    """
    if isinstance(sections, list):
        return set[str]().union(*map(outside_plugins, sections))
    if not isinstance(sections, Mapping):
        return set()
    measures = sections.get("measures")
    names = [
        sections.get("name"),
        sections.get("benchmark"),
        *(measures if isinstance(measures, list) else []),
    ]
    outside = {name for name in names if isinstance(name, str) and ":" in name}
    return outside.union(*map(outside_plugins, sections.values()))


def collect_facts(run: Run) -> RunFacts:
    """The provenance of a finished experiment's scores, from the manifests of its corpus and
    stages.
    """
    experiment = run.experiment
    stages = {stage.name: _record_of(run.artifact(stage.name)) for stage in stages_of(run)}
    corpus = _record_of(run.corpus.artifact(PASSAGES.name)) if run.corpus else None
    last = stages[stages_of(run)[-1].name]
    facts: RunFacts = {
        "at": last["at"],
        "hardware": last["hardware"],
        "python": last["python"],
        "commit": last["commit"],
        "seconds": {stage: record["seconds"] for stage, record in stages.items()},
        "libraries": last["libraries"],
        "inputs": _input_hashes(run, corpus.get("sources", {}) if corpus else {}),
    }
    if "retrieve" in stages and (rankings := stages["retrieve"]["files"].get("run.trec")):
        facts["run"] = rankings["sha256"]
    if corpus:
        facts["passages"] = corpus["passages"]
    # Those that may ask a model: the score stage asks a judge
    asking = [*stages.values(), _record_of(run.artifact(SCORE.name))]
    if usages := [record["spent"] for record in asking if "spent" in record]:
        costs = [usage["cost"] for usage in usages if usage["cost"] is not None]
        facts["cost"] = sum(costs) if len(costs) == len(usages) else None
        facts["tokens"] = sum(sum(record["took"]) for record in asking if "took" in record)
    if model := experiment.llm_setting("model"):
        facts["model"] = model
    if served_as := experiment.llm_setting("served_as"):
        facts["served_as"] = served_as
    if models := collect_models(run):
        facts["models"] = models
    if "read" in stages and (label := stages["read"].get("label")):
        facts["label"] = label
    if any(record.get("trained_on_them") for record in stages.values()):
        facts["trained_on_them"] = True
    if any(record.get("calibrated_on_them") for record in stages.values()):
        facts["calibrated_on_them"] = True
    return facts


def _record_of(artifact: Artifact) -> StageRecord:
    if artifact.manifest is None:
        raise MissingInput(f"{artifact.folder} has no manifest; run that stage first")
    return artifact.manifest["record"]


def _input_hashes(run: Run, sources: work_units.KnownFiles) -> dict[str, str]:
    """SHA-256 of the files of the benchmark, the corpus and the reader's weights, by path within
    the project.
    """
    splits = [(run.experiment.benchmark, run.experiment.split)]
    for source in run.corpus.corpus.sources if run.corpus else ():
        splits += source.splits()
    files = [path for name, split in splits for path in run.plugins.benchmark(name).files(split)]
    hashes = {_portable_path(path): sha256(path) for path in files}
    hashes |= {_portable_path(Path(path)): str(facts[2]) for path, facts in sources.items()}
    reader = run.experiment.reader
    weights = run.fingerprint(reader).get("files") if reader else None
    return dict(sorted(hashes.items())) | (
        {"the reader's weights": str(weights)} if weights else {}
    )


def _portable_path(path: Path) -> str:
    """A path relative to the working directory or the repository, else only its name, so that no
    record has a local path.
    """
    path = path.absolute()
    roots = (root for root in (Path.cwd(), PACKAGE.parent) if path.is_relative_to(root))
    return next((path.relative_to(root).as_posix() for root in roots), path.name)


def compute_identities(run: Run) -> dict[str, str]:
    """Fingerprints of the scores' inputs other than the settings.

    A record with different fingerprints is out of date.

    "code": the plugins, by version or by the SHA-256 of their files; "corpus": the settings of its
    sources and of the searched indexes, without paths; "questions"; "training": the training
    questions, if the benchmark has some; "files": the files that retriever and reader read;
    "judge": a judge's prompt, and how its replies are read. A key is left out if its files are
    missing.
    """
    experiment = run.experiment
    identities = {"code": compute_fingerprint(_code_fingerprints(run))}
    with suppress(IfqaError):
        identities["questions"] = fingerprint_questions(run.questions)
    with suppress(IfqaError):
        if split := run.benchmark.training_split(experiment.split):
            identities["training"] = fingerprint_questions(
                run.questions_of(experiment.benchmark, split)
            )
    with suppress(IfqaError):
        identities["files"] = compute_fingerprint(
            {plugin.kind: _file_hashes(run.fingerprint(plugin)) for plugin in experiment.asked}
        )
    if experiment.judge:
        with suppress(IfqaError):
            path = judge_prompt_path(experiment.judge.prompt, experiment.root)
            identities["judge"] = compute_fingerprint(
                {"version": JUDGE_VERSION, "prompt": sha256(path)}
            )
    if run.corpus:
        identities["corpus"] = compute_fingerprint(
            _corpus_settings(run.corpus.corpus, experiment.indexes)
        )
    return identities


def _code_fingerprints(run: Run) -> dict[str, object]:
    """The version or hash of each plugin by its kind and name."""
    experiment = run.experiment
    steps = list(experiment.retriever.steps) if experiment.retriever else []
    judge = experiment.judge.model if experiment.judge else None
    others = (experiment.reader, experiment.llm, judge)
    plugins: list[ConfiguredPlugin[Any]] = [*steps, *(plugin for plugin in others if plugin)]
    code: dict[str, object] = {
        f"benchmark {experiment.benchmark}": code_fingerprint(type(run.benchmark)),
        **{f"{plugin.kind} {plugin.name}": code_fingerprint(plugin.plugin) for plugin in plugins},
    }
    modules = {name.partition(":")[0] for name in experiment.measures if ":" in name}
    code |= {f"measures of {name}": sha256(source_file(name)) for name in modules}
    if any(step.rewrites_questions for step in steps):
        code["queries"] = queries.VERSION
    return code


def _file_hashes(fingerprint: Mapping[str, object]) -> dict[str, object]:
    """The file hashes in a fingerprint, its parts and its language model."""
    llm = fingerprint.get("llm")
    parts = fingerprint.get("parts")
    hashes: dict[str, object] = {"files": fingerprint.get("files", "")}
    hashes["parts"] = [_file_hashes(part) for part in parts] if isinstance(parts, list) else []
    return hashes | ({"llm": _file_hashes(llm)} if isinstance(llm, Mapping) else {})


def _corpus_settings(corpus: CorpusConfig, indexes: Iterable[str]) -> dict[str, object]:
    """The settings of a corpus's sources and searched indexes, without paths or defaults, so that
    new settings change nothing.
    """
    searched = {name: corpus.indexes[name] for name in indexes if name in corpus.indexes}
    return {
        "sources": [source.changed_section for source in corpus.sources],
        "version": work_units.VERSION,
        "indexes": {
            name: [index.changed_section, code_fingerprint(index.plugin)]
            for name, index in searched.items()
        },
    }
