"""Units of measurement by their codes in {{convert}}: singular, plural and symbol.

From the documentation of the English Wikipedia's template Convert.
"""

import re

_PREFIXES = (
    ("", ""),
    ("n", "nano"),
    ("u", "micro"),
    ("μ", "micro"),
    ("µ", "micro"),  # the micro sign U+00B5 of Latin-1
    ("m", "milli"),
    ("c", "centi"),
    ("d", "deci"),
    ("h", "hecto"),
    ("k", "kilo"),
    ("M", "mega"),
    ("G", "giga"),
    ("T", "tera"),
)
_PREFIXED = (
    "m metre|g gram|L litre|l litre|W watt|Wh watt-hour|Hz hertz|Pa pascal|J joule|N newton|V volt|eV electronvolt"
)
# code|singular|plural|symbol; the default plural adds "s", the default symbol is the code
_UNITS = """
in|inch|inches
ft|foot|feet
foot|foot|foot|ft
yd|yard
mi|mile
nmi|nautical mile
fathom|fathom
furlong|furlong
ch|chain
AU|astronomical unit
ly|light-year
pc|parsec
Å|angstrom
hand|hand
sqin|square inch|square inches|sq in
sqft|square foot|square feet|sq ft
sqyd|square yard||sq yd
sqmi|square mile||sq mi
sqnmi|square nautical mile||sq nmi
sqkm|square kilometre||km2
sqm|square metre||m2
acre|acre
ha|hectare
mm2|square millimetre
cm2|square centimetre
m2|square metre
km2|square kilometre
cm3|cubic centimetre
m3|cubic metre
km3|cubic kilometre
cc|cubic centimetre
cuin|cubic inch|cubic inches|cu in
cuft|cubic foot|cubic feet|cu ft
cuyd|cubic yard||cu yd
cumi|cubic mile||cu mi
Tcuft|trillion cubic foot|trillion cubic feet|Tcu ft
acreft|acre-foot|acre-feet|acre⋅ft
acre.ft|acre-foot|acre-feet|acre⋅ft
USgal|US gallon||US gal
U.S.gal|U.S. gallon||U.S. gal
impgal|imperial gallon||imp gal
gal|gallon
USqt|US quart||US qt
usoz|US fluid ounce||US fl oz
USoz|US fluid ounce||US fl oz
USfloz|US fluid ounce||US fl oz
impoz|imperial fluid ounce||imp fl oz
pt|pint
bbl|barrel
oilbbl|barrel||bbl
oz|ounce
ozt|troy ounce||ozt
lb|pound
lbs|pound||lb
st|stone|stone
t|tonne
MT|tonne||t
kt|kilotonne
LT|long ton||long tons
ST|short ton||short tons
long ton|long ton
short ton|short ton
ton|ton
cwt|hundredweight|hundredweight
gr|grain
carat|carat
kn|knot
mph|mile per hour|miles per hour
kph|kilometre per hour|kilometres per hour|km/h
km/h|kilometre per hour|kilometres per hour
m/s|metre per second|metres per second
ft/s|foot per second|feet per second
m/s2|metre per second squared|metres per second squared
ft/s2|foot per second squared|feet per second squared
km/s|kilometre per second|kilometres per second
ft/min|foot per minute|feet per minute
Mach|Mach|Mach
hp|horsepower|horsepower
bhp|brake horsepower|brake horsepower
shp|shaft horsepower|shaft horsepower
ihp|indicated horsepower|indicated horsepower
PS|metric horsepower|metric horsepower
kcal|kilocalorie
cal|calorie
BTU|British thermal unit
kWh|kilowatt-hour
lbf|pound-force|pounds-force
lbft|pound-foot|pound-feet|lb⋅ft
lb.ft|pound-foot|pound-feet|lb⋅ft
lbfft|pound-foot|pound-feet|lbf⋅ft
lbf.ft|pound-foot|pound-feet|lbf⋅ft
ftlbf|foot-pound|foot-pounds|ft⋅lbf
Nm|newton-metre||N⋅m
N.m|newton-metre||N⋅m
psi|pound per square inch|pounds per square inch
bar|bar
mbar|millibar
hPa|hectopascal
atm|atmosphere|atmospheres
inHg|inch of mercury|inches of mercury
mmHg|millimetre of mercury|millimetres of mercury
s|second
min|minute
h|hour
day|day
rpm|revolution per minute|revolutions per minute
C|degree Celsius|degrees Celsius|°C
F|degree Fahrenheit|degrees Fahrenheit|°F
R|degree Rankine|degrees Rankine|°R
C-change|°C|°C|°C
F-change|°F|°F|°F
°C|degree Celsius|degrees Celsius
°F|degree Fahrenheit|degrees Fahrenheit
K|kelvin
mpgus|mile per US gallon|miles per US gallon|mpg‑US
mpgimp|mile per imperial gallon|miles per imperial gallon|mpg‑imp
PD|inhabitant
ft2|square foot|square feet
in2|square inch|square inches
yd2|square yard
mi2|square mile
ft3|cubic foot|cubic feet
in3|cubic inch|cubic inches
yd3|cubic yard
mi3|cubic mile
CID|cubic inch|cubic inches|cu in
acre·ft|acre-foot|acre-feet|acre⋅ft
dunam|dunam
rod|rod
league|league
verst|verst
USpt|US pint||US pt
imppt|imperial pint||imp pt
impqt|imperial quart||imp qt
floz|fluid ounce||fl oz
impfloz|imperial fluid ounce||imp fl oz
Goilbbl|billion barrels|billion barrels|Gbbl
Moilbbl|million barrels|million barrels|Mbbl
koilbbl|thousand barrels|thousand barrels|kbbl
MUSgal|million US gallons|million US gallons|million US gal
Mimpgal|million imperial gallons|million imperial gallons|million imp gal
Mt|megatonne
Gt|gigatonne
metric ton|metric ton||t
TNT|tonne of TNT|tonnes of TNT|tTNT
tTNT|tonne of TNT|tonnes of TNT
ktTNT|kilotonne of TNT|kilotonnes of TNT
MtTNT|megatonne of TNT|megatonnes of TNT
tonTNT|ton of TNT|tons of TNT
ktonTNT|kiloton of TNT|kilotons of TNT
MtonTNT|megaton of TNT|megatons of TNT
kgf|kilogram-force|kilograms-force
d|day
year|year
yr|year
mpgUS|mile per US gallon|miles per US gallon|mpg‑US
mpg-US|mile per US gallon|miles per US gallon|mpg‑US
mpg-imp|mile per imperial gallon|miles per imperial gallon|mpg‑imp
"""
_POWERS = {"3": "thousand", "6": "million", "9": "billion", "12": "trillion"}
BY_SYMBOL = {
    "C",
    "F",
    "R",
    "K",
    "°C",
    "°F",
    "°R",
    "C-change",
    "F-change",
}  # shown by symbol, unless the template asks for the name


