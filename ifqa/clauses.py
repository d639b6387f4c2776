"""Splits a counterfactual question into its if-clause and its main clause, by regular expressions.

In "If Ann had not left, who would lead?" the if-clause is the presupposition, and the rest is the
main clause.
"""

import re
from dataclasses import dataclass

CONJUNCTION = (
    r"(?P<word>(?:even |only )?(?:if|supposing|suppose|assuming|assume|imagine|unless)\b(?: "
    r"that\b)?)"
)
# A pattern that skips a run of punctuation or spaces must start where the run starts; else matching
# takes quadratic time.
_LEADING = re.compile(
    rf"(?:^|(?<=\w)(?=\W*?[.?!,;:]['\"”’]?\s))\W*(?:(?:and|but) )?{CONJUNCTION}", re.I
)
_INVERTED = re.compile(r"^\W*(?P<word>had|were|should)\b", re.I)  # "Had Ann left, ..."
_TRAILING = re.compile(
    r"(?<!\bas )(?<!\bwhat )\b(?:even |only )?(?:if|unless|assuming)\b(?! (?:any|so|not|ever)\b)",
    re.I,
)
_TRAILING_INVERTED = re.compile(
    r"(?<!have )\b(?:had|were) (?:(?!been)[\w’'-]+ ){1,6}?(?:not|never|been|to|\w+ed)\b"
)

_MODAL = r"\b(?:would|could|might|will|can|may|must|should)(?:n['’]t)?\b"
AUXILIARY = rf"(?:{_MODAL}|\b(?:is|are|was|were|do|does|did|has|have|had)(?:n['’]t)?\b)"
_FINITE = re.compile(rf"{AUXILIARY}|\bcannot\b|(?<!, )\b[a-z]{{2,}}ed\b|['’]d\b", re.I)
_SUBJECT = r"(?:it|he|she|they|we|you|I|this|that|these|those|there|the|an?|his|her|its|their)\b"
_BREAK = re.compile(
    r"(?P<mark>[,;:.?!]['\"”’]{0,2}\s+|[,;](?=[a-z])|(?:(?<!\s)\s+)?[—–]\s*(?=[a-z])"
    r"|\s-\s)(?:then,? )?",
    re.I,
)
_PREPOSITION = (
    r"(?:in(?:to)?|on(?:to)?|at|by|for|from|to(?:wards?)?|with|under|of"
    r"|until|after|before|between|against)"
)
WH = r"(?P<wh>who|whom|whose|what|which|when|where|why|how)(?:['’]s)?\b"
_LEAD = (
    rf"(?:(?:and |or )?(?:[a-z]+ ){{0,2}}?{_PREPOSITION} "
    r"|(?:and|or|approximately|roughly|exactly) )?"
)
_INTERROGATIVE = re.compile(rf"{_LEAD}{WH} ?", re.I)
_VERB_FIRST = re.compile(rf"(?P<verb>(?i:{AUXILIARY})) (?={_SUBJECT}|[A-Z\"“'‘])")
_RESUMPTION = re.compile(rf", {_MODAL} (?:{_SUBJECT}|[A-Z])")
_UNBROKEN = re.compile(
    rf"(?<= )(?:then )?(?P<start>(?:{_PREPOSITION} )?{WH}(?: [\w-]+){{0,4}}? {AUXILIARY})"
)


_LETTERS = re.compile(r"[^\W\d_](?:[^\W_]|['’\-](?=[^\W_]))*")
#: Thai, Lao, Burmese, Khmer, kana and Chinese characters: no space parts their words.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
_FEWEST = 3  # such characters of a question
_ADVICE = "ask a whole question, such as: If Ann had left, who would have closed the sluice?"


@dataclass(frozen=True)
class Clauses:
    """A question's two clauses, each a stripped substring of its text."""

    presupposition: (
        # The if-clause with its conjunction and any words before it ("According to the act, if
        # ..."); or ""
        str
    )
    question: str  # the main clause, or the whole text if there is no if-clause

    @property
    def supposition(self) -> str:
        """The presupposition without its "if" or "suppose".

        The verb of an inversion ("Had Ann left") stays.
        """
        if not (match := _LEADING.search(self.presupposition)):
            return self.presupposition
        return (
            self.presupposition[: match.start("word")] + self.presupposition[match.end() :].lstrip()
        ).strip()


