"""Reads what earlier stages wrote: rankings, passages, predictions."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from itertools import islice
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from ifqa.config.experiment import Experiment
from ifqa.corpus.documents.chunking import parse_locator
from ifqa.corpus.passage_store import GeneratedPassages, PassageStore, get_passage_lists
from ifqa.errors import DamagedArtifact, FormatError, IfqaError
from ifqa.formats.runs import iter_rankings
from ifqa.records import Answer, Evidence, Hit, Passage, Prediction, Question
from ifqa.settings import is_share
from ifqa.storage.artifacts import list_files
from ifqa.storage.files import json_line, read_jsonl

_T = TypeVar("_T")
_BATCH = 32  # rankings whose passages are looked up together
_KEYS = tuple(field.name for field in fields(Prediction))
_PREDICTION = TypeAdapter(Prediction)
# Attributes that an `Answer` takes over
_SHARED = (
    "factual",
    "error",
    "how",
    "confidence",
    "candidate",
    "answerable",
    "abstention",
    "quote",
    "change",
    "steps",
)
# Keys that older files lack
_LATER = ("how", "confidence", "candidate", "answerable", "abstention", "quote", "change", "steps")


def rankings_of(experiment: Experiment, questions: Sequence[Question]) -> Iterator[list[Hit]]:
    """The ranking of each question in the experiment's run.

    Empty if nothing was retrieved or there is no retriever.
    """
    if not experiment.retriever:
        return iter([list[Hit]() for _ in questions])
    path = experiment.folder / "retrieve" / "run.trec"
    rankings = _match_questions(experiment, questions, iter_rankings(path), path, "retrieve")
    return (ranking or [] for _, ranking in rankings)


def _match_questions(
    experiment: Experiment,
    questions: Sequence[Question],
    stored: Iterable[tuple[str, _T]],
    path: Path,
    stage: str,
) -> Iterator[tuple[Question, _T | None]]:
    """Each question with its entry in a stage's file, or None.

    DamagedArtifact if an entry is foreign or not in order.
    """
    pairs = iter(stored)
    known = {question.id for question in questions}
    ahead = next(pairs, None)
    for question in questions:
        if ahead and ahead[0] not in known:
            break
        if ahead and ahead[0] == question.id:
            yield question, ahead[1]
            ahead = next(pairs, None)
        else:
            yield question, None
    if ahead:
        fault = "is not in the order of" if ahead[0] in known else "is not in"
        split = f"{experiment.benchmark} {experiment.split}"
        raise DamagedArtifact(
            f"{path}: question {ahead[0]} {fault} {split}; run the stage {stage!r} again"
        )


def passages_of(
    experiment: Experiment, rankings: Iterable[Sequence[Hit]]
) -> Iterator[list[Passage]]:
    """The passages of each ranking, generated or from the corpus.

    IfqaError if a passage is in neither.
    """
    stores = stores_of(experiment)
    remaining = iter(rankings)
    while batch := list(islice(remaining, _BATCH)):
        yield from get_passage_lists(
            stores, [[hit.passage_id for hit in ranking] for ranking in batch]
        )


def stores_of(experiment: Experiment) -> list[PassageStore]:
    """The stores of an experiment's passages: those that the retriever generated, and the
    corpus.
    """
    stores: list[PassageStore] = []
    path = experiment.folder / "retrieve" / "passages.jsonl"
    if path in list_files(path.parent):
        stores.append(GeneratedPassages(path))
    if experiment.corpus:
        stores.append(PassageStore(experiment.corpus_folder / "passages"))
    return stores


def predictions_of(experiment: Experiment, questions: Sequence[Question]) -> Iterator[Prediction]:
    """The prediction for each question; a missing prediction is a failed one."""
    path = experiment.folder / "read" / "predictions.jsonl"
    for question, prediction in _match_questions(
        experiment, questions, _iter_predictions(path), path, "read"
    ):
        yield prediction or _missing_prediction(question)


def read_predictions(path: Path) -> dict[str, Prediction]:
    """All predictions of a file by question id.

    IfqaError for an invalid line or a repeated question.
    """
    return dict(_iter_predictions(path))


def _iter_predictions(path: Path) -> Iterator[tuple[str, Prediction]]:
    seen = set[str]()
    for number, record in read_jsonl(path):
        if unknown_keys := record.keys() - _KEYS:
            raise FormatError(
                f"{path}:{number}: unknown key {min(unknown_keys)!r}; wanted {', '.join(_KEYS)}"
            )
        prediction = valid_prediction(record, f"{path}:{number}")
        if prediction.question_id in seen:
            raise FormatError(
                f"{path}:{number}: question {prediction.question_id} is answered twice"
            )
        seen.add(prediction.question_id)
        yield prediction.question_id, prediction


def validate(kind: TypeAdapter[_T], record: object, where: str) -> _T:
    """Validate JSON data as a record of type `kind`.

    IfqaError, which begins with `where` ("file:line"), if it is invalid.
    """
    try:
        return kind.validate_python(record)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        found = f"{first['input']!a:.80}"
        raise IfqaError(
            f"{where}: {place or 'value'}: {first['msg']}; found {found}",
            found=found,
            wanted=first["msg"],
        ) from error


def valid_prediction(record: object, where: str) -> Prediction:
    """Like `validate`.

    Also refuses a probability outside 0 to 1, and a candidate beside an answer or an error.
    """
    prediction = validate(_PREDICTION, record, where)
    for key, share in (
        ("confidence", prediction.confidence),
        ("answerable", prediction.answerable),
    ):
        if share is not None and not is_share(share):
            raise IfqaError(f"{where}: {key}: wanted 0 to 1, or none; found {share!r}")
    if prediction.candidate and (prediction.answer or prediction.error):
        raise IfqaError(
            f"{where}: has both a candidate and an answer or an error; wanted the candidate alone"
        )
    return prediction


def prediction_line(prediction: Prediction) -> bytes:
    """A prediction as a line of predictions.jsonl.

    Keys that older files lack are left out if empty.
    """
    record = asdict(prediction)
    return json_line(
        {
            key: record[key]
            for key in record
            if key not in _LATER or record[key] not in (None, "", ())
        }
    )


def prediction_for_each(
    questions: Sequence[Question], predictions: Mapping[str, Prediction]
) -> list[Prediction]:
    """The prediction for each question, from predictions by question id.

    A missing prediction is a failed one.
    """
    return [predictions.get(question.id) or _missing_prediction(question) for question in questions]


def _missing_prediction(question: Question) -> Prediction:
    return Prediction(question.id, "", error="no prediction")


def answer_of(question: Question, prediction: Prediction, evidence: Iterable[Passage]) -> Answer:
    """The answer that a prediction gives, with `evidence` as its passages."""
    shared = {name: getattr(prediction, name) for name in _SHARED}
    return with_evidence(Answer(question, prediction.answer, **shared), evidence)


def with_evidence(answer: Answer, passages: Iterable[Passage]) -> Answer:
    """An answer with its passages, each with the place of the answer in it in words."""
    evidence = [
        Evidence(
            passage.id,
            passage.title,
            passage.text,
            passage_source(passage, answer.position(passage)),
        )
        for passage in passages
    ]
    return replace(answer, evidence=tuple(evidence))


def passage_source(passage: Passage, at: int | None = None) -> str:
    """The source of a passage, or of its character `at`: a document's file and page or line.

    Else title and id.
    """
    if locator := parse_locator(passage.id, at):
        _, _, headings = passage.title.partition(" › ")
        return f"{locator} · {headings}" if headings else str(locator)
    return f"{passage.title} · {passage.id}" if passage.title else passage.id


def answers_of(
    experiment: Experiment, questions: Sequence[Question], only: Collection[str] = ()
) -> Iterator[Answer]:
    """The answer to each question, or to those whose ids are in `only`, with its passages."""
    each = zip(questions, predictions_of(experiment, questions), strict=True)
    chosen = [pair for pair in each if not only or pair[0].id in only]
    cited = (
        [Hit(passage_id, 0.0) for passage_id in prediction.passage_ids] for _, prediction in chosen
    )
    for (question, prediction), passages in zip(
        chosen, passages_of(experiment, cited), strict=True
    ):
        yield answer_of(question, prediction, passages)
