"""Encodes a corpus's passages to arrays on disk, in pieces that processes here or in a cluster can make.

What an interrupted build finished is reused: a piece's shard has the hash of the passages and of all that decides its arrays.
"""

import hashlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ifqa.corpus.store import count_passages, parse, shards_of
from ifqa.errors import IfqaError
from ifqa.models.hub import identity_of, question_model
from ifqa.progress import bar, say
from ifqa.records import Passage
from ifqa.retrieval.vectors.encoders import Encoder, EncoderSettings, open_encoder, precision_name
from ifqa.retrieval.vectors.vector_store import Filling
from ifqa.storage.artifacts import identity
from ifqa.storage.files import require
from ifqa.workers.tasks import Engine
from ifqa.workers.tasks import run as run_all

VERSION = 1  # raised when the same piece is encoded to other vectors
PIECE = 4096  # passages in a shard of vectors: the work that a kill can lose, and 6 MB at 768 dimensions
ID_BYTES = 16  # of a passage's id on disk
_SAMPLE = 96  # passages encoded to measure the speed
_LINE_BYTES = 2000  # of a passage in memory, as line, text and tokens
_WORDS = "the old bridge across the river was built in 1874 by an engineer who had come north from Leeds to find work".split()

Arrays = tuple[NDArray[Any], ...]
Encode = Callable[[Sequence[Passage]], Arrays]


@dataclass(frozen=True)
class Piece:
    """Lines of a shard of passages, and the `number` of the resulting shard of arrays."""

    number: int
    lines: bytes
    where: str
    settings: EncoderSettings | None = None

    def __str__(self) -> str:
        return self.where

    def passages(self) -> list[Passage]:
        """The passages of the piece."""
        path, _, first = self.where.rpartition(":")
        lines = enumerate(self.lines.splitlines(), start=int(first))
        return [parse(line, f"{path}:{number}") for number, line in lines if line.strip()]


def encoder_of(settings: EncoderSettings) -> Encoder:
    """The encoder; a process loads it once for the same settings and files."""
    return _encoder(settings, identity_of(settings.model, question_model(settings.model, settings.query_model)))


@lru_cache(maxsize=1)  # a worker has many pieces; by weights, for a model may be trained again in the same folder
def _encoder(settings: EncoderSettings, weights: str) -> Encoder:
    return open_encoder(settings)


def encode_piece(piece: Piece) -> tuple[list[str], Arrays]:
    """Ids and vectors, float32 [passages, dimension], of a piece's passages."""
    passages = piece.passages()
    encoder = encoder_of(piece.settings or EncoderSettings())
    return [passage.id for passage in passages], (encoder.encode_passages(passages),)


def encode(
    passages: Path, folder: Path, settings: EncoderSettings, *, engine: Engine = "local", workers: int = 0
) -> dict[str, object]:
    """Encode a folder of passages into a folder of vectors.

    Args:
        passages: a folder with `passages-*.jsonl`.
        folder: gets `vectors-*.npy`, `ids-*.npy` and `vectors.jsonl` (`ifqa.retrieval.vectors.vector_store`).
        settings: of the encoder.
        engine: "local", or "ray" for a cluster.
        workers: processes; 0 for one per GPU, or on a CPU a single process, which uses all cores; with Ray, 0 for as many as
            the cluster has room for.

    Returns:
        The encoder's facts, "passages" (how many) and "weights" (SHA-256 of the model's files).

    Raises:
        IfqaError: there are no passages, or the model is missing or does not load.
    """
    shards = _counted(passages)  # before the model loads, which takes long
    # "auto" is resolved here, so that all workers use the same precision
    settings = replace(settings, precision=precision_name(settings.precision, settings.device))
    encoder = encoder_of(settings)
    weights = identity_of(settings.model, encoder.facts.get("query_model", ""))
    facts: dict[str, object] = {**encoder.facts, "weights": weights}
    say(f"{folder}: {encoder.described()}")
    made_with = identity(facts | {"version": VERSION, "query_prefix": "", "query_model": ""})
    gpus = gpus_for(encoder.device)
    workers = workers or (max(1, gpus) if engine == "local" else 0)

    def encoded(pieces: Iterator[Piece]) -> Iterable[tuple[Piece, tuple[list[str], Arrays]]]:
        settled = (replace(piece, settings=settings) for piece in pieces)
        return run_all(encode_piece, settled, workers=workers, engine=engine, gpus=gpus)

    return facts | {"passages": _fill(shards, folder, ("vectors",), made_with, encoded)}


