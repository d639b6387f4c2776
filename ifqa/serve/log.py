"""The server's log: a JSON object a line on stderr, ASCII alone, with the request's id. Questions and tokens are not logged."""

import json
import logging
import re
import secrets
import sys
import time
from contextvars import ContextVar
from typing import Any

log = logging.getLogger("ifqa.serve")

_request: ContextVar[str] = ContextVar("request", default="")
_GIVEN = re.compile(r"[\w-]{1,64}", re.ASCII)


def request_id() -> str:
    """The id of the request that is being answered; empty between requests."""
    return _request.get()


def begin_request(given: str) -> str:
    """Set the request's id: the client's own if it is a plain word, else a new one."""
    own = given if _GIVEN.fullmatch(given) else secrets.token_hex(8)
    _request.set(own)
    return own


class Lines(logging.Formatter):
    """A record as one line of JSON; `extra={"fields": {...}}` adds keys, and a traceback is one of them."""

    def format(self, record: logging.LogRecord) -> str:
        """The line; whatever would steer a terminal or begin a new line is escaped."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "time": f"{moment}.{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        if request_id():
            line["request_id"] = request_id()
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=True, default=str).replace("\x7f", "\\u007f")


def write_log(quiet: bool) -> None:
    """Send the log of the server and of its libraries to stderr: warnings of all, and every request unless `quiet`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    log.setLevel(logging.WARNING if quiet else logging.INFO)
