"""Answers of a language model that was asked for a quote, one of each kind."""

from collections.abc import Callable
from dataclasses import replace

from ifqa.prompting.quotes import find_quote
from ifqa.reading.llm_evidence import explain_quote
from ifqa.records import Answer, Evidence, Explanation, Question, Step

HOSTILE = "<script>window.hacked=1</script><img src=x onerror=window.hacked=1>[red]\x1b[31m\u202e"
QUESTION = Question("mill/1", "If the wheel had never been built, what would have driven the saw?")
MILL = Evidence(
    "manuals/mill.pdf#1:page=4",
    "mill.pdf › The wheel",
    "The mill stands on the Teise. Its saw was driven by a wheel of oak, cut in 1849. "
    "The wheel was mended by Ada Stone after the flood.",
    "manuals/mill.pdf, p. 4",
)
ENGINE = Evidence(
    "notes/engine.md#1:line=7",
    "engine.md",
    "An engine of six horses stood behind the mill. It was sold in 1902.",
    "notes/engine.md, line 7",
)
PASSAGES = (MILL, ENGINE)
SENTENCE = "Its saw was driven by a wheel of oak, cut in 1849."
STITCHED = "Its saw was driven by a wheel of oak ... An engine of six horses stood behind the mill."
INVENTED = "The saw could also be driven by a steam engine."
CHANGE = "Without the wheel, the engine behind the mill is what is left to drive the saw."
UNCALIBRATED = (
    "not calibrated for gpt-4o-mini with the prompt grounded; "
    "fit it: ifqa train calibration --reader llm --experiment NAME"
)
NOT_SAID = "the model says that they do not have it"


def quoting(text: str, number: int = 1, answer: str = "the engine") -> Answer:
    """An answer with a quote, which is looked up as the reader does."""
    quote = find_quote(text, PASSAGES, number)
    how = explain_quote(quote, answer, PASSAGES)
    return Answer(QUESTION, answer, PASSAGES, how=how, quote=quote, change=CHANGE)


def exact() -> Answer:
    return replace(quoting(SENTENCE), confidence=0.74)


def other_passage() -> Answer:
    return quoting(SENTENCE, 2)


def stitched() -> Answer:
    return replace(quoting(STITCHED), confidence=0.41)


def stitched_in_one_passage() -> Answer:
    return quoting("Its saw was driven by a wheel of oak ... mended by Ada Stone after the flood")


def missing() -> Answer:
    return quoting(INVENTED)


def empty() -> Answer:
    return quoting("")


def found_afterwards() -> Answer:
    """A missing quote; the span reader finds a sentence with the answer."""
    how = Explanation(ENGINE.id, (0, 46), (3, 9), origin="found afterwards")
    return replace(missing(), how=how, evidence=(ENGINE, MILL))


def not_said() -> Answer:
    """The model says that no passage has the answer, and guesses."""
    return Answer(QUESTION, "", PASSAGES, candidate="a horse", abstention=NOT_SAID)


def not_said_without_a_guess() -> Answer:
    return replace(not_said(), candidate="")


def uncalibrated() -> Answer:
    return replace(exact(), confidence=None, uncalibrated=UNCALIBRATED)


def hostile() -> Answer:
    """Markup and codes for terminals in whatever the model wrote."""
    forged = f"{HOSTILE}\nAnswer    forged"
    answer = quoting(forged, answer=f"engine {HOSTILE}")
    steps = (Step("search", forged, "", (ENGINE.id,)), Step("other", forged, forged))
    return replace(answer, change=forged, uncalibrated=HOSTILE, steps=steps)


KINDS: dict[str, Callable[[], Answer]] = {
    function.__name__: function
    for function in (
        exact,
        other_passage,
        stitched,
        stitched_in_one_passage,
        missing,
        empty,
        found_afterwards,
        not_said,
        not_said_without_a_guess,
        uncalibrated,
        hostile,
    )
}
