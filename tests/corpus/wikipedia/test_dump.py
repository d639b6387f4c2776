"""The pages of dumps like those of Wikimedia, whole and damaged."""

import bz2
import gzip
import lzma
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
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

HEAD = '<mediawiki xmlns="http://www.mediawiki.org/xml/export-{}/" version="{}">\n'
SITE = '<siteinfo><namespaces><namespace key="0"/><namespace key="10">Template</namespace></namespaces></siteinfo>'


def page(page_id: str, title: str, text: str, ns: str | None = "0", redirect: str = "") -> str:
    parts = [f"<title>{escape(title)}</title>", f"<ns>{ns}</ns>" if ns else "", f"<id>{page_id}</id>", redirect]
    revision = (
        f"<id>9{page_id}</id><contributor><username>U</username><id>77</id></contributor><text>{escape(text)}</text>"
    )
    return f"<page>{''.join(parts)}<revision>{revision}</revision></page>\n"


PAGES = [
    page("1", "A & B", "first <ref>&amp;</ref>\n'''é'''"),
    page("2", "Old", "#REDIRECT [[A & B]]", redirect='<redirect title="A &amp; B"/>'),
    page("3", "Template:X", "x", ns="10"),
    page("4", "C (disambiguation)", "{{disambiguation}}"),
    page("5", "D", "{{Place name disambiguation|x}}"),
    page("6", "E", "{{other uses|E (disambiguation)}} which{{Disambiguation needed|date=May}} one"),
]
WHOLE = HEAD.format("0.11", "0.11") + SITE + "".join(PAGES) + "</mediawiki>\n"


def read(path: Path, tally: Tally | None = None) -> Iterator[Page]:
    with open(path, "rb") as handle, unpack(handle) as xml:
        yield from parse_pages(iter(lambda: xml.read(1000), b""), str(path), tally or Tally())


def write(path: Path, xml: str) -> Path:
    path.write_text(xml, encoding="utf-8")
    return path


def test_articles_come_in_order_and_the_rest_is_counted(tmp_path: Path) -> None:
    tally = Tally()
    pages = list(read(write(tmp_path / "d.xml", WHOLE), tally))
    assert pages[0] == Page("1", "A & B", "first <ref>&amp;</ref>\n'''é'''")
    assert [page.id for page in pages] == ["1", "4", "5", "6"]
    assert tally.left_out == {"redirect": 1, "namespace": 1}


@pytest.mark.parametrize("version", ["0.3", "0.10", "0.11"])
def test_any_version_of_the_export_schema_is_read(tmp_path: Path, version: str) -> None:
    xml = HEAD.format(version, version) + SITE + PAGES[0] + "</mediawiki>"
    assert [page.title for page in read(write(tmp_path / "d.xml", xml))] == ["A & B"]
    prefixed = xml.replace("<", "<mw:").replace("<mw:/", "</mw:").replace("xmlns=", "xmlns:mw=")
    assert [page.title for page in read(write(tmp_path / "p.xml", prefixed))] == ["A & B"]


def multistream(xml: str) -> bytes:
    """Head, pairs of pages, and tail as separate streams, as Wikimedia publishes them."""
    cuts = [
        xml.index("<page>"),
        *(xml.index(f"<page><title>{title}") for title in ("Template:X", "D")),
        xml.index("</media"),
    ]
    return b"".join(bz2.compress(xml[a:b].encode()) for a, b in zip([0, *cuts], [*cuts, len(xml)], strict=True))


