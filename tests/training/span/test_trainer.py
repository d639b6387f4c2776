"""Training of the extractive reader on a handful of our own questions."""

import json
import math
import random
import shutil
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import torch
from refusals import refused
from safetensors.torch import load_file
from short_trainings import torn_copies
from tiny_library_encoder import KINDS, tiny_library_encoder
from tiny_mpnet import tiny_mpnet

from ifqa.models.places import minilm_folder
from ifqa.protocols import TrainingData
from ifqa.reading.span.network import encode_pair
from ifqa.reading.span.reader import BUNDLED_WEIGHTS, Extractive
from ifqa.reading.span.weights import fingerprint_weights
from ifqa.records import Passage, Question
from ifqa.storage.files import sha256
from ifqa.training import checkpoints, extractive
from ifqa.training.checkpoints import CHECKPOINTS, LOG
from ifqa.training.extractive_phase import Example, Targets, find_targets, target_loss
from ifqa.training.trainer import configure_trainer

pytestmark = pytest.mark.slow

CASES = [
    (
        "If Ada had won two fewer cups, how many?",
        "7",
        "Ada, a rower from Brill in Kent, has won 9 cups in all.",
    ),
    (
        "If Bo had kept the name, what would it be?",
        "Old Mill",
        "Bo, once called Old Mill, lies in Kent.",
    ),
    (
        "If Cy had stayed a painter, where would he live?",
        "Oslo",
        "Cy painted in Oslo until he left for Rome.",
    ),
    ("If Di had married, whom?", "unknown to all", "Di wrote plays and travelled."),
]
QUESTIONS = [
    Question(f"t/{n}", text, (answer,), (gold,)) for n, (text, answer, gold) in enumerate(CASES)
]
RANKINGS = [
    [Passage(f"p{n}", "", question.gold_passages[0]) for n, question in enumerate(QUESTIONS)]
] * len(QUESTIONS)
DATASET = TrainingData(QUESTIONS, RANKINGS, "ifqa/full", {"train.json": "ab"})
SETTINGS: dict[str, Any] = {"epochs": 2, "batch": 1, "rank": 2, "checkpoint_every": 2}


def train(dataset, folder, **settings):
    return configure_trainer(extractive.Extractive, **settings).train(dataset, folder)


def reader(folder, **settings):
    return Extractive(Extractive.Settings(weights=str(folder), **settings))


@contextmanager
def killed_at(step):
    """Raise KeyboardInterrupt when the step is logged, before its checkpoint."""

    def kill(line):
        if line.startswith(f"step {step}"):
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(checkpoints.logger, "info", kill)
        yield


def checksums(folder):
    # Which has the speed
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != LOG)
    return {path.relative_to(folder).as_posix(): sha256(path) for path in files}


@pytest.fixture(scope="module")
def mpnet(tmp_path_factory):
    texts = [text for question in QUESTIONS for text in (question.text, *question.gold_passages)]
    return tiny_mpnet(tmp_path_factory.mktemp("mpnet") / "tiny", *texts)


@pytest.fixture(scope="module")
def settings(mpnet):
    """Settings of a short training of the tiny MPNet; the golden files hold trainings of MiniLM."""
    return SETTINGS | {"encoder": str(mpnet)}


@pytest.fixture(scope="module")
def whole(tmp_path_factory, settings):
    """A finished training."""
    folder = tmp_path_factory.mktemp("trained") / "whole"
    assert train(DATASET, folder, **settings)["steps"] == 6
    return folder


def target_texts(text, answers, question="If so, what?"):
    pair = encode_pair(minilm_folder(), question, text)
    (targets,) = find_targets([pair], answers)
    texts = [pair.span_text(first, first + more) for first, more in targets.spans]
    return texts + [str(pair.computed[i][j][operation]) for i, j, operation in targets.computed]


