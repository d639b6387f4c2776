"""The command line as a process: signals, exit codes, and one-line errors on stderr."""

import json
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from io import TextIOWrapper
from traceback import extract_tb
from typing import NoReturn, TypeVar

import typer

from ifqa.errors import IfqaError
from ifqa.progress import write_line

# click's; since 0.29 typer has its own copy of click
UsageError: type[Exception] = typer.BadParameter.__mro__[1]

WRONG = 2  # a user's error
STOPPED = 130  # a shell's exit code for Ctrl-C
UNREAD = 141  # a shell's exit code after SIGPIPE, as in `ifqa list | head -1`

_T = TypeVar("_T")


def run_process(command: Callable[[], int]) -> NoReturn:
    """Run a command and exit; a user's error is one line on stderr and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a pipe on Windows is not UTF-8
            stream.reconfigure(errors="replace")
    _handle_signals()
    try:
        code = command()
    except UsageError as error:
        code = print_error(error.format_message())  # type: ignore[attr-defined]
    except BrokenPipeError:
        code = UNREAD
    except (IfqaError, OSError, ModuleNotFoundError) as error:
        code = print_error(error_message(error))
        if "--json" in sys.argv:
            print_error_json(error)
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # raised by typer and rich
            code = UNREAD
        else:  # raised by a plugin, whose exit code would pass for ours
            frame = extract_tb(error.__traceback__)[-1]
            place = f"{frame.filename}:{frame.lineno}"
            code = print_error(
                f"{place} ends the program (sys.exit({error.code!r})); "
                "wanted an exception, or a result"
            )
    except (typer.Abort, KeyboardInterrupt) as error:
        # Typer takes it for Ctrl-D, and ifqa prompts by other means
        if isinstance(error.__cause__, EOFError):
            raise error.__cause__ from None
        code = STOPPED
    if code == STOPPED:  # typer returns this code after a Ctrl-C
        write_line("stopped; run the same command again to resume")
    sys.exit(_flush_output(code))


def run_each(tasks: Sequence[_T], do: Callable[[_T], int], names: Sequence[str]) -> int:
    """Call `do` for each task and return the highest exit code.

    A single task's error is raised; one of several is printed.
    """
    code = 0
    for task, name in zip(tasks, names, strict=True):
        try:
            code = max(code, do(task))
        except (IfqaError, OSError) as error:
            if len(tasks) == 1:
                raise
            code = max(code, print_error(f"{name}: {error_message(error)}"))
    return code


def error_message(error: IfqaError | OSError | ModuleNotFoundError) -> str:
    """An error's message.

    For an OSError, the file and the system's message, such as "Permission denied". For a module
    that a light installation lacks, where to read how to install it.
    """
    if isinstance(error, IfqaError):
        return str(error)
    if isinstance(error, ModuleNotFoundError):
        if not is_light():
            raise error
        return (
            f"this needs {error.name}, which a light installation lacks; install the whole of ifqa "
            "(docs/installing.md)"
        )
    # A library's bug, or for `run_process` to handle
    if error.errno is None or isinstance(error, BrokenPipeError):
        raise error
    return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror)


def is_light() -> bool:
    """Whether a package that ifqa requires is not installed."""
    from importlib.metadata import PackageNotFoundError, requires, version  # slow to import

    for requirement in requires("ifqa") or []:
        if "extra ==" in requirement:
            continue
        try:
            version(re.split(r"[^\w.-]", requirement, maxsplit=1)[0])
        except PackageNotFoundError:
            return True
    return False


def print_error_json(error: IfqaError | OSError | ModuleNotFoundError) -> None:
    """Print an error on stdout in place of the JSON of a result, with the parts that it tells
    apart.
    """
    parts = error.parts() if isinstance(error, IfqaError) else {}
    content = {"kind": type(error).__name__, "message": error_message(error), **parts}
    line = json.dumps({"error": content}).replace("\x7f", "\\u007f")  # steers no terminal
    with suppress(OSError):  # nobody reads it
        print(line)


def print_error(message: str) -> int:
    """Print an error as one line on stderr; returns exit code 2."""
    write_line(f"ifqa: {' '.join(message.split())}")
    return WRONG


def _flush_output(code: int) -> int:
    """Flush stdout and stderr here, and return the exit code.

    At exit, Python would report a failed write with a traceback.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError as error:
            # Discards the rest of the buffer
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            if stream is sys.stdout:
                code = (
                    UNREAD
                    if isinstance(error, BrokenPipeError)
                    else print_error(f"stdout: {error.strerror}")
                )
    return code


def _handle_signals() -> None:
    """Treat SIGTERM (sent by a scheduler) and SIGHUP (by a closing terminal) like Ctrl-C, so that
    requests in flight finish.
    """
    if sys.platform != "win32" and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # In a script, `ifqa ... &` starts with SIGINT ignored. It is blocked until `_stop` unblocks
        # it. asyncio cancels its tasks properly only under Python's own SIGINT handler.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in ("SIGTERM", "SIGHUP"):
        number = signal.Signals.__members__.get(name)  # Windows has no SIGHUP
        # Under nohup, SIGHUP stays ignored
        if number and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _stop)


def _stop(*_: object) -> None:
    if sys.platform == "win32":
        signal.raise_signal(signal.SIGINT)
        return
    if signal.SIGINT not in signal.sigpending():  # a pending SIGINT is delivered below
        signal.raise_signal(signal.SIGINT)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
