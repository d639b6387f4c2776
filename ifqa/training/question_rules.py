"""Rules that turn a passage into counterfactual questions, with answers computed or quoted from the passage.

Patterns split a clause in the past tense into a subject that opens the sentence (a name, a noun phrase with article, or "he" and
"she" for the article's title), a verb from a list, and the rest. Doubtful clauses are skipped: there are enough passages.
docs/making-questions.md lists the rules.
"""

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ifqa.corpus.sentences import split_sentences

VERSION = 3  # raise it when the same passage gives different questions
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
_VERBS = {verb: verb for verb in _REGULAR.split()} | dict(pair.split() for pair in _IRREGULAR.split(", "))
_BE = ("was", "were")
_YEAR = r"(?:1[0-9]|20)\d\d"
_CAPITAL = r"(?:(?:[A-Z]\.)+|[A-Z][\w'’&-]*)"
_NAME = rf"{_CAPITAL}(?: (?:(?:of|the|de|von|van|and) ){{0,2}}(?:{_CAPITAL}|\d+)){{0,6}}"
#: A word within a noun phrase; not a word that starts another clause.
_WORD = (
    r"(?!(?:has|have|had|is|are|was|were|be|been|would|could|will|not|who|which|that|when|to|he|she|it|they) )[\w'’&-]+"
)
_SUBJECT = rf"(?P<subject>(?:The|An?) (?:{_WORD} ){{0,5}}?{_WORD}|{_NAME})"
_LEAD = re.compile(
    rf"(?:In (?:[A-Z][a-z]+ )?(?P<year>{_YEAR})|(?:In|On|After|During|By|At|Later|Eventually|However|Also)(?: [^,.]{{1,40}})?),? "
)
_CLAUSE = re.compile(
    rf"{_SUBJECT}(?: (?:also|later|then|first|finally))? (?P<verb>was|were|{'|'.join(_VERBS)})"
    r"(?: (?:also|later|then|first|finally))?(?: (?P<rest>[^;:]+?))?\.?\s*$"
)
#: Words that open a sentence but are not a subject, or refer to the sentence before.
_NO_SUBJECT = re.compile(
    r"(?:He|She|It|They|We|You|I|This|That|These|Those|There|His|Her|Its|Their|Who|Which|What|When|Where|While|If|As|At|By|For"
    r"|From|In|On|Of|To|With|After|Before|Because|Since|Due|Although|Though|But|And|Or|Both|Some|Many|Most|Others?|One|Another"
    r"|However|Also|Later|Then|Thus|Such|Was|Were|Briefly|Not|No"
    r"|The (?:same|latter|former|two|other|first|second|next|last)|An? (?:few|number))\b"
)
_REST = 16  # most words in a clause's rest
_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
).split()
_MOST = 9  # the largest change, in years or things
_IN_YEAR = re.compile(rf"^(?P<what>[^,]*?) ?\bin (?:[A-Z][a-z]+ )?(?P<year>{_YEAR})(?=$|[,.]| and | after | before )")
#: A second clause or number in a clause's rest: it is unclear what moves with the year.
_UNCLEAR = re.compile(r"\d|,|\b(?:had|was|were|until|since|when|before|after|who|which|that|while|but|if|not|than)\b")
_PARTICIPLE = re.compile(
    r"\w+ed\b|(?:built|born|made|sold|held|won|shot|written|sent|taken|led|given|set|broken|begun)\b"
)
_NUMBER = re.compile(
    rf"^(?P<number>\d{{1,3}}(?:,\d{{3}})*|{'|'.join(_UNITS[2:])}) (?P<things>(?!of\b|per\b)(?:[a-z-]+ )?"
    r"(?:[a-z-]+s|people|men|women|children))\b(?P<rest>(?! later| earlier| after| ago)[^,.]*)"
)
_UNTIL = re.compile(rf"^(?P<what>[^,]*?) ?\bfrom (?P<first>{_YEAR}) (?:to|until) (?P<last>{_YEAR})\b")
_CALLED = re.compile(
    rf"^originally (?:called|named|titled|known as|entitled) (?P<name>[\"“][^\"“”]+[\"”]|(?:the )?{_NAME})"
)
_SCHEDULED = re.compile(
    r"^originally (?:scheduled|planned|set|slated|due)(?: (?:to|for) [a-z]+(?: [a-z]+)?)? (?:for|on|in) "
    rf"(?P<date>(?:\d{{1,2}} )?[A-Z][a-z]+(?: \d{{1,2}},?)? ?(?:{_YEAR})?|{_YEAR})(?=$|[,.]| but | and )"
)
_MOVED = re.compile(
    rf"^(?P<how>moved|relocated|transferred|)(?P<what>[^,]*?)(?: |^)from (?P<old>(?:the )?{_NAME})(?:, {_NAME},)? to "
    rf"(?P<new>(?:the )?{_NAME})"
)
_SUCCEEDED = re.compile(
    rf"^(?P<old>{_NAME}) as (?P<role>(?!a\b|an\b)(?:the )?[\w'’ -]{{3,60}}?)(?=$|[,.]| in | on | after | when )"
)
_BEATEN = re.compile(rf"^(?P<old>{_NAME})(?P<where> in (?:the|a|an) [^,.]{{3,60}})")
_CAUSE = re.compile(r"^(?P<effect>[^,]+?),? (?:because of|due to|as a result of|owing to) (?P<cause>[^,.]{4,70})$")
_CAUSE_FIRST = re.compile(r"^(?:Because of|Due to|As a result of|Owing to) (?P<cause>[^,.]{4,70}), (?P<rest>.+)$")
_BECAUSE = re.compile(r"^(?P<effect>[^,]+?),? because (?P<cause>(?!of\b)[^,]+)$")