def test_targets_are_all_occurrences_or_computed_equal_or_near():
    assert target_texts("Paris (Paris, France) and Lyon.", ["Paris", "lyon"]) == [
        "Paris",
        "Paris",
        "Lyon",
    ]
    assert target_texts("They won 9 cups.", ["7"], "If two fewer, how many?") == ["7"]
    assert target_texts("They won seven cups.", ["7"]) == ["seven"]
    assert target_texts("It rose by 50 Danish crowns a day.", ["50 crowns"]) == ["50 Danish crowns"]
    assert (
        target_texts("It was moved to 15 April 2003.", ["April 15, 2003"]) == ["April 15, 2003"] * 2
    )
    assert target_texts("Nothing of the kind.", ["Paris"]) == []
    text = "The mill was built in 1951 and burnt down in 1990."
    assert target_texts(text, ["39"], "How many years did it stand?") == ["39"]
    assert target_texts("Ann Lee, Bo Hay and Cy Orr own it.", ["2"], "If not Bo, how many?") == [
        "2"
    ]


def test_the_null_candidate_is_right_where_no_target_is():
    spans = [torch.tensor([[1.0, -1e4], [2.0, -1e4]]), torch.tensor([[-3.0, -1e4]])]
    computed = [torch.empty(0, 1, 2), torch.tensor([[[0.5, -1e4]]])]
    total = math.log(1 + sum(math.exp(score) for score in (1.0, 2.0, -3.0, 0.5)))
    targets = [Targets([(1, 0)], []), Targets([], [(0, 0, 0)])]
    right = math.log(math.exp(2.0) + math.exp(0.5))
    assert target_loss(targets, spans, computed).item() == pytest.approx(total - right)
    assert target_loss([], spans, computed).item() == pytest.approx(total)


def test_gold_passages_are_left_out_as_often_as_wished_if_there_are_negatives():
    draw = random.Random(0)
    folder = minilm_folder()
    example = Example(folder, QUESTIONS[2], RANKINGS[2])
    alone = Example(folder, QUESTIONS[2])
    drawn = [example.draw_pairs(draw, 1, 0.25) for _ in range(400)]
    without = [pairs for pairs, targets in drawn if not targets]
    assert 70 < len(without) < 130
    assert {len(pairs) for pairs in without} == {2}
    assert not any(example.gold[0] in pairs for pairs in without)
    assert all(pairs[0] is example.gold[0] for pairs, targets in drawn if targets)
    assert alone.draw_pairs(draw, 1, 0.99) == (alone.gold, alone.targets)
    assert Example(folder, replace(QUESTIONS[3], answers=())).has_target
    others = QUESTIONS[3], replace(QUESTIONS[3], answers=(), gold_passages=())
    assert not any(Example(folder, question).has_target for question in others)


def test_a_killed_training_goes_on_to_the_same_weights(tmp_path, whole, settings):
    with killed_at(4):
        train(DATASET, tmp_path / "killed", **settings)
    names = sorted(path.name for path in (tmp_path / "killed" / CHECKPOINTS).iterdir())
    assert names == ["checkpoint-2"]
    assert not (tmp_path / "killed" / "manifest.json").exists()
    with refused("another training"):
        train(DATASET, tmp_path / "killed", **settings, seed=1)
    train(DATASET, tmp_path / "killed", **settings)
    assert checksums(tmp_path / "killed") == checksums(whole)
    logs = [
        [json.loads(line) for line in (each / LOG).read_text().splitlines()]
        for each in (tmp_path / "killed", whole)
    ]
    curves = [[(line["step"], line["loss"], line["learning_rate"]) for line in log] for log in logs]
    assert curves[0] == curves[1]
    assert [step for step, _, _ in curves[0]] == [1, 2, 3, 4, 5, 6]
    assert reader(whole).family == "ifqa/full"
    manifest = json.loads((whole / "manifest.json").read_text())
    assert (manifest["sources"], manifest["settings"]["seed"], manifest["examples"]) == (
        {"train.json": "ab"},
        0,
        3,
    )


def test_a_torn_checkpoint_gives_way_to_the_one_before(tmp_path, whole, settings):
    with killed_at(6):
        train(DATASET, tmp_path / "killed", **settings)
    for copy, file in torn_copies(tmp_path / "killed", tmp_path):
        train(DATASET, copy, **settings)
        assert checksums(copy) == checksums(whole), file


def test_what_cannot_be_trained_is_refused_and_nothing_is_written(tmp_path):
    long = write_reading(tmp_path, [READING[0] | {"context": "long " * 191}])
    with refused("none of 1 reading questions has a passage of at most 190 words"):
        train(DATASET, tmp_path / "none", **SETTINGS | {"reading": [long]})
    assert not (tmp_path / "none").exists()


