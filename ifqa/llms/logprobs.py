"""The log probabilities of a completion's tokens: reads them from a server's reply, and finds those
of a part of the text.
"""

import codecs
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from ifqa.records import Completion, TokenLogprob

# A token's bytes and its log probability
RawToken = tuple[bytes, float]


def parse_tokens(logprobs: object) -> list[RawToken]:
    """The tokens in a choice's `logprobs`, in the form of OpenAI's chat API or of its older one.

    Empty unless every token has a finite log probability.
    """
    if not isinstance(logprobs, Mapping):
        return []
    content = logprobs.get("content")
    if isinstance(content, list):
        return _known([_chat_token(entry) for entry in content])
    tokens = logprobs.get("tokens")
    values = logprobs.get("token_logprobs")
    if isinstance(tokens, list) and isinstance(values, list) and len(tokens) == len(values):
        return _known([_token(*pair) for pair in zip(tokens, values, strict=True)])
    return []


def _known(tokens: Sequence[RawToken | None]) -> list[RawToken]:
    """The tokens; none if one is unknown, because sums would be wrong."""
    known = [token for token in tokens if token is not None]
    return known if len(known) == len(tokens) else []


def _chat_token(entry: object) -> RawToken | None:
    """A token of the chat API, which has its bytes where a character takes several tokens."""
    if not isinstance(entry, Mapping):
        return None
    token = _token(entry.get("token"), entry.get("logprob"))
    numbers = entry.get("bytes")
    if token is None or not isinstance(numbers, list):
        return token
    if all(type(number) is int and 0 <= number < 256 for number in numbers):
        return bytes(numbers), token[1]
    return token


def _token(text: object, logprob: object) -> RawToken | None:
    if not isinstance(text, str) or isinstance(logprob, bool):
        return None
    if not isinstance(logprob, int | float) or not math.isfinite(logprob):
        return None
    return text.encode("utf-8", "replace"), min(float(logprob), 0.0)


def locate_tokens(text: str, tokens: Iterable[RawToken]) -> tuple[TokenLogprob, ...]:
    """The tokens of a text, each by its end in characters.

    Tokens before and after the text, such as thoughts that a server keeps apart, are left out. The
    tokens of one character count as one.
    Empty if the tokens do not contain the text.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    written = ""
    ends = list[TokenLogprob]()  # in all that was written
    waiting = 0.0
    for token, logprob in tokens:
        waiting += logprob
        characters = decoder.decode(token)
        if characters:  # else the next token completes the character
            written += characters
            ends.append((len(written), waiting))
            waiting = 0.0
    written += decoder.decode(b"", final=True)
    start = written.find(text) if text else -1
    if start < 0:
        return ()
    located = list[TokenLogprob]()
    for end, logprob in ends:
        if end > start:
            located.append((min(end - start, len(text)), round(logprob, 4)))
        if end - start >= len(text):
            break
    return tuple(located)


def span_logprobs(completion: Completion, start: int, end: int) -> list[float]:
    """The log probabilities of the tokens that overlap the text from `start` to `end`."""
    edges = [0, *(token_end for token_end, _ in completion.logprobs)]
    return [
        logprob
        for (first, last), (_, logprob) in zip(pairwise(edges), completion.logprobs, strict=True)
        if first < end and last > start
    ]