_Questions = Iterator[tuple[str, tuple[str, ...]]]  # questions and their answers


@dataclass(frozen=True, slots=True)
class SyntheticQuestion:
    rule: str
    text: str
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Clause:
    """A clause such as "the mill", "was", "built in 1912"; `year` is from "In 1905, …" before it, or empty."""

    subject: str
    verb: str
    rest: str
    year: str = ""

    def supposed(self, rest: str, negated: bool = False) -> str:
        """The if-clause with another rest: "the mill had (not) been built"."""
        return f"{self.subject} had {'not ' if negated else ''}{self.participle} {rest}".strip()

    @property
    def participle(self) -> str:
        return "been" if self.verb in _BE else _VERBS[self.verb]


def make_questions(text: str, title: str, seed: str) -> list[SyntheticQuestion]:
    """One question for each rule that fits a passage, drawn from the rule's questions; equal arguments give equal questions.

    `title` is the article's, empty if unknown; `seed` is "0 PASSAGE_ID", for example.
    """
    clauses, questions = [clause for each in split_sentences(text) if (clause := _parse_clause(each, title))], []
    for rule in RULES:
        draw = random.Random(f"{seed} {rule}")
        if rule == "cause":
            drafts = list(_causes(text))
        else:
            drafts = [draft for clause in clauses for draft in _CLAUSE_RULES[rule](clause, draw)]
        if drafts:
            question, answers = draw.choice(list(dict.fromkeys(drafts)))
            questions.append(SyntheticQuestion(rule, _capitalize(question), answers))
    return questions


def _parse_clause(sentence: str, title: str = "") -> _Clause | None:
    """The clause that opens a sentence, without brackets; None if no pattern fits."""
    plain = _remove_brackets(sentence)
    lead = _LEAD.match(plain)
    start, year = (lead.end(), lead["year"] or "") if lead else (0, "")
    about = re.sub(r"\s*\(.*", "", title)
    if about and (pronoun := re.match(r"(?:He|he|She|she) ", plain[start:])):
        plain, start = f"{about} {plain[start + pronoun.end() :]}", 0
    match = _CLAUSE.match(_capitalize(plain[start:]))
    rest = (match["rest"] or "").strip() if match else ""
    if not match or _NO_SUBJECT.match(match["subject"]) or len(rest.split()) > _REST:
        return None
    if re.search(r"[()]", rest) or rest.count('"') % 2:  # cut through a bracket or a quotation
        return None
    verb = match["verb"]
    if re.match(r"(?:been|not|\w+ly|\w+ed)\b" if verb == "had" else r"by\b", rest) and verb not in _BE:
        return None  # "had been built", "led by Ann": not the past tense
    return _Clause(_lowercase_article(match["subject"]), verb, rest, year)


def _remove_brackets(sentence: str) -> str:
    return re.sub(r"\s*\([^()]*\)", "", sentence).strip()


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]


def _lowercase_article(phrase: str) -> str:
    """A phrase as within a sentence, with its article in lower case."""
    return re.sub(r"^(?:The|An?)\b", lambda word: word[0].lower(), phrase)


def _year(clause: _Clause, draw: random.Random) -> _Questions:
    match = None if clause.year else _IN_YEAR.match(clause.rest)
    what, year = (match["what"].strip(), match["year"]) if match else (clause.rest, clause.year)
    if year and not _UNCLEAR.search(what) and (clause.verb not in _BE or _PARTICIPLE.match(what)):
        step, later = draw.randint(1, _MOST), draw.random() < 0.5
        way = f"{_UNITS[step]} year{'s' * (step > 1)} {'later' if later else 'earlier'}"
        answer = str(int(year) + (step if later else -step))
        yield f"if {clause.supposed(what)} {way}, in which year would that have been?", (answer,)


