"""Asks an experiment's questions in chunks: in this process, or in worker processes that each open
the retriever or reader.

A chunk's answers do not depend on the process, and chunks are written in order. So a stage's files
have the same bytes for any number of workers, and an interrupted stage resumes after its last
written chunk.
"""

import logging
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ifqa.config.experiment import parse_experiment, retriever_sections
from ifqa.config.overrides import as_sections
from ifqa.corpus.passage_store import PassageStore, generated_passage_line, get_passage_lists
from ifqa.errors import DamagedArtifact, ServiceError
from ifqa.formats.runs import format_ranking
from ifqa.formatting import pluralize
from ifqa.llms.request_form import requests_differ
from ifqa.pipeline.run import LLM_STAGES, Run
from ifqa.pipeline.stage_outputs import prediction_line, rankings_of, stores_of
from ifqa.pipeline.system import Session, System, log_label, was_trained_on
from ifqa.progress import bar, hide_progress
from ifqa.protocols import ProgressCallback, Reader, Trainable, no_progress
from ifqa.records import Hit, Passage, Question, StageUsage
from ifqa.storage.append_log import AppendLog
from ifqa.storage.artifacts import Draft
from ifqa.workers.hardware import gpu_names
from ifqa.workers.pool import Workers, map_tasks

logger = logging.getLogger(__name__)

Stage = Literal["retrieve", "read"]
RUN = "run.trec"
PASSAGES = "passages.jsonl"
PREDICTIONS = "predictions.jsonl"
_ACTIVITY: Mapping[Stage, str] = {"retrieve": "searching", "read": "reading"}


class Chunk(NamedTuple):
    """Questions and, for a reader, the hits for each, best first.

    `number` counts the chunks of this attempt.
    """

    number: int
    questions: Sequence[Question]
    rankings: Sequence[Sequence[Hit]] = ()


# About one or more chunks: counts of questions and hits, the language model's usage, the label
Facts = dict[str, Any]
# The lines that a chunk adds to each file, and its facts
ChunkResult = tuple[dict[str, bytes], Facts]


class ProbeInputs(NamedTuple):
    """Questions to read in place of an experiment's own, the hits to read for each, and the probe's
    folder.
    """

    folder: Path
    questions: Sequence[Question]
    rankings: Sequence[Sequence[Hit]]


def ask(
    draft: Draft,
    run: Run,
    stage: Stage,
    session: Session | None,
    workers: Workers,
    probe: ProbeInputs | None = None,
) -> None:
    """Ask all remaining questions.

    Write the stage's files into `draft`, and its facts into the record.

    A plugin with a language model sends many requests at a time and counts them against its caps,
    so it runs in this process only. The questions and rankings of `probe` replace the experiment's
    own.
    """
    experiment = run.experiment
    questions = run.questions
    folder = experiment.folder / stage
    rankings: Iterator[Sequence[Hit]] = iter(())
    if stage == "read":
        depth = run.reader["passages"]
        size = run.plugins.reader(run.reader["name"]).chunk
        rankings = (ranking[:depth] for ranking in rankings_of(experiment, questions))
    else:
        size = max(
            run.plugins.retriever(section["name"]).chunk
            for section in retriever_sections(run.retriever)
        )
    if probe:
        folder = probe.folder
        questions = list(probe.questions)
        rankings = iter(probe.rankings)
    # a chunk with failures that can be retried is read again
    log = AppendLog(
        draft.folder, (RUN, PASSAGES, PREDICTIONS), lambda facts: not facts["usage"].get("retry")
    )
    total: Facts = {
        "questions": 0,
        "hits": 0,
        "failed": 0,
        "label": "",
        "trained_on_them": False,
        "usage": {},
    }
    for earlier in log.kept:
        total = add_counts(total, earlier)
    done = total["questions"]
    forms = {facts["usage"]["sent"] for facts in log.kept if "sent" in facts["usage"]}
    if done:
        logger.info(f"{folder}: resuming after {done:,} of {pluralize(len(questions), 'question')}")
    generated = set[bytes]()
    if (draft.folder / PASSAGES).exists():
        with open(draft.folder / PASSAGES, "rb") as lines:
            deque(_new_lines(lines, generated), maxlen=0)
    with bar(f"{_ACTIVITY[stage]} {experiment.name}", len(questions)) as advance:
        advance(done)
        chunks = _chunks(questions, rankings, done, size)
        for parts, facts in _results(
            run, stage, chunks, len(questions) - done > size, session, workers, advance
        ):
            if PASSAGES in parts:
                parts[PASSAGES] = b"".join(
                    _new_lines(parts[PASSAGES].splitlines(keepends=True), generated)
                )
            forms |= {facts["usage"]["sent"]} if "sent" in facts["usage"] else set()
            if requests_differ(forms):
                raise ServiceError(
                    f"{folder}: its requests differ ({' | '.join(sorted(forms))}), so they "
                    f"are not one reading; remove {draft.folder} to ask all again"
                )
            log.add(parts, facts)
            total = add_counts(total, facts)
    if total["questions"] != len(questions):
        found = f"found {total['questions']:,} for {pluralize(len(questions), 'question')}"
        raise DamagedArtifact(
            f"{folder}: wanted a row for each question, {found}; remove "
            f"{draft.folder} and run it again"
        )
    log.finish(RUN if stage == "retrieve" else PREDICTIONS)
    counts = {"questions": len(questions), "trained_on_them": total["trained_on_them"]}
    if stage == "retrieve":
        counts["hits"] = total["hits"]
    else:
        counts |= {"label": total["label"], "failed": total["failed"]}
    draft.record |= total["usage"] | counts


