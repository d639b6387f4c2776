"""A benchmark from outside through the command line: labels, sets of questions, groups and
bootstrap units.
"""

import json
from itertools import product
from typing import Any

import pytest
from command_line import ifqa_here as ifqa

from ifqa.config.experiment import load_experiment
from ifqa.pipeline.run import Run
from ifqa.pipeline.stage_outputs import predictions_of
from ifqa.scoring.aggregation import aggregate_rows
from ifqa.scoring.stored_scores import read_rows

BENCHMARK = '''
from dataclasses import replace
from ifqa.protocols import Benchmark, Measure, SetMeasure, Subset
from ifqa.records import Question
from ifqa.scoring.measures.exact_match import ACCURACY
SCALE = {"less": 0.0, "no effect": 0.5, "more": 1.0}
ROWS = [  # topic, paragraph, hops, label
    ("plants", "1", 1, "more"), ("plants", "1", 2, "less"), ("plants", "2", 3, "more"),
    ("rocks", "3", 1, "more"), ("rocks", "3", 2, "no effect"), ("rocks", "3", 4, "less"),
    ("rocks", "4", 1, "more"), ("rocks", "4", 4, "less"),
]
def consistent(questions, predictions):
    """The share of paragraphs whose questions are all answered right."""
    right = {}
    for question, prediction in zip(questions, predictions, strict=True):
        right.setdefault(question.label("paragraph"), []).append(prediction.answer.lower().strip("!") in question.answers)
    return sum(map(all, right.values())) / len(right)
def distance(question, prediction):
    return abs(SCALE[prediction.answer.lower().strip("!")] - SCALE[question.answers[0]])
class Labels(Benchmark):
    """What happens more, less, or as before."""
    name = "labels"
    groups = "topic"
    measures = (
        replace(ACCURACY, unit="paragraph"),
        SetMeasure("consistency", consistent, in_tables=True, unit="paragraph"),
        Measure("distance", distance, in_tables=True, best="low", about="how far off on the scale"),
    )
    subsets = [Subset(f"{n} hops", lambda question, n=n: question.label("hops") == str(n)) for n in (1, 2, 3, 4)]
    def questions(self, split):
        return [
            Question(f"labels/{split}/{n}", f"If rain stopped, would {topic} {n} grow?", (label,), group=topic,
                     choices=tuple(SCALE), labels=(("paragraph", paragraph), ("hops", str(hops))))
            for n, (topic, paragraph, hops, label) in enumerate(ROWS)
        ]
'''
EXTRA = """
from ifqa.protocols import Measure
LESS = Measure("says", lambda question, prediction: float(prediction.answer == "less"))
"""
RIGHT_A = {"1": (2, 2), "2": (0, 1), "3": (1, 3), "4": (2, 2)}  # paragraph -> how many of how many
# 5 is not answered
A = {0: "more", 1: "less", 2: "less", 3: "more", 4: "more", 6: "More!", 7: "less"}
B = {0: "more", 1: "more", 2: "more", 3: "more", 4: "no effect", 5: "less", 6: "more", 7: "less"}


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """Run both systems; gives the output of the second run."""
    folder = tmp_path_factory.mktemp("labels")
    (folder / "my_labels.py").write_text(BENCHMARK)
    (folder / "my_extra.py").write_text(EXTRA)
    (folder / "experiments").mkdir()
    for name, answers in (("a", A), ("b", B)):
        lines = [
            json.dumps({"question_id": f"labels/dev/{n}", "answer": message})
            for n, message in answers.items()
        ]
        (folder / f"{name}.jsonl").write_text("\n".join(lines))
        (folder / f"experiments/{name}.toml").write_text(
            'benchmark = "my_labels:Labels"\nsplit = "dev"\nmeasures = ["my_extra:LESS"]\n'
            f'[reader]\nname = "predictions"\npath = "{name}.jsonl"\n'
            '[expected."macro.accuracy"]\nvalue = 63.33\n[expected."rocks.accuracy"]\nvalue '
            "= 60\ntolerance = 40\n"
        )
    done = {name: ifqa("run", name, folder=folder) for name in "ab"}
    return folder, done


def scores(folder, name="a"):
    return json.loads((folder / "experiments" / name / "score/scores.json").read_text())


def interval(means):
    """The 2.5% and 97.5% quantiles of equally likely means."""
    means = sorted(means)
    return [100 * means[int(0.025 * len(means))], 100 * means[int(0.975 * len(means))]]


def test_scores_are_those_of_a_hand_computation(work):
    folder, _ = work
    content = scores(folder)
    assert (content["questions"], content["n_failed"]) == (8, 1)
    values = {name: score["value"] for name, score in content["measures"].items()}
    # 5 of 8; paragraphs 1 and 4; 1 + 0.5, and 1 for the failure; 1, 2 and 7
    assert values == {"accuracy": 62.5, "consistency": 50.0, "distance": 31.25, "says": 37.5}
    groups = {
        name: part["measures"]["accuracy"]["value"] for name, part in content["groups"].items()
    }
    assert groups == {"plants": pytest.approx(200 / 3), "rocks": 60.0}
    macro = {name: score["value"] for name, score in content["macro"]["measures"].items()}
    assert macro == pytest.approx(
        {"accuracy": 190 / 3, "consistency": 50, "distance": 95 / 3, "says": 130 / 3}
    )
    assert {name: part["questions"] for name, part in content["subsets"].items()} == {
        "1 hops": 3,
        "2 hops": 2,
        "3 hops": 1,
        "4 hops": 2,
    }
    assert content["subsets"]["1 hops"]["measures"]["accuracy"]["value"] == 100.0


