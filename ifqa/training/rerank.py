"""Training the reranker (`ifqa.retrieval.rerank`): a cross-encoder from all-MiniLM-L6-v2, by sentence-transformers' trainer."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict

from ifqa.errors import IfqaError
from ifqa.models.devices import half_precision
from ifqa.models.hub import NAME, WEIGHTS_SHA256, encoder_folder, quiet
from ifqa.models.transformer import BERT_LINEAR
from ifqa.progress import say
from ifqa.protocols import Place
from ifqa.records import Passage, Question
from ifqa.retrieval import cross_encoder
from ifqa.retrieval.cross_encoder import PREFIX
from ifqa.settings import Natural, NotNegative, Positive, checked
from ifqa.storage.files import create, write
from ifqa.training import resume
from ifqa.training.material import Material
from ifqa.training.negatives import hard_negatives

RANK = 32
MAX_TOKENS = 256  # question and passage together; a 100-word passage has 139 tokens on average, a question 30
_RELEVANT = 20.0  # label of the gold passage, against 0: the softmax over ListNet's labels is then one-hot


@checked("training setting", given=["material", "folder"])
def train(
    material: Material,
    folder: Path,
    *,
    start: Place = "",
    seed: Natural = 0,
    epochs: Positive = 2,
    rank: Positive = RANK,
    learning_rate: NotNegative = 1e-3,
    negatives: Positive = 3,
    pool: Positive = 20,
    batch: Positive = 8,
    weight_decay: NotNegative = 0.01,
    device: str = "cpu",
    checkpoint_every: Positive = 100,
) -> None:
    """Train, and write peft's `adapter_model.safetensors`, `adapter_config.json` and a `manifest.json`.

    The loss is softmax cross-entropy of a gold passage against `negatives` hard negatives (ListNet, Cao et al. 2007, with
    one relevant passage). An interrupted training resumes from its newest checkpoint.

    Args:
        material: questions without gold passages are left out. Negatives are drawn from the rankings. Ranked
            and gold passages should be cut in the same way, or the network learns to tell the two kinds apart.
        folder: the adapter is written here.
        start: a folder that such a training wrote, with the same rank, to start from instead of all-MiniLM-L6-v2 alone.
        seed: for initialisation, order, and draws of negatives.
        epochs, rank, learning_rate, negatives, batch, weight_decay: passes over the questions, rank of the LoRA adapters
            (Hu et al. 2022) on all linear layers, highest rate of AdamW (after a tenth of the steps, then linear to 0),
            negatives for a question in each pass, questions a step, AdamW's decay.
        pool: number of hard negatives of a question that each pass draws from.
        device: "cpu" or "cuda"; uses bfloat16 if the device multiplies in it.
        checkpoint_every: steps between checkpoints.

    Raises:
        IfqaError: nothing to train on, a setting out of range, `start` is no such training or of another rank or split family,
            or `folder` holds another training.
    """
    refuse(material, folder, start=start, rank=rank)
    questions, rankings = material.questions, material.rankings
    before = cross_encoder.manifest_of(start) if start else {}
    settings = {"seed": seed, "epochs": epochs, "rank": rank, "learning_rate": learning_rate, "negatives": negatives,
                "pool": pool, "batch": batch, "weight_decay": weight_decay, "max_tokens": MAX_TOKENS}  # fmt: skip
    inputs = {
        "family": material.family,
        "sources": before.get("sources", {}) | material.sources,
        "settings": settings,
        "questions": resume.identity(questions, rankings),
        "encoder": {"name": NAME, "sha256": WEIGHTS_SHA256},
    } | ({"start": {"name": start, "sha256": cross_encoder.identity(start)}} if start else {})
    if not resume.begin(folder, inputs):
        return
    rows = _rows(questions, rankings, epochs, negatives, pool, seed)
    if not rows:
        raise IfqaError(
            f"none of {len(questions)} training questions has a gold passage and {negatives} hard negatives; wanted "
            "annotated questions, and a corpus that holds more than their gold passages"
        )
    say(f"{folder}: {len(rows):,} lists of 1 gold passage and {negatives} hard negatives")
    trainer = _trainer(rows, folder, settings, start, device, checkpoint_every)
    made = resume.fit(trainer, folder, "training the reranker")
    _save(folder, trainer.model)
    resume.finish(folder, inputs, made | {"lists": len(rows), "device": device}, ["adapter_*"])


def refuse(material: Material, folder: Path, *, start: Place = "", rank: int = RANK, **_: object) -> None:
    """Raise the errors of `train` that need no rankings, before passages are retrieved."""
    material.require_gold()
    if not start:
        return
    before = cross_encoder.manifest_of(start)
    if not cross_encoder.is_own(before):  # a language model's adapter would be left unread, without a word
        raise IfqaError(f"start = {start}: wanted a folder that `ifqa train rerank` wrote")
    if before["family"] not in ("", material.family):
        raise IfqaError(
            f"{start} was trained on {before['family']}; wanted a start that was not, or was on {material.family}"
        )
    if before["settings"]["rank"] != rank:
        raise IfqaError(
            f"rank = {rank}: {start} has {before['settings']['rank']}, and one that starts there has the same"
        )


class _Row(TypedDict):
    query: str
    passages: list[str]
    labels: list[float]


def _rows(
    questions: Sequence[Question],
    rankings: Sequence[Sequence[Passage]],
    epochs: int,
    negatives: int,
    pool: int,
    seed: int,
) -> list[_Row]:
    """One row for each question and epoch, in training order, each with its own draw of a gold passage and negatives."""
    wrong = [hard_negatives(*pair, pool) for pair in zip(questions, rankings, strict=True)]
    usable = [n for n, question in enumerate(questions) if question.gold_passages and len(wrong[n]) >= negatives]
    rows: list[_Row] = []
    for epoch in range(epochs):
        draw = random.Random(f"{seed} {epoch}")
        draw.shuffle(usable)
        for n in usable:
            texts = [draw.choice(questions[n].gold_passages)]
            texts += [one.text for one in draw.sample(wrong[n], negatives)]
            labels = [_RELEVANT, *[0.0] * negatives]
            rows.append({"query": questions[n].text, "passages": texts, "labels": labels})
    return rows


def _trainer(
    rows: list[_Row], folder: Path, settings: dict[str, Any], start: str, device: str, checkpoint_every: int
) -> Any:
    import torch
    from datasets import Dataset
    from peft import LoraConfig, set_peft_model_state_dict
    from sentence_transformers import CrossEncoder
    from sentence_transformers.cross_encoder import CrossEncoderTrainer, CrossEncoderTrainingArguments
    from sentence_transformers.cross_encoder.losses import ListNetLoss
    from transformers import set_seed

    quiet()
    set_seed(settings["seed"])
    model = CrossEncoder(
        str(encoder_folder()), num_labels=1, max_length=MAX_TOKENS, device=device, activation_fn=torch.nn.Identity()
    )
    model.add_adapter(
        LoraConfig(
            r=settings["rank"],
            lora_alpha=settings["rank"],
            target_modules=_targets(),
            modules_to_save=["classifier"],
            task_type="SEQ_CLS",
        )
    )
    if start:
        given = cross_encoder.tensors_of(start)
        set_peft_model_state_dict(model.model, {name.removeprefix(PREFIX): one.float() for name, one in given.items()})

    arguments = CrossEncoderTrainingArguments(
        output_dir=str(folder / resume.CHECKPOINTS), num_train_epochs=1, per_device_train_batch_size=settings["batch"],
        learning_rate=settings["learning_rate"], weight_decay=settings["weight_decay"], warmup_steps=0.1,
        lr_scheduler_type="linear", bf16=half_precision(device) is torch.bfloat16, use_cpu=device == "cpu",
        save_strategy="steps", save_steps=checkpoint_every, save_total_limit=2, logging_steps=checkpoint_every,
        report_to="none", disable_tqdm=True, seed=settings["seed"], batch_sampler=resume.in_order,
    )  # fmt: skip
    return CrossEncoderTrainer(
        model=model, args=arguments, train_dataset=Dataset.from_list(rows), loss=ListNetLoss(model)
    )


def _targets() -> str:
    """A regular expression for peft that matches the full names of all linear layers and the pooler."""
    layers = "|".join(name.replace(".", r"\.") for name in BERT_LINEAR)
    return rf".*(encoder\.layer\.\d+\.({layers})|pooler\.dense)"


def _save(folder: Path, model: Any) -> None:
    """Write the adapter in half precision, under peft's names, with peft's configuration."""
    from safetensors.torch import load_file, save

    model.model.save_pretrained(str(folder / resume.CHECKPOINTS / "adapter"))
    made = folder / resume.CHECKPOINTS / "adapter"
    tensors = {
        name: tensor.half().contiguous() for name, tensor in load_file(made / "adapter_model.safetensors").items()
    }
    with create(folder / "adapter_model.safetensors") as handle:
        write(handle, save(tensors, {"format": "pt"}))
    config = (made / "adapter_config.json").read_bytes().replace(str(encoder_folder()).encode(), NAME.encode())
    with create(folder / "adapter_config.json") as handle:
        write(handle, config)
