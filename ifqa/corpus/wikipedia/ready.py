"""Reads passages that are cut already: DPR's `psgs_w100.tsv`, or JSON lines like Pyserini's JsonCollection."""

import csv
from collections.abc import Iterator
from pathlib import Path

from ifqa.errors import IfqaError
from ifqa.records import Passage
from ifqa.storage.files import field, read_jsonl, read_lines, require, text_field, unicode_text


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
                title = field(record, "title", str, where) if "title" in record else ""
                text = field(record, "contents", str, where)
                yield _passage(text_field(record, "id", where), title, text, where), handle.tell()


def _passage(passage_id: str, title: str, text: str, where: str) -> Passage:
    if passage_id.split() != [passage_id]:
        raise IfqaError(f"{where}: passage id {passage_id!r}; wanted one that is not empty and holds no white space")
    return Passage(passage_id, unicode_text(title, "title", where), unicode_text(text, "text", where))
