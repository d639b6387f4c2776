"""MediaWiki dumps for tests, in the format of Wikimedia's downloads."""

import bz2
from xml.sax.saxutils import escape

HEAD = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11">
  <siteinfo><namespaces><namespace key="0"/><namespace key="10">Template</namespace></namespaces></siteinfo>
"""
TAIL = "</mediawiki>\n"


def page(number, title, text, ns=0, redirect="", revision=0):
    editor = "<contributor><username>U</username><id>77</id></contributor>"
    return (
        f"  <page>\n    <title>{escape(title)}</title>\n    <ns>{ns}</ns>\n    "
        f"<id>{number}</id>\n{redirect}    "
        f"<revision><id>{revision or number + 10**6}</id>{editor}<text>{escape(text)}</text></revision>\n "
        " </page>\n"
    )


def multistream(path, pages, each):
    """A multistream dump: a stream with the head, streams of a number of pages, and a stream with
    the tail.
    """
    parts = [HEAD, *("".join(pages[at : at + each]) for at in range(0, len(pages), each)), TAIL]
    path.write_bytes(b"".join(bz2.compress(part.encode()) for part in parts))
    return path
