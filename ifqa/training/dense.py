"""Training a dense retriever (`ifqa.retrieval.dense`) with in-batch and hard negatives, by sentence-transformers' trainer."""

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from ifqa.errors import IfqaError
from ifqa.models.devices import half_precision, resolve_device
from ifqa.models.hub import NAME, loading, model_folder, weights_identity
from ifqa.progress import say
from ifqa.records import Passage, Question
from ifqa.scoring.measures.covers import covers, word_grams
from ifqa.settings import Natural, NotNegative, Positive
from ifqa.storage.files import read_json
from ifqa.training import recipes, resume
from ifqa.training.material import Material
from ifqa.training.negatives import hard_negatives

_MACHINE = ("device", "micro_batch", "checkpoint_every")  # changing these does not make it a different training
_Row = dict[str, str | list[str]]  # a question and its passages, by the names of columns


@dataclass(frozen=True)
class Recipe:
    """All settings of a training.

    Attributes:
        model: the model to start from: a sentence-transformers model, or a BERT if `two_encoders`.
        two_encoders: DPR's architecture, one BERT for questions and one for (title, text), vectors at [CLS]; otherwise one
            model for questions and texts without titles.
        scale: of the inner product in the loss: 20 for vectors of length 1, 1 for others.
        epochs, batch: passes over the questions, questions a step.
        negatives, pool: hard negatives of a question in each pass, and the number of passages they are drawn from.
        shuffle_positives: draw one of a question's gold passages in each pass; otherwise take its first.
        learning_rate, warmup: highest rate, after this many steps (below 1: this share of all), then linear to 0.
        weight_decay, clip: AdamW's decay, and the norm that gradients are clipped to.
        max_tokens: most tokens of a question, and of a passage with its title; the rest is cut off.
        seed: for order, draws and dropout.
        micro_batch: texts that go through the network at once; 0 for all. Saves memory, costs a second forward pass
            (Gao et al. 2021), and leaves the gradient the same except for dropout.
        device: "cpu", "cuda", or "auto" for a GPU if there is one; uses bfloat16 if the device multiplies in it.
        checkpoint_every: steps between checkpoints.
    """

    model: str = NAME
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
    seed: Natural = 0
    micro_batch: Natural = 0
    device: str = "cpu"
    checkpoint_every: Positive = 100


RECIPES = {
    "small": Recipe(),
    # DPR conf/train/biencoder_nq.yaml, conf/encoder/hf_bert.yaml, conf/biencoder_train_cfg.yaml: batch is 8 GPUs of 16,
    # betas and epsilon of Adam are the defaults. Hard negatives are shuffled and the first is taken; of the positives
    # the first is taken, without shuffling (dpr/models/biencoder.py:173-190).
    "dpr": Recipe(
        model="google-bert/bert-base-uncased", two_encoders=True, scale=1.0, epochs=40, batch=128,
        shuffle_positives=False, warmup=1237, weight_decay=0.0, clip=2.0, seed=12345,
    ),
}  # fmt: skip


def resolve(recipe: str = "small", **changes: object) -> Recipe:
    """A copy of a recipe with some settings changed.

    Raises:
        IfqaError: there is no such recipe, setting or device, or a value is out of range.
    """
    chosen = recipes.changed(RECIPES, recipe, changes)
    if chosen.pool < chosen.negatives:
        raise IfqaError(f"training setting pool: wanted {chosen.negatives} or more, the negatives, found {chosen.pool}")
    return replace(chosen, device=resolve_device(chosen.device))


def refuse(material: Material, folder: Path, *, recipe: str = "small", **changes: object) -> None:
    """Raise the errors of `train` that need no rankings, before passages are retrieved; the arguments are those of `train`."""
    material.require_gold()
    chosen = resolve(recipe, **changes)
    kind = read_json(model_folder(chosen.model) / "config.json").get("model_type") if chosen.two_encoders else "bert"
    if kind != "bert":
        raise IfqaError(f"{chosen.model} cannot start DPR's two encoders: wanted a model of type bert, found {kind}")


