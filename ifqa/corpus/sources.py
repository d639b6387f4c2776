"""The kinds of sources of passages, the sources of a corpus's file, and what building their passages will take."""

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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

_WORKER_MEMORY = 150e6  # bytes, measured for a process with one unit
_PASSAGE_MEMORY = 36  # bytes a passage while the ids are sorted
_INDEX_BYTES = 16  # bytes a passage in the index of ids
_ID_SECONDS = 5e-6  # seconds a passage to sort the ids
_NEVER_MORE = 12  # bytes of passages from a byte of input; the most tightly packed articles give 6


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


@dataclass(frozen=True)
class BuildEstimate:
    """Numbers of pages and passages, bytes on disk, CPU seconds, and the share of the input in the sample.

    One process spends the `reading` seconds: it alone unpacks any file that is not a multistream dump. All workers
    share the `working` seconds.
    """

    pages: float
    passages: float
    disk: float
    reading: float
    working: float
    seen: float

    def seconds(self, workers: int) -> float:
        """Lower bound of the build's seconds, with a core for each worker."""
        return max(self.reading, (self.reading + self.working) / workers) + self.passages * _ID_SECONDS

    def memory(self, workers: int) -> float:
        """Approximate bytes of the workers and of this process, which keeps units ready for them."""
        return (workers + 1) * _WORKER_MEMORY + self.passages * _PASSAGE_MEMORY


def estimate(sources: Sequence[Source]) -> BuildEstimate | None:
    """Estimate what building the passages of sources takes; None if one can be read only once, so that no sample can be."""
    total = size_of(sources)
    if total is None:
        return None
    sums = [0.0] * 5
    seen = 0
    for source in sources:
        read, counts = 0, [0.0] * 5
        sample = iter(source.sample())
        while True:
            started = time.process_time()
            unit = next(sample, None)
            reading = time.process_time() - started
            if unit is None:
                break
            shard = unit.make_shard()
            working = time.process_time() - started - reading
            read += unit.read
            more = (shard.pages, shard.passages, len(shard.data), reading, working)
            counts = [old + new for old, new in zip(counts, more, strict=True)]
        scale = (source.size() or 0) / read if read else 1.0
        sums = [old + part * scale for old, part in zip(sums, counts, strict=True)]
        seen += read
    pages, passages, disk, reading, working = sums
    share = seen / total if total else 1.0
    return BuildEstimate(pages, passages, disk + passages * _INDEX_BYTES, reading, working, share)


def require_room(sources: Sequence[Source], folder: Path) -> None:
    """Refuse a build that will not fit on the disk, before any work is done.

    Args:
        sources: the sources to build.
        folder: the folder of the build; shards that an earlier build left there count as free room.

    Raises:
        IfqaError: the estimate from a sample is larger than the room on the disk.
    """
    free = shutil.disk_usage(folder).free + sum(path.stat().st_size for path in folder.glob("passages-*.jsonl"))
    size = size_of(sources)
    if size is None or free > size * _NEVER_MORE + (1 << 28):
        return
    from rich.filesize import decimal

    expected = estimate(sources)
    if expected and expected.disk > free:
        raise IfqaError(
            f"{folder} has room for {decimal(free)}, the passages will take about {decimal(int(expected.disk))}; "
            "make room, or work in a folder on a larger disk (everything goes below the working directory)"
        )
