"""Numbers, quantities and dates as templates write them out: rules of the table in templates.py.

Fractions are "1/2", powers "10^6", units "km2". The conversion in brackets of {{convert}} is not computed, nor is
anything that depends on today.
"""

import re
from collections.abc import Callable

from ifqa.wikipedia.names import unit_names

Arguments = dict[str, str]  # "1", "2", ... the positional ones as they are; the named ones stripped
Rule = Callable[[Arguments], str]

GAP = "\x03"  # what a dropped template leaves; no XML document, so no dump, can hold this character
_BLANK = f" \t\n{GAP}"
_DECIMAL = re.compile(r"([-+−]?)([0-9]{1,30})((?:\.[0-9]+)?)")
_FRACTION = re.compile(r"([-+−]?)(?:([0-9]{1,30})[+ ])?([0-9]{1,30})/([0-9]{1,30})")
_SCIENTIFIC = re.compile(r"([-+−]?[0-9.]{1,30})[eE]\+?([-−]?[0-9]{1,9})")
_MONTHS = "January February March April May June July August September October November December".split()
_RANGES = {"by(x)": " by ", "x": " by ", "xx": " × ", "×": " × ", "*": " × ", "+/-": " ± ", "±": " ± ", "+": " + "}
_RANGES |= {"-": "–", "–": "–", "&ndash;": "–", ",": ", ", "/": "/", "to(-)": " to ", "and(-)": " and "}
_RANGES |= {word: f" {word} " for word in ("to", "and", "or", "by", "to about", "and about", "or about")}
_SUBUNITS = {"ft": "in", "yd": "ft", "mi": "yd ft ch furlong", "lb": "oz", "st": "lb", "LT": "cwt", "impgal": "impqt"}


def get(arguments: Arguments, *names: str) -> str:
    """The first of these arguments that is not blank."""
    for name in names:
        if name in arguments and (value := arguments[name].strip(_BLANK)):
            return value
    return ""


def values(arguments: Arguments) -> list[str]:
    """The positional arguments that are not blank."""
    return [shown for name, value in arguments.items() if name.isdigit() and (shown := value.strip(_BLANK))]


def is_on(arguments: Arguments, name: str) -> bool:
    return arguments.get(name, "").strip().lower() not in ("", "no", "n", "off", "0", "false")


# ---- numbers ----


def number(text: str, grouped: bool = True) -> str:
    """1234567 -> 1,234,567; -5 -> −5; 1+1/2 -> 1 1/2; 3e6 -> 3×10^6; anything else as it is."""
    if (match := _DECIMAL.fullmatch(text)) is not None:
        sign, whole, decimals = match.groups()
        if grouped and len(whole) > 3 and whole[0] != "0":
            whole = f"{int(whole):,}"
        return sign.replace("-", "−") + whole + decimals
    if (match := _FRACTION.fullmatch(text)) is not None:
        sign, whole, top, bottom = match.groups()
        return sign.replace("-", "−") + (f"{whole} " if whole else "") + f"{top}/{bottom}"
    if (match := _SCIENTIFIC.fullmatch(text)) is not None:
        return f"{match[1]}×10^{match[2]}".replace("-", "−")
    return text


def _is_number(text: str) -> bool:
    return text.replace(",", "")[:40].lstrip("-−+").replace(".", "").replace("/", "").replace("+", "").isdecimal()


def quantity(arguments: Arguments, short: bool = False) -> str:
    """{{convert|5|to|10|km|mi}}: the values with their unit as the article gives them, without the conversion."""
    parts = [value.strip(_BLANK) for name, value in arguments.items() if name.isdigit()]
    if not parts or not parts[0]:
        return ""
    grouped = arguments.get("comma") not in ("off", "gaps", "gaps3")
    short = arguments.get("abbr") in ("on", "in") or (short and arguments.get("abbr") not in ("off", "out"))
    hyphen = arguments.get("adj", arguments.get("sing")) in ("on", "mid", "1")
    shown, at, american = [number(parts[0], grouped)], 1, arguments.get("sp") == "us"
    while at + 1 < len(parts) and parts[at] in _RANGES:
        shown += [_RANGES[parts[at]], number(parts[at + 1], grouped)]
        at += 2
    code = parts[at] if at < len(parts) else ""
    if not code or arguments.get("abbr") == "values" or arguments.get("disp") == "number":
        return "".join(shown)
    one, many, symbol = unit_names(code, american)
    pairs = at + 2 < len(parts) and _is_number(parts[at + 1]) and parts[at + 2] in _SUBUNITS.get(code, "").split()
    if short or symbol[0] == "°":
        for position in range(1, len(shown), 2):
            if parts[position] == "x":  # which is "by" where the unit is written out
                shown[position] = f" {symbol} × "
        text = "".join(shown) + ("" if symbol[0] == "/" else " ") + symbol
    elif hyphen:
        text = "-".join("".join(shown).split(" ") + one.split(" "))
    else:
        single = len(shown) == 1 and (parts[0].lstrip("-−") == "1" or _is_below_one(parts[0]))
        text = f"{''.join(shown)} {one if single else many}"
    if pairs:
        rest: Arguments = {"1": parts[at + 1], "2": parts[at + 2]}
        text += ("-" if hyphen and not short else " ") + quantity(rest | {"adj": "on" if hyphen else ""}, short)
    if arguments.get("adj") == "mid" and len(parts) > at + 1:  # its words stand last
        text += parts[-1] if parts[-1].startswith("-") else f" {parts[-1]}"
    return text


