"""Messages that Outlook saved: headers, bodies, attachments, messages within messages."""

import struct
from contextlib import suppress
from datetime import UTC, datetime
from email import message_from_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mixed_documents import runs
from old_office import compound, message

from ifqa.corpus.documents.decoding import UnreadableFile
from ifqa.corpus.documents.outlook_message import as_mail, decompress_rtf
from ifqa.corpus.documents.readers import READERS

SENT = datetime(2026, 3, 3, 14, 5, tzinfo=UTC)
TIME = int((SENT - datetime(1601, 1, 1, tzinfo=UTC)).total_seconds()) * 10**7
HEAD = {"0037": "Prøve, igjen", "0C1A": "Pike, Nora", "5D01": "nora@mill.example"}


def person(name, address, kind):
    texts = {"3001": name} | ({"39FE": address} if address else {})
    return message(texts, [(0x0C15, 3, kind)], header=8)


def mail(body=None, **parts):
    people = {
        "__recip_version1.0_#00000000": person("Tom Ferris", "tom@mill.example", 1),
        "__recip_version1.0_#00000001": person("Ås, Bo", "", 2),
    }
    texts = HEAD | (body or {"1000": "The sluice is closed.\r\n"})
    return compound(message(texts, [(0x39, 0x40, TIME)], people | parts))


def parts(content):
    """The type and the name of each part of the mail that a message becomes."""
    mail_parts = message_from_bytes(as_mail(content)).walk()
    return [(inner.get_content_type(), inner.get_filename()) for inner in mail_parts]


def test_a_message_is_read_as_the_mail_that_it_was():
    assert [text for _, _, text in runs(".msg", mail())] == [
        "Prøve, igjen",
        "Pike, Nora (nora@mill.example) wrote to Tom Ferris (tom@mill.example), copy to Ås, Bo "
        "on 3 March 2026 at 14:05 (UTC).",
        "The sluice is closed.",
    ]


def test_the_date_of_the_headers_has_the_zone_of_the_sender():
    body = {"1000": "x", "007D": "Received: from a\r\nDate: Tue, 3 Mar 2026 16:05:00 +0200\r\n\r\n"}
    assert message_from_bytes(as_mail(mail(body)))["Date"] == "Tue, 3 Mar 2026 16:05:00 +0200"


def test_a_body_of_html_is_read_in_its_code_page():
    content = compound(message({"1013": "<p>Łódź</p>".encode("cp1250")}, [(0x3FDE, 3, 1250)]))
    assert [text for _, _, text in runs(".msg", content)] == ["Łódź"]


def test_a_body_of_old_text_is_read_in_the_code_page_of_the_message():
    streams = message({}, [(0x3FFD, 3, 1251)]) | {"__substg1.0_1000001E": "Мир".encode("cp1251")}
    assert [text for _, _, text in runs(".msg", compound(streams))] == ["Мир"]


def compressed(content):
    """RTF without references to earlier bytes, which decompresses to itself."""
    pieces = (content[at : at + 8] for at in range(0, len(content), 8))
    packed = b"".join(b"\0" + piece for piece in pieces)
    return struct.pack("<II4sI", len(packed) + 12, len(content), b"LZFu", 0) + packed


def test_a_body_of_rtf_alone_is_read():
    content = compound(message({"1009": compressed(rb"{\rtf1 The mill.\par Next.\par}")}))
    assert [text for _, _, text in runs(".msg", content)] == ["The mill.", "Next."]


def test_references_to_earlier_bytes_are_resolved():
    # The example of [MS-OXRTFCP]
    packed = bytes.fromhex(
        "2d0000002b0000004c5a4675f1c5c7a703000a007263706731323542320af32068656c09002062770"
        "5b06c647d0a800fa0"
    )
    assert decompress_rtf(packed) == b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n"


def test_an_attached_message_is_read():
    inner = message({"0037": "Inner", "1000": "Rye is ground."}, header=24)
    attachment = message({}, header=8) | {
        f"__substg1.0_3701000D/{name}": stream for name, stream in inner.items()
    }
    content = mail(**{"__attach_version1.0_#00000000": attachment})
    assert [text for _, _, text in runs(".msg", content)][-2:] == ["Inner", "Rye is ground."]


def test_an_attachment_keeps_its_name_and_type():
    attachment = message(
        {"3707": "plan på.pdf", "370E": "application/pdf", "3701": b"%PDF"}, header=8
    )
    content = mail(**{"__attach_version1.0_#00000000": attachment})
    assert parts(content)[-1] == ("application/pdf", "plan på.pdf")


def test_the_bytes_of_an_attachment_are_kept():
    content = bytes(range(256)) * 3
    attachment = message({"3704": "A.BIN", "3701": content}, header=8)
    packed = as_mail(mail(**{"__attach_version1.0_#00000000": attachment}))
    *_, last = message_from_bytes(packed).walk()
    assert last.get_payload(decode=True) == content


def test_an_appointment_is_a_part_of_a_calendar():
    names = {"__substg1.0_00030102": struct.pack("<IHH", 0x820D, 6, 0)}
    content = compound(
        message({"0037": "Milling"}, [(0x8000, 0x40, TIME)], {"__nameid_version1.0": names})
    )
    kinds = {part.get_content_type(): part for part in message_from_bytes(as_mail(content)).walk()}
    calendar = kinds["text/calendar"].get_payload(decode=True)
    assert isinstance(calendar, bytes)
    assert b"DTSTART:20260303T140500Z" in calendar


def test_a_mail_in_plain_text_is_read_too():
    content = b"From: a@mill.example\nSubject: Rye\n\nIt is ground.\n"
    assert [text for _, _, text in runs(".msg", content)][-1] == "It is ground."


@pytest.mark.parametrize("content", [b"\0\1", b"no mail", compound({"Book": b"x"})])
def test_another_file_is_unreadable(content):
    with pytest.raises(UnreadableFile, match="not a message of Outlook"):
        list(READERS[".msg"][1](content, ()))


FILE = mail({"1009": compressed(rb"{\rtf1\fromhtml1 {\*\htmltag <p>}x}"), "1013": b"<p>y</p>"})


@given(
    changes=st.lists(st.tuples(st.integers(0, len(FILE) - 1), st.integers(0, 255)), max_size=20),
    length=st.integers(0, len(FILE)),
)
def test_a_damaged_message_is_read_or_unreadable(changes, length):
    content = bytearray(FILE)
    for place, byte in changes:
        content[place] = byte
    with suppress(UnreadableFile):
        assert all(place == 1 for place, _, _ in runs(".msg", bytes(content[:length])))


@given(content=st.binary(max_size=200))
def test_any_compressed_rtf_ends(content):
    header = struct.pack("<II4sI", 0, 1 << 31, b"LZFu", 0)
    assert len(decompress_rtf(header + content)) <= 10 * len(content)
