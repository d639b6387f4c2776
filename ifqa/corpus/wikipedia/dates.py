"""Rules of the template table for dates, spans of years and ages.

No rule depends on today's date. A blank argument keeps its place: {{birth date|1950||4}} has no month.
"""

import re

from ifqa.corpus.wikipedia.numbers import Arguments, Rule, get, is_on, places, values

_MONTHS = "January February March April May June July August September October November December".split()
_ISO = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_DAY_FIRST = re.compile(r"([0-9]{1,2}) ([A-Za-z]{3,9}) ([0-9]{4})")
_MONTH_FIRST = re.compile(r"([A-Za-z]{3,9}) ([0-9]{1,2}), ([0-9]{4})")


def _date(parts: list[str], day_first: bool = False) -> str:
    """Year, month and day, as far as known -> "May 1, 1999" or "1 May 1999"; a year that is no number is unchanged."""
    if not re.fullmatch(r"-?[0-9]{1,9}", parts[0]):
        return parts[0]
    year = parts[0].lstrip("-") + (" BC" if parts[0][0] == "-" else "")
    if not (month := _month(parts[1])):
        return year
    if not re.fullmatch("0?[1-9]|[1-9][0-9]", parts[2]):
        return f"{month} {year}"
    day = parts[2].lstrip("0")
    return f"{day} {month} {year}" if day_first else f"{month} {day}, {year}"


def _month(text: str) -> str:
    if re.fullmatch("0?[1-9]|1[0-2]", text):
        return _MONTHS[int(text) - 1]
    return next(
        (month for month in _MONTHS if len(text) > 2 and month.lower().startswith(text.lower().rstrip("."))), ""
    )


def date(arguments: Arguments) -> str:
    """{{start date|1999|5|1|df=y}}, {{birth date and age|…}} without the age, which depends on today."""
    return _date(places(arguments, 3), is_on(arguments, "df") or arguments.get("format") == "dmy")


def free_date(arguments: Arguments) -> str:
    """{{date|1999-05-01|mdy}}, {{dts|1 May 1999}}: a date as one argument, or as three like {{start date}}."""
    text, second, third = places(arguments, 3)
    if third or _month(second):
        return date(arguments)
    order = (second or get(arguments, "format")).lower()
    if match := _ISO.fullmatch(text):
        parts = list(match.groups())
        order = order or "dmy"
    elif match := _DAY_FIRST.fullmatch(text):
        parts = [match[3], match[2], match[1]]
    elif match := _MONTH_FIRST.fullmatch(text):
        parts = [match[3], match[1], match[2]]
    else:
        return text
    if order == "iso" and (month := _month(parts[1])):
        return f"{parts[0]}-{_MONTHS.index(month) + 1:02}-{int(parts[2]):02}"
    return _date(parts, order == "dmy") if order in ("dmy", "mdy") else text


def date_span(arguments: Arguments) -> str:
    """{{start and end dates|1999|5|1|2000|6|2}}."""
    parts, day_first = places(arguments, 6), is_on(arguments, "df")
    return " – ".join(filter(None, (_date(parts[:3], day_first), _date(parts[3:], day_first))))


def _age(end: list[str], start: list[str]) -> str:
    """The years from one year, month and day to another: "56"; "55–56" if a month or a day is missing."""
    if not re.fullmatch("[0-9]{1,4}", end[0]) or not re.fullmatch("[0-9]{1,4}", start[0]):
        return ""
    years = int(end[0]) - int(start[0])
    low = years - 1
    end, start = _numbered(end), _numbered(start)
    for late, early in zip(end[1:], start[1:], strict=True):
        if not re.fullmatch("[0-9]{1,2}", late) or not re.fullmatch("[0-9]{1,2}", early):
            break
        if int(late) != int(early):
            low = years = years - (int(late) < int(early))
            break
    else:
        low = years
    if years < 0:
        return ""
    return str(years) if low in (years, -1) else f"{low}–{years}"


def _numbered(parts: list[str]) -> list[str]:
    """Year, month and day, with the month as a number."""
    month = _month(parts[1])
    return [parts[0], str(_MONTHS.index(month) + 1) if month else "", parts[2]]


def _aged(shown: str, years: str) -> str:
    return f"{shown} (aged {years})" if years else shown


def date_and_age(arguments: Arguments) -> str:
    """{{death date and age|1865|4|15|1809|2|12}} -> April 15, 1865 (aged 56)."""
    parts = places(arguments, 6)
    return _aged(_date(parts[:3], is_on(arguments, "df")), _age(parts[:3], parts[3:]))


def year_and_age(arguments: Arguments) -> str:
    """{{death year and age|2000|1950}} -> 2000 (aged 49–50); the third argument is the month of death."""
    death, birth, month = places(arguments, 3)
    return _aged(_date([death, month, ""]), _age([death, "", ""], [birth, "", ""]))


def age(arguments: Arguments) -> str:
    """{{age|1900|2|1|1950|1|1}} -> 49; ages today are left out."""
    parts = places(arguments, 6)
    return _age(parts[3:], parts[:3]) if all(parts) else ""


def as_of(arguments: Arguments) -> str:
    """{{as of|2010|5}} -> As of May 2010; lc= (lower case), since=, pre=, post=, alt= (other words)."""
    if shown := get(arguments, "alt"):
        return shown
    shown = _date(places(arguments, 3), get(arguments, "df").lower() not in ("us", "mdy"))
    if not is_on(arguments, "bare"):
        word = "Since" if is_on(arguments, "since") else "As of"
        shown = " ".join(filter(None, (word, get(arguments, "pre"), shown)))
        if is_on(arguments, "lc"):
            shown = shown[0].lower() + shown[1:]
    return shown + get(arguments, "post")


def span(word: str) -> Rule:
    """{{reign|1066|1087}} -> r. 1066–1087."""

    def rule(arguments: Arguments) -> str:
        years = values(arguments)[:2]
        dash = " – " if any(" " in year for year in years) else "–"
        return f"{word} {dash.join(years)}".rstrip()

    return rule


def circa(arguments: Arguments) -> str:
    """{{circa|1800|1810}} -> c. 1800 – c. 1810."""
    return " – ".join(f"c. {year}" for year in values(arguments)[:2]) or "c."


def old_style_date(arguments: Arguments) -> str:
    """{{OldStyleDate|9 March|1814|25 February}} -> 9 March [O.S. 25 February] 1814."""
    day, year, old = places(arguments, 3)
    return " ".join(filter(None, (day, f"[O.S. {old}]" if old else "", year)))


def old_style_date_year(arguments: Arguments) -> str:
    """{{OldStyleDateDY|4 January|1643|25 December 1642}} -> 4 January 1643 [O.S. 25 December 1642]."""
    day, year, old = places(arguments, 3)
    return " ".join(filter(None, (day, year, f"[O.S. {old}]" if old else "")))


def new_style_date(arguments: Arguments) -> str:
    """{{OldStyleDateNY|25 December 1642|4 January 1643}} -> 25 December 1642 [N.S. 4 January 1643]."""
    old, new = places(arguments, 2)
    return f"{old} [N.S. {new}]" if new else old


def season(arguments: Arguments) -> str:
    """{{nhly|1998}} -> 1998–99."""
    year = get(arguments, "1")
    return f"{year}–{(int(year) + 1) % 100:02}" if re.fullmatch("[0-9]{4}", year) else year
