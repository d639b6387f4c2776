"""Dumps and article files, made here in the formats that are downloaded."""

import bz2
import gzip
import json
import lzma
import tracemalloc
from collections import Counter
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.errors import IfqaError
from ifqa.wikipedia.articles import read_articles
from ifqa.wikipedia.dump import Page, parse_pages, read_pages

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


def write(path: Path, xml: str) -> Path:
    path.write_text(xml, encoding="utf-8")
    return path


def test_articles_come_in_order_and_the_rest_is_counted(tmp_path: Path) -> None:
    left_out: Counter[str] = Counter()
    pages = list(read_pages(write(tmp_path / "d.xml", WHOLE), left_out=left_out))
    assert pages[0] == Page("1", "A & B", "first <ref>&amp;</ref>\n'''é'''")
    assert [page.id for page in pages] == ["1", "4", "5", "6"]
    assert left_out == {"redirect": 1, "namespace": 1}


def test_disambiguation_pages_can_be_dropped(tmp_path: Path) -> None:
    left_out: Counter[str] = Counter()
    path = write(tmp_path / "d.xml", WHOLE)
    assert [page.id for page in read_pages(path, disambiguation="drop", left_out=left_out)] == ["1", "6"]
    assert left_out["disambiguation"] == 2
    with pytest.raises(IfqaError, match='wanted "keep" or "drop"'):
        list(read_pages(path, disambiguation="maybe"))  # type: ignore[arg-type]


@pytest.mark.parametrize("version", ["0.3", "0.10", "0.11"])
def test_any_version_of_the_export_schema_is_read(tmp_path: Path, version: str) -> None:
    xml = HEAD.format(version, version) + SITE + PAGES[0] + "</mediawiki>"
    assert [page.title for page in read_pages(write(tmp_path / "d.xml", xml))] == ["A & B"]
    prefixed = xml.replace("<", "<mw:").replace("<mw:/", "</mw:").replace("xmlns=", "xmlns:mw=")
    assert [page.title for page in read_pages(write(tmp_path / "p.xml", prefixed))] == ["A & B"]


def test_old_dumps_tell_namespaces_and_redirects_by_title_and_text(tmp_path: Path) -> None:
    pages = [
        page("1", "Template", "an article", ns=None),
        page("2", "Template:X", "x", ns=None),
        page("3", "Alien: Covenant", "a film", ns=None),
        page("4", "Old", " #redirect [[Template]]", ns=None),
    ]
    left_out: Counter[str] = Counter()
    path = write(tmp_path / "d.xml", HEAD.format("0.3", "0.3") + SITE + "".join(pages) + "</mediawiki>")
    assert [page.id for page in read_pages(path, left_out=left_out)] == ["1", "3"]
    assert left_out == {"redirect": 1, "namespace": 1}


def multistream(xml: str) -> bytes:
    """Head, pages by twos and tail as streams of their own, as Wikimedia publishes them."""
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
    assert list(read_pages(whole)) == list(read_pages(write(tmp_path / "d.xml", WHOLE)))
    with pytest.raises(IfqaError, match=r"cut\.xml\..*fetch the file again") as caught:
        list(read_pages(cut))
    assert "\n" not in str(caught.value)


def test_a_multistream_dump_cut_between_streams_is_refused(tmp_path: Path) -> None:
    data = multistream(WHOLE)
    (tmp_path / "d.xml.bz2").write_bytes(data[: data.rindex(b"BZh9")])
    with pytest.raises(IfqaError, match=r"after page 6 \('E'\): XML ends or breaks at line .*no element found"):
        list(read_pages(tmp_path / "d.xml.bz2"))


@given(st.integers(0, len(WHOLE.rstrip()) - 1))
def test_of_a_dump_cut_anywhere_the_whole_pages_are_read(length: int) -> None:
    ends = [WHOLE.index(PAGES[number]) + len(PAGES[number].rstrip()) for number in (0, 3, 4, 5)]
    pages = parse_pages([WHOLE[:length].encode()], "dump", Counter())
    assert [next(pages).id for end in ends if end <= length] == ["1", "4", "5", "6"][
        : sum(end <= length for end in ends)
    ]
    with pytest.raises(IfqaError, match="dump"):
        next(pages)


