"""Rules that make a counterfactual question of a passage, with its answer: computed, or words of the passage.

| rule | from the passage | question, answer |
|---|---|---|
| year | the mill was built in 1905 | If the mill had been built three years later, in which year would that have been? 1908 |
| number | Ann won 5 titles | If Ann had won two more titles, how many titles would that have been? 7 |
| until | Ann lived there from 1901 to 1907 | If Ann had lived there for two more years, until which year …? 1909 |
| name | originally called Elm Street | If Mill Lane had kept its original name, what would it be called? Elm Street |
| schedule | originally scheduled for 4 May 2020 | If … had kept to the original schedule, when would that have been? 4 May 2020 |
| move | moved from Kiel to Rome | If Ann had not moved to Rome, where would Ann have stayed? Kiel |
| succession | Ann replaced Ben as mayor | If Ann had not taken the place of another as mayor, who would have stayed mayor? Ben |
| defeat | Ann defeated Ben in the final | If Ann had lost in the final, who would have won? Ben |
| cause | The fair was cancelled due to rain | If it had not been for rain, who or what would not have been cancelled? the fair |
| swap-person | The mill was built by Ann in 1905 | If the mill had been built by Ben instead of Ann, in which year …? 1905 |
| swap-place | The club was formed in Kiel in 1905 | If the club had been formed in Rome instead of Kiel, …? 1905 |
| swap-organisation | Ann entered Kiel College in 1905 | If Ann had entered Rome College instead of Kiel College, …? 1905 |
| swap-year | Ann was born in 1905 in Kiel | If Ann had been born in 1911 instead of 1905, where would that have been? Kiel |

The last four take the other name, of the same type, from the corpus (`ifqa.training.synthetic.names`); the fact stays.
"""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ifqa.corpus.sentences import sentences
from ifqa.training.synthetic.clauses import NAME, YEAR, Clause, clause, clauses, lowered
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
_BEATEN = re.compile(rf"^(?P<old>{NAME})(?P<where> in (?:the|a|an) [^,.]{{3,60}})")
_CAUSE = re.compile(r"^(?P<effect>[^,]+?),? (?:because of|due to|as a result of|owing to) (?P<cause>[^,.]{4,70})$")
_CAUSE_FIRST = re.compile(r"^(?:Because of|Due to|As a result of|Owing to) (?P<cause>[^,.]{4,70}), (?P<rest>.+)$")
_BECAUSE = re.compile(r"^(?P<effect>[^,]+?),? because (?P<cause>(?!of\b)[^,]+)$")


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
_BEFORE = r"(?:^|\b(?:in|at|to|from|of|for|with|by|against|on|near|through) )"
_AFTER = r"(?=$|[.]| (?:in|at|on|by|with|for|from|against|of|under)\b)"
_MOST_YEARS = 30  # by which a year is moved


@dataclass(frozen=True, slots=True)
class Made:
    """A question that a rule made of a passage, with every form of its answer."""

    rule: str
    text: str
    answers: tuple[str, ...]


_Found = Iterator[tuple[str, tuple[str, ...]]]  # questions with their answers


def make(text: str, title: str, seed: str, names: Names) -> list[Made]:
    """One question by each rule that fits a passage, drawn from those that it makes; equal for equal arguments.

    Args:
        text: the passage.
        title: of its article; empty if it is unknown.
        seed: of the draws, such as "0 PASSAGE_ID".
        names: of the corpus, for the swaps.
    """
    told = list(clauses(text, title))
    made = []
    for name in RULES:
        draw = random.Random(f"{seed} {name}")
        found = _swapped(told, SWAPS[name], names, draw) if name in SWAPS else _RULES[name](told, text, draw)
        if several := list(dict.fromkeys(found)):
            question, answers = draw.choice(several)
            made.append(Made(name, question[0].upper() + question[1:], answers))
    return made


