"""The authors' release of Webis-CausalQA-22: where it is, and its layout.

The archive (zenodo.org/record/7186761) holds input and trained models. Of the input, for each dataset, part and split
(the authors' finetuning/README.md, finetuning/reproduce_evaluation.sh and finetuning/train_unifiedqa.py in
github.com/webis-de/coling22-benchmark-for-causal-question-answering at fc72cfd8743d),

    Webis-CausalQA-22-v-1.0/input/original-splits/squad2_train_original_split.csv
    Webis-CausalQA-22-v-1.0/input/random-splits/squad2_valid_random_split.csv

with the columns `id`, `question`, `question_processed`, `context`, `context_processed`, `answer`; several gold answers
stand in one cell, with tabs between. Of ELI5, whose texts may not be hosted, there are ids alone.

Zenodo shows an MD5 of the archive. It was not to be had when this was written, so none is compared; the SHA-256 of what
was taken is kept in the manifest. The authors' random draw has no published seed: only this release has their random
split.
"""

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath

from ifqa.errors import IfqaError
from ifqa.formats.publishers.parts import Part, Reading, parts
from ifqa.formats.publishers.publisher import Candidate, Causal, Rest, Units

URL = "https://zenodo.org/record/7186761/files/Webis-CausalQA-22-v-1.0.zip"
NAME = "Webis-CausalQA-22"
_FILE = re.compile(r"(?P<family>original|random)-splits/(?P<dataset>\w+?)_(?P<part>train|valid)_(?P=family)_split\.csv")


def find(folder: Path) -> dict[str, list[Part]]:
    """Dataset -> its parts, if the release lies in a folder: as the archive, unpacked, or the folder itself is the release.

    Raises:
        IfqaError: the archive is damaged.
    """
    places = sorted(
        path for path in folder.iterdir() if path.name.startswith(NAME) and path.suffix in ("", ".zip", ".0")
    )
    places = [path for path in places if path.is_dir()] or [path for path in places if path.is_file()]
    if (folder / "input").is_dir():
        places = [folder]
    datasets: dict[str, list[Part]] = {}
    for place in places[:1]:
        for part in parts(place / "input" if (place / "input").is_dir() else place):
            if match := _match(part):
                datasets.setdefault(match["dataset"], []).append(part)
    return datasets


def _match(part: Part) -> re.Match[str] | None:
    return _FILE.fullmatch("/".join(PurePosixPath(part.name).parts[-2:]))


def has_texts(chosen: Sequence[Part]) -> bool:
    """Whether the parts of a dataset have questions, and not ids alone.

    Raises:
        IfqaError: a part is empty or damaged.
    """
    with Reading() as reading:
        for part in chosen:
            for _, head in reading.lines(part):
                return any(column.startswith("question") for column in next(csv.reader([head]), []))
    raise IfqaError(f"{chosen[0]} is empty; fetch the release again")


def units(dataset: str, reading: Reading, chosen: Sequence[Part], causal: Causal) -> Units:
    """A unit for each row of a dataset's parts. An id that a part has again gets the number of its row behind it."""
    for part in chosen:
        match = _match(part)
        assert match
        split = f"{match['family']}-{match['part']}"
        with reading.table(part) as rows:
            question, context, answer = (_column(rows.fieldnames or (), name, part) for name in _COLUMNS)
            seen: set[str] = set()
            for number, row in enumerate(rows):
                name = row.get("id") or str(number)
                if dataset == "paq" or name in seen:  # PAQ's ids are those of passages, which have several questions
                    name = f"{name}.{number}"
                else:
                    seen.add(name)
                where = f"{part}:{rows.line_num}"
                yield partial(_candidates, row, name, (question, context, answer), split, where)


_COLUMNS = ("question", "context", "answer")


def _column(columns: Sequence[str], name: str, part: Part) -> str:
    """The column of a name, else the processed one, in lower case; empty if there is no context."""
    known = next((column for column in (name, f"{name}_processed") if column in columns), "")
    if not known and name != "context":
        raise IfqaError(f"{part}:1: column {name!r} is missing; found {', '.join(columns)[:80]}")
    return known


def _candidates(
    row: Mapping[str | None, str | None], name: str, columns: Sequence[str], split: str, where: str
) -> Iterable[Candidate]:
    question, context, answer = columns
    if None in row or row[question] is None or row[answer] is None:
        raise IfqaError(
            f"{where}: wanted as many cells as there are columns, found {'more' if None in row else 'fewer'}"
        )

    def rest() -> Rest:
        return Rest(name, row.get(context) or "", (row[answer] or "").split("\t"), split)

    return (Candidate(row[question] or "", rest),)
