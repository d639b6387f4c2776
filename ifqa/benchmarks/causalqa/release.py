"""The authors' release of Webis-CausalQA-22: its address, its layout, and the paper's counts.

The archive (zenodo.org/record/7186761) holds inputs and trained models. It has a file for each dataset, part and split
(finetuning/README.md, finetuning/reproduce_evaluation.sh and finetuning/train_unifiedqa.py in
github.com/webis-de/coling22-benchmark-for-causal-question-answering at fc72cfd8743d):

    Webis-CausalQA-22-v-1.0/input/original-splits/squad2_train_original_split.csv
    Webis-CausalQA-22-v-1.0/input/random-splits/squad2_valid_random_split.csv

The columns are `id`, `question`, `question_processed`, `context`, `context_processed` and `answer`; tabs separate the gold
answers in a cell. ELI5, whose texts may not be hosted, has only ids.

Zenodo's MD5 of the archive was not accessible, so it is not checked; the manifest keeps the SHA-256. The seed of the authors'
random split is not published, so only this release has that split.
"""

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ifqa.errors import FormatError
from ifqa.formats import causalqa_files
from ifqa.formats.causalqa_files import Candidate, CausalTest, DatasetFile, Details, FileReader

URL = "https://zenodo.org/record/7186761/files/Webis-CausalQA-22-v-1.0.zip"
NAME = "Webis-CausalQA-22"
_FILE = re.compile(r"(?P<family>original|random)-splits/(?P<dataset>\w+?)_(?P<part>train|valid)_(?P=family)_split\.csv")


class PublishedCounts(NamedTuple):
    """The paper's counts for a dataset (Bondarenko et al., COLING 2022, Tables 1, 2 and 4)."""

    questions: int  # all questions
    causal: int  # questions that have an answer and match a rule
    share: float  # causal questions in percent of all
    question_words: float  # mean words of a causal question
    answer_words: float  # mean words of its answer
    original: int  # causal questions in the original validation part, the N of Table 4
    random: int  # causal questions in the random validation part


PUBLISHED = {
    "paq": PublishedCounts(64_875_601, 769_606, 1.2, 9.6, 2.7, 76_961, 76_961),
    "gooaq": PublishedCounts(5_030_530, 146_286, 2.9, 7.3, 44.3, 33, 14_629),
    "msmarco": PublishedCounts(1_010_916, 25_569, 2.5, 6.4, 17.5, 2_558, 2_557),
    "naturalquestions": PublishedCounts(315_203, 1_208, 0.4, 9.8, 10.8, 71, 121),
    "eli5": PublishedCounts(272_634, 131_033, 48.0, 32.5, 99.0, 13_104, 13_104),
    "searchqa": PublishedCounts(216_136, 780, 0.4, 16.8, 1.8, 117, 78),
    "squad2": PublishedCounts(142_192, 3_209, 2.3, 10.5, 6.2, 252, 321),
    "newsqa": PublishedCounts(119_633, 652, 0.5, 7.2, 6.1, 29, 66),
    "hotpotqa": PublishedCounts(112_662, 390, 0.4, 21.8, 3.8, 35, 39),
    "triviaqa": PublishedCounts(109_767, 703, 0.6, 19.4, 3.1, 66, 71),
}
ALL = PublishedCounts(72_205_274, 1_079_436, 1.5, 12.0, 22.5, 0, 0)  # the paper does not sum the validation parts


def find_release(folder: Path) -> dict[str, list[DatasetFile]]:
    """Dataset -> files of the release in a folder: the archive, the unpacked release, or the folder itself."""
    places = [path for path in folder.iterdir() if path.name.startswith(NAME) and path.suffix in ("", ".zip", ".0")]
    places.sort(key=lambda path: (path.is_file(), path))  # unpacked first
    if (folder / "input").is_dir():
        places = [folder]
    datasets: dict[str, list[DatasetFile]] = {}
    for place in places[:1]:
        for part in causalqa_files.list_files(place / "input" if (place / "input").is_dir() else place):
            if match := _match_name(part):
                datasets.setdefault(match["dataset"], []).append(part)
    return datasets


def _match_name(part: DatasetFile) -> re.Match[str] | None:
    return _FILE.fullmatch("/".join(PurePosixPath(part.name).parts[-2:]))


def has_texts(chosen: Sequence[DatasetFile]) -> bool:
    """Whether a dataset's files have questions; ELI5's have only ids."""
    with FileReader() as reader:
        for part in chosen:
            for _, header in reader.lines(part):
                return any(column.startswith("question") for column in next(csv.reader([header]), []))
    raise FormatError(f"{chosen[0]} is empty; fetch the release again")


def read_candidates(
    dataset: str, reader: FileReader, chosen: Sequence[DatasetFile], causal: CausalTest
) -> causalqa_files.Candidates:
    """The questions of a dataset's files. An id that is repeated within a file gets its row's number as a suffix."""
    for part, match in ((part, match) for part in chosen if (match := _match_name(part))):
        with reader.table(part) as rows:
            columns = [_find_column(rows.fieldnames or (), name, part) for name in ("question", "context", "answer")]
            seen: set[str] = set()
            for number, row in enumerate(rows):
                name = row.get("id") or str(number)
                if dataset == "paq" or name in seen:  # PAQ's ids are passage ids, and a passage has several questions
                    name = f"{name}.{number}"
                else:
                    seen.add(name)
                split = f"{match['family']}-{match['part']}"
                yield _parse_candidate(row, name, columns, split, f"{part}:{rows.line_num}")


def _find_column(columns: Sequence[str], name: str, part: DatasetFile) -> str:
    """The column `name`, else NAME_processed, its lower-case version; empty for a context that has neither."""
    column = next((column for column in (name, f"{name}_processed") if column in columns), "")
    if not column and name != "context":
        raise FormatError(f"{part}:1: column {name!r} is missing; found {', '.join(columns)[:80]}")
    return column


def _parse_candidate(
    row: Mapping[str | None, str | None], name: str, columns: Sequence[str], split: str, where: str
) -> Candidate:
    question, context, answer = (row.get(column) for column in columns)
    if None in row or question is None or answer is None:
        raise FormatError(
            f"{where}: found {'more' if None in row else 'fewer'} cells than columns; wanted a cell for each"
        )
    return Candidate(question, lambda: Details(name, context or "", answer.split("\t"), split))
