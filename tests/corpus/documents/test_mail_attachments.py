"""What is attached to mails: documents by their own readers, mails, invitations, and the rest by
name.
"""

from email.message import EmailMessage

import pytest
from mixed_documents import docx, pdf, runs

from ifqa.corpus.documents import mail as mail_reader
from ifqa.corpus.documents.chunking import chunk_document
from ifqa.corpus.documents.decoding import TextRun, Unread
from ifqa.corpus.documents.readers import READERS

REPORT = pdf([["The sluice costs 900 crowns."]])
INVITATION = (
    "BEGIN:VCALENDAR\r\nMETHOD:REQUEST\r\nBEGIN:VEVENT\r\nSUMMARY:Sluice\r\n"
    "DTSTART;TZID=Europe/Oslo:20260303T140000\r\nDESCRIPTION:Bring boots.\r\n"
    "END:VEVENT\r\nEND:VCALENDAR\r\n"
)


def mail(subject="Minutes", text="See below."):
    message = EmailMessage()
    message["Subject"] = subject
    message.set_content(text)
    return message


def attach(message, content, kind="application/octet-stream", name=None):
    main, sub = kind.split("/")
    message.add_attachment(content, maintype=main, subtype=sub, filename=name)
    return message


def passages(message):
    parts = READERS[".eml"][1](message.as_bytes(), ())
    read = (part for part in parts if isinstance(part, TextRun))
    return [(passage.title, passage.text) for passage in chunk_document("a.eml", read, "message")]


def texts(message):
    return [text for *_, text in runs(".eml", message.as_bytes())]


@pytest.mark.parametrize(
    ("kind", "name", "shown"),
    [
        ("application/pdf", "report.pdf", "report.pdf"),
        ("application/octet-stream", "REPORT.PDF", "REPORT.PDF"),
        ("application/pdf", "report.v2", "report.v2"),
        ("application/pdf", "report", "report"),
        ("application/pdf", None, "unnamed.pdf"),
    ],
)
def test_an_attached_document_is_below_the_subject(kind, name, shown):
    assert passages(attach(mail(), REPORT, kind, name)) == [
        ("a.eml › Minutes", f"Minutes. See below. Attached: {shown}."),
        (f"a.eml › Minutes › {shown}", f"{shown}. The sluice costs 900 crowns."),
    ]


def test_the_place_of_an_attached_document_is_its_message():
    read = runs(".eml", attach(mail(), pdf([["One."], ["Two."]]), name="a.pdf").as_bytes())
    assert {place for place, *_ in read} == {1}


def test_the_headings_of_an_attached_document_are_below_its_name():
    content = docx([("berschrift1", "Costs"), ("Standard", "The lamp costs 30 crowns.")])
    assert passages(attach(mail(), content, name="c.docx"))[1] == (
        "a.eml › Minutes › c.docx › Costs",
        "c.docx. Costs. The lamp costs 30 crowns.",
    )


def test_an_attached_text_is_read_in_its_declared_encoding():
    message = mail()
    message.add_attachment("Цена", filename="a.txt", charset="koi8-r", cte="base64")
    assert texts(message)[-1] == "Цена"


@pytest.mark.parametrize(
    ("content", "kind", "name", "reason"),
    [
        (b"x", "application/pdf", "a.pdf", "not a complete PDF"),
        (b"\xd0\xcf\x11\xe0", "application/octet-stream", "a.docx", "it needs a password"),
        (b"x", "application/ms-tnef", "winmail.dat", "a message in Outlook's own format, TNEF"),
    ],
)
def test_an_attached_document_that_cannot_be_read_is_named_with_the_reason(
    content, kind, name, reason
):
    last = texts(attach(mail(), content, kind, name))[-1]
    assert last.startswith(f"Not read: {name} ({reason}")


def test_a_picture_is_named():
    assert texts(attach(mail(), b"x", "image/png", "b.png"))[-1] == "Attached: b.png."


