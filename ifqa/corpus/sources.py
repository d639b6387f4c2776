"""Opens the passage sources of a corpus file, and estimates the time and disk that a build
takes.
"""

import csv
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import Any

from ifqa.corpus.documents.source import Documents
from ifqa.corpus.wikipedia.source import Articles, Dump
from ifqa.corpus.work_units import (
    FileRecords,
    FileSource,
    KnownFiles,
    QuestionLoader,
    Source,
    WorkUnit,
    passage_units,
)
from ifqa.errors import FormatError, IfqaError, MissingInput, unknown_name
from ifqa.records import Passage, Question, fingerprint_questions, gold_id
from ifqa.settings import check_settings, coerce_floats
from ifqa.storage.files import (
    read_jsonl,
    read_lines,
    require_file,
    text_field,
    typed_field,
    unicode_text,
)

#: A section [[passages.sources]] of a corpus file: a format and its settings.
SourceSection = Mapping[str, Any]

_WORKER_MEMORY = 150e6  # bytes of a process with one unit, measured
_PASSAGE_MEMORY = 36  # bytes per passage while the ids are sorted
_INDEX_BYTES = 16  # bytes per passage in the index of ids
_ID_SECONDS = 5e-6  # seconds per passage to sort the ids
_LARGEST_EXPANSION = 12  # bytes of passages per byte of input; the best compressed articles give 6


@dataclass
class PassageFiles(FileSource):
    """Files of passages: DPR's `psgs_w100.tsv`, or JSON lines of id, contents and optionally title.

    Args:
        path: a file, a folder with its subfolders, or a pattern.
    """

    format = "passages"
    needs = "ready passages"
    names = re.compile(r"[^.].*\.(jsonl|tsv)(\.(bz2|gz|xz))?")
    wanted = "no file of passages (.jsonl or .tsv, also .xz, .gz or .bz2)"

    def read_units(self, file: Path) -> Iterator[WorkUnit]:
        return passage_units(read_passages(file), str(file))


@dataclass
class GoldPassages(Source):
    """The gold passages of a benchmark's splits, unchanged, each text once, with an empty title.

    Args:
        benchmark, splits: where the questions come from.
        questions: the questions of each split, passed in by the caller.
    """

    format = "gold"

    benchmark: str
    splits: list[str]
    questions: Sequence[Sequence[Question]] = field(repr=False)

    @classmethod
    def open(cls, settings: Mapping[str, Any], root: Path, questions_of: QuestionLoader) -> Source:
        return cls(**settings, questions=questions_of(settings["benchmark"], settings["splits"]))

    @classmethod
    def splits_of(cls, settings: Mapping[str, Any]) -> list[tuple[str, str]]:
        return [
            (settings["benchmark"], split)
            for split in settings.get("splits", ())
            if "benchmark" in settings
        ]

    def work_units(self, earlier: FileRecords | None = None) -> Iterator[WorkUnit]:
        texts = dict.fromkeys(
            text
            for split in self.questions
            for question in split
            for text in question.gold_passages
        )
        passages = ((Passage(gold_id(text), "", text), 0) for text in texts)
        return passage_units(passages, f"gold passages of {self.benchmark}")

    def fingerprint(self, known: KnownFiles) -> dict[str, object]:
        questions = [fingerprint_questions(split) for split in self.questions]
        return self.settings() | {
            "benchmark": self.benchmark,
            "splits": self.splits,
            "questions": questions,
        }


_CLASSES: Sequence[type[Source]] = (Dump, Articles, Documents, PassageFiles, GoldPassages)
FORMATS = {source.format: source for source in _CLASSES}


def read_passages(file: Path) -> Iterator[tuple[Passage, int]]:
    """The passages of a file, each with the number of bytes read so far.

    A `.tsv` file has DPR's format (dpr/data/retriever_data.py:253-287): columns id, text and title,
    a header line, and quotes around fields that contain a quote. Unlike DPR, we keep a quotation
    mark at the start or end of the text itself. JSON lines have `id`, `contents` and optionally
    `title`.
    """
    if not require_file(file, "passages").stat().st_size:
        raise FormatError(f"{file} is empty; fetch it again")
    with open(file, "rb") as handle:
        for passage_id, title, text, where in (
            _read_tsv if ".tsv" in file.suffixes else _read_json
        )(file, handle):
            if passage_id.split() != [passage_id]:
                raise FormatError(
                    f"{where}: passage id {passage_id!r}; wanted a non-empty id without white space"
                )
            title = unicode_text(title, "title", where)
            text = unicode_text(text, "text", where)
            yield Passage(passage_id, title, text), handle.tell()


