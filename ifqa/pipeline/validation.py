"""Checks of what retrievers and readers return, in memory and in the files of a stage: each is held to its protocol."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from numbers import Real
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from ifqa.errors import IfqaError
from ifqa.records import Hit, How, Passage, Prediction, Question, SearchResult, Step
from ifqa.settings import is_share
from ifqa.storage.files import unicode_text

_T = TypeVar("_T")
_HOW: TypeAdapter[How | None] = TypeAdapter(How | None)
_STEPS = TypeAdapter(list[Step])


def how_in(value: object, where: str) -> How | None:
    """How an answer was got, from JSON data; None from None.

    Raises:
        IfqaError: a key is missing or a value is of another type; `where` ("file:line") begins the message.
    """
    return _read(_HOW, "how", value, where)


def steps_in(value: object, where: str) -> list[Step]:
    """The steps of a retriever, from JSON data.

    Raises:
        IfqaError: as `how_in`.
    """
    return _read(_STEPS, "steps", value, where)


def _read(kind: TypeAdapter[_T], key: str, value: object, where: str) -> _T:
    try:
        return kind.validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, (key, *first["loc"])))
        raise IfqaError(f"{where}: not as ifqa writes it ({place}: {first['msg']})") from error


def check_rankings(retriever: str, questions: Sequence[Question], k: int, rankings: Sequence[Sequence[Hit]]) -> None:
    """Hold a retriever to its protocol.

    Raises:
        IfqaError: the number of rankings differs from the number of questions, or a ranking has more than `k` passages, a
            duplicate passage, an id that cannot be written to a run file, or a score that is not a number.
    """
    name = f"retriever {retriever!r}"
    if not isinstance(rankings, list) or len(rankings) != len(questions):
        found = len(rankings) if isinstance(rankings, list) else type(rankings).__name__
        raise IfqaError(
            f"{name} must return a list with one ranking for each question: wanted {len(questions)}, found {found}"
        )
    for question, result in zip(questions, rankings, strict=True):
        ranking = result.hits if isinstance(result, SearchResult) else result
        if not isinstance(ranking, list | tuple) or not all(isinstance(hit, Hit) for hit in ranking):
            raise IfqaError(f"{name} gave {question.id} {ranking!r:.80}; wanted a list of ifqa.Hit(passage_id, score)")
        ids = [hit.passage_id for hit in ranking]
        if len(ids) > k:
            raise IfqaError(f"{name} gave {question.id} {len(ids)} passages; wanted at most k = {k}")
        if len(set(ids)) < len(ids):
            raise IfqaError(f"{name} gave {question.id} a passage twice")
        for hit in ranking:
            if not isinstance(hit.passage_id, str) or hit.passage_id.split() != [hit.passage_id]:
                raise IfqaError(
                    f"{name} gave {question.id} the passage id {hit.passage_id!r}; wanted one without white space"
                )
            if not isinstance(hit.score, Real) or not math.isfinite(hit.score):
                raise IfqaError(
                    f"{name} gave {question.id} the score {hit.score!r} for {hit.passage_id}; wanted a number"
                )


def check_predictions(
    reader: str,
    questions: Sequence[Question],
    passages: Sequence[Sequence[Passage]],
    predictions: Sequence[Prediction],
) -> None:
    """Hold a reader to its protocol.

    Raises:
        IfqaError: the predictions do not match the questions one to one and in order, an answer is not text, or a
            prediction cites a passage that the reader was not given.
    """
    if not isinstance(predictions, list | tuple):
        raise IfqaError(f"reader {reader!r} must give a list of ifqa.Prediction, found {type(predictions).__name__}")
    if strangers := [one for one in predictions if not isinstance(one, Prediction)]:
        raise IfqaError(
            f"reader {reader!r} gave {strangers[0]!r:.80}; wanted ifqa.Prediction(question.id, answer) for each question"
        )
    if [one.question_id for one in predictions] != [question.id for question in questions]:
        raise IfqaError(f"reader {reader!r} must give one prediction a question, in their order")
    for one, several in zip(predictions, passages, strict=True):
        if not isinstance(one.passage_ids, list | tuple):
            raise IfqaError(
                f"reader {reader!r} gave {one.question_id} the passage_ids {one.passage_ids!r:.80}; wanted a tuple of ids"
            )
        if strange := set(one.passage_ids) - {passage.id for passage in several}:
            raise IfqaError(
                f"reader {reader!r} cited passage {min(strange)!r} for {one.question_id},"
                " which is not among the passages it was given"
            )
        texts: dict[str, object] = {  # of a reader from outside they may be anything
            "answer": one.answer,
            "factual": one.factual,
            "completion": one.completion,
            "error": one.error,
            "candidate": one.candidate,
        }
        for key, text in texts.items():
            if not isinstance(text, str):
                raise IfqaError(f"reader {reader!r} gave {one.question_id} the {key} {text!r}; wanted text")
            unicode_text(text, key, f"reader {reader!r}, {one.question_id}")
        if one.confidence is not None and not is_share(one.confidence):
            raise IfqaError(
                f"reader {reader!r} gave {one.question_id} the confidence {one.confidence!r:.80}; wanted 0 to 1, or None"
            )
        if one.candidate and (one.answer or one.error):
            raise IfqaError(
                f"reader {reader!r} gave {one.question_id} a candidate beside an answer or an error; wanted it alone"
            )
        _check_how(reader, one, several)


def _check_how(reader: str, prediction: Prediction, passages: Iterable[Passage]) -> None:
    """Hold a reader to what it says of its answer.

    Raises:
        IfqaError: it is no `How`, names a passage that the reader was not given, or a place outside that passage.
    """
    if prediction.how is None:
        return
    name = f"reader {reader!r}, {prediction.question_id}"
    if not isinstance(prediction.how, How):
        raise IfqaError(f"{name}: wanted ifqa.How as `how`, found {prediction.how!r:.80}")
    how = how_in(asdict(prediction.how), name) or prediction.how
    text = next((one.text for one in passages if one.id == how.passage_id), None)
    if text is None:
        raise IfqaError(f"{name}: `how` names {how.passage_id!r:.80}, which is not among the passages it was given")
    unicode_text(str(how.calculation), "calculation", name)
    terms = how.calculation.terms if how.calculation else ()
    places = [how.sentence, how.span, *((one.start, one.end) for one in terms if one.source == "passage")]
    if wrong := [place for place in places if not 0 <= place[0] <= place[1] <= len(text)]:
        raise IfqaError(f"{name}: wanted places within the passage's {len(text)} characters in `how`, found {wrong[0]}")
