"""Reranks the passages of another retriever with a learned linear model of lexical match features.

The `FEATURES` are computed from what the question and the passage share (words, names, numbers,
pairs and triples of words) and from the passage's score and rank. None describes the passage alone:
no length, title, position in the article, or words that the question lacks. The ranker takes
milliseconds per question and needs no index. `ifqa train ranker` trains it.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from ifqa.clauses import split_question
from ifqa.errors import ConfigError
from ifqa.models.places import minilm_folder
from ifqa.models.span_encoder import load_tokenizer
from ifqa.protocols import PathSetting
from ifqa.records import Hit, Question, SearchResult
from ifqa.retrieval import composition
from ifqa.retrieval.composition import FetchPassages, Part, SinglePart
from ifqa.retrieval.queries import content_terms
from ifqa.settings import PluginSettings, StoredModel, parse_stored
from ifqa.storage.files import cached_sha256, read_json, require_file
from ifqa.storage.resources import BUNDLED

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BUNDLED_MODEL = "ifqa"  # the weights that ship with the package
_DECIMALS = 6  # decimals of a score; further digits depend on the number of threads
#: The columns of `compute_features`. "near": within `_WINDOW` words. "rare": weighted by inverse
#: frequency in the ranking.
FEATURES = (
    "score",
    "standard score",
    "log rank",
    "words",
    "rare words",
    "supposed words",
    "asked words",
    "near words",
    "names",
    "numbers",
    "pairs",
    "triples",
)
_WORD = re.compile(r"\w+")
_WINDOW = 25  # words; about a sentence
_COMMON_WEIGHT = 0.25  # pairs and triples without a heavier word, such as "of the", are ignored

WordWeight = Callable[[str], float]


class RankerWeights(StoredModel):
    """A trained ranker."""

    family: str  # the split family of its training questions, such as "ifqa/full"
    sources: dict[str, str]  # file of training questions -> SHA-256
    weights: dict[str, float]  # name in FEATURES -> weight


def read_ranker(model: str) -> RankerWeights:
    """The ranker in a file; "ifqa" is the bundled ranker.

    Raises IfqaError if it is missing or has other features.
    """
    path = _model_path(model)
    remedy = "train it again: ifqa train ranker"
    ranker = parse_stored(RankerWeights, read_json(path), str(path), remedy)
    if different := ", ".join(sorted(set(ranker.weights) ^ set(FEATURES))):
        raise ConfigError(
            f"{path}: its features are not those of this version of ifqa (they differ in "
            f"{different}); {remedy}"
        )
    return ranker


def _model_path(model: str) -> Path:
    return require_file(
        BUNDLED / "weights" / "ranker.json" if model == BUNDLED_MODEL else Path(model), "ranker"
    )


class Ranker(SinglePart):
    """Reranks all passages of its part."""

    version = 2
    takes = ("parts", "passages")
    default_parts: ClassVar = composition.DEFAULT_FIRST_STAGE
    model_settings: ClassVar = {"model": "ifqa-ranker"}

    class Settings(PluginSettings):
        model: PathSetting = BUNDLED_MODEL
        """The weights: "ifqa" for those that ship with ifqa, or a file `ranker.json` from `ifqa
        train ranker`.
        """

    def __init__(
        self, settings: Settings, *, parts: Sequence[Part], passages: FetchPassages
    ) -> None:
        """Read the weights.

        Raises IfqaError if there is not exactly one part, or the model is missing or has other
        features.
        """
        super().__init__("ranker", parts)
        ranker = read_ranker(settings.model)
        self._fetch = passages
        self._weigh = load_word_weights(minilm_folder())
        self._weights = [ranker.weights[name] for name in FEATURES]
        self.family = ranker.family
        self.trained_on = (*ranker.sources.values(), *self.trained_on)

    @classmethod
    def training_family(cls, settings: Settings, root: Path) -> str:
        """The split family that the weights were trained on."""
        return read_ranker(settings.model).family

    @classmethod
    def fingerprint(cls, settings: Settings, root: Path) -> str:
        """SHA-256 of the model's file."""
        return cached_sha256(_model_path(settings.model))

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """The `k` best passages of each question, best first."""
        rankings = []
        for question, ranking in zip(questions, self._part.search(questions), strict=True):
            texts = [passage.text for passage in composition.look_up_passages(ranking, self._fetch)]
            rows = compute_features(
                question.text, self._weigh, [hit.score for hit in ranking], texts
            )
            scores = (rows @ self._weights).round(_DECIMALS).tolist()
            hits = [Hit(hit.passage_id, score) for hit, score in zip(ranking, scores, strict=True)]
            rankings.append(replace(ranking, hits=sorted(hits, key=lambda hit: -hit.score)[:k]))
        return rankings


