"""Cut a JSON-lines file that a killed process left to its whole lines."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def keep_whole_lines(path: Path, fits: Callable[[int, dict[str, Any]], bool] = lambda number, record: True) -> int:
    """Cut a JSON-lines file that a killed process left to its good lines; returns their number.

    The file is cut before the first line that is incomplete, is no JSON object, or for which `fits(number, record)` is false;
    `number` counts from 0.
    """
    if not path.exists():
        return 0
    with open(path, "r+b") as handle:
        kept = end = 0
        for line in handle:
            record = _object(line)
            if record is None or not line.endswith(b"\n") or not fits(kept, record):
                break
            kept, end = kept + 1, end + len(line)
        handle.truncate(end)
    return kept


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None
