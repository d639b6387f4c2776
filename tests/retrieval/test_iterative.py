"""Iterative retrieval by names: the next query, the end of the search, and the recorded steps."""

import json
import re

from ifqa.protocols import Retriever
from ifqa.records import Answer, Hit, Passage, Question, SearchResult, Step
from ifqa.report.answers import answer_json, show_answer
from ifqa.retrieval.composition import Part
from ifqa.retrieval.fusion import Fusion
from ifqa.retrieval.iterative import Steps

PASSAGES = {
    "mill": "The mill was built by Ann Lee in 1905.",
    "ann": "She, that is Ann Lee, came from Kiel with her brother.",
    "kiel": "The harbour of Kiel was opened.",
    "other": "Nothing of note.",
}
QUESTION = Question("q", "If the mill had burned, who would have wept?")


def words_of(text):
    return set(re.findall(r"\w+", text.lower()))


class WordOverlap(Retriever):
    """Ranks passages by the number of the query's words, and keeps the queries."""

    def __init__(self):
        self.queries = []

    def search(self, questions, k):
        self.queries += [question.text for question in questions]
        return [SearchResult(self._rank(words_of(question.text))[:k]) for question in questions]

    def _rank(self, words):
        scores = {name: len(words & words_of(text)) for name, text in PASSAGES.items()}
        ranked = sorted(scores, key=lambda name: -scores[name])
        return [Hit(name, float(scores[name])) for name in ranked if scores[name] > 1 or "Lee" not in PASSAGES[name]]


def fetch(ids):
    return [Passage(name, "", PASSAGES[name]) for name in ids]


def steps(part, k=2, **settings):
    return Steps(parts=[Part(part, k)], passages=fetch, **{"look": 1, "names": 3, **settings})


def test_the_next_query_adds_names_from_the_best_passage():
    part = WordOverlap()
    [ranking] = steps(part).search([QUESTION], 3)
    assert part.queries == [QUESTION.text, f"{QUESTION.text} Ann Lee"]
    assert {hit.passage_id for hit in ranking} >= {"mill", "ann"}
    assert ranking[0].passage_id == "mill"
    first, second = steps(WordOverlap(), look=3).search([QUESTION], 3)[0].steps
    assert (first.query, "ann" in second.passage_ids) == (QUESTION.text, True)
    assert not set(first.passage_ids) & set(second.passage_ids)


def test_the_search_ends_without_new_names_or_after_the_last_step():
    part, known = WordOverlap(), Question("q", "If Ann Lee had not built the mill, who would have?")
    steps(part, steps=5).search([known], 2)
    [ranking] = steps(part, steps=1).search([QUESTION], 2)
    assert part.queries == [known.text, QUESTION.text]
    assert [hit.passage_id for hit in ranking] == [hit.passage_id for hit in part.search([QUESTION], 2)[0]]


def test_fusion_returns_the_steps_of_its_parts():
    iterative, plain = Part(steps(WordOverlap()), 2), Part(WordOverlap(), 2)
    [ranking] = Fusion(parts=[iterative, plain, iterative], method="rrf").search([QUESTION], 2)
    assert ranking.steps == iterative.search([QUESTION])[0].steps * 2
    assert Fusion(parts=[plain] * 2).search([QUESTION], 2)[0].steps is None


def test_an_answer_shows_its_steps(capsys):
    answer = Answer(QUESTION, "Ann", steps=(Step("one \x1b[31m", ("a", "b")), Step("two", ("c",))))
    show_answer(answer)
    out = capsys.readouterr().out
    assert all(text in out for text in ("Step 1    one", "2 new passages", "Step 2    two · 1 new passage\n"))
    assert "\x1b[31m" not in out
    assert json.loads(json.dumps(answer_json(answer)))["steps"][1] == {"query": "two", "passage_ids": ["c"]}
    assert "steps" not in answer_json(Answer(QUESTION, "Ann"))
