"""Follows changes in a served folder of documents: a background thread builds its index again, and
opens a system on it.
"""

import logging
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from weakref import finalize

from ifqa.errors import IfqaError
from ifqa.formatting import pluralize
from ifqa.pipeline.corpus_build import CorpusBuild
from ifqa.pipeline.index import Index
from ifqa.pipeline.passages import PASSAGES
from ifqa.pipeline.run import Run
from ifqa.pipeline.stage import Stage
from ifqa.pipeline.stages import build_corpus
from ifqa.pipeline.system import System
from ifqa.storage.artifacts import lock

logger = logging.getLogger("ifqa.serve")

# Seconds from a scan to the next, at least; after a longer scan or build as long as that took
_PAUSE = 3.0
_PATIENCE = 1.0  # the longest wait for a scan, in seconds
_LINKS = ".served-"  # beside the index: a folder for each server
_STALE = "answers come from the last complete index"


class Watcher:
    """Scans a system's folder of documents when `look` is called.

    `publish` gets a new system after a change.

    The systems search hard links of a complete index, because a build replaces the index's files.
    """

    def __init__(self, system: System, publish: Callable[[System], None]) -> None:
        """Link the index of `system`, which is not open yet; OSError if the disk refuses."""
        self._system = system
        self._publish = publish
        self._numbers = count(1)
        self._held = ExitStack()
        self.updating = False
        self.changed = 0
        self.updated = ""
        self.problem = ""
        self._wanted = threading.Event()
        self._scanned = threading.Event()
        self._next = 0.0
        self._closed = False
        corpus = system.experiment.corpus_folder
        for left in corpus.glob(f"{_LINKS}*"):  # by a killed server
            with suppress(IfqaError), lock(left):
                shutil.rmtree(left, ignore_errors=True)
        self._links = Path(tempfile.mkdtemp(prefix=_LINKS, dir=corpus))
        self._held.enter_context(lock(self._links))
        self._held.callback(shutil.rmtree, self._links, ignore_errors=True)
        self._link(system)
        self._scanned.set()
        threading.Thread(target=self._work, name="watching", daemon=True).start()

    def close(self) -> None:
        """End the thread, after its build, and remove the links."""
        self._closed = True
        self._wanted.set()
        self._held.close()

    def look(self) -> None:
        """Have the folder scanned, unless it was scanned just now or is being read."""
        if time.monotonic() > self._next and not self.updating:
            self._next = time.monotonic() + _PAUSE
            self._scanned.clear()
            self._wanted.set()

    def wait(self) -> None:
        """Wait until the folder is scanned, but not long."""
        self._scanned.wait(_PATIENCE)

    def _work(self) -> None:
        while self._wanted.wait() and not self._closed:
            self._wanted.clear()
            started = time.monotonic()
            problem = ""
            try:
                self._update()
            except (IfqaError, OSError) as error:
                problem = f"{' '.join(str(error).split())}; {_STALE}"
                if problem != self.problem and not self._closed:
                    logger.warning(problem)
            except Exception:
                problem = f"a bug in ifqa, see the server's log; {_STALE}"
                logger.exception("a bug in ifqa")
            self.problem = problem
            self.updating = False
            self._next = time.monotonic() + max(_PAUSE, time.monotonic() - started)
            self._scanned.set()

    def _update(self) -> None:
        """Scan the folder.

        If it changed, build its passages and indexes, and publish a system on them.
        """
        run = Run(self._system.experiment)
        served = self._system.run.corpus
        assert run.corpus is not None
        assert served is not None
        stages = [PASSAGES, *map(Index, run.experiment.indexes)]
        files = {
            key: file
            for source in run.corpus.sources
            for key, file in source.hashes(run.corpus.known).items()
        }
        is_current = all(map(run.corpus.is_current, stages))
        if is_current and _inputs(run.corpus, stages) == _inputs(served, stages):
            return
        before = _hashes(served)
        self.changed = _differences(before, files)
        self.updating = True
        self._scanned.set()
        logger.info(f"updating: {pluralize(self.changed, 'file')} changed")
        build_corpus(run)
        system = System(run, self._system.session)
        reader = run.experiment.reader
        if reader and not reader.takes("search"):  # which would search the index as it was
            system.reader = self._system.reader
        # Also what changed between scan and build
        self.changed = _differences(before, _hashes(self._link(system)))
        self._publish(system.open())
        self._system = system
        self.updated = datetime.now(UTC).isoformat(timespec="seconds")
        logger.info("updated")

    def _link(self, system: System) -> CorpusBuild:
        """Have a system that is not open search links of the index as it is now.

        They leave with the system.
        """
        run = system.run
        folder = self._links / str(next(self._numbers))
        assert run.corpus
        corpus = run.corpus.corpus
        with lock(corpus.folder, wait=True):
            for part in (PASSAGES.name, *run.experiment.indexes):
                shutil.copytree(corpus.folder / part, folder / part, copy_function=_link_or_copy)
        run.corpus = CorpusBuild(corpus, run.questions_of, folder)
        _ = system.documents  # while the folder is there
        finalize(system, shutil.rmtree, folder, ignore_errors=True)
        return run.corpus


def _inputs(build: CorpusBuild, stages: Sequence[Stage[CorpusBuild]]) -> list[object]:
    """The inputs that the stages of a complete corpus were made from."""
    manifests = (build.artifact(stage.name).manifest for stage in stages)
    return [manifest["inputs"] for manifest in manifests if manifest]


def _hashes(build: CorpusBuild) -> dict[str, str]:
    """The SHA-256 of each file that the passages were made from."""
    return {key: record.sha256 for key, record in build.built_files.items()}


def _differences(before: Mapping[str, str], after: Mapping[str, str]) -> int:
    """How many files are new, changed or gone."""
    return sum(before.get(key) != after.get(key) for key in before.keys() | after.keys())


def _link_or_copy(file: str, to: str) -> None:
    try:
        os.link(file, to)
    except OSError:  # a file system without hard links
        shutil.copy2(file, to)
