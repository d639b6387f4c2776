"""Answers and rankings of a system as the objects of the API, and back."""

from collections.abc import Sequence
from typing import Literal

from ifqa.how import Calculation, How, Term
from ifqa.records import Answer, Hit, Passage, Question, Ranking, Step
from ifqa.retrieval.clauses import split_question
from ifqa.serve.forms import (
    AnswerForm,
    CalculationForm,
    Evidence,
    HowForm,
    PassageForm,
    Ranked,
    RankingForm,
    StepForm,
    Supposed,
    TermForm,
)


def answer_form(answer: Answer, seconds: float) -> AnswerForm:
    """An answer as an object of the API."""
    outcome = _outcome(answer)
    return AnswerForm(
        id=_whole(answer.question.id),
        question=_whole(answer.question.text),
        supposed=_supposed(answer.question.text),
        outcome=outcome,
        answer=_whole(answer.text),
        confidence=answer.confidence,
        candidate=_whole(answer.candidate),
        factual=_whole(answer.factual),
        error=_whole(answer.why_not.removeprefix("no answer: ")) if outcome == "failed" else "",
        how=_how_form(answer),
        evidence=[Evidence(**_passage(one), pieces=[*map(_whole, answer.marked(one))]) for one in answer.evidence],
        steps=[StepForm(query=_whole(one.query), passage_ids=[*map(_whole, one.passage_ids)]) for one in answer.steps],
        seconds=round(seconds, 3),
    )


def _outcome(answer: Answer) -> Literal["answered", "abstained", "failed"]:
    if answer.text:
        return "answered"
    return "failed" if answer.error or not answer.candidate else "abstained"


def _supposed(question: str) -> Supposed | None:
    text = split_question(question).presupposition
    start = question.find(text)
    if not text or start < 0:
        return None
    pieces = [question[:start], text, question[start + len(text) :]]
    return Supposed(text=_whole(text), pieces=[*map(_whole, pieces)])


def _how_form(answer: Answer) -> HowForm | None:
    how = answer.how
    passage = next((one for one in answer.evidence if how and one.id == how.passage_id), None)
    if how is None or passage is None:
        return None
    found = how.calculation
    calculation = None
    if found:
        terms = [
            TermForm(text=_whole(one.text), value=_whole(one.value), source=one.source, start=one.start, end=one.end)
            for one in found.terms
        ]
        calculation = CalculationForm(
            result=_whole(found.result), rule=found.rule, terms=terms, line=_whole(str(found))
        )
    pieces = [*map(_whole, how.pieces(passage.text, sentence=True))]
    return HowForm(
        passage_id=how.passage_id, sentence=how.sentence, span=how.span, pieces=pieces, calculation=calculation
    )


def ranking_form(ranking: Ranking) -> RankingForm:
    """A ranking as an object of the API."""
    several = enumerate(ranking, start=1)
    passages = [Ranked(**_passage(one), rank=rank, score=score) for rank, (one, score) in several]
    return RankingForm(id=_whole(ranking.question.id), question=_whole(ranking.question.text), passages=passages)


def passage_form(passage: Passage) -> PassageForm:
    """A passage as an object of the API."""
    return PassageForm(**_passage(passage))


def _passage(passage: Passage) -> dict[str, str]:
    return {"id": _whole(passage.id), "title": _whole(passage.title), "text": _whole(passage.text)}


def _whole(text: str) -> str:
    """The text with a "?" for each half of a surrogate pair, which JSON in UTF-8 cannot hold; places stay the same."""
    return text.encode("utf-8", "replace").decode()


def answer_of_form(form: AnswerForm, question: Question) -> Answer:
    """The answer that a server gave to a question."""
    return Answer(
        question,
        form.answer,
        _passages(form.evidence),
        form.factual,
        form.error,
        _how(form.how),
        form.confidence,
        form.candidate,
        tuple(Step(one.query, tuple(one.passage_ids)) for one in form.steps),
    )


def _how(form: HowForm | None) -> How | None:
    if form is None:
        return None
    found, calculation = form.calculation, None
    if found:
        terms = tuple(Term(one.text, one.value, one.source, one.start, one.end) for one in found.terms)
        calculation = Calculation(found.result, found.rule, terms)
    return How(form.passage_id, form.sentence, form.span, calculation)


def ranking_of_form(form: RankingForm, question: Question) -> Ranking:
    """The ranking that a server gave for a question."""
    hits = tuple(Hit(one.id, one.score) for one in form.passages)
    return Ranking(question, hits, _passages(form.passages))


def _passages(several: Sequence[PassageForm]) -> tuple[Passage, ...]:
    return tuple(Passage(one.id, one.title, one.text) for one in several)
