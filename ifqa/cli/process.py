"""The command line as a process: the signals that stop it, the line that says what is wrong, and its exit code."""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from io import TextIOWrapper
from typing import NoReturn, TypeVar

import typer

from ifqa.errors import IfqaError
from ifqa.progress import complain

UsageError: type[Exception] = typer.BadParameter.__mro__[1]  # click's, which typer carries inside since 0.29

WRONG = 2  # the user's error
STOPPED = 130  # what a shell gives for Ctrl-C
UNREAD = 141  # what a shell gives where nobody reads the output any more, as in `ifqa list | head -1`

_T = TypeVar("_T")


def run_process(command: Callable[[], int]) -> NoReturn:
    """Run a command and exit; the user's errors are one line on stderr and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a pipe on Windows is not UTF-8: better a "?" than no answer
            stream.reconfigure(errors="replace")
    _stop_as_ctrl_c_does()
    try:
        code = command()
    except UsageError as error:
        code = refuse(error.format_message())  # type: ignore[attr-defined]
    except BrokenPipeError:
        code = UNREAD
    except (IfqaError, OSError) as error:
        code = refuse(in_words(error))
    except SystemExit as error:  # typer and rich make this of a broken pipe
        if not isinstance(error.__context__, BrokenPipeError):
            raise
        code = UNREAD
    except (typer.Abort, KeyboardInterrupt):
        code = STOPPED
    if code == STOPPED:  # typer itself makes this of a Ctrl-C
        complain("stopped; what is finished is kept, the same command goes on from there")
    sys.exit(_flushed(code))


def each(several: Sequence[_T], do: Callable[[_T], int], names: Sequence[str]) -> int:
    """The highest exit code; of several, what fails with one does not keep the others from their turn."""
    code = 0
    for one, name in zip(several, names, strict=True):
        try:
            code = max(code, do(one))
        except (IfqaError, OSError) as error:
            if len(several) == 1:
                raise
            code = refuse(f"{name}: {in_words(error)}")
    return code


def in_words(error: IfqaError | OSError) -> str:
    """What is wrong, or what the system refuses: a folder where a file is wanted, no permission, a read-only disk."""
    if isinstance(error, IfqaError):
        return str(error)
    if error.errno is None or isinstance(error, BrokenPipeError):  # a library's own, and so a bug; or for `run_process`
        raise error
    return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror)


def refuse(message: str) -> int:
    """Say on one line of stderr what is wrong; the exit code for that."""
    complain(f"ifqa: {' '.join(message.split())}")
    return WRONG


def _flushed(code: int) -> int:
    """The exit code, once what was printed is written; Python itself would end with a traceback where it cannot be."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # for what is still in the buffer
            if stream is sys.stdout:
                code = UNREAD if isinstance(error, BrokenPipeError) else refuse(f"stdout: {error.strerror}")
    return code


def _stop_as_ctrl_c_does() -> None:
    """What a scheduler sends, and a terminal that is closed, leaves the same time to keep what is in flight as Ctrl-C."""
    if sys.platform != "win32" and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A script's `ifqa ... &` starts with SIGINT ignored. Blocked, it is as good as ignored until `_stop` lets it in;
        # and asyncio keeps what is in flight only where it finds Python's own handler.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number and signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores it, and so it stays
            signal.signal(number, _stop)


def _stop(*_: object) -> None:
    if sys.platform == "win32":
        signal.raise_signal(signal.SIGINT)
        return
    if signal.SIGINT not in signal.sigpending():  # one that came while it was blocked is delivered below
        signal.raise_signal(signal.SIGINT)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
