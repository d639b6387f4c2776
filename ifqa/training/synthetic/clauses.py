"""Clauses in the past tense, as far as patterns find them: subject, verb and the rest, which can then be supposed.

Only verbs of a list count, and only subjects that open a sentence: a name, a noun phrase with an article, or "he" and "she" for
the title of the article. What is not sure is left out; there are more passages.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ifqa.corpus.sentences import sentences

_REGULAR = (
    "acquired appeared arrived attended captured collapsed completed composed conquered contained covered created debuted "
    "defeated designed destroyed died directed discovered earned emigrated employed ended enrolled entered established failed "
    "finished formed founded graduated hosted introduced invaded joined killed lasted launched lived married merged moved opened "
    "performed played premiered produced published purchased received recorded released relocated replaced resigned retired "
    "returned scored served settled signed started studied succeeded survived toured transferred visited worked"
)
_IRREGULAR = (
    "became become, began begun, bought bought, broke broken, built built, came come, fell fallen, fought fought, gave given, "
    "grew grown, had had, held held, led led, left left, lost lost, made made, met met, ran run, sold sold, sank sunk, "
    "sent sent, spent spent, took taken, went gone, won won, wrote written"
)
#: Past tense -> participle.
VERBS = {verb: verb for verb in _REGULAR.split()} | dict(pair.split() for pair in _IRREGULAR.split(", "))
YEAR = r"(?:1[0-9]|20)\d\d"
_CAPITAL = r"(?:(?:[A-Z]\.)+|[A-Z][\w'’&-]*)"
NAME = rf"{_CAPITAL}(?: (?:(?:of|the|de|von|van|and) ){{0,2}}(?:{_CAPITAL}|\d+)){{0,6}}"
#: A word within a noun phrase: none that says that the clause is another one than it seems.
_WORD = (
    r"(?!(?:has|have|had|is|are|was|were|be|been|would|could|will|not|who|which|that|when|to|he|she|it|they) )[\w'’&-]+"
)
_SUBJECT = rf"(?P<subject>(?:The|An?) (?:{_WORD} ){{0,5}}?{_WORD}|{NAME})"
_LEAD = re.compile(
    rf"(?:In (?:[A-Z][a-z]+ )?(?P<year>{YEAR})|(?:In|On|After|During|By|At|Later|Eventually|However|Also)(?: [^,.]{{1,40}})?),? "
)
_CLAUSE = re.compile(
    rf"{_SUBJECT}(?: (?:also|later|then|first|finally))? (?P<verb>was|were|{'|'.join(VERBS)})"
    r"(?: (?:also|later|then|first|finally))?(?: (?P<rest>[^;:]+?))?\.?\s*$"
)
#: Words that open a sentence and are no subject, or say nothing without the sentence before.
_NO_SUBJECT = re.compile(
    r"(?:He|She|It|They|We|You|I|This|That|These|Those|There|His|Her|Its|Their|Who|Which|What|When|Where|While|If|As|At|By|For"
    r"|From|In|On|Of|To|With|After|Before|Because|Since|Due|Although|Though|But|And|Or|Both|Some|Many|Most|Others?|One|Another"
    r"|However|Also|Later|Then|Thus|Such|Was|Were|Briefly|Not|No"
    r"|The (?:same|latter|former|two|other|first|second|next|last)|An? (?:few|number))\b"
)
BE = ("was", "were")
_WORDS = 16  # of a clause's rest


@dataclass(frozen=True, slots=True)
class Clause:
    """What happened: "the mill", "was", "built in 1912"; `year` is that of "In 1905, …" before it, else empty."""

    subject: str
    verb: str
    rest: str
    year: str = ""

    def supposed(self, rest: str, negated: bool = False) -> str:
        """The clause as an if-clause has it, with another rest: "the mill had (not) been built"."""
        return f"{self.subject} had {'not ' if negated else ''}{self.participle} {rest}".strip()

    @property
    def participle(self) -> str:
        """The verb after "have": "been" or "moved"."""
        return "been" if self.verb in BE else VERBS[self.verb]


def clauses(text: str, title: str = "") -> Iterator[Clause]:
    """The clause at the beginning of each sentence of a passage, if its patterns fit; brackets are left out.

    `title` is that of its article, the subject of sentences with "he" and "she"; empty if it is unknown.
    """
    yield from filter(None, (clause(sentence, title) for sentence in sentences(text)))


def clause(sentence: str, title: str = "") -> Clause | None:
    """The clause at the beginning of a sentence; None if no pattern fits."""
    plain = re.sub(r"\s*\([^()]*\)", "", sentence).strip()
    lead = _LEAD.match(plain)
    start, year = (lead.end(), lead["year"] or "") if lead else (0, "")
    about = re.sub(r"\s*\(.*", "", title)
    if about and (pronoun := re.match(r"(?:He|he|She|she) ", plain[start:])):
        plain, start = f"{about} {plain[start + pronoun.end() :]}", 0
    found = _CLAUSE.match(plain[start].upper() + plain[start + 1 :]) if start < len(plain) else None
    rest = (found["rest"] or "").strip() if found else ""
    if not found or _NO_SUBJECT.match(found["subject"]) or len(rest.split()) > _WORDS:
        return None
    if re.search(r"[()]", rest) or rest.count('"') % 2:  # a bracket or a quotation that was cut
        return None
    if re.match(r"(?:been|not|\w+ly|\w+ed)\b" if found["verb"] == "had" else r"by\b", rest) and found["verb"] not in BE:
        return None  # "had been built", "led by Ann": no past tense
    return Clause(lowered(found["subject"]), found["verb"], rest, year)


def lowered(phrase: str) -> str:
    """A phrase as it stands within a sentence: its article is not capitalised."""
    return re.sub(r"^(?:The|An?)\b", lambda word: word[0].lower(), phrase)
