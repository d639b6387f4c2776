"""Training of a dense retriever on a handful of our own questions, with tiny networks of random
weights.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from refusals import refused
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from short_trainings import Killed, ended_at, torn_copies
from tiny_library_encoder import tiny_library_encoder
from transformers import BertConfig, BertModel, BertTokenizerFast, PreTrainedTokenizerFast

from ifqa.protocols import TrainingData
from ifqa.records import Passage, Question
from ifqa.retrieval.vectors.encoders import EncoderSettings, open_encoder
from ifqa.storage.files import sha256
from ifqa.training import dense
from ifqa.training.dense import Dense
from ifqa.training.trainer import configure_trainer

pytestmark = pytest.mark.slow

NAMES = "ada bo cy di ed flo gus hal ida jo kim lee mo nan oz pat ray sue tom una".split()
THINGS = (
    "cups mills ships books roads songs bees farms clocks maps kites drums lamps boats coins "
    "bells hats wells rings jars"
).split()
WORDS = [*NAMES, *THINGS, *"if had not won what would they have many of in a and left ?".split()]

GOLDS = [f"many {noun} of {noun} in a {noun} and {noun} left" for noun in THINGS]
QUESTIONS = [
    Question(f"t/{n}", f"if {name} had not won , what would they have ?", ("unsaid",), (GOLDS[n],))
    for n, name in enumerate(NAMES)
]
PASSAGES = [Passage(f"p{n}", NAMES[n] if n % 2 else "", text) for n, text in enumerate(GOLDS)]
RANKINGS = [PASSAGES[n:] + PASSAGES[:n] for n in range(len(PASSAGES))]


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bert")
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ",", "'", *dict.fromkeys(WORDS)]
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(0)
    shape = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
    }
    BertModel(BertConfig(vocab_size=len(vocabulary), **shape)).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def unit(bert, tmp_path_factory):
    """The same, as a sentence-transformers model with vectors of length 1."""
    folder = tmp_path_factory.mktemp("unit")
    SentenceTransformer(modules=[Transformer(bert), Pooling(32), Normalize()], device="cpu").save(
        str(folder)
    )
    return str(folder)


DATASET = TrainingData(QUESTIONS, RANKINGS, "ifqa/full")


def train(dataset, folder, **settings):
    configure_trainer(Dense, **settings).train(dataset, folder)


def checksums(folder):
    varying = ("manifest.json", "log.jsonl")  # which have times
    paths = [
        path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in varying
    ]
    return {str(path.relative_to(folder)): sha256(path) for path in paths}


def batches(questions, rankings, **changes):
    return Dense(Dense.Settings(**changes))._batches(TrainingData(questions, rankings))


def rank(model):
    """The mean rank of a question's gold passage among all."""
    encoder = open_encoder(EncoderSettings(model, precision="float32", device="cpu"))
    queries = encoder.encode_queries([question.text for question in QUESTIONS])
    scores = queries @ encoder.encode_passages(PASSAGES).T
    return float((scores > scores.diagonal()[:, None]).sum(1).mean())


def test_an_encoder_learns_to_find_gold_passages(unit, tmp_path):
    folder = tmp_path / "encoder"
    train(DATASET, folder, model=unit, epochs=12, batch=8, learning_rate=1e-2)
    assert rank(str(folder)) < 1 < 6 < rank(unit)
    assert (folder / "model.safetensors").exists()
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (manifest["family"], manifest["recipe"]) == ("ifqa/full", "small")
    assert manifest["record"]["steps"] == manifest["record"]["batches"] >= 30
    assert open_encoder(EncoderSettings(str(folder), device="cpu")).facts["query_prefix"] == ""
    assert not (folder / "checkpoints").exists()


def test_modernbert_is_trained_to_find_gold_passages(tmp_path):
    folder = tiny_library_encoder(
        tmp_path / "network", "modernbert", *[f"{word} {word}" for word in WORDS]
    )
    PreTrainedTokenizerFast.from_pretrained(
        folder, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    ).save_pretrained(folder)
    start = str(tmp_path / "start")
    modules = [Transformer(str(folder)), Pooling(32), Normalize()]
    SentenceTransformer(modules=modules, device="cpu").save(start)
    train(DATASET, tmp_path / "encoder", model=start, epochs=30, batch=8, learning_rate=3e-3)
    assert rank(str(tmp_path / "encoder")) < 1 < 4 < rank(start)


