"""The roles of plugins, typed: retriever, reader, language model, benchmark, measure and trainer, with every method and default.

A class of ifqa inherits its role. A class from outside needs one method (`search`, `answer`, `complete`, `questions`, `train`);
`ifqa.plugins.load_plugin` adds the rest. A constructor's keyword arguments are its settings, except those in INJECTED.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from ifqa.records import (
    BuildCost,
    Completion,
    Estimate,
    Passage,
    Prediction,
    Question,
    Request,
    SearchResult,
    StageUsage,
    TokenUsage,
)

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    Numbers = NDArray[float64]

#: index: the folder that `build` filled. passages: a function, ids -> passages. corpus: all passages. parts: the retrievers of
#: [[retriever.parts]]. llm: the language model. root: where names and paths count from. budget: an `ifqa.llms.budget.Budget`.
INJECTED = ("index", "passages", "corpus", "parts", "llm", "root", "budget")

PathSetting = Annotated[str, "a file or folder"]  # a setting that may be a path; a relative path counts from `root`
ProgressCallback = Callable[
    [float], None
]  # called with the number of questions or requests finished since the last call


def no_progress(done: float) -> None:
    """A `ProgressCallback` that reports nothing."""


@dataclass(frozen=True)
class Requirement:
    """A file, model or key that a command needs; `remedy` says how to get it, and is empty if it is present."""

    name: str
    remedy: str = ""

    @property
    def present(self) -> bool:
        """Whether it is here."""
        return not self.remedy

    def __str__(self) -> str:
        return f"  {'here   ' if self.present else 'missing'}  {self.name}" + (
            f": {self.remedy}" if self.remedy else ""
        )


class Plugin:
    """The base of all roles."""

    version: ClassVar[int] = (
        1  # raise it when results change; classes from outside are identified by the hash of their files
    )
    runtime_only: ClassVar[tuple[str, ...]] = ()  # settings that change the speed, not the results

    if TYPE_CHECKING:  # settings are checked when they are read

        def __init__(self, *_: Any, **settings: Any) -> None: ...

    @classmethod
    def fingerprint(cls, *_: Any, **settings: Any) -> str:
        """One hash of the files that these settings name; empty if they name none."""
        return ""

    @classmethod
    def requirements(cls, *_: Any, **settings: Any) -> Iterable[Requirement]:
        """The files, models and keys that these settings need below `root`. Only checks that they exist."""
        return ()


class Trainable(Plugin):
    """The base of retrievers, readers and language models, which may be trained on questions."""

    trained_verb: ClassVar[str] = "was trained on"  # a message's words for "has seen the questions of the family"
    family: str = ""  # the split family whose questions it has seen, as `Benchmark.family` returns it
    trained_on: Collection[str] = ()  # SHA-256 of the files with those questions
    question_ids: Collection[str] = ()  # of a file of answers or rankings: its questions, all of the experiment's split

    @classmethod
    def training_family(cls, *_: Any, **settings: Any) -> str:
        """The split family that the weights or demonstrations come from, without loading them."""
        return ""

    def usage(self) -> StageUsage:
        """Its use of a language model so far, for the manifest; "retry" counts the questions to ask again."""
        return {}


class Retriever(Trainable):
    """Ranks passages."""

    default_parts: ClassVar[
        Sequence[Mapping[str, object]]
    ] = ()  # for a retriever over others, if a file names no parts

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """Up to `k` passages for each question, best first; one result a question, in their order.

        A class from outside may return plain lists of hits; `ifqa.plugins.load_plugin` wraps them.
        """
        raise NotImplementedError

    def requests(self, questions: Sequence[Question], k: int) -> list[Request]:
        """All requests that `search` will send to a language model, for an estimate."""
        return []


class IndexedRetriever(Retriever):
    """A retriever with an index; its constructor gets the index's folder as `index`."""

    resumes: ClassVar[bool] = False  # whether `build` continues an interrupted `build` in the folder

    @classmethod
    def build(cls, passages: Path, folder: Path, *_: Any, **settings: Any) -> None:
        """Index the passages of a folder into `folder`; the keyword arguments are the settings of [index.NAME]."""
        raise NotImplementedError

    @classmethod
    def forecast(cls, passages: int, *_: Any, **settings: Any) -> BuildCost | None:
        """The cost of `build` for that many passages; None if it is unknown."""
        return None

    @classmethod
    def build_fingerprint(cls, *_: Any, **settings: Any) -> str:
        """One hash of the files that `build` uses, such as a model's; empty if it uses none."""
        return ""

    @classmethod
    def build_requirements(cls, index: Path, *_: Any, **settings: Any) -> Iterable[Requirement]:
        """What building and searching `index` need below `root`; as `requirements`."""
        return ()


