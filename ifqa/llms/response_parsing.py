"""Turns a response of a server that speaks OpenAI's API into a completion, or into a kind of
failure.
"""

import email.utils
import json
import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import urlsplit

import openai

from ifqa.llms.cache import LONGEST_TEXT
from ifqa.llms.credentials import key_forms, redact, remove_key
from ifqa.llms.logprobs import RawToken, locate_tokens, parse_tokens
from ifqa.llms.request_form import LEARNT, TOOLS
from ifqa.llms.streaming import TextCallback
from ifqa.records import Completion, ToolCall

# Error codes that concern a single prompt; servers other than OpenAI's use messages instead
_REQUEST_ERRORS = {
    "context_length_exceeded",
    "exceed_context_size_error",
    "string_above_max_length",
    "content_filter",
    "content_policy_violation",
    "invalid_prompt",
}
_REQUEST_ERROR = re.compile(
    r"context (length|window|size)|content (filter|management) policy|prompt is too long", re.I
)
#: Codes of errors that would come again -> the status that they have at OpenAI.
_PERMANENT = {
    "authentication_error": 401,
    "invalid_api_key": 401,
    "invalid_request_error": 400,
    "model_not_found": 404,
    "permission_error": 403,
}
_QUOTA = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
_HINTS = {
    401: " (check OPENAI_API_KEY, or the variable in IFQA_KEYS)",
    403: " (the key may not use this model)",
    404: " (check the model and base_url)",
}
# How servers say that they do not know a parameter, or take only its default
_REFUSAL = re.compile(
    r"unsupported|not support|not permitted|not allowed|unrecognized|unknown|unexpected"
    r"|extra (field|input)|instead",
    re.I,
)
# How llama.cpp and vLLM say that they were started without support for functions
_NO_TOOLS = re.compile(r"\btools?\b.*\brequires?\b.*--", re.I | re.S)
_CUT = "truncated: the token limit was reached before any text; raise --max-tokens"
_MOST_TOKENS = 10**9  # upper bound for a plausible count
_PAGE = re.compile(rb"\s*<(!doctype|html|\?xml)", re.I)
_PAGE_HINT = "; wanted JSON (check base_url; a proxy or a login page may stand before the server)"
_TRUNCATED = (
    "truncated: the token limit was reached within the model's thoughts; "
    "set --thinking off, low, medium or high, or raise --max-tokens"
)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a request has no completion."""

    #: "retry" if another try may help; "once" if a single one may, because each is paid; "fail" if
    #: this request alone fails, for good; "refused" if the server does not take the parameter
    #: `parameter`; "stop" if every request would fail.
    action: Literal["retry", "once", "fail", "refused", "stop"]
    message: str  # one line, without secrets
    wait: float | None = None  # seconds that the server asks to wait before a retry
    # Tokens of prompt and answer used nevertheless; None if unknown
    used: tuple[int, int] | None = (0, 0)
    unreachable: bool = False  # no connection was made
    parameter: str = ""


def parse_response(
    body: bytes, chat: bool, stop: Sequence[str] = (), key: str = "", has_tools: bool = False
) -> Completion | Failure:
    """The completion in the body of a response, or why there is none.

    The text is cut before the first stop string, which some servers leave in. A chat's refusal
    counts as its text. An empty text is an answer, unless thoughts or the limit on tokens took its
    place. A body without usable text was paid, so it is asked for once more and not again and
    again. `key` is removed from the server's messages. `has_tools` says whether the model was
    offered functions: then it may call them in place of a text.
    """
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        if _PAGE.match(body):
            return Failure(
                "stop", redact(f"it answers with a web page: {_page_text(body)}", key) + _PAGE_HINT
            )
        return Failure("once", "the response is not a JSON object, or is truncated", used=None)
    if error := _error_in(answer):
        return classify_error_body(error, key)
    used = _parse_usage(answer.get("usage"))
    choice = _first_choice(answer)
    message = choice.get("message") if chat else choice
    if not isinstance(message, dict):
        return Failure("once", "the response has no text", used=used)
    finish = str(choice.get("finish_reason") or "")
    text = join_parts(message.get("content" if chat else "text"))
    if text is None and chat and isinstance(message.get("refusal"), str):
        text = message["refusal"]
    reasoning = reasoning_of(message)
    calls = _parse_calls(message.get("tool_calls")) if has_tools else ()
    if not (text or calls) and (
        failure := _explain_no_text(text, reasoning, message, finish, used)
    ):
        return (
            failure if chat or failure.message != _TRUNCATED else Failure("fail", _CUT, used=used)
        )
    text = _without_surrogates(text or "")
    end = min((text.index(string) for string in stop if string in text), default=len(text))
    if end < len(text):
        text = text[:end]
        finish = "stop"
    return Completion(
        text,
        *(used or (0, 0)),
        finish,
        cached_prompt_tokens=_cached_tokens(answer.get("usage")),
        reasoning=_without_surrogates(reasoning),
        logprobs=locate_tokens(text, parse_tokens(choice.get("logprobs"))),
        calls=calls,
    )


def _parse_calls(entries: object) -> tuple[ToolCall, ...]:
    """The calls of a message, in order.

    What is no call has an empty name, so that the model can be told. Some servers send the
    arguments as an object.
    """
    calls = []
    for entry in entries if isinstance(entries, list) else ():
        function = entry.get("function") if isinstance(entry, dict) else None
        named = function if isinstance(function, dict) else {}
        name = named.get("name")
        arguments = named.get("arguments")
        if not isinstance(arguments, str):
            arguments = "" if arguments is None else json.dumps(arguments)
        calls.append(
            ToolCall(
                _without_surrogates(name) if isinstance(name, str) else "",
                _without_surrogates(arguments),
            )
        )
    return tuple(calls)


def _page_text(body: bytes) -> str:
    """The words of a web page, for a message."""
    return (
        re.sub(r"<[^>]*>|\s+", " ", body[:2000].decode("utf-8", "replace")).strip()
        or "without a word"
    )


def _explain_no_text(
    text: str | None,
    reasoning: str,
    message: Mapping[str, object],
    finish: str,
    used: tuple[int, int] | None,
) -> Failure | None:
    """Why a response without text is not an answer; None for an empty answer."""
    if finish == "content_filter":
        return Failure("fail", "the server's content filter blocked the answer", used=used)
    if finish == "length":
        return Failure("fail", _TRUNCATED, used=used)
    if message.get("tool_calls"):
        return Failure("once", "the response calls a tool and has no text", used=used)
    if reasoning:
        return Failure("once", "the response has thoughts and no text", used=used)
    return Failure("once", "the response has no text", used=used) if text is None else None


def join_parts(content: object) -> str | None:
    """A message's text: a string, or a list of parts, of which those with thoughts are left out.

    None if there is none.
    """
    if not isinstance(content, list):
        return content if isinstance(content, str) else None
    texts = [
        part.get("text")
        for part in content
        if isinstance(part, dict) and part.get("type") in ("text", "output_text")
    ]
    strings = [text for text in texts if isinstance(text, str)]
    return "".join(strings) if strings else None


def reasoning_of(message: Mapping[str, object]) -> str:
    """The thoughts that a server keeps apart, under the name that DeepSeek and llama.cpp or that
    vLLM and OpenRouter use.
    """
    texts = (message.get(name) for name in ("reasoning_content", "reasoning"))
    return next((text for text in texts if isinstance(text, str) and text), "")


def _without_surrogates(text: str) -> str:
    """A text without lone surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _first_choice(answer: Mapping[str, object]) -> dict[str, Any]:
    """The choice with index 0, wherever it stands."""
    choices = answer.get("choices")
    known = (
        [choice for choice in choices if isinstance(choice, dict)]
        if isinstance(choices, list)
        else []
    )
    return next((choice for choice in known if not choice.get("index")), known[0] if known else {})


