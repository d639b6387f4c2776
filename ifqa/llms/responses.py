"""Reads the body of a response: a completion, or why there is none."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ifqa.llms.completions import bounded
from ifqa.llms.failures import LONGEST_WORDS, Failure, blot, scrub
from ifqa.records import Completion

_MOST_TOKENS = 10**9  # of one answer; no window is nearly as large
_SHORTEST_KEY = 8  # characters; a shorter key may be a word of an answer


def admitted(got: Completion | Failure, key: str) -> Completion | Failure:
    """What is let in of a server's answer, before anything is stored, shown or counted.

    Every text is without the key that the server was sent ("" for none), and of bounded length.
    """
    if isinstance(got, Failure):  # its words are the server's, shortened, and our own
        return replace(got, words=blot(got.words, key)[: 2 * LONGEST_WORDS])
    key = secret_of(key)
    return bounded(replace(got, text=blot(got.text, key), finish=scrub(got.finish, key)))


def secret_of(key: str) -> str:
    """The key, if it is long enough to be looked for in an answer; otherwise ""."""
    return key if len(key) >= _SHORTEST_KEY else ""


def read_answer(body: bytes, chat: bool, stop: Sequence[str] = ()) -> Completion | Failure:
    """The completion in the body of a response, or why there is none.

    The text ends before the first of the stop strings, as some servers leave them in. A chat's refusal is its text. An
    empty text is an answer, unless the limit on tokens was reached before the text began.
    """
    try:
        answer = json.loads(body)
        used = _usage(answer)
    except (ValueError, RecursionError, AttributeError):
        return Failure("again", "the answer is no JSON object, or is cut short", used=None)
    try:
        choice = answer["choices"][0]
        text = choice["message"]["content"] if chat else choice["text"]
        if text is None and chat:
            text = choice["message"].get("refusal")
        finish = str(choice.get("finish_reason") or "")
    except (KeyError, IndexError, TypeError, AttributeError):
        return Failure("again", "the answer has no choices in it", used=used)
    if finish == "content_filter" and not text:
        return Failure("alone", "the server's content filter held the answer back", used=used)
    if finish == "length" and not text:
        return Failure("alone", "max_tokens was used up before any text (reasoning?); raise it", used=used)
    if not isinstance(text, str):
        return Failure("again", "the answer has no text in it", used=used)
    text = text.encode("utf-16", "surrogatepass").decode(
        "utf-16", "replace"
    )  # a lone surrogate cannot be written in UTF-8
    end = min((text.index(one) for one in stop if one in text), default=len(text))
    if end < len(text):
        text, finish = text[:end], "stop"
    prompt_tokens, completion_tokens = used or (0, 0)
    return Completion(text, prompt_tokens, completion_tokens, finish)


def _usage(answer: dict[str, Any]) -> tuple[int, int] | None:
    """Tokens of the prompt and the answer; None if the server does not give both as possible numbers."""
    usage = answer.get("usage") or {}
    prompt, answered = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if type(prompt) is int and type(answered) is int and 0 <= prompt <= _MOST_TOKENS and 0 <= answered <= _MOST_TOKENS:
        return prompt, answered
    return None
