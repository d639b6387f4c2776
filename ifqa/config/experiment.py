"""Experiment files: what is in them, and whether they make sense.

An experiment is `experiments/NAME.toml`: one whole file, no inheritance. What it makes lies in the folder of the same name
beside, under the working directory.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict, cast

from pydantic import Field

from ifqa.config.expected import Expected, parse_expected
from ifqa.config.names import bases, experiment_name
from ifqa.errors import IfqaError, unknown
from ifqa.plugins import load, takes
from ifqa.protocols import GIVEN, Indexed, Plugin
from ifqa.retrieval.queries import rewrite
from ifqa.scoring.declared import declared
from ifqa.settings import (
    Natural,
    NotNegative,
    Positive,
    Table,
    Text,
    check_settings,
    check_table,
    settings_of,
    with_fractions,
)
from ifqa.storage.files import read_toml
from ifqa.storage.resources import find_resource, list_resources


class ExperimentTable(Table):
    """An experiment file; the tables of its plugins are checked one by one."""

    benchmark: Text
    split: Text
    corpus: str = ""
    retriever: dict[str, Any] | None = None
    reader: dict[str, Any] | None = None
    llm: dict[str, Any] | None = None
    seed: Natural = 0
    expected: object = Field(default_factory=dict)
    limit: Natural = 0
    about: str = ""
    table: str = ""
    questions: list[Text] = Field(default_factory=list)
    measures: list[Text] = Field(default_factory=list)


class RetrieverTable(Table, extra="allow"):
    """What a [retriever] and its parts have beside the settings of the retriever itself."""

    name: Text
    index: Text | None = None
    k: Positive | None = None
    query: str = "question"
    parts: object = None
    weight: NotNegative = 1.0


class ReaderTable(Table, extra="allow"):
    """What a [reader] has beside the settings of the reader itself."""

    name: Text
    passages: Positive = 5


class LanguageModelTable(Table, extra="allow"):
    """What an [llm] has beside the settings of the language model itself."""

    name: Text = "openai"


class RetrieverSettings(TypedDict):
    """A [retriever] or a part of one, checked and filled; the retriever's own settings stand beside these."""

    name: str
    k: int
    query: NotRequired[str]  # where it is not "question"
    index: NotRequired[str]  # of one that searches an index
    parts: NotRequired[list["RetrieverSettings"]]
    weight: NotRequired[float]  # of a part


class ReaderSettings(TypedDict):
    """A [reader], likewise."""

    name: str
    passages: int


class ModelSettings(TypedDict):
    """An [llm], likewise."""

    name: str
    model: NotRequired[str]  # of those that ship with ifqa
    base_url: NotRequired[str]


@dataclass(frozen=True)
class Experiment:
    """A benchmark's split, answered with a retriever and a reader.

    `retriever` is None for a closed book, `reader` for a retrieval experiment; `llm` is the language model that either asks,
    or None. All settings are there, defaults too. `questions` are the ids of the only ones asked, or empty for all of the
    split; `table` is the heading under which a report lists it; `measures` are names of measures beside those that the
    benchmark declares. `root` is the folder that all its paths count from.
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

    @property
    def folder(self) -> Path:
        """Where its stages lie."""
        return self.root / "experiments" / self.name

    @property
    def corpus_folder(self) -> Path:
        """Where the passages and indexes of its corpus lie."""
        return self.root / "indexes" / self.corpus

    @property
    def stages(self) -> tuple[str, ...]:
        """Its stages before it is scored."""
        return tuple(["retrieve"] * (self.retriever is not None) + ["read"] * (self.reader is not None))

    @property
    def variant(self) -> bool:
        """Whether a flag made it from another one."""
        return bool(bases(self.name, self.root))

    def relatives(self, stage: str) -> list[Path]:
        """That stage's folders of the experiments this one varies, the nearest first."""
        return [self.root / "experiments" / name / stage for name in bases(self.name, self.root)]

    @property
    def indexes(self) -> list[str]:
        """Names of the corpus's indexes that the retriever and its parts search, each once."""
        tables = list(retriever_tables(self.retriever)) if self.retriever else []
        return list(dict.fromkeys(table["index"] for table in tables if "index" in table))

    def asks_llm(self, kind: Literal["retriever", "reader"]) -> str:
        """Which plugin of its retriever, or its reader, wants a language model, if any does."""
        tables = [self.reader] if kind == "reader" else retriever_tables(self.retriever) if self.retriever else []
        return next((table["name"] for table in tables if table and takes(kind, table["name"], "llm")), "")

    @property
    def reader_settings(self) -> dict[str, object]:
        """What the reader's constructor takes."""
        return {key: value for key, value in (self.reader or {}).items() if key not in ReaderTable.model_fields}

    @property
    def llm_settings(self) -> dict[str, object]:
        """What the language model's constructor takes."""
        return {key: value for key, value in (self.llm or {}).items() if key not in LanguageModelTable.model_fields}


def search_settings(table: Mapping[str, object]) -> dict[str, object]:
    """What the constructor of a [retriever] or of a part takes."""
    return {key: value for key, value in table.items() if key not in RetrieverTable.model_fields}


def retriever_tables(table: RetrieverSettings) -> Iterator[RetrieverSettings]:
    """A [retriever] and all of its parts, and theirs."""
    yield table
    for part in table.get("parts", ()):
        yield from retriever_tables(part)


