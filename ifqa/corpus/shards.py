"""The shards of a passages folder while they are made: which are finished, and from which block of the input.

`blocks.jsonl` has a line for each finished block: its number, the hash of what went into it, and what came out. It is
appended to right after a shard is in its place; so a build that was killed, or whose input was cut short and has been
fetched again, goes on with the blocks that have no line or another hash.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypedDict, cast

from ifqa.corpus.blocks import Block, Shard
from ifqa.corpus.store import shard_path
from ifqa.errors import IfqaError
from ifqa.storage.files import create, json_line, write, write_jsonl
from ifqa.storage.replacing import INPUTS
from ifqa.storage.torn import keep_whole_lines

LOG, BAD = "blocks.jsonl", "bad_pages.jsonl"
_KINDS = {"block": int, "key": str, "bytes": int, "left_out": dict, "bad": list}
_KINDS |= dict.fromkeys(("pages", "passages", "words"), int)


class _Line(TypedDict):
    block: int
    key: str
    pages: int
    passages: int
    words: int
    bytes: int
    left_out: dict[str, int]
    bad: list[dict[str, str]]


class Sums(TypedDict):
    """What all shards of a folder hold, and what was passed over on the way."""

    pages: int
    passages: int
    words: int
    shards: int
    left_out: dict[str, int]
    bad: int


class Shards:
    """A folder that fills up with shards."""

    def __init__(self, folder: Path) -> None:
        """Takes up what an earlier build left there."""
        self.folder = folder
        keep_whole_lines(folder / LOG)
        self._lines = {line["block"]: line for line in _read_log(folder / LOG)}
        self._keys: list[str] = []
        self.reused = 0

    def unfinished(self, blocks: Iterable[Block], advance: Callable[[float], None]) -> Iterator[Block]:
        """The blocks, numbered, whose shards are not here; `advance` is told how many bytes of input the others took."""
        for number, block in enumerate(blocks):
            self._keys.append(block.key())
            if self._is_here(number):
                self.reused += 1
                advance(block.read)
            else:
                yield replace(block, number=number)

    def add(self, number: int, shard: Shard) -> None:
        """Write a shard, and then that it is there; a block without passages has none."""
        if shard.passages:
            with create(shard_path(self.folder, number)) as handle:
                write(handle, shard.data)
        line: _Line = {
            "block": number, "key": self._keys[number], "pages": shard.pages, "passages": shard.passages,
            "words": shard.words, "bytes": len(shard.data), "left_out": shard.tally.left_out, "bad": shard.tally.bad,
        }  # fmt: skip
        with open(self.folder / LOG, "ab") as handle:
            write(handle, json_line(line))
            handle.flush()
            os.fsync(handle.fileno())
        self._lines[number] = line

    def finish(self) -> Sums:
        """Put the log in order, list the bad pages, remove what no block made; returns the sums."""
        lines = [self._lines[number] for number in range(len(self._keys))]
        made = {shard_path(self.folder, line["block"]): line["bytes"] for line in lines if line["passages"]}
        for path, size in made.items():
            if not path.exists() or path.stat().st_size != size:
                raise IfqaError(f"{path} was taken away or changed while others were made; run the same command again")
        for path in set(self.folder.iterdir()) - made.keys() - {self.folder / LOG, self.folder / INPUTS}:
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
            "shards": len(made),
            "left_out": dict(left_out),
            "bad": len(bad),
        }

    def _is_here(self, number: int) -> bool:
        line, path = self._lines.get(number), shard_path(self.folder, number)
        if line is None or line["key"] != self._keys[number]:
            return False
        return not line["passages"] or (path.exists() and path.stat().st_size == line["bytes"])


def _read_log(path: Path) -> Iterator[_Line]:
    """The lines as `add` writes them; others are as good as none, their blocks are worked on again."""
    for raw in path.read_bytes().splitlines() if path.exists() else ():
        try:
            line = json.loads(raw)
        except ValueError:
            continue
        if isinstance(line, dict) and all(type(line.get(key)) is kind for key, kind in _KINDS.items()):
            yield cast(_Line, line)
