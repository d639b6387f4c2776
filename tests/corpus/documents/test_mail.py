"""Mails and mailboxes: who wrote what to whom, without headers, attachments and repeated
quotations; hostile ones.
"""

import json
import time
from email.message import EmailMessage

import pytest
from mixed_documents import runs

from ifqa.corpus.documents.chunking import chunk_document
from ifqa.corpus.documents.decoding import TextRun, UnreadableFile
from ifqa.corpus.documents.mail import mail_suffix
from ifqa.corpus.documents.readers import READERS, read_request, suffix_of


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
            "e@mill.example and 2 more, copy to Åse (aase@mill.example) on 3 March 2026 at 14:05 "
            "(UTC+01:00, 13:05 UTC).",
        ),
        (1, 0, "Sluicen lukkes"),
        (1, 0, "klokken ni."),
        (1, 0, "Nora"),
        (1, 0, "Attached: budsjett på.pdf and b.png."),
        (
            1,
            0,
            "Not read: budsjett på.pdf (not a complete PDF (Failed to load document)).",
        ),
    ]


def passages(suffix, content):
    parts = READERS[suffix][1](content, ())
    runs = (part for part in parts if isinstance(part, TextRun))
    return list(chunk_document(f"a{suffix}", runs, "message"))


def read_passage():
    (passage,) = passages(".eml", mail_with_attachments())
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
        (b"Subject: =?no-such?b?eA==?=\n\nx", "x"),
        (b"Subject: =?iso-8859-1?q?=93Blue=94_30_=80?=\n\nx", "“Blue” 30 €"),
        (b"Subject: =?utf-8?b?w6Y=?= =?gb2312?b?warNqA==?=\n\nx", "æ联通"),
        (
            "Subject: Мельница\nContent-Type: text/plain; charset=koi8-r\n\nx".encode("koi8-r"),
            "Мельница",
        ),
        ("\ufeffSubject: Mølle\n\nx".encode(), "Mølle"),
        ("Subject: Mølle\n\nx".encode("utf-16"), "Mølle"),
        (b">From a@b Mon Jun  1 09:56:00 2026\nSubject: s\n\nx", "s"),
        (b"\n\nSubject: s\n\nx", "s"),
        (b"Content-Type: text/plain; charset=utf-16le\n\nl\0a\0m\0p\0", "lamp"),
        (b"Content-Type: multipart/mixed\n\nNo boundary.", "No boundary."),
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


def first_sentence(headers):
    return runs(".eml", f"From: n@mill.example\n{headers}\n\nx".encode())[1][2]


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ("Date: Mon, 1 Jun 2026 09:56:00 +0530", "on 1 June 2026 at 09:56 (UTC+05:30, 04:26 UTC)"),
        (
            "Date: Sun, 31 May 2026 22:30:00 -0700 (PDT)",
            "on 31 May 2026 at 22:30 (UTC-07:00, 1 June 2026 at 05:30 UTC)",
        ),
        ("Date: Mon, 1 Jun 2026 09:56:00 GMT", "on 1 June 2026 at 09:56 (UTC)"),
        ("Date: Mon, 1 Jun 2026 09:56:00 -0000", "on 1 June 2026 at 09:56 (UTC)"),
        ("Date: Mon, 1 Jun 2026 09:56:00 CET", "on 1 June 2026 at 09:56 (CET)"),
        ("Date: Mon, 1 Jun 2026 09:56:00", "on 1 June 2026 at 09:56"),
        ("Date: 1 Jun 98 09:56 EST", "on 1 June 1998 at 09:56 (UTC-05:00, 14:56 UTC)"),
        (
            "Date: never\nReceived: from b by c; Mon, 1 Jun 2026 11:00:00 +0000\n"
            "Received: from a by b;\n Mon, 1 Jun 2026 10:00:00 +0000",
            "on 1 June 2026 at 10:00 (UTC)",
        ),
    ],
)
def test_a_message_tells_its_moment_with_the_zone(headers, expected):
    assert first_sentence(headers) == f"n@mill.example wrote {expected}."


