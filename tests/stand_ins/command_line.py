"""The command line as a new process, or in this process, which starts faster."""

import io
import os
import signal
import subprocess
import sys
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace

import pytest


def ifqa(*arguments, folder, **environment):
    """Run the command line in a folder; the finished process."""
    return subprocess.run(
        [sys.executable, "-m", "ifqa", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        env={
            **os.environ,
            "HF_HUB_OFFLINE": "1",
            "PYTHONPATH": str(Path(__file__).parents[2]),
            **environment,
        },
    )


@contextmanager
def locking_process(folder, options="", code="print('in', flush=True); sys.stdin.read()"):
    """Another process that locks a folder, by default until it is killed at the end."""
    script = (
        "import sys; from pathlib import Path; from ifqa.progress import show_messages\n"
        "from ifqa.storage.artifacts import lock; show_messages()\n"
        f"with lock(Path({str(folder)!r}){options}): {code}"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.kill()


def ifqa_here(*arguments, folder, **environment):
    """Run it in this process, and restore modules, path, signals and environment."""
    from ifqa.cli.app import main

    out, err = (
        io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)
    )
    known = set(sys.modules)
    path = list(sys.path)
    handlers = {
        number: signal.getsignal(number)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["ifqa", *arguments])
        for name, value in {"HF_HUB_OFFLINE": "1", **environment}.items():
            patch.setenv(name, value)
        with pytest.raises(SystemExit) as ended:
            main()
    for number, handler in handlers.items():
        signal.signal(number, handler)
    here = str(Path(folder).resolve())
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(here):
            del sys.modules[name]  # a plugin of the folder
    sys.path[:] = path
    texts = [stream.buffer.getvalue().decode() for stream in (out, err)]
    return SimpleNamespace(returncode=ended.value.code or 0, stdout=texts[0], stderr=texts[1])
