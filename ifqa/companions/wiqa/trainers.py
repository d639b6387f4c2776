"""Trains the readers of multiple-choice questions: 'adaboost', 'decomp-attn' and 'choice'.

Questions without choices or without an answer are left out.
"""

import logging
import random
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ifqa.companions.wiqa import baselines
from ifqa.companions.wiqa.choice_reader import (
    ChoiceEncoder,
    encode_options,
    input_format,
    open_choice_encoder,
)
from ifqa.companions.wiqa.options import load_choice_manifest, normalize_choice
from ifqa.errors import ConfigError, FormatError
from ifqa.models.devices import BATCH_TOKENS, Features, split_batches
from ifqa.models.loading import model_fingerprint
from ifqa.models.places import MINILM, WEIGHTS_SHA256
from ifqa.protocols import NO_DATA, TrainingData
from ifqa.records import Question
from ifqa.settings import (
    Natural,
    NotNegative,
    PartShare,
    PathSetting,
    PluginSettings,
    Positive,
    Share,
)
from ifqa.storage.files import write_json
from ifqa.training import checkpoints
from ifqa.training.trainer import BaseTrainer, EpochTrainer, refuse_family

if TYPE_CHECKING:
    from sklearn.ensemble import AdaBoostClassifier
    from torch import Tensor, nn

logger = logging.getLogger(__name__)


class AdaBoost(BaseTrainer):
    """Train boosted trees on the words of a multiple-choice question's change and effect."""

    libraries = ("sklearn",)
    benchmark = "wiqa"
    split = "train"
    corpus = None

    class Settings(PluginSettings):
        rounds: Positive = 50
        """Trees; scikit-learn's default, like `depth`, since WIQA's paper names none."""
        depth: Positive = 1
        """The depth of a tree."""
        least: Positive = 1
        """Training questions that must have a word for it to be a feature."""
        seed: Natural = 0
        """The seed that chooses among features that split equally well."""

    settings: Settings

    def train(self, dataset: TrainingData, folder: Path, dev: TrainingData = NO_DATA) -> None:
        """Train, and write `model.json` and a `manifest.json`.

        It takes seconds, so it has no checkpoints.
        """
        from sklearn.ensemble import AdaBoostClassifier
        from sklearn.tree import DecisionTreeClassifier

        dataset = select_multiple_choice(dataset)
        classes, labels = class_labels(dataset.questions)
        inputs = {"reader": "adaboost"} | self.inputs(dataset) | {"classes": classes}
        if not checkpoints.begin_training(folder, inputs):
            return
        stems = [question.text for question in dataset.questions]
        counts = Counter(word for stem in stems for word in {*baselines.tagged_words(stem)})
        settings = self.settings
        words = sorted(word for word, count in counts.items() if count >= settings.least)
        if not words:
            raise ConfigError(
                f"no word is in {settings.least} of {len(stems)} training questions; "
                "set 'least' lower"
            )
        stump = DecisionTreeClassifier(max_depth=settings.depth)
        boosted = AdaBoostClassifier(
            stump, n_estimators=settings.rounds, random_state=settings.seed
        )
        try:
            trees = export_trees(boosted.fit(baselines.count_words(stems, words), labels))
        except ValueError as error:
            if "worse than random" not in str(error):
                raise
            problem = (
                f"no tree of depth {settings.depth} is better than chance on "
                f"{len(stems)} training questions"
            )
            raise ConfigError(f"{problem}; set depth higher") from error
        logger.info(
            f"{folder}: {len(trees)} trees over {len(words):,} words of {len(stems):,} questions"
        )
        write_json(
            folder / baselines.TREES_FILE,
            {"words": words, "trees": [tree.model_dump() for tree in trees]},
        )
        record = {"trees": len(trees), "words": len(words), "examples": len(stems)}
        checkpoints.finish_training(folder, inputs, record, [baselines.TREES_FILE])


def export_trees(boosted: "AdaBoostClassifier") -> list[baselines.Tree]:
    """The trees of a fitted AdaBoostClassifier with classes 0, 1, ..."""
    return [
        baselines.Tree(
            weight=float(weight),
            feature=tree.feature.tolist(),
            threshold=tree.threshold.tolist(),
            left=tree.children_left.tolist(),
            right=tree.children_right.tolist(),
            # Values are [nodes, 1, classes]
            vote=fitted.classes_[tree.value[:, 0].argmax(1)].tolist(),
        )
        for fitted, weight in zip(boosted.estimators_, boosted.estimator_weights_, strict=False)
        for tree in [fitted.tree_]
    ]


