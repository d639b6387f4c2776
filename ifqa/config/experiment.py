"""Reads and checks experiment files, experiments/NAME.toml.

An experiment's results are in the folder experiments/NAME/.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import Field

from ifqa.config.expected import Expected, parse_expected
from ifqa.errors import ConfigError, unknown_name
from ifqa.models.causal_lm import is_local_model, local_llm
from ifqa.plugins import ConfiguredPlugin, Plugins, identity_settings
from ifqa.protocols import IndexedRetriever, LanguageModel, Reader, Resource, Retriever
from ifqa.retrieval import queries
from ifqa.retrieval.queries import rewrite_questions
from ifqa.scoring.scheme import ScoringScheme, load_scheme
from ifqa.settings import (
    Natural,
    NotNegative,
    Positive,
    StrictModel,
    Text,
    as_section,
    parse_section,
    setting_fields,
)
from ifqa.storage.files import read_toml
from ifqa.storage.resources import check_name, find_resource, list_resources

_CHANGE = re.compile(r"[\w.]+=[\w.~-]*")  # as `overrides.override` writes it into a name


#: Settings of a language model that hold for all models of a run together.
CAPS = ("max_cost", "max_total_tokens")
JUDGE_PROMPT = "equivalence"


class ExperimentFile(StrictModel):
    """An experiment file; the sections of its plugins are checked separately."""

    benchmark: Text
    split: Text
    corpus: str = ""
    retriever: dict[str, object] | None = None
    reader: dict[str, object] | None = None
    llm: dict[str, Any] | None = None
    judge: dict[str, Any] | None = None
    seed: Natural = 0
    expected: object = Field(default_factory=dict)
    limit: Natural = 0
    sample: Natural = 0
    stratified: bool = False
    name: str = ""
    about: str = ""
    table: str = ""
    questions: list[Text] = Field(default_factory=list)
    measures: list[Text] = Field(default_factory=list)


class RetrieverSection(StrictModel, extra="allow"):
    """The keys of a [retriever], or of a part, that are not settings of the plugin."""

    name: Text
    index: Text | None = None
    k: Positive | None = None
    query: str = "question"
    parts: object = None
    weight: NotNegative = 1.0


class ReaderSection(StrictModel, extra="allow"):
    """The keys of a [reader] that are not settings of the plugin."""

    name: Text
    passages: Positive = 5


@dataclass(frozen=True, kw_only=True)
class ConfiguredRetriever(ConfiguredPlugin[Retriever]):
    """A checked [retriever], or a part of one."""

    k: int  # passages of a question
    query: str = "question"  # what is searched for, a key of `ifqa.retrieval.queries.QUERIES`
    index: str = ""  # of the corpus, for a retriever with an index
    parts: tuple["ConfiguredRetriever", ...] = ()
    weight: float | None = None  # of a part; None for a whole [retriever]

    @property
    def steps(self) -> Iterator["ConfiguredRetriever"]:
        """The retriever and all its parts, recursively."""
        yield self
        for part in self.parts:
            yield from part.steps

    def section(self) -> dict[str, object]:
        parts = {"parts": [part.section() for part in self.parts]} if self.parts else {}
        return self._own_section() | parts

    def _own_section(self) -> dict[str, object]:
        """The section without its parts."""
        section: dict[str, object] = {"name": self.name, "k": self.k, **as_section(self.settings)}
        if self.weight is not None:
            section["weight"] = self.weight
        if self.query != "question":
            section["query"] = self.query
        if self.index:
            section["index"] = self.index
        return section

    @property
    def identity_section(self) -> dict[str, object]:
        """The section without what changes only the speed."""
        own = identity_settings(self.plugin, self._own_section())
        parts = {"parts": [part.identity_section for part in self.parts]} if self.parts else {}
        return own | parts

    def identity(self) -> dict[str, object]:
        own = self._identity_of(identity_settings(self.plugin, self._own_section()))
        if self.rewrites_questions:
            own["queries"] = queries.VERSION
        if self.parts:
            own["parts"] = [part.identity() for part in self.parts]
        return own

    @property
    def rewrites_questions(self) -> bool:
        """Whether it searches for something else than the question as it is written."""
        return self.query != "question" or self.plugin.rewrites(self.settings)

    def taking(self, resource: Resource) -> str:
        return next((step.name for step in self.steps if step.takes(resource)), "")


@dataclass(frozen=True, kw_only=True)
class ConfiguredReader(ConfiguredPlugin[Reader]):
    """A checked [reader]."""

    passages: int  # read for a question; 0 without a retriever

    def section(self) -> dict[str, object]:
        return {"name": self.name, "passages": self.passages, **as_section(self.settings)}


ConfiguredModel = ConfiguredPlugin[LanguageModel]


@dataclass(frozen=True)
class ConfiguredJudge:
    """A checked [judge]: the language model that judges answers, and its prompt.

    `prompt` is NAME for prompts/judges/NAME.toml.
    """

    model: ConfiguredModel
    prompt: str = JUDGE_PROMPT

    def section(self) -> dict[str, object]:
        """The section of a file that is read back unchanged, with all defaults."""
        return {**self.model.section(), "prompt": self.prompt}

    @property
    def identity_section(self) -> dict[str, object]:
        """The section without what changes only the speed."""
        return {**self.model.identity_section, "prompt": self.prompt}

    @property
    def name(self) -> str:
        """The name in the column of the verdicts: the model's, and the prompt's if it is another
        than the usual one.
        """
        name = model_name(self.model)
        return name if self.prompt == JUDGE_PROMPT else f"{name} ({self.prompt})"


def model_name(model: ConfiguredModel) -> str:
    """A language model's name in tables: the user's own name for what a server answers with, else
    the model's.
    """
    section = model.section()
    return str(section.get("served_as") or section.get("model") or model.name)


@dataclass(frozen=True)
class Experiment:
    """A retriever and a reader on a benchmark's split, with all settings and their defaults.

    `retriever` is None for a closed book, `reader` for retrieval only, and `llm` if the file names
    none; `asks_llm` tells whether one is asked. `judge` is None if no model judges the answers.
    `limit` keeps only the first questions,
    `sample` that many drawn by the `seed` (with `stratified`, in the proportions of the benchmark's
    subsets and groups), and `questions` only those with the listed ids; 0 and () keep the whole
    split. `title` is the key `name` of its file, `table` its heading in a report. `measures` are
    names of further measures. Paths are relative to `root`. `plugins` are the loaded plugins, and
    `scheme` scores the answers; neither is compared or saved.
    """

    name: str
    benchmark: str
    split: str
    corpus: str = ""
    retriever: ConfiguredRetriever | None = None
    reader: ConfiguredReader | None = None
    llm: ConfiguredModel | None = None
    judge: ConfiguredJudge | None = None
    seed: int = 0
    expected: tuple[Expected, ...] = ()
    limit: int = 0
    sample: int = 0
    stratified: bool = False
    title: str = ""
    about: str = ""
    table: str = ""
    questions: tuple[str, ...] = ()
    root: Path = Path()
    measures: tuple[str, ...] = ()
    plugins: Plugins = field(kw_only=True, compare=False, repr=False)
    scheme: ScoringScheme = field(kw_only=True, compare=False, repr=False)

    @property
    def folder(self) -> Path:
        return self.root / "experiments" / self.name

    @property
    def display_name(self) -> str:
        """Its name in tables and figures: the key `name` of its file, else the file's name."""
        return self.title or self.name

    @property
    def corpus_folder(self) -> Path:
        return self.root / "indexes" / self.corpus

    @property
    def variant(self) -> bool:
        """Whether it is a variant: another experiment with changes."""
        return bool(base_experiments(self.name, self.root))

    @property
    def indexes(self) -> list[str]:
        """The indexes that the retriever and its parts search, without duplicates."""
        steps = self.retriever.steps if self.retriever else ()
        return list(dict.fromkeys(step.index for step in steps if step.index))

    @property
    def asked(self) -> list[ConfiguredRetriever | ConfiguredReader]:
        """Its retriever and its reader, or the one that it has."""
        return [plugin for plugin in (self.retriever, self.reader) if plugin]

    @property
    def asks_llm(self) -> str:
        """The name of the first plugin that asks a language model; empty if none does."""
        return next((name for plugin in self.asked if (name := plugin.taking("llm"))), "")

    def llm_setting(self, name: str, default: object = None) -> Any:
        """A setting of its language model, or the default without one or without that setting."""
        return self.llm.section().get(name, default) if self.llm else default

    def reader_setting(self, name: str, default: object = None) -> Any:
        """A setting of its reader, or the default without one or without that setting."""
        return self.reader.section().get(name, default) if self.reader else default

    @property
    def asked_model(self) -> str:
        """The language model's name in tables; empty without one."""
        return model_name(self.llm) if self.llm else ""


