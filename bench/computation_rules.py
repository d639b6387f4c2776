"""Measures what each group of rules for computed answers is worth.

    python bench/computation_rules.py [--weights extractive-large]

It asks the 120 questions of tests/reading/span/quantities.jsonl, each of its passage. No number of
the passage answers half of them. Then it asks them with one group of rules switched off at a time:

    directions       "later" adds and "fewer" subtracts
    question words   "who" asks for no number, "when" for a moment
    kinds and units  goals are not added to years, nor kilograms to kilometres

For each it prints how many answers are right, and how many are computed and wrong.
"""

import argparse
import json
from pathlib import Path
from unittest.mock import patch

from ifqa.reading.span import arithmetic
from ifqa.reading.span.reader import Extractive
from ifqa.records import Passage, Question
from ifqa.scoring.measures.exact_match import exact_match

QUESTIONS = Path(__file__).parents[1] / "tests" / "reading" / "span" / "quantities.jsonl"
#: The rules -> the function that applies them, and one that lets everything pass.
RULES = {
    "directions": ("_directed", lambda answers, *_: answers),
    "question words": ("_fits_question_word", lambda *_: True),
    "kinds and units": ("unit_ratio", lambda *_: 1.0),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--weights", default="", help="the span reader's weights")
    settings = Extractive.Settings(weights=parser.parse_args().weights, precision="float32")
    reader = Extractive(settings)
    print(f"all rules: {figures(reader)}")
    for name, (function, replacement) in RULES.items():
        with patch.object(arithmetic, function, replacement):
            print(f"without {name}: {figures(reader)}")


def figures(reader: Extractive) -> str:
    """The right answers, and the wrong ones that are computed."""
    cases = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    questions = [Question(f"q/{n}", case["question"]) for n, case in enumerate(cases)]
    passages = [[Passage(f"p{n}", "", case["passage"])] for n, case in enumerate(cases)]
    right = 0
    wrong = 0
    for case, prediction in zip(cases, reader.answer(questions, passages), strict=True):
        is_right = bool(case["answers"] and exact_match(prediction.answer, case["answers"]))
        is_computed = bool(prediction.how and prediction.how.calculation)
        right += is_right
        wrong += is_computed and not is_right
    return f"{right} of {len(cases)} right, {wrong} computed and wrong"


if __name__ == "__main__":
    main()
