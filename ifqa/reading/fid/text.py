"""What Fusion-in-Decoder reads: each passage with the question before it, as token ids (FiD src/data.py)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ifqa.errors import IfqaError
from ifqa.models.batches import CHUNK, Features
from ifqa.records import Passage

MAX_TOKENS = 250  # of question and passage: what the published readers were trained with (FiD README:121)
MAX_ANSWER = 50  # tokens generated, the one that starts decoding counted (FiD test_reader.py:42-46)


@dataclass(frozen=True)
class Conventions:
    """How texts become inputs; a checkpoint reads well what was made as in its training.

    Attributes:
        max_tokens: of question and passage together, the rest is cut off.
        titles: whether a passage's title is read. IfQA's gold passages have none and articles have, so where both are in
            the corpus a title tells what is no gold passage.
        encoder_eos: whether an input ends in `</s>`. transformers before version 4, with which FiD's published readers
            were trained, added none.
    """

    max_tokens: int = MAX_TOKENS
    titles: bool = True
    encoder_eos: bool = True


def passage_inputs(question: str, passages: Sequence[Passage], titles: bool) -> list[str]:
    """The texts of a question's passages, best first; of a question without passages the question alone.

    `question: {q} title: {t} context: {x}` (FiD src/data.py:16-18, 40, 44-46, 114). Without passages FiD meant to read the
    question, in code that is not reached (src/data.py:46-51).
    """
    asked = f"question: {question}"
    if not passages:
        return [asked]
    return [f"{asked} title: {one.title if titles else ''} context: {one.text}" for one in passages]


def tokenise(tokenizer: Any, texts: Sequence[str], conventions: Conventions) -> Features:
    """Padded token ids and their mask, both [texts, tokens]; an over-long text is cut at its end."""
    ids: list[list[int]] = []
    for start in range(0, len(texts), CHUNK):  # transformers warms up threads a call: few large calls
        ids += tokenizer(
            list(texts[start : start + CHUNK]), max_length=conventions.max_tokens, truncation=True,
            add_special_tokens=conventions.encoder_eos, return_attention_mask=False,
        )["input_ids"]  # fmt: skip
    return padded(ids)


def padded(ids: Sequence[Sequence[int]], padding: int = 0) -> Features:
    """Token ids of many lengths as one tensor, with the mask of what is no padding."""
    import torch

    longest = max(map(len, ids), default=0)
    tensor = torch.full((len(ids), longest), padding, dtype=torch.long)
    for row, several in enumerate(ids):
        tensor[row, : len(several)] = torch.tensor(several, dtype=torch.long)
    lengths = torch.tensor([len(several) for several in ids])
    return {"input_ids": tensor, "attention_mask": torch.arange(longest)[None] < lengths[:, None]}


def check(conventions: Conventions) -> None:
    """Refuse a length no question fits into.

    Raises:
        IfqaError: `max_tokens` is below 16.
    """
    if conventions.max_tokens < 16:
        raise IfqaError(f"max_tokens: wanted 16 or more for question and passage, found {conventions.max_tokens}")
