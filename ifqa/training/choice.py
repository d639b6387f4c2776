"""Trains the readers that choose among the answers a question offers: 'adaboost', 'decomp-attn' and 'choice'.

Questions without choices or without an answer are left out.
"""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, TypeVar

from pydantic import Field

from ifqa.errors import IfqaError
from ifqa.models.batches import BUDGET, batches
from ifqa.models.hub import NAME, WEIGHTS_SHA256, identity_of
from ifqa.progress import say
from ifqa.protocols import NO_DATA, Place, TrainingData
from ifqa.reading.multiple_choice import adaboost, decomp_attn
from ifqa.reading.multiple_choice.bert import Encoder, open_encoder, scheme_of, sequences
from ifqa.reading.multiple_choice.options import manifest_of, plain
from ifqa.records import Passage, Question
from ifqa.settings import Natural, NotNegative, Positive, Share
from ifqa.storage.files import write_json
from ifqa.training import checkpoints
from ifqa.training.trainer import Passes, Settings, refuse_family, require

if TYPE_CHECKING:
    from sklearn.ensemble import AdaBoostClassifier
    from torch import Tensor, nn
    from transformers import PreTrainedModel


@dataclass(kw_only=True)
class AdaBoost(Settings):
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

        data = usable(data)
        classes = classes_of(data.questions)
        inputs = {"reader": "adaboost"} | self.inputs(data) | {"classes": classes}
        if not checkpoints.begin(folder, inputs):
            return
        stems = [question.text for question in data.questions]
        holders = Counter(word for stem in stems for word in {*adaboost.words_of(stem)})
        words = sorted(word for word, count in holders.items() if count >= self.least)
        if not words:
            raise IfqaError(
                f"training setting 'least': no word is in {self.least} of {len(stems)} training questions; lower it"
            )
        targets = [classes.index(plain(question.choices[right(question)])) for question in data.questions]
        stump = DecisionTreeClassifier(max_depth=self.depth)
        boosted = AdaBoostClassifier(stump, n_estimators=self.rounds, random_state=self.seed)
        try:
            trees = trees_of(boosted.fit(adaboost.counted(stems, words), targets))
        except ValueError as error:
            if "worse than random" not in str(error):
                raise
            raise IfqaError(
                f"no tree of depth {self.depth} is better than chance on {len(targets)} training questions; set depth higher"
            ) from error
        say(f"{folder}: {len(trees)} trees over {len(words):,} words of {len(stems):,} questions")
        write_json(folder / adaboost.WEIGHTS, {"words": words, "trees": [tree.model_dump() for tree in trees]})
        record = {"trees": len(trees), "words": len(words), "examples": len(stems)}
        checkpoints.finish(folder, inputs, record, [adaboost.WEIGHTS])


def trees_of(boosted: "AdaBoostClassifier") -> list[adaboost.Tree]:
    """The trees of a fitted AdaBoostClassifier whose classes are numbers."""
    return [
        adaboost.Tree(
            weight=float(weight), feature=tree.feature.tolist(), threshold=tree.threshold.tolist(),
            left=tree.children_left.tolist(), right=tree.children_right.tolist(),
            vote=fitted.classes_[tree.value[:, 0].argmax(1)].tolist(),  # its values are [nodes, 1, classes]
        )
        for fitted, weight in zip(boosted.estimators_, boosted.estimator_weights_, strict=False)
        for tree in [fitted.tree_]
    ]  # fmt: skip


Encoded = TypeVar("Encoded")  # what a network reads of a question
_Ids = tuple[list[int], list[int]]  # of a sequence: token ids and token types


