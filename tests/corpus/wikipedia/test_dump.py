"""The pages of dumps like those of Wikimedia, whole and damaged."""

import bz2
import gzip
import lzma
import tracemalloc
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.corpus.wikipedia import dump
from ifqa.corpus.wikipedia.dump import Page, parse_pages
from ifqa.corpus.wikipedia.wikitext import to_text
from ifqa.corpus.work_units import Tally
from ifqa.errors import IfqaError
from ifqa.storage.files import unpack

HEAD = '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11">\n'
SITE = '<siteinfo><namespaces><namespace key="0"/><namespace key="10">Template</namespace></namespaces></siteinfo>'


def page(page_id, title, text, ns="0", redirect=""):
    editor = f"<id>9{page_id}</id><contributor><username>U</username><id>77</id></contributor>"
    revision = f"<revision>{editor}<text>{escape(text)}</text></revision>"
    return f"<page><title>{escape(title)}</title><ns>{ns}</ns><id>{page_id}</id>{redirect}{revision}</page>\n"


PAGES = [
    page("1", "A & B", "first <ref>&amp;</ref>\n'''é'''"),
    page("2", "Old", "#REDIRECT [[A & B]]", redirect='<redirect title="A &amp; B"/>'),
    page("3", "Template:X", "x", ns="10"),
    page("4", "C (disambiguation)", "{{disambiguation}}"),
    page("5", "D", "{{Place name disambiguation|x}}"),
    page("6", "E", "{{other uses|E (disambiguation)}} which{{Disambiguation needed|date=May}} one"),
]
WHOLE = HEAD + SITE + "".join(PAGES) + "</mediawiki>\n"


def read(path):
    with open(path, "rb") as handle, unpack(handle) as xml:
        return list(parse_pages(iter(lambda: xml.read(1000), b""), str(path), Tally()))


def test_articles_come_in_order_and_the_rest_is_counted():
    tally = Tally()
    pages = list(parse_pages([WHOLE.encode()], "dump", tally))
    assert pages[0] == Page("1", "A & B", "first <ref>&amp;</ref>\n'''é'''")
    assert [page.id for page in pages] == ["1", "4", "5", "6"]
    assert tally.left_out == {"redirect": 1, "namespace": 1}


@pytest.mark.parametrize("version", ["0.3", "0.10"])
def test_any_version_of_the_export_schema_is_read(version):
    xml = WHOLE.replace("0.11", version)
    prefixed = xml.replace("<", "<mw:").replace("<mw:/", "</mw:").replace("xmlns=", "xmlns:mw=")
    for text in (xml, prefixed):
        assert [page.id for page in parse_pages([text.encode()], "dump", Tally())] == ["1", "4", "5", "6"]


def multistream(xml):
    """Head, pairs of pages, and tail as separate streams, as Wikimedia publishes them."""
    starts = [0, *(xml.index(part) for part in ("<page>", PAGES[2], PAGES[4], "</media"))]
    return b"".join(bz2.compress(xml[a:b].encode()) for a, b in zip(starts, [*starts[1:], len(xml)], strict=True))