def _parse_usage(usage: object) -> tuple[int, int] | None:
    """Tokens of prompt and answer; None unless the server reports plausible numbers for both.

    Some servers count thoughts in `total_tokens` alone, and bill them as tokens of the answer
    (xAI's, gateways to Gemini: UKGovernmentBEIS/inspect_ai#5528, Portkey-AI/gateway#1460).
    """
    if not isinstance(usage, dict):
        return None
    prompt, answer, total = (
        count if type(count := usage.get(name)) is int and 0 <= count <= _MOST_TOKENS else None
        for name in ("prompt_tokens", "completion_tokens", "total_tokens")
    )
    if prompt is None or answer is None:
        return None
    return prompt, max(answer, (total or 0) - prompt)


def _cached_tokens(usage: object) -> int:
    """Tokens of the prompt that the server had read before; 0 if it reports no plausible number."""
    details = usage.get("prompt_tokens_details") if isinstance(usage, dict) else None
    count = details.get("cached_tokens") if isinstance(details, dict) else 0
    return count if type(count) is int and 0 <= count <= _MOST_TOKENS else 0


def _error_in(answer: Mapping[str, object]) -> object:
    """The error that a body with status 200, or an event of a stream, reports.

    None if there is none.
    """
    if answer.get("error"):
        return answer["error"]
    choice = _first_choice(answer)
    if choice.get("error"):
        return choice["error"]
    if choice.get("finish_reason") == "error":
        return "the answer ends with an error"
    if answer.get("choices"):
        return None
    return answer if answer.get("object") == "error" or answer.get("detail") else None


