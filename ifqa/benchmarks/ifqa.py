"""The IfQA benchmark (Yu et al., EMNLP 2023), read from its release.

A record of the release (`dataset/full_split/dev.json`):

    {"idx": 1, "question": "If PlainsCapital Bank were to expand its operations to another state
     beyond Texas, ...?", "answers": ["2"], "context": ["PlainsCapital Bank, a subsidiary of Hilltop
     Holdings Inc., ..."]}

`context` holds the gold passages, of 100 words split at white space, without titles or ids. The
release has two split families, *full* (2400/700/700) and *few* (600/1600/1600). Both divide the
same 3,800 questions: full-train holds 56% of few-test. Of full's dev questions, 43 share a gold
passage with its train, and 9 of the 43 are in it word for word; of few's, 28 and 5.
"""

from pathlib import Path
from typing import ClassVar

from ifqa.errors import FormatError, MissingInput, unknown_name
from ifqa.formats.questions import check_unique_ids
from ifqa.protocols import Benchmark, Resource, Subset
from ifqa.records import Question
from ifqa.scoring.measures.answer_recall import ANSWER
from ifqa.scoring.measures.confidence import CONFIDENCE
from ifqa.scoring.measures.exact_match import CONTAINS, EM, F1
from ifqa.scoring.measures.gold_recall import GOLD_ALL, GOLD_ANY
from ifqa.scoring.measures.numeric import NUMERIC, OTHER
from ifqa.storage.files import (
    cached_by_file,
    read_json,
    text_field,
    texts_field,
    typed_field,
    unicode_text,
)
from ifqa.storage.resources import BUNDLED

_NO_OVERLAP = "the questions that share no gold passage with the training split of their family"
_RELEASE = (
    "https://raw.githubusercontent.com/wyu97/IfQA/26840366787eba17e6c1315aea4242d49fc7b89f/dataset"
)


class IfQA(Benchmark):
    """The public release, which `ifqa data ifqa` puts into `data/ifqa/`."""

    name = "ifqa"
    takes: ClassVar[tuple[Resource, ...]] = ("root",)
    measures = (EM, F1, CONTAINS, *CONFIDENCE, GOLD_ANY, GOLD_ALL, ANSWER)
    paths: ClassVar[dict[str, str]] = {
        f"{family}-{part}": f"{family}_split/{part}.json"
        for family in ("full", "few")
        for part in ("train", "dev", "test")
    }
    #: File -> (URL, SHA-256). The test files' checksums are not pinned, because development never
    #: reads them.
    downloads: ClassVar[dict[str, tuple[str, str | None]]] = {
        file: (f"{_RELEASE}/{file}", checksum)
        for file, checksum in {
            "full_split/train.json": (
                "f97bf0684a628265ffea2998a58a6d9805756269c185799517c2a0d98b6d4da5"
            ),
            "full_split/dev.json": (
                "cd36981d88366a212b9ab11769d32933bfbab2cd3ad55f8103e279d21c808721"
            ),
            "full_split/test.json": None,
            "few_split/train.json": (
                "b48287b96ad490087497617364fdcd02500912da14d6e40de95adfd32922e589"
            ),
            "few_split/dev.json": (
                "c81cead4a9a181b6c56e841a7540b2a6bf77b6eb00402d42f108767cedda625f"
            ),
            "few_split/test.json": None,
        }.items()
    }
    missing = "run: ifqa data ifqa"

    def __init__(self, root: Path = Path()) -> None:
        self.folder = root / "data" / self.name
        self.subsets = (
            NUMERIC,
            OTHER,
            Subset("no_overlap", self._is_apart, in_tables=True, about=_NO_OVERLAP),
        )

    def _is_apart(self, question: Question) -> bool | None:
        training = self.training_split(question.id.split("/")[1])
        if not training:
            return None
        training_passages = _gold_passages(self.path(training), self.name, training)
        return training_passages.isdisjoint(map(_normalize_passage, question.gold_passages))

    def _train(self, split: str) -> str:
        return f"{split.partition('-')[0]}-train"

    @property
    def splits(self) -> list[str]:
        """The splits of the release: "full-train", "full-dev" and so on."""
        return list(self.paths)

    def files(self, split: str) -> list[Path]:
        """The file of a split, as a list."""
        return [self.path(split)]

    def path(self, split: str) -> Path:
        """The file of a split ("full-dev")."""
        if split not in self.paths:
            raise unknown_name(f"split of {self.name}", split, self.paths)
        path = self.folder / self.paths[split]
        if not path.exists():
            raise MissingInput(f"{self.name} {split}: {path} is missing; {self.missing}")
        return path

    def questions(self, split: str) -> list[Question]:
        """The questions of a split, in the release's order."""
        return list(_read_split(self.path(split), self.name, split))

    def family(self, split: str) -> str:
        """The split family, within which a model may be trained and tested: "ifqa/full" or
        "ifqa/few".
        """
        return f"{self.name}/{split.partition('-')[0]}"

    def training_split(self, split: str) -> str:
        """The training split of a split's family: "full-train" for "full-dev".

        Empty if its file is missing.
        """
        training = self._train(split)
        return training if (self.folder / self.paths[training]).exists() else ""


