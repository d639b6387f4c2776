"""Measures which numeric answers the extractive reader can give: as a span of a gold passage, or
computed.

    python bench/computed.py data/ifqa/full_split/train.json
    python bench/computed.py drop_contrast_sets_test.json[.xz]

FILE has IfQA's layout, or that of DROP's contrast set (Gardner et al. 2020), whose questions with a
number or date as the answer are used. Only questions of the subset `numeric` count. "Span": a span
equals an answer by exact match. "Computed": a computed candidate does. "Both" may be a coincidence
of the passage's numbers. "None" is out of reach. Candidates are the mean number of different
computed answers in a passage. The first rule that fits gives the form:

    share           the question has a percentage, or a word such as "twice"
    time between    it asks how many days, weeks, months or years, how long or how old
    date            an answer has the name of a month
    year            an answer is a year, decade or century
    ordinal         an answer is an ordinal
    amount          otherwise
"""

import argparse
import json
import lzma
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ifqa.errors import FormatError, MissingInput
from ifqa.models.places import minilm_folder
from ifqa.reading.span.network import EncodedPair, encode_pair
from ifqa.scoring.measures.exact_match import normalize
from ifqa.scoring.measures.numeric import is_numeric
from ifqa.training.extractive_phase import find_targets

MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
NTHS = "first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth"
FACTORS = "twice|doubl|tripl|quadrupl|half|halv|per ?cent|%"
QUESTION_FORMS = {
    "share": FACTORS,
    "time between": r"how many (?:\w+ )?(?:day|week|month|year)s|how long|how old|duration",
}
ANSWER_FORMS = {
    "date": MONTHS,
    "year": r"^(?:1\d|20)\d\ds?$|century",
    "ordinal": rf"^(?:\d+(?:st|nd|rd|th)|{NTHS})$",
}
SOURCES = ("span", "both", "computed", "none")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    folder = minilm_folder()
    counts: Counter[tuple[str, str]] = Counter()
    passages = candidates = 0
    for question, answers, texts in questions(parser.parse_args().file):
        if not is_numeric(answers):
            continue
        pairs = [encode_pair(folder, question, text) for text in dict.fromkeys(texts)]
        counts[form(question, answers), answer_source(pairs, answers)] += 1
        passages += len(pairs)
        candidates += sum(len(computed(pair)) for pair in pairs)
    print(table(counts))
    print(
        f"\n{candidates / max(passages, 1):.1f} computed candidates in "
        f"each of {passages:,} passages"
    )


def questions(path: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    if not path.exists():
        raise MissingInput(f"no {path}; wanted questions in IfQA's layout or DROP's")
    with (
        lzma.open(path, "rt", encoding="utf-8")
        if path.suffix == ".xz"
        else path.open(encoding="utf-8") as file
    ):
        content = json.load(file)
    try:
        if isinstance(content, list):
            yield from ((row["question"], row["answers"], row["context"]) for row in content)
        else:
            for part in content.values():
                for qa in part["qa_pairs"]:
                    if answers := drop_answers(qa["answer"]):
                        yield qa["question"], answers, [part["passage"]]
    except (AttributeError, KeyError, TypeError) as error:
        raise FormatError(f"{path} has neither IfQA's layout nor DROP's ({error})") from error


def drop_answers(answer: dict[str, Any]) -> list[str]:
    """The number or date of an answer in DROP's layout; empty for spans."""
    day, month, year = (answer["date"].get(part, "") for part in ("day", "month", "year"))
    date = f"{month} {day}, {year}".strip(" ,") if day else f"{month} {year}".strip()
    return [text for text in (str(answer["number"]), date) if text]


def form(question: str, answers: list[str]) -> str:
    for name, pattern in QUESTION_FORMS.items():
        if re.search(pattern, question, re.IGNORECASE):
            return name
    for name, pattern in ANSWER_FORMS.items():
        if any(
            re.search(pattern, answer.strip(), re.IGNORECASE if name == "ordinal" else 0)
            for answer in answers
        ):
            return name
    return "amount"


def answer_source(pairs: list[EncodedPair], answers: list[str]) -> str:
    gold = {normalize(answer) for answer in answers}
    spans = {
        normalize(pair.span_text(first, first + more))
        for pair, targets in zip(pairs, find_targets(pairs, answers), strict=True)
        for first, more in targets.spans
    }
    numbers = {normalize(text) for pair in pairs for text in computed(pair)}
    if spans & gold:
        return "both" if numbers & gold else "span"
    return "computed" if numbers & gold else "none"


def computed(pair: EncodedPair) -> set[str]:
    """The different computed answers of a passage."""
    return {text for rows in pair.computed for steps in rows for text in steps if text is not None}


def table(counts: Counter[tuple[str, str]]) -> str:
    """A Markdown table with a row for each form."""
    rows = {
        name: [counts[name, source] for source in SOURCES]
        for name in (*QUESTION_FORMS, *ANSWER_FORMS, "amount")
    }
    rows["all"] = [sum(column) for column in zip(*rows.values(), strict=True)]
    lines = [
        f"| form | questions | {' | '.join(SOURCES)} | reached |",
        "|---|" + "---|" * (len(SOURCES) + 2),
    ]
    for name, row in rows.items():
        share = f"{100 * (1 - row[-1] / sum(row)):.1f}%" if sum(row) else "-"
        lines.append(f"| {name} | {sum(row)} | {' | '.join(map(str, row))} | {share} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
