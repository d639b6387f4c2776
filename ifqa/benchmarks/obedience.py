"""The benchmark `obedience`: does a reader answer by the supposition, or by a passage that
contradicts what it remembers?

A split names its parts, joined by "+", such as "full-dev+nq-swap". Each question comes with a
passage, and has a twin:

- a split of IfQA, or "sample-dev" or "sample-hard": questions with an if-clause and their gold
  passages. The twin is the question without its if-clause; questions that `ifqa.clauses` cannot
  split are left out.
- "nq-swap": data/reading/nq-swap-held.jsonl, a file of the benchmark `file`, in whose passages the
  answer was exchanged for another (Longpre et al. 2021). The twin has no passage, so that its
  answer is what the reader remembers.
- "confiqa-qa", "confiqa-mr" and "confiqa-mc": data/confiqa/ConFiQA-QA.json and so on (Bi et al.
  2024), whose passages tell of another world. The twin has no passage, and the world's answers are
  known.

The passage is the question's `context`. The twins get no scores of their own.

Where the world's answers are known, ConFiQA's own measures stand beside these: Pc and Po, how often
the answer holds the passage's or the world's, and MR = Po / (Pc + Po), the memorization ratio.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ifqa.benchmarks.file import File
from ifqa.benchmarks.ifqa import IfQA, Sample
from ifqa.clauses import as_question, split_question
from ifqa.errors import ConfigError, FormatError, MissingInput, unknown_name
from ifqa.protocols import Benchmark, ColumnMeasure, SetMeasure
from ifqa.records import Prediction, Question
from ifqa.scoring.measures.exact_match import exact_match, normalize
from ifqa.storage.files import read_json, text_field, texts_field

# labels: the name of a pair, which is its question's id; an answer in the world
PAIR, WORLD = "pair", "world"
_TWIN = "/twin"  # in the id of a twin
_NQ_SWAP = "data/reading/nq-swap-held.jsonl"
_CONFIQA = {
    f"confiqa-{part.lower()}": f"data/confiqa/ConFiQA-{part}.json" for part in ("QA", "MR", "MC")
}


class Outcome(NamedTuple):
    """Whether an answer obeys, is the world's, and is right."""

    obeyed: bool
    real_world: bool
    right: bool


def classify(
    answer: str | None, twin: str | None, answers: Sequence[str], world: Sequence[str] = ()
) -> Outcome:
    """The outcome of an answer and its twin's.

    None or blank for a failed prediction or an abstention: it is never right, and equals no other,
    even if nothing is left of the gold answers once they are normalised.
    """
    if not answer or not answer.strip():
        return Outcome(False, False, False)
    right = exact_match(answer, answers) == 1
    same = bool(twin and twin.strip()) and normalize(answer) == normalize(twin or "")
    known = bool(world) and exact_match(answer, world) == 1
    return Outcome(right and not same, not right and (same or known), right)


def recalls(answer: str, golds: Sequence[str]) -> bool:
    """Whether the normalised answer holds a normalised gold answer, also within a word.

    ConFiQA's rule; a gold answer of which nothing is left is never held.
    """
    text = normalize(answer)
    return any(gold in text for gold in map(normalize, golds) if gold)


def _measure(name: str, about: str, best: Literal["high", "low"] = "high") -> SetMeasure:
    """The share of pairs with a part of `Outcome`."""

    def share(questions: Sequence[Question], predictions: Sequence[Prediction]) -> float | None:
        answers = {
            prediction.question_id: None if prediction.error else prediction.answer
            for prediction in predictions
        }
        outcomes = [
            classify(
                answers[question.id],
                answers.get(question.id + _TWIN),
                question.answers,
                [text for label, text in question.labels if label == WORLD],
            )
            for question in questions
            if not question.id.endswith(_TWIN)
        ]
        return (
            sum(getattr(outcome, name) for outcome in outcomes) / len(outcomes)
            if outcomes
            else None
        )

    headline = name == "obeyed"
    return SetMeasure(
        name,
        share,
        unit=PAIR,
        headline=headline,
        in_tables=True,
        best=best,
        about=about,
        mean_of_units=True,
    )


OBEYED = _measure("obeyed", "how often the answer is right, and not the one that the twin gets")
REAL_WORLD = _measure(
    "real_world", "how often it is wrong, and the twin's answer or a true one", "low"
)
RIGHT = _measure("right", "how often the answer is right, whatever the twin gets")


def _recall_measure(name: str, of_world: bool, about: str) -> SetMeasure:
    """The share of answers that hold the passage's answer, or the world's.

    Only pairs count whose world's answers are known.
    """

    def share(questions: Sequence[Question], predictions: Sequence[Prediction]) -> float | None:
        hits = []
        for question, prediction in zip(questions, predictions, strict=True):
            world = [text for label, text in question.labels if label == WORLD]
            if world and not question.id.endswith(_TWIN):
                answer = "" if prediction.error else prediction.answer
                hits.append(recalls(answer, world if of_world else question.answers))
        return sum(hits) / len(hits) if hits else None

    best: Literal["high", "low"] = "low" if of_world else "high"
    return SetMeasure(name, share, unit=PAIR, best=best, about=about, mean_of_units=True)


