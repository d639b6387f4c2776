"""The reader that asks a language model only where the span reader is unsure."""

from dataclasses import replace
from pathlib import Path

import pytest
from refusals import refused

from ifqa.models.places import LARGE
from ifqa.protocols import LanguageModel
from ifqa.reading.cascade import Cascade
from ifqa.reading.span.reader import Extractive
from ifqa.records import Completion, Passage, Question

pytestmark = pytest.mark.slow

BRIDGE = [
    Passage("p1", "", "The bridge of Oakham was built in 1902 by Ada Carr, who came from Leith.")
]
PLAIN_TEXT = (
    "If the bridge of Oakham had been built three years later, in what "
    "year would it have been built?"
)
PLAIN = Question("t/plain", PLAIN_TEXT, ("1905",))
FAR = Question("t/far", "If zinc had been blue, which tenor would have sung?", ("nobody",))


class Scripted(LanguageModel):
    """Gives one completion to all requests, and records them."""

    def __init__(self, text="Answer: by rail", error=""):
        self.text = text
        self.error = error
        self.seen = []

    def complete(self, requests, advance=lambda done: None):
        self.seen += requests
        advance(len(requests))
        return [Completion(self.text, 1, 1, "stop", error=self.error) for _ in requests]


def cascade(llm, **settings):
    return Cascade(Cascade.Settings(**settings), llm=llm)


def fingerprint(**settings):
    return Cascade.fingerprint(Cascade.Settings(**settings), Path())


@pytest.fixture(scope="module")
def span():
    return Extractive(Extractive.Settings()).answer([PLAIN, FAR], [BRIDGE, BRIDGE])


def test_only_unsure_questions_are_asked(span):
    sure, unsure = (prediction.confidence for prediction in span)
    assert sure > unsure
    llm = Scripted()
    done: list[float] = []
    first, second = cascade(llm, sure=(sure + unsure) / 2).answer(
        [PLAIN, FAR], [BRIDGE, BRIDGE], done.append
    )
    assert first == span[0]
    assert (second.answer, second.confidence, second.passage_ids) == ("by rail", None, ("p1",))
    (request,) = llm.seen
    assert "zinc" in str(request)
    assert sum(done) == 2
    predictions = cascade(llm, sure=0.0001).answer([PLAIN, FAR], [BRIDGE, BRIDGE])
    assert [prediction.answer for prediction in predictions] == [
        prediction.answer for prediction in span
    ]
    assert len(llm.seen) == 1
    # Nothing to read
    assert [prediction.answer for prediction in cascade(llm).answer([PLAIN], [[]])] == ["by rail"]
    assert len(cascade(llm).requests([PLAIN, FAR], [BRIDGE, BRIDGE])) == 2


def test_an_unparsed_completion_leaves_the_answer_and_a_failed_request_fails(span):
    reader = cascade(Scripted("I cannot say."), sure=1.0, prompt="open-book-cot")
    (prediction,) = reader.answer([PLAIN], [BRIDGE])
    assert (prediction.answer, prediction.confidence, prediction.error) == (
        span[0].answer,
        span[0].confidence,
        "",
    )
    reader = cascade(Scripted(error="HTTP 500"), sure=1.0)
    assert (reader.answer([PLAIN], [BRIDGE])[0].error, reader.usage()["retry"]) == ("HTTP 500", 1)


def test_the_fingerprint_covers_the_prompt_and_two_families_are_refused(monkeypatch):
    assert fingerprint(prompt="open-book") != fingerprint(prompt="short")
    large = Extractive.requirements(Extractive.Settings(weights=LARGE), Path())
    assert [*Cascade.requirements(Cascade.Settings(weights=LARGE), Path())] == [*large]
    family = Cascade.training_family(Cascade.Settings(), Path())
    assert family == Extractive.training_family(Extractive.Settings(), Path())
    assert family == cascade(Scripted()).family
    monkeypatch.setattr("ifqa.reading.llm.Llm.training_family", classmethod(lambda *_: "ifqa/few"))
    with refused(
        "weights and demonstrations come from ifqa/few and ifqa/full; wanted one split family"
    ):
        Cascade.training_family(Cascade.Settings(), Path())


class Weighing(Scripted):
    """Also gives each answer its log probability, -20 if it is not in `likelihoods`.

    None without `likelihoods`.
    """

    weighs_answers = True

    def __init__(self, likelihoods, **settings):
        super().__init__(**settings)
        self.likelihoods = likelihoods
        self.weighed = []

    def log_likelihoods(self, request, texts):
        assert request in self.seen
        self.weighed += texts
        return [
            self.likelihoods.get(text.removeprefix("Answer: "), -20.0)
            for text in texts
            if self.likelihoods
        ]


