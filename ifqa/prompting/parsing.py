r"""Parses the answer out of a completion by the prompt's rule, or reports that there is none.

    first line   the first line that is not empty, without a leading marker
    last marker  the text after the last marker ("Answer:") that begins a line or follows a
                 sentence, on that line or the next
    json         the values of a JSON object, whose keys the markers name; a server keeps the model
                 to its schema
    fields       the values of a JSON object, or the texts after markers ("Answer:"), whichever the
                 model writes; the keys are the markers' words in lower case
    whole        the whole completion on one line (GenRead's background), without a leading marker

A marker may be in upper or lower case, bold, quoted, or in a list ("3. **Answer:** …"). Spaces,
bold and quotes around an answer are removed, and so is its full stop, unless it ends an
abbreviation. A base model often continues with another question: after an answer, the completion
ends where a line begins like the user template ("Question:"). Thoughts before the answer are
ignored (`ifqa.prompting.thoughts`), and the last \boxed{…} is the answer wherever it stands.
"""

import json
import re
import string
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import dropwhile
from typing import Literal

from ifqa.prompting.thoughts import answer_part, boxed, has_thoughts
from ifqa.protocols import Cut
from ifqa.settings import StrictModel

TRUNCATED = "truncated (the token limit was reached before the end of the answer)"
Rule = Literal["first line", "last marker", "json", "fields", "whole"]
#: Raise a rule's version when it parses completions differently, so that its answers are parsed
#: again.
RULE_VERSIONS: dict[Rule, str] = {"last marker": "3"}

_BY_MARKER: tuple[Rule, ...] = ("last marker", "fields")
_AROUND = r"[*_\"'`]{0,4}"  # marks before a marker
_NOTHING = re.compile(r"[\s`*_#>~-]*")
_WRAPS = [(mark, mark) for mark in ("**", "__", "*", "_", "`", '"', "'")] + [("“", "”"), ("‘", "’")]
_ABBREVIATION = re.compile(
    r"\(?(?:[^\W\d_]|[^\W\d_]{1,3}(?:\.[^\W\d_]{1,3})+|jr|sr|inc|ltd|co|corp|bros|st|mt|dr|vs|etc)",
    re.IGNORECASE,
)


