"""Six questions that tiny networks are trained on, and trainings that are killed."""

import os
import shutil
import signal
from contextlib import contextmanager

import pytest

from ifqa.records import Passage, Question
from ifqa.training import checkpoints

TOWNS = "Bath Wick Lund Rye Hove Deal".split()
TEXTS = [
    f"{name} was born in {town} and left it for good."
    for name, town in zip("Ada Bo Cy Di Ed Flo".split(), TOWNS, strict=True)
]
QUESTIONS = [
    Question(f"t/{n}", f"If {text.split()[0]} had stayed, where?", (town, f"in {town}"), (text,))
    for n, (text, town) in enumerate(zip(TEXTS, TOWNS, strict=True))
]
RANKINGS = [
    [Passage(f"p{m}", "", TEXTS[m]) for m in (n, (n + 1) % 6, (n + 3) % 6)][: 3 - n % 2]
    for n in range(6)
]
SETTINGS = {
    "passages": 3,
    "steps": 4,
    "batch": 4,
    "device_batch": 2,
    "max_tokens": 40,
    "evaluate_every": 2,
    "learning_rate": 1e-2,
    "device": "cpu",
}


class Killed(BaseException):
    pass


def killed():
    raise Killed


@contextmanager
def ended_at(call, end=killed):
    """A training within it ends at this call of its training step."""
    fit = checkpoints.run_trainer

    def counted(trainer, *arguments):
        real = trainer.training_step
        calls = iter(range(1, call + 1))

        def stepped(*args, **named):
            return end() if next(calls) == call else real(*args, **named)

        trainer.training_step = stepped
        return fit(trainer, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoints, "run_trainer", counted)
        yield


def kill(call, train):
    """Train in a fork, so that nothing is imported again, and end it by SIGKILL."""
    child = os.fork()
    if child == 0:
        with ended_at(call, lambda: os.kill(os.getpid(), signal.SIGKILL)):
            train()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def torn_copies(killed, folder):
    """Copies of a killed training, each with a file of its newest checkpoint cut in half or
    missing, and the file's name.

    Two files are tried. With TORN_FILES=every in the environment it is each file both ways, which
    takes minutes.
    """
    newest = max((killed / "checkpoints").iterdir(), key=checkpoints.checkpoint_step)
    names = sorted(
        path.relative_to(newest).as_posix() for path in newest.rglob("*") if path.is_file()
    )
    damages = [("optimizer.pt", "cut"), ("scheduler.pt", "missing")]
    if os.environ.get("TORN_FILES") == "every":
        damages = [(name, damage) for name in names for damage in ("cut", "missing")]
    for number, (name, damage) in enumerate(damages):
        copy = folder / f"torn-{number}"
        shutil.copytree(killed, copy)
        file = copy / newest.relative_to(killed) / name
        content = file.read_bytes()
        file.unlink()
        if damage == "cut":
            file.write_bytes(content[: len(content) // 2])
        yield copy, name
