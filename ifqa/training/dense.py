"""Training a dense retriever (`ifqa.retrieval.dense`) with in-batch and hard negatives, by sentence-transformers' trainer."""

import logging
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from ifqa.errors import IfqaError
from ifqa.models.hub import MINILM, model_folder, report_load_errors, weights_fingerprint
from ifqa.protocols import NO_DATA, Recipe, TrainingData
from ifqa.records import Passage, Question
from ifqa.scoring.measures.gold_recall import covers, word_grams
from ifqa.settings import Natural, NotNegative, Positive
from ifqa.storage.files import read_json
from ifqa.training import checkpoints
from ifqa.training.trainer import EpochTrainer, require_gold, select_hard_negatives

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
    from sentence_transformers.base.modules.module import Module
    from torch import nn

logger = logging.getLogger(__name__)

_Row = dict[str, str | list[str]]  # a question and its passages, by the names of columns


@dataclass(kw_only=True)
class Dense(EpochTrainer):
    """Train a dense retriever with in-batch negatives and hard negatives from BM25.

    The loss is softmax cross-entropy of a question's gold passage against all passages of its batch, including the hard negatives
    of other questions (dpr/models/biencoder.py:254-290). Unlike DPR, two questions never share a batch if a passage of one is
    gold for the other.

    Attributes:
        model: the model to start from: a sentence-transformers model, or a BERT if `two_encoders`.
        two_encoders: DPR's architecture, one BERT for questions and one for (title, text), vectors at [CLS]; otherwise one
            model for questions and texts without titles.
        scale: of the inner product in the loss: 20 for vectors of length 1, 1 for others.
        negatives, pool: hard negatives of a question in each pass, and the number of passages they are drawn from.
        shuffle_positives: draw one of a question's gold passages in each pass; otherwise take its first.
        warmup: steps before the highest rate (below 1: this share of all).
        weight_decay, clip: AdamW's decay, and the norm that gradients are clipped to.
        max_tokens: most tokens of a question, and of a passage with its title; the rest is cut off.
        micro_batch: texts that go through the network at once; 0 for all. Saves memory, costs a second forward pass
            (Gao et al. 2021), and leaves the gradient the same except for dropout.
    """

    runtime_only = ("micro_batch", *EpochTrainer.runtime_only)
    libraries = ("datasets", "accelerate")
    retrieved = 100
    recipes: ClassVar = {
        "small": Recipe("one encoder, fits a CPU"),
        # DPR conf/train/biencoder_nq.yaml, conf/encoder/hf_bert.yaml, conf/biencoder_train_cfg.yaml: batch is 8 GPUs of 16,
        # betas and epsilon of Adam are the defaults. Hard negatives are shuffled and the first is taken; of the positives
        # the first is taken, without shuffling (dpr/models/biencoder.py:173-190).
        "dpr": Recipe("as published; needs a GPU", {
            "model": "google-bert/bert-base-uncased", "two_encoders": True, "scale": 1.0, "epochs": 40, "batch": 128,
            "shuffle_positives": False, "warmup": 1237, "weight_decay": 0.0, "clip": 2.0, "seed": 12345,
        }),
    }  # fmt: skip

    model: str = MINILM
    two_encoders: bool = False
    scale: Annotated[float, Field(ge=0.01)] = 20.0
    epochs: Positive = 3
    batch: Positive = 32
    negatives: Natural = 1
    pool: Natural = 20
    shuffle_positives: bool = True
    learning_rate: NotNegative = 2e-5
    warmup: NotNegative = 0.1
    weight_decay: NotNegative = 0.01
    clip: NotNegative = 1.0
    max_tokens: Positive = 256
    micro_batch: Natural = 0

    def __post_init__(self) -> None:
        """Refuse more negatives than are drawn from."""
        super().__post_init__()
        if self.pool < self.negatives:
            raise IfqaError(f"training setting pool: wanted {self.negatives} or more, the negatives, found {self.pool}")

    def check_data(self, data: TrainingData, folder: Path) -> None:
        """Refuse questions without a gold passage, and a model that is not here or no BERT where one is wanted."""
        require_gold(data)
        kind = read_json(model_folder(self.model) / "config.json").get("model_type") if self.two_encoders else "bert"
        if kind != "bert":
            raise IfqaError(f"{self.model} cannot start DPR's two encoders: wanted a model of type bert, found {kind}")

    def train(self, data: TrainingData, folder: Path, dev: TrainingData = NO_DATA) -> None:
        """Train, and write a model that `ifqa.retrieval.vectors.encoders.open_encoder` opens, and a `manifest.json`.

        Two encoders are written into the folder's `ctx_encoder` and `question_encoder`, the layout of DPR's models on the hub.
        Questions without gold passages, and those without hard negatives, are left out. A gold passage takes its title from the
        ranked passage that covers it; if the other passages have titles and it has none, the network learns to tell the two
        kinds apart.
        """
        self.check_data(data, folder)
        start = model_folder(self.model)
        inputs = self.inputs(data) | {
            "recipe": self.recipe,
            "encoder": {"name": self.model, "sha256": weights_fingerprint(start)},
        }
        if not checkpoints.begin_training(folder, inputs):
            return
        batches = self._batches(data)
        logger.info(f"{folder}: {sum(map(len, batches)):,} gold passages in {len(batches):,} batches")
        trainer = self._trainer(batches, start, folder)
        record = checkpoints.run_trainer(trainer, folder)
        _save(folder, trainer.model, self.two_encoders)
        places = ["*_encoder/"] if self.two_encoders else ["", "[0-9]_*/"]
        weights = [f"{place}model*.safetensors" for place in places]
        checkpoints.finish_training(folder, inputs, record | {"batches": len(batches), "device": self.device}, weights)

    def _batches(self, data: TrainingData) -> list[list[_Row]]:
        """Rows of all epochs in training order, each with its own draws, grouped into batches without clashes.

        A row goes into the first open batch that it does not clash with; the last batches stay short.
        """
        questions, (wrong, usable) = data.questions, select_hard_negatives(data, self.negatives, self.pool)
        golds = [_gold_passages(*pair) for pair in zip(questions, data.rankings, strict=True)]
        titled = self.two_encoders and any(passage.title for n in usable for passage in golds[n] + wrong[n])
        gold_for = _questions_by_gold_text(questions, {passage.text for n in usable for passage in golds[n] + wrong[n]})
        full: list[list[_Row]] = []
        #: rows, their questions, questions that their passages are gold for
        waiting: list[tuple[list[_Row], set[int], set[int]]] = []
        for epoch in range(self.epochs):
            draw = random.Random(f"{self.seed} {epoch}")
            for n in draw.sample(usable, len(usable)):
                gold = draw.choice(golds[n]) if self.shuffle_positives else golds[n][0]
                passages = [gold, *draw.sample(wrong[n], self.negatives)]
                others = set().union(*(gold_for[passage.text] for passage in passages))
                open_to = (m for m, (_, held, taken) in enumerate(waiting) if n not in taken and not others & held)
                if (place := next(open_to, len(waiting))) == len(waiting):
                    waiting.append(([], set(), set()))
                rows, held, taken = waiting[place]
                rows.append(_row(questions[n], passages, self.two_encoders, titled))
                held.add(n)
                taken |= others
                if len(rows) == self.batch:
                    full.append(waiting.pop(place)[0])
        return full + [rows for rows, _, _ in waiting]

    def _trainer(self, batches: Sequence[Sequence[_Row]], start: Path, folder: Path) -> "SentenceTransformerTrainer":
        from datasets import Dataset
        from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
        from transformers import set_seed

        set_seed(self.seed)
        model = self._model(start)
        rows = [row for batch in batches for row in batch]
        arguments = checkpoints.training_arguments(
            SentenceTransformerTrainingArguments, folder, seed=self.seed, batch=self.batch, learning_rate=self.learning_rate,
            every=self.checkpoint_every, device=self.device, weight_decay=self.weight_decay, warmup=self.warmup,
            max_grad_norm=self.clip, batch_sampler=partial(_fixed_batches, sizes=[len(batch) for batch in batches]),
            router_mapping={name: "query" if name == "question" else "document" for name in rows[0]},
        )  # fmt: skip
        return SentenceTransformerTrainer(
            model=model, args=arguments, train_dataset=Dataset.from_list(rows), loss=self._loss(model)
        )

    def _model(self, start: Path) -> "SentenceTransformer":
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Router, Transformer

        def tower() -> list["Module"]:
            # Without token types BERT takes 0 for all tokens, in pairs too, as DPR does (dpr/models/biencoder.py:230)
            plain = {"text": {"return_token_type_ids": False}}
            bert = Transformer(str(start), max_seq_length=self.max_tokens, processing_kwargs=plain)
            return [bert, Pooling(bert.get_embedding_dimension(), pooling_mode="cls")]

        settings: dict[str, Any] = {"device": self.device, "prompts": {"query": "", "document": ""}}
        with report_load_errors(self.model, "a sentence-transformers model"):
            if self.two_encoders:
                return SentenceTransformer(modules=[Router.for_query_document(tower(), tower())], **settings)
            model = SentenceTransformer(str(start), local_files_only=True, **settings)
        if not any(isinstance(module, Normalize) for module in model) and self.scale > 1:
            logger.info(
                f"{self.model}: its vectors are not normalised, and scale is {self.scale:g}; set scale to about 1"
            )
        model.max_seq_length = self.max_tokens
        return model

    def _loss(self, model: "SentenceTransformer") -> "nn.Module":
        from sentence_transformers.sentence_transformer import losses
        from sentence_transformers.util import dot_score
        from torch import distributed

        many = distributed.is_available() and distributed.is_initialized()  # as in DPR (train_dense_encoder.py:622)
        settings: dict[str, Any] = {"scale": self.scale, "similarity_fct": dot_score, "gather_across_devices": many}
        if self.micro_batch:
            return losses.CachedMultipleNegativesRankingLoss(model, mini_batch_size=self.micro_batch, **settings)
        return losses.MultipleNegativesRankingLoss(model, **settings)