def split_question(text: str) -> Clauses:
    """Split a text into presupposition and main clause.

    A text without an if-clause is all main clause.
    """
    masked = _mask_quotations(text)
    leading = _LEADING.search(masked)
    if leading and _INTERROGATIVE.match(masked[: leading.start("word")].lstrip()):
        leading = None  # "Who would win, if ...?"
    if (opening := leading or _INVERTED.search(masked)) and (
        bounds := _find_main_clause(masked, opening.end())
    ):
        return Clauses(_trim(text[: bounds[0]]), text[bounds[1] :].strip())
    for pattern in (_TRAILING, _TRAILING_INVERTED):
        if match := pattern.search(masked):
            main = _trim(masked[: match.start()])
            # In "In which year, if ..., would it have been?" the main clause continues after the
            # if-clause.
            incomplete = re.search(rf"(?!\bdo\b){AUXILIARY}$", main)
            if (
                _FINITE.search(main)
                and not incomplete
                and not _RESUMPTION.search(masked, match.end())
            ):
                return Clauses(
                    _trim(text[match.start() :].rstrip("? ")), _trim(text[: match.start()])
                )
    return Clauses("", text.strip())


def question_advice(text: str) -> str:
    """What to say of a text that asks nothing, having no word or a single one.

    Empty for any other text.
    """
    words = len(_LETTERS.findall(text))
    if words > 1 or len(_UNSPACED.findall(text)) >= _FEWEST:
        return ""
    return f"There is {'only one word' if words else 'no word'} in it: {_ADVICE}"


def as_question(clause: str) -> str:
    """A main clause as a question of its own, with a capital first letter and a question mark."""
    return clause[:1].upper() + clause[1:].rstrip(" .?") + "?"


def _mask_quotations(text: str) -> str:
    """The text with underscores inside quotations and brackets, except at their edges and for a
    quotation's last comma.
    """
    quoted = r"(?<!\w)\"[^\"]+\"|“[^“”]+”|\([^()]+\)|(?<!\w)['‘](?=[A-Za-z]).{1,80}?['’](?!\w)"
    return re.sub(
        quoted, lambda match: match[0][0] + "_" * (len(match[0]) - 3) + match[0][-2:], text
    )


def _trim(clause: str) -> str:
    return clause.strip().rstrip(",;:—–- ").strip()


def _find_main_clause(masked: str, begin: int) -> tuple[int, int] | None:
    """(end of the if-clause, start of the main clause) at the best break.

    `begin` is the position after the conjunction.
    """
    ranked: list[tuple[int, int, int, int]] = []
    inverted = bool(_INVERTED.match(masked))
    verb = _FINITE.search(masked, begin)
    for match in _BREAK.finditer(masked, begin):
        following = _BREAK.search(masked, match.end())
        segment = masked[match.end() : following.start() if following else len(masked)]
        rank = _rank_segment(
            segment, inverted or (verb is not None and verb.end() <= match.start())
        )
        # prefer the last of several relative clauses, but the first of several possible starts of a
        # question
        ranked.append(
            (rank, -match.end() if rank in (2, 4) else match.end(), match.end("mark"), match.end())
        )
    best = min(ranked, default=None)
    if best and best[0] in ((0, 1, 3) if inverted else (0, 1, 2, 3, 4)):
        return best[2], best[3]
    unbroken = [m for m in _UNBROKEN.finditer(masked, begin) if verb and verb.end() <= m.start()]
    return (unbroken[-1].start(), unbroken[-1].start("start")) if unbroken else None


def _asks(word: str, rest: str) -> bool:
    """Whether an interrogative asks, by the words after it; else it opens a relative clause."""
    if re.match(_SUBJECT, rest):
        return False
    if re.search(_MODAL, rest):
        return True
    if word in ("when", "where"):
        return bool(re.match(AUXILIARY, rest))
    has_verb = re.search(rf"^\w+ {_SUBJECT}|{_FINITE.pattern}", rest)
    return word in ("which", "whose") and bool(rest) and not has_verb


def _rank_segment(segment: str, has_verb: bool) -> int:
    """How likely the text between two breaks starts the main clause: 0 (certain) to 5 (impossible).

    `has_verb` says whether the if-clause already has its verb. ", who would later be king," is a
    relative clause. A question inverts verb and subject ("which would he"), has a noun ("which town
    would"), or starts with "what", "how" or "why".
    """
    if interrogative := _INTERROGATIVE.match(segment):
        word = interrogative["wh"].lower()
        rest = segment[interrogative.end() :]
        if word in ("what", "how", "why") and not re.match(_SUBJECT, rest):
            return 0
        if not has_verb:
            return 4
        return 0 if _asks(word, rest) else 2
    if verb := _VERB_FIRST.match(segment):
        if not has_verb:
            return 5
        return 0 if re.match(_MODAL, verb["verb"], re.I) else 1
    # "If ..., he would be part of which band?" asks without inversion.
    return 3 if has_verb and re.match(rf"(?!{AUXILIARY})[^\W\d_].* {_MODAL}", segment) else 5
