"""Measures `retrieve`, `read` and `score` over many synthetic questions: seconds, memory, equal bytes, a kill and its resumption.

    python bench/questions.py [--questions 200000] [--ways 1 2 ray] [--stages retrieve read score]
        [--kill STAGE ...] [--in FOLDER]

The questions are words of the sample's passages, asked over the sample's corpus with BM25. A reader from outside the package
answers each with a word of its best passage. A way is a number of processes, or "ray" with as many as there are cores.
Printed are seconds, CPU seconds of all processes, and the highest resident memory: of the command's own process, of its largest
other process (a worker), and of all together. `--kill` kills a stage (SIGKILL) at half its output in the first way with
workers, and runs the same command again.
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
from dataclasses import dataclass, field
from pathlib import Path

K = 20
FILES = {"retrieve": "run.trec", "read": "predictions.jsonl", "score": "per_question.jsonl"}
OUTSIDE = '''
import json
from ifqa.records import Prediction, Question

class Synthetic:
    """The questions of a file."""

    def questions(self, split):
        with open(f"{split}.jsonl") as lines:
            records = map(json.loads, lines)
            return [Question(one["id"], one["question"], tuple(one["answers"])) for one in records]

class First:
    """Answers with the middle word of the best passage."""

    def __init__(self) -> None:
        pass

    def answer(self, questions, passages):
        found = []
        for question, several in zip(questions, passages):
            words = several[0].text.split() if several else [""]
            found.append(Prediction(question.id, words[len(words) // 2], "", tuple(one.id for one in several)))
        return found
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
class Measured:
    """Exit status of a command, its seconds, CPU seconds, and the highest resident memory in bytes."""

    status: int
    seconds: float
    own: int
    memory: dict[int, int] = field(default_factory=dict)  # another process -> its highest
    cpu: dict[int, float] = field(default_factory=dict)  # process -> its CPU seconds
    together: int = 0

    @property
    def largest(self) -> int:
        """The highest memory of another process."""
        return max(self.memory.values(), default=0)


def main() -> None:
    """Prepare, measure each way, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=200_000)
    parser.add_argument("--ways", nargs="+", default=["1", "2", "ray"])
    parser.add_argument("--stages", nargs="+", choices=FILES, default=list(FILES))
    parser.add_argument("--kill", nargs="*", choices=["retrieve", "read"], default=[])
    parser.add_argument("--in", dest="folder", type=Path, help="folder to work in; else a temporary one")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = arguments.folder or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        prepare(folder, arguments.questions)
        made = folder / "experiments" / f"synthetic-{arguments.questions}"
        sums: dict[str, str] = {}
        for way in arguments.ways:
            for stage in arguments.stages:
                shutil.rmtree(made / stage, ignore_errors=True)
                found = measure(folder, command(stage, made.name, way))
                assert found.status == 0, (folder / "stderr.txt").read_text()
                sums.setdefault(stage, sha256(made / stage / FILES[stage]))
                same = sums[stage] == sha256(made / stage / FILES[stage])
                show(
                    f"{stage:9} {way if stage != 'score' else '-':4}",
                    found,
                    "the same bytes" if same else "OTHER BYTES",
                )
        ways = [way for way in arguments.ways if way != "1"] or arguments.ways
        for stage in arguments.kill:
            size = (made / stage / FILES[stage]).stat().st_size
            shutil.rmtree(made / stage)
            part = made / f".{stage}.partial" / FILES[stage]
            killed = measure(folder, command(stage, made.name, ways[0]), part, size // 2)
            show(f"{stage:9} {ways[0]:4}", killed, f"killed at {part.stat().st_size:,} of {size:,} bytes")
            again = measure(folder, command(stage, made.name, ways[0]))
            said = [line for line in (folder / "stderr.txt").read_text().splitlines() if "going on" in line]
            same = sums[stage] == sha256(made / stage / FILES[stage])
            show(
                f"{stage:9} {ways[0]:4}",
                again,
                f"{'the same bytes' if same else 'OTHER BYTES'}: {said[0] if said else ''}",
            )


def command(stage: str, name: str, way: str) -> list[str]:
    """The command of a stage in a way; `score` knows one way only, and neither do versions before --workers."""
    chosen = {"ray": ["--engine", "ray"], "1": []}.get(way, ["--workers", way])
    return [sys.executable, "-m", "ifqa", stage, name, *([] if stage == "score" else chosen)]


def prepare(folder: Path, count: int) -> None:
    """Build the sample's corpus and index, and write the questions, the plugins and the experiment, if they are not there."""
    (folder / "synthetic.py").write_text(OUTSIDE)
    (folder / "experiments").mkdir(exist_ok=True)
    split = folder / f"asked-{count}.jsonl"
    (folder / f"experiments/synthetic-{count}.toml").write_text(EXPERIMENT.format(split=split.stem))
    subprocess.run([sys.executable, "-m", "ifqa", "index", "sample"], cwd=folder, check=True, capture_output=True)
    if split.exists():
        return
    shards = sorted((folder / "indexes/sample/passages").glob("passages-*.jsonl"))
    texts = [json.loads(line)["contents"].split() for shard in shards for line in shard.read_text().splitlines()]
    chance = random.Random(count)
    with open(split, "w") as out:
        for number in range(count):
            words = chance.choice(texts)
            start = chance.randrange(max(1, len(words) - 8))
            asked = words[start : start + 5] + chance.choices(words, k=3)
            record = {
                "id": f"{split.stem}/{number}",
                "question": f"If {' '.join(asked)}?",
                "answers": chance.sample(words, 2),
            }
            out.write(json.dumps(record) + "\n")


def measure(folder: Path, arguments: list[str], grows: Path | None = None, until: int = 0) -> Measured:
    """Run a command and watch its processes; kill it when the file `grows` has `until` bytes."""
    with open(folder / "stderr.txt", "w") as stderr:
        began = time.monotonic()
        process = subprocess.Popen(arguments, cwd=folder, stdout=subprocess.DEVNULL, stderr=stderr)
        found = Measured(0, 0.0, 0)
        while process.poll() is None:
            resident = {one: memory(one) for one in family(process.pid)}
            found.cpu |= {one: max(found.cpu.get(one, 0.0), cpu(one)) for one in resident}
            found.own = max(found.own, *resident.pop(process.pid, (0, 0)))
            for one, (highest, _) in resident.items():
                found.memory[one] = max(found.memory.get(one, 0), highest)
            found.together = max(found.together, sum(now for _, now in resident.values()) + memory(process.pid)[1])
            if grows and grows.exists() and grows.stat().st_size >= until:
                process.send_signal(signal.SIGKILL)
            time.sleep(0.1)
        found.status, found.seconds = process.wait(), time.monotonic() - began
    return found


def family(parent: int) -> Iterator[int]:
    """A process and those that it started, and they."""
    yield parent
    for task in Path(f"/proc/{parent}/task").glob("*/children"):
        try:
            for child in task.read_text().split():
                yield from family(int(child))
        except OSError:
            continue


def memory(process: int) -> tuple[int, int]:
    """Highest and present resident memory of a process in bytes; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0, 0
    sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if line.startswith(("VmHWM", "VmRSS"))}
    return sizes.get("VmHWM", 0), sizes.get("VmRSS", 0)


def cpu(process: int) -> float:
    """CPU seconds of a process so far; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def sha256(path: Path) -> str:
    """Hex SHA-256 of a file."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def show(what: str, found: Measured, note: str) -> None:
    """Print a line of the table."""
    sizes = ", ".join(f"{part} {size / 1e6:,.0f} MB" for part, size in (
        ("own", found.own), ("largest other", found.largest), ("all", found.together)))  # fmt: skip
    print(f"{what} {found.seconds:8.1f} s, {sum(found.cpu.values()):8.1f} s of CPU  {sizes}  {note}", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONPATH", str(Path(__file__).parents[1]))
    main()
