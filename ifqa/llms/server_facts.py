"""What a server says of its model: its context window, and how many requests it answers at once.

There is no common question for it. vLLM and SGLang list `max_model_len` with their models;
llama.cpp tells the window and the number of its slots at /props, and what the model was trained for
with its models; Ollama has /api/show and /api/ps.
"""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx2
import openai

from ifqa.llms.http_client import open_client

TIMEOUT = 5.0  # seconds
# tokens, if neither the model nor the server sets num_ctx; a longer prompt is cut without a word
OLLAMA_WINDOW = 4096


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """A model's context window in tokens, and the server's slots; 0 if unknown."""

    window: int = 0
    slots: int = 0


async def ask_server(url: str, key: str, model: str) -> ServerFacts:
    """What the server at an address says of a model; what it does not say is unknown."""
    root = url.rstrip("/").removesuffix("/v1")
    async with open_client(url, key, TIMEOUT) as client:
        listed = await _get(client, f"{url.rstrip('/')}/models")
        if listed is None:
            return ServerFacts()
        entries = [entry for entry in _list(listed.get("data")) if isinstance(entry, dict)]
        entry = next(
            (entry for entry in entries if entry.get("id") == model),
            entries[0] if len(entries) == 1 else {},
        )
        if window := _count(entry.get("max_model_len")):
            return ServerFacts(window)
        meta = _table(entry.get("meta"))
        window = _count(meta.get("n_ctx")) or _count(meta.get("n_ctx_train"))
        if props := await _get(client, f"{root}/props"):
            own = _count(_table(props.get("default_generation_settings")).get("n_ctx"))  # of a slot
            return ServerFacts(own or window, _count(props.get("total_slots")))
        return ServerFacts(window or await _ollama_window(client, root, model))


def list_models(body: bytes) -> list[str]:
    """The names in the body of a server's /models; none if it is something else."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return []
    entries = _list(content.get("data")) if isinstance(content, dict) else []
    return [
        entry["id"]
        for entry in entries
        if isinstance(entry, dict) and isinstance(entry.get("id"), str)
    ]


async def _ollama_window(client: openai.AsyncOpenAI, root: str, model: str) -> int:
    """The window that Ollama gives a model: as loaded, as set in its file, or else by default."""
    shown = await _get(client, f"{root}/api/show", {"model": model})
    if not shown:
        return 0
    running = await _get(client, f"{root}/api/ps") or {}
    for entry in map(_table, _list(running.get("models"))):
        if model in (entry.get("name"), entry.get("model")) and (
            window := _count(entry.get("context_length"))
        ):
            return window
    for line in str(shown.get("parameters") or "").splitlines():
        name, _, value = line.strip().partition(" ")
        if name == "num_ctx" and re.fullmatch(r"[0-9]{1,9}", value.strip()):
            return int(value)
    lengths = [
        _count(value)
        for name, value in _table(shown.get("model_info")).items()
        if name.endswith(".context_length")
    ]
    return min([OLLAMA_WINDOW, *filter(None, lengths)])


async def _get(
    client: openai.AsyncOpenAI, url: str, body: Mapping[str, object] | None = None
) -> dict[str, Any] | None:
    """The JSON object at an address, or the answer to a `body`; None if there is none."""
    try:
        async with asyncio.timeout(TIMEOUT):  # the library's own timeout restarts with every byte
            if body is None:
                response = await client.get(url, cast_to=httpx2.Response)
            else:
                response = await client.post(url, body=body, cast_to=httpx2.Response)
        content = json.loads(response.content)
    except (openai.APIError, httpx2.RequestError, TimeoutError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _count(value: object) -> int:
    return value if type(value) is int and 0 < value < 10**9 else 0
