"""The form of a server's requests: which parameters they have.

What a server refuses is learnt once.

Servers differ: OpenAI's reasoning models take `max_completion_tokens` and no temperature but 1,
others `max_tokens`; thinking is switched by `reasoning_effort` or by the chat template's
`enable_thinking`. So a request has what most servers take, and what a server refuses with HTTP 400
is left out of all further requests to it. The form is part of the name under which completions are
stored, as far as it changes answers.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Literal

from ifqa.records import Request

Thinking = Literal["off", "low", "medium", "high"]

#: Room for thoughts, in tokens, beside that for the answer; by our own choice, as no server
#: documents what a level takes.
THINKING_TOKENS: Mapping[Thinking, int] = {"off": 0, "low": 1024, "medium": 4096, "high": 16_384}
SCHEMA = "response_format"  # the parameter with a JSON schema
TOOLS = "tools"  # the parameter with the functions that a model may call
_LIMITS = ("max_tokens", "max_completion_tokens")
_SWITCHES = ("reasoning_effort", "chat_template_kwargs")  # of thinking
# Parameters that may be left out
LEARNT = (*_LIMITS, "temperature", *_SWITCHES, "stream_options", "logprobs", SCHEMA, TOOLS)
#: Parameters that `extra` may not set.
_OWN = ("model", "messages", "prompt", "stream", "n", "stop", SCHEMA, TOOLS, *_LIMITS)


@dataclass(frozen=True)
class RequestForm:
    """The parameters of a model's requests, without those that its server has refused.

    Attributes:
        model: its name at the server.
        at_openai: whether the server is OpenAI's.
        thinking: how much the model shall think; None leaves it to the server.
        extra: further parameters, from the settings.
        refused: names of refused parameters; a switch of thinking is refused in one position, as in
            "reasoning_effort=off".
    """

    model: str
    at_openai: bool
    thinking: Thinking | None = None
    extra: Mapping[str, object] = field(default_factory=dict)
    refused: frozenset[str] = frozenset()

    def without(self, parameter: str) -> "RequestForm | None":
        """The form after the server has refused a parameter.

        None if requests cannot do without it.
        """
        form = replace(self, refused=self.refused | {self._key(parameter)})
        alternatives = [_LIMITS] + ([_SWITCHES] if self.thinking else [])
        exhausted = any(form.refused.issuperset(map(self._key, names)) for names in alternatives)
        if parameter not in LEARNT or parameter in self.extra or exhausted:
            return None
        if self.at_openai and parameter == "reasoning_effort" and self.thinking:
            return None  # OpenAI has no other switch
        return form

    def _key(self, parameter: str) -> str:
        """A parameter as `refused` names it: a server may take another position of a switch."""
        return f"{parameter}={self.thinking}" if parameter in _SWITCHES else parameter

    def changes_answers(self, parameter: str) -> bool:
        """Whether answers without a parameter are other answers, which have another name."""
        return parameter in ("temperature", SCHEMA, TOOLS) or parameter in _SWITCHES

    def arguments(self, request: Request) -> dict[str, object]:
        """The API's arguments for a request.

        OpenAI's chat gets max_completion_tokens, as its reasoning models refuse max_tokens; other
        servers get max_tokens, until they refuse it. A temperature of 1, OpenAI's default, is not
        sent to OpenAI.
        """
        arguments: dict[str, object] = {"model": self.model}
        first, second = _LIMITS if not (self.at_openai and request.messages) else _LIMITS[::-1]
        arguments[second if first in self.refused else first] = request.max_tokens
        if request.messages:
            arguments["messages"] = _messages(request)
            arguments |= self._switches()
        else:
            arguments["prompt"] = request.text
        if not (self.at_openai and request.temperature == 1):
            arguments["temperature"] = request.temperature
        if request.stop:
            arguments["stop"] = list(request.stop)
        if request.schema:
            schema = {"name": "answer", "strict": True, "schema": json.loads(request.schema)}
            arguments[SCHEMA] = {"type": "json_schema", "json_schema": schema}
        if request.tools:
            arguments[TOOLS] = json.loads(request.tools)
        if request.logprobs:
            # The older API takes a number of alternatives to each token
            arguments["logprobs"] = True if request.messages else 1
        kept = {
            name: value for name, value in arguments.items() if self._key(name) not in self.refused
        }
        return _merge(kept, self.extra)

    def _switches(self) -> dict[str, object]:
        """The parameters that switch thinking: both of those in use, as unknown ones are mostly
        ignored.
        """
        if self.thinking is None:
            return {}
        effort: dict[str, object] = {
            "reasoning_effort": "none" if self.thinking == "off" else self.thinking
        }
        if self.at_openai:
            return effort
        return effort | {"chat_template_kwargs": {"enable_thinking": self.thinking != "off"}}

    def stream_arguments(self) -> dict[str, object]:
        """The further arguments of a request whose answer is streamed, with its count of tokens at
        the end.
        """
        options = {"include_usage": True}
        return {"stream": True} | (
            {} if "stream_options" in self.refused else {"stream_options": options}
        )

    @property
    def suffix(self) -> str:
        """What the form changes about answers, for the name of a model's completions.

        Empty for the usual form.
        """
        parts = []
        if self.thinking:
            effort = "none" if self.thinking == "off" else self.thinking
            parts.append(f"effort {effort}" if self.at_openai else f"thinking {self.thinking}")
        if self.extra:
            parts.append(f"with {json.dumps(self.extra, sort_keys=True)}")
        switches = _SWITCHES if self.thinking else ()
        changed = [name for name in ("temperature", *switches) if self._key(name) in self.refused]
        parts += [f"without {name}" for name in changed]
        return "".join(f" {part}" for part in parts)

    def describe(self, chat: bool) -> str:
        """The names of the parameters, and the values of those that settings of the model fix."""
        request = Request(messages=(("user", "?"),)) if chat else Request(text="?")
        arguments = self.arguments(request)
        fixed = {*_SWITCHES, *self.extra}
        texts = [
            f"{name}={json.dumps(arguments[name])}" if name in fixed else name
            for name in sorted(arguments)
        ]
        without_schema = ["no JSON schema"] if SCHEMA in self.refused else []
        return ", ".join([*texts, *without_schema])


def requests_differ(forms: Collection[str]) -> bool:
    """Whether requests of these forms, each by `describe`, have other answers: the limit's name
    alone makes no difference.
    """
    return len({form.replace("max_completion_tokens", "max_tokens") for form in forms}) > 1


def own_parameter(extra: Mapping[str, object]) -> str:
    """The first parameter in `extra` that ifqa sets itself; empty if there is none."""
    return next((name for name in extra if name in _OWN), "")


def _messages(request: Request) -> list[dict[str, object]]:
    """The messages of a request, and its turns: each call has an id, which its result names.

    The ids are ours, so that a request does not depend on those that a server drew. Mistral's
    servers want nine letters and digits.
    """
    messages: list[dict[str, object]] = [
        {"role": role, "content": content} for role, content in request.messages
    ]
    numbers = count(1)
    for turn in request.turns:
        if not turn.calls:
            messages.append({"role": "assistant", "content": turn.text})
            messages += [{"role": "user", "content": result} for result in turn.results]
            continue
        ids = [f"call{next(numbers):05}" for _ in turn.calls]
        calls = [
            {"id": call_id, "type": "function", "function": call._asdict()}
            for call_id, call in zip(ids, turn.calls, strict=True)
        ]
        messages.append({"role": "assistant", "content": turn.text or None, "tool_calls": calls})
        messages += [
            {"role": "tool", "tool_call_id": call_id, "content": result}
            for call_id, result in zip(ids, turn.results, strict=True)
        ]
    return messages


def _merge(arguments: dict[str, object], extra: Mapping[str, object]) -> dict[str, object]:
    """The arguments with those of the settings, which win; tables of both are joined."""
    merged = dict(arguments)
    for name, value in extra.items():
        before = merged.get(name)
        both = isinstance(before, dict) and isinstance(value, Mapping)
        merged[name] = {**before, **value} if both else value  # type: ignore[dict-item]
    return merged
