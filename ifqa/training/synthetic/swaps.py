"""Questions that suppose another person, place, organisation or year in a clause, and ask for a fact of it that stays.

"The mill was built by Ann Lee in 1905." If the mill had been built by Ben Fox instead of Ann Lee, in which year would that have
been? 1905. The other name is one of the same type from the corpus (`ifqa.training.synthetic.names`).
"""

import random
import re
from collections.abc import Iterator, Sequence

from ifqa.training.synthetic.clauses import NAME, YEAR, Clause
from ifqa.training.synthetic.names import PERSON, Kind, Names

_Asked = tuple[Clause, str, str, str]  # a clause, its rest without a fact, the words that ask for the fact, the fact
_WHEN, _WHERE, _WHO = (
    "in which year would that have been?",
    "where would that have been?",
    "by whom would that have been done?",
)
_IN_YEAR = re.compile(rf"^(?P<what>.*?) ?\bin (?:[A-Z][a-z]+ )?(?P<fact>{YEAR})(?=$|[,.]| and | after | before )")
_IN_PLACE = re.compile(rf"^(?P<what>.*?) (?:in|at) (?P<fact>{NAME})(?=$|[,.])")
_BY = re.compile(rf"^(?P<what>[a-z].*?) by (?P<fact>{NAME})(?P<after>(?: (?:in|at) {NAME}| in {YEAR})?)$")
#: A second clause, a number, or a pointer to something else: what would change with the swap is not sure.
_UNCLEAR = re.compile(
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


def swapped(
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
        for old, meant in _found(one, what, kind, names):
            if old == fact or _UNCLEAR.search(what.replace(old, "")):
                continue
            new = names.other(old, kind, draw, _MOST_YEARS)
            question = f"if {meant.format(new=new)}, {words}"
            if new and not re.search(rf"\b{re.escape(fact)}\b", question):
                yield question, (fact,)


def _asked(told: Sequence[Clause], names: Names) -> Iterator[_Asked]:
    """Clauses without a fact that they tell, and the words that ask for it."""
    for one in told:
        if one.year:
            yield one, one.rest, _WHEN, one.year
        if found := _IN_YEAR.match(one.rest):
            yield one, found["what"], _WHEN, found["fact"]
        if (found := _IN_PLACE.match(one.rest)) and names.kinds.get(found["fact"]) == "place":
            yield one, found["what"], _WHERE, found["fact"]
        passive = one.verb in ("was", "were")
        if passive and (found := _BY.match(one.rest)) and names.kinds.get(found["fact"]) in ("person", "organisation"):
            yield one, found["what"] + found["after"], _WHO, found["fact"]


def _found(one: Clause, what: str, kind: Kind, names: Names) -> Iterator[tuple[str, str]]:
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
