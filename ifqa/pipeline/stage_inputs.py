"""The files of earlier stages: rankings and their steps, passages, predictions."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from itertools import islice
from pathlib import Path
from typing import TypeVar, cast

from ifqa.config.experiment import Experiment
from ifqa.corpus.store import PassageFile, PassageStore, fetch_each
from ifqa.errors import IfqaError
from ifqa.formats.runs import each_ranking
from ifqa.pipeline.validation import how_in, steps_in
from ifqa.records import Answer, Hit, Passage, Prediction, Question, Step
from ifqa.settings import is_share
from ifqa.storage.artifacts import files_of
from ifqa.storage.files import field, json_line, read_jsonl

_T = TypeVar("_T")
_AT_ONCE = 32  # rankings whose passages are looked up together
_KEYS = tuple(one.name for one in fields(Prediction))
_LATER = ("how", "confidence", "candidate")  # keys that older files lack


def rankings_of(experiment: Experiment, questions: Sequence[Question]) -> Iterator[list[Hit]]:
    """The ranking of each question in the experiment's run; empty if nothing was retrieved or there is no retriever.

    Raises:
        IfqaError: the run is missing or broken, has a question that is not the experiment's, or has them in another order.
    """
    if not experiment.retriever:
        return iter([list[Hit]() for _ in questions])
    path = experiment.folder / "retrieve" / "run.trec"
    found = _of_each(experiment, questions, each_ranking(path), path, "retrieve")
    return (ranking or [] for _, ranking in found)


def steps_of(experiment: Experiment, questions: Sequence[Question]) -> Iterator[list[Step]]:
    """The searches for each question, of a retriever that searches several times; else empty.

    Raises:
        IfqaError: a line is not as ifqa writes it, or its question is not the experiment's or comes out of its order.
    """
    path = experiment.folder / "retrieve" / "steps.jsonl"
    if not experiment.retriever or path not in files_of(path.parent):
        return iter([list[Step]() for _ in questions])
    found = _of_each(experiment, questions, _each_steps(path), path, "retrieve")
    return (steps or [] for _, steps in found)


def _each_steps(path: Path) -> Iterator[tuple[str, list[Step]]]:
    for number, record in read_jsonl(path):
        where = f"{path}:{number}"
        yield field(record, "question_id", str, where), steps_in(record.get("steps"), where)


def _of_each(
    experiment: Experiment, questions: Sequence[Question], found: Iterable[tuple[str, _T]], path: Path, stage: str
) -> Iterator[tuple[Question, _T | None]]:
    """Each question with what a stage's file has for it, None if it has nothing; the file is read as far as is needed."""
    several, known = iter(found), {question.id for question in questions}
    ahead = next(several, None)
    for question in questions:
        if ahead and ahead[0] not in known:
            break
        if ahead and ahead[0] == question.id:
            yield question, ahead[1]
            ahead = next(several, None)
        else:
            yield question, None
    if ahead:
        why = "comes out of its order in" if ahead[0] in known else "is not one of"
        raise IfqaError(f"{path}: question {ahead[0]} {why} {experiment.benchmark} {experiment.split}; {stage} again")


def passages_of(experiment: Experiment, rankings: Iterable[Sequence[Hit]]) -> Iterator[list[Passage]]:
    """The passages of each ranking, from those that the retriever made or from the corpus.

    Raises:
        IfqaError: a passage is neither among those that the retriever made nor in the corpus.
    """
    stores, several = stores_of(experiment), iter(rankings)
    while some := list(islice(several, _AT_ONCE)):
        yield from fetch_each(stores, [[hit.passage_id for hit in ranking] for ranking in some])


def stores_of(experiment: Experiment) -> list[PassageStore]:
    """Where the passages of an experiment's run are: those that the retriever made, and the corpus."""
    stores: list[PassageStore] = []
    made = experiment.folder / "retrieve" / "passages.jsonl"
    if made in files_of(made.parent):
        stores.append(PassageFile(made))
    if experiment.corpus:
        stores.append(PassageStore(experiment.corpus_folder / "passages"))
    return stores


