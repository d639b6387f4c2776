"""Articles of plain text, and passages that are cut already, in the formats they are published in."""

import bz2
import csv
import gzip
import json
import lzma
import subprocess
import sys
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from ifqa.corpus.sources import open_source, read_passages
from ifqa.corpus.wikipedia.dump import Page
from ifqa.corpus.wikipedia.source import read_articles
from ifqa.corpus.work_units import Tally
from ifqa.errors import IfqaError
from ifqa.records import Passage

ARTICLES = [{"id": "7", "title": "A", "text": "one\ntwo"}, {"id": 8, "title": "B", "text": ""}]
LINES = "".join(json.dumps(article) + "\n" for article in ARTICLES)
PAGES = [Page("7", "A", "one\ntwo"), Page("8", "B", "")]


def article_files(path: Path) -> list[Path]:
    return open_source({"format": "articles", "path": str(path)}).files()


def articles(path: Path) -> list[Page]:
    return [page for file in article_files(path) for page, _ in read_articles(file, Tally())]


@pytest.mark.parametrize(("suffix", "packed"), [("", bytes), (".xz", lzma.compress), (".gz", gzip.compress)])
def test_articles_are_read_from_a_file(tmp_path: Path, suffix: str, packed: type[bytes]) -> None:
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(packed(LINES.encode()))
    assert articles(path) == PAGES
    assert [position for _, position in read_articles(path, Tally())][-1] == path.stat().st_size


def test_articles_are_read_from_all_files_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "b.jsonl").write_text('{"id": "2", "title": "B", "text": "b"}\n')
    (tmp_path / "a.jsonl.bz2").write_bytes(bz2.compress(b'{"id": "1", "title": "A", "text": "a"}\n'))
    (tmp_path / "README").write_text("not articles")
    assert [article.id for article in articles(tmp_path)] == ["1", "2"]


def test_a_folder_is_read_once_however_many_links_lead_to_it(tmp_path: Path) -> None:
    (tmp_path / "mine" / "deep").mkdir(parents=True)
    (tmp_path / "mine" / "deep" / "a.jsonl").write_text(LINES)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "b.jsonl").write_text(LINES)
    (tmp_path / "mine" / "link").symlink_to("../other")
    assert article_files(tmp_path / "mine") == [tmp_path / "mine/deep/a.jsonl", tmp_path / "mine/link/b.jsonl"]
    (tmp_path / "mine" / "around").symlink_to(".")
    assert len(article_files(tmp_path / "mine")) == 2
    (tmp_path / "mine" / "round").symlink_to("..")  # with a second such link, the number of paths is endless
    assert len(article_files(tmp_path / "mine")) == 2


def test_the_folders_that_wikiextractor_makes_are_read(tmp_path: Path) -> None:
    line = '{"id": "%d", "revid": "9", "url": "https://en.wikipedia.org/wiki?curid=%d", "title": "T", "text": "t"}\n'
    for n, name in enumerate(["AA/wiki_00", "AA/wiki_01", "AB/wiki_00"]):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(line % (n, n))
    (tmp_path / "AC").mkdir()
    (tmp_path / "AC" / "wiki_00.bz2").write_bytes(bz2.compress((line % (3, 3)).encode()))
    assert [article.id for article in articles(tmp_path)] == ["0", "1", "2", "3"]


def test_the_parquet_files_of_hugging_face_are_read(tmp_path: Path) -> None:
    rows = [{"id": f"{n}", "url": "u", "title": f"T{n}", "text": "t " * n} for n in range(2500)]
    for part in range(2):
        table = pyarrow.Table.from_pylist(rows[part::2])
        parquet.write_table(table, tmp_path / f"train-0000{part}-of-00002.parquet", row_group_size=700)
    assert articles(tmp_path) == [
        Page(row["id"], row["title"], row["text"]) for part in range(2) for row in rows[part::2]
    ]
    file = article_files(tmp_path)[0]
    assert [position for _, position in read_articles(file, Tally())][-1] == file.stat().st_size