def _years(told: Sequence[Clause], text: str, draw: random.Random) -> _Found:
    for one, what, year in _dated(told):
        step, later = draw.randint(1, _MOST), draw.random() < 0.5
        way = f"{_UNITS[step]} year{'s' * (step > 1)} {'later' if later else 'earlier'}"
        answer = str(int(year) + (step if later else -step))
        yield f"if {one.supposed(what)} {way}, in which year would that have been?", (answer,)


def _dated(told: Sequence[Clause]) -> Iterator[tuple[Clause, str, str]]:
    """Clauses that tell their year, with the rest without it, and the year."""
    for one in told:
        found = None if one.year else _IN_YEAR.match(one.rest)
        what, year = (found["what"].strip(), found["year"]) if found else (one.rest, one.year)
        passive = one.verb in ("was", "were")
        if year and not _UNCLEAR.search(what) and (not passive or _PARTICIPLE.match(what)):
            yield one, what, year


def _numbers(told: Sequence[Clause], text: str, draw: random.Random) -> _Found:
    for one in told:
        if one.verb in ("was", "were") or not (found := _NUMBER.match(one.rest)):
            continue
        words = found["number"].replace(",", "")
        number = _UNITS.index(words) if words in _UNITS else int(words)
        step, more = draw.randint(2, _MOST), draw.random() < 0.5 or number <= _MOST + 1
        changed = number + (step if more else -step)
        way = f"{_UNITS[step]} {'more' if more else 'fewer'} {found['things']}{found['rest'].rstrip()}"
        forms = (f"{changed:,}", str(changed), *([_UNITS[changed]] if changed < len(_UNITS) else []))
        question = f"if {one.supposed(way)}, how many {found['things']} would that have been?"
        yield question, tuple(dict.fromkeys(forms))


def _until(told: Sequence[Clause], text: str, draw: random.Random) -> _Found:
    for one in told:
        if (found := _UNTIL.match(one.rest)) and int(found["first"]) < int(found["last"]):
            step = draw.randint(2, _MOST)
            way = f"{found['what']} for {_UNITS[step]} more years".strip()
            yield f"if {one.supposed(way)}, until which year would that have been?", (str(int(found["last"]) + step),)


def _names(told: Sequence[Clause], text: str, draw: random.Random) -> _Found:
    for one in told:
        if (found := _CALLED.match(one.rest)) and (name := found["name"].strip('"“”')) != one.subject:
            yield f"if {one.subject} had kept its original name, what would it be called?", (name,)


def _schedules(told: Sequence[Clause], text: str, draw: random.Random) -> _Found:
    for one in told:
        if found := _SCHEDULED.match(one.rest):
            question = f"if {one.subject} had kept to the original schedule, when would that have been?"
            yield question, (found["date"].strip(" ,"),)


def _moves(told: Sequence[Clause], text: str, draw: random.Random) -> _Found:
    for one in told:
        passive = one.verb in ("was", "were")
        if not (passive or one.verb in ("moved", "relocated", "transferred", "emigrated", "returned")):
            continue
        found = _MOVED.match(one.rest)
        if found and bool(found["how"]) == passive and found["old"] != found["new"]:
            rest = f"{found['how']}{found['what']} to {found['new']}".strip()
            question = f"if {one.supposed(rest, negated=True)}, where would {one.subject} have stayed?"
            yield question, (found["old"],)


def _successions(told: Sequence[Clause], text: str, draw: random.Random) -> _Found:
    for one in told:
        if one.verb in ("succeeded", "replaced") and (found := _SUCCEEDED.match(one.rest)):
            role = found["role"].strip()
            question = f"if {one.subject} had not taken the place of another as {role}, who would have stayed {role}?"
            yield question, (found["old"],)


def _defeats(told: Sequence[Clause], text: str, draw: random.Random) -> _Found:
    for one in told:
        if one.verb == "defeated" and (found := _BEATEN.match(one.rest)):
            yield f"if {one.subject} had lost{found['where']}, who would have won?", (found["old"],)


