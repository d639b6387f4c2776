"""Annotations of questions by the typology: files of them, Cohen's kappa of two, and how a labeller fares against them."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ifqa.benchmarks.causalqa.typology import PRAGMATIC, SEMANTIC
from ifqa.errors import IfqaError
from ifqa.formats.rows import read_rows, row_id

#: What is annotated -> its classes, in the typology's order.
ASPECTS: Mapping[str, Sequence[str]] = {"semantic": list(SEMANTIC), "pragmatic": list(PRAGMATIC)}

Key = tuple[str, str]  # dataset ("" where the file names none) and id


@dataclass(frozen=True, slots=True)
class Annotation:
    """The two classes of a question."""

    semantic: str
    pragmatic: str


@dataclass(frozen=True, slots=True)
class Judged:
    """A labeller beside annotations of `of` questions.

    Attributes:
        given: questions to which the labeller gives the class.
        right: of these, questions that are annotated with it.
        annotated: questions that are annotated with it.
        of: all annotated questions.
    """

    given: int
    right: int
    annotated: int
    of: int


def read_annotations(path: Path) -> dict[Key, Annotation]:
    """The annotations of a file with `id`, `semantic`, `pragmatic` and, if ids repeat between datasets, `dataset`.

    Raises:
        IfqaError: the file is not one of `read_rows`, a class is unknown, or a question is annotated twice.
    """
    annotations: dict[Key, Annotation] = {}
    for where, row in read_rows(path, "semantic"):
        key = key_of(row, where)
        if key in annotations:
            raise IfqaError(f"{where}: {' '.join(key).strip()!r} is annotated twice; wanted one annotation a question")
        annotations[key] = Annotation(*(_class(row, aspect, where) for aspect in ASPECTS))
    if not annotations:
        raise IfqaError(f"{path}: wanted annotations, found none")
    return annotations


def key_of(row: Mapping[str, object], where: str) -> Key:
    """The dataset and id of a row.

    Raises:
        IfqaError: it has no id, or one of them is no text.
    """
    dataset = row.get("dataset") or ""
    if not isinstance(dataset, str):
        raise IfqaError(f"{where}: 'dataset' must be text, found {type(dataset).__name__}")
    name = row_id(row, where)
    if not name:
        raise IfqaError(f"{where}: wanted an 'id', found {', '.join(map(repr, row)) or 'no keys'}")
    return dataset, name


def _class(row: Mapping[str, object], aspect: str, where: str) -> str:
    value = row.get(aspect)
    if value not in ASPECTS[aspect]:
        raise IfqaError(f"{where}: {aspect!r} must be one of {', '.join(ASPECTS[aspect])}; found {value!r:.60}")
    return str(value)


def kappa(first: Sequence[Hashable], second: Sequence[Hashable]) -> float | None:
    """Cohen's kappa (1960) of two annotators' classes of the same questions: 1 - observed / expected disagreement.

    None if it is not defined: there is no question, or both give one and the same class to all.

    Raises:
        IfqaError: the annotators have different numbers of classes.
    """
    if len(first) != len(second):
        raise IfqaError(f"found {len(first)} and {len(second)} classes, wanted two of each question")
    total = len(first)
    ours, theirs = Counter(first), Counter(second)
    disagreeing = sum(a != b for a, b in zip(first, second, strict=True))
    expected = total * total - sum(ours[name] * theirs[name] for name in ours)  # times total², so it is a whole number
    return 1 - total * disagreeing / expected if expected else None


def judge(
    labels: Mapping[Key, str | None], annotations: Mapping[Key, str], classes: Sequence[str]
) -> dict[str, Judged]:
    """A labeller's classes beside annotated ones: over "all" classes, and for each.

    Args:
        labels: question -> the labeller's class; None where it abstains.
        annotations: question -> the annotated class. Only these questions count.
        classes: all classes, in order.
    """
    labelled = Counter(labels.get(key) for key in annotations)
    annotated = Counter(annotations.values())
    right = Counter(name for key, name in annotations.items() if labels.get(key) == name)
    total = len(annotations)
    every = {"all": Judged(sum(labelled[name] for name in classes), right.total(), total, total)}
    return every | {name: Judged(labelled[name], right[name], annotated[name], total) for name in classes}
