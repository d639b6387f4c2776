"""Files that grow by chunks, with a log from which the next attempt goes on.

`chunks.jsonl` has a line for each chunk: facts about it, and for each file how many bytes it added and their SHA-256. The line
is written after these bytes.
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

_PARTS = "parts"  # the key of a line with file -> [bytes, SHA-256]


class AppendLog:
    """Files of a folder to which chunks are added in their order.

    Attributes:
        kept: the facts of each chunk that an earlier attempt left.
    """

    def __init__(self, folder: Path, names: Collection[str], keep: Callable[[dict[str, object]], bool]) -> None:
        """Cut the files `names` to the whole chunks that an earlier attempt left.

        `keep` says of a chunk's facts whether it is kept. The first chunk that is not, or that is damaged, is cut off, and so are
        all after it.
        """
        self.folder = folder
        self.kept: list[dict[str, Any]] = []
        ends: dict[str, int] = {}
        with ExitStack() as stack:
            handles = {
                name: stack.enter_context(open(folder / name, "r+b")) for name in names if (folder / name).exists()
            }

            def fits(_: int, record: dict[str, object]) -> bool:
                parts = record.pop(_PARTS, None)
                if not isinstance(parts, dict) or not all(
                    _matches_hash(handles.get(name), parts[name]) for name in parts
                ):
                    return False
                if not keep(record):
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
        """Append a chunk: for each file the bytes to add, and facts, which `kept` gives the next attempt."""
        for name, part in parts.items():
            with open(self.folder / name, "ab") as handle:
                write_bytes(handle, part)
        self._grown.update(parts)
        sums = {name: [len(part), hashlib.sha256(part).hexdigest()] for name, part in parts.items()}
        with open(self.folder / LOG, "ab") as handle:
            write_bytes(handle, json_line({**facts, _PARTS: sums}))

    def finish(self, always: str) -> None:
        """Flush the files to disk; the file `always` is there even if there was no chunk."""
        for name in {always, *self._grown}:
            with open(self.folder / name, "ab") as handle:
                os.fsync(handle.fileno())


def truncate_log(path: Path, fits: Callable[[int, dict[str, object]], bool] = lambda number, record: True) -> int:
    """Cut a JSON-lines file that a killed process left to its good lines; returns their number.

    The file is cut before the first line that is incomplete, is no JSON object, or for which `fits(number, record)` is false;
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
            kept, end = kept + 1, end + len(line)
        handle.truncate(end)
    return kept


def _matches_hash(handle: IO[bytes] | None, part: object) -> bool:
    """Whether the next bytes of a file are those of a part, [bytes, SHA-256]."""
    match part:
        case [int(size), str(digest)] if handle and size >= 0:
            return hashlib.sha256(handle.read(size)).hexdigest() == digest
    return False
