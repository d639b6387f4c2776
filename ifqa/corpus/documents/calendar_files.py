"""Reads calendars (.ics, and the invitations of mails): each event as a heading, when and where it
is, and who takes part.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from ifqa.corpus.documents.decoding import TextRun, UnreadableFile, split_lines
from ifqa.corpus.documents.mail_headers import enumerate_names, write_time
from ifqa.corpus.sentences import ENDS

_LINE = re.compile(r"([\w-]++)((?:[^\":]++|\"[^\"]*+\")*+):(.*)", re.S)
_PARAMETER = re.compile(r";([\w-]{1,60})=(\"[^\"]*\"|[^;\"]*)")
_ESCAPE = re.compile(r"\\([nN,;:\\\"])")
_MOMENT = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(?:\d\d)?(Z?))?")
_DURATION = re.compile(
    r"\+?P(?:(\d{1,6})W)?(?:(\d{1,6})D)?(?:T(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,6})S)?)?"
)
_ZONE = re.compile(r"[A-Za-z_+-]+/[\w+-]+(?:/[\w+-]+)?$")
_LONGEST_ZONE = 100  # characters of its name
_READ = ("VEVENT", "VTODO", "VJOURNAL")
_INVITED = 20  # attendees that are named
#: What a calendar that is sent is for.
_METHODS = {
    "REQUEST": "Invitation",
    "ADD": "Further date",
    "REPLY": "Reply to an invitation",
    "COUNTER": "Other date proposed",
    "DECLINECOUNTER": "Other date declined",
    "REFRESH": "Question about an event",
}
_ANSWERS = {
    "ACCEPTED": "accepted",
    "DECLINED": "declined",
    "TENTATIVE": "perhaps",
    "DELEGATED": "sends another",
}
_DAYS = {
    "MO": "Monday",
    "TU": "Tuesday",
    "WE": "Wednesday",
    "TH": "Thursday",
    "FR": "Friday",
    "SA": "Saturday",
    "SU": "Sunday",
}
_ORDINALS = {"1": "first", "2": "second", "3": "third", "4": "fourth", "-1": "last"}
_UNITS = {"DAILY": "day", "WEEKLY": "week", "MONTHLY": "month", "YEARLY": "year"}
_SIMPLE = {"FREQ", "INTERVAL", "COUNT", "UNTIL", "BYDAY", "BYMONTHDAY", "BYMONTH", "WKST"}
_MONTHS = (
    "January February March April May June July August September October November December".split()
)


@dataclass(frozen=True, slots=True)
class _Property:
    value: str
    parameters: Mapping[str, str]


@dataclass(slots=True)
class _Event:
    """An event, a task or a note of a calendar."""

    kind: str
    line: int  # where it begins, from 1
    method: str  # what the calendar is sent for, such as "REQUEST"
    last: int = 0  # the line where it ends
    properties: dict[str, list[_Property]] = field(default_factory=dict)

    def first(self, name: str) -> _Property | None:
        return next(iter(self.properties.get(name, ())), None)

    def text(self, name: str) -> str:
        value = self.first(name)
        return _unescape(value.value).strip() if value else ""


@dataclass(frozen=True, slots=True)
class _Moment:
    at: date | datetime  # a date alone: all day
    zone: str  # its name; empty if the calendar tells none

    @property
    def words(self) -> str:
        if isinstance(self.at, datetime):
            return f"{write_time(self.at)}{self.in_zone}"
        return f"on {_write_day(self.at)}"

    @property
    def in_zone(self) -> str:
        return f" ({self.zone})" if self.zone else ""


def read_calendar(text: str) -> Iterator[TextRun]:
    """The events, tasks and notes of a calendar, each at the line where it begins.

    Raises UnreadableFile for a text that is no calendar.
    """
    if "BEGIN:VCALENDAR" not in text[:10_000].upper():
        raise UnreadableFile("not a calendar: it does not begin with BEGIN:VCALENDAR")
    level = 1
    for event in _events(text):
        if isinstance(event, str):  # the calendar's name
            yield TextRun(event, 1, True, 1)
            level = 2
        else:
            yield TextRun(_heading(event), event.line, True, level, last=event.last)
            for sentence in _sentences(event):
                yield TextRun(sentence, event.line, last=event.last)


def _events(text: str) -> Iterator[_Event | str]:
    """The events of a calendar, and its name."""
    open_ = list[str]()  # components within one another
    method = ""
    event = None
    for number, name, value in _properties(text):
        if event is not None:
            event.last = number
        if name == "BEGIN":
            open_.append(value.value.strip().upper())
            if open_[-1] in _READ and event is None:
                event = _Event(open_[-1], number, method)
        elif name == "END":
            ended = open_.pop() if open_ else ""
            if event is not None and ended == event.kind:
                yield event
                event = None
        elif event is not None and open_ and open_[-1] == event.kind:  # not of its alarm
            event.properties.setdefault(name, []).append(value)
        elif name == "METHOD" and event is None:
            method = value.value.strip().upper()
        elif name == "X-WR-CALNAME" and event is None:
            yield _unescape(value.value)
    if event is not None:
        yield event


def _properties(text: str) -> Iterator[tuple[int, str, _Property]]:
    """The line, name and value of each property; a line that begins with a blank goes on."""
    pieces = list[str]()
    first = 1
    for number, line in enumerate([*split_lines(text), "."], start=1):
        if line[:1] in (" ", "\t") and pieces:
            pieces.append(line[1:])
            continue
        if match := _LINE.fullmatch("".join(pieces)):
            parameters = {
                name.upper(): value.strip('"') for name, value in _PARAMETER.findall(match[2])
            }
            yield first, match[1].upper(), _Property(match[3], parameters)
        pieces = [line]
        first = number


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda match: "\n" if match[1] in "nN" else match[1], text)


def _heading(event: _Event) -> str:
    title = event.text("SUMMARY") or "Event without a title"
    if _is_cancelled(event):
        return f"Cancelled: {title}"
    purpose = _METHODS.get(event.method, "")
    if event.method == "REQUEST" and event.text("SEQUENCE") not in ("", "0"):
        purpose = "Updated invitation"
    return f"{purpose}: {title}" if purpose else title


def _is_cancelled(event: _Event) -> bool:
    return "CANCEL" in (event.method, event.text("STATUS").upper()[:6])


def _sentences(event: _Event) -> Iterator[str]:
    title = event.text("SUMMARY") or "The event"
    when = _when(event)
    if _is_cancelled(event):
        yield f"{title}{f', {when},' if when else ''} is cancelled."
    elif when:
        verb = "is due" if event.kind == "VTODO" else "is"
        yield f"{title} {verb} {when}."
    if event.text("STATUS").upper() in ("TENTATIVE", "COMPLETED"):
        yield f"It is {event.text('STATUS').lower()}."
    if occurrence := _moment(event.first("RECURRENCE-ID")):
        yield f"This is the one that was {occurrence.words}."
    if location := event.text("LOCATION"):
        yield f"Place: {_end(location)}"
    if people := [_person(person) for person in event.properties.get("ORGANIZER", ())]:
        yield f"Organiser: {enumerate_names(people)}."
    if people := [_person(person) for person in event.properties.get("ATTENDEE", ())]:
        yield f"Attendees: {enumerate_names(people, _INVITED)}."
    for rule in event.properties.get("RRULE", ()):
        yield f"It repeats {_write_rule(rule.value)}{_exceptions(event)}."
    yield from filter(str.strip, split_lines(event.text("DESCRIPTION")))


def _end(text: str) -> str:
    return text if text.endswith(ENDS) else f"{text}."


def _person(value: _Property) -> str:
    """Name, address and answer of a person: "Tom Ferris (tom@mill.example; accepted)"."""
    name = value.parameters.get("CN", "")
    address = re.sub(r"(?i)^mailto:", "", value.value.strip())
    answer = _ANSWERS.get(value.parameters.get("PARTSTAT", "").upper(), "")
    if name in ("", address):
        return f"{address} ({answer})" if answer else address
    return f"{name} ({'; '.join(filter(None, (address, answer)))})"


def _when(event: _Event) -> str:
    """When an event is, in words; empty if it does not say."""
    start = _moment(event.first("DTSTART"))
    end = _moment(event.first("DUE" if event.kind == "VTODO" else "DTEND"))
    if event.kind == "VTODO":
        due = end or start
        return due.words if due else ""
    if start is None:
        return ""
    end = end or _after(start, event.text("DURATION"))
    if end is None or type(end.at) is not type(start.at) or end.at == start.at:
        return start.words
    if not (isinstance(start.at, datetime) and isinstance(end.at, datetime)):
        last = end.at - timedelta(days=1) if end.at > date.min else end.at  # the first day after it
        if last <= start.at:
            return start.words
        return f"from {_write_day(start.at)} to {_write_day(last)}"
    if start.at.date() == end.at.date() and start.zone == end.zone:
        day = _write_day(start.at)
        return f"on {day} from {start.at:%H:%M} to {end.at:%H:%M}{start.in_zone}"
    return f"from {start.words[3:]} to {end.words[3:]}"


def _moment(value: _Property | None) -> _Moment | None:
    match = _MOMENT.fullmatch(value.value.strip()) if value else None
    if value is None or match is None:
        return None
    try:
        if match[4] is None:
            return _Moment(date(int(match[1]), int(match[2]), int(match[3])), "")
        year, month, day, hour, minute = (int(match[group]) for group in range(1, 6))
        at = datetime(year, month, day, hour, minute)
    except ValueError:
        return None
    named = value.parameters.get("TZID", "")[:_LONGEST_ZONE]
    if match[6]:
        return _Moment(at, "UTC")
    zone = _ZONE.search(named)  # without the path of the program that wrote it
    return _Moment(at, zone[0] if zone else named)


def _after(start: _Moment, duration: str) -> _Moment | None:
    match = _DURATION.fullmatch(duration)
    if match is None:
        return None
    weeks, days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    try:
        length = timedelta(days, seconds, 0, 0, minutes, hours, weeks)
        return _Moment(start.at + length, start.zone)
    except OverflowError:
        return None


def _write_day(day: date) -> str:
    return f"{day.day} {day:%B %Y}"


def _write_rule(rule: str) -> str:
    """A recurrence in words; one that is not simple as it stands."""
    parts = dict(part.upper().split("=", 1) for part in rule.split(";") if "=" in part)
    unit = _UNITS.get(parts.get("FREQ", ""))
    try:
        days = [_write_weekday(day) for day in parts.get("BYDAY", "").split(",") if day]
        months = [_MONTHS[int(month) - 1] for month in parts.get("BYMONTH", "").split(",") if month]
    except (KeyError, IndexError, ValueError):
        unit = None
    if unit is None or not set(parts) <= _SIMPLE:
        return f"by the rule {rule.strip()}"
    count = parts.get("INTERVAL", "1")
    words = [f"every {unit}" if count == "1" else f"every {count} {unit}s"]
    if days:
        words.append(f"on {_enumerate_all(days)}")
    if dates := parts.get("BYMONTHDAY", ""):
        words.append(f"on day {_enumerate_all(dates.split(','))}")
    if months:
        words.append(f"in {_enumerate_all(months)}")
    if "COUNT" in parts:
        words[-1] += f", {parts['COUNT']} times"
    if until := _moment(_Property(parts.get("UNTIL", ""), {})):
        words.append(f"until {_write_day(until.at)}")
    return " ".join(words)


def _write_weekday(day: str) -> str:
    """The words for a day such as "2TU", the second Tuesday; KeyError for another form."""
    name = _DAYS[day[-2:]]
    return f"the {_ORDINALS[day[:-2].lstrip('+')]} {name}" if day[:-2] else name


def _enumerate_all(names: Sequence[str]) -> str:
    return enumerate_names(names, len(names))


def _exceptions(event: _Event) -> str:
    """The days on which a recurring event is left out."""
    days = [
        moment.words
        for value in event.properties.get("EXDATE", ())
        for piece in value.value.split(",")
        if (moment := _moment(_Property(piece, value.parameters)))
    ]
    return f", but not {enumerate_names(days, _INVITED)}" if days else ""
