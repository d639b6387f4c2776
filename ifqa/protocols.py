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
ProgressCallback = Callable[[float], None]  # called with the number of questions, or requests, done since the last call


def no_progress(done: float) -> None:
    """An `ProgressCallback` that reports nothing."""


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
    """What every role has."""

    version: ClassVar[int] = 1  # raise it when results change; for a class from outside the hash of its files is used
    runtime_only: ClassVar[tuple[str, ...]] = ()  # settings that change the speed and not the results

    if TYPE_CHECKING:  # settings are checked when they are read

        def __init__(self, *_: Any, **settings: Any) -> None: ...

    @classmethod
    def fingerprint(cls, *_: Any, **settings: Any) -> str:
        """One hash of the files that these settings name; empty if they name none."""
        return ""

    @classmethod
    def requirements(cls, *_: Any, **settings: Any) -> Iterable[Requirement]:
        """What these settings need to run below `root`: files, models, a key. Only names and places are looked at."""
        return ()


class Trainable(Plugin):
    """What retrievers, readers and language models share: they may be trained on questions, and the first two ask the third."""

    trained_verb: ClassVar[str] = "was trained on"  # a message's words for "has seen the questions of the family"
    family: str = ""  # the split family whose questions it has seen, as `Benchmark.family` gives it
    trained_on: Collection[str] = ()  # SHA-256 of the files with those questions
    question_ids: Collection[str] = ()  # of a file of answers or rankings: its questions, all of the experiment's split

    @classmethod
    def training_family(cls, *_: Any, **settings: Any) -> str:
        """The split family of these settings' weights or demonstrations, without loading them."""
        return ""

    def usage(self) -> StageUsage:
        """What it has asked a language model so far, for the manifest; "retry" counts the questions to ask again."""
        return {}


class Retriever(Trainable):
    """Ranks passages."""

    default_parts: ClassVar[Sequence[Mapping[str, object]]] = ()  # of one over others, if a file names no parts

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """Up to `k` passages for each question, best first; one result a question, in their order.

        A class from outside may return plain lists of hits; `ifqa.plugins.load` wraps them.
        """
        raise NotImplementedError

    def requests(self, questions: Sequence[Question], k: int) -> list[Request]:
        """All requests that `search` will send to a language model, for an estimate."""
        return []


class IndexedRetriever(Retriever):
    """A retriever with an index; its constructor gets the index's folder as `index`."""

    resumes: ClassVar[bool] = False  # whether `build` goes on with what a killed `build` left in the folder

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
        """What `build` into `index`, and a search of it, need before they can run below `root`; as `requirements`."""
        return ()


class Reader(Trainable):
    """Answers questions from passages."""

    concurrent: bool = False  # whether several threads may call `answer` at once
    chunk: ClassVar[int] = 32  # questions in one call of `answer`; their predictions are then written to disk
    takes_scores: ClassVar[bool] = False  # whether `answer` takes `scores`, the retriever's of each passage
    label: str = ""  # printed with its scores
    abstain_threshold: float = (
        0.0  # an opened system gives no answer of less confidence than this, unless it is told to
    )

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

    name: str = ""  # its completions are stored under this name
    label: str = ""  # printed with the scores of a reader or retriever that asks it
    server: str = ""  # scheme, host and port of the server that is asked; goes into the record
    chat: bool = True  # whether it takes messages; else it takes a text and continues it
    concurrent: bool = False  # whether several threads may call `complete` at once
    streams: bool = False  # whether `ifqa.llms.streaming.text_callback()` gets a text while it is generated
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
        """What the requests would take; nothing is sent."""
        return Estimate(len(requests), 0, sum(request.max_tokens for request in requests), None)

    @classmethod
    def refuse_settings(cls, *_: Any, **settings: Any) -> None:
        """Raise IfqaError for settings that no file may hold, such as a URL with a key in it."""

    @classmethod
    def require_access(cls, *_: Any, **settings: Any) -> None:
        """Raise IfqaError before hours of work if there is no key and no completion is kept from before."""

    def check_ready(self) -> None:
        """Raise IfqaError if the model cannot be asked; for example, there is no key."""


@dataclass(frozen=True)
class AnyMeasure:
    """What every measure has: a name, and a score from 0 to 1 whose arguments depend on its kind.

    Attributes:
        name: the measure's name in tables.
        score: see the kinds.
        headline, in_tables: whether it is the benchmark's main measure, and whether tables show it; they show every headline.
        best: whether a high or a low score is better.
        unit: what the bootstrap resamples: "question", "group", or the name of a label.
        about: what it measures, in half a sentence, for the head of a report.
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

    `score` gets a question and its prediction; it gives None if undefined. A failed prediction scores 0 unasked, or 1 if low is
    best.
    """

    score: Callable[[Question, Prediction], float | None]