def base_experiments(name: str, root: Path = Path()) -> list[str]:
    """The experiments that a variant NAME+KEY=VALUE... changes, nearest first.

    Empty for an experiment with its own file.
    """
    if find_resource(f"experiments/{name}.toml", root):
        return []
    parts = name.split("+")
    first = len(parts)
    while first > 1 and _CHANGE.fullmatch(parts[first - 1]):
        first -= 1
    return ["+".join(parts[:count]) for count in range(len(parts) - 1, first - 1, -1)]


def experiment_name(name: str | Path, root: Path = Path()) -> str:
    """Check and return a name.

    The path experiments/NAME.toml means NAME, for a shell's `experiments/*`. Else ConfigError.
    """
    if not isinstance(name, str | Path):
        raise ConfigError(f"experiment {name!r}: wanted a name, such as 'sample'")
    path = Path(name)
    if path.name != str(name) and path.resolve().parent == (root / "experiments").resolve():
        name = path.name.removesuffix(".toml")
    return check_name(str(name), "experiment")


def load_experiment(name: str, root: Path = Path()) -> Experiment:
    """Load and check `experiments/NAME.toml` or the experiment of a variant's folder.

    ConfigError if it is missing or wrong.
    """
    name = experiment_name(name, root)
    file = find_resource(f"experiments/{name}.toml", root) or find_resource(
        f"experiments/{name}/experiment.toml", root
    )
    if file is None:
        variants = [path.parent.name for path in (root / "experiments").glob("*/experiment.toml")]
        raise unknown_name(
            "experiment", name, [*list_resources("experiments", ".toml", root), *variants]
        )
    return parse_experiment(name, read_toml(file), str(file), root)


