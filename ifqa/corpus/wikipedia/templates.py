"""Expands templates to the words they show, by a table of name -> rule, a small function of the arguments.

The rules give what a reader of the English Wikipedia sees, according to the templates' documentation, except that:
- computed values are left out (the conversion in brackets of {{convert}}, {{inflation}}, ages today), but not ages at a
  date and percentages;
- numbers that {{convert}} would spell stay digits;
- fractions are "1/2", powers "10^6", units "km2", isotopes "lithium-7";
- pronunciations are dropped.

The caller drops templates that are not in the table or would show far more text than they contain.
"""

import re

from ifqa.corpus.wikipedia import dates, numbers, quantities, words
from ifqa.corpus.wikipedia.names import COUNTRIES
from ifqa.corpus.wikipedia.numbers import Arguments, Rule, get, values

# Stand-ins for marks that must not separate the arguments of an outer template; the caller puts the marks back. XML
# forbids these characters, so no dump contains them.
PIPE, EQUALS = "\x01", "\x02"
_PROTECTED = str.maketrans("|=", PIPE + EQUALS)
_LINK = re.compile(r"\[\[[^\[\]]*+(?:\[\[?[^\[\]]*+\]\]?[^\[\]]*+)*+\]\]")
_LONGEST = 200_000  # characters of a template; longer ones are not prose
_GROWTH = 100  # characters; a template has at least 5, so a page of n characters grows to at most 21n


def expand(content: str) -> str | None:
    """What the template `{{content}}` shows, as wikitext; None if no rule knows the template or it is too long.

    Templates inside `content` must be expanded already.
    """
    if len(content) > _LONGEST:
        return None
    name, bar, rest = content.partition("|")
    rule = _rule(name)
    if rule is None:
        name, colon, value = content.partition(":")
        rule = _FUNCTIONS.get(name.strip().lower()) if colon else None
        if rule is None:
            return None
        text = rule({"1": value.strip()})
    else:
        text = rule(_arguments(rest) if bar else {})
    if len(text) > len(content) + _GROWTH:
        return None
    return text.replace("=", EQUALS)


def _rule(name: str) -> Rule | None:
    name = name.strip().replace("_", " ")
    rule = TABLE.get(name)
    if rule is not None:
        return rule
    name = name.lower()
    rule = TABLE.get(name)
    if rule is None and name.startswith("lang-") and len(name) < 20:
        return words.language_of(name[5:])
    return rule


def _arguments(rest: str) -> Arguments:
    """The arguments after the name; bars and equals signs inside links do not separate arguments."""
    if "[[" in rest and ("|" in rest or "=" in rest):
        rest = _LINK.sub(lambda link: link[0].translate(_PROTECTED), rest)
    arguments: Arguments = {}
    count = 0
    for part in rest.split("|"):
        name, equals, value = part.partition("=")
        if equals:
            arguments[name.strip()] = value.strip()
        else:
            count += 1
            arguments[str(count)] = part
    return arguments


_CHINESE = words.labelled(
    "c=Chinese|s=simplified Chinese|t=traditional Chinese|p=pinyin|w=Wade–Giles|j=Jyutping|y=Yale|poj=Pe̍h-ōe-jī|l=lit."
)
_KOREAN = words.labelled("hangul=Korean|hanja=Hanja|rr=RR|mr=MR|lit=lit.")

_SHIPS = """USS HMS SS RMS SMS MV MS MY PS RV USNS USCGC USAT USRC HMAS HMCS HMNZS HMT HMHS INS ORP SAS SM TSS TS ROKS BAP ARA
HNLMS HNoMS HDMS HSwMS"""

_MONEY = {
    "US$": "US$|USD|usdollar",
    "£": "£|GBP|pound sterling",
    "€": "€|EUR|euro",
    "₹": "INR|indian rupee|₹",
    "Rs ": "Rs",
    "¥": "¥|JPY|yen",
    "CN¥": "CNY|RMB|renminbi",
    "A$": "A$|AUD|AU$",
    "C$": "C$|CAN$",
    "CA$": "CAD",
    "NZ$": "NZ$|NZD",
    "HK$": "HK$|HKD",
    "₩": "KRW|₩",
    "₱": "PHP|₱|philippine peso",
    "฿": "THB|฿",
    "₪": "ILS|NIS|₪",
    "₽": "RUB|₽",
    "₺": "TRY|₺",
    "₦": "NGN|₦",
    "SEK ": "SEK",
    "CHF ": "CHF",
    "R$": "BRL|R$",
}

