"""Names that templates write out from a code: units of measurement, languages, countries.

Facts from the documentation of the English Wikipedia's templates (Convert, Lang, Flag).
"""

import re

_PREFIXES = (
    ("", ""),
    ("n", "nano"),
    ("u", "micro"),
    ("μ", "micro"),
    ("m", "milli"),
    ("c", "centi"),
    ("k", "kilo"),
    ("M", "mega"),
    ("G", "giga"),
    ("T", "tera"),
)
_PREFIXED = (
    "m metre|g gram|L litre|l litre|W watt|Wh watt-hour|Hz hertz|Pa pascal|J joule|N newton|V volt|eV electronvolt"
)
# code, singular, plural (default: with "s"), symbol (default: the code); "|" parts them
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
C|°C|°C|°C
F|°F|°F|°F
R|°R|°R|°R
C-change|°C|°C|°C
F-change|°F|°F|°F
°C|°C|°C
°F|°F|°F
K|kelvin
mpgus|mile per US gallon|miles per US gallon|mpg‑US
mpgimp|mile per imperial gallon|miles per imperial gallon|mpg‑imp
PD|inhabitant
"""
_POWERS = {"3": "thousand ", "6": "million ", "9": "billion ", "12": "trillion "}


def _units() -> dict[str, tuple[str, str, str]]:
    units = {}
    for base in _PREFIXED.split("|"):
        code, name = base.split()
        for letter, prefix in _PREFIXES:
            units[letter + code] = (prefix + name, prefix + name + ("" if name == "hertz" else "s"), letter + code)
    for line in _UNITS.split("\n"):
        code, name, plural, symbol = (*line.split("|"), "", "", "")[:4]
        units[code] = (name, plural or f"{name}s", symbol or code)
    return units


UNITS = _units()  # code -> singular, plural, symbol


def unit_names(code: str, american: bool = False) -> tuple[str, str, str]:
    """Singular, plural and symbol of a unit by its code in {{convert}}; a code that is not known stands for itself."""
    power = re.fullmatch(r"e(3|6|9|12)_?(.+)", code)
    count = _POWERS[power[1]] if power else ""
    top, slash, bottom = (power[2] if power else code).partition("/")
    if (whole := top + slash + bottom) in UNITS:
        one, many, symbol = UNITS[whole]
    elif bottom in UNITS and (not top or top in UNITS):
        one, many, symbol = UNITS[top] if top else ("", "", "")
        per = f"per {UNITS[bottom][0]}"
        one, many, symbol = f"{one} {per}".strip(), f"{many} {per}".strip(), f"{symbol}/{UNITS[bottom][2]}"
    else:
        return code, code, code
    if american:
        one, many = _american(one), _american(many)
    return count + one, count + many, count + symbol


def _american(name: str) -> str:
    return name.replace("metre", "meter").replace("litre", "liter")


LANGUAGES = dict(
    entry.strip().split(" ", 1)
    for entry in """
