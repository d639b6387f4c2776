"""Reads a JSON document piece by piece, so that a file of several GB takes the memory of one piece."""

import codecs
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from ifqa.errors import IfqaError
from ifqa.storage.files import LONGEST_LINE

_CHUNK = 1 << 20  # bytes
_BLANKS = " \t\n\r"
_AFTER = _BLANKS + ",:]}"  # what may stand after a value


class JsonStream:
    """A cursor in a JSON document. It stands before a value, and goes into it, decodes it, or passes over it.

        for key in stream.members():         # the document is an object
            if key == "data":
                for _ in stream.elements():  # and this value an array
                    print(stream.value())    # decoded one at a time

    A value that the loop's body did not take is passed over, child by child. What is not JSON or UTF-8, or ends too early, is
    refused in one line that names the place.
    """

    def __init__(
        self, path: Path, handle: IO[bytes], longest: int = LONGEST_LINE, place: Callable[[], str] | None = None
    ) -> None:
        """Start before the document's value.

        Args:
            path: names the file in messages.
            handle: its bytes, unpacked.
            longest: characters of a value that is decoded.
            place: opens messages, in the place of "file:line".
        """
        self._path, self._handle, self._longest, self._place = path, handle, longest, place
        self._decoder = json.JSONDecoder()
        self._utf8 = codecs.getincrementaldecoder("utf-8-sig")()
        self._text = ""
        self._at = 0
        self._ended = False
        self._pending = True  # the value at the cursor was not taken yet
        self._lines, self._counted = 1, 0  # lines begun up to this place in `_text`

    @property
    def line(self) -> int:
        """The number of the line that the cursor is in, from 1."""
        self._lines += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._lines

    def members(self) -> Iterator[str]:
        """Go into an object; yields each key, with the cursor before its value. Another value is refused."""
        return self._inside("{", "}")

    def member(self, key: str) -> Iterator[None]:
        """Go into an object, to the value of one key, which must be there; yields once."""
        keys = []
        for name in self.members():
            keys.append(name)
            if name == key:
                yield
        if key not in keys:
            raise IfqaError(
                f"{self._path}: key {key!r} is missing; found {', '.join(map(repr, keys[:9])) or 'no keys'}"
            )

    def elements(self) -> Iterator[str]:
        """Go into an array; yields an empty string for each element, with the cursor before it. Another value is refused."""
        return self._inside("[", "]")

    def documents(self) -> Iterator[None]:
        """Yield for each of the values that follow one another, as in JSON lines, with the cursor before it."""
        while self.peek():
            self._pending = True
            yield
            if self._pending:
                self._pass_over()

    def value(self) -> Any:
        """Decode the value at the cursor; one that is longer than `longest` is refused."""
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
                raise self._broken(f"not JSON that can be read ({error})", self._at) from error
            else:
                after = self._text[end : end + 1]
                if self._ended or (after and after in _AFTER):
                    self._at = end
                    return decoded
                # the last piece may end within a number: "1." or "1e" of "1.5" and "1e9"
                why, at = f"not JSON (found {after!r} after a value)", end
            if self._ended:
                raise self._broken(why, at)
            if len(self._text) - self._at > self._longest:
                raise self._broken(f"{why}, or a value of more than {self._longest:,} characters", at)
            self._read(max(_CHUNK, len(self._text) - self._at))  # doubled, so that a long value is not tried too often

    def _inside(self, opens: str, closes: str) -> Iterator[str]:
        self._pending = False
        char = self._next()
        if char != opens:
            kinds = {"{": "an object", "[": "an array"}
            raise self._broken(f"wanted {kinds[opens]}, found {kinds.get(char, repr(char))}", self._at)
        self._at += 1
        first = True
        while self._next() != closes:
            if not first:
                self._take(",")
            first = False
            key = ""
            if opens == "{":
                key = self.value() if self._next() == '"' else self._take('"')
                self._take(":")
            self._pending = True
            yield key
            if self._pending:
                self._pass_over()
        self._at += 1

    def _pass_over(self) -> None:
        kind = self._next()
        if kind not in "{[":
            self.value()
            return
        for _ in self.members() if kind == "{" else self.elements():
            self.value()

    def _take(self, wanted: str) -> str:
        char = self._next()
        if char != wanted:
            raise self._broken(f"not JSON (wanted {wanted!r}, found {char!r})", self._at)
        self._at += 1
        return char

    def peek(self) -> str:
        """The first character after blanks, empty at the end; the cursor is moved to it."""
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
            raise self._broken("the JSON ends too early; fetch the file again", self._at)
        return char

    def _read(self, count: int) -> None:
        data = self._handle.read(count)
        self._lines, self._counted = self.line, 0
        try:
            more = self._utf8.decode(data, final=not data)
        except UnicodeDecodeError as error:
            raise self._broken(f"not UTF-8 ({error.reason}); save the file as UTF-8", self._at) from error
        self._ended = not data
        self._text = self._text[self._at :] + more
        self._at = 0

    def _broken(self, why: str, at: int) -> IfqaError:
        line = self.line + self._text.count("\n", self._at, at)
        return IfqaError(f"{self._place() if self._place else f'{self._path}:{line}'}: {why}")
