"""BERT's scheme for multiple choice: `[CLS] paragraph [SEP] question [SEP] option [SEP]`, one sequence an option."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ifqa.errors import IfqaError
from ifqa.records import Passage, Question

if TYPE_CHECKING:
    from torch import Tensor

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


def sequences(
    tokenizer: Any, question: Question, passages: Sequence[Passage], scheme: Scheme
) -> list[tuple[list[int], list[int]]]:
    """Token ids and token types of a question's options, one pair an option.

    Types are 0 up to the first [SEP] and 1 after it, as BERT's tokenizer gives them for a pair. A paragraph or explanation that is
    empty or not read is left out, with its [SEP]. Text that looks like a special token is read as text.
    """
    first = [*(one.text for one in passages if scheme.paragraph), question.label(EXPLANATION) * scheme.explanation]
    paragraph = " ".join(text.strip() for text in first if text.strip())
    before, asked, *options = tokenizer(
        [paragraph, question.text, *question.choices], add_special_tokens=False, split_special_tokens=True,
        return_attention_mask=False, return_token_type_ids=False, verbose=False,
    )["input_ids"]  # fmt: skip
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    made = []
    for option in options:
        room = scheme.max_tokens - 4 - len(option)  # for paragraph and question
        read = before[: max(0, room - len(asked))]
        segments = [read, asked[: max(0, room)], option] if read else [asked[: max(0, room + 1)], option]
        ids = [cls, *(token for segment in segments for token in (*segment, sep))][: scheme.max_tokens]
        made.append((ids, [int(n > len(segments[0]) + 1) for n in range(len(ids))]))
    return made


def require_separators(tokenizer: Any, model: str) -> None:
    """Refuse an encoder whose tokenizer has no [CLS] or [SEP].

    Raises:
        IfqaError: it has none.
    """
    if tokenizer.cls_token_id is None or tokenizer.sep_token_id is None:
        raise IfqaError(f"{model} has no tokens [CLS] and [SEP]; take an encoder such as BERT, RoBERTa or MiniLM")


def padded(pairs: Sequence[tuple[list[int], list[int]]], pad: int, types: bool) -> dict[str, "Tensor"]:
    """Sequences as an encoder takes them, each tensor [sequences, tokens]; `types`: whether it has types of tokens."""
    import torch

    longest = max(len(ids) for ids, _ in pairs)

    def rows(which: int, filler: int) -> "Tensor":
        return torch.tensor([[*pair[which], *[filler] * (longest - len(pair[which]))] for pair in pairs])

    mask = torch.tensor([[1] * len(ids) + [0] * (longest - len(ids)) for ids, _ in pairs])
    made = {"input_ids": rows(0, pad), "attention_mask": mask}
    return made | ({"token_type_ids": rows(1, 0)} if types else {})
