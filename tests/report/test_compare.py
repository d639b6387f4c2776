"""Two experiments side by side: same questions, up-to-date scores, the right sign, and no markup
from an answer.
"""

import json
import sys

import pytest
from prediction_files import run_answers, write_answers, write_predictions
from scored_experiments import benchmark, scored, write

from ifqa.config.experiment import load_experiment
from ifqa.config.overrides import override
from ifqa.errors import IfqaError
from ifqa.pipeline import stages
from ifqa.pipeline.run import Run
from ifqa.plugins import open_benchmark
from ifqa.report import compare
from ifqa.report.compare import compare_pair, compare_to_first
from ifqa.report.gate import check_gate
from ifqa.report.table import render_text
from ifqa.scoring import per_question
from ifqa.scoring.statistics import holm_correction, paired_randomization
from ifqa.scoring.stored_scores import row_score


@pytest.fixture
def three():
    """A answers the first 20 questions right, B the first 10 and the last 30, C the first 23.

    Other answers are markup.
    """
    right = {"a": range(20), "b": [*range(10), *range(53, 83)], "c": range(23)}
    return [
        run_answers(name, numbers, wrong="[bold]never[/bold]") for name, numbers in right.items()
    ]


@pytest.fixture
def two(three):
    return three[:2]


@pytest.fixture
def obedient():
    """A answers the first 20 pairs of obedience by the supposition, B the first 15.

    Each question is followed by its twin, whose answer is never the question's.
    """
    questions = open_benchmark("obedience").questions("sample-dev")
    runs = []
    for name, right in (("a", 20), ("b", 15)):
        answers = {
            question.id: question.answers[0] if number % 2 == 0 and number < 2 * right else "never"
            for number, question in enumerate(questions)
        }
        runs.append(write_predictions(name, answers, "obedience", "sample-dev"))
        stages.run(Run(runs[-1]))
    return runs


def em_of(*experiments, **options):
    return compare_pair(*experiments, **options)["EM"]


def test_the_difference_is_second_minus_first(two):
    em = em_of(*two)
    assert (em.won, em.lost, em.tied) == (30, 10, 43)
    assert (em.first, em.second, em.delta) == pytest.approx(
        (2000 / 83, 4000 / 83, 2000 / 83), abs=0.01
    )
    assert em.low < em.delta < em.high
    first = [1.0] * 20 + [0.0] * 63
    second = [1.0] * 10 + [0.0] * 43 + [1.0] * 30
    assert em.p == paired_randomization(first, second, seed=0)
    for difference, other in zip(
        compare_pair(*two).differences, compare_pair(*reversed(two)).differences, strict=True
    ):
        assert (difference.measure, difference.p, -difference.delta) == (
            other.measure,
            other.p,
            pytest.approx(other.delta),
        )
        assert (difference.won, difference.lost) == (other.lost, other.won)


def test_a_comparison_is_a_frame_with_a_row_for_each_measure(two, monkeypatch):
    compared = compare_pair(*two)
    frame = compared.to_frame()
    assert list(frame.measure) == [difference.measure for difference in compared.differences]
    assert frame[frame.measure == "EM"].more.item() == compared["EM"].delta
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(IfqaError, match="pip install pandas"):
        compared.to_frame()


def test_the_largest_differences_come_first(two):
    first, second = two
    largest = compare_pair(first, second, "EM", 10).largest
    assert [question for question, _, _ in largest] == Run(first).questions[10:20]
    assert all(row_score(row, "EM") == 1.0 for _, row, _ in largest)
    assert all(row_score(other, "EM") == 0.0 for _, _, other in largest)


def test_answers_are_shown_as_they_are(two):
    first, second = two
    printed = str(compare_pair(first, second, "EM", 3))
    assert "[bold]never[/bold]" in printed
    assert "83 questions" in printed


