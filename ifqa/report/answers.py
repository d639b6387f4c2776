"""Answers on the screen, as JSON and in files, each with its confidence, supporting sentence and
source.
"""

import csv
import logging
import re
import shutil
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from io import StringIO
from itertools import accumulate
from pathlib import Path

from filelock import FileLock, Timeout
from rich.console import Console
from rich.text import Text

from ifqa.corpus.sentences import sentence_span, split_sentences
from ifqa.errors import ConfigError, IfqaError, MissingInput, ServiceError, unknown_name
from ifqa.formatting import is_formula, pluralize
from ifqa.llms.request_form import requests_differ
from ifqa.pipeline.searched import CorpusSummary
from ifqa.pipeline.stage_outputs import passage_source
from ifqa.pipeline.system import System
from ifqa.progress import bar
from ifqa.records import (
    FOUND_AFTERWARDS,
    UNLIKELY,
    Ablation,
    Answer,
    Question,
    Quote,
    fingerprint_questions,
)
from ifqa.report.table import sanitize
from ifqa.storage import artifacts
from ifqa.storage.append_log import truncate_log
from ifqa.storage.files import atomic_write, json_line, read_jsonl, write_bytes

logger = logging.getLogger(__name__)

_INDENT = 10
_FACTS = "In fact"
_COLOURS = {"right": "green", "wrong": "red", "partly right": "yellow", "abstained": "yellow"}


@dataclass(frozen=True, slots=True)
class Support:
    """The sentence that an answer rests on: it has the answer, or the answer was computed from it,
    or a language model quoted it. `origin` is as in `Explanation`.
    """

    sentence: str
    source: str  # such as "handbook.pdf, p. 12"
    passage_id: str
    origin: str


def find_support(answer: Answer) -> Support | None:
    """The sentence that supports an answer.

    None without an answer, or if no passage contains it.
    """
    if not answer.text:
        return None
    for passage in answer.evidence:
        origin = "found afterwards"
        if answer.how and answer.how.passage_id == passage.id:
            start, end, at = *answer.how.sentence, answer.how.span[0]
            origin = answer.how.origin
        elif answer.how or len(pieces := answer.highlights(passage)) < 2:
            continue
        else:
            at = len(pieces[0])
            start, end = sentence_span(passage.text, at, at + len(pieces[1]))
        source = passage_source(passage, at)
        return Support(passage.text[start:end], source, passage.id, origin)
    return None


def answer_json(answer: Answer, searched: CorpusSummary | None = None) -> dict[str, object]:
    """A question's answer, its support and its evidence passages, the most important first, as JSON
    data.
    """
    support = find_support(answer)
    record: dict[str, object] = {
        "question": answer.question.text,
        "answer": answer.text,
        "factual": answer.factual,
        "error": answer.error,
        "how": asdict(answer.how) if answer.how else None,
        "confidence": answer.confidence,
        "answerable": answer.answerable,
        "candidate": answer.candidate,
        "abstention": answer.abstention,
        "quote": asdict(answer.quote) if answer.quote else None,
        "change": answer.change,
        "support": asdict(support) if support else None,
        "evidence": [
            {**asdict(passage), "source": passage_source(passage, answer.position(passage))}
            for passage in answer.evidence
        ],
    }
    record |= {"steps": [asdict(step) for step in answer.steps]} if answer.steps else {}
    record |= {"note": answer.note} if answer.note else {}
    record |= {"uncalibrated": answer.uncalibrated} if answer.uncalibrated else {}
    return record | ({"searched": asdict(searched)} if searched else {})


