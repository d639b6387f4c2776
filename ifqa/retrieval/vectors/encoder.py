"""Encoders turn texts into vectors, in batches of similar length.

A model's own files decide pooling, prefixes and normalisation. `Encoder.facts` reports them, because a wrong query prefix
raises no error and costs recall.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from ifqa.errors import IfqaError
from ifqa.models.batches import BUDGET, CHUNK, Features, batches, to_device
from ifqa.records import Passage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor


class Facts(TypedDict):
    """The settings that decide an encoder's vectors."""

    model: str
    query_model: NotRequired[str]  # DPR only
    pooling: str
    normalised: bool
    query_prefix: str | None
    passage_prefix: str | None
    titles: bool
    max_tokens: int | None
    precision: str
    dimension: NotRequired[int | None]  # known once the model is loaded


class Encoder:
    """A loaded model. `facts` has the settings that decide its vectors; they are printed and stored in the index."""

    def __init__(self, facts: Facts, device: str, queries: "Side", passages: "Side", with_titles: bool) -> None:
        """Do not call this; use `ifqa.retrieval.vectors.loading.open_encoder`."""
        self.facts = facts
        self.device = device
        self._queries, self._passages, self._with_titles = queries, passages, with_titles

    def encode_queries(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Vectors of questions, float32 [texts, dimension]."""
        return _encode(self._queries, [(text, "") for text in texts], self.device)

    def encode_passages(
        self, passages: Sequence[Passage], advance: Callable[[int], None] = lambda done: None
    ) -> "NDArray[np.float32]":
        """Vectors of passages, float32 [passages, dimension]; `advance` gets the number of further passages done."""
        pairs = [(passage.text, passage.title if self._with_titles else "") for passage in passages]
        return _encode(self._passages, pairs, self.device, advance)


class Side:
    """How a model encodes questions, or passages: texts to padded token ids, and token ids to vectors."""

    def __init__(
        self, tokenise: Callable[[Sequence[tuple[str, str]]], Features], forward: Callable[[Features], "Tensor"]
    ) -> None:
        self.tokenise, self.forward = tokenise, forward


def check_positions(max_tokens: int, config: Any) -> None:
    """Refuse more tokens than a network has positions, for it would fail at the first text that long."""
    most = getattr(config, "max_position_embeddings", max_tokens)
    if not 3 <= max_tokens <= most:
        raise IfqaError(f"max_tokens: wanted 3 to {most}, the number of the model's positions; found {max_tokens}")


def _whole(text: str) -> str:
    """The text without lone surrogates, which tokenizers refuse."""
    return text.encode("utf-8", "replace").decode()


def _encode(
    side: Side, pairs: Sequence[tuple[str, str]], device: str, advance: Callable[[int], None] = lambda done: None
) -> "NDArray[np.float32]":
    """A thread tokenises the next chunk. A chunk's batches hold texts of similar length, up to a budget of tokens."""
    import numpy as np
    import torch

    pairs = [(_whole(text), _whole(title)) for text, title in pairs]
    if not pairs:
        return _encode(side, [("x", "")], device)[:0]
    chunks = [pairs[start : start + CHUNK] for start in range(0, len(pairs), CHUNK)]
    found = []
    with ThreadPoolExecutor(1) as ahead, torch.inference_mode():
        waiting = [ahead.submit(side.tokenise, chunk) for chunk in chunks[:1]]
        for number, chunk in enumerate(chunks):
            features = waiting.pop().result()
            waiting += [ahead.submit(side.tokenise, following) for following in chunks[number + 1 : number + 2]]
            vectors: list[Tensor] = []
            order: list[int] = []
            for places, batch in batches(features, len(chunk), BUDGET[device]):
                vectors.append(side.forward(to_device(batch, device)).float())
                order += places
                if device == "cpu":
                    advance(len(places))
            found.append(torch.cat(vectors).cpu().numpy()[np.argsort(order)])  # wait for a GPU once per chunk
            if device != "cpu":
                advance(len(chunk))
    return np.concatenate(found) if found else np.empty((0, 0), np.float32)
