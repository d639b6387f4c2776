"""Asks 80 questions about real manuals: half of them have an answer there, half have none.

    python bench/own_questions.py FOLDER [--to answers.jsonl]

Gathers the files of own-questions-files.tsv, which Debian 12's packages install, into FOLDER/docs: unpacked, and manual pages
as text of 80 columns. A file that is missing ends the run with the packages to install. A file of other bytes than those that
the questions were written for is named. The texts are freely licensed, and are not part of this project.

Then asks own-questions.jsonl, in FOLDER/work, as `ifqa ask --docs` does. A language model wrote the questions from the files
alone, before any system had read them. Of each half, 20 suppose something that is not so, in the manner of IfQA; 20 are plain.

Prints, with 95% bootstrap intervals over questions:
- of the questions with an answer: EM, F1, how often the file that holds it is that of the first passage, or of one of the
  first five, how often the answer's own source is that file (and that page of a PDF), and abstentions;
- of the questions without one: how often the system abstains;
- the AUROC of the confidence, with the questions that have an answer as positives.
"""

import argparse
import gzip
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from csv import DictReader
from pathlib import Path
from typing import NamedTuple

import numpy as np

import ifqa
from ifqa.corpus.documents.chunking import Locator, parse_locator
from ifqa.errors import IfqaError
from ifqa.pipeline.system import System
from ifqa.progress import bar
from ifqa.records import Answer, Question
from ifqa.report.answers import find_support
from ifqa.scoring.measures.confidence import AUROC
from ifqa.scoring.measures.exact_match import exact_match, f1
from ifqa.scoring.statistics import ColumnStatistic, mean_interval
from ifqa.storage.files import read_jsonl, write_jsonl

HERE = Path(__file__).parent
FILES, QUESTIONS = HERE / "own-questions-files.tsv", HERE / "own-questions.jsonl"
DEPTH = 5  # passages among which the gold file is looked for


class Asked(NamedTuple):
    """A question with its gold file and page (0: the file has none), what was found and what was answered."""

    question: Question
    file: str
    page: int
    found: Sequence[str]  # files of the best passages
    answer: Answer
    source: Locator | None  # of the answer


def main() -> None:
    """Gather, ask and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--to", type=Path, help="file for the answers")
    arguments = parser.parse_args()
    docs, work = arguments.folder / "docs", arguments.folder / "work"
    print("\n".join(gather(docs)))
    work.mkdir(exist_ok=True)
    with ifqa.open(docs=docs.resolve(), root=work) as system:
        asked = ask(system, QUESTIONS)
        print(f"{system.size:,} passages; {system.experiment.reader}")
    if arguments.to:
        write_jsonl(arguments.to, [shown(row) for row in asked])
    for kind in ("if", "plain", ""):
        print(f"\n{ {'if': 'counterfactual', 'plain': 'plain', '': 'all'}[kind] } questions")
        print("\n".join(figures([row for row in asked if row.question.id.startswith(kind)])))


def gather(docs: Path) -> Iterator[str]:
    """Fill a folder with the files of the list; tells of each that has other bytes than the list says.

    Raises:
        IfqaError: one is not installed.
    """
    with open(FILES, encoding="utf-8", newline="") as lines:
        listed = list(DictReader(lines, delimiter="\t"))
    if missing := sorted({one["package"] for one in listed if not Path(one["path"]).exists()}):
        raise IfqaError(f"files are missing; on Debian 12: apt-get install {' '.join(missing)} man-db")
    docs.mkdir(parents=True, exist_ok=True)
    others = 0
    for one in listed:
        data = text_of(Path(one["path"]))
        (docs / one["name"]).write_bytes(data)
        if (found := hashlib.sha256(data).hexdigest()) != one["sha256"]:
            others += 1
            yield f"{one['name']}: not the bytes of {one['package']} {one['version']}: SHA-256 {found}"
    yield f"{len(listed)} files, {others} of them not those that the questions were written for"


def text_of(path: Path) -> bytes:
    """A file, unpacked; a manual page as plain text."""
    if path.parent.parent.name == "man":
        name, section = path.name.removesuffix(".gz").rsplit(".", 1)
        program = shutil.which("man")
        if program is None:
            raise IfqaError("there is no program man; on Debian: apt-get install man-db")
        settings = {"PATH": os.environ["PATH"], "MANWIDTH": "80", "LC_ALL": "C.UTF-8"}
        command = [program, "--no-hyphenation", "--no-justification", "-P", "cat", section, name]
        return subprocess.run(command, env=settings, stdout=subprocess.PIPE, check=True).stdout
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def ask(system: System, path: Path) -> list[Asked]:
    """Ask each question, at the reader's own threshold."""
    asked = []
    rows = [row for _, row in read_jsonl(path)]
    with bar("asking", len(rows)) as advance:
        for row in rows:
            question = Question(str(row["id"]), str(row["question"]), tuple(row["answers"]))
            [ranking] = system.retrieve([question], DEPTH)
            places = [parse_locator(passage.id) for passage in ranking.passages]
            answer = system.ask(question)
            asked.append(
                Asked(
                    question,
                    str(row["file"]),
                    int(row.get("page", 0)),
                    [place.file for place in places if place],
                    answer,
                    source_of(answer),
                )
            )
            advance(1)
    return asked


