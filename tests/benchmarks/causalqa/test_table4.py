"""The published values of Table 4: its averages follow from its rows."""

import pytest

from ifqa.benchmarks.causalqa.benchmark import ANSWER_MEASURES, DATASETS
from ifqa.config.experiment import load_experiment

MEASURES = [measure.name for measure in ANSWER_MEASURES[:5]]
ORIGINAL = (76_961, 33, 2_558, 71, 13_104, 117, 252, 29, 35, 66)  # questions of each dataset, in DATASETS' order
RANDOM = (76_961, 14_629, 2_557, 121, 13_104, 78, 321, 66, 39, 71)
HALVES = {
    "causalqa-table4-base": ("original-valid", ORIGINAL),
    "causalqa-table4-finetuned": ("original-valid", ORIGINAL),
    "causalqa-table4-random": ("random-valid", RANDOM),
}


@pytest.mark.parametrize("name", HALVES)
def test_every_dataset_has_five_published_values_and_the_averages_follow_from_them_within_rounding(name):
    experiment, (split, counts) = load_experiment(name), HALVES[name]
    assert experiment.split == split
    assert {(row.source, row.tolerance) for row in experiment.expected} == {("CausalQA, COLING 2022, Table 4", 1)}
    values = {row.measure: row.value for row in experiment.expected}
    parts = [*(f"{dataset}." for dataset in DATASETS), "macro.", ""]
    assert set(values) == {part + measure for part in parts for measure in MEASURES}
    for measure in MEASURES:
        rows = [values[f"{dataset}.{measure}"] for dataset in DATASETS]
        micro = sum(value * count for value, count in zip(rows, counts, strict=True)) / sum(counts)
        # Values are rounded to a hundredth, one point: half a point for the rows, and half for the average.
        assert abs(values[f"macro.{measure}"] - sum(rows) / len(rows)) <= 1
        assert abs(values[measure] - micro) <= 1
