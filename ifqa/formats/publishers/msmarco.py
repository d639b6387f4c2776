"""MS MARCO question answering v2.1: queries of Bing with ten passages and answers that people wrote (Nguyen et al. 2016).

Files (github.com/microsoft/MSMARCO-Question-Answering, README.md, "Data Format"): `train_v2.1.json`, `dev_v2.1.json`
and `eval_v2.1_public.json`, each one JSON object of columns,

    {"answers": {"0": ["..."]}, "passages": {"0": [{"is_selected": 1, "passage_text": "...", "url": "..."}]},
     "query": {"0": "..."}, "query_id": {"0": 1185869}, "query_type": {...}, "wellFormedAnswers": {...}}

or the same questions as JSON lines (`train_v2.1.jsonl`), as the publisher's Utils/tojsonl.py writes them. The
passage-ranking files have no answers and are not read.

The gold answers are `answers` without "No Answer Present."; the well-formed ones are left out. The context is the ten
passages, a line each: which of them the authors took cannot be told. `dev` is the validation part (2,558 causal
questions with an answer in the paper), `eval` has no answers and only counts.

A column file is read three times, because its queries come last: for the causal rows, for their answers, for their
passages.
"""

from collections.abc import Iterable, Iterator, Sequence
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
    split_of,
    strings,
)
from ifqa.storage.files import field
from ifqa.storage.json_stream import JsonStream

_NONE = "No Answer Present."


def _choose(found: Sequence[Part]) -> list[Part]:
    return matching(found, r"(train|dev)_v2\.1\.jsonl?|eval_v2\.1_public\.jsonl?")


def _units(reading: Reading, chosen: Sequence[Part], causal: Causal) -> Units:
    def parse(part: Part) -> Parse:
        return partial(_found, split_of(part.base))

    for part in chosen:
        if part.base.endswith("l"):
            yield from json_lines(reading, [part], parse)
        else:
            yield from _rows(reading, part, causal, split_of(part.base))


def _rows(reading: Reading, part: Part, causal: Causal, split: str) -> Units:
    rows: dict[str, dict[str, Any]] = {}
    for _, row, stream in _columns(reading, part, "query"):
        query = stream.value()
        if not isinstance(query, str):
            raise IfqaError(f"{part}:{stream.line}: query {row!r} must be a string, found {type(query).__name__}")
        if causal(query):
            rows[row] = {"query": query}
    for key, row, stream in _columns(reading, part, "query_id", "answers"):
        if row in rows:
            rows[row][key] = stream.value()
    for _, row, stream in _columns(reading, part, "passages"):
        where = f"{part}:{stream.line}: row {row!r}"
        record = rows.pop(row, None)
        if record is None:
            yield _not_causal
        else:
            yield partial(_found, split, record | {"passages": stream.value()}, where)
    if rows:
        raise IfqaError(f"{part}: row {next(iter(rows))!r} has a query and no passages; fetch the file again")


def _not_causal() -> Iterable[Found]:
    def rest() -> Rest:
        raise AssertionError("asked for a question that no rule matches")

    return (Found("", rest),)


def _columns(reading: Reading, part: Part, *keys: str) -> Iterator[tuple[str, str, JsonStream]]:
    """Column, row and cursor of each value of some columns; the first of them must be there (eval has no answers)."""
    seen = []
    with reading.json(part) as stream:
        for key in stream.members():
            seen.append(key)
            if key in keys:
                for row in stream.members():
                    yield key, row, stream
    if keys[0] not in seen:
        raise IfqaError(
            f"{part}: column {keys[0]!r} is missing; found {', '.join(map(repr, seen[:9])) or 'no columns'}"
        )


def _found(split: str, record: dict[str, Any], where: str) -> Iterable[Found]:
    question = field(record, "query", str, where)

    def rest() -> Rest:
        answers = [one for one in strings(record, "answers", where) if one != _NONE] if "answers" in record else []
        passages = [any_text(one, "passage_text", where) for one in objects(record, "passages", where)]
        return Rest(identifier(record, "query_id", where), "\n".join(passages), answers, split)

    return (Found(question, rest),)


def _reads(part: Part) -> int:
    return 1 if part.base.endswith("l") else 3


LAYOUT = Layout(
    "MS MARCO",
    "train_v2.1.json, dev_v2.1.json and eval_v2.1_public.json (or .jsonl)",
    _choose,
    _units,
    reads=_reads,
)