def _chunks(
    questions: Sequence[Question], rankings: Iterable[Sequence[Hit]], done: int, size: int
) -> Iterator[Chunk]:
    """The chunks after the first `done` questions.

    The rankings are read to the end, which checks them all.
    """
    remaining = iter(rankings)
    for _ in range(done):
        next(remaining, None)
    for number, start in enumerate(range(done, len(questions), size)):
        chunk = questions[start : start + size]
        yield Chunk(number, chunk, [next(remaining, ()) for _ in chunk])
    for _ in remaining:
        pass


def _results(
    run: Run,
    stage: Stage,
    chunks: Iterator[Chunk],
    parallel: bool,
    session: Session | None,
    workers: Workers,
    advance: ProgressCallback,
) -> Iterator[ChunkResult]:
    experiment = run.experiment
    table = run.retriever if stage == "retrieve" else run.reader
    if (model := bool(experiment.asks_llm(LLM_STAGES[stage]))) and not workers.alone:
        logger.info(
            f"{experiment.name}: {LLM_STAGES[stage]} {table['name']!r} asks a language model, "
            "so this process alone runs it: "
            "its caps hold for one process; [llm] concurrency is how many requests it sends at once"
        )
    if model or workers.alone or (workers.engine == "local" and not parallel):
        runner = ChunkRunner(run, stage, session)
        for chunk in chunks:
            yield runner.ask(chunk, advance)
        return
    # Valid on other machines, too
    root = experiment.root if workers.engine == "local" else experiment.root.absolute()
    opening = (experiment.name, as_sections(experiment), root, stage)
    settings = map(dict, retriever_sections(run.retriever) if stage == "retrieve" else [run.reader])
    uses_gpu = any(plugin.get("device", "cpu") != "cpu" for plugin in settings)
    tasks = (_Task(opening, chunk) for chunk in chunks)
    devices = len(gpu_names()) if uses_gpu else 0
    results = map_tasks(
        _ask_in_worker, tasks, workers=workers.number, engine=workers.engine, gpus=devices
    )
    ahead: dict[int, ChunkResult] = {}
    label, number = "", 0
    for task, (parts, facts) in results:
        if facts["label"] != label:
            label = facts["label"]
            log_label(table["name"], label)
        advance(len(task.chunk.questions))
        ahead[task.chunk.number] = parts, facts
        while number in ahead:
            yield ahead.pop(number)
            number += 1


