"""Writes the shards of a passages folder, with a log of their blocks from which a stopped build resumes.

`blocks.jsonl` has a line for each finished block: its number, the hash of its input, and the hash and counts of its
shard. The line is appended right after the shard is in its place. A resumed build makes only the blocks that have no
line or another hash, also when the input was cut short at first and has been fetched again.
"""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import NotRequired, TypedDict, cast

from ifqa.corpus.blocks import Block, FileMade, Shard, make_shard
from ifqa.corpus.documents.reading import Made
from ifqa.corpus.store import shard_path
from ifqa.errors import IfqaError
from ifqa.storage.chunks import keep_whole_lines
from ifqa.storage.files import create, json_line, read_jsonl, sha256, write, write_jsonl
from ifqa.storage.replacing import INPUTS

LOG, BAD = "blocks.jsonl", "bad_pages.jsonl"
_KINDS = {"block": int, "key": str, "bytes": int, "sha256": str, "left_out": dict, "bad": list}
_KINDS |= dict.fromkeys(("pages", "passages", "words"), int)


class _Line(TypedDict):
    block: int
    key: str
    pages: int
    passages: int
    words: int
    bytes: int
    sha256: str
    left_out: dict[str, int]
    bad: list[dict[str, str]]
    files: NotRequired[list[FileMade]]  # of documents


class Sums(TypedDict):
    """Totals of all shards of a folder, and of the pages that were left out."""

    pages: int
    passages: int
    words: int
    shards: int
    left_out: dict[str, int]
    bad: int


class Shards:
    """A folder to which shards are added."""

    def __init__(self, folder: Path) -> None:
        """Read the log that an earlier build left.

        Raises:
            IfqaError: the folder has a subfolder, which no build makes.
        """
        self.folder = folder
        if strange := next((path for path in sorted(folder.iterdir()) if path.is_dir()), None):
            raise IfqaError(
                f"{strange} is a folder; {folder} holds only the files of an unfinished build; move it away"
            )
        keep_whole_lines(folder / LOG)
        self._lines = {line["block"]: line for line in _read_log(folder / LOG)}
        self._keys: list[str] = []
        self.reused = 0

    def unfinished(self, blocks: Iterable[Block], advance: Callable[[float], None]) -> Iterator[Block]:
        """Number the blocks, and keep those without a shard; `advance` gets the bytes of input of the others."""
        for number, block in enumerate(blocks):
            self._keys.append(block.key())
            if self._is_here(number):
                self.reused += 1
                advance(block.read)
            else:
                yield replace(block, number=number)

    def copied(self, todo: Iterable[Block], advance: Callable[[float], None]) -> Iterator[Block]:
        """Add the shards that only passages of an earlier build go into, here and now; gives the other blocks."""
        for block in todo:
            if block.is_made:
                self.add(block.number, make_shard(block))
                advance(block.read)
            else:
                yield block

    def add(self, number: int, shard: Shard) -> None:
        """Write a shard, then its line of the log; a block without passages has a line only."""
        if shard.passages:
            with create(shard_path(self.folder, number)) as handle:
                write(handle, shard.data)
        line: _Line = {
            "block": number, "key": self._keys[number], "pages": shard.pages, "passages": shard.passages,
            "words": shard.words, "bytes": len(shard.data), "sha256": hashlib.sha256(shard.data).hexdigest(),
            "left_out": shard.tally.left_out, "bad": shard.tally.bad,
        }  # fmt: skip
        if shard.files:
            line["files"] = list(shard.files)
        with open(self.folder / LOG, "ab") as handle:
            write(handle, json_line(line))
            handle.flush()
            os.fsync(handle.fileno())
        self._lines[number] = line

    def finish(self) -> Sums:
        """Sort the log, list the bad pages, and remove files that belong to no block; returns the totals.

        Raises:
            IfqaError: a shard is missing or has another size than was written.
        """
        lines = [self._lines[number] for number in range(len(self._keys))]
        shards = {shard_path(self.folder, line["block"]): line["bytes"] for line in lines if line["passages"]}
        for path, size in shards.items():
            if not path.exists() or path.stat().st_size != size:
                raise IfqaError(f"{path} is missing or changed while the build went on; run the same command again")
        for path in set(self.folder.iterdir()) - shards.keys() - {self.folder / LOG, self.folder / INPUTS}:
            path.unlink()
        write_jsonl(self.folder / LOG, lines)
        bad = [page for line in lines for page in line["bad"]]
        if bad:
            write_jsonl(self.folder / BAD, bad)
        left_out: Counter[str] = Counter()
        for line in lines:
            left_out.update(line["left_out"])
        return {
            "pages": sum(line["pages"] for line in lines),
            "passages": sum(line["passages"] for line in lines),
            "words": sum(line["words"] for line in lines),
            "shards": len(shards),
            "left_out": dict(left_out),
            "bad": len(bad),
        }

    def _is_here(self, number: int) -> bool:
        line, path = self._lines.get(number), shard_path(self.folder, number)
        if line is None or line["key"] != self._keys[number]:
            return False
        return not line["passages"] or (path.exists() and sha256(path) == line["sha256"])


def why_none(folder: Path, sums: Sums) -> str:
    """Why the pages of a finished folder gave no passage: how many were left out, and the first that could not be read."""
    if not sums["left_out"]:
        return "check the sources in its file"
    counts = ", ".join(f"{count:,} {reason}" for reason, count in sorted(sums["left_out"].items()))
    _, first = next(read_jsonl(folder / BAD)) if sums["bad"] else (0, {})
    return f"pages left out: {counts}" + (
        f"; the first bad one, {first['title']!r}: {first['reason']}" if first else ""
    )


def bad_pages(folder: Path) -> list[dict[str, str]]:
    """The pages or files of a finished folder that were left out: id and reason of each."""
    return [record for _, record in read_jsonl(folder / BAD)] if (folder / BAD).exists() else []


def known_files(folder: Path) -> dict[str, Sequence[int | str]]:
    """Key -> bytes, time of change (ns) and SHA-256 of each file of documents that a folder of shards was made from."""
    return {key: (one["bytes"], one["modified"], one["sha256"]) for key, (one, _) in _files(folder).items()}


def made_files(folder: Path) -> dict[str, Made]:
    """Key -> where the passages of each file of documents are in a folder of shards."""
    return {key: made for key, (_, made) in _files(folder).items()}


def _files(folder: Path) -> dict[str, tuple[FileMade, Made]]:
    log = folder / LOG
    if not log.is_file():
        return {}
    stat = log.stat()
    return _files_made(folder, stat.st_size, stat.st_mtime_ns)


@lru_cache(2)
def _files_made(folder: Path, size: int, modified: int) -> dict[str, tuple[FileMade, Made]]:
    found = {}
    for line in _read_log(folder / LOG):
        start, shard = 0, shard_path(folder, line["block"])
        for file in line.get("files", ()):
            end = start + file["length"]
            found[file["key"]] = file, Made(shard, start, end, file["passages"], file["words"], file["reason"])
            start = end
    return found


def _read_log(path: Path) -> Iterator[_Line]:
    """The lines that `add` wrote; malformed lines are ignored, so their blocks are made again."""
    for raw in path.read_bytes().splitlines() if path.exists() else ():
        try:
            line = json.loads(raw)
        except ValueError:
            continue
        if isinstance(line, dict) and all(type(line.get(key)) is kind for key, kind in _KINDS.items()):
            yield cast(_Line, line)
