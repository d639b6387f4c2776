"""Finds the answer in a completion by the prompt's own rule, or reports that there is none; never guesses.

    first line   the first line that is not empty, without the marker if it begins with the marker
    last marker  the text after the last marker ("Answer:") that begins a line, on that line or the next
    whole        the whole completion, newlines as blanks (GenRead's background), without the marker if it begins with it

A marker may be in upper or lower case, in bold, quoted, or in a list ("3. **Answer:** …"). Blanks, bold and quotes around
an answer are removed, and a full stop at its end, unless it ends an abbreviation. After its answer, a base model often goes
on with a question of its own. So the completion is cut at the first line after an answer that begins like the prompt's user
template ("Question:"). The text of a reasoning model up to "</think>" is ignored.
"""

import re
import string
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from ifqa.prompting.calculator import CalculatorError, compute_brackets
from ifqa.settings import StrictModel

Rule = Literal["first line", "last marker", "whole"]

_NOTHING = re.compile(r"[\s`*_#>~-]*")
_WRAPS = [(mark, mark) for mark in ("**", "__", "*", "_", "`", '"', "'")] + [("“", "”"), ("‘", "’")]
_ABBREVIATION = re.compile(
    r"\(?(?:[^\W\d_]|[^\W\d_]{1,3}(?:\.[^\W\d_]{1,3})+|jr|sr|inc|ltd|co|corp|bros|st|mt|dr|vs|etc)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """An answer, the answer in the real world if the prompt asks for it, and why there is no answer, or ""."""

    answer: str
    factual: str = ""
    problem: str = ""


class AnswerParser(StrictModel):
    """[parse] of a prompt file, which finds its answers.

    Attributes:
        rule: as above.
        answer: the answer's marker, such as "Answer:", or "".
        factual: the marker of the answer in the real world, or "".
    """

    rule: Rule
    answer: str = ""
    factual: str = ""

    def parse(self, completion: str, labels: tuple[str, ...] = (), calculator: bool = False) -> ParsedAnswer:
        """The answer in a completion; if there is none, `answer` is "" and `problem` says why in one line.

        Args:
            completion: what the model wrote.
            labels: the beginnings of lines of the prompt's user template, such as "Question:".
            calculator: whether "[[1859 + 6]]" in an answer is computed.
        """
        *thought, text = completion.split("</think>")
        if not thought and completion.lstrip().startswith("<think>"):
            return ParsedAnswer("", problem="cut short before it ended thinking")
        if not text.strip():
            return ParsedAnswer("", problem="empty")
        lines = self._answer_lines(text, labels)
        if self.rule == "whole":
            background = " ".join(" ".join(self._from_first(lines)).split())
            return ParsedAnswer(background, problem="" if background else "empty")
        factual, _ = _compute_answer(self._marked(lines, self.factual) or "", calculator)
        if self.rule == "first line":
            answer_line = next((line for line in self._from_first(lines) if not _NOTHING.fullmatch(line)), "")
            missing = "empty"
        else:
            marked = self._marked(lines, self.answer)
            answer_line = marked or ""
            missing = f"no line {self.answer!r}" if marked is None else f"nothing after {self.answer!r}"
        answer, problem = _compute_answer(answer_line, calculator)
        return ParsedAnswer(answer, factual, problem or ("" if answer else missing))

    def _answer_lines(self, text: str, labels: tuple[str, ...]) -> list[str]:
        """The lines before the model, having answered, goes on with a question of its own."""
        lines, answered = text.split("\n"), False
        for n, line in enumerate(lines):
            if answered and line.lstrip().startswith(labels):
                return lines[:n]
            answered |= bool(line.strip()) if self.rule != "last marker" else _after(self.answer, line) is not None
        return lines

    def _from_first(self, lines: list[str]) -> list[str]:
        """The lines from the first that is not empty, without the marker on that first line."""
        start = next((n for n, line in enumerate(lines) if not _NOTHING.fullmatch(line)), len(lines))
        return [
            rest if (rest := _after(self.answer, line)) is not None else line for line in lines[start : start + 1]
        ] + (lines[start + 1 :])

    def _marked(self, lines: list[str], marker: str) -> str | None:
        """The text after the last marker at a line's start, on its line or the next that is not empty; None if no marker."""
        marked: str | None = None
        for line in lines:
            rest = _after(marker, line)
            if rest is not None:
                marked = rest
            elif marked == "" and not any(_after(other, line) is not None for other in (self.answer, self.factual)):
                marked = "" if _NOTHING.fullmatch(line) else line
        return marked


def _compute_answer(text: str, calculator: bool) -> tuple[str, str]:
    """The cleaned answer with its expressions computed, and why that fails, or ""."""
    answer = clean_answer(text)
    try:
        return compute_brackets(answer) if calculator else answer, ""
    except CalculatorError as error:
        return "", f"calculator: {error}"


def label_choices(choices: Sequence[str]) -> list[tuple[str, str]]:
    """The choices of a question with a letter each, A first; with a number each if there are more than 26."""
    names = string.ascii_uppercase if len(choices) <= 26 else [str(n) for n in range(1, len(choices) + 1)]
    return list(zip(names, choices, strict=False))


def match_choice(parsed: ParsedAnswer, choices: Sequence[str]) -> ParsedAnswer:
    """The choice that an answer names, by its text, its letter or both ("(B) less"); a problem if it names none, or several.

    Letters in either case, punctuation and blanks make no difference; other words do.
    """
    if parsed.problem:
        return parsed
    named = {
        choice
        for letter, choice in label_choices(choices)
        if _normalize(parsed.answer) in {_normalize(choice), _normalize(letter), _normalize(f"{letter} {choice}")}
    }
    if len(named) == 1:
        return replace(parsed, answer=named.pop())
    return ParsedAnswer("", problem=f"{parsed.answer[:60]!r} is {'several' if named else 'none'} of the choices")


def _normalize(text: str) -> str:
    """The words of a text in lower case; all of it if it has none, as "+" has not."""
    words = re.findall(r"[^\W_]+", text.casefold())
    return " ".join(words or text.split())


def clean_answer(text: str) -> str:
    """An answer without blanks, bold, code marks or quotes around it, and without a full stop that ends a sentence."""
    for _ in range(8):  # marks may be nested
        before, text = text, text.strip()
        for opening, closing in _WRAPS:
            inner = text[len(opening) : -len(closing)]
            if text == f"{opening}{inner}{closing}" and opening not in inner and closing not in inner:
                text = inner.strip()
        if text.endswith(".") and not text.endswith("..") and not _ends_in_abbreviation(text[:-1]):
            text = text[:-1]
        if text == before:
            break
    return text


def _ends_in_abbreviation(text: str) -> bool:
    last = text.rsplit(maxsplit=1)[-1:]
    return bool(last and _ABBREVIATION.fullmatch(last[0]))


def _after(marker: str, line: str) -> str | None:
    """The rest of a line after the marker; None if the line does not begin with the marker."""
    match = _pattern(marker).match(line) if marker else None
    if match is None:
        return None
    rest = line[match.end() :].strip()
    around = match["around"][::-1]  # "**Answer: 1865**"
    closed = match["closed"].strip() or match["closed_after"]
    return rest.removesuffix(around) if around and not closed else rest


@cache
def _pattern(marker: str) -> re.Pattern[str]:
    before = r"[\s>#*_+\"'`-]{0,20}?(?:\d+[.)]\s*)?(?P<around>[*_\"'`]{0,4})"
    word = re.escape(marker.removesuffix(":"))
    colon = ":" if marker.endswith(":") else r"\b"
    return re.compile(
        rf"{before}{word}(?P<closed>[\s*_\"'`]*){colon}(?P<closed_after>[*_]{{1,2}}(?=\s|$)|)", re.IGNORECASE
    )
