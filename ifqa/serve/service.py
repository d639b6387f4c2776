"""An opened system behind two queues, shared by the JSON API and the MCP tools."""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from itertools import count
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, disable_created_metrics, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from ifqa.corpus.documents.chunking import encoded_name
from ifqa.corpus.documents.decoding import UnreadableFile
from ifqa.corpus.documents.indexed_file import IndexedFile
from ifqa.corpus.documents.left_out import mend
from ifqa.corpus.documents.page_picture import draw_page, page_parts
from ifqa.corpus.shard_writer import read_bad_pages
from ifqa.errors import IfqaError, MissingInput
from ifqa.pipeline.system import System
from ifqa.plugins import open_benchmark
from ifqa.protocols import LanguageModel
from ifqa.records import Ablation, Answer, Question, Ranking
from ifqa.serve import limits as sizes
from ifqa.serve import schemas
from ifqa.serve.batch_queue import BatchQueue, Pending
from ifqa.serve.limits import Limits
from ifqa.serve.watcher import Watcher

logger = logging.getLogger(__name__)

_EXAMPLES = 3
_LISTED = 1000  # files left out
# Kinds of files left out that are listed last
_QUIET = ("hidden", "link", "special", "ifqa", "other")
_Result = TypeVar("_Result")


class NotFound(Exception):
    """There is no such passage, or the experiment has no reader or retriever."""


class Busy(Exception):
    """Too many pictures are being drawn."""

    def __str__(self) -> str:
        return "too many pictures are being drawn; try again later"


class Metrics:
    """The counts of one server, for Prometheus: requests by method, route and status, and answers
    by outcome.
    """

    def __init__(self) -> None:
        # Not the client's global registry: a process may serve several systems, as tests do
        self.registry = CollectorRegistry()
        # A series of start times beside each counter
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.requests = Counter(
            "ifqa_requests", "HTTP requests", ["method", "route", "status"], registry=self.registry
        )
        self.outcomes = Counter(
            "ifqa_answers", "Answers to questions", ["outcome"], registry=self.registry
        )

    def text(self) -> str:
        """All counts and gauges in Prometheus's text format."""
        return generate_latest(self.registry).decode()