@dataclass(kw_only=True)
class ChoiceTrainer(Passes, Generic[Encoded]):
    """Trains a network that scores choices; a subclass says what it reads."""

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

    def encode(self, question: Question, passages: Sequence[Passage]) -> Encoded:
        """What `collate` takes of a question."""
        raise NotImplementedError

    def collate(self, encoded: Sequence[Encoded]) -> dict[str, "Tensor"]:
        """The features of several questions, as `logits` takes them."""
        raise NotImplementedError

    def logits(self, model: "nn.Module", features: dict[str, "Tensor"]) -> "Tensor":
        """Logits [questions, choices], -inf where a question has fewer choices."""
        raise NotImplementedError

    def label(self, question: Question) -> int:
        """The column of `logits` of the right choice."""
        return right(question)

    def fit(self, model: "nn.Module", data: TrainingData, folder: Path) -> dict[str, object]:
        """Train on cross-entropy, resuming from the newest checkpoint in `folder`; returns steps and mean loss."""
        import torch
        import torch.nn.functional as F
        from transformers import Trainer, TrainingArguments

        questions, choosing = data.questions, self

        class Choosing(checkpoints.InOrder, Trainer):
            def compute_loss(
                self, model: "nn.Module", inputs: dict[str, "Tensor"], *_: object, **__: object
            ) -> "Tensor":
                right = inputs.pop("right")
                return F.cross_entropy(choosing.logits(model, inputs).float(), right)

        def collate(numbers: Sequence[int]) -> dict[str, "Tensor"]:
            features = self.collate([self.encode(questions[n], data.rankings[n]) for n in numbers])
            return features | {"right": torch.tensor([self.label(questions[n]) for n in numbers])}

        draws = [random.Random(f"{self.seed} {turn}") for turn in range(self.epochs)]
        rows = [n for draw in draws for n in draw.sample(range(len(questions)), len(questions))]
        arguments = checkpoints.arguments(
            TrainingArguments, folder, seed=self.seed, batch=self.batch, learning_rate=self.learning_rate,
            every=self.checkpoint_every, device=self.device, weight_decay=self.weight_decay, warmup=self.warmup,
            **checkpoints.PLAIN,
        )  # fmt: skip
        arguments._n_gpu = min(arguments.n_gpu, 1)  # a step's options belong together
        trainer = Choosing(model=model, args=arguments, train_dataset=rows, data_collator=collate)
        return checkpoints.fit(trainer, folder) | {"examples": len(questions)}


@dataclass(kw_only=True)
class DecompAttn(ChoiceTrainer[_Ids]):
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

        data = usable(data)
        self._classes = classes_of(data.questions)
        inputs = {"reader": "decomp-attn"} | self.inputs(data)
        inputs |= {"classes": self._classes, "encoder": {"name": NAME, "sha256": WEIGHTS_SHA256}}
        if not checkpoints.begin(folder, inputs):
            return
        set_seed(self.seed)
        model = decomp_attn.network(inputs["settings"], len(self._classes))
        record = self.fit(model, data, folder)
        checkpoints.save_tensors(folder / decomp_attn.WEIGHTS, model.state_dict())
        checkpoints.finish(folder, inputs, record, [decomp_attn.WEIGHTS])

    def encode(self, question: Question, passages: Sequence[Passage]) -> _Ids:
        """The tokens of change and effect."""
        return decomp_attn.tokens(question.text)

    def collate(self, encoded: Sequence[_Ids]) -> dict[str, "Tensor"]:
        """Changes and effects, padded."""
        from ifqa.reading.multiple_choice.attention import padded

        changes, effects = zip(*encoded, strict=True)
        return {"change": padded(changes), "effect": padded(effects)}

    def logits(self, model: "nn.Module", features: dict[str, "Tensor"]) -> "Tensor":
        """Those of the classes."""
        logits: Tensor = model(**features)
        return logits

    def label(self, question: Question) -> int:
        """The class of the right choice."""
        return self._classes.index(plain(question.choices[right(question)]))