def parse_experiment(
    name: str,
    sections: Mapping[str, object],
    where: str,
    root: Path = Path(),
    plugins: Plugins | None = None,
) -> Experiment:
    """Parse an experiment.

    The message of an error starts with `where`; a plugin that refuses itself names the plugin.
    """
    file = parse_section(ExperimentFile, sections, where)
    retriever = file.retriever
    reader = file.reader
    llm = file.llm
    if retriever is None and reader is None:
        raise ConfigError(f"{where}: wanted a [retriever], a [reader] or both; found neither")
    if file.limit and file.sample:
        raise ConfigError(
            f"{where}: limit = {file.limit} and sample = {file.sample}; wanted one of them: the "
            "first questions, or a random sample"
        )
    if file.stratified and not file.sample:
        raise ConfigError(f"{where}: stratified is for a sample; add sample = N, or --sample N")
    plugins = plugins or Plugins(root)
    judge = None if file.judge is None else _parse_judge(file, where, plugins)
    scheme = load_scheme(
        file.benchmark, file.measures, root, file.split, plugins, judge.name if judge else ""
    )
    checked = {key: value for key, value in dict(file).items() if key != "name"} | {
        "title": file.name.strip(),
        "retriever": None if retriever is None else _parse_retriever(retriever, where, plugins),
        "reader": None
        if reader is None
        else _parse_reader(reader, retriever is not None, where, plugins),
        "llm": None if llm is None else _parse_llm(llm, where, plugins),
        "judge": judge,
        "expected": parse_expected(file.expected, where, scheme),
        "questions": tuple(file.questions),
        "measures": tuple(file.measures),
    }
    experiment = Experiment(name=name, root=root, plugins=plugins, scheme=scheme, **checked)
    if experiment.llm is None and (plugin_name := experiment.asks_llm):
        raise ConfigError(
            f"{where}: {plugin_name!r} needs a language model; set it: [llm] model, or --model NAME"
        )
    if experiment.retriever and not experiment.corpus:
        for step in experiment.retriever.steps:
            if step.index or step.takes("corpus"):
                raise ConfigError(f"{where}: {step} searches passages; set corpus = NAME")
    if experiment.reader and experiment.reader.takes("search"):
        _check_search(experiment, experiment.reader, where)
    return experiment


def _check_search(experiment: Experiment, reader: ConfiguredReader, where: str) -> None:
    """Refuse a reader that searches, where the retriever cannot search the corpus for any text.

    Nor may the retriever ask a language model: the reader's estimate and caps would not count it.
    """
    retriever = experiment.retriever
    if retriever is None or not experiment.corpus:
        raise ConfigError(
            f"{where}: {reader} searches; set a [retriever] over a corpus, such as bm25"
        )
    unfit = [step.name for step in retriever.steps if not step.plugin.takes_any_text]
    unfit += filter(None, [retriever.taking("llm")])
    if unfit:
        raise ConfigError(
            f"{where}: {reader} searches the corpus for texts of its own, which the retriever "
            f"{unfit[0]!r} does not do; name another, such as bm25"
        )