def _causes(told: Sequence[Clause], text: str, draw: random.Random) -> _Found:
    for sentence in sentences(text):
        plain = re.sub(r"\s*\([^()]*\)", "", sentence).strip().removesuffix(".")
        if first := _CAUSE_FIRST.match(plain):
            effect, condition = clause(first["rest"][0].upper() + first["rest"][1:]), _without(first["cause"])
        elif found := _CAUSE.match(plain):
            effect, condition = clause(found["effect"]), _without(found["cause"])
        elif because := _BECAUSE.match(plain):
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


def _swapped(
    told: Sequence[Clause], kind: Kind, names: Names, draw: random.Random
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Questions with their answers: a name of that type in a clause becomes another of the same type.

    Args:
        told: the clauses of a passage.
        kind: the type of the name that is swapped.
        names: of the corpus; names of no known type are not swapped.
        draw: draws the other name.
    """
    for one, what, words, fact in _asked(told, names):
        if words == _WHERE and kind in ("place", "organisation"):
            continue  # the place may be that of the organisation
        for old, meant in _named(one, what, kind, names):
            if old == fact or _UNCLEAR_SWAP.search(what.replace(old, "")):
                continue
            new = names.other(old, kind, draw, _MOST_YEARS)
            question = f"if {meant.format(new=new)}, {words}"
            if new and not re.search(rf"\b{re.escape(fact)}\b", question):
                yield question, (fact,)


def _asked(told: Sequence[Clause], names: Names) -> Iterator[_Fact]:
    """Clauses without a fact that they tell, and the words that ask for it."""
    for one in told:
        if one.year:
            yield one, one.rest, _WHEN, one.year
        if found := _FACT_YEAR.match(one.rest):
            yield one, found["what"], _WHEN, found["fact"]
        if (found := _IN_PLACE.match(one.rest)) and names.kinds.get(found["fact"]) == "place":
            yield one, found["what"], _WHERE, found["fact"]
        passive = one.verb in ("was", "were")
        if passive and (found := _BY.match(one.rest)) and names.kinds.get(found["fact"]) in ("person", "organisation"):
            yield one, found["what"] + found["after"], _WHO, found["fact"]


def _named(one: Clause, what: str, kind: Kind, names: Names) -> Iterator[tuple[str, str]]:
    """Each name of the type in a clause, and the clause supposed with "{new}" in its place."""
    subject = one.subject.removeprefix("the ")
    if one.verb in _DEEDS and names.kinds.get(subject) == kind and re.match(r"(?:the|a|an) |[A-Z\"“]", what):
        the = one.subject[: -len(subject)]
        yield subject, f"{the}{{new}} had {one.participle} {_plain(what)} instead of {one.subject}"
    done = {found["name"] for found in _DONE.finditer(what)} if kind == "person" else set()
    for found in re.finditer(
        rf"{_BEFORE}(?P<the>the )?(?P<name>{'' if kind == 'year' else NAME + '|'}{YEAR}){_AFTER}", what
    ):
        name, the = found["name"], found["the"] or ""
        if "'s " in name or (the and kind != "organisation"):
            continue
        if names.kinds.get(name) == kind or (name in done and name not in names.kinds):
            start, end = found.span("name")
            new = f"{{new}} instead of {the}{name}"
            yield name, one.supposed(_plain(what[:start]) + new + _plain(what[end:]))


def _plain(text: str) -> str:
    """A text that `format` leaves as it is."""
    return text.replace("{", "{{").replace("}", "}}")


#: Name -> a function of a passage's clauses, its text and a source of draws.
_RULES: dict[str, Callable[[Sequence[Clause], str, random.Random], _Found]] = {
    "year": _years,
    "number": _numbers,
    "until": _until,
    "name": _names,
    "schedule": _schedules,
    "move": _moves,
    "succession": _successions,
    "defeat": _defeats,
    "cause": _causes,
}
#: Name of a swap -> the type of the names that it swaps.
SWAPS: dict[str, Kind] = {f"swap-{kind}": kind for kind in KINDS}
RULES = (*_RULES, *SWAPS)
