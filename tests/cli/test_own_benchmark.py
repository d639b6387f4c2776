"""A benchmark from outside through the command line: labels, sets of questions, groups and bootstrap units."""

import json
import os
from itertools import product

import pytest
from command_line import ifqa_here as ifqa

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

LESS = Measure("says", lambda question, prediction: float(prediction.answer == "{said}"))
"""
A = {0: "more", 1: "less", 2: "less", 3: "more", 4: "more", 6: "More!", 7: "less"}  # 5 is not answered
B = {0: "more", 1: "more", 2: "more", 3: "more", 4: "no effect", 5: "less", 6: "more", 7: "less"}
RIGHT_A = {"1": (2, 2), "2": (0, 1), "3": (1, 3), "4": (2, 2)}  # paragraph -> how many of how many


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """Run both systems; gives the output of the second run."""
    folder = tmp_path_factory.mktemp("labels")
    (folder / "my_labels.py").write_text(BENCHMARK)
    (folder / "my_extra.py").write_text(EXTRA.format(said="less"))
    (folder / "experiments").mkdir()
    for name, said in (("a", A), ("b", B)):
        lines = [json.dumps({"question_id": f"labels/dev/{n}", "answer": one}) for n, one in said.items()]
        (folder / f"{name}.jsonl").write_text("\n".join(lines))
        (folder / f"experiments/{name}.toml").write_text(
            'benchmark = "my_labels:Labels"\nsplit = "dev"\nmeasures = ["my_extra:LESS"]\n'
            f'[reader]\nname = "predictions"\npath = "{name}.jsonl"\n'
            '[expected."macro.accuracy"]\nvalue = 63.33\n[expected."rocks.accuracy"]\nvalue = 60\ntolerance = 40\n'
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
    told = scores(folder)
    assert (told["questions"], told["n_failed"]) == (8, 1)
    values = {name: one["value"] for name, one in told["measures"].items()}
    assert values == {
        "accuracy": 62.5,  # 5 of 8
        "consistency": 50.0,  # paragraphs 1 and 4
        "distance": 31.25,  # 1 + 0.5, and 1 for the failure
        "says": 37.5,  # 1, 2 and 7
    }
    assert {name: one["measures"]["accuracy"]["value"] for name, one in told["groups"].items()} == {
        "plants": 66.67,
        "rocks": 60.0,
    }
    macro = {name: one["value"] for name, one in told["macro"]["measures"].items()}
    assert macro == {"accuracy": 63.33, "consistency": 50.0, "distance": 31.67, "says": 43.33}
    assert {name: one["questions"] for name, one in told["subsets"].items()} == {
        "1 hops": 3, "2 hops": 2, "3 hops": 1, "4 hops": 2,
    }  # fmt: skip
    assert told["subsets"]["1 hops"]["measures"]["accuracy"]["value"] == 100.0


def test_intervals_are_over_paragraphs(work):
    """Compared with all 4 ** 4 draws of paragraphs; within topics, with all 2 ** 2 times 2 ** 2 draws."""
    told, draws = scores(work[0]), list(product(RIGHT_A.values(), repeat=4))
    means = [sum(right for right, _ in one) / sum(of for _, of in one) for one in draws]
    accuracy = told["measures"]["accuracy"]
    assert [accuracy["low"], accuracy["high"]] == pytest.approx(interval(means), abs=0.01)
    topics = [list(product([RIGHT_A[one] for one in names], repeat=2)) for names in ("12", "34")]
    shares = [[sum(right for right, _ in one) / sum(of for _, of in one) for one in topic] for topic in topics]
    macro = told["macro"]["measures"]["accuracy"]
    assert [macro["low"], macro["high"]] == pytest.approx(interval(map(sum_of_two, product(*shares))), abs=0.01)
    consistency = told["measures"]["consistency"]
    whole = [sum(right == of for right, of in one) / 4 for one in draws]
    assert [consistency["low"], consistency["high"]] == pytest.approx(interval(whole), abs=0.01)


def sum_of_two(pair):
    return sum(pair) / 2


def test_rows_hold_what_is_declared(work):
    rows = [json.loads(line) for line in (work[0] / "experiments/a/score/per_question.jsonl").read_text().splitlines()]
    assert rows[2] == {
        "id": "labels/dev/2", "subsets": ["3 hops"], "failed": 0.0, "accuracy": 0.0, "distance": 1.0, "says": 1.0,
        "answer": "less",
    }  # fmt: skip
    assert rows[5]["failed"] == rows[5]["distance"] == 1.0


def test_the_screen_has_a_table_of_many_subsets_and_one_of_groups(work):
    _, done = work
    assert done["a"].returncode == 0, done["a"].stderr
    lines = [line.split() for line in done["a"].stdout.splitlines()]
    assert ["measure", "all", "(8)", "95%", "interval"] in lines
    assert ["distance", "↓", "31.2"] in [line[:3] for line in lines]
    assert ["subset", "questions", "accuracy", "95%", "interval"] in lines
    assert ["4", "hops", "2", "50.0"] in [line[:4] for line in lines]
    assert ["topic", "questions", "accuracy", "95%", "interval"] in lines
    assert ["rocks", "5", "60.0"] in [line[:3] for line in lines]
    assert ["macro", "mean", "of", "2", "63.3"] in [line[:5] for line in lines]
    assert ["micro", "8", "62.5"] in [line[:3] for line in lines]
    assert "8 questions, 1 failed (a failure scores 0, or 1 where low is best, as an arrow marks)" in done["a"].stdout
    assert "macro.accuracy 63.3, expected 63.33" in done["a"].stdout


def test_an_expected_value_of_a_part_decides_the_exit_code(work):
    assert (work[1]["a"].returncode, work[1]["b"].returncode) == (0, 1)


def test_systems_are_compared_by_paragraph(work):
    done = ifqa("compare", "a", "b", "--json", folder=work[0])
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    found = {one["measure"]: one for one in told["measures"]}
    assert list(found) == ["accuracy", "consistency", "distance", "says"]
    accuracy = found["accuracy"]
    assert (accuracy["first"], accuracy["second"], accuracy["more"]) == (62.5, 87.5, 25.0)
    assert (accuracy["won"], accuracy["lost"], accuracy["tied"]) == (3, 1, 4)
    # By paragraph B has -1, +1, +2 and 0 more: 6 of 8 flips leave 2 or more. By question it would be 10 of 16.
    assert accuracy["p"] == pytest.approx(6 / 8, abs=0.02)
    assert (found["distance"]["more"], found["distance"]["won"], found["distance"]["lost"]) == (-18.75, 3, 1)
    consistency = found["consistency"]
    assert (consistency["first"], consistency["second"], consistency["won"]) == (50.0, 75.0, None)
    assert consistency["p"] == pytest.approx(1.0, abs=0.01)  # of three paragraphs that differ one is always left over
    assert told["largest"]["measure"] == "accuracy"
    shown = ifqa("compare", "a", "b", folder=work[0]).stdout
    assert ["consistency", "50.0", "75.0", "+25.0"] in [line.split()[:4] for line in shown.splitlines()]


def test_the_report_has_its_columns_and_its_questions(work):
    folder, _ = work
    done = ifqa("report", folder=folder)
    assert done.returncode == 0, done.stderr
    text = (folder / "experiments/RESULTS.md").read_text()
    section = text.split("## my_labels:Labels dev\n")[1].split("\n## ")[0]
    head, _, *rows = [line.strip("| ").split(" | ") for line in section.strip().split("\n\n")[0].splitlines()]
    row = dict(zip(head, next(one for one in rows if one[0] == "a"), strict=True))
    assert row["accuracy"].startswith("62.5 [")
    assert row["consistency"].startswith("50.0 [")
    assert row["distance ↓"].startswith("31.2 [")
    assert row["accuracy, macro"].startswith("63.3 [")
    assert row["published or expected"] == "accuracy (macro) 63.33 OK, accuracy (rocks) 60 ± 40 OK"
    assert '"Distance": how far off on the scale.' in text
    assert '"↓": low is best.' in text
    page = (folder / "experiments/report.html").read_text()
    assert '"measures":[{"name":"accuracy","digits":0,"best":1},{"name":"distance ↓","digits":2,"best":0}]' in page
    assert ifqa("report", "--check", folder=folder).returncode == 0


def test_another_measure_in_its_file_is_scored_anew(work):
    folder, _ = work
    assert "nothing to do" in ifqa("score", "b", folder=folder).stderr
    before = scores(folder, "b")["measures"]["says"]["value"]
    then = (folder / "my_extra.py").stat()
    (folder / "my_extra.py").write_text(EXTRA.format(said="more"))
    os.utime(folder / "my_extra.py", ns=(then.st_atime_ns, then.st_mtime_ns))  # a compiled one would look up to date
    assert "nothing to do" not in ifqa("score", "b", folder=folder).stderr
    assert (before, scores(folder, "b")["measures"]["says"]["value"]) == (25.0, 62.5)