def _is_below_one(text: str) -> bool:
    """Whether it is a fraction that takes the singular: half of it is "1/2 mile", but "0.5 miles"."""
    match = _FRACTION.fullmatch(text)
    return match is not None and not match[2] and int(match[3]) < int(match[4])


def formatted(arguments: Arguments) -> str:
    """{{formatnum:1234567}}; with R as its second argument the marks are taken away."""
    value, bar, flag = get(arguments, "1").partition("|")
    return value.replace(",", "") if bar and flag.strip() == "R" else number(value.strip(_BLANK)).replace("−", "-")


def fraction(arguments: Arguments) -> str:
    """{{frac|3|1|2}} -> 3 1/2; {{frac|3}} -> 1/3; {{sfrac|''n'' + 1|2}} -> (n + 1)/2."""
    parts = [value.replace("''", "") for value in values(arguments)]
    whole = f"{parts[0]} " if len(parts) > 2 else ""
    parts = [f"({part})" if " " in part else part for part in parts[-2:]]
    return f"{whole}{'/'.join(parts if len(parts) > 1 else ['1', *parts])}" if parts else ""


def value_of(arguments: Arguments) -> str:
    """{{val|5.1|0.3|e=6|u=kg}} -> 5.1±0.3×10^6 kg."""
    parts = [number(value, arguments.get("fmt") == "commas") for value in values(arguments)]
    text = parts[0] if parts else ""
    if len(parts) == 2:
        text += parts[1] if parts[1][0] == "(" else f"±{parts[1]}"
    elif len(parts) > 2:
        text += f" +{parts[1].lstrip('+')} −{parts[2].lstrip('−')}"
    if (power := get(arguments, "e")) != "":
        text += ("×" if text else "") + "10^" + power.replace("-", "−")
    text = get(arguments, "p") + text + get(arguments, "s")
    if unit := get(arguments, "u", "ul"):
        text += unit if unit[0] in "%°" and unit != "°C" else f" {unit}"
    per = get(arguments, "up", "upl")
    return text + (f"/{per}" if per else "")


def power(before: str) -> Rule:
    """{{e|-6}} -> ×10^−6."""
    return lambda arguments: before + exponent.replace("-", "−") if (exponent := get(arguments, "1")) else ""


def percentage(arguments: Arguments) -> str:
    """{{percentage|1|4}} -> 25%; the third argument is the number of decimals."""
    parts = [value.replace(",", "") for value in values(arguments)]
    if len(parts) < 2 or not all(_DECIMAL.fullmatch(value) and len(value) < 30 for value in parts[:2]):
        return f"{parts[0]}%" if len(parts) == 1 else ""
    part, whole = (float(value.replace("−", "-")) for value in parts[:2])
    decimals = int(parts[2]) if len(parts) > 2 and parts[2] in set("0123456789") else 0
    return f"{100 * part / whole:.{decimals}f}%" if whole else ""


def ordinal(arguments: Arguments) -> str:
    value = get(arguments, "1")
    ending = "th" if value[-2:-1] == "1" else {"1": "st", "2": "nd", "3": "rd"}.get(value[-1:], "th")
    return value + ending if value[-1:].isdigit() else value


def money(symbol: str) -> Rule:
    """The sign alone without an argument; nothing for an amount that was computed, and so dropped."""

    def rule(arguments: Arguments) -> str:
        amount = get(arguments, "1")
        return symbol + number(amount) if amount else "" if "1" in arguments else symbol

    return rule


def currency(signs: dict[str, str]) -> Rule:
    """{{currency|5|GBP}} -> £5; a currency without a sign is named by its code."""
    return lambda arguments: money(signs.get(code := get(arguments, "2"), f"{code} ".lstrip()))(arguments)


def chemical(arguments: Arguments) -> str:
    return re.sub(r"_\{([^{}]*+)\}|[_^](?=[0-9])", r"\1", "".join(values(arguments)))


def nuclide(arguments: Arguments) -> str:
    """{{nuclide|lithium|7}} -> lithium-7, where the page has the sign of the element."""
    return "-".join(values(arguments)[:2])


# ---- dates ----


