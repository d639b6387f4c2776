"""`Run`: an experiment, and everything that a command reads or computes for it, each only once.

The `inputs` of a stage decide its reuse: settings, identities of input artifacts, the plugin's
code. An artifact's identity is the hash of its own inputs, so a change shows in every later stage.
Nothing is written here.
"""

import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, TypeVar

from ifqa.config.corpus import CorpusConfig, build_settings, load_corpus
from ifqa.config.experiment import (
    Experiment,
    ModelSettings,
    ReaderSettings,
    RetrieverSettings,
    base_experiments,
    retriever_sections,
    search_settings,
)
from ifqa.corpus import work_units
from ifqa.corpus.languages import ENGLISH
from ifqa.corpus.passage_store import PassageStore
from ifqa.corpus.shard_writer import read_file_records
from ifqa.corpus.sources import open_source
from ifqa.corpus.work_units import FileRecord, KnownFiles, Source
from ifqa.errors import ConfigError, IfqaError
from ifqa.plugins import accepted_arguments, code_fingerprint, resolve_paths, source_file
from ifqa.protocols import Benchmark, IndexedRetriever, Plugin, Trainable
from ifqa.records import Question, fingerprint_questions
from ifqa.retrieval import queries
from ifqa.scoring import per_question
from ifqa.settings import default_settings
from ifqa.storage.artifacts import Artifact, Manifest, compute_fingerprint
from ifqa.storage.files import sha256

_T = TypeVar("_T")
Kind = Literal["retriever", "reader"]
Stage = Literal["retrieve", "read", "score"]
# Stages that may ask a language model
LLM_STAGES: Mapping[str, Kind] = {"retrieve": "retriever", "read": "reader"}


class OtherServer(ConfigError):
    """A finished stage is of another server than the one that a run would ask."""


