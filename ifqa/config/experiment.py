"""Experiment files: what is in them, and whether they make sense.

An experiment is `experiments/NAME.toml`: one whole file, no inheritance. What it makes lies in the folder of the same name
beside, under the working directory.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from ifqa.config.expected import Expected, parse_expected
from ifqa.config.tables import as_table, check_keys, plain_name, text, whole_number
from ifqa.errors import IfqaError, unknown
from ifqa.plugins import load, takes
from ifqa.retrieval.queries import rewrite
from ifqa.scoring.declared import declared
from ifqa.settings import check_settings, settings_of
from ifqa.storage.files import read_toml, texts_field
from ifqa.storage.resources import find_resource, list_resources

_NOT_SEARCH = {"name", "index", "k", "query", "parts", "weight"}
_NOT_READER = {"name", "passages"}


@dataclass(frozen=True)
class Experiment:
    """A benchmark's split, answered with a retriever and a reader.

    `retriever` is {"name", "index", "k", "query", "parts", **search settings} or None for a closed book, its parts tables of
    the same make with a "weight" each; `reader` is {"name", "passages", **settings} or None for a retrieval experiment.
    `llm` is {"name", **settings} of the language model that a reader or a retriever asks, or None.
    All settings are there, defaults too, but for "query", which is there when it is not "question". `questions` are the ids
    of the only ones asked, or empty for all of the split; `table` is the heading under which a report lists it; `measures` are
    names of measures beside those that the benchmark declares.
    """

    name: str
    benchmark: str
    split: str
    corpus: str = ""
    retriever: dict[str, Any] | None = None
    reader: dict[str, Any] | None = None
    llm: dict[str, Any] | None = None
    seed: int = 0
    expected: tuple[Expected, ...] = ()
    limit: int = 0
    about: str = ""
    table: str = ""
    questions: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Where its stages lie."""
        return Path("experiments") / self.name

    @property
    def stages(self) -> tuple[str, ...]:
        """Its stages before it is scored."""
        return tuple(["retrieve"] * (self.retriever is not None) + ["read"] * (self.reader is not None))

    @property
    def variant(self) -> bool:
        """Whether a flag made it from another one."""
        return "+" in self.name

    def relatives(self, stage: str) -> list[Path]:
        """That stage's folders of the experiments this one varies, the nearest first."""
        parts = self.name.split("+")
        return [Path("experiments") / "+".join(parts[:count]) / stage for count in range(len(parts) - 1, 0, -1)]

    @property
    def indexes(self) -> list[str]:
        """Names of the corpus's indexes that the retriever and its parts search, each once."""
        tables = list(retriever_tables(self.retriever)) if self.retriever else []
        return list(dict.fromkeys(table["index"] for table in tables if "index" in table))

    def asks_llm(self, kind: Literal["retriever", "reader"]) -> str:
        """Which plug of its retriever, or its reader, wants a language model, if any does."""
        tables = [self.reader] if kind == "reader" else retriever_tables(self.retriever) if self.retriever else []
        return next((table["name"] for table in tables if table and takes(kind, table["name"], "llm")), "")

    @property
    def reader_settings(self) -> dict[str, Any]:
        """What the reader's constructor takes."""
        return {key: value for key, value in (self.reader or {}).items() if key not in _NOT_READER}


def search_settings(table: Mapping[str, Any]) -> dict[str, Any]:
    """What the constructor of a [retriever] or of a part takes."""
    return {key: value for key, value in table.items() if key not in _NOT_SEARCH}


