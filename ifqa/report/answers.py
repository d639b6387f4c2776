"""Answers on the screen, as JSON and in files: an answer, how sure it is, the sentence that supports it, and where it stands."""

import csv
import logging
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from io import StringIO
from itertools import accumulate
from pathlib import Path

from filelock import FileLock, Timeout
from rich.console import Console
from rich.text import Text

from ifqa.corpus.documents.chunking import parse_locator
from ifqa.corpus.sentences import sentence_span, split_sentences
from ifqa.errors import IfqaError, unknown_name
from ifqa.formatting import pluralize
from ifqa.pipeline.run import Run
from ifqa.pipeline.system import Searched, System
from ifqa.progress import bar
from ifqa.records import Answer, Passage, Question, fingerprint_questions
from ifqa.report.table import plain
from ifqa.storage.append_log import truncate_log
from ifqa.storage.artifacts import (
    compute_fingerprint,
    partial_folder,
    prepare_draft,
    read_manifest,
    refuse_links,
    report_full_disk,
)
from ifqa.storage.files import atomic_write, json_line, read_jsonl, write_bytes

logger = logging.getLogger(__name__)

_INDENT = 10
_COLOURS = {"right": "green", "wrong": "red", "partly right": "yellow", "abstained": "yellow"}


@dataclass(frozen=True, slots=True)
class Support:
    """The sentence that an answer stands in, or was computed from, and its source: "handbook.pdf, p. 12", or title and id."""

    sentence: str
    source: str
    passage_id: str


def support_of(answer: Answer) -> Support | None:
    """The sentence that supports an answer; None if there is no answer, or it stands in none of the passages."""
    if not answer.text:
        return None
    for passage in answer.evidence:
        if answer.how and answer.how.passage_id == passage.id:
            start, end, at = *answer.how.sentence, answer.how.span[0]
        elif answer.how or len(pieces := answer.highlights(passage)) < 2:
            continue
        else:
            at = len(pieces[0])
            start, end = sentence_span(passage.text, at, at + len(pieces[1]))
        return Support(passage.text[start:end], source_of(passage, at), passage.id)
    return None


def source_of(passage: Passage, at: int | None = None) -> str:
    """Where a passage, or its character `at`, stands: a document's file and page or line; of others, title and id."""
    if place := parse_locator(passage.id, at):
        _, _, headings = passage.title.partition(" › ")
        return f"{place} · {headings}" if headings else str(place)
    return f"{passage.title} · {passage.id}" if passage.title else passage.id


def answer_json(answer: Answer, searched: Searched | None = None) -> dict[str, object]:
    """A question's answer, its support and its evidence passages, the most important first, as JSON data."""
    support = support_of(answer)
    record: dict[str, object] = {
        "question": answer.question.text,
        "answer": answer.text,
        "factual": answer.factual,
        "error": answer.error,
        "how": asdict(answer.how) if answer.how else None,
        "confidence": answer.confidence,
        "candidate": answer.candidate,
        "support": asdict(support) if support else None,
        "evidence": [{**asdict(passage), "source": source_of(passage)} for passage in answer.evidence],
    }
    record |= {"steps": [asdict(step) for step in answer.steps]} if answer.steps else {}
    return record | ({"searched": asdict(searched)} if searched else {})