@dataclass(kw_only=True)
class Choice(ChoiceTrainer[list[_Ids]]):
    """Train an encoder that scores each option of a question, with or without its paragraph.

    Attributes:
        encoder: a model of the hub, a folder, or a folder of `ifqa train choice` to train further.
        paragraph, explanation: what is read beside question and option, see `ifqa.reading.multiple_choice.bert`.
        learning_rate, warmup, weight_decay: AdamW's highest rate, the share of the steps before it, and its decay. Asai and
            Hajishirzi (2020) have RoBERTa-base at 2e-5 and 64 questions a step.
        max_tokens: most tokens of a sequence; the paragraph is cut first.
    """

    not_identity = ("encoder", *ChoiceTrainer.not_identity)

    encoder: Place = NAME
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
        from transformers import set_seed

        data = usable(data)
        if (Path(self.encoder) / "manifest.json").exists():
            refuse_family(self.encoder, manifest_of(self.encoder, "choice").family, data)
        inputs = {"reader": "choice"} | self.inputs(data)
        inputs["start"] = {"name": self.encoder, "sha256": identity_of(self.encoder)}
        if not checkpoints.begin(folder, inputs):
            return
        set_seed(self.seed)  # the head is drawn when the encoder is opened
        self._opened = open_encoder(self.encoder, untrained=True)
        self._scheme = scheme_of(inputs["settings"], self._opened.longest)
        record = self.fit(self._opened.model.train(), data, folder)
        self._opened.model.save_pretrained(folder)
        self._opened.tokenizer.save_pretrained(folder)
        checkpoints.finish(folder, inputs, record, ["model*.safetensors"])

    def encode(self, question: Question, passages: Sequence[Passage]) -> list[_Ids]:
        """A sequence for each option."""
        return sequences(self._opened.tokenizer, question, passages, self._scheme)

    def collate(self, encoded: Sequence[list[_Ids]]) -> dict[str, "Tensor"]:
        """All options of all questions as sequences, and each question's number of options."""
        import torch

        features = self._opened.padded([pair for options in encoded for pair in options])
        return features | {"counts": torch.tensor([len(options) for options in encoded])}

    def logits(self, model: "PreTrainedModel", features: dict[str, "Tensor"]) -> "Tensor":
        """Those of the options.

        Sequences of similar length go through the network together: a step has long paragraphs and none side by side.
        """
        import torch
        from torch.nn.utils.rnn import pad_sequence

        read = {name: tensor for name, tensor in features.items() if name != "counts"}
        network, count = Encoder(model, None), len(read["input_ids"])
        pieces = [(rows, network.logits(batch)) for rows, batch in batches(read, count, BUDGET[model.device.type])]
        places = torch.tensor([row for rows, _ in pieces for row in rows])
        flat = torch.cat([logits for _, logits in pieces])[places.argsort().to(model.device)]
        options = torch.split_with_sizes(flat, features["counts"].tolist())
        return pad_sequence(list(options), batch_first=True, padding_value=float("-inf"))


def usable(data: TrainingData) -> TrainingData:
    """The questions that offer choices and have an answer, with their passages."""
    multiple = "questions of multiple choice, such as those of sample-wiqa"
    require(data, lambda question: question.choices and question.answers, "choices and an answer", multiple)
    chosen = data.only([n for n, question in enumerate(data.questions) if question.choices and question.answers])
    for question in chosen.questions:
        right(question)
    return chosen


def right(question: Question) -> int:
    """The place of a question's answer among its choices; an IfqaError if it is not offered."""
    answers = {plain(answer) for answer in question.answers}
    place = next((n for n, choice in enumerate(question.choices) if plain(choice) in answers), None)
    if place is None:
        raise IfqaError(
            f"training question {question.id}: the answer {question.answers[0]!r} is not offered; wanted one of "
            + ", ".join(question.choices)
        )
    return place


def classes_of(questions: Sequence[Question]) -> list[str]:
    """The choices that all training questions share, as a classifier's classes, in the order of the first question."""
    classes = list(dict.fromkeys(map(plain, questions[0].choices)))
    for question in questions:
        if {*map(plain, question.choices)} != {*classes}:
            raise IfqaError(
                f"training question {question.id} offers {', '.join(question.choices)}, and the first {', '.join(classes)}; "
                "this reader learns one set of answers; train the reader 'choice' on such questions"
            )
    if len({question.choices[right(question)] for question in questions}) < 2:
        raise IfqaError(
            f"all {len(questions)} training questions have the same answer; wanted questions with several answers"
        )
    return classes
