"""Articles and how they are split, and ready passages, in the formats in which they are
published.
"""

import bz2
import csv
import gzip
import json
import lzma
import subprocess
import sys

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opened_sources import open_section
from pyarrow import parquet

from ifqa.corpus.ready_passages import read_passages
from ifqa.corpus.wikipedia.dump import Page
from ifqa.corpus.wikipedia.source import read_articles, split_article
from ifqa.corpus.work_units import SkippedPages
from ifqa.errors import IfqaError
from ifqa.records import Passage

ARTICLES = [{"id": "7", "title": "A", "text": "one\ntwo"}, {"id": 8, "title": "B", "text": ""}]
LINES = "".join(json.dumps(article) + "\n" for article in ARTICLES)
PAGES = [Page("7", "A", "one\ntwo"), Page("8", "B", "")]


def open_articles(path, **settings):
    return open_section({"format": "articles", "path": str(path)} | settings)


def articles(path):
    return [
        page
        for file in open_articles(path).files()
        for page, _ in read_articles(file, SkippedPages())
    ]


def table(path, **columns):
    parquet.write_table(pyarrow.table(columns), path, compression="zstd")
    return path


@pytest.mark.parametrize(
    ("suffix", "packed"), [("", bytes), (".xz", lzma.compress), (".gz", gzip.compress)]
)
def test_articles_are_read_from_a_file(tmp_path, suffix, packed):
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(packed(LINES.encode()))
    assert articles(path) == PAGES
    assert [position for _, position in read_articles(path, SkippedPages())][
        -1
    ] == path.stat().st_size


def test_a_folder_with_several_links_is_read_once(tmp_path):
    for name in ("mine/deep/a.jsonl", "mine/deep/README", "other/b.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(LINES)
    (tmp_path / "mine/link").symlink_to("../other")
    wanted = [tmp_path / "mine/deep/a.jsonl", tmp_path / "mine/link/b.jsonl"]
    assert open_articles(tmp_path / "mine").files() == wanted
    (tmp_path / "mine/around").symlink_to(".")
    # With a second such link, the number of paths is endless
    (tmp_path / "mine/round").symlink_to("..")
    assert len(open_articles(tmp_path / "mine").files()) == 2


def test_the_folders_of_wikiextractor_are_read(tmp_path):
    line = (
        '{"id": "%d", "revid": "9", "url": "https://en.wikipedia.org/wiki?curid=%d", "title": '
        '"T", "text": "t"}\n'
    )
    for n, name in enumerate(["AA/wiki_00", "AA/wiki_01", "AB/wiki_00", "AC/wiki_00.bz2"]):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        text = (line % (n, n)).encode()
        (tmp_path / name).write_bytes(bz2.compress(text) if name.endswith("bz2") else text)
    assert [article.id for article in articles(tmp_path)] == ["0", "1", "2", "3"]


def test_the_parquet_files_of_hugging_face_are_read(tmp_path):
    rows = [{"id": f"{n}", "url": "u", "title": f"T{n}", "text": "t " * n} for n in range(2500)]
    for part in range(2):
        records = pyarrow.Table.from_pylist(rows[part::2])
        parquet.write_table(
            records, tmp_path / f"train-0000{part}-of-00002.parquet", row_group_size=700
        )
    assert articles(tmp_path) == [
        Page(row["id"], row["title"], row["text"]) for row in rows[::2] + rows[1::2]
    ]
    file = open_articles(tmp_path).files()[0]
    assert [position for _, position in read_articles(file, SkippedPages())][
        -1
    ] == file.stat().st_size


def test_parquet_files_without_complete_articles_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    with pytest.raises(IfqaError, match="key 'title' is missing; found 'id', 'text'"):
        articles(table(path, id=["1"], text=["t"]))
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(IfqaError, match="not a complete parquet file"):
        articles(path)
    monkeypatch.setattr("ifqa.formats.tables._ROWS_SIZE", 1000)
    ids = [str(number) for number in range(20)]
    with pytest.raises(
        IfqaError, match=r"a\.parquet:11: .* bytes in 10 rows; wanted a few MB a row"
    ):
        articles(table(path, id=ids, title=ids, text=["x" * 40] * 10 + ["x" * 200] * 10))


def test_a_text_shared_by_all_parquet_rows_does_not_fill_the_memory(tmp_path):
    texts = pyarrow.array(["x" * 4_000_000]).dictionary_encode().take(pyarrow.array([0] * 200))
    ids = [str(number) for number in range(200)]
    path = table(tmp_path / "a.parquet", id=ids, title=ids, text=texts)
    assert path.stat().st_size < 10_000
    code = """import resource, sys, pathlib
from ifqa.corpus.wikipedia.source import read_articles
from ifqa.corpus.work_units import SkippedPages
resource.setrlimit(resource.RLIMIT_DATA, (1 << 29, 1 << 29))
print(sum(len(page.text) for page, _ in read_articles(pathlib.Path(sys.argv[1]), SkippedPages())))"""
    done = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=False
    )
    assert done.stdout == "800000000\n", done.stderr


