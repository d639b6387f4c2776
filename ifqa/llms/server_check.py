"""What a server that speaks OpenAI's API offers, for `ifqa check`: batches, answers by a JSON schema, counts of cached tokens."""

import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from functools import partial
from urllib.parse import urlsplit

import openai

from ifqa.llms.credentials import NO_KEY, key_for, redact
from ifqa.llms.http_client import Failure, classify_error, open_client, send
from ifqa.llms.request_scheduler import ServedModel, run
from ifqa.protocols import Requirement
from ifqa.records import Completion, Request

TIMEOUT = 10.0  # seconds; more for an answer, as a server may load its model first
ANSWER_TIMEOUT = 60.0
_ANSWERS = ["yes", "no"]
_SCHEMA = {
    "type": "object", "properties": {"answer": {"type": "string", "enum": _ANSWERS}}, "required": ["answer"],
    "additionalProperties": False,
}  # fmt: skip
_QUESTION, _MAX_TOKENS = "Is water wet? Answer yes or no.", 20


def check_servers(model: ServedModel) -> Iterator[Requirement]:
    """A requirement for each server, which names what it offers; it is missing if the server is down or lacks what is set.

    Three short requests are sent to a server whose tokens cost nothing, and none to another.
    """
    for url in model.urls:
        offers, remedies = run(_ask_server(model, url))
        about = f": {'; '.join(offers)}" if offers else ""
        yield Requirement(f"server {urlsplit(url).netloc}{about}", "; ".join(remedies))


async def _ask_server(model: ServedModel, url: str) -> tuple[list[str], list[str]]:
    """What the server offers, and the remedies for what it lacks."""
    names, offers, remedies, key = list[str](), list[str](), list[str](), key_for(url)
    secret = "" if key == NO_KEY else key
    async with open_client(url, key, TIMEOUT) as client:

        async def refusal(operation: Callable[[], Awaitable[object]]) -> Failure | None:
            try:
                await operation()
            except openai.APIError as error:
                return classify_error(error, secret, TIMEOUT)
            return None

        async def ask(request: Request) -> Completion | Failure:
            return await send(client, model.arguments(request), ANSWER_TIMEOUT, None)

        async def list_models() -> None:
            names.extend([listed.id async for listed in client.models.list()])

        failure = await refusal(list_models)
        if failure and (failure.server_down or failure.message.startswith("HTTP 401")):
            return [], [failure.message]
        if names:
            others = "" if model.model in names else f", but {redact(', '.join(names[:5]), secret)}"
            offers.append(f"lists {'not ' if others else ''}{model.model}{others}")
        has_batches = not await refusal(partial(client.get, "/batches?limit=1", cast_to=object))
        offers.append("batch API" if has_batches else "no batch API")
        if model.batch and not has_batches:
            remedies.append("the setting batch needs the batch API; unset it")
        price = model.account.price
        if price is None or price.cost(1, 1):
            return [*offers, "JSON schemas and cached tokens not tried, as requests may cost money"], remedies
        form = {"messages": (("user", _QUESTION),)} if model.chat else {"text": _QUESTION}
        plain = Request(**form, max_tokens=_MAX_TOKENS)
        reply = await ask(replace(plain, schema=json.dumps(_SCHEMA)))
        offers.append("JSON schemas" if isinstance(reply, Completion) and _follows(reply.text) else "no JSON schemas")
        replies = [await ask(plain) for _ in range(2)]
        if isinstance(replies[1], Failure):
            remedies.append(f"it does not answer: {replies[1].message}")
        else:
            offers.append("counts cached tokens" if replies[1].cached_prompt_tokens else "counts no cached tokens")
    return offers, remedies


def _follows(text: str) -> bool:
    """Whether a text is an object by `_SCHEMA`."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(answer, dict) and list(answer) == ["answer"] and answer["answer"] in _ANSWERS
