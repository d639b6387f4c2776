"""Training the retriever 'ranker' (`ifqa.retrieval.linear_ranker`): the weights of what a question and a passage share.

They are those of a linear softmax over a list (ListNet, Cao et al. 2007) in which every passage that covers a gold passage is
right, with a penalty on the squares. `bench/ranker.py` measures what they gain.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from ifqa.errors import IfqaError
from ifqa.models.hub import minilm_folder
from ifqa.progress import bar
from ifqa.protocols import NO_DATA, TrainingData
from ifqa.records import GOLD
from ifqa.retrieval.linear_ranker import FEATURES, compute_features, load_word_weights
from ifqa.scoring.measures.gold_recall import covers
from ifqa.settings import NotNegative
from ifqa.storage.files import write_json
from ifqa.training import checkpoints
from ifqa.training.trainer import DataclassTrainer, require_gold

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

logger = logging.getLogger(__name__)

WEIGHTS = "ranker.json"
Negatives = Literal["gold", "all"]


class ListFeatures(NamedTuple):
    """The features of a question's list, [passages, features], which passages are right, and which are gold passages."""

    rows: "NDArray[np.float64]"
    right: "NDArray[np.bool_]"
    gold: "NDArray[np.bool_]"


@dataclass(kw_only=True)
class Ranker(DataclassTrainer):
    """Train the weights of the retriever 'ranker' on BM25's lists; it takes seconds: model = "models/ranker/ranker.json".

    Attributes:
        negatives: "gold": the right passages and gold passages of other questions alone are trained on, so that nothing can be
            learned of how gold passages differ from articles; "all": every passage of a list.
        penalty: on the squares of the weights.
    """

    corpus = "ifqa-gold-articles"
    query = "names"
    retrieved = 100
    scored = True

    negatives: Negatives = "gold"
    penalty: NotNegative = 1.0

    def check_data(self, data: TrainingData, folder: Path) -> None:
        """Refuse questions without a gold passage."""
        require_gold(data)

    def train(self, data: TrainingData, folder: Path, dev: TrainingData = NO_DATA) -> None:
        """Train, and write `ranker.json` and a `manifest.json`."""
        self.check_data(data, folder)
        inputs = self.inputs(data) | {"features": list(FEATURES)}
        if not checkpoints.begin_training(folder, inputs):
            return
        weights = fit_weights(compute_lists(data), range(len(FEATURES)), self.negatives, self.penalty)
        write_json(folder / WEIGHTS, self.stored(data, weights))
        logger.info(f"{folder}: {len(data.questions):,} lists")
        checkpoints.finish_training(folder, inputs, {"lists": len(data.questions)}, [WEIGHTS])

    def stored(self, data: TrainingData, weights: "NDArray[np.float64]") -> dict[str, object]:
        """What the file of weights holds."""
        return {
            "family": data.family, "sources": data.sources, "questions": len(data.questions), "depth": self.retrieved,
            "negatives": self.negatives, "penalty": self.penalty,
            "weights": {name: round(weight, 6) for name, weight in zip(FEATURES, weights.tolist(), strict=True)},
        }  # fmt: skip


def compute_lists(data: TrainingData) -> list[ListFeatures]:
    """The list of each question: its ranked passages."""
    import numpy as np

    weigh, lists = load_word_weights(minilm_folder()), []
    with bar("lists", len(data.questions)) as advance:
        for question, ranking, scores in zip(data.questions, data.rankings, data.scores, strict=True):
            texts = [passage.text for passage in ranking]
            rows = compute_features(question.text, weigh, scores, texts)
            right = [any(covers(text, gold) for gold in question.gold_passages) for text in texts]
            gold = [passage.id.startswith(GOLD) for passage in ranking]
            lists.append(ListFeatures(rows, np.array(right, bool), np.array(gold, bool)))
            advance(1)
    return lists


def training_lists(
    lists: Sequence[ListFeatures], negatives: Negatives
) -> list[tuple["NDArray[np.float64]", "NDArray[np.bool_]"]]:
    """The features and the right passages of each list, of the passages that are trained on."""
    pairs = []
    for each in lists:
        used = each.right | each.gold | (negatives == "all")
        if each.right.any() and not each.right[used].all():
            pairs.append((each.rows[used], each.right[used]))
    if not pairs:
        raise IfqaError(
            "no list has both a passage that covers a gold passage and one that covers none; take a larger corpus"
        )
    return pairs


def fit_weights(
    lists: Sequence[ListFeatures], columns: Sequence[int], negatives: Negatives, penalty: float
) -> "NDArray[np.float64]":
    """The weights of some features, float64 [features]; those of the others are 0."""
    import numpy as np
    import torch

    rows, right = zip(*training_lists(lists, negatives), strict=True)
    owner = np.repeat(np.arange(len(rows)), [len(each) for each in rows])
    x = np.concatenate(rows)[:, list(columns)]
    spread = np.maximum(x.std(axis=0), 1e-9)
    inputs, of = torch.from_numpy(x / spread), torch.from_numpy(owner)
    wanted = torch.from_numpy(np.concatenate(right))
    weights = torch.zeros(len(columns), dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([weights], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        powers = (inputs @ weights).clamp(-50, 50).exp()
        total = torch.zeros(len(rows), dtype=torch.float64).index_add(0, of, powers)
        hit = torch.zeros(len(rows), dtype=torch.float64).index_add(0, of, powers * wanted)
        value = (total.log() - hit.log()).sum() + penalty * (weights**2).sum()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimiser.step(loss)  # type: ignore[no-untyped-call]
    every = np.zeros(len(FEATURES))
    every[list(columns)] = weights.detach().numpy() / spread
    return every