def show_answer(
    answer: Answer,
    searched: CorpusSummary | None = None,
    passages: int = 3,
    kind: str = "",
    wanted: str = "",
    refusal: str = "",
    advice: str = "",
) -> None:
    """Print a question's answer and its first passages, with the answer highlighted.

    `searched` says what was searched.

    `kind` is "right", "wrong" and so on, if the gold answer is known; `wanted` is the gold answer,
    shown unless `kind` is right. `refusal` says who withholds an answer, and how to see it;
    `advice`, how to get more right answers.
    """
    console = Console(highlight=False)
    styled = console.color_system is not None
    text = sanitize(answer.text or answer.no_answer_reason)
    if answer.text and answer.confidence is not None:
        text += f" [dim](confidence {answer.confidence:.0%})[/dim]"
    notes = [kind] if kind in _COLOURS else []
    if wanted and kind != "right":
        notes.append(f"wanted: {sanitize(wanted)}")
    if notes:
        text += f"  [{_COLOURS.get(kind, 'dim')}]({'; '.join(notes)})[/]"
    _print_field(console, "Question", sanitize(answer.question.text))
    _print_field(console, "Answer", text)
    is_withheld = answer.candidate and not (answer.text or answer.error)
    if refusal and is_withheld and answer.abstention in ("", UNLIKELY):
        _print_field(console, "Withheld", f"[dim]{sanitize(refusal)}[/dim]")
        if advice:
            _print_field(console, "", f"[dim]{sanitize(advice)}[/dim]")
    if answer.text and answer.uncalibrated:
        _print_field(console, "", f"[dim]{sanitize(answer.uncalibrated)}[/dim]")
    if answer.note:
        _print_field(console, "Note", f"[yellow]{sanitize(answer.note)}[/yellow]")
    _show_grounds(console, answer)
    _show_evidence(console, answer, passages, styled)
    if searched:
        _print_field(console, "Searched", f"[dim]{sanitize(str(searched))}[/dim]")
    console.print()


def _show_grounds(console: Console, answer: Answer) -> None:
    """Print how an answer was computed, or what a language model says that it rests on."""
    if answer.how and answer.how.calculation:
        _print_field(console, "Computed", sanitize(str(answer.how.calculation)))
    if answer.quote:
        _print_field(console, "Quote", _quote_markup(answer.quote))
        if answer.quote.outcome == "stitched":
            _print_parts(console, answer, answer.quote)
    if answer.change:
        _print_field(console, "Change", sanitize(" ".join(answer.change.split())))
    for number, step in enumerate(answer.steps):
        line = sanitize(" ".join(str(step).split()))
        _print_field(console, "" if number else "Steps", f"[dim]{line}[/dim]")


def _show_evidence(console: Console, answer: Answer, passages: int, styled: bool) -> None:
    """Print the first passages behind an answer."""
    label = _evidence_label(answer)
    if answer.supposes and answer.factual:
        _print_field(console, _FACTS, sanitize(answer.factual))
        label = "" if label == _FACTS else label
    for number, passage in enumerate(answer.evidence[:passages]):
        source = passage_source(passage, answer.position(passage))
        how = answer.how
        if how and how.origin == "found afterwards" and how.passage_id == passage.id:
            source += f" ({FOUND_AFTERWARDS})"
        _print_field(console, "" if number else label, f"[dim]{sanitize(source)}[/dim]")
        is_list = bool(how and how.items and how.passage_id == passage.id)
        parts = excerpt(answer.highlights(passage), answer.question.text, every=is_list)
        _print_field(console, "", mark_parts(parts, styled))


def _quote_markup(quote: Quote) -> str:
    """A quote, and what became of it."""
    if not quote.text.strip():
        return f"[yellow]{quote.verdict}[/yellow]"
    style = "dim" if quote.outcome == "exact" else "yellow"
    text = " ".join(quote.text.split())  # a line of its own could pass for a passage
    return f"“{sanitize(text)}” [{style}]({quote.verdict})[/{style}]"


def _print_parts(console: Console, answer: Answer, quote: Quote) -> None:
    """Print where the parts of a stitched quote stand."""
    passages = {passage.id: passage for passage in answer.evidence}
    for place in quote.places:
        passage = passages.get(place.passage_id)
        if passage is None:
            continue
        source = passage_source(passage, place.start)
        part = " ".join(passage.text[place.start : place.end].split())
        line = f"[dim]{sanitize(source)}:[/dim] “{sanitize(part)}”"
        _print_field(console, "", line)


def _evidence_label(answer: Answer) -> str:
    """What the passages are to an answer.

    They tell what is in fact so where the question supposes something else. Passages that do not
    support an answer were only read.
    """
    if find_support(answer) is None:
        return "Read"
    return _FACTS if answer.supposes else "Source"


def ablation_json(ablation: Ablation) -> dict[str, object]:
    """An ablation as JSON data; the passage by its id and its source."""
    passage = ablation.passage
    return asdict(ablation) | {"passage": passage.id, "source": passage_source(passage)}


