"""Trains the reranker (`ifqa.retrieval.rerank`), a cross-encoder on all-MiniLM-L6-v2, with
sentence-transformers.
"""

import logging
import random
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from ifqa.models.loading import silence_transformers
from ifqa.models.places import MINILM, WEIGHTS_SHA256, minilm_folder
from ifqa.protocols import NO_DATA, TrainingData
from ifqa.settings import NotNegative, Positive
from ifqa.training import checkpoints
from ifqa.training.trainer import EpochTrainer, require_gold, require_pool, select_hard_negatives

logger = logging.getLogger(__name__)

# Question and passage together; a 100-word passage has 139 on average, a question 30
MAX_TOKENS = 256
# Label of a gold passage, 0 being the others': ListNet's softmax over labels is then one-hot
_RELEVANT = 20.0


class Rerank(EpochTrainer):
    """Train the reranker: a cross-encoder, as an adapter on all-MiniLM-L6-v2.

    The loss is softmax cross-entropy of a gold passage against hard negatives (ListNet, Cao et al.
    2007).
    """

    libraries = ("datasets",)
    retrieved = 20

    class Settings(EpochTrainer.Settings):
        epochs: Positive = 2
        """Passes over the questions."""
        rank: Positive = 32
        """The rank of the LoRA adapters (Hu et al. 2022) on all linear layers."""
        learning_rate: NotNegative = 1e-3
        """The highest learning rate, after a tenth of the steps; it then falls to 0."""
        negatives: Positive = 3
        """Hard negatives per question and pass."""
        pool: Annotated[int, Field(ge=1, le=20)] = 20
        """Hard negatives to draw from."""
        batch: Positive = 8
        """Questions per step of AdamW."""
        weight_decay: NotNegative = 0.01
        """The weight decay of AdamW."""

    settings: Settings

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        require_pool(settings.pool, settings.negatives)

    def check_data(self, dataset: TrainingData, folder: Path) -> None:
        require_gold(dataset)

    def train(self, dataset: TrainingData, folder: Path, dev: TrainingData = NO_DATA) -> None:
        """Train, and write peft's adapter.

        Ranked passages should be cut like gold ones, or the network learns the difference.
        """
        self.check_data(dataset, folder)
        inputs = self.inputs(dataset) | {"encoder": {"name": MINILM, "sha256": WEIGHTS_SHA256}}
        inputs["settings"]["max_tokens"] = MAX_TOKENS
        if not checkpoints.begin_training(folder, inputs):
            return
        rows = self._rows(dataset)
        negatives = self.settings.negatives
        logger.info(
            f"{folder}: {len(rows):,} lists of 1 gold passage and {negatives} hard negatives"
        )
        trainer = self._trainer(rows, folder)
        record = checkpoints.run_trainer(trainer, folder)
        checkpoints.save_adapter(trainer.model.model, folder, MINILM)
        checkpoints.finish_training(
            folder, inputs, record | {"lists": len(rows), "device": self.device}, ["adapter_*"]
        )

    def _rows(self, dataset: TrainingData) -> list[dict[str, object]]:
        """A row per question and epoch, in training order, with a gold passage and negatives drawn
        at random.
        """
        settings = self.settings
        questions = dataset.questions
        negatives, usable = select_hard_negatives(dataset, settings.negatives, settings.pool)
        labels = [_RELEVANT, *[0.0] * settings.negatives]
        rows: list[dict[str, object]] = []
        for epoch in range(settings.epochs):
            draw = random.Random(f"{settings.seed} {epoch}")
            draw.shuffle(usable)
            for n in usable:
                texts = [draw.choice(questions[n].gold_passages)]
                texts += [passage.text for passage in draw.sample(negatives[n], settings.negatives)]
                rows.append({"query": questions[n].text, "passages": texts, "labels": labels})
        return rows

    def _trainer(self, rows: list[dict[str, object]], folder: Path) -> Any:
        import torch
        from datasets import Dataset
        from peft import LoraConfig
        from sentence_transformers import CrossEncoder
        from sentence_transformers.cross_encoder import (
            CrossEncoderTrainer,
            CrossEncoderTrainingArguments,
        )
        from sentence_transformers.cross_encoder.losses import ListNetLoss
        from transformers import set_seed

        from ifqa.models.transformer import BERT_LINEAR

        silence_transformers()
        set_seed(self.settings.seed)
        rank = self.settings.rank
        options: dict[str, Any] = {
            "max_length": MAX_TOKENS,
            "device": self.device,
            "activation_fn": torch.nn.Identity(),
        }
        model = CrossEncoder(str(minilm_folder()), num_labels=1, **options)
        layers = "|".join(name.replace(".", r"\.") for name in BERT_LINEAR)
        targets = rf".*(encoder\.layer\.\d+\.({layers})|pooler\.dense)"  # full names, for peft
        lora: dict[str, Any] = {
            "r": rank,
            "lora_alpha": rank,
            "target_modules": targets,
            "modules_to_save": ["classifier"],
        }
        model.add_adapter(LoraConfig(**lora, task_type="SEQ_CLS"))
        arguments = checkpoints.training_arguments(
            CrossEncoderTrainingArguments,
            folder,
            self.step_settings(weight_decay=self.settings.weight_decay),
            batch_sampler=checkpoints.sequential_batch_sampler,
        )
        dataset = Dataset.from_list(rows)
        loss = ListNetLoss(model)
        return CrossEncoderTrainer(model=model, args=arguments, train_dataset=dataset, loss=loss)
