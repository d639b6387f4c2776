"""Rewrites a question as the query of a retriever: a clause of it, its names again, or what a causal question states.

A counterfactual question states what is not true, and the passage to be found states what is. In "If Ann had not left, who
would lead?" the if-clause is the presupposition and the rest is the main clause. "Why did Rome fall?" states an effect, "Rome
fall", and seeks its cause; the passage need not say "why". The rules are regular expressions: there is no parser and no model.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ifqa.errors import unknown_name
from ifqa.records import Question

VERSION = 1  # raised when a question's clauses, names or causal form come out differently

_CONJUNCTION = r"(?P<word>(?:even |only )?(?:if|supposing|suppose|assuming|assume|imagine|unless)\b(?: that\b)?)"
# A pattern that skips a run of marks or blanks must start where the run starts. Else matching takes quadratic time.
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
    """A question's two clauses, each a stripped substring of its text.

    Attributes:
        presupposition: the if-clause with its conjunction and the words before that ("According to the act, if ..."); or "".
        question: the main clause, or the whole text where there is no if-clause.
    """

    presupposition: str
    question: str

    @property
    def supposition(self) -> str:
        """The presupposition without its "if" or "suppose"; the verb of an inversion ("Had Ann left") stays."""
        if not (found := _LEADING.search(self.presupposition)):
            return self.presupposition
        return (self.presupposition[: found.start("word")] + self.presupposition[found.end() :].lstrip()).strip()


def split_question(text: str) -> Clauses:
    """Split a text into presupposition and main clause; a text without an if-clause is all main clause."""
    masked = _mask_quotations(text)
    leading = _LEADING.search(masked)
    if leading and _INTERROGATIVE.match(masked[: leading.start("word")].lstrip()):
        leading = None  # "Who would win, if ...?"
    if (opening := leading or _INVERTED.search(masked)) and (cut := _find_main_clause(masked, opening.end())):
        return Clauses(_trim(text[: cut[0]]), text[cut[1] :].strip())
    for pattern in (_TRAILING, _TRAILING_INVERTED):
        if found := pattern.search(masked):
            asked = _trim(masked[: found.start()])
            # In "In which year, if ..., would it have been?" the main clause goes on after the if-clause.
            halted = re.search(rf"(?!\bdo\b){_AUXILIARY}$", asked)
            if _FINITE.search(asked) and not halted and not _RESUMPTION.search(masked, found.end()):
                return Clauses(_trim(text[found.start() :].rstrip("? ")), _trim(text[: found.start()]))
    return Clauses("", text.strip())


def _mask_quotations(text: str) -> str:
    """The text with underscores inside quotations and brackets; their edges and a quotation's last comma stay."""
    quoted = r"(?<!\w)\"[^\"]+\"|“[^“”]+”|\([^()]+\)|(?<!\w)['‘](?=[A-Za-z]).{1,80}?['’](?!\w)"
    return re.sub(quoted, lambda found: found[0][0] + "_" * (len(found[0]) - 3) + found[0][-2:], text)


def _trim(part: str) -> str:
    return part.strip().rstrip(",;:—–- ").strip()


def _find_main_clause(masked: str, begin: int) -> tuple[int, int] | None:
    """(end of the if-clause, start of the main clause) of the best break; `begin` is the position after the conjunction."""
    ranked: list[tuple[int, int, int, int]] = []
    inverted, verb = bool(_INVERTED.match(masked)), _FINITE.search(masked, begin)
    for match in _BREAK.finditer(masked, begin):
        following = _BREAK.search(masked, match.end())
        segment = masked[match.end() : following.start() if following else len(masked)]
        rank = _rank_segment(segment, inverted or (verb is not None and verb.end() <= match.start()))
        # The last of several relative clauses is the question. Of several possible starts of a question the first counts.
        ranked.append((rank, -match.end() if rank in (2, 4) else match.end(), match.end("mark"), match.end()))
    best = min(ranked, default=None)
    if best and best[0] in ((0, 1, 3) if inverted else (0, 1, 2, 3, 4)):
        return best[2], best[3]
    unbroken = [m for m in _UNBROKEN.finditer(masked, begin) if verb and verb.end() <= m.start()]
    return (unbroken[-1].start(), unbroken[-1].start("start")) if unbroken else None


