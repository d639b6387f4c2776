"""Annotations by the typology of causal questions: counts, the agreement of two annotators, and the labeller beside them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ifqa.benchmarks.causalqa.typology import ASPECTS, Judged, Key, judge, kappa, label, read_annotations
from ifqa.errors import IfqaError
from ifqa.formats.questions import iter_questions
from ifqa.progress import counted
from ifqa.report.stats import interval_cell
from ifqa.report.table import Table
from ifqa.scoring.statistics import share_interval

#: Cohen's kappa on the typology, Bondarenko et al., COLING 2022, section 4.
PAPER_KAPPA = 0.54


@dataclass
class Measured:
    """What annotators and the labeller say of the same questions.

    Attributes:
        counts: annotator (a file), or "labeller" -> aspect -> class -> questions. The labeller's abstentions are under "".
        kappas: aspect, or "both" -> kappa of the two annotators; None if it is not defined. Empty for one annotator.
        common: number of questions that all annotators have.
        differing: aspect -> (first annotator's class, second's) -> questions.
        labeller: annotator, or "both agree" -> aspect -> class, or "all" -> the labeller beside it.
    """

    counts: dict[str, dict[str, Counter[str]]] = field(default_factory=dict)
    kappas: dict[str, float | None] = field(default_factory=dict)
    common: int = 0
    differing: dict[str, Counter[tuple[str, str]]] = field(default_factory=dict)
    labeller: dict[str, dict[str, dict[str, Judged]]] = field(default_factory=dict)


def measure(files: Sequence[Path], questions: Path | None = None) -> Measured:
    """Count annotations, compare two annotators, and judge the labeller against them.

    Args:
        files: one or two files of annotations; none to count the labeller's classes alone.
        questions: the file with the questions' texts, which the labeller reads; None to leave the labeller out.

    Raises:
        IfqaError: there is no file or more than two, one cannot be read, the annotators share no question, or the text of an
            annotated question is missing.
    """
    if len(files) > 2 or not (files or questions):
        raise IfqaError(f"wanted one or two files of annotations, or --questions FILE; found {len(files)} files")
    if len({str(one) for one in files}) < len(files):
        raise IfqaError(f"{files[0]} is given twice; wanted the files of two annotators")
    annotations = {str(path): _by_aspect(path) for path in files}
    found = Measured()
    for name, aspects in annotations.items():
        found.counts[name] = {aspect: Counter(own.values()) for aspect, own in aspects.items()}
    first, *rest = annotations.values() or [{}]
    if rest:
        _compare(found, first, rest[0])
    if questions:
        labels = _labels(questions, {key for one in annotations.values() for key in one["semantic"]})
        found.counts["labeller"] = {
            aspect: Counter(name or "" for name in own.values()) for aspect, own in labels.items()
        }
        agreed = {"both agree": {one: _agreed(first[one], rest[0][one]) for one in ASPECTS}} if rest else {}
        for name, aspects in (annotations | agreed).items():
            found.labeller[name] = {one: judge(labels[one], aspects[one], ASPECTS[one]) for one in ASPECTS}
    return found


def _by_aspect(path: Path) -> dict[str, dict[Key, str]]:
    annotations = read_annotations(path)
    return {aspect: {key: getattr(one, aspect) for key, one in annotations.items()} for aspect in ASPECTS}


def _compare(found: Measured, first: Mapping[str, Mapping[Key, str]], second: Mapping[str, Mapping[Key, str]]) -> None:
    keys = [key for key in first["semantic"] if key in second["semantic"]]
    if not keys:
        raise IfqaError("the two files have no question in common; wanted the same datasets and ids in both")
    found.common = len(keys)
    pairs = {aspect: [(first[aspect][key], second[aspect][key]) for key in keys] for aspect in ASPECTS}
    for aspect, own in pairs.items():
        found.kappas[aspect] = kappa(*zip(*own, strict=True))
        found.differing[aspect] = Counter(pair for pair in own if pair[0] != pair[1])
    ours, theirs = (
        [tuple(first_or[aspect][key] for aspect in ASPECTS) for key in keys] for first_or in (first, second)
    )
    found.kappas["both"] = kappa(ours, theirs)


def _agreed(first: Mapping[Key, str], second: Mapping[Key, str]) -> dict[Key, str]:
    return {key: name for key, name in first.items() if second.get(key) == name}


def _labels(path: Path, wanted: set[Key]) -> dict[str, dict[Key, str | None]]:
    """Aspect -> question -> the labeller's class, for the wanted questions; for all if none is named."""
    found: dict[str, dict[Key, str | None]] = {aspect: {} for aspect in ASPECTS}
    for question in iter_questions(path):
        key = (question.group, question.id)
        if not wanted or key in wanted:
            for aspect, name in zip(ASPECTS, label(question.text), strict=True):
                found[aspect][key] = name
    if missing := wanted - found["semantic"].keys():
        one = " ".join(min(missing)).strip()
        raise IfqaError(
            f"{path}: no question for {counted(len(missing), 'annotation')}, such as {one!r}; wanted its text"
        )
    return found


