import gc
import logging
import os
import signal
import sys
from typing import Any

import pytest
from hypothesis import settings

from ifqa.progress import show_messages

show_messages()  # as the command line does
for handler in logging.getLogger("ifqa").handlers:
    # A server may log a request after its test has ended, when nothing captures what is printed.
    handler.addFilter(lambda record: record.name != "ifqa.serve")

# The same examples every time, and no clock: tests are deterministic and run on busy machines.
settings.register_profile("ifqa", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("ifqa")

# A background command starts with SIGINT ignored, and `nohup` ignores SIGHUP. Every process of a
# test would inherit that.
HANDLERS: dict[str, Any] = {"SIGINT": signal.default_int_handler, "SIGHUP": signal.SIG_DFL}
for name, usual in HANDLERS.items():
    if hasattr(signal, name) and signal.getsignal(signal.Signals[name]) is signal.SIG_IGN:
        signal.signal(signal.Signals[name], usual)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Imports and tests live to the end, so the garbage collector need not scan them again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def sample_indexes(tmp_path_factory):
    """A folder `indexes` with the sample's passages and two indexes, to be copied.

    Built once for all of pytest's workers.
    """
    from filelock import FileLock

    from ifqa.api import Corpus

    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    with FileLock(folder / "indexes.lock"):
        Corpus("sample", root=folder).build()
    return folder / "indexes"


@pytest.fixture(scope="session")
def sample_llm_run(sample_indexes):
    """A folder with the sample's indexes and the finished experiment `sample-llm`, to be copied.

    Run once for all of pytest's workers: the span reader reads 83 questions for it.
    """
    from filelock import FileLock

    import ifqa

    folder = sample_indexes.parent
    with FileLock(folder / "run.lock"):
        ifqa.run("sample-llm", root=folder)
    return folder


@pytest.fixture(scope="session")
def chromium():
    """A running browser."""
    from browser import CHROMIUM, browser

    if CHROMIUM is None:
        pytest.skip("no Chromium on the PATH")
    with browser() as running:
        yield running


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def importable(here, monkeypatch):
    """An empty working directory whose modules can be imported, and are forgotten at the end."""
    monkeypatch.syspath_prepend(here)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    known = set(sys.modules)
    yield here
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(here)):
            del sys.modules[name]


@pytest.fixture
def five(importable):
    """The working directory has an experiment of five questions, with its plugins."""
    from outside_plugins import five_questions

    five_questions()
