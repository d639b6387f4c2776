"""Rules of the template table for words, paragraphs, languages, countries and ships."""

import re

from ifqa.corpus.wikipedia.names import COUNTRIES, LANGUAGES
from ifqa.corpus.wikipedia.numbers import Arguments, Rule, get, is_on, places, values

_LANGUAGE_CODE = re.compile(r"[a-z]{2,3}(?:-[a-z]+)?")


def first(arguments: Arguments) -> str:
    return arguments.get("1", "")


def second(arguments: Arguments) -> str:
    return arguments.get("2", "")


def last(arguments: Arguments) -> str:
    return next((value for name, value in reversed(arguments.items()) if name.isdigit()), "")


def sorted_name(arguments: Arguments) -> str:
    """{{sortname|John|Smith|John Smith (actor)}} -> John Smith; the third argument is the link."""
    return " ".join(places(arguments, 2)).strip()


def either(arguments: Arguments) -> str:
    """{{sort|key|text}} -> text; {{sort|text}} -> text."""
    return get(arguments, "2", "1")


def address(arguments: Arguments) -> str:
    """{{url|http://www.example.com}} -> www.example.com; the second argument is its label."""
    return get(arguments, "2") or get(arguments, "1").removeprefix("http://").removeprefix("https://").rstrip("/")


def joined(arguments: Arguments) -> str:
    return "".join(values(arguments))


def upright(arguments: Arguments) -> str:
    """{{math|''x'' + 1}} -> x + 1, without italics, which would become quotation marks."""
    return joined(arguments).replace("''", "")


def music(arguments: Arguments) -> str:
    """{{music|flat}} -> ♭."""
    return {"flat": "♭", "b": "♭", "sharp": "♯", "#": "♯", "natural": "♮"}.get(get(arguments, "1"), "")


def always(text: str) -> Rule:
    return lambda _: text


def framed(before: str, after: str = "") -> Rule:
    """The first argument between two marks; "" without an argument."""
    return lambda arguments: f"{before}{value}{after}" if (value := get(arguments, "1")) else ""


def lines(arguments: Arguments) -> str:
    return "\n" + "\n".join(values(arguments)) + "\n"


def block(*names: str) -> Rule:
    """The first of these arguments that is not blank, as a paragraph of its own."""
    return lambda arguments: f"\n{value}\n" if (value := get(arguments, *names)) else ""


def quotation(author: str, title: str) -> Rule:
    """The quotation, then "— author, source"; `author` and `title` are the names of the positional arguments."""

    def rule(arguments: Arguments) -> str:
        text, by = get(arguments, "text", "quote", "1"), get(arguments, "author", "by", "sign", author)
        origin = ", ".join(filter(None, (by, get(arguments, "source", "title", title))))
        return f"\n{text}\n" + (f"— {origin}\n" if origin else "") if text else ""

    return rule


def term(arguments: Arguments) -> str:
    return f"\n{get(arguments, 'content', '2', 'term', '1')}\n"


def sic(arguments: Arguments) -> str:
    """{{sic|incorr|ect}} -> incorrect [sic]."""
    return f"{joined(arguments)} {'' if is_on(arguments, 'hide') else '[sic]'}".strip()


def section(arguments: Arguments) -> str:
    """{{section link|Page|History}} -> Page § History; without a page, the section is of the article itself."""
    page, name = places(arguments, 2)
    return f"{page} § {name}".strip() if name else page


def interlanguage(arguments: Arguments) -> str:
    """{{ill|Title|de|…}}, formerly {{ill|de|Titel|Title}}; lt= is the label."""
    parts = values(arguments)
    label = get(arguments, "lt", "display")
    if not label and len(parts) > 1 and _LANGUAGE_CODE.fullmatch(parts[0]):
        label = parts[2] if len(parts) > 2 else parts[1]
    return label or (parts[0] if parts else "")


def anchor(arguments: Arguments) -> str:
    return get(arguments, "text", "1")


def resized(arguments: Arguments) -> str:
    """{{resize|90%|text}}, {{font color|red|text}}: the text is the last argument, or named."""
    return get(arguments, "text", "content") or last(arguments)


def ship(prefix: str) -> Rule:
    """{{USS|Nimitz|CVN-68}} -> USS Nimitz (CVN-68); the third argument selects the parts to show."""

    def rule(arguments: Arguments) -> str:
        return _ship_name(prefix, get(arguments, "1"), get(arguments, "2"), get(arguments, "3", "up"))

    return rule


def ship_of(arguments: Arguments) -> str:
    """{{ship|French ship|Orient|1791|2}}: like {{USS}}, with the prefix as the first argument."""
    return _ship_name(get(arguments, "1"), get(arguments, "2"), get(arguments, "3"), get(arguments, "4", "up"))


