"""NewsQA: questions on stories of CNN, answered by a span of the story (Trischler et al. 2017).

Files (github.com/Maluuba/newsqa, README.md, "Data Description"; the loader datasets/newsqa/newsqa.py of
huggingface/datasets): `combined-newsqa-data-v1.json`, which the publisher's script makes,

    {"data": [{"storyId": "./cnn/stories/2e1d4", "text": "...", "type": "train", "questions": [{"q": "...", "isAnswerAbsent": 0.0,
     "consensus": {"s": 115, "e": 125}, "answers": [...], "validatedAnswers": [...]}]}], "version": "1"}

where `consensus` is {"noAnswer": true} or {"badQuestion": true} if that was agreed on; or `combined-newsqa-data-v1.csv`
with the columns story_id, question, answer_char_ranges ("196:228|196:202,217:228|None", by crowd worker),
is_answer_absent, is_question_bad, validated_answers ('{"none": 1, "294:297": 2}') and story_text.

The gold answer is the consensus; of the CSV file, the range with most votes among the validated ones, else among the
workers'. The context is the story. `dev` is the validation part (29 causal questions with an answer in the paper);
`test` is in the random split alone. The CSV file does not tell the split: with the publisher's `train_story_ids.csv`,
`dev_story_ids.csv` and `test_story_ids.csv` beside it (maluuba/newsqa/ of the repository) it has one.
"""

import csv
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from ifqa.errors import IfqaError
from ifqa.formats.publishers.parts import Part, Reading, matching
from ifqa.formats.publishers.reading import (
    Causal,
    Found,
    Layout,
    Rest,
    Units,
    in_member,
    json_elements,
    mapping,
    objects,
    split_of,
)
from ifqa.storage.files import LONGEST_LINE, field, text_field

_COLUMNS = {"story_id", "question", "answer_char_ranges", "validated_answers", "story_text"}


def _choose(found: Sequence[Part]) -> list[Part]:
    stories = matching(found, r"combined-newsqa-data-v1\.json", r"combined-newsqa-data-v1\.csv")
    return stories + matching(found, r"(train|dev|test)_story_ids\.csv") if stories else []


def _units(reading: Reading, chosen: Sequence[Part], causal: Causal) -> Units:
    part, *lists = chosen
    if part.base.endswith(".csv"):
        splits = {story: split_of(one.base) for one in lists for _, story in reading.lines(one)}
        yield from _rows(reading, part, splits)
        return
    with reading.json(part) as stream:
        for _ in in_member(stream, part, "data"):
            yield from json_elements(stream, part, _found)


def _found(story: dict[str, Any], where: str) -> Iterable[Found]:
    name, text = text_field(story, "storyId", where), field(story, "text", str, where)
    split = split_of(field(story, "type", str, where))
    for number, one in enumerate(objects(story, "questions", where)):
        yield Found(field(one, "q", str, where), partial(_rest, one, f"{name}/{number}", text, split, where))


def _rest(one: dict[str, Any], question_id: str, text: str, split: str, where: str) -> Rest:
    agreed = mapping(one.get("consensus"), f"{where}: 'consensus'")
    answers = []
    if "s" in agreed:
        first, last = field(agreed, "s", int, where), field(agreed, "e", int, where)
        answers = [_span(text, first, last, where)]
    return Rest(question_id, text, answers, split)


def _span(text: str, first: int, last: int, where: str) -> str:
    if not 0 <= first <= last <= len(text):
        raise IfqaError(f"{where}: an answer goes from character {first} to {last}; the story has {len(text)}")
    return text[first:last]


def _rows(reading: Reading, part: Part, splits: Mapping[str, str]) -> Units:
    csv.field_size_limit(LONGEST_LINE)
    rows = csv.DictReader(f"{line}\n" for _, line in reading.lines(part))
    try:
        if missing := _COLUMNS - set(rows.fieldnames or ()):
            raise IfqaError(
                f"{part}:1: column {min(missing)!r} is missing; found {', '.join(rows.fieldnames or ())[:80]}"
            )
        asked: Counter[str] = Counter()  # questions of each story so far
        for row in rows:
            yield partial(_row, row, asked[row["story_id"]], splits, f"{part}:{rows.line_num}")
            asked[row["story_id"]] += 1
    except csv.Error as error:
        raise IfqaError(f"{part}:{rows.line_num}: not comma-separated values ({error})") from error


def _row(row: Mapping[str, str | None], number: int, splits: Mapping[str, str], where: str) -> Iterable[Found]:
    if None in row.values() or None in row:
        raise IfqaError(f"{where}: wanted {len(_COLUMNS) + 2} columns, found another number")
    cells = {key: value or "" for key, value in row.items()}

    def rest() -> Rest:
        spans = _agreed(cells, where)
        pieces = [_span(cells["story_text"], *_ends(span, where), where) for span in spans.split(",")] if spans else []
        answer = " ".join(piece.strip() for piece in pieces)
        return Rest(f"{cells['story_id']}/{number}", cells["story_text"], [answer], splits.get(cells["story_id"], ""))

    return (Found(cells["question"], rest),)


def _agreed(cells: Mapping[str, str], where: str) -> str:
    """The range with most votes ("196:202,217:228"); empty if that is none."""
    votes: Counter[str] = Counter()
    if cells["validated_answers"].strip():
        found = _json(cells["validated_answers"])
        if not isinstance(found, dict) or any(type(count) is not int for count in found.values()):
            raise IfqaError(
                f"{where}: validated_answers must be a JSON object of counts, found {cells['validated_answers']:.40}"
            )
        votes.update(found)
    votes = votes or Counter(cells["answer_char_ranges"].split("|"))
    best = max(votes, key=lambda one: votes[one], default="")
    return "" if best.lower() in ("none", "badquestion", "bad_question", "") else best


def _json(text: str) -> object:
    """The decoded text; None if it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _ends(span: str, where: str) -> tuple[int, int]:
    first, _, last = span.partition(":")
    if not (first.isdecimal() and last.isdecimal() and len(span) < 20):
        raise IfqaError(f"{where}: wanted a range of characters such as 196:228, found {span!r:.40}")
    return int(first), int(last)


LAYOUT = Layout("NewsQA", "combined-newsqa-data-v1.json or .csv", _choose, _units)