def show_answer(
    answer: Answer, searched: Searched | None = None, passages: int = 3, kind: str = "", wanted: str = ""
) -> None:
    """Print a question's answer and its evidence, with the answer marked in it.

    Args:
        answer: the answer.
        searched: what was searched.
        passages: how many of its passages to show.
        kind: "right", "wrong" and the like, of a question whose answer is known.
        wanted: the right answer, which is shown where it was not given.
    """
    console = Console(highlight=False)
    styled = console.color_system is not None
    text = plain(answer.text or answer.no_answer_reason)
    if answer.text and answer.confidence is not None:
        text += f" [dim](confidence {answer.confidence:.0%})[/dim]"
    notes = [kind] if kind in _COLOURS else []
    if wanted and kind != "right":
        notes.append(f"wanted: {plain(wanted)}")
    if notes:
        text += f"  [{_COLOURS.get(kind, 'dim')}]({'; '.join(notes)})[/]"
    _print_field(console, "Question", plain(answer.question.text))
    _print_field(console, "Answer", text)
    if answer.how and answer.how.calculation:
        _print_field(console, "Computed", plain(str(answer.how.calculation)))
    if answer.factual:
        _print_field(console, "In fact", plain(answer.factual))
    for number, passage in enumerate(answer.evidence[:passages]):
        at = answer.how.span[0] if answer.how and answer.how.passage_id == passage.id else None
        name = "" if number or answer.factual else "In fact"
        _print_field(console, name, f"[dim]{plain(source_of(passage, at))}[/dim]")
        _print_field(console, "", mark_parts(excerpt(answer.highlights(passage), answer.question.text), styled))
    for number, step in enumerate(answer.steps, start=1):
        count = pluralize(len(step.passage_ids), "new passage")
        _print_field(console, f"Step {number}", f"[dim]{plain(step.query)} · {count}[/dim]")
    if searched:
        _print_field(console, "Searched", f"[dim]{plain(str(searched))}[/dim]")
    console.print()


def _print_field(console: Console, name: str, markup: str) -> None:
    """Print a name and a text beside it, which is wrapped to the terminal's width."""
    text = Text.from_markup(markup, emoji=False)
    for number, line in enumerate(text.wrap(console, max(console.width - _INDENT, _INDENT))):
        line.rstrip()
        console.print(Text(("" if number else name).ljust(_INDENT), "bold") + line, soft_wrap=True)


def mark_parts(parts: Sequence[str], styled: bool = True) -> str:
    """Text in pieces for the terminal, as `plain`, with every second piece marked.

    The mark is bold and green, or, where nothing can be styled (a pipe, a file), square brackets.
    """
    if not styled:
        return plain("".join(f"[{part}]" if n % 2 else part for n, part in enumerate(parts)))
    return "".join(f"[bold green]{plain(part)}[/bold green]" if n % 2 else plain(part) for n, part in enumerate(parts))


CUT = "…"


def excerpt(pieces: Sequence[str], question: str) -> list[str]:
    """A sentence of a passage with the ones before and after it, in pieces; `CUT` stands for what is left out.

    It is the sentence that shares most words with the question, among those that hold a mark, if any does.

    Args:
        pieces: the passage's text; every second piece is marked.
        question: the question's text.
    """
    every = split_sentences("".join(pieces))
    if len(every) <= 1:
        return list(pieces)
    edges = [0, *accumulate(map(len, every))]  # of the sentences
    places = [0, *accumulate(map(len, pieces))]  # of the pieces

    def worth(number: int) -> tuple[bool, int, int]:
        marked = any(edges[number] <= mark < edges[number + 1] for mark in places[1:-1:2])
        return marked, len(_words(question) & _words(every[number])), -number

    best = max(range(len(every)), key=worth)
    first, last = max(best - 1, 0), min(best + 2, len(every))
    left, right = edges[first], edges[last - 1] + len(every[last - 1].rstrip())
    cut = [piece[max(left - at, 0) : max(right - at, 0)] for piece, at in zip(pieces, places, strict=False)]
    cut[0] = (f"{CUT} " if first else "") + cut[0]
    cut[-1] += f" {CUT}" if last < len(every) else ""
    return cut


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.lower()) if len(word) > 3}


_AT_ONCE = 8  # questions that a kill can lose
_ANSWERS = "answers.jsonl"
_ENDINGS = (".jsonl", ".csv", ".txt")
_SHOWN = ("source", "sentence", "computed")  # columns of a table that the JSON has elsewhere
_COLUMNS = ("id", "question", "answer", "confidence", "candidate", *_SHOWN, "factual", "error")


def check_out(out: Path) -> None:
    """Refuse a file of answers that is there, or whose kind cannot be written."""
    if out.suffix not in _ENDINGS:
        raise unknown_name("ending of --out", out.suffix, _ENDINGS)
    if out.exists() or out.is_symlink():
        raise IfqaError(f"{out} is there already, and nothing is overwritten; name another file, or remove it")
    if not out.parent.is_dir():
        raise IfqaError(f"{out}: there is no folder {out.parent}; make it first")


