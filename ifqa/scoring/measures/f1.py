"""Token F1."""

from collections import Counter
from collections.abc import Sequence

from ifqa.protocols import Measure
from ifqa.scoring.measures.exact_match import best, normalize


def f1(answer: str, golds: Sequence[str]) -> float:
    """Harmonic mean of precision and recall over the normalised tokens, counted with repetition; 0..1.

    When answer or gold normalises to nothing, F1 is 1.0 if both do and 0.0 otherwise, as in SQuAD v2
    (evaluate-v2.0.py:71-73) and torchmetrics; Atlas and CausalQA give 0.0 there. Unlike SQuAD v2, a gold that
    normalises to nothing (IfQA has the answer "A") is kept.

    Raises:
        IfqaError: there is no gold answer.
    """
    return best(_token_f1, answer, golds)


def _token_f1(answer: str, gold: str) -> float:
    answer_tokens, gold_tokens = answer.split(), gold.split()
    if not answer_tokens or not gold_tokens:
        return float(answer_tokens == gold_tokens)
    shared = (Counter(answer_tokens) & Counter(gold_tokens)).total()
    return 2 * shared / (len(answer_tokens) + len(gold_tokens))


F1 = Measure("F1", lambda question, prediction: f1(prediction.answer, question.answers), in_tables=True)
#: As the authors of CausalQA compute it: 0 for an answer that normalises to nothing, whatever the gold answer is
#: (finetuning/measures.py of webis-de/coling22-benchmark-for-causal-question-answering at fc72cfd, `_f1`).
CAUSALQA_F1 = Measure(
    "F1",
    lambda question, prediction: f1(prediction.answer, question.answers) if normalize(prediction.answer) else 0.0,
    in_tables=True,
)
