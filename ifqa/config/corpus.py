"""Corpus files: what is in them, and whether they make sense.

A corpus is `indexes/NAME.toml`: one whole file, no inheritance. Its passages and indexes lie in the folder of the same name
beside, under the working directory.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from ifqa.config.tables import as_table, check_keys, plain_name, text, whole_number
from ifqa.errors import IfqaError, unknown
from ifqa.plugins import load
from ifqa.protocols import Indexed
from ifqa.settings import check_settings
from ifqa.storage.files import read_toml
from ifqa.storage.resources import find_resource, list_resources
from ifqa.workers.tasks import Engine

_CORPUS_KEYS = {"passages", "index", "about"}


@dataclass(frozen=True)
class Corpus:
    """Passages and the indexes over them. `indexes` maps an index's name to {"retriever": plug, **build settings}.

    `engine` ("local", "ray") and `workers` (0: one a core) say where passages are built, and change nothing in them.
    """

    name: str
    sources: tuple[dict[str, Any], ...]
    indexes: dict[str, dict[str, Any]]
    engine: Engine = "local"
    workers: int = 0
    root: Path = Path()

    @property
    def folder(self) -> Path:
        """Where passages and indexes lie."""
        return self.root / "indexes" / self.name


def load_corpus(name: str, root: Path = Path(), **changes: Any) -> Corpus:
    """The corpus of `indexes/NAME.toml`, checked; `changes` to its [passages] that are not None count instead.

    Raises:
        IfqaError: there is no such file, or something in it is unknown, missing or of the wrong type.
    """
    path = find_resource(f"indexes/{plain_name(name, 'corpus')}.toml", root)
    if path is None:
        raise unknown("corpus", name, list_resources("indexes", ".toml", root))
    tables, where = read_toml(path), str(path)
    check_keys(tables, _CORPUS_KEYS, f"{where}: key")
    passages = as_table(tables.get("passages"), f"{where}: [passages]")
    passages = passages | {key: value for key, value in changes.items() if value is not None}
    check_keys(passages, {"sources", "engine", "workers"}, f"{where}: key of [passages]")
    engine = passages.get("engine", "local")
    if engine not in get_args(Engine):
        place = "--engine" if changes.get("engine") else f"{where}: engine of [passages]"
        raise unknown(place, str(engine), get_args(Engine))
    workers = whole_number(passages, "workers", 0, 0, f"{where}: [passages]")
    sources = passages.get("sources")
    if not isinstance(sources, list) or not sources:
        raise IfqaError(f"{where}: wanted at least one [[passages.sources]]")
    indexes = as_table(tables.get("index", {}), f"{where}: [index]")
    for index, value in indexes.items():
        at = f"{where}: [index.{plain_name(index, 'index')}]"
        table = as_table(value, at)
        plug = load("retriever", text(table, "retriever", at))
        if index == "passages":
            raise IfqaError(f"{at}: 'passages' is where the passages lie; name the index otherwise")
        if not issubclass(plug, Indexed):
            raise IfqaError(f"{at}: retriever {table['retriever']!r} has no index to build")
        own = {key: value for key, value in table.items() if key != "retriever"}
        check_settings(f"{where}: build setting of [index.{index}]", plug.build, own, given=["passages", "folder"])
    tables_of_sources = tuple(as_table(source, f"{where}: [[passages.sources]]") for source in sources)
    return Corpus(name, tables_of_sources, indexes, engine, workers, root)