class _ArtifactFolder:
    """The artifacts of a folder and their inputs; each is read or computed once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._artifacts: dict[str, Artifact] = {}
        self._inputs: dict[str, dict[str, object]] = {}

    def artifact(self, part: str) -> Artifact:
        """The artifact of a part: "passages" or an index's name for a corpus, a stage for an
        experiment.
        """
        if part not in self._artifacts:
            self._artifacts[part] = Artifact(self.folder / part, self.incomplete)
        return self._artifacts[part]

    @property
    def incomplete(self) -> tuple[str, ...]:
        """Counts of a manifest's record that make an artifact incomplete, so that it is made
        again.
        """
        return ("retry",)

    def inputs(self, part: str) -> dict[str, object]:
        """The inputs of a part.

        IfqaError if an artifact that it needs is missing, damaged or stale.
        """
        if part not in self._inputs:
            self._inputs[part] = self._inputs_of(part)
        return self._inputs[part]

    def _inputs_of(self, part: str) -> dict[str, object]:
        raise NotImplementedError

    def is_current(self, part: str) -> bool:
        """Whether a part was built from its current inputs; False if an input is missing."""
        try:
            return self.artifact(part).is_current_for(self.inputs(part))
        except IfqaError:
            return False

    def finished(self, part: str, command: str) -> Manifest:
        """The manifest of a part; if it is missing, damaged or stale, IfqaError names `command`."""
        self.artifact(part).require(command)  # a missing part is reported before missing inputs
        return self.artifact(part).require(command, self.inputs(part))


class CorpusBuild(_ArtifactFolder):
    """A corpus with its sources, passages and indexes, each read once."""

    def __init__(
        self,
        corpus: CorpusConfig,
        questions: Callable[[str, str], list[Question]] | None = None,
        folder: Path | None = None,
    ) -> None:
        """`questions` returns a benchmark's split, for gold passages.

        By default it is read from the benchmark.

        `folder` has links of its parts, for a system that is served while they are built again.
        """
        super().__init__(folder or corpus.folder)
        self.corpus = corpus
        self._questions = questions or (
            lambda name, split: corpus.plugins.benchmark(name).questions(split)
        )

    @cached_property
    def sources(self) -> list[Source]:
        """Its sources, checked: IfqaError if a setting is wrong, or a source's file or split is
        missing.
        """
        return [
            open_source(section, self.corpus.root, self._questions_of)
            for section in self.corpus.sources
        ]

    def _questions_of(self, benchmark: str, splits: Sequence[str]) -> list[list[Question]]:
        if not splits:
            known = ", ".join(self.corpus.plugins.benchmark(benchmark).splits) or "any of its files"
            raise ConfigError(
                "'gold' source: setting 'splits': wanted at least one "
                f"split of {benchmark} ({known})"
            )
        return [self._questions(benchmark, split) for split in splits]

    @cached_property
    def built_files(self) -> dict[str, FileRecord]:
        passages = self.artifact("passages")
        return read_file_records(passages.folder) if passages.manifest else {}

    @cached_property
    def known(self) -> dict[str, Sequence[int | str]]:
        """The facts of the files that its finished passages were built from."""
        manifest = self.artifact("passages").manifest
        recorded = manifest["record"].get("sources", {}) if manifest else {}
        return {**recorded, **{key: file.facts for key, file in self.built_files.items()}}

    def _inputs_of(self, part: str) -> dict[str, object]:
        """For an index: the build settings with their defaults, the retriever's code, and the
        identity of the passages.
        """
        if part == "passages":
            return self.inputs_of_passages()
        self.require_index(part)
        table = self.corpus.indexes[part]
        root = self.corpus.root
        plugin = self.corpus.plugins.indexed_retriever(table["retriever"])
        hashed = plugin.build_fingerprint(
            **resolve_paths(plugin.build, build_settings(table), root)
        )
        settings = identity_settings(
            plugin, default_settings(plugin.build) | self.language_of(part) | table
        )
        inputs: dict[str, object] = {
            "stage": "index",
            "settings": settings,
            "code": code_fingerprint(plugin),
        }
        return inputs | ({"files": hashed} if hashed else {}) | {"passages": self.identity}

    def inputs_of_passages(self, known: KnownFiles | None = None) -> dict[str, object]:
        """The sources' settings and the SHA-256 of their files.

        `known` is that of `Source.fingerprint`.
        """
        known = self.known if known is None else known
        fingerprints = [source.fingerprint(known) for source in self.sources]
        return {"stage": "passages", "version": work_units.VERSION, "sources": fingerprints}

    def require_index(self, name: str) -> None:
        """Refuse the name of an index that the corpus does not have."""
        if name not in self.corpus.indexes:
            has = ", ".join(self.corpus.indexes) or "none"
            raise ConfigError(f"corpus {self.corpus.name} has no [index.{name}]; it has: {has}")

    @cached_property
    def passages(self) -> Manifest:
        """The manifest of its passages.

        IfqaError if they are not built, damaged, or older than the corpus's file.
        """
        return self.finished("passages", f"ifqa passages {self.corpus.name}")

    @property
    def language(self) -> str:
        """The language of its passages: the corpus file's, or the one detected as they were built,
        or English.
        """
        manifest = self.artifact("passages").manifest
        return self.corpus.language or str(
            manifest["record"].get("language", ENGLISH) if manifest else ENGLISH
        )

    def language_of(self, index: str) -> dict[str, object]:
        """The setting `language` for the `build` of an index that takes it; none for English."""
        plugin = self.corpus.plugins.indexed_retriever(self.corpus.indexes[index]["retriever"])
        return (
            accepted_arguments(plugin.build, language=self.language)
            if self.language != ENGLISH
            else {}
        )

    @cached_property
    def store(self) -> PassageStore:
        _ = self.passages
        return PassageStore(self.folder / "passages")

    @cached_property
    def identity(self) -> str:
        """The identity of its passages; raises like `passages`."""
        return compute_fingerprint(self.passages["inputs"])

    def identity_of_index(self, name: str) -> str:
        """The identity of an index.

        IfqaError if it is not built, damaged, or older than the file or the passages.
        """
        inputs = self.inputs(name)  # reports missing passages first
        return compute_fingerprint(
            self.artifact(name).require(f"ifqa index {self.corpus.name}", inputs)["inputs"]
        )


class Run(_ArtifactFolder):
    """An experiment with its questions, corpus, artifacts and inputs, all cached: a run must not
    outlive its command.
    """

    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment.folder)
        self.experiment = experiment
        self.plugins = experiment.plugins
        self._splits: dict[tuple[str, str], list[Question]] = {}
        self._fingerprints: dict[str, dict[str, object]] = {}

    @property
    def incomplete(self) -> tuple[str, ...]:
        asked_again = self.experiment.llm_settings.get("retry_failed")
        return ("retry", "stored_failures") if asked_again else ("retry",)

    @property
    def retriever(self) -> RetrieverSettings:
        """The experiment's [retriever]; IfqaError if it has none.

        `reader` and `llm` do the same.
        """
        return self._table("retriever", self.experiment.retriever)

    @property
    def reader(self) -> ReaderSettings:
        return self._table("reader", self.experiment.reader)

    @property
    def llm(self) -> ModelSettings:
        return self._table("llm", self.experiment.llm)

    def _table(self, section: str, table: _T | None) -> _T:
        if table is None:
            raise ConfigError(f"experiment {self.experiment.name} has no [{section}]")
        return table

    @property
    def llm_is_named(self) -> bool:
        """Whether the settings say which server answers, by its address or by a name."""
        llm: Mapping[str, object] = self.experiment.llm or {}
        return bool(llm.get("base_url") or llm.get("served_as"))

    @property
    def benchmark(self) -> Benchmark:
        return self.plugins.benchmark(self.experiment.benchmark)

    def questions_of(self, benchmark: str, split: str) -> list[Question]:
        if (benchmark, split) not in self._splits:
            self._splits[benchmark, split] = self.plugins.benchmark(benchmark).questions(split)
        return self._splits[benchmark, split]

    @property
    def split(self) -> list[Question]:
        """All questions of the experiment's split; the experiment may ask fewer."""
        return self.questions_of(self.experiment.benchmark, self.experiment.split)

    @cached_property
    def questions(self) -> list[Question]:
        """The experiment's questions, in the benchmark's order.

        IfqaError if they cannot be read or a chosen id is missing.
        """
        experiment = self.experiment
        chosen_ids = set(self.experiment.questions)
        if missing := chosen_ids - {question.id for question in self.split}:
            split = f"{experiment.benchmark} {experiment.split}"
            raise ConfigError(
                f"experiment {experiment.name}: {split} has no question {min(missing)!r}; "
                "wanted an id such as ifqa/full-dev/17"
            )
        chosen = (
            [question for question in self.split if question.id in chosen_ids]
            if chosen_ids
            else self.split
        )
        return chosen[: experiment.limit or None]

    @cached_property
    def corpus(self) -> CorpusBuild | None:
        if not self.experiment.corpus:
            return None
        return CorpusBuild(
            load_corpus(self.experiment.corpus, self.experiment.root, self.plugins),
            self.questions_of,
        )

    def siblings(self, stage: str) -> Iterator[Path]:
        """The stage's folders in the base and its other variants.

        An artifact with the same inputs is copied from them.
        """
        folder = self.experiment.folder
        base = [folder.name, *base_experiments(folder.name, self.experiment.root)][-1]
        for sibling in sorted(folder.parent.glob("*")):
            if f"{sibling.name}+".startswith(f"{base}+") and sibling != folder:
                yield sibling / stage

    def forget_inputs(self, stage: str) -> None:
        """Forget the inputs of the stages after `stage`, because it was run again."""
        for later in {"retrieve": ("read", "score"), "read": ("score",)}.get(stage, ()):
            self._inputs.pop(later, None)

    def will_ask(self) -> bool:
        """Whether a stage that uses a language model still has to run."""
        asking = [
            stage for stage in self.experiment.stages if self.experiment.asks_llm(LLM_STAGES[stage])
        ]
        return bool(self.experiment.llm) and not all(map(self.is_current, asking))

    def trainables(
        self,
    ) -> Iterator[tuple[str, type[Trainable], Callable[..., object], dict[str, object]]]:
        """The retrievers, the reader, and a language model if they ask it: name for messages,
        class, function and settings.

        The function is the constructor, or `build` for a retriever with an index, whose settings
        then name the model.
        """
        experiment = self.experiment
        indexes = self.corpus.corpus.indexes if self.corpus else {}
        for table in retriever_sections(self.retriever) if experiment.retriever else ():
            retriever = self.plugins.retriever(table["name"])
            built = indexes.get(table.get("index", ""))
            if built and issubclass(retriever, IndexedRetriever):
                yield (
                    f"retriever {table['name']!r}",
                    retriever,
                    retriever.build,
                    build_settings(built),
                )
            else:
                yield (
                    f"retriever {table['name']!r}",
                    retriever,
                    retriever.__init__,
                    search_settings(table),
                )
        if experiment.reader:
            reader = self.plugins.reader(self.reader["name"])
            yield (
                f"reader {self.reader['name']!r}",
                reader,
                reader.__init__,
                experiment.reader_settings,
            )
        if experiment.llm and any(map(experiment.asks_llm, LLM_STAGES.values())):
            model = self.plugins.llm(self.llm["name"])
            yield (
                f"language model {self.llm['name']!r}",
                model,
                model.__init__,
                experiment.llm_settings,
            )

    def fingerprint(self, kind: Kind) -> dict[str, object]:
        """What determines the output of the retriever or reader: its settings, its code, and hashes
        of its files.
        """
        if kind not in self._fingerprints:
            experiment = self.experiment
            if kind == "reader":
                fingerprint = self._fingerprint(
                    kind, self.reader["name"], self.reader, experiment.reader_settings
                )
            else:
                fingerprint = self._fingerprint_of_retriever(self.retriever)
            if experiment.asks_llm(kind):
                model = self._fingerprint(
                    "llm", self.llm["name"], self.llm, experiment.llm_settings
                )
                server = self.plugins.llm(self.llm["name"]).served_by(**experiment.llm_settings)
                fingerprint["llm"] = model | ({"server": server} if server else {})
            self._fingerprints[kind] = fingerprint
        return self._fingerprints[kind]

    def _fingerprint_of_retriever(self, table: RetrieverSettings) -> dict[str, object]:
        common = {key: setting for key, setting in table.items() if key != "parts"}
        rewrites = "query" in table or table.get("reads", "question") != "question"
        rewritten = {"queries": queries.VERSION} if rewrites else {}
        parts = (
            {"parts": list(map(self._fingerprint_of_retriever, table["parts"]))}
            if "parts" in table
            else {}
        )
        return (
            self._fingerprint("retriever", table["name"], common, search_settings(table))
            | rewritten
            | parts
        )

    def _fingerprint(
        self,
        kind: Literal["retriever", "reader", "llm"],
        name: str,
        table: Mapping[str, object],
        settings: Mapping[str, object],
    ) -> dict[str, object]:
        plugin: type[Plugin] = self.plugins.load(kind, name)
        root = self.experiment.root
        named = resolve_paths(plugin.__init__, settings, root)
        hashed = plugin.fingerprint(**accepted_arguments(plugin.fingerprint, root=root), **named)
        files = {"files": hashed} if hashed else {}
        return {
            "settings": identity_settings(plugin, table),
            "code": code_fingerprint(plugin),
            **files,
        }

    def _inputs_of(self, part: str) -> dict[str, object]:
        if part == "retrieve":
            return self._inputs_of_retrieve()
        if part == "score":
            return self._inputs_of_score()
        inputs: dict[str, object] = {"stage": "read", "reader": self.fingerprint("reader")}
        return self._as_recorded(
            "read", inputs | {"questions": self._questions_identity} | self._rankings_identity()
        )

    def _inputs_of_retrieve(self) -> dict[str, object]:
        """The search settings, the questions, and the identities of the indexes, which must fit the
        current passages.
        """
        inputs: dict[str, object] = {
            "stage": "retrieve",
            "retriever": self.fingerprint("retriever"),
        }
        inputs["questions"] = self._questions_identity
        if self.corpus:
            if indexes := {
                name: self.corpus.identity_of_index(name) for name in self.experiment.indexes
            }:
                inputs["indexes"] = indexes
            names = [table["name"] for table in retriever_sections(self.retriever)]
            reading = ("passages", "corpus")
            if any(
                self.plugins.takes("retriever", name, argument)
                for name in names
                for argument in reading
            ):
                inputs["passages"] = self.corpus.identity
        return self._as_recorded("retrieve", inputs)

    def _as_recorded(self, stage: str, inputs: dict[str, object]) -> dict[str, object]:
        """The inputs, or those of the stage's manifest if they mean the same.

        Until version 0.2 a manifest named the language model's server in its record alone. And if
        the settings name no server, a finished stage is that of the server which it names: a report
        needs no address. A run that asks calls `refuse_other_server` before.
        """
        kind = LLM_STAGES[stage]
        manifest = self._asked_manifest(stage)
        if manifest is None:
            return inputs
        recorded = self._upgrade(manifest, kind) or manifest["inputs"]
        if compute_fingerprint(recorded) == compute_fingerprint(inputs):
            return manifest["inputs"]
        rest, _ = _without_server(inputs, kind)
        recorded_rest, server = _without_server(recorded, kind)
        is_same = compute_fingerprint(rest) == compute_fingerprint(recorded_rest)
        return manifest["inputs"] if server and is_same and not self.llm_is_named else inputs

    def _asked_manifest(self, stage: str) -> Manifest | None:
        """The manifest of a finished stage that asks a language model.

        None for another stage, or without a manifest.
        """
        asks = self.experiment.llm and self.experiment.asks_llm(LLM_STAGES[stage])
        return self.artifact(stage).manifest if asks else None

    def _upgrade(self, manifest: Manifest, kind: Kind) -> dict[str, object] | None:
        """The inputs of a manifest of an earlier version as this version writes them.

        None for a manifest of this version.
        """
        inputs: dict[str, Any] = deepcopy(manifest["inputs"])
        llm = inputs.get(kind, {}).get("llm")
        server = manifest["record"].get("server", "")
        if not isinstance(llm, dict) or "server" in llm or not server:
            return None
        plugin = self.plugins.llm(self.llm["name"])
        current = plugin.served_by(**self.experiment.llm_settings)
        recorded = plugin.served_by(base_url=server)
        # The record lacks the address's path
        llm["server"] = current if current.startswith(f"{recorded}/") else recorded
        for name, (default, _) in plugin.retired.items():
            if llm["settings"].get(name) == default:
                del llm["settings"][name]
        return inputs

    def refuse_other_server(self, stage: str) -> None:
        """Refuse to replace a finished stage if only the language model's server differs: it may
        serve another model.

        Raises:
            OtherServer: the message names both servers.
        """
        kind = LLM_STAGES[stage]
        manifest = self._asked_manifest(stage)
        if manifest is None:
            return
        earlier_rest, earlier = _without_server(
            self._upgrade(manifest, kind) or manifest["inputs"], kind
        )
        now = self.plugins.llm(self.llm["name"]).served_by(**self.experiment.llm_settings)
        if not (earlier and now) or earlier == now:
            return
        try:
            rest, _ = _without_server(self.inputs(stage), kind)
        except IfqaError:
            # an earlier stage is missing or stale, so that this one is made again anyway
            return
        if rest == earlier_rest:
            folder = self.artifact(stage).folder
            model = self.llm.get("model", "the model")
            name = ""
            if not self.llm.get("served_as"):
                name = "give what is served there a name of its own (--set llm.served_as=NAME); or "
            raise OtherServer(
                f"{folder} holds answers of {model} at {earlier}, and this run would ask "
                f"{model} at {now}, which may serve "
                f"another model: {name}remove {folder} to ask again"
            )

    def _inputs_of_score(self) -> dict[str, object]:
        """The questions, their benchmark, the added measures, the run, passages and predictions,
        and the scorer's version.
        """
        experiment = self.experiment
        benchmark = {"name": experiment.benchmark, "code": code_fingerprint(type(self.benchmark))}
        inputs: dict[str, object] = {
            "stage": "score",
            "version": per_question.VERSION,
            "seed": experiment.seed,
        }
        inputs |= {
            "benchmark": benchmark,
            **self._measures(),
            "questions": self._questions_identity,
        }
        # A subset of questions depends on it
        if split := self.benchmark.training_split(experiment.split):
            inputs["training"] = fingerprint_questions(
                self.questions_of(experiment.benchmark, split)
            )
        inputs |= self._rankings_identity()
        return inputs | ({"predictions": self._identity_of("read")} if experiment.reader else {})

    def _measures(self) -> dict[str, object]:
        """The measures that the experiment adds, and the SHA-256 of each module outside this
        package that defines any.
        """
        experiment = self.experiment
        scheme = self.experiment.scheme
        modules = {name.partition(":")[0] for name in experiment.measures if ":" in name}
        modules |= {_defining_module(measure.score) for measure in scheme.measures}
        modules |= {_defining_module(subset.holds) for subset in scheme.subsets}
        files = {
            name: sha256(source_file(name))
            for name in sorted(modules)
            if name.partition(".")[0] != "ifqa"
        }
        named = {"measures": list(experiment.measures)} if experiment.measures else {}
        return named | ({"measured_by": files} if files else {})

    @cached_property
    def _questions_identity(self) -> str:
        return fingerprint_questions(self.questions)

    def _rankings_identity(self) -> dict[str, str]:
        run = {"run": self._identity_of("retrieve")} if self.experiment.retriever else {}
        return run | ({"passages": self.corpus.identity} if self.corpus else {})

    def _identity_of(self, stage: str) -> str:
        """The identity of an earlier stage, which must be up to date."""
        name = self.experiment.name
        if not self.artifact(stage).folder.is_dir() and (
            bases := base_experiments(name, self.experiment.root)
        ):
            # No command finds the variant by its name yet
            name = f"{bases[-1]}, with the same flags"
        if self.llm_is_named:
            self.refuse_other_server(stage)
        record = self.finished(stage, f"ifqa {stage} {name}")["record"]
        # Asked again, they change the files
        failures = record.get("retry") or record.get("stored_failures")
        incomplete = json.dumps(record["files"], sort_keys=True) if failures else ""
        return compute_fingerprint(self.inputs(stage)) + incomplete


def identity_settings(plugin: type[Plugin], settings: Mapping[str, object]) -> dict[str, object]:
    """Settings without those in the plugin's `runtime_only`, which change its speed and not its
    output.
    """
    return {
        key: setting for key, setting in sorted(settings.items()) if key not in plugin.runtime_only
    }


def _without_server(inputs: Mapping[str, object], kind: Kind) -> tuple[dict[str, Any], str]:
    """A stage's inputs without the language model's server, and the server's name."""
    rest: dict[str, Any] = deepcopy(dict(inputs))
    llm = rest.get(kind, {}).get("llm", {})
    llm.get("settings", {}).pop("served_as", None)
    return rest, str(llm.pop("server", ""))


def _defining_module(function: Callable[..., object]) -> str:
    """The module of a function, of the function in a `partial`, or of the class of a callable
    object.
    """
    while isinstance(function, partial):
        function = function.func
    return function.__module__ if inspect.isroutine(function) else type(function).__module__
