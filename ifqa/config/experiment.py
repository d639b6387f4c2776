"""Reads and checks experiment files, experiments/NAME.toml.

An experiment's results are in the folder experiments/NAME/.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict  # pydantic accepts typing.TypedDict only from Python 3.12

from ifqa.config.expected import Expected, parse_expected
from ifqa.errors import ConfigError, unknown_name
from ifqa.models.causal_lm import is_local_model, local_llm
from ifqa.plugins import Plugins
from ifqa.protocols import IndexedRetriever
from ifqa.retrieval.queries import rewrite_questions
from ifqa.scoring.scheme import ScoringScheme, load_scheme
from ifqa.settings import (
    Natural,
    NotNegative,
    Positive,
    StrictModel,
    Text,
    check_shape,
    parse_section,
    plugin_settings,
)
from ifqa.storage.files import read_toml
from ifqa.storage.resources import check_name, find_resource, list_resources

_CHANGE = re.compile(r"[\w.]+=[\w.~-]*")  # as `overrides.override` writes it into a name


class ExperimentFile(StrictModel):
    """An experiment file; the sections of its plugins are checked separately."""

    benchmark: Text
    split: Text
    corpus: str = ""
    retriever: dict[str, object] | None = None
    reader: dict[str, object] | None = None
    llm: dict[str, Any] | None = None
    seed: Natural = 0
    expected: object = Field(default_factory=dict)
    limit: Natural = 0
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


class RetrieverSettings(TypedDict):
    """A checked [retriever] or part, with all defaults: these keys, and the plugin's settings."""

    name: str
    k: int
    query: NotRequired[str]  # only if it is not "question"
    index: NotRequired[str]  # for a retriever with an index
    parts: NotRequired[list["RetrieverSettings"]]
    weight: NotRequired[float]  # for a part


class ReaderSettings(TypedDict):
    """A checked [reader], with all defaults: these keys, and the plugin's settings."""

    name: str
    passages: int


class ModelSettings(TypedDict):
    """A checked [llm], with all defaults: these keys, and the plugin's settings."""

    name: str
    model: NotRequired[str]  # a setting of ifqa's own plugins
    base_url: NotRequired[str]
    served_as: NotRequired[str]


@dataclass(frozen=True)
class Experiment:
    """A retriever and a reader on a benchmark's split, with all settings and their defaults.

    `retriever` is None for a closed book, `reader` for retrieval only, and `llm` if neither uses a
    language model. `limit` keeps only the first questions, and `questions` only those with the
    listed ids; 0 and () keep the whole split. `table` is the experiment's heading in a report.
    `measures` are names of further measures. Paths are relative to `root`. `plugins` are the loaded
    plugins, and `scheme` scores the answers; neither is compared or saved.
    """

    name: str
    benchmark: str
    split: str
    corpus: str = ""
    retriever: RetrieverSettings | None = None
    reader: ReaderSettings | None = None
    llm: ModelSettings | None = None
    seed: int = 0
    expected: tuple[Expected, ...] = ()
    limit: int = 0
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
    def corpus_folder(self) -> Path:
        return self.root / "indexes" / self.corpus

    @property
    def stages(self) -> tuple[str, ...]:
        """Its stages before scoring: "retrieve", "read" or both."""
        parts = {"retrieve": self.retriever, "read": self.reader}
        return tuple(stage for stage, part in parts.items() if part is not None)

    @property
    def variant(self) -> bool:
        """Whether it is a variant: another experiment with changes."""
        return bool(base_experiments(self.name, self.root))

    @property
    def indexes(self) -> list[str]:
        """The indexes that the retriever and its parts search, without duplicates."""
        sections = list(retriever_sections(self.retriever)) if self.retriever else []
        return list(dict.fromkeys(section["index"] for section in sections if "index" in section))

    def asks_llm(self, kind: Literal["retriever", "reader"]) -> str:
        """The first plugin of its retriever or reader that uses a language model.

        Empty if none does.
        """
        sections: Iterable[Mapping[str, Any] | None] = []
        if kind == "reader":
            sections = [self.reader]
        elif self.retriever:
            sections = retriever_sections(self.retriever)
        names = (section["name"] for section in sections if section)
        return next((name for name in names if self.plugins.takes(kind, name, "llm")), "")

    @property
    def asked_model(self) -> str:
        """The language model's name in tables: the user's own name for what a server answers with,
        else the model's.
        """
        llm: Mapping[str, object] = self.llm or {}
        return str(llm.get("served_as") or llm.get("model") or llm.get("name", ""))

    @property
    def reader_settings(self) -> dict[str, object]:
        """The settings for the reader's constructor."""
        return {
            key: value
            for key, value in (self.reader or {}).items()
            if key not in ReaderSection.model_fields
        }

    @property
    def llm_settings(self) -> dict[str, object]:
        """The settings for the language model's constructor."""
        return {key: value for key, value in (self.llm or {}).items() if key != "name"}


def search_settings(section: Mapping[str, object]) -> dict[str, object]:
    """The settings of a [retriever] or a part for its constructor."""
    return {
        key: value for key, value in section.items() if key not in RetrieverSection.model_fields
    }