def _read_tsv(file: Path, handle: BufferedReader) -> Iterator[tuple[str, str, str, str]]:
    """Id, title, text and "file:line" of each passage."""
    hint = "is a quotation mark not closed?"
    rows = csv.reader((f"{line}\n" for _, line in read_lines(file, handle)), delimiter="\t")
    try:
        for row in rows:
            where = f"{file}:{rows.line_num}"
            if row[:1] == ["id"] and rows.line_num == 1:
                continue
            if len(row) != 3 or any("\n" in cell for cell in row):
                problem = f"found {len(row)} fields on one or more lines"
                raise FormatError(
                    f"{where}: wanted id, text and title separated by tabs, {problem}; {hint}"
                )
            yield row[0], row[2], row[1], where
    except csv.Error as error:
        raise FormatError(
            f"{file}:{rows.line_num}: not tab-separated values ({error}); {hint}"
        ) from error


def _read_json(file: Path, handle: BufferedReader) -> Iterator[tuple[str, str, str, str]]:
    for number, record in read_jsonl(file, handle):
        where = f"{file}:{number}"
        title = typed_field(record, "title", str, where) if "title" in record else ""
        yield (
            text_field(record, "id", where),
            title,
            typed_field(record, "contents", str, where),
            where,
        )


def _no_questions(benchmark: str, splits: Sequence[str]) -> Sequence[Sequence[Question]]:
    raise MissingInput(f"gold passages of {benchmark}: no questions are loaded here")


def open_source(
    section: SourceSection, root: Path = Path(), questions_of: QuestionLoader = _no_questions
) -> Source:
    """Open and check the source of a section of a corpus file; relative paths start at `root`."""
    kind = source_class(section)
    if kind is None:
        raise unknown_name("format of a passage source", str(section.get("format", "")), FORMATS)
    settings = dict(section)
    noun = f"setting of a {kind.format!r} source"
    del settings["format"]
    check_settings(noun, kind, settings, injected=["questions"], other_keys=["format"])
    source = kind.open(coerce_floats(kind, settings), root, questions_of)
    source.check()
    return source


def source_class(section: SourceSection) -> type[Source] | None:
    """The class of a section's source; None for an unknown format."""
    return FORMATS.get(str(section.get("format")))


def question_splits(section: SourceSection) -> list[tuple[str, str]]:
    """Benchmark and split of the questions that a source reads."""
    kind = source_class(section)
    return kind.splits_of(section) if kind else []


def user_folders(sections: Sequence[SourceSection]) -> tuple[str, ...]:
    """The paths of the sources that are a user's own documents."""
    pairs = ((source_class(section), section) for section in sections)
    return tuple(
        str(Path(section["path"])) for kind, section in pairs if kind and kind.is_user_folder
    )


def total_size(sources: Sequence[Source]) -> int:
    """Bytes of the input of all sources."""
    return sum(source.size() for source in sources)


@dataclass(frozen=True)
class BuildEstimate:
    """The estimated cost of building passages."""

    passages: float
    disk: float  # bytes
    # CPU seconds of the main process, which decompresses every file that is not a multistream dump
    reading: float
    working: float  # CPU seconds that the workers share
    seen: float  # share of the input that was sampled

    def seconds(self, workers: int) -> float:
        """Lower bound of the build's seconds, with one core per worker."""
        return (
            max(self.reading, (self.reading + self.working) / workers) + self.passages * _ID_SECONDS
        )

    def memory(self, workers: int) -> float:
        """Approximate bytes of the workers and of the main process, which prepares units for
        them.
        """
        return (workers + 1) * _WORKER_MEMORY + self.passages * _PASSAGE_MEMORY


def estimate_build(sources: Sequence[Source]) -> BuildEstimate:
    """Estimate the cost of a build from a sample of each source."""
    passages = disk = reading = working = seen = 0.0
    for source in sources:
        count = size = read = 0
        seconds = 0.0
        began = time.process_time()
        for unit in source.sample():
            started = time.process_time()
            shard = unit.make_shard()
            seconds += time.process_time() - started
            count = count + shard.passages
            size = size + len(shard.lines)
            read = read + unit.read
        scale = source.size() / read if read else 1.0
        passages = passages + count * scale
        disk = disk + size * scale
        seen = seen + read
        reading += (time.process_time() - began - seconds) * scale
        working += seconds * scale
    total = total_size(sources)
    return BuildEstimate(
        passages, disk + passages * _INDEX_BYTES, reading, working, seen / total if total else 1.0
    )


def require_room(sources: Sequence[Source], folder: Path) -> None:
    """Raise an error if the estimated passages exceed the free space.

    An interrupted build's shards in `folder` count as free.
    """
    free = shutil.disk_usage(folder).free + sum(
        path.stat().st_size for path in folder.glob("passages-*.jsonl")
    )
    if free > total_size(sources) * _LARGEST_EXPANSION + (1 << 28):
        return
    from rich.filesize import decimal

    disk = estimate_build(sources).disk
    if disk > free:
        problem = (
            f"{folder} has room for {decimal(free)}, but the passages will take about "
            f"{decimal(int(disk))}"
        )
        raise IfqaError(
            f"{problem}; make room, or work on a larger disk (all files go "
            "below the working directory)"
        )
