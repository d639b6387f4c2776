"""Flags and options of every verb: each flag changes its setting in the saved experiment.

JSON and quiet.
"""

import json
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ifqa.cli import app as module
from ifqa.cli.process import STOPPED
from ifqa.pipeline import stages
from ifqa.workers.pool import Workers

#: An experiment of which every flag changes something.
MINE = """
benchmark = "sample"
split = "dev"
corpus = "sample"
[retriever]
name = "bm25"
[reader]
name = "llm"
[llm]
model = "a-model"
"""
#: Flag -> a value other than MINE's, and where it is found in what is saved.
FLAGS = {
    "--k": ("7", ("retriever", "k"), 7),
    "--retriever": ("gold", ("retriever", "name"), "gold"),
    "--reader": ("extractive", ("reader", "name"), "extractive"),
    "--passages": ("2", ("reader", "passages"), 2),
    "--checkpoint": ("models/mine", ("reader", "checkpoint"), "models/mine"),
    "--prompt": ("closed-book", ("reader", "prompt"), "closed-book"),
    "--model": ("another", ("llm", "model"), "another"),
    "--max-cost": ("0.5", ("llm", "max_cost"), 0.5),
    "--max-tokens": ("90", ("llm", "max_tokens"), 90),
    "--thinking": ("low", ("llm", "thinking"), "low"),
    "--max-total-tokens": ("90", ("llm", "max_total_tokens"), 90),
    "--limit": ("3", ("limit",), 3),
    "--corpus": ("enwiki", ("corpus",), "enwiki"),
    "--set": ("retriever.k1=1.5", ("retriever", "k1"), 1.5),
}
VERBS = {verb: ["mine"] for verb in ("retrieve", "read", "score", "run", "check", "probe", "mcp")}
VERBS |= {"ask": ["If?", "-e", "mine"], "serve": ["mine", "--port", "0"]}


@pytest.fixture
def ifqa(here, capsys, monkeypatch):
    Path("experiments").mkdir()
    Path("experiments/mine.toml").write_text(MINE)

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["ifqa", *arguments])
        with pytest.raises(SystemExit) as ended:
            module.main()
        output = capsys.readouterr()
        return SimpleNamespace(code=ended.value.code or 0, out=output.out, err=output.err)

    return run


def options(verb):
    verbs: Any = module.parser()
    return {
        name
        for param in verbs.commands[verb].params
        for name in param.opts
        if name.startswith("--")
    }


@pytest.mark.parametrize(
    ("verb", "flag"),
    [(verb, flag) for verb in VERBS for flag in sorted(options(verb) & FLAGS.keys())],
)
def test_a_flag_changes_its_setting_of_the_experiment(verb, flag, ifqa, monkeypatch):
    value, place, wanted = FLAGS[flag]
    if flag == "--checkpoint":  # of the reader that has one
        Path("experiments/mine.toml").write_text(MINE.replace('name = "llm"', 'name = "fid"'))
    experiments = []

    def keep(run, *_):
        experiments.append(run.experiment)
        raise KeyboardInterrupt

    for where in (
        "ifqa.serve.server.open_system",
        "ifqa.pipeline.stages.open_system",
        "ifqa.pipeline.stages.retrieve",
        "ifqa.pipeline.stages.read",
        "ifqa.pipeline.stages.score",
        "ifqa.pipeline.stages.run",
        "ifqa.pipeline.check.System",
        "ifqa.pipeline.probe.probe",
    ):
        monkeypatch.setattr(where, keep)
    assert ifqa(verb, *VERBS[verb], flag, value).code == STOPPED
    stages.write_resolved(experiments[0])
    saved = tomllib.loads((experiments[0].folder / "experiment.toml").read_text())
    for key in place:
        saved = saved[key]
    assert saved == wanted


