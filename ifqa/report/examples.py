"""Which questions `ifqa run --show N` shows: in turn one that is right, one that is wrong, and so on through `KINDS`."""

from collections.abc import Iterable

from ifqa.scoring.declared import Declared
from ifqa.scoring.summary import Row, score_in

#: In the order in which they are shown. An answer that is neither best nor worst in the headline measure is partly right.
KINDS = ("right", "wrong", "partly right", "no answer")


def kind_of(row: Row, by: Declared) -> str:
    """One of `KINDS`, by the benchmark's headline measure of single answers; empty if none was taken of this row.

    Args:
        row: a row of `per_question.jsonl` of an experiment with a reader.
        by: what scores the experiment.
    """
    if row.get("failed"):
        return "no answer"
    key = by.headline([one.name for one in by.answers if one.name in row])
    if not key:
        return ""
    score, best = score_in(row, key), by.best(key)
    return "right" if score == best else "wrong" if score == 1 - best else "partly right"


def choose(rows: Iterable[Row], by: Declared, count: int) -> dict[str, str]:
    """Question id -> its kind, for `count` questions, in the order in which they are shown.

    In turn the first question of each kind that was not chosen yet, in the questions' order.
    """
    left: dict[str, list[str]] = {}
    for row in rows:
        left.setdefault(kind_of(row, by), []).append(row["id"])
    chosen: dict[str, str] = {}
    turns = max(map(len, left.values()), default=0)
    for turn in range(turns):
        for kind in (*KINDS, ""):
            if turn < len(left.get(kind, ())) and len(chosen) < count:
                chosen[left[kind][turn]] = kind
    return chosen
