"""The measures of CausalQA's authors: ROUGE-L (precision, recall and F1 of the longest common
subsequence of words; Lin 2004), and their token F1.

ROUGE-L is computed with the package `rouge-score`, as in finetuning/measures.py of
webis-de/coling22-benchmark-for-causal-question-answering at fc72cfd: both texts get SQuAD's
normalisation, the package splits them into words of a-z and 0-9 without a stemmer ("Shōkaku" is
"sh" and "kaku"; a text without such words scores 0 even against itself), and the gold answer with
the best F1 gives all three scores. Only the average differs: they take the median of bootstrapped
means, which changes with the seed; we take the mean.
"""

from collections.abc import Sequence
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

from ifqa.protocols import Measure
from ifqa.records import Prediction, Question
from ifqa.scoring.measures.exact_match import f1, normalize, require_golds

if TYPE_CHECKING:
    from rouge_score.rouge_scorer import RougeScorer


class RougeL(NamedTuple):
    """The longest common subsequence as a share of the answer and of the gold answer, and their
    harmonic mean; 0..1.
    """

    precision: float
    recall: float
    f1: float


def rouge_l(answer: str, golds: Sequence[str]) -> RougeL:
    """ROUGE-L against the gold answer with the best F1."""
    require_golds(golds)
    return _best(answer, tuple(golds))


@lru_cache(maxsize=64)  # precision, recall and F1 of a question are requested in a row
def _best(answer: str, golds: tuple[str, ...]) -> RougeL:
    score = _scorer().score_multi([normalize(gold) for gold in golds], normalize(answer))["rougeL"]
    return RougeL(float(score.precision), float(score.recall), float(score.fmeasure))


@cache
def _scorer() -> "RougeScorer":
    from rouge_score.rouge_scorer import RougeScorer  # imports nltk, which takes a second

    return RougeScorer(["rougeL"])


def _score(question: Question, prediction: Prediction, part: str) -> float:
    score: float = getattr(rouge_l(prediction.answer, question.answers), part)
    return score


def _authors_f1(question: Question, prediction: Prediction) -> float:
    """Token F1 as the authors compute it: 0 for an answer that normalises to nothing.

    `_f1` in finetuning/measures.py of webis-de/coling22-benchmark-for-causal-question-answering at
    fc72cfd.
    """
    return f1(prediction.answer, question.answers) if normalize(prediction.answer) else 0.0


_ABOUT = (
    "F1 of the longest common subsequence of answer and gold answer, as "
    "the authors of CausalQA compute it"
)
ROUGE_L = Measure("ROUGE-L", partial(_score, part="f1"), headline=True, about=_ABOUT)
ROUGE_L_PRECISION = Measure("ROUGE-L-P", partial(_score, part="precision"))
ROUGE_L_RECALL = Measure("ROUGE-L-R", partial(_score, part="recall"))
AUTHORS_F1 = Measure("F1", _authors_f1, in_tables=True)
