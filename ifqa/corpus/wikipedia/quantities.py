"""Rules of the template table for quantities with a unit.

The conversion of {{convert}} is not computed. If the page shows only the converted number, the text is "".
"""

import re

from ifqa.corpus.wikipedia.numbers import Arguments, get, is_below_one, is_number, number, stripped, values
from ifqa.corpus.wikipedia.units import BY_SYMBOL, american, count_word, is_unit, unit_names

# Words between two values: with the unit's name, and with its symbol, which " {} × " repeats
_DASH = ("–", "–")
_BY = (" by ", " {} × ")
_RANGES = {word: (f" {word} ", f" {word} ") for word in "to|and|or|by|to about|and about|or about".split("|")}
_RANGES |= {"x": _BY, "×": _BY, "*": _BY, "&times;": _BY, "by(x)": _BY, "xx": (" × ", " × "), "+": (" + ", " + ")}
_RANGES |= dict.fromkeys(("+/-", "±", "&plusmn;"), (" ± ", " ± ")) | {"/": ("/", "/")}
_RANGES |= dict.fromkeys(("-", "–", "&ndash;", "−", "&minus;"), _DASH)
_RANGES |= {",": (", ", ", "), ", and": (", and ", ", and "), ", or": (", or ", ", or ")}
_RANGES |= {"to(-)": (" to ", "–"), "and(-)": (" and ", "–")}
_VAL_RANGES = {word: f" {word} " for word in ("to", "and", "or", "by")}
_VAL_RANGES |= {"-": "–", "–": "–", "−": "–", ",": ", ", "/": "/", "x": " {} × ", "×": " {} × "}
_VAL_UNITS = {"degC": "°C", "degF": "°F", "deg": "°", "arcmin": "′", "arcsec": "″", "ohm": "Ω", "angstrom": "Å"}
_MICRO = re.compile(r"\bu(?=(?:[mgsLlVAWFJNTKH]|Pa|Hz|eV|Wh|mol|rad|Sv|Gy)(?:[0-9/⋅·^]|$))")
_SUBUNITS = {"ft": "in", "yd": "ft", "mi": "yd ft ch furlong", "lb": "oz", "st": "lb", "LT": "cwt", "impgal": "impqt"}
_OUTPUT_ONLY = {"number", "output number only", "output only", "unit2", "out"}


def quantity(arguments: Arguments, short: bool = False) -> str:
    """{{convert|5|to|10|km|mi}}: the values with their unit as the article gives them, without the conversion."""
    parts = [stripped(value) for name, value in arguments.items() if name.isdigit()]
    abbr, disp = get(arguments, "abbr"), get(arguments, "disp")
    if not parts or not parts[0] or disp in _OUTPUT_ONLY:
        return ""
    if match := re.fullmatch(r"([0-9][0-9,.]{0,30})[-–]([0-9][0-9,.]{0,30})", parts[0]):
        parts[:1] = [match[1], "–", match[2]]
    grouped = arguments.get("comma") not in ("off", "gaps", "gaps3")
    numbers, words, at = [number(parts[0], grouped)], [], 1
    while at + 1 < len(parts) and parts[at] in _RANGES:
        words.append(_RANGES[parts[at]])
        numbers.append(number(parts[at + 1], grouped))
        at += 2
    code = parts[at] if at < len(parts) else ""
    if at + 2 < len(parts) and not is_unit(code) and is_number(parts[at + 1]) and is_unit(parts[at + 2]):
        return ""  # an unknown word between two values
    money = code[0] if re.match("[$£€¥]/", code) else ""
    one, many, symbol, power = unit_names(code.removeprefix(money))
    adjective = get(arguments, "adj", "sing")
    hyphen = adjective in ("on", "mid", "1")
    single = not words and not power and (parts[0].lstrip("-−") == "1" or is_below_one(parts[0]))
    short = abbr in ("on", "in", "unit", "mos") or (short and abbr not in ("off", "out", "none"))
    short = short or (code in BY_SYMBOL and abbr not in ("off", "none"))
    if get(arguments, "sp") == "us":
        one, many = american(one), american(many)
    unit = (one if single or hyphen else many) if not short or symbol == many else symbol
    if power and not (short and abbr == "on"):
        unit = f"{count_word(power)} {unit}"
    elif power:
        unit = f"×10^{power} {unit}"
    if disp == "unit":
        return unit
    between = [word[short] for word in words]
    if hyphen and not short:
        between = [word.replace(" ", "-") if word.strip().isalpha() else word for word in between]
        unit = unit.replace(" ", "-")
    pairs = zip(between, numbers[1:], strict=True)
    shown = money + numbers[0] + "".join(word.format(unit) + value for word, value in pairs)
    if not code or abbr == "values":
        return shown
    if code == "Mach":
        return f"Mach {shown}"
    text = _with_extra(arguments, adjective, parts[at + 1 :], shown, unit, "-" if hyphen and not short else " ")
    if at + 2 < len(parts) and is_number(parts[at + 1]) and parts[at + 2] in _SUBUNITS.get(code, "").split():
        rest = {"1": parts[at + 1], "2": parts[at + 2], "adj": "on" if hyphen else ""}
        text += ("-" if hyphen and not short else " ") + quantity(rest, short)
    return text


