"""The command line as a process: signals that stop it, streams that nobody reads, and exit
codes.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ifqa.cli.options import print_json, print_line
from ifqa.cli.process import run_each
from ifqa.errors import ConfigError

COMMAND = f"'{sys.executable}' -m ifqa"


def shell(command):
    return subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, timeout=60, check=False
    )


WAITING = """
import asyncio, sys
from ifqa.cli.process import run_process
async def wait():
    try:
        print("in flight", flush=True)
        await asyncio.sleep(30)
    except asyncio.CancelledError:
        print("kept", flush=True)
        raise
run_process(lambda: asyncio.run(wait()) or 0)
"""


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("at_start", [signal.SIG_IGN, signal.default_int_handler])
def test_a_process_that_a_signal_stops_keeps_what_is_in_flight(sent, at_start):
    def start():  # as sh starts a command that ends with "&"
        signal.signal(signal.SIGINT, at_start)

    with subprocess.Popen(
        [sys.executable, "-c", WAITING],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=start,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "in flight\n"
        if at_start == signal.SIG_IGN:
            process.send_signal(signal.SIGINT)
            time.sleep(0.2)
            assert process.poll() is None
        process.send_signal(sent)
        out, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    assert out == "kept\n", err
    assert err.startswith("stopped;")


@pytest.mark.parametrize("codes", [[130, None], [None, 130, 0]])
def test_the_highest_exit_code_of_several_tasks_counts(codes, capsys):
    def do(code):
        if code is None:
            raise ConfigError("no such experiment")
        return code

    assert run_each(codes, do, ["a"] * len(codes)) == 130
    assert capsys.readouterr().err == "ifqa: a: no such experiment\n"


def test_a_closed_pipe_exits_with_141(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = shell(f"({COMMAND} list; echo $? >code) | true")
    assert Path("code").read_text() == "141\n"
    assert done.stderr == ""


needs_full_device = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")


@needs_full_device
def test_an_output_that_cannot_be_written_gives_a_one_line_error():
    done = shell(f"PYTHONUNBUFFERED= {COMMAND} --version >/dev/full")
    assert done.returncode == 2
    assert done.stderr == "ifqa: stdout: No space left on device\n"


@needs_full_device
@pytest.mark.parametrize("redirect", ["2>/dev/full", "2>&-"])
def test_an_error_that_cannot_be_written_keeps_its_exit_code(redirect):
    assert shell(f"{COMMAND} run no-such-experiment {redirect}").returncode == 2


def test_printed_text_steers_no_terminal(capsys):
    print_line("experiments/x\x1b[31m\nAnswer  \u202eforged")
    assert capsys.readouterr().out == "experiments/x\ufffd[31m Answer  \ufffdforged\n"

    content = {"answer": "Zürich \x1b\x9b\u202e\u2028\U000e0041 東京"}
    print_json(content)
    out = capsys.readouterr().out
    assert json.loads(out) == content
    assert out == '{"answer": "Zürich \\u001b\\u009b\\u202e\\u2028\\udb40\\udc41 東京"}\n'


LIBRARY_FAULT = """
import typer
from ifqa.cli.process import run_process
app = typer.Typer()
@app.command()
def load():
    raise EOFError("Ran out of input")
run_process(lambda: typer.main.get_command(app)([], standalone_mode=False) or 0)
"""


def test_a_librarys_eof_error_is_not_taken_for_ctrl_c():
    done = subprocess.run(
        [sys.executable, "-c", LIBRARY_FAULT], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "EOFError: Ran out of input" in done.stderr
    assert "stopped" not in done.stderr
