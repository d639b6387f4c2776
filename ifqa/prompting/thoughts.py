r"""Separates a model's thoughts in a completion from its answer, by the marks that models write
around thoughts.

    <think> ... </think>, <thinking> ... </thinking>
                              Qwen, DeepSeek, and models told to; the first mark may be missing
    [THINK] ... [/THINK]      Magistral
    <|channel|>analysis<|message|> ...
                              gpt-oss, whose answer is in the channel "final"
    \boxed{...}               the answer itself, in models trained on mathematics
"""

import re

_OPENING = re.compile(r"<think(?:ing)?>|\[THINK\]")
_CLOSING = re.compile(r"</think(?:ing)?>|\[/THINK\]")
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)[^<]*<\|message\|>")
_CHANNEL_END = re.compile(r"<\|(?:end|return|start|call)\|>")
_TEXT = re.compile(r"\\(?:text|mathrm|mathbf|textbf)\{([^{}]*)\}")


def answer_part(completion: str) -> str | None:
    """A completion without the thoughts before its answer; None if it ends within them."""
    channels = list(_CHANNEL.finditer(completion))
    if channels:
        last = channels[-1]
        if last[1] != "final":
            return None
        return _CHANNEL_END.split(completion[last.end() :])[0]
    closings = list(_CLOSING.finditer(completion))
    if closings:
        return completion[closings[-1].end() :]
    return None if _OPENING.match(completion.lstrip()) else completion


def has_thoughts(completion: str) -> bool:
    """Whether a completion holds marked thoughts."""
    return bool(
        _CHANNEL.search(completion)
        or _CLOSING.search(completion)
        or _OPENING.match(completion.lstrip())
    )


def boxed(text: str) -> str:
    r"""The content of the last `\boxed{...}`, without a `\text{...}` around it.

    Empty if there is none.
    """
    _, mark, rest = text.rpartition("\\boxed{")
    depth = 1
    for end, character in enumerate(rest if mark else ""):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if not depth:
            return _TEXT.sub(r"\1", rest[:end]).strip()
    return ""
