"""Language models from the command line, against a scripted server on loopback."""

import json
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command_line import ifqa_here
from openai_client import KEY, here  # noqa: F401 - a fixture
from openai_server import Reply, error, serving

from ifqa.errors import IfqaError
from ifqa.llms.cache import CompletionCache
from ifqa.llms.replay import Replay
from ifqa.reading.llm import Llm
from ifqa.records import Completion, Hit, Passage, Question, Request, SearchResult
from ifqa.retrieval.composition import Part
from ifqa.retrieval.fusion import Fusion
from ifqa.storage.files import read_json


def ifqa(*arguments):
    """The command line in this process: exit code, stdout, stderr."""
    done = ifqa_here(*map(str, arguments), folder=".")
    return done.returncode, done.stdout, done.stderr


def write(tmp_path, name, tables, url="http://127.0.0.1:1/v1"):
    path = tmp_path / f"experiments/{name}.toml"
    path.parent.mkdir(exist_ok=True)
    llm = f'[llm]\nmodel = "gpt-4o-mini"\nretries = 0\nbase_url = "{url}"\n'
    path.write_text(f'benchmark = "sample"\nsplit = "dev"\nlimit = 4\n{tables}\n{llm}')


CLOSED = '[reader]\nname = "llm"\nprompt = "closed-book"'
FUSED = """[retriever]
name = "fusion"
k = 5
method = "rrf"
[[retriever.parts]]
name = "gold"
[[retriever.parts]]
name = "genread"
k = 1
query = "main"
[reader]
name = "llm"
passages = 3"""
RERANKED = FUSED.replace(
    '[retriever]\nname = "fusion"\nk = 5\nmethod = "rrf"', '[retriever]\nname = "rerank"\nk = 5'
).replace('[[retriever.parts]]\nname = "gold"\n', "")


def only_line(finished):
    """The one line of an error."""
    code, out, err = finished
    assert (code, out, "Traceback" in err) == (2, "", False)
    (line,) = [line for line in err.splitlines() if line.startswith("ifqa: ")]
    return line


@pytest.mark.parametrize(
    "url", [f"http://me:{KEY}@127.0.0.1:1/v1", f"http://127.0.0.1:1/v1?api_key={KEY}"]
)
def test_an_address_with_a_key_in_it_is_refused_before_it_is_written(tmp_path, url):
    write(tmp_path, "closed", CLOSED)
    line = only_line(ifqa("run", "closed", "--limit", 2, "--set", f"llm.base_url={url}"))
    assert ("base_url" in line, "canary" in line) == (True, False)
    assert not [path for path in tmp_path.rglob("*.toml") if "canary" in path.read_text()]


def test_half_a_surrogate_pair_in_an_answer_leaves_files_that_can_be_read(tmp_path):
    with serving(lambda prompt, time, body: Reply(text="Answer: a\ud800b")) as server:
        write(tmp_path, "gen", FUSED, server.url)
        code, _, err = ifqa("run", "gen")
    assert code == 0, err
    lines = (
        (tmp_path / "experiments/gen/read/predictions.jsonl")
        .read_text(encoding="utf-8")
        .splitlines()
    )
    assert "\N{REPLACEMENT CHARACTER}" in json.loads(lines[0])["answer"]


@contextmanager
def working_in(folder):
    """Work in a folder, with a key, before the fixture of each test does so."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("OPENAI_API_KEY", KEY)
        yield


def retrieval_record():
    return read_json(Path("experiments/parts/retrieve/manifest.json"))["record"]


@pytest.fixture(scope="module", params=[FUSED, RERANKED], ids=["fusion", "rerank"])
def retried(request, tmp_path_factory):
    """An experiment is checked, run while its retriever's requests fail, run again and checked."""
    folder = tmp_path_factory.mktemp("retried")
    down = {"now": True}

    def plan(prompt, time, body):
        if down["now"] and body["max_tokens"] == 300:
            return error(500, "no")
        return Reply(text="Answer: x")

    with working_in(folder), serving(plan) as server:
        write(folder, "parts", request.param, server.url)
        check = ifqa("check", "parts")
        requests_of_check = server.requests
        failed = ifqa("run", "parts")
        failed_record = retrieval_record()
        down["now"] = False
        ifqa("run", "parts")
        record = retrieval_record()
        last_check = ifqa("check", "parts")
    return SimpleNamespace(
        check=check,
        requests_of_check=requests_of_check,
        failed=failed,
        failed_record=failed_record,
        record=record,
        last_check=last_check,
    )