READING: list[dict[str, Any]] = [
    {
        "question": "Where did Cy paint?",
        "context": "Cy painted in Oslo until he left for Rome.",
        "answers": ["Oslo"],
        "source": "ours",
        "licence": "MIT",
    },
    {
        "question": "Who wrote plays?",
        "context": "Di wrote plays and travelled.",
        "answers": [{"text": "Di", "answer_start": 0}],
    },
]


def write_reading(folder, rows=READING):
    path = folder / "reading.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture(scope="module")
def after_reading(tmp_path_factory, settings):
    """A finished training on reading questions first, and its settings."""
    folder = tmp_path_factory.mktemp("read")
    settings = settings | {
        "reading": [write_reading(folder)],
        "reading_batch": 1,
        "checkpoint_every": 1,
    }
    train(DATASET, folder / "weights", **settings)
    return folder / "weights", settings


def test_reading_questions_come_first_and_are_named_in_the_manifest(tmp_path, after_reading):
    folder, settings = after_reading
    reading = json.loads((folder / "manifest.json").read_text())["start"]["trained"]
    expected = {
        "family": "",
        "rows": {"not named": 1, "ours": 1},
        "licences": {"MIT": 1, "not named": 1},
    }
    assert reading.items() >= expected.items()
    file = folder.with_name("reading.jsonl")
    assert reading["sources"] == {file.name: sha256(file)}
    train(
        DATASET, tmp_path / "shared", **settings | {"reading": (), "start": str(folder / "reading")}
    )
    expected = {
        name: checksum
        for name, checksum in checksums(folder).items()
        if not name.startswith("reading/")
    }
    assert checksums(tmp_path / "shared") == expected
    with refused(r"another training \(changed: start\)"):
        train(DATASET, folder, **settings | {"reading": ()})


def test_reading_questions_may_follow_others_and_the_manifest_names_both(tmp_path, after_reading):
    folder, settings = after_reading
    rows = [READING[0], READING[1] | {"question": "Who wrote songs?", "answers": []}]
    start = {"start": str(folder / "reading"), "average": 2, "epochs": 0}
    more = settings | start | {"reading": [write_reading(tmp_path, rows)]}
    manifest = train(DATASET, tmp_path / "more", **more)
    assert manifest["steps"] == 0
    second = manifest["start"]["trained"]
    assert second["start"]["sha256"] == fingerprint_weights(folder / "reading")
    assert second["examples"] == len(rows)
    assert {*second["sources"].values()}.isdisjoint(second["start"]["trained"]["sources"].values())


def scores(folder):
    return load_file(folder / "heads.safetensors")["heads.weight"].float()


def test_the_start_has_its_share_of_the_weights(tmp_path, after_reading):
    folder, settings = after_reading
    start = folder / "reading"
    plain = settings | {"reading": (), "start": str(start)}
    train(DATASET, tmp_path / "plain", **plain)
    train(DATASET, tmp_path / "mixed", **plain, start_share=0.25)
    mean = 0.25 * scores(start) + 0.75 * scores(tmp_path / "plain")
    torch.testing.assert_close(scores(tmp_path / "mixed"), mean, atol=1e-4, rtol=1e-2)


def test_the_weights_of_several_seeds_are_averaged(tmp_path, settings, capsys):
    averaged = settings | {"average": 2, "reading": [write_reading(tmp_path)]}
    train(DATASET, tmp_path / "both", **averaged)
    start = str(tmp_path / "both" / "reading")
    for seed in (0, 1):
        train(DATASET, tmp_path / str(seed), **settings, seed=seed, start=start)
    mean = (scores(tmp_path / "0") + scores(tmp_path / "1")) / 2
    torch.testing.assert_close(scores(tmp_path / "both"), mean, atol=1e-4, rtol=1e-2)
    assert not torch.equal(scores(tmp_path / "0"), scores(tmp_path / "1"))
    for left in ("seeds", CHECKPOINTS):
        assert not (tmp_path / "both" / left).exists()
        (tmp_path / "both" / left).mkdir()  # as a kill after the manifest leaves it
    capsys.readouterr()
    train(DATASET, tmp_path / "both", **averaged)
    assert not any((tmp_path / "both" / left).exists() for left in ("seeds", CHECKPOINTS))
    assert f"{tmp_path / 'both'}: up to date\n" in capsys.readouterr().err


