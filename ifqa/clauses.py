"""The two clauses of a counterfactual question, and its names and numbers: rules over words, no parser, no model.

In "If Ann had not left, who would lead?" the if-clause is the presupposition, the rest is the question asked of it.
"""

import re
from dataclasses import dataclass

_CONJUNCTION = r"(?P<word>(?:if|supposing|suppose|assuming|assume|imagine|unless)\b(?: that\b)?)"
_LEADING = re.compile(rf"(?:^|[.?!,;:]['\"”’]?\s+)\W*(?:(?:and|but|even|only) )?{_CONJUNCTION}", re.I)
_INVERTED = re.compile(r"^\W*(?P<word>had|were|should)\b", re.I)  # "Had Ann left, ..."
_TRAILING = re.compile(rf"(?<!\bas )(?<!\bwhat )\b(?:(?:even|only) )?{_CONJUNCTION}(?! (?:any|so|not|ever)\b)", re.I)
_TRAILING_INVERTED = re.compile(r"(?<!have )\b(?P<word>had|were) (?:(?!been)[\w’'-]+ ){1,6}?(?:not|never|been|to|\w+ed)\b")

_MODAL = r"(?:would|could|might|will|can|may|must|should)(?:n['’]t)?\b"
_AUXILIARY = rf"(?:{_MODAL}|(?:is|are|was|were|do|does|did|has|have|had)(?:n['’]t)?\b)"
_FINITE = re.compile(rf"\b{_AUXILIARY}|\bcannot\b|(?<!, )\b[a-z]{{2,}}ed\b|['’]d\b", re.I)
_SUBJECT = re.compile(r"(?:it|he|she|they|we|you|I|this|that|these|those|there|the|an?|his|her|its|their)\b")
_BREAK = re.compile(r"[,;:.?!]['\"”’]{0,2}\s+|[,;](?=[a-z])|\s*[—–]\s*(?=[a-z])|\s-\s")
_THEN = re.compile(r"then,? ", re.I)
_PREPOSITION = (
    r"(?:in|on|at|by|for|from|to|with|under|of|into|onto|until|after|before|between|towards?|against|through|during|among|about|over"
    r"|within|since|as|upon|around|near|off)"
)
_LEAD = rf"(?:(?:and |or )?(?:[a-z]+ ){{0,2}}?{_PREPOSITION} |(?:and|or|approximately|roughly|exactly|precisely|just) )?"
_ASKING = re.compile(rf"{_LEAD}(?P<wh>who|whom|whose|what|which|when|where|why|how)(?:['’]s)?\b ?", re.I)
_VERB_FIRST = re.compile(rf"(?P<verb>(?i:{_AUXILIARY})) (?={_SUBJECT.pattern}|[A-Z\"“'‘])")
_UNBROKEN = re.compile(rf"(?<= )(?:then )?(?P<start>(?:{_PREPOSITION} )?(?:who|what|which|when|where|why|how)(?: [\w-]+){{0,4}}? {_AUXILIARY})")


@dataclass(frozen=True)
class Clauses:
    """A question's two clauses, each a stripped substring of its text.

    `presupposition` is the if-clause as it stands, conjunction and whatever precedes it ("According to the act, if ...")
    kept; it is empty when there is none. `question` is what is asked: the whole text when there is no if-clause.
    """

    presupposition: str
    question: str

    @property
    def supposed(self) -> str:
        """The presupposition without its "if" or "suppose"; an inversion's verb ("Had Ann left") is not dropped."""
        found = _LEADING.search(self.presupposition)
        if not found:
            return self.presupposition
        before, after = self.presupposition[: found.start("word")], self.presupposition[found.end("word") :]
        return (before + after.lstrip()).strip()


def split_question(text: str) -> Clauses:
    """Part the presupposition from the main clause; a text that does not fall in two is all question."""
    masked = _mask(text)
    first = _LEADING.search(masked)
    if first and _ASKING.match(masked[: first.start("word")].lstrip()):
        first = None  # "In which year, if ..., would" or "Who would win, if ...?"
    conditional = first or _INVERTED.search(masked)
    if conditional:
        cut = _main_clause(masked, conditional.end("word"), plain=first is not None)
        if cut:
            return Clauses(_trimmed(text[: cut[0]]), text[cut[1] :].strip())
        if first:
            return Clauses("", text.strip())
    for pattern in (_TRAILING, _TRAILING_INVERTED):
        last = pattern.search(masked)
        if last and (asked := _trimmed(masked[: last.start()])) and _complete(asked, masked[last.end() :]):
            return Clauses(text[last.start() :].strip().rstrip("?").strip(), _trimmed(text[: last.start()]))
    return Clauses("", text.strip())


