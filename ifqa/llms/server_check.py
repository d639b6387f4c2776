"""What a server that speaks OpenAI's API offers, for `ifqa check`: JSON schemas, counts of cached
tokens, thoughts.
"""

import asyncio
import json
from dataclasses import replace
from urllib.parse import urlsplit

import httpx2
import openai

from ifqa.llms.credentials import NO_KEY, key_for, redact
from ifqa.llms.http_client import classify_error, open_client, send
from ifqa.llms.request_scheduler import ServedModel, run
from ifqa.llms.response_parsing import Failure
from ifqa.llms.server_facts import list_models
from ifqa.protocols import Requirement
from ifqa.records import Completion, Request

TIMEOUT = 10.0  # seconds; more for an answer, as a server may load its model first
ANSWER_TIMEOUT = 60.0
_ANSWERS = ["yes", "no"]
_SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string", "enum": _ANSWERS}},
    "required": ["answer"],
    "additionalProperties": False,
}
_QUESTION, _MAX_TOKENS = "Is water wet? Answer yes or no.", 20


def check_server(model: ServedModel) -> Requirement:
    """The server as a requirement whose name tells what it offers.

    It is missing if it is down or does not answer.

    Three short requests are sent to a server whose tokens cost nothing, and none to another.
    """
    offers, remedies = run(_ask_server(model))
    about = f": {'; '.join(offers)}" if offers else ""
    return Requirement(f"server {urlsplit(model.url).netloc}{about}", "; ".join(remedies))


async def _ask_server(model: ServedModel) -> tuple[list[str], list[str]]:
    """What the server offers, and the remedies for what it lacks."""
    names: list[str] = []
    offers: list[str] = []
    key = key_for(model.url)
    secret = "" if key == NO_KEY else key
    form = model.form
    async with open_client(model.url, key, TIMEOUT) as client:
        try:
            async with asyncio.timeout(TIMEOUT):
                response = await client.get("/models", cast_to=httpx2.Response)
            names.extend(list_models(response.content))
        except (openai.APIError, httpx2.RequestError, TimeoutError) as error:
            failure = classify_error(error, secret, TIMEOUT, {})
            if (
                failure.action == "retry"
                or failure.message.startswith("HTTP 401")
                or "certificate" in failure.message
            ):
                return [], [failure.message]
        if names:
            others = "" if model.model in names else f", but {redact(', '.join(names[:5]), secret)}"
            offers.append(f"lists {'not ' if others else ''}{model.model}{others}")
        price = model.account.price
        if price is None or price.cost(1, 1):
            return [
                *offers,
                "JSON schemas and cached tokens not tried, as requests may cost money",
            ], []

        async def ask(request: Request) -> Completion | Failure:
            """The reply, in the form that the server takes."""
            nonlocal form
            while True:
                reply = await send(client, form.arguments(request), ANSWER_TIMEOUT)
                other = (
                    form.without(reply.parameter)
                    if isinstance(reply, Failure) and reply.parameter
                    else None
                )
                if other is None:
                    return reply
                form = other

        messages = {"messages": (("user", _QUESTION),)} if model.chat else {"text": _QUESTION}
        plain = Request(**messages, max_tokens=_MAX_TOKENS)
        reply = await ask(replace(plain, schema=json.dumps(_SCHEMA)))
        offers.append(
            "JSON schemas"
            if isinstance(reply, Completion) and _follows(reply.text)
            else "no JSON schemas"
        )
        replies = [await ask(plain) for _ in range(2)]
        last = replies[1]
        if isinstance(last, Completion):
            offers.append(
                "counts cached tokens" if last.cached_prompt_tokens else "counts no cached tokens"
            )
            offers.extend(["thinks"] if last.reasoning or "<think" in last.text else [])
        elif last.message.startswith("truncated"):
            offers.append("thinks (--thinking off, or low, medium, high)")
        else:
            return offers, [f"it does not answer: {last.message}"]
    return offers, []


def _follows(text: str) -> bool:
    """Whether a text is an object by `_SCHEMA`."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(answer, dict) and list(answer) == ["answer"] and answer["answer"] in _ANSWERS
