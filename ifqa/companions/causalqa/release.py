"""The authors' release of Webis-CausalQA-22: its address, its layout, its questions, and the
paper's counts.

The archive (zenodo.org/record/7186761) holds inputs and trained models. It has a file for each
dataset, part and split (finetuning/README.md, finetuning/reproduce_evaluation.sh and
finetuning/train_unifiedqa.py in
github.com/webis-de/coling22-benchmark-for-causal-question-answering at fc72cfd8743d):

    Webis-CausalQA-22-v-1.0/input/original-splits/squad2_train_original_split.csv
    Webis-CausalQA-22-v-1.0/input/random-splits/squad2_valid_random_split.csv

The columns are `id`, `question`, `question_processed`, `context`, `context_processed` and `answer`;
tabs separate the gold answers in a cell. ELI5 (Fan et al., ACL 2019), whose texts may not be
hosted, has only ids. The authors used Hugging Face's copy of it (a line of `train_eli5.jsonl`,
saved with `to_json`), which is now hard to get; KILT has the same questions (a line of
`eli5-train-kilt.jsonl`, github.com/facebookresearch/KILT):

    {"q_id": "5lchat", "title": "...", "selftext": "", "answers": {"text": ["..."], ...}, ...}
    {"id": "5lchat", "input": "...", "output": [{"answer": "...", "meta": {"score": 7}},
    {"provenance": [...]}]}

Zenodo's MD5 of the archive was not accessible, so it is not checked; the manifest keeps the
SHA-256.
"""

import csv
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple

from ifqa.errors import FormatError
from ifqa.formats.tables import objects_field
from ifqa.storage.files import LONGEST_LINE, read_jsonl, read_lines, typed_field

URL = "https://zenodo.org/record/7186761/files/Webis-CausalQA-22-v-1.0.zip"
NAME = "Webis-CausalQA-22"
ELI5 = "eli5"
SPLITS = ("original-train", "original-valid", "random-train", "random-valid")
DATASETS = (
    "paq",
    "gooaq",
    "msmarco",
    "naturalquestions",
    "eli5",
    "searchqa",
    "squad2",
    "newsqa",
    "hotpotqa",
    "triviaqa",
)
_FILE = re.compile(
    r"(?:.*/)?input/(original|random)-splits/(?P<dataset>\w+?)_(?P<part>train"
    r"|valid)_(?P<family>\1)_split\.csv"
)


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
# The paper does not sum the validation parts
ALL = PublishedCounts(72_205_274, 1_079_436, 1.5, 12.0, 22.5, 0, 0)


class ReleaseFile(NamedTuple):
    """A CSV file of the release: `path`, or the member `name` of the archive `path`."""

    path: Path
    name: str = ""

    def __str__(self) -> str:
        return f"{self.path}/{self.name}" if self.name else str(self.path)

    @contextmanager
    def rows(self) -> Iterator["csv.DictReader[str]"]:
        """The file's rows.

        Raises FormatError if the file is no CSV, or the archive is damaged or cannot be unpacked.
        """
        csv.field_size_limit(LONGEST_LINE)
        try:
            with ExitStack() as stack:
                lines = read_lines(Path(str(self)), self._open(stack))
                rows = csv.DictReader(f"{line}\n" for _, line in lines)
                yield rows
        except csv.Error as error:
            raise FormatError(f"{self}:{rows.line_num}: invalid CSV ({error})") from error
        except zipfile.BadZipFile as error:
            raise FormatError(
                f"{self}: the archive is damaged ({error}); fetch it again"
            ) from error

    def _open(self, stack: ExitStack) -> BufferedReader:
        if not self.name:
            return stack.enter_context(open(self.path, "rb"))
        archive = stack.enter_context(zipfile.ZipFile(self.path))
        try:
            return BufferedReader(stack.enter_context(archive.open(self.name)))  # type: ignore[arg-type]
        except (RuntimeError, NotImplementedError) as error:  # encrypted, or an unknown compression
            raise FormatError(
                f"{self}: cannot be read ({error}); extract the archive and remove it"
            ) from error


class CausalQuestion(NamedTuple):
    """A question with its context and its gold answers."""

    id: str
    question: str
    context: str
    answers: Sequence[str]


