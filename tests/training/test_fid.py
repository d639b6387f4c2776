"""Training of Fusion-in-Decoder on a few questions of our own, with tiny networks of random
weights.
"""

import json
import os
import random
import traceback

import pytest
import tiny_t5
import torch
from refusals import refused
from safetensors.torch import load_file, save_file
from short_trainings import QUESTIONS, RANKINGS, SETTINGS, TEXTS, Killed, ended_at, torn_copies

from ifqa.protocols import NO_DATA, TrainingData
from ifqa.reading.t5.checkpoint import open_checkpoint
from ifqa.reading.t5.readers import Fid
from ifqa.records import Passage, Question, gold_id
from ifqa.training.t5 import Fid as Trainer
from ifqa.training.trainer import configure_trainer, training_passages

pytestmark = pytest.mark.slow

DATASET = TrainingData(QUESTIONS, RANKINGS, "ifqa/full")


def train(folder, start, dev=NO_DATA, **changes):
    trainer = configure_trainer(Trainer, **{"model": start, **SETTINGS, **changes})
    trainer.train(DATASET, folder, dev)
    return open_checkpoint(str(folder)).model.state_dict()


def reader(folder):
    return Fid(Fid.Settings(checkpoint=str(folder), device="cpu"))


def distance(first, second):
    """The distance of two networks; Adam makes full steps even for gradients near 0."""
    return float(torch.cat([(first[name] - second[name]).flatten() for name in first]).norm())


def test_the_published_recipe_is_fid_larges():
    published = {  # reproduction of README:110-126 and src/options.py:20-31 of facebookresearch/FiD
        "passages": 100,
        "steps": 15_000,
        "batch": 64,
        "learning_rate": 5e-5,
        "warmup": 1000,
        "weight_decay": 0.01,
        "clip": 1.0,
        "max_tokens": 250,
        "evaluate_every": 500,
        "model": "google-t5/t5-large",
        "gold": "retrieved",
    }
    settings = configure_trainer(Trainer, recipe="published").settings
    assert published.items() <= settings.model_dump().items()


def test_a_gold_passage_is_included_where_none_was_retrieved():
    other = [Passage("a", "", TEXTS[1]), Passage("b", "", TEXTS[2])]
    gold = Passage(gold_id(TEXTS[0]), "", TEXTS[0])
    question = QUESTIONS[0]
    assert training_passages(question, other, 2, False) == other
    assert training_passages(question, other, 2, True) == [other[0], gold]
    assert training_passages(question, RANKINGS[0], 2, True) == RANKINGS[0][:2]
    assert training_passages(question, [], 3, True) == [gold]
    assert training_passages(Question("t", "If?", ("a",)), other, 1, True) == other[:1]


def test_batch_sizes_change_no_weight(tmp_path, start):
    plain = {"model": str(tiny_t5.save(tmp_path / "start", texts=TEXTS))}  # without dropout
    whole = train(tmp_path / "whole", start, **plain, device_batch=4, recompute=False)
    parts = train(tmp_path / "parts", start, **plain, device_batch=1, recompute=True)
    moved = distance(whole, open_checkpoint(plain["model"]).model.state_dict())
    assert distance(whole, parts) < 0.01 * moved
    other = train(tmp_path / "other", start, **plain, device_batch=4, recompute=False, seed=1)
    assert distance(whole, other) > 0.3 * moved


def test_a_killed_training_goes_on_to_the_same_weights(tmp_path, start):
    dev = DATASET.select([0, 1])
    whole = train(tmp_path / "whole", start, dev=dev)
    with ended_at(8), pytest.raises(Killed):  # two micro-steps a step
        train(tmp_path / "cut", start, dev=dev)
    assert (tmp_path / "cut/checkpoints/checkpoint-2").exists()
    with refused("unfinished training"):
        reader(tmp_path / "cut")
    resumed = train(tmp_path / "cut", start, dev=dev)
    assert resumed.keys() == whole.keys()
    assert distance(resumed, whole) == 0
    assert json.loads((tmp_path / "cut/manifest.json").read_text())["record"]["best_step"] in (2, 4)
    cut, whole = ({path.name for path in (tmp_path / name).iterdir()} for name in ("cut", "whole"))
    assert cut == whole


def test_a_torn_checkpoint_gives_way_to_the_one_before(tmp_path, start):
    dev = DATASET.select([0, 1])
    often = {"evaluate_every": 1}
    whole = train(tmp_path / "whole", start, dev=dev, **often)
    with ended_at(8), pytest.raises(Killed):
        train(tmp_path / "cut", start, dev=dev, **often)
    for copy, file in torn_copies(tmp_path / "cut", tmp_path):
        assert distance(train(copy, start, dev=dev, **often), whole) == 0, file