class Service:
    """A system for concurrent requests, which it opens.

    Call its methods in the event loop that called `open`.
    """

    def __init__(self, system: System, limits: Limits) -> None:
        # One thread opens the models and answers: OpenMP starts helper threads for each computing
        # thread, and the helpers of two threads slow each other down by a quarter.
        pool = ThreadPoolExecutor(1, "asking")
        threads = 1
        batch = 1
        self.watcher: Watcher | None = None
        if system.searched.folders:
            try:
                self.watcher = Watcher(system, self._take)
            except OSError as error:
                logger.warning(f"changes of the folder show after a restart: {error}")
        pool.submit(system.open).result()
        self.system = system
        self.limits = limits
        self.metrics = Metrics()
        reader = system.experiment.reader
        if reader and system.reader.concurrent:  # it only waits for a server
            pool.shutdown()
            threads = sizes.THREADS
            pool = ThreadPoolExecutor(threads, "asking")
        elif reader:
            batch = min(sizes.BATCH, system.reader.chunk)
        # A batch keeps its system; the watcher may replace it between two batches.
        self.asking = BatchQueue[Answer](
            lambda *batch: self.system.answer(*batch), limits.waiting, batch, threads, pool
        )
        self.explaining = BatchQueue[tuple[Answer, list[Ablation]]](
            self._explain, limits.waiting, 1, threads, pool
        )
        self.retrieving = BatchQueue[Ranking](
            lambda questions, k, _: self.system.retrieve(questions, int(k or 0)),
            limits.waiting,
            sizes.BATCH,
        )
        self._llm = system.model if reader and reader.takes("llm") else None
        self.about = _about(system, limits, self._llm)
        self._numbers = count(1)
        self._drawer = asyncio.Semaphore(1)
        self._drawing = 0
        self.metrics.registry.register(self)

    def open(self) -> None:
        """Start to take questions."""
        for queue in (self.asking, self.explaining, self.retrieving):
            queue.open()

    def _take(self, system: System) -> None:
        """Answer from another system, on a newer index of the same folder."""
        self.system, self.about = system, _about(system, self.limits, self._llm)

    async def look(self) -> None:
        """Have a folder of documents scanned for changes, and wait for that, but not long."""
        if self.watcher:
            self.watcher.look()
            await asyncio.to_thread(self.watcher.wait)
            if self.about.documents:
                self.about.documents.updating = self.watcher.updating

    async def close(self) -> None:
        """Take no more questions."""
        if self.watcher:
            self.watcher.close()
        for queue in (self.asking, self.explaining, self.retrieving):
            await queue.close()

    @property
    def alive(self) -> bool:
        """Whether the service takes questions."""
        return self.asking.alive and self.explaining.alive and self.retrieving.alive

    def collect(self) -> Iterator[Metric]:
        """The queue lengths, and the language model's cost and requests, for Prometheus."""
        waiting = GaugeMetricFamily("ifqa_waiting", "Questions that wait", labels=["queue"])
        working = GaugeMetricFamily("ifqa_working", "Questions in work", labels=["queue"])
        for name, queue in (
            ("ask", self.asking),
            ("why", self.explaining),
            ("retrieve", self.retrieving),
        ):
            waiting.add_metric([name], len(queue))
            working.add_metric([name], queue.busy)
        yield waiting
        yield working
        if self._llm:
            spent = self._llm.spent
            yield GaugeMetricFamily("ifqa_llm_dollars", "Dollars spent", spent.cost or 0)
            yield GaugeMetricFamily("ifqa_llm_requests", "Requests to the model", spent.calls)

    def ask(
        self, questions: Sequence[Question], threshold: float | None = None, watched: bool = False
    ) -> list[Pending[Answer]]:
        """Queue questions to answer; `threshold` as in `System.ask`.

        Raises QueueFull, or NotFound without a reader.
        """
        self._require_reader()
        return self.asking.put(self._accept(questions), threshold, watched)

    def why(
        self, questions: Sequence[Question], threshold: float | None = None
    ) -> list[Pending[tuple[Answer, list[Ablation]]]]:
        """Queue questions to answer again without each passage, as `System.why`.

        Raises as `ask`.
        """
        self._require_reader()
        return self.explaining.put(self._accept(questions), threshold)

    def _require_reader(self) -> None:
        if self.about.reader is None:
            raise NotFound(
                f"experiment {self.about.name} has no reader; ask /v1/retrieve for passages"
            )

    def _explain(
        self, questions: Sequence[Question], threshold: float | None, _: object
    ) -> list[tuple[Answer, list[Ablation]]]:
        system = self.system
        return [
            (answer, system.why(answer, threshold))
            for answer in system.answer(questions, threshold)
        ]

    def retrieve(self, questions: Sequence[Question], k: int = 0) -> list[Pending[Ranking]]:
        """Queue questions to retrieve for. Raises QueueFull, or NotFound without a retriever."""
        if self.about.retriever is None:
            raise NotFound(f"experiment {self.about.name} has no retriever")
        return self.retrieving.put(self._accept(questions), k)

    async def answers(self, batch: Sequence[Pending[Answer]]) -> list[schemas.AnswerForm]:
        """Wait for all answers; a timeout or cancellation withdraws the questions.

        Raises TimeoutError after the limit, or IfqaError if the system cannot answer now.
        """
        answers = await self._results(batch)
        files = self.system.documents
        forms = [
            schemas.AnswerForm.of(answer, pending.seconds, files)
            for answer, pending in zip(answers, batch, strict=True)
        ]
        for form in forms:
            self.metrics.outcomes.labels(form.outcome).inc()
        return forms

    async def rankings(self, batch: Sequence[Pending[Ranking]]) -> list[schemas.RankingForm]:
        """Wait for all rankings, as `answers`."""
        return [
            schemas.RankingForm.of(ranking, self.system.documents)
            for ranking in await self._results(batch)
        ]

    async def reasons(
        self, batch: Sequence[Pending[tuple[Answer, list[Ablation]]]]
    ) -> list[schemas.WhyForm]:
        """Wait for all ablations, as `answers`."""
        files = self.system.documents
        return [
            schemas.WhyForm(
                id=answer.question.id,
                answer=answer.text,
                ablations=[schemas.AblationForm.of(ablation, files) for ablation in ablations],
            )
            for answer, ablations in await self._results(batch)
        ]

    async def passage(self, passage_id: str) -> schemas.PassageForm:
        """A passage of the corpus; NotFound if the id is unknown."""
        if len(passage_id) > sizes.MAX_PASSAGE_ID:
            raise NotFound(f"no passage has an id of {len(passage_id):,} characters")
        passage = await asyncio.to_thread(self.system.passage, passage_id)
        if passage is None:
            raise NotFound(
                f"no passage {passage_id!r:.80} in corpus "
                f"{self.system.experiment.corpus or '(none)'}"
            )
        source = schemas.SourceForm.of(passage_id, self.system.documents)
        return schemas.PassageForm.model_validate({**asdict(passage), "source": source})

    def file(self, passage_id: str, system: System) -> IndexedFile:
        """The document with a passage of a system; NotFound if the id is unknown."""
        file = system.documents.get(encoded_name(passage_id))
        if file is None or system.passage(passage_id) is None:
            raise NotFound(f"no document has a passage {passage_id!r:.80}")
        return file

    async def picture(self, passage_id: str, page: int, span: tuple[int, int], of: str) -> bytes:
        """A page of a PDF with the part of a passage's `span` marked that stands on it, as a PNG.

        `of` begins the file's SHA-256. Raises NotFound for another file or page, MissingInput if
        the file is not as it was indexed, and Busy if too many pictures are being drawn.
        """
        if self._drawing >= sizes.MAX_DRAWING:
            raise Busy
        self._drawing += 1
        try:
            async with self._drawer:
                return await asyncio.to_thread(self._draw, passage_id, page, span, of)
        finally:
            self._drawing -= 1

    def _draw(self, passage_id: str, page: int, span: tuple[int, int], of: str) -> bytes:
        system = self.system
        file = self.file(passage_id, system)
        passage = system.passage(passage_id)
        parts = page_parts(passage, *span) if passage and file.is_pdf else ()
        part = next((part for part in parts if part.page == page), None)
        if part is None:
            raise NotFound(f"page {page} of {file.name!r:.80} has no part of this sentence")
        if not of or not file.record.sha256.startswith(of):
            raise MissingInput(f"{file.name} has changed since this address was given; ask again")
        with file.open() as handle:
            content = handle.read(file.record.bytes)
        try:
            return draw_page(content, part)
        except UnreadableFile as error:
            raise NotFound(f"no picture of page {page} of {file.name!r:.80}: {error}") from error

    @property
    def folder(self) -> schemas.FolderForm:
        """The folder of documents with the files left out; NotFound for another corpus."""
        system = self.system  # kept until the end: the files of its index leave with it
        documents = self.about.documents
        build = system.run.corpus
        if documents is None or build is None:
            raise NotFound(
                "no folder of documents is searched; start the server with --docs FOLDER"
            )
        bad = [file for file in read_bad_pages(build.artifact("passages").folder) if "kind" in file]
        bad.sort(key=lambda file: file["kind"] in _QUIET)
        left_out = [
            {"file": file["id"], "reason": file["reason"], "hint": mend(file, build.corpus.name)}
            for file in bad[:_LISTED]
        ]
        update = vars(self.watcher) if self.watcher else {}
        facts = {
            key: update[key]
            for key in ("updating", "changed", "updated", "problem")
            if key in update
        }
        return schemas.FolderForm.model_validate(
            {**documents.model_dump(), **facts, "left_out": left_out}
        )

    async def _results(self, batch: Sequence[Pending[_Result]]) -> list[_Result]:
        try:
            async with asyncio.timeout(self.limits.seconds):
                return await asyncio.gather(*(pending.result for pending in batch))
        finally:
            for pending in batch:
                pending.result.cancel()

    def _accept(self, questions: Sequence[Question]) -> list[Question]:
        """The questions with their missing ids; has a folder of documents scanned for changes."""
        if self.watcher:
            self.watcher.look()
        return [
            replace(question, id=question.id or f"ask/{next(self._numbers)}")
            for question in questions
        ]