def show_ablations(ablations: Sequence[Ablation]) -> None:
    """Print what an answer becomes without each passage, and without each sentence of the
    supporting passage.
    """
    console = Console(highlight=False)
    for number, ablation in enumerate(ablations):
        left_out = (
            f"“{ablation.sentence}”" if ablation.sentence else passage_source(ablation.passage)
        )
        sure = (
            ""
            if ablation.confidence is None or not ablation.answer
            else f" ({ablation.confidence:.0%})"
        )
        becomes = "the same answer" if ablation.same else ablation.answer or "no answer"
        style = "dim" if ablation.same else "bold"
        text = f"[dim]{sanitize(left_out)}[/dim] → [{style}]{sanitize(becomes)}[/{style}]{sure}"
        _print_field(console, "" if number else "Without", text)
    console.print()


def _print_field(console: Console, name: str, markup: str) -> None:
    """Print a name and, beside it, a text wrapped to the terminal's width."""
    text = Text.from_markup(markup, emoji=False)
    for number, line in enumerate(text.wrap(console, max(console.width - _INDENT, _INDENT))):
        line.rstrip()
        console.print(Text(("" if number else name).ljust(_INDENT), "bold") + line, soft_wrap=True)


def mark_parts(parts: Sequence[str], styled: bool = True) -> str:
    """Sanitized text for the terminal, with every second part bold and green, or in brackets if
    styles are off (a pipe).
    """
    if not styled:
        return sanitize(
            "".join(f"[{part}]" if n % 2 and part else part for n, part in enumerate(parts))
        )
    texts = [sanitize(part) for part in parts]
    return "".join(
        f"[bold green]{text}[/bold green]" if n % 2 else text for n, text in enumerate(texts)
    )


def excerpt(pieces: Sequence[str], question: str, every: bool = False) -> list[str]:
    """A sentence of a passage with its neighbours; "…" marks cuts.

    Every second one of the passage's pieces is highlighted.

    It is the sentence that shares the most words with the question, among those with a highlight if
    there are any. With `every`, it is all that stands from the first highlight to the last.
    """
    sentences = split_sentences("".join(pieces))
    if len(sentences) <= 1:
        return list(pieces)
    edges = [0, *accumulate(map(len, sentences))]
    starts = [0, *accumulate(map(len, pieces))]

    highlighted = sorted({bisect_right(edges, start) - 1 for start in starts[1:-1:2]})

    def worth(number: int) -> tuple[bool, int, int]:
        shared = _words(question) & _words(sentences[number])
        return number in highlighted, len(shared), -number

    if every and highlighted:
        first = highlighted[0]
        last = highlighted[-1] + 1
    else:
        best = max(range(len(sentences)), key=worth)
        first = max(best - 1, 0)
        last = min(best + 2, len(sentences))
    left = edges[first]
    right = edges[last - 1] + len(sentences[last - 1].rstrip())
    cut = [
        piece[max(left - start, 0) : max(right - start, 0)]
        for piece, start in zip(pieces, starts, strict=False)
    ]
    cut[0] = ("… " if first else "") + cut[0]
    cut[-1] += " …" if last < len(sentences) else ""
    return cut


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.lower()) if len(word) > 3}


_BATCH = 8  # questions that an interrupted run can lose
_ENDINGS = (".jsonl", ".csv", ".txt")
# Of a .csv; JSON has these values under other keys
_SUPPORT_COLUMNS = ("source", "sentence", "origin", "computed", "quoted", "quote_outcome")
_COLUMNS = (
    *("id", "question", "answer", "confidence", "answerable", "candidate", "abstention"),
    *_SUPPORT_COLUMNS,
    "change",
    "factual",
    "error",
    "note",
    "uncalibrated",
)


def check_output(out: Path) -> None:
    """Refuse an output file that exists or has an unknown ending."""
    if out.suffix not in _ENDINGS:
        raise unknown_name("ending of --out", out.suffix, _ENDINGS)
    if out.exists() or out.is_symlink():
        raise ConfigError(
            f"{out} exists, and ifqa overwrites nothing; name another file, or remove it"
        )
    if not out.parent.is_dir():
        raise MissingInput(f"{out}: no folder {out.parent}; create it first")