def test_incomparable_experiments_are_refused(two, tmp_path):
    (tmp_path / "experiments/gold.toml").write_text(
        'benchmark = "sample"\nsplit = "dev"\n[retriever]\nname = "gold"\n'
    )
    with pytest.raises(IfqaError, match="make it with: ifqa run gold"):
        compare_pair(two[0], load_experiment("gold"))
    stages.run(Run(load_experiment("gold")))
    with pytest.raises(IfqaError, match="no measure in common"):
        compare_pair(two[0], load_experiment("gold"))
    few = override(two[0], {"limit": 5})
    stages.run(Run(few))
    with pytest.raises(
        IfqaError, match=r"83 questions and .* has 5; they share 5\. .* the shared ones: --common"
    ):
        compare_pair(two[0], few)
    with pytest.raises(IfqaError, match="did you mean 'EM'"):
        compare_pair(two[0], two[1], "EMM", 3)


def test_common_compares_only_shared_questions(two):
    few = override(two[1], {"limit": 15})  # A has the first 15 right, B the first 10
    stages.run(Run(few))
    em = em_of(two[0], few, common=True)
    assert (em.first, em.second, em.won, em.lost, em.tied) == (
        100.0,
        pytest.approx(200 / 3),
        0,
        5,
        10,
    )
    compared = compare_pair(few, two[0], count=3, common=True)
    assert (compared.questions, compared.sizes) == (15, (15, 83))
    assert compared.to_dict()["questions"] == {"compared": 15, "a": 15, "b": 83}
    assert "15 questions that both have (A has 15, B has 83); p from" in str(compared)
    assert "that both have" not in str(compare_pair(two[0], two[1], count=0, common=True))


def test_other_questions_under_the_same_ids_are_not_compared():
    questions = {
        "a": ("If so, who?", "If so, when?"),
        "b": ("If so, who?", "If not, when?"),
        "c": ("One?", "Two?"),
    }
    for name, texts in questions.items():
        write(f"{name}/q.csv", "question,answers\n" + "".join(f'"{text}",x\n' for text in texts))
    first = {name: open_benchmark("file").questions(f"{name}/q.csv")[0] for name in questions}
    a, b, c = (
        write_predictions(name, {first[name].id: "x"}, "file", f"{name}/q.csv")
        for name in questions
    )
    for experiment in (a, b, c):
        stages.run(Run(experiment))
    with pytest.raises(IfqaError, match=r"a has 2 questions and b has 2; they share 1\. "):
        compare_pair(a, b)
    assert compare_pair(a, b, common=True).questions == 1
    with pytest.raises(
        IfqaError, match=r"they share 0\. Compare experiments over the same questions$"
    ):
        compare_pair(a, c, common=True)


@pytest.mark.parametrize("stale", [0, 1])
@pytest.mark.parametrize("limit", ["", "\nlimit = 4"])
def test_scores_older_than_their_experiment_are_refused(two, stale, limit, tmp_path):
    name = two[stale].name
    if limit:
        file = tmp_path / f"experiments/{name}.toml"
        file.write_text(file.read_text().replace('split = "dev"', f'split = "dev"{limit}'))
    else:
        write_answers(name, range(30))
    with pytest.raises(IfqaError, match=f"ifqa (read|run) {name}"):
        compare_pair(load_experiment(two[0].name), load_experiment(two[1].name))


def test_failed_questions_are_told_of(two, monkeypatch, capsys):
    whole = {"questions": 83, "of": 83, "not_asked": 0, "measures": {}, "subsets": {}}
    monkeypatch.setattr(
        compare,
        "read_content",
        lambda experiment, folder: whole | {"retry": 3 * (experiment.name == "b")},
    )
    assert compare_pair(*two).questions == 83
    assert (
        "b/score: 3 questions failed, which counts as wrong; a new run asks again"
        in capsys.readouterr().err
    )


