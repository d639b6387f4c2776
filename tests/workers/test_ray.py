"""Tasks on a real Ray cluster, which takes seconds to start and so serves all tests, beside a
JVM.
"""

import ctypes
import gc
import os
import shutil
import signal
from pathlib import Path

import pytest
import tasks
from dumps import multistream, page
from outside_plugins import experiment

from ifqa.config.corpus import load_corpus
from ifqa.corpus.wikipedia import source
from ifqa.errors import IfqaError
from ifqa.pipeline import stages
from ifqa.pipeline.run import Run
from ifqa.retrieval.jvm import load_jnius
from ifqa.workers.pool import Workers, map_tasks

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]


def handler():
    """The address of the SIGSEGV handler, the first field of the C library's struct sigaction on
    Linux.
    """
    action = ctypes.create_string_buffer(1024)
    ctypes.CDLL(None).sigaction(int(signal.SIGSEGV), None, action)
    return int.from_bytes(action.raw[:8], "little")


@pytest.fixture(scope="module")
def cluster():
    """A Ray cluster, up until its last task is read.

    Yields the SIGSEGV handler from before its start.

    Without its own handler, this process's JVM would die at its next safepoint.
    """
    load_jnius()
    before = handler()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(Path(tasks.__file__).parent)]))
        patch.setenv("RAY_ADDRESS", "local")  # not the cluster that another test runs now
        results = map_tasks(tasks.square, range(2), workers=1, engine="ray")
        assert next(results) == (0, 0)
        yield before
        assert list(results) == [(1, 1)]
        gc.collect()  # here, where warnings are ignored: Ray does not wait for its processes
    assert handler() == before, "Ray's shutdown left another handler"


def test_a_running_ray_keeps_the_crash_handlers(cluster):
    import ray

    assert ray.is_initialized()
    assert handler() == cluster != 0


def test_ray_gives_the_same_results_and_the_same_errors(cluster, tmp_path):
    assert sorted(map_tasks(tasks.square, range(20), engine="ray")) == [
        (n, n * n) for n in range(20)
    ]
    results: list[tuple[int, int]] = []
    with pytest.raises(IfqaError, match="seven"):
        results.extend(map_tasks(tasks.no_seven, range(100), engine="ray", workers=2))
    assert len(results) < 100
    pairs = [(tmp_path / "died", n) for n in range(6)]
    assert sorted(n for _, (n, _) in map_tasks(tasks.die_once, pairs, engine="ray")) == list(
        range(6)
    )
    with pytest.raises(IfqaError, match="died 2 times at 3"):
        list(map_tasks(tasks.die_at_three, range(6), engine="ray"))
    with pytest.raises(ZeroDivisionError):
        list(map_tasks(tasks.bug_at_two, range(6), engine="ray"))


def test_ray_reads_the_same_bytes_with_an_outside_reader(cluster, five):
    predictions = []
    for name, workers in (("local", None), ("ray", Workers(2, "ray"))):
        run = Run(experiment(name, reader={"name": "outside_of_stages:Careful"}))
        predictions.append((stages.read(run, None, workers) / "predictions.jsonl").read_bytes())
    assert predictions[0] == predictions[1]
    assert sorted(Path("asked.txt").read_text().split("\n")) == [
        "",
        *sorted(["0 1", "2 3", "4"] * 2),
    ]


def test_ray_builds_the_same_bytes_of_passages(cluster, here, monkeypatch):
    monkeypatch.setattr(source, "PACKED", 4000)
    monkeypatch.setattr(source, "TEXT", 20_000)
    texts = [" ".join(f"w{n}x{i}" for i in range(n * 37 % 400)) for n in range(1, 120)]
    multistream(
        Path("d.xml.bz2"), [page(n, f"Page {n}", text) for n, text in enumerate(texts, start=1)], 5
    )
    Path("indexes").mkdir()
    Path("indexes/c.toml").write_text('[[passages.sources]]\nformat = "dump"\npath = "d.xml.bz2"\n')

    def build(**settings):
        folder = stages.build_passages(load_corpus("c", **settings))
        files = {
            path.name: path.read_bytes()
            for path in folder.iterdir()
            if path.name != "manifest.json"
        }
        shutil.rmtree(folder)
        return files

    local = build(workers=1)
    assert len([name for name in local if name.startswith("passages-")]) > 3
    assert build(engine="ray") == local