def test_an_adapter_is_trained_alone_resumed_after_a_kill_and_trained_further(tmp_path):
    base = str(
        tiny_t5.save(
            tmp_path / "base",
            texts=[*TEXTS, *(q.text for q in QUESTIONS)],
            gated=True,
            dropout_rate=0.1,
        )
    )
    file = tmp_path / "base/model.safetensors"
    tensors = load_file(file)
    save_file(
        tensors | {"lm_head.weight": torch.randn_like(tensors["shared.weight"])},
        file,
        metadata={"format": "pt"},
    )
    before = open_checkpoint(base).model.state_dict()
    whole = train(tmp_path / "whole", base, rank=2, dev=DATASET.select([0, 1]))
    changed = {name for name, weight in whole.items() if not torch.equal(weight, before[name])}
    assert changed == {
        name
        for name, weight in before.items()
        if weight.dim() == 2 and ".layer." in name and "bias" not in name
    }
    assert sorted(path.name for path in (tmp_path / "whole").glob("*.safetensors")) == [
        "adapter_model.safetensors"
    ]
    with ended_at(8), pytest.raises(Killed):
        train(tmp_path / "cut", base, rank=2, dev=DATASET.select([0, 1]))
    assert distance(train(tmp_path / "cut", base, rank=2, dev=DATASET.select([0, 1])), whole) == 0
    further = train(tmp_path / "further", str(tmp_path / "whole"), rank=2)
    assert distance(further, whole) > 0
    assert (
        json.loads((tmp_path / "further/adapter_config.json").read_text())[
            "base_model_name_or_path"
        ]
        == base
    )
    every = train(tmp_path / "every", str(tmp_path / "whole"), steps=1, learning_rate=0.0)
    assert distance(every, whole) < 1e-6 * distance(whole, before)
    assert (tmp_path / "every/model.safetensors").exists()
    opened = reader(tmp_path / "whole")
    assert (opened.family, opened.label) == ("ifqa/full", "")
    save_file(tensors, file, metadata={"format": "pt"})
    with refused("whole was trained on a different .*base .SHA-256"):
        reader(tmp_path / "whole")


def test_a_finished_training_is_kept_if_only_its_speed_is_set_anew(tmp_path, start):
    train(tmp_path / "fid", start, steps=1)
    before = (tmp_path / "fid/manifest.json").read_bytes()
    assert json.loads(before)["record"]["steps"] == 1
    train(tmp_path / "fid", start, steps=1, recompute=False, device_batch=1)
    assert (tmp_path / "fid/manifest.json").read_bytes() == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gold": "first"}, "'gold': unknown value 'first'; known: included, retrieved"),
        ({"step": 3}, "did you mean 'steps'"),
        ({"max_tokens": 4}, "max_tokens: wanted 16 or more"),
        ({"model": "nowhere/at-all"}, "nowhere/at-all"),
    ],
)
def test_what_cannot_be_trained_is_refused_in_one_line(tmp_path, start, changes, message):
    with refused(message):
        train(tmp_path / "fid", start, **changes)
    assert not (tmp_path / "fid").exists()
    unanswered = TrainingData([Question("t", "If?", (" ",))], [[]], "ifqa/full")
    with refused("none of 1 training questions has an answer"):
        configure_trainer(Trainer, **{"model": start, **SETTINGS}).train(
            unanswered, tmp_path / "fid"
        )


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_two_processes_train_as_one_does(tmp_path, start, capfd):
    """The processes have the environment that torchrun gives them, and are forks, so that nothing
    is imported again.
    """
    plain = {
        "model": str(tiny_t5.save(tmp_path / "start", texts=TEXTS)),
        "dev": DATASET.select([0, 1, 2]),
    }
    single = train(tmp_path / "single", start, device_batch=1, **plain)
    port = str(random.Random(str(tmp_path)).randint(20_000, 30_000))
    children = [os.fork() or _train_as(rank, port, tmp_path / "both", plain) for rank in "01"]
    ended = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert ended == [0, 0], capfd.readouterr().err[-3000:]
    both = open_checkpoint(str(tmp_path / "both")).model.state_dict()
    assert distance(single, both) < 0.01 * distance(
        single, open_checkpoint(str(plain["model"])).model.state_dict()
    )


def _train_as(rank, port, folder, changes):
    """In a fork: train as one of two processes, and end it."""
    os.environ |= {
        "OMP_NUM_THREADS": "1",
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": port,
    }
    try:
        dev = changes.pop("dev")
        configure_trainer(Trainer, **{**SETTINGS, "device_batch": 1, **changes}).train(
            DATASET, folder, dev
        )
        os._exit(0)
    finally:
        traceback.print_exc()
        os._exit(1)
