"""An opened system behind two queues: what the JSON API and the MCP tools share."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import TypeVar

from ifqa.errors import IfqaError
from ifqa.llms.streaming import TextCallback
from ifqa.pipeline.system import System
from ifqa.plugins import open_benchmark, takes
from ifqa.protocols import LanguageModel
from ifqa.records import Answer, Question, Ranking
from ifqa.serve import limits as sizes
from ifqa.serve.answers import answer_form, passage_form, ranking_form
from ifqa.serve.desk import Desk, Progress, Ticket
from ifqa.serve.forms import (
    About,
    AnswerForm,
    Asked,
    CorpusForm,
    LimitsForm,
    PassageForm,
    RankingForm,
    ReaderForm,
)
from ifqa.serve.limits import Limits
from ifqa.serve.metrics import Metrics
from ifqa.version import __version__

_EXAMPLES = 3
_T = TypeVar("_T")


class Absent(Exception):
    """What is asked for is not there: a passage, or the part of the experiment that would answer."""


class Service:
    """A system that many ask at once. Its methods are called in the loop that called `open`.

    Args:
        system: it is opened here.
        limits: what it takes at most.
        metrics: what it counts.

    Raises:
        IfqaError: the system cannot be opened.
    """

    def __init__(self, system: System, limits: Limits, metrics: Metrics) -> None:
        # OpenMP gives each thread that computes helpers of its own, and those of two threads slow each other down by a quarter.
        # So the thread that answers opens the models too.
        pool = ThreadPoolExecutor(1, "asking")
        pool.submit(system.open).result()
        self.system, self.limits, self.metrics = system, limits, metrics
        self._numbers = count(1)
        experiment = system.experiment
        self.llm = _llm(system)
        concurrent = experiment.reader is not None and system.reader.concurrent
        if concurrent:  # it computes nothing here
            pool.shutdown()
            pool = ThreadPoolExecutor(sizes.THREADS, "asking")
        batch = 1 if concurrent or not experiment.reader else min(sizes.BATCH, system.reader.chunk)
        self.asking = Desk[Answer](
            self._answer, limits.waiting, batch, sizes.THREADS if concurrent else 1, metrics.answered, pool
        )
        self.retrieving = Desk[Ranking](self._retrieve, limits.waiting, sizes.BATCH)
        self.about = self._about()
        metrics.watch(self.asking, self.retrieving, self.llm)

    def open(self) -> None:
        """Begin to take questions."""
        self.asking.open()
        self.retrieving.open()

    async def close(self) -> None:
        """Take no more questions."""
        await self.asking.close()
        await self.retrieving.close()

    @property
    def alive(self) -> bool:
        """Whether questions are being taken."""
        return self.asking.alive and self.retrieving.alive

    def ask(
        self, asked: Sequence[Asked], threshold: float | None = None, progress: Progress | None = None
    ) -> list[Ticket[Answer]]:
        """Queue questions to answer, with the least confidence `threshold` as `System.ask` takes it.

        Raises:
            Full: too many wait.
            Absent: the experiment has no reader.
        """
        if self.about.reader is None:
            raise Absent(f"experiment {self.about.name} has no reader; ask /v1/retrieve for passages")
        return self.asking.put(self._named(asked), threshold, progress)

    def retrieve(self, asked: Sequence[Asked], k: int = 0) -> list[Ticket[Ranking]]:
        """Queue questions to retrieve for.

        Raises:
            Full: too many wait.
            Absent: the experiment has no retriever.
        """
        if self.about.retriever is None:
            raise Absent(f"experiment {self.about.name} has no retriever")
        return self.retrieving.put(self._named(asked), k)

    async def answers(self, tickets: Sequence[Ticket[Answer]]) -> list[AnswerForm]:
        """The answers, when all are there; if that takes too long or the task is cancelled, the questions are withdrawn.

        Raises:
            TimeoutError: that takes longer than the limit.
            IfqaError: the system cannot answer now, such as a language model that refuses every request.
        """
        found = await self._all(tickets)
        forms = [answer_form(one, ticket.seconds) for one, ticket in zip(found, tickets, strict=True)]
        for one in forms:
            self.metrics.outcomes.labels(one.outcome).inc()
        return forms

    async def rankings(self, tickets: Sequence[Ticket[Ranking]]) -> list[RankingForm]:
        """The rankings, as `answers`."""
        return [ranking_form(one) for one in await self._all(tickets)]

    async def passage(self, passage_id: str) -> PassageForm:
        """A passage of the corpus.

        Raises:
            Absent: there is no passage of that id.
        """
        found = await asyncio.to_thread(self.system.passage, passage_id)
        if found is None:
            raise Absent(f"no passage {passage_id!r:.80} in corpus {self.system.experiment.corpus or '(none)'}")
        return passage_form(found)

    async def _all(self, tickets: Sequence[Ticket[_T]]) -> list[_T]:
        results = [one.result for one in tickets]
        try:
            async with asyncio.timeout(self.limits.seconds):
                return await asyncio.gather(*results)
        finally:
            for one in results:
                one.cancel()

    def _named(self, asked: Sequence[Asked]) -> list[Question]:
        return [one.question(f"ask/{next(self._numbers)}") for one in asked]

    def _answer(
        self, questions: Sequence[Question], threshold: float | None, on_text: TextCallback | None
    ) -> list[Answer]:
        return self.system.answer(questions, threshold, on_text)

    def _retrieve(self, questions: Sequence[Question], k: float | None, on_text: TextCallback | None) -> list[Ranking]:
        return self.system.retrieve(questions, int(k or 0))

    def _about(self) -> About:
        experiment = self.system.experiment
        reader = experiment.reader
        corpus = CorpusForm(name=experiment.corpus, passages=self.system.size) if experiment.corpus else None
        return About(
            name=experiment.name,
            about=experiment.about,
            version=__version__,
            corpus=corpus if experiment.retriever else None,
            retriever=experiment.retriever["name"] if experiment.retriever else None,
            reader=ReaderForm(
                name=reader["name"],
                label=self.system.reader.label,
                model=self.llm.name if self.llm else "",
                streams=bool(self.llm and self.llm.streams),
                abstains_below=self.system.reader.doubtful,
            )
            if reader
            else None,
            passages_read=reader["passages"] if reader and experiment.retriever else 0,
            k=experiment.retriever["k"] if experiment.retriever else 0,
            examples=_examples(self.system),
            limits=LimitsForm(
                question_characters=sizes.QUESTION, questions=sizes.QUESTIONS, k=sizes.K, body_bytes=sizes.BODY,
                seconds=self.limits.seconds, waiting=self.limits.waiting,
            ),
        )  # fmt: skip


def _llm(system: System) -> LanguageModel | None:
    """The language model that the reader asks, if it asks one."""
    reader = system.experiment.reader
    asks = reader is not None and takes("reader", reader["name"], "llm")
    return system.session.llm(system.experiment) if asks else None


def _examples(system: System) -> list[str]:
    """Questions of the experiment's split, from all over it; none if the split is not here."""
    experiment = system.experiment
    try:
        questions = open_benchmark(experiment.benchmark, experiment.root).questions(experiment.split)
    except (IfqaError, OSError):  # the answers need no benchmark
        return []
    step = max(1, len(questions) // _EXAMPLES)
    return [one.text for one in questions[::step] if len(one.text) <= sizes.QUESTION][:_EXAMPLES]
