"""Tuning of a language model: the reader's own prompts, the loss on the answer alone, kill and
resume, and split families.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import tiny_chat
import torch
import torch.nn.functional as F
from peft import PeftModel
from refusals import refused
from short_trainings import QUESTIONS, RANKINGS, TEXTS, TOWNS, Killed, ended_at, torn_copies
from transformers import AutoModelForCausalLM

from ifqa.config.experiment import parse_experiment
from ifqa.llms.hf import HF
from ifqa.models.causal_lm import download_hint, find_causal_lm
from ifqa.pipeline import opening
from ifqa.pipeline.opening import refuse_other_families
from ifqa.pipeline.run import Run
from ifqa.pipeline.system import System
from ifqa.plugins import open_benchmark
from ifqa.prompting.prompts import load_prompt
from ifqa.protocols import TrainingData
from ifqa.reading.llm import Llm
from ifqa.records import Question
from ifqa.training.llm import Llm as Trainer
from ifqa.training.llm import PromptTokenizer, batch_loss, collate
from ifqa.training.trainer import configure_trainer

pytestmark = pytest.mark.slow

QUESTIONS = QUESTIONS[:4]
RANKINGS = RANKINGS[:4]
DATASET = TrainingData(QUESTIONS, RANKINGS, "ifqa/full", {"train.json": "ab"})
SETTINGS = {
    "epochs": 2,
    "rank": 4,
    "batch": 2,
    "device_batch": 2,
    "passages": 2,
    "max_tokens": 400,
    "checkpoint_every": 2,
    "learning_rate": 1e-2,
    "device": "cpu",
}
PROMPTS = Trainer.Settings(passages=2, alone=0.5, epochs=3, batch=2, device_batch=2)
FILES = {"adapter_model.safetensors", "adapter_config.json", "manifest.json"}


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    return str(tiny_chat.save(tmp_path_factory.mktemp("start") / "tiny"))


def open_model(model, folder):
    store = str(folder / "completions")
    return HF(HF.Settings(model=model, device="cpu", precision="float32", store=store))


def prompt_rows(tokenizer, **changes):
    return Trainer(PROMPTS.model_copy(update=changes)).prompt_rows(DATASET, tokenizer)


def tune(folder, start, **changes):
    configure_trainer(Trainer, **{"model": start, **SETTINGS, **changes}).train(DATASET, folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory, start):
    """The folder of a finished tuning."""
    folder = tmp_path_factory.mktemp("whole")
    tune(folder, start)
    return folder


@pytest.mark.parametrize("chat", [True, False])
def test_a_row_is_the_readers_prompt_the_answer_and_the_end(tmp_path, chat):
    template = tiny_chat.TEMPLATE if chat else None
    model = open_model(str(tiny_chat.save(tmp_path / "tiny", template=template)), tmp_path)
    row = PromptTokenizer(model, load_prompt("short"), 400).row(QUESTIONS[0], RANKINGS[0], "Bath")
    reader = Llm(Llm.Settings(prompt="short"), llm=model)
    [request] = reader.requests(QUESTIONS[:1], RANKINGS[:1])
    assert row is not None
    assert row["prompt"] == model.ids(request)
    answer = row["answer"]
    assert answer[-1] == model.tokenizer.eos_token_id
    end = "assistant\nAnswer: Bath" if chat else "where?\nAnswer: Bath"
    assert model.tokenizer.decode(row["prompt"] + answer[:-1]).endswith(end)
    assert load_prompt("short").parse(model.tokenizer.decode(answer[:-1])).answer == "Bath"
    assert (
        PromptTokenizer(model, load_prompt("short"), 40).row(QUESTIONS[0], RANKINGS[0], "Bath")
        is None
    )


def test_prompts_mix_gold_passages_alone_with_retrieved_ones(start, tmp_path):
    model = open_model(start, tmp_path)
    tokenizer = PromptTokenizer(model, load_prompt("short"), 400)
    shown = [model.tokenizer.decode(row["prompt"]) for row in prompt_rows(tokenizer)]
    assert len(shown) == 3 * len(QUESTIONS)
    assert {sum(text in prompt for text in TEXTS) for prompt in shown} == {1, 2}
    gold = {question.text: question.gold_passages[0] for question in QUESTIONS}
    assert all(any(text in prompt and gold[text] in prompt for text in gold) for prompt in shown)
    for share, count in ((0.0, 2), (1.0, 1)):
        rows = prompt_rows(tokenizer, alone=share)
        assert {
            sum(text in model.tokenizer.decode(row["prompt"]) for text in TEXTS) for row in rows
        } == {count}


def logits_of(network, ids):
    return network(torch.tensor([ids])).logits[0]


def test_the_loss_is_that_of_each_answer_alone(start, tmp_path):
    tokenizer = PromptTokenizer(open_model(start, tmp_path), load_prompt("short"), 400)
    network = AutoModelForCausalLM.from_pretrained(start)
    rows = prompt_rows(tokenizer)[:3]
    expected = []
    for row in rows:
        logits = logits_of(network, row["prompt"] + row["answer"])[len(row["prompt"]) - 1 : -1]
        expected.append(F.cross_entropy(logits, torch.tensor(row["answer"])))
    loss = batch_loss(network, collate(rows, 0)).item()
    assert loss == pytest.approx(torch.stack(expected).mean().item(), rel=1e-4)


def test_a_killed_tuning_goes_on_to_the_same_weights(whole, start, tmp_path):
    with ended_at(4), pytest.raises(Killed):
        tune(tmp_path / "cut", start)
    assert (tmp_path / "cut" / "checkpoints" / "checkpoint-2").exists()
    cut = tune(tmp_path / "cut", start)
    assert cut["adapter_model.safetensors"] == (whole / "adapter_model.safetensors").read_bytes()
    assert cut.keys() == {path.name for path in whole.iterdir()} == FILES | {"log.jsonl"}


def test_a_torn_checkpoint_gives_way_to_the_one_before(tmp_path, start):
    whole = tune(tmp_path / "whole", start, checkpoint_every=1)["adapter_model.safetensors"]
    with ended_at(4), pytest.raises(Killed):
        tune(tmp_path / "cut", start, checkpoint_every=1)
    for copy, file in torn_copies(tmp_path / "cut", tmp_path):
        assert tune(copy, start, checkpoint_every=1)["adapter_model.safetensors"] == whole, file


def test_an_adapter_reads_as_peft_does_and_answers_what_it_learnt(start, tmp_path):
    tune(tmp_path / "adapter", start, epochs=40, rank=32, batch=4, device_batch=4, alone=1.0)
    model = open_model(str(tmp_path / "adapter"), tmp_path)
    assert model.family == "ifqa/full"
    assert model.name.startswith("adapter@")
    reader = Llm(Llm.Settings(prompt="short"), llm=model)
    assert reader.trained_on == {"ab"}
    predictions = reader.answer(QUESTIONS, [[ranking[0]] for ranking in RANKINGS])
    assert [prediction.answer for prediction in predictions] == TOWNS[:4]
    base = AutoModelForCausalLM.from_pretrained(start)
    network = PeftModel.from_pretrained(base, str(tmp_path / "adapter")).eval()
    ids = list(range(3, 60))
    with torch.no_grad():
        assert torch.allclose(logits_of(network, ids), logits_of(model.model, ids), atol=1e-3)
    assert open_model(start, tmp_path).name != model.name


def test_the_manifest_says_what_was_tuned_on_what(whole, start, tmp_path):
    tune(tmp_path / "further", str(whole), epochs=1)
    first, further = (
        json.loads((folder / "manifest.json").read_text())
        for folder in (whole, tmp_path / "further")
    )
    assert (first["family"], first["start"], first["settings"]["learning_rate"]) == (
        "ifqa/full",
        {},
        1e-2,
    )
    assert (
        first["base"]
        == further["base"]
        == {"name": start, "sha256": find_causal_lm(start).fingerprint}
    )
    assert further["start"] == {
        "name": str(whole),
        "sha256": find_causal_lm(str(whole)).fingerprint,
    }
    assert (first["record"]["steps"], set(first["record"]["files"])) == (
        4,
        FILES - {"manifest.json"},
    )
    modules = json.loads((whole / "adapter_config.json").read_text())["target_modules"]
    assert modules == sorted(modules) != []


def test_an_adapter_is_not_tested_or_tuned_on_the_other_family(whole, tmp_path, monkeypatch):
    sections = {
        "benchmark": "ifqa", "split": "few-dev", "reader": {"name": "llm", "prompt": "closed-book"},
        "llm": {"name": "hf", "model": str(whole), "device": "cpu"},
    }  # fmt: skip
    few, full = (
        parse_experiment("x", sections | {"split": split}, "x", tmp_path)
        for split in ("few-dev", "full-dev")
    )
    for use in (refuse_other_families, lambda run: System(run).reader):
        with refused(
            "language model 'hf' was trained on ifqa/full and may not be tested on ifqa/few"
        ):
            use(Run(few))
    refuse_other_families(Run(full))
    assert System(Run(full)).reader.trained_on == {"ab"}
    monkeypatch.setattr(opening, "sha256", lambda path: "ab")
    monkeypatch.setattr(
        type(open_benchmark("ifqa", tmp_path)), "files", lambda *_: [Path("train.json")]
    )
    assert opening.was_trained_on(System(Run(full)).reader, Run(full))
    with refused("was trained on ifqa/full and may not be used in a training on ifqa/few"):
        configure_trainer(Trainer, model=str(whole)).train(
            replace(DATASET, family="ifqa/few"), tmp_path / "new"
        )


def test_an_adapter_on_another_model_is_refused(whole, start, tmp_path):
    folder = tmp_path / "moved"
    folder.mkdir()
    for name in FILES:
        (folder / name).write_bytes((whole / name).read_bytes())
    other = tiny_chat.save(tmp_path / "other", seed=1)
    settings = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(
        json.dumps(settings | {"base_model_name_or_path": str(other)})
    )
    with refused(r"was trained on a different .*other .*; train it again"):
        find_causal_lm(str(folder))
    (folder / "adapter_config.json").write_text(
        json.dumps(settings | {"base_model_name_or_path": str(folder)})
    )
    assert download_hint(str(folder)) == ""
    with refused("its base model .*moved is an adapter"):
        find_causal_lm(str(folder))
    (folder / "adapter_model.safetensors").unlink()
    with refused(r"no adapter_model\.safetensors; wanted an adapter with weights in safetensors"):
        find_causal_lm(str(folder))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prompt": "counterfactual"}, "prompt 'counterfactual' shows reasoning"),
        ({"batch": 3}, "wanted a multiple of device_batch"),
        ({"model": "smollm2"}, "found no model 'smollm2' .*; fetch it with: ifqa data smollm2"),
    ],
)
def test_what_cannot_be_tuned_is_refused_before_anything_is_written(
    start, tmp_path, monkeypatch, changes, message
):
    monkeypatch.chdir(tmp_path)
    with refused(message):
        tune(tmp_path / "adapter", start, **changes)
    assert not (tmp_path / "adapter").exists()
    with refused("none of 1 training questions has an answer"):
        bare = TrainingData([Question("t/0", "If?")], [[]])
        configure_trainer(Trainer, model=start).train(bare, tmp_path / "adapter")
    with refused("max_tokens = 4: no prompt fits"):
        tune(tmp_path / "adapter", start, max_tokens=4)
