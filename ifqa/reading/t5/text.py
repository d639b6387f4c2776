"""How a reader's texts become token ids, by the conventions of a checkpoint."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ifqa.errors import IfqaError
from ifqa.models.batches import CHUNK, Features

MAX_TOKENS = 250  # of question and passage together, as FiD's published readers were trained (FiD README:121)


@dataclass(frozen=True)
class Conventions:
    """How texts become inputs; a checkpoint reads best with the conventions of its training.

    Attributes:
        max_tokens: most tokens of question and passage together; the rest is cut off.
        titles: whether a passage's title is read. IfQA's gold passages have no titles and articles do, so in a corpus
            with both a title shows that a passage is not gold.
        encoder_eos: whether an input ends in `</s>`. FiD's published readers were trained with transformers before
            version 4, which added none.
    """

    max_tokens: int = MAX_TOKENS
    titles: bool = True
    encoder_eos: bool = True


#: Reader -> the conventions of a checkpoint that has none of its own. CausalQA trained UnifiedQA on 2048 tokens
#: (coling22-benchmark-for-causal-question-answering finetuning/train_unifiedqa.py:18).
CONVENTIONS = {"fid": Conventions(), "rag": Conventions(), "unifiedqa": Conventions(max_tokens=2048)}


def tokenise(tokenizer: Any, texts: Sequence[str], conventions: Conventions) -> Features:
    """Padded token ids and their mask, both [texts, tokens]; an over-long text is cut at its end."""
    ids: list[list[int]] = []
    for start in range(0, len(texts), CHUNK):  # transformers starts threads in each call, so make few large calls
        ids += tokenizer(
            list(texts[start : start + CHUNK]), max_length=conventions.max_tokens, truncation=True,
            add_special_tokens=conventions.encoder_eos, return_attention_mask=False,
        )["input_ids"]  # fmt: skip
    return padded(ids)


def padded(ids: Sequence[Sequence[int]], padding: int = 0) -> Features:
    """Token ids of different lengths as one tensor, and its mask, False at padding."""
    import torch

    longest = max(map(len, ids), default=0)
    tensor = torch.full((len(ids), longest), padding, dtype=torch.long)
    for row, several in enumerate(ids):
        tensor[row, : len(several)] = torch.tensor(several, dtype=torch.long)
    lengths = torch.tensor([len(several) for several in ids])
    return {"input_ids": tensor, "attention_mask": torch.arange(longest)[None] < lengths[:, None]}


def check(conventions: Conventions) -> None:
    """Refuse a `max_tokens` that is too short for any question.

    Raises:
        IfqaError: `max_tokens` is below 16.
    """
    if conventions.max_tokens < 16:
        raise IfqaError(f"max_tokens: wanted 16 or more for question and passage, found {conventions.max_tokens}")
