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


def test_a_benchmark_without_measures_has_the_default_scheme(plain):
    default = default_scheme()
    ifqa = load_scheme("ifqa")
    assert load_scheme(plain()) == default
    # The last one needs its files
    assert (ifqa.measures, ifqa.subsets[:-1]) == (default.measures, default.subsets)
    subset_alone = load_scheme(plain(subsets="[Subset('hard', bool)]"))
    assert (subset_alone.measures, [subset.name for subset in subset_alone.subsets]) == (
        default.measures,
        ["hard"],
    )
    measure_alone = load_scheme(plain(measures="[Measure('mine', float)]"))
    assert ([measure.name for measure in measure_alone.measures], measure_alone.subsets) == (
        ["mine"],
        (),
    )


def test_an_experiment_adds_measures_after_those_of_its_benchmark():
    scheme = load_scheme("ifqa", ["accuracy"])
    assert scheme.measures[:-1] == default_scheme().measures
    assert scheme.measures[-1].name == "accuracy"
    assert scheme.headline(["accuracy", "EM"]) == "EM"


def test_merged_schemes_have_all_measures():
    a = load_scheme("ifqa", ["accuracy"])
    b = load_scheme("ifqa")
    assert merge_schemes([a, b]) == a
    assert merge_schemes([b, a]).measures == a.measures


def test_measures_that_differ_in_their_unit_are_merged():
    scheme = default_scheme()
    units = tuple(replace(measure, unit="passages") for measure in scheme.measures)
    assert merge_schemes([scheme, replace(scheme, measures=units)]) == scheme


def test_schemes_whose_depths_are_a_list_are_merged():
    # A benchmark from outside may declare a list
    hits = RankingMeasure("hits", lambda *_: {}, depths=[1, 5])  # type: ignore[arg-type]
    lists = ScoringScheme((hits,))
    assert merge_schemes([lists, lists]) == lists


@pytest.mark.parametrize(
    ("measures", "subsets", "complaint"),
    [
        ("[Measure('x', float), Measure('x', bool)]", "()", "the name of measure 'x' is taken"),
        ("[Measure('answer', float)]", "()", "the name of measure 'answer' is taken"),
        ("[Measure('a.b', float)]", "()", "'a.b': wanted a name without '.' or '@'"),
        ("[Measure('', float)]", "()", "wanted a name"),
        ("()", "[Subset('macro', bool)]", "the name of subset 'macro' is taken"),
        ("()", "[Subset('x', bool), Subset('x', bool)]", "the name of subset 'x' is taken"),
    ],
)
def test_a_bad_or_ambiguous_name_is_refused(plain, measures, subsets, complaint):
    with pytest.raises(IfqaError, match=complaint):
        load_scheme(plain(measures, subsets))
    assert load_scheme(plain("[RankingMeasure('answer', float)]")).measures  # its keys are answer@K


RANKED = RankingMeasure("hits", lambda *_: {}, depths=(1, 5, 20), tables=(5,))
PLAIN_MEASURE = Measure("plain", lambda *_: 0)
SHOWN = Measure("shown", lambda *_: 0, in_tables=True)
SCHEME = ScoringScheme((PLAIN_MEASURE, SHOWN, SetMeasure("set", lambda *_: 0), RANKED))


def test_rankings_come_before_the_other_measures_in_declared_order():
    known = {"set", "plain", "hits@20", "hits@1", "of no measure"}
    assert SCHEME.keys(known) == ["hits@1", "hits@20", "plain", "set"]


def test_the_headline_is_declared_else_in_tables_else_the_first_measure():
    keys = ["plain", "shown", "set", "hits@1", "hits@5"]
    assert SCHEME.headline(keys) == "shown"
    assert SCHEME.headline(["plain", "hits@1", "hits@5"]) == "hits@5"
    assert SCHEME.headline(["set", "plain"]) == "plain"
    assert SCHEME.headline([]) == ""
    led = replace(
        SCHEME, measures=(*SCHEME.measures, SetMeasure("first", lambda *_: 0, headline=True))
    )
    assert led.headline([*keys, "first"]) == "first"
    assert led.table_keys(["plain", "shown", "first"]) == ["first", "shown"]


def test_an_arrow_marks_measures_where_low_is_best():
    low = ScoringScheme((replace(RANKED, best="low"), Measure("high", lambda *_: 0)))
    assert (low.best_value("hits@5"), low.display_name("hits@5")) == (0.0, "hits@5 ↓")
    assert (low.best_value("high"), low.display_name("high")) == (1.0, "high")
