"""Fits as many passages into a prompt as the language model's context window allows."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ifqa.errors import ConfigError
from ifqa.prompting.demonstrations import Demo
from ifqa.prompting.prompts import Prompt
from ifqa.protocols import LanguageModel
from ifqa.records import Passage, Request

Order = Literal["best first", "best last"]

# Upper bounds of what a chat template adds to a message, and to a chat
_MESSAGE_TOKENS, _CHAT_TOKENS = 8, 40


@dataclass(frozen=True, slots=True)
class FittedPrompt:
    """A prompt that fits into the context window."""

    request: Request  # at temperature 0
    passages: tuple[Passage, ...]  # those in the prompt, best first
    shown: tuple[Passage, ...]  # the same in the order of their numbers
    left_out: int  # passages that did not fit
    tokens: int  # an upper bound
    problem: str = ""  # why not even the bare prompt fits

    def requests(
        self, temperature: float = 0.0, samples: int = 1, logprobs: bool = False
    ) -> list[Request]:
        """The request, once for each sample; none if there is a problem."""
        count = 0 if self.problem else samples
        request = replace(self.request, temperature=temperature, logprobs=logprobs)
        return [replace(request, sample=n) for n in range(count)]


def bound_tokens(request: Request, model: LanguageModel) -> int:
    """An upper bound on the tokens of a request's prompt."""
    if not request.messages:
        return model.count(request.text)
    contents = [content for _, content in request.transcript]
    tools = model.count(request.tools) if request.tools else 0
    return _CHAT_TOKENS + tools + sum(_MESSAGE_TOKENS + model.count(text) for text in contents)


def fit_prompt(
    prompt: Prompt,
    question: str,
    passages: Sequence[Passage],
    model: LanguageModel,
    demos: Sequence[Demo] = (),
    order: Order = "best first",
    choices: Sequence[str] = (),
    window: int = 0,
) -> FittedPrompt:
    """The prompt with all `demos` and as many of the best passages as fit, possibly none.

    `passages` are best first; `order` says whether the best is shown first, or last, next to the
    question. `choices` fills {choices}. `window` is in tokens of prompt and answer; 0 for the
    model's.
    """
    if prompt.needs_schema and not model.takes_schema:
        raise ConfigError(
            "the prompt wants JSON by a schema; wanted a server (llm.name = openai) or llama-cpp"
        )
    max_tokens = model.completion_tokens(prompt.max_tokens)
    limit = (window or model.window) - max_tokens
    if limit < 1 and (model.max_tokens or model.thinking_tokens):
        raise ConfigError(
            f"an answer of up to {max_tokens:,} tokens (llm.max_tokens, llm.thinking_tokens) "
            "leaves nothing for a prompt in a "
            f"window of {window or model.window:,}; lower it, or set "
            "llm.window if the model has more"
        )
    n_passages = len(passages) if prompt.reads_passages else 0
    as_json = prompt.writes_json(model.takes_schema)
    schema = prompt.answer_schema(choices) if as_json else ""

    def with_best(n: int) -> FittedPrompt:
        ordered = passages[:n] if order == "best first" else passages[:n][::-1]
        messages, text = prompt.render(question, ordered, demos, model.chat, choices, as_json)
        stop = () if model.chat else tuple(prompt.stop)
        request = Request(messages, text, max_tokens, stop=stop, schema=schema)
        tokens = bound_tokens(request, model)
        return FittedPrompt(request, tuple(passages[:n]), tuple(ordered), n_passages - n, tokens)

    best = with_best(n_passages)
    if best.tokens <= limit:
        return best
    bare = with_best(0)
    if bare.tokens > limit:
        with_demos = f" and {len(demos)} demonstrations" if demos else ""
        problem = (
            f"the question takes {bare.tokens} tokens with its prompt{with_demos}; only {limit} fit"
        )
        return replace(bare, problem=problem)
    return with_best(bisect_right(range(1, n_passages), limit, key=lambda n: with_best(n).tokens))
