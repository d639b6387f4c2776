"""The part of a split that an experiment asks: which questions, and that their scores say so."""

import json
from dataclasses import replace

import pytest
from prediction_files import run_answers, write_answers, write_predictions
from scored_experiments import write

from ifqa.config.experiment import load_experiment
from ifqa.config.overrides import override
from ifqa.pipeline import stages
from ifqa.pipeline.retrieve import RETRIEVE
from ifqa.pipeline.run import Run
from ifqa.pipeline.score import SCORE
from ifqa.plugins import open_benchmark
from ifqa.report.compare import compare_pair, compare_to_first
from ifqa.report.scores import load_scores
from ifqa.report.table import render_text
from ifqa.scoring.stored_scores import partial_notice, read_scores

pytestmark = pytest.mark.usefixtures("here")


def numeric_share(questions, scheme):
    [numeric, *_] = scheme.subsets
    return sum(map(bool, map(numeric.holds, questions))) / len(questions)


def test_a_sample_is_not_the_first_questions():
    write_answers("x", range(83))
    run = Run(override(load_experiment("x"), {"sample": 8}))
    assert len(run.questions) == 8
    assert run.questions != run.split[:8]


def test_a_stratified_sample_has_the_proportions_of_the_subsets():
    write_answers("x", range(83))
    base = load_experiment("x")
    whole = numeric_share(Run(base).split, base.scheme)
    for seed in range(5):
        run = Run(override(base, {"sample": 20, "stratified": True, "seed": seed}))
        # two subsets that overlap make up to four strata, each off by less than one question
        assert numeric_share(run.questions, base.scheme) == pytest.approx(whole, abs=2 / 20)


@pytest.mark.parametrize(
    ("changes", "notice"),
    [
        ({"limit": 8}, "PARTIAL: 8 of 83 questions (the first, no sample)"),
        ({"sample": 8, "seed": 3}, "PARTIAL: 8 of 83 questions (random sample, seed 3)"),
        (
            {"sample": 8, "stratified": True},
            "PARTIAL: 8 of 83 questions (stratified sample, seed 0)",
        ),
        ({"sample": 83}, ""),
    ],
)
def test_scores_say_how_their_questions_were_chosen(changes, notice):
    write_answers("x", range(83))
    run = Run(override(load_experiment("x"), changes))
    folder = stages.run(run)
    assert partial_notice(read_scores(folder)) == notice
    assert notice in str(load_scores(run, folder))


def test_another_seed_asks_other_questions():
    experiment = run_answers("x", range(83))
    runs = [Run(override(experiment, {"sample": 8, "seed": seed})) for seed in (0, 1)]
    assert runs[0].questions_identity != runs[1].questions_identity


def test_a_comparison_says_which_side_is_partial():
    run_answers("x", range(83))
    experiment = load_experiment("x")
    stages.run(Run(override(experiment, {"limit": 8})))
    limited = override(experiment, {"limit": 8})
    pair = compare_pair(experiment, limited, common=True)
    wanted = "B: x+limit=8  PARTIAL: 8 of 83 questions (the first, no sample)"
    assert wanted in str(pair)
    assert pair.to_dict()["partial"] == {"a": "", "b": pair.notices[1]}
    run_answers("y", range(40))
    several = compare_to_first(experiment, [limited, load_experiment("y")], "EM", common=True)
    assert wanted in render_text(several.show)


def test_the_stages_of_a_sample_are_those_of_its_questions():
    """The fingerprint has the questions themselves, so two ways to choose them share a stage."""
    write_answers("x", range(83), more='corpus = "sample"')
    base = load_experiment("x")
    sampled = Run(override(base, {"sample": 8, "retriever": "gold"}))
    ids = [question.id for question in sampled.questions]
    listed = Run(override(replace(base, questions=tuple(ids)), {"retriever": "gold"}))
    assert sampled.inputs(RETRIEVE) == listed.inputs(RETRIEVE)


def test_scores_are_two_lines():
    run_answers("x", range(83))
    run = Run(override(load_experiment("x"), {"limit": 12}))
    lines = repr(load_scores(run, stages.run(run))).splitlines()
    assert lines == [
        "Scores of x+limit=12: 12 questions, 0 failed; "
        "PARTIAL: 12 of 83 questions (the first, no sample)",
        "EM 100.0 [75.8, 100.0], F1 100.0 [75.8, 100.0]",
    ]


def test_a_frame_has_the_number_of_questions():
    run_answers("x", range(83))
    run = Run(load_experiment("x"))
    frame = load_scores(run, stages.run(run)).to_frame().set_index(["over", "measure"])
    assert frame.loc[("all", "EM"), "n"] == 83
    numeric = sum(map(bool, map(run.experiment.scheme.subsets[0].holds, run.questions)))
    assert frame.loc[("numeric", "EM"), "n"] == numeric


def grown(size):
    """An experiment on the first three questions of a file, whose size is changed before each
    run.
    """
    rows = [f'"If so, who was {n}?",x\n' for n in range(size)]
    write("q.csv", f"question,answers\n{''.join(rows)}")
    ids = [question.id for question in open_benchmark("file").questions("q.csv")]
    return write_predictions("g", dict.fromkeys(ids[:3], "x"), "file", "q.csv", "limit = 3")


def test_scores_are_stale_once_their_split_has_grown():
    stages.run(Run(grown(3)))
    assert not Run(grown(10)).is_current(SCORE)


def test_scores_over_a_grown_split_are_marked_as_partial():
    stages.run(Run(grown(3)))
    experiment = grown(10)
    folder = stages.run(Run(experiment))
    assert partial_notice(read_scores(folder)).startswith("PARTIAL: 3 of 10 questions")
    assert Run(experiment).is_current(SCORE)


def test_scores_of_a_part_from_an_earlier_version_stay_current():
    experiment = grown(10)
    stages.run(Run(experiment))
    path = experiment.folder / "score/manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["inputs"]["split_size"]
    path.write_text(json.dumps(manifest))
    assert Run(experiment).is_current(SCORE)
    assert not Run(grown(11)).is_current(SCORE)


def test_scores_of_a_whole_split_do_not_name_its_size():
    run = Run(grown(3))
    stages.run(run)
    assert "split_size" not in run.inputs(SCORE)
