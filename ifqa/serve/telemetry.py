"""What a server tells its operator: a log, and counts for Prometheus.

The log is a JSON object a line on stderr, ASCII alone, with the request's id. Questions and tokens are not logged.
"""

import json
import logging
import re
import secrets
import sys
import time
from collections.abc import Mapping
from contextvars import ContextVar
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from ifqa.protocols import LanguageModel
from ifqa.serve.batch_queue import BatchQueue

log = logging.getLogger("ifqa.serve")

_request: ContextVar[str] = ContextVar("request", default="")
_WORD = re.compile(r"[\w-]{1,64}", re.ASCII)
_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


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
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    log.setLevel(logging.WARNING if quiet else logging.INFO)


class Metrics:
    """The counts of one server: its own, the lengths of its queues, and what its language model has spent when they are read."""

    def __init__(self, queues: Mapping[str, BatchQueue[Any]], llm: LanguageModel | None) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)  # memory, CPU, open files
        self.requests = Counter(
            "ifqa_requests", "Requests by route and status.", ["method", "route", "status"], registry=registry
        )
        self.seconds = Histogram(
            "ifqa_request_seconds", "Time to answer a request.", ["route"], buckets=_SECONDS, registry=registry
        )
        self.questions = Histogram(
            "ifqa_question_seconds", "From a question's arrival to its answer.", buckets=_SECONDS, registry=registry
        )
        self.outcomes = Counter("ifqa_answers", "Answers by outcome.", ["outcome"], registry=registry)
        waiting = Gauge("ifqa_waiting", "Questions that wait.", ["queue"], registry=registry)
        working = Gauge("ifqa_working", "Questions that are worked on.", ["queue"], registry=registry)
        for name, queue in queues.items():
            waiting.labels(name).set_function(queue.__len__)
            working.labels(name).set_function(partial(getattr, queue, "busy"))
        if llm:
            dollars = Gauge("ifqa_llm_dollars", "US dollars spent on a language model.", registry=registry)
            dollars.set_function(lambda: llm.spent.cost or 0.0)
            calls = Gauge("ifqa_llm_requests", "Requests to a language model.", registry=registry)
            calls.set_function(lambda: llm.spent.calls)

    def text(self) -> bytes:
        """All counts in Prometheus's text format."""
        return generate_latest(self.registry)
