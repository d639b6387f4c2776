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
# max_mb = 50, ocr = false, prefix = "". What they mean: docs/own-documents.md.

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


#: A folder or file of documents, or several.
DocsPaths = str | Path | Sequence[str | Path]


def ensure_docs_corpus(
    docs: DocsPaths,
    experiment: Experiment,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    ocr: bool = False,
    max_mb: float | None = None,
) -> str:
    """The name of the corpus of folders or files of documents, for an experiment's retriever.

    Writes its file if needed.

    The name ends with a hash of the absolute paths and of the other arguments. A missing
    `indexes/NAME.toml` is written, with the indexes that the experiment searches; missing indexes
    are appended to an existing file. Nothing is written to a folder of documents. `include`,
    `exclude`, `ocr` and `max_mb` are settings of each source. Raises MissingInput if a path does
    not exist, ConfigError if the experiment searches no index, if patterns come with a file, or if
    a path is within another.
    """
    if not experiment.indexes:
        raise ConfigError(
            f"--docs: experiment {experiment.name} searches no index; name another: -e sample"
        )
    paths = resolve_documents(docs)
    for path in paths:
        if path.is_file() and (include or exclude):
            raise ConfigError(
                f"--include and --exclude choose files of a folder, and {path} is a file; "
                "remove them"
            )
    settings: dict[str, object] = {}
    settings |= {"include": list(include)} if include else {}
    settings |= {"exclude": list(exclude)} if exclude else {}
    settings |= {"ocr": True} if ocr else {}
    settings |= {} if max_mb is None else {"max_mb": max_mb}
    patterns = [sorted(include), sorted(exclude)] if include or exclude else []
    flags = [*(["ocr"] if ocr else []), *([] if max_mb is None else [f"max_mb={max_mb:g}"])]
    identity = json.dumps([*map(str, paths), *patterns, *flags])
    names = "-".join(path.name for path in paths)
    slug = re.sub(r"[^a-z0-9]+", "-", names.lower()).strip("-")[:40]
    name = "-".join(filter(None, ["docs", slug, hashlib.sha256(identity.encode()).hexdigest()[:8]]))
    file = experiment.root / "indexes" / f"{name}.toml"
    indexes = load_corpus(experiment.corpus, experiment.root).indexes
    with lock(file.with_suffix(""), wait=True):
        if not file.exists():
            about = tomli_w.dumps({"about": f"Documents of {', '.join(map(str, paths))}."})
            _append_sections(file, f"{_ABOUT}{about}\n", {})
            for source in document_sources(paths):
                _append_sections(file, "[[passages.sources]]\n", source | settings)
        known = load_corpus(name, experiment.root).indexes
        for index in experiment.indexes:
            if index not in known:
                _append_sections(file, "\n", {"index": {index: indexes[index].given_section}})
    return name


def resolve_documents(docs: DocsPaths) -> list[Path]:
    """The absolute paths of `--docs`, each once, in the order of their names.

    Raises MissingInput if one does not exist, ConfigError if none is given or one is within
    another, whose files would be read twice.
    """
    given = [docs] if isinstance(docs, str | Path) else list(docs)
    if not given:
        raise ConfigError("docs: wanted a folder of documents, or a file; found none")
    paths = sorted({require_documents(path).resolve() for path in given})
    for path in paths:
        for other in paths:
            if other in path.parents:
                raise ConfigError(
                    f"--docs {path} is within --docs {other}, which would be read twice; "
                    "leave one of them out"
                )
    return paths


def document_sources(paths: Sequence[Path]) -> list[dict[str, object]]:
    """A source of documents for each path.

    Each of several has a `prefix`: the name of its folder, with as many folders above it as tell
    all of them apart.
    """
    sources: list[dict[str, object]]
    sources = [{"format": "documents", "path": str(path)} for path in paths]
    if len(paths) == 1:
        return sources
    folders = [path if path.is_dir() else path.parent for path in map(Path.resolve, paths)]
    parts = [folder.parts[1:] for folder in folders]
    for depth in range(1, max(map(len, parts)) + 1):
        prefixes = ["-".join(part[-depth:]) for part in parts]
        if len(set(prefixes)) == len(set(folders)) and all(prefixes):
            return [
                source | {"prefix": prefix}
                for source, prefix in zip(sources, prefixes, strict=True)
            ]
    names = ", ".join(map(str, folders))
    raise ConfigError(f"the names of {names} cannot be told apart; rename one of the folders")


def _append_sections(file: Path, text: str, sections: Mapping[str, object]) -> None:
    before = file.read_bytes() if file.exists() else b""
    with atomic_write(file) as handle:
        write_bytes(
            handle,
            before + text.encode() + tomli_w.dumps(sections, multiline_strings=False).encode(),
        )
