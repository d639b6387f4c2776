"""Rewrites a question as a retriever's query: a clause, the question with its names repeated, or a causal question's statement.

A counterfactual question supposes something false, but passages state facts. In "If Ann had not left, who would lead?" the
if-clause is the presupposition and the rest is the main clause. "Why did Rome fall?" states an effect, "Rome fall", and seeks
its cause; the passage need not say "why". The rules are regular expressions, without a parser or a model.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ifqa.errors import unknown_name
from ifqa.records import Question

VERSION = 1  # raise this when a rule changes

_CONJUNCTION = r"(?P<word>(?:even |only )?(?:if|supposing|suppose|assuming|assume|imagine|unless)\b(?: that\b)?)"
# A pattern that skips a run of punctuation or spaces must start where the run starts; else matching takes quadratic time.
_LEADING = re.compile(rf"(?:^|(?<=\w)(?=\W*?[.?!,;:]['\"”’]?\s))\W*(?:(?:and|but) )?{_CONJUNCTION}", re.I)
_INVERTED = re.compile(r"^\W*(?P<word>had|were|should)\b", re.I)  # "Had Ann left, ..."
_TRAILING = re.compile(
    r"(?<!\bas )(?<!\bwhat )\b(?:even |only )?(?:if|unless|assuming)\b(?! (?:any|so|not|ever)\b)", re.I
)
_TRAILING_INVERTED = re.compile(r"(?<!have )\b(?:had|were) (?:(?!been)[\w’'-]+ ){1,6}?(?:not|never|been|to|\w+ed)\b")

_MODAL = r"\b(?:would|could|might|will|can|may|must|should)(?:n['’]t)?\b"
_AUXILIARY = rf"(?:{_MODAL}|\b(?:is|are|was|were|do|does|did|has|have|had)(?:n['’]t)?\b)"
_FINITE = re.compile(rf"{_AUXILIARY}|\bcannot\b|(?<!, )\b[a-z]{{2,}}ed\b|['’]d\b", re.I)
_SUBJECT = r"(?:it|he|she|they|we|you|I|this|that|these|those|there|the|an?|his|her|its|their)\b"
_BREAK = re.compile(
    r"(?P<mark>[,;:.?!]['\"”’]{0,2}\s+|[,;](?=[a-z])|(?:(?<!\s)\s+)?[—–]\s*(?=[a-z])|\s-\s)(?:then,? )?", re.I
)
_PREPOSITION = r"(?:in(?:to)?|on(?:to)?|at|by|for|from|to(?:wards?)?|with|under|of|until|after|before|between|against)"
_WH = r"(?P<wh>who|whom|whose|what|which|when|where|why|how)(?:['’]s)?\b"
_LEAD = rf"(?:(?:and |or )?(?:[a-z]+ ){{0,2}}?{_PREPOSITION} |(?:and|or|approximately|roughly|exactly) )?"
_INTERROGATIVE = re.compile(rf"{_LEAD}{_WH} ?", re.I)
_VERB_FIRST = re.compile(rf"(?P<verb>(?i:{_AUXILIARY})) (?={_SUBJECT}|[A-Z\"“'‘])")
_RESUMPTION = re.compile(rf", {_MODAL} (?:{_SUBJECT}|[A-Z])")
_UNBROKEN = re.compile(rf"(?<= )(?:then )?(?P<start>(?:{_PREPOSITION} )?{_WH}(?: [\w-]+){{0,4}}? {_AUXILIARY})")


@dataclass(frozen=True)
class Clauses:
    """A question's two clauses, each a stripped substring of its text."""

    presupposition: (
        str  # the if-clause with its conjunction and any words before it ("According to the act, if ..."); or ""
    )
    question: str  # the main clause, or the whole text if there is no if-clause

    @property
    def supposition(self) -> str:
        """The presupposition without its "if" or "suppose"; the verb of an inversion ("Had Ann left") stays."""
        if not (match := _LEADING.search(self.presupposition)):
            return self.presupposition
        return (self.presupposition[: match.start("word")] + self.presupposition[match.end() :].lstrip()).strip()


