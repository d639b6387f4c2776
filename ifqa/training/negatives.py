"""Hard negatives: passages that a retriever ranks high and that are not relevant."""

from collections.abc import Sequence

from ifqa.records import Passage, Question
from ifqa.scoring.measures.covers import covers
from ifqa.scoring.measures.has_answer import has_answer


def hard_negatives(question: Question, ranking: Sequence[Passage], most: int) -> list[Passage]:
    """The first `most` passages of a ranking that neither cover a gold passage nor hold an answer.

    DPR's rule is: top passages of BM25 that do not contain the answer (Karpukhin et al. 2020, section 3.2). Here passages
    that cover a gold passage are skipped too, because a gold passage need not contain the counterfactual answer.
    """
    wrong: list[Passage] = []
    for passage in ranking:
        if len(wrong) == most:
            break
        if has_answer(passage.text, question.answers):
            continue
        if not any(covers(passage.text, gold) for gold in question.gold_passages):
            wrong.append(passage)
    return wrong
