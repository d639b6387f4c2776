"""The store on disk that keeps every completion that was paid for."""

import hashlib
import json
import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ifqa.errors import IfqaError
from ifqa.progress import say
from ifqa.records import Completion, Request
from ifqa.storage.files import open_new, write

VERSION = 1  # of the store's files
LONGEST_TEXT = 200_000  # characters kept of an answer; a line of a file holds several answers, and is read up to 16 MB


def bounded(completion: Completion) -> Completion:
    """A completion whose text is cut after LONGEST_TEXT characters; it then ends for its length, as at a limit on tokens."""
    if len(completion.text) <= LONGEST_TEXT:
        return completion
    return replace(completion, text=completion.text[:LONGEST_TEXT], finish="length")


def tokens_of(completions: Iterable[Completion], before: tuple[int, int] = (0, 0)) -> tuple[int, int]:
    """Tokens of prompts and of answers, added to those `before`. Cached completions count; repeated ones count each time."""
    several = [before, *((one.prompt_tokens, one.completion_tokens) for one in completions)]
    return sum(one for one, _ in several), sum(one for _, one in several)


def content(model: str, request: Request) -> dict[str, Any]:
    """What identifies a completion, as JSON: model, messages or text, parameters, number of the sample."""
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
    """The bytes of a file of the store: the request and its completion."""
    kept = {name: value for name, value in asdict(completion).items() if name not in ("error", "cached")}
    record = {"version": VERSION, "request": asked, "completion": kept}
    return json.dumps(record, indent=1).encode() + b"\n"  # ASCII, as a lone surrogate cannot be written in UTF-8


def check_store(folder: str) -> None:
    """Refuse a store that a file names outside of the working directory.

    Raises:
        IfqaError: the folder is an absolute path, or has `..` in it.
    """
    path = Path(folder)
    if path.anchor or ".." in path.parts:
        raise IfqaError(
            f"store = {folder!r} is outside of the working directory; wanted a folder in it, as 'completions'"
        )


class Store:
    """Completions by content: one JSON file each, named by the SHA-256 of `content`.

    Two models with one name are one model to the store. Any number of threads and processes may use a folder at once:
    each writes a temporary file of its own, and renames it when it is complete and on the disk.

    Args:
        folder: holds the files, as `ab/abcdef….json`; created with the first file.
    """

    def __init__(self, folder: Path = Path("completions")) -> None:
        self.folder = Path(folder)

    def path(self, model: str, request: Request) -> Path:
        """The file of a request's completion, whether it exists or not."""
        canonical = json.dumps(content(model, request), sort_keys=True, separators=(",", ":"))
        key = hashlib.sha256(canonical.encode()).hexdigest()
        return self.folder / key[:2] / f"{key}.json"

    def get(self, model: str, request: Request, quiet: bool = False) -> Completion | None:
        """A request's completion, or None. A damaged or foreign file counts as none; unless `quiet`, a message says so."""
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
        if completion and len(completion.text) > LONGEST_TEXT and not quiet:
            say(
                f"{path}: an answer of {len(completion.text):,} characters, of which the first {LONGEST_TEXT:,} are taken"
            )
        return bounded(completion) if completion else None

    def put(self, model: str, request: Request, completion: Completion) -> None:
        """Store a completion; on return the file is on the disk, under its final name.

        Raises:
            ValueError: the completion is a failure; failures are never stored.
            OSError: the disk is full, or the folder cannot be written to.
        """
        if completion.error:
            raise ValueError("a failed request has nothing to keep")
        path = self.path(model, request)
        data = json_of(content(model, request), completion)
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
            _sync(self.folder)
        # Several threads and processes may write one completion at once, each in its own file
        aside = path.with_name(f".{path.stem}.{os.getpid()}.{threading.get_ident()}.tmp")
        try:
            with open_new(aside) as handle:
                aside.chmod(0o600)  # a prompt or an answer may be private
                write(handle, data)
                handle.flush()
                os.fsync(handle.fileno())
            os.replace(aside, path)
        except OSError:
            aside.unlink(missing_ok=True)
            raise
        _sync(path.parent)


def _sync(folder: Path) -> None:
    """Flush a folder's entries to the disk, if the system can."""
    if not hasattr(os, "O_DIRECTORY"):  # Windows
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _completion(record: Any, asked: dict[str, Any]) -> Completion | None:
    """The completion in a file of the store; None if the file is of another request, or damaged."""
    if not isinstance(record, Mapping) or record.get("version") != VERSION or record.get("request") != asked:
        return None
    values = record.get("completion")
    kinds = {"text": str, "prompt_tokens": int, "completion_tokens": int, "finish": str}
    if not isinstance(values, Mapping) or set(values) != set(kinds):
        return None
    if not all(isinstance(values[name], kind) for name, kind in kinds.items()):
        return None
    return replace(Completion(**values), cached=True)
