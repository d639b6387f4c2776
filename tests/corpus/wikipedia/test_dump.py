"""Pages of complete and damaged dumps, and the split of multistream dumps."""

import bz2
import gzip
import lzma
import re
import tracemalloc
from itertools import chain

import pytest
from dumps import HEAD, TAIL, multistream, page
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from ifqa.corpus.wikipedia import dump
from ifqa.corpus.wikipedia.dump import Page, parse_pages, split_streams, stream_header
from ifqa.corpus.wikipedia.wikitext import to_text
from ifqa.corpus.work_units import SkippedPages
from ifqa.errors import IfqaError
from ifqa.storage.files import unpack


def parse(*blocks, tally=None, complete=True):
    return parse_pages(blocks, "dump", tally or SkippedPages(), complete=complete)


PAGES = [
    page(1, "A & B", "first <ref>&amp;</ref>\n'''é'''"),
    page(2, "Old", "#REDIRECT [[A & B]]", redirect='<redirect title="A &amp; B"/>'),
    page(3, "Template:X", "x", ns=10),
    page(4, "C (disambiguation)", "{{disambiguation}}"),
    page(5, "D", "{{Place name disambiguation|x}}"),
    page(6, "E", "{{other uses|E (disambiguation)}} which{{Disambiguation needed|date=May}} one"),
]
WHOLE = HEAD + "".join(PAGES) + TAIL


def read(path):
    with open(path, "rb") as handle, unpack(handle) as xml:
        return list(parse_pages(iter(lambda: xml.read(1000), b""), str(path), SkippedPages()))


def test_articles_come_in_order():
    pages = list(parse(WHOLE.encode()))
    assert pages[0] == Page("1", "A & B", "first <ref>&amp;</ref>\n'''é'''", 1_000_001)
    assert [page.id for page in pages] == ["1", "4", "5", "6"]


def test_pages_that_are_no_articles_are_counted():
    tally = SkippedPages()
    list(parse(WHOLE.encode(), tally=tally))
    assert tally.left_out == {"redirect": 1, "namespace": 1}


@pytest.mark.parametrize("version", ["0.3", "0.10"])
def test_any_version_of_the_export_schema_is_read(version):
    xml = WHOLE.replace("0.11", version)
    prefixed = xml.replace("<", "<mw:").replace("<mw:/", "</mw:").replace("xmlns=", "xmlns:mw=")
    for text in (xml, prefixed):
        assert [page.id for page in parse(text.encode())] == ["1", "4", "5", "6"]


PACKED = pytest.mark.parametrize(
    ("suffix", "packed"),
    [
        ("bz2", bz2.compress(WHOLE.encode())),
        ("bz2", bz2.compress(WHOLE[:700].encode()) + bz2.compress(WHOLE[700:].encode())),
        ("gz", gzip.compress(WHOLE.encode())),
        ("xz", lzma.compress(WHOLE.encode())),
    ],
    ids=["bz2", "streams", "gz", "xz"],
)


@PACKED
def test_a_packed_dump_is_read(tmp_path, suffix, packed):
    complete = tmp_path / f"complete.xml.{suffix}"
    complete.write_bytes(packed)
    assert read(complete) == list(parse(WHOLE.encode()))