@dataclass(frozen=True)
class RankingMeasure(AnyMeasure):
    """A score of one ranking at several depths, shown as `name@depth`.

    `score` gets the question, its passages' texts, best first, and the depths; it leaves out those where it is undefined.
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
    """A score of many answers at once: such as the consistency of related questions.

    `score` gets questions and their predictions, failed ones too; it gives None if undefined. A unit that a bootstrap resample
    draws twice gets a second name, also in the ids of its questions.
    """

    score: Callable[[Sequence[Question], Sequence[Prediction]], float | None]


@dataclass(frozen=True)
class ColumnMeasure(AnyMeasure):
    """A score of many answers at once from numbers in the questions' rows; all resamples are computed in one call.

    `columns` are keys of `per_question.jsonl`: measures of answers, "confidence", "failed", "abstained", "gold_read". `score`
    gets the numbers, (questions, columns), NaN where a row lacks one, and how often each question counts in each resample,
    (resamples, questions). It gives (resamples,) scores, NaN where undefined.
    """

    score: Callable[["Numbers", "Numbers"], "Numbers"]
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Subset:
    """Some of a benchmark's questions, which get scores of their own; with `in_tables` also in tables of results."""

    name: str
    holds: Callable[[Question], bool | None]  # None if unknown; a subset that is unknown for all questions is left out
    in_tables: bool = False
    about: str = ""  # for reports


class Benchmark(Plugin):
    """Questions, and how answers to them are scored."""

    name: str = ""
    measures: Sequence[AnyMeasure] = ()  # if empty: the measures and subsets of `ifqa.scoring.scheme.default_scheme`
    subsets: Sequence[Subset] = ()
    groups: str = ""  # what `Question.group` is ("dataset"); there are then scores for each group, and their mean
    folder: Path = Path()  # the folder of its files
    downloads: ClassVar[Mapping[str, tuple[str, str | None]]] = {}  # file in `folder` -> (URL, SHA-256 if known)

    @property
    def splits(self) -> Collection[str]:
        """The names of its splits, as far as it knows them."""
        return ()

    def parts(self, split: str) -> tuple[Sequence[Subset], str]:
        """The `subsets` and `groups` of a split, for a benchmark whose splits differ in them."""
        return self.subsets, self.groups

    def questions(self, split: str) -> list[Question]:
        """The questions of a split, always in the same order."""
        raise NotImplementedError

    def files(self, split: str) -> Sequence[Path]:
        """The files of a split; by their hashes a model knows whether it was trained on them."""
        return ()

    def family(self, split: str) -> str:
        """The family of the split, empty for none: families share questions, so weights of one are not tested on another."""
        return ""

    def training_split(self, split: str) -> str:
        """The training split that a subset of this split depends on; empty for none. If it changes, scores are made again."""
        return ""


@dataclass(frozen=True)
class TrainingData:
    """The questions of a split, and passages retrieved for each.

    Attributes:
        questions: with answers, gold passages, or both; each training skips the questions that lack what it needs.
        rankings: retrieved passages of each question, best first.
        family: "ifqa/full" or "ifqa/few": stored with the weights, since the two families share questions.
        sources: path -> SHA-256 of each file of questions, for the manifest.
        scores: the retriever's score of each passage of `rankings`; empty for a training that needs none.
    """

    questions: Sequence[Question] = ()
    rankings: Sequence[Sequence[Passage]] = ()
    family: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)
    scores: Sequence[Sequence[float]] = ()

    def select(self, numbers: Sequence[int]) -> "TrainingData":
        """Some of the questions, by number, with their passages."""
        scores = [self.scores[n] for n in numbers] if self.scores else ()
        questions, rankings = [self.questions[n] for n in numbers], [self.rankings[n] for n in numbers]
        return replace(self, questions=questions, rankings=rankings, scores=scores)


NO_DATA = TrainingData()


@dataclass(frozen=True)
class TrainerFlag:
    """Marks a setting of a trainer, in its `Annotated` type, that has a flag of its own beside `--set`; with the flag's help."""

    help: str


@dataclass(frozen=True)
class Recipe:
    """Settings of a trainer under a name; `about` says in some words what they are for."""

    about: str
    settings: Mapping[str, object] = field(default_factory=dict)


class Trainer(Plugin):
    """Trains weights into a folder. `ifqa train NAME` is made from its docstring, its settings and these attributes."""

    benchmark: ClassVar[str] = "ifqa"
    split: ClassVar[str] = "full-train"
    #: Its BM25 index gives the passages. If empty, the passages are the texts that come with the questions; if None, always.
    corpus: ClassVar[str | None] = "ifqa-gold-train"
    query: ClassVar[str] = "question"  # how BM25 is asked for them, a key of `ifqa.retrieval.queries.QUERIES`
    folder: ClassVar[str] = ""  # where the weights are written; empty for models/NAME
    retrieved: int = 0  # passages retrieved for a question
    dev: ClassVar[str | None] = None  # the split that chooses the best checkpoint; "" for none, None if it takes none
    takes_experiment: ClassVar[bool] = False  # whether an experiment's retriever may give the passages
    part: ClassVar[str] = ""  # what a part of a split is called: a flag of that name trains on SPLIT/PART alone
    recipes: ClassVar[Mapping[str, Recipe]] = {}  # the first is the default; settings that are given count more
    recipe: str = ""  # the name of the recipe whose settings it has

    def check_data(self, data: TrainingData, folder: Path) -> None:
        """Raise the errors of `train` that need no rankings, before passages are retrieved."""

    def train(self, data: TrainingData, folder: Path, dev: TrainingData = NO_DATA) -> object:
        """Train, and write weights and a manifest; an interrupted training goes on where it was.

        Args:
            data: training questions and their passages.
            folder: weights and manifest are written here.
            dev: questions that choose the best checkpoint, for a trainer that takes them.
        """
        raise NotImplementedError
