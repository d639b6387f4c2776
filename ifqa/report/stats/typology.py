"""Annotations of causal questions by type: counts, agreement of two annotators, and the labeller's precision."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ifqa.benchmarks.causalqa.typology import (
    ASPECTS,
    LabellerScore,
    QuestionKey,
    classify_question,
    kappa,
    read_annotations,
    score_labels,
)
from ifqa.errors import IfqaError
from ifqa.formats.questions import iter_questions
from ifqa.formatting import pluralize
from ifqa.report.stats import interval_cell
from ifqa.report.table import Table
from ifqa.scoring.statistics import wilson_interval

#: Cohen's kappa on the typology, Bondarenko et al., COLING 2022, section 4.
PAPER_KAPPA = 0.54

Aspects = dict[str, dict[QuestionKey, str]]  # aspect -> question -> class; "" for the labeller's abstention


@dataclass
class AnnotationCounts:
    """The classes that annotators and the labeller gave the same questions.

    Attributes:
        classes: annotator (a file), or "labeller" -> aspect -> class -> questions.
        kappas: aspect, or "both" -> kappa of the two annotators, None if undefined; empty for one annotator.
        common: the number of questions that both annotated.
        labeller: annotator, or "both agree" -> aspect -> class, or "all" -> the labeller's counts.
    """

    classes: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)
    kappas: dict[str, float | None] = field(default_factory=dict)
    common: int = 0
    labeller: dict[str, dict[str, dict[str, LabellerScore]]] = field(default_factory=dict)


def measure(files: Sequence[Path], questions: Path | None = None) -> AnnotationCounts:
    """Count annotations, compare two annotators, and judge the labeller against them.

    Args:
        files: one or two files of annotations; none to count the labeller's classes alone.
        questions: the file with the questions' texts, which the labeller reads; None to leave the labeller out.
    """
    if len(files) > 2 or not (files or questions):
        raise IfqaError(f"wanted one or two files of annotations, or --questions FILE; found {len(files)} files")
    annotators: dict[str, Aspects] = {}
    for path in files:
        if str(path) in annotators:
            raise IfqaError(f"{path} is named twice; name the files of two annotators")
        rows = read_annotations(path)
        classes = zip(*rows.values(), strict=True)
        annotators[str(path)] = {
            aspect: dict(zip(rows, names, strict=True)) for aspect, names in zip(ASPECTS, classes, strict=True)
        }
    counts = AnnotationCounts({name: _count_classes(aspects) for name, aspects in annotators.items()})
    if len(annotators) == 2:
        first, second = annotators.values()
        keys = [key for key in first["semantic"] if key in second["semantic"]]
        if not keys:
            raise IfqaError("the two files share no question; wanted the same datasets and ids in both")
        ours, theirs = (
            [tuple(aspects[aspect][key] for aspect in ASPECTS) for key in keys] for aspects in (first, second)
        )
        for place, aspect in enumerate(ASPECTS):
            counts.kappas[aspect] = kappa([pair[place] for pair in ours], [pair[place] for pair in theirs])
        counts.kappas["both"], counts.common = kappa(ours, theirs), len(keys)
        annotators["both agree"] = {
            aspect: {key: name for key, name in first[aspect].items() if second[aspect].get(key) == name}
            for aspect in ASPECTS
        }
    if questions:
        labels = _label_questions(questions, {key for aspects in annotators.values() for key in aspects["semantic"]})
        abstained = {aspect: sum(not name for name in names.values()) for aspect, names in labels.items()}
        counts.classes["labeller"] = {
            aspect: {**names, "": abstained[aspect]} for aspect, names in _count_classes(labels).items()
        }
        for name, aspects in annotators.items():
            counts.labeller[name] = {
                aspect: score_labels(labels[aspect], aspects[aspect], ASPECTS[aspect]) for aspect in ASPECTS
            }
    return counts


def _count_classes(labels: Aspects) -> dict[str, dict[str, int]]:
    counts = {aspect: Counter(names.values()) for aspect, names in labels.items()}
    return {aspect: {name: counts[aspect][name] for name in ASPECTS[aspect]} for aspect in ASPECTS}


def _label_questions(path: Path, wanted: set[QuestionKey]) -> Aspects:
    """The labeller's classes of the wanted questions; of all if `wanted` is empty."""
    labels: Aspects = {aspect: {} for aspect in ASPECTS}
    for question in iter_questions(path):
        key = (question.group, question.id)
        if not wanted or key in wanted:
            for aspect, name in zip(ASPECTS, classify_question(question.text), strict=True):
                labels[aspect][key] = name or ""
    if missing := wanted - labels["semantic"].keys():
        example = " ".join(min(missing)).strip()
        raise IfqaError(
            f"{path}: no question text for {pluralize(len(missing), 'annotation')}, such as {example!r}; add it"
        )
    return labels


def stats_json(counts: AnnotationCounts) -> dict[str, object]:
    """The counts as JSON data, with kappa, and the labeller's coverage and precision as (share, low, high)."""
    result: dict[str, object] = {"counts": counts.classes}
    if counts.kappas:
        result |= {"questions": counts.common, "kappa": counts.kappas, "paper": {"kappa": PAPER_KAPPA}}
    if counts.labeller:
        result["labeller"] = {
            annotator: {
                aspect: {name: _agreement_json(beside) for name, beside in classes.items()}
                for aspect, classes in aspects.items()
            }
            for annotator, aspects in counts.labeller.items()
        }
    return result


def _agreement_json(beside: LabellerScore) -> dict[str, object]:
    coverage, precision = wilson_interval(beside.given, beside.of), wilson_interval(beside.right, beside.given)
    return beside._asdict() | {"coverage": coverage, "precision": precision}


def tables(counts: AnnotationCounts) -> Iterator[Table]:
    """The counts, kappa beside the paper's, and the labeller's coverage and precision."""
    columns = ("", *(Path(name).stem for name in counts.classes))
    kappas = [f"{name} {'undefined' if value is None else f'{value:.2f}'}" for name, value in counts.kappas.items()]
    over = pluralize(counts.common, "question")
    agreement = f"Cohen's kappa over {over}: {', '.join(kappas)}; the paper's annotators {PAPER_KAPPA}"
    for aspect, classes in ASPECTS.items():
        names = [*classes, *([""] if "labeller" in counts.classes else [])]
        rows = [
            (name or "(abstains)", *(f"{aspects[aspect].get(name, 0):,}" for aspects in counts.classes.values()))
            for name in names
        ]
        note = agreement if counts.kappas and aspect == "pragmatic" else ""
        yield Table(f"Questions by {aspect} class", note, columns, tuple(rows))
    for annotator, aspects in counts.labeller.items():
        rows = []
        for aspect, classes_of in aspects.items():
            for name, beside in classes_of.items():
                whole = name == "all"
                shares = (
                    wilson_interval(beside.given, beside.of) if whole else None,
                    wilson_interval(beside.right, beside.given),
                )
                numbers = (f"{beside.annotated:,}", f"{beside.given:,}", f"{beside.right:,}")
                rows.append((f"{aspect}, all" if whole else f"  {name}", *numbers, *map(interval_cell, shares)))
        columns = ("", "annotated", "given", "right", "coverage", "precision")
        note = "coverage: questions that the labeller gives a class. In brackets: 95% intervals."
        yield Table(f"The labeller, judged by {Path(annotator).stem}", note, columns, tuple(rows))
