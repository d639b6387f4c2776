"""Reads subtitles (SubRip and WebVTT): each text, with the second at which it begins."""

import re
from collections.abc import Iterator
from html import unescape

from ifqa.corpus.documents.decoding import TextRun, UnreadableFile, split_lines

_TIME = r"(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})"
_TIMES = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}")
_UNSHOWN = re.compile(r"(?:NOTE|STYLE|REGION)(?:\s|$)")  # blocks of WebVTT
_VOICE = re.compile(r"<v(?:\.[\w.-]{1,100})?\s+([^<>]{1,100})>")
_TAG = re.compile(r"</?[a-zA-Z0-9][^<>]{0,200}>|\{\\[^{}]{0,100}\}")
_STRUCK = re.compile(r"<(s|strike)>[^<>]{0,500}</\1>", re.I)
_TURN = re.compile(r"[-–—]\s*\S|>>|[A-ZÀ-Þ][A-ZÀ-Þ0-9 .'-]{1,30}:\s")
_PAUSE = 4.0  # seconds without speech that end a paragraph
_GAP = 0.1  # seconds below which a caption goes on, and may repeat its last line


def read_subtitles(text: str) -> Iterator[TextRun]:
    """The lines that are said, without tags and styles; a sentence may go on in the next one.

    Places are seconds from the start. A speaker begins a paragraph, and a name that WebVTT gives
    stands before it. Raises UnreadableFile if no line has a time.
    """
    lines = split_lines(text)
    reader = _Reader()
    is_shown = True
    is_first = True  # whether the line follows an empty one
    for number, line in enumerate(lines):
        below = lines[number + 1] if number + 1 < len(lines) else ""
        if times := _TIMES.match(line):
            reader.start(_seconds(times, 1), _seconds(times, 5))
            is_shown = True
        elif not line.strip():
            is_shown = True
        elif is_first and _UNSHOWN.match(line):
            is_shown = False
        elif is_shown and not _TIMES.match(below):  # a line above the times is the cue's name
            yield from reader.read(line)
        is_first = not line.strip()
    if not reader.has_times:
        raise UnreadableFile("no times of subtitles in it")


def _seconds(times: re.Match[str], group: int) -> float:
    hours, minutes, seconds, fraction = times.groups()[group - 1 : group + 3]
    whole = int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds)
    return whole + float(f"0.{fraction}")


class _Reader:
    """The captions so far."""

    def __init__(self) -> None:
        self.has_times = False
        self._start = 0.0
        self._end = 0.0
        self._last_line = ""
        self._speaker = ""
        self._opens = True
        self._may_repeat = False  # whether the caption may begin with the last line again

    def start(self, start: float, end: float) -> None:
        self._opens = not self.has_times or start - self._end > _PAUSE
        self._may_repeat = self.has_times and start - self._end <= _GAP
        self.has_times = True
        self._start = start
        self._end = end

    def read(self, line: str) -> Iterator[TextRun]:
        voice = _VOICE.search(line)
        text = unescape(_TAG.sub("", _STRUCK.sub("", line))).strip()
        is_repeated = self._may_repeat and text == self._last_line
        if not self.has_times or not text or is_repeated:
            return
        self._may_repeat = False
        self._last_line = text
        is_turn = _TURN.match(text) is not None
        if voice and voice[1].strip() != self._speaker:
            self._speaker = voice[1].strip()
            text = f"{self._speaker}: {text}"
            is_turn = True
        yield TextRun(text, int(self._start), self._opens or is_turn, item=is_turn)
        self._opens = False
