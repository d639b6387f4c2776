"""Tuning of a language model: the reader's own prompts, the loss on the answer alone, kill and resume, and split families."""

import json
from pathlib import Path

import pytest
import tiny_chat
import torch
import torch.nn.functional as F
from peft import PeftModel
from refusals import refused
from short_trainings import Killed, ended_at
from transformers import AutoModelForCausalLM

from ifqa.llms.hf import HF
from ifqa.models.causal_lm import find_causal_lm
from ifqa.pipeline import system as opening
from ifqa.pipeline.run import Run
from ifqa.pipeline.system import System, refuse_other_families
from ifqa.plugins import open_benchmark
from ifqa.prompting.prompts import load_prompt
from ifqa.protocols import TrainingData
from ifqa.reading.llm import Llm
from ifqa.records import Passage, Question
from ifqa.training.llm import Llm as Trainer
from ifqa.training.llm import PromptTokenizer, answer_rows, batch_loss, collate, preference_rows
from ifqa.training.trainer import configure_trainer

NAMES = "Ada Bo Cy Di".split()
TOWNS = "Bath Wick Lund Hove".split()
TEXTS = [f"{name} was born in {town} and left it." for name, town in zip(NAMES, TOWNS, strict=True)]
QUESTIONS = [
    Question(f"t/{n}", f"If {name} had stayed, where?", (town,), (TEXTS[n],))
    for n, (name, town) in enumerate(zip(NAMES, TOWNS, strict=True))
]
RANKINGS = [[Passage(f"p{m}", "", TEXTS[m]) for m in (n, (n + 1) % 4)] for n in range(4)]
MATERIAL = TrainingData(QUESTIONS, RANKINGS, "ifqa/full", {"train.json": "ab"})
SETTINGS = {
    "epochs": 2, "rank": 4, "batch": 2, "device_batch": 2, "passages": 2, "max_tokens": 400, "checkpoint_every": 2,
    "learning_rate": 1e-2, "device": "cpu",
}  # fmt: skip
ALL = {"passages": 2, "alone": 0.5, "epochs": 3, "batch": 2, "seed": 0}
PAIRS = {"epochs": 1, "batch": 2, "seed": 0}
FILES = {"adapter_model.safetensors", "adapter_config.json", "manifest.json"}


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    return str(tiny_chat.save(tmp_path_factory.mktemp("start") / "tiny"))


def opened(model, folder):
    return HF(model=model, device="cpu", precision="float32", store=str(folder / "completions"))


def tuned(folder, start, **changes):
    configure_trainer(Trainer, **{"model": start, **SETTINGS, **changes}).train(MATERIAL, folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory, start):
    """The folders of two finished tunings: on answers, and on preferences from the first one on."""
    folders = {name: tmp_path_factory.mktemp(name) for name in ("sft", "dpo")}
    tuned(folders["sft"], start)
    tuned(folders["dpo"], str(folders["sft"]), method="dpo")
    return folders


@pytest.mark.parametrize("chat", [True, False])
def test_a_row_is_the_readers_prompt_the_answer_and_the_end(tmp_path, chat):
    template = tiny_chat.TEMPLATE if chat else None
    model = opened(str(tiny_chat.save(tmp_path / "tiny", template=template)), tmp_path)
    asks = PromptTokenizer(model, load_prompt("short"), 400)
    row = asks.row(QUESTIONS[0], RANKINGS[0], "Bath")
    reader = Llm(model, prompt="short")
    [request] = reader.requests(QUESTIONS[:1], RANKINGS[:1])
    assert row is not None
    assert row["prompt"] == model.ids(request)
    [answer] = row["answers"]
    assert answer[-1] == model.tokenizer.eos_token_id
    said = model.tokenizer.decode(row["prompt"] + answer[:-1])
    assert said.endswith("assistant\nAnswer: Bath" if chat else "where?\nAnswer: Bath")
    assert load_prompt("short").parse(model.tokenizer.decode(answer[:-1])).answer == "Bath"
    assert PromptTokenizer(model, load_prompt("short"), 40).row(QUESTIONS[0], RANKINGS[0], "Bath") is None


