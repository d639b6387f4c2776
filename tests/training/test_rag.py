"""Training of RAG on a few questions of our own, with tiny networks of random weights."""

import json

import pytest
import tiny_t5
import torch
from refusals import refused
from short_trainings import QUESTIONS, RANKINGS, SETTINGS, TEXTS, TOWNS, Killed, ended_at

from ifqa.protocols import NO_DATA, TrainingData
from ifqa.reading.t5.checkpoint import Conventions, load_t5_manifest, open_checkpoint
from ifqa.reading.t5.readers import Rag
from ifqa.records import Passage, Question
from ifqa.scoring.measures.exact_match import exact_match
from ifqa.training.t5 import Rag as Trainer
from ifqa.training.t5 import TrainingRows, mean_score_spread
from ifqa.training.trainer import configure_trainer

SCORES = [[12.0, 9.5, 3.0][: len(ranking)] for ranking in RANKINGS]
SAME = [Question(f"a/{n}", "If so, where?", (town,)) for n, town in enumerate(TOWNS)]


def temperature(folder):
    return load_t5_manifest(folder, "rag").rag.temperature


def train(folder, start, scores=SCORES, dev=NO_DATA, **changes):
    dataset = TrainingData(QUESTIONS, RANKINGS, "ifqa/full", scores=scores)
    configure_trainer(Trainer, **{"model": start, **SETTINGS, **changes}).train(dataset, folder, dev)
    return folder


def test_a_killed_training_goes_on_to_the_same_weights_and_temperature(tmp_path, start):
    settings = {
        "dev": TrainingData(QUESTIONS[:2], RANKINGS[:2], scores=SCORES[:2]),
        "temperature_rate": 0.1,
    }
    whole = train(tmp_path / "whole", start, **settings)
    with ended_at(8), pytest.raises(Killed):  # two micro-steps a step
        train(tmp_path / "cut", start, **settings)
    with refused("unfinished training; run the same `ifqa train rag` again"):
        Rag(str(tmp_path / "cut"))
    cut = train(tmp_path / "cut", start, **settings)
    assert (cut / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    assert temperature(cut) == temperature(whole) == pytest.approx(4.0, rel=0.5)
    with refused(r"another training \(changed: settings\)"):
        train(cut, start, **settings | {"temperature_rate": 0.2})
    with refused(r"another training \(changed: questions\)"):
        train(cut, start, scores=[[score + n for n, score in enumerate(scores)] for scores in SCORES], **settings)


@pytest.fixture(scope="module")
def able(tmp_path_factory):
    """A checkpoint that answers from the passage: all questions are the same."""
    folder = tmp_path_factory.mktemp("able")
    words = tiny_t5.tokenizer([*TEXTS, *TOWNS, "question: If so, where? title: context:"], 400)
    torch.manual_seed(0)
    shape = tiny_t5.config(len(words), d_model=48, num_layers=1, num_decoder_layers=1)
    tiny_t5.FusionInDecoder(shape).save_pretrained(folder / "start")
    words.save_pretrained(folder / "start")
    gold = [[Passage(f"p{n}", "", text)] for n, text in enumerate(TEXTS)]
    configure_trainer(
        Trainer, model=str(folder / "start"), steps=60, batch=6, device_batch=6, recompute=False,
        learning_rate=1e-2, max_tokens=90, device="cpu",
    ).train(TrainingData(SAME, gold, "sample/dev", scores=[[1.0]] * 6), folder / "able")  # fmt: skip
    return str(folder / "able")


@pytest.mark.parametrize(("right", "cooler"), [(0, True), (2, False)])
def test_the_temperature_falls_if_the_best_scored_passage_is_the_right_one(tmp_path, able, right, cooler):
    others = [[Passage(f"p{(n + m) % 6}", "", TEXTS[(n + m) % 6]) for m in (1, 3)] for n in range(6)]
    rankings = [[*pair[:right], Passage(f"p{n}", "", TEXTS[n]), *pair[right:]] for n, pair in enumerate(others)]
    scores = [[3.0, 2.0, 1.0]] * 6
    dataset = TrainingData(SAME, rankings, "sample/dev", scores=scores)
    configure_trainer(
        Trainer, model=able, temperature=1.0, temperature_rate=0.1, learning_rate=0.0, steps=8, batch=6, device_batch=6,
        recompute=False, max_tokens=90, evaluate_every=8, device="cpu",
    ).train(dataset, tmp_path / "rag", dataset)  # fmt: skip
    learned = temperature(tmp_path / "rag")
    assert (learned < 0.8) if cooler else (learned > 1.2)
    reader = Rag(str(tmp_path / "rag"), device="cpu")
    predictions = reader.answer(SAME, rankings, scores=scores)
    count = sum(exact_match(p.answer, q.answers) for p, q in zip(predictions, SAME, strict=True))
    assert count == (6 if cooler else 0)
    assert [prediction.passage_ids[0] == f"p{n}" for n, prediction in enumerate(predictions)] == [cooler] * 6
    manifest = json.loads((tmp_path / "rag/manifest.json").read_text())
    assert (manifest["family"], manifest["record"]["steps"]) == ("sample/dev", 8)
    assert manifest["record"]["dev_EM"] == pytest.approx(100 * count / 6)
    assert (reader.family, reader.label, reader.conventions.max_tokens) == ("sample/dev", "", 90)


def test_the_temperature_starts_from_the_spread_of_scores_and_may_be_kept(tmp_path, start):
    assert mean_score_spread([[1.0, 3.0], [5.0, 5.0], [2.0]], 3) == 0.5
    assert mean_score_spread([[1.0, 3.0, 900.0]], 2) == 1.0
    assert mean_score_spread([[2.0, 2.0], []], 5) == 1.0
    kept = train(tmp_path / "kept", start, temperature_rate=0.0, steps=1)
    assert temperature(kept) == pytest.approx(mean_score_spread(SCORES, 3))
    warmer = train(tmp_path / "warmer", start, temperature_rate=0.0, temperature=2.0, steps=1)
    assert temperature(warmer) == pytest.approx(2.0)


def test_an_included_gold_passage_gets_the_score_of_the_one_it_replaces(start):
    strangers = [[Passage("a", "", TEXTS[(n + 2) % 6]), Passage("b", "", TEXTS[(n + 4) % 6])] for n in range(6)]
    strangers[1:3] = [strangers[1][:1], []]
    scores = [[2.0, 1.0], [2.0], [], [4.0, 3.0], [2.0, 1.0], [2.0, 1.0]]
    trainer = configure_trainer(Trainer, **SETTINGS | {"passages": 2, "gold": "included", "batch": 6, "steps": 1})
    tokenizer = open_checkpoint(start).tokenizer
    rows = TrainingRows(trainer, TrainingData(QUESTIONS, strangers, scores=scores), tokenizer, Conventions(250))
    last = tokenizer.batch_decode([rows[n]["passages"][-1] for n in range(6)], skip_special_tokens=True)
    scores_of = {text: rows[n]["scores"] for n, text in enumerate(last)}
    for n, expected in ((0, [2.0, 1.0]), (1, [2.0, 2.0]), (2, [0.0]), (3, [4.0, 3.0])):
        assert [scores for text, scores in scores_of.items() if TEXTS[n] in text] == [expected]
