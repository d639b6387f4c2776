"""Shared by the tests of llms/openai.py: requests, a model on a scripted server, a folder and a
key.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from openai_server import Reply

from ifqa.llms import request_scheduler
from ifqa.llms.cache import FILE
from ifqa.llms.openai import OpenAI
from ifqa.records import Request

KEY = "sk-canary-3f9c1e77a0b2"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(request_scheduler, "BACKOFF", 0.002)


def ask(*prompts, **more):
    return [Request(messages=(("user", prompt),), **more) for prompt in prompts]


def model(server, budget=None, **settings):
    base = {"model": "m", "base_url": server.url, "window": 4096, "retries": 3}
    return OpenAI(OpenAI.Settings(**base | settings), budget=budget)


def texts(completions):
    return [completion.text for completion in completions]


def first(*replies, then=Reply):
    """A plan: the n-th request of a prompt gets the n-th reply.

    After the last, the default reply.
    """
    return lambda prompt, time, body: replies[time - 1]() if time <= len(replies) else then()


def count_stored(folder="completions"):
    """How many completions a folder's cache holds."""
    path = Path(folder) / FILE
    if not path.exists():
        return 0
    with closing(sqlite3.connect(path)) as connection:
        (count,) = connection.execute("SELECT count(*) FROM completions").fetchone()
    return count