def train(material: Material, folder: Path, *, recipe: str = "small", **changes: object) -> None:
    """Train, and write a model that `ifqa.retrieval.vectors.encoders.open_encoder` opens, and a `manifest.json`.

    The loss is softmax cross-entropy of a question's gold passage against all passages of its batch, including the hard
    negatives of other questions (dpr/models/biencoder.py:254-290). Unlike DPR, two questions never share a batch if a
    passage of one is gold for the other. An interrupted training resumes from its newest checkpoint.

    Args:
        material: questions without gold passages, and those without hard negatives, are left out. Negatives are drawn
            from the rankings. A gold passage takes its title from the ranked passage that covers it; if the other passages
            have titles and it has none, the network learns to tell the two kinds apart.
        folder: one encoder is written into it; two are written into its `ctx_encoder` and `question_encoder`, the
            layout of DPR's models on the hub.
        recipe: "small", for a CPU, or "dpr", as published.
        changes: settings that differ from the recipe's (see `Recipe`).

    Raises:
        IfqaError: nothing to train on, a setting out of range, or `folder` holds another training.
    """
    questions, rankings = material.questions, material.rankings
    refuse(material, folder, recipe=recipe, **changes)
    chosen = resolve(recipe, **changes)
    start = model_folder(chosen.model)
    inputs = {
        "family": material.family,
        "sources": material.sources,
        "recipe": recipe,
        "settings": {name: value for name, value in asdict(chosen).items() if name not in _MACHINE},
        "questions": resume.identity(questions, rankings),
        "encoder": {"name": chosen.model, "sha256": weights_identity(start)},
    }
    if not resume.begin(folder, inputs):
        return
    batches = _batches(questions, rankings, chosen)
    if not batches:
        raise IfqaError(
            f"none of {len(questions)} training questions has a gold passage and {chosen.negatives} hard negatives; "
            "wanted annotated questions, and a corpus that holds more than their gold passages"
        )
    say(f"{folder}: {sum(map(len, batches)):,} gold passages in {len(batches):,} batches")
    if chosen.warmup > len(batches):
        say(f"{folder}: warmup takes {chosen.warmup:,} steps, more than the training has; set a lower warmup")
    trainer = _trainer(batches, start, folder, chosen)
    made = resume.fit(trainer, folder, "training the dense retriever")
    _save(folder, trainer.model, chosen.two_encoders)
    weights = (
        ["*_encoder/model*.safetensors"]
        if chosen.two_encoders
        else ["model*.safetensors", "[0-9]_*/model*.safetensors"]
    )
    resume.finish(folder, inputs, made | {"batches": len(batches), "device": chosen.device}, weights)


def _batches(questions: Sequence[Question], rankings: Sequence[Sequence[Passage]], chosen: Recipe) -> list[list[_Row]]:
    """Rows of all epochs in training order, each with its own draws, grouped into batches without clashes.

    A row goes into the first open batch that it does not clash with; the last batches stay short.
    """
    golds = [_golds(*pair) for pair in zip(questions, rankings, strict=True)]
    wrong = [hard_negatives(*pair, chosen.pool) for pair in zip(questions, rankings, strict=True)]
    usable = [n for n in range(len(questions)) if golds[n] and len(wrong[n]) >= chosen.negatives]
    titled = chosen.two_encoders and any(one.title for n in usable for one in golds[n] + wrong[n])
    gold_for = _gold_for(questions, {one.text for n in usable for one in golds[n] + wrong[n]})
    full: list[list[_Row]] = []
    waiting: list[
        tuple[list[_Row], set[int], set[int]]
    ] = []  # rows, their questions, questions their passages are gold for
    for epoch in range(chosen.epochs):
        draw = random.Random(f"{chosen.seed} {epoch}")
        for n in draw.sample(usable, len(usable)):
            gold = draw.choice(golds[n]) if chosen.shuffle_positives else golds[n][0]
            passages = [gold, *draw.sample(wrong[n], chosen.negatives)]
            own = set().union(*(gold_for[one.text] for one in passages))
            place = next((m for m, (_, asked, taken) in enumerate(waiting) if n not in taken and not own & asked), None)
            if place is None:
                place = len(waiting)
                waiting.append(([], set(), set()))
            rows, asked, taken = waiting[place]
            rows.append(_row(questions[n], passages, chosen.two_encoders, titled))
            asked.add(n)
            taken |= own
            if len(rows) == chosen.batch:
                full.append(waiting.pop(place)[0])
    return full + [rows for rows, _, _ in waiting]


def _golds(question: Question, ranking: Sequence[Passage]) -> list[Passage]:
    """A question's gold passages, with the titles of ranked passages that cover them."""
    titles = [next((one.title for one in ranking if covers(one.text, text)), "") for text in question.gold_passages]
    return [Passage("", *pair) for pair in zip(titles, question.gold_passages, strict=True)]


def _gold_for(questions: Sequence[Question], texts: Iterable[str]) -> dict[str, set[int]]:
    """Text -> the numbers of the questions whose gold passages it covers."""
    holders = defaultdict(set)
    for n, question in enumerate(questions):
        for gram in (gram for gold in question.gold_passages for gram in word_grams(gold)):
            holders[gram].add(n)
    found = {}
    for text in texts:
        near = {n for gram in word_grams(text) for n in holders.get(gram, ())}
        found[text] = {n for n in near if any(covers(text, gold) for gold in questions[n].gold_passages)}
    return found


