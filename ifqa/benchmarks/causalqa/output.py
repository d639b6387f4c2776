"""The files of one dataset while they are written, with a log of how far they go."""

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from typing_extensions import TypedDict

from ifqa.storage.artifacts import damaged, read_manifest
from ifqa.storage.chunks import keep_whole_lines
from ifqa.storage.files import json_line, write

SPLITS = ("original-train", "original-valid", "random-train", "random-valid")


class Tally(TypedDict):
    """Counts of a dataset.

    Attributes:
        questions: all questions that were read; 0 of the authors' release, which has causal ones alone.
        unanswered: causal questions without an answer, which are left out.
        splits: split -> questions, words of them, words of their first answers.
    """

    questions: int
    unanswered: int
    splits: dict[str, list[int]]


class Output:
    """The four files of a dataset, and a log of how far they go, by which a killed build goes on."""

    def __init__(self, folder: Path, name: str, key: str) -> None:
        """Cut the files to the last line of the log, if an earlier attempt had the same `key`; else empty them."""
        self._folder, self._name, self._key = folder, name, key
        self._log = folder / f"{name}.state.jsonl"
        self.paths = {split: folder / split / f"{name}.jsonl" for split in SPLITS}
        self.units, self.done = 0, False
        self.tally: Tally = {"questions": 0, "unanswered": 0, "splits": {split: [0, 0, 0] for split in SPLITS}}
        lines = keep_whole_lines(self._log, fits=lambda _, line: line.get("key") == key)
        last = json.loads(self._log.read_bytes().splitlines()[-1]) if lines else None
        sizes = last["bytes"] if last else dict.fromkeys(SPLITS, 0)
        if any(not path.exists() or path.stat().st_size < sizes[split] for split, path in self.paths.items()):
            last, sizes = None, dict.fromkeys(SPLITS, 0)
            self._log.unlink(missing_ok=True)
        for split, path in self.paths.items():
            path.parent.mkdir(exist_ok=True)
            with open(path, "ab") as handle:
                handle.truncate(sizes[split])
        if last:
            self.units, self.done, self.tally = last["units"], last["done"], last["tally"]

    def take(self, finished: Path) -> bool:
        """Copy the dataset's files from the finished corpus, if they were made from the same; whether they were."""
        manifest = read_manifest(finished)
        record: Mapping[str, object] = manifest["record"] if manifest else {}
        before = record.get("datasets")
        facts = before.get(self._name) if isinstance(before, dict) else None
        if manifest is None or not isinstance(facts, dict) or facts.get("key") != self._key:
            return False
        if any(name.endswith(f"/{self._name}.jsonl") for name in damaged(finished, manifest)):
            return False
        for path in self.paths.values():
            shutil.copyfile(finished / path.relative_to(self._folder), path)
        self.tally = {"questions": facts["questions"], "unanswered": facts["unanswered"], "splits": facts["splits"]}
        return True

    def open(self) -> dict[str, IO[bytes]]:
        """Handles on the files, to append to."""
        return {split: open(path, "ab") for split, path in self.paths.items()}

    def keep(self, handles: Mapping[str, IO[bytes]], units: int, done: bool = False) -> None:
        """Bring what was written to the disk, then log it."""
        for handle in handles.values():
            handle.flush()
            os.fsync(handle.fileno())
        sizes = {split: handle.tell() for split, handle in handles.items()}
        line = {"key": self._key, "units": units, "done": done, "bytes": sizes, "tally": self.tally}
        with open(self._log, "ab") as log:
            write(log, json_line(line))
            log.flush()
            os.fsync(log.fileno())