def _units() -> dict[str, tuple[str, str, str]]:
    units = {}
    for base in _PREFIXED.split("|"):
        code, name = base.split()
        for letter, prefix in _PREFIXES:
            symbol = ("μ" if prefix == "micro" else letter) + code
            units[letter + code] = (prefix + name, prefix + name + ("" if name == "hertz" else "s"), symbol)
    for line in _UNITS.strip().split("\n"):
        code, name, plural, symbol = (*line.split("|"), "", "", "")[:4]
        units[code] = (name, plural or f"{name}s", symbol or code)
    for unit in list(units.values()):  # names and symbols are codes, too: "mile", "kilometers", "sq mi"
        for name in (*unit, *map(american, unit[:2])):
            units.setdefault(name, unit)
    return units


def american(name: str) -> str:
    """The name of a unit in American spelling."""
    name = name.replace("metre", "meter").replace("litre", "liter")
    return re.sub(r"\btonne", "metric ton", name)


UNITS = _units()  # code -> singular, plural, symbol


def is_unit(code: str) -> bool:
    return _unit(code) is not None


def unit_names(code: str) -> tuple[str, str, str, str]:
    """Singular, plural, symbol and power of ten ("6", or "" for none) of a unit by its code in {{convert}}.

    An unknown code is its own singular, plural and symbol.
    """
    return _unit(code) or (code, code, code, "")


def count_word(power: str) -> str:
    """The word for a power of ten that `unit_names` returns: "million" for "6"."""
    return _POWERS[power]


def _unit(code: str) -> tuple[str, str, str, str] | None:
    match = re.fullmatch(r"e(3|6|9|12)_?(.+)", code)
    power, code = (match[1], match[2]) if match else ("", code)
    if code in UNITS:
        return *UNITS[code], power
    top, _, bottom = code.partition("/")
    if bottom not in UNITS or (top and top not in UNITS):
        return None
    one, many, symbol = UNITS[top] if top else ("", "", "")
    per = f"per {UNITS[bottom][0]}"
    symbol = "" if top == "PD" else symbol  # inhabitants are not named: 100/sq mi
    return f"{one} {per}".strip(), f"{many} {per}".strip(), f"{symbol}/{UNITS[bottom][2]}", power
