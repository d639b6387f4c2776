"""Reorders the best passages of another retriever by a weighted sum of what they share with the question.

There is a learned weight for each of `FEATURES`, none of which says what kind of text a passage is: each is computed from what
a question and a passage share (words, names, numbers, pairs of words) and from the passage's place in the other ranking. None is
a passage's length, title, place in its article, or words that the question lacks. The model's file can be read. It takes
milliseconds a question, and no index of its own. `ifqa train ranker` trains it.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ifqa.errors import IfqaError
from ifqa.models.hub import encoder_folder
from ifqa.protocols import Place
from ifqa.records import Hit, Question, SearchResult
from ifqa.retrieval.parts import Fetch, Part, SinglePart, passages_of
from ifqa.retrieval.queries import content_terms, split_question
from ifqa.settings import Stored, check_stored, checked
from ifqa.storage.files import cached_sha256, read_json, require
from ifqa.storage.resources import BUNDLED

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

OWN = "ifqa"  # the weights that ship with the package
_WEIGHTS = BUNDLED / "weights" / "ranker.json"
_DECIMALS = 6  # of a score: further ones differ with the number of threads
#: The columns of `features`. "near": within `_WINDOW` words. "rare": words weighted by how few of the ranked passages have them.
FEATURES = (
    "score", "standard score", "log rank", "words", "rare words", "supposed words", "asked words", "near words", "names",
    "numbers", "pairs", "triples",
)  # fmt: skip
_WORD = re.compile(r"\w+")
_WINDOW = 25  # words: about a sentence
_COMMON = 0.25  # a pair of words of this weight or less says nothing: "of the"

Weigh = Callable[[str], float]


class Model(Stored):
    """What is stored of a trained ranker."""

    family: str  # the split family of its training questions, such as "ifqa/full"
    sources: dict[str, str]  # file of training questions -> SHA-256
    weights: dict[str, float]  # by the names of FEATURES


def read_model(model: str) -> Model:
    """The ranker of a file; "ifqa" for the one that ships with the package.

    Raises:
        IfqaError: the file is missing, or has weights of other features.
    """
    path = require(_WEIGHTS if model == OWN else Path(model), "ranker")
    mend = "train it again: ifqa train ranker"
    found = check_stored(Model, read_json(path), str(path), mend)
    if set(found.weights) != set(FEATURES):
        different = ", ".join(sorted(set(found.weights) ^ set(FEATURES)))
        raise IfqaError(f"{path}: its features differ from this version's in {different}; {mend}")
    return found


class Ranker(SinglePart):
    """Reorders the passages of its one part, as many as that part returns."""

    version = 2
    default_parts: ClassVar[list[dict[str, Any]]] = [{"name": "bm25", "query": "names", "k": 100}]

    @checked("setting of retriever 'ranker'")
    def __init__(self, *, parts: Sequence[Part], passages: Fetch, model: Place = OWN) -> None:
        """Keep the part, and read the weights.

        Args:
            parts: a single retriever, whose best passages, as many as its `k`, are reordered.
            passages: returns the passages of a list of ids.
            model: "ifqa", or a file `ranker.json` that `ifqa train ranker` wrote.

        Raises:
            IfqaError: there is not exactly one part, or the model is missing or of other features.
        """
        super().__init__("ranker", parts)
        trained = read_model(model)
        self._fetch, self._weigh = passages, weigher(encoder_folder())
        self._weights = [trained.weights[name] for name in FEATURES]
        self.family = trained.family
        self.trained_on = (*trained.sources.values(), *self.trained_on)

    @classmethod
    def trained(cls, model: str = OWN, **_: object) -> str:
        """The split family that the weights were trained on."""
        return read_model(model).family

    @classmethod
    def fingerprint(cls, model: str = OWN, **_: object) -> str:
        """SHA-256 of the model's file."""
        return cached_sha256(require(_WEIGHTS if model == OWN else Path(model), "ranker"))

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """The `k` best passages of each question, best first.

        Raises:
            IfqaError: a passage of the part's ranking is missing.
        """
        rankings = self._part.search(questions)
        return [
            replace(ranking, hits=self._ranked(question, ranking)[:k])
            for question, ranking in zip(questions, rankings, strict=True)
        ]

    def _ranked(self, question: Question, ranking: SearchResult) -> list[Hit]:
        texts = [passage.text for passage in passages_of(ranking, self._fetch)]
        rows = features(asked(question.text, self._weigh), [hit.score for hit in ranking], texts)
        scores = (rows @ self._weights).round(_DECIMALS).tolist()
        order = sorted(range(len(ranking)), key=lambda place: -scores[place])
        return [Hit(ranking[place].passage_id, scores[place]) for place in order]


@lru_cache(maxsize=200_000)
def singular(word: str) -> str:
    """A word without the s of a plural, so that "bands" matches "band"."""
    return word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] != "s" else word


def words(text: str) -> list[str]:
    """The words of a text in lower case, in order, each as `singular` has it."""
    return [singular(word) for word in _WORD.findall(text.lower())]


