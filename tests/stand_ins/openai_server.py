"""A scripted server that speaks OpenAI's API over loopback, and keeps its own count of requests and
tokens.

`serving` runs it in a thread; a plan gives its reply to the n-th request of a prompt.
"""

import asyncio
import json
import re
import threading
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Reply:
    """The reply to one request; by default a completion that repeats the prompt."""

    status: int = 200
    body: object = None  # bytes as they are, else JSON; None for a completion
    headers: dict = field(default_factory=dict)
    latency: float = 0.0
    cut: str = ""  # "before" or "within" the answer the connection is closed
    forever: float | None = None  # the body is sent again and again, after so many seconds each
    text: str | None = "answer"  # of the completion
    message: dict | None = None  # of a chat, in place of the text
    finish: str = "stop"
    usage: tuple[int, int] | None = (7, 3)
    cached: int = 0  # tokens of the prompt that the server had read before
    pace: float = 0.0  # seconds between the pieces of a streamed completion
    pieces: list | None = None  # of a streamed completion, as bytes; None for one a word


def error(status, message, code=None, headers=None, **more):
    body = {
        "error": {"message": message, "type": "an_error", "param": more.get("param"), "code": code}
    }
    return Reply(status, body, headers or {}, usage=None)


class Server:
    def __init__(self, plan=None, latency=0.0):
        self.plan = plan or (lambda prompt, time, body: Reply(text=f"to {prompt}"))
        self.latency = latency
        self.asked: Counter[str] = Counter()  # prompt -> how often
        self.bodies = []
        self.keys = set()
        self.headers = {}  # of the last request
        self.tokens = [0, 0]  # of all that was worked on, whether it arrived or not
        self.now = self.most_at_once = 0
        self.sent = 0  # bytes of bodies that have no end

    @property
    def requests(self):
        return sum(self.asked.values())

    async def serve(self, up):
        server = await asyncio.start_server(self.talk, "127.0.0.1", 0, limit=2**24, backlog=512)
        self.port = server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        up.set()
        async with server:
            await server.serve_forever()

    async def talk(self, reader, writer):
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode().split("\r\n")
                headers = {
                    name.lower(): value
                    for name, _, value in (line.partition(": ") for line in lines if line)
                }
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                self.headers = headers
                self.keys.add(headers.get("authorization", ""))
                method, path, _ = first.split()
                reply = await self.respond(method, path, headers, body)
                content = (
                    reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
                )
                lines = {"content-type": "application/json", **reply.headers}
                if reply.pieces is not None:
                    lines |= {"content-type": "text/event-stream"}
                    content = b"".join(reply.pieces)
                if reply.forever is None:
                    lines["content-length"] = str(len(content))
                if reply.cut == "before":
                    return
                writer.write(f"HTTP/1.1 {reply.status} X\r\n".encode())
                writer.write(
                    "".join(f"{name}: {value}\r\n" for name, value in lines.items()).encode()
                    + b"\r\n"
                )
                for piece in [] if reply.cut else reply.pieces or []:
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(reply.pace)
                if reply.cut or reply.pieces is None:
                    writer.write(content[: len(content) // 2] if reply.cut else content)
                await writer.drain()
                while reply.forever is not None:
                    await asyncio.sleep(reply.forever)
                    writer.write(content)
                    self.sent += len(content)
                    await writer.drain()
                if reply.cut:
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def respond(self, method, path, headers, body):
        if not path.endswith("/completions"):
            return error(404, "Not Found")
        return await self.answer(path, json.loads(body))

    async def answer(self, path, body):
        chat = path.endswith("/chat/completions")
        prompt = body["messages"][-1]["content"] if chat else body["prompt"]
        self.asked[prompt] += 1
        self.bodies.append(body)
        self.now += 1
        self.most_at_once = max(self.most_at_once, self.now)
        try:
            reply = self.plan(prompt, self.asked[prompt], body)
            if reply.usage:
                self.tokens = [
                    token + more for token, more in zip(self.tokens, reply.usage, strict=True)
                ]
            await asyncio.sleep(reply.latency or self.latency)
        finally:
            self.now -= 1
        if reply.body is None and body.get("stream"):
            reply.pieces = reply.pieces or list(streamed(reply, chat))
        elif reply.body is None:
            reply.body = completion_body(reply, body["model"], chat)
        return reply


def completion_body(reply, model, chat):
    choice = {"index": 0, "finish_reason": reply.finish}
    message = {"role": "assistant", **(reply.message or {"content": reply.text})}
    choice |= {"message": message} if chat else {"text": reply.text}
    body = {"id": "1", "object": "chat.completion", "model": model, "choices": [choice]}
    if reply.usage:
        names = ("prompt_tokens", "completion_tokens", "total_tokens")
        body["usage"] = dict(zip(names, (*reply.usage, sum(reply.usage)), strict=True))
        body["usage"]["prompt_tokens_details"] = {"cached_tokens": reply.cached}
    return body


def streamed(reply, chat):
    """A completion as OpenAI's API streams it, a word a piece."""

    def event(**more):
        return (
            b"data: "
            + json.dumps({"id": "1", "model": "m", "usage": None, **more}).encode()
            + b"\n\n"
        )

    for word in re.findall(r"\S+\s*|\s+", reply.text or ""):
        piece = {"delta": {"content": word}} if chat else {"text": word}
        yield event(choices=[{"index": 0, "finish_reason": None, **piece}])
    yield event(
        choices=[
            {"index": 0, "finish_reason": reply.finish, **({"delta": {}} if chat else {"text": ""})}
        ]
    )
    if reply.usage:
        prompt_tokens, completion_tokens = reply.usage
        yield event(
            choices=[],
            usage={"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens},
        )
    yield b"data: [DONE]\n\n"


@contextmanager
def serving(plan=None, latency=0.0, kind=Server):
    """A server in a thread; it stops on leaving."""
    server = kind(plan, latency)
    up = threading.Event()
    loop = asyncio.new_event_loop()

    def work():
        asyncio.set_event_loop(loop)
        task = loop.create_task(server.serve(up))
        server.stop = lambda: loop.call_soon_threadsafe(task.cancel)
        try:
            loop.run_until_complete(task)
        except asyncio.CancelledError:
            pass
        finally:
            others = asyncio.all_tasks(loop)
            for other in others:
                other.cancel()
            loop.run_until_complete(asyncio.gather(*others, return_exceptions=True))
            loop.close()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert up.wait(10)
    try:
        yield server
    finally:
        server.stop()
        thread.join(10)
