"""The typed roles of plugins (retriever, reader, language model, benchmark, measure, trainer), with
every method and default.

A class of ifqa inherits its role, declares its `Settings`, and is constructed with them:
`plugin(settings, index=..., llm=...)`. A benchmark has no settings, and gets `root` alone. A class
from outside needs one method (`search`, `answer`, `complete`, `questions`, `train`, `passages`);
`ifqa.outside_plugins` adds the rest, and makes its `Settings` from the arguments of its
constructor.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

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
from ifqa.settings import PathSetting as PathSetting  # plugins from outside import it from here
from ifqa.settings import PluginSettings, setting_fields

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    Numbers = NDArray[float64]

#: What a plugin may get besides its settings. index: the folder that `build` filled. passages: a
#: function, ids -> passages. corpus: all passages. parts: the retrievers of [[retriever.parts]].
#: llm: the language model. root: the folder of relative paths. budget: an
#: `ifqa.llms.budget.Budget`. questions: a function, a benchmark and its splits -> the questions of
#: each. search: a function, a `Search`.
Resource = Literal[
    "index", "passages", "corpus", "parts", "llm", "root", "budget", "questions", "search"
]
#: What a text that was cut at its token limit lacks: nothing that matters, perhaps the end of its
#: answer, or surely the answer, because it is nothing but thoughts unless it has a mark of them.
Cut = Literal["no", "in text", "in thoughts"]
RankedPassages = Sequence[Sequence[Passage]]  # each question's passages, best first
#: Searches the corpus with the experiment's own retriever: texts and a number k -> for each text,
#: the k best passages, best first.
Search = Callable[[Sequence[str], int], list[list[Passage]]]
# Its argument: questions or requests finished since the last call
ProgressCallback = Callable[[float], None]


def no_progress(done: float) -> None:
    """A `ProgressCallback` that reports nothing."""


@dataclass(frozen=True)
class Requirement:
    """A file, model or key that a command needs.

    `remedy` says how to get it, and is empty if it is present.
    """

    name: str
    remedy: str = ""

    @property
    def present(self) -> bool:
        return not self.remedy

    def __str__(self) -> str:
        return (
            f"  missing  {self.name}: {self.remedy}" if self.remedy else f"  here     {self.name}"
        )


class Plugin:
    """The base of all roles.

    `settings` are always an instance of the class's own `Settings`, with paths joined to `root`,
    the folder of relative names.
    """

    Settings: ClassVar[type[PluginSettings]] = PluginSettings
    #: The keyword arguments of its constructor, besides the settings.
    takes: ClassVar[tuple[Resource, ...]] = ()
    # Raise it when results change; outside classes are identified by their files' hash
    version: ClassVar[int] = 1
    runtime_only: ClassVar[tuple[str, ...]] = ()  # settings that change the speed, not the results
    #: Settings of earlier versions -> the default, with which files may still name them, and what
    #: to do instead.
    retired: ClassVar[Mapping[str, tuple[object, str]]] = {}

    def __init__(self, settings: Any = None, **resources: Any) -> None:
        """Open the plugin with its settings, and with the resources that it `takes`."""

    @classmethod
    def draws(cls, settings: Any) -> bool:
        """Whether the results depend on a setting `seed`, which `--seed` then sets."""
        return "seed" in setting_fields(cls.Settings)

    @classmethod
    def fingerprint(cls, settings: Any, root: Path) -> str:
        """A hash of the files that these settings name; empty without such files."""
        return ""

    @classmethod
    def requirements(cls, settings: Any, root: Path) -> Iterable[Requirement]:
        """The files, models and keys that these settings need.

        The method only checks that they exist.
        """
        return ()


class Trainable(Plugin):
    """The base of retrievers, readers and language models, which may be trained on questions."""

    # How a message says that it has seen the family's questions
    trained_verb: ClassVar[str] = "was trained on"
    #: Settings, of the plugin or of an index's `build`, that name a model -> the model's name if
    #: they are empty. What the models have seen is looked up in the ledger
    #: (`ifqa.models.ledger`).
    model_settings: ClassVar[Mapping[str, str]] = {}
    family: str = ""  # the split family of its training questions, as `Benchmark.family` returns it
    trained_on: Collection[str] = ()  # SHA-256 of the files with its training questions
    # SHA-256 of the files with the questions that its confidence was fitted on
    calibrated_on: Collection[str] = ()
    # In the plugin's file of answers or rankings; all must be in the split
    question_ids: Collection[str] = ()

    @classmethod
    def training_family(cls, settings: Any, root: Path) -> str:
        """The split family that the weights or demonstrations come from, without loading them."""
        return ""

    def usage(self) -> StageUsage:
        """Its use of a language model so far, for the manifest."""
        return {}


class Retriever(Trainable):
    """Ranks passages."""

    # Questions per call of `search`; after each call their rankings are written to disk
    chunk: ClassVar[int] = 64
    # Whether it searches the corpus for any text, as a reader that takes `search` does. Others
    # know a benchmark's questions alone, or write passages of their own.
    takes_any_text: ClassVar[bool] = True
    # For a retriever over others if its section has none
    default_parts: ClassVar[Sequence[Mapping[str, Any]]] = ()

    @classmethod
    def rewrites(cls, settings: Any) -> bool:
        """Whether it rewrites questions by `ifqa.retrieval.queries`, whose version then counts."""
        return False

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """One result per question, in order, with up to `k` passages, best first.

        Scores are finite and never rise, no passage comes twice, and no id has white space.

        A class from outside may return plain lists of hits; `ifqa.plugins.load_plugin` wraps them.
        """
        raise NotImplementedError

    def requests(self, questions: Sequence[Question], k: int) -> list[Request]:
        """All requests that `search` will send to a language model, for an estimate."""
        return []


class IndexedRetriever(Retriever):
    """A retriever with an index; its constructor gets the index's folder as `index`."""

    BuildSettings: ClassVar[type[PluginSettings]] = PluginSettings  # those of [index.NAME]
    resumes: ClassVar[bool] = False  # whether `build` resumes an interrupted build

    @classmethod
    def build(cls, passages: Path, folder: Path, settings: Any) -> None:
        """Index the passages in a folder into `folder`; the settings are `BuildSettings`."""
        raise NotImplementedError

    @classmethod
    def forecast(cls, passages: int, settings: Any) -> BuildCost | None:
        """The cost of `build` for that many passages; None if unknown."""
        return None

    @classmethod
    def expected_cost(cls, passages: int, settings: Any) -> BuildCost | None:
        """The cost of `build` by published or earlier measured rates, where `forecast` fails.

        None if unknown.
        """
        return None

    @classmethod
    def build_fingerprint(cls, settings: Any) -> str:
        """A hash of the files that `build` uses, such as a model's; empty if it uses none."""
        return ""

    @classmethod
    def build_requirements(cls, index: Path, settings: Any, root: Path) -> Iterable[Requirement]:
        """What building and searching `index` require, like `requirements`."""
        return ()


