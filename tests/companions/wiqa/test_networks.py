"""The networks 'decomp-attn' and 'choice': against independent ones, learning by heart, and
kills.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_choice
import torch
from refusals import refused
from short_trainings import Killed, ended_at, kill, torn_copies
from tiny_choice import contexts, questions
from transformers import AutoTokenizer, BertForMultipleChoice

from ifqa.companions.wiqa import trainers
from ifqa.companions.wiqa.attention import DecomposableAttention, encode_stem, pad_ids
from ifqa.companions.wiqa.baselines import DecompAttn
from ifqa.companions.wiqa.choice_reader import Choice, InputFormat, encode_options
from ifqa.models.places import minilm_folder
from ifqa.protocols import TrainingData
from ifqa.records import Passage, Question
from ifqa.training.trainer import configure_trainer

pytestmark = pytest.mark.slow

QUESTIONS = questions()
DATASET = TrainingData(QUESTIONS, contexts(QUESTIONS), "rain", {"train.jsonl": "abc"})
LEARN = {"epochs": 16, "batch": 6, "device": "cpu", "checkpoint_every": 4}
QUESTION = Question(
    "q", "suppose [SEP] rain happens, how will it affect MORE mud.", choices=("more", "no effect")
)
TEXT = "A storm comes. [MASK] Rain falls."


def by_einsum(model, a, b):
    """Parikh et al. 2016, equations 1 to 6, for one pair and without padding, in numpy."""
    weights = {
        name: tensor.detach().double().numpy() for name, tensor in model.state_dict().items()
    }
    table = model.embeddings.double().numpy()

    def layers(name, inputs):
        for n in (1, 4):
            inputs = np.maximum(
                inputs @ weights[f"{name}.{n}.weight"].T + weights[f"{name}.{n}.bias"], 0
            )
        return inputs

    a_, b_ = (np.einsum("ti,oi->to", table[ids], weights["project.weight"]) for ids in (a, b))
    e = np.exp(np.einsum("if,jf->ij", layers("attend", a_), layers("attend", b_)))
    beta = np.einsum("ij,jd->id", e / e.sum(1, keepdims=True), b_)
    alpha = np.einsum("ij,id->jd", e / e.sum(0, keepdims=True), a_)
    v1 = layers("compare", np.concatenate([a_, beta], 1)).sum(0)
    v2 = layers("compare", np.concatenate([b_, alpha], 1)).sum(0)
    return (
        weights["classify.weight"] @ layers("aggregate", np.concatenate([v1, v2]))
        + weights["classify.bias"]
    )


def test_decomposable_attention_equals_an_independent_one():
    torch.manual_seed(0)
    model = DecomposableAttention(torch.randn(50, 12), classes=3, hidden=16).eval()
    with torch.no_grad():
        model.embeddings.mul_(4)  # so that attention is far from even
    first = [[1, 2, 3], [4], [5, 6, 7, 8, 9]]
    second = [[3, 30], [5, 6, 7], [11]]
    logits = model(pad_ids(first), pad_ids(second)).detach().numpy()
    expected = [by_einsum(model, *pair) for pair in zip(first, second, strict=True)]
    np.testing.assert_allclose(logits, expected, atol=1e-5)
    assert np.ptp(expected, 0).min() > 0.01
    words = AutoTokenizer.from_pretrained(minilm_folder())
    change, effect = encode_stem("suppose more rain falls happens, how will it affect MORE mud.")
    # After the null token
    assert words.convert_ids_to_tokens(change) == ["[CLS]", "more", "rain", "falls"]
    assert words.convert_ids_to_tokens(effect) == ["[CLS]", "more", "mud"]
    assert len(encode_stem(f"suppose {'very ' * 500} happens, how will it affect mud.")[0]) == 64


def as_bert(first, second):
    """The pair as BERT's own tokenizer joins it.

    It reads "[SEP]" in a text as the special token.
    """
    tokens = AutoTokenizer.from_pretrained(minilm_folder())(first, second)
    return tokens["input_ids"], tokens["token_type_ids"]


def test_inputs_are_those_of_berts_tokenizer():
    words = AutoTokenizer.from_pretrained(minilm_folder())
    plain = replace(QUESTION, text=QUESTION.text.replace("[SEP]", "much"))
    passages = [Passage("1", "Title", "A storm comes."), Passage("2", "", "Rain falls.")]
    pairs = encode_options(words, plain, passages, InputFormat(paragraph=True, max_tokens=99))
    assert pairs == [
        as_bert("A storm comes. Rain falls.", f"{plain.text} [SEP] {choice}")
        for choice in plain.choices
    ]
    bare = [as_bert(plain.text, choice) for choice in plain.choices]
    assert encode_options(words, plain, [], InputFormat(True, 99)) == bare
    assert encode_options(words, plain, passages, InputFormat(False, 99)) == bare
    # text that looks like a special token is text
    for ids, types in encode_options(
        words, QUESTION, [Passage("1", "", TEXT)], InputFormat(True, 99)
    ):
        assert (ids.count(words.sep_token_id), words.mask_token_id in ids) == (3, False)
        assert types.index(1) == ids.index(words.sep_token_id) + 1


@pytest.mark.parametrize("most", [30, 12])
def test_the_paragraph_is_cut_first_and_options_are_kept(most):
    words = AutoTokenizer.from_pretrained(minilm_folder())
    shown = [([Passage("1", "", TEXT)], most), ([Passage("1", "", TEXT)], 99), ([], 99)]
    formats = [(passages, InputFormat(True, tokens)) for passages, tokens in shown]
    cut, whole, bare = (encode_options(words, QUESTION, *each) for each in formats)
    for (ids, types), (long, _), (short, _) in zip(cut, whole, bare, strict=True):
        assert len(ids) == len(types) == min(most, len(long)) or (
            len(ids) == len(short) and most <= len(short) + 1
        )
        option = long[-(long[::-1].index(102, 1)) :]
        assert ids[-len(option) :] == option
        if len(ids) > len(short):
            assert ids[-len(short) + 1 :] == long[-len(short) + 1 :]


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    return tiny_choice.encoder(tmp_path_factory.mktemp("start") / "model")


TRAININGS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "choice": (trainers.Choice, Choice, {"learning_rate": 3e-3}),
    "decomp-attn": (
        trainers.DecompAttn,
        DecompAttn,
        {"hidden": 48, "dropout": 0.05, "learning_rate": 2e-2},
    ),
}


def train(name, folder, start):
    trainer, _, settings = TRAININGS[name]
    encoder = {"encoder": start} if name == "choice" else {}
    configure_trainer(trainer, **LEARN, **settings, **encoder).train(DATASET, folder)


@pytest.fixture(scope="module")
def trained(start, tmp_path_factory):
    """Reader -> the folder of a finished training."""
    folder = tmp_path_factory.mktemp("trained")
    for name in TRAININGS:
        train(name, folder / name, start)
    return {name: folder / name for name in TRAININGS}


def count_right(reader, **changes):
    predictions = reader.answer(
        [replace(question, **changes) for question in QUESTIONS], DATASET.rankings
    )
    pairs = zip(predictions, QUESTIONS, strict=True)
    return sum(prediction.answer in question.answers for prediction, question in pairs)


@pytest.mark.parametrize("name", TRAININGS)
def test_questions_are_learnt_by_heart(name, trained):
    kind = TRAININGS[name][1]
    settings = kind.Settings(checkpoint=str(trained[name]), device="cpu")
    reader = kind(settings)
    assert count_right(reader) >= 11
    # The order does not matter
    assert count_right(reader, choices=("no effect", "less", "more")) >= 11
    assert (reader.family, reader.trained_on) == ("rain", {"abc"})
    assert kind.training_family(settings, Path()) == "rain"
    manifest = json.loads((trained[name] / "manifest.json").read_text())
    assert (manifest["reader"], manifest["record"]["steps"], manifest["record"]["examples"]) == (
        name,
        32,
        12,
    )
    assert [*manifest["record"]["files"]] == ["model.safetensors"]


@pytest.mark.parametrize("name", TRAININGS)
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_training_killed_with_sigkill_goes_on_to_the_same_bytes(name, trained, start, tmp_path):
    reader = TRAININGS[name][1]
    kill(7, lambda: train(name, tmp_path / "cut", start))
    assert [path.name for path in (tmp_path / "cut/checkpoints").iterdir()] == ["checkpoint-4"]
    with refused(f"unfinished training; run the same `ifqa train {name}` again"):
        reader(reader.Settings(checkpoint=str(tmp_path / "cut")))
    train(name, tmp_path / "cut", start)
    assert (tmp_path / "cut/model.safetensors").read_bytes() == (
        trained[name] / "model.safetensors"
    ).read_bytes()
    assert {path.name for path in (tmp_path / "cut").iterdir()} == {
        path.name for path in trained[name].iterdir()
    }
    weights = tmp_path / "cut/model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with refused(""):
        reader(reader.Settings(checkpoint=str(tmp_path / "cut")))


@pytest.mark.parametrize("name", TRAININGS)
def test_a_torn_checkpoint_gives_way_to_the_one_before(name, trained, start, tmp_path):
    with ended_at(30), pytest.raises(Killed):
        train(name, tmp_path / "cut", start)
    whole = (trained[name] / "model.safetensors").read_bytes()
    for copy, file in torn_copies(tmp_path / "cut", tmp_path):
        train(name, copy, start)
        assert (copy / "model.safetensors").read_bytes() == whole, file


def test_choice_scores_options_as_transformers_does(trained):
    words = AutoTokenizer.from_pretrained(trained["choice"])
    model = BertForMultipleChoice.from_pretrained(trained["choice"]).eval()
    reader = Choice(
        Choice.Settings(checkpoint=str(trained["choice"]), device="cpu", batch_tokens=40)
    )
    predictions = reader.answer(QUESTIONS[:5], DATASET.rankings[:5])
    for prediction, question, [passage] in zip(
        predictions, QUESTIONS, DATASET.rankings, strict=False
    ):
        texts = [
            f"[CLS] {passage.text} [SEP] {question.text} [SEP] {choice} [SEP]"
            for choice in question.choices
        ]
        rows = [words(text, add_special_tokens=False)["input_ids"] for text in texts]
        longest = max(map(len, rows))
        ids = torch.tensor([[row + [0] * (longest - len(row)) for row in rows]])
        types = (
            (ids == words.sep_token_id).cumsum(2) - (ids == words.sep_token_id).long() > 0
        ).long()
        logits = model(input_ids=ids, attention_mask=(ids > 0).long(), token_type_ids=types).logits[
            0
        ]
        assert prediction.answer == question.choices[int(logits.argmax())]
        assert prediction.score == pytest.approx(
            torch.log_softmax(logits, 0).max().item(), abs=1e-4
        )
        assert prediction.passage_ids == (passage.id,)


def test_the_paragraph_can_be_left_out(start):
    def scores(questions, rankings, **settings):
        reader = Choice(Choice.Settings(checkpoint=start, device="cpu", **settings))
        predictions = reader.answer(questions, rankings)
        reads_paragraph = settings.get("paragraph") != "no" and rankings[0] != []
        assert all(bool(prediction.passage_ids) == reads_paragraph for prediction in predictions)
        return [prediction.score for prediction in predictions]

    plain = QUESTIONS[:4]
    rankings = list(DATASET.rankings[:4])
    without = scores(plain, [[]] * 4)
    assert scores(plain, rankings, paragraph="no") == pytest.approx(without, abs=1e-5)
    assert scores(plain, rankings) != pytest.approx(without, abs=1e-3)


def test_an_encoder_without_types_reads_to_its_last_position(tmp_path):
    encoder = tiny_choice.encoder(tmp_path / "roberta", "roberta")
    reader = Choice(Choice.Settings(checkpoint=encoder, device="cpu"))
    [prediction] = reader.answer(QUESTIONS[:1], [[Passage("1", "", "mud " * 99)]])
    assert prediction.answer in tiny_choice.CHOICES
    assert reader.family == ""


def test_an_encoder_of_another_family_is_not_trained_further(trained, tmp_path):
    other = replace(DATASET, family="snow")
    with refused("was trained on rain and may not be used in a training on snow"):
        configure_trainer(trainers.Choice, encoder=str(trained["choice"])).train(
            other, tmp_path / "more"
        )
    trainer = configure_trainer(
        trainers.Choice, encoder=str(trained["choice"]), epochs=1, device="cpu"
    )
    trainer.train(DATASET, tmp_path / "more")