def _number(clause: _Clause, draw: random.Random) -> _Questions:
    if clause.verb in _BE or not (match := _NUMBER.match(clause.rest)):
        return
    words, things = match["number"].replace(",", ""), match["things"]
    number = _UNITS.index(words) if words in _UNITS else int(words)
    step, more = draw.randint(2, _MOST), draw.random() < 0.5 or number <= _MOST + 1
    changed = number + (step if more else -step)
    way = f"{_UNITS[step]} {'more' if more else 'fewer'} {things}{match['rest'].rstrip()}"
    forms = (f"{changed:,}", str(changed), *([_UNITS[changed]] if changed < len(_UNITS) else []))
    yield f"if {clause.supposed(way)}, how many {things} would that have been?", tuple(dict.fromkeys(forms))


def _until(clause: _Clause, draw: random.Random) -> _Questions:
    if (match := _UNTIL.match(clause.rest)) and int(match["first"]) < int(match["last"]):
        step = draw.randint(2, _MOST)
        way = f"{match['what']} for {_UNITS[step]} more years".strip()
        yield f"if {clause.supposed(way)}, until which year would that have been?", (str(int(match["last"]) + step),)


def _name(clause: _Clause, draw: random.Random) -> _Questions:
    if (match := _CALLED.match(clause.rest)) and (name := match["name"].strip('"“”')) != clause.subject:
        yield f"if {clause.subject} had kept its original name, what would it be called?", (name,)


def _schedule(clause: _Clause, draw: random.Random) -> _Questions:
    if match := _SCHEDULED.match(clause.rest):
        question = f"if {clause.subject} had kept to the original schedule, when would that have been?"
        yield question, (match["date"].strip(" ,"),)


def _move(clause: _Clause, draw: random.Random) -> _Questions:
    passive = clause.verb in _BE
    if passive or clause.verb in ("moved", "relocated", "transferred", "emigrated", "returned"):
        match = _MOVED.match(clause.rest)
        if match and bool(match["how"]) == passive and match["old"] != match["new"]:
            rest = f"{match['how']}{match['what']} to {match['new']}".strip()
            question = f"if {clause.supposed(rest, negated=True)}, where would {clause.subject} have stayed?"
            yield question, (match["old"],)


def _succession(clause: _Clause, draw: random.Random) -> _Questions:
    if clause.verb in ("succeeded", "replaced") and (match := _SUCCEEDED.match(clause.rest)):
        role = match["role"].strip()
        question = f"if {clause.subject} had not taken the place of another as {role}, who would have stayed {role}?"
        yield question, (match["old"],)


def _defeat(clause: _Clause, draw: random.Random) -> _Questions:
    if clause.verb == "defeated" and (match := _BEATEN.match(clause.rest)):
        yield f"if {clause.subject} had lost{match['where']}, who would have won?", (match["old"],)


def _causes(text: str) -> _Questions:
    for sentence in split_sentences(text):
        plain = _remove_brackets(sentence).removesuffix(".")
        if first := _CAUSE_FIRST.match(plain):
            effect, condition = _parse_clause(_capitalize(first["rest"])), _without_cause(first["cause"])
        elif last := _CAUSE.match(plain):
            effect, condition = _parse_clause(last["effect"]), _without_cause(last["cause"])
        elif because := _BECAUSE.match(plain):
            effect, reason = _parse_clause(because["effect"]), _parse_clause(_capitalize(because["cause"]))
            condition = reason.supposed(reason.rest, negated=True) if reason else ""
        else:
            continue
        if effect and condition and " not " not in f" {effect.rest} ":
            question = f"if {condition}, who or what would not have {effect.participle} {effect.rest.rstrip(' ,')}?"
            yield question, tuple(dict.fromkeys((effect.subject, re.sub(r"^(?:the|an?) ", "", effect.subject))))


def _without_cause(cause: str) -> str:
    """The condition that removes a cause; empty if the cause refers to another sentence."""
    if re.match(r"(?:this|that|these|those|it|its|his|her|their|them|which|what|how)\b", cause.strip(), re.IGNORECASE):
        return ""
    return f"it had not been for {_lowercase_article(cause.strip())}"


_CLAUSE_RULES: dict[str, Callable[[_Clause, random.Random], _Questions]] = {
    "year": _year, "number": _number, "until": _until, "name": _name, "schedule": _schedule, "move": _move,
    "succession": _succession, "defeat": _defeat,
}  # fmt: skip
RULES = (*_CLAUSE_RULES, "cause")