_MARKS = {
    " – ": "snd|snds|spnd|sndash|spaced ndash|spaced en dash|dash|ndash spaced|–s",
    "–": "ndash|en dash|endash|nsndns",
    "—": "mdash|mdashb|em dash|emdash",
    " ": "nbsp|space|spaces|thinsp|thin space|nnbsp|hair space|hairsp|ensp|emsp|spc",
    "": "zwsp|0ws|shy|zwj|zwnj|wbr",
    " · ": "·|dot|middot|•|bull|bullet|\\",
    ", ": ",",
    "&#39;": "'|`|apostrophe",  # an entity, so that it does not join a mark of italics before it
    "&#39;s": "'s",
    '"': '"',
    "'\"": "' \"|'\"",
    "\"'": "\" '|\"'",
    EQUALS: "=|equals",
    PIPE: "!|pipe",
    "&#123;": "(",
    "&#125;": ")",
    "&#91;": "!(|bracket left",
    "&#93;": ")!|bracket right",
    "...": "...|ellipsis|nbellip",
    "-": "hyphen|nbh|nbhyph|nb hyphen|non breaking hyphen",
    "′": "′|prime",
    "×": "times",
    "±": "±|pm|plusminus",
    "−": "minus|−",
    "π": "pi",
    "ʻ": "okina",
    "1/2": "1/2|frac12|half",
    "1/4": "1/4|frac14",
    "3/4": "3/4|frac34",
    "∞": "infin|infinity",
    "♯": "sharp|music sharp",
    "♭": "flat",
    "♮": "natural",
    "†": "dagger|†",
    "‡": "double dagger|ddagger|double-dagger",
}

