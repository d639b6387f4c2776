"""Answers as JSON objects, and back: what a record has comes back, and a text that UTF-8 cannot hold keeps its places."""

from ifqa.records import Answer, Calculation, Hit, How, Passage, Question, Ranking, Step, Term
from ifqa.serve.schemas import AnswerForm, RankingForm

QUESTION = Question("mine/1", "If it had been ten years later, in what year?")
PASSAGE = Passage("p/1", "Mill", "It was finished in 1849.")
TERMS = (Term("1849", "1849", "passage", 19, 23), Term("ten", "10", "question", 18, 21))
HOW = How("p/1", (0, 24), (19, 23), Calculation("1859", "plus", TERMS))
ANSWER = Answer(QUESTION, "1859", (PASSAGE,), "1849", "", HOW, 0.5, "", (Step("mill", ("p/1",)),))


def test_an_answer_comes_back_as_it_was():
    form = AnswerForm.model_validate_json(AnswerForm.of(ANSWER, 0.1).model_dump_json())
    assert form.record(QUESTION) == ANSWER


def test_a_ranking_comes_back_as_it_was():
    ranking = Ranking(QUESTION, (Hit("p/1", 2.5),), (PASSAGE,))
    form = RankingForm.model_validate_json(RankingForm.of(ranking).model_dump_json())
    assert form.record(QUESTION) == ranking


def test_half_a_character_becomes_a_question_mark_in_its_place():
    passage = Passage("p/1", "\ud83d", "\ud83d Ada \udca9 Stone.")
    answer = Answer(Question("a", "If \ud800, who?"), "Ada", (passage,), candidate="\udfff", error="\ud800")
    form = AnswerForm.of(answer, 0)
    assert (form.question, form.supposed.pieces) == ("If ?, who?", ["", "If ?", ", who?"])
    assert (form.evidence[0].title, form.evidence[0].pieces) == ("?", ["? ", "Ada", " ? Stone."])
    assert '"candidate":"?"' in form.model_dump_json()
