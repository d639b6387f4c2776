"""Files of contacts: each card as a row."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mixed_documents import runs

CARD = "BEGIN:VCARD\r\nVERSION:3.0\r\n{}\r\nEND:VCARD\r\n"


def test_each_card_is_a_row():
    first = "FN:Nora Pike\r\nTEL;TYPE=WORK,VOICE:+47 22\r\nPHOTO;ENCODING=b:AAAA"
    text = CARD.format(first) + CARD.format("FN:Tom Ferris\r\nORG:Mill;Sluice")
    assert runs(".vcf", text) == [
        (1, 0, "Name: Nora Pike; Telephone (work): +47 22."),
        (7, 0, "Name: Tom Ferris; Organisation: Mill, Sluice."),
    ]


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ("item1.EMAIL;type=HOME:a@mill.example\r\nFN:A", "Name: A; E-mail (home): a@mill.example."),
        ("FN:A\r\nNOTE:one\\, two\\nthree\\; fo\r\n ur", "Name: A; Note: one, two three; four."),
        ("FN;ENCODING=QUOTED-PRINTABLE:=C3=\r\n=85se", "Name: Åse."),
        (
            "FN:A\r\nADR:;;Mill 1;Marlow;;123;Norway",
            "Name: A; Address: Mill 1, Marlow, 123, Norway.",
        ),
        ("TEL:1\r\nN:Pike;Nora;Ann;Dr;", "Name: Dr Nora Ann Pike; Telephone: 1."),
        ("N:Pike;Nora", "Name: Nora Pike."),
        ("N:Pike;Nora\r\nFN:Nora P.", "Name: Nora P."),
    ],
)
def test_fields_are_decoded(fields, shown):
    assert [text for _, _, text in runs(".vcf", CARD.format(fields))] == [shown]


@given(content=st.text("BEGINDFNTL:;=\\\r\n vcard", max_size=200))
def test_any_text_is_read(content):
    assert all(place > 0 for place, _, _ in runs(".vcf", f"BEGIN:VCARD\n{content}\nEND:VCARD"))
