"""Errors as problem details (RFC 9457): one plain line each, and never a traceback."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from ifqa.errors import IfqaError
from ifqa.serve.desk import Full
from ifqa.serve.forms import OBJECT, TEXT, Fault, Problem
from ifqa.serve.log import request_id
from ifqa.serve.service import Absent

MEDIA = "application/problem+json"
_FAULTS, _LONGEST = 20, 300  # faults that are named, and characters of each


def problem(status: int, detail: str, errors: Sequence[Fault] = ()) -> Problem:
    """A problem with the title of its status."""
    return Problem(
        title=HTTPStatus(status).phrase, status=status, detail=detail, request_id=request_id(), errors=list(errors)
    )


def response(found: Problem, headers: Mapping[str, str] | None = None) -> Response:
    """A problem as a response."""
    return Response(found.model_dump_json(), found.status, dict(headers or {}), media_type=MEDIA)


def of_error(error: Exception) -> tuple[Problem, dict[str, str]] | None:
    """The problem that an error of the service means, with its headers; None for a bug."""
    if isinstance(error, Full):
        return problem(503, str(error)), {"Retry-After": str(error.seconds)}
    if isinstance(error, Absent):
        return problem(404, str(error)), {}
    if isinstance(error, TimeoutError):
        return problem(504, "no answer within the time limit; ask fewer questions at once, or later"), {}
    if isinstance(error, IfqaError):
        return problem(503, str(error)), {"Retry-After": "30"}
    return None


def of_faults(errors: Sequence[Any]) -> Problem:
    """The problem of a request that is not as wanted, from the errors of pydantic; what was sent is not repeated."""
    named = errors[:_FAULTS]
    faults = [Fault(where=_place(one["loc"]), what=_whole(one["msg"].removeprefix("Value error, "))) for one in named]
    return problem(422, f"{faults[0].where}: {faults[0].what}", faults)


def _place(parts: Sequence[int | str]) -> str:
    """Where in the request something is wrong; a key that is not known is named as it was sent."""
    named = [str(one) for one in parts[1:] if one not in (TEXT, OBJECT)]
    return _whole(".".join(named) or "body")


def _whole(text: str) -> str:
    return text.encode("utf-8", "replace").decode()[:_LONGEST]
