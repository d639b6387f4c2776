"""Sources of passages that are cut already: files of them, and the gold passages of a benchmark.

A file is DPR's `psgs_w100.tsv`, or JSON lines like those of Pyserini's JsonCollection.
"""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ifqa.corpus.source_files import FileSource
from ifqa.corpus.work_units import NO_FILES, FileRecords, Known, QuestionsOf, Source, WorkUnit, passage_units
from ifqa.errors import IfqaError
from ifqa.records import Passage, Question, gold_id, questions_identity
from ifqa.storage.files import field as field_of
from ifqa.storage.files import read_jsonl, read_lines, require, text_field, unicode_text


@dataclass
class CutPassages(FileSource):
    """Files of passages: DPR's `psgs_w100.tsv`, or JSON lines of id, contents and optionally title.

    Args:
        path: a file; a folder, whose subfolders are read too, or a pattern for several files.
    """

    format = "passages"
    needs = "passages that are cut already"
    names = re.compile(r"[^.].*\.(jsonl|tsv)(\.(bz2|gz|xz))?")
    wanted = "no file of passages (.jsonl or .tsv, also .xz, .gz or .bz2)"

    def units_of(self, file: Path) -> Iterator[WorkUnit]:
        return passage_units(read_passages(file), str(file))


@dataclass
class GoldPassages(Source):
    """The gold passages of a benchmark's splits unchanged, each text once, with an empty title.

    Args:
        benchmark, splits: where the questions come from.
        questions: the questions of each split, handed in by the caller.
    """

    format = "gold"

    benchmark: str
    splits: list[str]
    questions: Sequence[Sequence[Question]] = field(repr=False)

    @classmethod
    def open(cls, settings: Mapping[str, Any], root: Path, questions_of: QuestionsOf) -> Source:
        return cls(**settings, questions=questions_of(settings["benchmark"], settings["splits"]))

    @classmethod
    def splits_of(cls, settings: Mapping[str, Any]) -> list[tuple[str, str]]:
        return [(settings["benchmark"], split) for split in settings.get("splits", ()) if "benchmark" in settings]

    def work_units(self, earlier: FileRecords = NO_FILES) -> Iterator[WorkUnit]:
        texts = dict.fromkeys(text for split in self.questions for question in split for text in question.gold_passages)
        passages = ((Passage(gold_id(text), "", text), 0) for text in texts)
        return passage_units(passages, f"gold passages of {self.benchmark}")

    def sample(self) -> Iterator[WorkUnit]:
        return self.work_units()

    def fingerprint(self, known: Known) -> dict[str, object]:
        named = {"benchmark": self.benchmark, "splits": self.splits}
        return self.settings() | named | {"questions": [questions_identity(split) for split in self.questions]}


def read_passages(file: Path) -> Iterator[tuple[Passage, int]]:
    """The passages of a file, each with the number of bytes read so far.

    A `.tsv` file, packed or plain, has the format of DPR (dpr/data/retriever_data.py:253-287): columns id, text and
    title, a header line, and quotes around fields that contain a quote. Unlike in DPR, a quotation mark that begins or
    ends the text itself stays. JSON lines have `id`, `contents` and optionally `title`.

    Raises:
        IfqaError: the file is missing or damaged, or a line is not a passage (named as file:line).
    """
    if not require(file, "passages").stat().st_size:
        raise IfqaError(f"{file} is empty; fetch it again")
    with open(file, "rb") as handle:
        if ".tsv" in file.suffixes:
            rows = csv.reader((f"{line}\n" for _, line in read_lines(file, handle)), delimiter="\t")
            try:
                for row in rows:
                    where = f"{file}:{rows.line_num}"
                    if row[:1] == ["id"] and rows.line_num == 1:
                        continue
                    if any("\n" in value for value in row):
                        raise IfqaError(f"{where}: a field goes on over several lines; is a quotation mark not closed?")
                    if len(row) != 3:
                        raise IfqaError(
                            f"{where}: wanted id, text and title with tabs between, found {len(row)} fields"
                        )
                    yield _passage(row[0], row[2], row[1], where), handle.tell()
            except csv.Error as error:
                raise IfqaError(
                    f"{file}:{rows.line_num}: not tab-separated values ({error}); is a quotation mark not closed?"
                ) from error
        else:
            for number, record in read_jsonl(file, handle):
                where = f"{file}:{number}"
                title = field_of(record, "title", str, where) if "title" in record else ""
                text = field_of(record, "contents", str, where)
                yield _passage(text_field(record, "id", where), title, text, where), handle.tell()


def _passage(passage_id: str, title: str, text: str, where: str) -> Passage:
    if passage_id.split() != [passage_id]:
        raise IfqaError(f"{where}: passage id {passage_id!r}; wanted one that is not empty and holds no white space")
    return Passage(passage_id, unicode_text(title, "title", where), unicode_text(text, "text", where))
