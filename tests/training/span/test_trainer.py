"""Training of the extractive reader on a handful of our own questions."""

import hashlib
import json
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from refusals import refused
from safetensors.torch import load_file
from tiny_mpnet import tiny_mpnet

from ifqa.models.hub import minilm_folder
from ifqa.protocols import TrainingData
from ifqa.reading.span.network import encode_pair
from ifqa.reading.span.reader import Extractive
from ifqa.records import Passage, Question
from ifqa.training import extractive, extractive_loop
from ifqa.training.checkpoints import CHECKPOINTS
from ifqa.training.extractive_loop import find_targets
from ifqa.training.trainer import configure_trainer

ASKED = [
    ("If Ada had won two fewer cups, how many?", "7", "Ada, a rower from Brill in Kent, has won 9 cups in all."),
    ("If Bo had kept the name, what would it be?", "Old Mill", "Bo, once called Old Mill, lies in Kent."),
    ("If Cy had stayed a painter, where would he live?", "Oslo", "Cy painted in Oslo until he left for Rome."),
    ("If Di had married, whom?", "unknown to all", "Di wrote plays and travelled."),
]
QUESTIONS = [Question(f"t/{n}", text, (answer,), (gold,)) for n, (text, answer, gold) in enumerate(ASKED)]
RANKINGS = [[Passage(f"p{n}", "", question.gold_passages[0]) for n, question in enumerate(QUESTIONS)]] * len(QUESTIONS)
MATERIAL = TrainingData(QUESTIONS, RANKINGS, "ifqa/full", {"train.json": "ab"})
SETTINGS = {"epochs": 2, "batch": 1, "rank": 2, "practice": 0, "checkpoint_every": 2}


def train(data, folder, **settings):
    return configure_trainer(extractive.Extractive, **settings).train(data, folder)


def pair(text, question="If there had been two fewer, how many?"):
    return encode_pair(minilm_folder(), question, text)


@contextmanager
def killed_after(opening):
    """Raise KeyboardInterrupt when a checkpoint's line is said."""

    def kill(line):
        if line.startswith(opening):
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(extractive_loop.logger, "info", kill)
        yield


def weights(folder):
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def mpnet(tmp_path_factory):
    texts = [text for question in QUESTIONS for text in (question.text, *question.gold_passages)]
    made: Path = tiny_mpnet(tmp_path_factory.mktemp("mpnet") / "tiny", *texts)
    return made


@pytest.fixture(scope="module")
def settings(mpnet):
    """Settings of a short training of the tiny MPNet; the golden files hold trainings of MiniLM."""
    return SETTINGS | {"encoder": str(mpnet)}


@pytest.fixture(scope="module")
def whole(tmp_path_factory, settings):
    """A finished training."""
    folder = tmp_path_factory.mktemp("trained") / "whole"
    assert train(MATERIAL, folder, **settings)["steps"] == 6
    return folder


def chosen(text, answers, question="If so, what?"):
    one = pair(text, question)
    (targets,) = find_targets([one], answers)
    texts = [one.span_text(first, first + more) for first, more in targets.spans]
    return texts + [str(one.computed[i][j][operation]) for i, j, operation in targets.computed]


def test_targets_are_all_occurrences_or_computed_equal_or_near():
    assert chosen("Paris (Paris, France) and Lyon.", ["Paris", "lyon"]) == ["Paris", "Paris", "Lyon"]
    assert chosen("They won 9 cups.", ["7"], "If two fewer, how many?") == ["7"]
    assert chosen("They won seven cups.", ["7"]) == ["seven"]
    assert chosen("It rose by 50 Danish crowns a day.", ["50 crowns"]) == ["50 Danish crowns"]
    assert chosen("It was moved to 15 April 2003.", ["April 15, 2003"]) == ["April 15, 2003"] * 2
    assert chosen("Nothing of the kind.", ["Paris"]) == []
    text = "The mill was built in 1951 and burnt down in 1990."
    assert chosen(text, ["39"], "How many years did it stand?") == ["39"]
    assert chosen("Ann Lee, Bo Hay and Cy Orr own it.", ["2"], "If not Bo, how many?") == ["2"]


def test_a_killed_training_goes_on_to_the_same_weights(tmp_path, whole, settings):
    with killed_after("step 4"):
        train(MATERIAL, tmp_path / "killed", **settings)
    names = sorted(path.name for path in (tmp_path / "killed" / CHECKPOINTS).iterdir())
    assert names == ["checkpoint-2", "checkpoint-4"]
    assert not (tmp_path / "killed" / "manifest.json").exists()
    with refused("another training"):
        train(MATERIAL, tmp_path / "killed", **settings, seed=1)
    train(MATERIAL, tmp_path / "killed", **settings)
    assert weights(tmp_path / "killed") == weights(whole)
    assert "manifest.json" in weights(whole)
    assert Extractive(weights=str(whole)).family == "ifqa/full"
    manifest = json.loads((whole / "manifest.json").read_text())
    assert (manifest["family"], manifest["sources"]) == ("ifqa/full", {"train.json": "ab"})
    assert (manifest["settings"]["seed"], manifest["examples"]) == (0, 3)


def test_what_cannot_be_trained_is_refused_and_nothing_is_written(tmp_path):
    long = reading_file(tmp_path, [READING[0] | {"context": "long " * 191}])
    with refused("none of 1 reading questions has a passage of at most 190 words"):
        train(MATERIAL, tmp_path / "none", **SETTINGS | {"reading": [long]})
    assert not (tmp_path / "none").exists()
    for name in ("adapter.safetensors", "checkpoint.safetensors"):
        (tmp_path / name[:5]).mkdir()
        (tmp_path / name[:5] / name).write_text("precious")
        with refused(f"{name} is not from a training"):
            train(MATERIAL, tmp_path / name[:5], **SETTINGS)
        assert [path.read_text() for path in (tmp_path / name[:5]).iterdir()] == ["precious"]


