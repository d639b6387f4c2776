"""Rules that make a counterfactual question of a passage, with its answer: computed, or words of the passage.

docs/making-questions.md has the rules, with what they ask. A swap takes another name of the same type from the corpus; the fact
that is asked for stays.
"""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ifqa.corpus.sentences import sentences
from ifqa.training.synthetic.clauses import BE, NAME, YEAR, Clause, clause, clauses, lowered
from ifqa.training.synthetic.names import KINDS, PERSON, Kind, Names

VERSION = 2  # raised when the same passage gives other questions
_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
).split()
_MOST = 9  # years or things by which something is changed
_IN_YEAR = re.compile(rf"^(?P<what>[^,]*?) ?\bin (?:[A-Z][a-z]+ )?(?P<year>{YEAR})(?=$|[,.]| and | after | before )")
#: A clause's rest with a second clause or number in it: what would move with the year is not sure.
_UNCLEAR = re.compile(r"\d|,|\b(?:had|was|were|until|since|when|before|after|who|which|that|while|but|if|not|than)\b")
_PARTICIPLE = re.compile(
    r"\w+ed\b|(?:built|born|made|sold|held|won|shot|written|sent|taken|led|given|set|broken|begun)\b"
)
_NUMBER = re.compile(
    rf"^(?P<number>\d{{1,3}}(?:,\d{{3}})*|{'|'.join(_UNITS[2:])}) (?P<things>(?!of\b|per\b)(?:[a-z-]+ )?"
    r"(?:[a-z-]+s|people|men|women|children))\b(?P<rest>(?! later| earlier| after| ago)[^,.]*)"
)
_UNTIL = re.compile(rf"^(?P<what>[^,]*?) ?\bfrom (?P<first>{YEAR}) (?:to|until) (?P<last>{YEAR})\b")
_CALLED = re.compile(
    rf"^originally (?:called|named|titled|known as|entitled) (?P<name>[\"“][^\"“”]+[\"”]|(?:the )?{NAME})"
)
_SCHEDULED = re.compile(
    r"^originally (?:scheduled|planned|set|slated|due)(?: (?:to|for) [a-z]+(?: [a-z]+)?)? (?:for|on|in) "
    rf"(?P<date>(?:\d{{1,2}} )?[A-Z][a-z]+(?: \d{{1,2}},?)? ?(?:{YEAR})?|{YEAR})(?=$|[,.]| but | and )"
)
_MOVED = re.compile(
    rf"^(?P<how>moved|relocated|transferred|)(?P<what>[^,]*?)(?: |^)from (?P<old>(?:the )?{NAME})(?:, {NAME},)? to "
    rf"(?P<new>(?:the )?{NAME})"
)
_SUCCEEDED = re.compile(
    rf"^(?P<old>{NAME}) as (?P<role>(?!a\b|an\b)(?:the )?[\w'’ -]{{3,60}}?)(?=$|[,.]| in | on | after | when )"
)
BEATEN = re.compile(rf"^(?P<old>{NAME})(?P<where> in (?:the|a|an) [^,.]{{3,60}})")
_CAUSE = re.compile(r"^(?P<effect>[^,]+?),? (?:because of|due to|as a result of|owing to) (?P<cause>[^,.]{4,70})$")
_CAUSE_FIRST = re.compile(r"^(?:Because of|Due to|As a result of|Owing to) (?P<cause>[^,.]{4,70}), (?P<rest>.+)$")
BECAUSE = re.compile(r"^(?P<effect>[^,]+?),? because (?P<cause>(?!of\b)[^,]+)$")


_Fact = tuple[Clause, str, str, str]  # a clause, its rest without a fact, the words that ask for the fact, the fact
_WHEN, _WHERE, _WHO = (
    "in which year would that have been?",
    "where would that have been?",
    "by whom would that have been done?",
)
_FACT_YEAR = re.compile(rf"^(?P<what>.*?) ?\bin (?:[A-Z][a-z]+ )?(?P<fact>{YEAR})(?=$|[,.]| and | after | before )")
_IN_PLACE = re.compile(rf"^(?P<what>.*?) (?:in|at) (?P<fact>{NAME})(?=$|[,.])")
_BY = re.compile(rf"^(?P<what>[a-z].*?) by (?P<fact>{NAME})(?P<after>(?: (?:in|at) {NAME}| in {YEAR})?)$")
#: A second clause, a number, or a pointer to something else: what would change with the swap is not sure.
_UNCLEAR_SWAP = re.compile(
    r"[\d,;]|\b(?:had|was|were|until|since|when|before|after|who|which|that|while|but|and|if|not|than|his|her|their|its|this|these|"
    r"those|as|to)\b|\b(?:a|an|the|of|in|at|by|under|with|from)$"
)
#: Verbs whose subject could have been another, and participles of what a person does.
_DEEDS = (
    "acquired built captured completed composed conquered created defeated designed destroyed directed discovered established "
    "founded hosted introduced invaded killed launched led produced published purchased recorded released won wrote"
).split()
_DONE = re.compile(
    r"\b(?:built|composed|conceived|created|designed|developed|directed|discovered|edited|founded|identified|invented|"
    rf"painted|proposed|translated|unveiled|voiced|written) by (?P<name>{PERSON})(?![\w'’-])"
)
BEFORE = r"(?:^|\b(?:in|at|to|from|of|for|with|by|against|on|near|through) )"
_AFTER = r"(?=$|[.]| (?:in|at|on|by|with|for|from|against|of|under)\b)"
_MOST_YEARS = 30  # by which a year is moved


