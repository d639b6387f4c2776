"""Corpus and experiment files: what is in them, whether they make sense, and what a flag changes about one.

A corpus is `indexes/NAME.toml`, an experiment `experiments/NAME.toml`: one whole file each, no inheritance. What they make
lies in the folder of the same name beside, under the working directory. A flag never changes `experiments/NAME/`: it makes
`experiments/NAME+k=5/`, with its resolved `experiment.toml` in it, which runs again by that name.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ifqa import sources
from ifqa.errors import IfqaError
from ifqa.files import create, find_resource, list_resources, read_toml, write
from ifqa.plugins import check_settings, load, settings_of, unknown

_CORPUS_KEYS = {"passages", "index", "about"}
_EXPERIMENT_KEYS = {"about", "benchmark", "split", "corpus", "seed", "retriever", "reader", "expected", "base", "limit"}
_NOT_SEARCH = {"name", "index", "k"}
_NOT_READER = {"name", "passages"}


@dataclass(frozen=True)
class Corpus:
    """Passages and the indexes over them. `indexes` maps an index's name to {"retriever": plug, **build settings}."""

    name: str
    sources: tuple[dict[str, Any], ...]
    indexes: dict[str, dict[str, Any]]
    about: str = ""

    @property
    def folder(self) -> Path:
        """Where passages and indexes lie."""
        return Path("indexes") / self.name


@dataclass(frozen=True)
class Experiment:
    """A benchmark's split, answered with a retriever and a reader.

    `retriever` is {"name", "index", "k", **search settings} or None for a closed book; `reader` is
    {"name", "passages", **settings} or None for a retrieval experiment. All settings are there, defaults too.
    """

    name: str
    benchmark: str
    split: str
    corpus: str = ""
    retriever: dict[str, Any] | None = None
    reader: dict[str, Any] | None = None
    seed: int = 0
    expected: dict[str, dict[str, Any]] = field(default_factory=dict)
    base: str = ""
    limit: int = 0
    about: str = ""

    @property
    def folder(self) -> Path:
        """Where its stages lie."""
        return Path("experiments") / self.name

    @property
    def search_settings(self) -> dict[str, Any]:
        """What the retriever's constructor takes."""
        return {key: value for key, value in (self.retriever or {}).items() if key not in _NOT_SEARCH}

    @property
    def reader_settings(self) -> dict[str, Any]:
        """What the reader's constructor takes."""
        return {key: value for key, value in (self.reader or {}).items() if key not in _NOT_READER}


def load_corpus(name: str) -> Corpus:
    """The corpus of `indexes/NAME.toml`, checked.

    Raises:
        IfqaError: there is no such file, or something in it is unknown or missing.
    """
    path = find_resource(f"indexes/{name}.toml")
    if path is None:
        raise unknown("corpus", name, list_resources("indexes", ".toml"))
    tables = read_toml(path)
    _check_keys(tables, _CORPUS_KEYS, f"{path}: key")
    passages = _table(tables, "passages", path)
    _check_keys(passages, {"sources"}, f"{path}: key of [passages]")
    entries = passages.get("sources")
    if not isinstance(entries, list) or not entries:
        raise IfqaError(f"{path}: wanted at least one [[passages.sources]]")
    indexes = tables.get("index", {})
    for index, table in indexes.items():
        plug = load("retriever", _text(table, "retriever", f"{path}: [index.{index}]"))
        if not hasattr(plug, "build"):
            raise IfqaError(f"{path}: [index.{index}]: retriever {table['retriever']!r} has no index to build")
        build = {key: value for key, value in table.items() if key != "retriever"}
        check_settings(f"{path}: build setting of [index.{index}]", plug.build, build, given=["passages", "folder"])
    return Corpus(name, tuple(entries), indexes, tables.get("about", ""))


def load_experiment(name: str) -> Experiment:
    """The experiment of `experiments/NAME.toml`, or of the folder a flag made, checked and with all defaults filled in.

    Raises:
        IfqaError: there is no such experiment, or something in its file is unknown, missing or out of range.
    """
    path = find_resource(f"experiments/{name}.toml") or find_resource(f"experiments/{name}/experiment.toml")
    if path is None:
        raise unknown("experiment", name, list_resources("experiments", ".toml"))
    return parse_experiment(name, read_toml(path), str(path))


def parse_experiment(name: str, tables: Mapping[str, Any], where: str) -> Experiment:
    """An experiment from its tables; `where` opens every error message."""
    _check_keys(tables, _EXPERIMENT_KEYS, f"{where}: key")
    retriever, reader = tables.get("retriever"), tables.get("reader")
    if retriever is None and reader is None:
        raise IfqaError(f"{where}: wanted a [retriever], a [reader] or both; found neither")
    experiment = Experiment(
        name=name,
        benchmark=_text(tables, "benchmark", where),
        split=_text(tables, "split", where),
        corpus=str(tables.get("corpus", "")),
        retriever=retriever and _retriever(retriever, where),
        reader=reader and _reader(reader, retriever is not None, where),
        seed=_whole(tables, "seed", 0, 0, where),
        expected=dict(tables.get("expected", {})),
        base=str(tables.get("base", "")),
        limit=_whole(tables, "limit", 0, 0, where),
        about=str(tables.get("about", "")),
    )
    load("benchmark", experiment.benchmark)
    for measure, row in experiment.expected.items():
        _check_keys(row, {"value", "tolerance", "source"}, f"{where}: key of [expected.{measure}]")
        if not isinstance(row.get("value"), int | float) or not isinstance(row.get("tolerance", 0), int | float):
            raise IfqaError(f"{where}: [expected.{measure}] wants a number as value and as tolerance")
    if experiment.retriever and "index" in experiment.retriever and not experiment.corpus:
        raise IfqaError(
            f"{where}: retriever {experiment.retriever['name']!r} searches an index; name the corpus that has it"
        )
    return experiment