@pytest.mark.parametrize(
    ("likelihoods", "answer"),
    [
        ({"1905": -1.0}, "1905"),
        ({"1902": -0.1, "1905": -30.0}, "1902"),
        ({"by rail": -0.1}, "by rail"),
        ({}, "by rail"),
    ],
)
def test_a_model_that_gives_likelihoods_decides_with_the_span_reader(span, likelihoods, answer):
    llm = Weighing(likelihoods)
    reader = cascade(llm, sure=1.0, prompt="short")
    (prediction,) = reader.answer([PLAIN], [BRIDGE])
    assert (prediction.answer, prediction.error, prediction.passage_ids) == (answer, "", ("p1",))
    assert (prediction.confidence, prediction.candidate) == (None, "")
    assert prediction.how == (span[0].how if answer == "1905" else None)
    assert {"Answer: by rail", "Answer: 1905"} < {*llm.weighed}
    assert (reader.usage()["unparsed"], cascade(llm, prompt="short").answer([PLAIN], [BRIDGE])) == (
        0,
        span[:1],
    )


def test_an_answer_that_differs_in_form_alone_is_weighed_once():
    llm = Weighing({"1905": -0.1}, text="Answer: the 1905.")
    (prediction,) = cascade(llm, sure=1.0, prompt="short").answer([PLAIN], [BRIDGE])
    assert (prediction.answer, len(llm.weighed)) == ("1905", len({*llm.weighed}))


def test_the_evidence_of_a_weighed_answer_has_its_passage():
    elsewhere = Passage("p2", "", "The ferry at Wick is old. " * 60)
    llm = Weighing({"1902": -0.1, "1905": -30.0})
    llm.window = 700  # bytes: only the first passage fits
    (prediction,) = cascade(llm, sure=1.0, prompt="short").answer([PLAIN], [[elsewhere, *BRIDGE]])
    assert prediction.answer == "1902"
    assert "p1" in prediction.passage_ids


@pytest.mark.parametrize(
    ("likelihoods", "answer"), [({"1902": -0.1, "1905": -30.0}, "1902"), ({}, "1905")]
)
def test_an_unparsed_completion_leaves_the_span_readers_answers_to_weigh(likelihoods, answer):
    (prediction,) = cascade(Weighing(likelihoods, text=""), sure=1.0, prompt="short").answer(
        [PLAIN], [BRIDGE]
    )
    assert (prediction.answer, prediction.error, prediction.failed) == (answer, "", False)


def test_without_a_candidate_or_with_a_prompt_that_wants_reasoning_nothing_is_weighed():
    for prompt, passages in (("open-book-cot", BRIDGE), ("short", [])):
        llm = Weighing({"1905": -0.1})
        assert [
            each.answer
            for each in cascade(llm, sure=1.0, prompt=prompt).answer([PLAIN], [passages])
        ] == ["by rail"]
        assert not llm.weighed


class Failing(Weighing):
    """Fails at questions about zinc."""

    def complete(self, requests, advance=lambda done: None):
        completions = super().complete(requests, advance)
        return [
            replace(completion, text="", error="HTTP 500") if "zinc" in str(request) else completion
            for request, completion in zip(requests, completions, strict=True)
        ]


def test_each_unsure_question_gets_its_own_answer_beside_failures():
    long = Question("t/long", "If " + "so " * 1000 + "what?", ("nobody",))
    llm = Failing({"1905": -0.1})
    done: list[float] = []
    llm.window = 2000
    questions = [FAR, PLAIN, long, PLAIN]
    reader = cascade(llm, sure=1.0, prompt="short")
    failed, right, too_long, empty = reader.answer(
        questions, [BRIDGE, BRIDGE, BRIDGE, []], done.append
    )
    assert (failed.error, right.answer, empty.answer) == ("HTTP 500", "1905", "by rail")
    assert too_long.error.startswith("not asked")
    assert sum(done) == 4


@pytest.mark.parametrize(("sure", "first"), [(1.0, 0), (0.0001, 2)])
def test_a_bar_counts_sure_answers_before_the_model_is_asked(sure, first):
    done: list[float] = []
    cascade(Scripted(), sure=sure).answer([PLAIN, FAR], [BRIDGE, BRIDGE], done.append)
    assert done[0] == first
    assert sum(done) == 2
