"""The seven rules of Webis-CausalQA-22 that find causal questions by their words, in three readings.

- *notebook*: the regular expressions that the authors published, bugs kept
  (github.com/webis-de/CausalQA, rules/causal-rules.ipynb, cell 1, commit f4bdfbe96da2).
- *table3*: the words of the paper's Table 3, as whole words anywhere in the question
  (Bondarenko et al., COLING 2022, aclanthology.org/2022.coling-1.291).
- *fixed*: what the rules mean. The words are whole words, in every finite form ("leads to", "led to"), at the start and the
  end of a question too; "why" must stand where the notebook wants it.

All three read the question as the notebook does: in lower case, and with a blank for whatever is no Latin or Cyrillic letter
without accent and no digit. A question is causal if any rule matches.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from ifqa.errors import IfqaError


class Rule(NamedTuple):
    """One rule: a short name, the paper's words, and a pattern for each reading; docs/causalqa.md tells how they differ."""

    name: str
    short: str
    words: str
    notebook: str
    table3: str
    fixed: str


#: The rules, in the paper's order. The notebook's R6 begins with \A here. That changes no decision, because the text has one
#: line, and it makes the time linear in the question's length.
TABLE = (
    Rule(
        "R1", "why", "[why]",
        notebook=r"\Awhy|(?=\Aif)(?=.*why )|(?=\Awhen)(?=.*why )| and why | why is \w+ | is \w+ why ",
        table3=r"\bwhy\b",
        fixed=r"\Awhy\b|\A(?:if|when)\b.*\bwhy\b|\band why\b|\bwhy is \w|\bis \w+ why\b",
    ),
    Rule(
        "R2", "cause", "[cause(s)?]",
        notebook=r"\Acause.{0,1} | cause.{0,1} |because of what",
        table3=r"\bcauses?\b",
        fixed=r"\bcause[sd]?\b|\bbecause of what\b",
    ),
    Rule(
        "R3", "how come, did", "[how come|how did]",
        notebook=r"\s*how come |\s*how did ",
        table3=r"\bhow (?:come|did)\b",
        fixed=r"\bhow (?:come|did)\b",
    ),
    Rule(
        "R4", "effect, affect", "[effect(s)?|affect(s)?]",
        notebook=r"^(?!.*dopplar).*effect.{0,1} .*$| affect{0,1} ",
        table3=r"\b(?:effects?|affects?)\b",
        fixed=r"\A(?!.*\bdoppler\b).*\beffects?\b|\baffect(?:s|ed)?\b",
    ),
    Rule(
        "R5", "lead to", "[lead(s)? to]",
        notebook=r" lead to",
        table3=r"\bleads? to\b",
        fixed=r"\b(?:leads?|led) to\b",
    ),
    Rule(
        "R6", "what happens", "[what (will|might)? happen(s)?] and [if|when]",
        notebook=r"\A(?:(?=.*what happens)(?=.*if)|(?=.*what will happen)(?=.*if)|(?=.*what might happen)(?=.*if)|"
        "\\\n"  # the bug: a backslash at the end of a line of a raw string asks for a line break
        r"(?=.*what happens)(?=.*when)|(?=.*what will happen)(?=.*when)|(?=.*what might happen)(?=.*when))",
        table3=r"\A(?=.*\bwhat (?:(?:will|might) )?happens?\b)(?=.*\b(?:if|when)\b)",
        fixed=r"\A(?=.*\bwhat (?:happens|(?:will|would|might) happen)\b)(?=.*\b(?:if|when)\b)",
    ),
    Rule(
        "R7", "what to do", "[what (to do|should be done)] and [if|to|when]",
        notebook=r"\Awhat to do if |\Awhat to do when |\Awhat to do to |"
        r"\Awhat should be done if |\Awhat should be done when |\Awhat should be done to ",
        table3=r"\A(?=.*\bwhat (?:to do|should be done)\b)(?=.*(?:\b(?:if|when)\b|(?<!\bwhat )\bto\b))",
        fixed=r"\Awhat (?:to do|should be done) (?:if|when|to)\b",
    ),
)  # fmt: skip

#: Reading -> rule -> pattern, for a question that `plain` has been through.
RULES: Mapping[str, Mapping[str, re.Pattern[str]]] = {
    "notebook": {rule.name: re.compile(rule.notebook) for rule in TABLE},
    "table3": {rule.name: re.compile(rule.table3) for rule in TABLE},
    "fixed": {rule.name: re.compile(rule.fixed) for rule in TABLE},
}

_OTHER = re.compile("[^А-Яа-яЁёA-Za-z0-9]+")
#: Whatever a rule matches has one of these, and most questions have none, which is told in a tenth of the time.
_HINTS = (
    "why", "cause", "how come", "how did", "ffec", "lead", "led to", "happen", "what to do", "what should be done"
)  # fmt: skip


def normalize_question(question: str) -> str:
    """The question as the rules read it: lower case, letters and digits, single blanks."""
    return " ".join(_OTHER.sub(" ", question.lower()).split())


def match_rules(question: str, rules: str = "notebook") -> tuple[str, ...]:
    """The names of the rules that match, of "R1" to "R7", in order; none if the question is not causal."""
    if rules not in RULES:
        raise IfqaError(f"no rules {rules!r}; wanted one of: {', '.join(RULES)}")
    text = normalize_question(question)
    if not any(hint in text for hint in _HINTS):
        return ()
    return tuple(name for name, pattern in RULES[rules].items() if pattern.search(text))
