"""The benchmark `causalqa`: Webis-CausalQA-22 (Bondarenko et al., COLING 2022), read from
data/causalqa/SPLIT/DATASET.jsonl.

`ifqa data causalqa` builds these files. A line:

    {"id": "56e7692a00c9c71400d770e1", "question": "why ...?", "context": "...", "answers": ["..."],
    "rules": ["R1"]}

`rules` are the rules that match the question. `context` may be empty or missing. Your own file
data/causalqa/NAME.jsonl is the split NAME; its lines also name their "dataset", and may have
"answer" in place of "answers": one text with tabs between the answers, as in the authors' release.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from ifqa.companions.causalqa.measures import AUTHORS_F1, ROUGE_L, ROUGE_L_PRECISION, ROUGE_L_RECALL
from ifqa.companions.causalqa.release import DATASETS, SPLITS
from ifqa.errors import FormatError, MissingInput, unknown_name
from ifqa.formats.questions import check_unique_ids
from ifqa.formatting import pluralize
from ifqa.protocols import Benchmark, Counts
from ifqa.records import Question
from ifqa.scoring.measures.answer_recall import ANSWER
from ifqa.scoring.measures.exact_match import EM
from ifqa.scoring.measures.gold_recall import GOLD_ANY
from ifqa.storage.files import (
    cached_by_file,
    read_json,
    read_jsonl,
    text_field,
    texts_field,
    typed_field,
    unicode_text,
)
from ifqa.storage.resources import BUNDLED

#: The authors' measures.
ANSWER_MEASURES = (
    ROUGE_L,
    ROUGE_L_PRECISION,
    ROUGE_L_RECALL,
    replace(EM, headline=False, in_tables=True),
    AUTHORS_F1,
)
ANSWER_RECALL = replace(
    ANSWER,
    tables=(1, 5, 20, 100),
    title="answer recall",
    about="a gold answer stands in one of the first K passages",
)


class CausalQA(Benchmark):
    """The ten datasets, with scores for each, their mean ("macro") and the mean over questions.

    A split is one of SPLITS, which needs all ten files; some datasets of it, such as
    "original-valid/squad2+hotpotqa"; or the name of your own file.
    """

    name = "causalqa"
    takes = ("root",)
    groups = "dataset"
    measures = (*ANSWER_MEASURES, ANSWER_RECALL)
    missing = "run: ifqa data causalqa"

    def __init__(self, root: Path = Path()) -> None:
        self.folder = root / "data" / self.name

    @property
    def splits(self) -> list[str]:
        """The four splits, each dataset of each split ("random-valid/squad2"), and the user's
        files.
        """
        files = [path.name.removesuffix(".jsonl") for path in sorted(self.folder.glob("*.jsonl"))]
        return [
            *SPLITS,
            *(f"{split}/{dataset}" for split in SPLITS for dataset in DATASETS),
            *files,
        ]

    def files(self, split: str) -> list[Path]:
        """The file of each dataset of a split, or the user's file."""
        if (file := self._user_file(split)) is not None:
            return [file]
        part, _, named = split.partition("/")
        datasets = [*dict.fromkeys(named.split("+"))] if named else DATASETS
        if part not in SPLITS:
            raise unknown_name(f"split of {self.name}", split, self.splits)
        if unknown := next((dataset for dataset in datasets if dataset not in DATASETS), ""):
            raise unknown_name("dataset of causalqa", unknown, DATASETS)
        paths = {dataset: self.folder / part / f"{dataset}.jsonl" for dataset in datasets}
        if absent := [
            dataset
            for dataset, path in paths.items()
            if not (path.exists() and path.stat().st_size)
        ]:
            present = "+".join(dataset for dataset in paths if dataset not in absent)
            hint = f", or use those present: split = {f'{part}/{present}'!r}" if present else ""
            raise MissingInput(
                f"{self.name} {split}: wanted {pluralize(len(paths), 'dataset')} in "
                f"{self.folder / part}; missing or empty: {', '.join(absent)}; {self.missing}{hint}"
            )
        return list(paths.values())

    def questions(self, split: str) -> list[Question]:
        """The questions of a split, in the order of `files`."""
        is_user_file = self._user_file(split) is not None
        prefix = f"{self.name}/{split if is_user_file else split.partition('/')[0]}"
        parts = (
            _read_questions(path, prefix, "" if is_user_file else path.stem)
            for path in self.files(split)
        )
        return [question for questions in parts for question in questions]

    def family(self, split: str) -> str:
        """The family of the original or of the random splits, which divide the same questions.

        Empty for a user's file.
        """
        kind = split.partition("-")[0]
        return (
            f"{self.name}/{kind}"
            if self._user_file(split) is None and kind in ("original", "random")
            else ""
        )

    def counts(self) -> Mapping[str, Callable[..., Counts]]:
        """The verbs of the paper's tables: of rules, of the corpus, and of the typology."""
        from ifqa.companions.causalqa.commands import countings

        return countings(self)

    def fetcher(self) -> Callable[..., Iterable[str]]:
        """The build of the folder from the authors' release."""
        from ifqa.companions.causalqa.commands import fetching

        return fetching(self)

    def _user_file(self, split: str) -> Path | None:
        path = self.folder / f"{split}.jsonl"
        return path if "/" not in split and split not in SPLITS and path.is_file() else None


