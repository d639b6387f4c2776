"""Fits as many passages into a prompt as the language model's window has room for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from ifqa.errors import unknown
from ifqa.prompting.demonstrations import Demo
from ifqa.prompting.prompts import Messages, Prompt
from ifqa.records import Passage, Request

Order = Literal["best first", "best last"]

_MESSAGE_TOKENS = 8  # a chat template's tokens around a message, and (below) around all: more than known templates use
_CHAT_TOKENS = 40


@dataclass(frozen=True, slots=True)
class Fitted:
    """A prompt that fits into the window.

    Attributes:
        messages, text, stop: as in the request; exactly one of `messages` and `text` is filled, unless there is a `problem`.
        passages: the passages in the prompt, best first.
        left_out: number of passages that did not fit.
        tokens: of the prompt, never too few.
        problem: why nothing fits, or "".
    """

    messages: Messages = ()
    text: str = ""
    stop: tuple[str, ...] = ()
    passages: tuple[Passage, ...] = ()
    left_out: int = 0
    tokens: int = 0
    problem: str = ""

    def requests(self, max_tokens: int, temperature: float, samples: int) -> list[Request]:
        """The request, once per sample; none if there is a problem."""
        if self.problem:
            return []
        request = Request(self.messages, self.text, max_tokens, temperature, self.stop)
        return [replace(request, sample=n) for n in range(samples)]


def fit(
    prompt: Prompt,
    question: str,
    passages: Sequence[Passage],
    demos: Sequence[Demo],
    chat: bool,
    count: Callable[[str], int],
    room: int,
    order: Order = "best first",
    choices: Sequence[str] = (),
    searched: Sequence[str] = (),
) -> Fitted:
    """The prompt with as many of the best passages as fit, possibly none.

    Args:
        prompt: the prompt.
        question: the question to ask.
        passages: best first.
        demos: demonstrations; all are shown.
        chat: whether the model takes messages, or one text.
        count: counts a text's tokens, never too few.
        room: tokens that the prompt may take: the model's window less the answer's tokens.
        order: whether the best passage comes first, or last, next to the question.
        choices: the answers that the question offers; shown if the prompt shows choices.
        searched: the queries so far; shown if the prompt shows them.

    Raises:
        IfqaError: the order is unknown, a demonstration lacks a part that the prompt shows, or a question lacks choices.
    """
    if order not in get_args(Order):
        raise unknown("order of passages", order, get_args(Order))

    n_passages = len(passages) if prompt.reads_passages else 0

    def with_best(n: int) -> Fitted:
        chosen = passages[:n] if order == "best first" else passages[:n][::-1]
        messages, text = prompt.render(question, chosen, demos, chat, choices, searched)
        tokens = _count(messages, text, count)
        stop = () if chat else prompt.stop
        return Fitted(messages, text, stop, tuple(passages[:n]), n_passages - n, tokens)

    best = with_best(n_passages)
    if best.tokens <= room:
        return best
    best = with_best(0)
    if best.tokens > room:
        shown = f" and {len(demos)} demonstrations" if demos else ""
        return Fitted(
            left_out=n_passages,
            tokens=best.tokens,
            problem=f"the question takes {best.tokens} tokens with its prompt{shown}, and there is room for {room}",
        )
    low, high = 0, n_passages  # `low` passages fit, `high` do not
    while high - low > 1:
        middle = (low + high) // 2
        tried = with_best(middle)
        if tried.tokens <= room:
            low, best = middle, tried
        else:
            high = middle
    return best


def _count(messages: Messages, text: str, count: Callable[[str], int]) -> int:
    if not messages:
        return count(text)
    return _CHAT_TOKENS + sum(_MESSAGE_TOKENS + count(content) for _, content in messages)
