"""Reorders the best passages of another retriever by a weighted sum of what they share with the question.

There is a learned weight for each of `FEATURES`, none of which says what kind of text a passage is: each is computed from what
a question and a passage share (words, names, numbers, pairs of words) and from the passage's place in the other ranking. None is
a passage's length, title, place in its article, or words that the question lacks. The model's file can be read. It takes
milliseconds a question, and no index of its own. `ifqa train ranker` trains it.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from ifqa.errors import IfqaError
from ifqa.models.hub import minilm_folder
from ifqa.protocols import PathSetting
from ifqa.records import Hit, Question, SearchResult
from ifqa.retrieval.composition import (
    DEFAULT_FIRST_STAGE,
    FetchPassages,
    Part,
    SinglePart,
    look_up_passages,
    standardise,
)
from ifqa.retrieval.queries import content_terms, split_question
from ifqa.settings import StoredModel, check_arguments, parse_stored
from ifqa.storage.files import cached_sha256, read_json, require_file
from ifqa.storage.resources import BUNDLED

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BUNDLED_MODEL = "ifqa"  # the weights that ship with the package
_DECIMALS = 6  # of a score: further ones differ with the number of threads
#: The columns of `features`. "near": within `_WINDOW` words. "rare": words weighted by how few of the ranked passages have them.
FEATURES = (
    "score", "standard score", "log rank", "words", "rare words", "supposed words", "asked words", "near words", "names",
    "numbers", "pairs", "triples",
)  # fmt: skip
_WORD = re.compile(r"\w+")
_WINDOW = 25  # words: about a sentence
_COMMON_WEIGHT = 0.25  # a pair of words of this weight or less says nothing: "of the"

WordWeight = Callable[[str], float]


class RankerWeights(StoredModel):
    """What is stored of a trained ranker."""

    family: str  # the split family of its training questions, such as "ifqa/full"
    sources: dict[str, str]  # file of training questions -> SHA-256
    weights: dict[str, float]  # by the names of FEATURES


def read_ranker(model: str) -> RankerWeights:
    """The ranker of a file; "ifqa" for the one that ships with the package.

    Raises:
        IfqaError: the file is missing, or has weights of other features.
    """
    path, mend = _model_path(model), "train it again: ifqa train ranker"
    stored = parse_stored(RankerWeights, read_json(path), str(path), mend)
    if different := ", ".join(sorted(set(stored.weights) ^ set(FEATURES))):
        raise IfqaError(f"{path}: its features differ from this version's in {different}; {mend}")
    return stored


def _model_path(model: str) -> Path:
    return require_file(BUNDLED / "weights" / "ranker.json" if model == BUNDLED_MODEL else Path(model), "ranker")


class Ranker(SinglePart):
    """Reorders the passages of its one part, as many as that part returns."""

    version = 2
    default_parts: ClassVar = DEFAULT_FIRST_STAGE

    @check_arguments("setting of retriever 'ranker'")
    def __init__(self, *, parts: Sequence[Part], passages: FetchPassages, model: PathSetting = BUNDLED_MODEL) -> None:
        """Keep the part, and read the weights: "ifqa", or a file `ranker.json` that `ifqa train ranker` wrote.

        Raises:
            IfqaError: there is not exactly one part, or the model is missing or of other features.
        """
        super().__init__("ranker", parts)
        trained = read_ranker(model)
        self._fetch, self._weigh = passages, load_word_weights(minilm_folder())
        self._weights = [trained.weights[name] for name in FEATURES]
        self.family = trained.family
        self.trained_on = (*trained.sources.values(), *self.trained_on)

    @classmethod
    def training_family(cls, model: str = BUNDLED_MODEL, **_: object) -> str:
        """The split family that the weights were trained on."""
        return read_ranker(model).family

    @classmethod
    def fingerprint(cls, model: str = BUNDLED_MODEL, **_: object) -> str:
        """SHA-256 of the model's file."""
        return cached_sha256(_model_path(model))

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """The `k` best passages of each question, best first."""
        rankings = []
        for question, ranking in zip(questions, self._part.search(questions), strict=True):
            texts = [passage.text for passage in look_up_passages(ranking, self._fetch)]
            rows = compute_features(question.text, self._weigh, [hit.score for hit in ranking], texts)
            scores = (rows @ self._weights).round(_DECIMALS).tolist()
            hits = [Hit(hit.passage_id, score) for hit, score in zip(ranking, scores, strict=True)]
            rankings.append(replace(ranking, hits=sorted(hits, key=lambda hit: -hit.score)[:k]))
        return rankings


