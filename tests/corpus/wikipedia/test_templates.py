"""Templates: one template a case, with the exact text expected; test_quantities.py has those of numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.corpus.wikipedia.names import COUNTRIES, LANGUAGES
from ifqa.corpus.wikipedia.templates import TABLE, expand
from ifqa.corpus.wikipedia.wikitext import to_text

SHOWN = {
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
    "OldStyleDate|9 March||25 February": "9 March [O.S. 25 February]",
    "OldStyleDateDY|4 January|1643|25 December 1642": "4 January 1643 [O.S. 25 December 1642]",
    "OldStyleDateNY|25 December 1642|4 January 1643": "25 December 1642 [N.S. 4 January 1643]",
    "start and end dates|1999|5||2000|6|": "May 1999 – June 2000",
    "start and end dates|1999|5|1": "May 1, 1999",
    "birth date and age|1950||4": "1950",
    "death date and age|1865|4|15|1809": "April 15, 1865 (aged 55–56)",
    "death date and age|1865|4||1809|2|12": "April 1865 (aged 56)",
    "death date and age|2000|May|1|1950|3|2": "May 1, 2000 (aged 50)",
    "death date and age|1865|4|15|1809|4": "April 15, 1865 (aged 55–56)",
    "death year and age|2000|2000": "2000 (aged 0)",
    "death year and age|1950|2000": "1950",
    "ISO date|2010-05-01": "2010-05-01",
    "date|1 May 2010|mdy": "May 1, 2010",
    "date|May 1, 2010|dmy": "1 May 2010",
    "date|1 May 2010|iso": "2010-05-01",
    "date|1 May 2010": "1 May 2010",
    "nhly|1999": "1999–00",
    # languages
    "lang|fr|mot": "mot",
    "lang-fr|mot": "French: mot",
    "Lang-ru|Москва|Moskva|Moscow": "Russian: Москва, romanized: Moskva, lit. 'Moscow'",
    "lang-fr|mot|label=none": "mot",
    "lang-xyz|mot": "mot",
    "lang-sr-Cyrl|Београд": "Serbian Cyrillic: Београд",
    "lang-en-GB|colour": "British English: colour",
    "native name|fr|République": "République (French)",
    "native name|fr|République|paren=omit": "République",
    "zh|t=漢字|l=word": "traditional Chinese: 漢字; lit. 'word'",
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
    "sortname|John|Smith|John Smith (actor)": "John Smith",
    "fbu|21|ITA": "Italy",
    "flag|SUR": "Suriname",
    "flag|NZ": "New Zealand",
    "bibleverse|John|3:16|KJV": "John 3:16",
    "bibleverse||John|3:16|KJV": "John 3:16",
    "bibleref|John|3:16|KJV": "John 3:16",
    "cquote|a b|20px|20px|Twain|Letters": "\na b\n— Twain, Letters\n",
    "sic|incorr|ect": "incorrect [sic]",
    "okina": "ʻ",
    "url|http://www.example.com": "www.example.com",
    "url|example.com|its site": "its site",
    "sort|5": "5",
    "sort|05|5": "5",
    "section link||History": "§ History",
    "section link|Page|History": "Page § History",
    "as written|a|b": "ab",
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
    "'s": "&#39;s",
    "'": "&#39;",
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
            "increase",
            "steady",
            "jct|state=NY",
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
        ["1", "5", "-1", "1/2", "2010", "13", "0", "km", "ft", "in", "to", "x", "on", "[[a|b]]", "e3e6m", "²", "٣", "C"]
    ),
    st.builds(
        "{}={}".format,
        st.sampled_from("1 abbr adj comma df disp e end ft fmt lc m paren s sp text u up".split()),
        st.one_of(st.text(max_size=4), st.sampled_from("on off in pre mid us unit 5 um commas".split())),
    ),
)
CALL = st.builds(
    lambda name, rest: "|".join([name, *rest]), st.sampled_from(sorted(TABLE)), st.lists(ARGUMENT, max_size=7)
)


@given(CALL)
def test_no_arguments_make_a_rule_raise(content: str) -> None:
    assert isinstance(expand(content), str | None)


@given(st.recursive(CALL, lambda inner: st.builds("{{{{small|{}}}}}{{{{{}}}}}".format, inner, inner), max_leaves=30))
def test_text_is_bounded_by_the_length_of_the_page(content: str) -> None:
    page = f"{{{{{content}}}}}"
    assert len(to_text(page, "full")) <= 21 * len(page)


def test_a_template_that_shows_far_more_than_it_contains_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TABLE, "bomb", lambda _: "boom" * 1000)
    assert to_text("a {{bomb}} b", "full") == "a b"


def test_the_tables_of_names_have_no_surrounding_blanks() -> None:
    for code, name in (*LANGUAGES.items(), *COUNTRIES.items()):
        assert all(text and text == text.strip() for text in (code, name))


@pytest.mark.parametrize("name", sorted(TABLE))
def test_every_rule_gives_text_whatever_its_arguments(name: str) -> None:
    for argument in ("", " ", "x", "5", "1/2", "-", "''", "[[a|b]]", "e6", "=", "\x03", "0"):
        for count in range(7):
            assert isinstance(TABLE[name]({str(n): argument for n in range(1, count + 1)}), str)


def test_every_name_is_found_as_it_is_written() -> None:
    assert all(name == name.strip() and "_" not in name for name in TABLE)
    assert not [name for name in TABLE if name != name.lower() and name.lower() != name and " " in name]