def split_question(text: str) -> Clauses:
    """Split a text into presupposition and main clause; a text without an if-clause is all main clause."""
    masked = _mask_quotations(text)
    leading = _LEADING.search(masked)
    if leading and _INTERROGATIVE.match(masked[: leading.start("word")].lstrip()):
        leading = None  # "Who would win, if ...?"
    if (opening := leading or _INVERTED.search(masked)) and (bounds := _find_main_clause(masked, opening.end())):
        return Clauses(_trim(text[: bounds[0]]), text[bounds[1] :].strip())
    for pattern in (_TRAILING, _TRAILING_INVERTED):
        if match := pattern.search(masked):
            main = _trim(masked[: match.start()])
            # In "In which year, if ..., would it have been?" the main clause continues after the if-clause.
            incomplete = re.search(rf"(?!\bdo\b){_AUXILIARY}$", main)
            if _FINITE.search(main) and not incomplete and not _RESUMPTION.search(masked, match.end()):
                return Clauses(_trim(text[match.start() :].rstrip("? ")), _trim(text[: match.start()]))
    return Clauses("", text.strip())


def _mask_quotations(text: str) -> str:
    """The text with underscores inside quotations and brackets, except at their edges and for a quotation's last comma."""
    quoted = r"(?<!\w)\"[^\"]+\"|“[^“”]+”|\([^()]+\)|(?<!\w)['‘](?=[A-Za-z]).{1,80}?['’](?!\w)"
    return re.sub(quoted, lambda match: match[0][0] + "_" * (len(match[0]) - 3) + match[0][-2:], text)


def _trim(clause: str) -> str:
    return clause.strip().rstrip(",;:—–- ").strip()


def _find_main_clause(masked: str, begin: int) -> tuple[int, int] | None:
    """(end of the if-clause, start of the main clause) at the best break; `begin` is the position after the conjunction."""
    ranked: list[tuple[int, int, int, int]] = []
    inverted, verb = bool(_INVERTED.match(masked)), _FINITE.search(masked, begin)
    for match in _BREAK.finditer(masked, begin):
        following = _BREAK.search(masked, match.end())
        segment = masked[match.end() : following.start() if following else len(masked)]
        rank = _rank_segment(segment, inverted or (verb is not None and verb.end() <= match.start()))
        # prefer the last of several relative clauses, but the first of several possible starts of a question
        ranked.append((rank, -match.end() if rank in (2, 4) else match.end(), match.end("mark"), match.end()))
    best = min(ranked, default=None)
    if best and best[0] in ((0, 1, 3) if inverted else (0, 1, 2, 3, 4)):
        return best[2], best[3]
    unbroken = [m for m in _UNBROKEN.finditer(masked, begin) if verb and verb.end() <= m.start()]
    return (unbroken[-1].start(), unbroken[-1].start("start")) if unbroken else None


def _rank_segment(segment: str, has_verb: bool) -> int:
    """How likely the text between two breaks starts the main clause: 0 (certain) to 5 (impossible).

    `has_verb` says whether the if-clause already has its verb. ", who would later be king," is a relative clause. A question
    inverts verb and subject ("which would he"), has a noun ("which town would"), or starts with "what", "how" or "why".
    """
    if interrogative := _INTERROGATIVE.match(segment):
        word, rest = interrogative["wh"].lower(), segment[interrogative.end() :]
        if word in ("what", "how", "why") and not re.match(_SUBJECT, rest):
            return 0
        has_noun = word in ("which", "whose") and rest and not re.search(rf"^\w+ {_SUBJECT}|{_FINITE.pattern}", rest)
        inverted = word in ("when", "where") and re.match(_AUXILIARY, rest)
        is_question = (has_noun or inverted or re.search(_MODAL, rest)) and not re.match(_SUBJECT, rest)
        return 4 if not has_verb else 0 if is_question else 2
    if verb := _VERB_FIRST.match(segment):
        return 5 if not has_verb else 0 if re.match(_MODAL, verb["verb"], re.I) else 1
    # "If ..., he would be part of which band?" asks without inversion.
    return 3 if has_verb and re.match(rf"(?!{_AUXILIARY})[^\W\d_].* {_MODAL}", segment) else 5


_MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_DATE = rf"(?:\d{{1,2}}(?:st|nd|rd|th)? )?{_MONTH}(?: \d{{1,2}}(?:st|nd|rd|th)?\b)?(?:,? \d{{4}})?\b(?<=\d)|\d{{1,2}} {_MONTH}\b"
_NUMBER = r"[$€£]?\d(?:[\w.,:/–-]*\w)?%?"
_CAPITAL = r"(?:(?:[A-Z]\.)+(?= [A-Z])|(?:[A-Z]\.){2,}|(?:Mrs?|Dr|St|Jr|Sr)\.|[^\W\d_a-z](?:[\w&.’'/–-]*\w)?)"
_LINK = r"(?:of|de|del|der|di|du|da|la|le|van|von|the|al|bin|y|&)"
_NAME = rf"{_CAPITAL}(?:(?: {_LINK}){{0,2}} (?:{_CAPITAL}|\d+\b(?!,)))*"
_TITLE = r"(?<!\w)[\"“](?=[A-Z\d])(?P<title>[^\"“”]{2,60}?),?[\"”]"
_TERM = re.compile(rf"{_TITLE}|(?<![\w$])(?:{_DATE}|{_NUMBER}|{_NAME})")
_SENTENCE_END = re.compile(r"\w\w[.?!][\"”’']?\s")
_NO_NAME = (
    r"(?i:(?!may \d)(?:an?|after|and|as|at|before|but|by|each|every|for|from|he|her|his|i|in|it|its|my|no|of|on|once|one|our|she"
    rf"|since|the|their|these|they|this|those|until|we|while|with|you|your|according|{_CONJUNCTION}|{_WH}|{_AUXILIARY})(?: |$))"
)


def content_terms(text: str) -> list[str]:
    """The distinct names, quoted titles, dates and numbers of a text, in order, for boosting in a keyword search.

    A name of several words is a single term, and so is a date. A sentence's first word counts as a name only if a capitalised
    word follows, if it has another capital or a digit, or if it is capitalised again later.
    """
    terms: dict[str, None] = {}
    last_positions = {match[0]: match.start() for match in re.finditer(r"(?<=[\w,] )\w+", text)}
    position = 0
    while match := _TERM.search(text, position):
        position = match.end()
        is_first = not match["title"] and _opens_sentence(text, match.start())
        if is_first and (lead := re.match(_NO_NAME, match[0])):
            position = match.start() + lead.end()  # "If Ann", "The mill"
            continue
        name = re.sub(r"['’]s?$", "", match["title"] or match[0])
        uncertain = is_first and re.fullmatch(r"\w[^\W\dA-Z_]*", name)
        recurs = uncertain and last_positions.get(name, 0) >= position + 2
        if name != "I" and not name[0].islower() and (recurs or not uncertain):
            terms[name] = None
    return list(terms)


def _opens_sentence(text: str, start: int) -> bool:
    """Whether a sentence starts at `start`, or at punctuation before it."""
    last = start
    while last and not text[last - 1].isalnum():
        last -= 1
    return not last or _SENTENCE_END.search(text, max(0, last - 2), start) is not None


_BE = r"(?:is|are|was|were)\b"
_AUX = rf"(?:{_BE}|do|does|did|has|have|had|can|could|will|would|may|might|must|should)\b(?!['’])"
_AUXES = rf"(?: {_AUX}){{0,2}}"
_NOUN = rf"(?: (?!{_AUX})[\w’'-]+){{1,5}}"
_START = r"(?:^\W*|(?<=[,;:.?!] )|(?<=\band ))"
_KIND = (
    r"(?:(?:the|an?|some|one|of|most|more|main|primary|leading|major|chief|principal|common|likely|possible|probable|immediate"
    r"|direct|root|underlying|real|actual|side|long|short|term|negative|positive|adverse|harmful|worst) )*"
)