@pytest.mark.parametrize(
    ("table", "message"),
    [({"id": ["1"], "text": ["t"]}, "key 'title' is missing; found 'id', 'text'"), ({"id": ["1"], "title": ["A"]}, "key 'text' is missing; found 'id', 'title'")],
)  # fmt: skip
def test_a_parquet_file_without_the_columns_of_articles_is_refused(
    tmp_path: Path, table: dict[str, list[str]], message: str
) -> None:
    parquet.write_table(pyarrow.table(table), tmp_path / "a.parquet")
    with pytest.raises(IfqaError, match=message):
        articles(tmp_path / "a.parquet")


ONE_TEXT_FOR_ALL = """
import resource, sys, pathlib
from ifqa.corpus.wikipedia.source import read_articles
from ifqa.corpus.work_units import Tally
resource.setrlimit(resource.RLIMIT_DATA, (1 << 29, 1 << 29))
print(sum(len(page.text) for page, _ in read_articles(pathlib.Path(sys.argv[1]), Tally())))
"""


def test_a_text_shared_by_all_parquet_rows_does_not_fill_the_memory(tmp_path: Path) -> None:
    texts = pyarrow.array(["x" * 4_000_000]).dictionary_encode().take(pyarrow.array([0] * 200))
    ids = [str(number) for number in range(200)]
    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"id": ids, "title": ids, "text": texts}), path, compression="zstd")
    assert path.stat().st_size < 10_000
    done = subprocess.run([sys.executable, "-c", ONE_TEXT_FOR_ALL, path], capture_output=True, text=True, check=False)
    assert done.stdout == "800000000\n", done.stderr


def test_parquet_rows_too_large_for_articles_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ifqa.corpus.wikipedia.source._ROWS_SIZE", 1000)
    texts = ["x" * 40] * 10 + ["x" * 200] * 10
    ids = [str(number) for number in range(20)]
    parquet.write_table(pyarrow.table({"id": ids, "title": ids, "text": texts}), tmp_path / "a.parquet")
    with pytest.raises(IfqaError, match=r"a\.parquet:11: .* bytes; wanted one article a row"):
        articles(tmp_path / "a.parquet")


def test_a_cut_parquet_file_is_refused_in_one_line(tmp_path: Path) -> None:
    parquet.write_table(pyarrow.table({"id": ["1"], "title": ["A"], "text": ["t"]}), tmp_path / "a.parquet")
    data = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(data[:-10])
    with pytest.raises(IfqaError, match="not a whole parquet file"):
        articles(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id": "1", "title": "A"}', "a.jsonl:3: key 'text' is missing; found 'id', 'title'"),
        ("[1]", "a.jsonl:3: wanted a JSON object"),
    ],
)
def test_json_lines_without_articles_are_refused(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "a.jsonl").write_text(LINES + line + "\n")
    with pytest.raises(IfqaError, match=message):
        articles(tmp_path / "a.jsonl")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"id": "1 2", "title": "A", "text": ""}', "id '1 2' holds white space"),
        ('{"id": "", "title": "A", "text": ""}', "'id' is empty"),
        ('{"id": "1", "title": "A", "text": "\\ud800"}', "'text' holds half a surrogate pair"),
        ('{"id": "1", "title": "\\ud800", "text": ""}', "'title' holds half a surrogate pair"),
        ('{"id": "1", "title": "A", "text": null}', "'text' must be str"),
        ('{"id": "1", "title": "A", "text": "' + "x" * 200 + '"}', "a text of more than 100 characters"),
    ],
)
def test_a_bad_article_is_listed_and_the_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, reason: str
) -> None:
    monkeypatch.setattr("ifqa.corpus.wikipedia.source.LONGEST", 100)
    (tmp_path / "a.jsonl").write_text(line + "\n" + LINES)
    tally = Tally()
    assert [page for page, _ in read_articles(tmp_path / "a.jsonl", tally)] == PAGES
    assert tally.left_out == {"bad": 1}
    assert reason in tally.bad[0]["reason"]
    assert "a.jsonl:1" in tally.bad[0]["reason"]
    json.dumps(tally.bad).encode()


