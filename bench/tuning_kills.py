"""Kills tunings of a tiny language model, resumes them, and compares the files with those of an
uninterrupted tuning.

    python bench/tuning_kills.py [--kills 10] [--seed 0]

The model has random weights, the questions are the sample's. Each tuning is a forked process, so
that nothing is imported again, and is killed (SIGKILL) at a random moment of one of `--kills` equal
parts of the time of an uninterrupted tuning. Resumed, it must leave the same files: weights and
configuration byte for byte, and the manifest except its `record`. The log, which has speeds, is not
compared. The exit code is 1 if a file differs.
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

# Before torch is imported; a fork has one thread
os.environ |= {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "stand_ins"))
import peft
import tiny_chat
import transformers

from ifqa.plugins import open_benchmark
from ifqa.progress import hide_progress
from ifqa.protocols import TrainingData
from ifqa.records import Passage
from ifqa.training.checkpoints import LOG
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
# Loads the lazy parts of both packages before the fork
_LOADED = (peft.LoraConfig, transformers.Trainer)


def training_data() -> TrainingData:
    """The sample's questions, each with the beginnings of its gold passage and the next
    question's.
    """
    questions = open_benchmark("sample").questions("train")
    golds = [question.gold_passages[0][:250] for question in questions]
    pairs = zip(golds, [*golds[1:], golds[0]], strict=True)
    rankings = [[Passage("own", "", gold), Passage("next", "", other)] for gold, other in pairs]
    return TrainingData(questions, rankings, "sample/dev", {"train": "ab"})


def tune(folder: Path) -> None:
    hide_progress()
    trainer = configure_trainer(Llm, model=str(folder / "tiny"), **SETTINGS)
    trainer.train(training_data(), folder / "weights")


def start(folder: Path) -> multiprocessing.process.BaseProcess:
    child = multiprocessing.get_context("fork").Process(target=tune, args=(folder,))
    child.start()
    return child


def hash_files(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file of a tuning but the log, which has speeds.

    The manifest's without its record.
    """
    hashes = {}
    for path in sorted(path for path in (folder / "weights").iterdir() if path.name != LOG):
        content = path.read_bytes() if path.is_file() else b"a folder"
        if path.name == "manifest.json":
            content = json.dumps(json.loads(content) | {"record": None}, sort_keys=True).encode()
        hashes[path.name] = sha256(content).hexdigest()
    return hashes


def run_uninterrupted(folder: Path) -> tuple[dict[str, str], float]:
    """The files of an uninterrupted tuning, and its seconds."""
    shutil.rmtree(folder / "weights", ignore_errors=True)
    began = time.monotonic()
    child = start(folder)
    child.join()
    if child.exitcode:
        raise SystemExit("the uninterrupted tuning failed")
    return hash_files(folder), time.monotonic() - began


def kill_and_resume(folder: Path, moment: float) -> tuple[str, dict[str, str]]:
    """The state after a kill at that moment, in words, and the files after the resumed tuning."""
    shutil.rmtree(folder / "weights", ignore_errors=True)
    child = start(folder)
    child.join(moment)
    child.kill()
    child.join()
    if child.exitcode != -signal.SIGKILL:
        return "it had ended", hash_files(folder)
    steps = sorted(
        int(path.name.rpartition("-")[2])
        for path in (folder / "weights").glob("checkpoints/checkpoint-*")
    )
    state = f"checkpoints of the steps {', '.join(map(str, steps))}" if steps else "no checkpoint"
    child = start(folder)
    child.join()
    return state, {} if child.exitcode else hash_files(folder)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0, help="for the moments")
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    different = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tiny_chat.save(folder / "tiny", max_position_embeddings=1024)
        expected, seconds = run_uninterrupted(folder)
        print(f"uninterrupted in {seconds:.1f} s: {', '.join(expected)}", flush=True)
        for number in range(arguments.kills):
            moment = seconds * (number + chance.random()) / arguments.kills
            state, hashes = kill_and_resume(folder, moment)
            differ = sorted({path for path, _ in hashes.items() ^ expected.items()})
            different += bool(differ)
            result = f"DIFFERS: {', '.join(differ)}" if differ else "identical"
            print(f"killed after {moment:4.1f} s: {state}; {result}", flush=True)
    print(f"{different} of {arguments.kills} differ")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
