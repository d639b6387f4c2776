"""Relevance judgements from gold passages, of a run or of a whole corpus; and gold passages from judgements."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ifqa.config.corpus import load_corpus
from ifqa.config.experiment import Experiment
from ifqa.corpus.store import PassageStore, fetch
from ifqa.errors import IfqaError
from ifqa.formats.qrels import write_qrels
from ifqa.identities import gold_id
from ifqa.pipeline.provenance import up_to_date_passages
from ifqa.pipeline.upstream import passages_of
from ifqa.progress import bar
from ifqa.records import Hit, Question
from ifqa.scoring.coverage import GoldGrams
from ifqa.scoring.measures.covers import COVERED_SHARE, covers


def judge_run(
    experiment: Experiment, questions: Sequence[Question], rankings: Sequence[Sequence[Hit]], to: Path
) -> str:
    """Write qrels of a run: a retrieved passage that covers a gold passage is relevant (1), any other is not (0).

    Passages that were not retrieved are not judged, except gold passages that the corpus holds under their ids `gold/…`:
    they are relevant whether retrieved or not. Returns what was written, as text.
    """
    judged: dict[str, dict[str, int]] = {}
    held = set[str]()
    if experiment.corpus:
        golds = {gold_id(text) for question in questions for text in question.gold_passages}
        held = set(PassageStore(load_corpus(experiment.corpus).folder / "passages").find(golds))
    for question, passages in zip(questions, passages_of(experiment, rankings), strict=True):
        if question.gold_passages:
            judged[question.id] = {
                one.id: int(any(covers(one.text, gold) for gold in question.gold_passages)) for one in passages
            } | {name: 1 for text in question.gold_passages if (name := gold_id(text)) in held}
    but = ", except gold passages of the corpus" if held else ""
    return _write_judged(to, questions, judged) + f"; passages that the run did not find are not judged{but}"


def judge_corpus(name: str, questions: Sequence[Question], to: Path) -> str:
    """Write qrels over a whole corpus: passages that cover a gold passage (1); passages not listed are not relevant."""
    corpus = load_corpus(name)
    up_to_date_passages(corpus)
    asking: dict[str, list[str]] = {}
    for question in questions:
        for text in dict.fromkeys(question.gold_passages):
            asking.setdefault(text, []).append(question.id)
    judged: dict[str, dict[str, int]] = {question.id: {} for question in questions if question.gold_passages}
    grams, golds, store = GoldGrams(list(asking)), list(asking), PassageStore(corpus.folder / "passages")
    with bar(f"judging {name}", len(store)) as advance:
        for number, passage in enumerate(store, start=1):
            for gold, share in grams.shares(passage.text).items():
                for question_id in asking[golds[gold]] if share >= COVERED_SHARE else []:
                    judged[question_id][passage.id] = 1
            if number % 1_000 == 0:
                advance(1_000)
    return _write_judged(to, questions, judged) + f"; every other passage of {name} is not relevant"


def _write_judged(to: Path, questions: Sequence[Question], judged: dict[str, dict[str, int]]) -> str:
    # Tools average over the questions that qrels name, so a question without a line would silently not be counted.
    for question in questions:
        if question.id in judged and not judged[question.id]:
            judged[question.id] = {gold_id(question.gold_passages[0]): 0}
    if not judged:
        raise IfqaError(f"qrels judge by gold passages, and none of the {len(questions):,} questions has one")
    lines = write_qrels(to, judged)
    relevant = sum(sum(one.values()) for one in judged.values())
    without = sum(not any(one.values()) for one in judged.values())
    unknown_ = f"; {len(questions) - len(judged):,} left out: no gold passage" if len(judged) < len(questions) else ""
    return (
        f"{to}: {lines:,} judgements, {relevant:,} relevant, of {len(judged):,} questions, {without:,} of them without a "
        f"relevant passage{unknown_}"
    )


def with_gold(questions: Sequence[Question], judged: dict[str, dict[str, int]], corpus: str) -> list[Question]:
    """The questions with the texts of their relevant passages, in the judgements' order, as their gold passages."""
    if questions and not judged.keys() & {question.id for question in questions}:
        found = next(iter(judged), "nothing")
        raise IfqaError(f"--qrels judges other questions: wanted ids like {questions[0].id}, found {found}")
    up_to_date_passages(load_corpus(corpus))
    stores = [PassageStore(load_corpus(corpus).folder / "passages")]
    relevant = [[name for name, rel in judged.get(one.id, {}).items() if rel > 0] for one in questions]
    texts = [tuple(passage.text for passage in fetch(stores, names)) for names in relevant]
    return [replace(one, gold_passages=gold) for one, gold in zip(questions, texts, strict=True)]
