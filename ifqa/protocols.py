"""The roles, typed: what a retriever, a reader, a language model, a benchmark and a measure are, and what each may offer.

A class of ours inherits its role. One from outside needs only the method that makes it what it is (`search`, `answer`,
`complete`, `questions`): `ifqa.plugins.load` gives it the rest from here, once. The keyword arguments of a constructor are
the plugin's settings; those named in GIVEN are no settings, and are handed to a constructor that takes them.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from ifqa.records import Completion, Cost, Estimate, Hit, Passage, Prediction, Question, Request, Spent, Usage

#: index: the folder that `build` filled. passages: passages by their ids. corpus: a store of them all. parts: the retrievers
#: of [[retriever.parts]]. llm: the language model. root: the folder that names and relative paths are looked up in.
#: budget: what the command may spend (`ifqa.llms.money.Budget`).
GIVEN = ("index", "passages", "corpus", "parts", "llm", "root", "budget")

Place = Annotated[str, "a file or folder"]  # a setting that may name one; a relative path counts from `root`
Advance = Callable[[float], None]  # told how many questions, or requests, have been done since the last call


def silent(done: float) -> None:
    """Nobody is told how far the work is."""


class Plugin:
    """What every role has."""

    version: ClassVar[int] = 1  # raised when the plugin does something else; of one from outside its file's hash counts
    not_identity: ClassVar[tuple[str, ...]] = ()  # settings that change how fast it is, and not what it does

    if TYPE_CHECKING:  # settings are checked when they are read

        def __init__(self, *_: Any, **settings: Any) -> None: ...

    @classmethod
    def fingerprint(cls, *_: Any, **settings: Any) -> str:
        """One hash of the files that these settings name; empty where there are none."""
        return ""


class Learned(Plugin):
    """What a retriever and a reader have: they may have seen questions before, and may ask a language model."""

    learnt: ClassVar[str] = "was trained on"  # how a message says that it has seen a family's questions
    family: str = ""  # whose questions it has seen, as `Benchmark.family` gives it
    trained_on: Collection[str] = ()  # SHA-256 of the files they came from

    @classmethod
    def trained(cls, *_: Any, **settings: Any) -> str:
        """The family that these settings' weights or demonstrations are of, told without loading them."""
        return ""

    def usage(self) -> Usage:
        """What it asked of a language model so far, for the manifest; "retry" are the questions to ask again."""
        return {}


class Retriever(Learned):
    """Ranks passages."""

    default_parts: ClassVar[Sequence[Mapping[str, Any]]] = ()  # of one over other retrievers, if none are named

    def search(self, questions: Sequence[Question], k: int) -> list[list[Hit]]:
        """Up to `k` passages of each question, best first."""
        raise NotImplementedError

    def made_passages(self, questions: Sequence[Question]) -> Iterable[Passage] | None:
        """The passages that `search` names for these questions, where it makes them; None where they are the corpus's."""
        return None

    def requests(self, questions: Sequence[Question], k: int) -> list[Request]:
        """All that `search` will ask a language model, for an estimate."""
        return []


class Indexed(Retriever):
    """A retriever over an index, which its constructor gets as `index`."""

    resumes: ClassVar[bool] = False  # whether `build` goes on with what a killed one left in the folder

    @classmethod
    def build(cls, passages: Path, folder: Path, *_: Any, **settings: Any) -> None:
        """Index a folder of passages; the keyword arguments are the settings of [index.NAME]."""
        raise NotImplementedError

    @classmethod
    def forecast(cls, passages: int, *_: Any, **settings: Any) -> Cost | None:
        """What `build` will take of so many passages; None where that is not known."""
        return None

    @classmethod
    def built_from(cls, *_: Any, **settings: Any) -> str:
        """One hash of the files that `build` uses; empty where there are none."""
        return ""


class Reader(Learned):
    """Answers questions from passages."""

    concurrent: bool = False  # whether several threads may call `answer` at once
    chunk: int = 32  # questions at a time, after which their predictions are safe on disk
    label: str = ""  # said with its scores

    def answer(
        self, questions: Sequence[Question], passages: Sequence[Sequence[Passage]], advance: Advance = silent
    ) -> list[Prediction]:
        """One prediction a question, in their order; `passages` are each question's, best first."""
        raise NotImplementedError

    def pace(self) -> float:
        """Passages a second, for an estimate; 0 where that is not known."""
        return 0.0

    def requests(self, questions: Sequence[Question], passages: Sequence[Sequence[Passage]]) -> list[Request]:
        """All that `answer` will ask a language model, for an estimate."""
        return []


