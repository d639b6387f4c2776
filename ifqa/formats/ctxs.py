"""The `ctxs` JSON: retrieved passages with their texts, as DPR writes and FiD reads them.

It is a JSON list, or JSON lines, with an entry per question and its passages, best first:

    {"question": "…", "answers": ["…"], "ctxs": [{"id": "wiki:7", "title": "…", "text": "…",
                                                 "score": "82.3", "has_answer": true}]}

A list is read as a whole: 8,757 questions with 100 passages each take 600 MB. JSON lines are read
one by one.
"""

import codecs
import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from ifqa.errors import FormatError
from ifqa.records import Hit, Passage, Question
from ifqa.scoring.measures.answer_recall import has_answer
from ifqa.storage.files import (
    atomic_write,
    open_unpacked,
    read_jsonl,
    read_packed_json,
    text_field,
    texts_field,
    typed_field,
    unicode_text,
    write_bytes,
)

_PICKLE_MAGIC = re.compile(rb"\x80[\x02-\x05]")  # protocol 2 or later
_PICKLE_NAME = re.compile(r".*\.(pkl|pickle)(\.(gz|xz|bz2))?", re.IGNORECASE | re.DOTALL)


def read_ctxs(path: Path) -> Iterator[tuple[Question, list[tuple[Passage, float]]]]:
    """Each entry's question, and its passages with scores, best first.

    Errors name the entry by its number, from 1.

    The question has the file's "id" (or "") and its non-blank "answers". Passages are sorted by
    score as in FiD (src/data.py:64-68), but numerically, since DPR writes scores as text; ties keep
    the file's order. If any passage of an entry lacks a score, the entry's passages get the scores
    1, 1/2, 1/3, … in the file's order.

    White space in passage ids becomes "_". A passage without an id, or with the id of an earlier
    passage whose content differs, gets the id `ctx/` and 12 hex digits of the SHA-1 of its title
    and text. An entry's duplicates are merged at their best score.
    """
    refuse_pickle(path)
    contents: dict[str, str] = {}  # id -> hash of its passage
    for number, entry in enumerate(iter_entries(path), start=1):
        where = f"{path}: entry {number}"
        question = Question(
            _parse_id(entry, where),
            text_field(entry, "question", where),
            _parse_answers(entry, where),
        )
        yield question, _parse_ranking(typed_field(entry, "ctxs", list, where), contents, where)


def write_ctxs(
    path: Path,
    questions: Iterable[Question],
    rankings: Iterable[Sequence[Hit]],
    passages: Iterable[Sequence[Passage]],
) -> int:
    """Write a JSON list with an entry for each question, atomically; return the number of entries.

    `passages` has each ranking's passages, in its order. Scores are numbers, not text as in DPR:
    FiD does not parse text (src/data.py:64-68) and would sort "9.5" before "82.3". "has_answer" is
    DPR's: whether the text has an answer (not the title).
    """
    count = 0
    with atomic_write(path) as handle:
        for question, hits, hit_passages in zip(questions, rankings, passages, strict=True):
            ctxs = [
                {
                    "id": passage.id,
                    "title": passage.title,
                    "text": passage.text,
                    "score": float(hit.score),
                    "has_answer": has_answer(passage.text, question.answers),
                }
                for hit, passage in zip(hits, hit_passages, strict=True)
            ]
            entry = {
                "id": question.id,
                "question": question.text,
                "answers": list(question.answers),
                "ctxs": ctxs,
            }
            line = json.dumps(entry, ensure_ascii=False).encode("utf-8", "surrogatepass")
            write_bytes(handle, (b",\n" if count else b"[\n") + line)
            count += 1
        write_bytes(handle, b"\n]\n" if count else b"[]\n")
    return count


def is_ctxs(path: Path) -> bool:
    """Whether a file, compressed or not, starts as JSON, and so is not a TREC run."""
    return _read_head(path).removeprefix(codecs.BOM_UTF8).lstrip().startswith((b"[", b"{"))


def is_json_list(path: Path) -> bool:
    """Whether a file, compressed or not, starts as a JSON list."""
    return _read_head(path).removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"[")