def load_experiment(name: str, root: Path = Path()) -> Experiment:
    """The experiment of `experiments/NAME.toml`, or of the folder a flag made, checked and with all defaults filled in.

    That path is as good as the name, so that a shell's `experiments/*.toml` names several.

    Raises:
        IfqaError: there is no such experiment, or something in its file is unknown, missing or out of range.
    """
    name = experiment_name(name, root)
    file = find_resource(f"experiments/{name}.toml", root) or find_resource(f"experiments/{name}/experiment.toml", root)
    if file is None:
        made = [path.parent.name for path in (root / "experiments").glob("*/experiment.toml")]
        raise unknown("experiment", name, [*list_resources("experiments", ".toml", root), *made])
    return parse_experiment(name, read_toml(file), str(file), root)


def parse_experiment(name: str, tables: Mapping[str, object], where: str, root: Path = Path()) -> Experiment:
    """An experiment from its tables; `where` opens every error message."""
    table = check_table(ExperimentTable, tables, where)
    if table.retriever is None and table.reader is None:
        raise IfqaError(f"{where}: wanted a [retriever], a [reader] or both; found neither")
    measures = tuple(table.measures)
    by = declared(table.benchmark, measures, root)
    experiment = Experiment(
        name=name,
        benchmark=table.benchmark,
        split=table.split,
        corpus=table.corpus,
        retriever=None if table.retriever is None else _retriever(table.retriever, where),
        reader=None if table.reader is None else _reader(table.reader, table.retriever is not None, where),
        llm=None if table.llm is None else _llm(table.llm, where),
        seed=table.seed,
        expected=parse_expected(table.expected, where, by),
        limit=table.limit,
        about=table.about,
        table=table.table,
        questions=tuple(table.questions),
        root=root,
        measures=measures,
    )
    if experiment.llm is None and (asking := experiment.asks_llm("retriever") or experiment.asks_llm("reader")):
        raise IfqaError(f"{where}: {asking!r} asks a language model; name one: [llm] model, or --model NAME")
    if experiment.retriever and not experiment.corpus:
        for one in retriever_tables(experiment.retriever):
            if "index" in one or takes("retriever", one["name"], "corpus"):
                raise IfqaError(f"{where}: retriever {one['name']!r} searches passages; name the corpus that has them")
    return experiment


def _retriever(table: Mapping[str, object], where: str, at: str = "[retriever]", k: int = 100) -> RetrieverSettings:
    """A retriever's table, checked and filled; `k` is what it is asked for if it does not say."""
    common = check_table(RetrieverTable, table, f"{where}: {at}")
    name, own = common.name, search_settings(table)
    plugin = load("retriever", name)
    check_settings(
        f"setting of retriever {name!r}", plugin.__init__, own, GIVEN, where, beside=RetrieverTable.model_fields
    )
    filled = cast(RetrieverSettings, {"name": name, "k": common.k or k, **_filled(plugin, own)})
    if at != "[retriever]":
        filled["weight"] = common.weight
    elif "weight" in table:
        raise IfqaError(f"{where}: {at}: a weight is for the parts of another retriever; take it out")
    rewrite([], common.query)
    if common.query != "question":
        filled["query"] = common.query
    if issubclass(plugin, Indexed):
        filled["index"] = common.index or name
    elif "index" in table:
        raise IfqaError(f"{where}: retriever {name!r} searches no index; take 'index' out")
    if plugin.default_parts:
        if "query" in filled:
            raise IfqaError(f"{where}: {name!r} asks nothing itself; give 'query' to its [[{at.strip('[]')}.parts]]")
        parts = table.get("parts", list(plugin.default_parts))
        if not isinstance(parts, list) or not parts:
            raise IfqaError(f"{where}: {name!r} wants [[{at.strip('[]')}.parts]], found {parts!r}")
        inner = f"[[{at.strip('[]')}.parts]]"
        filled["parts"] = [_retriever(one, where, inner, filled["k"]) for one in parts]
    elif "parts" in table:
        raise IfqaError(f"{where}: retriever {name!r} has no parts; take them out")
    return filled


def _reader(table: Mapping[str, object], retrieves: bool, where: str) -> ReaderSettings:
    if not retrieves:
        if table.get("passages"):
            raise IfqaError(
                f"{where}: [reader]: passages = {table['passages']!r}, and without a [retriever] there are none to read; "
                "take it out, or name a retriever"
            )
        table = {key: value for key, value in table.items() if key != "passages"}  # 0 in a resolved file
    common = check_table(ReaderTable, table, f"{where}: [reader]")
    name = common.name
    plugin = load("reader", name)
    own = {key: value for key, value in table.items() if key not in ReaderTable.model_fields}
    check_settings(f"setting of reader {name!r}", plugin.__init__, own, GIVEN, where, beside=ReaderTable.model_fields)
    return cast(ReaderSettings, {"name": name, "passages": common.passages if retrieves else 0, **_filled(plugin, own)})


def _llm(table: Mapping[str, object], where: str) -> ModelSettings:
    name = check_table(LanguageModelTable, table, f"{where}: [llm]").name
    plugin = load("llm", name)
    own = {key: value for key, value in table.items() if key != "name"}
    check_settings(
        f"setting of llm {name!r}", plugin.__init__, own, GIVEN, where, beside=LanguageModelTable.model_fields
    )
    plugin.refuse(**own)
    return cast(ModelSettings, {"name": name, **_filled(plugin, own)})


def _filled(plugin: type[Plugin], own: Mapping[str, object]) -> dict[str, object]:
    """A plugin's settings, and its defaults where a table does not say."""
    return settings_of(plugin.__init__) | with_fractions(plugin.__init__, own)
