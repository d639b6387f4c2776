"""The losses of a tuning, on the answers' tokens alone."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ifqa.training.llm.rows import Row


def collate(rows: Sequence[Row], pad: int) -> dict[str, Tensor]:
    """A batch, padded on the left: all first answers, then all second ones, with the log probabilities at the start."""
    several = [(row["prompt"], row["answers"][n]) for n in range(len(rows[0]["answers"])) for row in rows]
    width, most = max(len(one) + len(two) for one, two in several), max(len(two) for _, two in several)
    ids = [[pad] * (width - len(one) - len(two)) + one + two for one, two in several]
    mask = torch.tensor([[0] * (width - len(one) - len(two)) + [1] * (len(one) + len(two)) for one, two in several])
    answers = torch.tensor([[0] * (most - len(two)) + [1] * len(two) for _, two in several])
    batch = {"input_ids": torch.tensor(ids), "attention_mask": mask, "answers": answers}
    if "reference" in rows[0]:
        batch["reference"] = torch.tensor([row["reference"] for row in rows])
    return batch


def log_probabilities(network: Any, batch: Mapping[str, Tensor]) -> Tensor:
    """The log probability of each token of the answers, [rows, tokens], 0 beside them."""
    mask, answers = batch["attention_mask"], batch["answers"]
    most = answers.shape[1]
    places = (mask.cumsum(1) - 1).clamp(min=0)
    given = {"input_ids": batch["input_ids"], "attention_mask": mask, "position_ids": places}
    logits = (
        network(**given, logits_to_keep=most + 1).logits[:, :-1].float()
    )  # each but the last predicts the next token
    found = torch.log_softmax(logits, -1).gather(-1, batch["input_ids"][:, -most:, None]).squeeze(-1)
    return found * answers


def loss_of(network: Any, batch: Mapping[str, Tensor], beta: float) -> Tensor:
    """The mean loss of a batch's questions.

    With one answer each, the mean of -log p over the answer's tokens. With two, -log sigmoid of `beta` times the difference of
    two gains in log probability since the start: that of the first answer less that of the second.
    """
    found = log_probabilities(network, batch)
    if "reference" not in batch:
        return -(found.sum(1) / batch["answers"].sum(1)).mean()
    right, wrong = (found.sum(1).view(2, -1).T - batch["reference"]).unbind(1)
    return -F.logsigmoid(beta * (right - wrong)).mean()