@pytest.mark.parametrize(
    ("suffix", "data"),
    [
        (".xml.bz2", bz2.compress(WHOLE.encode())),
        (".xml.bz2", multistream(WHOLE)),
        (".xml.gz", gzip.compress(WHOLE.encode())),
        (".xml.xz", lzma.compress(WHOLE.encode())),
    ],
    ids=["bz2", "multistream bz2", "gz", "xz"],
)
def test_compressed_dumps_are_read_and_cut_ones_refused(tmp_path: Path, suffix: str, data: bytes) -> None:
    whole, cut = tmp_path / f"whole{suffix}", tmp_path / f"cut{suffix}"
    whole.write_bytes(data)
    cut.write_bytes(data[: len(data) * 2 // 3])
    assert list(read(whole)) == list(read(write(tmp_path / "d.xml", WHOLE)))
    with pytest.raises(IfqaError, match=r"cut\.xml\..*fetch the file again") as caught:
        list(read(cut))
    assert "\n" not in str(caught.value)


def test_a_multistream_dump_cut_between_streams_is_refused(tmp_path: Path) -> None:
    data = multistream(WHOLE)
    (tmp_path / "d.xml.bz2").write_bytes(data[: data.rindex(b"BZh9")])
    with pytest.raises(IfqaError, match=r"after page 6 \('E'\): XML ends or breaks at line .*no element found"):
        list(read(tmp_path / "d.xml.bz2"))


@given(st.integers(0, len(WHOLE.rstrip()) - 1))
def test_all_whole_pages_of_a_cut_dump_are_read(length: int) -> None:
    ends = [WHOLE.index(PAGES[number]) + len(PAGES[number].rstrip()) for number in (0, 3, 4, 5)]
    pages = parse_pages([WHOLE[:length].encode()], "dump", Tally())
    assert [next(pages).id for end in ends if end <= length] == ["1", "4", "5", "6"][
        : sum(end <= length for end in ends)
    ]
    with pytest.raises(IfqaError, match="dump"):
        next(pages)


@given(st.integers(1, 400))
def test_pages_do_not_depend_on_where_blocks_end(size: int) -> None:
    data = WHOLE.encode()
    blocks = [data[start : start + size] for start in range(0, len(data), size)]
    assert list(parse_pages(blocks, "dump", Tally())) == list(parse_pages([data], "dump", Tally()))


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("d.xml", b"<html><body/></html>", "root element is <html>, wanted <mediawiki>"),
        ("d.xml", b"title\ttext\n", "not a MediaWiki XML dump"),
        ("d.xml", b"", "not a MediaWiki XML dump"),
        ("d.xml.bz2", b"BZh9" + b"<mediawiki></mediawiki>", "compressed data ends or breaks"),
        ("d.xml", b"<!DOCTYPE m [<!ENTITY a 'b'>]><mediawiki>&a;</mediawiki>", "declares a DTD"),
    ],
)
def test_a_wrong_dump_is_refused_in_one_line(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(IfqaError, match=message) as caught:
        list(read(tmp_path / name))
    assert str(caught.value).startswith(str(tmp_path / name))
    assert "\n" not in str(caught.value)


BAD = [
    (b"<page><ns>0</ns><id>1</id></page>", "page 1", "no usable <title>", None),
    (b"<page><title>A</title><ns>0</ns><revision><id>1</id></revision></page>", "A", "no usable <id>", None),
    (b"<page><title>A</title><ns>0</ns><id>1 2</id></page>", "A", "no usable <id>", None),
    (page("1", "A", "x" * 2000).encode(), "A", "<text> of more than 1,000 characters", None),
]


@pytest.mark.parametrize(("xml", "title", "reason", "text"), BAD)
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_a_bad_page_is_listed_and_the_others_are_read(
    monkeypatch: pytest.MonkeyPatch, xml: bytes, title: str, reason: str, text: str | None, size: int
) -> None:
    monkeypatch.setattr(dump, "LONGEST", 1000)
    data = HEAD.encode() + xml + PAGES[4].encode() + b"</mediawiki>"
    tally = Tally()
    pages = list(parse_pages([data[at : at + size] for at in range(0, len(data), size)], "dump", tally))
    assert [page.text for page in pages] == ([text] if text else []) + ["{{Place name disambiguation|x}}"]
    assert [bad["title"] for bad in tally.bad] == [title]
    assert reason in tally.bad[0]["reason"]
    assert tally.left_out["bad"] == (text is None)


def test_a_part_of_a_dump_may_stop_between_pages_but_not_inside_a_page() -> None:
    part = (HEAD + PAGES[0] + PAGES[4]).encode()
    assert len(list(parse_pages([part], "dump", Tally(), whole=False))) == 2
    with pytest.raises(IfqaError, match="XML ends or breaks"):
        list(parse_pages([part[:-20]], "dump", Tally(), whole=False))


@given(st.binary(max_size=200), st.integers(0, 400))
def test_any_bytes_in_a_dump_give_pages_or_a_one_line_error(noise: bytes, place: int) -> None:
    data = WHOLE.encode()
    try:
        list(parse_pages([data[:place] + noise + data[place:]], "dump", Tally()))
    except IfqaError as error:
        complaint = str(error)
    else:
        complaint = ""
    assert "\n" not in complaint


@pytest.mark.parametrize(
    ("begin", "more", "complaint"),
    [
        ("<page a='", "x", "no tag ends in 2 MB from line 1 on"),
        (f"{page('1', 'A', 'x')}<page><title>B</title><revision><text>", "x", "page 1 ('A'): no tag ends in 2 MB from line"),
        ("\n", " ", "no tag ends in 2 MB from line"),
        ("<!--", "x", "no tag ends in 2 MB from line"),
        ("\n", "<a>", "over 100 tags within one another at line 2"),
    ],
)  # fmt: skip
def test_a_dump_with_an_endless_element_is_refused_before_memory_is_full(
    monkeypatch: pytest.MonkeyPatch, begin: str, more: str, complaint: str
) -> None:
    monkeypatch.setattr(dump, "_UNTAGGED", 1 << 21)
    fed = 0

    def blocks() -> Iterator[bytes]:
        nonlocal fed
        yield f"<mediawiki>{begin}".encode()
        while fed < 50:
            fed += 1
            yield more.encode() * (dump.BLOCK // len(more))

    with pytest.raises(IfqaError) as caught:
        list(parse_pages(blocks(), "dump", Tally()))
    assert complaint in str(caught.value)
    assert fed <= 9


def test_memory_does_not_grow_with_the_dump() -> None:
    def peak(count: int) -> int:
        body = page("1", "A", "x" * 10_000) + page("2", "B", "y" * 10_000, redirect='<redirect title="A"/>')
        blocks = [HEAD.encode(), *[body.encode()] * count, b"</mediawiki>"]
        tracemalloc.start()
        assert sum(1 for _ in parse_pages(iter(blocks), "dump", Tally())) == count
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    assert peak(1000) < peak(50) + 100_000


def test_link_prefixes_that_the_siteinfo_translates_become_english(tmp_path: Path) -> None:
    names = '<namespace key="6">Bielde</namespace><namespace key="14">Kategory_x</namespace>'
    site = f'<siteinfo><namespaces><namespace key="0"/>{names}</namespaces></siteinfo>'
    text = "[[ bielde :A.jpg|b]] c [[Kategory x:D]] [[:Bielde:A.jpg]] [[Bielden]] [[Datei:E.jpg]]"
    article = f"<page><title>P</title><ns>0</ns><id>1</id><revision><text>{text}</text></revision></page>"
    (page,) = parse_pages([f"<mediawiki>{site}{article}</mediawiki>".encode()], "here", Tally())
    assert page.text == "[[File:A.jpg|b]] c [[Category:D]] [[:Bielde:A.jpg]] [[Bielden]] [[Datei:E.jpg]]"
    assert to_text(page.text) == "c Bielde:A.jpg Bielden"