def _row(question: Question, passages: Sequence[Passage], two_encoders: bool, titled: bool) -> _Row:
    """A question with its passages; passages are (title, text) pairs if any has a title (a column holds one type)."""
    asked = question.text.replace("’", "'") if two_encoders else question.text  # dpr/utils/data_utils.py:63-65
    names = ["positive", *(f"negative_{n}" for n in range(1, len(passages)))]
    row: _Row = {"question": asked}
    return row | {
        name: [one.title, one.text] if titled else one.text for name, one in zip(names, passages, strict=True)
    }


def _trainer(batches: Sequence[Sequence[_Row]], start: Path, folder: Path, chosen: Recipe) -> Any:
    import torch
    from datasets import Dataset
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    from transformers import set_seed

    set_seed(chosen.seed)
    model = _model(start, chosen)
    rows = [row for batch in batches for row in batch]
    sampler: Any = partial(_as_cut, sizes=[len(batch) for batch in batches])
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(folder / resume.CHECKPOINTS), num_train_epochs=1, per_device_train_batch_size=chosen.batch,
        learning_rate=chosen.learning_rate, weight_decay=chosen.weight_decay, warmup_steps=chosen.warmup,
        max_grad_norm=chosen.clip, lr_scheduler_type="linear", bf16=half_precision(chosen.device) is torch.bfloat16,
        use_cpu=chosen.device == "cpu", save_strategy="steps", save_steps=chosen.checkpoint_every, save_total_limit=2,
        logging_steps=chosen.checkpoint_every, report_to="none", disable_tqdm=True, seed=chosen.seed,
        batch_sampler=sampler,
        router_mapping={name: "query" if name == "question" else "document" for name in rows[0]},
    )  # fmt: skip
    return SentenceTransformerTrainer(
        model=model, args=arguments, train_dataset=Dataset.from_list(rows), loss=_loss(model, chosen)
    )


def _as_cut(dataset: object, *, sizes: Sequence[int], **_: object) -> list[list[int]]:
    """A batch sampler for rows that are already grouped into batches of these sizes."""
    return [list(range(end - size, end)) for size, end in zip(sizes, accumulate(sizes), strict=True)]


def _loss(model: Any, chosen: Recipe) -> Any:
    from sentence_transformers.sentence_transformer import losses
    from sentence_transformers.util import dot_score
    from torch import distributed

    many = distributed.is_available() and distributed.is_initialized()  # as in DPR (train_dense_encoder.py:622)
    settings: dict[str, Any] = {"scale": chosen.scale, "similarity_fct": dot_score, "gather_across_devices": many}
    if chosen.micro_batch:
        return losses.CachedMultipleNegativesRankingLoss(model, mini_batch_size=chosen.micro_batch, **settings)
    return losses.MultipleNegativesRankingLoss(model, **settings)


def _model(start: Path, chosen: Recipe) -> Any:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Router, Transformer

    def tower() -> list[Any]:
        bert = Transformer(
            str(start),
            max_seq_length=chosen.max_tokens,
            # Without token types BERT takes 0 for all tokens, in pairs too, as DPR does (dpr/models/biencoder.py:230)
            processing_kwargs={"text": {"return_token_type_ids": False}},
        )
        return [bert, Pooling(bert.get_embedding_dimension(), pooling_mode="cls")]

    settings: dict[str, Any] = {"device": chosen.device, "prompts": {"query": "", "document": ""}}
    with loading(chosen.model, start, "a sentence-transformers model"):
        if chosen.two_encoders:
            return SentenceTransformer(modules=[Router.for_query_document(tower(), tower())], **settings)
        model = SentenceTransformer(str(start), local_files_only=True, **settings)
    if not any(isinstance(module, Normalize) for module in model) and chosen.scale > 1:
        say(f"{chosen.model}: its vectors are not normalised, and scale is {chosen.scale:g}; set scale to about 1")
    model.max_seq_length = chosen.max_tokens
    return model


def _save(folder: Path, model: Any, two_encoders: bool) -> None:
    """Write one encoder as sentence-transformers does, or two in the classes and layout of DPR's models on the hub."""
    from transformers import DPRConfig, DPRContextEncoder, DPRQuestionEncoder

    if not two_encoders:
        model.save_pretrained(str(folder), create_model_card=False)
        return
    kinds: list[tuple[str, Any]] = [("document", DPRContextEncoder), ("query", DPRQuestionEncoder)]
    for route, kind in kinds:
        tower, name = model[0].sub_modules[route][0], kind.base_model_prefix
        config = {key: value for key, value in tower.auto_model.config.to_dict().items() if key != "model_type"}
        encoder = kind(DPRConfig(**config))
        tensors = tower.auto_model.state_dict().items()
        getattr(encoder, name).bert_model.load_state_dict({k: v for k, v in tensors if not k.startswith("pooler.")})
        encoder.save_pretrained(folder / name)
        tower.tokenizer.save_pretrained(folder / name)