@pytest.fixture
def article_limit(monkeypatch):
    monkeypatch.setattr("ifqa.corpus.wikipedia.source.LONGEST", 100)


BAD_ARTICLES = pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"id": "1 2", "title": "A", "text": ""}', "id '1 2' holds white space"),
        ('{"id": "", "title": "A", "text": ""}', "'id' is empty"),
        ('{"id": "1", "title": "A", "text": "\\ud800"}', "'text' holds half a surrogate pair"),
        ('{"id": "1", "title": "A", "text": null}', "'text' must be str"),
        (
            '{"id": "1", "title": "A", "text": "' + "x" * 200 + '"}',
            "a text of more than 100 characters",
        ),
    ],
)


def read_after(line, folder):
    """The articles after a bad one, and the tally of what is left out."""
    (folder / "a.jsonl").write_text(line + "\n" + LINES)
    tally = SkippedPages()
    pages = [page for page, _ in read_articles(folder / "a.jsonl", tally)]
    return pages, tally


@BAD_ARTICLES
@pytest.mark.usefixtures("article_limit")
def test_a_bad_article_is_listed_with_its_reason(tmp_path, line, reason):
    _, tally = read_after(line, tmp_path)
    assert tally.left_out == {"bad": 1}
    assert reason in tally.bad[0]["reason"]
    assert "a.jsonl:1" in tally.bad[0]["reason"]
    json.dumps(tally.bad).encode()


@BAD_ARTICLES
@pytest.mark.usefixtures("article_limit")
def test_articles_after_a_bad_one_are_read(tmp_path, line, reason):
    pages, _ = read_after(line, tmp_path)
    assert pages == PAGES


@pytest.mark.parametrize(("suffix", "packed"), [("", bytes), (".gz", gzip.compress)])
def test_the_passages_of_dpr_are_read(tmp_path, suffix, packed):
    passages = [
        Passage("1", "Aaron", 'Aaron ( or ; "Ahärôn") is a prophet'),
        Passage("2", 'A "B" C', "plain, without quotes"),
        Passage("3", "Tabs", "a\ttab and a 'quote'"),
        Passage("4", '"Heroes" (album)', 'He sang "Heroes"'),
    ]
    with open(tmp_path / "rows.tsv", "w", newline="") as out:
        writer = csv.writer(out, delimiter="\t")
        writer.writerow(["id", "text", "title"])
        writer.writerows((passage.id, passage.text, passage.title) for passage in passages)
    path = tmp_path / f"psgs_w100.tsv{suffix}"
    path.write_bytes(packed((tmp_path / "rows.tsv").read_bytes()))
    assert [passage for passage, _ in read_passages(path)] == passages


def test_passages_of_a_folder_with_files_of_several_formats_are_read(tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "p10.jsonl").write_text(
        '{"id": "x/1", "contents": "c"}\n{"id": "2", "title": "T", "contents": "d"}\n'
    )
    (tmp_path / "p2.tsv.gz").write_bytes(gzip.compress(b"id\ttext\ttitle\n1\ta\tA\n"))
    (tmp_path / "below/p3.jsonl").write_text('{"id": "3", "contents": "b"}\n')
    for name in ("README.md", ".p1.jsonl", "p.jsonl.part"):
        (tmp_path / name).write_text("no passage")
    source = open_section({"format": "passages", "path": str(tmp_path)})
    wanted = [
        Passage("1", "A", "a"),
        Passage("3", "", "b"),
        Passage("x/1", "", "c"),
        Passage("2", "T", "d"),
    ]
    assert [passage for unit in source.work_units() for passage in unit.content] == wanted
    assert source.size() == sum(path.stat().st_size for path in source.files())
    assert len(source.identity({})["files"]) == 3


