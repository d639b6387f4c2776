"""What a language model may do before it answers, and how it says so.

It writes one line, the first of which counts ("Search: …", "Compute: …", "Answer: …"), or it calls
functions of these names, if its server has them.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ifqa.prompting.parsing import after_marker, clean_answer
from ifqa.prompting.prompts import Prompt
from ifqa.records import ToolCall

LINES = {"search": "Search:", "compute": "Compute:"}
MOST_CALLS = 4  # that are carried out at once
LONGEST_QUERY = 300  # characters; search engines refuse queries of many words
_SHOWN = 200  # characters of what a model wrote, where it is repeated
_ARGUMENTS = {"search": "query", "compute": "expression"}
_ABOUT = {
    "search": "Look something up. The result is the passages that fit best.",
    "compute": "Compute exactly, such as (1969 - 1927) * 2.",
    "answer": "Answer the question. Call it when you know enough.",
}


@dataclass(frozen=True, slots=True)
class Action:
    """What a model does next.

    Attributes:
        kind: "other" for what cannot be done.
        text: the query, the expression, a text with the answer, or what the model wrote instead.
        problem: what to tell the model, for "other".
        from_call: whether the text of an answer was made from a function call.
    """

    kind: Literal["search", "compute", "answer", "other"]
    text: str
    problem: str = ""
    from_call: bool = False


def describe_lines(prompt: Prompt, most: int) -> str:
    """What a system message says of the lines; the model may write `most` before the answer.

    There is no example: small models would copy it.
    """
    answer = f'write "{prompt.answer_marker}" and the answer'
    if not has_one_line(prompt):
        answer = "write the answer in the form above"
    return (
        f"Before the answer, you may search and compute, at most {most} times. Each time, write "
        f'one line and wait for its result: "{LINES["search"]}" and the words to look up, or '
        f'"{LINES["compute"]}" and numbers with + - * / and brackets between them. As soon as you '
        f"know enough, {answer}."
    )


def ask_for_line(prompt: Prompt) -> str:
    """What follows a question or a result, where the model may search and compute."""
    lines = f'"{LINES["search"]}", "{LINES["compute"]}"'
    if has_one_line(prompt):
        return f'Write one line that begins with {lines} or "{prompt.answer_marker}".'
    return f"Write one line that begins with {lines}, or the answer in the form above."


def ask_for_answer(prompt: Prompt) -> str:
    """What follows a question or a result, where the model may only answer."""
    if has_one_line(prompt):
        return f'Now write the answer, in a line that begins with "{prompt.answer_marker}".'
    return "Now write the answer, in the form above."


def has_one_line(prompt: Prompt) -> bool:
    """Whether an answer is one line."""
    return "\n" not in prompt.assistant


def describe_functions(most: int) -> str:
    """What a system message says of the functions; the model may call `most` before the answer."""
    return (
        f"Before you answer, you may call search and compute, at most {most} times. When you know "
        "enough, call answer."
    )


def functions_json(prompt: Prompt, choices: Sequence[str], only_answer: bool = False) -> str:
    """The functions in the form of OpenAI's API, as JSON."""
    functions = []
    for name, about in _ABOUT.items():
        if name == "answer":
            parameters = _answer_parameters(prompt, choices)
        elif only_answer:
            continue
        else:
            key = _ARGUMENTS[name]
            parameters = _object({key: {"type": "string"}})
        function = {"name": name, "description": about, "parameters": parameters}
        functions.append({"type": "function", "function": function})
    return json.dumps(functions)


def _answer_parameters(prompt: Prompt, choices: Sequence[str]) -> object:
    """The schema of an answer: the prompt's fields, or the answer alone."""
    if prompt.has_fields:
        return json.loads(prompt.answer_schema(choices))
    only = {"enum": list(choices)} if choices and prompt.shows_choices else {}
    return _object({"answer": {"type": "string", **only}})


