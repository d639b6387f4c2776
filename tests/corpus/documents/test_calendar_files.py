"""Calendars: when and where their events are, who takes part, and how they repeat."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mixed_documents import runs

from ifqa.corpus.documents.calendar_files import read_calendar
from ifqa.corpus.documents.decoding import UnreadableFile


def event(*properties, method="", kind="VEVENT"):
    """The texts of a calendar of one event."""
    lines = ["BEGIN:VCALENDAR", *([f"METHOD:{method}"] if method else []), f"BEGIN:{kind}"]
    lines += [*properties, f"END:{kind}", "END:VCALENDAR", ""]
    return [text for *_, text in runs(".ics", "\r\n".join(lines))]


def test_an_event_is_told_in_sentences():
    assert event(
        "SUMMARY:Sluice inspec",
        " tion\\, spring",
        "DTSTART;TZID=/mozilla.org/20070129_1/Europe/Oslo:20260303T140000",
        "DTEND;TZID=Europe/Oslo:20260303T150000",
        "LOCATION:Mill house",
        'ORGANIZER;CN="Pike, Nora":MAILTO:nora@mill.example',
        "ATTENDEE;CN=Tom Ferris;PARTSTAT=ACCEPTED:mailto:tom@mill.example",
        "ATTENDEE:mailto:bo@mill.example",
        "DESCRIPTION:Bring boots.\\nAnd a lamp.",
        "BEGIN:VALARM",
        "DESCRIPTION:Alarm",
        "END:VALARM",
    ) == [
        "Sluice inspection, spring",
        "Sluice inspection, spring is on 3 March 2026 from 14:00 to 15:00 (Europe/Oslo).",
        "Place: Mill house.",
        "Organiser: Pike, Nora (nora@mill.example).",
        "Attendees: Tom Ferris (tom@mill.example; accepted) and bo@mill.example.",
        "Bring boots.",
        "And a lamp.",
    ]


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        (["DTSTART:20260501T230000Z"], "on 1 May 2026 at 23:00 (UTC)"),
        (["DTSTART:20260501T230000"], "on 1 May 2026 at 23:00"),
        (
            ["DTSTART:20260501T230000Z", "DURATION:PT2H30M"],
            "from 1 May 2026 at 23:00 (UTC) to 2 May 2026 at 01:30 (UTC)",
        ),
        (["DTSTART;VALUE=DATE:20260501", "DTEND;VALUE=DATE:20260502"], "on 1 May 2026"),
        (
            ["DTSTART;VALUE=DATE:20260501", "DTEND;VALUE=DATE:20260504"],
            "from 1 May 2026 to 3 May 2026",
        ),
    ],
)
def test_an_event_tells_when_it_is(properties, expected):
    assert event("SUMMARY:Call", *properties)[1] == f"Call is {expected}."


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("FREQ=DAILY;COUNT=3", "every day, 3 times"),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE", "every 2 weeks on Monday and Wednesday"),
        ("FREQ=MONTHLY;BYDAY=2TU,-1FR", "every month on the second Tuesday and the last Friday"),
        ("FREQ=YEARLY;BYMONTH=6;BYMONTHDAY=1", "every year on day 1 in June"),
        ("FREQ=WEEKLY;UNTIL=20260630T000000Z", "every week until 30 June 2026"),
        ("FREQ=DAILY;BYSETPOS=1", "by the rule FREQ=DAILY;BYSETPOS=1"),
    ],
)
def test_a_recurrence_is_told_in_words(rule, expected):
    assert event("SUMMARY:Call", f"RRULE:{rule}")[1] == f"It repeats {expected}."


def test_a_recurrence_tells_its_exceptions():
    texts = event("SUMMARY:Call", "RRULE:FREQ=DAILY", "EXDATE;VALUE=DATE:20260501,20260503")
    assert texts[1] == "It repeats every day, but not on 1 May 2026 and on 3 May 2026."


@pytest.mark.parametrize(
    ("method", "properties", "heading"),
    [
        ("REQUEST", ["SEQUENCE:0"], "Invitation: Call"),
        ("REQUEST", ["SEQUENCE:2"], "Updated invitation: Call"),
        ("CANCEL", [], "Cancelled: Call"),
        ("PUBLISH", ["STATUS:CANCELLED"], "Cancelled: Call"),
        ("REPLY", [], "Reply to an invitation: Call"),
    ],
)
def test_a_calendar_that_is_sent_tells_its_purpose(method, properties, heading):
    assert event("SUMMARY:Call", *properties, method=method)[0] == heading


def test_a_cancelled_event_is_not_told_as_one_that_takes_place():
    texts = event("SUMMARY:Call", "DTSTART:20260501T230000Z", method="CANCEL")
    assert texts[1] == "Call, on 1 May 2026 at 23:00 (UTC), is cancelled."


def test_a_task_is_due():
    texts = event("SUMMARY:Oil the gate", "DUE;VALUE=DATE:20260601", kind="VTODO")
    assert texts[1] == "Oil the gate is due on 1 June 2026."


def test_the_place_of_an_event_is_its_line():
    content = "BEGIN:VCALENDAR\nX-WR-CALNAME:Mill\nBEGIN:VEVENT\nSUMMARY:Call\nEND:VEVENT\n"
    assert runs(".ics", content) == [(1, 1, "Mill"), (3, 2, "Call")]


def test_a_text_that_is_no_calendar_is_refused():
    with pytest.raises(UnreadableFile, match="not a calendar"):
        list(read_calendar("SUMMARY:Call"))


@given(
    st.lists(
        st.sampled_from(
            ["DTSTART", "DTEND", "DURATION", "RRULE", "ATTENDEE", "BEGIN", "END"]
        ).flatmap(
            lambda name: st.text('0123456789TZP=;:,"-MOFREQVENT\\n', max_size=20).map(
                lambda value: f"{name}:{value}"
            )
        ),
        max_size=6,
    )
)
def test_any_properties_are_read(properties):
    assert event("SUMMARY:Call", *properties)[0].endswith("Call")
