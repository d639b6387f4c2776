"""Reads and checks corpus files, indexes/NAME.toml.

A corpus is one whole file, without inheritance. Its passages and indexes are in the folder indexes/NAME/ of the working
directory.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, NotRequired, TypedDict, cast

from pydantic import Field

from ifqa.corpus.sources import Source
from ifqa.errors import IfqaError, unknown
from ifqa.plugins import Plugins
from ifqa.protocols import Indexed
from ifqa.settings import Natural, Table, Text, check_settings, check_table, with_fractions
from ifqa.storage.files import read_toml
from ifqa.storage.resources import find_resource, list_resources, plain_name
from ifqa.workers.tasks import Engine


class CorpusTable(Table):
    """A corpus file; `index` holds a table for each index."""

    passages: dict[str, object]
    index: dict[str, dict[str, object]] = Field(default_factory=dict)
    about: str = ""


class PassagesTable(Table):
    """[passages] of a corpus file."""

    sources: Annotated[list[dict[str, object]], Field(min_length=1, description="at least one [[passages.sources]]")]
    engine: Engine = "local"
    workers: Natural = 0


class IndexTable(Table, extra="allow"):
    """The keys of an [index.NAME] that are not settings of the retriever's `build`."""

    retriever: Text


class IndexSettings(TypedDict):
    """An [index.NAME]: these keys, and the settings of the retriever's `build`."""

    retriever: str
    model: NotRequired[str]  # for an index of vectors
    prebuilt: NotRequired[str]  # for BM25


@dataclass(frozen=True)
class Corpus:
    """A corpus: the sources of its passages, and its indexes. `ifqa.corpus.sources.check` checks the sources.

    `engine` ("local", "ray") and `workers` (0: one a core) say where passages are built; they do not change the passages.
    """

    name: str
    sources: tuple[Source, ...]
    indexes: dict[str, IndexSettings]
    engine: Engine = "local"
    workers: int = 0
    root: Path = Path()
    about: str = ""
    plugins: Plugins = field(default_factory=Plugins, compare=False, repr=False)

    @property
    def folder(self) -> Path:
        """The folder of passages and indexes."""
        return self.root / "indexes" / self.name


def build_settings(table: IndexSettings) -> dict[str, object]:
    """The settings of an index that go to the `build` of its retriever."""
    return {key: value for key, value in table.items() if key != "retriever"}


def load_corpus(name: str, root: Path = Path(), plugins: Plugins | None = None, **changes: object) -> Corpus:
    """The corpus of `indexes/NAME.toml`, checked. `changes` replace values of its [passages], unless they are None.

    `plugins` are those that are loaded already.

    Raises:
        IfqaError: there is no such file, or a key is unknown, missing or of the wrong type.
    """
    if not isinstance(name, str):
        raise IfqaError(f"corpus {name!r}: wanted a name, as 'sample'")
    path = find_resource(f"indexes/{plain_name(name, 'corpus')}.toml", root)
    if path is None:
        raise unknown("corpus", name, list_resources("indexes", ".toml", root))
    where = str(path)
    file = check_table(CorpusTable, read_toml(path), where)
    passages = check_table(PassagesTable, file.passages, f"{where}: [passages]")
    changes = {key: value for key, value in changes.items() if value is not None}
    passages = check_table(PassagesTable, passages.model_dump() | changes, f"--{' --'.join(changes)}")
    plugins = plugins or Plugins(root)
    for index, table in file.index.items():
        at = f"{where}: [index.{plain_name(index, 'index')}]"
        retriever = check_table(IndexTable, table, at).retriever
        plugin = plugins.retriever(retriever)
        if index == "passages":
            raise IfqaError(f"{at}: 'passages' is the folder of the passages; give the index another name")
        if not issubclass(plugin, Indexed):
            raise IfqaError(f"{at}: retriever {retriever!r} has no index to build")
        own = {key: value for key, value in table.items() if key != "retriever"}
        check_settings("build setting", plugin.build, own, ["passages", "folder"], at, beside=IndexTable.model_fields)
        table |= with_fractions(plugin.build, own)
    sources, indexes = cast(list[Source], passages.sources), cast(dict[str, IndexSettings], file.index)
    return Corpus(name, tuple(sources), indexes, passages.engine, passages.workers, root, file.about, plugins)
