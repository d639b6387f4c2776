"""The benchmark of retrievers: its control counts other questions' gold passages, and fails a row
that knows their style.
"""

import random
from typing import cast

import pytest
import retrieval as benchmark

from ifqa.corpus.passage_store import PassageStore
from ifqa.errors import IfqaError
from ifqa.records import GOLD, Hit, Passage, Question

pytestmark = pytest.mark.slow

OWN = "the mill at Brae was built by Ann Lee in the year of the great storm"
QUESTIONS = [Question(f"q/{n}", "If so?", (), (f"{OWN} {n} {n} {n}",)) for n in range(40)]


class Store:
    """A store in which exactly the passages named "own" cover any question's gold passage."""

    def get(self, ids):
        return [
            Passage(name, "", OWN if name.endswith("own") else f"something else about {name}")
            for name in ids
        ]


STORE = cast(PassageStore, Store())


def ranking(*ids):
    return [Hit(name, 1 / rank) for rank, name in enumerate(ids, start=1)]


def control_table(rows):
    return benchmark.control_table(rows, benchmark.judge(rows, QUESTIONS, STORE))


def test_a_questions_gold_passages_are_removed_before_the_control():
    rows = {
        "bm25": [ranking("gold/own", "article", "gold/2", "gold/3", "article-own")] * len(QUESTIONS)
    }
    measures = control_table(rows)["bm25"]
    values = {name: round(score["value"], 3) for name, score in measures.items()}
    assert values == {"share@1": 0, "share@5": 66.667, "share@20": 66.667, "reciprocal": 50}
    assert all(
        score["difference"] == score["low"] == score["high"] == 0 for score in measures.values()
    )
    assert benchmark.passed(measures)


def test_a_row_that_raises_gold_passages_fails_the_control():
    draw = random.Random(0)
    plain = [[f"{GOLD}{n}" if n < 5 else f"a{n}" for n in range(40)] for _ in QUESTIONS]
    for ids in plain:
        draw.shuffle(ids)
    styled = [sorted(ids, key=lambda name: not name.startswith(GOLD)) for ids in plain]
    row_ids = {"plain": plain, "styled": styled, "own": [["gold/own", *ids] for ids in plain]}
    table = control_table({name: [ranking(*ids) for ids in row] for name, row in row_ids.items()})
    assert {name: benchmark.passed(row) for name, row in table.items()} == {
        "plain": True,
        "styled": False,
        "own": True,
    }
    assert table["styled"]["share@5"]["value"] == 100
    assert table["own"]["share@20"]["difference"] == 0
    verdicts = [
        line.split(" | ")[-1] for line in benchmark.control_markdown(table).splitlines()[2:]
    ]
    assert verdicts == ["passed |", "failed |", "passed |"]
    with pytest.raises(IfqaError, match="found none in any ranking"):
        control_table({"bm25": [ranking("gold/own", "article")] * len(QUESTIONS)})


def test_recall_counts_the_first_passage_that_covers_a_gold_passage():
    rows = {
        "bm25": [ranking("article", "article-own")] * 40,
        "other": [ranking("article-own", "article")] * 40,
    }
    table = benchmark.recall_table(rows, benchmark.judge(rows, QUESTIONS, STORE))
    assert [round(score["value"]) for score in table["bm25"].values()] == [0, 100, 100, 100]
    assert [round(score["value"]) for score in table["other"].values()] == [100] * 4
    assert table["other"]["gold_any@1"]["p"] < 0.001
    assert table["other"]["gold_any@5"]["p"] == 1
