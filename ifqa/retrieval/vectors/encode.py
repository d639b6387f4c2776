"""Encodes a corpus's passages to vectors on disk, in pieces that processes here or in a cluster can make."""

import hashlib
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ifqa.corpus.store import count_passages, parse, shards_of
from ifqa.errors import IfqaError
from ifqa.models.devices import resolve_device
from ifqa.models.hub import NAME, identity_of, question_model
from ifqa.progress import bar, say
from ifqa.records import Passage
from ifqa.retrieval.vectors.encoder import Encoder, Facts
from ifqa.retrieval.vectors.loading import EncoderSettings, open_encoder, resolve_precision
from ifqa.retrieval.vectors.store import Filling
from ifqa.storage.artifacts import identity
from ifqa.storage.files import require
from ifqa.workers.tasks import Engine
from ifqa.workers.tasks import run as run_all

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

VERSION = 1  # raised when the same piece is encoded to other vectors
PIECE = 4096  # passages in a shard of vectors: the work that a kill can lose, and 6 MB at 768 dimensions

_SAMPLE = 96  # passages encoded to measure the speed
_SHAPES = 250e6  # bytes that torch caches on a CPU for batches of many shapes; the cache levels off there
_ID_BYTES, _LINE_BYTES = 16, 2000  # bytes of an id; bytes of a passage in memory, as line, text and tokens
_HUNDRED_WORDS = (
    "The old bridge across the river was built in 1874 by the engineer Thomas Allardyce, who had come north from Leeds to "
    "find work on the new railway. It carried the road between the two halves of the town for ninety years, until a flood in "
    "the spring of 1964 took away its middle pier. A temporary crossing stood in its place for three winters, and in 1967 the "
    "county council opened the present bridge, a plain concrete span of 112 metres, to which the iron lamps of the first one "
    "were moved. Every September the townspeople walk across it with lanterns in memory."
)


Settings = tuple[tuple[str, object], ...]  # of an encoder: pairs of name and value


@dataclass(frozen=True)
class Piece:
    """Lines of a shard of passages, the encoder's settings, and the `number` of the resulting shard of vectors."""

    number: int
    data: bytes
    where: str
    settings: Settings

    def __str__(self) -> str:
        return self.where

    def passages(self) -> list[Passage]:
        """The passages of the piece."""
        path, _, first = self.where.rpartition(":")
        return [
            parse(line, f"{path}:{int(first) + n}") for n, line in enumerate(self.data.splitlines()) if line.strip()
        ]


def encoder_of(settings: Settings) -> Encoder:
    """The encoder; a process loads it once for the same settings and files."""
    own = cast(EncoderSettings, dict(settings))
    model = own.setdefault("model", NAME)
    weights = identity_of(model, question_model(model, own.get("query_model", "")))
    return _encoder(
        tuple(sorted(own.items())), weights
    )  # by weights, for a model may be trained again in the same folder


@lru_cache(maxsize=1)  # models are large, and an opened retriever keeps its own
def _encoder(settings: Settings, weights: str) -> Encoder:
    return open_encoder(**cast(EncoderSettings, dict(settings)))


def encode_piece(piece: Piece) -> tuple[list[str], "NDArray[np.float32]"]:
    """Ids and vectors, float32 [passages, dimension], of a piece's passages."""
    passages = piece.passages()
    return [one.id for one in passages], encoder_of(piece.settings).encode_passages(passages)


