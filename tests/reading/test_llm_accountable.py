"""A language model's answers are accountable: a sentence, a confidence, or an honest "not said"."""

import json
from pathlib import Path

import pytest
from refusals import refused

from ifqa.errors import SchemaRefused
from ifqa.prompting.prompts import prompt_path
from ifqa.protocols import LanguageModel
from ifqa.reading.cascade import Cascade
from ifqa.reading.llm import Llm
from ifqa.reading.llm_confidence import (
    ONE_ANSWER,
    VERSION,
    Fit,
    LlmCalibration,
    Sampling,
    calibration_path,
)
from ifqa.reading.span.reader import BUNDLED_WEIGHTS, Extractive
from ifqa.reading.span.weights import fingerprint_weights
from ifqa.records import Completion, Passage, Question
from ifqa.storage.files import sha256, write_json

BRIDGE = Passage(
    "p1",
    "",
    "Oakham lies in a valley. The bridge of Oakham was built in 1902 by Ada Carr, from Leith. "
    "Her brother kept the ferry.",
)
MILL = Passage("p2", "", "The mill of Wick was built in 1804. It burned down in 1911.")
PASSAGES = [BRIDGE, MILL]
QUESTION = Question("t/1", "If Ada Carr had died in 1900, who would not have built the bridge?")
FIELDS = {
    "quote": "The bridge of Oakham was built in 1902 by Ada Carr, from Leith.",
    "passage": 1,
    "change": "She is dead by then.",
    "answer": "Ada Carr",
}
pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


class Scripted(LanguageModel):
    """Gives each text in turn, and keeps the requests."""

    name = "scripted"
    takes_schema = True

    def __init__(self, *texts, logprobs=()):
        self.texts = list(texts)
        self.logprobs = logprobs
        self.seen = []

    def complete(self, requests, advance=lambda done: None):
        self.seen += requests
        texts = [self.texts.pop(0) if len(self.texts) > 1 else self.texts[0] for _ in requests]
        return [Completion(text, 1, 1, "stop", logprobs=self.logprobs) for text in texts]


def grounded(fields=(), **settings):
    """The prediction for the question from a model that writes these fields."""
    text = json.dumps(FIELDS | dict(fields))
    reader = Llm(Llm.Settings(prompt="grounded", **settings), llm=Scripted(text))
    return reader.answer([QUESTION], [PASSAGES])[0]


def test_the_sentence_of_a_quote_is_the_support():
    how = grounded().how
    assert how.origin == "quoted"
    assert how.passage_id == "p1"
    assert BRIDGE.text[slice(*how.sentence)] == FIELDS["quote"]


def test_the_answer_is_marked_in_the_quoted_sentence():
    assert BRIDGE.text[slice(*grounded().how.span)] == "Ada Carr"


def test_the_quote_is_marked_if_the_answer_is_not_in_its_sentence():
    how = grounded({"answer": "nobody", "quote": "built in 1902 by Ada Carr"}).how
    assert BRIDGE.text[slice(*how.span)] == "built in 1902 by Ada Carr"


def test_the_quoted_passage_comes_first():
    fields = {"quote": "It burned down in 1911.", "passage": 2, "answer": "1911"}
    assert grounded(fields).passage_ids == ("p2", "p1")


def test_what_the_supposition_changes_is_kept():
    assert grounded().change == "She is dead by then."


def test_the_number_of_a_passage_is_that_of_the_order_shown():
    assert grounded({"passage": 2}, order="best last").quote.outcome == "exact"


def test_a_missing_quote_is_no_support():
    prediction = grounded({"quote": "Ada Carr never built a bridge.", "answer": "nobody"})
    assert prediction.quote.outcome == "missing"
    assert prediction.how is None


def test_the_sentence_of_an_answer_with_a_missing_quote_is_found_afterwards():
    how = grounded({"quote": "Ada Carr never built a bridge."}).how
    assert how is not None
    assert how.origin == "found afterwards"
    assert "Ada Carr" in BRIDGE.text[slice(*how.sentence)]


@pytest.mark.parametrize("answer", ["Ada Carr", "the ferry"])
def test_other_prompts_have_the_sentence_that_the_span_reader_finds(answer):
    reader = Llm(Llm.Settings(prompt="open-book"), llm=Scripted(f"Answer: {answer}"))
    (prediction,) = reader.answer([QUESTION], [PASSAGES])
    assert prediction.quote is None
    assert prediction.how is not None
    assert prediction.how.origin == "found afterwards"
    assert answer in BRIDGE.text[slice(*prediction.how.sentence)]


