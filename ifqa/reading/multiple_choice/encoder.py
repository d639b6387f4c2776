"""BERT's scheme for multiple choice: an encoder with transformers' head, and the sequences that it scores.

A sequence is `[CLS] paragraph [SEP] question [SEP] option [SEP]`, and has one logit.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ifqa.errors import IfqaError
from ifqa.models.hub import loading, model_folder, open_tokenizer, quiet, refuse_missing
from ifqa.records import Passage, Question

if TYPE_CHECKING:
    from torch import Tensor

MEND = "name a folder that `ifqa train choice` made, or train one"
_MOST = 512  # positions of an encoder whose settings name none
EXPLANATION = "explanation"  # the label of a question that tells why its answer is so


@dataclass(frozen=True)
class Scheme:
    """What is read beside question and option.

    Attributes:
        paragraph: whether the passages are read.
        explanation: whether the question's label "explanation" is read, after the paragraph.
        max_tokens: most tokens of a sequence, special tokens included. The paragraph is cut first, then the question.
    """

    paragraph: bool
    explanation: bool
    max_tokens: int


@dataclass
class Encoder:
    """A network in float32 on the CPU, and its tokenizer."""

    model: Any
    tokenizer: Any

    @property
    def types(self) -> bool:
        """Whether the network tells segments apart by types of tokens; RoBERTa has a single type."""
        return getattr(self.model.config, "type_vocab_size", 0) > 1

    @property
    def longest(self) -> int:
        """Most tokens of a sequence. RoBERTa's positions begin after the padding's number, which takes them from its table."""
        config = self.model.config
        positions: int = getattr(config, "max_position_embeddings", _MOST)
        if config.model_type in ("roberta", "xlm-roberta", "camembert", "mpnet", "longformer"):
            positions -= (config.pad_token_id or 0) + 1
        return min(positions, _MOST)

    def logits(self, features: dict[str, "Tensor"]) -> "Tensor":
        """A logit for each sequence, [sequences]; to the head each is a question with one option."""
        logits: Tensor = self.model(**{name: tensor[:, None] for name, tensor in features.items()}).logits
        return logits.squeeze(-1)


def open_encoder(name: str, *, untrained: bool = False) -> Encoder:
    """Load an encoder without running any code from it.

    Args:
        name: a folder, or a model of the hub.
        untrained: whether the head, and a pooler before it, may be missing: they are then drawn at random, from torch's seed.

    Raises:
        IfqaError: the model is missing, incomplete, no encoder with such a head, or its tokenizer has no [CLS] and [SEP].
    """
    from transformers import AutoModelForMultipleChoice

    quiet()
    folder = model_folder(name, MEND)
    with loading(name, folder, "an encoder with a head for multiple choice", MEND):
        model, report = AutoModelForMultipleChoice.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False, output_loading_info=True
        )
    if untrained:
        report = {kind: [key for key in keys if not _is_head(key)] for kind, keys in report.items()}
    refuse_missing(name, report)
    tokenizer = open_tokenizer(Path(folder))
    if tokenizer.cls_token_id is None or tokenizer.sep_token_id is None:
        raise IfqaError(f"{name} has no tokens [CLS] and [SEP]; take an encoder such as BERT, RoBERTa or MiniLM")
    return Encoder(model.float().eval(), tokenizer)


def _is_head(key: object) -> bool:
    return any(part in str(key) for part in ("classifier", "pooler", "sequence_summary", "logits_proj"))


def scheme_of(settings: dict[str, Any], longest: int) -> Scheme:
    """The scheme of a training's settings."""
    most = min(settings["max_tokens"], longest)
    return Scheme(settings["paragraph"] == "yes", settings["explanation"] == "yes", most)


def sequences(
    tokenizer: Any, question: Question, passages: Sequence[Passage], scheme: Scheme
) -> list[tuple[list[int], list[int]]]:
    """Token ids and token types of a question's options, one pair an option.

    Types are 0 up to the first [SEP] and 1 after it, as BERT's tokenizer gives them for a pair. A paragraph or explanation that
    is empty or not read is left out, with its [SEP]. Text that looks like a special token is read as text.
    """
    texts = [
        *(passage.text for passage in passages if scheme.paragraph),
        question.label(EXPLANATION) * scheme.explanation,
    ]
    paragraph = " ".join(text.strip() for text in texts if text.strip())
    before, stem, *options = tokenizer(
        [paragraph, question.text, *question.choices], add_special_tokens=False, split_special_tokens=True,
        return_attention_mask=False, return_token_type_ids=False, verbose=False,
    )["input_ids"]  # fmt: skip
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    pairs = []
    for option in options:
        room = scheme.max_tokens - 4 - len(option)  # for paragraph and question
        read = before[: max(0, room - len(stem))]
        segments = [read, stem[: max(0, room)], option] if read else [stem[: max(0, room + 1)], option]
        ids = [cls, *(token for segment in segments for token in (*segment, sep))][: scheme.max_tokens]
        pairs.append((ids, [int(n > len(segments[0]) + 1) for n in range(len(ids))]))
    return pairs


def padded(pairs: Sequence[tuple[list[int], list[int]]], pad: int, types: bool) -> dict[str, "Tensor"]:
    """Sequences as an encoder takes them, each tensor [sequences, tokens]; `types`: whether it has types of tokens."""
    import torch
    from torch.nn.utils.rnn import pad_sequence

    def rows(lists: Iterable[list[int]], filler: int) -> "Tensor":
        return pad_sequence([torch.tensor(row) for row in lists], batch_first=True, padding_value=filler)

    ids, kinds = zip(*pairs, strict=True)
    features = {"input_ids": rows(ids, pad), "attention_mask": rows(([1] * len(row) for row in ids), 0)}
    return features | ({"token_type_ids": rows(kinds, 0)} if types else {})
