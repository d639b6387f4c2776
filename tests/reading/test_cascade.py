"""The reader that asks a language model only what the span reader doubts."""

import pytest
from refusals import refused

from ifqa.protocols import LanguageModel
from ifqa.reading.cascade import Cascade
from ifqa.reading.span.reader import Extractive
from ifqa.records import Completion, Passage, Question

BRIDGE = [Passage("p1", "", "The bridge of Oakham was built in 1902 by Ada Carr, who came from Leith.")]
PLAIN = Question(
    "t/plain",
    "If the bridge of Oakham had been built three years later, in what year would it have been built?",
    ("1905",),
)
FAR = Question("t/far", "If zinc had been blue, which tenor would have sung?", ("nobody",))


class Scripted(LanguageModel):
    """Says one text, and keeps what it was asked."""

    def __init__(self, text="Answer: by rail", error=""):
        self.text, self.error, self.asked = text, error, []

    def complete(self, requests, advance=lambda done: None):
        self.asked += requests
        advance(len(requests))
        return [Completion(self.text, 1, 1, "stop", error=self.error) for _ in requests]


@pytest.fixture(scope="module")
def alone():
    return {prediction.question_id: prediction for prediction in Extractive().answer([PLAIN, FAR], [BRIDGE, BRIDGE])}


def test_only_doubted_questions_are_asked(alone):
    sure, unsure = alone[PLAIN.id].confidence, alone[FAR.id].confidence
    assert sure > unsure
    llm, done = Scripted(), []
    told = Cascade(llm, sure=(sure + unsure) / 2).answer([PLAIN, FAR], [BRIDGE, BRIDGE], done.append)
    assert told[0] == alone[PLAIN.id]
    assert (told[1].answer, told[1].confidence, told[1].passage_ids) == ("by rail", None, ("p1",))
    (asked,) = llm.asked
    assert "zinc" in str(asked)
    assert sum(done) == 2
    told = Cascade(llm, sure=0.0001).answer([PLAIN, FAR], [BRIDGE, BRIDGE])
    assert [one.answer for one in told] == [alone[PLAIN.id].answer, alone[FAR.id].answer]
    assert len(llm.asked) == 1
    assert [prediction.answer for prediction in Cascade(llm).answer([PLAIN], [[]])] == ["by rail"]  # nothing to read
    assert len(Cascade(llm).requests([PLAIN, FAR], [BRIDGE, BRIDGE])) == 2


def test_an_unparsed_completion_leaves_the_answer_and_a_failed_request_fails(alone):
    (told,) = Cascade(Scripted("I cannot say."), sure=1.0, prompt="open-book-cot").answer([PLAIN], [BRIDGE])
    assert (told.answer, told.confidence, told.error) == (alone[PLAIN.id].answer, alone[PLAIN.id].confidence, "")
    reader = Cascade(Scripted(error="HTTP 500"), sure=1.0)
    assert (reader.answer([PLAIN], [BRIDGE])[0].error, reader.usage()["retry"]) == ("HTTP 500", 1)


def test_the_prompt_is_part_of_the_identity_and_there_is_one_family(monkeypatch):
    assert Cascade.fingerprint(prompt="open-book") != Cascade.fingerprint(prompt="short")
    assert Cascade.training_family() == Extractive.training_family() == Cascade(Scripted()).family
    monkeypatch.setattr("ifqa.reading.llm.Llm.training_family", classmethod(lambda cls, **_: "ifqa/few"))
    with refused("weights and demonstrations are of ifqa/few and ifqa/full; wanted one split family"):
        Cascade.training_family()
