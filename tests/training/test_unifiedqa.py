"""Training UnifiedQA: the published settings and loss, a benchmark learnt by heart, and the command
line.
"""

import json
from dataclasses import replace

import pytest
import tiny_t5
import torch
from command_line import ifqa_here

from ifqa.protocols import TrainingData
from ifqa.reading.t5.checkpoint import Conventions, open_checkpoint
from ifqa.reading.t5.readers import UnifiedQA, input_text
from ifqa.records import Passage, Question
from ifqa.scoring.measures.exact_match import exact_match
from ifqa.storage.files import sha256, write_jsonl
from ifqa.training import t5
from ifqa.training.t5 import UnifiedQA as Trainer
from ifqa.training.t5 import published_steps
from ifqa.training.trainer import configure_trainer, fingerprint_questions

pytestmark = pytest.mark.slow

CAUSES = (
    "rain frost wind heat rust sand dust salt mud smoke snow hail fog ice fire flood storm waves "
    "lightning drought"
).split()
TOWNS = (
    "Bath Wick Lund Rye Hove Deal Ely Ayr Ulm Bonn Lyon Metz Brno Graz "
    "Linz Pisa Bari Oslo Turku Riga"
).split()
TEXTS = [
    f"The mill of {town} was closed by {cause}." for cause, town in zip(CAUSES, TOWNS, strict=True)
]
QUESTIONS = [
    Question(
        f"causal/{n}",
        f"Why was the mill of {town} closed?",
        (cause, f"by {cause}"),
        context=text,
        group="mills",
    )
    for n, (cause, town, text) in enumerate(zip(CAUSES, TOWNS, TEXTS, strict=True))
]
CONTEXTS = [[Passage("", "", question.context)] for question in QUESTIONS]
DATASET = TrainingData(QUESTIONS, CONTEXTS, "causal/original", {"train.jsonl": "abc"})
FIRST_ANSWERS = replace(
    DATASET, questions=[replace(question, answers=question.answers[:1]) for question in QUESTIONS]
)
LEARN = {
    "steps": 48,
    "batch": 20,
    "device_batch": 20,
    "learning_rate": 1e-2,
    "evaluate_every": 16,
    "device": "cpu",
}


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """A T5 of one layer, whose tokenizer has each cause as a token."""
    folder = tmp_path_factory.mktemp("start")
    inputs = [
        input_text(question, passages)
        for question, passages in zip(QUESTIONS, CONTEXTS, strict=True)
    ]
    answers = [f"{answer} {answer}" for question in QUESTIONS for answer in question.answers]
    words = tiny_t5.tokenizer([*inputs, *answers], 1000)
    torch.manual_seed(0)
    shape = tiny_t5.config(
        len(words), d_model=64, num_layers=1, num_decoder_layers=1, dropout_rate=0.03
    )
    tiny_t5.FusionInDecoder(shape).save_pretrained(folder)
    words.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def trained(start, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "model"
    configure_trainer(Trainer, model=start, **LEARN).train(FIRST_ANSWERS, folder)
    return folder


def opened(folder):
    settings = UnifiedQA.Settings(checkpoint=str(folder), device="cpu", max_answer_tokens=20)
    return UnifiedQA(settings)


def test_the_settings_are_the_published_ones():
    # train_unifiedqa.py:9-27, 68-76 and the defaults of TrainingArguments in transformers 4.30
    published = {
        "model": "allenai/unifiedqa-v2-t5-base-1363200",
        "batch": 2,
        "learning_rate": 5e-5,
        "warmup": 0.0,
        "weight_decay": 0.0,
        "clip": 1.0,
        "max_tokens": 2048,
        "max_target": 100,
        "seed": 42,
        "device_batch": 2,
    }
    assert published.items() <= Trainer.Settings().model_dump().items()
    assert [published_steps(n) for n in (1, 25_569, 49_999, 50_000, 769_606)] == [
        6000,
        6000,
        6000,
        60_000,
        60_000,
    ]


def test_the_number_of_steps_is_taken_from_the_number_of_questions(tmp_path, start, monkeypatch):
    monkeypatch.setattr(t5, "SHORT", 3)
    configure_trainer(Trainer, model=start, device="cpu").train(DATASET, tmp_path / "weights")
    manifest = json.loads((tmp_path / "weights/manifest.json").read_text())
    assert (manifest["settings"]["steps"], manifest["record"]["steps"], manifest["recipe"]) == (
        3,
        3,
        "published",
    )
    assert (manifest["family"], manifest["sources"]) == ("causal/original", {"train.jsonl": "abc"})
    assert manifest["conventions"] == {"max_tokens": 2048, "titles": True, "encoder_eos": True}


def test_a_target_is_all_answers_joined_by_tabs_and_cut():
    trainer = configure_trainer(Trainer)
    assert trainer.targets(QUESTIONS[0]) == ["rain\tby rain"]
    assert trainer.targets(replace(QUESTIONS[0], answers=(" ", ""))) == []
    words = tiny_t5.tokenizer()
    trainer = configure_trainer(Trainer, max_target=4, steps=2, device="cpu", batch=4)
    rows = t5.TrainingRows(trainer, DATASET, words, Conventions(16))
    for row in range(8):
        label = rows[row]["label"]
        assert isinstance(label, list)
        assert (len(label), label[-1]) == (4, 1)


def test_the_loss_is_that_of_transformers_t5(start):
    """The mean over all tokens of a step, however many questions go through the network at once."""
    checkpoint = open_checkpoint(start)
    model = checkpoint.model.eval()
    other = tiny_t5.plain(checkpoint.model).eval()
    trainer = configure_trainer(Trainer, steps=3, batch=6, device="cpu")
    uneven = [
        replace(question, answers=question.answers * (1 + n % 3))
        for n, question in enumerate(QUESTIONS)
    ]
    rows = t5.TrainingRows(
        trainer, TrainingData(uneven, CONTEXTS), checkpoint.tokenizer, Conventions(40)
    )
    step = [rows[n] for n in range(6, 12)]
    batch = t5.collate(step)
    with torch.no_grad():
        ids = batch["passage_ids"]
        mask = batch["passage_mask"].long()
        expected = other(input_ids=ids, attention_mask=mask, labels=batch["labels"]).loss
        whole = model(**batch).loss
        parts = [model(**t5.collate(step[n : n + 2])).loss for n in (0, 2, 4)]
    assert len({len(row["label"]) for row in step if isinstance(row["label"], list)}) > 1
    torch.testing.assert_close(whole, expected)
    torch.testing.assert_close(torch.stack(parts).mean(), expected)


def test_twenty_questions_are_learnt_by_heart(trained, start):
    reader = opened(trained)
    questions = FIRST_ANSWERS.questions

    def em(passages):
        predictions = reader.answer(questions, passages)
        return 5 * sum(
            exact_match(p.answer, q.answers) for p, q in zip(predictions, questions, strict=True)
        )

    assert em(CONTEXTS) == 100
    assert (reader.family, reader.trained_on, reader.label) == ("causal/original", {"abc"}, "")
    untrained = opened(start).answer(questions, CONTEXTS)
    assert not any(
        exact_match(p.answer, q.answers) for p, q in zip(untrained, questions, strict=True)
    )


def test_each_dataset_gets_a_model(tmp_path, start):
    train = [
        "train",
        "unifiedqa",
        "--set",
        f"model={start}",
        "--set",
        "steps=1",
        "--set",
        "device=cpu",
    ]
    for dataset, questions in (("paq", QUESTIONS[:3]), ("squad2", QUESTIONS[3:5])):
        rows = [
            {
                "id": f"{n}",
                "question": each.text,
                "context": each.context,
                "answers": each.answers,
                "rules": [],
            }
            for n, each in enumerate(questions)
        ]
        file = tmp_path / f"data/causalqa/original-train/{dataset}.jsonl"
        write_jsonl(file, rows)
        done = ifqa_here(*train, "--dataset", dataset, folder=tmp_path)
        assert (done.returncode, done.stdout.strip()) == (0, f"models/unifiedqa-{dataset}"), (
            done.stderr
        )
        manifest = json.loads((tmp_path / f"models/unifiedqa-{dataset}/manifest.json").read_text())
        assert ([*manifest["sources"].values()], manifest["family"]) == (
            [sha256(file)],
            "causalqa/original",
        )
    both = ["--split", "original-train/paq+squad2"]
    assert ifqa_here(*train, *both, folder=tmp_path).stdout.strip() == "models/unifiedqa"


def test_choices_are_part_of_a_trainings_identity():
    question = Question("q", "Why?", ("a",))
    datasets = [
        TrainingData([each], [[]]) for each in (question, replace(question, choices=("a", "b")))
    ]
    assert len(set(map(fingerprint_questions, datasets))) == 2
