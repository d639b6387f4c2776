"""Measures `retrieve`, `read` and `score` over synthetic questions: seconds, memory, equal bytes,
resumption after a kill.

    python bench/questions.py [--questions 200000] [--ways 1 2 ray] [--stages retrieve read score]
        [--kill STAGE ...] [--in FOLDER]

The questions are words of the sample's passages, for BM25 over the sample's corpus. An external
reader answers each with a word of its best passage. A way is a number of processes, or "ray" with
one per core. It prints seconds, CPU seconds of all processes, and peak resident memory: of the
command's own process, of its largest worker, and of all together. `--kill` kills a stage (SIGKILL)
at half its output in the first way with workers, and runs the same command again.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

K = 20
BYTES = {True: "the same bytes", False: "OTHER BYTES"}
FILES = {"retrieve": "run.trec", "read": "predictions.jsonl", "score": "per_question.jsonl"}
OUTSIDE = '''
import json
from ifqa.records import Prediction, Question

class Synthetic:
    """The questions of a file."""

    def questions(self, split):
        with open(f"{split}.jsonl") as lines:
            rows = map(json.loads, lines)
            return [Question(row["id"], row["question"], tuple(row["answers"])) for row in rows]

class First:
    """Answers with the middle word of the best passage."""

    def __init__(self) -> None:
        pass

    def answer(self, questions, passages):
        predictions = []
        for question, ranking in zip(questions, passages):
            words = ranking[0].text.split() if ranking else [""]
            ids = tuple(passage.id for passage in ranking)
            predictions.append(Prediction(question.id, words[len(words) // 2], "", ids))
        return predictions
'''
EXPERIMENT = f"""
benchmark = "synthetic:Synthetic"
split = "{{split}}"
corpus = "sample"
[retriever]
name = "bm25"
k = {K}
[reader]
name = "synthetic:First"
passages = 5
"""


@dataclass
class Usage:
    """Seconds, CPU seconds and peak resident bytes of a command."""

    status: int = 0
    seconds: float = 0.0
    memory: int = 0  # of its own process
    worker_memory: int = 0  # of its largest other process
    total_memory: int = 0
    cpu: dict[int, float] = field(default_factory=dict)  # process -> CPU seconds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=200_000)
    parser.add_argument("--ways", nargs="+", default=["1", "2", "ray"])
    parser.add_argument("--stages", nargs="+", choices=FILES, default=list(FILES))
    parser.add_argument("--kill", nargs="*", choices=["retrieve", "read"], default=[])
    parser.add_argument(
        "--in", dest="folder", type=Path, help="folder to work in; else a temporary one"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = arguments.folder or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        prepare(folder, arguments.questions)
        experiment = folder / "experiments" / f"synthetic-{arguments.questions}"
        sums: dict[str, str] = {}
        for way in arguments.ways:
            for stage in arguments.stages:
                path = experiment / stage / FILES[stage]
                shutil.rmtree(path.parent, ignore_errors=True)
                usage = measure(folder, command(stage, experiment.name, way))
                assert usage.status == 0, (folder / "stderr.txt").read_text()
                same = sums.setdefault(stage, sha256(path)) == sha256(path)
                show(f"{stage:9} {way if stage != 'score' else '-':4}", usage, BYTES[same])
        way = next((way for way in arguments.ways if way != "1"), arguments.ways[0])
        for stage in arguments.kill:
            path = experiment / stage / FILES[stage]
            part = experiment / f".{stage}.partial" / FILES[stage]
            size = path.stat().st_size
            shutil.rmtree(path.parent)
            usage = measure(folder, command(stage, experiment.name, way), part, size // 2)
            show(
                f"{stage:9} {way:4}", usage, f"killed at {part.stat().st_size:,} of {size:,} bytes"
            )
            usage = measure(folder, command(stage, experiment.name, way))
            lines = (folder / "stderr.txt").read_text().splitlines()
            resumed = next((line for line in lines if "going on" in line or "resum" in line), "")
            show(f"{stage:9} {way:4}", usage, f"{BYTES[sums[stage] == sha256(path)]}: {resumed}")


def command(stage: str, name: str, way: str) -> list[str]:
    """The command of a stage in a way; `score` has one way."""
    flags = {"ray": ["--engine", "ray"], "1": []}.get(way, ["--workers", way])
    return [sys.executable, "-m", "ifqa", stage, name, *([] if stage == "score" else flags)]


def prepare(folder: Path, count: int) -> None:
    """Build the sample's corpus and index, and write the questions, the plugins and the experiment,
    if they are missing.
    """
    (folder / "synthetic.py").write_text(OUTSIDE)
    (folder / "experiments").mkdir(exist_ok=True)
    split = folder / f"asked-{count}.jsonl"
    (folder / f"experiments/synthetic-{count}.toml").write_text(EXPERIMENT.format(split=split.stem))
    subprocess.run(
        [sys.executable, "-m", "ifqa", "index", "sample"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    if split.exists():
        return
    shards = sorted((folder / "indexes/sample/passages").glob("passages-*.jsonl"))
    texts = [
        json.loads(line)["contents"].split()
        for shard in shards
        for line in shard.read_text().splitlines()
    ]
    chance = random.Random(count)
    with open(split, "w") as out:
        for number in range(count):
            words = chance.choice(texts)
            start = chance.randrange(max(1, len(words) - 8))
            text = " ".join(words[start : start + 5] + chance.choices(words, k=3))
            record = {
                "id": f"{split.stem}/{number}",
                "question": f"If {text}?",
                "answers": chance.sample(words, 2),
            }
            out.write(json.dumps(record) + "\n")


def measure(folder: Path, arguments: list[str], grows: Path | None = None, until: int = 0) -> Usage:
    """Run a command and watch its processes; kill it when the file `grows` has `until` bytes."""
    with open(folder / "stderr.txt", "w") as stderr:
        began = time.monotonic()
        process = subprocess.Popen(arguments, cwd=folder, stdout=subprocess.DEVNULL, stderr=stderr)
        usage = Usage()
        while process.poll() is None:
            sizes = {pid: memory(pid) for pid in family(process.pid)}
            usage.cpu |= {pid: max(usage.cpu.get(pid, 0.0), cpu(pid)) for pid in sizes}
            usage.total_memory = max(usage.total_memory, sum(now for _, now in sizes.values()))
            usage.memory = max(usage.memory, sizes.pop(process.pid)[0])
            usage.worker_memory = max([usage.worker_memory, *(peak for peak, _ in sizes.values())])
            if grows and grows.exists() and grows.stat().st_size >= until:
                process.send_signal(signal.SIGKILL)
            time.sleep(0.1)
        usage.status = process.wait()
        usage.seconds = time.monotonic() - began
    return usage


def family(parent: int) -> Iterator[int]:
    """A process and its descendants."""
    yield parent
    for task in Path(f"/proc/{parent}/task").glob("*/children"):
        with suppress(OSError):
            for child in task.read_text().split():
                yield from family(int(child))


def memory(process: int) -> tuple[int, int]:
    """Peak and present resident memory of a process in bytes; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0, 0
    sizes = {
        line.split(":")[0]: int(line.split()[1]) * 1024
        for line in lines
        if line.startswith(("VmHWM", "VmRSS"))
    }
    return sizes.get("VmHWM", 0), sizes.get("VmRSS", 0)


def cpu(process: int) -> float:
    """CPU seconds of a process so far; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def sha256(path: Path) -> str:
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def show(row: str, usage: Usage, note: str) -> None:
    parts = {"own": usage.memory, "largest other": usage.worker_memory, "all": usage.total_memory}
    sizes = ", ".join(f"{part} {size / 1e6:,.0f} MB" for part, size in parts.items())
    print(
        f"{row} {usage.seconds:8.1f} s, {sum(usage.cpu.values()):8.1f} s of CPU  {sizes}  {note}",
        flush=True,
    )


if __name__ == "__main__":
    os.environ.setdefault("PYTHONPATH", str(Path(__file__).parents[1]))
    main()
