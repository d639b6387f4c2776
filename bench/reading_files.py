"""Writes the reading questions on which the span reader is pretrained, from the publishers' files.

    python bench/reading_files.py FOLDER --to reading.jsonl [--qamr 8000] [--words 190] [--most N]
    python bench/reading_files.py FOLDER --to data/reading/gold.jsonl --gold
    python bench/reading_files.py FOLDER --to data/reading/nq-swap-held.jsonl --held

FOLDER holds `span-train.jsonl.xz` (rows of SQuAD 1.1, SquadShifts and TimeQA: question, context,
answers, source), `qamr-dev.tsv.xz` and `qamr-test.tsv.xz` (Michael et al. 2018) and
`nq-swap-train.json.xz` (Longpre et al. 2021). The rows have question, context, answers, source and
licence, for `ifqa train extractive --reading`, and as questions of the benchmark "file" for `ifqa
train llm`. With --gold the contexts are gold passages, for `ifqa train rerank` and the corpus
`reading`.

- --gold writes only SQuAD, SquadShifts and TimeQA. QAMR's questions are about single sentences,
  NQ-Swap's passages are false.
- QAMR's questions are sampled with a seed.
- NQ-Swap is split by the SHA-256 of the question: a third is held out of all training. --held
  writes it for the experiment nq-swap, as questions of the benchmark "file". HTML tags are removed.
- A context of more than 190 words does not fit the span reader, so its question is left out of
  training.
"""

import argparse
import hashlib
import logging
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ifqa.formats.questions import read_questions
from ifqa.storage.files import read_lines, write_jsonl

logger = logging.getLogger(__name__)

LICENCES = {
    "squad1.1-train": "CC BY-SA 4.0",
    "squadshifts-newwiki": "CC BY 4.0",
    "timeqa-human-easy": "BSD-3-Clause",
    "timeqa-human-hard": "BSD-3-Clause",
    "qamr": "MIT",
    "nq-swap": "MIT",
}
_TAG = re.compile(r"</?[A-Z][A-Za-z0-9]*(?: [^>]*)?>")
_QAMR = re.compile(r"(.+?\?) {2,}(.+)")  # a question and its annotators' answers, separated by tabs


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--to", type=Path, required=True, help="a .jsonl file")
    parser.add_argument("--qamr", type=int, default=8000, help="questions of QAMR")
    parser.add_argument("--words", type=int, default=190, help="most words of a context")
    parser.add_argument("--most", type=int, help="questions, drawn; else every one")
    parser.add_argument("--seed", type=int, default=0, help="of the draws")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument(
        "--gold",
        action="store_true",
        help="write contexts as gold passages, of three of the sources",
    )
    kinds.add_argument(
        "--held", action="store_true", help="write only the third of NQ-Swap that is held out"
    )
    arguments = parser.parse_args()
    if arguments.held:
        held = [row for row in nq_swap(arguments.folder) if held_out(row["question"])]
        rows = [{key: row[key] for key in ("question", "context", "answers")} for row in held]
    elif arguments.gold:
        rows = list(spans(arguments.folder))
    else:
        single = list(qamr(arguments.folder))
        rows = [
            *spans(arguments.folder),
            *(row for row in nq_swap(arguments.folder) if not held_out(row["question"])),
            *random.Random(arguments.seed).sample(single, min(arguments.qamr, len(single))),
        ]
    rows = [row for row in rows if len(row["context"].split()) <= arguments.words]
    if arguments.most:
        rows = random.Random(arguments.seed).sample(rows, min(arguments.most, len(rows)))
    if arguments.gold:
        rows = [{**row, "passages": [row["context"]], "context": ""} for row in rows]
    write_jsonl(arguments.to, rows)
    logger.info(f"{arguments.to}: {len(rows):,} questions")


def row(question: str, context: str, answers: list[str], source: str) -> dict[str, Any]:
    return {
        "question": question,
        "context": context,
        "answers": answers,
        "source": source,
        "licence": LICENCES[source],
    }


def spans(folder: Path) -> Iterator[dict[str, Any]]:
    for question in read_questions(folder / "span-train.jsonl.xz"):
        yield row(
            question.text,
            question.gold_passages[0],
            list(question.answers),
            question.label("source"),
        )


def qamr(folder: Path) -> Iterator[dict[str, Any]]:
    """QAMR: a line with `#` and an id, the sentence, and lines with a question and answers."""
    for name in ("dev", "test"):
        sentence, before = "", ""
        for _, line in read_lines(folder / f"qamr-{name}.tsv.xz"):
            if before.startswith("#"):
                sentence = line
            elif match := _QAMR.fullmatch(line):
                answers = [
                    word.strip()
                    for word in match[2].split("\t")
                    if word.strip() and word.strip() in sentence
                ]
                if answers:
                    yield row(match[1], sentence, list(dict.fromkeys(answers)), "qamr")
            before = line


def nq_swap(folder: Path) -> Iterator[dict[str, Any]]:
    """NQ-Swap: the passage's answer was replaced by another entity, which is the right answer."""
    for question in read_questions(folder / "nq-swap-train.json.xz"):
        context = " ".join(_TAG.sub(" ", question.gold_passages[0]).split())
        yield row(f"{question.text}?", context, list(question.answers), "nq-swap")


def held_out(question: str) -> bool:
    """Whether a question of NQ-Swap is in the third that is held out of training."""
    published = question.removesuffix("?")  # published without a question mark
    return int(hashlib.sha256(published.encode()).hexdigest()[:8], 16) % 3 == 2


if __name__ == "__main__":
    main()
