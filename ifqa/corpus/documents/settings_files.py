"""Reads files of settings (INI, Java properties, YAML, TOML): each value as "key: value.".

The innermost three keys stand before a value, as in JSON. The mappings of a list are rows. A
comment is read if it is prose; a setting that is commented out is not.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ifqa.corpus.documents.decoding import TextRun, clean_text, split_lines
from ifqa.corpus.documents.rows import row_text
from ifqa.corpus.sentences import count_words

Keys = tuple[str, ...]

_KEYS, _LONGEST_KEY = 3, 100  # keys before a value that are shown; their characters
_LONGEST_REPEATED = 200  # characters of a YAML value that an alias repeats
_SHORT, _MOST_JOINED = 3, 30  # words of a value in a list that is one sentence; its values
_PROSE = 4  # words
_DEEPEST = 100  # collections of YAML within one another; the parser takes long for more
_SECTION = re.compile(r"\s*\[([^\[\]]{1,300})\]\s*(?:[#;].*)?$")
_SETTING = re.compile(r"\s*([^\s=:#;][^=:]{0,200}?)\s*(?:=|:(?=\s|$))\s*(.*)$")
_COMMENT = re.compile(r"\s*(?:#+|;+|//+|!)[ \t]*(.*)$")
_QUOTED = re.compile(r"([\"'])(.*)\1")
_PROPERTY = re.compile(r"((?:\\.|[^\s=:\\])+)\s*[=:]?\s*(.*)$")
_PROPERTY_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")
_TOML = re.compile(
    r'"""(?:[^\\]|\\.)*?"""|\'\'\'.*?\'\'\'|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*|[\[\]{}\n]',
    re.S,
)
_LONGEST_DOTTED = 100  # parts of a key of TOML


def read_ini(text: str) -> Iterator[TextRun]:
    """The settings below their sections; a line without "=" or ":" is text."""
    section: Keys = ()
    may_continue = False
    in_comment = False
    for number, line in enumerate(split_lines(text), start=1):
        comment = _COMMENT.match(line)
        if not line.strip():
            may_continue = in_comment = False
        elif comment:
            if is_prose(comment[1]):
                yield TextRun(comment[1], number, not in_comment)
                in_comment = True
        elif header := _SECTION.match(line):
            section = (header[1].strip(),)
            may_continue = in_comment = False
        elif may_continue and line[:1].isspace() and not _SETTING.match(line):
            yield TextRun(line, number, opens=False)
        elif setting := _SETTING.match(line):
            value = _QUOTED.fullmatch(setting[2])
            yield from _setting_runs(
                (*section, setting[1]),
                value[2] if value else setting[2],
                range(number, number + 1),
            )
            may_continue = True
            in_comment = False
        else:
            yield TextRun(line, number, item=True)
            may_continue = in_comment = False


def is_prose(comment: str) -> bool:
    """Whether a comment is a sentence, not a setting that is commented out."""
    return count_words(comment) >= _PROSE and "=" not in comment and comment[-1:] not in ";{}"


def read_properties(text: str) -> Iterator[TextRun]:
    """The properties of Java, whose lines may be continued with a backslash."""
    lines = split_lines(text)
    held = list[str]()
    first = 0
    for number, line in enumerate(lines, start=1):
        stripped = line.lstrip()
        comment = _COMMENT.match(line)
        if not held and (not stripped or (comment and stripped[0] in "#!")):
            if comment and is_prose(comment[1]):
                yield TextRun(comment[1], number)
            continue
        first = first if held else number
        backslashes = len(stripped) - len(stripped.rstrip("\\"))
        if backslashes % 2 and number < len(lines):
            held.append(stripped[:-1])
            continue
        entry = _PROPERTY.match("".join([*held, stripped]))
        held = []
        if entry:
            key, value = (_PROPERTY_ESCAPE.sub(_unescape, part) for part in entry.groups())
            yield from _setting_runs((key,), value, range(first, number + 1))


def _unescape(match: re.Match[str]) -> str:
    if match[1]:
        return chr(int(match[1], 16))
    return {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}.get(match[2], match[2])


def _setting_runs(keys: Keys, value: str, lines: range) -> Iterator[TextRun]:
    if value.strip():
        names = _name(keys)
        text = f"{names}: {value}" if names else value
        yield TextRun(text, lines.start, item=True, last=lines.stop - 1)


def _name(keys: Keys) -> str:
    return " › ".join(key[:_LONGEST_KEY] for key in keys[-_KEYS:] if key)


def _text_runs(text: str) -> Iterator[TextRun]:
    """The lines of a file that is not of its kind, such as a template of one."""
    for number, line in enumerate(split_lines(text), start=1):
        if line.strip():
            yield TextRun(line, number, item=True)


@dataclass(slots=True)
class _Row:
    """A mapping in a list while it is read."""

    keys: Keys  # above the list
    cells: list[tuple[str, str]] = field(default_factory=list)
    line: int = 0  # of its first cell, and the last line of its last one
    last: int = 0
    name: tuple[str, str] = ("", "")  # its first cell, which later parts of the row begin with

    def add(self, keys: Keys, value: str, lines: range) -> None:
        if value.strip():
            self.line = self.line or lines.start
            self.last = lines.stop - 1
            self.cells.append((clean_text(_name(keys)), clean_text(value)))

    def runs(self) -> Iterator[TextRun]:
        """The cells so far as a row."""
        if self.cells:
            if self.name[1]:
                cells = [self.name, *self.cells]
            else:
                first, value = self.cells[0]
                self.name = _name((*self.keys, first)), value
                cells = [self.name, *self.cells[1:]]
            yield TextRun(row_text(cells), self.line, row=tuple(cells), last=self.last)
        self.cells = []
        self.line = 0


@dataclass(slots=True)
class _Open:
    """A mapping or list of YAML while it is open."""

    is_mapping: bool
    keys: Keys  # above it; within a row, those below the row
    row: _Row | None  # that its values belong to
    key: str | None = None  # of the next value
    values: list[tuple[str, range]] = field(default_factory=list)  # of a list, with lines


class _YamlReader:
    """The values of YAML, as its events arrive; so an alias cannot repeat a collection."""

    def __init__(self) -> None:
        self.runs: list[TextRun] = []
        self.scalar_lines: set[int] = set()  # lines within values
        self._open: list[_Open] = [_Open(False, (), None)]
        self._anchors: dict[str, str] = {}

    def start(self, is_mapping: bool) -> None:
        """Open a mapping or list; raises ValueError below 100 others."""
        if len(self._open) > _DEEPEST:
            raise ValueError("its values are nested too deeply")
        outer = self._open[-1]
        keys = self._keys(outer)
        row = outer.row
        if is_mapping and not outer.is_mapping and len(self._open) > 1:
            self._write_list(outer)
            if row:
                self.runs += row.runs()
                keys = (*row.keys, *keys)[-_KEYS:]
            row = _Row(keys)
            keys = ()
        outer.key = None
        self._open.append(_Open(is_mapping, keys, row))

    def end(self) -> None:
        ended = self._open.pop()
        self._write_list(ended)
        outer_row = self._open[-1].row if self._open else None
        if ended.row is not None and ended.row is not outer_row:
            self.runs += ended.row.runs()
        if not self._open:
            self._open = [_Open(False, (), None)]

    def add_scalar(self, value: str, anchor: str | None, lines: range) -> None:
        if anchor and len(value) <= _LONGEST_REPEATED:
            self._anchors[anchor] = value
        outer = self._open[-1]
        if not outer.is_mapping:
            outer.values.append((value, lines))
        elif outer.key is None:
            outer.key = value[:_LONGEST_KEY]
        else:
            self._write(outer, self._keys(outer), value, lines)
            outer.key = None

    def add_alias(self, name: str, lines: range) -> None:
        self.add_scalar(self._anchors.get(name, f"*{name}"), None, lines)

    def end_document(self) -> None:
        self._write_list(self._open[0])

    def _keys(self, opened: _Open) -> Keys:
        return (*opened.keys, opened.key)[-_KEYS:] if opened.key else opened.keys

    def _write(self, opened: _Open, keys: Keys, value: str, lines: range) -> None:
        if value in ("null", "~"):
            return
        if opened.row is not None:
            opened.row.add(keys, value, lines)
        else:
            self.runs += _setting_runs(keys, value, lines)

    def _write_list(self, opened: _Open) -> None:
        """Write the values of a list so far: short ones as one sentence."""
        values = [value for value, _ in opened.values]
        if opened.row is not None or (values and _is_short(values)):
            if values:
                lines = range(opened.values[0][1].start, opened.values[-1][1].stop)
                self._write(opened, opened.keys, ", ".join(values), lines)
        else:
            for value, lines in opened.values:
                self._write(opened, opened.keys, value, lines)
        opened.values = []


def _is_short(values: Sequence[str]) -> bool:
    return len(values) <= _MOST_JOINED and all(count_words(value) <= _SHORT for value in values)


def read_yaml(text: str) -> Iterator[TextRun]:
    """The values of YAML; a file that is none, such as a template, is text."""
    import yaml

    reader = _YamlReader()
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        for event in yaml.parse(text, Loader=loader):
            line = event.start_mark.line + 1
            if isinstance(event, yaml.ScalarEvent):
                reader.scalar_lines.update(range(line, event.end_mark.line + 1))
                # A block ends at the start of the line below it
                after = event.end_mark.line + 1 + (event.end_mark.column > 0)
                reader.add_scalar(event.value, event.anchor, range(line, max(after, line + 1)))
            elif isinstance(event, yaml.AliasEvent):
                reader.add_alias(event.anchor, range(line, line + 1))
            elif isinstance(event, yaml.CollectionStartEvent):
                reader.start(isinstance(event, yaml.MappingStartEvent))
            elif isinstance(event, yaml.CollectionEndEvent):
                reader.end()
            elif isinstance(event, yaml.DocumentEndEvent):
                reader.end_document()
    except (yaml.YAMLError, ValueError):
        yield from _text_runs(text)
        return
    comments = list[TextRun]()
    for number, line in enumerate(split_lines(text), start=1):
        if line.lstrip().startswith("#") and number not in reader.scalar_lines:
            comment = line.strip().lstrip("#").strip()
            if is_prose(comment):
                comments.append(TextRun(comment, number))
    yield from sorted([*comments, *reader.runs], key=lambda run: run.place)


def read_toml(text: str) -> Iterator[TextRun]:
    """The values of TOML; a file that is none is text."""
    try:
        runs = list(_toml_runs(text.replace("\r\n", "\n")))
    except (ValueError, RecursionError):
        runs = list(_text_runs(text))
    yield from runs


def _toml_runs(text: str) -> Iterator[TextRun]:
    section: Keys = ()
    row: _Row | None = None
    for line, statement in _toml_statements(text):
        if statement.startswith("#"):
            comment = statement.lstrip("#").strip()
            if is_prose(comment):
                yield TextRun(comment, line)
            continue
        if statement.partition("=")[0].count(".") > _LONGEST_DOTTED:
            raise ValueError("a key has too many parts")
        lines = range(line, line + statement.count("\n") + 1)
        content = tomllib.loads(statement)
        if statement.startswith("["):
            if row is not None:
                yield from row.runs()
            section = _path(content)
            row = _Row(section) if statement.startswith("[[") else None
        elif row is not None:
            for keys, value in _flatten(content, ()):
                row.add(keys, value, lines)
        else:
            yield from _value_runs(content, section, lines)
    if row is not None:
        yield from row.runs()


def _toml_statements(text: str) -> Iterator[tuple[int, str]]:
    """The line and text of each header, setting and comment of its own."""
    start = 0
    depth = 0
    line = 1
    first = 1
    for token in [*_TOML.finditer(text), None]:
        piece = token[0] if token else "\n"
        if piece in ("[", "{"):
            depth += 1
        elif piece in ("]", "}"):
            depth -= 1
        elif piece == "\n" and (depth <= 0 or token is None):
            end = token.start() if token else len(text)
            if statement := text[start:end].strip():
                yield first, statement
            start = end + 1
            depth = 0
            first = line + 1
        line += piece.count("\n")


def _path(content: object) -> Keys:
    """The keys of a header of TOML, which holds nothing else."""
    keys = list[str]()
    while content:
        if isinstance(content, list):
            content = content[0]
        elif isinstance(content, dict):
            key, content = next(iter(content.items()))
            keys.append(key)
        else:
            break
    return tuple(keys)


def _flatten(content: Mapping[str, object], above: Keys) -> Iterator[tuple[Keys, str]]:
    """The values of a mapping with their keys."""
    for key, value in content.items():
        if isinstance(value, dict):
            yield from _flatten(value, (*above, key))
        else:
            yield (*above, key), _plain(value)


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ", ".join(map(_plain, value))
    if isinstance(value, dict):
        return "; ".join(f"{_name(keys)}: {inner}" for keys, inner in _flatten(value, ()))
    return str(value)


def _value_runs(content: Mapping[str, object], above: Keys, lines: range) -> Iterator[TextRun]:
    for key, value in content.items():
        keys = (*above, key)
        if isinstance(value, dict):
            yield from _value_runs(value, keys, lines)
        elif isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
            for each in value:
                row = _Row(keys)
                for inner, text in _flatten(each, ()):
                    row.add(inner, text, lines)
                yield from row.runs()
        elif isinstance(value, list) and not _is_short(list(map(_plain, value))):
            for each in value:
                yield from _setting_runs(keys, _plain(each), lines)
        else:
            yield from _setting_runs(keys, _plain(value), lines)
