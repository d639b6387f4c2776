"""Lines on stderr: counts in words, and text from outside that cannot steer a terminal."""

import logging
import re
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable
from io import StringIO
from threading import Event

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from ifqa import progress
from ifqa.formatting import pluralize, printable, printable_line
from ifqa.progress import bar

logger = logging.getLogger("ifqa.test")


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 pages"),
        (1, "1 page"),
        (1.2, "1 page"),
        (0.7, "1 page"),
        (2, "2 pages"),
        (1234, "1,234 pages"),
    ],
)
def test_a_count_has_the_singular_where_it_is_written_as_one(count, words):
    assert pluralize(count, "page") == words
    assert [pluralize(n, "process", "processes") for n in (1, 2)] == ["1 process", "2 processes"]


def test_a_character_that_steers_a_terminal_is_replaced():
    for (
        sign
    ) in "\x00\x07\x1b\r\x7f\x85\x9b\u061c\u200b\u200e\u2028\u202e\u2066\ufeff\ud800\U000e0041":
        assert printable(f"a{sign}b") == "a\ufffdb"


def test_no_other_character_is_replaced():
    for text in ("Zürich 東京", "می\u200cخواهم", "👩\u200d🔬", "a\n\tb"):
        assert printable(text) == text


@given(st.text("a \n\t\r\x0b\x1c\x85\x9b\u200f\u2028\u2029\u202e\u2067é"))
def test_a_printable_line_has_no_control_characters(text):
    line = printable_line(text)
    assert len(line) == len(text)
    assert len(line.splitlines()) <= 1
    controls = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI"}
    assert not {unicodedata.bidirectional(character) for character in line} & controls


def test_a_message_with_a_newline_is_printed_on_one_line(capsys):
    logger.info("a title\nAnswer  forged\x1b[31m")
    assert capsys.readouterr().err == "a title Answer  forged\ufffd[31m\n"


def shown(width, work):
    """What a terminal of this width gets of some work under a bar."""
    screen = StringIO()
    terminal = Console(
        file=screen, force_terminal=True, width=width, color_system=None, _environ={}
    )
    progress._display.cache_clear()
    progress._display().live.console = terminal
    try:
        work()
    finally:
        progress._display.cache_clear()
    return screen.getvalue()


def test_a_bar_shows_the_file_being_read_and_the_share_of_it_that_is_read_within_80_columns():
    def work():
        with bar("passages of mine", 8_000_000, "bytes") as advance:
            progress.report("reports/[b]a very long name of a file on roads\x1b[31m.pdf", 1_000_000)
            time.sleep(0.7)
            progress.report("next.pdf", 2_000_000)
            progress.report("next.pdf", 1_500_000)  # a bar never goes back
            time.sleep(0.2)
            advance(4_000_000)
            time.sleep(0.2)

    screen = shown(80, work)
    lines = re.sub(r"\x1b\[\??[\dA-Za-z]+", "", screen).splitlines()
    assert "\x1b[31m" not in screen
    assert max(map(len, lines)) <= 80
    for seen in (
        "reading [b]a very",
        "1.0 MB of 8.0 MB",
        "reading next.pdf",
        "2.0 MB of 8.0 MB",
        "4.0 MB of 8.0 MB",
    ):
        assert seen in screen


def test_nested_bars_are_shown_below_each_other_and_vanish():
    def work():
        with bar("outer", 2) as advance, bar("inner", None) as step:
            time.sleep(0.7)
            advance(1)
            step(3)
            time.sleep(0.2)

    screen = shown(60, work)
    assert re.search(r"outer[^\r\n]* 0 of 2 [^\r\n]*\r?\ninner", screen)
    assert progress._display().tasks == []


def lines_of(monkeypatch, capsys, total, *steps, unit=""):
    """The lines of a bar without a terminal. Each step works while the watcher waits; a wait takes
    as long as it says, on a clock of its own.
    """
    now = [0.0]
    todo = list(steps)
    advances: list[Callable[[float], None]] = []
    started = Event()
    finished = Event()

    class Clock(Event):
        def wait(self, timeout=None):
            now[0] += timeout
            started.wait(5)
            if not todo:
                finished.set()
                return True
            todo.pop(0)(advances[0])
            return False

    monkeypatch.setattr(progress, "Event", Clock)
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with bar("SHA-256 of [/b]\x1b[31m", total, unit) as advance:
        advances.append(advance)
        started.set()
        assert finished.wait(5)
    return capsys.readouterr().err.splitlines()


NAME = "SHA-256 of [/b]\ufffd[31m"


def test_lines_take_the_place_of_a_bar_where_there_is_no_terminal(monkeypatch, capsys):
    steps = [lambda _: None, lambda advance: advance(1), lambda _: progress.report("a.pdf", 1)]
    lines = lines_of(monkeypatch, capsys, 121, *steps, unit="bytes")
    assert lines == [
        f"{NAME}: 1 byte of 121 bytes, 1.0/min, about 2:00:00 to go",
        f"{NAME}: 2 bytes of 121 bytes, 1.0/min, about 1:59:00 to go, reading a.pdf",
    ]


def test_work_that_a_resumed_task_finds_done_has_no_rate(monkeypatch, capsys):
    steps = [lambda advance: advance(900), lambda _: None, lambda advance: advance(60)]
    assert lines_of(monkeypatch, capsys, 1000, *steps) == [
        f"{NAME}: 900 of 1,000",
        f"{NAME}: 960 of 1,000, 30.0/min, about 0:01:20 to go",
    ]


def test_the_rate_is_that_of_the_last_minutes(monkeypatch, capsys):
    slow = [lambda advance: advance(1)] * 3
    fast = [lambda advance: advance(120)] * 6
    *_, last = lines_of(monkeypatch, capsys, None, lambda _: None, *slow, *fast)
    assert last == f"{NAME}: 723, 2/s"


def test_work_of_less_than_half_a_second_shows_nothing(capsys):
    with bar("short", 1) as advance:
        advance(1)
    progress.report("nowhere.pdf", 1)
    assert capsys.readouterr().err == ""


def test_bars_that_overlap_in_threads_leave_no_bar_for_later_reports():
    first = bar("first", 1)
    second = bar("second", 1)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    progress.report("of-the-second.pdf", 1)
    second.__exit__(None, None, None)
    progress.report("of-none.pdf", 1)
    assert progress._reports == []


@pytest.mark.parametrize("redirect", ["2>/dev/full", "2>&-"])
def test_a_full_or_closed_stderr_does_not_end_the_work(redirect):
    code = (
        "import logging; from ifqa.progress import show_messages; show_messages(); "
        "log = logging.getLogger('ifqa'); log.info('first'); log.info('second'); print('done')"
    )
    done = subprocess.run(
        ["sh", "-c", f'"$0" -c "{code}" {redirect}', sys.executable],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "done\n"
