"""Whose reading it is, what it costs and what fails, as a user of the command line sees it."""

import json
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from command_line import ifqa_here
from openai_client import KEY, here  # noqa: F401 - a fixture
from openai_server import Reply, error, serving

from ifqa.config.experiment import load_experiment
from ifqa.errors import IfqaError
from ifqa.storage.files import read_json

CLOSED = (
    '[reader]\nname = "llm"\nprompt = "closed-book"\n[llm]\nmodel = '
    '"m"\nwindow = 4096\nretries = 1\n'
)
MANIFEST = Path("experiments/cb/read/manifest.json")


def ifqa(*arguments):
    """The command line in this process: exit code, stdout and stderr, each in one line."""
    done = ifqa_here(*map(str, arguments), folder=".")
    return done.returncode, done.stdout, " ".join(done.stderr.split())


def write(name="cb", llm="", head=""):
    path = Path(f"experiments/{name}.toml")
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'benchmark = "sample"\nsplit = "dev"\nlimit = 4\n{head}{CLOSED}{llm}')


def at(server):
    return f"llm.base_url={server.url}"


def answers():
    """The answers of the finished reading."""
    lines = Path("experiments/cb/read/predictions.jsonl").read_text().splitlines()
    return [json.loads(line)["answer"] for line in lines]