def answer_into(out: Path, questions: Sequence[Question], system: System, threshold: float | None = None) -> int:
    """Answer all questions, in their order, into a file: .jsonl has all of each answer, .csv a row, .txt the answer alone.

    Gives the number of questions that failed.

    The answers grow in `.NAME.partial` beside the file, which is written once all are there. A run that was killed goes on
    after its last eight questions, unless the questions, the reader, the retriever or the documents are others now.
    """
    check_out(out)
    refuse_links(out)
    guard = FileLock(out.with_name(f".{out.name}.lock"), timeout=0)
    try:
        guard.acquire()
    except Timeout as error:
        raise IfqaError(f"another process is writing {out}; wait until it ends, or name another file") from error
    try:
        with report_full_disk(out):
            place = prepare_draft(out, _inputs(questions, system, threshold), "same")
            _fill(place, out, questions, system, threshold)
            records = [record for _, record in read_jsonl(place / _ANSWERS)]
            with atomic_write(out) as handle:
                write_bytes(handle, _written(records, out.suffix))
            shutil.rmtree(partial_folder(out))
    finally:
        guard.release()
        out.with_name(f".{out.name}.lock").unlink(missing_ok=True)
    failed = sum(bool(record["error"]) for record in records)
    logger.info(
        f"{out}: {pluralize(len(questions) - failed, 'question')} answered{f', {failed:,} failed' if failed else ''}"
    )
    return failed


def _fill(place: Path, out: Path, questions: Sequence[Question], system: System, threshold: float | None) -> None:
    (place / _ANSWERS).touch()
    done = truncate_log(place / _ANSWERS)
    if done:
        logger.info(f"{out}: going on after {done:,} of {pluralize(len(questions), 'question')}")
    searched = system.searched
    with bar("answering", len(questions)) as advance:
        advance(done)
        for start in range(done, len(questions), _AT_ONCE):
            answers = system.answer(questions[start : start + _AT_ONCE], threshold)
            with open(place / _ANSWERS, "ab") as handle:
                write_bytes(handle, b"".join(_line(answer, searched) for answer in answers))
            advance(len(answers))


def _line(answer: Answer, searched: Searched | None) -> bytes:
    support, how = support_of(answer), answer.how
    shown = (support.source, support.sentence) if support else ("", "")
    computed = str(how.calculation) if answer.text and how and how.calculation else ""
    columns = dict(zip(_SHOWN, (*shown, computed), strict=True))
    return json_line({"id": answer.question.id} | answer_json(answer, searched) | columns)


def _inputs(questions: Sequence[Question], system: System, threshold: float | None) -> dict[str, object]:
    """What decides the answers: those of another run are not gone on with."""
    experiment = system.experiment
    run, inputs = (
        Run(experiment),
        dict[str, object](questions=fingerprint_questions(list(questions)), threshold=threshold),
    )
    inputs |= {"retriever": run.fingerprint("retriever")} if experiment.retriever else {}
    inputs |= {"reader": run.fingerprint("reader")} if experiment.reader else {}
    manifest = read_manifest(experiment.corpus_folder / "passages") if experiment.corpus else None
    return inputs | ({"passages": compute_fingerprint(manifest["inputs"])} if manifest else {})


def _written(records: Iterable[Mapping[str, object]], ending: str) -> bytes:
    """The file of the answers."""
    if ending == ".jsonl":
        return b"".join(json_line({key: record[key] for key in record if key not in _SHOWN}) for record in records)
    text = StringIO(newline="")
    if ending == ".csv":
        table = csv.DictWriter(text, _COLUMNS, extrasaction="ignore", lineterminator="\n")
        table.writeheader()
        table.writerows(records)
    else:
        text.writelines(f"{' '.join(str(record['answer']).split())}\n" for record in records)
    return text.getvalue().encode("utf-8", "replace")
