"""TREC runs: the ranking of each question, in the format that all retrieval tools read."""

import math
from collections import Counter
from pathlib import Path

from ifqa.errors import IfqaError
from ifqa.records import Hit
from ifqa.storage.files import create, read_lines, write


def write_run(path: Path, rankings: dict[str, list[Hit]], tag: str) -> None:
    """Write a TREC run: `question Q0 passage rank score tag`, rank from 1, best first.

    Scores are written with `repr`, so that they are read back as the same floats. trec_eval sorts by score, not by rank, so
    scores must not rise from one rank to the next.

    Raises:
        IfqaError: scores rise, or a passage is twice in a ranking.
    """
    with create(path) as handle:
        for question_id, hits in rankings.items():
            scores = [float(hit.score) for hit in hits]  # a plugin may give numpy floats
            for rank in range(1, len(scores)):
                if scores[rank] > scores[rank - 1]:
                    raise IfqaError(
                        f"ranking of {question_id}: the score rises from {scores[rank - 1]!r} to {scores[rank]!r} at rank "
                        f"{rank + 1}; wanted the best passage first"
                    )
            passage_id, times = next(iter(Counter(hit.passage_id for hit in hits).most_common(1)), ("", 0))
            if times > 1:
                raise IfqaError(
                    f"ranking of {question_id}: passage {passage_id} is there {times} times; wanted it once"
                )
            for rank, (hit, score) in enumerate(zip(hits, scores, strict=True), start=1):
                write(handle, f"{question_id} Q0 {hit.passage_id} {rank} {score!r} {tag}\n".encode())


def read_run(path: Path) -> dict[str, list[Hit]]:
    """The rankings of a TREC run by question, sorted by score as in trec_eval; equal scores keep the order of the file.

    Raises:
        IfqaError: a line does not have six fields, a score is no number, or a passage is twice in a ranking.
    """
    rankings: dict[str, dict[str, float]] = {}
    for number, line in read_lines(path):
        if not line.strip():
            continue
        fields = line.split()
        if len(fields) != 6:
            raise IfqaError(
                f"{path}:{number}: wanted 6 fields (question Q0 passage rank score tag), found {len(fields)}"
            )
        question_id, _, passage_id, _, score, _ = fields
        ranking = rankings.setdefault(question_id, {})
        if passage_id in ranking:
            raise IfqaError(f"{path}:{number}: passage {passage_id} appears twice in the ranking of {question_id}")
        try:
            ranking[passage_id] = float(score)
        except ValueError:
            ranking[passage_id] = math.nan
        if not math.isfinite(ranking[passage_id]):
            raise IfqaError(f"{path}:{number}: score {score!r} is not a number")
    return {
        question_id: sorted((Hit(*pair) for pair in ranking.items()), key=lambda hit: -hit.score)
        for question_id, ranking in rankings.items()
    }
