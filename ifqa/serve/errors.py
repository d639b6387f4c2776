"""Errors as problem details (RFC 9457): one plain line each, and never a traceback."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ifqa.errors import IfqaError
from ifqa.serve.batch_queue import QueueFull
from ifqa.serve.schemas import OBJECT, TEXT, Fault, Problem
from ifqa.serve.telemetry import request_id

MEDIA = "application/problem+json"
_FAULTS, _LONGEST = 20, 300  # faults that are named, and characters of each


class NotFound(Exception):
    """The passage, or the part of the experiment that would answer, is not there."""


EXPECTED = (QueueFull, NotFound, TimeoutError, IfqaError, HTTPException, RequestValidationError)  # any other is a bug


def refusal(
    status: int, detail: str, headers: Mapping[str, str] | None = None, errors: Sequence[Fault] = ()
) -> Response:
    """A problem with the title of its status, as a response."""
    title = HTTPStatus(status).phrase
    problem = Problem(title=title, status=status, detail=detail, request_id=request_id(), errors=list(errors))
    return Response(problem.model_dump_json(), status, headers, media_type=MEDIA)


def refusal_of(error: BaseException) -> Response:
    """The response that an error means."""
    match error:
        case QueueFull():
            return refusal(503, str(error), {"Retry-After": str(error.seconds)})
        case NotFound():
            return refusal(404, str(error))
        case TimeoutError():
            return refusal(504, "no answer within the time limit; ask fewer questions at once, or later")
        case IfqaError():
            return refusal(503, str(error), {"Retry-After": "30"})
        case HTTPException():
            return refusal(error.status_code, str(error.detail), error.headers)
        case RequestValidationError():
            faults = [
                Fault(where=_place(fault["loc"]), what=fault["msg"].removeprefix("Value error, ")[:_LONGEST])
                for fault in error.errors()[:_FAULTS]
            ]
            return refusal(422, f"{faults[0].where}: {faults[0].what}", errors=faults)
        case _:
            return refusal(500, "a bug; the server's log has it under this request's id")


def _place(parts: Sequence[int | str]) -> str:
    """Where in the request something is wrong; an unknown key is named as it was sent."""
    return (".".join(str(part) for part in parts[1:] if part not in (TEXT, OBJECT)) or "body")[:_LONGEST]
