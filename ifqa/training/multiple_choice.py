"""Trains the readers that choose among the answers a question offers: 'adaboost', 'decomp-attn' and 'choice'.

Questions without choices or without an answer are left out.
"""

import logging
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from ifqa.errors import IfqaError
from ifqa.models.devices import BATCH_TOKENS, Features, split_batches
from ifqa.models.hub import MINILM, WEIGHTS_SHA256, model_fingerprint
from ifqa.protocols import NO_DATA, PathSetting, TrainingData
from ifqa.reading.multiple_choice import baselines
from ifqa.reading.multiple_choice.bert import ChoiceEncoder, encode_options, input_format, open_choice_encoder
from ifqa.reading.multiple_choice.options import load_choice_manifest, normalize_choice
from ifqa.records import Question
from ifqa.settings import Natural, NotNegative, Positive, Share
from ifqa.storage.files import write_json
from ifqa.training import checkpoints
from ifqa.training.trainer import DataclassTrainer, EpochTrainer, refuse_family, require_any

if TYPE_CHECKING:
    from sklearn.ensemble import AdaBoostClassifier
    from torch import Tensor, nn

logger = logging.getLogger(__name__)


@dataclass(kw_only=True)
class AdaBoost(DataclassTrainer):
    """Train boosted trees over the words of change and effect, for questions of multiple choice.

    Attributes:
        rounds, depth: number of trees and their depth; scikit-learn's defaults, as WIQA's paper names none.
        least: number of training questions that a word must be in to count.
        seed: for features that split equally well.
    """

    libraries = ("sklearn",)
    benchmark = "wiqa"
    split = "train"
    corpus = None

    rounds: Positive = 50
    depth: Positive = 1
    least: Positive = 1
    seed: Natural = 0

    def train(self, data: TrainingData, folder: Path, dev: TrainingData = NO_DATA) -> None:
        """Train, and write `model.json` and a `manifest.json`. It takes seconds, so an interrupted training begins again."""
        from sklearn.ensemble import AdaBoostClassifier
        from sklearn.tree import DecisionTreeClassifier

        data = select_multiple_choice(data)
        classes = shared_classes(data.questions)
        inputs = {"reader": "adaboost"} | self.inputs(data) | {"classes": classes}
        if not checkpoints.begin_training(folder, inputs):
            return
        stems = [question.text for question in data.questions]
        holders = Counter(word for stem in stems for word in {*baselines.tagged_words(stem)})
        words = sorted(word for word, count in holders.items() if count >= self.least)
        if not words:
            raise IfqaError(
                f"training setting 'least': no word is in {self.least} of {len(stems)} training questions; lower it"
            )
        targets = class_labels(data.questions, classes)
        stump = DecisionTreeClassifier(max_depth=self.depth)
        boosted = AdaBoostClassifier(stump, n_estimators=self.rounds, random_state=self.seed)
        try:
            trees = export_trees(boosted.fit(baselines.count_words(stems, words), targets))
        except ValueError as error:
            if "worse than random" not in str(error):
                raise
            raise IfqaError(
                f"no tree of depth {self.depth} is better than chance on {len(targets)} training questions; set depth higher"
            ) from error
        logger.info(f"{folder}: {len(trees)} trees over {len(words):,} words of {len(stems):,} questions")
        write_json(folder / baselines.TREES_FILE, {"words": words, "trees": [tree.model_dump() for tree in trees]})
        record = {"trees": len(trees), "words": len(words), "examples": len(stems)}
        checkpoints.finish_training(folder, inputs, record, [baselines.TREES_FILE])


def export_trees(boosted: "AdaBoostClassifier") -> list[baselines.Tree]:
    """The trees of a fitted AdaBoostClassifier whose classes are numbers."""
    return [
        baselines.Tree(
            weight=float(weight), feature=tree.feature.tolist(), threshold=tree.threshold.tolist(),
            left=tree.children_left.tolist(), right=tree.children_right.tolist(),
            vote=fitted.classes_[tree.value[:, 0].argmax(1)].tolist(),  # its values are [nodes, 1, classes]
        )
        for fitted, weight in zip(boosted.estimators_, boosted.estimator_weights_, strict=False)
        for tree in [fitted.tree_]
    ]  # fmt: skip


