"""A question's conversation with a language model, and the requests that continue it.

If the window is full, the results of the oldest turns are left out first, then the passages that
the question came with, from the worst, and at last the newest result. The question stays.
"""

import json
import math
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ifqa.prompting.context_window import FittedPrompt, bound_tokens
from ifqa.prompting.prompts import Prompt
from ifqa.protocols import LanguageModel
from ifqa.reading.agent.actions import (
    ask_for_answer,
    ask_for_line,
    call_arguments,
    describe_functions,
    describe_lines,
    functions_json,
)
from ifqa.reading.llm import Reply
from ifqa.records import Passage, Question, Request, Step, ToolCall, ToolTurn

NO_HITS = "no passage found"
_HIT_TOKENS = 250  # of a passage that a search shows; most have fewer
_TURN_TOKENS = 300  # more than the words around a turn's results take
_TITLE = 100  # characters of a title that is repeated
_LEFT_OUT = "(left out, because the window is full)"
_WORD = "the "  # stands for a token that is not known yet
_UNIT = 64  # words that are counted together


@dataclass(slots=True)
class Turn:
    """What the model wrote or called, and the result of each, which is empty until it is known."""

    written: str
    calls: tuple[ToolCall, ...]
    results: list[str]


@dataclass(slots=True)
class Conversation:
    """A question, and what the model has done for it.

    Attributes:
        ranking: the passages that the question came with, best first.
        has_functions: whether the model calls functions; else it writes lines.
        shown: the passages that the model was shown, in the order of their numbers.
        ranked: how many of these are from the ranking, as the first request showed them.
        queries: what was searched for, normalised.
        pending: searches of the last turn: the places of result and step, and the query.
        was_reminded: whether the model was told that it wrote nothing that it may.
        reply: the end of the conversation.
    """

    question: Question
    ranking: tuple[Passage, ...]
    has_functions: bool
    shown: list[Passage] = field(default_factory=list)
    ranked: int = 0
    turns: list[Turn] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    queries: set[str] = field(default_factory=set)
    pending: list[tuple[int, int, str]] = field(default_factory=list)
    was_reminded: bool = False
    reply: Reply | None = None

    def number(self, passage: Passage) -> int:
        """The number of a passage; 0 if it was not shown."""
        ids = [shown.id for shown in self.shown]
        return ids.index(passage.id) + 1 if passage.id in ids else 0