def classify_error_body(error: object, key: str) -> Failure:
    """The failure of an error that came with status 200 or within a stream.

    Its code says whether a retry may help.
    """
    code, message, _ = parse_error_body(error)
    status = 500
    if code.isdecimal() and len(code) in (3, 5):
        status = int(code[:3])  # some servers count within a status: 50002
    elif code in _PERMANENT:
        status = _PERMANENT[code]
    elif code in _REQUEST_ERRORS or _REQUEST_ERROR.search(message):
        status = 400
    return _classify(
        status, code, message, redact(f"the server reports an error: {message}", key), None, key
    )


def classify_status(error: openai.APIStatusError, key: str, sent: Collection[str] = ()) -> Failure:
    """The failure of a response with a status other than 2xx.

    `sent` are the names of the request's parameters.

    408, 409, 429 and 5xx are retried, unless a quota is used up. A 413 fails its request alone; so
    does a 400 about length or content. Every other status (a bad key, no such model) stops all
    requests.
    """
    status = error.status_code
    code, message, parameter = parse_error_body(error.body)
    line = redact(f"HTTP {status}: {message}", key)
    if status in (400, 422, 500) and TOOLS in sent and _NO_TOOLS.search(message):
        return Failure("refused", line, parameter=TOOLS)
    concerns_prompt = code in _REQUEST_ERRORS or _REQUEST_ERROR.search(message)
    if (
        status in (400, 422)
        and not concerns_prompt
        and (refused := _refused_parameter(parameter, message, sent))
    ):
        return Failure("refused", line, parameter=refused)
    if 300 <= status < 400:
        host = urlsplit(error.response.headers.get("location", "")).netloc or "another address"
        mend = "which is not followed; if you trust that host, set base_url to it"
        return Failure("stop", f"HTTP {status}: a redirect to {redact(host[:100], key)}, {mend}")
    failure = _classify(status, code, message, line, retry_after(error.response.headers), key)
    if failure.action == "retry" and status >= 500 and status != 503:
        # Behind a gateway that timed out, the server may have done the work
        return Failure("retry", failure.message, failure.wait, used=None)
    return failure


