"""The reader 'llm', GenRead, and their stages, against a scripted server on loopback."""

import json
import math
import re
from pathlib import Path

import pytest
from openai_client import KEY, here  # noqa: F401 - a fixture
from openai_server import Reply, error, serving
from refusals import refused

from ifqa.config.experiment import load_experiment
from ifqa.config.overrides import override
from ifqa.errors import IfqaError
from ifqa.llms.openai import OpenAI
from ifqa.pipeline import stages
from ifqa.pipeline.run import Run
from ifqa.prompting.parsing import RULE_VERSIONS
from ifqa.reading.llm import Llm
from ifqa.records import Passage, Question
from ifqa.report.console import show_scores
from ifqa.retrieval.genread import GenRead
from ifqa.settings import parse_settings
from ifqa.storage.files import read_json

PASSAGES = [
    Passage(f"p{n}", "Mill", f"The mill of town {n} was built in {1800 + n} by Bo Carr.")
    for n in range(6)
]
QUESTIONS = [
    Question(f"t/{n}", f"If the mill {n} had burned, when?", (str(1900 + n),)) for n in range(3)
]


def model(server, **settings):
    defaults = {"model": "gpt-4o-mini", "base_url": server.url, "retries": 0, "window": 4096}
    return OpenAI(OpenAI.Settings(**defaults | settings))


def llm_reader(llm, **settings):
    return Llm(Llm.Settings(**settings), llm=llm)


def fingerprint(prompt):
    return Llm.fingerprint(Llm.Settings(prompt=prompt), Path())


def answers(text):
    return lambda prompt, time, body: Reply(text=text)


@pytest.fixture(scope="module")
def asked():
    """The predictions, the reader, and the requests of three questions."""
    with serving(answers("Reasoning: it is so.\nAnswer: **1901**.")) as server:
        reader = llm_reader(model(server), prompt="open-book-cot")
        predictions = reader.answer(QUESTIONS, [PASSAGES[:2], PASSAGES[2:3], []])
    return predictions, reader, server.bodies


def test_answers_are_parsed(asked):
    predictions, _, _ = asked
    assert {prediction.answer for prediction in predictions} == {"1901"}
    assert predictions[0].completion == "Reasoning: it is so.\nAnswer: **1901**."


def test_a_prediction_names_what_was_read(asked):
    predictions, _, _ = asked
    ids = [prediction.question_id for prediction in predictions]
    assert ids == [question.id for question in QUESTIONS]
    assert [prediction.passage_ids for prediction in predictions] == [("p0", "p1"), ("p2",), ()]


def test_questions_are_asked_with_passages(asked):
    _, _, bodies = asked
    (first,) = (
        text for body in bodies if "the mill 0" in (text := body["messages"][-1]["content"])
    )
    assert [passage.text in first for passage in PASSAGES[:3]] == [True, True, False]
    assert first.index(PASSAGES[0].text) < first.index(PASSAGES[1].text)


def test_a_question_is_one_call(asked):
    _, reader, _ = asked
    assert reader.usage()["spent"]["calls"] == 3


def test_closed_book_prompts_show_no_passages():
    with serving(answers("Answer: 1901")) as server:
        reader = llm_reader(model(server), prompt="closed-book")
        closed = reader.answer(QUESTIONS[:1], [PASSAGES])[0]
    assert "Bo Carr" not in server.bodies[0]["messages"][-1]["content"]
    assert closed.answer == "1901"
    assert closed.passage_ids == ()


def test_order_puts_the_best_last():
    with serving(answers("Answer: 1901")) as server:
        last = llm_reader(model(server), order="best last").answer(QUESTIONS[:1], [PASSAGES[:3]])[0]
    text = server.bodies[0]["messages"][-1]["content"]
    places = [text.index(passage.text) for passage in PASSAGES[:3]]
    assert places == sorted(places, reverse=True)
    assert last.passage_ids == ("p0", "p1", "p2")


def test_passages_beyond_the_window_are_counted():
    with serving(answers("Answer: 1")) as server:
        reader = llm_reader(model(server, window=330), prompt="open-book")
        prediction = reader.answer(QUESTIONS[:1], [PASSAGES])[0]
    assert 0 < len(prediction.passage_ids) < 6
    assert prediction.passage_ids == tuple(f"p{n}" for n in range(len(prediction.passage_ids)))
    assert reader.usage()["left_out"] == 6 - len(prediction.passage_ids)