@pytest.mark.parametrize(
    ("suffix", "packed"),
    [("bz2", bz2.compress(WHOLE.encode())), ("bz2", multistream(WHOLE)), ("gz", gzip.compress(WHOLE.encode())), ("xz", lzma.compress(WHOLE.encode()))],
    ids=["bz2", "multistream", "gz", "xz"],
)  # fmt: skip
def test_packed_dumps_are_read_and_cut_ones_refused(tmp_path, suffix, packed):
    whole, cut = tmp_path / f"whole.xml.{suffix}", tmp_path / f"cut.xml.{suffix}"
    whole.write_bytes(packed)
    cut.write_bytes(packed[: len(packed) * 2 // 3])
    assert read(whole) == list(parse_pages([WHOLE.encode()], "dump", Tally()))
    with pytest.raises(IfqaError, match=r"cut\.xml\..*fetch the file again") as caught:
        read(cut)
    assert "\n" not in str(caught.value)


@given(st.integers(0, len(WHOLE.rstrip()) - 1))
def test_all_whole_pages_of_a_cut_dump_are_read(length):
    ends = [WHOLE.index(PAGES[number]) + len(PAGES[number].rstrip()) for number in (0, 3, 4, 5)]
    whole = sum(end <= length for end in ends)
    pages = parse_pages([WHOLE[:length].encode()], "dump", Tally())
    assert [next(pages).id for _ in range(whole)] == ["1", "4", "5", "6"][:whole]
    with pytest.raises(IfqaError, match="dump"):
        next(pages)


@given(st.integers(1, 400))
def test_pages_do_not_depend_on_where_blocks_end(size):
    xml = WHOLE.encode()
    blocks = [xml[start : start + size] for start in range(0, len(xml), size)]
    assert list(parse_pages(blocks, "dump", Tally())) == list(parse_pages([xml], "dump", Tally()))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("d.xml", b"<html><body/></html>", "root element is <html>, wanted <mediawiki>"),
        ("d.xml", b"title\ttext\n", "not a MediaWiki XML dump"),
        ("d.xml", b"", "not a MediaWiki XML dump"),
        ("d.xml.bz2", b"BZh9" + b"<mediawiki></mediawiki>", "compressed data ends or breaks"),
        ("d.xml", b"<!DOCTYPE m [<!ENTITY a 'b'>]><mediawiki>&a;</mediawiki>", "declares a DTD"),
    ],
)
def test_a_wrong_dump_is_refused_in_one_line(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(IfqaError, match=message) as caught:
        read(tmp_path / name)
    assert str(caught.value).startswith(str(tmp_path / name))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("xml", "title", "reason"),
    [
        ("<page><ns>0</ns><id>1</id></page>", "page 1", "no usable <title>"),
        ("<page><title>A</title><ns>0</ns><revision><id>1</id></revision></page>", "A", "no usable <id>"),
        ("<page><title>A</title><ns>0</ns><id>1 2</id></page>", "A", "no usable <id>"),
        (page("1", "A", "x" * 2000), "A", "<text> of more than 1,000 characters"),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_a_bad_page_is_listed_and_the_others_are_read(monkeypatch, xml, title, reason, size):
    monkeypatch.setattr(dump, "LONGEST", 1000)
    content, tally = f"{HEAD}{xml}{PAGES[4]}</mediawiki>".encode(), Tally()
    blocks = [content[at : at + size] for at in range(0, len(content), size)]
    assert [page.id for page in parse_pages(blocks, "dump", tally)] == ["5"]
    assert [bad["title"] for bad in tally.bad] == [title]
    assert reason in tally.bad[0]["reason"]
    assert tally.left_out["bad"] == 1


def test_a_part_of_a_dump_may_stop_between_pages_but_not_inside_a_page():
    part = (HEAD + PAGES[0] + PAGES[4]).encode()
    assert len(list(parse_pages([part], "dump", Tally(), whole=False))) == 2
    with pytest.raises(IfqaError, match="XML ends or breaks"):
        list(parse_pages([part[:-20]], "dump", Tally(), whole=False))


@given(st.binary(max_size=200), st.integers(0, 400))
def test_any_bytes_in_a_dump_give_pages_or_a_one_line_error(noise, place):
    xml, complaint = WHOLE.encode(), ""
    try:
        list(parse_pages([xml[:place] + noise + xml[place:]], "dump", Tally()))
    except IfqaError as error:
        complaint = str(error)
    assert "\n" not in complaint


@pytest.mark.parametrize(
    ("begin", "more", "complaint"),
    [
        ("<page a='", "x", "no tag ends in 2 MB from line 1 on"),
        (f"{page('1', 'A', 'x')}<page><title>B</title><revision><text>", "x", "page 1 ('A'): no tag ends in 2 MB from line"),
        ("<!--", "x", "no tag ends in 2 MB from line"),
        ("\n", "<a>", "over 100 tags within one another at line 2"),
    ],
)  # fmt: skip
def test_a_dump_with_an_endless_element_is_refused_before_memory_is_full(monkeypatch, begin, more, complaint):
    monkeypatch.setattr(dump, "_UNTAGGED", 1 << 21)
    fed = iter(range(50))

    def blocks():
        yield f"<mediawiki>{begin}".encode()
        for _ in fed:
            yield more.encode() * (dump.BLOCK // len(more))

    with pytest.raises(IfqaError) as caught:
        list(parse_pages(blocks(), "dump", Tally()))
    assert complaint in str(caught.value)
    assert next(fed) <= 9


def test_memory_does_not_grow_with_the_dump():
    def peak(count):
        body = page("1", "A", "x" * 10_000) + page("2", "B", "y" * 10_000, redirect='<redirect title="A"/>')
        tracemalloc.start()
        pages = parse_pages(iter([HEAD.encode(), *[body.encode()] * count, b"</mediawiki>"]), "dump", Tally())
        assert sum(1 for _ in pages) == count
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    assert peak(1000) < peak(50) + 100_000


def test_link_prefixes_that_the_siteinfo_translates_become_english():
    names = '<namespace key="6">Bielde</namespace><namespace key="14">Kategory_x</namespace>'
    site = f'<siteinfo><namespaces><namespace key="0"/>{names}</namespaces></siteinfo>'
    text = "[[ bielde :A.jpg|b]] c [[Kategory x:D]] [[:Bielde:A.jpg]] [[Bielden]] [[Datei:E.jpg]]"
    [article] = parse_pages([f"<mediawiki>{site}{page('1', 'P', text)}</mediawiki>".encode()], "here", Tally())
    assert article.text == "[[File:A.jpg|b]] c [[Category:D]] [[:Bielde:A.jpg]] [[Bielden]] [[Datei:E.jpg]]"
    assert to_text(article.text) == "c Bielde:A.jpg Bielden"