def test_over_four_paragraphs_there_is_no_interval(work):
    assert "low" not in scores(work[0])["measures"]["accuracy"]


def test_intervals_are_over_paragraphs(work, monkeypatch):
    """Compared with all 4 ** 4 draws of paragraphs.

    Within topics, with all 2 ** 2 times 2 ** 2 draws. These are too few to report.
    """
    folder, _ = work
    monkeypatch.setattr("ifqa.scoring.intervals.MIN_UNITS", 2)
    monkeypatch.setattr("ifqa.scoring.intervals.MIN_GROUP", 2)
    monkeypatch.chdir(folder)
    run = Run(load_experiment("a"))
    rows = read_rows(folder / "experiments/a/score")
    predictions = [*predictions_of(run.experiment, run.questions)]
    content: Any = aggregate_rows(
        rows, run.questions, run.experiment.scheme, 0, predictions
    ).scores(run.experiment.seed)
    draws = list(product(RIGHT_A.values(), repeat=4))
    means = [sum(right for right, _ in draw) / sum(of for _, of in draw) for draw in draws]
    accuracy = content["measures"]["accuracy"]
    assert [accuracy["low"], accuracy["high"]] == pytest.approx(interval(means), abs=0.01)
    topics = [list(product([RIGHT_A[name] for name in names], repeat=2)) for names in ("12", "34")]
    shares = [
        [sum(right for right, _ in draw) / sum(of for _, of in draw) for draw in topic]
        for topic in topics
    ]
    macro = content["macro"]["measures"]["accuracy"]
    means = [sum(pair) / 2 for pair in product(*shares)]
    assert [macro["low"], macro["high"]] == pytest.approx(interval(means), abs=0.01)
    consistency = content["measures"]["consistency"]
    whole = [sum(right == of for right, of in draw) / 4 for draw in draws]
    assert [consistency["low"], consistency["high"]] == pytest.approx(interval(whole), abs=0.01)


def test_an_expected_value_of_a_part_decides_the_exit_code(work):
    _, done = work
    assert done["a"].returncode == 0, done["a"].stderr
    assert done["b"].returncode == 1
    assert "macro.accuracy 63.3, expected 63.33" in done["a"].stdout


def test_the_screen_has_a_row_of_each_part(work):
    """By hand: 5 of 8 answers are right.

    Those of A have the distances 1 and 0.5, and 1 for the failure.
    """
    _, done = work
    lines = [" ".join(line.split()) for line in done["a"].stdout.splitlines()]
    for row in (
        "distance ↓ 31.3",
        "4 hops 2 50.0",
        "rocks 5 60.0",
        "macro mean of 2 63.3",
        "micro 8 62.5",
    ):
        assert [line for line in lines if line.startswith(f"{row} ")], row


def test_the_screen_tells_how_a_failure_scores(work):
    _, done = work
    assert (
        "8 questions, 1 failed (a failure scores 0; 1 where an arrow marks that low is best)"
        in done["a"].stdout
    )


def test_systems_are_compared_by_paragraph(work):
    done = ifqa("compare", "a", "b", "--json", folder=work[0])
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    deltas = {delta["measure"]: delta for delta in content["measures"]}
    assert list(deltas) == ["accuracy", "consistency", "distance", "says"]
    accuracy = deltas["accuracy"]
    assert (accuracy["first"], accuracy["second"], accuracy["more"]) == (62.5, 87.5, 25.0)
    assert (accuracy["won"], accuracy["lost"], accuracy["tied"]) == (3, 1, 4)
    # By paragraph B has -1, +1, +2 and 0 more: 6 of 8 flips leave 2 or more. By question it would
    # be 10 of 16.
    assert accuracy["p"] == pytest.approx(6 / 8, abs=0.02)
    assert (deltas["distance"]["more"], deltas["distance"]["won"], deltas["distance"]["lost"]) == (
        -18.75,
        3,
        1,
    )
    consistency = deltas["consistency"]
    assert (consistency["first"], consistency["second"], consistency["won"]) == (50.0, 75.0, None)
    # Of three paragraphs that differ one is always left over
    assert consistency["p"] == pytest.approx(1.0, abs=0.01)
    assert content["largest"]["measure"] == "accuracy"


def test_the_report_has_the_columns_of_its_measures(work):
    folder, _ = work
    done = ifqa("report", folder=folder)
    assert done.returncode == 0, done.stderr
    text = (folder / "experiments/RESULTS.md").read_text()
    section = text.split("## my_labels:Labels dev\n")[1].split("\n## ")[0]
    head, _, *rows = [
        line.strip("| ").split(" | ") for line in section.strip().split("\n\n")[0].splitlines()
    ]
    row = dict(zip(head, next(row for row in rows if row[0] == "a"), strict=True))
    means = [
        row[name].partition(" [")[0]
        for name in ("accuracy", "consistency", "distance ↓", "accuracy, macro")
    ]
    assert means == ["62.5", "50.0", "31.3", "63.3"]
    assert row["published or expected"] == "accuracy (macro) 63.33 OK, accuracy (rocks) 60 ± 40 OK"
    assert '"Distance": how far off on the scale.' in text
    assert '"↓": low is best.' in text
