"""Training of the ranker on lists of our own passages."""

import json
from dataclasses import replace

import numpy as np
import pytest
from refusals import refused
from scipy.optimize import minimize

from ifqa.protocols import TrainingData
from ifqa.records import Passage, Question, gold_id
from ifqa.retrieval.linear_ranker import FEATURES, read_ranker
from ifqa.training.ranker import Ranker, compute_lists, fit_weights, training_lists
from ifqa.training.trainer import configure_trainer

pytestmark = pytest.mark.slow

TOWNS = "Bath Wick Lund Rye Hove Deal Ely Ayr".split()
TEXTS = [
    f"The old mill of {town} was built by Ann Lee in 19{n}0 and burned down."
    for n, town in enumerate(TOWNS)
]
PASSAGES = [Passage(gold_id(text), "", text) for text in TEXTS] + [
    Passage("1-0", "", "Rome has many mills and towns.")
]
DATASET = TrainingData(
    [
        Question(
            f"t/{n}",
            f"If the mill of {town} had not burned down, who owned it?",
            ("Ann",),
            (TEXTS[n],),
        )
        for n, town in enumerate(TOWNS)
    ],
    [PASSAGES] * len(TOWNS),
    "ifqa/full",
    {"train.json": "ab"},
    [[9.0 - place for place in range(len(PASSAGES))]] * len(TOWNS),
)


def test_the_weights_put_the_right_passage_first_and_are_read_by_the_retriever(tmp_path, capsys):
    configure_trainer(Ranker).train(DATASET, tmp_path)
    model = read_ranker(str(tmp_path / "ranker.json"))
    assert (model.family, model.sources) == ("ifqa/full", {"train.json": "ab"})
    weights = np.array([model.weights[name] for name in FEATURES])
    assert [int(np.argmax(each.rows @ weights)) for each in compute_lists(DATASET)] == list(
        range(len(TOWNS))
    )
    assert [*json.loads((tmp_path / "manifest.json").read_text())["record"]["files"]] == [
        "ranker.json"
    ]
    capsys.readouterr()
    configure_trainer(Ranker).train(DATASET, tmp_path)
    assert "up to date" in capsys.readouterr().err
    with refused(r"another training \(changed: settings\)"):
        configure_trainer(Ranker, penalty=2.0).train(DATASET, tmp_path)


def test_the_weights_minimise_the_loss_as_another_optimiser_does():
    lists = compute_lists(DATASET)
    spread = np.concatenate([rows for rows, _ in training_lists(lists, "all")]).std(axis=0)
    varied = spread > 1e-9

    def loss(weights):
        total = (weights**2).sum()
        for rows, right in training_lists(lists, "all"):
            scores = rows[:, varied] / spread[varied] @ weights
            total += np.log(np.exp(scores).sum()) - np.log(np.exp(scores[right]).sum())
        return float(total)

    ours = (fit_weights(lists, range(len(FEATURES)), "all", 1.0) * spread)[varied]
    assert loss(ours) == pytest.approx(minimize(loss, np.zeros(varied.sum())).fun, rel=1e-4)


def test_articles_are_no_negatives_unless_all_passages_are():
    assert {len(rows) for rows, _ in training_lists(compute_lists(DATASET), "gold")} == {len(TOWNS)}
    assert {len(rows) for rows, _ in training_lists(compute_lists(DATASET), "all")} == {
        len(PASSAGES)
    }


def test_what_cannot_be_trained_is_refused_in_one_line(tmp_path):
    alone = replace(
        DATASET, rankings=[[passage] for passage in PASSAGES[:-1]], scores=[[1.0]] * len(TOWNS)
    )
    with refused("no list has passages both with and without a gold passage"):
        configure_trainer(Ranker).train(alone, tmp_path / "made")
    with refused("'negatives': unknown value 'some'; known: all, gold"):
        configure_trainer(Ranker, negatives="some")
