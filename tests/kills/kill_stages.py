"""Kill a stage at seeded points, run the same command again, and compare the artifacts.

A stage is killed (SIGKILL) after a seeded number of output bytes, and right before and after its
last renames, which publish the artifact. Then the same command runs undisturbed. Its artifact must
equal that of a run that was never killed, byte for byte except the manifest's `record`.
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
from typing import Any

# Stage -> folder of its artifact
STAGES = {"passages": "indexes/small/passages", "index": "indexes/small/bm25"}
STAGES |= {stage: f"experiments/small/{stage}" for stage in ("retrieve", "read", "score")}

# Processes are forks of a server with these modules, because importing them takes longer than a
# stage
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    ["ifqa.cli.app", "ifqa.pipeline.stages", "ifqa.report.console", "numpy"]
)


def child(stage: str, folder: Path, spec: dict[str, Any]) -> None:
    """Run a stage in `folder`, and kill this process where `spec` says."""
    for number, name in ((1, os.devnull), (2, folder / "stderr.txt")):
        os.dup2(os.open(name, os.O_WRONLY), number)
    os.chdir(folder)
    sys.path.insert(0, str(Path(__file__).parents[2]))
    sys.argv = ["ifqa", stage, "small"]
    counts = watch_writing(spec)
    if spec["kind"] == "lucene":
        from ifqa.retrieval import lucene

        lucene.run_java = lambda *_, **__: die("while Lucene reads")  # type: ignore[assignment]
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
    """Count written bytes and renames from now on, and die where `spec` says.

    Returns the counts.
    """
    from ifqa.storage import files

    counts = {"bytes": 0, "renames": 0}
    plain_write = files.write_bytes

    def write(handle: Any, content: Any) -> None:
        if spec["kind"] == "bytes" and counts["bytes"] + len(content) > spec["at"]:
            plain_write(handle, content[: spec["at"] - counts["bytes"]])
            handle.flush()
            die(f"after {spec['at']:,} bytes")
        counts["bytes"] += len(content)
        plain_write(handle, content)

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


def run(folder: Path, stage: str, spec: dict | None = None) -> tuple[int, str]:
    """The exit code and stderr of a stage."""
    stderr = folder / "stderr.txt"
    stderr.write_bytes(b"")
    process = PROCESSES.Process(target=child, args=(stage, folder, spec or {"kind": "none"}))
    process.start()
    process.join()
    assert process.exitcode is not None
    return process.exitcode, stderr.read_text()


def snapshot(folder: Path) -> dict[str, bytes]:
    """The files of an artifact by name, with only the `inputs` of its manifest."""
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.name == "manifest.json":
            files[path.name] = json.dumps(
                json.loads(path.read_text())["inputs"], sort_keys=True
            ).encode()
        elif path.is_file():
            files[path.relative_to(folder).as_posix()] = path.read_bytes()
    return files


def prepare(folder: Path) -> None:
    """Write the experiment `small` of the sample's questions, and a corpus of articles.

    Only `index` starts a JVM.
    """
    articles = [
        {"id": str(n), "title": f"Article {n}", "text": f"word{n} " * 300} for n in range(40)
    ]
    answers = [{"question_id": f"sample/dev/{n}", "answer": f"answer {n}"} for n in range(40)]
    for name, records in (("articles.jsonl", articles), ("answers.jsonl", answers)):
        (folder / name).write_text("".join(json.dumps(record) + "\n" for record in records))
    for name in ("indexes", "experiments"):
        (folder / name).mkdir()
    (folder / "indexes/small.toml").write_text(
        '[[passages.sources]]\nformat = "articles"\npath = '
        '"articles.jsonl"\n[index.bm25]\nretriever = "bm25"\n'
    )
    (folder / "experiments/small.toml").write_text(
        'benchmark = "sample"\nsplit = "dev"\n[retriever]\nname = "gold"\n'
        '[reader]\nname = "predictions"\npath = "answers.jsonl"\n'
    )


def kill_stage(folder: Path, stage: str, renames: bool) -> dict[str, bool]:
    """Kill a stage in the middle, and with `renames` around its last renames: where it was killed
    -> whether it was unfinished.

    Each time the next run must end as an undisturbed one.
    """
    output = folder / STAGES[stage]
    finished = folder / f"finished-{stage}"

    def reset(older: bool = False) -> None:
        """Remove the artifact, or replace it by an artifact with other inputs."""
        for name in (output.name, f".{output.name}.partial", f".{output.name}.old"):
            shutil.rmtree(output.with_name(name), ignore_errors=True)
        if older:
            shutil.copytree(finished, output)
            manifest = json.loads((output / "manifest.json").read_text())
            (output / "manifest.json").write_text(
                json.dumps(manifest | {"inputs": {"older": True}})
            )

    reset()
    code, stderr = run(folder, stage, {"kind": "count"})
    assert code == 0, stderr
    counts = json.loads(stderr.strip().splitlines()[-1])
    undisturbed = snapshot(output)
    shutil.copytree(output, finished, dirs_exist_ok=True)
    reset(older=True)
    old = snapshot(output)
    middle = 1 + int(random.Random(stage).random() * (counts["bytes"] - 1))
    specs: list[dict] = [{"kind": "bytes", "at": middle, "older": False}]
    last = counts["renames"]  # one more over an older artifact, which is moved aside first
    if renames:
        specs += [{"kind": kind, "at": last, "older": False} for kind in ("before", "after")]
        specs += [{"kind": "after", "at": n, "older": True} for n in (last, last + 1)]
    kills = {}
    for spec in specs:
        reset(spec["older"])
        code, stderr = run(folder, stage, spec)
        assert code == -signal.SIGKILL, stderr
        where = next(line for line in stderr.splitlines() if line.startswith("killed"))
        remains = snapshot(output) if output.exists() else {}
        assert remains in ({}, old, undisturbed), where
        kills[where.split(" (")[-1]] = remains != undisturbed
        code, stderr = run(folder, stage)
        assert code == 0, stderr
        assert snapshot(output) == undisturbed, where
    return kills
