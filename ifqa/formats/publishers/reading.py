"""What the layouts of the ten datasets share: the questions they give, and the checks of their records."""

import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ifqa.errors import IfqaError
from ifqa.formats.publishers.parts import Part, Reading
from ifqa.storage.json_stream import JsonStream


class Rest(NamedTuple):
    """What belongs to a question.

    `split` is the publisher's, "train" or "valid"; "both" if the publisher has none, so that the random one stands for it;
    empty for a question of neither; of the authors' release, the name of the split.
    """

    id: str
    context: str
    answers: Sequence[str]
    split: str


class Found(NamedTuple):
    """A question and a function that gives the rest. Only causal questions are asked for it."""

    question: str
    rest: Callable[[], Rest]


#: A piece of a file that was not parsed yet. A build that goes on passes over units without parsing them.
Unit = Callable[[], Iterable[Found]]
Units = Generator[Unit, None, None]
Causal = Callable[[str], bool]


class Layout(NamedTuple):
    """How one publisher lays out a dataset.

    Attributes:
        title: the dataset's name in the paper.
        wanted: the files' names, for messages.
        choose: of the parts of a folder, those that are read; empty if the dataset is not there.
        units: the pieces of these parts, always in the same order.
        aside: lines for the identity of what is read beside the parts.
        reads: how often a part is read, for the progress.
    """

    title: str
    wanted: str
    choose: Callable[[Sequence[Part]], list[Part]]
    units: Callable[[Reading, Sequence[Part], Causal], Units]
    aside: Callable[[Path], Iterable[str]] = lambda folder: ()
    reads: Callable[[Part], int] = lambda part: 1


Parse = Callable[[dict[str, Any], str], Iterable[Found]]  # of a record and its place, "file:line"


def json_lines(reading: Reading, chosen: Sequence[Part], parse: Callable[[Part], Parse]) -> Units:
    """A unit for each line of parts in JSON lines; `parse` gives the function for a part's records."""
    for part in chosen:
        function, name = parse(part), str(part)
        for number, line in reading.lines(part):
            if line and not line.isspace():
                yield partial(_parsed, function, line, name, number)


def _parsed(parse: Parse, line: str, name: str, number: int) -> Iterable[Found]:
    where = f"{name}:{number}"
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise IfqaError(f"{where}: not JSON ({error.msg} at column {error.colno})") from error
    except (ValueError, RecursionError) as error:
        raise IfqaError(f"{where}: not JSON that can be read ({error})") from error
    return parse(mapping(record, where), where)


def json_elements(stream: JsonStream, part: Part, parse: Parse) -> Units:
    """A unit for each element of the array at the stream's cursor."""
    for _ in stream.elements():
        where = f"{part}:{stream.line}"
        yield partial(_element, parse, stream.value(), where)


def _element(parse: Parse, record: object, where: str) -> Iterable[Found]:
    return parse(mapping(record, where), where)


def in_member(stream: JsonStream, part: Part, key: str) -> Iterator[None]:
    """Go into the document's member `key`.

    Raises:
        IfqaError: there is no such member.
    """
    keys = []
    for name in stream.members():
        keys.append(name)
        if name == key:
            yield
    if key not in keys:
        raise IfqaError(f"{part}: key {key!r} is missing; found {', '.join(map(repr, keys[:9])) or 'no keys'}")


def mapping(record: object, where: str) -> dict[str, Any]:
    """A record, if it is an object.

    Raises:
        IfqaError: it is something else.
    """
    if not isinstance(record, dict):
        raise IfqaError(f"{where}: wanted a JSON object, found {type(record).__name__}")
    return record


def any_text(record: dict[str, Any], key: str, where: str) -> str:
    """`record[key]` as text; empty if it is null or missing.

    Raises:
        IfqaError: it is neither text nor null.
    """
    value = record.get(key)
    if value is not None and not isinstance(value, str):
        raise IfqaError(f"{where}: {key!r} must be a string, found {type(value).__name__}")
    return value or ""


def identifier(record: dict[str, Any], key: str, where: str) -> str:
    """`record[key]` as an id: a string that is not empty, or a whole number.

    Raises:
        IfqaError: it is missing or something else.
    """
    value = record.get(key)
    if isinstance(value, bool) or not isinstance(value, int | str) or value == "":
        raise IfqaError(f"{where}: {key!r} must be an id, a string or a whole number; found {value!r:.40}")
    return str(value)


def objects(record: dict[str, Any], key: str, where: str) -> list[dict[str, Any]]:
    """`record[key]`, which must be a list of objects.

    Raises:
        IfqaError: it is missing or something else.
    """
    value = record.get(key)
    if not isinstance(value, list):
        raise IfqaError(f"{where}: {key!r} must be a list of objects, found {type(value).__name__}")
    return [mapping(one, f"{where}: {key!r}") for one in value]


def strings(record: dict[str, Any], key: str, where: str) -> list[str]:
    """`record[key]`, which must be a list of strings; empty ones may be among them.

    Raises:
        IfqaError: it is missing or something else.
    """
    value = record.get(key)
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise IfqaError(f"{where}: {key!r} must be a list of strings, found {value!r:.60}")
    return value


def split_of(name: str) -> str:
    """The split that a file's name tells: "train", "valid", or empty (a test file)."""
    if re.search(r"train", name):
        return "train"
    return "valid" if re.search(r"dev|val", name) else ""