def test_scores_of_an_older_scorer_are_refused(two, monkeypatch):
    monkeypatch.setattr(per_question, "VERSION", per_question.VERSION + 1)
    with pytest.raises(
        IfqaError, match=r"made from other inputs \(changed: version\); make it again: ifqa run a"
    ):
        compare_pair(*two)


def test_with_groups_the_difference_is_resampled_within_them():
    dev = open_benchmark("sample-causal").questions("dev")
    for name, right in (("a", {"goal"}), ("b", {"goal", "cause"})):
        answers = {q.id: q.answers[0] if q.group in right else "never" for q in dev}
        stages.run(Run(write_predictions(name, answers, "sample-causal")))
    a, b = map(load_experiment, "ab")
    em = em_of(a, b)
    # 14 of the 45 questions in each resample ask for a cause: there is no spread
    assert em.delta == pytest.approx(100 * 14 / 45, abs=0.01)
    assert (em.low, em.high) == (None, None)


@pytest.mark.parametrize(
    ("right", "more"), [(range(5), "limit = 9"), (range(83), "")], ids=["too few", "no width"]
)
def test_a_difference_has_an_interval_only_where_a_score_has(right, more):
    compared = compare_pair(run_answers("none", [], more), run_answers("right", right, more))
    assert (compared["EM"].low, compared["EM"].high) == (None, None)
    assert " to " not in str(compared.table())


def test_the_difference_in_calibration_error_has_no_interval(here):
    answers = dict.fromkeys(range(30), "x")
    benchmark(
        *({"question": f"If so, who was {n}?", "answers": ["x"], "context": []} for n in range(30))
    )
    a, b = (
        scored(name, answers=answers, confidences={n: low + n / 60 for n in answers})
        for name, low in (("a", 0.1), ("b", 0.4))
    )
    compared = compare_pair(a, b)
    assert compared["ECE"].delta
    assert (compared["ECE"].low, compared["ECE"].high) == (None, None)
    assert compared["Brier"].low is not None


def test_comparisons_with_the_first_are_those_of_pairs_except_p(three):
    first, *others = three
    alone = {other.name: em_of(first, other) for other in others}
    differences = compare_to_first(first, others).differences["EM"]
    for name, difference in differences.items():
        assert all(
            getattr(difference, key) == getattr(alone[name], key)
            for key in ("delta", "low", "high", "won")
        )
    assert [difference.p for difference in differences.values()] == holm_correction(
        [difference.p for difference in alone.values()]
    )
    assert differences["b"].p == 2 * alone["b"].p


def test_comparisons_with_the_first_have_a_row_for_each_experiment(three):
    printed = render_text(compare_to_first(three[0], three[1:], "EM").show).splitlines()
    assert [line.rstrip() for line in printed[:3]] == ["A: a", "B: b", "C: c"]
    rows = [line.split()[:3] for line in printed[4:7]]
    assert rows == [["EM", "A", "24.1"], ["B", "48.2", "+24.1"], ["C", "27.7", "+3.6"]]


@pytest.fixture
def of_different_size(three):
    """A and C have all questions, B only the first 15."""
    few = override(three[1], {"limit": 15})
    stages.run(Run(few))
    return three[0], few, three[2]


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 0, 1)])
def test_several_are_compared_over_the_questions_that_all_share(of_different_size, order):
    first, *others = (of_different_size[number] for number in order)
    compared = compare_to_first(first, others, "EM", common=True)
    # Of the first 15, A and C have all right, and B has 10
    scores = {first.name: next(iter(compared.differences["EM"].values())).first}
    scores |= {name: difference.second for name, difference in compared.differences["EM"].items()}
    assert [scores[each.name] for each in of_different_size] == pytest.approx([100, 200 / 3, 100])
    assert compared.questions == 15