def weigher(folder: Path) -> Weigh:
    """The weight of a word by its place in an encoder's vocabulary, which has frequent words first; 1 if it is not there.

    Frequency falls with rank by Zipf's law, so the logarithm of the rank stands for the inverse document frequency.
    """
    from ifqa.models.transformer import tokenizer

    vocabulary: dict[str, int] = tokenizer(folder).get_vocab()
    first, last = vocabulary.get("the", 0), max(vocabulary.values())

    def weigh(word: str) -> float:
        rank = max(0, vocabulary.get(word, last) - first)
        return (math.log(2 + rank) / math.log(2 + last - first)) ** 2

    return weigh


@dataclass(frozen=True)
class Asked:
    """What a question asks for, as `features` compares it with passages."""

    weights: dict[str, float]  # of its words
    supposed: frozenset[str]  # words of the if-clause
    asked: frozenset[str]  # words of the main clause
    names: tuple[str, ...]  # each between blanks: " ada lind "
    numbers: frozenset[str]
    pairs: frozenset[tuple[str, ...]]
    triples: frozenset[tuple[str, ...]]


def asked(text: str, weigh: Weigh) -> Asked:
    """Take a question apart; `weigh` gives the weight of a word, from 0 for the most common to 1."""
    own, clauses = words(text), split_question(text)
    weights = {word: weigh(word) for word in own}
    terms = [words(term) for term in content_terms(text)]
    return Asked(
        weights,
        frozenset(words(clauses.supposed)),
        frozenset(words(clauses.question)),
        tuple(f" {' '.join(term)} " for term in terms if not any(word.isdigit() for word in term)),
        frozenset(word for word in own if any(letter.isdigit() for letter in word)),
        frozenset(run for run in pairwise(own) if _says_much(run, weights)),
        frozenset(run for run in zip(own, own[1:], own[2:], strict=False) if _says_much(run, weights)),
    )


def _says_much(run: Sequence[str], weights: dict[str, float]) -> bool:
    return max(weights[word] for word in run) > _COMMON


def features(question: Asked, scores: Sequence[float], texts: Sequence[str]) -> "NDArray[np.float64]":
    """A row of `FEATURES` for each passage of a ranking, float64 [passages, features].

    Args:
        question: the question, taken apart.
        scores: the ranking's own, best first.
        texts: the passages' texts.
    """
    import numpy as np

    found = np.zeros((len(texts), len(FEATURES)))
    if not texts:
        return found
    own = np.array(scores, np.float64)
    found[:, 0] = own / own[0] if own[0] > 0 else 0.0
    found[:, 1] = standard(own)
    found[:, 2] = -np.log(np.arange(1, len(texts) + 1))
    runs = [words(text) for text in texts]
    shared = [question.weights.keys() & set(run) for run in runs]
    counts = Counter(word for some in shared for word in some)
    rare = {
        word: weight * math.log((len(texts) + 1) / counts[word])
        for word, weight in question.weights.items()
        if word in counts
    }
    for row, (run, some) in enumerate(zip(runs, shared, strict=True)):
        found[row, 3] = _share(some, question.weights, question.weights.keys())
        found[row, 4] = _share(some, rare, rare.keys())
        found[row, 5] = _share(some, question.weights, question.supposed)
        found[row, 6] = _share(some, question.weights, question.asked)
        found[row, 7] = _near(run, question.weights)
        joined = f" {' '.join(run)} "
        found[row, 8] = _part([name in joined for name in question.names])
        found[row, 9] = _part([number in some for number in question.numbers])
        found[row, 10] = len(question.pairs.intersection(pairwise(run))) / max(1, len(question.pairs))
        triples = question.triples.intersection(zip(run, run[1:], run[2:], strict=False))
        found[row, 11] = len(triples) / max(1, len(question.triples))
    return found


def standard(values: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """The values with mean 0 and deviation 1; zeros where they are all the same."""
    spread = values.std()
    return (values - values.mean()) / spread if spread > 1e-9 else values * 0.0


def _share(some: set[str], weights: dict[str, float], of: Collection[str]) -> float:
    """The weight of some words, as a share of that of all."""
    total = sum(weights.get(word, 0.0) for word in of)
    return sum(weights.get(word, 0.0) for word in some if word in of) / total if total else 0.0


def _part(true: list[bool]) -> float:
    return sum(true) / len(true) if true else 0.0


def _near(run: list[str], weights: dict[str, float]) -> float:
    """The weight of the question's words in the stretch of `_WINDOW` words that has most of it, as a share of all."""
    places = [(place, word) for place, word in enumerate(run) if word in weights]
    inside: Counter[str] = Counter()
    best = total = 0.0
    first = 0
    for place, word in places:
        if not inside[word]:
            total += weights[word]
        inside[word] += 1
        while places[first][0] <= place - _WINDOW:
            left = places[first][1]
            inside[left] -= 1
            if not inside[left]:
                total -= weights[left]
            first += 1
        best = max(best, total)
    return best / (sum(weights.values()) or 1.0)
