"""Trains the retriever 'ranker' (`ifqa.retrieval.linear_ranker`): the weights of question and
passage's match features.

The model is a linear softmax over each question's list (ListNet, Cao et al. 2007) with an L2
penalty. Right passages cover a gold one. `bench/ranker.py` measures the gain.
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from ifqa.errors import ConfigError
from ifqa.models.places import minilm_folder
from ifqa.progress import bar
from ifqa.protocols import NO_DATA, TrainingData
from ifqa.records import GOLD
from ifqa.retrieval.linear_ranker import FEATURES, compute_features, load_word_weights
from ifqa.settings import NotNegative, PluginSettings
from ifqa.storage.files import write_json
from ifqa.training import checkpoints
from ifqa.training.trainer import BaseTrainer, covers_gold, require_gold

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

logger = logging.getLogger(__name__)

WEIGHTS = "ranker.json"
Negatives = Literal["gold", "all"]


class ListFeatures(NamedTuple):
    """A question's list: features, [passages, features], and which passages are right, and which
    are gold passages.
    """

    rows: "Floats"
    right: "Bools"
    gold: "Bools"


class Ranker(BaseTrainer):
    """Train the weights of the retriever 'ranker' on BM25's rankings, in seconds.

    Then set model = "models/ranker/ranker.json".
    """

    corpus = "ifqa-gold-articles"
    query = "names"
    retrieved = 100
    scored = True

    class Settings(PluginSettings):
        negatives: Negatives = "gold"
        """The wrong passages: "all", or "gold" for other questions' gold passages, lest the weights
        tell gold passages from articles.
        """
        penalty: NotNegative = 1.0
        """The factor of the sum of squared weights."""

    settings: Settings

    def check_data(self, dataset: TrainingData, folder: Path) -> None:
        require_gold(dataset)

    def train(self, dataset: TrainingData, folder: Path, dev: TrainingData = NO_DATA) -> None:
        self.check_data(dataset, folder)
        inputs = self.inputs(dataset) | {"features": list(FEATURES)}
        if not checkpoints.begin_training(folder, inputs):
            return
        settings = self.settings
        weights = fit_weights(
            compute_lists(dataset), range(len(FEATURES)), settings.negatives, settings.penalty
        )
        write_json(folder / WEIGHTS, self.weights_json(dataset, weights))
        logger.info(f"{folder}: {len(dataset.questions):,} lists")
        checkpoints.finish_training(folder, inputs, {"lists": len(dataset.questions)}, [WEIGHTS])

    def weights_json(self, dataset: TrainingData, weights: "Floats") -> dict[str, object]:
        return {
            "family": dataset.family,
            "sources": dataset.sources,
            "questions": len(dataset.questions),
            "depth": self.retrieved,
            "negatives": self.settings.negatives,
            "penalty": self.settings.penalty,
            "weights": {
                name: round(weight, 6)
                for name, weight in zip(FEATURES, weights.tolist(), strict=True)
            },
        }


def compute_lists(dataset: TrainingData) -> list[ListFeatures]:
    import numpy as np

    weigh = load_word_weights(minilm_folder())
    lists = []
    with bar("lists", len(dataset.questions)) as advance:
        for question, ranking, scores in zip(
            dataset.questions, dataset.rankings, dataset.scores, strict=True
        ):
            texts = [passage.text for passage in ranking]
            rows = compute_features(question.text, weigh, scores, texts)
            right = [covers_gold(text, question) for text in texts]
            gold = [passage.id.startswith(GOLD) for passage in ranking]
            lists.append(ListFeatures(rows, np.array(right, bool), np.array(gold, bool)))
            advance(1)
    return lists


def training_lists(
    lists: Sequence[ListFeatures], negatives: Negatives
) -> list[tuple["Floats", "Bools"]]:
    """Features and labels of each list's training passages.

    Lists without a right or a wrong passage are left out.
    """
    pairs = []
    for each in lists:
        used = each.right | each.gold | (negatives == "all")
        if each.right.any() and not each.right[used].all():
            pairs.append((each.rows[used], each.right[used]))
    if not pairs:
        raise ConfigError(
            "no list has passages both with and without a gold passage; take a larger corpus"
        )
    return pairs


def fit_weights(
    lists: list[ListFeatures], columns: Sequence[int], negatives: Negatives, penalty: float
) -> "Floats":
    """The weights of the features in `columns`, float64 [features]; other features get 0."""
    import numpy as np
    import torch

    rows, right = zip(*training_lists(lists, negatives), strict=True)
    features = np.concatenate(rows)[:, list(columns)]
    spread = np.maximum(features.std(axis=0), 1e-9)
    inputs = torch.from_numpy(features / spread)
    labels = torch.from_numpy(np.concatenate(right))
    list_of = torch.from_numpy(np.repeat(np.arange(len(rows)), [len(each) for each in rows]))
    weights = torch.zeros(len(columns), dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([weights], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        powers = (inputs @ weights).clamp(-50, 50).exp()
        zeros = torch.zeros(len(rows), dtype=torch.float64)
        total = zeros.index_add(0, list_of, powers)
        hit = zeros.index_add(0, list_of, powers * labels)
        objective = (total.log() - hit.log()).sum() + penalty * (weights**2).sum()
        objective.backward()  # type: ignore[no-untyped-call]
        return objective

    optimiser.step(loss)  # type: ignore[no-untyped-call]
    scaled = np.zeros(len(FEATURES))
    scaled[list(columns)] = weights.detach().numpy() / spread
    return scaled