def refuse_pickle(path: Path) -> None:
    """Raise FormatError for a file with the name or first bytes of a pickle, such as DPR's and
    FiD's embeddings.

    Loading a pickle, such as DPR's `wikipedia_passages_00`, would run the code in it.
    """
    if _PICKLE_NAME.fullmatch(path.name) or _PICKLE_MAGIC.match(_read_head(path)):
        raise FormatError(
            f"{path} is a pickle; ifqa never loads pickles, because that runs the code in "
            "them; encode the passages again (ifqa "
            "index CORPUS with a dense index of facebook/dpr-ctx_encoder-single-nq-base)"
        )


def _parse_ranking(
    ctxs: list[object], contents: dict[str, str], where: str
) -> list[tuple[Passage, float]]:
    passages = []
    scores = []
    for number, ctx in enumerate(ctxs, start=1):
        place = f"{where}, passage {number}"
        if not isinstance(ctx, dict):
            raise FormatError(f"{place}: wanted an object, found {type(ctx).__name__}")
        if ctx.get("title") is None:
            ctx["title"] = ""
        title, text = (
            unicode_text(typed_field(ctx, key, str, place), key, place) for key in ("title", "text")
        )
        content = hashlib.sha1(f"{title}\0{text}".encode(), usedforsecurity=False).hexdigest()
        identifier = _unique_id("_".join(_parse_id(ctx, place).split()), content, contents)
        passages.append(Passage(identifier, title, text))
        scores.append(_parse_score(ctx.get("score"), place))
    numbers = [score for score in scores if score is not None]
    if len(numbers) < len(scores):
        numbers = [1 / rank for rank in range(1, len(scores) + 1)]
    best: dict[str, tuple[Passage, float]] = {}
    for passage, score in sorted(zip(passages, numbers, strict=True), key=lambda pair: -pair[1]):
        best.setdefault(passage.id, (passage, score))
    return list(best.values())


def _unique_id(identifier: str, content: str, contents: dict[str, str]) -> str:
    """The passage's id, or one from its hash if it has none or another passage's.

    The id is added to `contents`.
    """
    names = [identifier] if identifier else []
    names += [f"ctx/{content[:digits]}" for digits in (12, 40)]
    return next(name for name in names if contents.setdefault(name, content) == content)


def _parse_id(record: dict[str, object], where: str) -> str:
    name = record.get("id")
    if isinstance(name, bool) or not isinstance(name, str | int | None):
        raise FormatError(
            f"{where}: 'id' must be text or a whole number, found {type(name).__name__}"
        )
    return "" if name is None else unicode_text(str(name), "id", where).strip()


def _parse_answers(entry: dict[str, object], where: str) -> tuple[str, ...]:
    answers = typed_field(entry, "answers", list, where) if entry.get("answers") is not None else []
    answers = [answer for answer in answers if answer != "" and not str(answer).isspace()]
    return texts_field({"answers": answers}, "answers", where)


def _parse_score(number: object, where: str) -> float | None:
    if number is None:
        return None
    score = math.nan
    if isinstance(number, str | int | float) and not isinstance(number, bool):
        with suppress(ValueError, OverflowError):
            score = float(number)
    if not math.isfinite(score):
        raise FormatError(
            f"{where}: 'score' must be a number, or text that is a number; "
            f"found {repr(number)[:40]}"
        )
    return score


def iter_entries(path: Path) -> Iterator[dict[str, object]]:
    """The objects of a JSON list or of JSON lines.

    An error names a list's entry by its number, from 1, or the line.
    """
    if not is_json_list(path):
        yield from (entry for _, entry in read_jsonl(path))
        return
    for number, entry in enumerate(read_packed_json(path), start=1):
        if not isinstance(entry, dict):
            raise FormatError(
                f"{path}: entry {number}: wanted a JSON object, found {type(entry).__name__}"
            )
        yield entry


def _read_head(path: Path) -> bytes:
    with open_unpacked(path) as handle:
        return handle.read(1024)
