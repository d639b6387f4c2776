"""Kill a stage at seeded places, run the same command again, and compare the results.

A stage is killed (SIGKILL) when it has written a seeded number of bytes of its output, and right before and after each of its last
renames; the manifest's is the last. Then the same command runs undisturbed. Its artifact must equal that of a run that was never
killed, byte for byte except the manifest's `record`.
"""

import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

STAGES = {
    "passages": ("indexes/small/passages", ["passages", "small"]),
    "index": ("indexes/small/bm25", ["index", "small"]),
    "retrieve": ("experiments/small/retrieve", ["retrieve", "small"]),
    "read": ("experiments/small/read", ["read", "small"]),
    "score": ("experiments/small/score", ["score", "small"]),
}

PLUGINS = """
from itertools import islice
from ifqa.records import Hit, Prediction
class Leads:
    "Ranks the corpus's first passages."
    def __init__(self, corpus) -> None: self.corpus = corpus
    def search(self, questions, k):
        return [[Hit(p.id, 1 / rank) for rank, p in enumerate(islice(self.corpus, k), 1)] for _ in questions]
class First:
    "Answers with the first word of the best passage."
    def __init__(self) -> None: pass
    def answer(self, questions, passages):
        return [Prediction(q.id, (p[0].text.split()[0] if p else ""), passage_ids=tuple(x.id for x in p)) for q, p in zip(questions, passages)]
"""

# A process is a fork of a server that has imported these: to import them anew in each takes longer than a stage
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["ifqa.cli.app", "ifqa.pipeline.stages", "ifqa.report.console", "numpy"])


def child(arguments: list[str], folder: Path, spec: dict[str, Any]) -> None:
    """Run a command as its own process in `folder`, and kill this process where `spec` says."""
    for number, name in ((1, os.devnull), (2, folder / "stderr.txt")):
        os.dup2(os.open(name, os.O_WRONLY), number)
    os.chdir(folder)
    sys.path[:0] = [str(Path(__file__).parents[2]), str(folder)]
    sys.argv = ["ifqa", *arguments]
    counts = watch_writing(spec)
    if spec["kind"] == "lucene":
        from ifqa.retrieval import bm25

        bm25.run_java = lambda *_, **__: die("while Lucene reads")  # type: ignore[assignment]
    from ifqa.cli.app import main

    try:
        main()
    finally:
        if spec["kind"] == "count":
            print(json.dumps(counts), file=sys.stderr)


