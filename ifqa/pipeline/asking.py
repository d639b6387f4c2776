"""Asks an experiment's questions in chunks: in this process, or in worker processes that each open
the retriever or reader.

A chunk's answers do not depend on the process, and chunks are written in order. So a stage's files
have the same bytes for any number of workers, and an interrupted stage resumes after its last
written chunk.
"""

import json
import logging
from abc import abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

from ifqa.config.experiment import (
    ConfiguredReader,
    ConfiguredRetriever,
    Experiment,
    base_experiments,
    parse_experiment,
)
from ifqa.config.overrides import as_sections
from ifqa.errors import DamagedArtifact, ServiceError
from ifqa.formatting import pluralize
from ifqa.llms.request_form import requests_differ
from ifqa.pipeline.opening import log_label, was_calibrated_on, was_trained_on
from ifqa.pipeline.run import Run
from ifqa.pipeline.served import as_recorded, names_server, refuse_other_server
from ifqa.pipeline.session import Session
from ifqa.pipeline.stage import Stage
from ifqa.pipeline.system import System
from ifqa.plugins import ConfiguredPlugin
from ifqa.progress import bar, hide_progress
from ifqa.protocols import ProgressCallback, Reader, Retriever, no_progress
from ifqa.records import Hit, Question, StageUsage
from ifqa.storage.append_log import AppendLog
from ifqa.storage.artifacts import Draft, compute_fingerprint
from ifqa.workers.hardware import gpu_names
from ifqa.workers.pool import Workers, map_tasks

logger = logging.getLogger(__name__)


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


class AskingStage(Stage[Run]):
    """A stage that gives each question to one plugin: to the retriever, or to the reader.

    Its inputs name the plugin's settings, code and files, and the language model that it asks.
    """

    activity: ClassVar[str]  # for the progress bar
    file: ClassVar[str]  # with a line for each question
    shared_file: ClassVar[str] = ""  # with lines that several chunks may have, each written once

    @abstractmethod
    def plugin(self, experiment: Experiment) -> ConfiguredRetriever | ConfiguredReader | None:
        """The plugin that it asks; None for an experiment without this stage."""

    @abstractmethod
    def chunk_size(self, run: Run) -> int:
        """Questions of a call of the plugin."""

    @abstractmethod
    def rankings(self, run: Run) -> Iterator[Sequence[Hit]]:
        """The hits that are given with each question."""

    @abstractmethod
    def opened(self, system: System) -> Retriever | Reader:
        """The plugin in an opened system."""

    @abstractmethod
    def ask_chunk(self, system: System, chunk: Chunk, advance: ProgressCallback) -> ChunkResult:
        """The lines of a chunk for each file, and its counts."""

    @abstractmethod
    def totals(self, total: Facts) -> dict[str, object]:
        """The counts for the manifest's record."""

    @abstractmethod
    def summary(self, record: Mapping[str, Any]) -> str:
        """How many questions it was asked, and what came of it."""

    def resumes(self, run: Run) -> Literal["same"]:
        return "same"

    def asker(self, run: Run) -> ConfiguredPlugin[Any] | None:
        plugin = self.plugin(run.experiment)
        return plugin if plugin and plugin.taking("llm") else None

    def command(self, run: Run) -> str:
        experiment = run.experiment
        name = experiment.name
        bases = base_experiments(name, experiment.root)
        if bases and not run.artifact(self.name).folder.is_dir():
            # No command finds the variant by its name yet
            name = f"{bases[-1]}, with the same flags"
        return f"ifqa {self.name} {name}"

    def identity(self, run: Run) -> str:
        if names_server(run.experiment):
            refuse_other_server(run, self)
        record = run.finished(self)["record"]
        # Asked again, they change the files
        failures = record.get("retry") or record.get("stored_failures")
        incomplete = json.dumps(record["files"], sort_keys=True) if failures else ""
        return compute_fingerprint(run.inputs(self)) + incomplete

    def inputs(self, run: Run) -> dict[str, object]:
        return as_recorded(run, self, self.current_inputs(run))

    @abstractmethod
    def current_inputs(self, run: Run) -> dict[str, object]:
        """The inputs as the settings name them, whatever its manifest says of a server."""

    def make(
        self,
        run: Run,
        draft: Draft,
        session: Session | None = None,
        workers: Workers | None = None,
    ) -> list[str]:
        questions = AskedQuestions(
            run.folder / self.name, run.questions, self.rankings(run), run.experiment.name
        )
        ask(draft, run, self, questions, session, workers or Workers())
        return [f"{questions.folder}: {'; '.join(self._done(draft.record))}"]

    def _done(self, record: Mapping[str, Any]) -> Iterator[str]:
        """What it has done, in phrases."""
        yield self.summary(record)
        if record.get("unparsed"):
            yield f"{record['unparsed']:,} with a completion that could not be parsed"
        if record.get("stored_failures"):
            stored = pluralize(record["stored_failures"], "stored failure")
            yield f"{stored}: --retry-failed asks again"
        if record.get("retry"):
            yield f"{record['retry']:,} incomplete; the next run retries them"