def _ship_name(prefix: str, name: str, mark: str, parts: str) -> str:
    if parts == "2":
        return name
    if parts == "1" and mark:
        return mark
    shown = name if parts == "5" else f"{prefix} {name}".strip()
    return f"{shown} ({mark})" if mark and parts not in ("3", "4", "6") else shown


def ship_class(arguments: Arguments) -> str:
    """{{sclass|Nimitz|aircraft carrier}} -> Nimitz-class aircraft carrier; {{sclass|Nimitz|…|4}} -> Nimitz class."""
    name, kind, parts = get(arguments, "1"), get(arguments, "2"), get(arguments, "3")
    if parts in ("4", "5") or not kind:
        return f"{name} class"
    return f"{name}-class" if parts == "1" else f"{name}-class {kind}"


def country(arguments: Arguments) -> str:
    """{{flag|FRA}} -> France; {{flag|Tennessee}} -> Tennessee."""
    name = get(arguments, "name", "1")
    return COUNTRIES.get(name, name)


def youth_team(arguments: Arguments) -> str:
    """{{fbu|21|ITA}} -> Italy."""
    return country({"1": get(arguments, "2")})


def athlete(arguments: Arguments) -> str:
    """{{flagathlete|[[X]]|FRA}} -> X (FRA)."""
    return " ".join(filter(None, (get(arguments, "1"), f"({get(arguments, '2')})" if get(arguments, "2") else "")))


def verse(arguments: Arguments) -> str:
    """{{bibleverse|1|John|3:16|KJV}} -> 1 John 3:16; the argument after the verse is the translation."""
    shown: list[str] = []
    for part in values(arguments)[:3]:
        shown.append(part)
        if len(shown) > 1 and part[0].isdigit():
            break
    return " ".join(shown)


# ---- languages ----


def language_of(code: str) -> Rule:
    """{{lang-ru|Москва|Moskva|Moscow}} -> Russian: Москва, romanized: Moskva, lit. 'Moscow'."""
    name = LANGUAGES.get(code.lower(), "")

    def rule(arguments: Arguments) -> str:
        shown = get(arguments, "1", "text")
        if name and shown and get(arguments, "label").lower() != "none":
            shown = f"{get(arguments, 'label') or name}: {shown}"
        return shown + _glosses(get(arguments, "translit", "2"), get(arguments, "translation", "lit", "3"))

    return rule


def language(arguments: Arguments) -> str:
    """{{langx|ru|Москва|…}}: the same as {{lang-ru|Москва|…}}."""
    shifted = {"1": get(arguments, "2"), "2": get(arguments, "3"), "3": get(arguments, "4")}
    return language_of(get(arguments, "1"))(arguments | shifted)


def native_name(arguments: Arguments) -> str:
    """{{native name|fr|République}} -> République (French)."""
    code, name = places(arguments, 2)
    known = LANGUAGES.get(code.lower(), "") if get(arguments, "paren") not in ("off", "omit", "no") else ""
    return f"{name} ({known})" if name and known else name


def _glosses(romanized: str, literal: str) -> str:
    return (f", romanized: {romanized}" if romanized else "") + (f", lit. '{literal}'" if literal else "")


def nihongo(arguments: Arguments) -> str:
    """{{nihongo|English|漢字|romaji|more|after}} -> English (漢字, romaji, more) after."""
    english, *inner = (get(arguments, key) for key in "1234")
    after = get(arguments, "5", "extra2")
    japanese = ", ".join(filter(None, (*inner[:2], inner[2] or get(arguments, "extra"))))
    return " ".join(filter(None, (english, f"({japanese})" if english and japanese else japanese, after)))


def nihongo3(arguments: Arguments) -> str:
    """{{nihongo3|English|漢字|romaji}} -> romaji (漢字, English)."""
    return nihongo({"1": get(arguments, "3"), "2": get(arguments, "2"), "3": get(arguments, "1")})


def labelled(labels: str) -> Rule:
    """{{zh|c=漢字|p=hànzì}} -> Chinese: 漢字; pinyin: hànzì."""
    names = [pair.split("=") for pair in labels.split("|")]

    def rule(arguments: Arguments) -> str:
        bare = get(arguments, "labels") == "no"
        shown = ((label, get(arguments, key)) for key, label in names)
        return "; ".join(_labelled(label, text, bare) for label, text in shown if text) or first(arguments)

    return rule


def _labelled(label: str, text: str, bare: bool) -> str:
    if label == "lit.":
        return f"lit. '{text}'"
    return text if bare else f"{label}: {text}"