def _classify(
    status: int, code: str, message: str, line: str, wait: float | None, key: str
) -> Failure:
    if code in _QUOTA:
        return Failure(
            "stop", f"{line} (the quota is used up; add credit, or wait for the next period)"
        )
    if status in (408, 409, 429) or status >= 500:
        return Failure("retry", line, wait)
    if status == 413 or (
        status == 400 and (code in _REQUEST_ERRORS or _REQUEST_ERROR.search(message))
    ):
        return Failure("fail", line)
    return Failure("stop", line + _HINTS.get(status, ""))


def _refused_parameter(parameter: str, message: str, sent: Collection[str]) -> str:
    """The sent parameter that the server does not take, by an error's field or its words.

    Empty if it is about something else.
    """
    if not _REFUSAL.search(message):
        return ""
    if parameter in sent:
        return parameter
    places = {
        name: match.start()
        for name in sent
        if (match := re.search(rf"\b{re.escape(name)}\b", message))
    }
    # "this model does not support tools" names two
    learnt = {name: place for name, place in places.items() if name in LEARNT} or places
    return min(learnt, key=lambda name: learnt[name]) if learnt else ""


def parse_error_body(body: object) -> tuple[str, str, str]:
    """Code, message and parameter of an error's body, in any of the common formats."""
    if not isinstance(body, Mapping):
        return "", str(body or "no message"), ""
    codes = [str(body[name]) for name in ("code", "type") if body.get(name)]
    code = next(
        (code for code in codes if code in _REQUEST_ERRORS | _QUOTA), codes[0] if codes else ""
    )
    message = next((body[name] for name in ("message", "detail", "error") if body.get(name)), body)
    return code, _message_text(message), str(body.get("param") or "")


def _message_text(message: object) -> str:
    """A message as a text; of FastAPI's list of problems, "stop: extra fields not permitted"."""
    if isinstance(message, str):
        return message
    problems = message if isinstance(message, list) else []
    texts = [
        f"{problem['loc'][-1]}: {problem['msg']}" for problem in problems if _is_located(problem)
    ]
    return "; ".join(texts) if texts and len(texts) == len(problems) else json.dumps(message)