def test_a_question_beyond_the_window_is_not_asked():
    long = Question("t/9", "If " + "so it were and " * 500 + "what?", ("1",))
    with serving(answers("I cannot say.")) as server:
        reader = llm_reader(model(server, window=800), prompt="open-book-cot")
        too_long, _ = reader.answer([long, QUESTIONS[0]], [[], []])
    assert re.match(r"not asked: the question take", too_long.error)
    assert server.requests == 1
    assert reader.usage()["retry"] == 0


def test_an_unparsed_completion_is_counted():
    with serving(answers("I cannot say.")) as server:
        reader = llm_reader(model(server, window=800), prompt="open-book-cot")
        [unparsed] = reader.answer(QUESTIONS[:1], [[]])
    assert unparsed.answer == ""
    assert unparsed.error[:10] == "unparsed: "
    assert unparsed.completion == "I cannot say."
    assert reader.usage()["unparsed"] == 1


def test_answers_are_parsed_again_when_their_prompts_rule_changes(monkeypatch):
    before = {
        prompt: fingerprint(prompt) for prompt in ("open-book", "open-book-cot", "counterfactual")
    }
    monkeypatch.setitem(RULE_VERSIONS, "last marker", "of tomorrow")
    changed = {prompt for prompt, hashed in before.items() if fingerprint(prompt) != hashed}
    assert changed == {"open-book-cot", "counterfactual"}


def test_an_answer_outside_the_choices_is_a_counted_failure():
    offers = [
        Question(f"w/{n}", f"suppose rain happens, mill {n}?", choices=("more", "less"))
        for n in range(2)
    ]
    texts = {"0": "Answer: (B) less", "1": "Answer: much more"}

    def answer(prompt, time, body):
        mill = re.search(r"mill (\d)\?", prompt)
        assert mill is not None
        return Reply(text=texts[mill[1]])

    with serving(answer) as server:
        reader = llm_reader(model(server), prompt="multiple-choice")
        right, wrong = reader.answer(offers, [PASSAGES[:1], []])
    assert "(A) more\n(B) less" in server.bodies[0]["messages"][-1]["content"]
    assert (right.answer, right.completion) == ("less", "Answer: (B) less")
    assert (wrong.answer, wrong.error) == ("", "unparsed: 'much more' is none of the choices")
    assert reader.usage()["unparsed"] == 1


def test_the_answer_most_samples_agree_on_counts():
    texts = iter(["Answer: The Mill", "Answer: 1902", "no", "Answer: mill.", "Answer: 1902"])
    with serving(lambda prompt, time, body: Reply(text=next(texts))) as server:
        reader = llm_reader(
            model(server, concurrency=1), prompt="open-book-cot", samples=5, temperature=0.7
        )
        prediction = reader.answer(QUESTIONS[:1], [PASSAGES[:1]])[0]
    assert prediction.answer == "The Mill"  # as often as 1902, and first
    assert prediction.score == pytest.approx(math.log(2 / 5))
    assert server.requests == 5


def test_demonstrations_come_from_a_file_or_are_drawn_by_seed():
    with serving(answers("Answer: 1")) as server:
        reader = llm_reader(model(server), prompt="counterfactual", demos="sample", shots=2)
        reader.answer(QUESTIONS[:1], [PASSAGES[:1]])
    roles = [message["role"] for message in server.bodies[0]["messages"]]
    assert (roles, reader.family) == (["system", *["user", "assistant"] * 2, "user"], "sample")
    readers = [
        llm_reader(model(server), demos="sample/train", shots=3, seed=seed) for seed in (0, 1)
    ]
    first, second = (reader.fitted(QUESTIONS[:1], [[]])[0].request.messages for reader in readers)
    assert (
        [role for role, _ in first].count("assistant")
        == [role for role, _ in second].count("assistant")
        == 3
    )
    assert first != second


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"prompt": "open-bok"}, "did you mean 'open-book'"),
        ({"demos": "sampl"}, "did you mean 'sample'"),
        ({"shots": 3}, "shots needs demos"),
        ({"demos": "sample/train"}, "set shots"),
        ({"temperature": 3.0}, "from 0 to 2"),
        ({"samples": 3}, "at temperature 0 are the same"),
        ({"samples": 0}, "'samples': wanted a whole number from 1"),
    ],
)
def test_settings_out_of_range_are_refused_in_one_line(settings, message):
    with serving() as server, refused(message):
        checked = parse_settings(Llm.Settings, settings, "setting of reader 'llm'")
        Llm(checked, llm=model(server))