def source_of(answer: Answer) -> Locator | None:
    """Where an answer stands; None if there is none."""
    support = find_support(answer)
    if support is None:
        return None
    passage = next(one for one in answer.evidence if one.id == support.passage_id)
    at = answer.how.span[0] if answer.how and answer.how.passage_id == passage.id else passage.text.find(answer.text)
    return parse_locator(passage.id, max(at, 0))


def figures(asked: Sequence[Asked]) -> Iterator[str]:
    """A line for each figure."""
    have, lack = (
        [row for row in asked if row.question.answers],
        [row for row in asked if not row.question.answers],
    )
    rows = {
        "EM": [exact_match(one.answer.text, one.question.answers) for one in have],
        "F1": [f1(one.answer.text, one.question.answers) for one in have],
        "gold file @1": [float(one.file in one.found[:1]) for one in have],
        f"gold file @{DEPTH}": [float(one.file in one.found) for one in have],
        "the answer's source is the gold file": [float(one.source is not None and fits(one)) for one in have],
        "abstentions": [float(not one.answer.text) for one in have],
    }
    yield f"{len(have)} with an answer"
    for name, values in rows.items():
        yield f"  {name}: {interval(mean_interval(values))}"
    yield f"{len(lack)} without an answer"
    yield f"  abstentions: {interval(mean_interval([float(not one.answer.text) for one in lack]))}"
    if all(row.answer.confidence is None for row in asked):
        yield "no confidence: the reader's weights have no calibration"
        return
    numbers = np.array([[row.answer.confidence or 0.0, float(bool(row.question.answers))] for row in asked])
    value = ColumnStatistic(AUROC, numbers).interval(0)
    yield f"AUROC of the confidence: {interval(value) if value else 'not defined'}"


def fits(one: Asked) -> bool:
    """Whether an answer stands in the gold file, and on the gold page if there is one."""
    assert one.source is not None
    return one.source.file == one.file and (not one.page or one.source.first <= one.page <= one.source.last)


def interval(ends: tuple[float, float, float]) -> str:
    """A value with its interval, in percent."""
    return "{:.1f} [{:.1f}, {:.1f}]".format(*(100 * end for end in ends))


def shown(one: Asked) -> dict[str, object]:
    """An answer as a line of JSON."""
    return {
        "id": one.question.id,
        "question": one.question.text,
        "answers": list(one.question.answers),
        "answer": one.answer.text,
        "candidate": one.answer.candidate,
        "confidence": one.answer.confidence,
        "file": one.file,
        "found": list(one.found),
        "source": str(one.source) if one.source else "",
    }


if __name__ == "__main__":
    try:
        main()
    except IfqaError as error:
        raise SystemExit(f"error: {error}") from error