class Reader(Trainable):
    """Answers questions from passages."""

    concurrent: bool = False  # whether several threads may call `answer` at once
    # Questions per call of `answer`; after each call their predictions are written to disk
    chunk: ClassVar[int] = 32
    # Whether `answer` takes `scores`, the retriever's score of each passage
    takes_scores: ClassVar[bool] = False
    label: str = ""  # printed with its scores
    abstain_threshold: float = 0.0  # by default an opened system abstains below this confidence
    answerable_threshold: float = 0.0  # and below this probability that a passage has the answer
    # Over a user's own documents it takes these two in place of those, if they were fitted
    document_thresholds: tuple[float, float] | None = None
    # Whether an answer may have a confidence; without one, no threshold can withhold it
    gives_confidence: bool = True
    # Why its answers have no confidence, and how to get one; empty if they have, or never will
    uncalibrated: str = ""
    language: str = ""  # the only one that it answers in by default, as ISO 639-1; empty for any

    @property
    def advice(self) -> str:
        """How to get more right answers over documents, shown with an answer that is withheld."""
        return ""

    def answer(
        self,
        questions: Sequence[Question],
        passages: RankedPassages,
        advance: ProgressCallback = no_progress,
    ) -> list[Prediction]:
        """One prediction per question, in order.

        `passages` has a list for each question, best first.
        """
        raise NotImplementedError

    def requests(self, questions: Sequence[Question], passages: RankedPassages) -> list[Request]:
        """All requests that `answer` will send to a language model, for an estimate."""
        return []