def die(where: str) -> None:
    print("killed", where, file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


def watch_writing(spec: dict[str, Any]) -> dict[str, int]:
    """Count written bytes and renames from now on, and die where `spec` says; the counts."""
    from ifqa.storage import files

    counts, plain_write = {"bytes": 0, "renames": 0}, files.write_bytes

    def write(handle: Any, data: Any) -> None:
        if spec["kind"] == "bytes" and counts["bytes"] + len(data) > spec["at"]:
            plain_write(handle, data[: spec["at"] - counts["bytes"]])
            handle.flush()
            die(f"after {spec['at']:,} bytes")
        counts["bytes"] += len(data)
        plain_write(handle, data)

    def watched(rename: Callable[..., None]) -> Callable[..., None]:
        def call(source: Any, target: Any, *rest: Any, **options: Any) -> None:
            name = os.path.basename(str(target))
            counts["renames"] += not name.endswith(".lock")
            here = not name.endswith(".lock") and counts["renames"] == spec.get("at")
            if here and spec["kind"] == "before":
                die(f"before rename {counts['renames']} (to {name})")
            rename(source, target, *rest, **options)
            if here and spec["kind"] == "after":
                die(f"after rename {counts['renames']} (to {name})")

        return call

    files.write_bytes = write
    os.replace, os.rename = watched(os.replace), watched(os.rename)
    return counts


def run(folder: Path, arguments: list[str], spec: dict | None = None) -> tuple[int, str]:
    """Run a command in `folder`."""
    said = folder / "stderr.txt"
    said.write_bytes(b"")
    process = PROCESSES.Process(target=child, args=(arguments, folder, spec or {"kind": "none"}))
    process.start()
    process.join()
    assert process.exitcode is not None
    return process.exitcode, said.read_text()


def snapshot(folder: Path) -> dict[str, bytes]:
    """The files of an artifact by name; only the `inputs` of its manifest."""
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.name == "manifest.json":
            files[path.name] = json.dumps(json.loads(path.read_text())["inputs"], sort_keys=True).encode()
        elif path.is_file():
            files[path.relative_to(folder).as_posix()] = path.read_bytes()
    return files


def prepare(folder: Path) -> None:
    """Write a corpus of random words and questions on it, for an experiment named `small`; with BM25 each run would start a JVM."""
    words = random.Random(1)
    vocabulary = ["".join(words.choices("abcdefghijklmnopqrstuvwxyz", k=words.randint(3, 8))) for _ in range(3000)]
    text = [" ".join(words.choices(vocabulary, k=words.randint(50, 500))) for _ in range(40)]
    for name in ("indexes", "experiments", "data/ifqa/full_split"):
        (folder / name).mkdir(parents=True)
    with (folder / "articles.jsonl").open("w") as out:
        for n, article in enumerate(text):
            out.write(json.dumps({"id": str(n), "title": f"Article {n}", "text": article}) + "\n")
    questions = [
        {"idx": n, "question": f"If {' '.join(one[5:15])}?", "answers": [one[20]], "context": [" ".join(one[:100])]}
        for n, one in enumerate(map(str.split, text))
    ]
    (folder / "data/ifqa/full_split/dev.json").write_text(json.dumps(questions))
    (folder / "indexes/small.toml").write_text(
        '[[passages.sources]]\nformat = "articles"\npath = "articles.jsonl"\n[index.bm25]\nretriever = "bm25"\n'
    )
    (folder / "experiments/small.toml").write_text(
        'benchmark = "ifqa"\nsplit = "full-dev"\ncorpus = "small"\n[retriever]\nname = "small_plugins:Leads"\nk = 20\n'
        '[reader]\nname = "small_plugins:First"\n'
    )
    (folder / "small_plugins.py").write_text(PLUGINS)


class Kill(NamedTuple):
    where: str
    middle: bool
    landed: bool
    identical: bool


def kill_stage(folder: Path, stage: str, renames: bool) -> list[Kill]:
    """Kill a stage in the middle, and around its last renames; the stages before it are finished, and in the end it is too."""
    output, command = folder / STAGES[stage][0], STAGES[stage][1]
    partial = output.with_name(f".{output.name}.partial")

    def anew(older: bool = False) -> None:
        """Leave nothing there, or a whole artifact that was made from other inputs."""
        for path in (output, partial, output.with_name(f".{output.name}.old")):
            shutil.rmtree(path, ignore_errors=True)
        if older:
            shutil.copytree(finished, output)
            manifest = json.loads((output / "manifest.json").read_text())
            (output / "manifest.json").write_text(json.dumps(manifest | {"inputs": {"older": True}}))

    anew()
    code, said = run(folder, command, {"kind": "count"})
    assert code == 0, said
    counts = json.loads(said.strip().splitlines()[-1])
    undisturbed = snapshot(output)
    finished = folder / f"finished-{stage}"
    shutil.copytree(output, finished, dirs_exist_ok=True)
    anew(older=True)
    old = snapshot(output)
    middle = 1 + int(random.Random(stage).random() * (counts["bytes"] - 1))
    specs: list[dict] = [{"kind": "bytes", "at": middle, "older": False}]
    last = counts["renames"]  # and one more over an older artifact, which is moved aside first
    if renames:
        specs += [{"kind": kind, "at": last, "older": False} for kind in ("before", "after")]
        specs += [{"kind": "after", "at": n, "older": True} for n in (last, last + 1)]
    done = []
    for spec in specs:
        anew(spec["older"])
        code, said = run(folder, command, spec)
        where = next((line for line in said.splitlines() if line.startswith("killed")), "not killed")
        left = snapshot(output) if output.exists() else {}
        sound = left in ({}, old, undisturbed)
        code_again, said_again = run(folder, command)
        same = sound and code_again == 0 and snapshot(output) == undisturbed
        done.append(Kill(where, code < 0 and left != undisturbed, code < 0, same))
        print(f"{stage} {spec} {where} {'identical' if same else f'DIFFERS {said_again[-300:]}'}")
    return done
