"""`Run`: an experiment, and everything that a command reads or computes for it, each only once.

The `inputs` of a stage decide its reuse: settings, identities of input artifacts, the plugin's
code. An artifact's identity is the hash of its own inputs, so a change shows in every later stage.
Nothing is written here.
"""

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

from ifqa.benchmarks.sampling import draw_sample, draw_stratified_sample
from ifqa.config.corpus import load_corpus
from ifqa.config.experiment import (
    ConfiguredModel,
    ConfiguredReader,
    ConfiguredRetriever,
    Experiment,
    base_experiments,
)
from ifqa.errors import ConfigError
from ifqa.pipeline.corpus_build import CorpusBuild
from ifqa.pipeline.stage import Resolved
from ifqa.plugins import ConfiguredPlugin
from ifqa.protocols import Benchmark
from ifqa.records import Question, fingerprint_questions

_T = TypeVar("_T")
Part = Literal["retriever", "reader", "llm"]


class Run(Resolved):
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
        asked_again = self.experiment.llm_setting("retry_failed")
        return ("retry", "stored_failures") if asked_again else ("retry",)

    def require_retriever(self) -> ConfiguredRetriever:
        """The experiment's [retriever]; ConfigError if it has none.

        `require_reader` and `require_model` do the same.
        """
        return self._require("retriever", self.experiment.retriever)

    def require_reader(self) -> ConfiguredReader:
        return self._require("reader", self.experiment.reader)

    def require_model(self) -> ConfiguredModel:
        return self._require("llm", self.experiment.llm)

    def _require(self, section: Part, configured: _T | None) -> _T:
        if configured is None:
            raise ConfigError(
                f"experiment {self.experiment.name} has no [{section}]", wanted=f"[{section}]"
            )
        return configured

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
        chosen_ids = set(experiment.questions)
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
        if experiment.sample and experiment.stratified:
            strata = list(map(self._stratum, chosen))
            return draw_stratified_sample(chosen, experiment.sample, experiment.seed, strata)
        if experiment.sample:
            return draw_sample(chosen, experiment.sample, experiment.seed)
        return chosen[: experiment.limit or None]

    def _stratum(self, question: Question) -> tuple[str, ...]:
        """The declared subsets that a question is in, and its group."""
        subsets = self.experiment.scheme.subsets
        return (*(subset.name for subset in subsets if subset.holds(question)), question.group)

    @property
    def selection(self) -> str:
        """How the questions were chosen from the split; empty for all of them."""
        if len(self.questions) == len(self.split):
            return ""
        experiment = self.experiment
        chosen = ["chosen by id"] if experiment.questions else []
        if experiment.limit:
            chosen.append("the first, no sample")
        if experiment.sample:
            kind = "stratified sample" if experiment.stratified else "random sample"
            chosen.append(f"{kind}, seed {experiment.seed}")
        return ", ".join(chosen)

    @cached_property
    def questions_identity(self) -> str:
        return fingerprint_questions(self.questions)

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

    def fingerprint(self, plugin: ConfiguredPlugin[Any]) -> dict[str, object]:
        """What determines the output of its retriever or reader: settings, code, and hashes of
        files, also of the language model that it asks, and where that is served.
        """
        if plugin.kind not in self._fingerprints:
            fingerprint = plugin.identity()
            if plugin.taking("llm"):
                fingerprint["llm"] = self._fingerprint_of_model()
            self._fingerprints[plugin.kind] = fingerprint
        return self._fingerprints[plugin.kind]

    def _fingerprint_of_model(self) -> dict[str, object]:
        model = self.require_model()
        server = model.plugin.served_by(model.local_settings)
        return model.identity() | ({"server": server} if server else {})

    def refresh(self) -> None:
        """Forget what was read or computed: questions, corpus, artifacts, inputs."""
        super().refresh()
        self._splits.clear()
        self._fingerprints.clear()
        for part in ("questions", "questions_identity", "corpus"):
            vars(self).pop(part, None)

    def forget_inputs(self) -> None:
        """Forget the inputs of its stages, because one of them was made again."""
        self._inputs.clear()
