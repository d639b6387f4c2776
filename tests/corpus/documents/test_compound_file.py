"""Compound files: streams long and short, and damaged ones, which end."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from old_office import compound

from ifqa.corpus.documents.compound_file import CompoundFile
from ifqa.corpus.documents.decoding import UnreadableFile

STREAMS = {"Short": b"lamp", "Long": bytes(range(256)) * 40, "Folder/Inner": b"chair" * 30}
FILE = compound(STREAMS)


@pytest.mark.parametrize("path", STREAMS)
def test_a_stream_is_found_by_its_path(path):
    assert CompoundFile(FILE).find(*path.split("/")) == STREAMS[path]


def test_a_stream_that_is_missing_is_none():
    assert CompoundFile(FILE).find("Folder", "Other") is None


def test_names_differ_by_more_than_their_case():
    assert CompoundFile(FILE).find("SHORT") == b"lamp"


def test_a_chain_that_returns_to_its_start_ends():
    damaged = bytearray(compound({"Long": b"x" * 5_000}))
    table_at = damaged.rindex(b"\x01\0\0\0\x02\0\0\0")
    damaged[table_at + 4 : table_at + 8] = b"\0\0\0\0"
    assert CompoundFile(bytes(damaged)).find("Long") == b"x" * 1_024


def test_streams_that_share_sectors_are_damaged():
    file = CompoundFile(FILE)
    with pytest.raises(UnreadableFile, match="damaged"):
        for _ in range(10):
            file.find("Long")


@given(
    changes=st.lists(st.tuples(st.integers(0, len(FILE) - 1), st.integers(0, 255)), max_size=20),
    length=st.integers(0, len(FILE)),
)
def test_a_damaged_file_is_read_or_unreadable(changes, length):
    content = bytearray(FILE)
    for place, byte in changes:
        content[place] = byte
    with suppress(UnreadableFile):
        file = CompoundFile(bytes(content[:length]))
        assert all(len(file.find(*path.split("/")) or b"") <= len(FILE) for path in STREAMS)
