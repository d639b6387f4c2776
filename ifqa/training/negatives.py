"""Hard negatives: passages that a retriever takes for right and that are not."""

from collections.abc import Sequence

from ifqa.records import Passage, Question
from ifqa.scoring.measures.covers import covers
from ifqa.scoring.measures.has_answer import has_answer


def hard_negatives(question: Question, ranking: Sequence[Passage], most: int) -> list[Passage]:
    """The first `most` passages of a ranking that neither cover a gold passage nor hold an answer.

    DPR's rule (Karpukhin et al. 2020, section 3.2: top passages of BM25 which do not contain the answer); gold passages
    are recognised by their words besides, because a counterfactual answer need not stand in them.
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
