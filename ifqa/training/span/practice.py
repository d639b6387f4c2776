"""Practice questions made from the training passages, trained on before the real questions.

Two kinds, after the idea of cloze pretraining (Dhingra et al. 2018, "Simple and Effective Semi-Supervised Question
Answering"): a sentence without one of its names, dates or quoted titles, which is the answer; and a sentence with a number
changed by a step ("two fewer"), whose answer is computed. Words are dropped at random, so that the sentence cannot be
found by exact match.
"""

import random
import re
from collections.abc import Iterator, Sequence

from ifqa.reading.span.computed import Number, compute, find_numbers
from ifqa.records import Question

_SENTENCE = re.compile(r"[^.!?]+(?:[.!?](?=\S)[^.!?]*)*[.!?]?")
_NAME = re.compile(r"(?<=[a-z,] )(?:[A-Z][\w'’-]+)(?: (?:of |the )?[A-Z][\w'’-]+)*|\"[^\"]{3,50}\"|\b\d[\d,.]*\d\b")
_WORDS = "one two three four five six seven eight nine ten".split()
_DROPPED = 0.25  # of the words around the gap
_REACH = 25  # words kept on each side of the gap


def practice_questions(passages: Sequence[str], seed: int, each: int = 2) -> list[Question]:
    """Up to `each` questions about each passage, which is their gold passage; the same seed gives the same questions."""
    made: list[Question] = []
    for number, passage in enumerate(passages):
        draw = random.Random(f"{seed} cloze {number}")
        possible = [*_gaps(passage, draw), *_steps(passage, draw)]
        for question, answer in draw.sample(possible, min(each, len(possible))):
            made.append(Question(f"practice/{len(made)}", question, (answer,), (passage,)))
    return made


def _gaps(passage: str, draw: random.Random) -> Iterator[tuple[str, str]]:
    for sentence in _SENTENCE.finditer(passage):
        for match in _NAME.finditer(sentence.group()):
            left, right = sentence.group()[: match.start()], sentence.group()[match.end() :]
            if len((left + right).split()) >= 5:
                yield f"If {_thin(left, draw, last=True)} what {_thin(right, draw)}?", match.group()


def _steps(passage: str, draw: random.Random) -> Iterator[tuple[str, str]]:
    for sentence in _SENTENCE.finditer(passage):
        text = sentence.group()
        for number in find_numbers(text):
            left, right = _thin(text[: number.start], draw, last=True), _thin(text[number.end :], draw)
            step, more, year = draw.randint(1, 10), draw.random() < 0.5, 1000 <= number.value <= 2100
            if number.unit in ("date", "day of year") or number.value != int(number.value):
                continue
            if len((left + right).split()) < 5 or not (year or more or step < number.value):
                continue
            answer = compute(number, Number(0, 0, float(step)), "")[0 if more else 1]
            if year:
                way = draw.choice(("later", "after") if more else ("earlier", "prior"))
                yield f"If {left} {_WORDS[step - 1]} year{'s' * (step > 1)} {way} {right}, in which year?", str(answer)
            else:
                count = draw.choice((_WORDS[step - 1], str(step)))
                way = draw.choice(("more", "additional") if more else ("fewer", "less"))
                yield f"If {left} {count} {way} {right}, how many?", str(answer)


def _thin(text: str, draw: random.Random, last: bool = False) -> str:
    words = text.strip(" .,").split()
    near = words[-_REACH:] if last else words[:_REACH]
    return " ".join(word for word in near if draw.random() >= _DROPPED)
