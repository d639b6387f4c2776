"""Estimates time, disk and memory for building a corpus's passages from a sample of its sources."""

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ifqa.corpus.sources import size_of
from ifqa.corpus.work_units import Source
from ifqa.errors import IfqaError

_WORKER_MEMORY = 150e6  # bytes, measured for a process with one unit
_PASSAGE_MEMORY = 36  # bytes a passage while the ids are sorted
_INDEX_BYTES = 16  # bytes a passage in the index of ids
_ID_SECONDS = 5e-6  # seconds a passage to sort the ids
_NEVER_MORE = 12  # bytes of passages from a byte of input; the most tightly packed articles give 6


@dataclass(frozen=True)
class BuildEstimate:
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
        """Approximate bytes of the workers and of this process, which keeps units ready for them."""
        return (workers + 1) * _WORKER_MEMORY + self.passages * _PASSAGE_MEMORY


def estimate(sources: Sequence[Source]) -> BuildEstimate | None:
    """Estimate what building the passages of sources takes; None if one can be read only once, so that no sample can be."""
    total = size_of(sources)
    if total is None:
        return None
    sums = [0.0] * 5
    seen = 0
    for source in sources:
        read, counts = 0, [0.0] * 5
        sample = iter(source.sample())
        while True:
            started = time.process_time()
            unit = next(sample, None)
            reading = time.process_time() - started
            if unit is None:
                break
            shard = unit.make_shard()
            working = time.process_time() - started - reading
            read += unit.read
            more = (shard.pages, shard.passages, len(shard.data), reading, working)
            counts = [old + new for old, new in zip(counts, more, strict=True)]
        scale = (source.size() or 0) / read if read else 1.0
        sums = [old + part * scale for old, part in zip(sums, counts, strict=True)]
        seen += read
    pages, passages, disk, reading, working = sums
    share = seen / total if total else 1.0
    return BuildEstimate(pages, passages, disk + passages * _INDEX_BYTES, reading, working, share)


def require_room(sources: Sequence[Source], folder: Path) -> None:
    """Refuse a build that will not fit on the disk, before any work is done.

    Args:
        sources: the sources to build.
        folder: the folder of the build; shards that an earlier build left there count as free room.

    Raises:
        IfqaError: the estimate from a sample is larger than the room on the disk.
    """
    free = shutil.disk_usage(folder).free + sum(path.stat().st_size for path in folder.glob("passages-*.jsonl"))
    size = size_of(sources)
    if size is None or free > size * _NEVER_MORE + (1 << 28):
        return
    from rich.filesize import decimal

    expected = estimate(sources)
    if expected and expected.disk > free:
        raise IfqaError(
            f"{folder} has room for {decimal(free)}, the passages will take about {decimal(int(expected.disk))}; "
            "make room, or work in a folder on a larger disk (everything goes below the working directory)"
        )
