"""Kills nodes of a Ray cluster, and the driver, during the stages of a run.

And times 1, 2 and 3 nodes.

    python bench/cluster.py [--run] [--kills 10] [--seed 0] [--copies 24]

The nodes are processes of this machine, each with one core of Ray's, so times show the overhead of
a cluster and no speed-up. The corpus is copies of the sample's dump; the encoder is small and
random. In each round a random node is killed (SIGKILL) at a random moment of `ifqa index --engine
ray`, or the command itself, which is then run again. With --run the command is `ifqa run`, which
also retrieves and reads for 83 questions of the sample. Afterwards the files must be those of a run
on this machine, byte for byte, except for the manifests' `record`. The exit code is 1 if a file
differs.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path

os.environ |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "stand_ins"))
import dumps
from ray.cluster_utils import Cluster
from tiny_encoder import tiny

from ifqa.corpus.wikipedia.dump import parse_pages
from ifqa.corpus.work_units import SkippedPages
from ifqa.storage.files import read_json

SAMPLE = Path(__file__).resolve().parents[1] / "ifqa" / "bundled" / "sample" / "encyclopedia.xml"
CORPUS = """
[[passages.sources]]
format = "dump"
path = "dumps"

[index.dense]
retriever = "dense"
model = "encoder"
precision = "float32"
"""
EXPERIMENT = """
benchmark = "sample"
split = "hard"
corpus = "c"

[retriever]
name = "dense"
k = 20

[reader]
name = "extractive"
passages = 5
precision = "float32"
"""
FOLDERS = [Path("indexes/c"), Path("experiments/e")]
WORDS = ["index", "c"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", action="store_true", help="retrieve and read, too")
    parser.add_argument("--kills", type=int, default=10, help="rounds of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--copies",
        type=int,
        default=24,
        help="of the sample's 89 pages; each is a file and a shard",
    )
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    if arguments.run:
        WORDS[:] = ["run", "e"]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        tiny(Path("encoder"))
        pages = list(parse_pages([SAMPLE.read_bytes()], "the sample", SkippedPages()))
        Path("dumps").mkdir()
        for copy in range(arguments.copies):
            numbered = enumerate(pages, start=copy * len(pages) + 1)
            texts = [
                dumps.page(number, f"{page.title} {copy}", page.text) for number, page in numbered
            ]
            dumps.multistream(Path(f"dumps/{copy}.xml.bz2"), texts, 20)
        Path("indexes").mkdir()
        Path("indexes/c.toml").write_text(CORPUS)
        Path("experiments").mkdir()
        Path("experiments/e.toml").write_text(EXPERIMENT)
        _, expected = timed_build("local")
        count = read_json(Path("indexes/c/passages/manifest.json"))["record"]["passages"]
        print(
            f"{count:,} passages in "
            f"{len([name for name in expected if 'passages-' in name])} shards"
        )
        seconds, failures = 0.0, 0
        for nodes in (1, 2, 3):
            with_nodes = start(nodes)
            seconds, files = timed_build("ray")
            with_nodes.shutdown()
            pace = f"{nodes} nodes: {seconds:.1f} s, {count / seconds:,.0f} passages a second"
            failures += report(pace, files, expected)
        cluster = start(3)
        for _ in range(arguments.kills):
            moment = draw.uniform(0.1, 0.9) * seconds
            process = command("ray")
            time.sleep(moment)
            cluster.remove_node(
                draw.choice(sorted(cluster.worker_nodes, key=id)), allow_graceful=False
            )
            code = process.wait()
            cluster.add_node(num_cpus=1)
            failures += report(
                f"node killed after {moment:.1f} s, exit code {code}", finish(code), expected
            )
        for _ in range(arguments.kills):
            moment = draw.uniform(0.1, 0.9) * seconds
            process = command("ray")
            time.sleep(moment)
            process.kill()
            code = process.wait()
            failures += report(f"driver killed after {moment:.1f} s", finish(code), expected)
        cluster.shutdown()
    sys.exit(1 if failures else 0)


def start(nodes: int) -> Cluster:
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    for _ in range(nodes - 1):
        cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    os.environ["RAY_ADDRESS"] = cluster.address
    return cluster


def command(engine: str) -> "subprocess.Popen[bytes]":
    for folder in FOLDERS:
        shutil.rmtree(folder, ignore_errors=True)
    return again(engine)


def again(engine: str) -> "subprocess.Popen[bytes]":
    words = [sys.executable, "-m", "ifqa", "--quiet", *WORDS, "--engine", engine]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL)


def finish(code: int) -> dict[str, str]:
    """Run the command again if it did not end well; the hashes of its files."""
    if code and (repeated := again("ray").wait()):
        print(f"the second run ended with {repeated}")
    return hashes()


def timed_build(engine: str) -> tuple[float, dict[str, str]]:
    started = time.monotonic()
    code = command(engine).wait()
    assert not code, f"ifqa {' '.join(WORDS)} --engine {engine} ended with {code}"
    return time.monotonic() - started, hashes()


def hashes() -> dict[str, str]:
    """File -> SHA-256, with the manifests' inputs in place of the manifests."""
    paths = [path for folder in FOLDERS for path in sorted(folder.rglob("*")) if path.is_file()]
    files = {str(path): path.read_bytes() for path in paths}
    contents = {
        name: json.dumps(json.loads(content)["inputs"]).encode()
        if name.endswith("manifest.json")
        else content
        for name, content in files.items()
    }
    return {name: sha256(content).hexdigest() for name, content in contents.items()}


def report(what: str, files: dict[str, str], expected: dict[str, str]) -> int:
    differing = sorted(
        name for name in files.keys() | expected.keys() if files.get(name) != expected.get(name)
    )
    print(
        f"{what}: {'differs: ' + ', '.join(differing) if differing else 'the same files'}",
        flush=True,
    )
    return len(differing)


if __name__ == "__main__":
    main()