def retriever_sections(section: RetrieverSettings) -> Iterator[RetrieverSettings]:
    """A [retriever] and all its parts, recursively."""
    yield section
    for part in section.get("parts", ()):
        yield from retriever_sections(part)


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
    """Parse an experiment; every error message starts with `where`."""
    file = parse_section(ExperimentFile, sections, where)
    retriever = file.retriever
    reader = file.reader
    llm = file.llm
    if retriever is None and reader is None:
        raise ConfigError(f"{where}: wanted a [retriever], a [reader] or both; found neither")
    plugins = plugins or Plugins(root)
    scheme = load_scheme(file.benchmark, file.measures, root, file.split, plugins)
    checked = dict(file) | {
        "retriever": None if retriever is None else _parse_retriever(retriever, where, plugins),
        "reader": None
        if reader is None
        else _parse_reader(reader, retriever is not None, where, plugins),
        "llm": None if llm is None else _parse_llm(llm, where, plugins),
        "expected": parse_expected(file.expected, where, scheme),
        "questions": tuple(file.questions),
        "measures": tuple(file.measures),
    }
    experiment = Experiment(name=name, root=root, plugins=plugins, scheme=scheme, **checked)
    if experiment.llm is None and (
        plugin_name := experiment.asks_llm("retriever") or experiment.asks_llm("reader")
    ):
        raise ConfigError(
            f"{where}: {plugin_name!r} needs a language model; set it: [llm] model, or --model NAME"
        )
    if experiment.retriever and not experiment.corpus:
        for part in retriever_sections(experiment.retriever):
            if "index" in part or plugins.takes("retriever", part["name"], "corpus"):
                raise ConfigError(
                    f"{where}: retriever {part['name']!r} searches passages; set corpus = NAME"
                )
    return experiment


def _parse_retriever(
    section: Mapping[str, object],
    where: str,
    plugins: Plugins,
    at: str = "[retriever]",
    k: int = 100,
) -> RetrieverSettings:
    """Check a [retriever] or a part, and fill in the defaults; `k` is the default for its key k."""
    common = parse_section(RetrieverSection, section, f"{where}: {at}")
    name = common.name
    plugin = plugins.retriever(common.name)
    is_part = at != "[retriever]"
    settings = plugin_settings(
        "retriever", name, plugin, section, RetrieverSection.model_fields, where
    )
    filled = check_shape(RetrieverSettings, {"name": name, "k": common.k or k, **settings}, where)
    if is_part:
        filled["weight"] = common.weight
    rewrite_questions([], common.query)  # raises for an unknown query
    if common.query != "question":
        filled["query"] = common.query
    has_index = issubclass(plugin, IndexedRetriever)
    has_parts = bool(plugin.default_parts)
    # a retriever over other retrievers sends no query itself
    supported = {
        "weight": is_part,
        "index": has_index,
        "parts": has_parts,
        "query": not has_parts or "query" not in filled,
    }
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
        filled["index"] = common.index or name
    if has_parts:
        default = [
            {**part, "k": max(filled["k"], part.get("k", 0))} for part in plugin.default_parts
        ]
        parts = section.get("parts", default)
        inner = f"[[{at.strip('[]')}.parts]]"
        if not isinstance(parts, list) or not parts:
            raise ConfigError(f"{where}: {name!r} wants {inner}, found {parts!r}")
        filled["parts"] = [
            _parse_retriever(part, where, plugins, inner, filled["k"]) for part in parts
        ]
    return filled


def _parse_reader(
    section: Mapping[str, object], retrieves: bool, where: str, plugins: Plugins
) -> ReaderSettings:
    if not retrieves:
        if passages := section.get("passages"):
            problem = f"passages = {passages!r}, but without a [retriever] there are no passages"
            raise ConfigError(f"{where}: [reader]: {problem}; remove it, or name a retriever")
        # 0 in a variant's file
        section = {key: value for key, value in section.items() if key != "passages"}
    common = parse_section(ReaderSection, section, f"{where}: [reader]")
    plugin = plugins.reader(common.name)
    settings = plugin_settings(
        "reader", common.name, plugin, section, ReaderSection.model_fields, where
    )
    passages = common.passages if retrieves else 0
    return check_shape(
        ReaderSettings, {"name": common.name, "passages": passages, **settings}, where
    )


def _parse_llm(section: dict[str, Any], where: str, plugins: Plugins) -> ModelSettings:
    name = section["name"] if "name" in section else _llm_name(section, plugins.root)
    if not isinstance(name, str) or not name.strip():
        raise ConfigError(
            f"{where}: [llm] name: wanted a language model's plugin, such as 'openai'; "
            f"found {name!r:.80}"
        )
    plugin = plugins.llm(name)
    kept = {}
    for key, value in section.items():
        default, instead = plugin.retired.get(key, (None, ""))
        if instead and value != default:
            raise ConfigError(f"{where}: [llm] {key} is gone: {instead}")
        if not instead:
            kept[key] = value
    settings = plugin_settings("llm", name, plugin, kept, ["name"], where)
    plugin.refuse_settings(**settings)
    return check_shape(ModelSettings, {"name": name, **settings}, where)


def _llm_name(section: Mapping[str, object], root: Path) -> str:
    """The plugin of an [llm] that names none: a model of this machine runs here, unless there is an
    address to ask.
    """
    model = section.get("model")
    runs_here = (
        isinstance(model, str) and not section.get("base_url") and is_local_model(model, root)
    )
    return local_llm(str(model), root) if runs_here else "openai"
