"""Kill tunings of a tiny language model at ten moments, go on with them, and compare the files with those of an unbroken tuning.

    python bench/tuning_kills.py [--kills 10] [--method sft dpo] [--seed 0]

The model has random weights, the questions are the sample's. Each tuning is a process of its own, forked so that nothing is
imported again, and is killed (SIGKILL) at a moment drawn from one of equal parts of the time that an unbroken tuning takes. Begun
again it must leave the same files: weights and configuration byte for byte, and the manifest but for its `record`. The exit code
is 1 if one differs.
"""

import argparse
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path

os.environ |= {
    "OMP_NUM_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",
}  # before torch is imported; a forked process has one thread
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "stand_ins"))
import peft
import tiny_chat
import transformers

from ifqa.plugins import open_benchmark
from ifqa.progress import hide_progress
from ifqa.protocols import TrainingData
from ifqa.records import Passage
from ifqa.training.llm import Llm
from ifqa.training.trainer import configure_trainer

SETTINGS = {
    "epochs": 4,
    "batch": 4,
    "device_batch": 4,
    "rank": 4,
    "passages": 1,
    "max_tokens": 600,
    "checkpoint_every": 5,
}
_IMPORTED = (peft.LoraConfig, transformers.Trainer)  # both packages import their parts when these are named


def material() -> TrainingData:
    """The sample's questions, each with the beginning of its gold passage, and that of the next question's."""
    questions = open_benchmark("sample").questions("train")
    golds = [question.gold_passages[0][:250] for question in questions]
    rankings = [
        [Passage("own", "", gold), Passage("next", "", other)]
        for gold, other in zip(golds, [*golds[1:], golds[0]], strict=True)
    ]
    return TrainingData(questions, rankings, "sample/dev", {"train": "ab"})


def tune(folder: Path, method: str) -> None:
    hide_progress()
    configure_trainer(Llm, model=str(folder / "tiny"), method=method, **SETTINGS).train(material(), folder / "made")


def start(folder: Path, method: str) -> multiprocessing.process.BaseProcess:
    child = multiprocessing.get_context("fork").Process(target=tune, args=(folder, method))
    child.start()
    return child


def content(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file of a tuning, of the manifest without its record."""
    found = {}
    for path in sorted((folder / "made").iterdir()):
        data = path.read_bytes() if path.is_file() else b"a folder"
        if path.name == "manifest.json":
            inputs = {key: value for key, value in json.loads(data).items() if key != "record"}
            data = json.dumps(inputs, sort_keys=True).encode()
        found[path.name] = sha256(data).hexdigest()
    return found


def undisturbed(folder: Path, method: str) -> tuple[dict[str, str], float]:
    """The files of a tuning that is left alone, and its seconds."""
    shutil.rmtree(folder / "made", ignore_errors=True)
    began = time.monotonic()
    child = start(folder, method)
    child.join()
    if child.exitcode:
        raise SystemExit(f"{method}: the unbroken tuning failed")
    return content(folder), time.monotonic() - began


def killed(folder: Path, method: str, moment: float) -> tuple[str, dict[str, str]]:
    """What a kill at that moment left, in words, and the files after the second tuning."""
    shutil.rmtree(folder / "made", ignore_errors=True)
    child = start(folder, method)
    child.join(moment)
    child.kill()
    child.join()
    if child.exitcode != -signal.SIGKILL:
        return "it had ended", content(folder)
    steps = sorted(int(path.name.rpartition("-")[2]) for path in (folder / "made").glob("checkpoints/checkpoint-*"))
    again = start(folder, method)
    again.join()
    left = f"checkpoints of the steps {', '.join(map(str, steps))}" if steps else "no checkpoint"
    return left, {} if again.exitcode else content(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=10, help="of each method")
    parser.add_argument("--method", nargs="+", choices=["sft", "dpo"], default=["sft", "dpo"])
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    arguments = parser.parse_args()
    chance, different = random.Random(arguments.seed), 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tiny_chat.save(folder / "tiny", max_position_embeddings=1024)
        for method in arguments.method:
            wanted, took = undisturbed(folder, method)
            print(f"{method}: unbroken in {took:.1f} s: {', '.join(wanted)}", flush=True)
            for number in range(arguments.kills):
                moment = took * (number + chance.random()) / arguments.kills
                left, found = killed(folder, method, moment)
                differ = sorted({path for path, _ in found.items() ^ wanted.items()})
                different += bool(differ)
                told = f"DIFFERS: {', '.join(differ)}" if differ else "identical"
                print(f"{method}: killed after {moment:4.1f} s: {left}; {told}", flush=True)
    print(f"{different} of {arguments.kills * len(arguments.method)} differ")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