@pytest.mark.parametrize("verb", ["retrieve", "read", "run"])
@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ([], Workers(1, "local")),
        (["--workers", "0"], Workers(0, "local")),
        (["--engine", "ray"], Workers(0, "ray")),
    ],
)
def test_a_stage_gets_its_workers(verb, flags, expected, ifqa, monkeypatch):
    workers = []

    def stage(*arguments):
        workers.append(arguments[2])
        return Path("nowhere")

    monkeypatch.setattr(stages, verb, stage)
    monkeypatch.setattr(module, "_print_scores", lambda *_: 0)
    assert ifqa(verb, "mine", *flags).code == 0
    assert workers == [expected]


@pytest.mark.parametrize("arguments", [[], ["train"], ["stats"]])
def test_a_command_without_arguments_shows_its_help(ifqa, arguments):
    bare = ifqa(*arguments)
    assert bare.code == 0
    assert "Usage:" in bare.out
    assert bare.err == ""


def test_an_unknown_name_of_data_suggests_a_model_too(ifqa):
    unknown = ifqa("data", "qwen2.5-coder-3b")
    assert unknown.code == 2
    assert "did you mean 'qwen2.5-coder-1.5b'?" in unknown.err


def test_a_short_flag_shows_the_version(ifqa):
    version = ifqa("-V")
    assert version.code == 0
    assert version.out.startswith("ifqa ")


ANSWERS = (
    'benchmark = "sample"\nsplit = "dev"\nlimit = 2\n[reader]\nname = "predictions"\npath = '
    '"answers.jsonl"\n'
)


@pytest.fixture
def answered(ifqa):
    Path("answers.jsonl").write_text('{"question_id": "sample/dev/0", "answer": "x"}\n')
    for name in ("one", "two"):
        Path(f"experiments/{name}.toml").write_text(ANSWERS)
    assert ifqa("run", "one", "two", "--quiet").code == 0
    return ifqa


def test_quiet_shows_errors_but_no_progress(answered):
    assert "read" in answered("run", "one").err
    assert answered("run", "one", "--quiet").err == answered("--quiet", "run", "one").err == ""
    assert "unknown experiment" in answered("run", "nothing", "--quiet").err


def test_json_prints_each_result_on_one_line(answered):
    ran = answered("run", "one", "two", "--json")
    assert [json.loads(line)["experiment"] for line in ran.out.splitlines()] == ["one", "two"]
    read = json.loads(answered("read", "one", "--json").out)
    assert (read["folder"], read["record"]["questions"]) == ("experiments/one/read", 2)
    assert json.loads(answered("score", "one", "--json").out)["scores"]["questions"] == 2
    compared = json.loads(answered("compare", "one", "two", "--json").out)
    assert (compared["a"], compared["b"], compared["measures"][0]["tied"]) == ("one", "two", 2)
    assert "sample" in json.loads(answered("list", "--json").out)["corpora"]
    checked = json.loads(answered("check", "one", "--json").out)
    assert ("read with predictions", True) in [
        (part["what"], part["made"]) for part in checked["work"]
    ]
    path = Path("experiments/one/read/predictions.jsonl")
    path.write_text(path.read_text().replace('"x"', '"y"'))
    assert (
        "predictions.jsonl is missing or was changed; building the artifact again"
        in answered("run", "one").err
    )
    Path("answers.jsonl").unlink()
    lacking = answered("check", "one", "--json")
    assert (lacking.code, "not found: answers.jsonl" in lacking.err) == (2, True)
    assert [need["what"] for need in json.loads(lacking.out)["needs"] if not need["here"]] == [
        "answers.jsonl"
    ]


@pytest.mark.parametrize("place", [0, 3])
def test_half_a_character_in_any_argument_is_refused_in_one_line(ifqa, place):
    arguments = ["run", "sample", "--set", "reader.weights=x"]
    arguments[place] += "\udcff"
    output = ifqa(*arguments)
    assert (output.code, output.err.count("\n")) == (2, 1)
    assert output.err.startswith(f"ifqa: argument {place + 1} is not valid UTF-8: '")