@pytest.mark.parametrize(
    ("kind", "name", "text", "message"),
    [
        (
            "articles",
            "a.jsonl",
            LINES + '{"id": "1", "title": "A"}\n',
            "a.jsonl:3: key 'text' is missing; found 'id', 'title'",
        ),
        ("articles", "a.jsonl", LINES + "[1]\n", "a.jsonl:3: wanted a JSON object"),
        ("articles", "a.jsonl", "", "is empty"),
        (
            "passages",
            "p.tsv",
            "1\ta\tb\n2\ta\n",
            "p.tsv:2: wanted id, text and title separated by tabs, found 2 fields",
        ),
        (
            "passages",
            "p.tsv",
            '1\t"a\tb\n2\tc "d" \te\n3\t"f"\tg\n',
            "found 3 fields on one or more lines; is a quotation",
        ),
        ("passages", "p.tsv", "1 2\ta\tb\n", "p.tsv:1: passage id '1 2'"),
        (
            "passages",
            "p.jsonl",
            '{"id": "1", "text": "t"}\n',
            "p.jsonl:1: key 'contents' is missing",
        ),
        ("passages", "p.jsonl", "", "is empty"),
    ],
)
def test_a_line_that_is_not_an_article_or_a_passage_is_named(tmp_path, kind, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(IfqaError, match=message):
        list(open_section({"format": kind, "path": str(tmp_path / name)}).work_units())


def test_a_larger_share_contains_every_smaller_share(tmp_path):
    (tmp_path / "a.jsonl").write_text(
        "".join(f'{{"id": {n}, "title": "t{n}", "text": "word"}}\n' for n in range(400))
    )

    def ids(share):
        units = open_articles(tmp_path / "a.jsonl", share=share).work_units()
        return {page.id for unit in units for page in unit.content}

    assert ids(0.2) < ids(0.5) < ids(1.0) == {str(n) for n in range(400)}
    assert 150 < len(ids(0.5)) < 250


@pytest.mark.parametrize(
    ("count", "wrap", "passages"),
    [
        (130, True, [(0, 100), (100, 130, 0, 70)]),  # filled up from the start of the article
        (130, False, [(0, 100), (100, 130)]),
        (19, True, [(0, 19, 0, 19)]),  # repeated only once
        (200, True, [(0, 100), (100, 200)]),
        (0, True, []),
    ],
)
def test_an_article_is_split_into_passages_of_100_words(count, wrap, passages):
    words = [f"w{number}" for number in range(count)]
    wanted = [
        [word for a, b in zip(ends[::2], ends[1::2], strict=True) for word in words[a:b]]
        for ends in passages
    ]
    assert [passage.split() for passage in split_article(" ".join(words), wrap=wrap)] == wanted


TEXTS = st.lists(st.text(alphabet="abé.\u3000\n ", min_size=1)).map(" ".join)


@given(TEXTS, st.integers(1, 7))
def test_passages_have_the_words_of_the_text(text, size):
    article = text.split()
    assert " ".join(split_article(text, words=size, wrap=False)) == " ".join(article)
    wrapped = " ".join(split_article(text, words=size)).split()
    assert wrapped[: len(article)] == article


@given(TEXTS, st.integers(1, 7))
def test_all_passages_but_the_last_are_of_equal_length_without_wrap(text, size):
    passages = split_article(text, words=size, wrap=False)
    assert all(len(passage.split()) == size for passage in passages[:-1])


@given(TEXTS, st.integers(1, 7))
def test_all_passages_are_of_equal_length_with_wrap(text, size):
    length = min(size, 2 * len(text.split()))
    assert all(len(passage.split()) == length for passage in split_article(text, words=size))


@pytest.mark.parametrize("name", ["enwiki.xml.7z", "enwiki.xml.zst", "enwiki.xml.ZIP"])
@pytest.mark.parametrize("in_folder", [True, False])
def test_an_archive_that_is_not_read_is_to_be_unpacked(tmp_path, name, in_folder):
    (tmp_path / name).write_bytes(b"7z")
    path = tmp_path if in_folder else tmp_path / name
    with pytest.raises(
        IfqaError, match=f"{name} is packed in a way that ifqa does not read; unpack it"
    ):
        open_section({"format": "dump", "path": str(path)}).files()