def _about(system: System, limits: Limits, llm: LanguageModel | None) -> schemas.About:
    experiment = system.experiment
    form = None
    reader = experiment.reader
    retriever = experiment.retriever
    has_corpus = retriever and experiment.corpus
    searched = system.searched
    documents = None
    if searched.folders:
        names = ((experiment.root / folder).resolve().name or folder for folder in searched.folders)
        documents = schemas.DocumentsForm(
            name=", ".join(names),
            files=searched.files,
            passages=searched.passages,
            left_out=searched.left_out,
            updating=False,
        )
    if reader:
        label = system.reader.label
        (threshold, answerable) = system.thresholds()
        model, streams = (llm.name, llm.streams) if llm else ("", False)
        texts = {
            "name": reader.name,
            "label": label,
            "model": model,
            "language": system.reader.language,
        }
        form = schemas.ReaderForm(
            **texts,
            streams=streams,
            searches=reader.takes("search"),
            abstains_below=threshold,
            answerable_threshold=answerable,
        )
    return schemas.About(
        name=experiment.name,
        about=f"The documents of {documents.name}." if documents else experiment.about,
        corpus=schemas.CorpusForm(name=experiment.corpus, passages=system.size)
        if has_corpus
        else None,
        documents=documents,
        retriever=retriever.name if retriever else None,
        reader=form,
        passages_read=reader.passages if reader and retriever else 0,
        k=retriever.k if retriever else 0,
        examples=[] if documents else _examples(system),
        limits=schemas.LimitsForm(seconds=limits.seconds, waiting=limits.waiting),
    )


def _examples(system: System) -> list[str]:
    """Questions spread over the experiment's split; none if the split is missing."""
    experiment = system.experiment
    try:
        questions = open_benchmark(experiment.benchmark, experiment.root).questions(
            experiment.split
        )
    except (IfqaError, OSError):  # a server needs no benchmark
        return []
    step = max(1, len(questions) // _EXAMPLES)
    return [
        question.text for question in questions[::step] if len(question.text) <= sizes.MAX_QUESTION
    ][:_EXAMPLES]
