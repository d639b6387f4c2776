"""Checks of what retrievers and readers return, in memory and in the files of a stage: each is held to its protocol."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from numbers import Real
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from ifqa.errors import IfqaError
from ifqa.records import Hit, How, Passage, Prediction, Question, SearchResult, Step
from ifqa.settings import is_share
from ifqa.storage.files import unicode_text

_T = TypeVar("_T")
PREDICTION = TypeAdapter(Prediction)
STEPS = TypeAdapter(list[Step])


def valid(kind: TypeAdapter[_T], value: object, where: str) -> _T:
    """A value of a kind from JSON data; IfqaError, which `where` ("file:line") begins, if it is none."""
    try:
        return kind.validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise IfqaError(f"{where}: {place or 'value'}: {first['msg']}; found {first['input']!a:.80}") from error


def valid_prediction(value: object, where: str) -> Prediction:
    """A prediction from JSON data, as `valid` does; its confidence is from 0 to 1, and a candidate stands alone."""
    prediction = valid(PREDICTION, value, where)
    if prediction.confidence is not None and not is_share(prediction.confidence):
        raise IfqaError(f"{where}: confidence: wanted 0 to 1, or none; found {prediction.confidence!r}")
    if prediction.candidate and (prediction.answer or prediction.error):
        raise IfqaError(f"{where}: a candidate beside an answer or an error; wanted it alone")
    return prediction


def check_rankings(retriever: str, questions: Sequence[Question], k: int, rankings: Sequence[Sequence[Hit]]) -> None:
    """Hold a retriever to its protocol; IfqaError if a ranking is missing, too long, or of other things than hits."""
    name = f"retriever {retriever!r}"
    if not isinstance(rankings, list) or len(rankings) != len(questions):
        what = len(rankings) if isinstance(rankings, list) else type(rankings).__name__
        raise IfqaError(
            f"{name} must return a list with one ranking for each question: wanted {len(questions)}, found {what}"
        )
    for question, result in zip(questions, rankings, strict=True):
        gave, ranking = f"{name} gave {question.id}", result.hits if isinstance(result, SearchResult) else result
        if not isinstance(ranking, list | tuple) or not all(isinstance(hit, Hit) for hit in ranking):
            raise IfqaError(f"{gave} {ranking!r:.80}; wanted a list of ifqa.Hit(passage_id, score)")
        if len(ranking) > k:
            raise IfqaError(f"{gave} {len(ranking)} passages; wanted at most k = {k}")
        if len({hit.passage_id for hit in ranking}) < len(ranking):
            raise IfqaError(f"{gave} a passage twice")
        for hit in ranking:
            if not isinstance(hit.passage_id, str) or hit.passage_id.split() != [hit.passage_id]:
                raise IfqaError(f"{gave} the passage id {hit.passage_id!r}; wanted one without white space")
            if not isinstance(hit.score, Real) or not math.isfinite(hit.score):
                raise IfqaError(f"{gave} the score {hit.score!r} for {hit.passage_id}; wanted a number")


def check_predictions(
    reader: str, questions: Sequence[Question], passages: Sequence[Sequence[Passage]], predictions: Sequence[Prediction]
) -> None:
    """Hold a reader to its protocol; IfqaError if predictions are not one a question, or cite what the reader was not given."""
    if not isinstance(predictions, list | tuple) or not all(isinstance(each, Prediction) for each in predictions):
        raise IfqaError(
            f"reader {reader!r} gave {predictions!r:.80}; wanted a list of ifqa.Prediction(question.id, answer)"
        )
    if [prediction.question_id for prediction in predictions] != [question.id for question in questions]:
        raise IfqaError(f"reader {reader!r} must give one prediction a question, in their order")
    for prediction, given in zip(predictions, passages, strict=True):
        name = f"reader {reader!r}, {prediction.question_id}"
        if not isinstance(prediction.how, How | None):
            raise IfqaError(f"{name}: wanted ifqa.How as `how`, found {prediction.how!r:.80}")
        checked = valid_prediction(asdict(prediction), name)
        written = (checked.answer, checked.factual, checked.completion, checked.error, checked.candidate)
        unicode_text(f"{''.join(written)}{checked.how and checked.how.calculation}", "answer", name)
        texts = {passage.id: passage.text for passage in given}
        cited = [*prediction.passage_ids, *([prediction.how.passage_id] if prediction.how else [])]
        if strange := [passage_id for passage_id in cited if passage_id not in texts]:
            raise IfqaError(f"{name}: cites passage {strange[0]!r:.80}, which is not among the passages it was given")
        if how := prediction.how:
            terms = how.calculation.terms if how.calculation else ()
            places = [how.sentence, how.span, *((term.start, term.end) for term in terms if term.source == "passage")]
            length = len(texts[how.passage_id])
            if wrong := [place for place in places if not 0 <= place[0] <= place[1] <= length]:
                raise IfqaError(
                    f"{name}: wanted places within the passage's {length} characters in `how`, found {wrong[0]}"
                )
