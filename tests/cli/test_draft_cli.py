"""`ifqa init --draft` against a scripted server on loopback."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from command_line import ifqa_here
from openai_client import KEY, here  # noqa: F401 - a fixture
from openai_server import Reply, error, serving

from ifqa.formats.questions import read_questions

pytestmark = [pytest.mark.usefixtures("here"), pytest.mark.slow]
SLUICE = (
    "If the brake of mill {n} fails, the sluice is closed by Tom{n} Ferris with a key of iron. His "
    "deputy is Nora{n} Pike, who lives beside the pond and keeps the second key of the house."
)


@pytest.fixture(autouse=True)
def mills(here):  # noqa: F811 - the fixture
    Path("mills").mkdir()
    for n in range(1, 7):
        Path(f"mills/mill{n}.md").write_text(f"{SLUICE.format(n=n)}\n")


def written(prompt, system):
    """The fields that the model writes."""
    n = prompt.partition("brake of mill ")[2][:1]
    if "Question: " in prompt:
        question = prompt.rpartition("Question: ")[2]
        asked = "".join(letter for letter in question if letter.isdigit())[:1]
        name = f"Nora{asked} Pike" if question.startswith("If") else f"Tom{asked} Ferris"
        said = name in prompt.rpartition("Question: ")[0] and "old" not in question
        return {"quote": "", "passage": 1, "change": "", "answer": name if said else "not said"}
    if "what is not so" in system:
        return {
            "quote": f"His deputy is Nora{n} Pike",
            "question": f"If Tom{n} had moved away, who would have closed the sluice?",
            "change": "His deputy closes it.",
            "factual answer": f"Tom{n} Ferris",
            "answer": f"Nora{n} Pike",
        }
    if "does not know" in system:
        return {"quote": "", "question": f"How old is Tom{n} Ferris today?", "answer": "not said"}
    return {
        "quote": f"the sluice is closed by Tom{n} Ferris",
        "question": f"Who closes the sluice of mill {n}?",
        "answer": f"Tom{n} Ferris",
    }


def reply(prompt, time, body):
    return Reply(text=json.dumps(written(prompt, body["messages"][0]["content"])))


def init(url, *more, docs="mills", count=6):
    arguments = ["init", "trial", "--draft", str(count), "--model", "m"]
    arguments += ["--docs", docs] if docs else []
    settings = ["--set", f"llm.base_url={url}", "--set", "llm.retries=0"] if url else []
    return ifqa_here(*arguments, *settings, *more, folder=".")


def snapshot():
    return {
        str(path): path.read_bytes()
        for folder in ("trial", "experiments", "indexes")
        for path in Path(folder).rglob("*")
        if path.is_file()
    }


def test_a_draft_is_a_table_of_questions():
    with serving(reply) as server:
        done = init(server.url)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-2:] == ["trial/questions.csv", "trial/README.md"]
    assert "6 questions of 6 wanted (2 plain, 2 counterfactual, 2 unanswerable)" in done.stderr
    questions = read_questions(Path("trial/questions.csv"))
    assert [len(question.answers) for question in questions] == [1, 1, 0] * 2


def test_drafted_questions_calibrate_the_default_reader():
    with serving(reply) as server:
        init(server.url)
    done = ifqa_here("calibrate", "trial/questions.csv", "-e", "trial", "--json", folder=".")
    measured = json.loads(done.stdout)
    assert (measured["questions"], measured["without_answer"]) == (6, 2)


def test_drafted_questions_with_answers_are_run():
    with serving(reply) as server:
        init(server.url)
    done = ifqa_here("run", "trial", folder=".")
    assert done.returncode == 0, done.stderr
    predictions = Path("experiments/trial/read/predictions.jsonl").read_text().splitlines()
    assert len(predictions) == 4


def test_the_cost_is_told_before_anything_is_asked():
    with serving(reply) as server:
        done = init(server.url)
    told, asked = (done.stderr.index(part) for part in ("if all tries are needed", "asking m"))
    assert told < asked


PRICES = """dated = "today"
source = "me"
[models.m]
input = 1.0
output = 1.0
"""


def test_the_price_is_told_before_anything_is_asked():
    Path("prices.toml").write_text(PRICES)
    with serving(reply) as server:
        done = init(server.url)
    assert re.search(r"if all tries are needed: about \d+ calls, .* up to \$0\.\d\d\n", done.stderr)


def test_a_cap_on_the_cost_ends_the_drafting():
    Path("prices.toml").write_text(PRICES)
    with serving(reply) as server:
        done = init(server.url, "--max-cost", "0.001")
    assert done.returncode == 2
    assert "it would exceed the cap of $0.001 (max_cost)" in done.stderr


def test_a_draft_goes_on_behind_its_readme():
    with serving(reply) as server:
        init(server.url)
        Path("trial/questions.csv").unlink()
        before = server.requests
        done = init(server.url)
    assert done.returncode == 0, done.stderr
    assert server.requests == before


def test_a_second_draft_overwrites_nothing():
    with serving(reply) as server:
        init(server.url)
        before = snapshot()
        done = init(server.url)
    assert done.returncode == 2
    assert "trial/questions.csv exists; choose another name" in done.stderr
    assert snapshot() == before


@pytest.mark.parametrize(
    "there", ["trial/README.md", "trial/questions.csv", "experiments/trial.toml"]
)
def test_a_file_that_is_there_stays(there):
    Path(there).parent.mkdir()
    Path(there).write_text("mine")
    with serving(reply) as server:
        done = init(server.url)
    assert (done.returncode, Path(there).read_text()) == (2, "mine")
    assert server.requests == 0


def test_a_cap_on_tokens_ends_the_drafting():
    with serving(reply) as server:
        done = init(server.url, "--max-total-tokens", "900")
    assert done.returncode == 2
    assert "it would exceed the cap of 900 tokens" in done.stderr
    assert not Path("trial").exists()


def test_a_draft_goes_on_after_a_failure():
    def failing(prompt, time, body):
        is_plain = "Question: " not in prompt
        return reply(prompt, time, body) if is_plain else error(500, "overloaded")

    with serving(failing) as server:
        done = init(server.url)
        assert "run the same command again" in done.stderr.lower()
        first = server.requests
        server.plan = reply
        done = init(server.url)
        assert done.returncode == 0, done.stderr
        again = server.bodies[first:]
    assert all("Question: " in body["messages"][-1]["content"] for body in again)


def test_after_a_kill_nothing_that_was_answered_is_asked_again():
    answered: Counter[str] = Counter()
    held: list[str] = []

    def holding(prompt, time, body):
        key = json.dumps(body["messages"])
        if len(answered) >= 8 and not server.free:
            held.append(key)
            return Reply(text="late", latency=60)
        answered[key] += 1
        return reply(prompt, time, body)

    with serving(holding) as server:
        server.free = False
        command = [sys.executable, "-m", "ifqa", "init", "trial", "--docs", "mills"]
        command += ["--draft", "6", "--model", "m", "--set", f"llm.base_url={server.url}"]
        root = str(Path(__file__).parents[2])
        with subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": root},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            end = time.monotonic() + 100
            while not held and process.poll() is None and time.monotonic() < end:
                time.sleep(0.05)
            time.sleep(0.5)  # the answers before are stored
            process.send_signal(signal.SIGKILL)
        assert held
        assert not Path("trial/questions.csv").exists()
        server.free = True
        done = init(server.url)
    assert done.returncode == 0, done.stderr
    assert set(answered.values()) == {1}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--draft", "6", "--model", "m"], "add --docs FOLDER"),
        (["--docs", "mills", "--draft", "6"], "add --model NAME"),
        (["--docs", "mills", "--model", "m"], "wanted: --docs FOLDER --draft 60"),
        (["--docs", "mills", "--draft", "0", "--model", "m"], "--draft"),
        (["--docs", "none", "--draft", "6", "--model", "m"], "there is no"),
        (
            ["--docs", "mills", "--draft", "6", "--model", "m", "--set", "reader.passages=3"],
            "--set reader.passages: wanted a setting of the language model",
        ),
        (
            ["--docs", "mills", "--draft", "6", "--model", "m", "--set", "llm.bas_url=x"],
            "did you mean 'base_url'",
        ),
    ],
)
def test_wrong_arguments_write_nothing(arguments, message):
    done = ifqa_here("init", "trial", *arguments, folder=".")
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(Path().glob("[!m]*"))


def test_documents_without_prose_are_refused():
    Path("numbers").mkdir()
    Path("numbers/list.txt").write_text("1 2 3 4 5 6 7\n" * 30)
    with serving(reply) as server:
        done = init(server.url, docs="numbers")
    assert done.returncode == 2
    assert "no passage has prose to ask about" in done.stderr
    assert server.requests == 0


def test_no_table_is_written_where_nothing_can_be_kept():
    with serving(lambda *_: Reply(text="I would rather not.")) as server:
        done = init(server.url)
    assert done.returncode == 2
    assert "no draft can be kept" in done.stderr
    assert not Path("trial").exists()
