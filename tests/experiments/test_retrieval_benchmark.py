"""The benchmark of retrievers: its control counts gold passages of other questions, and catches a row that knows their style."""

import random

import pytest
import retrieval as benchmark

from ifqa.errors import IfqaError
from ifqa.records import GOLD, Hit, Passage, Question

OWN = "the mill at Brae was built by Ann Lee in the year of the great storm"
QUESTIONS = [Question(f"q/{n}", "If so?", (), (f"{OWN} {n} {n} {n}",)) for n in range(40)]


class Texts:
    """A store in which a passage of the name "own" covers any question's gold passage, and no other does."""

    def get(self, ids):
        return [Passage(one, "", OWN if one.endswith("own") else f"something else about {one}") for one in ids]


def ranking(*ids):
    return [Hit(one, 1 / rank) for rank, one in enumerate(ids, start=1)]


def test_own_gold_passages_do_not_count_and_leave_their_rank():
    rows = {"bm25": [ranking("gold/own", "article", "gold/2", "gold/3", "article-own")] * len(QUESTIONS)}
    found = benchmark.controlled(rows, benchmark.judged(rows, QUESTIONS, Texts()))["bm25"]
    values = {name: round(one["value"], 3) for name, one in found.items()}
    assert values == {"share@1": 0, "share@5": 66.667, "share@20": 66.667, "reciprocal": 50}
    assert all(one["difference"] == one["low"] == one["high"] == 0 for one in found.values())
    assert benchmark.passed(found)


def test_a_row_that_raises_gold_passages_fails_the_control():
    draw = random.Random(0)
    plain = [[f"{GOLD}{n}" if n < 5 else f"a{n}" for n in range(40)] for _ in QUESTIONS]
    for one in plain:
        draw.shuffle(one)
    styled = [sorted(one, key=lambda name: not name.startswith(GOLD)) for one in plain]
    answering = [["gold/own", *one] for one in plain]
    named = {"plain": plain, "styled": styled, "own": answering}
    rows = {name: [ranking(*one) for one in row] for name, row in named.items()}
    found = benchmark.controlled(rows, benchmark.judged(rows, QUESTIONS, Texts()))
    assert {name: benchmark.passed(one) for name, one in found.items()} == {"plain": True, "styled": False, "own": True}
    assert found["styled"]["share@5"]["value"] == 100
    assert found["own"]["share@20"]["difference"] == 0
    told = [line.split(" | ")[-1] for line in benchmark.control_markdown(found).splitlines()[2:]]
    assert told == ["passed |", "failed |", "passed |"]
    with pytest.raises(IfqaError, match="found none in any ranking"):
        benchmark.controlled({"bm25": [ranking("gold/own", "article")]}, [{"gold/own": True, "article": False}])


def test_recall_counts_the_first_passage_that_covers_a_gold_passage():
    rows = {"bm25": [ranking("article", "article-own")] * 40, "other": [ranking("article-own", "article")] * 40}
    table = benchmark.scored(rows, benchmark.judged(rows, QUESTIONS, Texts()))
    assert [round(one["value"]) for one in table["bm25"].values()] == [0, 100, 100, 100]
    assert [round(one["value"]) for one in table["other"].values()] == [100] * 4
    assert table["other"]["gold_any@1"]["p"] < 0.001
    assert table["other"]["gold_any@5"]["p"] == 1