def find_release(folder: Path) -> dict[str, dict[str, ReleaseFile]]:
    """Dataset -> split -> file of the release in a folder: the folder itself, the unpacked release,
    or else the archive.
    """
    places = [folder, *sorted(folder.glob(f"{NAME}*"))]
    unpacked = next((place for place in places if (place / "input").is_dir()), None)
    archive = next((place for place in places if place.suffix == ".zip" and place.is_file()), None)
    files: list[ReleaseFile] = []
    if unpacked:
        files = [ReleaseFile(path) for path in sorted(unpacked.glob("input/*/*.csv"))]
    elif archive:
        try:
            with zipfile.ZipFile(archive) as opened:
                files = [ReleaseFile(archive, name) for name in opened.namelist()]
        except (zipfile.BadZipFile, OSError) as error:
            raise FormatError(
                f"{archive}: not a readable zip archive ({error}); fetch it again"
            ) from error
    datasets: dict[str, dict[str, ReleaseFile]] = {}
    for file in files:
        match = _FILE.fullmatch(file.name or file.path.as_posix())
        if match and match["dataset"] in DATASETS:
            datasets.setdefault(match["dataset"], {})[f"{match['family']}-{match['part']}"] = file
    return datasets


def read_questions(dataset: str, file: ReleaseFile) -> Iterator[CausalQuestion]:
    """The questions of a file.

    An id that is repeated within the file gets its row's number as a suffix.
    """
    with file.rows() as rows:
        columns = [
            _find_column(rows.fieldnames or (), name, file)
            for name in ("question", "context", "answer")
        ]
        seen: set[str] = set()
        for number, row in enumerate(rows):
            name = row.get("id") or str(number)
            # PAQ's ids are passage ids, and a passage has several questions
            if dataset == "paq" or name in seen:
                name = f"{name}.{number}"
            else:
                seen.add(name)
            question, context, answer = (row.get(column) for column in columns)
            if None in row or question is None or answer is None:
                count = "more" if None in row else "fewer"
                raise FormatError(
                    f"{file}:{rows.line_num}: found {count} cells than "
                    "columns; wanted a cell for each"
                )
            yield CausalQuestion(name, question, context or "", answer.split("\t"))


def _find_column(columns: Sequence[str], name: str, file: ReleaseFile) -> str:
    """The column `name`, else NAME_processed, its lower-case version.

    Empty for a context that has neither.
    """
    column = next((column for column in (name, f"{name}_processed") if column in columns), "")
    if not column and name != "context":
        raise FormatError(f"{file}:1: column {name!r} is missing; found {', '.join(columns)[:80]}")
    return column


def read_ids(files: Mapping[str, ReleaseFile]) -> dict[str, list[str]]:
    """Id -> splits, from files of ids (split -> file)."""
    ids: dict[str, list[str]] = {}
    for split, file in files.items():
        with file.rows() as rows:
            column = _find_column(rows.fieldnames or (), "id", file)
            for name in dict.fromkeys(row[column] for row in rows):
                ids.setdefault(name, []).append(split)
    return ids


def find_eli5(folder: Path) -> Path | None:
    """ELI5's file in a folder; None if there is no such folder."""
    if not folder.is_dir():
        return None
    files = sorted(folder.glob("*.jsonl*"))
    if len(files) != 1:
        names = ", ".join(path.name for path in files[:5]) or "none"
        raise FormatError(
            f"{folder}: wanted one file, train_eli5.jsonl or eli5-train-kilt.jsonl; found {names}"
        )
    return files[0]


def read_eli5(path: Path, ids: dict[str, list[str]]) -> Iterator[tuple[list[str], CausalQuestion]]:
    """The questions of ELI5's file that are in `ids`, with their splits.

    Removes them from `ids`, so the missing ones stay.
    """
    for number, record in read_jsonl(path):
        where = f"{path}:{number}"
        name = typed_field(record, "id" if "input" in record else "q_id", str, where)
        if (splits := ids.pop(name, None)) is not None:
            yield (
                splits,
                CausalQuestion(
                    name, _eli5_question(record, where), "", _eli5_answers(record, where)
                ),
            )


def _eli5_question(record: Mapping[str, object], where: str) -> str:
    """The title with the text below it: titles alone are shorter than the paper's 32.5 words."""
    if "input" in record:
        return typed_field(record, "input", str, where)
    texts = (
        typed_field({"selftext": "", **record}, key, str, where).strip()
        for key in ("title", "selftext")
    )
    return " ".join(filter(None, texts))


def _eli5_answers(record: Mapping[str, object], where: str) -> list[str]:
    if "input" in record:
        outputs = objects_field(record, "output", where)
        return [
            typed_field(output, "answer", str, where) for output in outputs if "answer" in output
        ]
    texts = typed_field(typed_field(record, "answers", dict, where), "text", list, where)
    return [typed_field({"text": text}, "text", str, where) for text in texts]
