from io import StringIO

import pytest
from rich.console import Console

from ifqa.report.screen import mark


def shown(markup):
    console = Console(file=StringIO(), force_terminal=False, highlight=False, width=200)
    console.print(markup)
    return console.file.getvalue().rstrip("\n")


@pytest.mark.parametrize("text", ["[bold red]not markup[/bold red]", "a [/] b", "[link=file:///etc]x[/link]", "plain"])
def test_nothing_in_a_passage_is_taken_as_markup(text):
    assert shown(mark(text, "markup")) == text


def test_no_control_character_reaches_the_terminal():
    assert "\x1b" not in shown(mark("\x1b[31mred\x1b[0m \x9b31m", "red"))


def test_the_answer_is_marked_where_it_stands_as_words():
    assert mark("Art is in art, not in start.", "art") == (
        "[bold green]Art[/bold green] is in [bold green]art[/bold green], not in start."
    )
    assert mark("C++ (1985)", "(1985)") == "C++ [bold green](1985)[/bold green]"