ab Abkhaz, af Afrikaans, am Amharic, an Aragonese, ang Old English, ar Arabic, arc Aramaic, arz Egyptian Arabic, ast Asturian,
ay Aymara, az Azerbaijani, ba Bashkir, bar Bavarian, be Belarusian, ber Berber, bg Bulgarian, bn Bengali, bo Tibetan,
br Breton, bs Bosnian, ca Catalan, ce Chechen, ceb Cebuano, chr Cherokee, ckb Central Kurdish, co Corsican, cop Coptic,
cs Czech, cu Church Slavonic, cv Chuvash, cy Welsh, da Danish, de German, dv Dhivehi, dz Dzongkha, el Greek, en English,
en-GB British English, en-US American English, eo Esperanto, es Spanish, et Estonian, eu Basque, fa Persian, fi Finnish,
fil Filipino, fo Faroese, fr French, frm Middle French, fro Old French, frp Franco-Provençal, fur Friulian, fy West Frisian,
ga Irish, gd Scottish Gaelic, gl Galician, gn Guarani, goh Old High German, got Gothic, grc Ancient Greek,
grc-gre Ancient Greek, gsw Alemannic German, gu Gujarati, gv Manx, ha Hausa, haw Hawaiian, he Hebrew, hi Hindi,
hr Croatian, ht Haitian Creole, hu Hungarian, hy Armenian, ia Interlingua, id Indonesian, ig Igbo, ilo Ilocano,
is Icelandic, it Italian, iu Inuktitut, ja Japanese, jv Javanese, ka Georgian, kk Kazakh, kl Greenlandic, km Khmer,
kn Kannada, ko Korean, ku Kurdish, kw Cornish, ky Kyrgyz, la Latin, lad Judaeo-Spanish, lb Luxembourgish, li Limburgish,
lij Ligurian, lmo Lombard, ln Lingala, lo Lao, lt Lithuanian, lv Latvian, mg Malagasy, mi Māori, mk Macedonian,
ml Malayalam, mn Mongolian, mr Marathi, ms Malay, mt Maltese, my Burmese, nah Nahuatl, nap Neapolitan, nds Low German,
ne Nepali, nl Dutch, nn Norwegian Nynorsk, no Norwegian, nb Norwegian Bokmål, non Old Norse, nv Navajo, oc Occitan,
or Odia, os Ossetian, ota Ottoman Turkish, pa Punjabi, pl Polish, pms Piedmontese, ps Pashto, pt Portuguese, qu Quechua,
rm Romansh, ro Romanian, ru Russian, rue Rusyn, sa Sanskrit, sc Sardinian, scn Sicilian, sco Scots, sd Sindhi,
se Northern Sami, sh Serbo-Croatian, si Sinhala, sk Slovak, sl Slovene, sm Samoan, sn Shona, so Somali, sq Albanian,
sr Serbian, sr-Cyrl Serbian Cyrillic, sr-Latn Serbian, st Sotho, su Sundanese, sv Swedish, sw Swahili, syr Syriac,
ta Tamil, te Telugu, tg Tajik, th Thai, ti Tigrinya, tk Turkmen, tl Tagalog, tr Turkish, tt Tatar, ug Uyghur,
uk Ukrainian, ur Urdu, uz Uzbek, vec Venetian, vi Vietnamese, wa Walloon, wo Wolof, xh Xhosa, yi Yiddish, yo Yoruba,
za Zhuang, zh Chinese, zu Zulu,
aln Gheg Albanian, brh Brahui, rus Russian
""".split(",")
)

# The codes of {{flag|FRA}} and {{FRA}}: ISO's, and those of the IOC and FIFA where they differ
COUNTRIES = dict(
    entry.strip().split(" ", 1)
    for entry in """
