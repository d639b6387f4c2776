"""Writes the shards of a passages folder, and a log from which an interrupted build resumes.

A block is the input of one shard. After each shard, `blocks.jsonl` gets a line with the block's
number and input hash and the shard's hash and counts. A resumed build makes only the blocks without
a line and those whose input hash differs, for example because a truncated input was downloaded
again.
"""

import hashlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import Field

from ifqa.corpus.passage_store import parse_passage, shard_path
from ifqa.corpus.repeated_pages import drop_copies, find_repeats
from ifqa.corpus.work_units import FileRecord, Shard, WorkUnit
from ifqa.settings import StoredModel
from ifqa.storage.append_log import truncate_log
from ifqa.storage.artifacts import INPUTS
from ifqa.storage.files import atomic_write, json_line, read_jsonl, sha256, write_bytes, write_jsonl

LOG, BAD = "blocks.jsonl", "bad_pages.jsonl"
_REPEATED = "the dump holds the page more than once; this copy is of an earlier revision"
# Fields of a file's record that follow from the order of the lines
_NOT_LOGGED = {"shard", "start"}


class _Block(StoredModel):
    block: int
    key: str
    pages: int
    passages: int
    words: int
    bytes: int
    sha256: str
    left_out: dict[str, int]
    bad: list[dict[str, str]]
    files: list[FileRecord] = Field(default_factory=list)  # only for documents
    # Whether it has a file of its pages' revisions, while the folder is built
    revised: bool = False

    def record(self) -> dict[str, object]:
        record = self.model_dump(
            exclude={"files": {"__all__": _NOT_LOGGED}} if self.files else {"files"}
        )
        if not self.revised:
            del record["revised"]
        return record


class CorpusWriter:
    """Adds shards to a folder."""

    def __init__(self, folder: Path) -> None:
        """Resume an interrupted build if the folder has a log of one."""
        self.folder = folder
        truncate_log(folder / LOG)
        self._blocks = {block.block: block for block in _read_log(folder / LOG)}
        self._keys: list[str] = []
        self._sources: list[int] = []  # of each block
        self.reused = 0

    def unfinished(
        self, units: Iterable[tuple[int, WorkUnit]], advance: Callable[[float], None]
    ) -> Iterator[WorkUnit]:
        """Number the units, each with its source, and yield those without a shard.

        `advance` gets the input bytes of the others.

        A shard whose passages all come from an earlier build is written at once.
        """
        for number, (source, unit) in enumerate(units):
            self._keys.append(unit.key())
            self._sources.append(source)
            if self._is_finished(number):
                self.reused += 1
                advance(unit.read)
            elif unit.is_current:
                self.add(number, unit.make_shard())
                advance(unit.read)
            else:
                yield replace(unit, number=number)

    def add(self, number: int, shard: Shard) -> None:
        """Write a shard, then its line of the log; a block without passages gets only a line."""
        if shard.passages:
            with atomic_write(shard_path(self.folder, number)) as handle:
                write_bytes(handle, shard.lines)
        if shard.revisions:
            with atomic_write(self._revisions_path(number)) as handle:
                write_bytes(handle, shard.revisions)
        block = _Block(
            block=number,
            key=self._keys[number],
            pages=shard.pages,
            passages=shard.passages,
            words=shard.words,
            bytes=len(shard.lines),
            sha256=hashlib.sha256(shard.lines).hexdigest(),
            left_out=dict(shard.tally.left_out),
            bad=shard.tally.bad,
            files=list(shard.files),
            revised=bool(shard.revisions),
        )
        with open(self.folder / LOG, "ab") as handle:
            write_bytes(handle, json_line(block.record()))
            handle.flush()
            os.fsync(handle.fileno())
        self._blocks[number] = block

    def drop_repeated_pages(self) -> None:
        """Leave out the earlier revisions of pages that a source holds more than once, and list
        them as bad pages.
        """
        revised = [number for number in range(len(self._keys)) if self._blocks[number].revised]
        shards = {
            number: (self._sources[number], self._revisions_path(number).read_bytes())
            for number in revised
        }
        for number, copies in find_repeats(shards).items():
            block = self._blocks[number]
            path = shard_path(self.folder, number)
            lines, pages = drop_copies(path.read_bytes(), copies, str(path))
            bad = [{"id": page, "title": pages[page], "reason": _REPEATED} for page in pages]
            passages = lines.count(b"\n")
            self._blocks[number] = block.model_copy(
                update={
                    # A resumed build makes the block again
                    "key": f"{block.key} without repeated pages",
                    "pages": block.pages - len(copies),
                    "passages": passages,
                    "words": sum(
                        len(parse_passage(line, str(path)).text.split())
                        for line in lines.splitlines(keepends=True)
                    ),
                    "bytes": len(lines),
                    "sha256": hashlib.sha256(lines).hexdigest(),
                    "left_out": block.left_out | {"bad": block.left_out.get("bad", 0) + len(bad)},
                    "bad": block.bad + bad,
                }
            )
            if passages:
                with atomic_write(path) as handle:
                    write_bytes(handle, lines)

    def finish(self) -> dict[str, Any]:
        """Sort the log, list the bad pages, and remove files that belong to no block.

        Returns the totals for the manifest.
        """
        final = {"revised": False}  # the revisions are removed below
        blocks = [
            self._blocks[number].model_copy(update=final | {"key": key})
            for number, key in enumerate(self._keys)
        ]
        shards = {shard_path(self.folder, block.block) for block in blocks if block.passages}
        for path in set(self.folder.iterdir()) - shards - {self.folder / LOG, self.folder / INPUTS}:
            remove = shutil.rmtree if path.is_dir() else os.remove
            remove(path)
        write_jsonl(self.folder / LOG, (block.record() for block in blocks))
        if bad := [page for block in blocks for page in block.bad]:
            write_jsonl(self.folder / BAD, bad)
        counts = {
            name: sum(getattr(block, name) for block in blocks)
            for name in ("pages", "passages", "words")
        }
        left_out = dict(sum((Counter(block.left_out) for block in blocks), Counter()))
        return counts | {"shards": len(shards), "left_out": left_out, "bad": len(bad)}

    def _is_finished(self, number: int) -> bool:
        block = self._blocks.get(number)
        path = shard_path(self.folder, number)
        if block is None or block.key != self._keys[number]:
            return False
        if block.revised and not self._revisions_path(number).exists():
            return False
        return not block.passages or (path.exists() and sha256(path) == block.sha256)

    def _revisions_path(self, number: int) -> Path:
        return self.folder / f"revisions-{number:05}.bin"


def read_bad_pages(folder: Path) -> list[dict[str, str]]:
    """Id and reason of each page or file that a build skipped."""
    return [record for _, record in read_jsonl(folder / BAD)] if (folder / BAD).exists() else []


def read_file_records(folder: Path) -> dict[str, FileRecord]:
    """Key -> record of each document in a folder of shards."""
    records = {}
    for block in _read_log(folder / LOG):
        start = 0
        shard = shard_path(folder, block.block)
        for file in block.files:
            records[file.key] = replace(file, shard=shard, start=start)
            start += file.length
    return records


def _read_log(path: Path) -> Iterator[_Block]:
    """The logged blocks; malformed lines are ignored, so their blocks are built again."""
    for line in path.read_bytes().splitlines() if path.exists() else ():
        # json and pydantic raise ValueError. json.loads is used because pydantic's parser refuses
        # file names that are not UTF-8.
        with suppress(ValueError):
            yield _Block.model_validate(json.loads(line), strict=False)
