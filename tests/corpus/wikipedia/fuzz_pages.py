"""Fuzzes the passage builder with mutated pages: no page may crash it or take more than two seconds.

    python tests/corpus/wikipedia/fuzz_pages.py --pages 10000 [--dump FILE.xml.bz2] [--long 40] [--seed 0]

Each page is a piece of a page of a dump (by default the bundled encyclopedia) with marks of wikitext, unclosed and
nested, NUL bytes and bytes that are not UTF-8 put in; `--long` pages are one line of 5 MB. Each page goes as XML through
the parser, all profiles and the splitter. Prints the slowest pages; exits with 1 if a page is too slow.
"""

import argparse
import html
import random
import sys
import time
from pathlib import Path
from typing import get_args

from ifqa.corpus.wikipedia.dump import parse_pages
from ifqa.corpus.wikipedia.source import split
from ifqa.corpus.wikipedia.wikitext import Profile, to_text
from ifqa.corpus.work_units import Tally
from ifqa.errors import IfqaError
from ifqa.storage.files import unpack

LIMIT = 2.0  # seconds a page
LONG = 5_000_000  # characters
SAMPLE = Path(__file__).parents[3] / "ifqa/bundled/sample/encyclopedia.xml"
MARKS = """{{ }} {{{ }}} [[ ]] [ ] {| |} |- || | ! '' ''' ''''' == === <ref> <ref </ref> <ref/> <!-- --> <nowiki> </nowiki> <math>
</math> <table> </table> <gallery> <div <br> &nbsp; &amp;lt; &#0; &#xD800; __TOC__ [[File: [[a| {{convert|1|km|mi}}
{{convert {{frac|1| {{lang|fr| {{nowrap| {{ubl {{plainlist| {{#if: {{'s}} <sup> </sup> http:// [http://a ~~~~ -{ }-""".split()
MARKS += ["\n", "\n*", "\n#", "\n:", "\n;", " "]


def mutate(chance: random.Random, text: str) -> str:
    """A piece of a page with marks inserted, removed, repeated and nested."""
    start = chance.randrange(len(text) + 1)
    piece = text[start : start + chance.choice([50, 500, 5000, 50_000])]
    for _ in range(chance.randint(1, 40)):
        at = chance.randrange(len(piece) + 1)
        what = chance.random()
        if what < 0.5:
            piece = piece[:at] + chance.choice(MARKS) * chance.choice([1, 1, 1, 2, 200]) + piece[at:]
        elif what < 0.7:
            piece = piece[:at] + piece[at + chance.randint(1, 30) :]
        elif what < 0.9:
            deep = chance.choice([2, 20, 200])
            piece = piece[:at] + chance.choice(["{{", "[[", "{|\n", "<div>", "{{convert|"]) * deep + piece[at:]
        else:
            piece = piece[:at] + chance.choice(["\u00a0", "\u200b", "\ufffd", "\u2028", "𝒳", "a" * 3000]) + piece[at:]
    return piece


def long_line(chance: random.Random) -> str:
    """One line that repeats a few marks."""
    unit = "".join(chance.choices([*MARKS, "a ", "word "], k=chance.randint(1, 4))).replace("\n", " ")
    return (unit * (LONG // len(unit) + 1))[:LONG]


def dirty(chance: random.Random, xml: bytes) -> bytes:
    """Put NUL and bytes that are not UTF-8 into the text."""
    start, end = xml.index(b"<text>") + 6, xml.rindex(b"</text>")
    for _ in range(chance.randint(1, 5)):
        at = chance.randint(start, end)
        xml = xml[:at] + chance.choice([b"\0", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90", b"\x1b"]) + xml[at:]
    return xml


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=10_000)
    parser.add_argument("--long", type=int, default=40, help="further pages, of one line of 5 MB")
    parser.add_argument("--dump", type=Path, default=SAMPLE)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    with arguments.dump.open("rb") as handle, unpack(handle) as xml:
        chunks = iter(lambda: xml.read(1 << 18), b"")
        texts = [page.text for page in parse_pages(chunks, str(arguments.dump), Tally())]
    slowest: list[tuple[float, str]] = []
    tally, refused = Tally(), 0
    for number in range(arguments.pages + arguments.long):
        text = mutate(chance, chance.choice(texts)) if number < arguments.pages else long_line(chance)
        text = "".join(char for char in text if char >= " " or char in "\n\t")
        page = f"<page><title>P</title><ns>0</ns><id>1</id><revision><text>{html.escape(text)}</text></revision></page>"
        data = f"<mediawiki>{page}</mediawiki>".encode()
        if chance.random() < 0.2:
            data = dirty(chance, data)
        began = time.process_time()
        try:
            pages = list(parse_pages([data], "fuzz", tally))
        except IfqaError:  # a byte is inside an entity: the XML is broken, and refused
            refused += 1
            continue
        parsed = time.process_time() - began
        for profile in get_args(Profile):
            began = time.process_time()
            for parsed_page in pages:
                split(to_text(parsed_page.text, profile))
            slowest.append(
                (parsed + time.process_time() - began, f"{profile}, {len(text):,} characters: {text[:60]!r}")
            )
        slowest = sorted(slowest, reverse=True)[:5]
    print(
        f"{arguments.pages} mutated pages and {arguments.long} of 5 MB: no crash; {len(tally.bad)} listed as bad, {refused} refused"
    )
    for seconds, what in slowest:
        print(f"{seconds:.2f} s {what}")
    return int(any(seconds > LIMIT for seconds, _ in slowest))


if __name__ == "__main__":
    sys.exit(main())
