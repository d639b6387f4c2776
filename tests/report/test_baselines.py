"""The script that holds today's scores against the committed ones, and replaces them."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from prediction_files import run_answers

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / ".ci/baselines"


@pytest.fixture
def baseline():
    """A baseline of 60 right answers."""
    run_answers("mine", range(60))
    folder = Path("baselines/mine")
    folder.mkdir(parents=True)
    for path in Path("experiments/mine/score").glob("*.json*"):
        shutil.copy(path, folder)
    return folder


def script(*arguments):
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def right_answers(folder):
    return sum(
        json.loads(line)["EM"] for line in (folder / "per_question.jsonl").read_text().splitlines()
    )


def test_a_baseline_of_todays_inputs_passes(baseline):
    done = script("--check")
    assert (done.returncode, "passed" in done.stdout) == (0, True), done.stderr


def test_a_baseline_of_other_inputs_is_stale_even_without_a_loss(baseline):
    run_answers("mine", range(61))
    done = script("--check")
    assert (done.returncode, "baselines/mine is stale" in done.stdout) == (1, True)


def test_a_significant_loss_is_not_taken_over(baseline):
    run_answers("mine", range(45))  # 15 fewer
    done = script()
    assert (done.returncode, "baselines/mine is not replaced" in done.stderr) == (1, True)
    assert right_answers(baseline) == 60


def test_a_loss_is_taken_over_with_its_reason(baseline):
    run_answers("mine", range(45))
    assert script("--accept", "fifteen are enough").returncode == 0
    assert right_answers(baseline) == 45
    verdict = (baseline / "verdict.txt").read_text()
    assert "EM got worse" in verdict or "EM, F1 got worse" in verdict
    assert "Accepted: fifteen are enough" in verdict
    assert script("--check").returncode == 0


def test_a_gain_is_taken_over_with_its_table(baseline):
    run_answers("mine", range(70))
    assert script().returncode == 0
    assert right_answers(baseline) == 70
    assert "passed: no measure got significantly worse" in (baseline / "verdict.txt").read_text()


def test_a_baseline_that_is_of_today_is_left_alone(baseline):
    before = (baseline / "manifest.json").read_bytes()
    assert script().returncode == 0
    assert (baseline / "manifest.json").read_bytes() == before
    assert not (baseline / "verdict.txt").exists()