def test_files_that_are_not_read_are_counted():
    message = attach(attach(mail(), b"x", "image/png", "b.png"), b"x", name="a.pdf")
    assert Unread("attachment", 2) in list(READERS[".eml"][1](message.as_bytes(), ()))


def test_documents_beyond_the_limit_are_named(monkeypatch):
    monkeypatch.setattr(mail_reader, "MOST_ATTACHED", 1)
    message = attach(attach(mail(), b"One.", name="a.txt"), b"Two.", name="b.txt")
    assert texts(message)[2:] == [
        "Attached: a.txt and b.txt.",
        "Not read: b.txt (after 1 others).",
        "a.txt",
        "One.",
    ]


def test_the_message_in_an_attached_mail_is_below_the_subject():
    inner = attach(mail("Inner"), REPORT, name="report.pdf")
    assert [title for title, _ in passages(attach(mail(), inner.as_bytes(), name="i.eml"))] == [
        "a.eml › Minutes",
        "a.eml › Minutes › Inner",
        "a.eml › Minutes › Inner › report.pdf",
    ]


def test_the_messages_of_an_attached_mailbox_are_read():
    postmark = "From n@mill.example Mon Jun  1 09:56:00 2026\n"
    content = f"{postmark}Subject: One\n\nx\n\n{postmark}Subject: Two\n\ny\n"
    read = passages(attach(mail(), content.encode(), name="box.mbox"))
    assert [title for title, _ in read[1:]] == ["a.eml › Minutes › One", "a.eml › Minutes › Two"]


def test_a_forwarded_message_in_base64_is_read():
    content = (
        "Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n"
        "U3ViamVjdDogSW5uZXIKCkxhbXAuCg==\n"
    )
    assert runs(".eml", content) == [(1, 2, "Inner"), (1, 0, "Lamp.")]


def test_messages_nested_too_deeply_are_left_out(monkeypatch):
    monkeypatch.setattr(mail_reader, "DEEPEST", 2)
    message = mail("Third")
    for subject in ("Second", "First"):
        message = attach(mail(subject), message.as_bytes(), name="i.eml")
    read = list(READERS[".eml"][1](message.as_bytes(), ()))
    assert read[-1] == Unread("message within a message")
    headings = [run.text for run in read if isinstance(run, TextRun) and run.level]
    assert headings == ["First", "Second"]


def test_an_invitation_is_told_once():
    message = mail(text="Bring boots.")
    message.add_alternative("<p>Bring boots.", subtype="html")
    message.add_alternative(INVITATION, subtype="calendar")
    attach(message, INVITATION.encode(), "application/ics", "invite.ics")
    assert texts(message)[1:] == [
        "Bring boots.",
        "Invitation: Sluice.",
        "Sluice is on 3 March 2026 at 14:00 (Europe/Oslo).",
        "Attached: invite.ics.",
    ]


def test_a_document_beside_the_html_is_read_if_the_plain_text_is():
    content = (
        "Subject: s\nContent-Type: multipart/alternative; boundary=a\n\n"
        "--a\nContent-Type: text/plain\n\nLamp.\n"
        "--a\nContent-Type: multipart/mixed; boundary=b\n\n"
        "--b\nContent-Type: text/html\n\n<p>Lamp.\n"
        "--b\nContent-Type: text/plain; name=a.txt\n\nNote.\n"
        "--b\nContent-Type: image/png; name=logo.png\n\nx\n--b--\n--a--\n"
    )
    assert [text for *_, text in runs(".eml", content)] == [
        "s",
        "Lamp.",
        "Attached: a.txt.",
        "a.txt",
        "Note.",
    ]


@pytest.mark.parametrize(
    "header",
    [
        "name*=utf-8''p%C3%A5.zip",
        "name*=iso-8859-1''p%E5.zip",
        'name="=?iso-8859-1?q?p=E5.zip?="',
        'name="på.zip"',
    ],
)
def test_the_name_of_a_file_is_decoded(header):
    content = f"Content-Type: application/zip; {header}\n\nx".encode()
    assert runs(".eml", content) == [(1, 0, "Attached: på.zip.")]