def predictions_of(experiment: Experiment, questions: Sequence[Question]) -> Iterator[Prediction]:
    """The prediction for each question; a missing prediction is a failed one.

    Raises:
        IfqaError: a line is no prediction, is for a question that is not the experiment's, or answers a question again or out
            of its order.
    """
    path = experiment.folder / "read" / "predictions.jsonl"
    for question, prediction in _of_each(experiment, questions, _each_prediction(path), path, "read"):
        yield prediction or _missing(question)


def read_predictions(path: Path) -> dict[str, Prediction]:
    """All predictions of a file, by question.

    Raises:
        IfqaError: a line is no prediction, or answers a question again.
    """
    return dict(_each_prediction(path))


def _each_prediction(path: Path) -> Iterator[tuple[str, Prediction]]:
    before = ""
    for number, record in read_jsonl(path):
        prediction = prediction_of(record, f"{path}:{number}")
        if prediction.question_id == before:
            raise IfqaError(f"{path}:{number}: question {before} is answered twice")
        before = prediction.question_id
        yield before, prediction


def prediction_of(record: Mapping[str, object], where: str) -> Prediction:
    """The prediction in a line of predictions.jsonl; error messages start with `where` ("file:line").

    Raises:
        IfqaError: a key is missing, unknown or of another type.
    """
    if unknown_keys := record.keys() - _KEYS:
        raise IfqaError(f"{where}: unknown key {min(unknown_keys)!r}; wanted {', '.join(_KEYS)}")
    several = ("completion", "error", "factual", "candidate")
    texts = {key: field({key: "", **record}, key, str, where) for key in several}
    ids, scores = (field({key: [], **record}, key, list, where) for key in ("passage_ids", "passage_scores"))
    score = record.get("score")
    numbers = [*scores] if score is None else [*scores, score]
    if not all(isinstance(one, str) for one in ids) or not all(isinstance(one, int | float) for one in numbers):
        raise IfqaError(f"{where}: wanted texts in 'passage_ids', and numbers in 'passage_scores' and 'score'")
    confidence = record.get("confidence")
    if confidence is not None and not is_share(confidence):
        raise IfqaError(f"{where}: wanted a number from 0 to 1 as 'confidence', found {confidence!r:.80}")
    return Prediction(
        question_id=field(record, "question_id", str, where), answer=field(record, "answer", str, where),
        passage_ids=tuple(ids), passage_scores=tuple(scores), score=cast("float | None", score),
        how=how_in(record.get("how"), where), confidence=cast("float | None", confidence), **texts,
    )  # fmt: skip


def line_of(prediction: Prediction) -> bytes:
    """A prediction as a line of predictions.jsonl; keys that older files lack are left out where they are empty."""
    record = asdict(prediction)
    return json_line({key: value for key, value in record.items() if key not in _LATER or value not in (None, "")})


def prediction_for_each(questions: Sequence[Question], predictions: Mapping[str, Prediction]) -> list[Prediction]:
    """The prediction for each question, from predictions by question id; a missing prediction is a failed one."""
    return [predictions.get(one.id) or _missing(one) for one in questions]


def _missing(question: Question) -> Prediction:
    return Prediction(question.id, "", error="no prediction")


def answer_of(question: Question, prediction: Prediction, evidence: Iterable[Passage]) -> Answer:
    """A prediction as an answer; `evidence` are its passages."""
    more = (prediction.factual, prediction.error, prediction.how, prediction.confidence, prediction.candidate)
    return Answer(question, prediction.answer, tuple(evidence), *more)


def answers_of(experiment: Experiment, questions: Sequence[Question], only: Collection[str] = ()) -> Iterator[Answer]:
    """The answer to each question, or to those whose ids are in `only`, with its passages and the steps of their retrieval."""
    each = zip(questions, predictions_of(experiment, questions), steps_of(experiment, questions), strict=True)
    chosen = [(one, said, steps) for one, said, steps in each if not only or one.id in only]
    evidence = passages_of(experiment, ([Hit(one, 0.0) for one in said.passage_ids] for _, said, _ in chosen))
    for (question, said, steps), passages in zip(chosen, evidence, strict=True):
        yield replace(answer_of(question, said, passages), steps=tuple(steps))