def test_a_mailbox_dates_a_message_without_a_date():
    content = "From n@mill.example Mon Jun  1 09:56:00 2026\nFrom: n@mill.example\n\nx"
    assert runs(".mbox", content)[1][2] == "n@mill.example wrote on 1 June 2026 at 09:56."


def test_replies_to_somebody_else_are_told():
    headers = "Reply-To: Desk <desk@mill.example>"
    content = f"From: n@mill.example\n{headers}\n\nx"
    assert runs(".eml", content)[2][2] == "Replies go to Desk (desk@mill.example)."


def test_replies_to_the_sender_are_not_told():
    content = "From: N <n@mill.example>\nReply-To: n@Mill.example\n\nx"
    assert [text for *_, text in runs(".eml", content)][2:] == ["x"]


def body(content_type, text):
    """The texts below the heading of a message."""
    content = f"Subject: s\nContent-Type: {content_type}\n\n{text}".encode()
    return [text for *_, text in runs(".eml", content)][1:]


def test_lines_that_flow_are_joined():
    text = "The lamp \nburns. \n> Is it \n> lit?\n>> No.\n-- \nNora\n"
    assert body("text/plain; format=flowed", text) == [
        "The lamp burns.",
        "Is it lit?",
        "No.",
        "Nora",
    ]


def test_lines_that_flow_within_a_word_are_joined_without_a_blank():
    assert body("text/plain; format=flowed; delsp=yes", "水面 \nは静か") == ["水面は静か"]


def test_enriched_text_is_read_without_its_commands():
    text = "<bold>The lamp</bold>\ncosts <color><param>red</param>30</color> <<crowns>.\n\nNow."
    assert body("text/enriched", text) == ["The lamp costs 30 <crowns>.", "Now."]


def test_the_text_of_a_signed_message_is_read():
    text = (
        "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nHello.\n"
        "-----BEGIN PGP SIGNATURE-----\nx\n-----END PGP SIGNATURE-----\n"
    )
    assert body("text/plain", text) == ["Hello."]


def test_a_part_encrypted_within_the_text_is_told():
    text = "Hi.\n-----BEGIN PGP MESSAGE-----\nhQEMA\n-----END PGP MESSAGE-----\nBye."
    assert body("text/plain", text) == [
        "Hi.",
        "A part is encrypted (PGP) and was not read.",
        "Bye.",
    ]


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        ("multipart/encrypted; boundary=b", "is encrypted (PGP)"),
        ("application/pkcs7-mime; smime-type=enveloped-data", "is encrypted (S/MIME)"),
        (
            "application/x-pkcs7-mime; smime-type=signed-data; name=smime.p7m",
            "is packed with its signature (S/MIME)",
        ),
    ],
)
def test_an_encrypted_message_says_so(content_type, expected):
    assert body(content_type, "--b\n\nxx\n--b--\n") == [f"The message {expected} and was not read."]


@pytest.mark.parametrize(
    "stub",
    [
        "This message is in HTML. Please use a program that shows HTML.",
        "Ihr Programm kann kein HTML anzeigen.",
        "View it in your browser: https://mill.example/x",
        "Hello.",
    ],
)
def test_html_is_read_if_the_plain_text_only_stands_for_it(stub):
    message = mail()
    message.set_content(stub)
    message.add_alternative("<p>The sluice is closed at nine by Tom Ferris.", subtype="html")
    texts = [text for *_, text in runs(".eml", message.as_bytes())]
    assert texts[2:] == ["The sluice is closed at nine by Tom Ferris."]


def test_a_short_plain_text_about_html_is_read():
    message = mail()
    message.set_content("The HTML is done.")
    message.add_alternative("<p>The <b>HTML</b> is done.", subtype="html")
    assert [text for *_, text in runs(".eml", message.as_bytes())][2:] == ["The HTML is done."]


