"""The two parts of a "what if" question: the change that is supposed, and the effect that is asked for."""

import re

from ifqa.errors import IfqaError

_STEM = re.compile(r"suppose (.*?) happens, how will it affect (.*)\.", re.DOTALL)


def parts(stem: str) -> tuple[str, str]:
    """Change and effect of a question in WIQA's words, "suppose CHANGE happens, how will it affect EFFECT.".

    Raises:
        IfqaError: the question has other words.
    """
    found = _STEM.fullmatch(stem)
    if not found:
        raise IfqaError(f"the question {stem!r} is not: suppose CHANGE happens, how will it affect EFFECT.")
    return found[1], found[2]


def worded(change: str, effect: str) -> str:
    """The question in WIQA's words; `parts` gives its change and effect again."""
    return f"suppose {change} happens, how will it affect {effect}."
