"""Static embeddings: a vector for each token of an encoder, so that a text's vector is a weighted sum, without a network.

Each token of the vocabulary is encoded alone (as in model2vec; Tulkens and van Dongen 2024). A text's vector is the sum of its
tokens' vectors, each divided by how frequent the token is (SIF; Arora et al., ICLR 2017), without the direction that all texts
share, in the directions in which texts differ most, of length 1.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ifqa.errors import IfqaError
from ifqa.progress import bar
from ifqa.storage.files import create, require, write

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

_WORD = re.compile(r"\w+")
_KEPT = 1_000_000  # words whose tokens are remembered
_TOKENS_AT_ONCE = 1_024
_TEXTS_AT_ONCE = 4_096
_SMOOTHING = 1e-4  # share of all tokens at which a token's weight is half of a rare one's


class Words:
    """Cuts texts into words, and words into the tokens of an encoder; marks between words are left out."""

    def __init__(self, folder: Path) -> None:
        """Open the tokenizer of a model's folder."""
        from ifqa.models.transformer import tokenizer

        self._tokenizer = tokenizer(folder)
        self._known: dict[str, list[int]] = {}
        self.size: int = self._tokenizer.get_vocab_size()

    def id_of(self, token: str) -> int:
        """The id of a token of the vocabulary."""
        found: int = self._tokenizer.token_to_id(token)
        return found

    def ids(self, text: str) -> list[int]:
        """The ids of a text's tokens."""
        found: list[int] = []
        for word in _WORD.findall(text.lower()):
            ids = self._known.get(word)
            if ids is None:
                if len(self._known) >= _KEPT:
                    self._known.clear()
                ids = self._known[word] = self._tokenizer.encode(word, add_special_tokens=False).ids
            found += ids
        return found

    def bags(self, texts: Iterable[str]) -> "tuple[Tensor, Tensor]":
        """The ids of all texts' tokens one after another, and where each text begins; int64 both."""
        import torch

        ids: list[int] = []
        starts: list[int] = []
        for text in texts:
            starts.append(len(ids))
            ids += self.ids(text)
        return torch.tensor(ids, dtype=torch.int64), torch.tensor(starts, dtype=torch.int64)


def encoded_alone(folder: Path) -> "Tensor":
    """The mean of an encoder's outputs for each token of its vocabulary alone, float32 [tokens, size].

    Raises:
        IfqaError: the folder holds no weights of BERT's kind of network.
    """
    import torch

    from ifqa.models.minilm import MiniLM

    words, network = Words(folder), MiniLM(folder)
    before, after = (words.id_of(network.MARKS[end][0]) for end in (0, -1))
    found = torch.empty(words.size, network.size)
    with torch.inference_mode(), bar("token table", words.size) as advance:
        for start in range(0, words.size, _TOKENS_AT_ONCE):
            ids = torch.arange(start, min(start + _TOKENS_AT_ONCE, words.size))
            rows = torch.stack([torch.full_like(ids, before), ids, torch.full_like(ids, after)], dim=1)
            hidden = network(rows, torch.zeros_like(rows), torch.ones_like(rows, dtype=torch.bool))
            found[ids] = hidden.mean(dim=1)
            advance(len(ids))
    return found


def reduced(outputs: "Tensor", counts: "Tensor", ids: "Tensor", starts: "Tensor", dimension: int) -> "Tensor":
    """A table whose sums are texts' vectors, float32 [tokens, dimension].

    Args:
        outputs: of `encoded_alone`.
        counts: how often each token occurs in a sample of texts, [tokens].
        ids, starts: that sample, as `Words.bags` gives it.
        dimension: at most the size of the outputs less one.
    """
    import torch

    share = counts / counts.sum().clamp(min=1)
    weighted = outputs * (_SMOOTHING / (_SMOOTHING + share))[:, None]
    texts = torch.nn.functional.normalize(sums(weighted, ids, starts))
    # The first direction is common to all texts; of the others those with most of the texts' spread
    _, directions = torch.linalg.eigh(texts.double().T @ texts.double())  # ascending
    chosen = directions.flip(1)[:, 1 : dimension + 1]
    signs = torch.where(chosen.sum(dim=0) < 0, -1.0, 1.0)  # an eigenvector may come with either sign
    table: Tensor = weighted @ (chosen * signs).float()
    return table


def sums(table: "Tensor", ids: "Tensor", starts: "Tensor") -> "Tensor":
    """The sum of the rows of each text's tokens, [texts, dimension]; zeros for a text without tokens."""
    import torch

    return torch.nn.functional.embedding_bag(ids, table, starts, mode="sum")


class Table:
    """A vector for each token, and the words that it is for."""

    def __init__(self, vectors: "Tensor", words: Words) -> None:
        """Keep both; `vectors` is float32 [tokens, dimension]."""
        self._vectors, self._words = vectors, words

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""
        return int(self._vectors.shape[1])

    def vectors(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """The texts' vectors, of length 1, float32 [texts, dimension]; zeros for a text without words."""
        import torch

        found = torch.empty(len(texts), self.dimension)
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            bags = self._words.bags(texts[start : start + _TEXTS_AT_ONCE])
            found[start : start + _TEXTS_AT_ONCE] = torch.nn.functional.normalize(sums(self._vectors, *bags))
        return found.numpy()

    def write(self, path: Path, key: str) -> None:
        """Write the table in half precision, with the hash of what it was made from."""
        from safetensors.torch import save

        with create(path) as handle:
            write(handle, save({"table": self._vectors.half()}, {"key": key}))

    @classmethod
    def read(cls, path: Path, words: Words, key: str = "") -> "Table":
        """A table that was written; with `key`, only one that was made from the same.

        Raises:
            IfqaError: it is missing, damaged, made from something else, or of other words.
        """
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(require(path, "token table"), "pt") as file:
                found, vectors = (file.metadata() or {}).get("key"), file.get_tensor("table").float()
        except SafetensorError as error:
            raise IfqaError(f"{path} is damaged ({error}); build the index again: ifqa index CORPUS") from error
        if (key and found != key) or len(vectors) != words.size:
            raise IfqaError(f"{path} is of another model or other passages; build the index again: ifqa index CORPUS")
        return cls(vectors, words)


def make_table(folder: Path, texts: Iterable[str], dimension: int) -> Table:
    """The table of a model's folder, with directions and frequencies from a sample of texts.

    Raises:
        IfqaError: the folder holds no weights of BERT's kind of network, or `dimension` is not below its size.
    """
    import torch

    words = Words(folder)
    outputs = encoded_alone(folder)
    if dimension >= outputs.shape[1]:
        raise IfqaError(f"dimension = {dimension}; wanted less than the model's {outputs.shape[1]}")
    ids, starts = words.bags(texts)
    counts = torch.bincount(ids, minlength=words.size).float()
    return Table(reduced(outputs, counts, ids, starts, dimension).half().float(), words)
