"""What a server tells its operator: a log, and counts for Prometheus.

The log is a JSON object a line on stderr, ASCII alone, with the request's id. Questions and tokens are not logged.
"""

import json
import logging
import re
import secrets
import sys
import time
from collections import Counter
from collections.abc import Mapping
from contextvars import ContextVar

log = logging.getLogger("ifqa.serve")

_request: ContextVar[str] = ContextVar("request", default="")
_WORD = re.compile(r"[\w-]{1,64}", re.ASCII)


def request_id() -> str:
    """The id of the request that is being answered; empty between requests."""
    return _request.get()


def begin_request(client_id: str) -> str:
    """Set the request's id: the client's own if it is a plain word, else a new one."""
    _request.set(client_id if _WORD.fullmatch(client_id) else secrets.token_hex(8))
    return request_id()


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON; `extra={"fields": {...}}` adds keys, and a traceback is one of them."""

    def format(self, record: logging.LogRecord) -> str:
        """The line; whatever would steer a terminal or begin a new line is escaped."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, object] = {
            "time": f"{moment}.{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        line |= {"request_id": request_id()} if request_id() else {}
        line |= vars(record).get("fields", {})
        line |= {"traceback": self.formatException(record.exc_info)} if record.exc_info else {}
        return json.dumps(line, ensure_ascii=True, default=str).replace("\x7f", "\\u007f")


def write_log(quiet: bool) -> None:
    """Send the log of the server and of its libraries to stderr: warnings of all, and every request unless `quiet`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    log.setLevel(logging.WARNING if quiet else logging.INFO)


class Metrics:
    """The counts of one server: requests by method, route and status, and answers by outcome."""

    def __init__(self) -> None:
        self.requests = Counter[tuple[str, str, int]]()
        self.outcomes = Counter[str]()

    def text(self, gauges: Mapping[str, float]) -> str:
        """All counts, and what holds now, in Prometheus's text format."""
        values = {
            f'ifqa_requests_total{{method="{method}",route="{route}",status="{status}"}}': count
            for (method, route, status), count in self.requests.items()
        }
        values |= {f'ifqa_answers_total{{outcome="{outcome}"}}': count for outcome, count in self.outcomes.items()}
        return "".join(f"{name} {float(value)}\n" for name, value in {**values, **gauges}.items())