def test_prompts_mix_gold_passages_alone_with_retrieved_ones(start, tmp_path):
    model = opened(start, tmp_path)
    asks = PromptTokenizer(model, load_prompt("short"), 400)
    shown = [model.tokenizer.decode(row["prompt"]) for row in answer_rows(MATERIAL, asks, **ALL)]
    assert len(shown) == 3 * len(QUESTIONS)
    counts = [sum(text in one for text in TEXTS) for one in shown]
    assert set(counts) == {1, 2}
    gold = {question.text: question.gold_passages[0] for question in QUESTIONS}
    assert all(any(text in one and gold[text] in one for text in gold) for one in shown)
    for share, count in ((0.0, 2), (1.0, 1)):
        rows = answer_rows(MATERIAL, asks, **ALL | {"alone": share})
        assert {sum(text in model.tokenizer.decode(row["prompt"]) for text in TEXTS) for row in rows} == {count}


def logits_of(network, ids):
    return network(torch.tensor([ids])).logits[0]


def test_the_loss_is_that_of_each_answer_alone(start, tmp_path):
    asks = PromptTokenizer(opened(start, tmp_path), load_prompt("short"), 400)
    network = AutoModelForCausalLM.from_pretrained(start)
    rows = answer_rows(MATERIAL, asks, **ALL)[:3]
    expected = []
    for row in rows:
        [answer] = row["answers"]
        logits = logits_of(network, row["prompt"] + answer)[len(row["prompt"]) - 1 : -1]
        expected.append(F.cross_entropy(logits, torch.tensor(answer)))
    loss = batch_loss(network, collate(rows, 0), 0.1).item()
    assert loss == pytest.approx(torch.stack(expected).mean().item(), rel=1e-4)


def test_the_preference_loss_is_the_published_formula(start, tmp_path):
    asks = PromptTokenizer(opened(start, tmp_path), load_prompt("short"), 400)
    network = AutoModelForCausalLM.from_pretrained(start)
    rows = preference_rows(MATERIAL, asks, **PAIRS)[:3]
    expected = []
    for n, row in enumerate(rows):
        row["reference"] = [-3.0 - n, -4.0]
        gains = []
        for answer, before in zip(row["answers"], row["reference"], strict=True):
            logits = logits_of(network, row["prompt"] + answer)[len(row["prompt"]) - 1 : -1]
            gains.append(-F.cross_entropy(logits, torch.tensor(answer), reduction="sum").item() - before)
        expected.append(-F.logsigmoid(torch.tensor(0.3 * (gains[0] - gains[1]))))
    loss = batch_loss(network, collate(rows, 0), 0.3).item()
    assert loss == pytest.approx(torch.stack(expected).mean().item(), rel=1e-4)


@pytest.mark.parametrize("method", ["sft", "dpo"])
def test_a_killed_tuning_goes_on_to_the_same_weights(whole, start, tmp_path, method):
    model = start if method == "sft" else str(whole["sft"])
    with ended_at(4), pytest.raises(Killed):
        tuned(tmp_path / "cut", model, method=method)
    assert (tmp_path / "cut" / "checkpoints" / "checkpoint-2").exists()
    cut = tuned(tmp_path / "cut", model, method=method)
    assert cut["adapter_model.safetensors"] == (whole[method] / "adapter_model.safetensors").read_bytes()
    assert cut.keys() == {path.name for path in whole[method].iterdir()} == FILES


def test_an_adapter_reads_as_peft_does_and_answers_what_it_learnt(start, tmp_path):
    tuned(tmp_path / "made", start, epochs=40, rank=32, batch=4, device_batch=4, alone=1.0)
    model = opened(str(tmp_path / "made"), tmp_path)
    assert model.family == "ifqa/full"
    assert model.name.startswith("made@")
    reader = Llm(model, prompt="short")
    assert reader.trained_on == {"ab"}
    found = reader.answer(QUESTIONS, [[ranking[0]] for ranking in RANKINGS])
    assert [one.answer for one in found] == TOWNS
    base = AutoModelForCausalLM.from_pretrained(start)
    whole = PeftModel.from_pretrained(base, str(tmp_path / "made")).eval()
    ids = list(range(3, 60))
    with torch.no_grad():
        assert torch.allclose(logits_of(whole, ids), logits_of(model.model, ids), atol=1e-3)
    assert opened(start, tmp_path).name != model.name


