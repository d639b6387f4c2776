"""Estimates time, disk and memory for building a corpus's passages from a sample of its sources."""

import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import cast

from ifqa.corpus import sources
from ifqa.corpus.blocks import Block, BlockSettings, make_shard
from ifqa.corpus.sources import Source
from ifqa.corpus.wikipedia import multistream
from ifqa.errors import IfqaError
from ifqa.settings import settings_of

_PLACES = 12  # places of a multistream dump to sample: it begins with its oldest, longest articles
_WORKER_MEMORY = 150e6  # bytes, measured for a process with one block
_PASSAGE_MEMORY = 36  # bytes a passage while the ids are sorted
_INDEX_BYTES = 16  # bytes a passage in the index of ids
_ID_SECONDS = 5e-6  # seconds a passage to sort the ids
_NEVER_MORE = 12  # bytes of passages from a byte of input; the most tightly packed articles give 6


@dataclass(frozen=True)
class Forecast:
    """Numbers of pages and passages, bytes on disk, CPU seconds, and the share of the input in the sample.

    One process spends the `reading` seconds: it alone unpacks any file that is not a multistream dump. All workers
    share the `working` seconds.
    """

    pages: float
    passages: float
    disk: float
    reading: float
    working: float
    seen: float

    def seconds(self, workers: int) -> float:
        """Lower bound of the build's seconds, with a core for each worker."""
        return max(self.reading, (self.reading + self.working) / workers) + self.passages * _ID_SECONDS

    def memory(self, workers: int) -> float:
        """Approximate bytes of the workers and of this process, which keeps blocks ready for them."""
        return (workers + 1) * _WORKER_MEMORY + self.passages * _PASSAGE_MEMORY


def forecast(several: Sequence[Source]) -> Forecast | None:
    """Estimate what building the passages of sources takes; None if a source is a pipe, which can be read only once."""
    if any(map(sources.is_pipe, several)):
        return None
    total = sources.size(several) or 0
    sums = [0.0] * 5
    seen = 0
    for source in several:
        size, read, own = sources.size([source]) or 0, 0, [0.0] * 5
        sample = _sample(source)
        while True:
            started = time.process_time()
            block = next(sample, None)
            reading = time.process_time() - started
            if block is None:
                break
            shard = make_shard(block)
            working = time.process_time() - started - reading
            read += block.read
            new = (shard.pages, shard.passages, len(shard.data), reading, working)
            own = [old + more for old, more in zip(own, new, strict=True)]
        sums = [old + part * (size / read if read else 1.0) for old, part in zip(sums, own, strict=True)]
        seen += read
    pages, passages, disk, reading, working = sums
    return Forecast(pages, passages, disk + passages * _INDEX_BYTES, reading, working, seen / total if total else 1.0)


def require_room(several: Sequence[Source], folder: Path) -> None:
    """Refuse a build that will not fit on the disk, before any work is done.

    Args:
        several: the sources to build.
        folder: the folder of the build; shards that an earlier build left there count as free room.

    Raises:
        IfqaError: the estimate from a sample is larger than the room on the disk.
    """
    free = shutil.disk_usage(folder).free + sum(path.stat().st_size for path in folder.glob("passages-*.jsonl"))
    size = sources.size(several)
    if size is None or free > size * _NEVER_MORE + (1 << 28):
        return
    from rich.filesize import decimal

    expected = forecast(several)
    if expected and expected.disk > free:
        raise IfqaError(
            f"{folder} has room for {decimal(free)}, the passages will take about {decimal(int(expected.disk))}; "
            "make room, or work in a folder on a larger disk (everything goes below the working directory)"
        )


def _sample(source: Source) -> Iterator[Block]:
    """Blocks from all over a multistream dump; for other files, the first block of each; of documents, the first block."""
    if source["format"] == "documents":
        yield from islice(sources.blocks(source), 1)
        return
    if source["format"] == "gold":
        yield from sources.blocks(source)
        return
    files = sources.files_of(source)
    settings = {key: value for key, value in source.items() if key not in ("format", "path")}
    for file in files[:: max(1, len(files) // _PLACES)]:
        header = multistream.header(file) if source["format"] == "dump" else None
        if header is not None:
            for streams in multistream.sample(file, header, max(1, _PLACES // len(files))):
                whole = cast(BlockSettings, settings_of(sources.dump) | settings)
                yield Block(streams, streams.where, len(streams.data), whole)
        else:
            yield from islice(sources.blocks({**source, "path": str(file)}), 1)