class LanguageModel(Trainable):
    """Completes prompts."""

    name: str = ""  # completions are stored under this name
    label: str = ""  # printed with the scores of a reader or retriever that uses it
    server: str = ""  # scheme, host and port of the server, for the manifest
    sent: str = ""  # the form of the requests, for the manifest; one reading has one form
    max_tokens: int = 0  # most tokens of an answer, in place of the prompt's limit; 0 for that
    thinking_tokens: int = 0  # room for thoughts, beside that for the answer
    cut: Cut = "no"  # what a text that ends at its limit may lack
    chat: bool = True  # whether it takes messages; else it continues a text
    concurrent: bool = False  # whether several threads may call `complete` at once
    takes_schema: bool = False  # whether it keeps a completion to `Request.schema`
    takes_tools: bool = False  # whether it may call the functions of `Request.tools`
    # Whether `ifqa.llms.streaming.text_callback()` gets the text while it is generated
    streams: bool = False
    weighs_answers: bool = False  # whether it has `log_likelihoods`
    window: int = 4096  # tokens of prompt and completion together

    @property
    def spent(self) -> TokenUsage:
        """Requests, tokens and US dollars used so far."""
        return TokenUsage()

    def complete(
        self, requests: Sequence[Request], advance: ProgressCallback = no_progress
    ) -> list[Completion]:
        """One completion per request, in order.

        The completion of a failed request has an `error`.
        """
        raise NotImplementedError

    def log_likelihoods(self, request: Request, texts: Sequence[str]) -> list[float]:
        """The log probability of each text as the whole completion.

        Empty if it cannot be computed.
        """
        raise NotImplementedError

    def count(self, text: str) -> int:
        """An upper bound on a text's number of tokens: its bytes, because a token has at least one
        byte.
        """
        return len(text.encode("utf-8", "replace"))

    def estimate(self, requests: Sequence[Request]) -> Estimate:
        """The calls, tokens and cost of the requests; nothing is sent."""
        return Estimate(len(requests), 0, sum(request.max_tokens for request in requests), None)

    def affordable(self, groups: Sequence[Sequence[Request]]) -> tuple[int, str]:
        """How many groups of requests, from the first, fit under the caps together, and what to say
        of the next one; all, and nothing, without a cap.

        Stored requests take nothing. Nothing is reserved.
        """
        return len(groups), ""

    def completion_tokens(self, prompt_limit: int) -> int:
        """The limit of a completion, thoughts included, for a prompt whose answers have up to
        `prompt_limit` tokens.
        """
        return (self.max_tokens or prompt_limit) + self.thinking_tokens

    @classmethod
    def served_by(cls, settings: Any) -> str:
        """The name of the server that these settings ask, which belongs to a reading's inputs.

        Empty if none is asked.
        """
        return ""

    @classmethod
    def conversion(cls, settings: Any, root: Path) -> str:
        """What opening the model would first write to the disk, such as dequantised weights.

        Empty if nothing.
        """
        return ""

    @classmethod
    def refuse_settings(cls, settings: Any) -> None:
        """Raise ConfigError for settings that must not be written to a file, such as a URL with a
        key.
        """

    @classmethod
    def require_access(cls, settings: Any, root: Path) -> None:
        """Raise MissingInput early if there is neither a key nor a cached completion."""

    def check_ready(self) -> None:
        """Raise MissingInput if the model cannot be used, such as for lack of a key."""

    def check_servers(self) -> Iterable[Requirement]:
        """Its servers and what each offers, for `ifqa check`; they are asked."""
        return ()


@dataclass(frozen=True)
class AnyMeasure:
    """The base of measures: a name, and a score from 0 to 1 whose arguments depend on the kind."""

    name: str  # shown in tables
    score: Callable[..., Any]  # see the subclasses
    # Whether it is the benchmark's main measure
    headline: bool = field(default=False, kw_only=True)
    # Whether tables show it; they always show the headline
    in_tables: bool = field(default=False, kw_only=True)
    best: Literal["high", "low"] = field(default="high", kw_only=True)
    # The bootstrap's unit: "question", "group", "passages" (all questions with the same gold
    # passages), or a label's name
    unit: str = field(default="question", kw_only=True)
    about: str = field(default="", kw_only=True)  # what it measures, for the head of a report
    # Whether it decides nothing: it is never the headline, has no expected value, and no gate tests
    # it
    advisory: bool = field(default=False, kw_only=True)

    @property
    def keys(self) -> list[str]:
        """Its keys in rows and scores."""
        return [self.name]


