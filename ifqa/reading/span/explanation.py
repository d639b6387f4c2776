"""How the extractive reader got to a candidate: its sentence and span, or the numbers that it was computed from."""

import re

from ifqa.corpus.sentences import sentence_at
from ifqa.reading.span.network import Pair
from ifqa.reading.span.numbers import MONTH_NAMES, SCALES, Number, as_answer
from ifqa.records import Calculation, How, Term

_PERIODS = ("day", "week", "fortnight", "month", "decade")  # beside years, which are shown bare
_SCALE = re.compile(r"[ -](?:thousand|million|billion|trillion)\b|%", re.IGNORECASE)
#: What tells the step a number is: "three years later", "2 more".
_STEP = re.compile(
    r"(?:[ -](?:(?:thousand|million|billion|trillion|days?|weeks?|fortnights?|months?|years?|decades?|per ?cent|more|fewer|less"
    r"|additional|extra|other|earlier|later|sooner|longer|shorter|older|younger|prior|before|after|ahead)\b)|%)*",
    re.IGNORECASE,
)


def explain(pair: Pair, passage_id: str, answer: str, source: tuple[int, ...]) -> How:
    """Where a candidate comes from: `answer` is its text, and `source` what `best_candidates` gives with it."""
    if len(source) == 2:
        span = pair.offsets[source[0] - pair.start][0], pair.offsets[source[1] - pair.start][1]
        return How(passage_id, sentence_at(pair.text, *span), span)
    row, number, step = source
    first = pair.numbers[row][0]
    span = first.start, first.end
    return How(passage_id, sentence_at(pair.text, *span), span, _calculation(pair, answer, row, number, step))


def _calculation(pair: Pair, answer: str, row: int, number: int, step: int) -> Calculation:
    numbers = pair.numbers[row]
    if (
        number == 0 and len(numbers) == 1 and numbers[0].unit != "list"
    ):  # a step of one that is said after all, "a year"
        number = next((n for n, steps in enumerate(pair.computed[row]) if n and steps[step] == answer), 0)
    operand = pair.asked[number]
    rule = "times" if operand.factor else ("plus", "minus")[step]
    terms = [_in_passage(pair, passage_number) for passage_number in numbers]
    step_term = _in_question(pair, operand)
    if len(numbers) == 2:  # the time between them, their difference, or their sum
        larger_first = terms if numbers[0].value >= numbers[1].value else terms[::-1]
        if number == 0:
            return Calculation(answer, rule, tuple(larger_first if step else terms))
        return Calculation(answer, f"minus, {rule}", (*larger_first, step_term))
    if numbers[0].unit == "list" and number == step == 0:
        return Calculation(answer, "", tuple(terms))
    if rule == "minus" and _is_less(numbers[0], operand):
        return Calculation(answer, rule, (step_term, *terms))
    return Calculation(answer, rule, (*terms, step_term))


def _is_less(passage: Number, question: Number) -> bool:
    """Whether the question's number is the larger one, so that the passage's was subtracted from it."""
    if question.unit == "%" or (passage.unit != question.unit and passage.unit.startswith(("date", "month of"))):
        return False
    return passage.value * SCALES.get(passage.unit, 1) < question.value * SCALES.get(question.unit, 1)


def _in_passage(pair: Pair, number: Number) -> Term:
    end = number.end
    if scale := _SCALE.match(pair.text, end):
        end = scale.end()
    text = pair.text[number.start : end]
    if number.unit.startswith("date"):
        value = as_answer(pair.text, number.start, end, pair.question)
    else:
        value = text if text[0].isdigit() else _value(number)
    return Term(text, value, "passage", number.start, end)


def _in_question(pair: Pair, number: Number) -> Term:
    step = _STEP.match(pair.question, number.end)
    end = step.end() if step and number.end else number.end
    value = as_answer(pair.question, number.start, number.end) if number.unit.startswith("date") else _value(number)
    return Term(pair.question[number.start : end], value, "question", number.start, end)


def _value(number: Number) -> str:
    if number.unit.startswith("month of"):
        year, month = divmod(int(number.value), 12)
        return MONTH_NAMES[month] + ("" if number.unit.endswith("?") else f" {year}")
    digits = f"{number.value:,}" if number.value % 1 else str(int(number.value))
    if number.unit in SCALES:
        return f"{digits} {number.unit}"
    if number.unit in _PERIODS:
        return f"{digits} {number.unit}{'s' * (number.value != 1)}"
    return digits + "%" * (number.unit == "%")
