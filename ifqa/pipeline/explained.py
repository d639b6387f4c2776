"""Reads and checks how readers say they got to their answers, and retrievers to their passages."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from ifqa.errors import IfqaError
from ifqa.how import How
from ifqa.records import Passage, Prediction, Step
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


def check_how(reader: str, prediction: Prediction, passages: Iterable[Passage]) -> None:
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