def _gold_passages(question: Question, ranking: Sequence[Passage]) -> list[Passage]:
    """A question's gold passages, with the titles of ranked passages that cover them."""
    golds = []
    for text in question.gold_passages:
        title = next((passage.title for passage in ranking if covers(passage.text, text)), "")
        golds.append(Passage("", title, text))
    return golds


def _questions_by_gold_text(questions: Sequence[Question], texts: Iterable[str]) -> dict[str, set[int]]:
    """Text -> the numbers of the questions whose gold passages it covers."""
    holders = defaultdict(set)
    for n, question in enumerate(questions):
        for gram in (gram for gold in question.gold_passages for gram in word_grams(gold)):
            holders[gram].add(n)
    gold_for = {}
    for text in texts:
        near = {n for gram in word_grams(text) for n in holders.get(gram, ())}
        gold_for[text] = {n for n in near if any(covers(text, gold) for gold in questions[n].gold_passages)}
    return gold_for


def _row(question: Question, passages: Sequence[Passage], two_encoders: bool, titled: bool) -> _Row:
    """A question with its passages; passages are (title, text) pairs if any has a title (a column holds one type)."""
    text = question.text.replace("’", "'") if two_encoders else question.text  # dpr/utils/data_utils.py:63-65
    row: _Row = {"question": text}
    for n, passage in enumerate(passages):
        row[f"negative_{n}" if n else "positive"] = [passage.title, passage.text] if titled else passage.text
    return row


def _fixed_batches(dataset: object, *, sizes: Sequence[int], **_: object) -> list[list[int]]:
    """A batch sampler for rows that are already grouped into batches of these sizes."""
    return [list(range(end - size, end)) for size, end in zip(sizes, accumulate(sizes), strict=True)]


def _save(folder: Path, model: Any, two_encoders: bool) -> None:
    """Write one encoder as sentence-transformers does, or two in the classes and layout of DPR's models on the hub."""
    from transformers import DPRConfig, DPRContextEncoder, DPRQuestionEncoder

    if not two_encoders:
        model.save_pretrained(str(folder), create_model_card=False)
        return
    for route, kind in (("document", DPRContextEncoder), ("query", DPRQuestionEncoder)):
        tower, name = model[0].sub_modules[route][0], kind.base_model_prefix
        config = {key: value for key, value in tower.auto_model.config.to_dict().items() if key != "model_type"}
        encoder = kind(DPRConfig(**config))
        tensors = tower.auto_model.state_dict().items()
        getattr(encoder, name).bert_model.load_state_dict({k: v for k, v in tensors if not k.startswith("pooler.")})
        encoder.save_pretrained(folder / name)
        tower.tokenizer.save_pretrained(folder / name)
