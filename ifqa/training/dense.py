"""Trains a dense retriever (`ifqa.retrieval.dense`) on in-batch and hard negatives, with
sentence-transformers.
"""

import logging
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from ifqa.errors import ConfigError
from ifqa.models.loading import report_load_errors, weights_fingerprint
from ifqa.models.places import MINILM, model_folder
from ifqa.protocols import NO_DATA, Recipe, TrainingData
from ifqa.records import Passage, Question
from ifqa.scoring.gold_overlap import covers, word_grams
from ifqa.settings import Natural, NotNegative, Positive
from ifqa.storage.files import read_json
from ifqa.training import checkpoints
from ifqa.training.trainer import (
    EpochTrainer,
    covers_gold,
    require_gold,
    require_pool,
    select_hard_negatives,
)

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
    from sentence_transformers.base.modules.module import Module
    from torch import nn

logger = logging.getLogger(__name__)

_Row = dict[str, str | list[str]]  # column -> a question or a passage


class Dense(EpochTrainer):
    """Train a dense retriever with in-batch negatives and hard negatives from BM25.

    The loss is softmax cross-entropy of the gold passage against all passages of the batch, other
    questions' hard negatives included (dpr/models/biencoder.py:254-290). Unlike in DPR, no batch
    has a passage that is gold for another of its questions.
    """

    libraries = ("datasets",)
    retrieved = 100
    recipes: ClassVar = {
        "small": Recipe("one encoder, fits a CPU"),
        # DPR conf/train/biencoder_nq.yaml, conf/encoder/hf_bert.yaml,
        # conf/biencoder_train_cfg.yaml: 8 GPUs with 16 rows each, Adam's defaults. DPR draws a hard
        # negative and takes the first positive (dpr/models/biencoder.py:173-190)
        "dpr": Recipe(
            "as published; needs a GPU",
            {
                "model": "google-bert/bert-base-uncased",
                "two_encoders": True,
                "scale": 1.0,
                "epochs": 40,
                "batch": 128,
                "shuffle_positives": False,
                "warmup": 1237,
                "weight_decay": 0.0,
                "clip": 2.0,
                "seed": 12345,
            },
        ),
    }

    class Settings(EpochTrainer.Settings):
        model: str = MINILM
        """The start: a sentence-transformers model, or a BERT if `two_encoders`."""
        two_encoders: bool = False
        """Whether to train DPR's two BERTs, for questions and for titles with texts, with vectors
        at [CLS]; else one encoder, which reads no titles.
        """
        scale: Annotated[float, Field(ge=0.01)] = 20.0
        """The factor of inner products: 20 for vectors of length 1, 1 for others."""
        epochs: Positive = 3
        """Passes over the questions."""
        batch: Positive = 32
        """Questions per step of AdamW."""
        negatives: Natural = 1
        """Hard negatives per question and pass."""
        pool: Annotated[int, Field(ge=0, le=100)] = 20
        """Passages to draw the hard negatives from."""
        shuffle_positives: bool = True
        """Whether to draw a gold passage in each pass; else the first is used."""
        learning_rate: NotNegative = 2e-5
        """The highest learning rate; it then falls to 0."""
        warmup: NotNegative = 0.1
        """Steps before the highest rate; below 1, a share of all steps."""
        weight_decay: NotNegative = 0.01
        """The weight decay of AdamW."""
        clip: NotNegative = 1.0
        """The norm that gradients are clipped to."""
        max_tokens: Positive = 256
        """Most tokens of a question, or of a passage with its title."""

    settings: Settings

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        require_pool(settings.pool, settings.negatives)

    def check_data(self, dataset: TrainingData, folder: Path) -> None:
        require_gold(dataset)
        if not self.settings.two_encoders:
            return
        model = self.settings.model
        kind = read_json(model_folder(model) / "config.json").get("model_type")
        if kind != "bert":
            raise ConfigError(
                f"{model} cannot start two encoders: wanted a model of type bert, found {kind}"
            )

    def train(self, dataset: TrainingData, folder: Path, dev: TrainingData = NO_DATA) -> None:
        """Train, and write a model for `ifqa.retrieval.vectors.encoders.open_encoder`, and a
        `manifest.json`.

        Two encoders go to `ctx_encoder` and `question_encoder`, as for DPR on the hub. A gold
        passage gets the title of the ranked passage that covers it: if only negatives had titles,
        the network would learn to tell the two kinds apart.
        """
        self.check_data(dataset, folder)
        settings = self.settings
        start = model_folder(settings.model)
        encoder = {"name": settings.model, "sha256": weights_fingerprint(start)}
        inputs = self.inputs(dataset) | {"recipe": self.recipe, "encoder": encoder}
        if not checkpoints.begin_training(folder, inputs):
            return
        batches = self._batches(dataset)
        logger.info(
            f"{folder}: {sum(map(len, batches)):,} gold passages in {len(batches):,} batches"
        )
        trainer = self._trainer(batches, start, folder)
        record = checkpoints.run_trainer(trainer, folder)
        _save(folder, trainer.model, settings.two_encoders)
        folders = ["*_encoder/"] if settings.two_encoders else ["", "[0-9]_*/"]
        weights = [f"{name}model*.safetensors" for name in folders]
        checkpoints.finish_training(
            folder, inputs, record | {"batches": len(batches), "device": self.device}, weights
        )

    def _batches(self, dataset: TrainingData) -> list[list[_Row]]:
        """The batches of all epochs in training order; passages are drawn for each row.

        A row goes into the first open batch where no passage is gold for another question; the last
        batches stay short.
        """
        settings = self.settings
        questions = dataset.questions
        (negatives, usable) = select_hard_negatives(dataset, settings.negatives, settings.pool)
        golds = [_gold_passages(*pair) for pair in zip(questions, dataset.rankings, strict=True)]
        candidates = [passage for n in usable for passage in golds[n] + negatives[n]]
        titled = settings.two_encoders and any(passage.title for passage in candidates)
        gold_for = _questions_by_gold_text(questions, {passage.text for passage in candidates})
        full: list[list[_Row]] = []
        #: rows, their questions, the questions that their passages are gold for
        waiting: list[tuple[list[_Row], set[int], set[int]]] = []
        for epoch in range(settings.epochs):
            draw = random.Random(f"{settings.seed} {epoch}")
            for n in draw.sample(usable, len(usable)):
                gold = draw.choice(golds[n]) if settings.shuffle_positives else golds[n][0]
                passages = [gold, *draw.sample(negatives[n], settings.negatives)]
                related = set().union(*(gold_for[passage.text] for passage in passages))
                fits = (
                    m
                    for m, (_, ids, barred) in enumerate(waiting)
                    if n not in barred and not related & ids
                )
                if (number := next(fits, len(waiting))) == len(waiting):
                    waiting.append(([], set(), set()))
                rows, members, barred = waiting[number]
                rows.append(_row(questions[n], passages, settings.two_encoders, titled))
                members.add(n)
                barred |= related
                if len(rows) == settings.batch:
                    full.append(waiting.pop(number)[0])
        return full + [rows for rows, _, _ in waiting]

    def _trainer(
        self, batches: Sequence[Sequence[_Row]], start: Path, folder: Path
    ) -> "SentenceTransformerTrainer":
        from datasets import Dataset
        from sentence_transformers import (
            SentenceTransformerTrainer,
            SentenceTransformerTrainingArguments,
        )
        from transformers import set_seed

        settings = self.settings
        set_seed(settings.seed)
        model = self._model(start)
        rows = [row for batch in batches for row in batch]
        arguments = checkpoints.training_arguments(
            SentenceTransformerTrainingArguments,
            folder,
            self.step_settings(weight_decay=settings.weight_decay, warmup=settings.warmup),
            max_grad_norm=settings.clip,
            batch_sampler=partial(_fixed_batches, sizes=[len(batch) for batch in batches]),
            router_mapping={
                name: "query" if name == "question" else "document" for name in rows[0]
            },
        )
        dataset = Dataset.from_list(rows)
        loss = self._loss(model)
        return SentenceTransformerTrainer(
            model=model, args=arguments, train_dataset=dataset, loss=loss
        )

    def _model(self, start: Path) -> "SentenceTransformer":
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer.modules import (
            Normalize,
            Pooling,
            Router,
            Transformer,
        )

        settings = self.settings

        def tower() -> list["Module"]:
            # Without token types BERT takes 0 for all tokens, in pairs too, as DPR does
            # (dpr/models/biencoder.py:230)
            plain = {"text": {"return_token_type_ids": False}}
            bert = Transformer(
                str(start), max_seq_length=settings.max_tokens, processing_kwargs=plain
            )
            return [bert, Pooling(bert.get_embedding_dimension(), pooling_mode="cls")]

        options: dict[str, Any] = {"device": self.device, "prompts": {"query": "", "document": ""}}
        with report_load_errors(settings.model, "a sentence-transformers model"):
            if settings.two_encoders:
                return SentenceTransformer(
                    modules=[Router.for_query_document(tower(), tower())], **options
                )
            model = SentenceTransformer(str(start), local_files_only=True, **options)
        if not any(isinstance(module, Normalize) for module in model) and settings.scale > 1:
            logger.info(
                f"{settings.model} does not normalise its vectors; set scale to "
                f"about 1, not {settings.scale:g}"
            )
        model.max_seq_length = settings.max_tokens
        return model

    def _loss(self, model: "SentenceTransformer") -> "nn.Module":
        from sentence_transformers.sentence_transformer import losses
        from sentence_transformers.util import dot_score
        from torch import distributed

        # As in DPR (train_dense_encoder.py:622)
        gather = distributed.is_available() and distributed.is_initialized()
        return losses.MultipleNegativesRankingLoss(
            model, scale=self.settings.scale, similarity_fct=dot_score, gather_across_devices=gather
        )


