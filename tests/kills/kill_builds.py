"""Kill builds of passages at seeded moments, look for orphans, run the same command again, and compare every byte.

    python tests/kills/kill_builds.py --local 10 --ray 3 [--megabytes 60] [--seed 0]

The dump is a multistream dump of random articles. Each build is killed (SIGKILL, the parent alone) at a moment drawn between
its start and the duration of an undisturbed build. Its processes must end within 30 seconds, and the same command must then
leave the same bytes as the undisturbed build, for any number of workers of either, locally or under Ray.
"""

import argparse
import bz2
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "stand_ins"))
from dumps import HEAD, TAIL, page

ORPHANS_END = 30  # seconds


def write_dump(path: Path, megabytes: float, seed: int) -> None:
    """Write streams of 100 pages of random words, until the file has `megabytes`."""
    chance = random.Random(seed)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 9))) for _ in range(30_000)]
    number = 0
    with path.open("wb") as out:
        out.write(bz2.compress(HEAD.encode()))
        while out.tell() < megabytes * 1e6:
            pages = []
            for _ in range(100):
                number += 1
                text = "'''A''' is [[b]].\n== C ==\n" + " ".join(chance.choices(words, k=chance.randint(20, 1500)))
                pages.append(page(number, f"Page {number}", text))
            out.write(bz2.compress("".join(pages).encode()))
        out.write(bz2.compress(TAIL.encode()))


def start(folder: Path, workers: int, engine: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "ifqa", "passages", "c", "--workers", str(workers), "--engine", engine]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "IFQA_KILL_TEST": str(folder)}
    with (folder / "stderr.txt").open("wb") as stderr:
        return subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=stderr)


def orphans(folder: Path) -> list[str]:
    """Processes that have the folder's mark in their environment, which children inherit."""
    mark, found = f"IFQA_KILL_TEST={folder}".encode(), []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and mark in (process / "environ").read_bytes().split(b"\0"):
                state = (process / "stat").read_text().rpartition(")")[2].split()[0]
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ")[:80].decode()
                found += [f"{process.name} {command}"] if state != "Z" else []
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return found


def content(folder: Path) -> dict[str, bytes]:
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "manifest.json"}
    wanted = json.loads((folder / "manifest.json").read_text())["inputs"]
    return files | {"inputs": json.dumps(wanted, sort_keys=True).encode()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--local", type=int, default=10, help="kills of builds by processes of this machine")
    parser.add_argument("--ray", type=int, default=3, help="kills of builds under Ray")
    parser.add_argument("--megabytes", type=float, default=60, help="size of the packed dump")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    bad = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        passages = folder / "indexes/c/passages"
        (folder / "indexes").mkdir()
        (folder / "indexes/c.toml").write_text('[[passages.sources]]\nformat = "dump"\npath = "dump.xml.bz2"\n')
        write_dump(folder / "dump.xml.bz2", arguments.megabytes, arguments.seed)
        reference: dict[str, bytes] = {}
        for engine, kills in (("local", arguments.local), ("ray", arguments.ray)):
            if not kills:
                continue
            shutil.rmtree(folder / "indexes/c", ignore_errors=True)
            began = time.monotonic()
            assert start(folder, 2, engine).wait() == 0, (folder / "stderr.txt").read_text()
            took = time.monotonic() - began
            reference = reference or content(passages)
            same = content(passages) == reference
            bad += not same
            print(f"{engine}: undisturbed in {took:.1f} s, {'identical' if same else 'DIFFERS'}", flush=True)
            for kill in range(kills):
                shutil.rmtree(folder / "indexes/c", ignore_errors=True)
                # Ray's own start is the hardest moment: one kill falls into it
                moment = took * (kill + chance.random()) / kills if kill or engine == "local" else 1.5 + chance.random()
                workers = chance.choice([1, 2, 3])
                child = start(folder, workers, engine)
                time.sleep(moment)
                child.send_signal(signal.SIGKILL)
                landed = child.wait() == -signal.SIGKILL
                killed = time.monotonic()
                while (left := orphans(folder)) and time.monotonic() < killed + ORPHANS_END:
                    time.sleep(0.1)
                alone = time.monotonic() - killed
                log = folder / "indexes/c/.passages.partial/blocks.jsonl"
                finished = len(log.read_bytes().splitlines()) if log.exists() else 0
                again = start(folder, chance.choice([1, 2, 3]), chance.choice(["local", engine])).wait()
                said = (folder / "stderr.txt").read_text()
                same = again == 0 and content(passages) == reference
                bad += not same or bool(left)
                print(
                    f"{engine}, {workers} workers, killed at {moment:5.1f} s{'' if landed else ' (it was done)'}, "
                    f"{finished:2} blocks finished; last child gone after {alone:4.1f} s{' ORPHANS ' + str(left) if left else ''}; "
                    f"{'identical' if same else 'DIFFERS ' + said[-300:]}",
                    flush=True,
                )
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