def answer_to_file(
    out: Path, questions: Sequence[Question], system: System, threshold: float | None = None
) -> int:
    """Answer all questions, in order, into a file: .jsonl has whole answers, .csv a row for each,
    .txt only their texts.

    The answers are collected in `.NAME.partial` beside the file, which is written once all are
    complete. An interrupted run resumes at the first question that failed, or else repeats at most
    eight, unless the questions, reader, retriever, documents or indexes have changed. Returns the
    number of questions that failed.
    """
    check_output(out)
    artifacts.refuse_links(out)
    lock_path = out.with_name(f".{out.name}.lock")
    guard = FileLock(lock_path, timeout=0)
    try:
        guard.acquire()
    except Timeout as error:
        raise IfqaError(
            f"another process is writing {out}; wait until it ends, or name another file"
        ) from error
    try:
        with artifacts.report_full_disk(out):
            log = (
                artifacts.prepare_draft(out, _inputs(questions, system, threshold), "same")
                / "answers.jsonl"
            )
            _append_answers(log, out, questions, system, threshold)
            records = [record for _, record in read_jsonl(log)]
            with atomic_write(out) as handle:
                write_bytes(handle, _render_file(records, out.suffix))
            shutil.rmtree(artifacts.partial_folder(out))
    finally:
        guard.release()
        lock_path.unlink(missing_ok=True)
    failed = sum(bool(record["error"]) for record in records)
    ending = f", {failed:,} failed" if failed else ""
    logger.info(f"{out}: {pluralize(len(questions) - failed, 'question')} answered{ending}")
    return failed


def _append_answers(
    log: Path, out: Path, questions: Sequence[Question], system: System, threshold: float | None
) -> None:
    log.touch()
    done = truncate_log(log, lambda _, record: not record.get("error"))
    if done:
        logger.info(f"{out}: resuming after {done:,} of {pluralize(len(questions), 'question')}")
    searched = system.searched
    with bar("answering", len(questions)) as advance:
        advance(done)
        for start in range(done, len(questions), _BATCH):
            answers = system.answer(questions[start : start + _BATCH], threshold)
            _require_one_form(log, system)
            with open(log, "ab") as handle:
                write_bytes(handle, b"".join(_answer_line(answer, searched) for answer in answers))
            advance(len(answers))


def _require_one_form(log: Path, system: System) -> None:
    """Refuse to mix answers whose requests differ, because a server has refused a parameter since.

    `log` has those so far.
    """
    sent = system.reader.usage().get("sent", "")
    path = log.with_name("sent.txt")
    before = path.read_text(encoding="utf-8") if path.exists() else sent
    if requests_differ([before, sent]):
        raise ServiceError(
            f"{log.parent}: its requests differ ({before} | {sent}), so the answers are not "
            "one reading; remove it to ask all again"
        )
    if sent and not path.exists():
        with atomic_write(path) as handle:
            write_bytes(handle, sent.encode())


def _answer_line(answer: Answer, searched: CorpusSummary | None) -> bytes:
    support = find_support(answer)
    how = answer.how
    columns = dict.fromkeys(_SUPPORT_COLUMNS, "")
    if support:
        columns |= {
            "source": support.source,
            "sentence": support.sentence,
            "origin": support.origin,
        }
    if answer.text and how and how.calculation:
        columns["computed"] = str(how.calculation)
    if answer.quote:
        columns |= {"quoted": answer.quote.text, "quote_outcome": answer.quote.outcome}
    return json_line({"id": answer.question.id} | answer_json(answer, searched) | columns)


def _inputs(
    questions: Sequence[Question], system: System, threshold: float | None
) -> dict[str, object]:
    """The inputs that determine the answers; a run with other inputs starts anew."""
    experiment = system.experiment
    inputs: dict[str, object] = {
        "questions": fingerprint_questions(list(questions)),
        "threshold": threshold,
    }
    for plugin in experiment.asked:
        inputs[plugin.kind] = system.run.fingerprint(plugin)
    for part in ["passages", *experiment.indexes] if experiment.corpus else ():
        if manifest := artifacts.read_manifest(experiment.corpus_folder / part):
            inputs[part] = artifacts.compute_fingerprint(manifest["inputs"])
    return inputs


def _render_file(records: Iterable[Mapping[str, object]], ending: str) -> bytes:
    text = StringIO(newline="")
    if ending == ".jsonl":
        answers = (
            {key: record[key] for key in record if key not in _SUPPORT_COLUMNS}
            for record in records
        )
        return b"".join(map(json_line, answers))
    if ending == ".csv":
        table = csv.DictWriter(text, _COLUMNS, extrasaction="ignore", lineterminator="\n")
        table.writeheader()
        for row in records:
            formulas = [key for key, cell in row.items() if key != "id" and is_formula(str(cell))]
            table.writerow({**row, **{key: f"'{row[key]}" for key in formulas}})
    else:
        text.writelines(f"{' '.join(str(record['answer']).split())}\n" for record in records)
    return text.getvalue().encode("utf-8", "replace")
