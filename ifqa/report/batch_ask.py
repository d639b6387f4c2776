"""Answers many questions into one file: `ifqa ask --questions FILE --out FILE`. A killed run goes on where it was."""

import csv
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from ifqa.errors import IfqaError, unknown
from ifqa.pipeline.run import Run
from ifqa.pipeline.system import System
from ifqa.progress import bar, counted, say
from ifqa.records import Answer, Question, questions_identity
from ifqa.report.answers import answer_json, support_of
from ifqa.storage.artifacts import identity, partial, prepare, read_manifest, refuse_links, room_for
from ifqa.storage.chunks import Chunks
from ifqa.storage.files import create, json_line, read_jsonl, write

_AT_ONCE = 8  # questions that a kill can lose
_ANSWERS = "answers.jsonl"
_COLUMNS = ("id", "question", "answer", "confidence", "candidate", "source", "sentence", "computed", "factual", "error")


def check_out(out: Path) -> None:
    """Refuse a file of answers that is there, or whose kind cannot be written.

    Raises:
        IfqaError: it is so.
    """
    if out.suffix not in _WRITERS:
        raise unknown("ending of --out", out.suffix, _WRITERS)
    if out.exists() or out.is_symlink():
        raise IfqaError(f"{out} is there already, and nothing is overwritten; name another file, or remove it")
    if not out.parent.is_dir():
        raise IfqaError(f"{out}: there is no folder {out.parent}; make it first")


def answer_into(out: Path, questions: Sequence[Question], system: System, threshold: float | None = None) -> int:
    """Answer all questions, in their order, into a file: .jsonl has all of each answer, .csv a row, .txt the answer alone.

    Gives the number of questions that failed.

    The answers grow in `.NAME.partial` beside the file, which is written once all are there. A run that was killed goes on
    after its last eight questions, unless the questions, the reader, the retriever or the documents are others now.

    Raises:
        IfqaError: `check_out`; another process writes the file; or as `System.answer`.
    """
    check_out(out)
    refuse_links(out)
    guard = FileLock(out.with_name(f".{out.name}.lock"), timeout=0)
    try:
        guard.acquire()
    except Timeout as error:
        raise IfqaError(f"another process is writing {out}; wait until it ends, or name another file") from error
    try:
        with room_for(out):
            failed = _fill(
                prepare(out, _inputs(questions, system, threshold), "same"), out, questions, system, threshold
            )
            shutil.rmtree(partial(out))
    finally:
        guard.release()
        out.with_name(f".{out.name}.lock").unlink(missing_ok=True)
    say(f"{out}: {counted(len(questions) - failed, 'question')} answered{f', {failed:,} failed' if failed else ''}")
    return failed


def _fill(place: Path, out: Path, questions: Sequence[Question], system: System, threshold: float | None) -> int:
    log = Chunks(place, (_ANSWERS,), lambda facts: type(facts.get("questions")) is int)
    done = sum(facts["questions"] for facts in log.kept)
    if done:
        say(f"{out}: going on after {done:,} of {counted(len(questions), 'question')}")
    searched = system.searched
    with bar("answering", len(questions)) as advance:
        advance(done)
        for start in range(done, len(questions), _AT_ONCE):
            answers = system.answer(questions[start : start + _AT_ONCE], threshold)
            lines = [json_line({"id": one.question.id} | answer_json(one, searched) | _shown(one)) for one in answers]
            log.add({_ANSWERS: b"".join(lines)}, {"questions": len(answers)})
            advance(len(answers))
    log.finish(_ANSWERS)
    with create(out) as handle:
        for line in _WRITERS[out.suffix](record for _, record in read_jsonl(place / _ANSWERS)):
            write(handle, line)
    return sum(bool(record["error"]) for _, record in read_jsonl(place / _ANSWERS))


def _shown(answer: Answer) -> dict[str, str]:
    """What the columns of a table show of an answer's support and of how it was computed."""
    support = support_of(answer)
    computed = str(answer.how.calculation) if answer.text and answer.how and answer.how.calculation else ""
    return {
        "source": support.source if support else "",
        "sentence": support.sentence if support else "",
        "computed": computed,
    }


def _inputs(questions: Sequence[Question], system: System, threshold: float | None) -> dict[str, object]:
    """What decides the answers: those of another run are not gone on with."""
    experiment = system.experiment
    made: dict[str, object] = {"questions": questions_identity(list(questions)), "threshold": threshold}
    if experiment.retriever:
        made["retriever"] = Run(experiment).fingerprint("retriever")
    if experiment.reader:
        made["reader"] = Run(experiment).fingerprint("reader")
    manifest = read_manifest(experiment.corpus_folder / "passages") if experiment.corpus else None
    return made | ({"passages": identity(manifest["inputs"])} if manifest else {})


def _json_lines(records: Iterator[Mapping[str, Any]]) -> Iterator[bytes]:
    left = set(_COLUMNS) - {"id", "question", "answer", "confidence", "candidate", "factual", "error"}
    for record in records:
        yield json_line({key: value for key, value in record.items() if key not in left})


def _table(records: Iterator[Mapping[str, Any]]) -> Iterator[bytes]:
    yield _row(_COLUMNS)
    for record in records:
        yield _row(["" if record[name] is None else record[name] for name in _COLUMNS])


def _row(cells: Sequence[object]) -> bytes:
    line = StringIO(newline="")
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue().encode("utf-8", "replace")


def _texts(records: Iterator[Mapping[str, Any]]) -> Iterator[bytes]:
    for record in records:
        yield f"{' '.join(record['answer'].split())}\n".encode("utf-8", "replace")


_WRITERS: dict[str, Callable[[Iterator[Mapping[str, Any]]], Iterator[bytes]]] = {
    ".jsonl": _json_lines,
    ".csv": _table,
    ".txt": _texts,
}