def override(experiment: Experiment, changes: Mapping[str, Any]) -> Experiment:
    """The experiment with settings changed, under a name that says which; itself, where nothing really changes.

    Args:
        experiment: the one to change.
        changes: "k" (passages retrieved), "retriever", "reader" (plug names), "limit" (first N questions) or
            "section.setting" such as "retriever.k1" or "reader.passages".

    Raises:
        IfqaError: a change is unknown or out of range.
    """
    changed = _changed(experiment, changes)
    telling = [key for key in sorted(changes) if _tells(experiment, changes, key, changed)]
    if not telling:
        return experiment
    suffix = "".join(f"+{key}={_file_name(changes[key])}" for key in telling)
    return replace(changed, name=experiment.name + suffix, base=experiment.base or experiment.name)


def _tells(experiment: Experiment, changes: Mapping[str, Any], key: str, changed: Experiment) -> bool:
    """Whether the result would be another without this one of the changes."""
    try:
        return _changed(experiment, {one: changes[one] for one in changes if one != key}) != changed
    except IfqaError:  # the others make no sense without it
        return True


def _changed(experiment: Experiment, changes: Mapping[str, Any]) -> Experiment:
    tables = _as_tables(experiment)
    for key, value in sorted(changes.items()):  # "retriever" before "retriever.k1"
        section, _, setting = {"k": "retriever.k"}.get(key, key).partition(".")
        table = tables.get(section)
        if section in ("retriever", "reader") and setting:
            if table is None:
                raise IfqaError(f"experiment {experiment.name} has no [{section}] whose {setting} could change")
            tables[section] = {**table, setting: value}
        elif section in (
            "retriever",
            "reader",
        ):  # another plug: of the old one's settings only the numbers of passages hold
            if table is None or table["name"] != value:
                tables[section] = {
                    "name": value,
                    **{one: table[one] for one in ("k", "passages") if table and one in table},
                }
        elif key in ("limit", "seed", "split", "corpus"):
            tables[key] = value
        else:
            raise unknown(
                "setting",
                key,
                ["k", "limit", "seed", "split", "corpus", "retriever", "reader", "retriever.…", "reader.…"],
            )
    return parse_experiment(experiment.name, tables, f"experiment {experiment.name}")


def write_resolved(experiment: Experiment) -> None:
    """Put `experiment.toml` into the folder of an experiment that a flag made, unless it stands there already."""
    import tomli_w

    path = experiment.folder / "experiment.toml"
    text = tomli_w.dumps(_as_tables(experiment))
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        with create(path) as handle:
            write(handle, text.encode())


def _as_tables(experiment: Experiment) -> dict[str, Any]:
    keys = ("about", "base", "benchmark", "split", "corpus", "seed", "limit", "retriever", "reader", "expected")
    return {
        key: value
        for key in keys
        if (value := getattr(experiment, key)) not in ("", None, {}) and (key, value) != ("limit", 0)
    }


def _retriever(table: dict[str, Any], where: str) -> dict[str, Any]:
    name = _text(table, "name", f"{where}: [retriever]")
    plug = load("retriever", name)
    own = {key: value for key, value in table.items() if key not in _NOT_SEARCH}
    check_settings(f"{where}: setting of retriever {name!r}", plug.__init__, own, given=["index"])
    filled = {
        "name": name,
        "k": _whole(table, "k", 100, 1, f"{where}: [retriever]"),
        **settings_of(plug.__init__),
        **own,
    }
    if hasattr(plug, "build"):
        filled["index"] = table.get("index", name)
    elif "index" in table:
        raise IfqaError(f"{where}: retriever {name!r} searches no index; take 'index' out")
    return filled


def _reader(table: dict[str, Any], retrieves: bool, where: str) -> dict[str, Any]:
    name = _text(table, "name", f"{where}: [reader]")
    plug = load("reader", name)
    own = {key: value for key, value in table.items() if key not in _NOT_READER}
    check_settings(f"{where}: setting of reader {name!r}", plug.__init__, own)
    passages = _whole(table, "passages", 5, 1, f"{where}: [reader]") if retrieves else 0
    return {"name": name, "passages": passages, **settings_of(plug.__init__), **own}


def _table(tables: Mapping[str, Any], key: str, path: Path) -> dict[str, Any]:
    value = tables.get(key)
    if not isinstance(value, dict):
        raise IfqaError(f"{path}: wanted a table [{key}]")
    return value


def _check_keys(table: Mapping[str, Any], known: set[str], what: str) -> None:
    for key in table:
        if key not in known:
            raise unknown(what, key, known)


def _text(table: Mapping[str, Any], key: str, where: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value:
        raise IfqaError(f'{where}: wanted {key} = "...", found {"nothing" if value is None else repr(value)}')
    return value


def _whole(table: Mapping[str, Any], key: str, default: int, least: int, where: str) -> int:
    value = table.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise IfqaError(f"{where}: {key} must be a whole number from {least}, found {value!r}")
    return value


def _file_name(value: Any) -> str:
    """A value as a part of a folder's name, on any file system."""
    text = value if isinstance(value, str) else json.dumps(value)
    return re.sub(r"[^\w.-]+", "_", text)[:60]


def check_sources(corpus: Corpus) -> None:
    """Refuse a corpus whose sources are unknown or not there.

    Raises:
        IfqaError: the first source that is wrong.
    """
    for source in corpus.sources:
        sources.check(source)