def encode(
    passages: Path, folder: Path, settings: EncoderSettings, *, engine: Engine = "local", workers: int = 0
) -> dict[str, object]:
    """Encode a folder of passages into a folder of vectors; shards of an interrupted build are reused.

    Args:
        passages: a folder with `passages-*.jsonl`.
        folder: gets `vectors-*.npy`, `ids-*.npy` and `vectors.jsonl` (`ifqa.retrieval.vectors.store`).
        settings: those of `open_encoder`.
        engine: "local", or "ray" for a cluster.
        workers: processes; 0 for one per GPU, or on a CPU a single process, which uses all cores; with Ray, 0 for as many as
            the cluster has room for.

    Returns:
        The encoder's facts, "passages" (how many) and "weights" (SHA-256 of the model's files).

    Raises:
        IfqaError: there are no passages, or the model is missing or does not load.
    """
    shards, count = counted(passages)
    precision = resolve_precision(settings["precision"], resolve_device(settings["device"]), settings["model"])
    # "auto" is resolved here, so that all workers use the same precision
    key = tuple(sorted({**settings, "precision": precision}.items()))
    encoder = encoder_of(key)
    weights = identity_of(settings["model"], encoder.facts.get("query_model", ""))
    facts: dict[str, object] = {**encoder.facts, "weights": weights}
    say(f"{folder}: {described(encoder.facts)}")
    made_with = identity(facts | {"version": VERSION, "query_prefix": "", "query_model": ""})
    gpus = _gpus(encoder.device)
    workers = workers or (max(1, gpus) if engine == "local" else 0)
    filling, keys, reused = Filling(folder), {}, 0
    with bar("vectors", count) as advance:

        def unfinished() -> Iterator[Piece]:
            nonlocal reused
            for piece in pieces(shards, key):
                keys[piece.number] = hashlib.sha256(made_with.encode() + piece.data).hexdigest()
                there = filling.has(piece.number, keys[piece.number])
                if there is None:
                    yield piece
                else:
                    reused += there
                    advance(there)

        found = run_all(encode_piece, unfinished(), workers=workers, engine=engine, gpus=gpus)
        for piece, (ids, vectors) in found:
            filling.add(piece.number, keys[piece.number], ids, vectors)
            advance(len(ids))
    if reused:
        say(f"{reused:,} passages had been encoded by an earlier build")
    return facts | {"passages": filling.finish(keys)}


@dataclass(frozen=True)
class Pace:
    """Speed of encoding on this machine, bytes on disk for each passage, dimension, and bytes of memory while encoding."""

    passages_per_second: float
    bytes_each: int
    dimension: int
    memory: float


def pace(settings: EncoderSettings) -> Pace:
    """Measure the pace by encoding a few passages.

    Raises:
        IfqaError: the model is missing or does not load.
    """
    encoder = encoder_of(tuple(sorted(settings.items())))
    sample = sample_for(encoder.device)
    encoder.encode_passages(sample[:8])  # warm-up
    started = time.perf_counter()
    dimension = int(encoder.encode_passages(sample).shape[1])
    seconds = time.perf_counter() - started
    return Pace(
        len(sample) * max(1, _gpus(encoder.device)) / seconds,
        2 * dimension + _ID_BYTES,
        dimension,
        peak_memory() + PIECE * (4 * dimension + _LINE_BYTES) + (_SHAPES if encoder.device == "cpu" else 0),
    )


def sample_for(device: str) -> list[Passage]:
    """Passages of 100 words on average, as many as show the speed of a device."""
    words = (_HUNDRED_WORDS + " " + _HUNDRED_WORDS).split()
    texts = [" ".join(words[: 52 + number]) for number in range(_SAMPLE)]
    return [Passage("", "A title", text) for text in texts] * (1 if device == "cpu" else 64)


def peak_memory() -> float:
    """Peak memory of this process in bytes; on Windows, which does not report it, that of the default encoder."""
    if sys.platform == "win32":
        return 1e9
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1.0 if sys.platform == "darwin" else 1024.0)


def described(facts: Facts) -> str:
    """An encoder's facts in one line. They are printed because wrong treatment of texts fails silently."""
    return (
        f"{facts['model']}, {facts['dimension']} dimensions, {facts['pooling']} pooling, "
        f"{'normalised' if facts['normalised'] else 'not normalised'}, {facts['max_tokens']} tokens, "
        f"query prefix {json.dumps(facts['query_prefix'])}, passage prefix {json.dumps(facts['passage_prefix'])}, "
        f"titles {'before the text' if facts['titles'] else 'left out'}, {facts['precision']}"
    )


def counted(passages: Path) -> tuple[dict[int, Path], int]:
    """The shards of a folder of passages by their number, and the number of passages.

    Raises:
        IfqaError: there are none.
    """
    shards = shards_of(require(passages, "passages folder"))
    count = sum(map(count_passages, shards.values()))
    if not count:
        raise IfqaError(f"no passages in {passages}; wanted passages-*.jsonl, one a line; run: ifqa passages CORPUS")
    return shards, count


def pieces(shards: dict[int, Path], settings: Settings = ()) -> Iterator[Piece]:
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
                    yield Piece(number, b"".join(lines), f"{path}:{first}", settings)
                    number, lines, first = number + 1, [], 0
            if lines:
                yield Piece(number, b"".join(lines), f"{path}:{first}", settings)
                number += 1


def _gpus(device: str) -> int:
    import torch

    return torch.cuda.device_count() if device == "cuda" else 0