def test_a_training_killed_while_it_reads_goes_on_to_the_same_weights(tmp_path, after_reading):
    folder, settings = after_reading
    with killed_at(2):
        train(DATASET, tmp_path / "killed", **settings)
    assert any((tmp_path / "killed" / "reading" / CHECKPOINTS).iterdir())
    train(DATASET, tmp_path / "killed", **settings)
    assert checksums(tmp_path / "killed") == checksums(folder)


def test_the_reader_is_trained_on_mpnet_from_reading_to_answers(tmp_path, mpnet):
    settings = SETTINGS | {
        "encoder": str(mpnet),
        "epochs": 40,
        "rank": 16,
        "learning_rate": 5e-3,
        "dropout": 0.0,
    }
    folder = tmp_path / "weights"
    manifest = train(DATASET, folder, **settings, reading=[write_reading(tmp_path)])
    encoder = {"name": str(mpnet), "sha256": sha256(mpnet / "model.safetensors")}
    assert manifest["encoder"] == manifest["start"]["trained"]["encoder"] == encoder
    stored = load_file(folder / "adapter.safetensors")
    assert stored["encoder.layer.0.attention.attn.q.weight.A"].shape == (16, 32)
    assert stored["encoder.relative_attention_bias.weight"].shape == (32, 4)
    passages = [[Passage("p", "", question.gold_passages[0])] for question in QUESTIONS[:3]]
    predictions = reader(folder, precision="float32").answer(QUESTIONS[:3], passages)
    assert [prediction.answer for prediction in predictions] == ["7", "Old Mill", "Oslo"]
    shutil.copytree(mpnet, tmp_path / "copy")
    copied = Extractive.Settings(weights=str(folder), precision="float32", encoder="copy")
    moved = Extractive(copied, root=tmp_path)
    assert moved.answer(QUESTIONS[:3], passages) == predictions


@pytest.mark.parametrize("kind", KINDS)
def test_the_reader_is_trained_on_an_encoder_of_transformers(tmp_path, kind):
    texts = [text for question in QUESTIONS for text in (question.text, *question.gold_passages)]
    encoder = tiny_library_encoder(tmp_path / kind, kind, *texts)
    settings = SETTINGS | {
        "encoder": str(encoder),
        "epochs": 40,
        "rank": 16,
        "learning_rate": 5e-3,
        "dropout": 0.0,
    }
    train(DATASET, tmp_path / "weights", **settings)
    passages = [[Passage("p", "", question.gold_passages[0])] for question in QUESTIONS[:3]]
    predictions = reader(tmp_path / "weights", precision="float32").answer(QUESTIONS[:3], passages)
    assert [prediction.answer for prediction in predictions] == ["7", "Old Mill", "Oslo"]


def test_weights_of_another_encoder_are_refused(tmp_path, mpnet):
    train(DATASET, tmp_path / "weights", **SETTINGS | {"epochs": 1}, encoder=str(mpnet))
    with refused(r"weights was trained on the encoder .*tiny \(SHA-256 .*\), and .* holds another"):
        reader(tmp_path / "weights", encoder="all-MiniLM-L6-v2")
    with refused(r"weights was trained on the encoder .*tiny"):
        train(DATASET, tmp_path / "more", **SETTINGS, start=str(tmp_path / "weights"))
    assert not (tmp_path / "more").exists()


def test_questions_of_ones_own_go_on_from_the_shipped_weights_and_keep_their_family(tmp_path):
    own = replace(DATASET, family="")
    trained = train(own, tmp_path / "mine", **SETTINGS | {"start": "shipped", "epochs": 1})
    assert (trained["family"], trained["start"]["trained"]["family"]) == ("ifqa/full", "ifqa/full")
    assert trained["start"]["sha256"] == fingerprint_weights(BUNDLED_WEIGHTS)
    assert reader(tmp_path / "mine").family == "ifqa/full"
    with refused("shipped was trained on ifqa/full and may not be used in a training on ifqa/few"):
        train(
            replace(DATASET, family="ifqa/few"), tmp_path / "few", **SETTINGS | {"start": "shipped"}
        )
