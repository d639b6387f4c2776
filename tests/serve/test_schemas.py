"""Answers as JSON objects: they have what the record has, and a text that UTF-8 cannot hold keeps
its places.
"""

from ifqa.records import Answer, Calculation, Evidence, Explanation, Hit, Question, Ranking, Term
from ifqa.serve.schemas import AnswerForm, RankingForm

QUESTION = Question("mine/1", "If it had been ten years later, in what year?")
PASSAGE = Evidence("p/1", "Mill", "It was finished in 1849.")
TERMS = (Term("1849", "1849", "passage", 19, 23), Term("ten", "10", "question", 18, 21))
HOW = Explanation("p/1", (0, 24), (19, 23), Calculation("1859", "plus", TERMS))
ANSWER = Answer(QUESTION, "1859", (PASSAGE,), "1849", "", HOW, 0.5)


def test_an_answer_has_all_of_its_record():
    term = {"text": "1849", "value": "1849", "source": "passage", "start": 19, "end": 23}
    ten = {"text": "ten", "value": "10", "source": "question", "start": 18, "end": 21}
    line = '1859 = 1849 (passage) + 10 (question: "ten")'
    pieces = ["It was finished in ", "1849", "."]
    clause = "If it had been ten years later"
    assert AnswerForm.of(ANSWER, 0.1).model_dump(mode="json") == {
        "id": "mine/1",
        "question": QUESTION.text,
        "supposed": {"text": clause, "pieces": ["", clause, ", in what year?"]},
        "outcome": "answered",
        "answer": "1859",
        "confidence": 0.5,
        "answerable": None,
        "candidate": "",
        "factual": "1849",
        "abstention": "",
        "error": "",
        "quote": None,
        "change": "",
        "steps": [],
        "how": {
            "passage_id": "p/1",
            "sentence": [0, 24],
            "span": [19, 23],
            "items": [],
            "origin": "read",
            "pieces": pieces,
            "calculation": {"result": "1859", "rule": "plus", "terms": [term, ten], "line": line},
            "pictures": [],
        },
        "evidence": [
            {"id": "p/1", "title": "Mill", "text": PASSAGE.text, "source": None, "pieces": pieces}
        ],
        "uncalibrated": "",
        "note": "",
        "seconds": 0.1,
    }


def test_a_ranking_has_its_passages_with_the_score_of_each_rank():
    ranking = Ranking(QUESTION, (Hit("p/1", 2.5),), (PASSAGE,))
    assert RankingForm.of(ranking).model_dump() == {
        "id": "mine/1",
        "question": QUESTION.text,
        "passages": [
            {
                "id": "p/1",
                "title": "Mill",
                "text": PASSAGE.text,
                "source": None,
                "rank": 1,
                "score": 2.5,
            }
        ],
    }


def test_half_a_character_becomes_a_question_mark_in_its_place():
    passage = Evidence("p/1", "\ud83d", "\ud83d Ada \udca9 Stone.")
    answer = Answer(
        Question("a", "If \ud800, who?"), "Ada", (passage,), candidate="\udfff", error="\ud800"
    )
    form = AnswerForm.of(answer, 0)
    assert form.supposed is not None
    assert (form.question, form.supposed.pieces) == ("If ?, who?", ["", "If ?", ", who?"])
    assert (form.evidence[0].title, form.evidence[0].pieces) == ("?", ["? ", "Ada", " ? Stone."])
    assert '"candidate":"?"' in form.model_dump_json()
