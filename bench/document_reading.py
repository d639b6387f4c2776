"""Writes the reading questions about documents on which the span reader is trained.

    python bench/document_reading.py FOLDER reading.jsonl --to documents.jsonl \
        [--packages UNPACKED] [--near 1]

A language model wrote the questions of reading-questions.jsonl, each from one passage, and the
answers. They are of five kinds:

- `plain`: about what the passage says;
- `supposition`: what would follow if something there were otherwise; the answer is in the passage;
- `computed`: the supposition changes a number or a date, so the answer does not stand there;
- `twin`: the question before it, without its supposition;
- `unanswerable`: about the passage's people and things, but a fact that it does not have.

Their passages have three sources:

- `documents`: files of Debian's packages, none of them in a set of bench/own_questions.py. They are
  gathered into FOLDER/docs, as there.
- `written`: letters, minutes, tables, logs and other short documents of reading-documents.jsonl,
  which the language model wrote as well.
- `encyclopaedia`: contexts of SQuAD, SquadShifts and TimeQA in `reading.jsonl`, the output of
  bench/reading_files.py.

The rows have question, context, answers, source and licence, for `ifqa train extractive --reading`.
For each question with an answer they have also its NEAR best other passages that lack the answer,
as a row without answers: for `documents` the default retriever's over the folder, else the nearest
by TF-IDF.
"""

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from derived_reading import has_form, nearest_contexts
from own_questions import HERE, gather

import ifqa
from ifqa.corpus.documents.chunking import parse_locator
from ifqa.errors import FormatError, IfqaError
from ifqa.records import Passage
from ifqa.scoring.measures.exact_match import normalize
from ifqa.storage.files import read_jsonl, write_jsonl

Row = dict[str, Any]
DEBIAN = "free (Debian main)"
OWN = "Apache-2.0"
DEPTH = 10  # passages to take the nearest from


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("reading", type=Path, help="the output of bench/reading_files.py")
    parser.add_argument("--to", type=Path, required=True, help="a .jsonl file")
    parser.add_argument("--packages", type=Path, help="folder of unpacked packages")
    parser.add_argument("--near", type=int, default=1, help="most passages without the answer")
    arguments = parser.parse_args()
    print(
        "\n".join(
            gather(
                arguments.folder / "docs",
                HERE / "reading-questions-files.tsv",
                arguments.packages,
            )
        )
    )
    records = defaultdict(list)
    for _, record in read_jsonl(HERE / "reading-questions.jsonl"):
        records[record["source"]].append(record)
    rows = [
        *document_rows(records["documents"], arguments.folder, arguments.near),
        *written_rows(records["written"], arguments.near),
        *encyclopaedia_rows(records["encyclopaedia"], arguments.reading, arguments.near),
    ]
    write_jsonl(arguments.to, rows)
    for source, count in sorted(Counter(row["source"] for row in rows).items()):
        print(f"{source}: {count:,}")


def document_rows(records: Sequence[Row], folder: Path, near: int) -> Iterator[Row]:
    """The rows of questions about the files in FOLDER/docs."""
    work = folder / "work"
    work.mkdir(exist_ok=True)
    with ifqa.open(docs=(folder / "docs").resolve(), root=work) as system:
        passages: dict[str, list[Passage]] = defaultdict(list)
        for passage in ifqa.Corpus(system.experiment.corpus, root=work):
            if place := parse_locator(passage.id):
                passages[place.file].append(passage)
        rankings = system.retrieve([record["question"] for record in records], DEPTH)
    for record, ranking in zip(records, rankings, strict=True):
        context = find_context(
            record["start"], [passage.text for passage in passages[record["file"]]]
        )
        others = [passage.text for passage in ranking.passages if passage.text != context]
        yield from rows_of(record, context, others, DEBIAN, near)


def written_rows(records: Sequence[Row], near: int) -> Iterator[Row]:
    """The rows of questions about the documents of reading-documents.jsonl."""
    texts = {
        record["name"]: record["text"] for _, record in read_jsonl(HERE / "reading-documents.jsonl")
    }
    questions = [{**record, "context": texts[record["file"]]} for record in records]
    for record, others in zip(questions, nearest_contexts(questions), strict=True):
        yield from rows_of(record, record["context"], others, OWN, near)


def encyclopaedia_rows(records: Sequence[Row], reading: Path, near: int) -> Iterator[Row]:
    """The rows of questions about contexts of reading questions."""
    licences: dict[str, str] = {}
    contexts: dict[str, list[str]] = defaultdict(list)
    for _, row in read_jsonl(reading):
        if row["context"] not in licences:
            licences[row["context"]] = row["licence"]
            contexts[row["source"]].append(row["context"])
    questions = [
        {**record, "context": find_context(record["start"], contexts[record["file"]])}
        for record in records
    ]
    for record, others in zip(questions, nearest_contexts(questions), strict=True):
        context = record["context"]
        yield from rows_of(record, context, others, licences[context], near)


def find_context(start: str, texts: Sequence[str]) -> str:
    """The text that begins with `start`.

    Raises:
        FormatError: there is none, because the files or their passages have changed.
    """
    for text in texts:
        if text.startswith(start):
            return text
    raise FormatError(f"no passage begins with {start!r}; reading-questions.jsonl names it")


def rows_of(
    record: Mapping[str, Any], context: str, others: Sequence[str], licence: str, near: int
) -> Iterator[Row]:
    """A question's row with its own passage, then those with passages that lack its answer."""
    question = record["question"]
    answers = record["answers"]
    source = record["file"] if record["source"] == "encyclopaedia" else record["source"]
    yield {
        "question": question,
        "context": context,
        "answers": answers,
        "source": f"{source}, {record['kind']}",
        "licence": licence,
    }
    if not answers:
        return
    forms = [f" {normalize(answer)} " for answer in answers]
    for other in [text for text in others if not has_form(text, forms)][:near]:
        yield {
            "question": question,
            "context": other,
            "answers": [],
            "source": f"{source}, near",
            "licence": licence,
        }


if __name__ == "__main__":
    try:
        main()
    except IfqaError as error:
        raise SystemExit(f"error: {error}") from error
