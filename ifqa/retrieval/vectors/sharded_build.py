"""Encodes a corpus's passages to arrays on disk, in pieces that processes here or in a cluster can make.

What an interrupted build finished is reused: a piece's shard has the hash of the passages and of all that decides its arrays.
"""

import hashlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ifqa.corpus.store import counted, parse
from ifqa.progress import bar, say
from ifqa.records import Cost, Passage
from ifqa.retrieval.vectors.vector_store import Filling
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
    """Lines of a shard of passages, the `number` of the resulting shard of arrays, and what makes these."""

    number: int
    lines: bytes
    where: str
    encode: Encode

    def __str__(self) -> str:
        return self.where


def encode_piece(piece: Piece) -> tuple[list[str], Arrays]:
    """The ids and the arrays of a piece's passages."""
    path, _, first = piece.where.rpartition(":")
    lines = enumerate(piece.lines.splitlines(), start=int(first))
    passages = [parse(line, f"{path}:{number}") for number, line in lines if line.strip()]
    return [passage.id for passage in passages], piece.encode(passages)


def encode_corpus(
    passages: Path,
    folder: Path,
    kinds: Sequence[str],
    made_with: str,
    encode: Encode,
    *,
    engine: Engine = "local",
    workers: int = 1,
    gpus: int = 0,
) -> int:
    """Encode a folder of passages into a folder of arrays, and return the number of passages.

    Args:
        passages: a folder with `passages-*.jsonl`.
        folder: gets a file of ids and of each kind of array for each shard, and the list of them
            (`ifqa.retrieval.vectors.vector_store`).
        kinds: the names of the arrays that `encode` gives.
        made_with: hash of the model and the settings; shards that were made with another are made again.
        encode: makes the arrays of a shard; with several workers it is sent to them.
        engine: "local", or "ray" for a cluster.
        workers: processes; with Ray, 0 for as many as the cluster has room for.
        gpus: GPUs of this machine that the workers share.

    Raises:
        IfqaError: there are no passages, or a vector holds NaN or infinity.
    """
    shards, count = counted(passages)
    filling, keys, reused = Filling(folder, kinds), dict[int, str](), 0
    with bar("vectors", count) as advance:

        def unfinished() -> Iterator[Piece]:
            nonlocal reused
            for piece in _pieces(shards, encode):
                keys[piece.number] = hashlib.sha256(made_with.encode() + piece.lines).hexdigest()
                there = filling.has(piece.number, keys[piece.number])
                if there is None:
                    yield piece
                else:
                    reused += there
                    advance(there)

        done = run_all(encode_piece, unfinished(), workers=workers, engine=engine, gpus=gpus)
        for piece, (ids, arrays) in done:
            filling.add(piece.number, keys[piece.number], ids, *arrays)
            advance(len(ids))
    if reused:
        say(f"{reused:,} passages had been encoded by an earlier build")
    return filling.finish(keys)


def _pieces(shards: dict[int, Path], encode: Encode) -> Iterator[Piece]:
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
                    yield Piece(number, b"".join(lines), f"{path}:{first}", encode)
                    number, lines, first = number + 1, [], 0
            if lines:
                yield Piece(number, b"".join(lines), f"{path}:{first}", encode)
                number += 1


def forecast(passages: int, encode: Encode, device: str, *, gpus: int = 1, once: int = 0) -> Cost:
    """What the encoding of some passages will take, measured by encoding a few.

    Args:
        passages: how many.
        encode: makes the arrays of passages.
        device: that of the model.
        gpus: that work at once.
        once: of the arrays, the number of the first ones that a shard has once, whatever its passages.
    """
    sample = sample_for(device)
    encode(sample[:8])  # warm-up
    started = time.perf_counter()
    arrays = encode(sample)
    per_second = len(sample) / (time.perf_counter() - started) * gpus
    sizes = [array.size * 2 if array.dtype.kind == "f" else array.nbytes for array in arrays]  # in half precision
    each = sum(sizes[once:]) / len(sample)
    shards = -(-passages // PIECE)
    disk = passages * (each + ID_BYTES) + shards * sum(sizes[:once])
    about = f" at {per_second:,.0f} passages a second, measured now"
    return Cost(passages / per_second, disk, _peak_memory() + 3 * PIECE * (each + _LINE_BYTES), about)


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