def _is_located(problem: object) -> bool:
    return (
        isinstance(problem, dict)
        and isinstance(problem.get("loc"), list)
        and bool(problem["loc"])
        and "msg" in problem
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from a header with milliseconds, seconds or a date.

    None without such a header.
    """
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            return max(0.0, float(headers.get(name, "")) / unit)
        except ValueError:
            continue
    try:
        retry_date = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
    except (TypeError, ValueError):
        return None
    return max(0.0, retry_date.timestamp() - time.time())


class StreamedAnswer:
    """Assembles the events of an answer streamed by OpenAI's API, and calls `on_text` with the text
    so far.

    `on_text` gets the text without `key`, which the server may repeat, and without an ending that
    may be the start of `key`.
    """

    def __init__(self, chat: bool, on_text: TextCallback, key: str = "") -> None:
        self._chat = chat
        self._on_text = on_text
        self._key = key
        self._text: str | None = None
        self._refusal = ""
        self._reasoning = ""
        self._finish = ""
        self._usage: object = None
        self._tokens = list[RawToken]()
        self._calls: dict[int, dict[str, str]] = {}  # name and arguments so far, by index
        self._rest = b""  # of a line that is being read
        self._lines: list[str] = []  # of the event that is being read
        self.done = False  # whether the stream said that it is complete
        self.error: object = None
        on_text("")

    @property
    def has_begun(self) -> bool:
        """Whether the server has sent a part of an answer, which took tokens."""
        return bool(self._text or self._reasoning or self._refusal or self._calls)

    def add_bytes(self, content: bytes) -> None:
        """Add the next bytes of the stream; raises like `add_line`.

        Line breaks other than LF and CR may stand in JSON.
        """
        self._rest += content
        *lines, self._rest = re.split(rb"\r\n|\n|\r(?!$)", self._rest)
        for line in lines:
            self.add_line(line.decode("utf-8", "replace"))

    def end(self) -> None:
        """Read what the stream left without an end of the line or of the event.

        Raises like `add_line`.
        """
        self.add_bytes(b"\n\n")

    def add_line(self, line: str) -> None:
        """Add a line of the stream; an empty line ends an event.

        ValueError if an event's data is not JSON.
        """
        if line.startswith("data:"):
            self._lines.append(line[5:].removeprefix(" "))
        elif not line and self._lines:
            event = "\n".join(self._lines)
            self._lines = []
            if event.startswith("[DONE]"):
                self.done = True
            else:
                self.add(json.loads(event))

    def add(self, chunk: object) -> None:
        """Add the data of the next event; malformed data is ignored."""
        if not isinstance(chunk, dict):
            return
        self.error = self.error or _error_in(chunk)
        self._usage = chunk.get("usage") or self._usage
        choice = _first_choice(chunk)
        if choice.get("index"):  # a later choice
            return
        self._finish = choice.get("finish_reason") or self._finish
        self._tokens += parse_tokens(choice.get("logprobs"))
        delta = choice.get("delta") if self._chat else choice
        if not isinstance(delta, dict):
            return
        refusal = delta.get("refusal")
        self._refusal += refusal if isinstance(refusal, str) else ""
        self._reasoning += reasoning_of(delta)
        self._add_calls(delta.get("tool_calls"))
        text = join_parts(delta.get("content" if self._chat else "text"))
        if text is not None:
            self._text = (self._text or "") + text
            if text:
                self._on_text(self._visible_text(self._text))

    def _add_calls(self, entries: object) -> None:
        """Add the next pieces of calls; a piece without an index is a call of its own."""
        for entry in entries if isinstance(entries, list) else ():
            if not isinstance(entry, dict):
                continue
            index = entry.get("index")
            place = index if isinstance(index, int) else len(self._calls)
            call = self._calls.setdefault(place, {"name": "", "arguments": ""})
            function = entry.get("function")
            pieces = function if isinstance(function, dict) else {}
            for name in call:
                piece = pieces.get(name)
                if isinstance(piece, str):
                    call[name] += piece
                elif piece is not None:  # arguments as an object
                    call[name] += json.dumps(piece)

    def to_response(self) -> dict[str, object]:
        """The response as it would be without streaming, for `parse_response`.

        Without choices if the stream broke off.
        """
        text = None if self._refusal and not self._text else self._text
        answer: dict[str, object] = {"text": text}
        if self._chat:
            message = {
                "content": text,
                "refusal": self._refusal or None,
                "reasoning_content": self._reasoning,
                "tool_calls": [{"function": self._calls[n]} for n in sorted(self._calls)],
            }
            answer = {"message": message}
        complete = self._finish or self.done
        choices = [answer | {"finish_reason": self._finish}] if complete else []
        return {"choices": choices, "usage": self._usage}

    def reply(self, stop: Sequence[str], key: str, has_tools: bool = False) -> Completion | Failure:
        """What the whole stream says; `has_tools` as in `parse_response`.

        A stream that broke off may have taken any number of tokens.
        """
        if self.error:
            failure = classify_error_body(self.error, key)
            used = None if self.has_begun else (0, 0)
            return Failure(
                failure.action, f"the answer broke off: {failure.message}", failure.wait, used
            )
        if not (self._finish or self.done):
            return Failure("retry", "the answer broke off", used=None)
        whole = json.dumps(self.to_response()).encode()
        reply = parse_response(whole, self._chat, stop, key, has_tools)
        if isinstance(reply, Completion):
            reply = replace(reply, logprobs=locate_tokens(reply.text, self._tokens))
        return reply

    def _visible_text(self, text: str) -> str:
        text = remove_key(text, self._key)
        held = 0
        for form in key_forms(self._key):
            longest = min(len(text), len(form) - 1)
            held = max(
                held,
                next((size for size in range(longest, 3, -1) if form.startswith(text[-size:])), 0),
            )
        return text[: len(text) - held][:LONGEST_TEXT]
