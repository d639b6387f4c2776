"""Counts the questions whose annotated answer a whole list would hide.

    python bench/list_misfires.py ROWS.jsonl

ROWS are reading questions as bench/document_reading.py writes them: `question`, `context` and
`answers`. It prints how many with an answer are taken to ask for several things, in how many of
these the first place of an answer is an item of a list, and each list that is not the answer as a
whole.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from ifqa.reading.span.list_questions import read_list_question
from ifqa.reading.span.whole_lists import find_whole_lists, join_items, list_of
from ifqa.scoring.measures.exact_match import exact_match
from ifqa.storage.files import read_jsonl


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", type=Path)
    answered = [row for _, row in read_jsonl(parser.parse_args().rows) if row["answers"]]
    asking = [row for row in answered if read_list_question(row["question"])]
    lists = [(row, whole_list(row["question"], row["context"], row["answers"])) for row in asking]
    found = [(row, answer) for row, answer in lists if answer]
    hidden = [(row, answer) for row, answer in found if not exact_match(answer, row["answers"])]
    print(f"{len(answered):,} questions with an answer, {len(asking)} for several things")
    print(f"{len(found)} answers in a list, {len(hidden)} lists that are not the answer:")
    for row, answer in hidden:
        print(f"{row['question']}  {row['answers'][0]}  ->  {answer}")


def whole_list(question: str, text: str, answers: Sequence[str]) -> str:
    """The list that the first answer in a text is an item of; empty if there is none."""
    for answer in answers:
        start = text.find(answer)
        if start < 0:
            continue
        found = find_whole_lists(question, text)
        items = list_of((start, start + len(answer)), found, text)
        return join_items([text[first:last] for first, last in items]) if items else ""
    return ""


if __name__ == "__main__":
    main()