class Sample(IfQA):
    """This project's questions on the bundled encyclopedia, in IfQA's format: `train`, `dev` and
    `hard`.

    `dev` has a question in IfQA's style on each article. `hard` has questions that were written to
    be hard: most do not name what they are about. A language model wrote both from the articles
    alone, before any system was run on them.
    """

    name = "sample"
    takes = ()
    paths: ClassVar[dict[str, str]] = {
        "train": "train.json",
        "dev": "dev.json",
        "hard": "hard.json",
    }
    downloads: ClassVar[dict[str, tuple[str, str | None]]] = {}
    missing = "the installation is broken; install ifqa again"

    def __init__(self) -> None:
        super().__init__()
        self.folder = BUNDLED / "sample"

    def family(self, split: str) -> str:
        """The sample's name: its splits share no question, so they are one family."""
        return self.name

    def _train(self, split: str) -> str:
        # 9 of the 83 questions of `dev`, and 9 of `hard`, share a gold passage with `train`
        return "train"


@cached_by_file(4)
def _gold_passages(path: Path, name: str, split: str) -> frozenset[str]:
    questions = _read_split(path, name, split)
    return frozenset(
        _normalize_passage(text) for question in questions for text in question.gold_passages
    )


def _normalize_passage(passage: str) -> str:
    """A gold passage in lower case with single spaces, for comparison."""
    return " ".join(passage.casefold().split())


@cached_by_file(4)
def _read_split(path: Path, name: str, split: str) -> tuple[Question, ...]:
    records = read_json(path)
    if not isinstance(records, list):
        raise FormatError(f"{path}: wanted a list of questions, found {type(records).__name__}")
    prefix = f"{name}/{split}"
    rows = enumerate(records)
    return tuple(
        check_unique_ids(
            path, [_parse_question(row, prefix, f"{path}: question {n}") for n, row in rows]
        )
    )


def _parse_question(record: object, prefix: str, where: str) -> Question:
    if not isinstance(record, dict):
        raise FormatError(f"{where}: wanted an object, found {type(record).__name__}")
    index = typed_field(record, "idx", object, where)
    if (
        isinstance(index, bool)
        or not isinstance(index, int | str)
        or str(index).split() != [str(index)]
    ):
        raise FormatError(f"{where}: 'idx' must be a number or a word, found {index!r}")
    name = unicode_text(str(index), "idx", where)
    answers = texts_field(record, "answers", where)
    if not answers:
        raise FormatError(f"{where}: 'answers' is empty; wanted at least one answer")
    text = text_field(record, "question", where)
    gold_passages = texts_field(record, "context", where)
    return Question(f"{prefix}/{name}", text, answers, gold_passages)
