"""Reads and checks corpus files, indexes/NAME.toml, and writes those of `--docs`.

Passages and indexes are in indexes/NAME/.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import tomli_w
from pydantic import Field

from ifqa.config.experiment import Experiment
from ifqa.corpus.documents.folder import require_documents
from ifqa.corpus.languages import Language
from ifqa.corpus.sources import ConfiguredSource, parse_source
from ifqa.errors import ConfigError, unknown_name
from ifqa.plugins import ConfiguredPlugin, Plugins, identity_settings
from ifqa.protocols import IndexedRetriever
from ifqa.settings import (
    Natural,
    StrictModel,
    as_section,
    change_settings,
    parse_section,
    parse_settings,
    setting_fields,
    wanted,
)
from ifqa.storage.artifacts import lock
from ifqa.storage.files import atomic_write, read_toml, write_bytes
from ifqa.storage.resources import check_name, find_resource, list_resources
from ifqa.workers.pool import Engine

_ABOUT = """\
# The documents of a folder, as a corpus. `ifqa ask --docs` wrote this file; later runs keep your \
changes.
# Settings of [[passages.sources]], with their defaults: words = 100, overlap = 0, include = [], \
exclude = [], columns = [],
# max_mb = 50, ocr = false. What they mean: docs/own-documents.md.

