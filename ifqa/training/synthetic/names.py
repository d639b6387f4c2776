"""Names of a corpus by their type: persons, places, organisations and years, by plain rules and without a model.

A name is a person where it stands before "was born" or years of a life, or after an occupation; a place where somebody or
something is said to be born, based or located in it; an organisation by its last word. A name that is of two types is of none.
"""

import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, get_args

from ifqa.training.synthetic.clauses import YEAR

Kind = Literal["person", "place", "organisation", "year"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_WORD = r"[A-Z][a-zà-ÿ]+(?:['’-][A-Z]?[a-zà-ÿ]+)*"
PERSON = rf"{_WORD}(?: [A-Z]\.)*(?: (?:de|von|van|der|da))* {_WORD}(?: {_WORD})?"
_ROLE = (
    r"(?:actor|actress|architect|artist|author|biologist|chemist|coach|comedian|composer|conductor|dancer|designer|director|"
    r"economist|engineer|explorer|filmmaker|footballer|guitarist|historian|inventor|journalist|mathematician|musician|novelist|"
    r"painter|philosopher|photographer|physicist|pianist|playwright|poet|politician|producer|screenwriter|sculptor|singer|"
    r"songwriter|writer)"
)
_COUNTRIES = (
    "Argentina Australia Austria Belgium Brazil Bulgaria Canada Chile China Colombia Cuba Denmark Egypt England Finland France "
    "Germany Greece Hungary India Indonesia Iran Iraq Ireland Israel Italy Japan Kenya Lebanon Malaysia Mexico Morocco "
    "Netherlands Nigeria Norway Pakistan Peru Poland Portugal Romania Russia Scotland Serbia Spain Sweden Switzerland "
    "Syria Thailand Turkey Ukraine Vietnam Wales"
).split()
_STATES = (
    "Alabama Alaska Arizona Arkansas California Colorado Connecticut Delaware Florida Hawaii Illinois Indiana "
    "Iowa Kansas Kentucky Louisiana Maine Maryland Massachusetts Michigan Minnesota Mississippi Missouri Montana Nebraska Nevada "
    "Ohio Oklahoma Ontario Oregon Pennsylvania Quebec Tennessee Texas Utah Vermont Virginia Wisconsin Wyoming"
).split()
_PERSONS = re.compile(
    rf"\b(?P<name>{PERSON}) (?:was born\b|\((?:born|[^()]{{0,40}}?\b1\d\d\d ?[–-] ?[^()]{{0,20}}?(?:1\d|20)\d\d\)))"
    rf"|\b{_ROLE} (?P<known>{PERSON})"
)
_PLACES = re.compile(
    r"\b(?:(?:born|based|located|situated|headquartered|raised|settled|lived|died) in|(?:city|town|village|port) of)"
    rf" (?P<place>{_WORD}(?: {_WORD}){{0,2}})(?=[.,;)])"
    rf"|\b(?:in|at|to|from) (?P<within>{_WORD}(?: {_WORD}){{0,2}}), (?:{'|'.join([*_COUNTRIES, *_STATES])})\b"
)
_ORGANISATION = (
    r"(?:University|College|Institute|Academy|Company|Corporation|Records|Pictures|Studios|Press|Museum|Association|Society|Club|"
    r"Party|Orchestra|Bank|Airlines|Railway|Foundation|Institution|Theatre)"
)
_ORGANISATIONS = re.compile(rf"\b(?P<organisation>(?:{_WORD} ){{1,4}}{_ORGANISATION})(?! of\b| for\b|\w)")
_NO_NAME = re.compile(
    r"\b(?:The|A|An|In|At|On|By|And|For|From|Of|With|After|Before|When|While|His|Her|Its|Their|This|That|January|February|March|"
    r"April|May|June|July|August|September|October|November|December|North|South|East|West|Northern|Southern|Eastern|Western|"
    rf"Central|New York Times|{_ORGANISATION})\b"
)


class Names:
    """The names of a corpus: `kinds` has the type of each, `of` all names of a type in the order of the alphabet."""

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self.kinds = kinds
        self.of: dict[Kind, Sequence[str]] = {
            kind: sorted(name for name, own in kinds.items() if own == kind) for kind in KINDS
        }

    def other(self, old: str, kind: Kind, draw: random.Random, most_years: int) -> str:
        """Another name of the type; empty if there is none.

        A year is at most `most_years` from the old one, a country becomes a country, and a university a university.
        """
        several = [name for name in self.of[kind] if name != old and _alike(old, name, kind, most_years)]
        return draw.choice(several) if several else ""


def _alike(one: str, other: str, kind: Kind, most_years: int) -> bool:
    if kind == "year":
        return abs(int(one) - int(other)) <= most_years
    if kind == "place":
        return all((one in several) == (other in several) for several in (_COUNTRIES, _STATES))
    return kind == "person" or one.split()[-1] == other.split()[-1]


def names_in(texts: Iterable[str]) -> Names:
    """The names of these texts that are of one type."""
    seen: dict[str, Counter[Kind]] = {}
    for text in texts:
        found = [(one["name"] or one["known"], KINDS[0]) for one in _PERSONS.finditer(text)]
        found += [(one["place"] or one["within"], KINDS[1]) for one in _PLACES.finditer(text)]
        found = [(name, kind) for name, kind in found if not _NO_NAME.search(name)]
        found += [
            (re.sub(r"^(?:The|His|Her|Its|In|At|A) ", "", one["organisation"]), KINDS[2])
            for one in _ORGANISATIONS.finditer(text)
        ]
        found = [(name, kind) for name, kind in found if kind != "organisation" or " " in name]
        found += [(one[1], KINDS[3]) for one in re.finditer(rf"\bin ({YEAR})\b", text)]
        for name, kind in found:
            seen.setdefault(name, Counter())[kind] += 1
    kinds = {name: next(iter(counts.items())) for name, counts in seen.items() if len(counts) == 1}
    return Names(
        {name: kind for name, (kind, times) in kinds.items() if times > 1 or kind != "place"}
        | dict.fromkeys((*_COUNTRIES, *_STATES), KINDS[1])
    )
