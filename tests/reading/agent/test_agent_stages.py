"""The reader 'agent' in an experiment: it searches the corpus, resumes, keeps to caps, and says
what it did.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import outside_plugins as toy
import pytest
from openai_server import Reply, error, serving
from refusals import refused
from scored_experiments import write

from ifqa.config.experiment import parse_experiment
from ifqa.config.overrides import override
from ifqa.errors import IfqaError, ServiceError
from ifqa.pipeline import stages
from ifqa.pipeline.check import Work, check
from ifqa.pipeline.read import READ
from ifqa.pipeline.run import Run
from ifqa.pipeline.stage_outputs import answers_of
from ifqa.pipeline.stages import open_system
from ifqa.report.answers import answer_json, show_answer
from ifqa.report.console import show_scores
from ifqa.report.question_browser import browser_data
from ifqa.serve.schemas import AnswerForm
from ifqa.storage.files import read_json

pytestmark = pytest.mark.usefixtures("five")

AGENT = {"name": "agent", "passages": 1, "hits": 1, "span_reader": False}


def experiment(url, reader=(), llm=(), name="mine"):
    """Five questions, each with one passage of five, which the model may search."""
    model = {"name": "openai", "model": "m", "base_url": url, "retries": 0, "window": 8192}
    toy.corpus()
    sections = {
        "benchmark": "ifqa",
        "split": "full-dev",
        "corpus": "few",
        "retriever": toy.WORDS,
        "reader": AGENT | dict(reader),
        "llm": model | dict(llm),
    }
    return parse_experiment(name, sections, f"{name}.toml")


def calling(name, **arguments):
    function = {"name": name, "arguments": json.dumps(arguments)}
    return Reply(message={"content": None, "tool_calls": [{"function": function}]})


def turns(body):
    return sum(message["role"] == "assistant" for message in body["messages"])


def first_search_then_answer(prompt, time, body):
    """Calls search for a passage that the question came without, and answers from it."""
    if not turns(body):
        return calling("search", query="team4 is led by")
    return calling("answer", answer="captain4")


def by_lines(prompt, time, body):
    if "tools" in body:
        return error(400, "this model does not support tools")
    return Reply(text="Answer: captain4" if turns(body) else "Search: team4 is led by")


def predictions(name="mine"):
    lines = Path(f"experiments/{name}/read/predictions.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def record(name="mine"):
    return read_json(Path(f"experiments/{name}/read/manifest.json"))["record"]


@pytest.mark.parametrize("plan", [first_search_then_answer, by_lines])
def test_an_experiment_reads_with_searches(plan):
    with serving(plan) as server:
        stages.run(Run(experiment(server.url)))
    (row, *_) = predictions()
    assert row["answer"] == "captain4"
    assert row["passage_ids"] == ["p0", "p4"]
    assert row["steps"] == [
        {"action": "search", "text": "team4 is led by", "result": "", "passage_ids": ["p4"]}
    ]


def test_the_model_reads_what_was_found():
    with serving(first_search_then_answer) as server:
        stages.run(Run(experiment(server.url)))
    results = [body["messages"][-1]["content"] for body in server.bodies if turns(body)]
    shown = [text for text in results if "[2] Team 4\nteam4 is led by captain4" in text]
    repeated = [text for text in results if "[1] Team 4 (shown before)" in text]
    assert (len(shown), len(repeated)) == (4, 1)


def test_the_manifest_counts_requests_with_searches():
    with serving(first_search_then_answer) as server:
        stages.run(Run(experiment(server.url)))
    assert record()["spent"]["calls"] == server.requests == 10
    assert (record()["searches"], record()["computations"]) == (5, 0)
    assert record()["sent"].endswith(", tools")


def test_the_scores_tell_the_searches(capsys):
    with serving(first_search_then_answer) as server:
        run = Run(experiment(server.url))
        show_scores(run, stages.run(run))
    assert "It made 5 searches and 0 computations." in capsys.readouterr().out


def test_other_readers_have_no_steps():
    with serving(lambda prompt, time, body: Reply(text="Answer: x")) as server:
        changes = {"reader": "llm", "reader.span_reader": False}
        chosen = override(experiment(server.url), changes)
        stages.run(Run(chosen))
    assert not [row for row in predictions(chosen.name) if "steps" in row]
    assert "searches" not in record(chosen.name)


def test_a_killed_reading_asks_nothing_twice():
    def dying(prompt, time, body):
        if turns(body):
            return error(401, "the reading ends here")
        return first_search_then_answer(prompt, time, body)

    with serving(dying) as server:
        chosen = experiment(server.url, llm={"served_as": "one server"})
        with pytest.raises(ServiceError):
            stages.run(Run(chosen))
        first = server.requests
    with serving(first_search_then_answer) as server:
        again = experiment(server.url, llm={"served_as": "one server"})
        stages.run(Run(again))
        assert not [body for body in server.bodies if not turns(body)]
    assert first >= 5
    assert [row["answer"] for row in predictions()] == ["captain4"] * 5


def test_a_finished_reading_costs_nothing_again():
    with serving(first_search_then_answer) as server:
        stages.run(Run(experiment(server.url)))
        asked = server.requests
        stages.run(Run(experiment(server.url, reader={"threshold": 0.0}, name="other")))
    assert server.requests == asked
    assert record("other")["spent"]["cached"] == 10


def test_a_cap_leaves_no_question_halfway():
    with serving(first_search_then_answer) as server:
        chosen = experiment(server.url, llm={"max_total_tokens": 30_000})
        stages.run(Run(chosen))
    rows = predictions()
    answered = [row for row in rows if row["answer"]]
    refused_rows = [row for row in rows if row["error"].startswith("not asked")]
    assert len(answered) + len(refused_rows) == 5
    assert server.requests == 2 * len(answered)


def test_a_cap_below_one_question_asks_nothing():
    with serving(first_search_then_answer) as server:
        stages.run(Run(experiment(server.url, llm={"max_total_tokens": 3000})))
    assert server.requests == 0
    assert {row["error"] for row in predictions()} == {
        "not asked: it would exceed the cap of 3,000 tokens (max_total_tokens) "
        "with up to 4 requests"
    }
    assert record()["not_asked"] == 5


def test_the_check_tells_the_highest_number_of_requests():
    def plan(prompt, time, body):
        return first_search_then_answer(prompt, time, body) if "tools" in body else Reply(text="no")

    with serving(plan) as server:
        write("experiments/mine.toml", as_toml(experiment(server.url)))
        works = [finding for finding in check("mine") if isinstance(finding, Work)]
    [asked] = [work for work in works if work.calls]
    assert asked.calls == 20
    assert (asked.prompt_tokens or 0) > 20 * 250


def as_toml(chosen):
    import tomli_w

    from ifqa.config.overrides import as_sections

    return tomli_w.dumps(as_sections(chosen))


def reading_inputs(chosen):
    return Run(chosen).inputs(READ)


def test_a_reading_belongs_to_its_retriever():
    with serving(first_search_then_answer) as server:
        chosen = experiment(server.url)
        stages.run(Run(chosen))
        before = reading_inputs(chosen)
        deeper = replace(chosen, retriever=replace(chosen.retriever, k=4))
        stages.retrieve(Run(deeper))
        assert reading_inputs(deeper) != before


def test_a_reading_belongs_to_its_corpus():
    with serving(first_search_then_answer) as server:
        stages.run(Run(experiment(server.url)))
        before = reading_inputs(experiment(server.url))
        toy.passages(range(6))
        stages.build_corpus(Run(experiment(server.url)))
        stages.retrieve(Run(experiment(server.url)))
        after = reading_inputs(experiment(server.url))
    assert before["passages"] != after["passages"]


@pytest.mark.parametrize("retriever", ["gold", "context", "genread"])
def test_a_retriever_that_cannot_search_for_any_text_is_refused(retriever):
    with refused("searches the corpus for texts of its own"):
        override(experiment("http://127.0.0.1:1/v1"), {"retriever": retriever})


def test_an_experiment_without_a_retriever_is_refused():
    llm = {"model": "m", "base_url": "http://127.0.0.1:1/v1"}
    with refused("searches; set a .retriever. over a corpus"):
        toy.experiment(reader={"name": "agent"}, llm=llm)


def test_a_server_that_refuses_functions_midway_stops_in_one_line():
    def plan(prompt, time, body):
        if turns(body):
            return error(400, "tools are not supported")
        return first_search_then_answer(prompt, time, body)

    with serving(plan) as server, pytest.raises(IfqaError, match=r"\A[^\n]*no functions[^\n]*\Z"):
        stages.run(Run(experiment(server.url)))


# An opened system


@pytest.fixture
def answer():
    with (
        serving(first_search_then_answer) as server,
        open_system(Run(experiment(server.url))) as system,
    ):
        yield system.ask("If team0 had won, who would lead?")


def test_an_answer_has_the_passages_that_were_searched_for(answer):
    assert [passage.id for passage in answer.evidence] == ["p0", "p4"]
    assert [step.text for step in answer.steps] == ["team4 is led by"]


def test_an_answer_shows_its_steps(answer, capsys):
    show_answer(answer)
    assert "Steps     searched “team4 is led by”: 1 passage" in capsys.readouterr().out


def test_json_has_the_steps(answer):
    assert json.loads(json.dumps(answer_json(answer)))["steps"] == [
        {"action": "search", "text": "team4 is led by", "result": "", "passage_ids": ["p4"]}
    ]
    assert AnswerForm.of(answer, 0).steps[0].line == "searched “team4 is led by”: 1 passage"


def test_a_notebook_shows_the_steps(answer):
    assert "<li>searched “team4 is led by”: 1 passage</li>" in answer._repr_html_()


def test_passages_cannot_be_left_out_for_a_reader_that_searches():
    with (
        serving(first_search_then_answer) as server,
        open_system(Run(experiment(server.url))) as system,
    ):
        given = system.ask("If team0 had won, who would lead?")
        with refused("it could find again what is left out"):
            system.why(given)


def test_finished_answers_have_the_passages_that_were_searched_for():
    with serving(first_search_then_answer) as server:
        chosen = experiment(server.url)
        stages.run(Run(chosen))
        (first, *_) = answers_of(chosen, Run(chosen).questions)
    assert [passage.id for passage in first.evidence] == ["p0", "p4"]


def test_the_page_has_the_steps_with_their_passages():
    with serving(first_search_then_answer) as server:
        chosen = experiment(server.url)
        stages.run(Run(chosen))
        split: Any = browser_data([chosen])["splits"][0]
    (question, *_) = split["questions"]
    [entry] = question["e"]
    assert entry["k"] == ["searched “team4 is led by”: 1 passage"]
    assert [question["p"][n]["i"] for n in entry["p"]] == ["p0"]
    assert [question["p"][n]["i"] for n in entry["y"]] == ["p4"]


FINDER = """
class Finder:
    def __init__(self, search):
        self.search = search
    def answer(self, questions, passages):
        found = self.search([question.text for question in questions], 1)
        return [
            Prediction(question.id, hits[0].text, passage_ids=(hits[0].id,))
            for question, hits in zip(questions, found)
        ]
"""


def test_an_outside_reader_may_search():
    toy.outside(toy.PLUGINS, FINDER)
    chosen = toy.searching(reader={"name": "outside_of_stages:Finder", "passages": 1})
    with open_system(Run(chosen)) as system:
        assert system.ask("team3 is led by").text == "team3 is led by captain3"