def stats_json(found: Measured) -> dict[str, object]:
    """The counts as JSON data, with kappa, and the labeller's coverage and precision as (share, low, high)."""
    counts = {
        name: {aspect: {one: own[one] for one in _classes(found, aspect)} for aspect, own in aspects.items()}
        for name, aspects in found.counts.items()
    }
    result: dict[str, object] = {"counts": counts}
    if found.kappas:
        differing = {
            aspect: [{"classes": pair, "questions": number} for pair, number in own.most_common()]
            for aspect, own in found.differing.items()
        }
        result |= {
            "questions": found.common,
            "kappa": found.kappas,
            "paper": {"kappa": PAPER_KAPPA},
            "differing": differing,
        }
    if found.labeller:
        result["labeller"] = {
            name: {
                aspect: {one: _judged_json(judged) for one, judged in own.items()} for aspect, own in aspects.items()
            }
            for name, aspects in found.labeller.items()
        }
    return result


def _judged_json(judged: Judged) -> dict[str, object]:
    return {
        "given": judged.given,
        "right": judged.right,
        "annotated": judged.annotated,
        "of": judged.of,
        "coverage": share_interval(judged.given, judged.of),
        "precision": share_interval(judged.right, judged.given),
    }


def tables(found: Measured) -> Iterator[Table]:
    """The counts, kappa beside the paper's, and the labeller's coverage and precision."""
    names = [Path(name).stem for name in found.counts]
    every = list(ASPECTS)
    for aspect in every:
        rows = tuple(
            (name or "(abstains)", *(f"{counts[aspect][name]:,}" for counts in found.counts.values()))
            for name in _classes(found, aspect)
        )
        note = _agreement(found) if found.kappas and aspect == every[-1] else ""
        yield Table(f"Questions by {aspect} class", note, ("", *names), rows)
    for number, (name, aspects) in enumerate(found.labeller.items(), start=1):
        last = number == len(found.labeller)
        note = "coverage: questions that the labeller gives a class. In brackets: 95% intervals." if last else ""
        cells = []
        for aspect, classes in aspects.items():
            for kind, beside in classes.items():
                whole = kind == "all"
                title = f"{aspect}, all" if whole else f"  {kind}"
                counts = (f"{beside.annotated:,}", f"{beside.given:,}", f"{beside.right:,}")
                coverage = share_interval(beside.given, beside.of) if whole else None
                shares = (coverage, share_interval(beside.right, beside.given))
                cells.append((title, *counts, *map(interval_cell, shares)))
        columns = ("", "annotated", "given", "right", "coverage", "precision")
        yield Table(f"The labeller, judged by {Path(name).stem}", note, columns, tuple(cells))


def _agreement(found: Measured) -> str:
    kappas = (f"{name} {'undefined' if value is None else f'{value:.2f}'}" for name, value in found.kappas.items())
    lines = [
        f"Cohen's kappa over {counted(found.common, 'question')}: {', '.join(kappas)}; the paper's annotators {PAPER_KAPPA}"
    ]
    for aspect, pairs in found.differing.items():
        told = ", ".join(f"{first} or {second} {number}" for (first, second), number in pairs.most_common())
        lines.append(f"{aspect}, where they differ: {told or 'nowhere'}")
    return "\n".join(lines)


def _classes(found: Measured, aspect: str) -> list[str]:
    """The classes, and "" for the labeller's abstentions."""
    return [*ASPECTS[aspect], *([""] if "labeller" in found.counts else [])]