class ChunkRunner:
    """An experiment's retriever or reader, opened with the first chunk, and its usage since the
    last chunk.
    """

    def __init__(self, run: Run, stage: Stage, session: Session | None = None) -> None:
        self._run = run
        self._stage = stage
        self._system = System(run, session)
        self._used: StageUsage = {}

    def ask(self, chunk: Chunk, advance: ProgressCallback = no_progress) -> ChunkResult:
        """Search or read a chunk.

        IfqaError if the plugin cannot be opened or breaks its protocol.
        """
        facts: Facts = {"questions": len(chunk.questions), "hits": 0, "failed": 0}
        if self._stage == "retrieve":
            parts, facts["hits"] = self._search(chunk, advance)
            plugin: Trainable = self._system.retriever
        else:
            parts, facts["failed"] = self._read(chunk, advance)
            plugin = self._system.reader
        used = deepcopy(plugin.usage())
        usage = add_counts(used, self._used, -1)
        self._used = used
        label = plugin.label if isinstance(plugin, Reader) else ""
        return parts, facts | {
            "label": label,
            "trained_on_them": self._trained_on_them,
            "usage": usage,
        }

    def _search(self, chunk: Chunk, advance: ProgressCallback) -> tuple[dict[str, bytes], int]:
        """The lines of a chunk's rankings, and the number of their hits."""
        rankings = self._system.search(chunk.questions)
        advance(len(chunk.questions))
        tag = f"ifqa-{self._run.retriever['name']}"
        pairs = list(zip(chunk.questions, rankings, strict=True))
        lines = [format_ranking(question.id, hits, tag) for question, hits in pairs]
        parts = {RUN: b"".join(lines)}
        if any(ranking.generated is not None for ranking in rankings):
            unique: dict[str, Passage] = {}
            for passage in (passage for ranking in rankings for passage in ranking.generated or ()):
                unique.setdefault(passage.id, passage)
            parts[PASSAGES] = b"".join(map(generated_passage_line, unique.values()))
        return parts, sum(map(len, rankings))

    def _read(self, chunk: Chunk, advance: ProgressCallback) -> tuple[dict[str, bytes], int]:
        """The lines of a chunk's predictions, and how many of them failed."""
        passages = get_passage_lists(
            self._stores, [[hit.passage_id for hit in ranking] for ranking in chunk.rankings]
        )
        scores = [[hit.score for hit in ranking] for ranking in chunk.rankings]
        predictions = self._system.read(chunk.questions, passages, scores, advance)
        failed = sum(prediction.failed for prediction in predictions)
        return {PREDICTIONS: b"".join(map(prediction_line, predictions))}, failed

    @cached_property
    def _stores(self) -> list[PassageStore]:
        return stores_of(self._run.experiment) if self._run.experiment.retriever else []

    @cached_property
    def _trained_on_them(self) -> bool:
        return was_trained_on(
            self._system.retriever if self._stage == "retrieve" else self._system.reader, self._run
        )


class _Task(NamedTuple):
    """A chunk for a worker, and the name, sections, root and stage of the experiment to open."""

    opening: tuple[str, dict[str, object], Path, Stage]
    chunk: Chunk

    def __str__(self) -> str:
        questions = self.chunk.questions
        return f"{_ACTIVITY[self.opening[3]]} the questions {questions[0].id} to {questions[-1].id}"


# The runner of this worker process, once it is open
_open_runners: list[tuple[object, ChunkRunner]] = []


def _ask_in_worker(task: _Task) -> ChunkResult:
    name, tables, root, stage = task.opening
    if not _open_runners or _open_runners[0][0] != task.opening:
        _open_runners.clear()  # frees the memory first
        hide_progress()  # the main process shows the progress
        experiment = parse_experiment(name, tables, f"experiment {name}", root)
        _open_runners.append((task.opening, ChunkRunner(Run(experiment), stage)))
    return _open_runners[0][1].ask(task.chunk)


def _new_lines(lines: Iterable[bytes], seen: set[bytes]) -> Iterator[bytes]:
    """The lines whose digests are not yet in `seen`.

    Adds their digests, so that a line of several chunks is written once.
    """
    for line in lines:
        if (digest := blake2b(line, digest_size=16).digest()) not in seen:
            seen.add(digest)
            yield line


def add_counts(first: Any, second: Any, sign: Literal[1, -1] = 1) -> Any:
    """Add or subtract counts, number by number in tables and lists.

    None if one is None (an unknown price).

    For texts and booleans, a sum is the second value and a difference the first.
    """
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return {
            **first,
            **second,
            **{key: add_counts(first[key], second[key], sign) for key in first if key in second},
        }
    if (
        isinstance(first, list | tuple)
        and isinstance(second, list | tuple)
        and len(first) == len(second)
    ):
        return [add_counts(*pair, sign) for pair in zip(first, second, strict=True)]
    if all(
        isinstance(count, int | float) and not isinstance(count, bool) for count in (first, second)
    ):
        return first + sign * second
    if first is None or second is None:
        return None
    return second if sign > 0 else first
