"""Files that grow by chunks, with a log from which an interrupted run resumes.

`chunks.jsonl` has a line for each chunk, written after the chunk: its facts, and the size and
SHA-256 of its bytes in each file.
"""

import hashlib
import json
import os
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from ifqa.storage.artifacts import LOG
from ifqa.storage.files import json_line, write_bytes

_PARTS = "parts"  # the key of a line's table: file -> [bytes, SHA-256]


class AppendLog:
    """Files of a folder to which chunks are appended in order.

    `kept` has the facts of the chunks of an interrupted run.
    """

    def __init__(
        self, folder: Path, names: Collection[str], keep: Callable[[dict[str, Any]], bool]
    ) -> None:
        """Truncate the files `names` at the first chunk that is damaged, or whose facts `keep`
        rejects.
        """
        self.folder = folder
        self.kept: list[dict[str, Any]] = []
        ends: dict[str, int] = {}
        with ExitStack() as stack:
            existing = [name for name in names if (folder / name).exists()]
            handles = {name: stack.enter_context(open(folder / name, "r+b")) for name in existing}

            def fits(_: int, record: dict[str, object]) -> bool:
                parts: Any = record.pop(_PARTS, None)
                whole = isinstance(parts, dict) and all(
                    _matches_hash(handles.get(name), parts[name]) for name in parts
                )
                if not whole or not keep(record):
                    return False
                self.kept.append(record)
                ends.update({name: handles[name].tell() for name in parts})
                return True

            truncate_log(folder / LOG, fits)
            for name, handle in handles.items():
                handle.truncate(ends.get(name, 0))
        for name in handles.keys() - ends.keys():
            (folder / name).unlink()
        self._grown = set(ends)

    def add(self, parts: Mapping[str, bytes], facts: Mapping[str, object]) -> None:
        """Append the chunk's bytes to each file, and log its facts."""
        for name, part in parts.items():
            with open(self.folder / name, "ab") as handle:
                write_bytes(handle, part)
        self._grown.update(parts)
        sums = {name: [len(part), hashlib.sha256(part).hexdigest()] for name, part in parts.items()}
        with open(self.folder / LOG, "ab") as handle:
            write_bytes(handle, json_line({**facts, _PARTS: sums}))

    def finish(self, always: str) -> None:
        """Flush the files to disk; create the file `always` even without a chunk."""
        for name in {always, *self._grown}:
            with open(self.folder / name, "ab") as handle:
                os.fsync(handle.fileno())


def truncate_log(
    path: Path, fits: Callable[[int, dict[str, object]], bool] = lambda number, record: True
) -> int:
    """Truncate a JSON-lines file at its first invalid line; returns the number of lines kept.

    A line is invalid if it is incomplete, not a JSON object, or if `fits(number, record)` is false;
    `number` counts from 0.
    """
    if not path.exists():
        return 0
    with open(path, "r+b") as handle:
        kept = end = 0
        for line in handle:
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                break
            if not isinstance(record, dict) or not line.endswith(b"\n") or not fits(kept, record):
                break
            kept = kept + 1
            end = end + len(line)
        handle.truncate(end)
    return kept


def _matches_hash(handle: IO[bytes] | None, part: object) -> bool:
    """Whether the next bytes of a file match a part, [bytes, SHA-256]."""
    match part:
        case [int(size), str(digest)] if handle and size >= 0:
            return hashlib.sha256(handle.read(size)).hexdigest() == digest
    return False
