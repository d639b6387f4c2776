"""The measures and subsets that benchmarks and experiments declare, and their order in tables."""

from dataclasses import replace

import pytest

from ifqa.errors import IfqaError
from ifqa.protocols import Measure, RankingMeasure, SetMeasure
from ifqa.scoring.scheme import ScoringScheme, default_scheme, load_scheme, merge_schemes

PLAIN = """
from ifqa.protocols import Benchmark, Measure, RankingMeasure, Subset


class Plain(Benchmark):
    subsets = {subsets}
    measures = {measures}
"""


@pytest.fixture
def plain(tmp_path, monkeypatch):
    """Make a benchmark with these measures and subsets; returns its name."""
    monkeypatch.syspath_prepend(tmp_path)

    def make(measures="()", subsets="()"):
        name = f"plain_{len([*tmp_path.iterdir()])}_{tmp_path.name}"
        (tmp_path / f"{name}.py").write_text(PLAIN.format(measures=measures, subsets=subsets))
        return f"{name}:Plain"

    return make


def test_who_declares_no_measure_is_scored_as_ifqa_is(plain):
    usual, of_ifqa = default_scheme(), load_scheme("ifqa")
    assert load_scheme(plain()) == usual
    assert (of_ifqa.measures, of_ifqa.subsets[:-1]) == (usual.measures, usual.subsets)  # but for what its files tell
    own = load_scheme(plain(subsets="[Subset('hard', bool)]"))
    assert (own.measures, [subset.name for subset in own.subsets]) == (default_scheme().measures, ["hard"])
    alone = load_scheme(plain(measures="[Measure('mine', float)]"))
    assert ([measure.name for measure in alone.measures], alone.subsets) == (["mine"], ())


def test_an_experiment_may_add_measures_and_several_are_shown_with_those_of_all():
    a, b = load_scheme("ifqa", ["accuracy"]), load_scheme("ifqa")
    assert (a.measures[:-1], a.measures[-1].name) == (default_scheme().measures, "accuracy")
    assert a.headline(["accuracy", "EM"]) == "EM"
    assert merge_schemes([a, b]) == a
    assert merge_schemes([b, a]).measures == a.measures
    lists = ScoringScheme((RankingMeasure("found", lambda *_: {}, depths=[1, 5]),))  # as a user may write it
    assert merge_schemes([lists, lists]) == lists


@pytest.mark.parametrize(
    ("measures", "subsets", "complaint"),
    [
        ("[Measure('x', float), Measure('x', bool)]", "()", "the name of measure 'x' is taken"),
        ("[Measure('answer', float)]", "()", "the name of measure 'answer' is taken"),
        ("[Measure('a.b', float)]", "()", "'a.b': wanted a name without '.' and '@'"),
        ("[Measure('', float)]", "()", "wanted a name"),
        ("()", "[Subset('macro', bool)]", "the name of subset 'macro' is taken"),
        ("()", "[Subset('x', bool), Subset('x', bool)]", "the name of subset 'x' is taken"),
    ],
)
def test_a_name_that_would_mean_two_things_is_refused(plain, measures, subsets, complaint):
    with pytest.raises(IfqaError, match=complaint):
        load_scheme(plain(measures, subsets))
    assert load_scheme(plain("[RankingMeasure('answer', float)]")).measures  # its keys are answer@K


RANKED = RankingMeasure("found", lambda *_: {}, depths=(1, 5, 20), tables=(5,))
OTHER, SHOWN = Measure("plain", lambda *_: 0), Measure("shown", lambda *_: 0, in_tables=True)
BY = ScoringScheme((OTHER, SHOWN, SetMeasure("set", lambda *_: 0), RANKED))


def test_rankings_come_first_and_the_rest_as_declared():
    known = {"set", "plain", "found@20", "found@1", "of no measure"}
    assert BY.keys(known) == ["found@1", "found@20", "plain", "set"]


def test_the_headline_is_declared_else_in_tables_else_the_first_measure():
    every = ["plain", "shown", "set", "found@1", "found@5"]
    assert BY.headline(every) == "shown"
    assert BY.headline(["plain", "found@1", "found@5"]) == "found@5"
    assert BY.headline(["set", "plain"]) == "plain"
    assert BY.headline([]) == ""
    led = replace(BY, measures=(*BY.measures, SetMeasure("first", lambda *_: 0, headline=True)))
    assert led.headline([*every, "first"]) == "first"
    assert led.table_keys(["plain", "shown", "first"]) == ["first", "shown"]


def test_low_is_marked():
    low = ScoringScheme((replace(RANKED, best="low"), Measure("high", lambda *_: 0)))
    assert (low.best_value("found@5"), low.display_name("found@5")) == (0.0, "found@5 ↓")
    assert (low.best_value("high"), low.display_name("high")) == (1.0, "high")