#: How models say that the passages do not have the answer, whatever words the prompt gives them.
_NOT_SAID = re.compile(
    r"(?:it is |this is |that is )?(?:not (?:said|stated|mentioned|specified|given|provided"
    r"|available|known|found|in the passages?)|unknown|n/a|null)\b(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_NO_ANSWER = ("", "none", "no answer")  # they say so too, where nothing is quoted
_GUESS = re.compile(r"\s*[:;]\s*(?P<guess>\S.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """The answer, with the other parts that the prompt asks for.

    Or `problem`: why there is no answer.

    Attributes:
        answer: the answer; empty if the model says that the passages do not have it.
        factual: the answer in the real world.
        problem: why there is no answer; empty for an answer, and for "not said".
        quote: what the model quotes from a passage.
        passage: the number of that passage, from 1; 0 if it names none.
        change: what the question's supposition changes.
        not_said: whether the model says that the passages do not have the answer.
        guess: its guess nevertheless.
        question: the question, if the model writes it.
    """

    answer: str
    factual: str = ""
    problem: str = ""
    quote: str = ""
    passage: int = 0
    change: str = ""
    not_said: bool = False
    guess: str = ""
    question: str = ""


class AnswerParser(StrictModel):
    """The section [parse] of a prompt file: the rule, and the markers of the answer ("Answer:"), of
    the factual answer, of a quote, its passage's number, and what the supposition changes, and of
    the question, for a prompt that has the model write one.
    """

    rule: Rule
    answer: str = ""
    factual: str = ""
    quote: str = ""
    passage: str = ""
    change: str = ""
    question: str = ""

    @property
    def markers(self) -> tuple[str, ...]:
        """All markers that are set."""
        markers = (
            self.quote,
            self.passage,
            self.question,
            self.change,
            self.factual,
            self.answer,
        )
        return tuple(filter(None, markers))

    def passage_number(self, text: str) -> int:
        """The number of a passage in a text, such as "[3]"; 0 if there is none."""
        number = re.search(r"\d{1,4}", text)
        return int(number[0]) if number else 0

    def parse(self, completion: str, labels: tuple[str, ...] = (), cut: Cut = "no") -> ParsedAnswer:
        """The answer in a completion.

        If there is none, `answer` is "" and `problem` says why in one line.

        `labels` begin lines of the prompt's user template: "Question:".
        """
        text = answer_part(completion)
        if text is None or (cut == "in thoughts" and not has_thoughts(completion)):
            return ParsedAnswer("", problem=TRUNCATED)
        if not text.strip():
            return ParsedAnswer("", problem="empty")
        if self.rule == "json":
            return self._parse_json(text)
        if self.rule == "fields":
            return self._parse_fields(text, labels, cut)
        parsed = self._parse_lines(text, labels)
        if cut == "no" or self.rule == "whole" or boxed(text):
            return parsed
        complete_lines = text[: text.rfind("\n") + 1]
        is_whole = (
            parsed.answer and self._parse_lines(complete_lines, labels).answer == parsed.answer
        )
        return parsed if is_whole else ParsedAnswer("", problem=TRUNCATED)

    def _parse_lines(self, text: str, labels: tuple[str, ...]) -> ParsedAnswer:
        """The answer in a text without thoughts, by a rule other than that for JSON."""
        lines = self._answer_lines(text, labels)
        if self.rule == "whole":
            background = " ".join(" ".join(self._from_first(lines)).split())
            return ParsedAnswer(background, problem="" if background else "empty")
        factual = clean_answer(self._marked(lines, self.factual) or "")
        if box := boxed(text):
            return ParsedAnswer(clean_answer(box), factual)
        if self.rule == "first line":
            answer_line = next(
                (line for line in self._from_first(lines) if not _NOTHING.fullmatch(line)), ""
            )
            missing = "empty"
        else:
            marked = self._marked(lines, self.answer)
            answer_line = marked or ""
            missing = (
                f"no line {self.answer!r}" if marked is None else f"nothing after {self.answer!r}"
            )
        answer = clean_answer(answer_line)
        return ParsedAnswer(answer, factual, "" if answer else missing)

    def _parse_json(self, text: str) -> ParsedAnswer:
        """The answers in a JSON object, which may stand in a fenced block."""
        values = _json_object(text)
        if values is None:
            return ParsedAnswer("", problem="no JSON object, or one that was cut off")
        texts = (_text_of(values.get(key)) for key in (self.answer, self.factual))
        answer, factual = (clean_answer(" ".join(text.splitlines())) for text in texts)
        return ParsedAnswer(
            answer, factual, "" if answer else f"nothing under the key {self.answer!r}"
        )

    def _parse_fields(self, text: str, labels: tuple[str, ...], cut: Cut) -> ParsedAnswer:
        """The fields of a JSON object, or else of lines that begin with markers."""
        values = _json_object(text)
        if values is None:
            if cut != "no":
                return ParsedAnswer("", problem=TRUNCATED)
            lines = self._answer_lines(text, labels)
            marked = {marker: self._marked(lines, marker) for marker in self.markers}
            if marked[self.answer] is None:
                return ParsedAnswer("", problem=f"no line {self.answer!r}")
            fields = {marker: found or "" for marker, found in marked.items()}
            if self.quote and marked[self.quote] is None:
                fields[self.quote] = self._before_markers(lines)
        else:
            if field_key(self.answer) not in values:
                missing = f"no key {field_key(self.answer)!r}"
                return ParsedAnswer("", problem=missing)
            fields = {marker: _text_of(values.get(field_key(marker))) for marker in self.markers}
        quote = fields.get(self.quote, "").strip()
        parsed = ParsedAnswer(
            clean_answer(" ".join(fields[self.answer].splitlines())),
            clean_answer(fields.get(self.factual, "")),
            quote="" if _NOTHING.fullmatch(quote) else quote,
            passage=self.passage_number(fields.get(self.passage, "")),
            change=_change_of(fields.get(self.change, "")),
            question=clean_answer(" ".join(fields.get(self.question, "").split())),
        )
        return _mark_not_said(parsed)

    def _answer_lines(self, text: str, labels: tuple[str, ...]) -> list[str]:
        """The lines up to the answer, before the model continues with another question."""
        if self.rule in _BY_MARKER:
            # Behind a closing quote or bracket a lower-case "answer:" may be prose
            marker = re.escape(self.answer)
            any_case = rf"(?<=[.!?。])[ \t]+(?=(?i:{_AROUND}{_marker(self.answer)}))"
            text = re.sub(rf"(?<=[)\"'”’])[ \t]+(?={marker})|{any_case}", "\n", text)
        lines = text.split("\n")
        answered = False
        for n, line in enumerate(lines):
            if answered and line.lstrip().startswith(labels):
                return lines[:n]
            answered |= (
                bool(line.strip())
                if self.rule not in _BY_MARKER
                else after_marker(self.answer, line) is not None
            )
        return lines

    def _from_first(self, lines: list[str]) -> list[str]:
        """The lines from the first non-empty line on, without a marker at its start."""
        first, *rest = [*dropwhile(_NOTHING.fullmatch, lines)] or [""]
        after = after_marker(self.answer, first)
        return [first if after is None else after, *rest]

    def _before_markers(self, lines: list[str]) -> str:
        """The text before the first line with a marker.

        The prompt of the completion form ends with the first marker.
        """
        unmarked = list[str]()
        for line in lines:
            if any(after_marker(marker, line) is not None for marker in self.markers):
                break
            unmarked.append(line)
        return " ".join(" ".join(unmarked).split())

    def _marked(self, lines: list[str], marker: str) -> str | None:
        """The text after the last marker that begins a line, on that line or the next non-empty
        line; None without a marker.
        """
        marked: str | None = None
        for line in lines:
            rest = after_marker(marker, line)
            if rest is not None:
                marked = rest
            elif marked == "" and not any(
                after_marker(other, line) is not None for other in self.markers
            ):
                marked = "" if _NOTHING.fullmatch(line) else line
        return marked


def field_key(marker: str) -> str:
    """The key of a JSON object for a marker: "answer" for "Answer:"."""
    return marker.rstrip(":").strip().lower()


def _json_object(text: str) -> dict[str, object] | None:
    """The JSON object in a text, which may stand in a fenced block; None if there is none."""
    try:
        values = json.loads(text[text.find("{") : text.rfind("}") + 1])
    except (ValueError, RecursionError):
        return None
    return values if isinstance(values, dict) else None


def _text_of(value: object) -> str:
    """A JSON value as a text; empty for null."""
    return "" if value is None else str(value)


def _change_of(text: str) -> str:
    """What a supposition changes, on one line; empty if the model says that nothing does."""
    change = " ".join(text.split())
    return "" if change.rstrip(".").casefold() in ("nothing", "none") else change


def _mark_not_said(parsed: ParsedAnswer) -> ParsedAnswer:
    """The parsed answer, marked if it says that the passages do not have one.

    A guess may follow a colon: "not said: 1865".
    """
    answer = parsed.answer
    if not parsed.quote and answer.casefold() in _NO_ANSWER:
        return replace(parsed, answer="", not_said=True)
    if not answer:
        return replace(parsed, not_said=True)
    match = _NOT_SAID.fullmatch(answer)
    if match is None:
        return parsed
    guess = _GUESS.fullmatch(match["rest"])
    return replace(
        parsed, answer="", not_said=True, guess=clean_answer(guess["guess"]) if guess else ""
    )


def label_choices(choices: Sequence[str]) -> list[tuple[str, str]]:
    """Choices with letters, A first; with numbers if there are more than 26."""
    labels = string.ascii_uppercase if len(choices) <= 26 else map(str, range(1, len(choices) + 1))
    return list(zip(labels, choices, strict=False))


def match_choice(parsed: ParsedAnswer, choices: Sequence[str]) -> ParsedAnswer:
    """The choice that an answer names by text, letter or both ("(B) less").

    Case, punctuation and spaces are ignored.
    """
    if parsed.problem:
        return parsed
    matches = {
        choice
        for letter, choice in label_choices(choices)
        if _normalize(parsed.answer)
        in {_normalize(choice), _normalize(letter), _normalize(f"{letter} {choice}")}
    }
    if len(matches) == 1:
        return replace(parsed, answer=matches.pop())
    return ParsedAnswer(
        "", problem=f"{parsed.answer[:60]!r} is {'several' if matches else 'none'} of the choices"
    )


def _normalize(text: str) -> str:
    """The words of a text in lower case; the text itself if it has none, such as "+"."""
    words = re.findall(r"[^\W_]+", text.casefold())
    return " ".join(words or text.split())


def clean_answer(text: str) -> str:
    """Strip spaces, bold, code marks and quotes around an answer, and a sentence's full stop."""
    for _ in range(8):  # marks may be nested
        before = text
        text = text.strip()
        for opening, closing in _WRAPS:
            inner = text[len(opening) : -len(closing)]
            if (
                text == f"{opening}{inner}{closing}"
                and opening not in inner
                and closing not in inner
            ):
                text = inner.strip()
        if text.endswith(".") and not text.endswith(".."):
            *_, last = text[:-1].split() or [""]
            text = text if _ABBREVIATION.fullmatch(last) else text[:-1]
        if text == before:
            break
    return text


def after_marker(marker: str, line: str) -> str | None:
    """The rest of a line that begins with the marker, whatever is around it; else None."""
    match = _pattern(marker).match(line) if marker else None
    if match is None:
        return None
    rest = line[match.end() :].strip()
    around = match["around"][::-1]  # "**Answer: 1865**"
    closed = match["closed"].strip() or match["closed_after"]
    return rest.removesuffix(around) if around and not closed else rest


@cache
def _pattern(marker: str) -> re.Pattern[str]:
    before = rf"[\s>#*_+\"'`-]{{0,20}}?(?:\d+[.)]\s*)?(?P<around>{_AROUND})"
    return re.compile(
        rf"{before}{_marker(marker)}(?P<closed_after>[*_]{{1,2}}(?=\s|$)|)", re.IGNORECASE
    )


def _marker(marker: str) -> str:
    """A pattern for a marker; bold may end before its colon."""
    word = re.escape(marker.removesuffix(":"))
    colon = ":" if marker.endswith(":") else r"\b"
    return rf"{word}(?P<closed>[\s*_\"'`]*){colon}"
