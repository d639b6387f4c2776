"""Several experiments against one: the p-values are corrected for their number."""

import pytest
from answered import run_answers

from ifqa.errors import IfqaError
from ifqa.report.compare import compare
from ifqa.report.several import several
from ifqa.report.terminal import drawn
from ifqa.scoring.statistics import holm


@pytest.fixture
def three(tmp_path, monkeypatch):
    """A answers 20 questions right, B other 40, C the same 20 and three more."""
    monkeypatch.chdir(tmp_path)
    right = {"a": range(20), "b": [*range(10), *range(53, 83)], "c": range(23)}
    return [run_answers(name, numbers) for name, numbers in right.items()]


def test_each_differs_from_the_first_as_alone_but_for_p(three):
    first, *others = three
    alone = {other.name: next(one for one in compare(first, other) if one.measure == "EM") for other in others}
    found = several(first, others).differences["EM"]
    assert {name: (one.more, one.low, one.high, one.won) for name, one in found.items()} == {
        name: (one.more, one.low, one.high, one.won) for name, one in alone.items()
    }
    assert [one.p for one in found.values()] == holm([one.p for one in alone.values()])
    assert found["b"].p == 2 * alone["b"].p


def test_one_measure_is_shown_alone(three):
    assert list(several(three[0], three[1:], "F1").differences) == ["F1"]
    with pytest.raises(IfqaError, match="unknown measure of these experiments 'nonsense'"):
        several(three[0], three[1:], "nonsense")


def test_an_experiment_is_not_held_against_itself(three):
    with pytest.raises(IfqaError, match="experiment a is named twice"):
        several(three[0], [three[1], three[0]])


def test_the_screen_has_a_row_for_each_measure_and_experiment(three):
    told = drawn(several(three[0], three[1:], "EM").show).splitlines()
    assert [line.rstrip() for line in told[:3]] == ["A: a", "B: b", "C: c"]
    assert [line.split()[:3] for line in told[4:7]] == [
        ["EM", "A", "24.1"],
        ["B", "48.2", "+24.1"],
        ["C", "27.7", "+3.6"],
    ]
