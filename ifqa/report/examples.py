"""Which questions `ifqa run --show N` shows: in turn one that is right, one that is wrong, and so on through `TURNS`."""

from collections.abc import Collection, Iterable

from ifqa.scoring.declared import Declared
from ifqa.scoring.summary import Row, score_in

RIGHT, WRONG, PARTLY, ABSTAINED, NONE = "right", "wrong", "partly right", "abstained", "no answer"
_COMPUTED = "computed"  # whatever its kind
TURNS = (RIGHT, WRONG, _COMPUTED, ABSTAINED, PARTLY, NONE)


def kind_of(row: Row, by: Declared) -> str:
    """Right, wrong and so on, by the benchmark's headline measure of single answers; empty if none was taken of this row.

    An answer that is neither best nor worst is partly right.

    Args:
        row: a row of `per_question.jsonl` of an experiment with a reader.
        by: what scores the experiment.
    """
    if row.get("failed"):
        return NONE
    if row.get("abstained"):
        return ABSTAINED
    key = by.headline([one.name for one in by.answers if one.name in row])
    if not key:
        return ""
    score, best = score_in(row, key), by.best(key)
    return RIGHT if score == best else WRONG if score == 1 - best else PARTLY


def choose(rows: Iterable[Row], by: Declared, count: int, computed: Collection[str] = ()) -> dict[str, str]:
    """Question id -> its kind, for `count` questions, in the order in which they are shown.

    In turn the first question of each of `TURNS` that was not chosen yet, in the questions' order. `computed` are the ids of the
    questions with a computed answer.
    """
    kinds = {str(row["id"]): kind_of(row, by) for row in rows}
    left: dict[str, list[str]] = {turn: [] for turn in (*TURNS, "")}
    for question_id, kind in reversed(kinds.items()):  # the next one is the last of its list
        left[kind].append(question_id)
        if question_id in computed:
            left[_COMPUTED].append(question_id)
    chosen: dict[str, str] = {}
    while len(chosen) < min(count, len(kinds)):
        for several in left.values():
            while several and several[-1] in chosen:
                several.pop()
            if several and len(chosen) < count:
                question_id = several.pop()
                chosen[question_id] = kinds[question_id]
    return chosen
