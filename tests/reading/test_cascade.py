"""The reader that asks a language model only what the span reader doubts."""

import pytest

from ifqa.errors import IfqaError
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
    return {one.question_id: one for one in Extractive().answer([PLAIN, FAR], [BRIDGE, BRIDGE])}


def between(alone):
    """A confidence between those of the two questions."""
    sure, unsure = alone[PLAIN.id].confidence, alone[FAR.id].confidence
    assert sure > unsure
    return (sure + unsure) / 2


def test_only_doubted_questions_are_asked(alone):
    llm, done = Scripted(), []
    told = Cascade(llm, sure=between(alone)).answer([PLAIN, FAR], [BRIDGE, BRIDGE], done.append)
    assert told[0] == alone[PLAIN.id]
    assert (told[1].answer, told[1].confidence, told[1].passage_ids) == ("by rail", None, ("p1",))
    (asked,) = llm.asked
    assert "zinc" in str(asked)
    assert sum(done) == 2


def test_a_sure_span_reader_asks_nothing(alone):
    llm = Scripted()
    told = Cascade(llm, sure=0.0001).answer([PLAIN, FAR], [BRIDGE, BRIDGE])
    assert [one.answer for one in told] == [alone[PLAIN.id].answer, alone[FAR.id].answer]
    assert not llm.asked


def test_a_question_without_passages_is_asked():
    assert [one.answer for one in Cascade(Scripted()).answer([PLAIN], [[]])] == ["by rail"]


def test_an_unparsed_completion_leaves_the_span_readers_answer(alone):
    (told,) = Cascade(Scripted("I cannot say."), sure=1.0, prompt="open-book-cot").answer([PLAIN], [BRIDGE])
    assert (told.answer, told.confidence, told.error) == (alone[PLAIN.id].answer, alone[PLAIN.id].confidence, "")


def test_a_failed_request_is_a_failure_and_is_counted():
    reader = Cascade(Scripted(error="HTTP 500"), sure=1.0)
    (told,) = reader.answer([PLAIN], [BRIDGE])
    assert told.error == "HTTP 500"
    assert reader.usage()["retry"] == 1


def test_the_estimate_is_of_every_question():
    assert len(Cascade(Scripted()).requests([PLAIN, FAR], [BRIDGE, BRIDGE])) == 2


def test_the_prompt_is_part_of_the_identity_and_the_family_is_the_span_readers():
    assert Cascade.fingerprint(prompt="open-book") != Cascade.fingerprint(prompt="short")
    assert Cascade.trained() == Extractive.trained() == Cascade(Scripted()).family


def test_two_split_families_are_refused(monkeypatch):
    monkeypatch.setattr("ifqa.reading.llm.Llm.trained", classmethod(lambda cls, **_: "ifqa/few"))
    with pytest.raises(
        IfqaError, match="weights and demonstrations are of ifqa/few and ifqa/full; wanted one split family"
    ):
        Cascade.trained()