AFG Afghanistan, ALB Albania, ALG Algeria, AND Andorra, ANG Angola, AGO Angola, ARG Argentina, ARM Armenia, ARU Aruba,
AUS Australia, AUT Austria, AZE Azerbaijan, BAH Bahamas, BHR Bahrain, BAN Bangladesh, BGD Bangladesh, BAR Barbados,
BLR Belarus, BEL Belgium, BLZ Belize, BEN Benin, BER Bermuda, BHU Bhutan, BOL Bolivia, BIH Bosnia and Herzegovina,
BOT Botswana, BRA Brazil, BRN Brunei, BUL Bulgaria, BGR Bulgaria, BFA Burkina Faso, BDI Burundi, CAM Cambodia,
KHM Cambodia, CMR Cameroon, CAN Canada, CPV Cape Verde, CHA Chad, CHI Chile, CHL Chile, CHN China, COL Colombia,
COD Democratic Republic of the Congo, CGO Republic of the Congo, CRC Costa Rica, CRI Costa Rica, CIV Ivory Coast,
CRO Croatia, HRV Croatia, CUB Cuba, CYP Cyprus, CZE Czech Republic, TCH Czechoslovakia, DEN Denmark, DNK Denmark,
DJI Djibouti, DOM Dominican Republic, ECU Ecuador, EGY Egypt, ENG England, ESA El Salvador, SLV El Salvador,
ERI Eritrea, ESP Spain, EST Estonia, ETH Ethiopia, EU European Union, FIJ Fiji, FIN Finland, FRA France, FRO Faroe Islands,
FRG West Germany, GAB Gabon, GAM Gambia, GBR United Kingdom, GDR East Germany, GEO Georgia, GER Germany, DEU Germany,
GHA Ghana, GRE Greece, GRC Greece, GRN Grenada, GUA Guatemala, GTM Guatemala, GUI Guinea, GUY Guyana, HAI Haiti, HTI Haiti,
HKG Hong Kong, HON Honduras, HND Honduras, HUN Hungary, INA Indonesia, IDN Indonesia, IND India, IRI Iran, IRN Iran,
IRL Ireland, IRQ Iraq, ISL Iceland, ISR Israel, ITA Italy, JAM Jamaica, JOR Jordan, JPN Japan, KAZ Kazakhstan, KEN Kenya,
KGZ Kyrgyzstan, KOR South Korea, KOS Kosovo, KSA Saudi Arabia, SAU Saudi Arabia, KUW Kuwait, KWT Kuwait, LAO Laos,
LAT Latvia, LVA Latvia, LBA Libya, LBY Libya, LBN Lebanon, LBR Liberia, LIE Liechtenstein, LTU Lithuania, LUX Luxembourg,
MAC Macau, MAD Madagascar, MAR Morocco, MAS Malaysia, MYS Malaysia, MDA Moldova, MDV Maldives, MEX Mexico, MGL Mongolia,
MNG Mongolia, MKD North Macedonia, MLI Mali, MLT Malta, MNE Montenegro, MON Monaco, MCO Monaco, MOZ Mozambique,
MRI Mauritius, MYA Myanmar, MMR Myanmar, NAM Namibia, NCA Nicaragua, NIC Nicaragua, NED Netherlands, NLD Netherlands,
NEP Nepal, NPL Nepal, NGR Nigeria, NGA Nigeria, NIG Niger, NIR Northern Ireland, NOR Norway, NZL New Zealand, OMA Oman,
OMN Oman, PAK Pakistan, PAN Panama, PAR Paraguay, PRY Paraguay, PER Peru, PHI Philippines, PHL Philippines, PLE Palestine,
PNG Papua New Guinea, POL Poland, POR Portugal, PRT Portugal, PRC China, PRK North Korea, PUR Puerto Rico, QAT Qatar,
ROC Taiwan, ROM Romania, ROU Romania, RSA South Africa, ZAF South Africa, RUS Russia, RWA Rwanda, SCO Scotland,
SCG Serbia and Montenegro, SEN Senegal, SGP Singapore, SIN Singapore, SLE Sierra Leone, SLO Slovenia, SVN Slovenia,
SMR San Marino, SOM Somalia, SRB Serbia, SRI Sri Lanka, LKA Sri Lanka, SSD South Sudan, SUD Sudan, SDN Sudan,
SUI Switzerland, CHE Switzerland, SVK Slovakia, SWE Sweden, SYR Syria, TAN Tanzania, TZA Tanzania, THA Thailand,
TJK Tajikistan, TKM Turkmenistan, TOG Togo, TPE Chinese Taipei, TRI Trinidad and Tobago, TTO Trinidad and Tobago,
TUN Tunisia, TUR Turkey, TWN Taiwan, UAE United Arab Emirates, ARE United Arab Emirates, UGA Uganda, UK United Kingdom,
UKR Ukraine, URS Soviet Union, USSR Soviet Union, URU Uruguay, URY Uruguay, USA United States, US United States,
UZB Uzbekistan, VAT Vatican City, VEN Venezuela, VIE Vietnam, VNM Vietnam, WAL Wales, YEM Yemen, YUG Yugoslavia,
ZAM Zambia, ZMB Zambia, ZIM Zimbabwe, ZWE Zimbabwe
""".split(",")
)
