"""Iterative retrieval by a language model: its prompts, its queries, and the end of the search."""

from dataclasses import replace

import pytest
from refusals import refused

from ifqa.protocols import LanguageModel, Retriever
from ifqa.records import Completion, Hit, Passage, Question, SearchResult, TokenUsage
from ifqa.retrieval.composition import Part
from ifqa.retrieval.iterative import LlmSteps

QUESTION = Question("q", "If the mill had burned, who would have wept?")
OTHER = Question("r", "If the harbour had closed, who would have left?")


class LastWord(Retriever):
    """Ranks a passage named after the query's last word, then "common", and keeps the queries."""

    def __init__(self):
        self.queries = []

    def search(self, questions, k):
        self.queries += [question.text for question in questions]
        names = [question.text.split()[-1].strip("?") for question in questions]
        return [SearchResult([Hit(name, 1.0), Hit("common", 0.5)]) for name in names]


class Scripted(LanguageModel):
    """Completes the prompts with its texts, in their order, and keeps the prompts."""

    name, window = "says", 4000

    def __init__(self, *texts):
        self.texts, self.prompts = list(texts), []

    @property
    def spent(self):
        return TokenUsage(calls=len(self.prompts))

    def complete(self, requests, advance=None):
        self.prompts += [request.messages[-1][1] for request in requests]
        texts = [self.texts.pop(0) for _ in requests]
        return [text if isinstance(text, Completion) else Completion(text, 10, 2, "stop") for text in texts]


def fetch(ids):
    return [Passage(name, "", f"This tells of {name}.") for name in ids]


def steps(model, part=None, **settings):
    return LlmSteps(llm=model, parts=[Part(part or LastWord(), 5)], passages=fetch, **settings)


def queries_of(ranking):
    return [step.query for step in ranking.steps]


def test_the_model_reads_the_passages_and_writes_the_next_query():
    model, part = Scripted("What is so: Ann built it.\nSearch: Ann Lee", "Search: enough"), LastWord()
    [ranking] = steps(model, part).search([QUESTION], 3)
    assert part.queries == [QUESTION.text, "Ann Lee"]
    assert [hit.passage_id for hit in ranking] == ["common", "wept", "Lee"]
    first_prompt, second_prompt = model.prompts
    assert "This tells of wept." in first_prompt
    assert "This tells of Lee." not in first_prompt
    assert "This tells of Lee." in second_prompt
    assert f"Searched so far:\n- {QUESTION.text}\n- Ann Lee\n" in second_prompt
    first, second = ranking.steps
    assert (first.passage_ids, second.query, second.passage_ids) == (("wept", "common"), "Ann Lee", ("Lee",))


PARSED = ["Search: enough", "Search: **Enough.**", "search: ann  LEE", f"Search: {QUESTION.text}"]
UNPARSED = ["", "Ann Lee, I think.", "Search:", "Search: \n\n", "<think>Search: Ann"]


@pytest.mark.parametrize("text", PARSED + UNPARSED)
def test_enough_a_repeated_query_or_none_ends_the_steps(text):
    retriever = steps(Scripted("Search: Ann Lee", text), steps=9)
    [ranking] = retriever.search([QUESTION], 3)
    assert queries_of(ranking) == [QUESTION.text, "Ann Lee"]
    assert [hit.passage_id for hit in ranking] == ["common", "wept", "Lee"]
    assert retriever.usage()["unparsed"] == (text in UNPARSED)


def test_a_failed_request_or_nothing_new_ends_the_steps():
    retriever = steps(Scripted(Completion(error="HTTP 500"), Completion(error="not asked: the cap is reached")))
    assert [len(ranking) for ranking in retriever.search([QUESTION, OTHER], 3)] == [2, 2]
    usage = retriever.usage()
    assert (usage["retry"], usage["not_asked"], usage["unparsed"]) == (2, 1, 0)
    [ranking] = steps(Scripted("Search: who wept", "Search: more"), steps=9).search([QUESTION], 3)
    assert queries_of(ranking) == [QUESTION.text, "who wept"]


def test_the_number_of_steps_is_limited():
    model, part = Scripted(*(f"Search: thing {n}" for n in range(9))), LastWord()
    retriever = steps(model, part, steps=4)
    retriever.search([QUESTION], 3)
    assert part.queries == [QUESTION.text, "thing 0", "thing 1", "thing 2"]
    assert len(model.prompts) == retriever.usage()["spent"]["calls"] == 3
    assert retriever.usage()["took"] == (30, 6)


def test_questions_end_separately_and_are_sent_together():
    model = Scripted("Search: Ann", "Search: enough", "Search: Ben")
    retriever = steps(model, steps=3)
    first, second = retriever.search([QUESTION, OTHER], 3)
    assert queries_of(first) == [QUESTION.text, "Ann", "Ben"]
    assert queries_of(second) == [OTHER.text]
    assert [text.rpartition("Question: ")[2] for text in model.prompts] == [QUESTION.text, OTHER.text, QUESTION.text]


def test_passages_beyond_the_window_are_left_out_and_long_questions_are_not_sent():
    model = Scripted("Search: enough")
    model.window = 1400  # tokens are counted as bytes
    retriever = steps(model, look=2)
    retriever._fetch = lambda ids: [Passage(name, "", name * 100) for name in ids]
    retriever.search([QUESTION], 3)
    assert retriever.usage()["left_out"] == 1
    model.window = 200
    retriever.search([QUESTION], 3)
    assert retriever.usage()["too_long"] == 1
    assert len(model.prompts) == 1


class Generating(LastWord):
    """Generates passages whose ids do not depend on the query."""

    def search(self, questions, k):
        rankings = super().search(questions, k)
        generated = [Passage("wept", "", self.queries[-1]), Passage("common", "", "")]
        return [replace(ranking, generated=generated) for ranking in rankings]


def test_the_estimate_has_a_request_for_each_later_step_and_the_fingerprint_is_the_prompts():
    requests = steps(Scripted(), steps=3).requests([QUESTION, OTHER], 5)
    assert (len(requests), len(set(requests)), steps(Scripted(), steps=1).requests([QUESTION], 5)) == (4, 4, [])
    assert LlmSteps.fingerprint() == LlmSteps.fingerprint(prompt="next-query", steps=7)
    assert LlmSteps.fingerprint() != LlmSteps.fingerprint(prompt="open-book")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": 0}, "steps"), ({"prompt": "closed-book"}, "needs a prompt that reads passages"),
        ({"prompt": "multiple-choice"}, "shows no choices"), ({"prompt": "next-qery"}, "did you mean 'next-query'"),
        ({"part": Generating()}, "generated different passages with the id 'wept'"),
    ],
)  # fmt: skip
def test_wrong_settings_and_parts_are_refused(settings, message):
    with refused(message):
        steps(Scripted("Search: who else wept"), **settings).search([QUESTION], 3)