def _mask(text: str) -> str:
    """Quoted titles and brackets blotted out at equal length, but for a quotation's edges and closing comma."""

    def blot(found: re.Match[str]) -> str:
        whole = found[0]
        return whole[0] + "_" * (len(whole) - 3) + whole[-2:] if len(whole) > 3 else whole

    return re.sub(r"(?<!\w)\"[^\"]+\"|“[^”]+”|\([^()]+\)|(?<!\w)['‘](?=[A-Za-z]).{1,80}?['’](?!\w)", blot, text)


def _trimmed(part: str) -> str:
    return part.strip().rstrip(",;:—–-").strip()


def _complete(asked: str, condition: str) -> bool:
    """Whether what stands before an if is a question of its own, not the head of one that goes on after the if-clause."""
    halted = re.search(rf"\b(?!do\b){_AUXILIARY}$", asked) or re.search(rf", {_AUXILIARY} ", condition)
    return bool(_FINITE.search(asked)) and not halted


def _main_clause(masked: str, begin: int, plain: bool) -> tuple[int, int] | None:
    """(end of the if-clause, start of the main clause): the break with the lowest rank; `plain`: opened by a conjunction."""
    ranked: list[tuple[int, int, int, int]] = []
    for found in _BREAK.finditer(masked, begin):
        start = then.end() if (then := _THEN.match(masked, found.end())) else found.end()
        stop = after.start() if (after := _BREAK.search(masked, start)) else len(masked)
        supposed = not plain or bool(_FINITE.search(masked, begin, found.start()))
        rank = _rank(masked[start:stop], supposed)
        # Among relative clauses the question comes last; otherwise what follows it is part of the question.
        order = -start if rank in (2, 4) else start
        ranked.append((rank, order, found.start() + len(found[0].rstrip()), start))
    best = min(ranked, default=None)
    if best and best[0] < 5:
        return best[2], best[3]
    unbroken = [m for m in _UNBROKEN.finditer(masked, begin) if _FINITE.search(masked, begin, m.start())]
    return (unbroken[-1].start(), unbroken[-1].start("start")) if unbroken else None


def _rank(segment: str, supposed: bool) -> int:
    """How likely what follows a break, up to the next, opens the main clause: 0 surely ... 5 not.

    `supposed`: the if-clause has had its verb. ", which was built in 1900," and ", who would later be king," are
    relative clauses; a question turns verb and subject ("which would he"), names the thing ("which town would") or asks
    with a word that opens no relative clause ("what", "how", "why").
    """
    if asking := _ASKING.match(segment):
        word, rest = asking["wh"].lower(), segment[asking.end() :]
        if _SUBJECT.match(rest):
            return 2 if supposed else 4
        if word in ("what", "how", "why"):
            return 0
        named = word in ("which", "whose") and rest.strip() and not _FINITE.search(rest)
        turned = word in ("when", "where") and re.match(_AUXILIARY, rest)
        if supposed and (named or turned or re.search(_MODAL, rest)):
            return 0
        return 2 if supposed else 4
    if verb := _VERB_FIRST.match(segment):
        return 5 if not supposed else 0 if re.match(_MODAL, verb["verb"], re.I) else 1
    declared = supposed and re.match(rf"(?!{_AUXILIARY})[^\W\d_].* {_MODAL}", segment)  # "he would be part of which band?"
    return 3 if declared else 5


_MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_NUMBER = r"[$€£]?\d(?:[\w.,:/–-]*\w)?%?"
_WORD = r"(?:(?:[A-Z]\.)+|[A-Z]\.?(?= [A-Z])|[^\W\d_a-z][\w&’'./–-]*\w|[A-Z])"
_LINK = r"(?: (?:of|de|del|der|di|du|da|la|le|van|von|the|al|bin|ibn|y|&)){1,2}"