_Questions = Iterator[tuple[str, tuple[str, ...]]]  # questions with their answers


@dataclass(frozen=True, slots=True)
class Made:
    """A question that a rule made of a passage, with every form of its answer."""

    rule: str
    text: str
    answers: tuple[str, ...]


def make(text: str, title: str, seed: str, names: Names) -> list[Made]:
    """One question by each rule that fits a passage, drawn from those that it makes; equal for equal arguments.

    `title` is of its article, empty if it is unknown; `seed` such as "0 PASSAGE_ID"; `names` of the corpus, for the swaps.
    """
    told, made = list(clauses(text, title)), []
    for rule in RULES:
        draw = random.Random(f"{seed} {rule}")
        if rule in SWAPS:
            questions = list(_swapped(told, SWAPS[rule], names, draw))
        elif rule == "cause":
            questions = list(_causes(text))
        else:
            questions = [question for clause in told for question in _RULES[rule](clause, draw)]
        if questions := list(dict.fromkeys(questions)):
            question, answers = draw.choice(questions)
            made.append(Made(rule, question[0].upper() + question[1:], answers))
    return made


def _year(told: Clause, draw: random.Random) -> _Questions:
    match = None if told.year else _IN_YEAR.match(told.rest)
    what, year = (match["what"].strip(), match["year"]) if match else (told.rest, told.year)
    if year and not _UNCLEAR.search(what) and (told.verb not in BE or _PARTICIPLE.match(what)):
        step, later = draw.randint(1, _MOST), draw.random() < 0.5
        way = f"{_UNITS[step]} year{'s' * (step > 1)} {'later' if later else 'earlier'}"
        answer = str(int(year) + (step if later else -step))
        yield f"if {told.supposed(what)} {way}, {_WHEN}", (answer,)


def _number(told: Clause, draw: random.Random) -> _Questions:
    if told.verb in BE or not (match := _NUMBER.match(told.rest)):
        return
    words, things = match["number"].replace(",", ""), match["things"]
    number = _UNITS.index(words) if words in _UNITS else int(words)
    step, more = draw.randint(2, _MOST), draw.random() < 0.5 or number <= _MOST + 1
    changed = number + (step if more else -step)
    way = f"{_UNITS[step]} {'more' if more else 'fewer'} {things}{match['rest'].rstrip()}"
    forms = (f"{changed:,}", str(changed), *([_UNITS[changed]] if changed < len(_UNITS) else []))
    yield f"if {told.supposed(way)}, how many {things} would that have been?", tuple(dict.fromkeys(forms))


def _until(told: Clause, draw: random.Random) -> _Questions:
    if (match := _UNTIL.match(told.rest)) and int(match["first"]) < int(match["last"]):
        step = draw.randint(2, _MOST)
        way = f"{match['what']} for {_UNITS[step]} more years".strip()
        yield f"if {told.supposed(way)}, until which year would that have been?", (str(int(match["last"]) + step),)


def _name(told: Clause, draw: random.Random) -> _Questions:
    if (match := _CALLED.match(told.rest)) and (name := match["name"].strip('"“”')) != told.subject:
        yield f"if {told.subject} had kept its original name, what would it be called?", (name,)


def _schedule(told: Clause, draw: random.Random) -> _Questions:
    if match := _SCHEDULED.match(told.rest):
        question = f"if {told.subject} had kept to the original schedule, when would that have been?"
        yield question, (match["date"].strip(" ,"),)


def _move(told: Clause, draw: random.Random) -> _Questions:
    passive = told.verb in BE
    if passive or told.verb in ("moved", "relocated", "transferred", "emigrated", "returned"):
        match = _MOVED.match(told.rest)
        if match and bool(match["how"]) == passive and match["old"] != match["new"]:
            rest = f"{match['how']}{match['what']} to {match['new']}".strip()
            question = f"if {told.supposed(rest, negated=True)}, where would {told.subject} have stayed?"
            yield question, (match["old"],)


def _succession(told: Clause, draw: random.Random) -> _Questions:
    if told.verb in ("succeeded", "replaced") and (match := _SUCCEEDED.match(told.rest)):
        role = match["role"].strip()
        question = f"if {told.subject} had not taken the place of another as {role}, who would have stayed {role}?"
        yield question, (match["old"],)


