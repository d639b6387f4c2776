"""The functions that this folder's tasks of lm-eval call, for their questions and their scores."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ifqa.tasks.questions import Record, Shown, load_records, question_scores, set_score

if TYPE_CHECKING:
    from datasets import Dataset


def load_dataset(
    benchmark: str, split: str, passages: Shown = "none", **_: object
) -> dict[str, "Dataset"]:
    """The questions of a task, whose `metadata` are the arguments."""
    from datasets import Dataset

    return {"test": Dataset.from_list(load_records(benchmark, split, passages))}


def score_answer(doc: Record, results: Sequence[str]) -> dict[str, float]:
    """Scores of one answer by name."""
    return question_scores(doc, results[0].strip())


def keep_answer(doc: Record, results: Sequence[str]) -> Mapping[str, tuple[Record, str]]:
    """For measures of all answers at once: the record with its answer, by the measure's name."""
    return dict.fromkeys(("obeyed", "real_world", "right"), (doc, results[0].strip()))


def obeyed(items: Sequence[tuple[Record, str]]) -> float:
    """How often the answer is right, and not the one that the twin gets."""
    return set_score("obeyed", *zip(*items, strict=True))


def real_world(items: Sequence[tuple[Record, str]]) -> float:
    """How often it is wrong, and the twin's answer or a true one."""
    return set_score("real_world", *zip(*items, strict=True))


def right(items: Sequence[tuple[Record, str]]) -> float:
    """How often the answer is right, whatever the twin gets."""
    return set_score("right", *zip(*items, strict=True))