READING = [
    {"question": "Where did Cy paint?", "context": "Cy painted in Oslo until he left for Rome.", "answers": ["Oslo"],
     "source": "ours", "licence": "MIT"},
    {"question": "Who wrote plays?", "context": "Di wrote plays and travelled.", "answers": [{"text": "Di", "answer_start": 0}]},
]  # fmt: skip


def reading_file(folder, rows=READING):
    path = folder / "reading.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture(scope="module")
def well_read(tmp_path_factory, settings):
    """A finished training on reading questions first, and its settings."""
    folder = tmp_path_factory.mktemp("read")
    settings = settings | {"reading": [reading_file(folder)], "reading_batch": 1, "checkpoint_every": 1}
    train(MATERIAL, folder / "made", **settings)
    return folder / "made", settings


def test_reading_questions_come_first_and_are_named_in_the_manifest(tmp_path, well_read):
    made, settings = well_read
    read = json.loads((made / "manifest.json").read_text())["start"]["trained"]
    named = {"family": "", "rows": {"not named": 1, "ours": 1}, "licences": {"MIT": 1, "not named": 1}}
    assert read.items() >= named.items()
    file = made.with_name("reading.jsonl")
    assert read["sources"] == {file.name: hashlib.sha256(file.read_bytes()).hexdigest()}

    train(MATERIAL, tmp_path / "shared", **settings | {"reading": (), "start": str(made / "reading")})
    assert weights(tmp_path / "shared") == {k: v for k, v in weights(made).items() if not k.startswith("reading/")}


def test_the_weights_of_several_seeds_are_averaged(tmp_path, settings, capsys):
    def scores(folder):
        return load_file(folder / "heads.safetensors")["heads.weight"].float()

    averaged = settings | {"average": 2, "reading": [reading_file(tmp_path)]}
    train(MATERIAL, tmp_path / "both", **averaged)
    start = str(tmp_path / "both" / "reading")
    for seed in (0, 1):
        train(MATERIAL, tmp_path / str(seed), **settings, seed=seed, start=start)
    mean = (scores(tmp_path / "0") + scores(tmp_path / "1")) / 2
    torch.testing.assert_close(scores(tmp_path / "both"), mean, atol=1e-4, rtol=1e-2)
    assert not torch.equal(scores(tmp_path / "0"), scores(tmp_path / "1"))
    assert [path.name for path in (tmp_path / "both" / "seeds").iterdir()] == []
    capsys.readouterr()
    train(MATERIAL, tmp_path / "both", **averaged)
    assert f"{tmp_path / 'both'}: up to date\n" in capsys.readouterr().err


def test_a_training_killed_while_it_reads_goes_on_to_the_same_weights(tmp_path, well_read):
    made, settings = well_read
    with killed_after("step 1"):
        train(MATERIAL, tmp_path / "killed", **settings)
    assert any((tmp_path / "killed" / "reading" / CHECKPOINTS).iterdir())
    train(MATERIAL, tmp_path / "killed", **settings)
    assert weights(tmp_path / "killed") == weights(made)


def test_the_reader_is_trained_on_mpnet_from_reading_to_answers(tmp_path, mpnet):
    settings = SETTINGS | {"encoder": str(mpnet), "epochs": 40, "rank": 16, "learning_rate": 5e-3, "dropout": 0.0}
    made = tmp_path / "made"
    manifest = train(MATERIAL, made, **settings, reading=[reading_file(tmp_path)])
    sha = hashlib.sha256((mpnet / "model.safetensors").read_bytes()).hexdigest()
    assert manifest["encoder"] == manifest["start"]["trained"]["encoder"] == {"name": str(mpnet), "sha256": sha}
    stored = load_file(made / "adapter.safetensors")
    assert stored["encoder.layer.0.attention.attn.q.weight.A"].shape == (16, 32)
    assert stored["encoder.relative_attention_bias.weight"].shape == (32, 4)

    passages = [[Passage("p", "", question.gold_passages[0])] for question in QUESTIONS[:3]]
    reader = Extractive(weights=str(made), precision="float32")
    assert [prediction.answer for prediction in reader.answer(QUESTIONS[:3], passages)] == ["7", "Old Mill", "Oslo"]
    shutil.copytree(mpnet, tmp_path / "copy")
    copied = Extractive(weights=str(made), precision="float32", encoder="copy", root=tmp_path)
    assert copied.answer(QUESTIONS[:3], passages) == reader.answer(QUESTIONS[:3], passages)


def test_weights_of_another_encoder_are_refused(tmp_path, mpnet):
    train(MATERIAL, tmp_path / "made", **SETTINGS | {"epochs": 1}, encoder=str(mpnet))
    with refused(r"made was trained on the encoder .*tiny \(SHA-256 .*\), and .* holds another"):
        Extractive(weights=str(tmp_path / "made"), encoder="all-MiniLM-L6-v2")
    with refused(r"made was trained on the encoder .*tiny"):
        train(MATERIAL, tmp_path / "more", **SETTINGS, start=str(tmp_path / "made"))
    with refused("made holds another training"):
        train(MATERIAL, tmp_path / "made", **SETTINGS | {"epochs": 1})
    assert not (tmp_path / "more").exists()
