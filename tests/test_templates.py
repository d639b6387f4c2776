"""What templates show: one template a case, with the exact text expected."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.wikipedia.names import unit_names
from ifqa.wikipedia.templates import TABLE, expand
from ifqa.wikipedia.wikitext import to_text

SHOWN = {
    # convert: the article's own value, never the conversion
    "convert|100|km|mi": "100 kilometres",
    "convert|1|km": "1 kilometre",
    "convert|-1|km": "−1 kilometre",
    "convert|0.5|mi": "0.5 miles",
    "convert|1/2|mi": "1/2 mile",
    "convert|1+1/2|mi": "1 1/2 miles",
    "convert|1300|mi|km": "1,300 miles",
    "convert|1300|mi|km|comma=off": "1300 miles",
    "Convert|1,300|mi|km|0": "1,300 miles",
    "convert|5|to|10|ft": "5 to 10 feet",
    "convert|5|-|10|ft|m": "5–10 feet",
    "convert|5|–|10|ft|m": "5–10 feet",
    "convert|5|and|10|ft|m": "5 and 10 feet",
    "convert|5|by|10|ft|m": "5 by 10 feet",
    "convert|5|x|10|ft|m": "5 by 10 feet",
    "convert|5|x|10|x|2|ft|abbr=on": "5 ft × 10 ft × 2 ft",
    "convert|5|by|10|ft|abbr=on": "5 by 10 ft",
    "convert|5|+/-|0.1|mm": "5 ± 0.1 millimetres",
    "convert|100|km|mi|adj=on": "100-kilometre",
    "convert|1000|ft|m|sing=on": "1,000-foot",
    "convert|5|to|10|ft|adj=on": "5-to-10-foot",
    "convert|10|sqmi|km2|adj=on": "10-square-mile",
    "convert|6|ft|m|adj=mid|-long": "6-foot-long",
    "convert|100|km|mi|abbr=on": "100 km",
    "convert|100|km|mi|abbr=on|adj=on": "100 km",
    "convert|100|km|mi|abbr=off": "100 kilometres",
    "convert|100|km|mi|sp=us": "100 kilometers",
    "cvt|100|km": "100 km",
    "cvt|100|km|abbr=off": "100 kilometres",
    "convert|6|ft|2|in|m": "6 feet 2 inches",
    "convert|6|ft|1|in|m|abbr=on": "6 ft 1 in",
    "convert|6|ft|2|in|adj=on": "6-foot-2-inch",
    "convert|11|st|7|lb": "11 stone 7 pounds",
    "convert|-40|C|F": "−40 °C",
    "convert|90|°F": "90 °F",
    "convert|3|e6km2": "3 million square kilometres",
    "convert|300|/sqmi|/km2": "300 per square mile",
    "convert|300|PD/sqmi": "300 inhabitants per square mile",
    "convert|4|lb/acre|abbr=on": "4 lb/acre",
    "convert|60|mph": "60 miles per hour",
    "convert|5|no such unit": "5 no such unit",
    "convert|3e6|m": "3×10^6 metres",
    "convert|some|km": "some kilometres",
    "convert|5": "5",
    "convert": "",
    # numbers
    "val|5.1|0.3|e=6|u=kg": "5.1±0.3×10^6 kg",
    "val|1.00794|(7)": "1.00794(7)",
    "val|5|2|1": "5 +2 −1",
    "val|12345|fmt=commas": "12,345",
    "val|50|u=%": "50%",
    "val|3|u=m|up=s": "3 m/s",
    "formatnum:1234567": "1,234,567",
    "formatnum: 1234.5 ": "1,234.5",
    "formatnum:1,234|R": "1234",
    "formatnum:-1234567": "-1,234,567",
    "nts| 1234": "1,234",
    "frac|1|2": "1/2",
    "Fraction|3|1|2": "3 1/2",
    "frac|3": "1/3",
    "sfrac|''n'' + 1|2": "(n + 1)/2",
    "sqrt|2": "√2",
    "10^|-6": "10^−6",
    "e|24": "×10^24",
    "percentage|1|4": "25%",
    "pct|1|3|1": "33.3%",
    "percentage|1|0": "",
    "percentage|5": "5%",
    "ordinal|1": "1st",
    "ord|11": "11th",
    "ord|112": "112th",
    "ord|23": "23rd",
    "no.|5": "No. 5",
    "US$|5 million": "US$5 million",
    "USD|1500": "US$1,500",
    "£|5": "£5",
    "GBP|5": "£5",
    "€|5": "€5",
    "Euro|5": "€5",
    "INR|5 crore": "₹5 crore",
    "currency|1500|GBP": "£1,500",
    "currency|5|XYZ": "XYZ 5",
    "INR": "₹",
    "INR|": "",
    "gaps|1|234|567": "1234567",
    "chem|C|''n''|H|2''n''+2": "CnH2n+2",
    "chem2|H2O": "H2O",
    "simpleNuclide|Lithium|7": "Lithium-7",
    "sup|6": "<sup>6</sup>",
    "track gauge|1435mm": "1,435 mm",
    "track gauge|3ft6in": "3 ft 6 in",
    # dates
    "start date|1999|5|1": "May 1, 1999",
    "start date|1999|05|01|df=yes": "1 May 1999",
    "Start date|1999|May": "May 1999",
    "start-date|May 1, 1999": "May 1, 1999",
    "end date|1999": "1999",
    "birth date|df=y|1809|2|12": "12 February 1809",
    "birth_date and age|1947|4|1": "April 1, 1947",
    "birth-date and age|April 1, 1947": "April 1, 1947",
    "death date and age|1865|4|15|1809|2|12": "April 15, 1865 (aged 56)",
    "death date and age|1865|2|11|1809|2|12": "February 11, 1865 (aged 55)",
    "death year and age|2000|1950": "2000 (aged 49–50)",
    "age|1900|2|1|1950|1|1": "49",
    "age|1900|2|1": "",
    "dts|1777|12|16": "December 16, 1777",
    "dts|16 December 1777": "16 December 1777",
    "date|2010-05-01": "1 May 2010",
    "date|2010-05-01|mdy": "May 1, 2010",
    "start and end dates|1999|5|1|2000|6|2": "May 1, 1999 – June 2, 2000",
    "start date|-44|3|15": "March 15, 44 BC",
    "start date|1999|13|1": "1999",
    "as of|2010|5": "As of May 2010",
    "as of|2010|5|1": "As of 1 May 2010",
    "As of|2010|5|1|df=US|lc=y": "as of May 1, 2010",
    "as of|2010|since=y": "Since 2010",
    "as of|2010|alt=In 2010": "In 2010",
    "as of|2010|bare=y|post=,": "2010,",
    "circa|1800": "c. 1800",
    "c.|1800|1810": "c. 1800 – c. 1810",
    "circa": "c.",
    "floruit|1800|1810": "fl. 1800–1810",
    "reign|1066|1087": "r. 1066–1087",
    "OldStyleDate|9 March|1814|25 February": "9 March [O.S. 25 February] 1814",
    "nhly|1999": "1999–00",
    # languages
    "lang|fr|mot": "mot",
    "lang-fr|mot": "French: mot",
    "Lang-ru|Москва|Moskva|Moscow": "Russian: Москва, romanized: Moskva, lit. 'Moscow'",
    "lang-fr|mot|label=none": "mot",
    "lang-xyz|mot": "mot",
    "langx|de|Wort": "German: Wort",
    "transl|ar|ALA|ilāh": "ilāh",
    "transliteration|ru|Moskva": "Moskva",
    "nihongo|'''Aikido'''|合気道|Aikidō|lead=yes": "'''Aikido''' (合気道, Aikidō)",
    "nihongo||合気道": "合気道",
    "nihongo3|Way|合気道|Aikidō": "Aikidō (合気道, Way)",
    "zh|s=汉字|t=漢字|p=hànzì": "simplified Chinese: 汉字; traditional Chinese: 漢字; pinyin: hànzì",
    "zh|c=漢字|labels=no": "漢字",
    "korean|hangul=한글|rr=hangeul": "Korean: 한글; RR: hangeul",
    # text
    "small|a [[b|c]]": "a [[b\x01c]]",
    "nowrap| a ": " a ",
    "nobr|1=a": "a",
    "abbr|SR|Strike rate": "SR",
    "sic|teh": "teh [sic]",
    "sic|teh|hide=y": "teh",
    "not a typo|te|h": "teh",
    "ill|Foo|de|Bar": "Foo",
    "ill|de|Bar|Foo": "Foo",
    "Interlanguage link|Foo|de|lt=the foo": "the foo",
    "USS|Nimitz|CVN-68": "USS Nimitz (CVN-68)",
    "HMS|Ajax|22|6": "HMS Ajax",
    "HMS|Ajax|22|2": "Ajax",
    "SS|Californian": "SS Californian",
    "ship|French ship|Orient|1791": "French ship Orient (1791)",
    "sclass|Nimitz|aircraft carrier": "Nimitz-class aircraft carrier",
    "flag|USA": "United States",
    "flagu|Tennessee": "Tennessee",
    "FRA": "France",
    "sortname|Ada|Lovelace": "Ada Lovelace",
    "visible anchor|a|b": "a",
    "bibleverse|1|John|3:16|KJV": "1 John 3:16",
    "quote|text=a|author=b|source=c": "\na\n— b, c\n",
    "ubl|a|b": "\na\nb\n",
    "hlist|a|b": "a · b",
    "lc:ABC": "abc",
    "ucfirst:abc": "Abc",
    # marks
    "snd": " – ",
    "ndash": "–",
    "'s": "'s",
    '"': '"',
    "nbsp": " ",
    "·": " · ",
    ",": ", ",
    "=": "\x02",
}


@pytest.mark.parametrize(("content", "shown"), SHOWN.items())
def test_template_shows(content: str, shown: str) -> None:
    assert expand(content) == shown


@pytest.mark.parametrize(
    "content",
    [
        *(
            "flagicon|USA",
            "IPA|x",
            "IPAc-en|x",
            "respell|x",
            "ntsh|5",
            "inflation|US|5|1900",
            "CURRENTYEAR",
            "#expr:1+1",
        ),
        *(
            "PAGENAME",
            "quote box|a",
            "Infobox",
            "cite book|title=a",
            "main|a",
            "citation needed",
            "#if:a|b",
            "",
            "|",
            ":",
        ),
    ],
)
def test_template_is_dropped(content: str) -> None:
    assert expand(content) is None


ARGUMENT = st.one_of(
    st.text(max_size=8),
    st.sampled_from(
        ["1", "5", "-1", "1/2", "2010", "13", "0", "km", "ft", "in", "to", "x", "on", "[[a|b]]", "e3e6m", "²", "٣"]
    ),
    st.builds(
        "{}={}".format, st.sampled_from(["1", "abbr", "adj", "df", "e", "u", "lc", "text", "s"]), st.text(max_size=4)
    ),
)
CALL = st.builds(
    lambda name, rest: "|".join([name, *rest]), st.sampled_from(sorted(TABLE)), st.lists(ARGUMENT, max_size=7)
)


@given(CALL)
def test_whatever_the_arguments_no_rule_raises(content: str) -> None:
    expand(content)


@given(st.recursive(CALL, lambda inner: st.builds("{{{{small|{}}}}}{{{{{}}}}}".format, inner, inner), max_leaves=30))
def test_text_is_bounded_by_the_length_of_the_page(content: str) -> None:
    page = f"{{{{{content}}}}}"
    assert len(to_text(page, "full")) <= 21 * len(page)


def test_a_template_that_shows_far_more_than_it_holds_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TABLE, "bomb", lambda _: "boom" * 1000)
    assert to_text("a {{bomb}} b", "full") == "a b"


def test_units_of_long_codes_take_no_recursion() -> None:
    assert unit_names("e3" * 100_000) == ("e3" * 100_000,) * 3
    assert unit_names("e6acre") == ("million acre", "million acres", "million acre")


def test_every_name_is_found_as_it_is_written() -> None:
    assert all(name == name.strip() and "_" not in name for name in TABLE)
    assert not [name for name in TABLE if name != name.lower() and name.lower() != name and " " in name]
