"""Annotations of causal questions by type: counts, agreement of two annotators, and the labeller's precision."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ifqa.benchmarks.causalqa import typology
from ifqa.benchmarks.causalqa.typology import ASPECTS, LabellerScore, QuestionKey
from ifqa.errors import ConfigError, FormatError
from ifqa.formats.questions import iter_questions
from ifqa.formatting import pluralize
from ifqa.report.stats import interval_cell
from ifqa.report.table import Table
from ifqa.scoring.statistics import wilson_interval

#: Cohen's kappa of the paper's annotators (Bondarenko et al., COLING 2022, section 4).
PAPER_KAPPA = 0.54

Aspects = dict[str, dict[QuestionKey, str]]  # aspect -> question -> class; "" for the labeller's abstention


@dataclass
class AnnotationCounts:
    """The classes that annotators and the labeller gave the same questions."""

    classes: dict[str, dict[str, dict[str, int]]]  # annotator (a file), or "labeller" -> aspect -> class -> questions
    kappas: dict[str, float | None] = field(default_factory=dict)  # aspect, or "both" -> kappa, None if undefined
    common: int = 0  # questions that both annotated
    #: Annotator, or "both agree" -> aspect -> class, or "all" -> the labeller's counts.
    labeller: dict[str, dict[str, dict[str, LabellerScore]]] = field(default_factory=dict)


def measure(files: Sequence[Path], questions: Path | None = None) -> AnnotationCounts:
    """Count one or two files of annotations, compare two annotators, and judge the labeller against them.

    The labeller reads the texts in the file `questions`; None leaves it out. Without `files`, only its classes are counted.
    """
    if len(files) > 2 or not (files or questions):
        raise ConfigError(f"wanted one or two files of annotations, or --questions FILE; found {len(files)} files")
    annotators: dict[str, Aspects] = {}
    for path in files:
        if str(path) in annotators:
            raise ConfigError(f"{path} is named twice; name the files of two annotators")
        rows = typology.read_annotations(path)
        columns = zip(ASPECTS, zip(*rows.values(), strict=True), strict=True)
        annotators[str(path)] = {aspect: dict(zip(rows, names, strict=True)) for aspect, names in columns}
    counts = AnnotationCounts({name: _count_classes(aspects) for name, aspects in annotators.items()})
    if len(annotators) == 2:
        first, second = annotators.values()
        keys = [key for key in first["semantic"] if key in second["semantic"]]
        if not keys:
            raise FormatError("the two files share no question; wanted the same datasets and ids in both")
        pairs = [[tuple(aspects[aspect][key] for aspect in ASPECTS) for key in keys] for aspects in (first, second)]
        for n, aspect in enumerate(ASPECTS):
            counts.kappas[aspect] = typology.kappa(*([classes[n] for classes in column] for column in pairs))
        counts.kappas["both"], counts.common = typology.kappa(*pairs), len(keys)
        both = annotators["both agree"] = {}
        for aspect in ASPECTS:
            both[aspect] = dict(item for item in first[aspect].items() if second[aspect].get(item[0]) == item[1])
    if questions:
        labels = _label_questions(questions, {key for aspects in annotators.values() for key in aspects["semantic"]})
        classes = counts.classes["labeller"] = _count_classes(labels)
        for aspect, names in labels.items():
            classes[aspect][""] = Counter(names.values())[""]
        for annotator, aspects in annotators.items():
            counts.labeller[annotator] = {
                aspect: typology.score_labels(labels[aspect], aspects[aspect], ASPECTS[aspect]) for aspect in ASPECTS
            }
    return counts


def _count_classes(labels: Aspects) -> dict[str, dict[str, int]]:
    counts = {aspect: Counter(names.values()) for aspect, names in labels.items()}
    return {aspect: {name: counts[aspect][name] for name in ASPECTS[aspect]} for aspect in ASPECTS}


def _label_questions(path: Path, keys: set[QuestionKey]) -> Aspects:
    """The labeller's classes for the questions with these keys; for all questions if `keys` is empty."""
    labels: Aspects = {aspect: {} for aspect in ASPECTS}
    for question in iter_questions(path):
        key = (question.group, question.id)
        if not keys or key in keys:
            for aspect, name in zip(ASPECTS, typology.classify_question(question.text), strict=True):
                labels[aspect][key] = name or ""
    if missing := keys - labels["semantic"].keys():
        number, example = pluralize(len(missing), "annotation"), " ".join(min(missing)).strip()
        raise FormatError(f"{path}: no question text for {number}, such as {example!r}; add it")
    return labels


def stats_json(counts: AnnotationCounts) -> dict[str, object]:
    """The counts as JSON data, with kappa, and the labeller's coverage and precision as (share, low, high)."""
    content: dict[str, object] = {"counts": counts.classes}
    if counts.kappas:
        content |= {"questions": counts.common, "kappa": counts.kappas, "paper": {"kappa": PAPER_KAPPA}}
    if counts.labeller:
        labeller = content["labeller"] = dict[str, object]()
        for annotator, aspects in counts.labeller.items():
            labeller[annotator] = {aspect: _scores_json(scores) for aspect, scores in aspects.items()}
    return content


def _scores_json(scores: Mapping[str, LabellerScore]) -> dict[str, object]:
    content: dict[str, object] = {}
    for name, score in scores.items():
        coverage, precision = wilson_interval(score.given, score.of), wilson_interval(score.right, score.given)
        content[name] = score._asdict() | {"coverage": coverage, "precision": precision}
    return content


def tables(counts: AnnotationCounts) -> Iterator[Table]:
    """The counts, kappa beside the paper's, and the labeller's coverage and precision."""
    columns = ("", *(Path(name).stem for name in counts.classes))
    kappas = [f"{name} {'undefined' if kappa is None else f'{kappa:.2f}'}" for name, kappa in counts.kappas.items()]
    over = pluralize(counts.common, "question")
    agreement = f"Cohen's kappa over {over}: {', '.join(kappas)}; of the paper's annotators: {PAPER_KAPPA}"
    for aspect, classes in ASPECTS.items():
        rows: list[tuple[str, ...]] = []
        for name in [*classes, *([""] if "labeller" in counts.classes else [])]:
            numbers = (f"{aspects[aspect].get(name, 0):,}" for aspects in counts.classes.values())
            rows.append((name or "(abstains)", *numbers))
        note = agreement if counts.kappas and aspect == "pragmatic" else ""
        yield Table(f"Questions by {aspect} class", note, columns, tuple(rows))
    for annotator, scores in counts.labeller.items():
        rows = []
        for aspect, by_class in scores.items():
            for name, score in by_class.items():
                coverage = wilson_interval(score.given, score.of) if name == "all" else None
                precision = wilson_interval(score.right, score.given)
                cells = (f"{score.annotated:,}", f"{score.given:,}", f"{score.right:,}")
                title = f"{aspect}, all" if name == "all" else f"  {name}"
                rows.append((title, *cells, interval_cell(coverage), interval_cell(precision)))
        columns = ("", "annotated", "given", "right", "coverage", "precision")
        note = "coverage: questions that the labeller gives a class. In brackets: 95% intervals."
        yield Table(f"The labeller, judged by {Path(annotator).stem}", note, columns, tuple(rows))