def _memorization_ratio(
    columns: NDArray[np.float64], times: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Po / (Pc + Po) of each resample; NaN where no answer holds either."""
    pc, po = (times @ column for column in np.nan_to_num(columns).T)
    with np.errstate(invalid="ignore"):
        ratio: NDArray[np.float64] = po / (pc + po)
    return ratio


PC = _recall_measure("Pc", False, "ConFiQA: how often the answer holds the passage's")
PO = _recall_measure("Po", True, "ConFiQA: how often it holds the world's")
MR = ColumnMeasure(
    "MR",
    _memorization_ratio,
    (PC.name, PO.name),
    unit=PAIR,
    best="low",
    about="ConFiQA: Po / (Pc + Po), the share of the world's answers",
)


class Obedience(Benchmark):
    """Pairs of a question and its twin; groups are the parts of a split."""

    name = "obedience"
    takes = ("root",)
    groups = "part"
    measures = (OBEYED, REAL_WORLD, RIGHT, PC, PO, MR)
    files_of: ClassVar[dict[str, str]] = {"nq-swap": _NQ_SWAP, **_CONFIQA}

    def __init__(self, root: Path = Path()) -> None:
        self.folder = root
        self._ifqa = IfQA(root)
        self._sample = Sample()
        self._file = File(root)

    @property
    def splits(self) -> list[str]:
        """The parts of splits."""
        return [
            *self._ifqa.splits,
            *(f"sample-{split}" for split in self._sample.splits),
            *self.files_of,
        ]

    def files(self, split: str) -> list[Path]:
        return [path for part in split.split("+") for path in self._part_files(part)]

    def family(self, split: str) -> str:
        """That of its questions from IfQA; ConfigError if these are of both."""
        families = {
            self._ifqa.family(part) for part in split.split("+") if part in self._ifqa.splits
        }
        if len(families) > 1:
            raise ConfigError(
                f"obedience {split}: {' and '.join(sorted(families))} share questions; "
                "name one of them"
            )
        return "".join(families)

    def questions(self, split: str) -> list[Question]:
        """The pairs of a split: each question, followed by its twin."""
        return [
            replace(question, group=part)
            for part in split.split("+")
            for pair in self._pairs(part)
            for question in pair
        ]

    def _part_files(self, part: str) -> list[Path]:
        if part in self._ifqa.splits:
            return self._ifqa.files(part)
        if part not in self.splits:
            raise unknown_name("part of a split of obedience", part, self.splits)
        if part not in self.files_of:
            return self._sample.files(part.removeprefix("sample-"))
        path = self.folder / self.files_of[part]
        if not path.exists():
            raise MissingInput(
                f"{self.name} {part}: {path} is missing; docs/readers.md says where it comes from"
            )
        return [path]

    def _pairs(self, part: str) -> Iterator[tuple[Question, Question]]:
        self._part_files(part)  # raises if the part is unknown or missing
        if part in _CONFIQA:
            yield from (
                _pair(question, replace(question, context="")) for question in self._confiqa(part)
            )
        elif part in self.files_of:
            for question in self._file.questions(self.files_of[part]):
                yield _pair(question, replace(question, context=""))
        else:
            benchmark: Benchmark = self._ifqa if part in self._ifqa.splits else self._sample
            for question in benchmark.questions(part.removeprefix("sample-")):
                clauses = split_question(question.text)
                if clauses.presupposition:
                    shown = replace(
                        question, context="\n\n".join(question.gold_passages), gold_passages=()
                    )
                    yield _pair(shown, replace(shown, text=as_question(clauses.question)))

    def _confiqa(self, part: str) -> Iterator[Question]:
        """The records of ConFiQA; its keys are confirmed, its files were not here."""
        (path,) = self._part_files(part)
        records = read_json(path)
        if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
            raise FormatError(f"{path}: wanted a list of objects")
        for number, record in enumerate(records):
            where = f"{path}: record {number}"
            answers, world = (
                tuple(
                    dict.fromkeys(
                        (
                            text_field(record, f"{key}_answer", where),
                            *texts_field(record, f"{key}_alias", where),
                        )
                    )
                )
                for key in ("cf", "orig")
            )
            text = text_field(record, "question", where)
            context = text_field(record, "cf_context", where)
            labels = tuple((WORLD, answer) for answer in world)
            yield Question(
                f"{self.name}/{part}/{number}", text, answers, context=context, labels=labels
            )


def _pair(question: Question, twin: Question) -> tuple[Question, Question]:
    labels = (*question.labels, (PAIR, question.id))
    return replace(question, labels=labels), replace(twin, id=question.id + _TWIN, labels=labels)
