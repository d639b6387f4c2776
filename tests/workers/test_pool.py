"""Tasks on real processes: results, dying workers, and no orphans after a kill."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from itertools import count
from pathlib import Path

import pytest
import tasks

from ifqa import progress
from ifqa.errors import IfqaError
from ifqa.workers.pool import map_tasks

STAND_INS = Path(tasks.__file__).parent


def results_until(message, results):
    """The results before an error with a message."""
    collected = []
    with pytest.raises(IfqaError, match=message):
        collected.extend(results)
    return collected


def test_results_come_with_their_tasks_for_any_number_of_workers():
    for workers in (1, 2, 3):
        assert sorted(map_tasks(tasks.square, range(20), workers=workers)) == [
            (n, n * n) for n in range(20)
        ]
    processes = {process for _, process in map_tasks(tasks.process, range(8), workers=2)}
    assert (len(processes), os.getpid() in processes) == (2, False)
    assert list(map_tasks(tasks.process, [], workers=2)) == []
    assert list(map_tasks(tasks.process, [1], workers=2)) == [(1, os.getpid())]


def test_reports_of_running_tasks_reach_this_process_with_their_worker(monkeypatch):
    reports = []
    monkeypatch.setattr(progress, "_reports", [lambda *report: reports.append(report)])
    assert {result for _, result in map_tasks(tasks.report, [1, 2, 3], workers=2)} == {1, 2, 3}
    assert sorted(report[:2] for report in reports) == [
        ("file 1", 0.5),
        ("file 2", 0.5),
        ("file 3", 0.5),
    ]
    assert None not in {worker for _, _, worker in reports}


@pytest.mark.parametrize(("visible", "expected"), [("", {"0", "1"}), ("3,5", {"3", "5"})])
def test_each_worker_sees_its_own_gpu(monkeypatch, visible, expected):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert {seen for _, seen in map_tasks(tasks.gpu, range(8), workers=2, gpus=2)} == expected


def test_workers_share_the_cores(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("ifqa.workers.pool.cores", lambda: 6)
    assert {threads for _, threads in map_tasks(tasks.threads, range(4), workers=2)} == {"3"}


def test_more_workers_than_cores_have_a_thread_each(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("ifqa.workers.pool.cores", lambda: 1)
    assert {threads for _, threads in map_tasks(tasks.threads, range(4), workers=2)} == {"1"}


def test_workers_keep_the_threads_that_the_user_chose(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert {threads for _, threads in map_tasks(tasks.threads, range(4), workers=2)} == {"5"}


def test_tasks_are_read_only_as_workers_become_free():
    numbers = count()
    results = map_tasks(tasks.square, numbers, workers=2)
    assert isinstance(results, Generator)
    for _ in range(5):
        next(results)
    results.close()
    assert next(numbers) <= 5 + 2 * 2 + 1


def test_running_tasks_finish_after_an_error_of_the_function():
    assert len(results_until("seven", map_tasks(tasks.no_seven, range(100), workers=2))) < 20


def test_tasks_before_an_error_in_reading_tasks_are_finished():
    def truncated_tasks():
        yield from range(3)
        raise IfqaError("the input is cut short")

    results = results_until("cut short", map_tasks(tasks.square, truncated_tasks(), workers=2))
    assert sorted(results) == [(0, 0), (1, 1), (2, 4)]


def test_a_dead_worker_is_replaced_on_its_gpu_and_its_task_repeated(tmp_path, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    pairs = [(tmp_path / "died", n) for n in range(12)]
    results = [result for _, result in map_tasks(tasks.die_once, pairs, workers=2, gpus=2)]
    assert (tmp_path / "died").exists()
    assert sorted(n for n, _ in results) == list(range(12))
    assert {gpu for n, gpu in results if n > 3} == {"0", "1"}


def test_a_task_at_which_workers_die_is_named():
    results = map_tasks(tasks.die_at_three, range(6), workers=2)
    assert 3 not in dict(results_until(r"died 2 times at 3 \(signal 9\)", results))


@pytest.mark.parametrize("address", ["127.0.0.1:9", "nonsense"])
def test_a_missing_cluster_raises_a_one_line_error(monkeypatch, address):
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(IfqaError, match="Ray cannot be reached"):
        list(map_tasks(tasks.square, [1], engine="ray"))


def test_a_bug_keeps_its_traceback_and_an_os_error_is_raised_unchanged(capfd, tmp_path):
    with pytest.raises(RuntimeError, match="failed at 2"):
        list(map_tasks(tasks.bug_at_two, range(6), workers=2))
    assert "ZeroDivisionError" in capfd.readouterr().err
    with pytest.raises(FileNotFoundError, match="nothing"):
        list(map_tasks(tasks.read, [tmp_path / "nothing"] * 4, workers=2))


def test_workers_do_not_run_the_script_that_started_them(tmp_path):
    script = tmp_path / "unguarded.py"
    script.write_text(
        "import tasks\nfrom ifqa.workers.pool import map_tasks\n"
        "print(sorted(map_tasks(tasks.square, range(3), workers=2)), __file__)\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(STAND_INS), str(Path(__file__).parents[2])]),
    }
    done = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, timeout=120
    )
    assert (done.stdout, done.returncode) == (f"[(0, 0), (1, 1), (2, 4)] {script}\n", 0), (
        done.stderr
    )


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_no_worker_outlives_its_parent(tmp_path, ending):
    code = f"import tasks; tasks.work_for_ever({str(tmp_path)!r})"
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=STAND_INS)
    while len(list(tmp_path.iterdir())) < 2:
        assert parent.poll() is None
        time.sleep(0.02)
    parent.send_signal(ending)
    parent.wait()
    workers = [int(path.name) for path in tmp_path.iterdir()]
    deadline = time.monotonic() + 30
    while alive := [process for process in workers if is_alive(process)]:
        assert time.monotonic() < deadline, alive
        time.sleep(0.02)


def is_alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