@dataclass(kw_only=True)
class ChoiceTrainer(EpochTrainer):
    """Trains a network that scores choices."""

    libraries = ("accelerate",)
    benchmark = "wiqa"
    split = "train"
    corpus = None
    warmup = 0.0  # the share of the steps before the highest rate; a subclass may have a setting of this name
    weight_decay = 0.0  # AdamW's, likewise

    device: str = "auto"
    checkpoint_every: Positive = 200

    def inputs(self, data: TrainingData) -> dict[str, Any]:
        """As of `Settings`, with the settings of training on consistency, which there once was: it was off by default."""
        inputs = super().inputs(data)
        inputs["settings"] |= {"augment": False, "symmetry": 0.0, "transitivity": 0.0}
        return inputs

    def fit(
        self, model: "nn.Module", folder: Path, labels: Sequence[int], collate: Callable[[Sequence[int]], Features],
        logits: Callable[["nn.Module", Features], "Tensor"],
    ) -> dict[str, object]:  # fmt: skip
        """Train on cross-entropy, resuming from the newest checkpoint in `folder`; returns steps and mean loss.

        `labels` has the column of the right choice of each question in `logits`, which are [questions, choices], -inf where a
        question has fewer choices; `collate` makes the features of some questions, by their numbers.
        """
        import torch
        import torch.nn.functional as F

        def loss(model: "nn.Module", inputs: Features) -> "Tensor":
            right = inputs.pop("right")
            return F.cross_entropy(logits(model, inputs).float(), right)

        def batch(rows: Sequence[int]) -> Features:
            return collate(rows) | {"right": torch.tensor([labels[n] for n in rows])}

        draws = [random.Random(f"{self.seed} {turn}") for turn in range(self.epochs)]
        rows = [n for draw in draws for n in draw.sample(range(len(labels)), len(labels))]
        record = checkpoints.train_with_loss(
            loss, model, rows, batch, folder, seed=self.seed, batch=self.batch, learning_rate=self.learning_rate,
            every=self.checkpoint_every, device=self.device, weight_decay=self.weight_decay, warmup=self.warmup,
        )  # fmt: skip
        return record | {"examples": len(labels)}


@dataclass(kw_only=True)
class DecompAttn(ChoiceTrainer):
    """Train decomposable attention on change and effect, for questions of multiple choice.

    Attributes:
        learning_rate: AdamW's first, which falls to 0. (Parikh et al. 2016 have Adagrad at 0.05, which did not learn from a few
            thousand questions.)
        hidden, dropout: size of the layers, and share of features dropped before each, as in that paper's section 5.1.
    """

    epochs: Positive = 5
    batch: Positive = 32
    learning_rate: NotNegative = 1e-3
    hidden: Positive = 200
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.2

    def train(self, data: TrainingData, folder: Path, dev: TrainingData = NO_DATA) -> None:
        """Train all but MiniLM's embeddings, and write `model.safetensors` and a `manifest.json`."""
        from transformers import set_seed

        from ifqa.reading.multiple_choice.attention import build_network, encode_stem, pad_ids

        data = select_multiple_choice(data)
        classes = shared_classes(data.questions)
        inputs = {"reader": "decomp-attn"} | self.inputs(data)
        inputs |= {"classes": classes, "encoder": {"name": MINILM, "sha256": WEIGHTS_SHA256}}
        if not checkpoints.begin_training(folder, inputs):
            return
        pairs = [encode_stem(question.text) for question in data.questions]

        def collate(rows: Sequence[int]) -> Features:
            changes, effects = zip(*(pairs[n] for n in rows), strict=True)
            return {"change": pad_ids(changes), "effect": pad_ids(effects)}

        set_seed(self.seed)
        model = build_network(inputs["settings"], len(classes))
        labels = class_labels(data.questions, classes)
        record = self.fit(model, folder, labels, collate, lambda model, features: model(**features))
        checkpoints.save_tensors(folder / baselines.NETWORK_FILE, model.state_dict())
        checkpoints.finish_training(folder, inputs, record, [baselines.NETWORK_FILE])