def retriever_tables(table: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A [retriever] and all of its parts, and theirs."""
    yield table
    for part in table.get("parts", ()):
        yield from retriever_tables(part)


def load_experiment(name: str) -> Experiment:
    """The experiment of `experiments/NAME.toml`, or of the folder a flag made, checked and with all defaults filled in.

    That path is as good as the name, so that a shell's `experiments/*.toml` names several.

    Raises:
        IfqaError: there is no such experiment, or something in its file is unknown, missing or out of range.
    """
    path = Path(name)
    if path.name != name and path.resolve().parent == Path("experiments").resolve():
        name = path.name.removesuffix(".toml")
    plain_name(name, "experiment")
    file = find_resource(f"experiments/{name}.toml") or find_resource(f"experiments/{name}/experiment.toml")
    if file is None:
        variants = [path.parent.name for path in Path("experiments").glob("*/experiment.toml")]
        raise unknown("experiment", name, [*list_resources("experiments", ".toml"), *variants])
    return parse_experiment(name, read_toml(file), str(file))


def parse_experiment(name: str, tables: Mapping[str, Any], where: str) -> Experiment:
    """An experiment from its tables; `where` opens every error message."""
    check_keys(tables, {one.name for one in fields(Experiment)} - {"name"}, f"{where}: key")
    retriever, reader = tables.get("retriever"), tables.get("reader")
    if retriever is None and reader is None:
        raise IfqaError(f"{where}: wanted a [retriever], a [reader] or both; found neither")
    measures = texts_field(dict(tables), "measures", where) if "measures" in tables else ()
    by = declared(text(tables, "benchmark", where), measures)
    experiment = Experiment(
        name=name,
        benchmark=text(tables, "benchmark", where),
        split=text(tables, "split", where),
        corpus=text(tables, "corpus", where) if tables.get("corpus") else "",
        retriever=None if retriever is None else _retriever(as_table(retriever, f"{where}: [retriever]"), where),
        reader=None
        if reader is None
        else _reader(as_table(reader, f"{where}: [reader]"), retriever is not None, where),
        llm=None if tables.get("llm") is None else _llm(as_table(tables["llm"], f"{where}: [llm]"), where),
        seed=whole_number(tables, "seed", 0, 0, where),
        expected=parse_expected(tables.get("expected", {}), where, by),
        limit=whole_number(tables, "limit", 0, 0, where),
        about=str(tables.get("about", "")),
        table=text(tables, "table", where) if "table" in tables else "",
        questions=texts_field(dict(tables), "questions", where) if "questions" in tables else (),
        measures=measures,
    )
    if experiment.llm is None and (asking := experiment.asks_llm("retriever") or experiment.asks_llm("reader")):
        raise IfqaError(f"{where}: {asking!r} asks a language model; name one: [llm] model, or --model NAME")
    if experiment.retriever and not experiment.corpus:
        for one in retriever_tables(experiment.retriever):
            if "index" in one or takes("retriever", one["name"], "corpus"):
                raise IfqaError(f"{where}: retriever {one['name']!r} searches passages; name the corpus that has them")
    return experiment


def _retriever(table: dict[str, Any], where: str, at: str = "[retriever]", k: int = 100) -> dict[str, Any]:
    """A retriever's table, checked and filled; `k` is what it is asked for if it does not say."""
    name = text(table, "name", f"{where}: {at}")
    plug = load("retriever", name)
    own = {key: value for key, value in table.items() if key not in _NOT_SEARCH}
    check_settings(
        f"{where}: setting of retriever {name!r}",
        plug.__init__,
        own,
        given=["index", "parts", "passages", "corpus", "llm"],
    )
    filled = {"name": name, "k": whole_number(table, "k", k, 1, f"{where}: {at}"), **settings_of(plug.__init__), **own}
    if at != "[retriever]":
        filled["weight"] = _weight(table, f"{where}: {at}")
    elif "weight" in table:
        raise IfqaError(f"{where}: {at}: a weight is for the parts of another retriever; take it out")
    query = table.get("query", "question")
    rewrite([], query)
    if query != "question":
        filled["query"] = query
    if hasattr(plug, "build"):
        filled["index"] = table.get("index", name)
    elif "index" in table:
        raise IfqaError(f"{where}: retriever {name!r} searches no index; take 'index' out")
    if hasattr(plug, "default_parts"):
        if "query" in filled:
            raise IfqaError(f"{where}: {name!r} asks nothing itself; give 'query' to its [[{at.strip('[]')}.parts]]")
        parts = table.get("parts", plug.default_parts)
        if not isinstance(parts, list) or not parts:
            raise IfqaError(f"{where}: {name!r} wants [[{at.strip('[]')}.parts]], found {parts!r}")
        inner = f"[[{at.strip('[]')}.parts]]"
        filled["parts"] = [_retriever(as_table(one, f"{where}: {inner}"), where, inner, filled["k"]) for one in parts]
    elif "parts" in table:
        raise IfqaError(f"{where}: retriever {name!r} has no parts; take them out")
    return filled


def _weight(table: dict[str, Any], where: str) -> float:
    weight = table.get("weight", 1.0)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < math.inf:
        raise IfqaError(f"{where}: weight must be a number from 0, found {weight!r}")
    return float(weight)


def _reader(table: dict[str, Any], retrieves: bool, where: str) -> dict[str, Any]:
    name = text(table, "name", f"{where}: [reader]")
    plug = load("reader", name)
    own = {key: value for key, value in table.items() if key not in _NOT_READER}
    check_settings(f"{where}: setting of reader {name!r}", plug.__init__, own, given=["llm"])
    passages = whole_number(table, "passages", 5, 1, f"{where}: [reader]") if retrieves else 0
    return {"name": name, "passages": passages, **settings_of(plug.__init__), **own}


def _llm(table: dict[str, Any], where: str) -> dict[str, Any]:
    name = table.get("name", "openai")
    plug = load("llm", text({"name": name}, "name", f"{where}: [llm]"))
    own = {key: value for key, value in table.items() if key != "name"}
    check_settings(f"{where}: setting of llm {name!r}", plug.__init__, own)
    if hasattr(plug, "refuse"):
        plug.refuse(**own)
    return {"name": name, **settings_of(plug.__init__), **own}
