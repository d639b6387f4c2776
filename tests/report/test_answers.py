"""What the screen, the JSON and the notebook say of a language model's quote."""

from dataclasses import replace

import pytest
import quoted_answers as model

from ifqa.records import Answer, Quote
from ifqa.report.answers import find_support, show_answer


@pytest.fixture
def screen(monkeypatch, capsys):
    """The lines that an answer is shown as."""
    monkeypatch.setenv("COLUMNS", "120")

    def lines(answer: Answer) -> list[str]:
        show_answer(answer)
        return capsys.readouterr().out.splitlines()

    return lines


def test_a_quote_that_was_found_is_shown_as_such(screen):
    lines = screen(model.exact())
    assert f"Quote     “{model.SENTENCE}” (found in the passage that the model" in lines[2]
    assert f"Change    {model.CHANGE}" in lines


def test_a_quote_from_another_passage_is_shown_as_such(screen):
    printed = " ".join(" ".join(screen(model.other_passage())).split())
    assert "(found, but not in the passage that the model names)" in printed


def test_a_stitched_quote_is_shown_with_each_of_its_places(screen):
    lines = screen(model.stitched())
    at = lines.index(
        "          manuals/mill.pdf, p. 4 · The wheel: “Its saw was driven by a wheel of oak”"
    )
    assert "(stitched from several places)" in " ".join(" ".join(lines[:at]).split())
    assert lines[at + 1] == (
        "          notes/engine.md, line 7: “An engine of six horses stood behind the mill”"
    )


def test_both_parts_of_a_quote_from_one_passage_are_marked():
    [before, first, between, second, after] = model.stitched_in_one_passage().highlights(model.MILL)
    assert first == "Its saw was driven by a wheel of oak"
    assert second == "mended by Ada Stone after the flood"
    assert before + first + between + second + after == model.MILL.text


def test_a_stitched_quote_without_its_passage_is_shown(screen):
    lines = screen(replace(model.stitched(), evidence=(model.MILL,)))
    assert not any(line.startswith("          notes/engine.md") for line in lines)


def test_a_quote_that_is_nowhere_is_no_source(screen):
    lines = screen(model.missing())
    assert f"Quote     “{model.INVENTED}” (not in these passages)" in lines
    assert not any(line.startswith(("Source", "In fact")) for line in lines)
    assert any(line.startswith("Read      manuals/mill.pdf, p. 4") for line in lines)


def test_an_empty_quote_is_said(screen):
    assert "Quote     the model quotes nothing" in screen(model.empty())


def test_a_quote_of_white_space_is_empty(screen):
    blank = replace(model.empty(), quote=Quote(" \n", "missing"))
    assert "Quote     the model quotes nothing" in screen(blank)


def test_a_sentence_found_afterwards_is_said_to_be(screen):
    line = "In fact   notes/engine.md, line 7 (found afterwards for the model's answer)"
    assert line in screen(model.found_afterwards())


def test_only_the_passage_of_the_sentence_was_found_afterwards(screen):
    turned = replace(model.found_afterwards(), evidence=(model.MILL, model.ENGINE))
    marked = [line for line in screen(turned) if "found afterwards" in line]
    assert marked == ["          notes/engine.md, line 7 (found afterwards for the model's answer)"]


def test_an_abstention_of_the_model_says_why(screen):
    lines = screen(model.not_said())
    assert lines[1] == (
        f"Answer    no answer found in these passages: {model.NOT_SAID}; "
        "the best candidate is a horse"
    )


def test_an_answer_that_was_not_calibrated_has_no_percentage(screen):
    lines = screen(model.uncalibrated())
    assert lines[1] == "Answer    the engine"
    assert lines[2].startswith("          not calibrated for gpt-4o-mini with the prompt grounded;")
    assert "%" not in " ".join(lines)


def test_an_answer_in_fact_is_told_without_a_source(screen):
    lines = screen(replace(model.missing(), factual="the wheel"))
    assert "In fact   the wheel" in lines


def test_hostile_quotes_cannot_steer_the_terminal(screen):
    lines = screen(model.hostile())
    printed = "\n".join(lines)
    assert "\x1b" not in printed
    assert "\u202e" not in printed
    assert "[red]" in printed


def test_a_quote_cannot_forge_a_line(screen):
    assert sum(line.startswith("Answer") for line in screen(model.hostile())) == 1


@pytest.mark.parametrize("word", ["yes", "No."])
def test_no_sentence_is_found_by_the_word_yes_or_no(word):
    passage = replace(model.MILL, text="There was no wheel, yes, and no saw.")
    assert find_support(Answer(model.QUESTION, word, (passage,))) is None


def test_a_notebook_shows_what_became_of_a_quote():
    shown = model.missing()._repr_html_()
    assert f"<q>{model.INVENTED}</q> <small>(not in these passages)</small>" in shown
    assert f"<p>Change: {model.CHANGE}</p>" in shown


def test_a_notebook_marks_each_part_of_a_stitched_quote():
    shown = model.stitched()._repr_html_()
    assert "<mark>Its saw was driven by a wheel of oak</mark>" in shown
    assert "<mark>An engine of six horses stood behind the mill</mark>" in shown


def test_a_notebook_tells_which_sentence_was_found_afterwards():
    shown = model.found_afterwards()._repr_html_()
    assert shown.count("(found afterwards for the model's answer)") == 1


def test_a_notebook_says_that_an_answer_was_not_calibrated():
    shown = model.uncalibrated()._repr_html_()
    assert f"<small>{model.UNCALIBRATED}</small>" in shown
    assert "%" not in shown


def test_a_hostile_quote_is_text_in_a_notebook():
    shown = model.hostile()._repr_html_()
    assert "<script" not in shown
    assert "<img" not in shown