def test_requests_of_a_part_are_estimated(retried):
    code, out, _ = retried.check
    assert code == 0
    assert out.count("about 4 calls") == 2  # the retriever's part, and the reader


def test_a_check_requests_nothing(retried):
    assert retried.requests_of_check == 0


def test_a_run_whose_part_has_no_answer_exits_with_1(retried):
    code, _, err = retried.failed
    assert code == 1  # every request of the retriever failed
    assert "4 incomplete; the next run retries them" in err


def test_failed_requests_of_a_part_are_counted(retried):
    assert retried.failed_record["retry"] == 4
    assert retried.failed_record["spent"]["calls"] == 4


def test_failed_requests_of_a_part_are_retried(retried):
    assert retried.record["retry"] == 0
    assert retried.record["spent"]["calls"] == 4


def test_a_check_after_the_retry_shows_every_stage_as_done(retried):
    _, out, _ = retried.last_check
    assert out.count("  done ") == 3


def part(text):
    result = SearchResult([Hit("made/0", 1.0)], [Passage("made/0", "", text)])
    retriever: Any = SimpleNamespace(
        trained_on=(), search=lambda questions, k: [result for _ in questions]
    )
    return Part(retriever, 1)


def test_equal_passages_of_two_parts_are_one():
    fusion = Fusion(Fusion.Settings(), parts=[part("one"), part("one")])
    [result] = fusion.search([Question("q", "If so?")], 1)
    assert result.generated is not None
    assert len(result.generated) == 1


def test_different_passages_that_share_an_id_are_refused():
    fusion = Fusion(Fusion.Settings(), parts=[part("one"), part("two")])
    with pytest.raises(IfqaError, match="different passages with the id 'made/0'"):
        fusion.search([Question("q", "If so?")], 1)


def test_too_few_demonstrations_are_refused():
    with pytest.raises(IfqaError, match="wanted 99 demonstrations, found 4 in 'sample'"):
        Llm(Llm.Settings(demos="sample", shots=99), llm=Replay(Replay.Settings(path="sample")))


def test_questions_that_the_window_has_no_room_for_fail_unasked(tmp_path):
    with serving(lambda prompt, time, body: Reply(text="Answer: x")) as server:
        write(tmp_path, "gen", FUSED, server.url)
        code, out, _ = ifqa("run", "gen", "--set", "llm.window=60")
        assert code == 0
        assert server.requests == 0
    assert out.count("4 questions not asked because they exceed the model's context window") == 2
    assert "4 failed" in out


def test_check_lists_what_the_server_offers(tmp_path):
    with serving(lambda *_: Reply(text="so")) as server:
        write(tmp_path, "mine", CLOSED, server.url)
        code, out, _ = ifqa("check", "mine")
        assert code == 0
        assert (
            f"here     server 127.0.0.1:{server.port}: JSON schemas and cached tokens not tried"
            in out
        )


def test_check_fails_if_the_server_is_down(tmp_path):
    with serving(lambda *_: Reply(text="so")) as server:
        write(tmp_path, "mine", CLOSED, server.url)
    code, out, err = ifqa("check", "mine")
    assert code != 0
    assert "up to $" in out, "the estimate needs no server"
    assert f"server 127.0.0.1:{server.port}: cannot connect" in " ".join(err.split())


