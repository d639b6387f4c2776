"""The experiment on WikiWhy: disjoint halves, and ranks and scores checked by hand."""

import json
import lzma
import random

import causal_queries as experiment
import pytest

from ifqa.errors import IfqaError
from ifqa.records import Hit, Question


def test_the_halves_share_no_question_and_depend_on_the_seed():
    ids = [str(number) for number in range(101)]
    first, second = experiment.halves(ids, 0)
    assert (len(first), len(second)) == (50, 51)
    assert sorted([*first, *second]) == sorted(ids)
    assert experiment.halves(ids, 0) == (first, second) != experiment.halves(ids, 1)


def test_the_rank_is_that_of_the_questions_cause():
    class Retriever:
        """Ranks passages in the order of their names in the question."""

        def search(self, questions, k):
            return [[Hit(word, 1.0) for word in question.text.split()][:k] for question in questions]

    questions = [Question("1", "1 3"), Question("3", "1 3"), Question("2", "1 3")]
    assert experiment.cause_ranks(Retriever(), questions) == [1, 2, 0]
    assert experiment.reciprocal([1, 2, 0, 4]) == [1, 0.5, 0, 0.25]


def test_the_table_scores_each_query_and_compares_it_with_two_baselines():
    draw = random.Random(0)
    worse = [draw.choice([0, 2, 50]) for _ in range(60)]
    ranks = {"question": worse, "names": [1] * 60, "causal": worse}
    rows = [line.strip("| ").split(" | ") for line in experiment.table(ranks).splitlines() if "- question" not in line]
    plain, names, causal = rows[2:]
    assert plain[1:] == causal[1:]
    assert plain[1] == "0.0 [0.0, 0.0]"
    assert float(plain[3].split()[0]) == round(100 * worse.count(2) / 60, 1)
    assert float(plain[5].split()[0]) == round(100 * (worse.count(2) / 2 + worse.count(50) / 50) / 60, 1)
    assert plain[6] == names[7] == "1.0000"
    assert names[1:6] == ["100.0 [100.0, 100.0]"] * 5
    assert names[6] == "0.0001"
    assert names[8] == "60, 0, 0"


def test_a_missing_file_and_another_layout_are_refused(tmp_path):
    with pytest.raises(IfqaError, match=r"no .*wikiwhy-cause\.json\.xz; wanted"):
        experiment.read(tmp_path, "cause")
    for content in ([], {"cause": ["x"]}):
        with lzma.open(tmp_path / "wikiwhy-cause.json.xz", "wt") as file:
            json.dump(content, file)
        with pytest.raises(IfqaError, match=r'holds no \{"cause": \{ID: text\}\}'):
            experiment.read(tmp_path, "cause")