def _object(properties: dict[str, object]) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def parse_text(text: str, prompt: Prompt) -> Action:
    """The first line of a text that is an action.

    The text of an answer begins there. It ends before the next action, or before a second answer.
    """
    lines = text.split("\n")
    for number, line in enumerate(lines):
        for kind, marker in LINES.items():
            rest = after_marker(marker, line)
            if rest is not None:
                following = (other for other in lines[number + 1 :] if other.strip())
                asked = clean_answer(rest or next(following, ""))
                return _asked(kind, asked, "\n".join(lines[number:]))
        if _marker_of(line, prompt):
            end = _end_of_answer(lines, number, prompt)
            return Action("answer", "\n".join(lines[number:end]))
    within = re.search(rf"(?<=[.!?])\s+(?={re.escape(prompt.answer_marker)})", text)
    return Action("answer", text[within.end() :]) if within else Action("other", text[:_SHOWN])


def _end_of_answer(lines: Sequence[str], start: int, prompt: Prompt) -> int:
    """The number of the line after an answer that begins at `start`."""
    seen = set[str]()
    for number in range(start, len(lines)):
        marker = _marker_of(lines[number], prompt)
        is_action = any(after_marker(mark, lines[number]) is not None for mark in LINES.values())
        if is_action or marker in seen:
            return number
        seen |= {marker} if marker else set()
    return len(lines)


def _marker_of(line: str, prompt: Prompt) -> str:
    """The marker of a part of the answer that begins a line; empty if there is none."""
    markers = (mark for mark in prompt.markers if after_marker(mark, line) is not None)
    return next(markers, "")


def parse_calls(calls: Sequence[ToolCall], prompt: Prompt) -> list[Action]:
    """The actions that calls ask for, in order."""
    actions = [_parse_call(call, prompt) for call in calls[:MOST_CALLS]]
    for call in calls[MOST_CALLS:]:
        told = f"not done: at most {MOST_CALLS} calls at once"
        actions.append(Action("other", _show_call(call), told))
    return actions


def _parse_call(call: ToolCall, prompt: Prompt) -> Action:
    if call.name not in _ABOUT:
        unknown = f"there is no function {call.name[:40]!r}"
        told = f"{unknown}; there are search, compute and answer"
        return Action("other", _show_call(call), told)
    arguments = call_arguments(call)
    key = _ARGUMENTS.get(call.name, "answer")
    value = arguments.get(key)
    if not isinstance(value, str | int | float) or not str(value).strip():
        wanted = json.dumps({key: "..."})
        return Action("other", _show_call(call), f"{call.name} wants the arguments {wanted}")
    if call.name in _ARGUMENTS:
        return _asked(call.name, " ".join(str(value).split()), _show_call(call))
    if prompt.has_fields:
        return Action("answer", json.dumps(arguments, ensure_ascii=False), from_call=True)
    text = f"{prompt.answer_marker} {' '.join(str(value).split())}"
    return Action("answer", text, from_call=True)


def _asked(kind: str, text: str, written: str) -> Action:
    """A search or a computation; "other" if it asks for nothing, or for too much."""
    if not text:
        return Action("other", written[:_SHOWN], f"nothing to {kind}")
    if kind == "search" and len(text) > LONGEST_QUERY:
        told = f"a query has at most {LONGEST_QUERY} characters"
        return Action("other", written[:_SHOWN], told)
    return Action("search" if kind == "search" else "compute", text)


def call_arguments(call: ToolCall) -> dict[str, object]:
    """The arguments of a call, without lone surrogates; none if they are no JSON object."""
    try:
        text = json.dumps(json.loads(call.arguments), ensure_ascii=False)
        arguments = json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    except (ValueError, RecursionError):
        return {}
    return arguments if isinstance(arguments, dict) else {}


def _show_call(call: ToolCall) -> str:
    return f"{call.name}({call.arguments})"[:_SHOWN]
