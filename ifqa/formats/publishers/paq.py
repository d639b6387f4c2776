"""PAQ: 65 million questions that a model asked about passages of Wikipedia (Lewis et al., TACL 2021).

Files (github.com/facebookresearch/PAQ, README.md): `PAQ.metadata.jsonl`, one question a line,

    {"question": "...", "subsets": ["L1"], "answer": "...", "passage_score": -1.2,
     "answers": [{"passage_id": "123", "offset": 7, "text": "...", "extractor": "L"}]}

and `psgs_w100.tsv`, DPR's passages (id, text, title, by tab), where the contexts are looked up: unpacked, because
770,000 places of 13 GB are read. Without it the contexts are empty, and so they are with `PAQ.jsonl` (NQ-open's format:
`question`, and `answer`, a list), which names no passage.

The gold answer is `answer`, the context the passage of the first of `answers`. The authors' release gives PAQ's
questions one answer and passage ids as their ids; passage ids are not unique, so here the id is the number of the line.
PAQ has no split: the paper's 76,961 questions to test on are 10% of 769,606, so the random split stands for the
original one.
"""

from array import array
from collections.abc import Iterable, Sequence
from csv import reader
from functools import partial
from typing import Any

from ifqa.errors import IfqaError
from ifqa.formats.publishers.parts import Part, Reading, matching
from ifqa.formats.publishers.reading import (
    Causal,
    Found,
    Layout,
    Parse,
    Rest,
    Units,
    any_text,
    identifier,
    json_lines,
    objects,
    strings,
)
from ifqa.progress import bar
from ifqa.storage.files import field

_EVERY = 16  # lines between two places that are remembered: 10 MB for DPR's 21 million passages


def _choose(found: Sequence[Part]) -> list[Part]:
    questions = matching(found, r"PAQ\.metadata\.jsonl", r"PAQ\.jsonl")
    return questions + matching(found, r"psgs_w100\.tsv") if questions else []


def _units(reading: Reading, chosen: Sequence[Part], causal: Causal) -> Units:
    questions, *tables = chosen
    passages = Passages(reading, tables[0]) if tables else None

    def parse(part: Part) -> Parse:
        return partial(_found, passages)

    return json_lines(reading, [questions], parse)


def _found(passages: "Passages | None", record: dict[str, Any], where: str) -> Iterable[Found]:
    question = field(record, "question", str, where)

    def rest() -> Rest:
        number = where.rpartition(":")[2]
        if "answers" not in record:
            return Rest(number, "", strings(record, "answer", where), "both")
        places, context = objects(record, "answers", where), ""
        if passages and places:
            context = passages.text(identifier(places[0], "passage_id", where), where)
        return Rest(number, context, [any_text(record, "answer", where)], "both")

    return (Found(question, rest),)


class Passages:
    """Texts of DPR's passages by id, read from their places in the file. The ids count from 1, as the lines after the head do."""

    def __init__(self, reading: Reading, part: Part) -> None:
        """Find every 16th line.

        Raises:
            IfqaError: the file is packed, which allows no look-up.
        """
        if part.member or part.path.suffix != ".tsv":
            raise IfqaError(
                f"{part}: passages are looked up in an unpacked file; unpack it beside, and remove this one"
            )
        self._path = part.path
        self._handle = reading.hold(part.path)
        self._places = array("Q", [0])
        place, lines = 0, 0
        with bar(f"lines of {part.path.name}", part.size, unit="bytes") as advance:
            for number, line in enumerate(self._handle, start=1):
                place += len(line)
                if number % _EVERY == 0:
                    self._places.append(place)
                    lines += 1
                    if lines % 4096 == 0:
                        advance(place - self._places[-4097])

    def text(self, passage_id: str, where: str) -> str:
        """The text of a passage.

        Raises:
            IfqaError: there is no such passage; `where` opens the message.
        """
        line = int(passage_id) if passage_id.isdecimal() and len(passage_id) < 12 else 0  # line 0 is the head
        block = line // _EVERY
        if line and block < len(self._places):
            self._handle.seek(self._places[block])
            raw = b""
            for _ in range(line % _EVERY + 1):
                raw = self._handle.readline()
            fields = next(reader([raw.decode("utf-8", "replace").rstrip("\r\n")], delimiter="\t"), [])
            if len(fields) == 3 and fields[0] == passage_id:
                return fields[1]
        raise IfqaError(
            f"{where}: passage {passage_id!r} is not at its line of {self._path}; wanted PAQ's own psgs_w100.tsv"
        )


def _reads(part: Part) -> int:
    return 0 if part.base == "psgs_w100.tsv" else 1


LAYOUT = Layout("PAQ", "PAQ.metadata.jsonl and psgs_w100.tsv, or PAQ.jsonl", _choose, _units, reads=_reads)