# Bars separate names with the same rule. Names are in lower case, unless capitals make them another template.
_RULES: list[tuple[str, Rule]] = [
    # the text itself
    (
        "small|smaller|big|bigger|larger|large|huge|small caps|smallcaps|sc|sc1|sc2|scaps|allcaps|strong|em|emphasis",
        words.first,
    ),
    (
        "bold|b|italic|italics|i|noitalic|no italic|nobold|normal|unbold|underline|u|underlined|overline|center|centre",
        words.first,
    ),
    (
        "nowrap|nobr|nobreak|nowraplinks|nwr|nowrap link|no wrap|wrap|mono|monospace|tt|code|kbd|samp",
        words.first,
    ),
    (
        "abbr|abbreviation|abbrv|tooltip|define|abbrlink|proper name|iast|unicode|polytonic|iso date",
        words.first,
    ),
    ("math|bigmath|mvar|var|serif", words.upright),
    (
        "hebrew|nastaliq|script/nastaliq|script/hebrew|script/arabic|arabdin|cuneiform|annotated link|anl|wikt",
        words.first,
    ),
    ("plainlist|plain list|flatlist|flat list|startplainlist|startflatlist|endplainlist|endflatlist", words.first),
    (
        "rws|stn|stnlnk|station|sta|mlby|mlb year|baseball year|by|nfly|nfl year|cfly|cfl year|nihongo2|sub|subscript",
        words.first,
    ),
    ("start-date|end-date|birth-date|birth-date and age|death-date|death-date and age|release-date", words.first),
    ("lang|wikt-lang|wt|hover title|h:title|color|colour|colored text", words.second),
    ("sort", words.either),
    ("url", words.address),
    ("transl|transliteration|rtl-lang|tlit|translit|script|longitem|background color|bgcolor", words.last),
    ("resize|font size|fs|font|font color|font colour|fontcolor", words.resized),
    ("vanchor|visible anchor|va", words.anchor),
    ("not a typo|notatypo|typo|as written|linktext|gaps|chset", words.joined),
    ("sortname", words.sorted_name),
    ("sic", words.sic),
    ("ill|interlanguage link|interlanguage link multi|illm|ill2|link-interwiki", words.interlanguage),
    ("angbr|angle bracket|anglebracket|grapheme", words.framed("⟨", "⟩")),
    ("bracket|sqbracket|square bracket", words.framed("&#91;", "&#93;")),
    ("gloss", words.framed("'", "'")),
    ("literally|literal translation|lit|lit.", words.framed("lit. '", "'")),
    ("keypress|key press|key", lambda arguments: "+".join(values(arguments))),
    ("section link|slink", words.section),
    # paragraphs and lists
    ("quote|blockquote|block quote|bquote|quotation|poemquote|poem quote", words.quotation("2", "3")),
    ("cquote|centered quote|centered pull quote", words.quotation("4", "5")),
    ("verse translation", words.lines),
    ("poem|blockindent|block indent|indented text|lines", words.block("text", "1")),
    ("columns-list|column list|columnslist|col-list", lambda arguments: f"\n{words.resized(arguments)}\n"),
    ("columns", lambda arguments: "\n" + "\n".join(get(arguments, f"col{n}") for n in range(1, 7)) + "\n"),
    ("ubl|vunblist|unbulleted list|ublist|bulleted list|unordered list|ordered list|numbered list", words.lines),
    ("hlist|h list|horizontal list", lambda arguments: " · ".join(values(arguments))),
    ("term|defn", words.term),
    ("pb|paragraph break|parabr", words.always("\n")),
    ("br|break|crlf", words.always(" ")),
    # numbers and quantities
    ("convert|conv", quantities.quantity),
    ("cvt", lambda arguments: quantities.quantity(arguments, short=True)),
    ("val", quantities.value_of),
    ("height", quantities.height),
    ("nts|number table sorting", lambda arguments: numbers.number(get(arguments, "1"))),
    ("frac|fraction|sfrac|ffrac|tfrac", numbers.fraction),
    ("sqrt|radic", numbers.root),
    ("10^", numbers.power("10^")),
    ("e|x10^", numbers.power("×10^")),
    ("music", words.music),
    ("percentage|percent|pct", numbers.percentage),
    ("ordinal|ord", numbers.ordinal),
    ("numero|no.", words.framed("No. ")),
    ("sup|superscript", words.framed("<sup>", "</sup>")),
    ("su", lambda arguments: " ".join(filter(None, (get(arguments, "p", "1"), get(arguments, "b", "2"))))),
    ("chem", numbers.chemical),
    ("chem2", numbers.chemical_formula),
    ("simplenuclide|simplenuclide2|nuclide|nuclide2", numbers.nuclide),
    ("railgauge|track gauge", quantities.track_gauge),
    ("abs", words.framed("&#124;", "&#124;")),
    ("floor", words.framed("⌊", "⌋")),
    ("ceil", words.framed("⌈", "⌉")),
    ("numblk", lambda arguments: f"\n{words.second(arguments)} ({get(arguments, '3')})\n"),
    ("bibleverse|bibleref|bibleref2", words.verse),
    ("quran-usc|cite quran|qref", lambda arguments: "Quran " + ":".join(values(arguments)[:2])),
    *((names, numbers.money(sign)) for sign, names in _MONEY.items()),
    ("currency", numbers.currency({name: sign for sign, names in _MONEY.items() for name in names.split("|")})),
    # dates
    (
        "start date|end date|birth date|birth date and age|bda|dob|birth year and age|death date|start date and age",
        dates.date,
    ),
    ("launch date|release date|film date|disappeared date", dates.date),
    ("dts|date|date table sorting", dates.free_date),
    ("start and end dates", dates.date_span),
    ("death date and age|dda|disappeared date and age", dates.date_and_age),
    ("death year and age", dates.year_and_age),
    ("age|age in years", dates.age),
    ("as of|asof", dates.as_of),
    ("circa|c.|ca.|ca", dates.circa),
    ("floruit|fl.|fl", dates.span("fl.")),
    ("reign|r.", dates.span("r.")),
    ("b.", dates.span("b.")),
    ("d.", dates.span("d.")),
    ("oldstyledate", dates.old_style_date),
    ("oldstyledatedy", dates.old_style_date_year),
    ("oldstyledateny", dates.new_style_date),
    ("nhly|nhl year|nbay|nba year", dates.season),
    # languages
    ("langx", words.language),
    ("native name", words.native_name),
    ("nihongo|nihongo title", words.nihongo),
    ("nihongo3", words.nihongo3),
    ("zh|lang-zh|zh-full", _CHINESE),
    ("korean|ko-hhrm", _KOREAN),
    # countries and ships
    ("flag|flagu|flagcountry|flaglink|flagioc|noflag|fb|fbw|fb-rt|nft|cr|cr-rt|ru|ih", words.country),
    ("fbu|fbu-rt", words.youth_team),
    ("flagathlete|flagiocathlete", words.athlete),
    *((code, words.always(name)) for code, name in COUNTRIES.items() if len(code) == 3),
    *((prefix, words.ship(prefix)) for prefix in _SHIPS.split()),
    ("gs", words.ship("German submarine")),
    ("ship", words.ship_of),
    ("sclass|sclass-|sclass2|sclass2-|jclass", words.ship_class),
    # marks
    *((names, words.always(mark)) for mark, names in _MARKS.items()),
]
TABLE: dict[str, Rule] = {name: rule for names, rule in _RULES for name in names.split("|")}

# {{formatnum:…}} and similar functions
_FUNCTIONS: dict[str, Rule] = {
    "formatnum": numbers.formatted,
    "lc": lambda arguments: get(arguments, "1").lower(),
    "uc": lambda arguments: get(arguments, "1").upper(),
    "lcfirst": lambda arguments: (value := get(arguments, "1"))[:1].lower() + value[1:],
    "ucfirst": lambda arguments: (value := get(arguments, "1"))[:1].upper() + value[1:],
}