def _defeat(told: Clause, draw: random.Random) -> _Questions:
    if told.verb == "defeated" and (match := BEATEN.match(told.rest)):
        yield f"if {told.subject} had lost{match['where']}, who would have won?", (match["old"],)


def _causes(text: str) -> _Questions:
    for sentence in sentences(text):
        plain = re.sub(r"\s*\([^()]*\)", "", sentence).strip().removesuffix(".")
        if first := _CAUSE_FIRST.match(plain):
            effect, condition = clause(first["rest"][0].upper() + first["rest"][1:]), _without(first["cause"])
        elif last := _CAUSE.match(plain):
            effect, condition = clause(last["effect"]), _without(last["cause"])
        elif because := BECAUSE.match(plain):
            effect, reason = clause(because["effect"]), clause(because["cause"][0].upper() + because["cause"][1:])
            condition = reason.supposed(reason.rest, negated=True) if reason else ""
        else:
            continue
        if effect and condition and " not " not in f" {effect.rest} ":
            question = f"if {condition}, who or what would not have {effect.participle} {effect.rest.rstrip(' ,')}?"
            yield question, tuple(dict.fromkeys((effect.subject, re.sub(r"^(?:the|an?) ", "", effect.subject))))


def _without(cause: str) -> str:
    """A cause that is taken away; empty where it points to something outside the sentence."""
    if re.match(r"(?:this|that|these|those|it|its|his|her|their|them|which|what|how)\b", cause.strip(), re.IGNORECASE):
        return ""
    return f"it had not been for {lowered(cause.strip())}"


def _swapped(told: Sequence[Clause], kind: Kind, names: Names, draw: random.Random) -> _Questions:
    """Questions in which a name of that type in a clause becomes another of the corpus's names of the type."""
    for about, what, words, fact in _asked(told, names):
        if words == _WHERE and kind in ("place", "organisation"):
            continue  # the place may be that of the organisation
        for old, meant in _named(about, what, kind, names):
            if old == fact or _UNCLEAR_SWAP.search(what.replace(old, "")):
                continue
            new = names.other(old, kind, draw, _MOST_YEARS)
            question = f"if {meant.format(new=new)}, {words}"
            if new and not re.search(rf"\b{re.escape(fact)}\b", question):
                yield question, (fact,)


def _asked(told: Sequence[Clause], names: Names) -> Iterator[_Fact]:
    """Clauses without a fact that they tell, and the words that ask for it."""
    for about in told:
        if about.year:
            yield about, about.rest, _WHEN, about.year
        if match := _FACT_YEAR.match(about.rest):
            yield about, match["what"], _WHEN, match["fact"]
        if (match := _IN_PLACE.match(about.rest)) and names.kinds.get(match["fact"]) == "place":
            yield about, match["what"], _WHERE, match["fact"]
        match = _BY.match(about.rest) if about.verb in BE else None
        if match and names.kinds.get(match["fact"]) in ("person", "organisation"):
            yield about, match["what"] + match["after"], _WHO, match["fact"]


def _named(about: Clause, what: str, kind: Kind, names: Names) -> Iterator[tuple[str, str]]:
    """Each name of the type in a clause, and the clause supposed with "{new}" in its place."""
    subject = about.subject.removeprefix("the ")
    if about.verb in _DEEDS and names.kinds.get(subject) == kind and re.match(r"(?:the|a|an) |[A-Z\"“]", what):
        the = about.subject[: -len(subject)]
        yield subject, f"{the}{{new}} had {about.participle} {_plain(what)} instead of {about.subject}"
    done = {match["name"] for match in _DONE.finditer(what)} if kind == "person" else set()
    pattern = rf"{BEFORE}(?P<the>the )?(?P<name>{'' if kind == 'year' else NAME + '|'}{YEAR}){_AFTER}"
    for match in re.finditer(pattern, what):
        name, the = match["name"], match["the"] or ""
        if "'s " in name or (the and kind != "organisation"):
            continue
        if names.kinds.get(name) == kind or (name in done and name not in names.kinds):
            start, end = match.span("name")
            new = f"{{new}} instead of {the}{name}"
            yield name, about.supposed(_plain(what[:start]) + new + _plain(what[end:]))


def _plain(text: str) -> str:
    """A text that `format` leaves as it is."""
    return text.replace("{", "{{").replace("}", "}}")


_RULES: dict[str, Callable[[Clause, random.Random], _Questions]] = {
    "year": _year, "number": _number, "until": _until, "name": _name, "schedule": _schedule, "move": _move,
    "succession": _succession, "defeat": _defeat,
}  # fmt: skip
#: Name of a swap -> the type of the names that it swaps.
SWAPS: dict[str, Kind] = {f"swap-{kind}": kind for kind in KINDS}
RULES = (*_RULES, "cause", *SWAPS)
