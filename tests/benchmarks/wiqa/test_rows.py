"""The published values of WIQA's Tables 2 and 3: totals follow from the types, and every row is complete."""

import pytest

from ifqa.benchmarks.wiqa.benchmark import KINDS, TOPICS
from ifqa.config.experiment import load_experiment
from ifqa.report.stats.wiqa import PUBLISHED

ROWS = ("majority", "polarity", "adaboost", "decomp-attn", "choice-no-paragraph", "choice")


def values(row):
    experiment = load_experiment(f"wiqa-{row}")
    assert (experiment.benchmark, experiment.split) == ("wiqa", "test")
    return {row.measure: row.value for row in experiment.expected}


@pytest.mark.parametrize("row", ROWS)
def test_a_row_has_the_values_of_its_tables_and_its_total_is_the_mean_over_the_types_questions(row):
    published = values(row)
    parts = [*(f"{kind}.accuracy" for kind in KINDS), "accuracy"]
    parts += [f"{topic}.accuracy" for topic in TOPICS] if row.startswith("choice") else []
    assert list(published) == parts
    counts = {kind: PUBLISHED[kind][2] for kind in KINDS}
    total = sum(published[f"{kind}.accuracy"] * count for kind, count in counts.items()) / sum(counts.values())
    assert abs(published["accuracy"] - total) < 0.03  # values have two digits


def test_only_the_reader_of_the_paragraph_gets_it():
    assert [row for row in ROWS if load_experiment(f"wiqa-{row}").retriever] == ["choice"]
    assert values("human") == {"accuracy": 96.33}
