"""Sweeps: every combination of values, each a variant, once for each seed."""

import re

import pytest
from refusals import refused

from ifqa.config.experiment import parse_experiment
from ifqa.config.sweep import combinations, sweep, sweep_changes

pytestmark = pytest.mark.usefixtures("here")

SECTIONS = {
    "benchmark": "sample",
    "split": "dev",
    "corpus": "sample",
    "retriever": {"name": "bm25", "k": 20},
    "reader": {"name": "llm", "prompt": "open-book"},
    "llm": {"model": "m"},
}
DRAWN = SECTIONS | {"reader": {"name": "llm", "demos": "sample/train", "shots": 2}}


def base(sections=SECTIONS):
    return parse_experiment("x", sections, "x.toml")


def names(rows):
    return [[experiment.name for experiment in row.experiments] for row in rows]


def test_every_combination_is_a_row():
    rows = sweep(base(), {"k": [5, 20], "reader.prompt": ["open-book", "short"]})
    assert [row.label for row in rows] == [
        "k=5, prompt=open-book",
        "k=5, prompt=short",
        "k=20, prompt=open-book",
        "k=20, prompt=short",
    ]
    assert names(rows) == [
        ["x+k=5"],
        ["x+k=5+reader.prompt=short"],
        ["x"],
        ["x+reader.prompt=short"],
    ]


def test_a_single_value_is_in_no_label():
    [row] = sweep(base(), {"k": [5]})
    assert (row.label, row.seeds) == ("", ())


def test_each_row_runs_once_for_each_seed():
    rows = sweep(base(), {"sample": [8], "k": [5, 6], "seed": [3]}, 2)
    assert [row.label for row in rows] == ["k=5", "k=6"]
    assert [row.seeds for row in rows] == [(3, 4), (3, 4)]
    assert [experiment.seed for experiment in rows[0].experiments] == [3, 4]


def test_seeds_draw_other_demonstrations():
    [row] = sweep(base(DRAWN), {}, 3)
    assert [experiment.reader_setting("seed") for experiment in row.experiments] == [0, 1, 2]


def test_a_seed_stands_in_a_value():
    fid = SECTIONS | {"reader": {"name": "fid"}}
    [row] = sweep(base(fid), {"reader.checkpoint": ["models/fid-{seed}"]}, 2)
    checkpoints = [experiment.reader_setting("checkpoint") for experiment in row.experiments]
    assert checkpoints == ["models/fid-0", "models/fid-1"]


def test_seeds_of_what_draws_nothing_are_refused():
    with refused(re.escape("--seeds 2, but nothing in it is drawn by a seed; wanted --sample N")):
        sweep(base(), {}, 2)


def test_several_seeds_with_a_number_of_seeds_are_refused():
    with refused("--seeds 2 and --seed 1 5; wanted one whole number"):
        sweep(base(DRAWN), {"seed": [1, 5]}, 2)


def test_two_values_of_one_experiment_are_one_row():
    assert len(sweep(base(), {"retriever": ["bm25"], "k": [20, 20]})) == 1


def test_the_changes_of_a_sweep_are_those_of_its_runs():
    values: dict[str, list[object]] = {"sample": [4, 8], "k": [5]}
    assert sweep_changes(values, 2) == [
        {"sample": 4, "k": 5, "seed": 0},
        {"sample": 4, "k": 5, "seed": 1},
        {"sample": 8, "k": 5, "seed": 0},
        {"sample": 8, "k": 5, "seed": 1},
    ]
    assert sweep_changes({}) == combinations({}) == [{}]