class LanguageModel(Plugin):
    """Writes on."""

    name: str = ""  # completions are kept under it
    label: str = ""  # said with the scores of what asks it
    server: str = ""  # scheme, host and port of who is asked; recorded with what comes of it
    chat: bool = True  # whether it takes messages; else a text to go on from
    concurrent: bool = False  # whether several threads may call `complete` at once
    window: int = 4096  # tokens of prompt and answer together

    @property
    def spent(self) -> Spent:
        """What it has used so far."""
        return Spent()

    def complete(self, requests: Sequence[Request], advance: Advance = silent) -> list[Completion]:
        """Their completions, in order; one that fails has an `error`."""
        raise NotImplementedError

    def count(self, text: str) -> int:
        """Tokens of a text, or more; a token is a byte at least."""
        return len(text.encode("utf-8", "replace"))

    def estimate(self, requests: Sequence[Request]) -> Estimate:
        """What they would take; nothing is sent."""
        return Estimate(len(requests), 0, sum(one.max_tokens for one in requests), None)

    @classmethod
    def refuse(cls, *_: Any, **settings: Any) -> None:
        """Raise IfqaError for settings that may stand in no file, such as an address with a key in it."""

    def ready(self) -> None:
        """Raise IfqaError where nothing could be asked: no key, say."""


@dataclass(frozen=True)
class Measure:
    """A score of one answer, 0 to 1; None where it is not defined for the question.

    Attributes:
        name: as tables call it.
        of: the score of a question's prediction, which is never a failed one: those score 0, or 1 where low is best.
        headline: whether it is the one to look at first.
        in_tables: whether tables of results show it, as they do a headline.
        best: which end is good.
        unit: what the bootstrap resamples: "question", "group", or the name of a label.
        about: what it is, in half a sentence, for the head of a report.
    """

    name: str
    of: Callable[[Question, Prediction], float | None]
    headline: bool = False
    in_tables: bool = False
    best: Literal["high", "low"] = "high"
    unit: str = "question"
    about: str = ""


@dataclass(frozen=True)
class RankingMeasure:
    """A score of one ranking at several depths, 0 to 1, called `name@depth`; else as Measure.

    `of` is given the question, the texts of its passages, best first, and the depths; it leaves out a depth, or all, where
    it is not defined. Tables of results show the depths of `tables`, under `title` where that is not the name.
    """

    name: str
    of: Callable[[Question, Sequence[str], Sequence[int]], Mapping[int, float]]
    depths: tuple[int, ...] = (1, 5, 10, 20, 50, 100)
    tables: tuple[int, ...] = ()
    headline: bool = False
    best: Literal["high", "low"] = "high"
    unit: str = "question"
    title: str = ""
    about: str = ""


@dataclass(frozen=True)
class SetMeasure:
    """A score of many answers at once, 0 to 1: a calibration error, the consistency of several questions; else as Measure.

    `of` is given questions and their predictions, failed ones among them, and is None where it is not defined. In a resample
    a unit that was drawn again has another name, in its questions' ids too, so that a measure which goes unit by unit
    counts it again.
    """

    name: str
    of: Callable[[Sequence[Question], Sequence[Prediction]], float | None]
    headline: bool = False
    in_tables: bool = False
    best: Literal["high", "low"] = "high"
    unit: str = "question"
    about: str = ""


AnyMeasure = Measure | RankingMeasure | SetMeasure


@dataclass(frozen=True)
class Subset:
    """Some of a benchmark's questions, over which scores are given apart; `in_tables`: in tables of results too.

    `holds` is None where it cannot be told; scores leave a subset out that none of their questions tells of.
    `about` says which they are, for the head of a report: "the questions with a numeric answer".
    """

    name: str
    holds: Callable[[Question], bool | None]
    in_tables: bool = False
    about: str = ""


class Benchmark(Plugin):
    """Questions, and how answers to them are scored."""

    name: str = ""
    measures: Sequence[AnyMeasure] = ()  # none: those of `ifqa.scoring.declared.defaults`, with its subsets
    subsets: Sequence[Subset] = ()
    groups: str = ""  # what `Question.group` is ("dataset"); scores are then given by group, and averaged over groups
    folder: Path = Path()  # where its files lie
    downloads: ClassVar[
        Mapping[str, tuple[str, str | None]]
    ] = {}  # file in `folder` -> (URL, SHA-256 where it is known)

    @property
    def splits(self) -> Collection[str]:
        """Those it knows by name."""
        return ()

    def questions(self, split: str) -> list[Question]:
        """The questions of a split, in an order that stays."""
        raise NotImplementedError

    def files(self, split: str) -> Sequence[Path]:
        """The files that a split is read from, by whose hashes a model knows whether it was trained on them."""
        return ()

    def family(self, split: str) -> str:
        """What shares questions with this split: who learnt from one family is not tested on another. Empty: nothing."""
        return ""

    def training(self, split: str) -> str:
        """The split that a subset of this one is told by, so that scores are made again when it changes. Empty: none."""
        return ""
