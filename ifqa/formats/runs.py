"""TREC formats: runs (the ranking of each question) and qrels (relevance judgements)."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path

from ifqa.errors import FormatError, PluginError
from ifqa.records import Hit
from ifqa.storage.files import atomic_write, read_lines, unicode_text, write_bytes


def check_order(question_id: str, hits: Sequence[Hit]) -> None:
    """Raise PluginError if a score rises: trec_eval sorts by score, not by rank."""
    for rank, (before, after) in enumerate(pairwise(float(hit.score) for hit in hits), start=2):
        if after > before:
            rise = f"the score rises from {before!r} to {after!r} at rank {rank}"
            raise PluginError(f"ranking of {question_id}: {rise}; wanted the best passage first")


def format_ranking(question_id: str, hits: Sequence[Hit], tag: str) -> bytes:
    """A question's ranking as lines of a TREC run: `question Q0 passage rank score tag`, ranks from
    1.

    `repr` of a score reads back as the same float. Raises PluginError as `check_order`, and for a
    duplicate passage.
    """
    check_order(question_id, hits)
    scores = [float(hit.score) for hit in hits]  # a plugin may give numpy floats
    passage_id, times = next(iter(Counter(hit.passage_id for hit in hits).most_common(1)), ("", 0))
    if times > 1:
        raise PluginError(
            f"ranking of {question_id}: passage {passage_id} appears {times} times; wanted it once"
        )
    ranked = enumerate(zip(hits, scores, strict=True), start=1)
    lines = (
        f"{question_id} Q0 {hit.passage_id} {rank} {score!r} {tag}\n"
        for rank, (hit, score) in ranked
    )
    return "".join(lines).encode()


def write_run(path: Path, rankings: Mapping[str, Sequence[Hit]], tag: str) -> None:
    """Write a TREC run, atomically."""
    with atomic_write(path) as handle:
        for question_id, hits in rankings.items():
            write_bytes(handle, format_ranking(question_id, hits, tag))


def read_run(path: Path) -> dict[str, list[Hit]]:
    """The rankings of a TREC run by question id, sorted by score as in trec_eval.

    Ties keep the order of the file.
    """
    rankings: dict[str, dict[str, float]] = {}
    for line in _iter_hits(path):
        _add_hit(rankings.setdefault(line[1], {}), *line)
    return {question_id: _sort_hits(ranking) for question_id, ranking in rankings.items()}


def iter_rankings(path: Path) -> Iterator[tuple[str, list[Hit]]]:
    """Stream question ids and rankings from a TREC run whose lines are grouped by question."""
    for question_id, lines in groupby(_iter_hits(path), key=itemgetter(1)):
        ranking: dict[str, float] = {}
        for line in lines:
            _add_hit(ranking, *line)
        yield question_id, _sort_hits(ranking)


def _iter_hits(path: Path) -> Iterator[tuple[str, str, Hit]]:
    """Each line's location ("file:line"), question id and hit."""
    for number, line in read_lines(path):
        if not line.strip():
            continue
        fields = line.split()
        where = f"{path}:{number}"
        if len(fields) != 6:
            raise FormatError(
                f"{where}: wanted 6 fields (question Q0 passage rank score "
                f"tag), found {len(fields)}"
            )
        question_id, _, passage_id, _, text, _ = fields
        score = math.nan
        with suppress(ValueError):
            score = float(text)
        if not math.isfinite(score):
            raise FormatError(f"{where}: score {text!r} is not a number")
        yield where, question_id, Hit(passage_id, score)


def _add_hit(ranking: dict[str, float], where: str, question_id: str, hit: Hit) -> None:
    if hit.passage_id in ranking:
        raise FormatError(
            f"{where}: passage {hit.passage_id} appears twice in the ranking of {question_id}"
        )
    ranking[hit.passage_id] = hit.score


def _sort_hits(ranking: dict[str, float]) -> list[Hit]:
    return sorted((Hit(*pair) for pair in ranking.items()), key=lambda hit: -hit.score)


def write_qrels(path: Path, qrels: Mapping[str, Mapping[str, int]]) -> int:
    """Write TREC qrels (question id -> passage id -> relevance), `question 0 passage relevance`.

    Return their total number.
    """
    with atomic_write(path) as handle:
        for question_id, passages in qrels.items():
            for passage_id, relevance in passages.items():
                write_bytes(
                    handle,
                    f"{check_id(question_id)} 0 {check_id(passage_id)} {relevance}\n".encode(),
                )
    return sum(map(len, qrels.values()))


def check_id(name: str) -> str:
    """The id.

    Raises FormatError if it is empty or holds white space, which separates fields here, or a lone
    surrogate.
    """
    if name.split() != [name] or name.startswith("\ufeff"):  # a byte order mark
        problem = "is empty or holds white space, which separates fields in this format"
        raise FormatError(f"id {name!r} {problem}; choose another id")
    return unicode_text(name, "id", f"id {name!r}")