def _gold_passages(question: Question, ranking: Sequence[Passage]) -> list[Passage]:
    """A question's gold passages, titled like the ranked passages that cover them."""
    golds = []
    for text in question.gold_passages:
        title = next((passage.title for passage in ranking if covers(passage.text, text)), "")
        golds.append(Passage("", title, text))
    return golds


def _questions_by_gold_text(
    questions: Sequence[Question], texts: Iterable[str]
) -> dict[str, set[int]]:
    """Text -> the indices of the questions with a gold passage that it covers."""
    holders = defaultdict(set)
    for n, question in enumerate(questions):
        for gram in (gram for gold in question.gold_passages for gram in word_grams(gold)):
            holders[gram].add(n)
    gold_for = {}
    for text in texts:
        sharing = {n for gram in word_grams(text) for n in holders.get(gram, ())}
        gold_for[text] = {n for n in sharing if covers_gold(text, questions[n])}
    return gold_for


def _row(question: Question, passages: Sequence[Passage], two_encoders: bool, titled: bool) -> _Row:
    """A question and its passages: (title, text) pairs if any passage has a title, because a column
    holds one type.
    """
    # dpr/utils/data_utils.py:63-65
    text = question.text.replace("’", "'") if two_encoders else question.text
    row: _Row = {"question": text}
    for n, passage in enumerate(passages):
        row[f"negative_{n}" if n else "positive"] = (
            [passage.title, passage.text] if titled else passage.text
        )
    return row


def _fixed_batches(dataset: object, *, sizes: Sequence[int], **_: object) -> list[list[int]]:
    return [
        list(range(end - size, end)) for size, end in zip(sizes, accumulate(sizes), strict=True)
    ]


def _save(folder: Path, model: Any, two_encoders: bool) -> None:
    """Write an encoder as sentence-transformers does, or two in the classes and layout of DPR's
    models on the hub.
    """
    from transformers import DPRConfig, DPRContextEncoder, DPRQuestionEncoder

    if not two_encoders:
        model.save_pretrained(str(folder), create_model_card=False)
        return
    for route, kind in (("document", DPRContextEncoder), ("query", DPRQuestionEncoder)):
        tower = model[0].sub_modules[route][0]
        name = kind.base_model_prefix
        config = {
            key: value
            for key, value in tower.auto_model.config.to_dict().items()
            if key != "model_type"
        }
        encoder = kind(DPRConfig(**config))
        tensors = tower.auto_model.state_dict().items()
        getattr(encoder, name).bert_model.load_state_dict(
            {k: v for k, v in tensors if not k.startswith("pooler.")}
        )
        encoder.save_pretrained(folder / name)
        tower.tokenizer.save_pretrained(folder / name)