def test_the_manifest_says_what_was_tuned_on_what(whole, start):
    made = {name: json.loads((folder / "manifest.json").read_text()) for name, folder in whole.items()}
    assert made["sft"]["family"] == "ifqa/full"
    assert made["sft"]["base"] == made["dpo"]["base"] == {"name": start, "sha256": find_causal_lm(start).fingerprint}
    assert made["sft"]["start"] == {}
    assert made["dpo"]["start"] == {"name": str(whole["sft"]), "sha256": find_causal_lm(str(whole["sft"])).fingerprint}
    assert made["sft"]["record"]["steps"] == 4
    assert made["sft"]["settings"]["learning_rate"] == 1e-2
    assert set(made["sft"]["record"]["files"]) == FILES - {"manifest.json"}
    modules = json.loads((whole["sft"] / "adapter_config.json").read_text())["target_modules"]
    assert modules == sorted(modules) != []


def test_an_adapter_is_not_tested_or_tuned_on_the_other_family(whole, tmp_path, monkeypatch):
    from ifqa.config.experiment import parse_experiment

    tables = {
        "benchmark": "ifqa", "split": "few-dev", "reader": {"name": "llm", "prompt": "closed-book"},
        "llm": {"name": "hf", "model": str(whole["sft"]), "device": "cpu"},
    }  # fmt: skip
    few, full = (parse_experiment("x", tables | {"split": split}, "x", tmp_path) for split in ("few-dev", "full-dev"))
    said = "language model 'hf' was trained on ifqa/full and may not be tested on ifqa/few"
    with refused(said):
        refuse_other_families(Run(few))
    with refused(said):
        _ = System(Run(few)).reader
    refuse_other_families(Run(full))
    assert System(Run(full)).reader.trained_on == {"ab"}
    monkeypatch.setattr(opening, "sha256", lambda path: "ab")
    monkeypatch.setattr(type(open_benchmark("ifqa", tmp_path)), "files", lambda *_: [Path("train.json")])
    assert opening.was_trained_on(System(Run(full)).reader, Run(full))
    with refused("was trained on ifqa/full and may not be trained further on ifqa/few"):
        data = TrainingData(QUESTIONS, RANKINGS, "ifqa/few")
        configure_trainer(Trainer, model=str(whole["sft"])).train(data, tmp_path / "new")


def test_an_adapter_on_another_model_is_refused(whole, start, tmp_path):
    folder = tmp_path / "moved"
    folder.mkdir()
    for name in FILES:
        (folder / name).write_bytes((whole["sft"] / name).read_bytes())
    other = tiny_chat.save(tmp_path / "other", seed=1)
    settings = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps(settings | {"base_model_name_or_path": str(other)}))
    with refused(r"was trained on another .*other .*; train it again"):
        find_causal_lm(str(folder))
    (folder / "adapter_model.safetensors").unlink()
    with refused(r"no adapter_model\.safetensors; wanted an adapter with weights in safetensors"):
        find_causal_lm(str(folder))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"prompt": "counterfactual"}, "prompt 'counterfactual' shows reasoning"), ({"batch": 3}, "wanted a multiple of device_batch"),
        ({"method": "ppo"}, "'method': unknown value 'ppo'"), ({"alone": 2.0}, "'alone': wanted a number from 0"),
        ({"model": "smollm2"}, "smollm2 is not installed; fetch it with: ifqa data smollm2"),
    ],
)  # fmt: skip
def test_what_cannot_be_tuned_is_refused_before_anything_is_written(start, tmp_path, monkeypatch, changes, said):
    monkeypatch.chdir(tmp_path)
    with refused(said):
        tuned(tmp_path / "made", start, **changes)
    assert not (tmp_path / "made").exists()
    bare = [Question("t/0", "If?")], [Question("t/0", "If?", ("nothing much",), TEXTS[:1])]
    ends = "none of 1 training questions has an answer", "has a name or number as answer"
    for questions, method, end in zip(bare, ("sft", "dpo"), ends, strict=True):
        with refused(end):
            configure_trainer(Trainer, model=start, method=method).train(
                TrainingData(questions, [[]]), tmp_path / "made"
            )
