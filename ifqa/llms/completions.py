"""The store that keeps every completion that was paid for."""

import hashlib
import json
import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ifqa.progress import say
from ifqa.records import Completion, Request
from ifqa.storage.files import open_new, write

VERSION = 1  # of the store's files


def tokens_of(completions: Iterable[Completion], before: tuple[int, int] = (0, 0)) -> tuple[int, int]:
    """Tokens of prompts and of answers, whenever they were paid for; each completion once for each time it was asked for."""
    several = [before, *((one.prompt_tokens, one.completion_tokens) for one in completions)]
    return sum(one for one, _ in several), sum(one for _, one in several)


def content(model: str, request: Request) -> dict[str, Any]:
    """All that makes a completion what it is, as JSON would have it: model, messages or text, parameters, sample."""
    prompt: dict[str, Any] = {"text": request.text}
    if request.messages:
        prompt = {"messages": [list(message) for message in request.messages]}
    parameters = {
        "max_tokens": request.max_tokens,
        "temperature": float(request.temperature),
        "stop": list(request.stop),
        "sample": request.sample,
    }
    return {"model": model, **prompt, **parameters}


def json_of(asked: dict[str, Any], completion: Completion) -> bytes:
    """A file of the store, of what was asked and what came back."""
    kept = {name: value for name, value in asdict(completion).items() if name not in ("error", "cached")}
    record = {"version": VERSION, "request": asked, "completion": kept}
    return json.dumps(record, indent=1).encode() + b"\n"  # ASCII, so that half a surrogate pair can be written


class Store:
    """Completions by content: one JSON file each, under the SHA-256 of all that makes it what it is.

    Two models that answer to one name are one model to the store. Any number of threads and processes may use a folder
    at once: a file is written aside under a name of its own, and its name appears when it is whole and on the disk.

    Args:
        folder: where they lie, as `ab/abcdef….json`; made when the first is kept.
    """

    def __init__(self, folder: Path = Path("completions")) -> None:
        self.folder = Path(folder)

    def path(self, model: str, request: Request) -> Path:
        """Where the completion of a request lies, or would."""
        canonical = json.dumps(content(model, request), sort_keys=True, separators=(",", ":"))
        key = hashlib.sha256(canonical.encode()).hexdigest()
        return self.folder / key[:2] / f"{key}.json"

    def get(self, model: str, request: Request, quiet: bool = False) -> Completion | None:
        """The completion of a request if there is one; a file that is torn or another's is passed over, and said."""
        path = self.path(model, request)
        try:
            record = json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError):
            record = None
        completion = _completion(record, content(model, request))
        if completion is None and not quiet:
            say(f"{path}: not a completion of its request; it will be asked for again")
        return completion

    def put(self, model: str, request: Request, completion: Completion) -> None:
        """Keep a completion; on return it is on the disk, under its name.

        Raises:
            ValueError: it is a failure, which is never kept.
            OSError: the disk is full, or the folder cannot be written to.
        """
        if completion.error:
            raise ValueError("a failed request has nothing to keep")
        path = self.path(model, request)
        data = json_of(content(model, request), completion)
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
            _sync(self.folder)
        # Several threads and processes may write one completion at once, each its own file
        aside = path.with_name(f".{path.stem}.{os.getpid()}.{threading.get_ident()}.tmp")
        try:
            with open_new(aside) as handle:
                write(handle, data)
                handle.flush()
                os.fsync(handle.fileno())
            os.replace(aside, path)
        except OSError:
            aside.unlink(missing_ok=True)
            raise
        _sync(path.parent)


def _sync(folder: Path) -> None:
    """Bring the names in a folder to the disk, where the system can."""
    if not hasattr(os, "O_DIRECTORY"):  # Windows
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _completion(record: Any, wanted: dict[str, Any]) -> Completion | None:
    """What a file of the store holds, if it is the completion of the wanted request."""
    if not isinstance(record, Mapping) or record.get("version") != VERSION or record.get("request") != wanted:
        return None
    values = record.get("completion")
    kinds = {"text": str, "prompt_tokens": int, "completion_tokens": int, "finish": str}
    if not isinstance(values, Mapping) or set(values) != set(kinds):
        return None
    if not all(isinstance(values[name], kind) for name, kind in kinds.items()):
        return None
    return replace(Completion(**values), cached=True)