def split_words(text: str) -> list[str]:
    """The words of a text in lower case, in order, each without the s of a plural, so that "bands" matches "band"."""
    return [
        word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] != "s" else word
        for word in _WORD.findall(text.lower())
    ]


def load_word_weights(folder: Path) -> WordWeight:
    """The weight of a word by its place in an encoder's vocabulary, which has frequent words first; 1 if it is not there.

    Frequency falls with rank by Zipf's law, so the logarithm of the rank stands for the inverse document frequency.
    """
    from ifqa.models.transformer import load_tokenizer

    vocabulary: dict[str, int] = load_tokenizer(folder).get_vocab()
    first, last = vocabulary.get("the", 0), max(vocabulary.values())

    def weigh(word: str) -> float:
        rank = max(0, vocabulary.get(word, last) - first)
        return (math.log(2 + rank) / math.log(2 + last - first)) ** 2

    return weigh


def compute_features(
    question: str, weigh: WordWeight, scores: Sequence[float], texts: Sequence[str]
) -> "NDArray[np.float64]":
    """A row of `FEATURES` for each passage of a ranking, float64 [passages, features].

    Args:
        question: its text.
        weigh: gives the weight of a word, from 0 for the most common to 1.
        scores: the ranking's own, best first.
        texts: the passages' texts.
    """
    import numpy as np

    rows = np.zeros((len(texts), len(FEATURES)))
    if not texts:
        return rows
    own, clauses = split_words(question), split_question(question)
    weights = {word: weigh(word) for word in own}
    supposition, main = set(split_words(clauses.supposition)), set(split_words(clauses.question))
    terms = [split_words(term) for term in content_terms(question)]
    names = [f" {' '.join(term)} " for term in terms if not any(word.isdigit() for word in term)]
    numbers = {word for word in own if any(letter.isdigit() for letter in word)}

    def telling(runs: Iterable[tuple[str, ...]]) -> set[tuple[str, ...]]:
        return {run for run in runs if max(weights[word] for word in run) > _COMMON_WEIGHT}

    pairs, triples = telling(pairwise(own)), telling(_triples(own))
    ranked = np.array(scores, np.float64)
    rows[:, 0] = ranked / ranked[0] if ranked[0] > 0 else 0.0
    rows[:, 1] = standardise(ranked)
    rows[:, 2] = -np.log(np.arange(1, len(texts) + 1))
    runs = [split_words(text) for text in texts]
    shared = [weights.keys() & set(run) for run in runs]
    counts = Counter(word for common in shared for word in common)
    rare = {word: weights[word] * math.log((len(texts) + 1) / counts[word]) for word in weights if word in counts}
    for row, run, common in zip(rows, runs, shared, strict=True):
        joined = f" {' '.join(run)} "
        row[3:] = (
            _weight_share(common, weights),
            _weight_share(common, rare),
            _weight_share(common & supposition, {word: weights.get(word, 0.0) for word in supposition}),
            _weight_share(common & main, {word: weights.get(word, 0.0) for word in main}),
            _best_window_share(run, weights),
            sum(name in joined for name in names) / max(1, len(names)),
            len(numbers & common) / max(1, len(numbers)),
            len(pairs.intersection(pairwise(run))) / max(1, len(pairs)),
            len(triples.intersection(_triples(run))) / max(1, len(triples)),
        )
    return rows


def _triples(run: Sequence[str]) -> Iterable[tuple[str, ...]]:
    return zip(run, run[1:], run[2:], strict=False)


def _weight_share(common: Iterable[str], weights: Mapping[str, float]) -> float:
    """The weight of some words, as a share of that of all."""
    return sum(weights[word] for word in common) / (sum(weights.values()) or 1.0)


def _best_window_share(run: list[str], weights: Mapping[str, float]) -> float:
    """The weight of the question's words in the stretch of `_WINDOW` words that has most of it, as a share of all."""
    places = [(place, word) for place, word in enumerate(run) if word in weights]
    stretches = (
        {word for place, word in places[n : n + _WINDOW] if place < start + _WINDOW}
        for n, (start, _) in enumerate(places)
    )
    return max((_weight_share(stretch, weights) for stretch in stretches), default=0.0)
