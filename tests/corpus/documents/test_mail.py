"""Mails and mailboxes: who wrote what to whom, without headers, attachments and repeated
quotations; hostile ones.
"""

import time
from email.message import EmailMessage

import pytest
from mixed_documents import runs

from ifqa.corpus.documents.chunking import chunk_document
from ifqa.corpus.documents.decoding import UnreadableFile
from ifqa.corpus.documents.readers import READERS


def mail(**headers):
    message = EmailMessage()
    for name, value in (
        {"From": "Nora Pike <nora@mill.example>", "Subject": "Prøve"} | headers
    ).items():
        message[name] = value
    return message


def mail_with_attachments():
    people = ", ".join(f"{name}@mill.example" for name in "abcdefg")
    message = mail(To=people, Cc="Åse <aase@mill.example>", Date="Tue, 3 Mar 2026 14:05:00 +0100")
    message.set_content("Sluicen lukkes\nklokken ni.\n\n-- \nNora", cte="base64")
    message.add_attachment(b"\0", maintype="application", subtype="pdf", filename="budsjett på.pdf")
    message.add_attachment(b"\0", maintype="image", subtype="png", filename="b.png")
    return message.as_bytes()


def test_a_mail_is_text_below_a_heading_with_a_sentence_of_its_headers():
    assert runs(".eml", mail_with_attachments()) == [
        (1, 1, "Prøve"),
        (
            1,
            0,
            "Nora Pike (nora@mill.example) wrote to a@mill.example, b@mill.example, "
            "c@mill.example, d@mill.example, "
            "e@mill.example and 2 more, copy to Åse (aase@mill.example) on 3 March 2026 at 14:05.",
        ),
        (1, 0, "Sluicen lukkes"),
        (1, 0, "klokken ni."),
        (1, 0, "Nora"),
        (1, 0, "Attached: budsjett på.pdf and b.png."),
    ]


def read_passage():
    read = READERS[".eml"][1](mail_with_attachments(), ())
    (passage,) = chunk_document("a.eml", read, "message")
    return passage


def test_the_passage_of_a_mail_has_the_number_of_its_message():
    assert read_passage().id == "a.eml#0:message=1"


def test_the_passage_of_a_mail_has_its_subject_as_title():
    assert read_passage().title == "a.eml › Prøve"


def test_of_two_formats_the_plain_one_is_read():
    message = mail()
    message.set_content("Plain.")
    message.add_alternative("<p>Rich.</p>", subtype="html")
    assert [text for *_, text in runs(".eml", message.as_bytes())][2:] == ["Plain."]


def test_a_mail_of_html_alone_is_read_as_html():
    message = mail()
    message.set_content(
        "<style>p{}</style><h1>Big</h1><p>Rich&nbsp;&amp; <b>bold</b>.", subtype="html"
    )
    assert runs(".eml", message.as_bytes())[2:] == [(1, 0, "Big"), (1, 0, "Rich & bold.")]


def test_a_forwarded_message_is_introduced():
    message = mail(Subject="Fwd")
    message.set_content("See below.")
    inner = mail(From="tom@mill.example", Subject="Brake")
    inner.set_content("It fails.")
    message.add_attachment(inner)
    assert runs(".eml", message.as_bytes())[2:] == [
        (1, 0, "See below."),
        (1, 2, "Brake"),
        (1, 0, "tom@mill.example wrote."),
        (1, 0, "It fails."),
    ]


def test_a_quotation_is_read_as_plain_text():
    reply = (
        "Yes.\n> Is it open?\n>> At nine.\n\n-----Original Message-----\nFrom: "
        "Tom <tom@mill.example>\nSent: Monday\nTo: Nora\n\nHello.\n"
    )
    packed = (
        f"begin 644 a.png\n{'A' * 76}\n-----BEGIN PGP SIGNATURE-----\nxyz\n-----END PGP "
        "SIGNATURE-----\n"
    )
    texts = [text for *_, text in runs(".eml", f"Subject: x\n\n{reply}{packed}")]
    assert texts[1:] == [
        "Yes.",
        "Is it open?",
        "At nine.",
        "Tom (tom@mill.example) wrote on Monday:",
        "Hello.",
        "begin 644 a.png",
    ]


FIRST = (
    "From a@b Tue Mar  3 14:05:00 2026\nSubject: One\n\nThe sluice is open.\n>From now "
    "on.\nFrom Monday at 10:30:00 on.\n\n"
)
SECOND = (
    "From a@b Tue Mar  3 15:05:00 2026\nSubject: Re: One\n\n> The "
    "sluice is open.\n> Or shut.\nNo.\n"
)


def test_each_message_of_a_mailbox_is_read_without_quotations_of_earlier_ones():
    assert runs(".mbox", FIRST + SECOND) == [
        (1, 1, "One"),
        (1, 0, "The sluice is open."),
        (1, 0, "From now on."),
        (1, 0, "From Monday at 10:30:00 on."),
        (2, 1, "Re: One"),
        (2, 0, "Or shut."),
        (2, 0, "No."),
    ]


def test_a_mailbox_may_have_the_line_ends_of_windows():
    content = (FIRST + SECOND).replace("\n", "\r\n")
    assert runs(".mbox", content)[4] == (2, 1, "Re: One")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"Subject: =?no-such?b?eA==?=\n\nx", "=?no-such?b?eA==?="),
        (b"Subject: Gr\xfc\xdfe\n\nx", "Grüße"),
        ("Subject: Grüße\n\nx".encode(), "Grüße"),
        (b"Subject: a\0b\x1b[2J\n\nx", "ab [2J"),
        (b"From: " + b"(" * 50_000 + b"\nSubject: s\n\nx", "s"),
        (b"Content-Type: text/plain; charset=iso-2022-jp\n\n\x1b$B?eLL\x1b(B", "水面"),
        (b"Content-Type: text/plain; charset=base64\n\nx", "x"),
        (b"\n\nOnly a body.", "Only a body."),
        (b"Date: never\nFrom: x\n\ny", "Message from x"),
    ],
)
def test_an_odd_mail_is_read(content, expected):
    assert runs(".eml", content)[0][2] == expected


def test_a_mail_of_many_parts_takes_seconds():
    start = time.process_time()
    parts = "--b\nContent-Type: text/plain\n\nA lamp.\n" * 10_000
    read = runs(".eml", f"Content-Type: multipart/mixed; boundary=b\n\n{parts}--b--\n")
    assert len(read) == 10_000
    assert time.process_time() - start < 15


def test_a_mail_nested_too_deeply_is_refused_in_seconds():
    start = time.process_time()
    deep = "".join(
        f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(3_000)
    )
    with pytest.raises(UnreadableFile, match="the parts of message 1 are nested too deeply"):
        runs(".eml", deep)
    assert time.process_time() - start < 15