def repeatable(call: ToolCall) -> ToolCall:
    """A call in a form that servers accept in a message: they refuse other names and arguments."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", call.name)[:64]
    return ToolCall(name or "unknown", json.dumps(call_arguments(call)))


class ConversationPrompts:
    """Writes the requests of conversations by a prompt: at most `steps` of each, where a search
    shows `hits` passages.
    """

    def __init__(self, prompt: Prompt, llm: LanguageModel, steps: int, hits: int) -> None:
        self._prompt = prompt
        self._llm = llm
        self._steps = steps
        self._hits = hits
        self._max_tokens = llm.completion_tokens(prompt.max_tokens)

    def fit(self, conversation: Conversation, is_last: bool) -> FittedPrompt:
        """The next request, with what fits the window."""
        limit = self._llm.window - self._max_tokens
        offered = len(conversation.ranking)
        count = conversation.ranked if conversation.turns else offered

        def fitted(passages: int, dropped: int) -> FittedPrompt:
            request = self._request(conversation, passages, dropped, is_last)
            shown = conversation.ranking[:passages]
            tokens = bound_tokens(request, self._llm)
            return FittedPrompt(request, shown, shown, offered - passages, tokens)

        older = max(len(conversation.turns) - 1, 0)
        for dropped in range(older + 1):
            best = fitted(count, dropped)
            if best.tokens <= limit:
                return best
        if fitted(0, older).tokens <= limit:
            passages = bisect_right(
                range(1, count), limit, key=lambda number: fitted(number, older).tokens
            )
            return fitted(passages, older)
        bare = fitted(0, len(conversation.turns))
        if bare.tokens <= limit:
            return bare
        problem = f"the question takes {bare.tokens} tokens with its prompt; only {limit} fit"
        return replace(bare, problem=problem)

    def bound(self, first: FittedPrompt) -> list[Request]:
        """Requests of as many tokens as those of a conversation may have at most.

        The first is `first`, the others stand for those whose text is not known yet.
        """
        if first.problem:
            return []
        room = self._llm.window - self._max_tokens - first.tokens
        more = self._hits * _HIT_TOKENS + self._max_tokens + _TURN_TOKENS
        per_word = max(self._llm.count(_WORD * _UNIT) / _UNIT, 0.25)
        requests = [first.request]
        for step in range(1, self._steps):
            words = _WORD * math.ceil(max(min(step * more, room), 1) / per_word)
            request = first.request
            if request.messages:
                messages = (*request.messages, ("user", words))
                requests.append(replace(request, messages=messages, sample=step))
            else:
                requests.append(replace(request, text=request.text + words, sample=step))
        return requests

    def show_hits(
        self, conversation: Conversation, query: str, passages: Sequence[Passage], searches: int
    ) -> str:
        """The result of a search; those `searches` of a turn share the room for passages.

        A passage that was shown is not repeated. New ones get the next numbers.
        """
        if not passages:
            return NO_HITS
        texts = []
        for passage in passages:
            number = conversation.number(passage)
            if number:
                name = " ".join(filter(None, [f"[{number}]", passage.title.strip()[:_TITLE]]))
                texts.append(f"{name} (shown before)")
            else:
                conversation.shown.append(passage)
                text = self._prompt.show_passage(passage, len(conversation.shown))
                texts.append(self._shorten(text.strip(), _HIT_TOKENS // searches))
        return "\n\n".join([f"Passages for “{query}”:", *texts])

    def _shorten(self, text: str, most: int) -> str:
        """A text cut after a word, so that it has at most so many tokens."""
        if self._llm.count(text) <= most:
            return text
        words = text.split(" ")

        def tokens(count: int) -> int:
            return self._llm.count(" ".join(words[:count]) + " …")

        return " ".join(words[: bisect_right(range(1, len(words)), most, key=tokens)]) + " …"

    def _request(
        self, conversation: Conversation, passages: int, dropped: int, is_last: bool
    ) -> Request:
        """The next request, with so many passages, and without the results of the oldest turns."""
        question = conversation.question
        most = self._steps - 1
        has_functions = conversation.has_functions and most > 0
        protocol = describe_lines(self._prompt, most) if most else ""
        if has_functions:
            protocol = describe_functions(most)
        messages, text = self._prompt.render(
            question.text,
            conversation.ranking[:passages],
            (),
            self._llm.chat,
            question.choices,
            protocol=protocol,
        )
        turns = [
            ToolTurn(turn.written, turn.calls, tuple(turn.results)) for turn in conversation.turns
        ]
        for number, turn in enumerate(turns[:dropped]):
            turns[number] = turn._replace(results=(_LEFT_OUT,) * len(turn.results))
        if has_functions:
            tools = functions_json(self._prompt, question.choices, only_answer=is_last)
            if turns and is_last:
                results = turns[-1].results
                last = f"{results[-1]}\n\nCall answer now."
                turns[-1] = turns[-1]._replace(results=(*results[:-1], last))
            return Request(messages, max_tokens=self._max_tokens, tools=tools, turns=tuple(turns))
        told = [(turn.text, "\n\n".join(turn.results)) for turn in turns]
        wanted = ask_for_answer(self._prompt) if is_last else ask_for_line(self._prompt)
        wanted = wanted if most else ""
        if messages:
            for written, result in told:
                messages = (*messages, ("assistant", written), ("user", result))
            role, content = messages[-1]
            messages = (*messages[:-1], (role, f"{content}\n\n{wanted}".strip()))
            return Request(messages, max_tokens=self._max_tokens)
        text += "".join(f"{written}\n{result}\n\n" for written, result in told)
        text += f"\n{wanted}\n" if wanted else ""
        return Request(text=text, max_tokens=self._max_tokens, stop=tuple(self._prompt.stop))