@pytest.mark.parametrize("answer", ["no", "a man from Rome"])
def test_an_answer_that_no_passage_has_gets_no_sentence(answer):
    reader = Llm(Llm.Settings(prompt="open-book"), llm=Scripted(f"Answer: {answer}"))
    assert reader.answer([QUESTION], [PASSAGES])[0].how is None


def test_without_the_span_reader_there_is_no_sentence_afterwards():
    llm = Scripted("Answer: Ada Carr")
    reader = Llm(Llm.Settings(prompt="open-book", span_reader=False), llm=llm)
    assert reader.answer([QUESTION], [PASSAGES])[0].how is None


def test_a_model_that_says_so_abstains():
    prediction = grounded({"quote": "", "passage": 0, "answer": "not said"})
    assert prediction.abstained
    assert prediction.abstention == "the model says that they do not have it"
    assert prediction.quote is None


def test_its_guess_is_the_candidate():
    prediction = grounded({"answer": "not said: Ada Carr"})
    assert prediction.abstained
    assert prediction.candidate == "Ada Carr"


def test_samples_vote_for_not_said_too():
    said = json.dumps(FIELDS)
    not_said = json.dumps(FIELDS | {"answer": "not said"})
    reader = Llm(
        Llm.Settings(prompt="grounded", samples=3, temperature=0.7),
        llm=Scripted(not_said, said, not_said),
    )
    assert reader.answer([QUESTION], [PASSAGES])[0].abstained


class WithoutSchema(Scripted):
    """A server that refuses a schema when it is first asked with one."""

    def complete(self, requests, advance=lambda done: None):
        if self.takes_schema and any(request.schema for request in requests):
            self.takes_schema = False
            raise SchemaRefused("no schema")
        return super().complete(requests, advance)


def test_a_server_without_schemas_is_asked_for_lines():
    lines = "\n".join(f"{name.title()}: {value}" for name, value in FIELDS.items())
    llm = WithoutSchema(lines)
    reader = Llm(Llm.Settings(prompt="grounded"), llm=llm)
    (prediction,) = reader.answer([QUESTION], [PASSAGES])
    assert prediction.answer == "Ada Carr"
    assert "JSON" not in str(llm.seen)


def test_a_prompt_that_is_nothing_without_a_schema_is_refused():
    reader = Llm(Llm.Settings(prompt="open-book-json"), llm=WithoutSchema("{}"))
    with pytest.raises(SchemaRefused):
        reader.answer([QUESTION], [PASSAGES])


def store_calibration(prompt="grounded", intercept=0.0, sampling=ONE_ANSWER, **changes):
    """Store a calibration that gives all answers one confidence, and returns its path."""
    path = calibration_path(Path(), "scripted", prompt, sampling)
    fit = Fit(intercept=intercept, coefficients={"words": 0.0})
    calibration = LlmCalibration(
        version=VERSION,
        model="scripted",
        prompt=prompt,
        prompt_sha256=sha256(prompt_path(prompt)),
        span_weights=fingerprint_weights(BUNDLED_WEIGHTS),
        samples=sampling.samples,
        temperature=sampling.temperature,
        with_logprobs=None,
        without_logprobs=fit,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, calibration.model_copy(update=changes).model_dump())
    return path


def test_a_model_that_was_not_fitted_has_no_confidence():
    reader = Llm(Llm.Settings(prompt="grounded"), llm=Scripted(json.dumps(FIELDS)))
    assert reader.answer([QUESTION], [PASSAGES])[0].confidence is None
    assert reader.uncalibrated.startswith("not calibrated for scripted with the prompt grounded")
    assert "ifqa train calibration --reader llm" in reader.uncalibrated


def test_a_fitted_model_has_a_confidence():
    store_calibration()
    assert grounded().confidence == 0.5


def test_a_reader_knows_the_files_that_its_confidence_was_fitted_on():
    store_calibration(fitted_on={"sources": {"mine.json": "abc"}})
    reader = Llm(Llm.Settings(prompt="grounded"), llm=Scripted(json.dumps(FIELDS)))
    assert {*reader.calibrated_on} == {"abc"}


def test_an_answer_below_the_threshold_is_withheld():
    store_calibration()
    prediction = grounded(threshold=0.6)
    assert prediction.abstained
    assert prediction.candidate == "Ada Carr"


def test_a_threshold_without_a_calibration_is_refused():
    with refused("needs a confidence: not calibrated"):
        grounded(threshold=0.6)


def test_only_a_fitted_model_gives_a_confidence():
    def gives_confidence():
        reader = Llm(Llm.Settings(prompt="grounded"), llm=Scripted(json.dumps(FIELDS)))
        return reader.gives_confidence

    assert not gives_confidence()
    store_calibration()
    assert gives_confidence()


