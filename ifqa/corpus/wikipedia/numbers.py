"""Rules of the template table for numbers, and access to a template's arguments.

Fractions are "1/2", powers "10^6".
"""

import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal

Arguments = dict[str, str]  # "1", "2", ... are positional arguments, unchanged; named arguments are stripped
Rule = Callable[[Arguments], str]

GAP = "\x03"  # stands for a dropped template; XML forbids this character, so no dump contains it
_BLANK = f" \t\n{GAP}"
_DECIMAL = re.compile(r"([-+−]?)([0-9]{1,30})((?:\.[0-9]+)?)")
_FRACTION = re.compile(r"([-+−]?)(?:([0-9]{1,30})[-+ ])?([0-9]{1,30})//?([0-9]{1,30})")
_CHARGE = re.compile(r"([0-9]*+)([-+−])")
_SCIENTIFIC = re.compile(r"([-+−]?[0-9.]{1,30})[eE]\+?([-−]?[0-9]{1,9})")


def get(arguments: Arguments, *names: str) -> str:
    """The first of these arguments that is not blank, else ""."""
    for name in names:
        if name in arguments and (value := arguments[name].strip(_BLANK)):
            return value
    return ""


def values(arguments: Arguments) -> list[str]:
    """The positional arguments that are not blank."""
    return [shown for name, value in arguments.items() if name.isdigit() and (shown := value.strip(_BLANK))]


def places(arguments: Arguments, count: int) -> list[str]:
    """The first `count` positional arguments, including blank ones: the place of an argument is its meaning."""
    return [get(arguments, str(place)) for place in range(1, count + 1)]


def stripped(value: str) -> str:
    return value.strip(_BLANK)


def is_on(arguments: Arguments, name: str) -> bool:
    return arguments.get(name, "").strip().lower() not in ("", "no", "n", "off", "0", "false")


# ---- numbers ----


def number(text: str, grouped: bool = True) -> str:
    """1234567 -> 1,234,567; -5 -> −5; 1+1/2 -> 1 1/2; 3e6 -> 3×10^6; .5 -> 0.5; other text is unchanged."""
    if re.match(r"[-+−]?\.[0-9]", text):
        text = text.replace(".", "0.", 1)
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


def is_number(text: str) -> bool:
    return text.replace(",", "")[:40].lstrip("-−+").replace(".", "").replace("/", "").replace("+", "").isdecimal()


def is_below_one(text: str) -> bool:
    """Whether text is a fraction below one, which takes the singular: "1/2 mile", but "0.5 miles"."""
    match = _FRACTION.fullmatch(text)
    return match is not None and not match[2] and int(match[3]) < int(match[4])


def formatted(arguments: Arguments) -> str:
    """{{formatnum:1234567}} -> 1,234,567; the second argument R removes commas, NOSEP adds none."""
    value, _, flag = get(arguments, "1").partition("|")
    if flag.strip() in ("R", "NOSEP"):
        return stripped(value.replace(",", "") if flag.strip() == "R" else value)
    return number(stripped(value)).replace("−", "-")


def fraction(arguments: Arguments) -> str:
    """{{frac|3|1|2}} -> 3 1/2; {{frac|3}} -> 1/3; {{sfrac|''n'' + 1|2}} -> (n + 1)/2."""
    parts = [value.replace("''", "") for value in values(arguments)]
    whole = f"{parts[0]} " if len(parts) > 2 else ""
    parts = [f"({part})" if " " in part else part for part in parts[-2:]]
    return f"{whole}{'/'.join(parts if len(parts) > 1 else ['1', *parts])}" if parts else ""


def power(before: str) -> Rule:
    """{{e|-6}} -> ×10^−6."""
    return lambda arguments: before + exponent.replace("-", "−") if (exponent := get(arguments, "1")) else ""


def percentage(arguments: Arguments) -> str:
    """{{percentage|1|4}} -> 25%; the third argument is the number of decimals; a half is rounded up."""
    parts = [value.replace(",", "") for value in values(arguments)]
    if len(parts) < 2 or not all(_DECIMAL.fullmatch(value) and len(value) < 30 for value in parts[:2]):
        return f"{parts[0]}%" if len(parts) == 1 else ""
    part, whole = (Decimal(value.replace("−", "-")) for value in parts[:2])
    decimals = int(parts[2]) if len(parts) > 2 and parts[2] in set("0123456789") else 0
    if not whole or abs(part) > 10**9 * abs(whole):  # not a share, and more digits than are exact
        return ""
    return f"{(100 * part / whole).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP):f}%"


def ordinal(arguments: Arguments) -> str:
    value = get(arguments, "1")
    ending = "th" if value[-2:-1] == "1" else {"1": "st", "2": "nd", "3": "rd"}.get(value[-1:], "th")
    return value + ending if value[-1:].isdigit() else value


def money(symbol: str) -> Rule:
    """{{USD|5}} -> US$5; without an argument the sign alone; "" if the amount was a dropped template."""

    def rule(arguments: Arguments) -> str:
        amount = get(arguments, "1")
        return symbol + number(amount) if amount else "" if "1" in arguments else symbol.strip()

    return rule


def currency(signs: dict[str, str]) -> Rule:
    """{{currency|5|GBP}} -> £5; a currency without a sign gets its code."""
    return lambda arguments: money(signs.get(code := get(arguments, "2"), f"{code} ".lstrip()))(arguments)


def _charge(match: re.Match[str]) -> str:
    """2- -> <sup>2−</sup>; a lone + or − stays."""
    sign = match[2].replace("-", "−")
    return f"<sup>{match[1]}{sign}</sup>" if match[1] else sign


def chemical(arguments: Arguments) -> str:
    """{{chem|SO|4|2-}} -> SO4<sup>2−</sup>; without italics, which would become quotation marks."""
    parts = [value.replace("''", "") for value in values(arguments)]
    return "".join(_CHARGE.sub(_charge, part) if _CHARGE.fullmatch(part) else part for part in parts)


def chemical_formula(arguments: Arguments) -> str:
    """{{chem2|SO4(2-)}} -> SO4<sup>2−</sup>; {{chem2|A -> B}} -> A → B."""
    text = "".join(values(arguments)).replace("->", "→")
    text = re.sub(r"_\{([^{}]*+)\}|[_^](?=[0-9])", r"\1", text)
    text = re.sub(r"\(([0-9]*+)([-+−])\)", _charge, text)
    return re.sub(r"-(?=$|[\s)\]])", "−", text)


def root(arguments: Arguments) -> str:
    """{{radic|2}} -> √2; {{radic|8|3}} -> ³√8."""
    value, degree = places(arguments, 2)
    return degree.translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")) + f"√{value}" if value else ""


def nuclide(arguments: Arguments) -> str:
    """{{nuclide|lithium|7}} -> lithium-7; the page shows the symbol of the element instead."""
    return "-".join(values(arguments)[:2])
