"""Several steps of retrieval: what is asked next, when it ends, and that every step is recorded and shown."""

import json
import re

from refusals import refused

from ifqa.plugins import load_plugin
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


class Words(Retriever):
    """Ranks passages by how many of the query's words they have, and keeps the queries."""

    def __init__(self):
        self.asked = []

    def search(self, questions, k):
        self.asked += [question.text for question in questions]
        return [
            SearchResult(self._ranked(set(re.findall(r"\w+", question.text.lower())))[:k]) for question in questions
        ]

    def _ranked(self, words):
        scores = {name: len(words & set(re.findall(r"\w+", text.lower()))) for name, text in PASSAGES.items()}
        ranked = sorted(scores, key=lambda name: -scores[name])
        return [Hit(name, float(scores[name])) for name in ranked if scores[name] > 1 or "Lee" not in PASSAGES[name]]


def steps(words, k=2, **settings):
    def fetch(ids):
        return [Passage(name, "", PASSAGES[name]) for name in ids]

    return Steps(parts=[Part(words, k)], passages=fetch, **{"look": 1, "names": 3, **settings})


def test_the_names_of_the_best_passage_are_asked_next():
    words = Words()
    retriever = steps(words)
    (ranking,) = retriever.search([QUESTION], 3)
    assert words.asked == [QUESTION.text, f"{QUESTION.text} Ann Lee"]
    assert {hit.passage_id for hit in ranking} >= {"mill", "ann"}
    assert ranking[0].passage_id == "mill"
    first, second = steps(Words(), look=3).search([QUESTION], 3)[0].steps
    assert (first.query, "ann" in second.passage_ids) == (QUESTION.text, True)
    assert not set(first.passage_ids) & set(second.passage_ids)


def test_the_search_ends_where_nothing_new_is_named_or_the_steps_are_done():
    words = Words()
    known = Question("q", "If Ann Lee had not built the mill, who would have?")
    steps(words, steps=5).search([known], 2)
    [first_alone] = steps(words, steps=1).search([QUESTION], 2)
    assert words.asked == [known.text, QUESTION.text]
    assert [hit.passage_id for hit in first_alone] == [hit.passage_id for hit in Words().search([QUESTION], 2)[0]]


def test_other_retrievers_pass_the_steps_on():
    def twice():
        return Part(steps(Words()), 2)

    fused = Fusion(parts=[twice(), Part(Words(), 2), twice()], method="rrf")
    (ranking,) = fused.search([QUESTION], 2)
    (alone,) = steps(Words()).search([QUESTION], 2)
    assert ranking.steps == alone.steps * 2
    assert Fusion(parts=[Part(Words(), 2)] * 2).search([QUESTION], 2)[0].steps is None


def test_an_answer_shows_its_steps(capsys):
    answer = Answer(QUESTION, "Ann", steps=(Step("one \x1b[31m", ("a", "b")), Step("two", ("c",))))
    show_answer(answer)
    out = capsys.readouterr().out
    assert "Step 1    one" in out
    assert "2 new passages" in out
    assert "Step 2    two · 1 new passage\n" in out
    assert "\x1b[31m" not in out
    assert json.loads(json.dumps(answer_json(answer)))["steps"][1] == {"query": "two", "passage_ids": ["c"]}
    assert "steps" not in answer_json(Answer(QUESTION, "Ann"))


def test_settings_out_of_range_are_refused():
    for name, value in (("steps", 0), ("look", 0), ("step_weight", -1)):
        with refused(name):
            steps(Words(), **{name: value})
    assert load_plugin("retriever", "steps").default_parts == [{"name": "bm25"}]