@pytest.fixture(scope="module")
def reading_without_answers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unanswered")
    message = "\x1b[31m\x9b2J\x07the context length is exceeded"
    with serving(lambda *_: error(400, message)) as server:
        with working_in(folder):
            write(folder, "mine", CLOSED, server.url)
            code, out, err = ifqa("read", "mine")
        yield SimpleNamespace(folder=folder, code=code, out=out, err=err)


@pytest.fixture
def unanswered(reading_without_answers, monkeypatch):
    """A finished reading, whose folder is the working directory, and whose server still runs."""
    monkeypatch.chdir(reading_without_answers.folder)
    return reading_without_answers


def test_a_reading_without_any_answer_exits_with_1(unanswered):
    assert unanswered.code == 1
    assert unanswered.out.strip() == "experiments/mine/read"


def test_a_reading_without_any_answer_says_that_its_failures_are_stored(unanswered):
    assert (
        "every question had a failed request; these failures are stored; --retry-failed asks again"
    ) in unanswered.err
    assert "0 of 4 questions answered; 4 stored failures" in unanswered.err


def test_control_characters_of_a_server_are_not_shown(unanswered):
    assert not set(unanswered.err) & {"\x1b", "\x9b", "\x07"}


@pytest.mark.parametrize(
    "arguments",
    [["run", "mine"], ["run", "mine", "--json"], ["ask", "-e", "mine", "If so, who?"]],
    ids=["run", "json", "ask"],
)
def test_a_command_without_any_answer_exits_with_1(unanswered, arguments):
    assert ifqa(*arguments)[0] == 1


def test_a_file_of_questions_without_any_answer_is_written_with_exit_code_1(unanswered):
    Path("q.txt").write_text("If so, who?\nIf not?\n")
    code, _, err = ifqa("ask", "-e", "mine", "--questions", "q.txt", "--out", "a.jsonl")
    assert code == 1
    assert "0 questions answered, 2 failed" in err
    assert len(Path("a.jsonl").read_text().splitlines()) == 2


def test_a_run_without_any_answer_keeps_its_scores(unanswered):
    ifqa("run", "mine")
    assert read_json(Path("experiments/mine/score/scores.json"))["n_failed"] == 4


def test_a_run_with_an_answer_exits_with_0(tmp_path):
    def answer_every_other(*_):
        return Reply() if server.requests % 2 else error(413, "too long")

    with serving(answer_every_other) as server:
        write(tmp_path, "half", CLOSED, server.url)
        assert ifqa("run", "half")[0] == 0


def test_a_missing_key_is_noticed_before_the_retrieval(tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    write(
        tmp_path,
        "mine",
        '[retriever]\nname = "gold"\nk = 1\n[reader]\nname = "llm"\npassages = 1',
        "",
    )
    assert "OPENAI_API_KEY is not set" in only_line(ifqa("run", "mine"))
    assert not (tmp_path / "experiments/mine").exists()
    CompletionCache(tmp_path / "completions").put("m", {Request(text="x"): Completion("y")})
    code, _, err = ifqa("run", "mine")
    assert (code, "completions stored in completions need no key" in " ".join(err.split())) == (
        2,
        True,
    )


def test_one_cap_holds_for_all_experiments_of_a_command(tmp_path):
    names = ("first", "second", "third")
    models = "".join(f'"{name}" = {{ input = 100, output = 400 }}\n' for name in names)
    (tmp_path / "prices.toml").write_text(
        f'dated = "2026-01-02"\nsource = "there"\n[models]\n{models}'
    )
    with serving(lambda *_: Reply(text="so", usage=(100, 40))) as server:  # $0.026 each
        for name in names:
            write(tmp_path, name, CLOSED, server.url)
            path = tmp_path / f"experiments/{name}.toml"
            path.write_text(path.read_text().replace("gpt-4o-mini", name))
        code, out, _ = ifqa("run", *names, "--max-cost", 0.2)
    spent = 100 * server.tokens[0] / 1e6 + 400 * server.tokens[1] / 1e6
    assert (code, 0 < spent <= 0.2) == (0, True)
    assert "not asked" in out
