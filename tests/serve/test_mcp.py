"""The MCP tools, used by the official client: in process, and over streamable HTTP with and without
a token.
"""

import asyncio

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from serving_system import TOKEN, on_loopback, service, small

from ifqa.serve.mcp import make_tools
from ifqa.serve.security import Guard


def session(experiment, scenario):
    async def run():
        with service(experiment) as opened:
            opened.open()
            try:
                async with Client(make_tools(opened)) as client:
                    return await scenario(client)
            finally:
                await opened.close()

    return asyncio.run(run())


async def use_tools(client):
    listed = (await client.list_tools()).tools
    assert {tool.name for tool in listed} == {"ask", "retrieve", "get_passage"}
    assert all(tool.output_schema and tool.annotations.read_only_hint for tool in listed)
    answer = await client.call_tool("ask", {"question": "If unsure, who?", "threshold": 0})
    ranking = await client.call_tool("retrieve", {"question": "mill", "k": 2})
    passage = await client.call_tool("get_passage", {"passage_id": "p/3"})
    assert not any(reply.is_error for reply in (answer, ranking, passage))
    content = answer.structured_content
    assert (content["outcome"], content["answer"], content["evidence"][0]["id"]) == (
        "answered",
        "Ada Stone",
        "p/0",
    )
    assert [passage["id"] for passage in ranking.structured_content["passages"]] == ["p/0", "p/1"]
    assert passage.structured_content["title"].startswith("Mill 3")


def test_errors_that_the_caller_can_fix_are_tool_errors(experiment):
    wrong = {
        "no passage 'p/99' in corpus few": ("get_passage", {"passage_id": "p/99"}),
        "the question is empty": ("ask", {"question": " "}),
        "2000": ("ask", {"question": "x" * 2001}),
        "the model refuses every request": ("ask", {"question": "refused?"}),
        "threshold": ("ask", {"question": "Who?", "threshold": 7}),
        "100": ("retrieve", {"question": "mill", "k": 1000}),
    }

    async def call_wrongly(client):
        return [await client.call_tool(*call) for call in wrong.values()]

    for words, reply in zip(wrong, session(experiment, call_wrongly), strict=True):
        message = reply.content[0].text
        assert (reply.is_error, words in message, "Traceback" in message) == (True, True, False), (
            message
        )


def test_a_system_without_a_reader_offers_no_answers(tmp_path):
    async def names(client):
        return {tool.name for tool in (await client.list_tools()).tools}

    assert session(small(tmp_path, reader=None), names) == {"retrieve", "get_passage"}


@pytest.mark.parametrize("token", ["", TOKEN])
def test_the_server_has_the_tools_over_http(token, experiment):
    headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def over_http(url):
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False) as web,
            Client(streamable_http_client(f"{url}/mcp", http_client=web)) as client,
        ):
            await use_tools(client)

    with on_loopback(experiment, Guard(token=token)) as (_, url):
        assert (
            httpx2.get(f"{url}/mcp", headers=headers, trust_env=False, verify=False).status_code
            == 405
        )
        asyncio.run(over_http(url))
