"""A language model judges the answers of an experiment: what it is asked, what its replies count
for, and when no scores are written.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from openai_client import here  # noqa: F401 - a fixture
from openai_server import Reply, error, serving
from prediction_files import write_predictions
from refusals import refused

from ifqa.config.overrides import override
from ifqa.errors import ServiceError
from ifqa.pipeline import stages
from ifqa.pipeline.check import Work, check
from ifqa.pipeline.run import Run
from ifqa.plugins import open_benchmark
from ifqa.report.compare import compare_pair
from ifqa.report.console import show_scores
from ifqa.report.gate import check_gate
from ifqa.report.result_tables import result_tables
from ifqa.report.results_log import local_entries
from ifqa.report.scores import load_scores
from ifqa.storage.files import read_json, read_jsonl

pytestmark = pytest.mark.usefixtures("here")

COLUMN = "judged by m"
SAME = "a short form"  # the answer that the stand-in takes for the same
OTHER = "something else"


def says(prompt, time, body):
    """A judge that takes one answer for the same as a gold answer."""
    return Reply(text="Yes." if f"answer: {SAME}\n" in prompt else "no")


def written(name="mine", answers=(SAME, OTHER), more=""):
    """An experiment of four questions: an exact match, two other answers, and a failure."""
    questions = open_benchmark("sample").questions("dev")[:4]
    texts = [questions[0].answers[0], *answers, ""]
    return write_predictions(
        name,
        {question.id: text for question, text in zip(questions, texts, strict=True)},
        more=f"limit = 4\n{more}",
    )


def judged(url, experiment=None, **settings):
    """The experiment with a judge at a server."""
    model: dict[str, Any] = {
        "judge.name": "openai",
        "judge.model": "m",
        "judge.base_url": url,
        "judge.retries": 0,
    }
    more = {f"judge.{key}": value for key, value in settings.items()}
    return override(experiment or written(), model | more)


def run(experiment):
    folder = stages.run(Run(experiment))
    return load_scores(Run(experiment), folder)


def rows(experiment):
    return [row for _, row in read_jsonl(experiment.folder / "score/per_question.jsonl")]


def test_only_answers_that_are_no_exact_match_are_asked_about():
    with serving(says) as server:
        experiment = judged(server.url)
        scores = run(experiment)
    assert server.requests == 2
    assert [row.get("verdict") for row in rows(experiment)] == [
        "exact match",
        "same",
        "different",
        None,
    ]
    assert [row[COLUMN] for row in rows(experiment)] == [1.0, 1.0, 0.0, 0.0]
    assert scores[COLUMN].value == 50.0


def test_the_model_sees_question_golds_answer():
    with serving(says) as server:
        run(judged(server.url))
    question = open_benchmark("sample").questions("dev")[1]
    prompt = next(prompt for prompt in server.asked if SAME in prompt)
    assert f"Question: {question.text}\n" in prompt
    assert f"Correct answers: {' | '.join(question.answers)}\n" in prompt


def test_scores_count_the_verdicts():
    with serving(says) as server:
        scores = run(judged(server.url))
    assert scores.content["judge"] == {
        "model": "m", "exact": 1, "same": 1, "different": 1, "unclear": 0, "too_long": 0,
    }  # fmt: skip


def test_a_reply_that_is_neither_yes_nor_no_counts_as_not_the_same(capsys):
    with serving(lambda prompt, time, body: Reply(text="Yes, it may be.")) as server:
        experiment = judged(server.url)
        scores = run(experiment)
    assert scores[COLUMN].value == 25.0
    assert scores.content["judge"]["unclear"] == 2
    show_scores(Run(experiment), experiment.folder / "score")
    assert "2 replies, neither yes nor no, counted as not the same" in capsys.readouterr().out


def test_an_answer_that_does_not_fit_the_window_is_not_sent():
    experiment = written(answers=(SAME, "word " * 2000))
    with serving(says) as server:
        scores = run(judged(server.url, experiment, window=2048))
    assert server.requests == 1
    assert scores.content["judge"]["too_long"] == 1


def test_a_window_that_no_question_fits_is_refused():
    with serving(says) as server, refused("no question fits its window of 256 tokens"):
        run(judged(server.url, window=256))
    assert not server.requests


def test_the_cost_is_told_before_a_request_is_sent(capsys):
    told = []

    def note(prompt, time, body):
        told.append("to judge 2 answers: 2 calls" in capsys.readouterr().err)
        return says(prompt, time, body)

    with serving(note) as server:
        run(judged(server.url, concurrency=1))
    assert told[0]


def test_a_failed_request_leaves_no_scores():
    def fails_once(prompt, time, body):
        fails = SAME in prompt and time == 1
        return error(500, "busy") if fails else says(prompt, time, body)

    with serving(fails_once) as server:
        experiment = judged(server.url)
        with refused("1 verdict of m missing .*Run the same command again"):
            run(experiment)
        assert not (experiment.folder / "score").exists()
        run(experiment)
    # What was answered is not asked again
    assert sorted(server.asked.values()) == [1, 2]


def test_a_failure_that_is_stored_leaves_no_scores():
    def blocks(prompt, time, body):
        blocked = SAME in prompt and time == 1
        return Reply(text="", finish="content_filter") if blocked else says(prompt, time, body)

    with serving(blocks) as server:
        experiment = judged(server.url)
        with refused("no scores were written. Ask again with --retry-failed"):
            run(experiment)
        assert not (experiment.folder / "score").exists()
        again = override(experiment, {"llm.retry_failed": True})
        assert run(again)[COLUMN].value == 50.0


def test_an_interrupted_run_asks_only_what_is_missing():
    def stops(prompt, time, body):
        if SAME in prompt and time == 1:
            return error(401, "no such key")  # every request would fail, so the run stops
        return says(prompt, time, body)

    with serving(stops) as server:
        experiment = judged(server.url, concurrency=1)
        with pytest.raises(ServiceError):
            run(experiment)
        run(experiment)
    assert max(server.asked.values()) <= 2
    assert server.requests <= 3


def test_nothing_is_asked_beyond_the_cap():
    with serving(says) as server, refused("2 verdicts of m missing .*not asked"):
        run(override(judged(server.url), {"llm.max_total_tokens": 10}))
    assert not server.requests


def test_an_unchanged_run_asks_nothing():
    with serving(says) as server:
        experiment = judged(server.url)
        run(experiment)
        stages.run(Run(experiment))
        stages.score(Run(experiment))
    assert server.requests == 2


def test_other_scores_are_the_same_with_a_judge():
    plain = run(written())
    with serving(says) as server:
        scores = run(judged(server.url))
    assert {key: scores[key] for key in plain} == {key: plain[key] for key in plain}


def test_a_changed_prompt_judges_again():
    path = Path("prompts/judges/mine.toml")
    path.parent.mkdir(parents=True)
    text = 'about = "a"\nsource = "b"\nmax_tokens = 4\nuser = "{question} {golds} {answer}"\n'
    path.write_text(text)
    with serving(lambda prompt, time, body: Reply(text="no")) as server:
        experiment = judged(server.url, prompt="mine")
        assert "judged by m (mine)" in run(experiment)
        path.write_text(text.replace("{answer}", "{answer}?"))
        run(experiment)
    assert server.requests == 4


def test_a_prompt_that_is_missing_is_refused_before_the_reading():
    experiment = judged("http://127.0.0.1:9/v1", prompt="none-such")
    with refused("none-such"):
        run(experiment)
    assert not (experiment.folder / "read").exists()


def test_verdicts_of_one_server_are_not_replaced_by_those_of_another(monkeypatch):
    with serving(says) as first, serving(says) as second:
        monkeypatch.setenv("OPENAI_BASE_URL", first.url)
        experiment = override(written(), {"judge.model": "m", "judge.retries": 0})
        run(experiment)
        monkeypatch.setenv("OPENAI_BASE_URL", second.url)
        with refused("which may serve another model.*judge.served_as"):
            stages.score(Run(experiment))
    assert not second.requests


def test_a_report_needs_no_address(monkeypatch):
    with serving(says) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        experiment = override(written(), {"judge.model": "m", "judge.retries": 0})
        run(experiment)
        monkeypatch.delenv("OPENAI_BASE_URL")
        run(written())
        compare_pair(written(), experiment)
    assert server.requests == 2


def test_the_gate_does_not_test_verdicts():
    with serving(says) as server:
        first = judged(server.url)
        run(first)
        second = judged(server.url, written("other", (OTHER, OTHER)))
        run(second)
    gate = check_gate(first, second)
    assert [each.difference.measure for each in gate.measures] == ["EM", "F1"]
    assert gate.untested == []
    with refused("the gate does not test 'judged by m'"):
        check_gate(first, second, COLUMN)


def test_verdicts_of_the_same_judge_are_compared():
    with serving(says) as server:
        first = judged(server.url)
        second = judged(server.url, written("other", (OTHER, OTHER)))
        for experiment in (first, second):
            run(experiment)
    assert compare_pair(first, second)[COLUMN].delta == -25.0


def test_verdicts_of_two_judges_under_one_name_are_not_compared():
    with serving(says) as server, serving(says) as other:
        first = judged(server.url)
        second = judged(other.url, written("other", (OTHER, OTHER)))
        for experiment in (first, second):
            run(experiment)
    assert COLUMN not in [each.measure for each in compare_pair(first, second).differences]


def test_a_score_outside_its_tolerance_decides_whatever_the_judge_says():
    experiment = written(more='[expected.EM]\nvalue = 25.0\n[judge]\nname = "openai"\nmodel = "m"')
    with serving(lambda prompt, time, body: Reply(text="no")) as server:
        experiment = override(experiment, {"judge.base_url": server.url, "judge.retries": 0})
        run(experiment)
        assert show_scores(Run(experiment), experiment.folder / "score") == 0


def test_a_table_of_results_has_the_column_of_each_judge():
    run(written())
    with serving(says) as server:
        run(judged(server.url))
    table, *_ = result_tables([entry for _, entry in local_entries()])
    assert table.columns[2:5] == ("EM", "F1", COLUMN)
    assert [row[4].partition(" ")[0] for row in table.rows] == ["", "50.0"]


def test_check_estimates_the_most_that_judging_takes():
    written()
    with serving(says) as server:
        changes = {"judge.name": "openai", "judge.model": "m", "judge.base_url": server.url}
        found = [each for each in check("mine", changes) if isinstance(each, Work)]
    judging = next(each for each in found if each.what.endswith("of the judge"))
    assert judging.calls == 4  # before there are answers


def test_check_estimates_what_judging_takes_after_the_reading():
    stages.run(Run(written()))
    with serving(says) as server:
        changes = {"judge.name": "openai", "judge.model": "m", "judge.base_url": server.url}
        stages.read(Run(override(written(), changes)))
        found = [each for each in check("mine", changes) if isinstance(each, Work)]
    judging = next(each for each in found if each.what.endswith("of the judge"))
    assert judging.calls == 2


def test_a_recording_judges():
    with serving(says) as server:
        run(judged(server.url))
    lines = [
        {
            "version": 1,
            "request": {
                "model": "m",
                "messages": [[each["role"], each["content"]] for each in body["messages"]],
                "max_tokens": 8,
            },
            "completion": {"text": says(body["messages"][-1]["content"], 1, body).text},
        }
        for body in server.bodies
    ]
    Path("spoken.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    changes = {"judge.name": "replay", "judge.path": "spoken.jsonl"}
    assert run(override(written(), changes))["judged by replay"].value == 50.0


def test_the_manifest_has_what_the_judge_took():
    with serving(says) as server:
        experiment = judged(server.url)
        run(experiment)
    record = read_json(experiment.folder / "score/manifest.json")["record"]
    assert record["spent"]["calls"] == 2
