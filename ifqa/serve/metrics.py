"""What a server counts, in Prometheus's text format."""

from collections.abc import Sized
from functools import partial
from typing import TYPE_CHECKING, Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

if TYPE_CHECKING:
    from ifqa.protocols import LanguageModel

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class _Queue(Sized, Protocol):
    busy: int


class Metrics:
    """The counts of one server; each server has its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)  # memory, CPU, open files
        self.requests = Counter(
            "ifqa_requests", "Requests by route and status.", ["method", "route", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "ifqa_request_seconds", "Time to answer a request.", ["route"], buckets=_SECONDS, registry=self.registry
        )
        self.questions = Histogram(
            "ifqa_question_seconds",
            "From a question's arrival to its answer.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.outcomes = Counter("ifqa_answers", "Answers by outcome.", ["outcome"], registry=self.registry)

    def answered(self, seconds: float) -> None:
        """Count a question that was answered."""
        self.questions.observe(seconds)

    def watch(self, asking: _Queue, retrieving: _Queue, llm: "LanguageModel | None") -> None:
        """Show the lengths of the queues, and what a language model has spent, at the time they are read."""
        waiting = Gauge("ifqa_waiting", "Questions that wait.", ["queue"], registry=self.registry)
        working = Gauge("ifqa_working", "Questions that are worked on.", ["queue"], registry=self.registry)
        for name, desk in (("ask", asking), ("retrieve", retrieving)):
            waiting.labels(name).set_function(desk.__len__)
            working.labels(name).set_function(partial(getattr, desk, "busy"))
        if llm:
            dollars = Gauge("ifqa_llm_dollars", "US dollars spent on a language model.", registry=self.registry)
            dollars.set_function(lambda: llm.spent.cost or 0.0)
            calls = Gauge("ifqa_llm_requests", "Requests to a language model.", registry=self.registry)
            calls.set_function(lambda: llm.spent.calls)

    def text(self) -> bytes:
        """All counts in Prometheus's text format."""
        return generate_latest(self.registry)
