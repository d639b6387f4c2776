"""The experiment on answerable questions: removed passages, and figures."""

from types import SimpleNamespace

import answerable as experiment
import pytest

from ifqa.errors import IfqaError
from ifqa.records import Answer, Passage, Question

GOLD = "The mill at Brae was built by Ann Lee in 1850 and it burnt down in the great storm of 1901."


def reading(number, gold_read, confidence, right=True):
    return experiment.Reading(f"q/{number}", "If so?", not gold_read, gold_read, "a", confidence, right)


def test_passages_that_share_twelve_words_with_a_gold_passage_are_removed():
    shares = f"{'Other words of another page come first here. ' * 9}{GOLD[:60]}"  # under 40% of its 5-grams
    ranking = [Passage("gold", "", GOLD), Passage("shares", "", shares), Passage("other", "", "Ann Lee built a barn.")]
    question = Question("q/1", "If so?", ("Ann Lee",), (GOLD,))
    assert [passage.id for passage in experiment.without_gold(question, ranking)] == ["other"]


def test_confidence_is_measured_over_readings_with_and_without_gold():
    readings = [reading(n, True, 0.9 - n / 10, right=n < 2) for n in range(4)]
    readings += [reading(n, False, 0.2, right=False) for n in range(4)]
    ignored = experiment.Reading("q/9", "If so?", False, False, "a", 0.99, False)  # all passages, none of them gold
    lines = experiment.summary_lines([*readings, ignored], 0.65)
    assert lines[0].startswith("AUROC 100.0 [")
    assert lines[1].startswith("4 answerable: 25.0 [")
    assert "EM 50.0" in lines[1]
    assert lines[2].startswith("4 unanswerable: 100.0 [100.0, 100.0] below the threshold 0.650; EM 0.0")
    assert lines[lines.index("least sure and right:") + 1].startswith(" 80%  q/1")


def test_plain_questions_are_listed_with_their_answers(tmp_path):
    lines = [line.split("\t") for line in experiment.PLAIN.read_text().splitlines()]
    assert [known for known, _ in lines] == ["yes"] * 10 + ["no"] * 10

    def ask(text):
        if ["yes", text] in lines:
            return Answer(Question("q", text), "Ann", confidence=0.75)
        return Answer(Question("q", text), "", confidence=0.1, candidate="Bo")

    system = SimpleNamespace(ask=ask)
    rows = experiment.answer_lines(system, experiment.PLAIN)
    assert rows[0] == "yes   75%  Who designed the Sydney Opera House?  Ann"
    assert rows[10].startswith(
        "no    10%  Who wrote Hamlet?  (no answer found in these passages; the best candidate is"
    )
    (tmp_path / "broken.tsv").write_text("maybe Who?\n")
    with pytest.raises(IfqaError, match=r"broken\.tsv:1: wanted yes or no, a tab, and a question"):
        experiment.answer_lines(system, tmp_path / "broken.tsv")
