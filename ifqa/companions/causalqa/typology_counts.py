"""Annotations of causal questions by type: counts, and the labeller's coverage and precision."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ifqa.companions.causalqa import typology
from ifqa.companions.causalqa.counts import interval_cell
from ifqa.companions.causalqa.typology import ASPECTS, LabellerScore, QuestionKey
from ifqa.errors import ConfigError, FormatError
from ifqa.formats.questions import iter_questions
from ifqa.formatting import pluralize
from ifqa.protocols import CountTable
from ifqa.scoring.statistics import wilson_interval

# Aspect -> question -> class; "" for the labeller's abstention
Aspects = dict[str, dict[QuestionKey, str]]


@dataclass
class AnnotationCounts:
    """How many questions the annotator and the labeller put in each class, and how well they
    agree.
    """

    # "annotator" or "labeller" -> aspect -> class -> questions
    classes: dict[str, dict[str, dict[str, int]]]
    labeller: dict[str, dict[str, LabellerScore]] = field(
        default_factory=dict
    )  # aspect -> class (or "all") -> the labeller's counts


def measure(annotated: Path | None, questions: Path | None = None) -> AnnotationCounts:
    """Count the annotations in a file, and judge the labeller by them.

    The labeller reads the texts in the file `questions`; if that is None, the labeller is left out.
    Without annotations, only the labeller's classes are counted.
    """
    if not (annotated or questions):
        raise ConfigError("wanted a file of annotations, or --questions FILE; found neither")
    counts = AnnotationCounts({})
    aspects = Aspects()
    if annotated:
        rows = typology.read_annotations(annotated)
        columns = zip(ASPECTS, zip(*rows.values(), strict=True), strict=True)
        aspects = {aspect: dict(zip(rows, names, strict=True)) for aspect, names in columns}
        counts.classes["annotator"] = _count_classes(aspects)
    if questions:
        labels = _label_questions(questions, {*aspects["semantic"]} if aspects else set())
        classes = counts.classes["labeller"] = _count_classes(labels)
        for aspect, names in labels.items():
            classes[aspect][""] = Counter(names.values())[""]
        for aspect, names in aspects.items():
            counts.labeller[aspect] = typology.score_labels(labels[aspect], names, ASPECTS[aspect])
    return counts


def _count_classes(labels: Aspects) -> dict[str, dict[str, int]]:
    counts = {aspect: Counter(names.values()) for aspect, names in labels.items()}
    return {aspect: {name: counts[aspect][name] for name in ASPECTS[aspect]} for aspect in ASPECTS}


def _label_questions(path: Path, keys: set[QuestionKey]) -> Aspects:
    """The labeller's classes for the questions with these keys.

    For all questions if `keys` is empty.
    """
    labels: Aspects = {aspect: {} for aspect in ASPECTS}
    for question in iter_questions(path):
        key = (question.group, question.id)
        if not keys or key in keys:
            for aspect, name in zip(
                ASPECTS, typology.classify_question(question.text), strict=True
            ):
                labels[aspect][key] = name or ""
    if missing := keys - labels["semantic"].keys():
        number = pluralize(len(missing), "annotation")
        example = " ".join(min(missing)).strip()
        raise FormatError(f"{path}: no question text for {number}, such as {example!r}; add it")
    return labels


def stats_json(counts: AnnotationCounts) -> dict[str, object]:
    """The counts as JSON data, with the labeller's coverage and precision as (share, low, high)."""
    scores = {aspect: _scores_json(by_class) for aspect, by_class in counts.labeller.items()}
    return {"counts": counts.classes} | ({"labeller": scores} if scores else {})


def _scores_json(scores: Mapping[str, LabellerScore]) -> dict[str, object]:
    content: dict[str, object] = {}
    for name, score in scores.items():
        coverage = wilson_interval(score.given, score.of)
        precision = wilson_interval(score.right, score.given)
        content[name] = score._asdict() | {"coverage": coverage, "precision": precision}
    return content


def tables(counts: AnnotationCounts) -> Iterator[CountTable]:
    """The counts, and the labeller's coverage and precision."""
    for aspect, classes in ASPECTS.items():
        rows: list[tuple[str, ...]] = []
        for name in [*classes, *([""] if "labeller" in counts.classes else [])]:
            numbers = (f"{aspects[aspect].get(name, 0):,}" for aspects in counts.classes.values())
            rows.append((name or "(abstains)", *numbers))
        yield CountTable(("", *counts.classes), rows, f"Questions by {aspect} class")
    rows = []
    for aspect, by_class in counts.labeller.items():
        for name, score in by_class.items():
            coverage = wilson_interval(score.given, score.of) if name == "all" else None
            precision = wilson_interval(score.right, score.given)
            cells = (f"{score.annotated:,}", f"{score.given:,}", f"{score.right:,}")
            title = f"{aspect}, all" if name == "all" else f"  {name}"
            rows.append((title, *cells, interval_cell(coverage), interval_cell(precision)))
    if rows:
        columns = ("", "annotated", "given", "right", "coverage", "precision")
        note = (
            "coverage: the share of questions to which the labeller gives a class. In brackets: "
            "95% intervals."
        )
        yield CountTable(columns, rows, "The labeller, judged by the annotations", note)