@contextmanager
def working_in(folder):
    """Work in a folder, with a key, before the fixture of each test does so."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("OPENAI_API_KEY", KEY)
        yield


def saying(text, **more):
    return lambda *_: Reply(text=text, **more)


def test_a_reading_of_one_server_does_not_pass_for_anothers():
    write()
    with serving(saying("one")) as first, serving(saying("two")) as second:
        assert ifqa("run", "cb", "--set", at(first))[0] == 0
        before = second.requests
        code, out, err = ifqa("run", "cb", "--set", at(second))
        assert (code, out, second.requests) == (2, "", before)
    assert f"holds answers of m at localhost:{first.port}" in err
    assert f"would ask m at localhost:{second.port}" in err
    assert "llm.served_as=NAME" in err
    assert answers() == ["one"] * 4


def test_a_reading_of_another_server_stays_if_another_input_has_changed():
    write()
    with serving(saying("one")) as first, serving(saying("two")) as second:
        ifqa("run", "cb", "--set", at(first))
        write(head="seed = 5\n", llm="max_tokens = 5\n")
        code, _, err = ifqa("run", "cb", "--set", at(second))
        assert second.requests == 0
    assert (code, "holds answers of m" in err) == (2, True), err
    assert answers() == ["one"] * 4


def down_after(count):
    """A server that answers so many requests, and then no more."""
    asked = []

    def plan(*_):
        asked.append(1)
        return Reply(text="x") if len(asked) <= count else error(503, "overloaded")

    return plan


GOLD = '[retriever]\nname = "gold"\nk = 2\n'
FIT = ("train", "calibration", "--reader", "llm", "--benchmark", "sample", "--split", "hard")


def test_a_fit_over_failed_requests_is_refused():
    with serving(down_after(40)) as server:
        write(head=GOLD, llm=f'base_url = "{server.url}"\n')
        code, _, err = ifqa(*FIT, "--experiment", "cb", "--set", "questions=60")
    assert (code, "not answered" in err) == (2, True), err
    assert not list(Path("models").rglob("*.json"))


def test_too_few_questions_are_refused_before_anything_is_asked():
    with serving() as server:
        write(head=GOLD, llm=f'base_url = "{server.url}"\n')
        code, _, err = ifqa(*FIT, "--experiment", "cb", "--set", "questions=20")
        assert server.requests == 0
    assert (code, "wanted 30 or more" in err) == (2, True), err


def test_a_threshold_of_an_uncalibrated_model_is_refused_before_anything_is_asked():
    write()
    Path("mine.csv").write_text("question,answers\nWho?,Tom\n")
    with serving() as server:
        code, _, err = ifqa("calibrate", "mine.csv", "--experiment", "cb", "--set", at(server))
        assert server.requests == 0
    assert (code, "not calibrated for m" in err) == (2, True)


@pytest.mark.parametrize("verb", ["read", "score"])
def test_other_verbs_name_both_servers_too(verb):
    write()
    with serving(saying("one")) as first, serving() as second:
        ifqa("run", "cb", "--set", at(first))
        code, _, err = ifqa(verb, "cb", "--set", at(second))
    assert (code, f"localhost:{first.port}" in err, f"localhost:{second.port}" in err) == (
        2,
        True,
        True,
    )


@pytest.mark.parametrize("arguments", [["score", "cb"], ["compare", "cb", "cb"], ["report", "cb"]])
def test_what_asks_nothing_needs_no_address(arguments):
    write()
    with serving(saying("one")) as server:
        assert ifqa("run", "cb", "--set", at(server))[0] == 0
    code, _, err = ifqa(*arguments)
    assert code == 0, err


def test_a_run_without_an_address_stops_before_it_asks_openai():
    write()
    with serving(saying("one")) as server:
        ifqa("run", "cb", "--set", at(server))
    code, _, err = ifqa("run", "cb")
    assert code == 2
    assert "would ask m at api.openai.com" in err


def test_a_probe_asks_the_server_of_the_reading_alone():
    write()
    with serving(saying("one")) as first, serving() as second:
        ifqa("run", "cb", "--set", at(first))
        assert ifqa("probe", "cb", "--set", at(second))[0] == 2
        assert second.requests == 0


def test_the_score_of_a_variant_keeps_its_address():
    write()
    with serving(saying("one")) as server:
        ifqa("run", "cb", "--limit", 2, "--set", at(server))
        path = Path("experiments/cb+limit=2/experiment.toml")
        before = path.read_text()
        assert ifqa("score", "cb", "--limit", 2)[0] == 0
        assert path.read_text() == before
        assert server.url in before


def test_a_table_of_results_names_no_address():
    write(head='table = "Mine"\n')
    with serving(saying("one")) as first, serving() as second:
        ifqa("run", "cb", "--set", at(first))
        write(head='table = "Mine"\n', llm=f'base_url = "{second.url}"\n')
        ifqa("report")
    results = Path("experiments/RESULTS.md").read_text()
    assert "stale: its answers are of another server than its settings name" in results
    assert "localhost" not in results


def test_a_resumed_file_of_answers_does_not_mix_forms():
    write(llm='served_as = "s"\n')
    Path("q.txt").write_text("".join(f"If {n}, who?\n" for n in range(20)))
    refusing = {"now": False}

    def plan(prompt, time, body):
        if refusing["now"] and "temperature" in body:
            return error(
                400, "Unsupported value: 'temperature'", "unsupported_value", param="temperature"
            )
        if not refusing["now"] and "If 9," in prompt:
            refusing["now"] = True
            return error(401, "stop")
        return Reply(text="x")

    with serving(plan) as server:
        command = [
            "ask",
            "-e",
            "cb",
            "--questions",
            "q.txt",
            "--out",
            "a.jsonl",
            "--set",
            at(server),
        ]
        assert ifqa(*command)[0] == 2
        code, _, err = ifqa(*command)
    assert (code, "its requests differ" in err) == (2, True)


def test_room_for_thoughts_beyond_the_window_is_refused_before_anything_is_asked():
    write()
    with serving() as server:
        code, _, err = ifqa("run", "cb", "--set", at(server), "--thinking", "high")
        assert (code, server.requests) == (2, 0)
    assert "leaves nothing for a prompt in a window of 4,096" in err


def test_the_address_of_the_environment_is_part_of_a_reading(monkeypatch):
    write()
    with serving(saying("one")) as first, serving() as second:
        monkeypatch.setenv("OPENAI_BASE_URL", first.url)
        assert ifqa("run", "cb")[0] == 0
        assert ifqa("run", "cb")[0] == 0
        monkeypatch.setenv("OPENAI_BASE_URL", second.url)
        assert ifqa("run", "cb")[0] == 2
        assert second.requests == 0


def test_two_served_names_give_two_rows():
    write(head='table = "Mine"\n')
    with serving(saying("one")) as first, serving(saying("two")) as second:
        assert ifqa("run", "cb", "--set", at(first), "--set", "llm.served_as=a")[0] == 0
        assert ifqa("run", "cb", "--set", at(second), "--set", "llm.served_as=b")[0] == 0
    rows = [f"cb+llm.served_as={name}" for name in "ab"]
    assert ifqa("report", *rows)[0] == 0  # named, because they are no whole split
    results = Path("experiments/RESULTS.md").read_text()
    assert "| cb+llm.served_as=a |" in results
    assert "| cb+llm.served_as=b |" in results
    assert "asked a |" in results
    assert "asked b |" in results
    assert "127.0.0.1" not in results


def test_a_model_with_a_served_name_may_move():
    write(llm='served_as = "qwen3-8b-awq"\n')
    with serving(saying("one")) as first, serving() as second:
        assert ifqa("run", "cb", "--set", at(first))[0] == 0
        code, _, err = ifqa("run", "cb", "--set", at(second))
        assert (code, second.requests) == (0, 0)
    assert "read: up to date" in err


def as_version_02(server, settings):
    """Rewrite the finished reading as version 0.2 wrote it: the server in the record alone, and
    settings that are gone.
    """
    manifest = read_json(MANIFEST)
    llm = manifest["inputs"]["reader"]["llm"]
    llm.pop("server")
    llm["settings"] |= settings
    manifest["record"]["server"] = server
    MANIFEST.write_text(json.dumps(manifest))


def test_a_reading_of_version_02_keeps_its_scores_at_the_server_that_its_manifest_names():
    write()
    with serving(saying("one")) as server:
        ifqa("run", "cb", "--set", at(server))
        as_version_02(f"http://127.0.0.1:{server.port}", {"effort": ""})
        ifqa("score", "cb", "--set", at(server))
        before = server.requests
        code, _, err = ifqa("run", "cb", "--set", at(server))
        assert (code, server.requests) == (0, before)
        assert "read: up to date" in err
        assert "score: up to date" in err


def test_a_reading_of_version_02_does_not_pass_for_another_servers():
    write()
    with serving(saying("one")) as first, serving() as second:
        ifqa("run", "cb", "--set", at(first))
        as_version_02(f"http://127.0.0.1:{first.port}", {"effort": ""})
        code, _, err = ifqa("run", "cb", "--set", at(second))
        assert (code, second.requests) == (2, 0)
    assert f"localhost:{first.port}" in err


def test_several_addresses_are_refused_with_what_to_do():
    write()
    code, _, err = ifqa("run", "cb", "--set", "llm.base_url=http://a:1/v1 http://b:1/v1")
    assert code == 2
    assert "names several addresses; wanted one" in err
    assert "'upstream'" in err


@pytest.mark.parametrize(
    ("setting", "words"), [("batch = true", "batch is gone"), ('effort = "low"', "effort is gone")]
)
def test_a_setting_that_is_gone_is_refused_by_name(setting, words):
    write(llm=f"{setting}\n")
    code, _, err = ifqa("run", "cb")
    assert (code, words in err) == (2, True)


def test_a_setting_that_is_gone_may_stand_with_its_default():
    write(llm='batch = false\neffort = ""\n')
    assert load_experiment("cb").llm_setting("model") == "m"


def test_a_batch_that_was_not_fetched_stops_every_run_of_its_model(tmp_path):
    write()
    folder = tmp_path / "completions/batches"
    folder.mkdir(parents=True)
    batch = {
        "key": "k",
        "server": "https://there",
        "model": "m",
        "written": 1.0,
        "requests": [],
        "id": "b",
    }
    (folder / "k.json").write_text(json.dumps(batch))
    with serving() as server:
        code, _, err = ifqa("run", "cb", "--set", at(server))
        assert (code, server.requests) == (2, 0)
        assert "fetch it with version 0.2, or delete the file" in err
        assert ifqa("run", "cb", "--set", at(server), "--model", "another")[0] == 0


REFUSAL = "This model's maximum context length is 16 tokens"


@pytest.fixture(scope="module")
def refused(tmp_path_factory):
    """Two runs at a server that refuses every request for good."""
    refuse = error(400, REFUSAL, "context_length_exceeded")
    with working_in(tmp_path_factory.mktemp("refused")), serving(lambda *_: refuse) as server:
        write()
        code, out, err = ifqa("run", "cb", "--set", at(server))
        asked = server.requests
        ifqa("run", "cb", "--set", at(server))
        asked_by_both = server.requests
    return SimpleNamespace(code=code, out=out, err=err, asked=asked, asked_by_both=asked_by_both)


def test_a_permanent_refusal_is_told_with_its_reason(refused):
    assert refused.code == 1
    assert REFUSAL in refused.err


def test_a_permanent_refusal_is_a_stored_failure(refused):
    assert "0 of 4 questions answered; 4 stored failures: --retry-failed" in refused.err
    assert "the next run retries" not in refused.err + refused.out
    assert "4 stored failures: --retry-failed" in refused.out


def test_what_is_refused_for_good_is_asked_once(refused):
    assert refused.asked_by_both == refused.asked == 4


@pytest.fixture(scope="module")
def repeated(tmp_path_factory):
    """Runs after failures: without --retry-failed, with it, and once more with it."""
    with working_in(tmp_path_factory.mktemp("repeated")):
        write(llm='served_as = "s"\n')
        with serving(lambda *_: error(400, "prompt is too long")) as server:
            ifqa("run", "cb", "--set", at(server))
        with serving(saying("Belgrade")) as server:
            plain_code, _, _ = ifqa("run", "cb", "--set", at(server))
            asked_by_plain = server.requests
            code, out, _ = ifqa("run", "cb", "--set", at(server), "--retry-failed")
            asked = server.requests
            new_answers = answers()
            last_code, _, _ = ifqa("run", "cb", "--set", at(server), "--retry-failed")
            asked_by_all = server.requests
    return SimpleNamespace(
        plain_code=plain_code,
        asked_by_plain=asked_by_plain,
        code=code,
        out=out,
        asked=asked,
        new_answers=new_answers,
        last_code=last_code,
        asked_by_all=asked_by_all,
    )


def test_a_plain_run_asks_no_stored_failure_again(repeated):
    assert repeated.plain_code == 1
    assert repeated.asked_by_plain == 0


def test_retry_failed_asks_stored_failures_again(repeated):
    assert repeated.code == 0
    assert repeated.asked == 4


def test_retry_failed_scores_the_new_answers(repeated):
    assert "stored failure" not in repeated.out
    assert repeated.new_answers == ["Belgrade"] * 4


def test_retry_failed_asks_nothing_where_nothing_has_failed(repeated):
    assert repeated.last_code == 0
    assert repeated.asked_by_all == 4


def test_ask_says_how_a_stored_failure_is_asked_again():
    write(llm='served_as = "s"\n')
    with serving(lambda *_: error(400, "prompt is too long")) as server:
        for _ in range(2):
            code, out, _ = ifqa("ask", "-e", "cb", "If so, who?", "--set", at(server))
            assert (code, "prompt is too long" in out) == (1, True)
        assert server.requests == 1
        ifqa("ask", "-e", "cb", "If so, who?", "--set", at(server), "--retry-failed")
        assert server.requests == 2


def test_retry_failed_is_not_kept_with_a_variant():
    write(llm='served_as = "s"\n')
    with serving(saying("x")) as server:
        ifqa("run", "cb", "--limit", 2, "--set", at(server), "--retry-failed")
    assert "retry_failed" not in Path("experiments/cb+limit=2/experiment.toml").read_text()


def test_a_text_cut_within_its_thoughts_is_a_failure():
    write()
    thoughts = (
        "Okay, the user asks about a chess match. Let me look at the passages. "
        "The first passage says"
    )
    with serving(saying(thoughts, finish="length")) as server:
        _, out, _ = ifqa("run", "cb", "--set", at(server))
    assert "4 failed" in out
    assert (
        "4 questions whose completion was cut off at its token limit (--max-tokens, --thinking)"
        in " ".join(out.split())
    )
    error_text = json.loads(
        Path("experiments/cb/read/predictions.jsonl").read_text().splitlines()[0]
    )["error"]
    assert "truncated" in error_text


@pytest.fixture(scope="module")
def flagged(tmp_path_factory):
    """A run with flags for the room of answers, and for thinking."""
    text = "<think>\nHmm, Answer: wrong.\n</think>\n\nBelgrade"
    with working_in(tmp_path_factory.mktemp("flagged")), serving(saying(text)) as server:
        write()
        ifqa("run", "cb", "--set", at(server), "--max-tokens", 9, "--thinking", "low")
        folder = Path("experiments/cb+llm.max_tokens=9+llm.thinking=low/read")
        lines = (folder / "predictions.jsonl").read_text().splitlines()
        record = read_json(folder / "manifest.json")["record"]
    return SimpleNamespace(
        body=server.bodies[0], answer=json.loads(lines[0])["answer"], record=record
    )


def test_a_flag_sets_the_room_of_answers(flagged):
    assert flagged.body["max_tokens"] == 9 + 1024


def test_a_flag_switches_thinking(flagged):
    assert flagged.body["chat_template_kwargs"] == {"enable_thinking": True}


def test_thoughts_are_no_part_of_an_answer(flagged):
    assert flagged.answer == "Belgrade"


def test_the_record_of_a_reading_has_the_switch_of_thinking(flagged):
    assert 'chat_template_kwargs={"enable_thinking": true}' in flagged.record["sent"]


def test_what_a_server_refused_stands_in_the_record_of_the_reading():
    write()

    def plan(prompt, time, body):
        refused = "temperature" in body
        message = "Unsupported value: 'temperature' does not support 0 with this model."
        return (
            error(400, message, "unsupported_value", param="temperature")
            if refused
            else Reply(text="Belgrade")
        )

    with serving(plan) as server:
        code, _, err = ifqa("run", "cb", "--set", at(server))
    assert code == 0
    assert "the server refuses 'temperature'; asking without it" in err
    assert read_json(MANIFEST)["record"]["sent"] == "max_tokens, messages, model"


def test_a_model_of_this_machine_runs_here_whether_a_file_or_a_flag_names_it():
    Path("experiments").mkdir()
    for name in ("qwen2.5-coder-0.5b", "smollm2"):
        Path("experiments/here.toml").write_text(
            'benchmark = "sample"\nsplit = "dev"\n[reader]\nname = "llm"\nprompt = "closed-book"\n'
            f'[llm]\nmodel = "{name}"\n'
        )
        llm = load_experiment("here").llm
        assert llm is not None
        assert llm.name in ("hf", "llama-cpp")
    Path("experiments/there.toml").write_text(
        'benchmark = "sample"\nsplit = "dev"\n[reader]\nname = "llm"\nprompt = "closed-book"\n'
        '[llm]\nmodel = "smollm2"\nbase_url = "http://127.0.0.1:1/v1"\n'
    )
    llm = load_experiment("there").llm
    assert llm is not None
    assert llm.name == "openai"


def test_a_value_that_json_lacks_is_refused_among_further_parameters():
    write(llm="extra = { d = 2024-01-01 }\n")
    with pytest.raises(IfqaError, match=r"llm\.extra: wanted values that JSON has"):
        load_experiment("cb")


def test_a_key_among_further_parameters_is_refused():
    write(llm='extra = { api_key = "sk-canary-3f9c1e77a0b2" }\n')
    with pytest.raises(IfqaError, match="looks like a key") as caught:
        load_experiment("cb")
    assert "canary" not in str(caught.value)