def test_the_loss_and_its_gradient_are_those_of_dpr(bert):
    """Softmax over all passages of a batch, positives and hard negatives
    (dpr/models/biencoder.py:254-290).
    """
    trainer = configure_trainer(Dense, recipe="dpr", model=bert, batch=8, epochs=1)
    (rows, *_) = trainer._batches(DATASET)
    model: Any = trainer._model(Path(bert)).eval()  # no dropout
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    tasks = {name: "query" if name == "question" else "document" for name in columns}
    features = [model.preprocess(texts, task=tasks[name]) for name, texts in columns.items()]
    loss = trainer._loss(model)(features, torch.empty(0))
    loss.backward()

    question = replace(QUESTIONS[1], text="what if ada’s ?")
    (((row,),)) = batches([question], [RANKINGS[1]], two_encoders=True, epochs=1)
    assert (row["question"], row["positive"]) == ("what if ada's ?", ["bo", GOLDS[1]])
    published = {
        "batch": 128,
        "warmup": 1237,
        "clip": 2.0,
        "learning_rate": 2e-5,
        "max_tokens": 256,
        "negatives": 1,
        "seed": 12345,
        "scale": 1.0,
        "epochs": 3,
    }
    settings = configure_trainer(Dense, recipe="dpr", epochs=3).settings
    assert published.items() <= settings.model_dump().items()
    towers = {task: BertModel.from_pretrained(bert).eval() for task in ("query", "document")}
    tokenizer = BertTokenizerFast.from_pretrained(bert)

    def vectors(task, *texts):
        tokens = tokenizer(*texts, padding=True, return_tensors="pt", return_token_type_ids=False)
        return towers[task](
            **tokens, token_type_ids=torch.zeros_like(tokens.input_ids)
        ).last_hidden_state[:, 0]

    pairs: Any = [row[name] for name in ("positive", "negative_1") for row in rows]
    passages = vectors("document", [title for title, _ in pairs], [text for _, text in pairs])
    scores = vectors("query", columns["question"]) @ passages.T
    expected = torch.nn.functional.cross_entropy(scores, torch.arange(8))
    expected.backward()
    assert scores.shape == (8, 16)
    torch.testing.assert_close(loss, expected, atol=1e-5, rtol=1e-5)
    for task, tower in towers.items():
        ours = dict(model[0].sub_modules[task][0].auto_model.named_parameters())
        for name, parameter in tower.named_parameters():
            if not name.startswith("pooler"):
                torch.testing.assert_close(ours[name].grad, parameter.grad, atol=1e-5, rtol=1e-4)


CUT = TrainingData(QUESTIONS[:12], RANKINGS[:12], "ifqa/full")  # four steps
SETTINGS = {"epochs": 2, "batch": 6, "warmup": 0.1, "checkpoint_every": 2, "learning_rate": 1e-3}