#: The seven rules of Webis-CausalQA-22 (Bondarenko et al., COLING 2022, Table 3) as forms: rule, what the question seeks, and the
#: patterns before and after the statement. Of forms that start at the same word, the first applies: "How did X affect Y?" seeks
#: an effect, although R3's "how did" matches.
CAUSAL_FORMS = (
    ("R7", "remedy", r"^\W*what (?:to do|should be done) (?:if|when|to)\b", ""),
    ("R6", "effect", rf"{_START}what (?:happens|(?:will|would|might) happen)\b(?: to\b)?", r"\b(?:if|when)\b"),
    ("R6", "effect", r"^\W*(?:if|when)\b", r"\bwhat (?:happens|(?:will|would|might) happen)\b(?: to\b)?"),
    ("R4", "effect", rf"{_START}(?:what(?:['’]s| {_AUX}) )?{_KIND}effects? (?:of|on)\b", ""),
    ("R4", "effect", rf"{_START}(?:what|which) {_KIND}effects? {_AUX}", r"\bhave\b"),
    ("R4", "effect", rf"{_START}how {_AUX}", r"\b(?:affect|affected by)\b"),
    ("R4", "effect", rf"{_START}(?:what|which)\b(?! {_BE}){_AUXES}", r"\baffect\W*$"),
    ("R4", "cause", rf"{_START}what{_AUXES} affect(?:s|ed)?\b", ""),
    ("R5", "cause", rf"{_START}what{_AUXES} (?:leads?|led) to\b", ""),
    ("R5", "effect", rf"{_START}what {_AUX}", r"\blead to\b"),
    ("R5", "cause", rf"{_START}(?:what|which)(?={_NOUN} (?:leads?|led) to\b)", r"\b(?:leads?|led) to\b"),
    ("R2", "cause", rf"{_START}(?:what(?:['’]s| {_AUX}) )?{_KIND}causes? (?:of|for|behind)\b", ""),
    ("R2", "cause", rf"{_START}what{_AUXES} cause[sd]?\b", ""),
    ("R2", "cause", rf"{_START}because of what\b(?: {_AUX})?", ""),
    ("R2", "cause", r"\bcaused by what\b", ""),
    ("R2", "cause", rf"{_START}what {_AUX}", r"\bcaused by\b"),
    ("R2", "effect", rf"{_START}(?:what|which)\b(?! {_BE}){_AUXES}", r"\bcause\W*$"),
    ("R2", "cause", rf"{_START}(?:what|which)(?={_NOUN} cause[sd]?\b)", r"\bcause[sd]?\b"),
    ("R3", "cause", rf"{_START}how (?:come|did)\b(?!['’])", ""),
    ("R1", "cause", rf"{_START}why\b(?: (?:is|was) it that\b| {_AUX}|['’]s\b)?", ""),
)
#: What the question seeks -> words that connect cause and effect in passages.
CONNECTIVES = {
    "cause": "because due to caused by led to",
    "effect": "leads to results in causes effect",
    "remedy": "treated by prevented by should",
}


class CausalForm(NamedTuple):
    """A question's statement, and what it seeks: "cause", "effect", "remedy", or "" without a known form."""

    statement: str
    seeks: str = ""
    rule: str = ""


def parse_causal_form(text: str) -> CausalForm:
    """The causal form of a question, by the earliest match; without a known form, the whole text is its statement.

    A form that leaves no statement is ignored, so "Why?" stays unchanged.
    """
    best, start = CausalForm(text), len(text)
    for rule, seeks, opening, closing in CAUSAL_FORMS:
        if not (first := re.search(opening, text, re.I)) or first.start() >= start:
            continue
        if second := re.compile(closing, re.I).search(text, first.end()):
            parts = (text[: first.start()], text[first.end() : second.start()], text[second.end() :])
            statement = " ".join(" ".join(parts).split()).rstrip("? ")
            if re.search(r"\w", statement):
                best, start = CausalForm(statement, seeks, rule), first.start()
    return best


def _add_connectives(text: str) -> str:
    form = parse_causal_form(text)
    return f"{form.statement} {CONNECTIVES[form.seeks]}" if form.seeks else text


QUERIES: dict[str, Callable[[str], str]] = {
    "question": str,
    "presupposition": lambda text: split_question(text).supposition or text,  # "Ann had not left"
    "main": lambda text: split_question(text).question,  # "who would lead?"
    "names": lambda text: " ".join([text, *content_terms(text)]),  # doubles the weight of names and numbers in BM25
    "causal": lambda text: parse_causal_form(text).statement,  # "Rome fall" of "Why did Rome fall?"
    "causal-connectives": _add_connectives,  # "Rome fall because due to caused by led to"
    "causal-names": lambda text: " ".join(
        [parse_causal_form(text).statement, *content_terms(text)]
    ),  # "Rome fall Rome"
}


def rewrite_questions(questions: Sequence[Question], query: str) -> list[Question]:
    """The questions with their texts rewritten by a query of `QUERIES`. Raises ConfigError for an unknown query."""
    if not isinstance(query, str) or query not in QUERIES:
        raise unknown_name("query", query, QUERIES)
    return [replace(question, text=QUERIES[query](question.text)) for question in questions]