def _rank_segment(segment: str, supposed: bool) -> int:
    """How likely the text between two breaks opens the main clause: 0 certainly ... 5 not.

    `supposed` says whether the if-clause already has its verb. ", who would later be king," is a relative clause. A question
    inverts verb and subject ("which would he"), names the thing ("which town would"), or begins with "what", "how" or "why".
    """
    if asking := _INTERROGATIVE.match(segment):
        word, rest = asking["wh"].lower(), segment[asking.end() :]
        if word in ("what", "how", "why") and not re.match(_SUBJECT, rest):
            return 0
        named = word in ("which", "whose") and rest and not re.search(rf"^\w+ {_SUBJECT}|{_FINITE.pattern}", rest)
        turned = word in ("when", "where") and re.match(_AUXILIARY, rest)
        asks = (named or turned or re.search(_MODAL, rest)) and not re.match(_SUBJECT, rest)
        return 4 if not supposed else 0 if asks else 2
    if verb := _VERB_FIRST.match(segment):
        return 5 if not supposed else 0 if re.match(_MODAL, verb["verb"], re.I) else 1
    # "If ..., he would be part of which band?" asks without inversion.
    return 3 if supposed and re.match(rf"(?!{_AUXILIARY})[^\W\d_].* {_MODAL}", segment) else 5


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
    """The names, quoted titles, dates and numbers of a text, each once, in order, for boosting in a keyword search.

    A name of several words is a single term, and so is a date. The first word of a sentence counts as a name only if a
    capitalised word follows, if it has a further capital or a digit, or if the same word is capitalised later.
    """
    terms: dict[str, None] = {}
    # The last position of each word
    later = {match[0]: match.start() for match in re.finditer(r"(?<=[\w,] )\w+", text)}
    position = 0
    while found := _TERM.search(text, position):
        position = found.end()
        opens = not found["title"] and _opens_sentence(text, found.start())
        if opens and (lead := re.match(_NO_NAME, found[0])):
            position = found.start() + lead.end()  # "If Ann", "The mill"
            continue
        name = re.sub(r"['’]s?$", "", found["title"] or found[0])
        unsure = opens and re.fullmatch(r"\w[^\W\dA-Z_]*", name)
        elsewhere = unsure and later.get(name, 0) >= position + 2
        if name != "I" and not name[0].islower() and (elsewhere or not unsure):
            terms[name] = None
    return list(terms)


def _opens_sentence(text: str, start: int) -> bool:
    """Whether a sentence begins at `start`; marks before it are skipped."""
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


#: The forms of the seven rules of Webis-CausalQA-22 (Bondarenko et al., COLING 2022, Table 3): the rule, what is sought, the
#: words that open the question and, if they go around what is stated, the words that close it. Of forms that begin at the same
#: word the first counts: "How did X affect Y?" seeks an effect, though R3's "how did" fits.
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
#: What is sought -> words that passages join a cause and its effect with, on the side that is sought.
CONNECTIVES = {
    "cause": "because due to caused by led to",
    "effect": "leads to results in causes effect",
    "remedy": "treated by prevented by should",
}


class CausalForm(NamedTuple):
    """What a question states, and what it seeks: "cause", "effect", "remedy", or "" for a question of no known form."""

    statement: str
    seeks: str = ""
    rule: str = ""


def parse_causal_form(text: str) -> CausalForm:
    """What a causal question states, in its own words and their order; the whole text if it has none of the forms.

    Where several forms fit, the one that begins first counts. A form whose words are all of the text does not: "Why?" stays.
    """
    best, start = CausalForm(text), len(text)
    for rule, seeks, opening, closing in CAUSAL_FORMS:
        if not (first := re.search(opening, text, re.I)) or first.start() >= start:
            continue
        if second := re.compile(closing, re.I).search(text, first.end()):
            parts = (text[: first.start()], text[first.end() : second.start()], text[second.end() :])
            stated = " ".join(" ".join(parts).split()).rstrip("? ")
            if re.search(r"\w", stated):
                best, start = CausalForm(stated, seeks, rule), first.start()
    return best


def _add_connectives(text: str) -> str:
    causal = parse_causal_form(text)
    return f"{causal.statement} {CONNECTIVES[causal.seeks]}" if causal.seeks else text


QUERIES: dict[str, Callable[[str], str]] = {
    "question": str,
    # "Ann had not left"; the whole question where it has no if-clause
    "presupposition": lambda text: split_question(text).supposition or text,
    "main": lambda text: split_question(text).question,  # "who would lead?"
    # the question, then its names, titles, dates and numbers again, which doubles their weight in BM25
    "names": lambda text: " ".join([text, *content_terms(text)]),
    "causal": lambda text: parse_causal_form(text).statement,  # "Rome fall" of "Why did Rome fall?"
    "causal-connectives": _add_connectives,  # "Rome fall because due to caused by led to"
    "causal-names": lambda text: " ".join(
        [parse_causal_form(text).statement, *content_terms(text)]
    ),  # "Rome fall Rome"
}


def rewrite_questions(questions: Sequence[Question], query: str) -> list[Question]:
    """The questions with the query as their text; ids and annotation stay.

    Raises:
        IfqaError: `query` is none of `QUERIES`.
    """
    if not isinstance(query, str) or query not in QUERIES:
        raise unknown_name("query", query, QUERIES)
    return [replace(question, text=QUERIES[query](question.text)) for question in questions]