@dataclass(frozen=True)
class Measure(AnyMeasure):
    """A score of one answer.

    `score` gets a question and its prediction; None means undefined. It is not called for a failed
    prediction, which scores 0, or 1 if low is best.
    """

    score: Callable[[Question, Prediction], float | None]


@dataclass(frozen=True)
class RankingMeasure(AnyMeasure):
    """A score of one ranking at several depths, shown as `name@depth`.

    `score` gets the question, the texts of its passages, best first, and the depths; depths without
    a score are omitted. Tables show the depths in `tables`, under `title` or else the name.
    """

    score: Callable[[Question, Sequence[str], Sequence[int]], Mapping[int, float]]
    depths: tuple[int, ...] = (1, 5, 10, 20, 50, 100)
    tables: tuple[int, ...] = ()
    title: str = ""

    @property
    def keys(self) -> list[str]:
        return [f"{self.name}@{depth}" for depth in self.depths]


@dataclass(frozen=True)
class SetMeasure(AnyMeasure):
    """A score of many answers at once, such as the consistency of related questions.

    `score` gets questions and their predictions, including failed ones, and returns None if
    undefined. If a bootstrap resample draws a unit twice, the second copy and its questions get new
    names.
    """

    score: Callable[[Sequence[Question], Sequence[Prediction]], float | None]
    # Whether it is the mean over units, all of the same size; units without a score do not count
    mean_of_units: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class ColumnMeasure(AnyMeasure):
    """A score of many answers at once from numbers in their rows; one call computes all resamples.

    `columns` are keys of `per_question.jsonl`: measures of answers, "confidence", "failed",
    "abstained", "gold_read"; or measures of sets that are means of units. `score` gets the
    numbers, (questions, columns), with NaN for missing ones, and the count of each question in each
    resample, (resamples, questions). It returns the scores, (resamples,), with NaN where undefined.
    """

    score: Callable[["Numbers", "Numbers"], "Numbers"]
    columns: tuple[str, ...]
    # False if resamples score higher than the sample itself, as the calibration error does
    has_interval: bool = True
    # The column, of 0 and 1, of the two classes that it compares: with few questions in either, it
    # has no interval
    classes: str = ""


@dataclass(frozen=True)
class Subset:
    """A part of a benchmark's questions with its own scores.

    `in_tables` shows them in tables of results.
    """

    name: str
    # None if unknown; a subset unknown for all questions is left out
    holds: Callable[[Question], bool | None]
    in_tables: bool = False
    about: str = ""  # for reports


