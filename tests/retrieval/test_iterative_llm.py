"""Several steps of retrieval by a language model: what it is shown, what it asks for, and how the steps end."""

from dataclasses import replace

import pytest
from refusals import refused

from ifqa.protocols import LanguageModel, Retriever
from ifqa.records import Completion, Hit, Passage, Question, SearchResult, TokenUsage
from ifqa.retrieval.composition import Part
from ifqa.retrieval.iterative import LlmSteps

QUESTION = Question("q", "If the mill had burned, who would have wept?")
OTHER = Question("r", "If the harbour had closed, who would have left?")


class Finds(Retriever):
    """Finds one passage for each query, named after its last word, and keeps the queries."""

    def __init__(self):
        self.asked = []

    def search(self, questions, k):
        self.asked += [question.text for question in questions]
        return [
            SearchResult([Hit(question.text.split()[-1].strip("?"), 1.0), Hit("common", 0.5)]) for question in questions
        ]


class Says(LanguageModel):
    """Completes the prompts with the texts given, in their order, and keeps the prompts."""

    name, window = "says", 4000

    def __init__(self, *texts):
        self.texts, self.prompts = list(texts), []

    @property
    def spent(self):
        return TokenUsage(calls=len(self.prompts))

    def complete(self, requests, advance=None):
        self.prompts += [request.messages[-1][1] for request in requests]
        messages = [self.texts.pop(0) for _ in requests]
        return [
            message if isinstance(message, Completion) else Completion(message, 10, 2, "stop") for message in messages
        ]


def steps(model, part=None, **settings):
    def fetch(ids):
        return [Passage(name, "", f"This tells of {name}.") for name in ids]

    return LlmSteps(llm=model, parts=[Part(part or Finds(), 5)], passages=fetch, **settings)


def queries_of(ranking):
    return [step.query for step in ranking.steps]


def test_the_model_is_shown_what_was_found_and_asks_for_the_next():
    model, part = Says("What is so: Ann built it.\nSearch: Ann Lee", "Search: enough"), Finds()
    retriever = steps(model, part)
    [ranking] = retriever.search([QUESTION], 3)
    assert part.asked == [QUESTION.text, "Ann Lee"]
    assert [hit.passage_id for hit in ranking] == ["common", "wept", "Lee"]
    assert "This tells of wept." in model.prompts[0]
    assert "This tells of Lee." not in model.prompts[0]
    assert "This tells of Lee." in model.prompts[1]
    assert f"Searched so far:\n- {QUESTION.text}\n- Ann Lee\n" in model.prompts[1]
    first, second = ranking.steps
    assert (first.passage_ids, second.query, second.passage_ids) == (("wept", "common"), "Ann Lee", ("Lee",))


SAID = ["Search: enough", "Search: **Enough.**", "search: ann  LEE", f"Search: {QUESTION.text}"]
LACKING = ["", "Ann Lee, I think.", "Search:", "Search: \n\n", "<think>Search: Ann"]


@pytest.mark.parametrize(
    ("message", "unparsed"), [*((message, 0) for message in SAID), *((message, 1) for message in LACKING)]
)
def test_enough_a_repeated_query_or_none_ends_the_steps(message, unparsed):
    retriever = steps(Says("Search: Ann Lee", message), steps=9)
    [ranking] = retriever.search([QUESTION], 3)
    assert queries_of(ranking) == [QUESTION.text, "Ann Lee"]
    assert [hit.passage_id for hit in ranking] == ["common", "wept", "Lee"]
    assert retriever.usage()["unparsed"] == unparsed


def test_a_failed_request_or_nothing_new_ends_the_steps():
    retriever = steps(Says(Completion(error="HTTP 500"), Completion(error="not asked: the cap is reached")))
    assert [len(ranking) for ranking in retriever.search([QUESTION, OTHER], 3)] == [2, 2]
    usage = retriever.usage()
    assert (usage["retry"], usage["not_asked"], usage["unparsed"]) == (2, 1, 0)
    [ranking] = steps(Says("Search: who wept", "Search: more"), steps=9).search([QUESTION], 3)
    assert queries_of(ranking) == [QUESTION.text, "who wept"]


def test_there_are_no_more_steps_than_are_set_however_much_it_asks():
    model, part = Says(*(f"Search: thing {n}" for n in range(9))), Finds()
    retriever = steps(model, part, steps=4)
    retriever.search([QUESTION], 3)
    assert part.asked == [QUESTION.text, "thing 0", "thing 1", "thing 2"]
    assert len(model.prompts) == retriever.usage()["spent"]["calls"] == 3
    assert retriever.usage()["took"] == (30, 6)


def test_questions_go_their_own_ways_and_are_asked_together():
    model = Says("Search: Ann", "Search: enough", "Search: Ben")
    retriever = steps(model, steps=3)
    first, second = retriever.search([QUESTION, OTHER], 3)
    assert queries_of(first) == [QUESTION.text, "Ann", "Ben"]
    assert queries_of(second) == [OTHER.text]
    assert [text.rpartition("Question: ")[2] for text in model.prompts] == [QUESTION.text, OTHER.text, QUESTION.text]


def test_what_does_not_fit_the_window_is_left_out_or_not_asked():
    model = Says("Search: enough")
    model.window = 1400  # tokens are counted as bytes
    retriever = steps(model, look=2)
    retriever._fetch = lambda ids: [Passage(name, "", name * 100) for name in ids]
    retriever.search([QUESTION], 3)
    assert retriever.usage()["left_out"] == 1
    model.window = 200
    retriever.search([QUESTION], 3)
    assert retriever.usage()["too_long"] == 1
    assert len(model.prompts) == 1


class Makes(Finds):
    """Makes its passages, of the same ids whatever is asked."""

    def search(self, questions, k):
        return [
            replace(ranking, generated=[Passage("wept", "", self.asked[-1]), Passage("common", "", "")])
            for ranking in super().search(questions, k)
        ]


def test_the_estimate_is_a_request_before_each_later_step_and_the_prompt_is_its_identity():
    requests = steps(Says(), steps=3).requests([QUESTION, OTHER], 5)
    assert (len(requests), len(set(requests)), steps(Says(), steps=1).requests([QUESTION], 5)) == (4, 4, [])
    assert LlmSteps.fingerprint() == LlmSteps.fingerprint(prompt="next-query", steps=7)
    assert LlmSteps.fingerprint() != LlmSteps.fingerprint(prompt="open-book")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": 0}, "steps"), ({"prompt": "closed-book"}, "needs a prompt that reads passages"),
        ({"prompt": "multiple-choice"}, "shows no choices"), ({"prompt": "next-qery"}, "did you mean 'next-query'"),
        ({"part": Makes()}, "generated another passage 'wept' for a later query"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(settings, message):
    with refused(message):
        steps(Says("Search: who else wept"), **settings).search([QUESTION], 3)
