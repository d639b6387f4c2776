"""Answers on the screen and as JSON: the answer, how sure it is, the sentence that supports it, and where that stands."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate

from rich.console import Console
from rich.text import Text

from ifqa.corpus.documents.chunking import place_of
from ifqa.corpus.sentences import sentence_at, sentences
from ifqa.pipeline.system import Searched
from ifqa.progress import counted
from ifqa.records import Answer, Passage
from ifqa.report.sanitize import mark_parts, plain

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
        elif answer.how or len(pieces := answer.marked(passage)) < 2:
            continue
        else:
            at = len(pieces[0])
            start, end = sentence_at(passage.text, at, at + len(pieces[1]))
        return Support(passage.text[start:end], source_of(passage, at), passage.id)
    return None


def source_of(passage: Passage, at: int | None = None) -> str:
    """Where a passage, or its character `at`, stands: a document's file and page or line; of others, title and id."""
    if place := place_of(passage.id, at):
        _, _, headings = passage.title.partition(" › ")
        return f"{place} · {headings}" if headings else str(place)
    return f"{passage.title} · {passage.id}" if passage.title else passage.id


def answer_json(answer: Answer, searched: Searched | None = None) -> dict[str, object]:
    """A question's answer, its support and its evidence passages, the most important first, as JSON data."""
    support = support_of(answer)
    evidence = [
        {"id": one.id, "title": one.title, "text": one.text, "source": source_of(one)} for one in answer.evidence
    ]
    return (
        {
            "question": answer.question.text,
            "answer": answer.text,
            "factual": answer.factual,
            "error": answer.error,
            "how": asdict(answer.how) if answer.how else None,
            "confidence": answer.confidence,
            "candidate": answer.candidate,
            "support": asdict(support) if support else None,
            "evidence": evidence,
        }
        | ({"steps": [asdict(one) for one in answer.steps]} if answer.steps else {})
        | ({"searched": asdict(searched)} if searched else {})
    )


def show_answer(answer: Answer, searched: Searched | None = None) -> None:
    """Print a question's answer and its evidence, with the answer marked in it, and what was searched."""
    print_answer(answer, answer.evidence[:3], searched=searched)


def print_answer(
    answer: Answer, evidence: Sequence[Passage], kind: str = "", wanted: str = "", searched: Searched | None = None
) -> None:
    """Print an answer.

    Args:
        answer: the answer.
        evidence: the passages to show.
        kind: "right", "wrong" and the like, of a question whose answer is known.
        wanted: the right answer, which is shown where it was not given.
        searched: what was searched.
    """
    console = Console(highlight=False)
    styled = console.color_system is not None
    text = plain(answer.text or answer.why_not)
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
    for number, passage in enumerate(evidence):
        at = answer.how.span[0] if answer.how and answer.how.passage_id == passage.id else None
        name = "" if number or answer.factual else "In fact"
        _print_field(console, name, f"[dim]{plain(source_of(passage, at))}[/dim]")
        _print_field(console, "", mark_parts(excerpt(answer.marked(passage), answer.question.text), styled))
    for number, step in enumerate(answer.steps, start=1):
        found = counted(len(step.passage_ids), "new passage")
        _print_field(console, f"Step {number}", f"[dim]{plain(step.query)} · {found}[/dim]")
    if searched:
        _print_field(console, "Searched", f"[dim]{plain(str(searched))}[/dim]")
    console.print()


def _print_field(console: Console, name: str, markup: str) -> None:
    """Print a name and a text beside it, which is wrapped to the terminal's width."""
    text = Text.from_markup(markup, emoji=False)
    for number, line in enumerate(text.wrap(console, max(console.width - _INDENT, _INDENT))):
        line.rstrip()
        console.print(Text(("" if number else name).ljust(_INDENT), "bold") + line, soft_wrap=True)


CUT = "…"


def excerpt(pieces: Sequence[str], question: str) -> list[str]:
    """A sentence of a passage with the ones before and after it, in pieces; `CUT` stands for what is left out.

    It is the sentence that shares most words with the question, among those that hold a mark, if any does.

    Args:
        pieces: the passage's text; every second piece is marked.
        question: the question's text.
    """
    every = sentences("".join(pieces))
    if len(every) <= 1:
        return list(pieces)
    edges = [0, *accumulate(map(len, every))]  # of the sentences
    places = [0, *accumulate(map(len, pieces))]  # of the pieces
    marks = places[1:-1:2]
    asked = _words(question)

    def worth(number: int) -> tuple[bool, int, int]:
        marked = any(edges[number] <= mark < edges[number + 1] for mark in marks)
        return marked, len(asked & _words(every[number])), -number

    best = max(range(len(every)), key=worth)
    first, last = max(best - 1, 0), min(best + 2, len(every))
    left, right = edges[first], edges[last] - len(every[last - 1]) + len(every[last - 1].rstrip())
    found = [one[max(left - at, 0) : max(right - at, 0)] for one, at in zip(pieces, places, strict=False)]
    found[0] = (f"{CUT} " if first else "") + found[0]
    found[-1] += f" {CUT}" if last < len(every) else ""
    return found


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.lower()) if len(word) > 3}