class AskedQuestions(NamedTuple):
    """Questions to ask, the hits that are given with each, and the folder that messages name."""

    folder: Path
    questions: Sequence[Question]
    rankings: Iterator[Sequence[Hit]]
    name: str  # for the progress bar


def ask(
    draft: Draft,
    run: Run,
    stage: AskingStage,
    asked: AskedQuestions,
    session: Session | None,
    workers: Workers,
) -> None:
    """Ask all remaining questions.

    Write the stage's files into `draft`, and its facts into the record.

    A plugin with a language model sends many requests at a time and counts them against its caps,
    so it runs in this process only.
    """
    questions = asked.questions
    log = AppendLog(draft.folder, tuple(filter(None, (stage.file, stage.shared_file))), _is_whole)
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
        of = pluralize(len(questions), "question")
        logger.info(f"{asked.folder}: resuming after {done:,} of {of}")
    shared = _written_lines(draft.folder / stage.shared_file) if stage.shared_file else set()
    with bar(f"{stage.activity} {asked.name}", len(questions)) as advance:
        advance(done)
        size = stage.chunk_size(run)
        chunks = _chunks(questions, asked.rankings, done, size)
        is_long = len(questions) - done > size
        for parts, facts in _results(run, stage, chunks, is_long, session, workers, advance):
            if stage.shared_file in parts:
                lines = parts[stage.shared_file].splitlines(keepends=True)
                parts[stage.shared_file] = b"".join(_new_lines(lines, shared))
            if "sent" in facts["usage"]:
                forms.add(facts["usage"]["sent"])
            if requests_differ(forms):
                raise ServiceError(
                    f"{asked.folder}: its requests differ ({' | '.join(sorted(forms))}), so they "
                    f"are not one reading; remove {draft.folder} to ask all again"
                )
            log.add(parts, facts)
            total = add_counts(total, facts)
    if total["questions"] != len(questions):
        found = f"found {total['questions']:,} for {pluralize(len(questions), 'question')}"
        raise DamagedArtifact(
            f"{asked.folder}: wanted a row for each question, {found}; remove "
            f"{draft.folder} and run it again"
        )
    log.finish(stage.file)
    counts = {"questions": len(questions), "trained_on_them": total["trained_on_them"]}
    if total.get("calibrated_on_them"):
        counts["calibrated_on_them"] = True
    draft.record |= total["usage"] | counts | stage.totals(total)


def _is_whole(facts: Mapping[str, Any]) -> bool:
    """Whether a chunk is kept: one with failures that can be retried is asked again."""
    return not facts["usage"].get("retry")


