"""The reader 'agent' with a scripted model: its steps, its mistakes, its answers."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from refusals import refused
from scripted_model import BRIDGE, FERRY, MILL, QUESTION, Scripted, Searching

from ifqa.errors import ConfigError, ToolsRefused
from ifqa.prompting.context_window import bound_tokens
from ifqa.prompting.prompts import prompt_path
from ifqa.reading.agent.reader import Agent
from ifqa.reading.llm_confidence import VERSION, Fit, LlmCalibration, calibration_path
from ifqa.records import Completion, Estimate, Passage, Question, Step
from ifqa.storage.files import sha256, write_json


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def agent(llm, search=None, **settings):
    given = {"span_reader": False} | settings
    return Agent(Agent.Settings(**given), llm=llm, search=search or Searching())


def read(*replies, passages=(MILL,), question=QUESTION, search=None, **more):
    """The prediction for a question, and the model."""
    settings = {key: more.pop(key) for key in ("steps", "hits", "calls", "prompt") if key in more}
    llm = Scripted(*replies, **more)
    [prediction] = agent(llm, search, **settings).answer([question], [passages])
    return prediction, llm


def last_text(request):
    """What the model reads last."""
    return request.turns[-1].results[-1] if request.turns else request.messages[-1][1]


def texts_of(request):
    """All that the model reads."""
    return "\n".join(text for _, text in request.transcript)


def call(name, **arguments):
    return (name, json.dumps(arguments))


def test_a_model_may_answer_at_once():
    prediction, llm = read("Answer: Bo May")
    assert prediction.answer == "Bo May"
    assert (len(llm.seen), prediction.steps) == (1, ())


def test_the_first_request_shows_the_question_with_its_passages():
    _, llm = read("Answer: Bo May")
    text = llm.seen[0].messages[-1][1]
    assert QUESTION.text in text
    assert f"[1] Mill\n{MILL.text}" in text


def test_a_search_shows_its_passages_to_the_next_request():
    prediction, llm = read("Search: ferry at Wick", "Answer: Bo May")
    assert f"[2] Ferry\n{FERRY.text}" in last_text(llm.seen[1])
    assert prediction.answer == "Bo May"


def test_a_search_is_a_step_with_the_passages_that_it_found():
    prediction, _ = read("Search: ferry at Wick", "Answer: Bo May")
    assert prediction.steps == (Step("search", "ferry at Wick", "", ("ferry", "bridge")),)


def test_passages_that_were_searched_for_are_evidence():
    prediction, _ = read("Search: ferry", "Answer: Bo May")
    assert prediction.passage_ids == ("mill", "ferry")


def test_a_passage_is_shown_once():
    _, llm = read("Search: mill", "Search: ferry of the mill", "Answer: Bo May")
    assert "[1] Mill (shown before)" in last_text(llm.seen[1])
    assert "".join(text for _, text in llm.seen[2].messages).count(MILL.text) == 1


def test_a_search_shows_as_many_passages_as_set():
    prediction, _ = read("Search: the", "Answer: Bo May", hits=1)
    assert len(prediction.steps[0].passage_ids) == 1


def test_a_search_that_finds_nothing_says_so():
    prediction, llm = read("Search: zeppelin", "Answer: Bo May")
    assert "no passage found" in last_text(llm.seen[1])
    assert prediction.steps == (Step("search", "zeppelin", "no passage found"),)


def test_a_long_passage_is_cut():
    long = Passage("long", "", "ferry " * 5000)
    _, llm = read("Search: ferry", "Answer: 7", search=Searching(long), window=30_000)
    assert len(last_text(llm.seen[1])) < 2000


def test_a_computation_shows_its_value():
    prediction, llm = read("Compute: (1931 - 1902) * 2", "Answer: 58")
    assert last_text(llm.seen[1]).startswith("58")
    assert prediction.steps == (Step("compute", "(1931 - 1902) * 2", "58"),)


def test_what_cannot_be_computed_is_told():
    prediction, llm = read("Compute: 1 / 0", "Answer: nothing")
    assert last_text(llm.seen[1]).startswith("not computed: division by zero")
    assert prediction.steps[0].result == "not computed: division by zero"


def test_the_first_action_of_a_text_counts():
    prediction, _ = read("Search: ferry\nAnswer: nobody\nCompute: 1 + 1", "Answer: Bo May")
    assert [step.action for step in prediction.steps] == ["search"]
    assert prediction.answer == "Bo May"


def test_the_first_answer_of_a_text_counts():
    prediction, _ = read("Answer: Bo May\nAnswer: Cy Dale\nSearch: ferry")
    assert prediction.answer == "Bo May"


@pytest.mark.parametrize(
    "text",
    [
        "**Answer:** Bo May",
        "I know it. Answer: Bo May.",
        "\n\nanswer: Bo May",
        "<think>\nSearch: no\n</think>\nAnswer: Bo May",
    ],
)
def test_answers_are_found_in_many_forms(text):
    prediction, _ = read(text)
    assert prediction.answer == "Bo May"


@pytest.mark.parametrize("text", ["search: ferry", "**Search:** ferry", 'Search:\n"ferry"'])
def test_searches_are_found_in_many_forms(text):
    prediction, _ = read(text, "Answer: Bo May")
    assert prediction.steps[0].text == "ferry"


def test_the_last_request_asks_for_the_answer_alone():
    _, llm = read("Search: a", "Search: b", "Answer: Bo May", steps=3)
    asks = ["Now write the answer" in last_text(request) for request in llm.seen]
    assert asks == [False, False, True]


def test_a_model_that_searches_for_ever_ends_after_all_steps():
    prediction, llm = read("Search: a", "Search: b", "Search: c", "Search: d", steps=3)
    assert len(llm.seen) == 3
    assert prediction.error == "unparsed: the last of 3 requests got no answer"
    assert len(prediction.steps) == 2


def test_the_same_search_is_not_done_twice():
    search = Searching()
    prediction, llm = read("Search: ferry", "Search: FERRY ", "Answer: Bo May", search=search)
    assert search.searched == [["ferry"]]
    assert last_text(llm.seen[2]).startswith("already searched")
    assert prediction.steps[1].result.startswith("already searched")


def test_a_text_without_an_action_is_reminded_once():
    prediction, llm = read("Hm.", "Answer: Bo May")
    assert 'begins with "Search:", "Compute:" or "Answer:"' in last_text(llm.seen[1])
    assert prediction.answer == "Bo May"
    assert [step.action for step in prediction.steps] == ["other"]


@pytest.mark.parametrize("text", ["Hm.", "", "Search:", "Answer:", "The answer is Bo May."])
def test_a_text_without_an_action_twice_is_unparsed(text):
    prediction, llm = read(text)
    assert len(llm.seen) == 2
    assert prediction.answer == ""
    assert prediction.error.startswith("unparsed: ")
    assert "\n" not in prediction.error


def test_the_last_text_is_an_answer_by_the_prompts_rule():
    prediction, _ = read("Search: ferry", "Bo May", steps=2)
    assert prediction.answer == "Bo May"


def test_one_step_is_an_answer_without_a_search():
    prediction, llm = read("Bo May", steps=1, takes_tools=True)
    assert prediction.answer == "Bo May"
    assert [request.tools for request in llm.seen] == [""]
    assert "Search:" not in "".join(text for _, text in llm.seen[0].messages)


def test_a_failed_request_fails_the_question():
    class Failing(Scripted):
        def reply(self, request):
            done = super().reply(request)
            return Completion(error="HTTP 500") if "Passages for" in last_text(request) else done

    reader = agent(Failing("Search: ferry"))
    [prediction] = reader.answer([QUESTION], [[MILL]])
    assert prediction.error == "HTTP 500"
    assert [step.text for step in prediction.steps] == ["ferry"]
    assert reader.usage()["retry"] == 1


def test_questions_search_together():
    search = Searching()
    reader = agent(Scripted("Search: ferry", "Answer: 7"), search)
    others = [replace(QUESTION, id=f"t/{n}", text=f"If so, who was {n}?") for n in range(3)]
    predictions = reader.answer(others, [[MILL]] * 3)
    assert search.searched == [["ferry"]]
    assert [prediction.answer for prediction in predictions] == ["7"] * 3


def test_progress_ends_at_the_number_of_questions():
    steps: list[float] = []
    reader = agent(Scripted("Search: ferry", "Answer: 7"))
    reader.answer([QUESTION, replace(QUESTION, id="t/2")], [[MILL], []], steps.append)
    assert math.isclose(sum(steps), 2)


def test_searches_are_counted():
    reader = agent(Scripted("Search: ferry", "Compute: 1 + 1", "Answer: 7"))
    reader.answer([QUESTION, replace(QUESTION, id="t/2")], [[MILL], [MILL]])
    usage = reader.usage()
    assert (usage["searches"], usage["computations"]) == (2, 2)


def test_a_model_that_continues_a_text_writes_lines_too():
    prediction, llm = read("Search: ferry", "Answer: Bo May", chat=False)
    assert prediction.answer == "Bo May"
    assert llm.seen[0].text.endswith('"Search:", "Compute:" or "Answer:".\n')
    assert f"Search: ferry\nPassages for “ferry”:\n\n[2] Ferry\n{FERRY.text}" in llm.seen[1].text
    assert llm.seen[1].stop == ("\n",)


# The window


def test_the_oldest_results_are_left_out_first():
    texts = [Passage(f"p{n}", "", f"topic{n} " + "the mill " * 40) for n in range(3)]
    search = Searching(*texts)
    replies = ["Search: topic0", "Search: topic1", "Search: topic2", "Answer: 7"]
    prediction, llm = read(*replies, search=search, passages=(), window=2000)
    sent = "".join(text for _, text in llm.seen[3].messages)
    assert ["topic0 the" in sent, "topic2 the" in sent] == [False, True]
    assert "left out" in sent
    assert prediction.answer == "7"


def test_every_request_fits_the_window():
    texts = [Passage(f"p{n}", "", f"topic{n} " + "the mill " * 40) for n in range(3)]
    _, llm = read(
        *(f"Search: topic{n}" for n in range(3)),
        "Answer: 7",
        search=Searching(*texts),
        passages=texts,
        window=2200,
    )
    sizes = [bound_tokens(request, llm) + request.max_tokens for request in llm.seen]
    assert len(sizes) == 4
    assert max(sizes) <= 2200


def test_a_passage_that_did_not_fit_first_takes_no_number_later():
    texts = [Passage(f"p{n}", "", f"topic{n} " + "the mill " * 40) for n in range(4)]
    short = Passage("short", "", "topic4")
    search = Searching(short)
    _, llm = read("Search: topic4", "Answer: 7", search=search, passages=texts, window=2400)
    first, second = (re.findall(r"\[(\d)\]\s+(topic\d)", texts_of(request)) for request in llm.seen)
    assert len(first) < len(texts)
    assert second == [*first, (str(len(first) + 1), "topic4")]


def test_the_question_is_never_left_out():
    texts = [Passage(f"p{n}", "", f"topic{n} " + "the mill " * 40) for n in range(3)]
    replies = [*(f"Search: topic{n}" for n in range(3)), "Answer: 7"]
    _, llm = read(*replies, search=Searching(*texts), passages=texts, window=1700)
    assert all(QUESTION.text in request.messages[1][1] for request in llm.seen)


def test_a_question_that_does_not_fit_is_not_asked():
    prediction, llm = read("Answer: 7", window=300)
    assert llm.seen == []
    assert prediction.error.startswith("not asked: the question takes")


# Function calls


def functions(*replies, **more):
    return read(*replies, takes_tools=True, **more)


def names(request):
    return [tool["function"]["name"] for tool in json.loads(request.tools)]


def test_a_model_calls_functions_if_it_can():
    prediction, llm = functions(
        [call("search", query="ferry at Wick")], [call("answer", answer="Bo May")]
    )
    assert prediction.answer == "Bo May"
    assert names(llm.seen[0]) == ["search", "compute", "answer"]
    assert FERRY.text in llm.seen[1].turns[0].results[0]


def test_the_last_request_offers_the_answer_alone():
    _, llm = functions([call("search", query="a")], [call("answer", answer="7")], steps=2)
    assert names(llm.seen[1]) == ["answer"]


def test_several_calls_at_once_are_done_in_order():
    prediction, llm = functions(
        [
            call("search", query="ferry"),
            call("compute", expression="1+1"),
            call("search", query="bridge"),
        ],
        [call("answer", answer="Bo May")],
    )
    assert [step.text for step in prediction.steps] == ["ferry", "1+1", "bridge"]
    first, second, third = llm.seen[1].turns[0].results
    assert [FERRY.text in first, second, BRIDGE.text in third] == [True, "2", True]


def test_too_many_calls_at_once_are_not_done():
    calls = [call("search", query=f"word{n}") for n in range(6)]
    search = Searching()
    prediction, _ = functions(calls, [call("answer", answer="7")], search=search)
    assert [len(texts) for texts in search.searched] == [4]
    assert prediction.steps[5].result == "not done: at most 4 calls at once"


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("lookup", "{}", "there is no function 'lookup'; there are search, compute and answer"),
        ("", "", "there is no function ''"),
        ("search", "", 'search wants the arguments {"query": "..."}'),
        ("search", '{"q": "ferry"}', "search wants the arguments"),
        ("search", "[1]", "search wants the arguments"),
        ("search", '{"query": ', "search wants the arguments"),
        ("search", '{"query": ["a"]}', "search wants the arguments"),
        ("search", '{"query": "  "}', "search wants the arguments"),
        ("search", json.dumps({"query": "x" * 301}), "at most 300 characters"),
        ("compute", "{}", 'compute wants the arguments {"expression": "..."}'),
        ("answer", "{}", 'answer wants the arguments {"answer": "..."}'),
    ],
)
def test_a_wrong_call_is_told_what_there_is(name, arguments, told):
    prediction, llm = functions([(name, arguments)], [call("answer", answer="Bo May")])
    assert told in llm.seen[1].turns[0].results[0]
    assert prediction.answer == "Bo May"
    assert prediction.steps[0].action == "other"


def test_wrong_calls_for_ever_end_after_all_steps():
    prediction, llm = functions([("lookup", "{}")], steps=3)
    assert len(llm.seen) == 3
    assert prediction.error.startswith("unparsed: there is no function 'lookup'")


def test_a_wrong_call_is_repeated_in_a_form_that_servers_accept():
    _, llm = functions([("look up!", '{"a"')], [call("answer", answer="7")])
    assert llm.seen[1].turns[0].calls == (("look_up_", "{}"),)


def test_a_text_in_place_of_a_call_counts_too():
    prediction, llm = functions("Search: ferry", "Answer: Bo May")
    assert prediction.answer == "Bo May"
    assert llm.seen[1].turns[0].text == "Search: ferry"


def test_half_a_surrogate_pair_in_a_call_is_replaced():
    prediction, _ = functions([("answer", r'{"answer": "Bo \ud800 May"}')])
    assert prediction.answer == "Bo \N{REPLACEMENT CHARACTER} May"


def test_lines_are_written_if_functions_are_not_wanted():
    _, llm = functions("Answer: Bo May", calls="lines")
    assert llm.seen[0].tools == ""


def test_functions_that_a_model_has_not_are_refused():
    with pytest.raises(ConfigError, match="takes no functions"):
        agent(Scripted("Answer: 7"), calls="functions")


# Prompts


def test_an_answer_with_a_quote_is_looked_up():
    text = f"Quote: {FERRY.text}\nPassage: 2\nChange: nothing\nAnswer: Bo May"
    prediction, _ = read("Search: ferry", text, prompt="grounded")
    assert prediction.quote.outcome == "exact"
    assert prediction.how.passage_id == "ferry"
    assert prediction.passage_ids[0] == "ferry"


def test_a_function_has_the_fields_of_the_prompt():
    fields = {"quote": FERRY.text, "passage": 2, "change": "", "answer": "Bo May"}
    prediction, _ = functions(
        [call("search", query="ferry")], [call("answer", **fields)], prompt="grounded"
    )
    assert (prediction.answer, prediction.quote.outcome) == ("Bo May", "exact")


def test_an_abstention_is_one():
    text = "Quote:\nPassage:\nChange: nothing\nAnswer: not said"
    prediction, _ = read(text, prompt="grounded")
    assert prediction.abstained


def test_the_sentence_of_an_answer_is_found_afterwards():
    llm = Scripted("Search: ferry", "Answer: Bo May")
    reader = Agent(Agent.Settings(), llm=llm, search=Searching())
    [prediction] = reader.answer([QUESTION], [[MILL]])
    assert prediction.how is not None
    assert prediction.how.origin == "found afterwards"
    assert prediction.how.passage_id == "ferry"


def test_choices_are_among_the_answers():
    question = Question("t/1", "Which?", choices=("more", "less"))
    prediction, _ = read("Answer: (B)", question=question, prompt="multiple-choice")
    assert prediction.answer == "less"


@pytest.mark.parametrize("prompt", ["closed-book", "open-book-json", "genread-generate"])
def test_a_prompt_that_does_not_fit_is_refused(prompt):
    with refused("wanted a prompt that reads passages"):
        agent(Scripted("Answer: 7"), prompt=prompt)


# Confidence


def store_calibration(name):
    """Store a calibration, under the name of a prompt, that gives all answers the same one."""
    calibration = LlmCalibration(
        version=VERSION,
        model="scripted",
        prompt=name,
        prompt_sha256=sha256(prompt_path("agent")),
        span_weights="",
        with_logprobs=None,
        without_logprobs=Fit(intercept=0.0, coefficients={"words": 0.0}),
    )
    path = calibration_path(Path(), "scripted", name)
    path.parent.mkdir(parents=True)
    write_json(path, calibration.model_dump())


def test_a_calibration_gives_answers_a_confidence():
    store_calibration("agent (reader agent)")
    prediction, _ = read("Search: ferry", "Answer: Bo May")
    assert prediction.confidence == 0.5


def test_a_calibration_for_the_reader_llm_is_not_taken():
    store_calibration("agent")
    prediction, _ = read("Search: ferry", "Answer: Bo May")
    assert prediction.confidence is None


def test_a_reading_belongs_to_its_calibration():
    before = Agent.fingerprint(Agent.Settings(), Path())
    store_calibration("agent (reader agent)")
    assert Agent.fingerprint(Agent.Settings(), Path()) != before


def test_the_log_probabilities_are_those_of_the_answer():
    class Sure(Scripted):
        def reply(self, request):
            tokens = ((5, -9.0), (12, -1.0), (15, -2.0), (19, -3.0))
            return replace(super().reply(request), logprobs=tokens)

    reader = agent(Sure("Well.\nAnswer: Bo May"))
    [reply] = reader.ask([QUESTION], [[MILL]])
    features = reader.features(reply)
    assert features["log_probability"] == -5.0
    assert features["mean_log_probability"] == -2.0


# Costs


def test_the_estimate_has_all_requests_of_all_questions():
    llm = Scripted("Answer: 7")
    questions = [replace(QUESTION, id=f"t/{n}", text=f"If so, who was {n}?") for n in range(3)]
    requests = agent(llm, steps=4).requests(questions, [[MILL]] * 3)
    assert len(set(requests)) == 12
    assert llm.estimate(requests) == Estimate(12, 0, 12 * 96, None)


def test_no_request_is_larger_than_its_estimate():
    long = [Passage(f"p{n}", f"Topic {n}", f"topic{n} " + "the mill " * 500) for n in range(9)]
    search = Searching(*long)
    replies = [f"Search: topic{3 * n} topic{3 * n + 1} topic{3 * n + 2}" for n in range(3)]
    llm = Scripted(*replies, "Answer: 7", window=100_000)
    reader = agent(llm, search)
    bounds = reader.requests([QUESTION], [[MILL]])
    reader.answer([QUESTION], [[MILL]])
    sizes = [[bound_tokens(request, llm) for request in part] for part in (llm.seen, bounds)]
    assert len(sizes[0]) == 4
    assert all(sent <= bound for sent, bound in zip(*sizes, strict=True))


def test_the_most_requests_are_told_before(caplog):
    caplog.set_level("INFO")
    agent(Scripted("Answer: 7")).answer([QUESTION, replace(QUESTION, id="t/2")], [[], []])
    assert "at most 8 requests for 2 questions, 4 for each" in caplog.text


class Capped(Scripted):
    """Has room for so many questions at a time."""

    room = 0

    def affordable(self, groups):
        self.groups = [len(group) for group in groups]
        return min(self.room, len(groups)), "not asked: it would exceed the cap of $1"


def test_questions_without_room_under_the_cap_are_not_asked():
    llm = Capped("Answer: 7")
    reader = agent(llm)
    [prediction] = reader.answer([QUESTION], [[MILL]])
    assert llm.seen == []
    assert prediction.error == "not asked: it would exceed the cap of $1 with up to 4 requests"
    assert reader.usage()["not_asked"] == 1


def test_as_many_questions_are_asked_at_a_time_as_fit_under_the_cap():
    llm = Capped("Search: ferry", "Answer: 7")
    llm.room = 2
    questions = [replace(QUESTION, id=f"t/{n}", text=f"If so, who was {n}?") for n in range(5)]
    predictions = agent(llm).answer(questions, [[MILL]] * 5)
    assert [prediction.answer for prediction in predictions] == ["7"] * 5
    assert llm.groups == [4]


class Refusing(Capped):
    """Has room for a question at a time, and refuses functions when it is first asked."""

    room = 1

    def complete(self, requests, advance=lambda done: None):
        if any(request.tools for request in requests):
            self.takes_tools = False
            raise ToolsRefused("the server takes no functions")
        return super().complete(requests, advance)


def test_a_model_that_refuses_functions_writes_lines():
    llm = Refusing("Search: ferry", "Answer: Bo May", takes_tools=True)
    questions = [QUESTION, replace(QUESTION, id="t/2", text="If so, who was he?")]
    predictions = agent(llm).answer(questions, [[MILL]] * 2)
    assert [prediction.answer for prediction in predictions] == ["Bo May"] * 2
    assert all("Search:" in texts_of(request) for request in llm.seen)


def test_functions_that_are_wanted_and_refused_stop_the_reading():
    reader = agent(Refusing("Answer: 7", takes_tools=True), calls="functions")
    with pytest.raises(ToolsRefused):
        reader.answer([QUESTION], [[MILL]])
