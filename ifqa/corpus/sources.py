"""The kinds of sources of passages, and the sources of a corpus's file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ifqa.corpus.documents.source import Documents
from ifqa.corpus.presplit import CutPassages, GoldPassages
from ifqa.corpus.wikipedia.source import Articles, Dump
from ifqa.corpus.work_units import QuestionsOf, Source
from ifqa.errors import IfqaError, unknown
from ifqa.records import Question
from ifqa.settings import check_settings, with_fractions

SourceTable = Mapping[
    str, Any
]  # a table [[passages.sources]] of a corpus file: its format, and the settings of that kind
FORMATS: dict[str, type[Source]] = {
    kind.format: kind for kind in (Dump, Articles, Documents, CutPassages, GoldPassages)
}


def no_questions(benchmark: str, splits: Sequence[str]) -> Sequence[Sequence[Question]]:
    """Refuses gold passages, where there is no benchmark to take them from."""
    raise IfqaError(f"gold passages of {benchmark}: there are no questions here to take them from")


def open_source(table: SourceTable, root: Path = Path(), questions_of: QuestionsOf = no_questions) -> Source:
    """The source of a table of a corpus's file, checked.

    Args:
        table: its format and its settings.
        root: where relative paths count from.
        questions_of: benchmark and splits -> the questions of each split, for gold passages.

    Raises:
        IfqaError: its format or a setting is unknown, or a file is missing.
    """
    name = table.get("format", "")
    if not isinstance(name, str) or name not in FORMATS:
        raise unknown("format of a passage source", str(name), FORMATS)
    kind, settings = FORMATS[name], {key: value for key, value in table.items() if key != "format"}
    check_settings(f"setting of a {name!r} source", kind, settings, given=["questions"], beside=["format"])
    source = kind.open(with_fractions(kind, settings), root, questions_of)
    source.check()
    return source


def open_sources(
    tables: Sequence[SourceTable], root: Path = Path(), questions_of: QuestionsOf = no_questions
) -> list[Source]:
    """The sources of a corpus, checked before any work is done.

    Raises:
        IfqaError: as `open_source`; or two sources are standard input.
    """
    sources = [open_source(table, root, questions_of) for table in tables]
    if sum(source.size() is None for source in sources) > 1:
        raise IfqaError('two sources are standard input (path = "-"), which can be read only once; keep one of them')
    return sources


def kind_of(table: SourceTable) -> type[Source] | None:
    """The kind of the source of a table; None for an unknown format."""
    return FORMATS.get(str(table.get("format")))


def splits_of(table: SourceTable) -> list[tuple[str, str]]:
    """Benchmark and split of the questions that the source of a table reads."""
    kind = kind_of(table)
    return kind.splits_of(table) if kind else []


def users_folders(tables: Sequence[SourceTable]) -> tuple[str, ...]:
    """The paths of sources that are a user's own documents."""
    return tuple(str(Path(table["path"])) for table in tables if (kind := kind_of(table)) and kind.is_users_folder)


def size_of(sources: Sequence[Source]) -> int | None:
    """Bytes that the sources read; None if nobody knows."""
    sizes = [source.size() for source in sources]
    return None if None in sizes else sum(size or 0 for size in sizes)