def test_an_empty_file_is_refused_as_a_failed_download(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").touch()
    with pytest.raises(IfqaError, match="is empty"):
        articles(tmp_path)
    with pytest.raises(IfqaError, match="is empty"):
        list(read_passages(tmp_path / "a.jsonl"))


def test_a_folder_without_articles_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IfqaError, match="holds no article file"):
        articles(tmp_path)


PASSAGES = [
    Passage("1", "Aaron", 'Aaron ( or ; "Ahärôn") is a prophet'),
    Passage("2", 'A "B" C', "plain, without quotes"),
    Passage("3", "Tabs", "a\ttab and a 'quote'"),
]


@pytest.mark.parametrize(("suffix", "packed"), [("", bytes), (".gz", gzip.compress)])
def test_the_passages_of_dpr_are_read(tmp_path: Path, suffix: str, packed: type[bytes]) -> None:
    with open(tmp_path / "rows.tsv", "w", newline="") as out:
        writer = csv.writer(out, delimiter="\t")
        writer.writerow(["id", "text", "title"])
        writer.writerows((one.id, one.text, one.title) for one in PASSAGES)
    path = tmp_path / f"psgs_w100.tsv{suffix}"
    path.write_bytes(packed((tmp_path / "rows.tsv").read_bytes()))
    assert [passage for passage, _ in read_passages(path)] == PASSAGES


def test_quotes_that_dpr_adds_around_a_text_are_removed(tmp_path: Path) -> None:
    (tmp_path / "p.tsv").write_text('id\ttext\ttitle\n1\t"He sang ""Heroes"""\t"""Heroes"" (album)"\n')
    assert next(read_passages(tmp_path / "p.tsv"))[0] == Passage("1", '"Heroes" (album)', 'He sang "Heroes"')


def test_passages_in_pyserini_s_format_are_read(tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text('{"id": "x/1", "contents": "c"}\n{"id": "2", "title": "T", "contents": "d"}\n')
    found = [passage for passage, _ in read_passages(tmp_path / "p.jsonl")]
    assert found == [Passage("x/1", "", "c"), Passage("2", "T", "d")]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("p.tsv", "1\ta\tb\n2\ta\n", "p.tsv:2: wanted id, text and title with tabs between, found 2 fields"),
        (
            "p.tsv",
            '1\t"a\tb\n2\tc "d" \te\n3\t"f"\tg\n',
            "found 3 fields on one or more lines; is a quotation mark not closed",
        ),
        ("p.tsv", "1 2\ta\tb\n", "p.tsv:1: passage id '1 2'"),
        ("p.jsonl", '{"id": "1", "text": "t"}\n', "p.jsonl:1: key 'contents' is missing"),
    ],
)
def test_a_line_that_is_not_a_passage_is_named(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(IfqaError, match=message):
        list(read_passages(tmp_path / name))


def test_a_larger_share_contains_every_smaller_share(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    articles = [{"id": str(n), "title": f"t{n}", "text": "word " * 20} for n in range(400)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(one) + "\n" for one in articles))

    def ids(share):
        found = open_source({"format": "articles", "path": "a.jsonl", "share": share}).work_units()
        return {page.id for block in found for page in block.content}

    assert ids(0.2) < ids(0.5) < ids(1.0) == {one["id"] for one in articles}
    assert 150 < len(ids(0.5)) < 250
    for wrong in (0.0, -1.0, 1.5):
        with pytest.raises(IfqaError, match="'share': wanted a number above 0, at most 1"):
            open_source({"format": "articles", "path": "a.jsonl", "share": wrong})
