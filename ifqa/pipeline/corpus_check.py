"""What building a corpus's passages and indexes will take. The rates were measured on 410,612 passages, on two cores."""

import shutil
from collections.abc import Collection, Iterator
from pathlib import Path

from ifqa.config.corpus import build_settings
from ifqa.corpus.forecast import forecast
from ifqa.errors import IfqaError
from ifqa.pipeline.findings import Finding, forecasted, size
from ifqa.pipeline.run import CorpusBuild
from ifqa.progress import counted, duration
from ifqa.workers.machine import cores, total_memory


def check_corpus(build: CorpusBuild, indexes: Collection[str]) -> Iterator[Finding]:
    corpus = build.corpus
    workers = corpus.workers or cores()
    disk = seconds = memory = 0.0
    count: float | None = None
    problems = []
    passages, what = build.artifact("passages"), f"passages of {corpus.name}"
    try:
        found = build.sources
        built = passages.manifest and passages.is_made_from(build.inputs("passages"))  # it hashes, so only if needed
        expected = None if built else forecast(found)
    except IfqaError as error:
        problems.append(str(error))
        yield forecasted(f"corpus {corpus.name}: passages to build, when their sources can be read", what)
    else:
        if passages.manifest and built:
            count = passages.manifest["record"]["passages"]
            yield forecasted(
                f"corpus {corpus.name}: {counted(count, 'passage')}, built", what, made=True, passages=count
            )
        elif expected is None:
            count = 0
            line = f"corpus {corpus.name}: passages to build from a pipe; their number is known once it has been read"
            yield forecasted(line, what)
        else:
            count, disk = expected.passages, expected.disk
            seconds, memory = expected.seconds(workers), expected.memory(workers)
            yield Finding(
                f"corpus {corpus.name}: about {counted(expected.pages, 'page')} and {counted(count, 'passage')} to build "
                f"from {counted(len(corpus.sources), 'source')}, estimated from {expected.seen:.1%} of the input"
            )
            line = (
                f"  passages: about {size(disk)} of disk, {size(memory)} of memory, {duration(seconds)} with "
                f"{counted(workers, 'process', 'processes')}"
            )
            yield forecasted(line, what, passages=round(count), seconds=seconds, disk=disk, memory=memory)
    for name in indexes:
        what = f"index {name} of {corpus.name}"
        if build.is_made(name):
            yield forecasted(f"  index {name}: built", what, made=True)
            continue
        table, taken = corpus.indexes[name], None
        try:
            if count is not None:
                taken = corpus.plugins.indexed(table["retriever"]).forecast(round(count), **build_settings(table))
        except IfqaError as error:
            problems.append(str(error))
        if taken is None:
            yield forecasted(f"  index {name}: to build; time, disk and memory are unknown", what)
            continue
        line = (
            f"  index {name}: to build, about {size(taken.disk)} of disk, {size(taken.memory)} of memory, "
            f"{duration(taken.seconds)}{taken.about}"
        )
        yield forecasted(line, what, seconds=taken.seconds, disk=taken.disk, memory=taken.memory)
        disk, seconds, memory = disk + taken.disk, seconds + taken.seconds, max(memory, taken.memory)
    free = shutil.disk_usage(Path.cwd()).free
    if disk:
        line = f"  in all about {size(disk)} of disk ({size(free)} free), {size(memory)} of memory, {duration(seconds)}"
        yield forecasted(line, f"corpus {corpus.name} in all", seconds=seconds, disk=disk, memory=memory)
    if disk > free:
        problems.append(
            f"corpus {corpus.name} needs about {size(disk)} of disk, {size(free)} is free in {Path.cwd()}; "
            "make room or work on a larger disk"
        )
    if (here := total_memory()) and memory > here:
        problems.append(
            f"corpus {corpus.name} needs about {size(memory)} of memory, this machine has {size(here)}; "
            "use fewer workers: [passages] workers = 1"
        )
    if problems:
        raise IfqaError("; ".join(problems))
