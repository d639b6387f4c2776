"""Follows five things through the package, and counts the hops between its folders.

    python bench/walks.py                         a question, a passage, a document, a completion,
                                                  and a request to the server
    PYTHONPATH=OTHER python bench/walks.py        the same in another checkout

A hop is a call of a function by one in another folder (or file right below the package), counted
once for each pair of functions. "up" are those into a higher layer of tests/test_house.py:
constructors of plugins, and callbacks. "into run" and "into plugins" are the hops into
`pipeline/run.py` and `plugins.py`, from any other file.
"""

import runpy
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from types import FrameType

import ifqa

PACKAGE = Path(ifqa.__file__).parent
ROOT = PACKAGE.parent
QUESTION = "If the ferry had been late, when would it have sailed?"
NOTES = "The ferry from Oban sails at nine. On Sundays it sails at noon.\n"
DUMP = """
[[passages.sources]]
format = "dump"
path = "{path}"

[index.bm25]
retriever = "bm25"
"""


class Walk:
    """The calls between files of the package while it is followed."""

    def __init__(self) -> None:
        self.calls: set[tuple[tuple[str, str], tuple[str, str]]] = set()
        self._files: dict[str, str] = {}
        self.is_on = True

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call" or not self.is_on:
            return
        callee = self._function(frame)
        caller = frame.f_back
        while callee and caller:
            if called_by := self._function(caller):
                if called_by[0] != callee[0]:
                    self.calls.add((called_by, callee))
                return
            caller = caller.f_back

    def _function(self, frame: FrameType) -> tuple[str, str] | None:
        """File and name of a function of the package; None for other code."""
        path = frame.f_code.co_filename
        if path not in self._files:
            inside = path.startswith(f"{PACKAGE}/")
            self._files[path] = str(Path(path).relative_to(PACKAGE)) if inside else ""
        file = self._files[path]
        return (file, frame.f_code.co_qualname) if file else None

    def follow(self, action: Callable[[], object]) -> None:
        """Count the calls of an action, also in threads that it starts."""
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            action()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def report(self, name: str, level: Callable[[str], int]) -> str:
        hops = [(a, b) for a, b in self.calls if part(a[0]) != part(b[0])]
        up = sum(level(part(b[0])) < level(part(a[0])) for a, b in hops)
        folders = {part(file) for pair in self.calls for file, _ in pair}
        into = [
            sum(callee[0] == file for _, callee in self.calls)
            for file in ("pipeline/run.py", "plugins.py")
        ]
        return f"| {name} | {len(folders)} | {len(hops)} | {up} | {into[0]} | {into[1]} |"


def part(file: str) -> str:
    return file.partition("/")[0].removesuffix(".py")


def follow_request(walk: "Walk") -> None:
    """Follow a question to a server that has answered one before."""
    from starlette.testclient import TestClient

    from ifqa.config.experiment import load_experiment
    from ifqa.pipeline.run import Run
    from ifqa.pipeline.stages import open_system
    from ifqa.serve.app import make_app
    from ifqa.serve.limits import Limits
    from ifqa.serve.security import Guard
    from ifqa.serve.service import Service

    walk.is_on = False
    threading.setprofile(walk)  # for the threads of server and service
    limits = Limits()
    service = Service(open_system(Run(load_experiment("sample"))), limits)
    app = make_app(service, Guard())
    with TestClient(app, base_url="http://127.0.0.1") as client:
        for is_on in (False, True):
            walk.is_on = is_on
            client.post("/v1/ask", json={"question": QUESTION}).raise_for_status()
    threading.setprofile(None)


def main() -> None:
    house = runpy.run_path(str(ROOT / "tests/test_house.py"))
    layers = house["LAYERS"]

    def level(name: str) -> int:
        return next((n for n, layer in enumerate(layers) if name in layer), len(layers))

    def passage() -> None:
        Path("indexes").mkdir()
        pages = ROOT / "tests/golden/pages.xml"
        Path("indexes/six.toml").write_text(DUMP.format(path=pages))
        ifqa.Corpus("six").build()
        ifqa.ask(QUESTION, corpus="six")

    def document() -> None:
        Path("notes").mkdir()
        Path("notes/ferry.txt").write_text(NOTES)
        with ifqa.open(docs="notes") as system:
            system.ask(QUESTION)

    walks: dict[str, Callable[[], object]] = {
        "a question: `ifqa run sample --limit 1`": lambda: ifqa.run("sample", limit=1),
        "a passage: build and ask, over a dump of six pages": passage,
        "a document: `ifqa ask --docs`": document,
        "a completion: `ifqa run sample-llm --limit 1`": lambda: ifqa.run("sample-llm", limit=1),
    }
    print("| walk | folders | hops | up | into run | into plugins |\n|---|---|---|---|---|---|")
    for name, action in walks.items():
        walk = Walk()
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            walk.follow(action)
        print(walk.report(name, level), flush=True)
    walk = Walk()
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        follow_request(walk)
    print(walk.report("a request to the server that runs", level))


if __name__ == "__main__":
    main()
