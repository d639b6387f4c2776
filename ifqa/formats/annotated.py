"""Questions that people write about passages, and the votes of those who verify them.

A first worker gets a passage and writes a question with its answer. The fields are those of the IfQA paper (Yu et al., EMNLP
2023): question, answer, other valid answers, the kind of answer, and whether the question is about the passage given or about
another one ("free-form annotation"). A second and a third worker then vote on each question. It is kept if most of its workers
are for it, its writer among them: with two votes, one for it is enough.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ifqa.errors import IfqaError
from ifqa.formats.tasks import WORKER, Field, Row, Value, all_of, first_of, read_tasks
from ifqa.records import Question
from ifqa.scoring.agreement import alpha

LABEL = "label"  # the name of labels in the benchmark `file`
FREE_FORM = "free-form"
KINDS = ("entity", "number", "date", "others")
RIGHT = "right"
VERDICTS = (RIGHT, "wrong answer", "not answerable", "not counterfactual")
WRITING = (
    Field("question", "A question that supposes something that did not happen: If ..., who would ...?"),
    Field("answer", "Its answer in the imagined world, as short as possible"),
    Field(
        "other_answers", "Other valid answers, and other forms of it: 5, five. One a line", required=False, several=True
    ),
    Field("answer_type", "The kind of answer", KINDS),
    Field("free_form", "Is the question about another passage than this one?", ("no", "yes")),
    Field(
        "other_passages",
        "Further passages that it needs; of free form: its passages. One a line",
        required=False,
        several=True,
    ),
)
VERIFYING = (
    Field(
        "verdict",
        "Is the question counterfactual, can it be answered from the passages, is the answer right?",
        VERDICTS,
    ),
    Field("another_answer", "Another valid answer, if there is one. One a line", required=False, several=True),
)
_CARRIED = ("question_id", "passage", "passages", "question", "answers", "answer_type", "free_form", "writer")


@dataclass(frozen=True)
class Written:
    """A question as its worker wrote it; the labels are the kind of its answer and, if so, "free-form"."""

    question: Question
    writer: str = ""


@dataclass(frozen=True)
class Vote:
    """What a worker says of a question, and other answers that the worker holds valid."""

    question_id: str
    worker: str
    verdict: str
    answers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Annotated:
    """The questions of an annotation file.

    Attributes:
        questions: those to keep, in the file's order.
        unused: passages that no question was written about.
        votes: of a file of votes, every vote; else empty.
        dropped: of a file of votes, the questions that are not kept, by what most votes against them say.
        agreement: Krippendorff's alpha of the verdicts; None if it is not defined.
    """

    questions: tuple[Question, ...]
    unused: int = 0
    votes: tuple[Vote, ...] = ()
    dropped: tuple[tuple[str, int], ...] = ()
    agreement: float | None = None

    def __str__(self) -> str:
        if not self.votes:
            return f"{len(self.questions):,} questions; {self.unused:,} passages without one"
        against = ", ".join(f"{count:,} {why}" for why, count in self.dropped)
        workers = len({one.worker for one in self.votes})
        agreed = "not defined" if self.agreement is None else f"{self.agreement:.3f}"
        return (
            f"{len(self.questions):,} questions kept by {len(self.votes):,} votes of {workers:,} workers; "
            f"{sum(count for _, count in self.dropped):,} dropped{f' ({against})' if against else ''}; "
            f"Krippendorff's alpha of the verdicts: {agreed}"
        )


def read_annotated(path: Path) -> Annotated:
    """The questions of an annotation file: all that were written, or of a file of votes those that the votes keep.

    Raises:
        IfqaError: the file has another layout, a field is empty or has a value that is none of its choices, or a worker
            votes twice on a question, or on one of his own. The message has the place.
    """
    rows = list(read_tasks(path))
    if any("question_id" in row for _, row in rows):
        return _verified(rows, path)
    written, unused = _written(rows)
    if not written:
        raise IfqaError(f"{path}: wanted questions that were written about the passages; found none")
    return Annotated(tuple(one.question for one in written), unused)


def verification_tasks(path: Path) -> list[Row]:
    """The tasks for the second and third worker, from a file of written questions.

    Raises:
        IfqaError: as `read_annotated`, or the file is itself one of votes.
    """
    rows = list(read_tasks(path))
    if any("question_id" in row for _, row in rows):
        raise IfqaError(f"{path} holds votes already; wanted the file in which questions were written")
    tasks: list[Row] = []
    for one in _written(rows)[0]:
        question, labels = one.question, [value for _, value in one.question.labels]
        passages = list(question.gold_passages)
        values: Sequence[Value] = (
            question.id, "\n\n".join(passages), passages, question.text, list(question.answers), labels[0],
            "yes" if FREE_FORM in labels else "no", one.writer,
        )  # fmt: skip
        tasks.append(dict(zip(_CARRIED, values, strict=True)))
    return tasks


def _written(rows: Iterable[tuple[str, Row]]) -> tuple[list[Written], int]:
    """The questions of rows, and the number of passages without one."""
    written: list[Written] = []
    about: Counter[str] = Counter()
    for where, row in rows:
        name = _required(row, "passage_id", where)
        if not any(first_of(row.get(one.name, "")).strip() for one in WRITING if not one.choices):
            about[name] += 0
            continue
        about[name] += 1
        number = f"-{about[name]}" if about[name] > 1 else ""
        written.append(Written(_question(row, f"{name}{number}", where), first_of(row.get(WORKER, ""))))
    return written, sum(count == 0 for count in about.values())


def _question(row: Row, name: str, where: str) -> Question:
    if name.split() != [name]:
        raise IfqaError(f"{where}: passage_id {name!r} holds white space; wanted the id that the task came with")
    free = _choice(row, "free_form", ("no", "yes"), where, default="no") == "yes"
    others = all_of(row.get("other_passages", ""))
    if free and not others:
        raise IfqaError(f"{where}: a question of free form names its passages in 'other_passages'; found none")
    own = [] if free else [_required(row, "passage", where)]
    answers = [_required(row, "answer", where), *all_of(row.get("other_answers", ""))]
    labels = [_choice(row, "answer_type", KINDS, where), *([FREE_FORM] if free else [])]
    return Question(
        name,
        _required(row, "question", where),
        tuple(dict.fromkeys(answers)),
        tuple(dict.fromkeys([*own, *others])),
        labels=tuple((LABEL, one) for one in labels),
    )


def _verified(rows: Sequence[tuple[str, Row]], path: Path) -> Annotated:
    questions: dict[str, Question] = {}
    votes: dict[str, dict[str, Vote]] = {}
    for where, row in rows:
        question = _carried(row, where)
        if questions.setdefault(question.id, question) != question:
            raise IfqaError(
                f"{where}: question {question.id} is another one in an earlier row; wanted the tasks unchanged"
            )
        if not first_of(row.get("verdict", "")).strip():
            continue
        vote = Vote(
            question.id,
            _required(row, WORKER, where),
            _choice(row, "verdict", VERDICTS, where),
            tuple(all_of(row.get("another_answer", ""))),
        )
        if vote.worker == first_of(row.get("writer", "")):
            raise IfqaError(f"{where}: {vote.worker!r} votes on a question of his own; wanted another worker")
        if votes.setdefault(question.id, {}).setdefault(vote.worker, vote) is not vote:
            raise IfqaError(f"{where}: {vote.worker!r} votes twice on question {question.id}; wanted one vote each")
    if not votes:
        raise IfqaError(f"{path}: wanted a verdict on the questions; found none filled in")
    kept: list[Question] = []
    dropped: Counter[str] = Counter()
    for name, question in questions.items():
        own = list(votes.get(name, {}).values())
        against = Counter(one.verdict for one in own if one.verdict != RIGHT)
        if not own:
            dropped["without a vote"] += 1
        elif 1 + len(own) - against.total() <= against.total():  # the writer is for it
            dropped[against.most_common(1)[0][0]] += 1
        else:
            more = [answer for one in own if one.verdict == RIGHT for answer in one.answers]
            kept.append(replace(question, answers=tuple(dict.fromkeys([*question.answers, *more]))))
    cast = tuple(vote for several in votes.values() for vote in several.values())
    agreement = alpha([[one.verdict for one in several.values()] for several in votes.values()])
    return Annotated(tuple(kept), 0, cast, tuple(dropped.most_common()), agreement)


def _carried(row: Row, where: str) -> Question:
    """The question that a task of verification is about."""
    kind = _choice(row, "answer_type", KINDS, where)
    free = _choice(row, "free_form", ("no", "yes"), where, default="no") == "yes"
    passages, answers = ([one] if isinstance(one := row.get(key, ""), str) else one for key in ("passages", "answers"))
    if not all(passages) or not all(answers):
        raise IfqaError(f"{where}: 'passages' or 'answers' is empty; wanted the tasks as they were written")
    labels = tuple((LABEL, one) for one in [kind, *([FREE_FORM] if free else [])])
    name, text = _required(row, "question_id", where), _required(row, "question", where)
    return Question(name, text, tuple(answers), tuple(passages), labels=labels)


def _required(row: Mapping[str, Value], name: str, where: str) -> str:
    text = first_of(row.get(name, "")).strip()
    if not text:
        raise IfqaError(f"{where}: {name!r} is empty; wanted it filled in")
    return text


def _choice(row: Mapping[str, Value], name: str, choices: Sequence[str], where: str, default: str = "") -> str:
    text = first_of(row.get(name, "")).strip().lower() or default
    if text not in choices:
        raise IfqaError(f"{where}: {name!r} must be one of {', '.join(choices)}; found {text!r:.60}")
    return text