@dataclass(frozen=True)
class CountTable:
    """A table of counts: each row has as many cells as there are columns."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    note: str = ""  # the text below the table; each line is a paragraph
    # The terminal dims rows whose first cell starts with this: published values
    published: str = ""


@dataclass(frozen=True)
class Counts:
    """What `ifqa stats` prints: tables, and with --json the `content`, or else the tables."""

    tables: Sequence[CountTable]
    content: object = None  # JSON data


class Benchmark(Plugin):
    """Questions, and how answers to them are scored."""

    name: str = ""
    # If empty: the measures and subsets of `ifqa.scoring.scheme.default_scheme`
    measures: Sequence[AnyMeasure] = ()
    subsets: Sequence[Subset] = ()
    # The meaning of `Question.group` ("dataset"); each group then has scores, which are also
    # averaged
    groups: str = ""
    folder: Path = Path()  # the folder of its files
    # File in `folder` -> (URL, SHA-256 if known)
    downloads: ClassVar[Mapping[str, tuple[str, str | None]]] = {}

    @property
    def splits(self) -> Collection[str]:
        """The names of its known splits."""
        return ()

    def parts(self, split: str) -> tuple[Sequence[Subset], str]:
        """The `subsets` and `groups` of a split, for a benchmark whose splits differ in them."""
        return self.subsets, self.groups

    def unit(self, split: str) -> str:
        """The unit of measures that name none, as in `AnyMeasure.unit`."""
        return "question"

    def questions(self, split: str) -> list[Question]:
        """The questions of a split, always in the same order."""
        raise NotImplementedError

    def files(self, split: str) -> Sequence[Path]:
        """The files of a split; their hashes show whether a model was trained on them."""
        return ()

    def family(self, split: str) -> str:
        """The split's family, or empty.

        Families share questions, so one family's weights are not tested on another.
        """
        return ""

    def training_split(self, split: str) -> str:
        """The training split that a subset of this split depends on, or empty.

        If it changes, scores are recomputed.
        """
        return ""

    def counts(self) -> Mapping[str, Callable[..., Counts]]:
        """Verb of `ifqa stats` -> a function that counts, such as what a published table counts.

        Its docstring is the verb's help. Its parameters are the verb's arguments and options, as
        Typer reads them: an option for each that has a default.
        """
        return {}

    def fetcher(self) -> Callable[..., Iterable[str]] | None:
        """What `ifqa data` calls in place of fetching `downloads`; None for these.

        It does the work and yields lines to print. Its docstring and parameters are read as those
        of `counts`.
        """
        return None


class PassageSource(Plugin):
    """Passages of a corpus: a section [[passages.sources]]."""

    unit: ClassVar[str] = "page"  # the noun for its entries in messages
    needs: ClassVar[str] = ""  # the requirement to show in a table of results
    is_user_folder: ClassVar[bool] = False  # whether answers name it as the searched folder

    def passages(self) -> Iterable[Passage]:
        """The passages, always in the same order; no two may have the same id."""
        raise NotImplementedError

    @classmethod
    def splits_of(cls, settings: Any) -> list[tuple[str, str]]:
        """Benchmark and split of the questions that a source with these settings reads."""
        return []


@dataclass(frozen=True)
class TrainingData:
    """The questions of a split, and passages retrieved for each.

    A trainer skips questions that lack what it needs.
    """

    questions: Sequence[Question] = ()
    rankings: RankedPassages = ()
    # "ifqa/full" or "ifqa/few"; stored with the weights, because the families share questions
    family: str = ""
    # Path -> SHA-256 of each file of questions
    sources: Mapping[str, str] = field(default_factory=dict)
    # The retriever's scores of `rankings`; empty if the trainer needs none
    scores: Sequence[Sequence[float]] = ()

    def select(self, indices: Sequence[int]) -> "TrainingData":
        """The questions at these indices, with their passages."""
        scores = [self.scores[n] for n in indices] if self.scores else ()
        questions = [self.questions[n] for n in indices]
        rankings = [self.rankings[n] for n in indices]
        return replace(self, questions=questions, rankings=rankings, scores=scores)


NO_DATA = TrainingData()


class TrainerFlag:
    """Marks a trainer's setting, in its `Annotated` type, as one with its own flag.

    The first paragraph of the setting's docstring describes the flag.
    """


@dataclass(frozen=True)
class Recipe:
    """Named settings of a trainer; `about` is their purpose in a few words."""

    about: str
    settings: Mapping[str, object] = field(default_factory=dict)


class Trainer(Plugin):
    """Trains weights into a folder.

    `ifqa train NAME` is generated from its docstring, settings and these attributes.
    """

    benchmark: ClassVar[str] = "ifqa"
    split: ClassVar[str] = "full-train"
    #: The corpus whose BM25 index supplies passages. If empty, they are the question's own texts;
    #: if None, there is no --corpus.
    corpus: ClassVar[str | None] = "ifqa-gold-train"
    query: ClassVar[str] = "question"  # BM25's query, a key of `ifqa.retrieval.queries.QUERIES`
    folder: ClassVar[str] = ""  # the folder of the weights; empty for models/NAME
    retrieved: int = 0  # passages retrieved per question
    # The split that chooses the best checkpoint; "": no split, None: unsupported
    dev: ClassVar[str | None] = None
    # Whether an experiment's retriever may supply the passages
    takes_experiment: ClassVar[bool] = False
    # The name of a split's parts: a flag of that name trains on SPLIT/PART alone
    part: ClassVar[str] = ""
    # The first is the default; explicit settings override it
    recipes: ClassVar[Mapping[str, Recipe]] = {}
    recipe: str = ""  # the name of the recipe in use
    # That of the experiment, for a trainer that fits it
    opened_reader: Reader | None = None

    @property
    def fits_reader(self) -> bool:
        """Whether it fits an experiment's reader, which is then opened and given to it."""
        return False

    def check_data(self, dataset: TrainingData, folder: Path) -> None:
        """Check the questions before passages are retrieved."""

    def train(self, dataset: TrainingData, folder: Path, dev: TrainingData = NO_DATA) -> object:
        """Train, and write weights and a manifest into `folder`; an interrupted training resumes.

        A trainer with the attribute `dev` chooses its best checkpoint by the questions `dev`.
        """
        raise NotImplementedError
