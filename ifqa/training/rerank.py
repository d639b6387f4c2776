"""Training the reranker (`ifqa.retrieval.rerank`): a cross-encoder from all-MiniLM-L6-v2, by sentence-transformers' trainer."""

import logging
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ifqa.models.hub import MINILM, WEIGHTS_SHA256, minilm_folder, silence_transformers
from ifqa.protocols import NO_DATA, TrainingData
from ifqa.settings import NotNegative, Positive
from ifqa.training import checkpoints
from ifqa.training.trainer import EpochTrainer, require_gold, select_hard_negatives

logger = logging.getLogger(__name__)

MAX_TOKENS = 256  # question and passage together; a 100-word passage has 139 tokens on average, a question 30
_RELEVANT = 20.0  # label of the gold passage, against 0: the softmax over ListNet's labels is then one-hot


@dataclass(kw_only=True)
class Rerank(EpochTrainer):
    """Train the reranker: a cross-encoder, as an adapter on all-MiniLM-L6-v2.

    The loss is softmax cross-entropy of a gold passage against `negatives` hard negatives (ListNet, Cao et al. 2007, with one
    relevant passage).

    Attributes:
        rank: of the LoRA adapters (Hu et al. 2022) on all linear layers.
        negatives, pool: negatives of a question in each pass, and the number of hard negatives that they are drawn from.
        weight_decay: AdamW's.
    """

    libraries = ("peft", "datasets", "accelerate")
    retrieved = 20

    epochs: Positive = 2
    rank: Positive = 32
    learning_rate: NotNegative = 1e-3
    negatives: Positive = 3
    pool: Positive = 20
    batch: Positive = 8
    weight_decay: NotNegative = 0.01

    def check_data(self, data: TrainingData, folder: Path) -> None:
        """Refuse questions without a gold passage."""
        require_gold(data)

    def train(self, data: TrainingData, folder: Path, dev: TrainingData = NO_DATA) -> None:
        """Train, and write peft's `adapter_model.safetensors`, `adapter_config.json` and a `manifest.json`.

        Negatives are drawn from the rankings. Ranked and gold passages should be cut in the same way, or the network learns to
        tell the two kinds apart.
        """
        self.check_data(data, folder)
        inputs = self.inputs(data) | {"encoder": {"name": MINILM, "sha256": WEIGHTS_SHA256}}
        inputs["settings"]["max_tokens"] = MAX_TOKENS
        if not checkpoints.begin_training(folder, inputs):
            return
        rows = self._rows(data)
        logger.info(f"{folder}: {len(rows):,} lists of 1 gold passage and {self.negatives} hard negatives")
        trainer = self._trainer(rows, folder)
        record = checkpoints.run_trainer(trainer, folder)
        checkpoints.save_adapter(trainer.model.model, folder, MINILM)
        checkpoints.finish_training(folder, inputs, record | {"lists": len(rows), "device": self.device}, ["adapter_*"])

    def _rows(self, data: TrainingData) -> list[dict[str, object]]:
        """One row for each question and epoch, in training order, each with its own draw of a gold passage and negatives."""
        questions, (wrong, usable) = data.questions, select_hard_negatives(data, self.negatives, self.pool)
        rows: list[dict[str, object]] = []
        for epoch in range(self.epochs):
            draw = random.Random(f"{self.seed} {epoch}")
            draw.shuffle(usable)
            for n in usable:
                texts = [draw.choice(questions[n].gold_passages)]
                texts += [passage.text for passage in draw.sample(wrong[n], self.negatives)]
                labels = [_RELEVANT, *[0.0] * self.negatives]
                rows.append({"query": questions[n].text, "passages": texts, "labels": labels})
        return rows

    def _trainer(self, rows: list[dict[str, object]], folder: Path) -> Any:
        import torch
        from datasets import Dataset
        from peft import LoraConfig
        from sentence_transformers import CrossEncoder
        from sentence_transformers.cross_encoder import CrossEncoderTrainer, CrossEncoderTrainingArguments
        from sentence_transformers.cross_encoder.losses import ListNetLoss
        from transformers import set_seed

        from ifqa.models.transformer import BERT_LINEAR

        silence_transformers()
        set_seed(self.seed)
        model = CrossEncoder(
            str(minilm_folder()), num_labels=1, max_length=MAX_TOKENS, device=self.device, activation_fn=torch.nn.Identity()
        )  # fmt: skip
        layers = "|".join(name.replace(".", r"\.") for name in BERT_LINEAR)
        targets = rf".*(encoder\.layer\.\d+\.({layers})|pooler\.dense)"  # full names, for peft
        lora = LoraConfig(
            r=self.rank, lora_alpha=self.rank, target_modules=targets, modules_to_save=["classifier"], task_type="SEQ_CLS"
        )  # fmt: skip
        model.add_adapter(lora)
        arguments = checkpoints.training_arguments(
            CrossEncoderTrainingArguments, folder, seed=self.seed, batch=self.batch, learning_rate=self.learning_rate,
            every=self.checkpoint_every, device=self.device, weight_decay=self.weight_decay,
            batch_sampler=checkpoints.sequential_batch_sampler,
        )  # fmt: skip
        return CrossEncoderTrainer(
            model=model, args=arguments, train_dataset=Dataset.from_list(rows), loss=ListNetLoss(model)
        )