def _with_extra(arguments: Arguments, adjective: str, rest: list[str], shown: str, unit: str, blank: str) -> str:
    """The value and its unit, with the extra word of adj=pre before the unit or of adj=mid after it."""
    glue = "" if unit[0] in "/×" else blank
    extra = rest[-1] if rest and not is_number(rest[-1]) and not is_unit(rest[-1]) else ""
    if extra and adjective == "pre":
        return f"{shown} {extra} {unit}"
    if extra and adjective == "mid":
        return f"{shown}{glue}{unit}" + (extra if extra.startswith("-") else f" {extra}")
    return f"{shown}{glue}{unit}"


def value_of(arguments: Arguments) -> str:
    """{{val|5.1|0.3|e=6|u=kg}} -> (5.1±0.3)×10^6 kg; {{val|2|-|4|u=km}} -> 2–4 km."""
    parts, grouped = values(arguments), arguments.get("fmt") == "commas"
    unit, per = (_val_unit(get(arguments, *names)) for names in (("u", "ul"), ("up", "upl")))
    if per:
        unit += f"/{per}"
    blank = "" if not unit or unit[0] in "%′″/" or unit == "°" else " "
    power = get(arguments, "e").replace("-", "−")
    text = number(parts[0], grouped) if parts else ""
    if len(parts) > 2 and parts[1] in _VAL_RANGES:
        if power or not all(word in _VAL_RANGES for word in parts[1::2]):
            return ""
        for word, value in zip(parts[1::2], parts[2::2], strict=False):
            text += _VAL_RANGES[word].format(unit) + number(value, grouped)
    elif len(parts) == 2 and parts[1][0] == "(":
        text += parts[1]
    elif len(parts) > 1:
        up, down = number(parts[1].lstrip("+±"), grouped), number(parts[-1].lstrip("-−"), grouped)
        text += f"±{up}" if len(parts) == 2 else f" +{up} −{down}"
        text = f"({text})" if power else text
    if power:
        text += ("×" if text else "") + "10^" + power
    text = get(arguments, "p") + text + get(arguments, "end") + get(arguments, "s")
    return text + blank + unit if text else ""


def _val_unit(code: str) -> str:
    return _MICRO.sub("μ", _VAL_UNITS.get(code, code))


def height(arguments: Arguments) -> str:
    """{{height|ft=6|in=1}} -> 6 ft 1 in; {{height|m=1.85}} -> 1.85 m."""
    return " ".join(f"{number(value)} {unit}" for unit in ("m", "cm", "ft", "in") if (value := get(arguments, unit)))


def track_gauge(arguments: Arguments) -> str:
    """{{track gauge|1435mm}} -> 1,435 mm; {{track gauge|3ft6in}} -> 3 ft 6 in; "" for a gauge that has a name."""
    gauge = get(arguments, "1").replace(",", "")[:40]
    if gauge in ("sg", "standard"):
        return "1,435 mm"
    length = r" ?([0-9.+/]{1,9}) ?(mm|ft|in)"
    if not re.fullmatch(rf"(?:{length})+", gauge):
        return ""
    return " ".join(f"{number(value)} {unit}" for value, unit in re.findall(length, gauge))