@PACKED
def test_a_truncated_dump_is_refused(tmp_path, suffix, packed):
    truncated = tmp_path / f"truncated.xml.{suffix}"
    truncated.write_bytes(packed[: len(packed) * 2 // 3])
    with refused(r"truncated\.xml\..*fetch the file again"):
        read(truncated)


@given(st.integers(0, len(WHOLE.rstrip()) - 1))
def test_all_complete_pages_of_a_truncated_dump_are_read(length):
    ends = [WHOLE.index(PAGES[number]) + len(PAGES[number].rstrip()) for number in (0, 3, 4, 5)]
    count = sum(end <= length for end in ends)
    pages = parse(WHOLE[:length].encode())
    assert [next(pages).id for _ in range(count)] == ["1", "4", "5", "6"][:count]
    with pytest.raises(IfqaError, match="dump"):
        next(pages)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("d.xml", b"<html><body/></html>", "root element is <html>, wanted <mediawiki>"),
        ("d.xml", b"title\ttext\n", "not a MediaWiki XML dump"),
        ("d.xml", b"", "not a MediaWiki XML dump"),
        (
            "d.xml.bz2",
            b"BZh9" + b"<mediawiki></mediawiki>",
            "the compressed data is truncated or damaged",
        ),
        ("d.xml", b"<!DOCTYPE m [<!ENTITY a 'b'>]><mediawiki>&a;</mediawiki>", "declares a DTD"),
    ],
)
def test_a_wrong_dump_is_refused_in_one_line(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with refused(f"^{tmp_path / name}.*{message}"):
        read(tmp_path / name)


@pytest.fixture(params=[1, 7, 10_000])
def parse_after(request, monkeypatch):
    """A function that parses a page and a good one, in blocks of a size: pages and tally."""
    monkeypatch.setattr(dump, "LONGEST", 1000)
    size = request.param

    def parse_both(xml):
        content = f"{HEAD}{xml}{PAGES[4]}</mediawiki>".encode()
        tally = SkippedPages()
        blocks = (content[at : at + size] for at in range(0, len(content), size))
        return list(parse(*blocks, tally=tally)), tally

    return parse_both


BAD_PAGES = pytest.mark.parametrize(
    ("xml", "title", "reason"),
    [
        ("<page><ns>0</ns><id>1</id></page>", "page 1", "no usable <title>"),
        (
            "<page><title>A</title><ns>0</ns><revision><id>1</id></revision></page>",
            "A",
            "no usable <id>",
        ),
        ("<page><title>A</title><ns>0</ns><id>1 2</id></page>", "A", "no usable <id>"),
        (page(1, "A", "x" * 2000), "A", "<text> of more than 1,000 characters"),
    ],
)


@BAD_PAGES
def test_a_bad_page_is_listed_with_its_reason(parse_after, xml, title, reason):
    _, tally = parse_after(xml)
    assert [page["title"] for page in tally.bad] == [title]
    assert reason in tally.bad[0]["reason"]
    assert tally.left_out["bad"] == 1


@BAD_PAGES
def test_pages_after_a_bad_one_are_read(parse_after, xml, title, reason):
    pages, _ = parse_after(xml)
    assert [page.id for page in pages] == ["5"]


def test_a_part_of_a_dump_may_stop_between_pages_but_not_inside_a_page():
    part = (HEAD + PAGES[0] + PAGES[4]).encode()
    assert len(list(parse(part, complete=False))) == 2
    with pytest.raises(IfqaError, match="the XML is truncated or damaged"):
        list(parse(part[:-20], complete=False))


@given(st.binary(max_size=200), st.integers(0, 400))
def test_any_bytes_in_a_dump_give_pages_or_a_one_line_error(noise, place):
    xml = WHOLE.encode()
    try:
        list(parse(xml[:place] + noise + xml[place:]))
    except IfqaError as error:
        assert "\n" not in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    ("begin", "more", "message"),
    [
        ("<page a='", "x", "no tag ends in 2 MB from line 1 on"),
        (
            f"{page(1, 'A', 'x')}<page><title>B</title><revision><text>",
            "x",
            "page 1 ('A'): no tag ends in 2 MB from line",
        ),
        ("<!--", "x", "no tag ends in 2 MB from line"),
        ("\n", "<a>", "over 100 nested tags at line 2"),
    ],
)
def test_a_dump_with_an_endless_element_is_refused_before_memory_is_full(
    monkeypatch, begin, more, message
):
    monkeypatch.setattr(dump, "_UNTAGGED", 1 << 21)
    fed = iter(range(50))

    def blocks():
        yield f"<mediawiki>{begin}".encode()
        for _ in fed:
            yield more.encode() * (dump.BLOCK // len(more))

    with refused(re.escape(message)):
        list(parse_pages(blocks(), "dump", SkippedPages()))
    assert next(fed) <= 9


def test_memory_does_not_grow_with_the_dump():
    def peak(count):
        body = page(1, "A", "x" * 10_000) + page(
            2, "B", "y" * 10_000, redirect='<redirect title="A"/>'
        )
        tracemalloc.start()
        pages = parse_pages(
            iter([HEAD.encode(), *[body.encode()] * count, b"</mediawiki>"]), "dump", SkippedPages()
        )
        assert sum(1 for _ in pages) == count
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    assert peak(1000) < peak(50) + 100_000


def test_link_prefixes_that_the_siteinfo_translates_become_english():
    names = '<namespace key="6">Bielde</namespace><namespace key="14">Kategory_x</namespace>'
    site = f'<siteinfo><namespaces><namespace key="0"/>{names}</namespaces></siteinfo>'
    text = "[[ bielde :A.jpg|b]] c [[Kategory x:D]] [[:Bielde:A.jpg]] [[Bielden]] [[Datei:E.jpg]]"
    [article] = parse(f"<mediawiki>{site}{page(1, 'P', text)}</mediawiki>".encode())
    assert (
        article.text
        == "[[File:A.jpg|b]] c [[Category:D]] [[:Bielde:A.jpg]] [[Bielden]] [[Datei:E.jpg]]"
    )
    assert to_text(article.text) == "c Bielde:A.jpg Bielden"


ARTICLES = [page(n, f"Page {n}", f"text {n} " * (n % 7 * 50)) for n in range(1, 60)]
STREAMED = (HEAD + "".join(ARTICLES) + TAIL).encode()


def titles(path, size):
    header = stream_header(path)
    assert header is not None
    groups = list(split_streams(path, header, size))
    assert b"".join(streams.packed for streams in groups) == path.read_bytes()
    pages = (
        parse_pages(streams.xml(), streams.where, SkippedPages(), complete=streams.last)
        for streams in groups
    )
    return [page.title for page in chain.from_iterable(pages)]


@settings(max_examples=20)
@given(st.integers(1, 30), st.sampled_from([1, 300, 5000, 10**9]))
def test_all_pages_are_read_wherever_the_streams_are_split(tmp_path_factory, each, size):
    path = multistream(tmp_path_factory.mktemp("dump") / "d.xml.bz2", ARTICLES, each)
    assert titles(path, size) == [f"Page {n}" for n in range(1, 60)]


@pytest.mark.parametrize(
    "content",
    [
        bz2.compress(STREAMED),
        b"".join(bz2.compress(STREAMED[at : at + 700]) for at in range(0, 9000, 700)),
        (HEAD + TAIL).encode(),
        bz2.compress(b"text") + bz2.compress(b" <page>"),
        bz2.compress(HEAD.encode()) + b"BZh91AY&SY damaged",
        b"",
    ],
    ids=["one stream", "streams that split pages", "plain", "no dump", "damaged", "empty"],
)
def test_a_file_that_is_no_multistream_dump_has_no_header(tmp_path, content):
    (tmp_path / "d.xml.bz2").write_bytes(content)
    assert stream_header(tmp_path / "d.xml.bz2") is None


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda packed: packed[: len(packed) // 2], "from byte .*fetch the file again"),
        (lambda packed: packed[: packed.rindex(b"BZh9")], "the XML is truncated or damaged"),
        (
            lambda packed: packed[:2000] + bytes(40) + packed[2040:],
            "the compressed data is truncated or damaged",
        ),
        (lambda packed: packed + b"more", "the compressed data is truncated or damaged"),
    ],
    ids=["truncated in a stream", "truncated between streams", "damaged", "trailing bytes"],
)
def test_a_damaged_dump_is_refused_with_the_location(tmp_path, damage, message):
    path = multistream(tmp_path / "d.xml.bz2", ARTICLES, 5)
    path.write_bytes(damage(path.read_bytes()))
    with refused(message):
        titles(path, 300)


def test_streams_that_unpack_to_too_much_are_refused(tmp_path, monkeypatch):
    path = multistream(tmp_path / "d.xml.bz2", ARTICLES, 5)
    monkeypatch.setattr(dump, "_UNPACKED", len(STREAMED))
    assert len(titles(path, 10**9)) == 59
    monkeypatch.setattr(dump, "_UNPACKED", len(STREAMED) - 1)
    with pytest.raises(
        IfqaError, match=r"from byte 0: [\d,]+ bytes unpack to over .* unpack the file and name it"
    ):
        titles(path, 10**9)
