"""Dumps of many bz2 streams, as Wikimedia publishes them: cut into pieces, and refused if damaged."""

import bz2
from pathlib import Path

import pytest
from dumps import HEAD, TAIL, multistream, page
from hypothesis import given, settings
from hypothesis import strategies as st

from ifqa.corpus.wikipedia.dump import cut_streams, parse_pages, stream_header
from ifqa.corpus.work_units import Tally
from ifqa.errors import IfqaError

PAGES = [page(n, f"Page {n}", f"text {n} " * (n % 7 * 50)) for n in range(1, 60)]
WHOLE = (HEAD + "".join(PAGES) + TAIL).encode()


def titles(path: Path, size: int) -> list[str]:
    head = stream_header(path)
    assert head is not None
    pieces = list(cut_streams(path, head, size))
    assert b"".join(piece.data for piece in pieces) == path.read_bytes()
    return [page.title for piece in pieces for page in parse_pages(piece.xml(), piece.where, Tally(), whole=piece.last)]


@settings(max_examples=20)
@given(st.integers(1, 30), st.sampled_from([1, 300, 5000, 10**9]))
def test_all_pages_come_however_the_streams_are_cut(tmp_path_factory, each, size):
    path = multistream(tmp_path_factory.mktemp("dump") / "d.xml.bz2", PAGES, each)
    assert titles(path, size) == [f"Page {n}" for n in range(1, 60)]


@pytest.mark.parametrize(
    "data",
    [
        bz2.compress(WHOLE),
        b"".join(bz2.compress(WHOLE[at : at + 700]) for at in range(0, 9000, 700)),
        (HEAD + TAIL).encode(),
        bz2.compress(b"text") + bz2.compress(b" <page>"),
        bz2.compress(HEAD.encode()) + b"BZh91AY&SY damaged",
        b"",
    ],
    ids=["one stream", "streams that cut pages", "plain", "no dump", "damaged", "empty"],
)
def test_a_file_that_is_no_multistream_dump_has_no_header(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "d.xml.bz2").write_bytes(data)
    assert stream_header(tmp_path / "d.xml.bz2") is None


def test_the_header_ends_where_the_first_page_begins(tmp_path):
    (tmp_path / "d.xml.bz2").write_bytes(bz2.compress(b"<mediawiki>\n  <page>") + bz2.compress(b"\n<page>"))
    assert stream_header(tmp_path / "d.xml.bz2") == b"<mediawiki>"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[: len(data) // 2], "from byte .*fetch the file again"),
        (lambda data: data[: data.rindex(b"BZh9")], "XML ends or breaks"),
        (lambda data: data[:2000] + bytes(40) + data[2040:], "compressed data ends or breaks"),
        (lambda data: data + b"more", "compressed data ends or breaks"),
    ],
    ids=["cut in a stream", "cut between streams", "damaged", "something behind it"],
)
def test_a_damaged_dump_is_refused_with_its_place(tmp_path, damage, message):
    path = multistream(tmp_path / "d.xml.bz2", PAGES, 5)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(IfqaError, match=message) as caught:
        titles(path, 300)
    assert "\n" not in str(caught.value)


def test_streams_that_unpack_to_too_much_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = multistream(tmp_path / "d.xml.bz2", PAGES, 5)
    size = len(WHOLE)
    monkeypatch.setattr("ifqa.corpus.wikipedia.dump._UNPACKED", size)
    assert len(titles(path, 10**9)) == 59
    monkeypatch.setattr("ifqa.corpus.wikipedia.dump._UNPACKED", size - 1)
    with pytest.raises(IfqaError, match=r"from byte 0: [\d,]+ bytes unpack to over .* unpack the file and name it"):
        titles(path, 10**9)