@pytest.fixture(scope="module")
def sampled():
    """The rankings, the retriever, and the requests of three questions, of which one fails."""

    def plan(prompt, time, body):
        return error(500, "no") if "mill 1" in prompt else Reply(text=f"text {time}\n\nIt was so.")

    with serving(plan) as server:
        retriever = GenRead(GenRead.Settings(temperature=0.9), llm=model(server))
        rankings = retriever.search(QUESTIONS, 2)
    return rankings, retriever, server.bodies


def test_genread_omits_failed_samples(sampled):
    rankings, retriever, _ = sampled
    assert [len(ranking) for ranking in rankings] == [2, 0, 2]
    assert retriever.usage()["retry"] == 1


def test_genread_joins_the_lines_of_a_sample(sampled):
    rankings, _, _ = sampled
    texts = [passage.text for ranking in rankings for passage in ranking.generated]
    assert all("\n" not in text and text.endswith("It was so.") for text in texts)


def test_genread_sends_its_settings(sampled):
    _, _, bodies = sampled
    assert all((body["temperature"], body["max_tokens"]) == (0.9, 300) for body in bodies)


def test_genread_refuses_a_prompt_with_passages():
    with serving() as server, refused("reads passages"):
        GenRead(GenRead.Settings(prompt="open-book"), llm=model(server))


CLOSED = '[reader]\nname = "llm"\nprompt = "closed-book"'
GENREAD = (
    '[retriever]\nname = "genread"\nk = 1\n[reader]\nname = "llm"\nprompt = '
    '"genread-read"\npassages = 1'
)


def experiment(server, tables, limit):
    Path("experiments").mkdir(exist_ok=True)
    llm = f'[llm]\nmodel = "gpt-4o-mini"\nretries = 0\nbase_url = "{server.url}"\n'
    head = f'benchmark = "sample"\nsplit = "dev"\nlimit = {limit}'
    Path("experiments/mine.toml").write_text(f"{head}\n{tables}\n{llm}")
    return load_experiment("mine")


def record(chosen, stage="read"):
    return read_json(chosen.folder / stage / "manifest.json")["record"]


def test_the_next_run_asks_only_failed_questions_again(capsys):
    down = {"now": True}

    def plan(prompt, time, body):
        return error(500, "sorry") if down["now"] and "Scott" in prompt else Reply(text="Answer: x")

    with serving(plan) as server:
        chosen = experiment(server, CLOSED, 83)
        folder = stages.run(Run(chosen))
        failed = record(chosen)["retry"]
        scores = read_json(folder / "scores.json")
        assert scores["n_failed"] == scores["retry"] == failed > 0
        assert show_scores(Run(chosen), folder) == 0
        assert f"{failed} questions with an incomplete answer" in capsys.readouterr().out
        before = server.requests
        down["now"] = False
        for _ in range(2):
            stages.run(Run(chosen))
            assert server.requests == before + failed
        assert read_json(folder / "scores.json")["n_failed"] == 0
        # Tokens of all answers, also of those from the cache
        assert record(chosen)["took"] == [7 * 83, 3 * 83]


def test_genread_runs_through_every_stage():
    def plan(prompt, time, body):
        return Reply(text="Answer: x" if "Background" in prompt else "Some text.")

    with serving(plan) as server:
        chosen = experiment(server, GENREAD, 5)
        folder = stages.run(Run(chosen))
        assert server.requests == 10
    assert "gold_any@1" in read_json(folder / "scores.json")["measures"]
    for stage in ("retrieve", "read"):
        assert record(chosen, stage)["spent"]["calls"] == 5
        assert record(chosen, stage)["server"] == server.url.removesuffix("/v1")
    lines = (chosen.folder / "read/predictions.jsonl").read_text().splitlines()
    assert [json.loads(line)["passage_ids"] for line in lines] == [
        [f"genread/sample/dev/{n}/0"] for n in range(5)
    ]


def test_the_key_is_written_nowhere(tmp_path, capsys):
    def plan(prompt, time, body):
        return error(401, f"Incorrect API key provided: {KEY}. See it.", "invalid_api_key")

    with serving(plan) as server, pytest.raises(IfqaError) as caught:
        stages.run(Run(experiment(server, CLOSED, 12)))
    with serving(answers("Answer: x")) as server:
        chosen = experiment(server, CLOSED, 12)
        show_scores(Run(chosen), stages.run(Run(chosen)))
    files = [path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file()]
    assert not [
        text for text in [*capsys.readouterr(), str(caught.value), *files] if "canary" in text
    ]


def test_a_model_must_be_named():
    with refused(r"'llm' needs a language model; set it: .* --model NAME"):
        override(load_experiment("sample"), {"reader": "llm"})