@pytest.fixture(scope="module")
def whole(bert, unit, tmp_path_factory):
    """Recipe -> the folder of a finished training, and its network."""
    folder = tmp_path_factory.mktemp("whole")
    trainings = {}
    save = dense._save

    def save_and_keep(folder, network, two_encoders):
        save(folder, network, two_encoders)
        trainings[folder.name] = folder, network

    for recipe, model in (("small", unit), ("dpr", bert)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(dense, "_save", save_and_keep)
            train(CUT, folder / recipe, recipe=recipe, model=model, **SETTINGS)
    return trainings


def test_two_encoders_are_saved_as_dpr_and_encode_as_trained(whole):
    folder, model = whole["dpr"]
    encoders = ["ctx_encoder/model.safetensors", "question_encoder/model.safetensors"]
    assert sorted(name for name in checksums(folder) if not name.endswith(".json")) == encoders
    encoder = open_encoder(
        EncoderSettings(str(folder / "ctx_encoder"), precision="float32", device="cpu")
    )
    model.eval()
    texts = [question.text for question in QUESTIONS]
    np.testing.assert_allclose(encoder.encode_queries(texts), model.encode_query(texts), atol=1e-5)
    documents = [
        (passage.title, passage.text) if passage.title else passage.text for passage in PASSAGES
    ]
    expected = np.concatenate([model.encode_document([document]) for document in documents])
    np.testing.assert_allclose(encoder.encode_passages(PASSAGES), expected, atol=1e-5)
    assert not np.allclose(
        encoder.encode_queries([GOLDS[0]]), model.encode_document([GOLDS[0]]), atol=1e-3
    )
    assert [*json.loads((folder / "manifest.json").read_text())["record"]["files"]] == encoders


@pytest.mark.parametrize("recipe", ["small", "dpr"])
def test_a_killed_training_goes_on_to_the_same_weights(recipe, bert, unit, whole, tmp_path):
    chosen = SETTINGS | {"recipe": recipe, "model": bert if recipe == "dpr" else unit}
    with ended_at(4), pytest.raises(Killed):
        train(CUT, tmp_path, **chosen)
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["checkpoint-2"]
    train(CUT, tmp_path, **chosen)
    assert checksums(tmp_path) == checksums(whole[recipe][0])
    with refused(r"another training .*settings"):
        train(CUT, tmp_path, **chosen | {"batch": 5})


@pytest.mark.parametrize("recipe", ["small", "dpr"])
def test_a_torn_checkpoint_gives_way_to_the_one_before(recipe, bert, unit, tmp_path):
    chosen = SETTINGS | {
        "recipe": recipe,
        "model": bert if recipe == "dpr" else unit,
        "checkpoint_every": 1,
    }
    train(CUT, tmp_path / "whole", **chosen)
    with ended_at(4), pytest.raises(Killed):
        train(CUT, tmp_path / "cut", **chosen)
    for copy, file in torn_copies(tmp_path / "cut", tmp_path):
        train(CUT, copy, **chosen)
        assert checksums(copy) == checksums(tmp_path / "whole"), file


def test_no_batch_holds_a_passage_that_is_gold_for_two_questions():
    """Four questions of each gold passage, one of them with the other's gold passage among its hard
    negatives.
    """
    questions = [
        replace(question, id=f"{question.id}/{n}") for n in range(4) for question in QUESTIONS
    ]
    rankings = RANKINGS * 4
    batched = batches(questions, rankings, epochs=3, batch=8, negatives=2)
    texts = sorted(row["question"] for rows in batched for row in rows)
    assert texts == sorted(3 * [question.text for question in questions])
    assert [len(rows) for rows in batched].count(8) >= 25
    gold = {question.text: question.gold_passages[0] for question in questions}
    for rows in batched:
        for n, row in enumerate(rows):
            others = {
                text
                for m, row in enumerate(rows)
                if m != n
                for name, text in row.items()
                if name != "question"
            }
            assert gold[row["question"]] not in others
    shared = [Question(f"t/{n}", text, ("unsaid",), (GOLDS[0],)) for n, text in enumerate("abc")]
    assert [len(rows) for rows in batches(shared, RANKINGS[:3], epochs=1)] == [1, 1, 1]


def test_negatives_hold_no_answer_and_differ_between_epochs():
    questions = [replace(QUESTIONS[0], answers=("ships", "roads"))]
    rows = [
        row
        for batch in batches(questions, RANKINGS[:1], epochs=12, batch=1, pool=6)
        for row in batch
    ]
    drawn = {row["negative_1"] for row in rows}
    assert {row["positive"] for row in rows} == {GOLDS[0]}
    assert 2 < len(drawn) <= 6
    assert not [text for text in drawn if text == GOLDS[0] or "ships" in text or "roads" in text]
    assert rows == [
        row
        for batch in batches(questions, RANKINGS[:1], epochs=12, batch=1, pool=6)
        for row in batch
    ]


def test_questions_without_gold_or_negatives_and_other_networks_are_refused(
    unit, tmp_path, monkeypatch
):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for change, message in (
        ({"recipe": "drp"}, "unknown recipe 'drp'; did you mean 'dpr'"),
        ({"model": "no/such"}, "no/such"),
    ):
        with refused(message):
            train(DATASET, tmp_path / "encoder", **change)
    bare = TrainingData(
        [replace(question, gold_passages=()) for question in QUESTIONS], RANKINGS, "ifqa/full"
    )
    with refused("none of 20 training questions has a gold passage; wanted annotated questions"):
        train(bare, tmp_path / "encoder", model=unit)
    with refused("none of 20 training questions has a gold passage and 1 hard negatives"):
        train(replace(DATASET, rankings=[[] for _ in QUESTIONS]), tmp_path / "encoder", model=unit)
    (tmp_path / "config.json").write_text('{"model_type": "mpnet"}')
    with refused("wanted a model of type bert, found mpnet"):
        train(DATASET, tmp_path / "encoder", recipe="dpr", model=str(tmp_path))