@dataclass(kw_only=True)
class Choice(ChoiceTrainer):
    """Train an encoder that scores each option of a question, with or without its paragraph.

    Attributes:
        encoder: a model of the hub, a folder, or a folder of `ifqa train choice` to train further.
        paragraph, explanation: what is read beside question and option, see `ifqa.reading.multiple_choice.bert`.
        learning_rate, warmup, weight_decay: AdamW's highest rate, the share of the steps before it, and its decay. Asai and
            Hajishirzi (2020) have RoBERTa-base at 2e-5 and 64 questions a step.
        max_tokens: most tokens of a sequence; the paragraph is cut first.
    """

    runtime_only = ("encoder", *ChoiceTrainer.runtime_only)

    encoder: PathSetting = MINILM
    paragraph: Literal["yes", "no"] = "yes"
    explanation: Literal["yes", "no"] = "no"
    epochs: Positive = 3
    batch: Positive = 16
    learning_rate: NotNegative = 5e-5
    warmup: Share = 0.1
    weight_decay: NotNegative = 0.01
    max_tokens: Positive = 256

    def train(self, data: TrainingData, folder: Path, dev: TrainingData = NO_DATA) -> None:
        """Train all weights, and write the encoder's files, its tokenizer and a `manifest.json`; rankings are paragraphs."""
        import torch
        from transformers import set_seed

        data = select_multiple_choice(data)
        if (Path(self.encoder) / "manifest.json").exists():
            refuse_family(self.encoder, load_choice_manifest(self.encoder, "choice").family, data)
        inputs = {"reader": "choice"} | self.inputs(data)
        inputs["start"] = {"name": self.encoder, "sha256": model_fingerprint(self.encoder)}
        if not checkpoints.begin_training(folder, inputs):
            return
        set_seed(self.seed)  # the head is drawn when the encoder is opened
        opened = open_choice_encoder(self.encoder, untrained=True)
        scheme = input_format(inputs["settings"], opened.longest)

        def collate(rows: Sequence[int]) -> Features:
            """All options of the questions as sequences, and each question's number of options."""
            options = [encode_options(opened.tokenizer, data.questions[n], data.rankings[n], scheme) for n in rows]
            return opened.pad([pair for each in options for pair in each]) | {
                "counts": torch.tensor([len(each) for each in options])
            }

        record = self.fit(opened.model.train(), folder, [*map(gold_choice, data.questions)], collate, option_logits)
        opened.model.save_pretrained(folder)
        opened.tokenizer.save_pretrained(folder)
        checkpoints.finish_training(folder, inputs, record, ["model*.safetensors"])


def option_logits(model: "nn.Module", features: Features) -> "Tensor":
    """Logits [questions, options] of sequences; those of similar length go through the network together.

    A step has long paragraphs and none side by side.
    """
    import torch
    from torch.nn.utils.rnn import pad_sequence

    read = {name: tensor for name, tensor in features.items() if name != "counts"}
    network, count, device = ChoiceEncoder(model, None), len(read["input_ids"]), read["input_ids"].device
    pieces = [(rows, network.logits(batch)) for rows, batch in split_batches(read, count, BATCH_TOKENS[device.type])]
    places = torch.tensor([row for rows, _ in pieces for row in rows])
    flat = torch.cat([logits for _, logits in pieces])[places.argsort().to(device)]
    options = torch.split_with_sizes(flat, features["counts"].tolist())
    return pad_sequence(list(options), batch_first=True, padding_value=float("-inf"))


def select_multiple_choice(data: TrainingData) -> TrainingData:
    """The questions that offer choices and have an answer, with their passages."""
    multiple = "questions of multiple choice, such as those of sample-wiqa"
    require_any(data, lambda question: question.choices and question.answers, "choices and an answer", multiple)
    chosen = data.select([n for n, question in enumerate(data.questions) if question.choices and question.answers])
    for question in chosen.questions:
        gold_choice(question)
    return chosen


def gold_choice(question: Question) -> int:
    """The place of a question's answer among its choices; an IfqaError if it is not offered."""
    answers = {normalize_choice(answer) for answer in question.answers}
    place = next((n for n, choice in enumerate(question.choices) if normalize_choice(choice) in answers), None)
    if place is None:
        raise IfqaError(
            f"training question {question.id}: the answer {question.answers[0]!r} is not offered; wanted one of "
            + ", ".join(question.choices)
        )
    return place


def class_labels(questions: Sequence[Question], classes: Sequence[str]) -> list[int]:
    """The class of each question's right choice."""
    return [classes.index(normalize_choice(question.choices[gold_choice(question)])) for question in questions]


def shared_classes(questions: Sequence[Question]) -> list[str]:
    """The choices that all training questions share, as a classifier's classes, in the order of the first question."""
    classes = list(dict.fromkeys(map(normalize_choice, questions[0].choices)))
    for question in questions:
        if {*map(normalize_choice, question.choices)} != {*classes}:
            raise IfqaError(
                f"training question {question.id} offers {', '.join(question.choices)}, and the first {', '.join(classes)}; "
                "this reader learns one set of answers; train the reader 'choice' on such questions"
            )
    if len({question.choices[gold_choice(question)] for question in questions}) < 2:
        raise IfqaError(
            f"all {len(questions)} training questions have the same answer; wanted questions with several answers"
        )
    return classes
