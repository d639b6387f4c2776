"""Reads a JSON document of several GB piece by piece, with one piece in memory at a time."""

import codecs
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from ifqa.errors import FormatError
from ifqa.storage.files import LONGEST_LINE

_CHUNK = 1 << 20  # bytes
_BLANKS = " \t\n\r"
_AFTER = _BLANKS + ",:]}"  # characters that may follow a value


class JsonStream:
    """A cursor before a value of a JSON document; it enters, decodes or skips the value.

        for key in stream.members():         # the document is an object
            if key == "data":
                for _ in stream.elements():  # the value is an array
                    print(stream.value())    # decoded one at a time

    A value that the loop's body does not read is skipped, child by child. A truncated document, and one that is not JSON or
    UTF-8, raises a FormatError with file and line.
    """

    def __init__(
        self, path: Path, handle: IO[bytes], longest: int = LONGEST_LINE, place: Callable[[], str] | None = None
    ) -> None:
        """Read the unpacked bytes of `handle`, and decode values of up to `longest` characters.

        Messages start with `path` and the line, or with `place()`.
        """
        self._path, self._handle, self._longest, self._place = path, handle, longest, place
        self._decoder = json.JSONDecoder()
        self._utf8 = codecs.getincrementaldecoder("utf-8-sig")()
        self._text = ""
        self._at = 0
        self._ended = False
        self._pending = True  # whether the value at the cursor is still unread
        self._lines, self._counted = 1, 0  # the line number at an offset of `_text`

    @property
    def line(self) -> int:
        """The line of the cursor, from 1."""
        self._lines += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._lines

    def members(self) -> Iterator[str]:
        """Enter an object, and raise for any other value; yields each key, with the cursor before its value."""
        return self._enter("{", "}")

    def member(self, key: str) -> Iterator[None]:
        """Enter an object and go to the value of a required key; yields once."""
        keys = []
        for name in self.members():
            keys.append(name)
            if name == key:
                yield
        if key not in keys:
            names = ", ".join(map(repr, keys[:9])) or "no keys"
            raise FormatError(f"{self._path}: key {key!r} is missing; found {names}")

    def elements(self) -> Iterator[str]:
        """Enter an array, and raise for any other value; yields "" for each element, with the cursor before it."""
        return self._enter("[", "]")

    def documents(self) -> Iterator[None]:
        """Yield with the cursor before each of several values in a row, as in JSON lines."""
        while self.peek():
            self._pending = True
            yield
            if self._pending:
                self._skip()

    def value(self) -> Any:
        """Decode the value at the cursor; raises if it is longer than `longest`."""
        self._pending = False
        self._next()
        while True:
            try:
                decoded, end = self._decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                why, at = f"not JSON ({error.msg})", error.pos
                if self._ended and (error.msg.startswith("Unterminated") or at >= len(self._text.rstrip())):
                    why += "; the file ends too early, fetch it again"
            except (RecursionError, ValueError) as error:
                raise self._error(f"not readable as JSON ({error})", self._at) from error
            else:
                after = self._text[end : end + 1]
                if self._ended or (after and after in _AFTER):
                    self._at = end
                    return decoded
                # the text so far may end within a number: "1." of "1.5", "1e" of "1e9"
                why, at = f"not JSON (found {after!r} after a value)", end
            if self._ended:
                raise self._error(why, at)
            if len(self._text) - self._at > self._longest:
                raise self._error(f"{why}, or a value of more than {self._longest:,} characters", at)
            self._read(
                max(_CHUNK, len(self._text) - self._at)
            )  # doubled, so that a long value is decoded only a few times

    def _enter(self, opens: str, closes: str) -> Iterator[str]:
        self._pending = False
        char = self._next()
        if char != opens:
            kinds = {"{": "an object", "[": "an array"}
            raise self._error(f"wanted {kinds[opens]}, found {kinds.get(char, repr(char))}", self._at)
        self._at += 1
        is_first, key = True, ""
        while self._next() != closes:
            if not is_first:
                self._expect(",")
            is_first = False
            if opens == "{":
                key = self.value() if self._next() == '"' else self._expect('"')
                self._expect(":")
            self._pending = True
            yield key
            if self._pending:
                self._skip()
        self._at += 1

    def _skip(self) -> None:
        start = self._next()
        if start not in "{[":
            self.value()
            return
        for _ in self.members() if start == "{" else self.elements():
            self.value()

    def _expect(self, wanted: str) -> str:
        char = self._next()
        if char != wanted:
            raise self._error(f"not JSON (wanted {wanted!r}, found {char!r})", self._at)
        self._at += 1
        return char

    def peek(self) -> str:
        """Move the cursor to the next character that is not white space, and return it; empty at the end."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in _BLANKS:
                    return self._text[self._at]
                self._at += 1
            if self._ended:
                return ""
            self._read(_CHUNK)

    def _next(self) -> str:
        char = self.peek()
        if not char:
            raise self._error("the JSON ends too early; fetch the file again", self._at)
        return char

    def _read(self, count: int) -> None:
        chunk = self._handle.read(count)
        self._lines, self._counted = self.line, 0
        try:
            text = self._utf8.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            raise self._error(f"not UTF-8 ({error.reason}); save the file as UTF-8", self._at) from error
        self._text, self._at, self._ended = self._text[self._at :] + text, 0, not chunk

    def _error(self, why: str, at: int) -> FormatError:
        line = self.line + self._text.count("\n", self._at, at)
        return FormatError(f"{self._place() if self._place else f'{self._path}:{line}'}: {why}")
