"""The rows of a tuning: the tokens of prompts as the reader sends them and of the answers to learn; and its losses."""

import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from ifqa.llms.hf import HF
from ifqa.prompting.context_window import fit_prompt
from ifqa.prompting.demonstrations import Demo
from ifqa.prompting.prompts import Prompt
from ifqa.protocols import TrainingData
from ifqa.records import Passage, Question, gold_id
from ifqa.training.preference_pairs import pairs
from ifqa.training.training_data import batches, training_passages

if TYPE_CHECKING:
    from torch import Tensor


class Row(TypedDict, total=False):
    """The tokens of a prompt, and of one or two answers with their end: the right one, and the rejected one."""

    prompt: list[int]
    answers: list[list[int]]
    reference: list[float]


class Asks:
    """Makes the tokens of prompts as the reader's language model gets them, and those of the answers to learn.

    Args:
        reader: the language model.
        prompt: without reasoning.
        most: tokens of a prompt and its answer.
    """

    def __init__(self, reader: HF, prompt: Prompt, most: int) -> None:
        self._reader, self._prompt = reader, prompt
        self._window = min(most, reader.window)
        self._end: int = reader.tokenizer.eos_token_id
        self.pad: int = reader.tokenizer.pad_token_id or 0

    def row(self, question: Question, passages: Sequence[Passage], *answers: str) -> Row | None:
        """A question's row; None if its prompt does not fit even without passages."""
        reader, prompt = self._reader, self._prompt
        fitted = fit_prompt(prompt, question.text, passages, reader, choices=question.choices, window=self._window)
        if fitted.problem:
            return None
        [request] = fitted.requests()
        texts = [prompt.show(Demo(question.text, answer)) for answer in answers]
        if not reader.chat:
            texts = [text.removeprefix(prompt.opening) for text in texts]
        tokens = [[*reader.tokenise(text, add_special_tokens=False), self._end] for text in texts]
        return {"prompt": reader.ids(request), "answers": [ids[: prompt.max_tokens] for ids in tokens]}


def is_answered(question: Question) -> bool:
    """Whether a question has an answer to learn."""
    return bool(question.answers and question.answers[0].strip())


def with_answers(
    data: TrainingData, asks: Asks, *, epochs: int, batch: int, seed: int, passages: int, alone: float
) -> list[Row]:
    """A row for each question and pass, in training order, with the passages that are drawn for it."""
    rows: list[Row] = []
    usable = [n for n, question in enumerate(data.questions) if is_answered(question)]
    for epoch in range(epochs):
        draw = random.Random(f"{seed} {epoch}")
        drawn = []
        for question, ranking in ((data.questions[n], data.rankings[n]) for n in usable):
            gold = [Passage(gold_id(text), "", text) for text in question.gold_passages]
            apart = draw.random() < alone
            shown = gold if apart and gold else training_passages(question, ranking, passages, "included")
            drawn.append(asks.row(question, shown, question.answers[0]))
        rows += _ordered(drawn, batch, f"{seed} {epoch}")
    return rows


def with_preferences(data: TrainingData, asks: Asks, *, epochs: int, batch: int, seed: int) -> list[Row]:
    """A row for each pair and pass, in training order."""
    rows = []
    for pair in pairs(data.questions, seed):
        shown = [Passage(gold_id(text), "", text) for text in pair.passages]
        rows.append(asks.row(pair.question, shown, pair.chosen, pair.rejected))
    return [row for epoch in range(epochs) for row in _ordered(rows, batch, f"{seed} {epoch}")]


def _ordered(rows: Sequence[Row | None], size: int, key: str) -> list[Row]:
    """The rows of a pass, shuffled, with rows of similar length beside each other."""
    groups = batches([row for row in rows if row], size, key, lambda row: len(row["prompt"]))
    return [row for group in groups for row in group]


def collate(rows: Sequence[Row], pad: int) -> "dict[str, Tensor]":
    """A batch, padded on the left: all first answers, then all second ones, with the log probabilities at the start."""
    import torch

    texts = [
        (row["prompt"] + row["answers"][n], row["answers"][n]) for n in range(len(rows[0]["answers"])) for row in rows
    ]
    width, most = (max(map(len, column)) for column in zip(*texts, strict=True))
    batch = {
        "input_ids": torch.tensor([[pad] * (width - len(whole)) + whole for whole, _ in texts]),
        "attention_mask": torch.tensor([[0] * (width - len(whole)) + [1] * len(whole) for whole, _ in texts]),
        "answers": torch.tensor([[0] * (most - len(answer)) + [1] * len(answer) for _, answer in texts]),
    }
    if "reference" in rows[0]:
        batch["reference"] = torch.tensor([row["reference"] for row in rows])
    return batch


def log_probabilities(network: Any, batch: "Mapping[str, Tensor]") -> "Tensor":
    """The log probability of each token of the answers, [rows, tokens], 0 beside them."""
    import torch

    mask, answers = batch["attention_mask"], batch["answers"]
    most = answers.shape[1]
    places = (mask.cumsum(1) - 1).clamp(min=0)
    given = {"input_ids": batch["input_ids"], "attention_mask": mask, "position_ids": places}
    logits = (
        network(**given, logits_to_keep=most + 1).logits[:, :-1].float()
    )  # each but the last predicts the next token
    found = torch.log_softmax(logits, -1).gather(-1, batch["input_ids"][:, -most:, None]).squeeze(-1)
    return found * answers


def loss_of(network: Any, batch: "Mapping[str, Tensor]", beta: float) -> "Tensor":
    """The mean loss of a batch's questions.

    With one answer each, the mean of -log p over the answer's tokens. With two, -log sigmoid of `beta` times the difference of
    two gains in log probability since the start: that of the first answer less that of the second.
    """
    import torch.nn.functional as F

    found = log_probabilities(network, batch)
    if "reference" not in batch:
        return -(found.sum(1) / batch["answers"].sum(1)).mean()
    right, wrong = (found.sum(1).view(2, -1).T - batch["reference"]).unbind(1)
    return -F.logsigmoid(beta * (right - wrong)).mean()
