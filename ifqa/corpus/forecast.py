"""What a corpus's passages will take, told from a sample of its sources before any of the work is done."""

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

_PLACES = 12  # of a multistream dump that are looked at: it begins with its oldest, longest articles
_WORKER_MEMORY = 150e6  # bytes: what a process with a block in it was seen to take
_PASSAGE_MEMORY = 36  # bytes for each passage while their ids are sorted
_INDEX_BYTES = 16  # of the index of ids, a passage
_ID_SECONDS = 5e-6  # to sort the ids, a passage
_NEVER_MORE = 12  # bytes of passages from a byte of input: articles packed as tightly as they can be give 6


@dataclass(frozen=True)
class Forecast:
    """Numbers of pages and passages, bytes on disk, CPU seconds, and the share of the input they were told from.

    `reading` seconds are spent by one process (what is no multistream dump is unpacked from its first byte on), `working`
    seconds by all workers.
    """

    pages: float
    passages: float
    disk: float
    reading: float
    working: float
    seen: float

    def seconds(self, workers: int) -> float:
        """At the least, with as many cores as workers."""
        return max(self.reading, (self.reading + self.working) / workers) + self.passages * _ID_SECONDS

    def memory(self, workers: int) -> float:
        """Bytes, about: the workers' and this process's, which keeps blocks at hand for them."""
        return (workers + 1) * _WORKER_MEMORY + self.passages * _PASSAGE_MEMORY


def forecast(several: Sequence[Source]) -> Forecast | None:
    """What building the passages of sources will take; None where a pipe is among them, which can be read only once."""
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
            own = [old + one for old, one in zip(own, new, strict=True)]
        sums = [old + one * (size / read if read else 1.0) for old, one in zip(sums, own, strict=True)]
        seen += read
    pages, passages, disk, reading, working = sums
    return Forecast(pages, passages, disk + passages * _INDEX_BYTES, reading, working, seen / total if total else 1.0)


def require_room(several: Sequence[Source], folder: Path) -> None:
    """Refuse a build that will not fit on the disk, before hours are spent on it.

    Args:
        several: what is to be built.
        folder: where it is being built; what an earlier build left in it counts as room.

    Raises:
        IfqaError: a sample says that it will not fit.
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
    """Blocks from all over a multistream dump; of what can only be read from the front, the first of each file."""
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
