"""Lines on stderr: counts in words, and text from outside that cannot steer a terminal."""

import logging
import subprocess
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa import progress
from ifqa.formatting import pluralize, printable, printable_line
from ifqa.progress import bar

logger = logging.getLogger("ifqa.test")


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 pages"), (1, "1 page"), (1.2, "1 page"), (0.7, "1 page"), (2, "2 pages"), (1234, "1,234 pages")],
)
def test_a_count_has_the_singular_where_it_is_written_as_one(count, words):
    assert pluralize(count, "page") == words
    assert [pluralize(n, "process", "processes") for n in (1, 2)] == ["1 process", "2 processes"]


def test_a_character_that_steers_a_terminal_is_replaced_and_no_other():
    for sign in "\x00\x07\x1b\r\x7f\x85\x9b\u061c\u200b\u200e\u2028\u202e\u2066\ufeff\ud800\U000e0041":
        assert printable(f"a{sign}b") == "a\ufffdb"
    for text in ("Zürich 東京", "می\u200cخواهم", "👩\u200d🔬", "a\n\tb"):
        assert printable(text) == text


@given(st.text("a \n\t\r\x0b\x1c\x85\x9b\u200f\u2028\u2029\u202e\u2067é"))
def test_a_line_has_no_line_break_and_no_bidi_control(text):
    line = printable_line(text)
    assert len(line) == len(text)
    assert len(line.splitlines()) <= 1
    controls = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI"}
    assert not {unicodedata.bidirectional(character) for character in line} & controls


def test_a_message_with_a_newline_is_printed_on_one_line(capsys):
    logger.info("a title\nAnswer  forged\x1b[31m")
    assert capsys.readouterr().err == "a title Answer  forged\ufffd[31m\n"


def test_the_label_of_a_bar_is_no_markup_and_no_control(monkeypatch, capsys):
    clock = iter([0.0, 70.0, 140.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock, 200.0))
    with bar("SHA-256 of [/b]\x1b[31m", 2) as advance:
        advance(1)
    assert "SHA-256 of [/b]\ufffd[31m: 1 of 2" in capsys.readouterr().err


@pytest.mark.parametrize("redirect", ["2>/dev/full", "2>&-"])
def test_a_full_or_closed_stderr_does_not_end_the_work(redirect):
    code = "import logging; from ifqa.progress import show_messages; show_messages(); log = logging.getLogger('ifqa'); log.info('first'); log.info('second'); print('done')"
    done = subprocess.run(
        ["sh", "-c", f'"$0" -c "{code}" {redirect}', sys.executable], capture_output=True, text=True, check=False
    )
    assert done.stdout == "done\n"