@pytest.mark.parametrize("changes", [{"version": 0}, {"prompt_sha256": "x"}, {"span_weights": "x"}])
def test_a_calibration_of_other_conditions_is_not_used(changes):
    store_calibration(**changes)
    assert grounded().confidence is None


def test_a_calibration_with_the_span_reader_is_not_used_without_it():
    store_calibration()
    assert grounded(span_reader=False).confidence is None


def test_a_calibration_for_one_answer_is_not_used_for_five_samples():
    store_calibration()
    settings = Llm.Settings(prompt="grounded", samples=5, temperature=0.7)
    reader = Llm(settings, llm=Scripted(json.dumps(FIELDS)))
    assert reader.answer([QUESTION], [PASSAGES])[0].confidence is None
    assert reader.uncalibrated.startswith(
        "not calibrated for scripted with the prompt grounded, 5 samples at temperature 0.7;"
    )


def test_a_calibration_for_five_samples_is_not_used_for_one_answer():
    store_calibration(sampling=Sampling(5, 0.7))
    assert grounded().confidence is None


def test_a_file_that_names_other_samples_is_not_used():
    store_calibration(samples=5, temperature=0.7)
    settings = Llm.Settings(prompt="grounded")
    reader = Llm(settings, llm=Scripted(json.dumps(FIELDS)))
    assert "was fitted for 5 samples at temperature 0.7" in reader.uncalibrated


@pytest.mark.parametrize("sampling", [Sampling(5, 0.7), Sampling(1, 0.7)])
def test_a_calibration_is_used_for_its_own_samples(sampling):
    store_calibration(intercept=5.0)
    store_calibration(sampling=sampling)
    assert grounded(**sampling._asdict()).confidence == 0.5


def test_a_file_without_samples_counts_for_one_answer():
    path = store_calibration()
    content = json.loads(path.read_text())
    del content["samples"], content["temperature"]
    path.write_text(json.dumps(content))
    assert grounded().confidence == 0.5


def test_a_calibration_for_other_samples_leaves_the_readings_identity():
    settings = Llm.Settings(prompt="grounded")
    before = Llm.fingerprint(settings, Path())
    store_calibration(sampling=Sampling(5, 0.7))
    assert Llm.fingerprint(settings, Path()) == before


def test_a_damaged_calibration_is_refused():
    store_calibration().write_text('{"version": 1}')
    with refused("not as ifqa writes it"):
        grounded()


def test_a_calibration_changes_the_readings_identity():
    settings = Llm.Settings(prompt="grounded")
    before = Llm.fingerprint(settings, Path())
    store_calibration()
    assert Llm.fingerprint(settings, Path()) != before


def test_a_calibration_for_another_prompt_changes_nothing():
    settings = Llm.Settings(prompt="open-book")
    before = Llm.fingerprint(settings, Path())
    store_calibration()
    assert Llm.fingerprint(settings, Path()) == before


@pytest.mark.parametrize(("logprob", "expected"), [(-0.1, 0.475), (-2.0, 0.119)])
def test_log_probabilities_of_the_answer_count_where_a_reply_has_them(logprob, expected):
    fit = Fit(intercept=0.0, coefficients={"log_probability": 1.0})
    store_calibration("open-book", with_logprobs=fit)
    llm = Scripted("Ada Carr", logprobs=((3, 0.0), (8, logprob)))
    reader = Llm(Llm.Settings(prompt="open-book"), llm=llm)
    (prediction,) = reader.answer([QUESTION], [PASSAGES])
    assert prediction.confidence == pytest.approx(expected, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("intercept", "own"), [(4.0, True), (-4.0, False)])
def test_the_cascade_takes_the_answer_with_the_higher_fitted_confidence(intercept, own):
    store_calibration("open-book", intercept)
    reader = Cascade(Cascade.Settings(sure=1.0), llm=Scripted("Answer: nobody"))
    (prediction,) = reader.answer([QUESTION], [PASSAGES])
    assert (prediction.answer == "nobody") == own
    assert prediction.confidence is not None


@pytest.mark.slow
def test_the_cascade_without_a_calibration_takes_the_models_answer():
    reader = Cascade(Cascade.Settings(sure=1.0), llm=Scripted("Answer: nobody"))
    assert reader.answer([QUESTION], [PASSAGES])[0].answer == "nobody"


@pytest.mark.slow
def test_the_span_readers_candidates_have_their_sources():
    (read,) = Extractive(Extractive.Settings()).read([QUESTION], [PASSAGES])
    assert read.explain(read.prediction.answer) == read.prediction.how
    assert read.explain("a text that is nowhere") is None
