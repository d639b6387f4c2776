"""The sentences of a passage that belong to an answer: a passage is 100 words, which begin and end within a sentence."""

import re

from ifqa.records import parted

#: A sentence ends here, but not after "J.", "U.S." and the like. What is shorter than four words, such as a heading, is part
#: of the next.
_END = re.compile(
    r"(?<!\b[A-Z])(?<!\b(?:St|Mr|Dr|Jr|Sr|No|Op|Lt))(?<!\b(?:Mrs|Col|Gen))[.!?][\"”’')\]]*\s+(?=[\"“‘(\[]?[^\W_a-z])"
)
_LEAST = 4
CUT = "…"


def sentences(text: str) -> list[str]:
    """The sentences of a text with the white space behind them: joined, they are the text."""
    found, start = [], 0
    for end in (*(match.end() for match in _END.finditer(text)), len(text)):
        if len(text[start:end].split()) >= _LEAST:
            found.append(text[start:end])
            start = end
    if start < len(text):
        found[-1:] = ["".join([*found[-1:], text[start:]])]
    return found


def excerpt(text: str, answer: str, question: str) -> str:
    """A sentence of a passage with the ones before and after it; `CUT` stands for what is left out.

    It is the sentence that shares most words with the question, among those that hold the answer, if any does.
    """
    every = sentences(text)
    if len(every) <= 1:
        return text
    asked = _words(question)
    best = max(range(len(every)), key=lambda n: (len(parted(every[n], answer)) > 1, len(asked & _words(every[n])), -n))
    first, last = max(best - 1, 0), min(best + 2, len(every))
    before, after = f"{CUT} " if first else "", f" {CUT}" if last < len(every) else ""
    return f"{before}{''.join(every[first:last]).strip()}{after}"


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.lower()) if len(word) > 3}