def encode_here(passages: Path, folder: Path, kinds: Sequence[str], made_with: str, encode: Encode) -> int:
    """Encode a folder of passages in this process, which uses the whole GPU; returns the number of passages.

    Args:
        passages: a folder with `passages-*.jsonl`.
        folder: gets the shards, and `vectors.jsonl`, the list of them.
        kinds: the names of the arrays that `encode` gives.
        made_with: hash of the model and the settings; shards that were made with another are made again.
        encode: makes the arrays of a shard.

    Raises:
        IfqaError: there are no passages, or a vector holds NaN or infinity.
    """

    def encoded(pieces: Iterator[Piece]) -> Iterator[tuple[Piece, tuple[list[str], Arrays]]]:
        for piece in pieces:
            shard = piece.passages()
            yield piece, ([passage.id for passage in shard], encode(shard))

    return _fill(_counted(passages), folder, kinds, f"{VERSION} {made_with} ", encoded)


def _fill(
    counted: tuple[dict[int, Path], int],
    folder: Path,
    kinds: Sequence[str],
    made_with: str,
    encoded: Callable[[Iterator[Piece]], Iterable[tuple[Piece, tuple[list[str], Arrays]]]],
) -> int:
    """Write the shards that are not there yet; returns the number of passages."""
    shards, count = counted
    filling, keys, reused = Filling(folder, kinds), dict[int, str](), 0
    with bar("vectors", count) as advance:

        def unfinished() -> Iterator[Piece]:
            nonlocal reused
            for piece in _pieces(shards):
                keys[piece.number] = hashlib.sha256(made_with.encode() + piece.lines).hexdigest()
                there = filling.has(piece.number, keys[piece.number])
                if there is None:
                    yield piece
                else:
                    reused += there
                    advance(there)

        for piece, (ids, arrays) in encoded(unfinished()):
            filling.add(piece.number, keys[piece.number], ids, *arrays)
            advance(len(ids))
    if reused:
        say(f"{reused:,} passages had been encoded by an earlier build")
    return filling.finish(keys)


def _pieces(shards: dict[int, Path]) -> Iterator[Piece]:
    """The shards' passages in pieces of `PIECE`; a piece never spans two shards."""
    number = 0
    for path in shards.values():
        with open(path, "rb") as handle:
            lines: list[bytes] = []
            first = 0
            for at, line in enumerate(handle, start=1):
                if not lines and not line.strip():
                    continue
                first = first or at
                lines.append(line)
                if len(lines) == PIECE:
                    yield Piece(number, b"".join(lines), f"{path}:{first}")
                    number, lines, first = number + 1, [], 0
            if lines:
                yield Piece(number, b"".join(lines), f"{path}:{first}")
                number += 1


def _counted(passages: Path) -> tuple[dict[int, Path], int]:
    """The shards of a folder of passages by their number, and the number of passages.

    Raises:
        IfqaError: there are none.
    """
    shards = shards_of(require(passages, "passages folder"))
    count = sum(map(count_passages, shards.values()))
    if not count:
        raise IfqaError(f"no passages in {passages}; wanted passages-*.jsonl, one a line; run: ifqa passages CORPUS")
    return shards, count


@dataclass(frozen=True)
class Pace:
    """The arrays of `count` passages of 100 words, how many are encoded in a second, and bytes of memory while encoding."""

    arrays: Arrays
    count: int
    per_second: float
    memory: float


def pace(encode: Encode, device: str, copies: int) -> Pace:
    """Measure the pace by encoding a few passages; a build holds `copies` of a piece's arrays in memory."""
    sample = sample_for(device)
    encode(sample[:8])  # warm-up
    started = time.perf_counter()
    arrays = encode(sample)
    seconds = time.perf_counter() - started
    held = sum(array.nbytes for array in arrays) / len(sample) + _LINE_BYTES
    return Pace(arrays, len(sample), len(sample) / seconds, _peak_memory() + copies * PIECE * held)


def sample_for(device: str) -> list[Passage]:
    """Passages of 100 words on average, as many as show the speed of a device."""
    texts = [" ".join((_WORDS * 8)[: 52 + number]) for number in range(_SAMPLE)]
    return [Passage("", "A title", text) for text in texts] * (1 if device == "cpu" else 64)


def _peak_memory() -> float:
    """Peak memory of this process in bytes; on Windows, which does not report it, that of the default encoder."""
    if sys.platform == "win32":
        return 1e9
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1.0 if sys.platform == "darwin" else 1024.0)


def gpus_for(device: str) -> int:
    """The number of GPUs that encode; 0 on another device."""
    import torch

    return torch.cuda.device_count() if device == "cuda" else 0