class ChoiceTrainer(EpochTrainer):
    """A trainer of a network that scores the choices of a question."""

    benchmark = "wiqa"
    split = "train"
    corpus = None

    class Settings(EpochTrainer.Settings):
        device: str = "auto"
        """The device: "cpu", "cuda", or "auto" for a GPU if present; in bfloat16 if the hardware
        supports it.
        """
        checkpoint_every: Positive = 200
        """Steps between checkpoints."""

    settings: Settings

    def fit(
        self,
        model: "nn.Module",
        folder: Path,
        labels: Sequence[int],
        collate: Callable[[Sequence[int]], Features],
        logits: Callable[["nn.Module", Features], "Tensor"],
        warmup: float = 0.0,
        weight_decay: float = 0.0,
    ) -> dict[str, object]:
        """Train on cross-entropy; returns the steps.

        `collate` makes features from questions' indices; `logits` scores them, [questions,
        choices], with -inf for missing choices. `labels` are the right choices. `warmup` is the
        share of the steps before the highest rate, `weight_decay` AdamW's.
        """
        import torch
        import torch.nn.functional as F

        def loss(model: "nn.Module", inputs: Features) -> "Tensor":
            right = inputs.pop("right")
            return F.cross_entropy(logits(model, inputs).float(), right)

        def batch(rows: Sequence[int]) -> Features:
            return collate(rows) | {"right": torch.tensor([labels[n] for n in rows])}

        settings = self.settings
        draws = [random.Random(f"{settings.seed} {epoch}") for epoch in range(settings.epochs)]
        rows = [n for draw in draws for n in draw.sample(range(len(labels)), len(labels))]
        record = checkpoints.train_with_loss(
            loss,
            model,
            rows,
            batch,
            folder,
            self.step_settings(weight_decay=weight_decay, warmup=warmup),
        )
        return record | {"examples": len(labels)}


class DecompAttn(ChoiceTrainer):
    """Train decomposable attention on a multiple-choice question's change and effect."""

    class Settings(ChoiceTrainer.Settings):
        epochs: Positive = 5
        """Passes over the questions."""
        batch: Positive = 32
        """Questions per step of AdamW."""
        # Adagrad at 0.05 (Parikh et al. 2016) learnt nothing from thousands of questions
        learning_rate: NotNegative = 1e-3
        """The highest learning rate; it then falls to 0."""
        hidden: Positive = 200
        """Size of the layers, as in the paper's section 5.1."""
        dropout: PartShare = 0.2
        """Share of features dropped before each layer."""

    settings: Settings

    def train(self, dataset: TrainingData, folder: Path, dev: TrainingData = NO_DATA) -> None:
        """Train all but MiniLM's embeddings, and write `model.safetensors` and a
        `manifest.json`.
        """
        from transformers import set_seed

        from ifqa.companions.wiqa.attention import build_network, encode_stem, pad_ids

        dataset = select_multiple_choice(dataset)
        classes, labels = class_labels(dataset.questions)
        encoder = {"name": MINILM, "sha256": WEIGHTS_SHA256}
        inputs = (
            {"reader": "decomp-attn"}
            | self.inputs(dataset)
            | {"classes": classes, "encoder": encoder}
        )
        if not checkpoints.begin_training(folder, inputs):
            return
        pairs = [encode_stem(question.text) for question in dataset.questions]

        def collate(rows: Sequence[int]) -> Features:
            changes, effects = zip(*(pairs[n] for n in rows), strict=True)
            return {"change": pad_ids(changes), "effect": pad_ids(effects)}

        set_seed(self.settings.seed)
        model = build_network(inputs["settings"], len(classes))
        record = self.fit(model, folder, labels, collate, lambda model, features: model(**features))
        checkpoints.save_tensors(folder / baselines.NETWORK_FILE, model.state_dict())
        checkpoints.finish_training(folder, inputs, record, [baselines.NETWORK_FILE])