def test_the_messages_of_a_digest_are_read():
    content = (
        "Subject: Digest\nContent-Type: multipart/digest; boundary=b\n\n"
        "--b\n\nSubject: One\n\nFirst.\n--b\n\nSubject: Two\n\nSecond.\n--b--\n"
    )
    assert runs(".eml", content)[1:] == [
        (1, 2, "One"),
        (1, 0, "First."),
        (1, 2, "Two"),
        (1, 0, "Second."),
    ]


POSTMARK = "From n@mill.example Mon Jun  1 09:56:00 2026\n"


def subjects(content):
    return [text for _, level, text in runs(".mbox", content) if level]


@pytest.mark.parametrize(
    "line",
    [
        "From the mill",
        "From Monday at 10:30:00 on.\nNote: bring keys.",
        f"{POSTMARK}I wrote this.",
        f">{POSTMARK}Subject: Two",
    ],
)
def test_a_line_of_a_body_does_not_cut_its_message(line):
    content = f"{POSTMARK}Subject: One\n\nx\n\n{line}\n\n{POSTMARK}Subject: Three\n\ny\n"
    assert subjects(content) == ["One", "Three"]


@pytest.mark.parametrize(
    "postmark",
    [
        "From - Mon Jun 01 09:56:00 2026\n",
        "From 1612@xxx Mon Jun 01 09:56:00 +0000 2026\n",
        "From nora at mill.example  Mon Jun  1 09:56:00 2026\n",
        "From nora 10:00:00\n",
    ],
)
def test_a_postmark_begins_a_message(postmark):
    content = f"{postmark}Subject: One\n\nx\n\n{postmark}Subject: Two\n\ny\n"
    assert subjects(content) == ["One", "Two"]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_declared_length_ends_a_message(line_end):
    body = f"Raw:\n\n{POSTMARK}Subject: Inner\n\nInside.\n".replace("\n", line_end)
    head = f"{POSTMARK}Subject: One\nContent-Length: {len(body)}\n\n"
    content = f"{head}\0\n{POSTMARK}Subject: Two\n\ny\n".replace("\n", line_end)
    assert subjects(content.replace("\0", body)) == ["One", "Two"]


def test_a_wrong_declared_length_is_ignored():
    content = f"{POSTMARK}Subject: One\nContent-Length: 3\n\nLamp.\n\n{POSTMARK}Subject: Two\n\ny"
    assert subjects(content) == ["One", "Two"]


@pytest.mark.parametrize(
    ("content", "suffix"),
    [
        (f"{POSTMARK}Subject: One\n\nx", ".mbox"),
        ("Received: by a\n\tfrom b\nFrom: a\nDate: b\n\nx", ".eml"),
        ("From: a\nSubject: b\n\nDate: c", ""),
        ("A licence.\nFrom: a\nDate: b\n", ""),
        ("From the mill: all\n", ""),
    ],
)
def test_a_mail_without_an_ending_is_known_by_its_headers(content, suffix):
    assert mail_suffix(content.encode()) == suffix


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        ("cur/1780300000.M1P2.mill:2,S", ".eml"),
        ("new/1780300000.V8I1M3.mill.example.org,S=123", ".eml"),
        ("2026.06.01", ".01"),
    ],
)
def test_a_message_of_a_maildir_is_known_by_its_name(name, suffix):
    assert suffix_of(name) == suffix


def test_a_mailbox_without_an_ending_is_read_by_messages():
    content = f"{POSTMARK}Subject: One\n\nx\n\n{POSTMARK}Subject: Two\n\ny\n".encode()
    request = {"name": "Sent", "suffix": "", "columns": [], "words": 100, "overlap": 0}
    _, lines = read_request(request, content)
    assert [json.loads(line)["id"] for line in lines.splitlines()] == [
        "Sent#0:message=1",
        "Sent#1:message=2",
    ]