"""


class CorpusFile(StrictModel):
    """A corpus file; `index` has a section for each index."""

    passages: dict[str, object]
    index: dict[str, dict[str, Any]] = Field(default_factory=dict)
    about: str = ""
    language: Language | Literal["en", ""] = ""


class PassagesSection(StrictModel):
    """[passages] of a corpus file."""

    sources: Annotated[
        list[dict[str, object]],
        Field(min_length=1, json_schema_extra=wanted("at least one [[passages.sources]]")),
    ]
    engine: Engine = "local"
    workers: Natural = 0


@dataclass(frozen=True, kw_only=True)
class ConfiguredIndex(ConfiguredPlugin[IndexedRetriever]):
    """A checked [index.NAME]: a retriever, and the settings of its `build`."""

    def section(self) -> dict[str, object]:
        return {"retriever": self.name, **as_section(self.settings)}

    @property
    def given_section(self) -> dict[str, object]:
        """The section as its file has it, without defaults."""
        return {"retriever": self.name, **as_section(self.settings, only_given=True)}

    @property
    def changed_section(self) -> dict[str, object]:
        """The settings that differ from their defaults, without what changes only the speed."""
        changed = self.settings.model_dump(exclude_defaults=True, by_alias=True)
        return identity_settings(self.plugin, {"retriever": self.name, **changed})

    @property
    def takes_language(self) -> bool:
        return "language" in setting_fields(self.plugin.BuildSettings)

    def in_language(self, language: str) -> "ConfiguredIndex":
        """The index of a corpus in another language than English, if its `build` tells them apart.

        A language that the corpus's file names for the index itself stays.
        """
        if not self.takes_language or "language" in self.given_section:
            return self
        return replace(self, settings=change_settings(self.settings, language=language))


@dataclass(frozen=True)
class CorpusConfig:
    """A corpus: the sources of its passages, and its indexes.

    `language` chooses Lucene's analyzer; if it is empty, that of most passages of a folder of
    documents, else English's. `engine` ("local", "ray") and `workers` (0: one per core) choose
    where, and in how many processes, passages are built.
    """

    name: str
    sources: tuple[ConfiguredSource, ...]
    indexes: dict[str, ConfiguredIndex]
    engine: Engine = "local"
    workers: int = 0
    root: Path = Path()
    about: str = ""
    language: str = ""
    plugins: Plugins = field(default_factory=Plugins, compare=False, repr=False)

    @property
    def folder(self) -> Path:
        return self.root / "indexes" / self.name


def load_corpus(
    name: str, root: Path = Path(), plugins: Plugins | None = None, **changes: object
) -> CorpusConfig:
    """Load and check `indexes/NAME.toml`.

    `changes` replace settings of its [passages], unless they are None.

    Raises ConfigError if the file does not exist, or a key is unknown, missing or of the wrong
    type.
    """
    if not isinstance(name, str):
        raise ConfigError(f"corpus {name!r}: wanted a name, such as 'sample'")
    path = find_resource(f"indexes/{check_name(name, 'corpus')}.toml", root)
    if path is None:
        raise unknown_name("corpus", name, list_resources("indexes", ".toml", root))
    where = str(path)
    file = parse_section(CorpusFile, read_toml(path), where)
    passages = parse_section(PassagesSection, file.passages, f"{where}: [passages]")
    changes = {key: value for key, value in changes.items() if value is not None}
    passages = parse_section(
        PassagesSection, passages.model_dump() | changes, f"--{' --'.join(changes)}"
    )
    plugins = plugins or Plugins(root)
    indexes = {
        index: _parse_index(index, section, where, plugins) for index, section in file.index.items()
    }
    return CorpusConfig(
        name,
        tuple(parse_source(source, where, plugins) for source in passages.sources),
        indexes,
        passages.engine,
        passages.workers,
        root,
        file.about,
        file.language,
        plugins,
    )


def _parse_index(
    index: str, section: Mapping[str, Any], where: str, plugins: Plugins
) -> ConfiguredIndex:
    """Check an [index.NAME] of a corpus file."""
    at = f"{where}: [index.{check_name(index, 'index')}]"
    if index == "passages":
        raise ConfigError(
            f"{at}: 'passages' is the folder of the passages; give the index another name"
        )
    if "retriever" not in section:
        raise ConfigError(f"{at}: key 'retriever' is missing; wanted a retriever with an index")
    name = section["retriever"]
    plugin = plugins.indexed_retriever(name)
    given = {key: value for key, value in section.items() if key != "retriever"}
    settings = parse_settings(plugin.BuildSettings, given, "build setting", at, ["retriever"])
    return ConfiguredIndex(
        kind="retriever", name=name, plugin=plugin, settings=settings, root=plugins.root
    )


def ensure_docs_corpus(
    path: str | Path,
    experiment: Experiment,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    ocr: bool = False,
) -> str:
    """The name of the corpus of a folder or file of documents, for an experiment's retriever.

    Writes its file if needed.

    The name ends with a hash of the absolute path, the patterns and `ocr`. A missing
    `indexes/NAME.toml` is written, with the indexes that the experiment searches; missing indexes
    are appended to an existing file. Nothing is written to the folder of documents. `include`,
    `exclude` and `ocr` are settings of the source. Raises MissingInput if the path does not exist,
    ConfigError if the experiment searches no index, or if patterns come with a single file.
    """
    if not experiment.indexes:
        raise ConfigError(
            f"--docs: experiment {experiment.name} searches no index; name another: -e sample"
        )
    documents = require_documents(path).resolve()
    if documents.is_file() and (include or exclude):
        raise ConfigError(
            f"--include and --exclude choose files of a folder, and {path} is a file; remove them"
        )
    patterns = [sorted(include), sorted(exclude)] if include or exclude else []
    identity = json.dumps([str(documents), *patterns, *(["ocr"] if ocr else [])])
    slug = re.sub(r"[^a-z0-9]+", "-", documents.name.lower()).strip("-")[:40]
    name = "-".join(filter(None, ["docs", slug, hashlib.sha256(identity.encode()).hexdigest()[:8]]))
    file = experiment.root / "indexes" / f"{name}.toml"
    indexes = load_corpus(experiment.corpus, experiment.root).indexes
    with lock(file.with_suffix(""), wait=True):
        if not file.exists():
            source: dict[str, object] = {"format": "documents", "path": str(documents)}
            source |= ({"include": list(include)} if include else {}) | (
                {"exclude": list(exclude)} if exclude else {}
            )
            source |= {"ocr": True} if ocr else {}
            about = tomli_w.dumps({"about": f"Documents of {documents}."})
            _append_sections(file, f"{_ABOUT}{about}\n[[passages.sources]]\n", source)
        known = load_corpus(name, experiment.root).indexes
        for index in experiment.indexes:
            if index not in known:
                _append_sections(file, "\n", {"index": {index: indexes[index].given_section}})
    return name


def _append_sections(file: Path, text: str, sections: Mapping[str, object]) -> None:
    before = file.read_bytes() if file.exists() else b""
    with atomic_write(file) as handle:
        write_bytes(
            handle,
            before + text.encode() + tomli_w.dumps(sections, multiline_strings=False).encode(),
        )
