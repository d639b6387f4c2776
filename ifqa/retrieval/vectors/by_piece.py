"""Encodes a corpus in this process, piece by piece; pieces that an earlier build finished are reused.

`splade` and `colbert` share it: what they store of a passage is not one vector, and one process uses the whole GPU.
"""

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ifqa.models.hub import identity_of
from ifqa.progress import bar, say
from ifqa.records import Passage
from ifqa.retrieval.vectors.encode import PIECE, counted, peak_memory, pieces, sample_for
from ifqa.retrieval.vectors.loading import refuse_other_weights
from ifqa.retrieval.vectors.store import Filling
from ifqa.settings import Positive, Stored, Text, check_stored
from ifqa.storage.artifacts import identity
from ifqa.storage.files import read_json, require, write_json

if TYPE_CHECKING:
    from numpy.typing import NDArray

VERSION = 1  # raised when the same piece is stored as other arrays
ID_BYTES = 16
_LINE_BYTES = 2_000  # of a passage in memory, as line, text and tokens

Arrays = tuple["NDArray[Any]", ...]
Encode = Callable[[Sequence[Passage], int], Arrays]  # passages of a shard, and its number


class Facts(Stored):
    """What is stored of an index beside its shards."""

    model: Text
    weights: str  # SHA-256 of the model's files
    titles: bool
    precision: str
    passages: Positive


def fill(passages: Path, folder: Path, kinds: Sequence[str], made_with: str, encode: Encode) -> int:
    """Encode a folder of passages into shards of `PIECE` passages; returns the number of passages.

    Args:
        passages: a folder with `passages-*.jsonl`.
        folder: gets the shards, and `vectors.jsonl`, the list of them.
        kinds: the names of the arrays that `encode` gives.
        made_with: hash of the model and the settings; shards that were made with another are made again.
        encode: makes the arrays of a shard.

    Raises:
        IfqaError: there are no passages, or a vector holds NaN or infinity.
    """
    shards, count = counted(passages)
    filling, keys, reused = Filling(folder, kinds), dict[int, str](), 0
    with bar("vectors", count) as advance:
        for piece in pieces(shards):
            keys[piece.number] = hashlib.sha256(f"{VERSION} {made_with} ".encode() + piece.data).hexdigest()
            done = filling.has(piece.number, keys[piece.number])
            if done is None:
                own = piece.passages()
                filling.add(piece.number, keys[piece.number], [one.id for one in own], *encode(own, piece.number))
                done = len(own)
            else:
                reused += done
            advance(done)
    if reused:
        say(f"{reused:,} passages had been encoded by an earlier build")
    return filling.finish(keys)


def build(
    passages: Path,
    folder: Path,
    name: str,
    kinds: Sequence[str],
    version: int,
    facts: dict[str, object],
    encode: Encode,
) -> None:
    """Fill a folder, and write its `Facts` in the file `name`, last.

    Args:
        passages, folder, kinds, encode: as in `fill`.
        name: the file for the facts.
        version: of the retriever.
        facts: those of `Facts` but for the number of passages.

    Raises:
        IfqaError: as `fill`.
    """
    made_with = identity(facts | {"version": version, "model": ""})
    write_json(folder / name, facts | {"passages": fill(passages, folder, kinds, made_with, encode)})


def facts_of(index: Path, name: str, what: str) -> Facts:
    """What `build` wrote of an index; `what` it is of, for messages.

    Raises:
        IfqaError: it is missing or damaged, or the index is of other weights than the model has now.
    """
    path = require(index / name, what)
    facts = check_stored(Facts, read_json(path), str(path), "build it again: ifqa index CORPUS")
    refuse_other_weights(index, facts.model, facts.weights, identity_of(facts.model))
    return facts


@dataclass(frozen=True)
class Timed:
    """The arrays of `count` passages of 100 words, the seconds that they took, and bytes of memory for a build."""

    arrays: Arrays
    count: int
    seconds: float
    memory: float

    @property
    def per_second(self) -> float:
        """Passages encoded in a second."""
        return self.count / self.seconds


def timed(encode: Encode, device: str) -> Timed:
    """Encode a few passages and time it."""
    sample = sample_for(device)
    encode(sample[:8], 0)  # warm-up
    started = time.perf_counter()
    arrays = encode(sample, 0)
    seconds = time.perf_counter() - started
    held = sum(array.nbytes for array in arrays) / len(sample) + _LINE_BYTES
    return Timed(arrays, len(sample), seconds, peak_memory() + 3 * PIECE * held)


def texts_of(passages: Sequence[Passage], titles: bool) -> list[str]:
    """What is encoded of passages: the text, after the title where `titles` is set."""
    whole = [f"{one.title} {one.text}" if titles and one.title else one.text for one in passages]
    return [text.encode("utf-8", "replace").decode() for text in whole]  # tokenizers refuse lone surrogates