class Reader(Trainable):
    """Answers questions from passages."""

    concurrent: bool = False  # whether several threads may call `answer` at once
    chunk: ClassVar[int] = 32  # questions in one call of `answer`; their predictions are then written to disk
    takes_scores: ClassVar[bool] = False  # whether `answer` takes `scores`, the retriever's of each passage
    label: str = ""  # printed with its scores
    abstain_threshold: float = 0.0  # an opened system abstains below this confidence by default

    def answer(
        self,
        questions: Sequence[Question],
        passages: Sequence[Sequence[Passage]],
        advance: ProgressCallback = no_progress,
    ) -> list[Prediction]:
        """One prediction a question, in their order; `passages` has a list for each question, best first."""
        raise NotImplementedError

    def requests(self, questions: Sequence[Question], passages: Sequence[Sequence[Passage]]) -> list[Request]:
        """All requests that `answer` will send to a language model, for an estimate."""
        return []


class LanguageModel(Trainable):
    """Completes prompts."""

    name: str = ""  # completions are stored under this name
    label: str = ""  # printed with the scores of a reader or retriever that asks it
    server: str = ""  # scheme, host and port of the server, for the record
    chat: bool = True  # whether it takes messages; else it continues a text
    concurrent: bool = False  # whether several threads may call `complete` at once
    streams: bool = False  # whether `ifqa.llms.streaming.text_callback()` gets the text while it is generated
    window: int = 4096  # tokens of prompt and answer together

    @property
    def spent(self) -> TokenUsage:
        """Requests, tokens and US dollars used so far."""
        return TokenUsage()

    def complete(self, requests: Sequence[Request], advance: ProgressCallback = no_progress) -> list[Completion]:
        """One completion a request, in their order; the completion of a failed request has an `error`."""
        raise NotImplementedError

    def count(self, text: str) -> int:
        """An upper bound of a text's tokens; its bytes, because a token has at least one."""
        return len(text.encode("utf-8", "replace"))

    def estimate(self, requests: Sequence[Request]) -> Estimate:
        """The calls, tokens and cost of the requests; nothing is sent."""
        return Estimate(len(requests), 0, sum(request.max_tokens for request in requests), None)

    @classmethod
    def refuse_settings(cls, *_: Any, **settings: Any) -> None:
        """Raise IfqaError for settings that must not be written to a file, such as a URL with a key."""

    @classmethod
    def require_access(cls, *_: Any, **settings: Any) -> None:
        """Raise IfqaError early if there is neither a key nor a cached completion."""

    def check_ready(self) -> None:
        """Raise IfqaError if the model cannot be used, such as without a key."""


@dataclass(frozen=True)
class AnyMeasure:
    """The base of measures: a name, and a score from 0 to 1 whose arguments depend on the kind.

    Attributes:
        name: the measure's name in tables.
        score: see the subclasses.
        headline, in_tables: whether it is the benchmark's main measure, and whether tables show it; they show every headline.
        best: whether a high or a low score is better.
        unit: what the bootstrap resamples: "question", "group", or the name of a label.
        about: what it measures, for the head of a report.
    """

    name: str
    score: Callable[..., Any]
    headline: bool = field(default=False, kw_only=True)
    in_tables: bool = field(default=False, kw_only=True)
    best: Literal["high", "low"] = field(default="high", kw_only=True)
    unit: str = field(default="question", kw_only=True)
    about: str = field(default="", kw_only=True)

    @property
    def keys(self) -> list[str]:
        """Its names in rows and scores."""
        return [self.name]


@dataclass(frozen=True)
class Measure(AnyMeasure):
    """A score of one answer.

    `score` gets a question and its prediction; it returns None if undefined. A failed prediction scores 0 without a call, or 1
    if low is best.
    """

    score: Callable[[Question, Prediction], float | None]


@dataclass(frozen=True)
class RankingMeasure(AnyMeasure):
    """A score of one ranking at several depths, shown as `name@depth`.

    `score` gets the question, its passages' texts, best first, and the depths; it leaves out depths where it is undefined.
    Tables show the depths in `tables`, under `title` or else the name.
    """

    score: Callable[[Question, Sequence[str], Sequence[int]], Mapping[int, float]]
    depths: tuple[int, ...] = (1, 5, 10, 20, 50, 100)
    tables: tuple[int, ...] = ()
    title: str = ""

    @property
    def keys(self) -> list[str]:
        """`name@depth` for each depth."""
        return [f"{self.name}@{depth}" for depth in self.depths]


@dataclass(frozen=True)
class SetMeasure(AnyMeasure):
    """A score of many answers at once, such as the consistency of related questions.

    `score` gets questions and their predictions, failed ones too; it returns None if undefined. If a bootstrap resample
    draws a unit twice, the second copy and its questions get new names.
    """

    score: Callable[[Sequence[Question], Sequence[Prediction]], float | None]


