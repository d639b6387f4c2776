"""Makes practice questions from training passages, to train on before the real questions.

Three kinds, after cloze pretraining (Dhingra et al. 2018, "Simple and Effective Semi-Supervised Question Answering"): a sentence
with a name, date or quoted title removed, which is the answer; a sentence with a number, date or list changed by a step ("two
fewer"), whose answer is computed; and the years between two sentences' events. Words are dropped at random, so that exact match
does not find the sentence.
"""

import random
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from ifqa.reading.span.arithmetic import compute_answers, compute_list, compute_two
from ifqa.reading.span.numbers import IMPLICIT_ONE, Number, find_lists, find_numbers
from ifqa.records import Question

_SENTENCE = re.compile(r"[^.!?]+(?:[.!?](?=\S)[^.!?]*)*[.!?]?")
_NAME = re.compile(r"(?<=[a-z,] )(?:[A-Z][\w'’-]+)(?: (?:of |the )?[A-Z][\w'’-]+)*|\"[^\"]{3,50}\"|\b\d[\d,.]*\d\b")
_WORDS = "one two three four five six seven eight nine ten".split()
_InContext = tuple[Number, str, str]  # a number with the words before and after it
_DROPPED = 0.25  # share of the words around the gap
_REACH = 25  # words kept on each side of the gap
_FEWEST = 5  # words left around the gap
#: Unit of the passage's number -> periods of a step, ways to add and to subtract it, and questions.
_TIME = (("later", "after"), ("earlier", "prior"))
_KINDS: dict[str, tuple[Sequence[str], tuple[Sequence[str], Sequence[str]], Sequence[str]]] = {
    "calendar year": (("year",), _TIME, ("in which year",)),
    "date": (("day", "week", "month", "year"), _TIME, ("on which date", "in which month")),
    "month of year": (("month", "year"), _TIME, ("in which month", "in which month and year")),
    "ordinal": (("place",), _TIME, ("in which place",)),
    "nth": (("place",), _TIME, ("in which place",)),
}


def make_pretraining_questions(passages: Sequence[str], seed: int, each: int = 2) -> list[Question]:
    """Up to `each` questions about each passage, which is their gold passage; a seed always gives the same."""
    questions: list[Question] = []
    for number, passage in enumerate(passages):
        draw = random.Random(f"{seed} cloze {number}")
        candidates = [question for generate in _GENERATORS for question in generate(passage, draw)]
        for question, answer in draw.sample(candidates, min(each, len(candidates))):
            questions.append(Question(f"practice/{len(questions)}", question, (answer,), (passage,)))
    return questions


def _cloze_questions(passage: str, draw: random.Random) -> Iterator[tuple[str, str]]:
    for sentence in _SENTENCE.finditer(passage):
        for match in _NAME.finditer(sentence.group()):
            left, right = sentence.group()[: match.start()], sentence.group()[match.end() :]
            if len((left + right).split()) >= _FEWEST:
                yield f"If {_drop_words(left, draw, last=True)} what {_drop_words(right, draw)}?", match.group()


def _arithmetic_questions(passage: str, draw: random.Random) -> Iterator[tuple[str, str]]:
    for number, left, right in _numbers_in_context(passage, find_numbers(passage), draw):
        step, more = draw.randint(1, 10), draw.random() < 0.5
        kind = number.unit.rstrip("?")
        if kind in _KINDS:
            periods, ways, asks = _KINDS[kind]
            period, way, ask = draw.choice(periods), draw.choice(ways[0 if more else 1]), draw.choice(asks)
            question = f"If {left} {_WORDS[step - 1]} {period}{'s' * (step > 1)} {way} {right}, {ask}?"
            unit = "" if period == "place" else period
        elif number.value == int(number.value) and (more or step < number.value):
            count = draw.choice((_WORDS[step - 1], str(step)))
            way = draw.choice(("more", "additional") if more else ("fewer", "less"))
            question, unit = f"If {left} {count} {way} {right}, how many?", ""
        else:
            continue
        answer = compute_answers(number, Number(0, 0, float(step), unit=unit), question)[0 if more else 1]
        if answer is not None:
            yield question, answer


def _interval_questions(passage: str, draw: random.Random) -> Iterator[tuple[str, str]]:
    years = [number for number in find_numbers(passage) if number.unit == "calendar year"]
    for (first, *before), (second, *after) in pairwise(_numbers_in_context(passage, years, draw)):
        question = f"If {' '.join(before)}, how many years until {' '.join(after)}?"
        ((_, answer),) = compute_two(first, second, [IMPLICIT_ONE], question)
        if answer is not None and first.value != second.value:
            yield question, answer


def _list_questions(passage: str, draw: random.Random) -> Iterator[tuple[str, str]]:
    for items, left, right in _numbers_in_context(passage, find_lists(passage), draw):
        name = draw.choice(re.split(r",? and |, ", passage[items.start : items.end]))
        for question in (f"If {left} {right}, how many?", f"If {left} not {name} {right}, how many?"):
            ((count, fewer),) = compute_list(items, [IMPLICIT_ONE], question)
            yield question, str(fewer if f" not {name} " in question else count)


def _numbers_in_context(passage: str, numbers: Sequence[Number], draw: random.Random) -> Iterator[_InContext]:
    """Each number with some of its sentence's words before and after it; none for a short sentence."""
    for sentence in _SENTENCE.finditer(passage):
        for number in numbers:
            if sentence.start() <= number.start and number.end <= sentence.end():
                left, right = passage[sentence.start() : number.start], passage[number.end : sentence.end()]
                if len((left + right).split()) >= _FEWEST:
                    yield number, _drop_words(left, draw, last=True), _drop_words(right, draw)


def _drop_words(text: str, draw: random.Random, last: bool = False) -> str:
    words = text.strip(" .,").split()
    near = words[-_REACH:] if last else words[:_REACH]
    return " ".join(word for word in near if draw.random() >= _DROPPED)


_GENERATORS = (_cloze_questions, _arithmetic_questions, _interval_questions, _list_questions)