def _parse_retriever(
    section: Mapping[str, object],
    where: str,
    plugins: Plugins,
    at: str = "[retriever]",
    k: int = 100,
) -> ConfiguredRetriever:
    """Check a [retriever] or a part, and fill in the defaults; `k` is the default for its key k."""
    common = parse_section(RetrieverSection, section, f"{where}: {at}")
    name = common.name
    plugin = plugins.retriever(name)
    is_part = at != "[retriever]"
    rewrite_questions([], common.query)  # raises for an unknown query
    has_index = issubclass(plugin, IndexedRetriever)
    has_parts = bool(plugin.default_parts)
    # a retriever over other retrievers sends no query itself
    supported = {
        "weight": is_part,
        "index": has_index,
        "parts": has_parts,
        "query": not has_parts or common.query == "question",
    }
    configured = ConfiguredRetriever.parse(
        "retriever",
        name,
        plugin,
        section,
        RetrieverSection.model_fields,
        where,
        plugins.root,
        k=common.k or k,
        query=common.query,
        weight=common.weight if is_part else None,
    )
    if unsupported := [
        key for key, supports in supported.items() if key in section and not supports
    ]:
        raise ConfigError(
            f"{where}: {at}: retriever {name!r} takes no {unsupported[0]!r} here; remove it"
        )
    if has_index:
        if ":" in name and common.index is None:  # an index's name has no colon
            raise ConfigError(
                f"{where}: {at}: set index = NAME, for the corpus's [index.NAME] that "
                f"{name!r} searches"
            )
        configured = replace(configured, index=common.index or name)
    if has_parts:
        configured = replace(
            configured, parts=_parse_parts(configured, section, where, plugins, at)
        )
    return configured


def _parse_parts(
    retriever: ConfiguredRetriever,
    section: Mapping[str, object],
    where: str,
    plugins: Plugins,
    at: str,
) -> tuple[ConfiguredRetriever, ...]:
    """The parts of a retriever over others; by default its class's."""
    k = retriever.k
    default = [{**part, "k": max(k, part.get("k", 0))} for part in retriever.plugin.default_parts]
    parts = section.get("parts", default)
    inner = f"[[{at.strip('[]')}.parts]]"
    if not isinstance(parts, list) or not parts:
        raise ConfigError(f"{where}: {retriever.name!r} wants {inner}, found {parts!r}")
    return tuple(_parse_retriever(part, where, plugins, inner, k) for part in parts)


def _parse_reader(
    section: Mapping[str, object], retrieves: bool, where: str, plugins: Plugins
) -> ConfiguredReader:
    if not retrieves:
        if passages := section.get("passages"):
            problem = f"passages = {passages!r}, but without a [retriever] there are no passages"
            raise ConfigError(f"{where}: [reader]: {problem}; remove it, or name a retriever")
        # 0 in a variant's file
        section = {key: value for key, value in section.items() if key != "passages"}
    common = parse_section(ReaderSection, section, f"{where}: [reader]")
    return ConfiguredReader.parse(
        "reader",
        common.name,
        plugins.reader(common.name),
        section,
        ReaderSection.model_fields,
        where,
        plugins.root,
        passages=common.passages if retrieves else 0,
    )


def _parse_judge(file: ExperimentFile, where: str, plugins: Plugins) -> ConfiguredJudge:
    """Check a [judge].

    The caps of an [llm] hold for it too, unless it has its own: they are caps of a run.
    """
    if file.reader is None:
        raise ConfigError(f"{where}: [judge] judges answers; wanted a [reader], or no [judge]")
    section = dict(file.judge or {})
    prompt = section.pop("prompt", JUDGE_PROMPT)
    if not isinstance(prompt, str) or not prompt.strip():
        raise ConfigError(
            f"{where}: [judge] prompt: wanted NAME for prompts/judges/NAME.toml; "
            f"found {prompt!r:.80}"
        )
    model = _parse_llm(section, where, plugins, "judge")
    known = setting_fields(model.plugin.Settings)
    caps = {
        key: value
        for key, value in (file.llm or {}).items()
        if key in CAPS and key in known and key not in section
    }
    if caps:
        model = _parse_llm({**section, **caps}, where, plugins, "judge")
    return ConfiguredJudge(model, prompt)


def _parse_llm(
    section: dict[str, Any], where: str, plugins: Plugins, at: str = "llm"
) -> ConfiguredModel:
    """Check an [llm], or a [judge] without its prompt."""
    name = section["name"] if "name" in section else _llm_name(section, plugins.root)
    if not isinstance(name, str) or not name.strip():
        raise ConfigError(
            f"{where}: [{at}] name: wanted a language model's plugin, such as 'openai'; "
            f"found {name!r:.80}"
        )
    plugin = plugins.llm(name)
    kept = {}
    for key, value in section.items():
        default, instead = plugin.retired.get(key, (None, ""))
        if instead and value != default:
            raise ConfigError(f"{where}: [{at}] {key} is gone: {instead}")
        if not instead:
            kept[key] = value
    place = where if at == "llm" else f"{where}: [{at}]"
    model = ConfiguredModel.parse("llm", name, plugin, kept, ["name"], place, plugins.root)
    plugin.refuse_settings(model.settings)
    return model


def _llm_name(section: Mapping[str, object], root: Path) -> str:
    """The plugin of an [llm] that names none: a model of this machine runs here, unless there is an
    address to ask.
    """
    model = section.get("model")
    runs_here = (
        isinstance(model, str) and not section.get("base_url") and is_local_model(model, root)
    )
    return local_llm(str(model), root) if runs_here else "openai"
