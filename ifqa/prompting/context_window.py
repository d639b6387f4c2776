"""Fits as many passages into a prompt as the language model's context window allows."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from ifqa.errors import unknown_name
from ifqa.prompting.demonstrations import Demo
from ifqa.prompting.prompts import Messages, Prompt
from ifqa.protocols import LanguageModel
from ifqa.records import Passage, Request

Order = Literal["best first", "best last"]

_MESSAGE_TOKENS = 8  # upper bounds for a chat template: per message, and (below) per chat
_CHAT_TOKENS = 40


@dataclass(frozen=True, slots=True)
class FittedPrompt:
    """A prompt that fits into the window.

    Attributes:
        request: the prompt as the model takes it, at temperature 0.
        passages: the passages in the prompt, best first.
        left_out: number of passages that did not fit.
        tokens: upper bound on the prompt's tokens.
        problem: why the prompt does not fit, or "".
    """

    request: Request
    passages: tuple[Passage, ...]
    left_out: int
    tokens: int
    problem: str = ""

    def requests(self, temperature: float = 0.0, samples: int = 1) -> list[Request]:
        """The request, once per sample; none if there is a problem."""
        number = 0 if self.problem else samples
        return [replace(self.request, temperature=temperature, sample=n) for n in range(number)]


def fit_prompt(
    prompt: Prompt,
    question: str,
    passages: Sequence[Passage],
    model: LanguageModel,
    demos: Sequence[Demo] = (),
    order: Order = "best first",
    choices: Sequence[str] = (),
    searched: Sequence[str] = (),
    window: int = 0,
) -> FittedPrompt:
    """The prompt with as many of the best passages as fit, possibly none.

    Args:
        prompt: the prompt.
        question: the question to ask.
        passages: best first.
        model: its form (chat or text), token counts and window decide.
        demos: demonstrations; all are included.
        order: whether the best passage comes first, or last, next to the question.
        choices: the answers that the question offers, for prompts with {choices}.
        searched: the queries so far, for prompts with {searched}.
        window: tokens of prompt and answer; 0 for the model's.
    """
    if order not in get_args(Order):
        raise unknown_name("order of passages", order, get_args(Order))
    limit = (window or model.window) - prompt.max_tokens
    n_passages = len(passages) if prompt.reads_passages else 0

    def with_best(n: int) -> FittedPrompt:
        ordered = passages[:n] if order == "best first" else passages[:n][::-1]
        messages, text = prompt.render(question, ordered, demos, model.chat, choices, searched)
        stop = () if model.chat else tuple(prompt.stop)
        request = Request(messages, text, prompt.max_tokens, stop=stop)
        return FittedPrompt(request, tuple(passages[:n]), n_passages - n, _tokens(messages, text, model))

    best = with_best(n_passages)
    if best.tokens <= limit:
        return best
    bare = with_best(0)
    if bare.tokens > limit:
        with_demos = f" and {len(demos)} demonstrations" if demos else ""
        problem = f"the question takes {bare.tokens} tokens with its prompt{with_demos}; only {limit} fit"
        return replace(bare, problem=problem)
    return with_best(bisect_right(range(1, n_passages), limit, key=lambda n: with_best(n).tokens))


def _tokens(messages: Messages, text: str, model: LanguageModel) -> int:
    if not messages:
        return model.count(text)
    return _CHAT_TOKENS + sum(_MESSAGE_TOKENS + model.count(content) for _, content in messages)