def _written_lines(path: Path) -> set[bytes]:
    """The digests of a file's lines; empty without the file."""
    written = set[bytes]()
    if path.exists():
        with open(path, "rb") as lines:
            deque(_new_lines(lines, written), maxlen=0)
    return written


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
    stage: AskingStage,
    chunks: Iterator[Chunk],
    is_long: bool,
    session: Session | None,
    workers: Workers,
    advance: ProgressCallback,
) -> Iterator[ChunkResult]:
    """The results of the chunks, in order; `is_long` if there is more than one chunk."""
    experiment = run.experiment
    plugin = stage.plugin(experiment)
    assert plugin is not None
    asks_model = stage.asker(run) is not None
    if asks_model and not workers.alone:
        logger.info(
            f"{experiment.name}: {plugin} asks a language model, so this process alone runs it: "
            "its caps hold for one process; [llm] concurrency is how many requests it sends at once"
        )
    if asks_model or workers.alone or (workers.engine == "local" and not is_long):
        runner = ChunkRunner(run, stage, session)
        for chunk in chunks:
            yield runner.ask(chunk, advance)
        return
    # Valid on other machines, too
    root = experiment.root if workers.engine == "local" else experiment.root.absolute()
    opening = _Opening(experiment.name, as_sections(experiment), root, stage)
    tasks = (_Task(opening, chunk) for chunk in chunks)
    devices = len(gpu_names()) if _uses_gpu(plugin) else 0
    results = map_tasks(
        _ask_in_worker, tasks, workers=workers.number, engine=workers.engine, gpus=devices
    )
    ahead: dict[int, ChunkResult] = {}
    label = ""
    number = 0
    for task, (parts, facts) in results:
        if facts["label"] != label:
            label = facts["label"]
            log_label(plugin.name, label)
        advance(len(task.chunk.questions))
        ahead[task.chunk.number] = parts, facts
        while number in ahead:
            yield ahead.pop(number)
            number += 1


def _uses_gpu(plugin: ConfiguredRetriever | ConfiguredReader) -> bool:
    steps = plugin.steps if isinstance(plugin, ConfiguredRetriever) else [plugin]
    return any(step.section().get("device", "cpu") != "cpu" for step in steps)


class ChunkRunner:
    """An experiment's retriever or reader, opened with the first chunk, and its usage since the
    last chunk.
    """

    def __init__(self, run: Run, stage: AskingStage, session: Session | None = None) -> None:
        self._run = run
        self._stage = stage
        self._system = System(run, session)
        self._used: StageUsage = {}
        self._seen: Facts = {}

    def ask(self, chunk: Chunk, advance: ProgressCallback = no_progress) -> ChunkResult:
        """Search or read a chunk.

        IfqaError if the plugin cannot be opened or breaks its protocol.
        """
        parts, facts = self._stage.ask_chunk(self._system, chunk, advance)
        plugin = self._stage.opened(self._system)
        used = deepcopy(plugin.usage())
        usage = add_counts(used, self._used, -1)
        self._used = used
        if not self._seen:
            self._seen["trained_on_them"] = was_trained_on(plugin, self._run)
            if was_calibrated_on(plugin, self._run):
                self._seen["calibrated_on_them"] = True
        no_counts: Facts = {"questions": len(chunk.questions), "hits": 0, "failed": 0, "label": ""}
        return parts, no_counts | facts | self._seen | {"usage": usage}


class _Opening(NamedTuple):
    """The name, sections and root of an experiment that a worker opens, and its stage."""

    experiment: str
    sections: dict[str, object]
    root: Path
    stage: AskingStage


class _Task(NamedTuple):
    """A chunk for a worker."""

    opening: _Opening
    chunk: Chunk

    def __str__(self) -> str:
        questions = self.chunk.questions
        activity = self.opening.stage.activity
        return f"{activity} the questions {questions[0].id} to {questions[-1].id}"


# The runner of this worker process, once it is open
_open_runners: list[tuple[_Opening, ChunkRunner]] = []


def _ask_in_worker(task: _Task) -> ChunkResult:
    name, sections, root, stage = task.opening
    if not _open_runners or _open_runners[0][0] != task.opening:
        _open_runners.clear()  # frees the memory first
        hide_progress()  # the main process shows the progress
        experiment = parse_experiment(name, sections, f"experiment {name}", root)
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