@given(st.integers(1, 400))
def test_where_blocks_end_does_not_matter(size: int) -> None:
    data = WHOLE.encode()
    blocks = [data[start : start + size] for start in range(0, len(data), size)]
    assert list(parse_pages(blocks, "dump", Counter())) == list(parse_pages([data], "dump", Counter()))


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("d.xml", b"<html><body/></html>", "root element is <html>, wanted <mediawiki>"),
        ("d.xml", b"title\ttext\n", "not a MediaWiki XML dump"),
        ("d.xml", b"", "not a MediaWiki XML dump"),
        ("d.xml.bz2", b"<mediawiki></mediawiki>", "compressed data ends or breaks"),
        ("d.xml", b"<!DOCTYPE m [<!ENTITY a 'b'>]><mediawiki>&a;</mediawiki>", "declares a DTD"),
        ("d.xml", b"<mediawiki>\xff</mediawiki>", "breaks at line 1 "),
        ("d.xml", b"<mediawiki><page><ns>0</ns><id>1</id></page></mediawiki>", r"page 1 \(''\).* no usable <title>"),
        (
            "d.xml",
            b"<mediawiki>\n<page><title>A</title><ns>0</ns><revision><id>1</id></revision></page></mediawiki>",
            r"page 1 \('A'\), which ends at line 2, has no usable <id>",
        ),
        (
            "d.xml",
            (HEAD + PAGES[0] + page("", "Z", "z") + "</mediawiki>").encode(),
            r"after page 1 \('A & B'\): page 2 \('Z'\)",
        ),
    ],
)
def test_what_is_wrong_with_a_dump_is_said_in_one_line(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(IfqaError, match=message) as caught:
        list(read_pages(tmp_path / name))
    assert str(caught.value).startswith(str(tmp_path / name))
    assert "\n" not in str(caught.value)


def test_a_missing_dump_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(IfqaError, match="dump not found"):
        list(read_pages(tmp_path / "no.xml"))
    with pytest.raises(IfqaError, match="is a folder"):
        list(read_pages(tmp_path))


def test_memory_does_not_grow_with_the_dump() -> None:
    def peak(count: int) -> int:
        body = page("1", "A", "x" * 10_000) + page("2", "B", "y" * 10_000, redirect='<redirect title="A"/>')
        blocks = [HEAD.encode(), *[body.encode()] * count, b"</mediawiki>"]
        tracemalloc.start()
        assert sum(1 for _ in parse_pages(iter(blocks), "dump", Counter())) == count
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    assert peak(1000) < peak(50) + 100_000


ARTICLES = [{"id": "7", "title": "A", "text": "one\ntwo"}, {"id": 8, "title": "B", "text": ""}]
LINES = "".join(json.dumps(article) + "\n" for article in ARTICLES)


@pytest.mark.parametrize(("suffix", "packed"), [("", bytes), (".xz", lzma.compress), (".gz", gzip.compress)])
def test_articles_are_read_from_a_file(tmp_path: Path, suffix: str, packed: type[bytes]) -> None:
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(packed(LINES.encode()))
    assert list(read_articles(path)) == [Page("7", "A", "one\ntwo"), Page("8", "B", "")]


def test_articles_are_read_from_all_files_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "b.jsonl").write_text('{"id": "2", "title": "B", "text": "b"}\n')
    (tmp_path / "a.jsonl.bz2").write_bytes(bz2.compress(b'{"id": "1", "title": "A", "text": "a"}\n'))
    (tmp_path / "README").write_text("not articles")
    assert [article.id for article in read_articles(tmp_path)] == ["1", "2"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id": "1", "title": "A"}', "a.jsonl:3: key 'text' is missing"),
        ('{"id": "1 2", "title": "A", "text": ""}', "a.jsonl:3: id '1 2' holds white space"),
        ('{"id": "", "title": "A", "text": ""}', "a.jsonl:3: 'id' is empty"),
        ('{"id": "1", "title": "A", "text": "\\ud800"}', "a.jsonl:3: 'text' holds half a surrogate pair"),
        ("[1]", "a.jsonl:3: wanted a JSON object"),
    ],
)
def test_a_line_that_is_no_article_is_named(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "a.jsonl").write_text(LINES + line + "\n")
    with pytest.raises(IfqaError, match=message):
        list(read_articles(tmp_path / "a.jsonl"))


def test_a_folder_without_articles_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IfqaError, match=r"holds no \.jsonl file"):
        list(read_articles(tmp_path))