@dataclass(frozen=True)
class ColumnMeasure(AnyMeasure):
    """A score of many answers at once from numbers in the questions' rows; all resamples are computed in one call.

    `columns` are keys of `per_question.jsonl`: measures of answers, "confidence", "failed", "abstained", "gold_read". `score`
    gets the numbers, (questions, columns), NaN where a row lacks one, and how often each question counts in each resample,
    (resamples, questions). It returns (resamples,) scores, NaN where undefined.
    """

    score: Callable[["Numbers", "Numbers"], "Numbers"]
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Subset:
    """A part of a benchmark's questions with its own scores; `in_tables` shows them in tables of results."""

    name: str
    holds: Callable[[Question], bool | None]  # None if unknown; a subset unknown for all questions is left out
    in_tables: bool = False
    about: str = ""  # for reports


class Benchmark(Plugin):
    """Questions, and how answers to them are scored."""

    name: str = ""
    measures: Sequence[AnyMeasure] = ()  # if empty: the measures and subsets of `ifqa.scoring.scheme.default_scheme`
    subsets: Sequence[Subset] = ()
    groups: str = (
        ""  # the meaning of `Question.group` ("dataset"); each group then gets scores, and there is their mean
    )
    folder: Path = Path()  # the folder of its files
    downloads: ClassVar[Mapping[str, tuple[str, str | None]]] = {}  # file in `folder` -> (URL, SHA-256 if known)

    @property
    def splits(self) -> Collection[str]:
        """The names of its known splits."""
        return ()

    def parts(self, split: str) -> tuple[Sequence[Subset], str]:
        """The `subsets` and `groups` of a split, for a benchmark whose splits differ in them."""
        return self.subsets, self.groups

    def questions(self, split: str) -> list[Question]:
        """The questions of a split, always in the same order."""
        raise NotImplementedError

    def files(self, split: str) -> Sequence[Path]:
        """The files of a split; their hashes show whether a model was trained on them."""
        return ()

    def family(self, split: str) -> str:
        """The split's family, or empty. Families share questions, so weights of one family are not tested on another."""
        return ""

    def training_split(self, split: str) -> str:
        """The training split that a subset of this split depends on; empty for none. If it changes, scores are recomputed."""
        return ""


@dataclass(frozen=True)
class TrainingData:
    """The questions of a split, and passages retrieved for each.

    Attributes:
        questions: with answers, gold passages, or both; each training skips the questions that lack what it needs.
        rankings: retrieved passages of each question, best first.
        family: "ifqa/full" or "ifqa/few": stored with the weights, because the two families share questions.
        sources: path -> SHA-256 of each file of questions, for the manifest.
        scores: the retriever's score of each passage of `rankings`; empty for a training that needs none.
    """

    questions: Sequence[Question] = ()
    rankings: Sequence[Sequence[Passage]] = ()
    family: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)
    scores: Sequence[Sequence[float]] = ()

    def select(self, indices: Sequence[int]) -> "TrainingData":
        """The questions of these indices, with their passages."""
        scores = [self.scores[n] for n in indices] if self.scores else ()
        questions, rankings = [self.questions[n] for n in indices], [self.rankings[n] for n in indices]
        return replace(self, questions=questions, rankings=rankings, scores=scores)


NO_DATA = TrainingData()


@dataclass(frozen=True)
class TrainerFlag:
    """Marks, in its `Annotated` type, a trainer's setting that has its own flag; `help` is the flag's help."""

    help: str


@dataclass(frozen=True)
class Recipe:
    """Named settings of a trainer; `about` is their purpose in a few words."""

    about: str
    settings: Mapping[str, object] = field(default_factory=dict)


class Trainer(Plugin):
    """Trains weights into a folder. `ifqa train NAME` is generated from its docstring, settings and these attributes."""

    benchmark: ClassVar[str] = "ifqa"
    split: ClassVar[str] = "full-train"
    #: Its BM25 index supplies the passages. If empty, the question's texts are the passages; if None, always.
    corpus: ClassVar[str | None] = "ifqa-gold-train"
    query: ClassVar[str] = "question"  # BM25's query, a key of `ifqa.retrieval.queries.QUERIES`
    folder: ClassVar[str] = ""  # the folder of the weights; empty for models/NAME
    retrieved: int = 0  # passages retrieved for a question
    dev: ClassVar[str | None] = (
        None  # the split that chooses the best checkpoint; "" for none, None if the trainer takes none
    )
    takes_experiment: ClassVar[bool] = False  # whether an experiment's retriever may supply the passages
    part: ClassVar[str] = ""  # the name of a part of a split: a flag of that name trains on SPLIT/PART alone
    recipes: ClassVar[Mapping[str, Recipe]] = {}  # the first is the default; explicit settings override it
    recipe: str = ""  # the name of the recipe in use

    def check_data(self, data: TrainingData, folder: Path) -> None:
        """Raise errors that need no rankings, before passages are retrieved."""

    def train(self, data: TrainingData, folder: Path, dev: TrainingData = NO_DATA) -> object:
        """Train, and write weights and a manifest; an interrupted training continues.

        Args:
            data: training questions and their passages.
            folder: the folder of weights and manifest.
            dev: questions that choose the best checkpoint, for a trainer that takes them.
        """
        raise NotImplementedError
