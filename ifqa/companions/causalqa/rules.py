"""The seven rules of Webis-CausalQA-22 that find causal questions by their words, in three
versions.

- *notebook*: the authors' regular expressions, with their bugs
  (github.com/webis-de/CausalQA, rules/causal-rules.ipynb, cell 1, commit f4bdfbe96da2).
- *table3*: the words of the paper's Table 3, as whole words anywhere in the question
  (Bondarenko et al., COLING 2022, aclanthology.org/2022.coling-1.291).
- *fixed*: the rules as they were meant. They match whole words in every finite form ("leads to",
  "led to"), even at the start or end of a question; "why" must be in one of the notebook's
  positions.

All three normalize the question as the notebook does: lower case, and a space for every character
that is not a digit or an unaccented Latin or Cyrillic letter. A question is causal if any rule
matches.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from ifqa.errors import unknown_name


class Rule(NamedTuple):
    """A rule: its name, the paper's words, and a pattern for each reading.

    docs/causalqa.md lists the differences.
    """

    name: str
    short: str
    words: str
    notebook: str
    table3: str
    fixed: str


#: The rules, in the paper's order. With \A added, the notebook's R6 matches the same one-line texts
#: in linear time.
TABLE = (
    Rule(
        "R1",
        "why",
        "[why]",
        notebook=(
            r"\Awhy|(?=\Aif)(?=.*why )|(?=\Awhen)(?=.*why )| and why | why is \w+ | is \w+ why "
        ),
        table3=r"\bwhy\b",
        fixed=r"\Awhy\b|\A(?:if|when)\b.*\bwhy\b|\band why\b|\bwhy is \w|\bis \w+ why\b",
    ),
    Rule(
        "R2",
        "cause",
        "[cause(s)?]",
        notebook=r"\Acause.{0,1} | cause.{0,1} |because of what",
        table3=r"\bcauses?\b",
        fixed=r"\bcause[sd]?\b|\bbecause of what\b",
    ),
    Rule(
        "R3",
        "how come, did",
        "[how come|how did]",
        notebook=r"\s*how come |\s*how did ",
        table3=r"\bhow (?:come|did)\b",
        fixed=r"\bhow (?:come|did)\b",
    ),
    Rule(
        "R4",
        "effect, affect",
        "[effect(s)?|affect(s)?]",
        notebook=r"^(?!.*dopplar).*effect.{0,1} .*$| affect{0,1} ",
        table3=r"\b(?:effects?|affects?)\b",
        fixed=r"\A(?!.*\bdoppler\b).*\beffects?\b|\baffect(?:s|ed)?\b",
    ),
    Rule(
        "R5",
        "lead to",
        "[lead(s)? to]",
        notebook=r" lead to",
        table3=r"\bleads? to\b",
        fixed=r"\b(?:leads?|led) to\b",
    ),
    Rule(
        "R6",
        "what happens",
        "[what (will|might)? happen(s)?] and [if|when]",
        notebook=r"\A(?:(?=.*what happens)(?=.*if)|(?=.*what will happen)(?=.*if)"
        r"|(?=.*what might happen)(?=.*if)|"
        "\\\n"  # the bug: a backslash at the end of a line of a raw string asks for a line break
        r"(?=.*what happens)(?=.*when)|(?=.*what will happen)(?=.*when)"
        r"|(?=.*what might happen)(?=.*when))",
        table3=r"\A(?=.*\bwhat (?:(?:will|might) )?happens?\b)(?=.*\b(?:if|when)\b)",
        fixed=r"\A(?=.*\bwhat (?:happens|(?:will|would|might) happen)\b)(?=.*\b(?:if|when)\b)",
    ),
    Rule(
        "R7",
        "what to do",
        "[what (to do|should be done)] and [if|to|when]",
        notebook=r"\Awhat to do if |\Awhat to do when |\Awhat to do to |"
        r"\Awhat should be done if |\Awhat should be done when |\Awhat should be done to ",
        table3=r"\A(?=.*\bwhat (?:to do|should be "
        r"done)\b)(?=.*(?:\b(?:if|when)\b|(?<!\bwhat )\bto\b))",
        fixed=r"\Awhat (?:to do|should be done) (?:if|when|to)\b",
    ),
)

#: Reading -> rule -> pattern, for normalized questions.
RULES: Mapping[str, Mapping[str, re.Pattern[str]]] = {
    reading: {rule.name: re.compile(getattr(rule, reading)) for rule in TABLE}
    for reading in ("notebook", "table3", "fixed")
}

_OTHER = re.compile("[^А-Яа-яЁёA-Za-z0-9]+")
#: Every match contains one of these. Most questions contain none, and this test takes a tenth of
#: the patterns' time.
_HINTS = (
    "why",
    "cause",
    "how come",
    "how did",
    "ffec",
    "lead",
    "led to",
    "happen",
    "what to do",
    "what should be done",
)


def normalize_question(question: str) -> str:
    """The question as the rules match it: lower-case letters and digits, with single spaces."""
    return " ".join(_OTHER.sub(" ", question.lower()).split())


def match_rules(question: str, rules: str = "notebook") -> tuple[str, ...]:
    """The names of the matching rules, "R1" to "R7", in order.

    Empty if the question is not causal.
    """
    if rules not in RULES:
        raise unknown_name("reading of the rules", rules, RULES)
    text = normalize_question(question)
    if not any(hint in text for hint in _HINTS):
        return ()
    return tuple(name for name, pattern in RULES[rules].items() if pattern.search(text))