@cached_by_file(len(DATASETS))
def _read_questions(path: Path, prefix: str, dataset: str) -> tuple[Question, ...]:
    return tuple(check_unique_ids(path, list(_parse_questions(path, prefix, dataset))))


def _parse_questions(path: Path, prefix: str, dataset: str) -> Iterator[Question]:
    for number, record in read_jsonl(path):
        where = f"{path}:{number}"
        group = dataset or text_field(record, "dataset", where)
        if group not in DATASETS:
            raise FormatError(
                f"{where}: 'dataset' is {group!r}; wanted one of {', '.join(DATASETS)}"
            )
        name = text_field(record, "id", where)
        if name.split() != [name]:
            raise FormatError(f"{where}: 'id' is {name!r}; wanted an id without white space")
        if "answer" in record:
            record = {
                **record,
                "answers": list(filter(str.strip, text_field(record, "answer", where).split("\t"))),
            }
        answers = texts_field(record, "answers", where)
        if not answers:
            raise FormatError(f"{where}: 'answers' is empty; wanted at least one answer")
        rules = texts_field({"rules": [], **record}, "rules", where)
        context = unicode_text(
            typed_field({"context": "", **record}, "context", str, where), "context", where
        )
        yield Question(
            f"{prefix}/{group}/{name}",
            text_field(record, "question", where),
            answers,
            context=context,
            group=group,
            labels=(("rules", " ".join(rules)),) if rules else (),
        )


class SampleCausal(Benchmark):
    """60 causal questions on the bundled encyclopedia, 45 in `dev` and 15 in `train`, scored by
    class of the typology.

    A language model read the articles and wrote the questions, answers and classes before any
    system was run on them. A record of bundled/sample/causal.json:

        {"split": "dev", "id": 0, "type": "cause", "article": "Alaska Purchase", "question": "Why
         was there so little left ...?", "answers": ["the otters had been hunted almost to
         extinction", ...], "context": "Russian traders had come ..."}

    `type` is the question's class in the paper's typology, given its answer: cause, goal, purpose,
    enablement, result or verification. `context` is a paragraph of the article, word for word.
    """

    name = "sample-causal"
    groups = "class"
    measures = (*ANSWER_MEASURES, GOLD_ANY, ANSWER_RECALL)
    folder = BUNDLED / "sample"
    splits = ("train", "dev")

    def files(self, split: str) -> list[Path]:
        """The file, which has both splits."""
        if split not in self.splits:
            raise unknown_name(f"split of {self.name}", split, self.splits)
        return [self.folder / "causal.json"]

    def questions(self, split: str) -> list[Question]:
        """The questions of a split, by class."""
        (path,) = self.files(split)
        return [question for part, question in _read_sample(path) if part == split]

    def family(self, split: str) -> str:
        """The sample's name: its splits share no question, so they are one family."""
        return self.name


@cached_by_file(1)
def _read_sample(path: Path) -> list[tuple[str, Question]]:
    questions = []
    for record in read_json(path):
        split = record["split"]
        context = record["context"]
        question = Question(
            f"sample-causal/{split}/{record['id']}",
            record["question"],
            tuple(record["answers"]),
            (context,),
            context=context,
            group=record["type"],
            labels=(("article", record["article"]),),
        )
        questions.append((split, question))
    return questions
