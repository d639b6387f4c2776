"""Sources that are split into passages already: files of passages, and a benchmark's gold
passages.
"""

import csv
import re
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from ifqa.corpus.work_units import (
    FileRecords,
    FileSettings,
    FileSource,
    KnownFiles,
    QuestionLoader,
    Source,
    WorkUnit,
    passage_units,
)
from ifqa.errors import FormatError
from ifqa.records import Passage, fingerprint_questions, gold_id
from ifqa.settings import PluginSettings
from ifqa.storage.files import (
    read_jsonl,
    read_lines,
    require_file,
    text_field,
    typed_field,
    unicode_text,
)


class PassageFiles(FileSource):
    """Files of passages: DPR's `psgs_w100.tsv`, or JSON lines of id, contents and optionally
    title.
    """

    class Settings(FileSettings):
        path: str
        """A file, a folder with its subfolders, or a pattern."""

    format = "passages"
    needs = "ready passages"
    names = re.compile(r"[^.].*\.(jsonl|tsv)(\.(bz2|gz|xz))?")
    wanted = "no file of passages (.jsonl or .tsv, also .xz, .gz or .bz2)"

    def read_units(self, file: Path) -> Iterator[WorkUnit]:
        return passage_units(read_passages(file), str(file))


class GoldPassages(Source):
    """The gold passages of a benchmark's splits, unchanged, each text once, with an empty title."""

    class Settings(PluginSettings):
        benchmark: str
        """The benchmark whose questions have the passages."""
        splits: list[str]
        """The splits of the questions."""

    settings: Settings
    format = "gold"
    takes = ("questions",)

    def __init__(self, settings: Settings, *, questions: QuestionLoader) -> None:
        self.settings = settings
        self._questions = questions(settings.benchmark, settings.splits)

    @classmethod
    def splits_of(cls, settings: Settings) -> list[tuple[str, str]]:
        return [(settings.benchmark, split) for split in settings.splits]

    def work_units(self, earlier: FileRecords | None = None) -> Iterator[WorkUnit]:
        texts = dict.fromkeys(
            text
            for split in self._questions
            for question in split
            for text in question.gold_passages
        )
        passages = ((Passage(gold_id(text), "", text), 0) for text in texts)
        return passage_units(passages, f"gold passages of {self.settings.benchmark}")

    def identity(self, known: KnownFiles) -> dict[str, object]:
        questions = [fingerprint_questions(split) for split in self._questions]
        return self.identity_settings() | {
            "benchmark": self.settings.benchmark,
            "splits": self.settings.splits,
            "questions": questions,
        }


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