def split_words(text: str) -> list[str]:
    """The lower-case words of a text, without a plural s, so that "bands" matches "band"."""
    words = _WORD.findall(text.lower())
    return [
        word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] != "s" else word
        for word in words
    ]


def load_word_weights(folder: Path) -> WordWeight:
    """A function that weighs a word by its rank in an encoder's vocabulary, from frequent to rare.

    Unknown words weigh 1.

    Frequency falls with rank by Zipf's law, so the logarithm of the rank approximates inverse
    document frequency.
    """
    vocabulary: dict[str, int] = load_tokenizer(folder).get_vocab()
    first = vocabulary.get("the", 0)
    last = max(vocabulary.values())

    def weigh(word: str) -> float:
        rank = max(0, vocabulary.get(word, last) - first)
        return (math.log(2 + rank) / math.log(2 + last - first)) ** 2

    return weigh


def compute_features(
    question: str, weigh: WordWeight, scores: Sequence[float], texts: Sequence[str]
) -> "NDArray[np.float64]":
    """A row of `FEATURES` for each passage of a ranking, float64 [passages, features].

    `weigh` gives a word's weight, from almost 0 for the most common word to 1; scores and texts are
    the ranking's, best first.
    """
    import numpy as np

    rows = np.zeros((len(texts), len(FEATURES)))
    if not texts:
        return rows
    question_words = split_words(question)
    clauses = split_question(question)
    weights = {word: weigh(word) for word in question_words}
    supposition = set(split_words(clauses.supposition))
    main = set(split_words(clauses.question))
    terms = [split_words(term) for term in content_terms(question)]
    names = [f" {' '.join(term)} " for term in terms if not any(word.isdigit() for word in term)]
    numbers = {word for word in question_words if any(letter.isdigit() for letter in word)}

    def drop_common(ngrams: Iterable[tuple[str, ...]]) -> set[tuple[str, ...]]:
        return {ngram for ngram in ngrams if max(weights[word] for word in ngram) > _COMMON_WEIGHT}

    pairs = drop_common(pairwise(question_words))
    triples = drop_common(_triples(question_words))
    score_array = np.array(scores, np.float64)
    rows[:, 0] = score_array / score_array[0] if score_array[0] > 0 else 0.0
    rows[:, 1] = composition.standardise(score_array)
    rows[:, 2] = -np.log(np.arange(1, len(texts) + 1))
    passages = [split_words(text) for text in texts]
    overlaps = [weights.keys() & set(passage) for passage in passages]
    counts = Counter(word for overlap in overlaps for word in overlap)
    rare = {
        word: weights[word] * math.log((len(texts) + 1) / counts[word])
        for word in weights
        if word in counts
    }
    for row, passage, overlap in zip(rows, passages, overlaps, strict=True):
        text = f" {' '.join(passage)} "
        row[3:] = (
            _weight_share(overlap, weights),
            _weight_share(overlap, rare),
            _weight_share(
                overlap & supposition, {word: weights.get(word, 0.0) for word in supposition}
            ),
            _weight_share(overlap & main, {word: weights.get(word, 0.0) for word in main}),
            _best_window_share(passage, weights),
            sum(name in text for name in names) / max(1, len(names)),
            len(numbers & overlap) / max(1, len(numbers)),
            len(pairs.intersection(pairwise(passage))) / max(1, len(pairs)),
            len(triples.intersection(_triples(passage))) / max(1, len(triples)),
        )
    return rows


def _triples(words: Sequence[str]) -> Iterable[tuple[str, ...]]:
    return zip(words, words[1:], words[2:], strict=False)


def _weight_share(words: Iterable[str], weights: Mapping[str, float]) -> float:
    """The share of `words` in the total weight."""
    return sum(weights[word] for word in words) / (sum(weights.values()) or 1.0)


def _best_window_share(words: list[str], weights: Mapping[str, float]) -> float:
    """The highest share of the question's word weight within any `_WINDOW` words of a passage."""
    matches = [(position, word) for position, word in enumerate(words) if word in weights]
    windows = (
        {word for position, word in matches[n : n + _WINDOW] if position < start + _WINDOW}
        for n, (start, _) in enumerate(matches)
    )
    return max((_weight_share(window, weights) for window in windows), default=0.0)