def test_the_number_of_questions_that_all_share_is_told(of_different_size):
    first, *others = of_different_size
    compared = compare_to_first(first, others, "EM", common=True)
    wanted = "15 questions that all have (A has 83, B has 15, C has 83); p from"
    assert wanted in " ".join(render_text(compared.show).split())
    assert compared.to_dict()["questions"] == {
        "compared": 15,
        "experiments": {"a": 83, "b+limit=15": 15, "c": 83},
    }


def test_experiments_that_share_no_question_are_refused(three):
    parts = [
        run_answers(f"part{number}", range(20), more=f'questions = ["sample/dev/{number}"]')
        for number in range(2)
    ]
    with pytest.raises(IfqaError, match="share no question"):
        compare_to_first(three[0], parts, "EM", common=True)


@pytest.fixture
def marked(three, monkeypatch):
    """B's models have seen the benchmark, and its reader was trained on these questions."""
    path = three[1].folder / "read/manifest.json"
    manifest = json.loads(path.read_text())
    manifest["record"]["trained_on_them"] = True
    path.write_text(json.dumps(manifest))
    seen = {"b": "its model has seen them"}
    monkeypatch.setattr(compare, "exposure_mark", lambda run: seen.get(run.experiment.name, ""))
    return three


MARK = "its model has seen them; the reader was trained on these questions"


def test_a_pair_is_marked_with_what_its_models_have_seen(marked):
    compared = compare_pair(marked[0], marked[1])
    assert f"\nB: {MARK}.\n" in str(compared)
    assert compared.to_dict()["seen"] == {"a": "", "b": MARK}


def test_several_are_marked_with_what_their_models_have_seen(marked):
    compared = compare_to_first(marked[0], marked[1:])
    assert f"\nB: {MARK}." in render_text(compared.show)
    assert compared.to_dict()["seen"] == {"a": "", "b": MARK, "c": ""}


def test_the_gate_is_marked_with_what_its_models_have_seen(marked):
    gate = check_gate(marked[0], marked[1])
    assert f"\nB: {MARK}.\n" in render_text(lambda console: gate.show(console, 0))
    assert gate.to_dict()["seen"] == {"a": "", "b": MARK}


def test_an_unknown_measure_is_refused(three):
    with pytest.raises(IfqaError, match="unknown measure of these experiments 'nonsense'"):
        compare_to_first(three[0], three[1:], "nonsense")


def test_a_measure_that_an_experiment_lacks_is_refused(importable, three):
    write(
        "my_ones.py",
        "from ifqa.protocols import Measure\nONE = Measure('one', lambda *_: 1.0)\n",
    )
    for name in "ab":
        file = importable / f"experiments/{name}.toml"
        file.write_text('measures = ["my_ones:ONE"]\n' + file.read_text())
        stages.run(Run(load_experiment(name)))
    with pytest.raises(IfqaError, match=r"^c has no scores in one; leave it out"):
        compare_to_first(load_experiment("a"), [load_experiment("b"), three[2]], "one")


def test_an_experiment_named_twice_is_refused(three):
    with pytest.raises(IfqaError, match="experiment a is named twice"):
        compare_to_first(three[0], [three[1], three[0]])


def test_pairs_of_questions_are_compared(obedient):
    compared = compare_pair(*obedient)
    assert compared.measure == "obeyed"
    assert compared["obeyed"].delta < 0


def test_a_pair_is_won_or_lost_once(obedient):
    compared = compare_pair(*obedient)
    obeyed = compared["obeyed"]
    pairs = compared.questions // 2
    assert (obeyed.won, obeyed.lost, obeyed.tied) == (0, 5, pairs - 5)
    assert f"obeyed, real_world, right: counted by {pairs} pairs." in str(compared)


def test_the_pairs_that_differ_are_listed(obedient):
    largest = compare_pair(obedient[0], obedient[1], "right", 10).largest
    assert [question.id for question, _, _ in largest] == [
        question.id for question in Run(obedient[0]).questions[30:40:2]
    ]
    assert [row_score(other, "right") for _, _, other in largest] == [0.0] * 5