class Choice(ChoiceTrainer):
    """Train an encoder that scores each option of a question, with or without its paragraph."""

    runtime_only = ("encoder", *ChoiceTrainer.runtime_only)

    class Settings(ChoiceTrainer.Settings):
        encoder: PathSetting = MINILM
        """A model on the hub, a folder, or a folder of `ifqa train choice` to train further."""
        paragraph: Literal["yes", "no"] = "yes"
        """Whether the paragraph is read with question and option."""
        epochs: Positive = 3
        """Passes over the questions."""
        batch: Positive = 16
        """Questions per step of AdamW."""
        # Asai and Hajishirzi (2020): RoBERTa-base at 2e-5 with 64 questions per step
        learning_rate: NotNegative = 5e-5
        """The highest learning rate, after the steps of `warmup`; it then falls to 0."""
        warmup: Share = 0.1
        """Share of the steps before the highest rate."""
        weight_decay: NotNegative = 0.01
        """The weight decay of AdamW."""
        max_tokens: Positive = 256
        """Most tokens of a sequence; the paragraph is cut first."""

    settings: Settings

    def train(self, dataset: TrainingData, folder: Path, dev: TrainingData = NO_DATA) -> None:
        """Train all weights, and write encoder, tokenizer and a `manifest.json`.

        The rankings are the paragraphs.
        """
        import torch
        from transformers import set_seed

        settings = self.settings
        start = settings.encoder
        dataset = select_multiple_choice(dataset)
        labels = list(map(gold_choice, dataset.questions))
        if (Path(start) / checkpoints.MANIFEST).exists():
            refuse_family(start, load_choice_manifest(start, "choice").family, dataset)
        inputs = {"reader": "choice"} | self.inputs(dataset)
        inputs["start"] = {"name": start, "sha256": model_fingerprint(start)}
        if not checkpoints.begin_training(folder, inputs):
            return
        set_seed(settings.seed)  # opening the encoder initialises the head
        encoder = open_choice_encoder(start, untrained=True)
        scheme = input_format(inputs["settings"], encoder.longest)

        def collate(rows: Sequence[int]) -> Features:
            pairs = ((dataset.questions[n], dataset.rankings[n]) for n in rows)
            options = [encode_options(encoder.tokenizer, *pair, scheme) for pair in pairs]
            counts = torch.tensor([len(each) for each in options])
            return encoder.pad([pair for each in options for pair in each]) | {"counts": counts}

        record = self.fit(
            encoder.model.train(),
            folder,
            labels,
            collate,
            option_logits,
            settings.warmup,
            settings.weight_decay,
        )
        encoder.model.save_pretrained(folder)
        encoder.tokenizer.save_pretrained(folder)
        checkpoints.finish_training(folder, inputs, record, ["model*.safetensors"])


def option_logits(model: "nn.Module", features: Features) -> "Tensor":
    """Logits of a step, [questions, options].

    Sequences of similar length go through the network together, to save padding.
    """
    import torch
    from torch.nn.utils.rnn import pad_sequence

    sequences = {name: tensor for name, tensor in features.items() if name != "counts"}
    network = ChoiceEncoder(model, None)
    ids = sequences["input_ids"]
    batches = split_batches(sequences, len(ids), BATCH_TOKENS[ids.device.type])
    rows, logits = zip(*((rows, network.logits(batch)) for rows, batch in batches), strict=True)
    order = torch.tensor(list(chain.from_iterable(rows)))
    flat = torch.cat(logits)[order.argsort().to(ids.device)]
    options = torch.split_with_sizes(flat, features["counts"].tolist())
    return pad_sequence(list(options), batch_first=True, padding_value=float("-inf"))


def select_multiple_choice(dataset: TrainingData) -> TrainingData:
    usable = [
        n for n, question in enumerate(dataset.questions) if question.choices and question.answers
    ]
    if not usable:
        problem = f"none of {len(dataset.questions)} training questions has choices and an answer"
        raise ConfigError(
            f"{problem}; wanted multiple-choice questions, such as those of sample-wiqa"
        )
    return dataset.select(usable)


def gold_choice(question: Question) -> int:
    """The index of a question's answer among its choices; FormatError if it is not a choice."""
    answers = set(map(normalize_choice, question.answers))
    for n, choice in enumerate(question.choices):
        if normalize_choice(choice) in answers:
            return n
    message = (
        f"training question {question.id}: the answer {question.answers[0]!r} is not offered; "
        "wanted one of "
    )
    raise FormatError(message + ", ".join(question.choices))


def class_labels(questions: Sequence[Question]) -> tuple[list[str], list[int]]:
    """The classes (the choices, which all questions share, in the first question's order), and the
    class of each right choice.
    """
    classes = list(dict.fromkeys(map(normalize_choice, questions[0].choices)))
    for question in questions:
        if {*map(normalize_choice, question.choices)} != {*classes}:
            problem = (
                f"question {question.id} offers {', '.join(question.choices)}, but the first "
                f"{', '.join(classes)}"
            )
            raise ConfigError(
                f"{problem}; this reader learns one set of answers; train the reader 'choice' "
                "on such questions"
            )
    labels = [
        classes.index(normalize_choice(question.choices[gold_choice(question)]))
        for question in questions
    ]
    if len(set(labels)) < 2:
        raise ConfigError(
            f"all {len(questions)} training questions have the same answer; "
            "wanted different answers"
        )
    return classes, labels