def _date(parts: list[str], day_first: bool = False) -> str:
    """Year, month, day, as far as they are known -> "May 1, 1999" or "1 May 1999"; what is no number stays as it is."""
    if not parts or not re.fullmatch(r"-?[0-9]{1,9}", parts[0]):
        return parts[0] if parts else ""
    year = parts[0].lstrip("-") + (" BC" if parts[0][0] == "-" else "")
    if len(parts) < 2 or not (month := _month(parts[1])):
        return year
    if len(parts) < 3 or not re.fullmatch("0?[0-9]|[0-9]{2}", parts[2]):
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
    """{{start date|1999|5|1|df=y}}, {{birth date and age|…}} without the age, which is of today; {{date|1999-05-01}}."""
    parts = values(arguments)
    day_first = is_on(arguments, "df") or arguments.get("format") == "dmy"
    if len(parts) < 3 and parts and (match := re.fullmatch(r"([0-9]{4})-([0-9]{2})-([0-9]{2})", parts[0])):
        return _date(list(match.groups()), parts[-1].lower() not in ("mdy", "iso"))
    return _date(parts[:3], day_first)


def date_span(arguments: Arguments) -> str:
    """{{start and end dates|1999|5|1|2000|6|2}}."""
    parts, day_first = values(arguments), is_on(arguments, "df")
    return " – ".join(_date(parts[at : at + 3], day_first) for at in range(0, min(len(parts), 6), 3))


def _age(end: list[str], start: list[str]) -> int | None:
    if not all(re.fullmatch("[0-9]{1,4}", part) for part in end + start):
        return None
    return int(end[0]) - int(start[0]) - ([int(part) for part in end[1:]] < [int(part) for part in start[1:]])


def date_and_age(arguments: Arguments) -> str:
    """{{death date and age|1865|4|15|1809|2|12}} -> April 15, 1865 (aged 56)."""
    parts = values(arguments)
    shown = _date(parts[:3], is_on(arguments, "df"))
    years = _age(parts[:3], parts[3:6]) if len(parts) > 5 else None
    return shown if years is None else f"{shown} (aged {years})"


def year_and_age(arguments: Arguments) -> str:
    """{{death year and age|2000|1950}} -> 2000 (aged 49–50)."""
    parts = values(arguments)
    shown = _date(parts[:1])
    years = _age(parts[:1], parts[1:2]) if len(parts) > 1 else None
    return shown if years is None else f"{shown} (aged {years - 1}–{years})"


def age(arguments: Arguments) -> str:
    """{{age|1900|2|1|1950|1|1}} -> 49; an age today is not said."""
    parts = values(arguments)
    years = _age(parts[3:6], parts[:3]) if len(parts) > 5 else None
    return "" if years is None else str(years)


def as_of(arguments: Arguments) -> str:
    """{{as of|2010|5}} -> As of May 2010; lc= (small letter), since=, pre=, post=, alt= (the words instead)."""
    if shown := get(arguments, "alt"):
        return shown
    shown = _date(values(arguments)[:3], get(arguments, "df").lower() not in ("us", "mdy"))
    if not is_on(arguments, "bare"):
        word = "Since" if is_on(arguments, "since") else "As of"
        shown = " ".join(filter(None, (word, get(arguments, "pre"), shown)))
        if is_on(arguments, "lc"):
            shown = shown[0].lower() + shown[1:]
    return shown + get(arguments, "post")


def span(word: str, dash: str = "–") -> Rule:
    """{{reign|1066|1087}} -> r. 1066–1087."""

    def rule(arguments: Arguments) -> str:
        years = values(arguments)[:2]
        between = f" {dash} " if any(" " in year for year in years) else dash
        return f"{word} {between.join(years)}".rstrip()

    return rule


def circa(arguments: Arguments) -> str:
    """{{circa|1800|1810}} -> c. 1800 – c. 1810."""
    return " – ".join(f"c. {year}" for year in values(arguments)[:2]) or "c."


def old_style_date(arguments: Arguments) -> str:
    """{{OldStyleDate|9 March|1814|25 February}} -> 9 March [O.S. 25 February] 1814."""
    parts = values(arguments)
    if len(parts) < 3:
        return " ".join(parts)
    return f"{parts[0]} [O.S. {parts[2]}] {parts[1]}"


def season(arguments: Arguments) -> str:
    """{{nhly|1998}} -> 1998–99."""
    year = get(arguments, "1")
    return f"{year}–{(int(year) + 1) % 100:02}" if re.fullmatch("[0-9]{4}", year) else year


def track_gauge(arguments: Arguments) -> str:
    """{{track gauge|1435mm}} -> 1,435 mm; {{track gauge|3ft6in}} -> 3 ft 6 in."""
    gauge = get(arguments, "1")
    parts = re.findall(r"([0-9.]{1,9}) ?(mm|ft|in)", gauge[:40])
    return " ".join(f"{number(value)} {unit}" for value, unit in parts) or ("1,435 mm" if gauge == "sg" else "")
