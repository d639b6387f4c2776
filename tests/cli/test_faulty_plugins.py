"""A faulty plugin is one line and exit code 2, and only where it is named."""

from pathlib import Path

import pytest
from command_line import ifqa_here
from openai_client import here  # noqa: F401 - a fixture

READER = "from ifqa.records import Prediction\nimport sys\nclass Reader:\n"
ANSWER = "    def answer(self, questions, passages): "
FAULTS = {
    "sys.exit(0) when it answers": (
        READER + ANSWER + "sys.exit(0)\n",
        "faulty.py:4 ends the program (sys.exit(0))",
    ),
    "sys.exit(0) when it is imported": ("import sys\nsys.exit(0)\n", "its import failed at"),
    "an import that fails": ("import os\nos.nothing()\n", "has no attribute 'nothing'"),
    "a negative chunk": (
        READER + "    chunk = -5\n" + ANSWER + "return []\n",
        "chunk: wanted the questions of a call",
    ),
    "a chunk that is no number": (
        READER + "    chunk = 'all'\n" + ANSWER + "return []\n",
        "chunk: wanted",
    ),
    "too few answers": (
        READER + ANSWER + "return []\n",
        "must give one prediction for each question",
    ),
}


@pytest.fixture
def faulty(here, request):  # noqa: F811
    Path("faulty.py").write_text(request.param[0])
    Path("experiments").mkdir()
    Path("experiments/mine.toml").write_text(
        'benchmark = "sample"\nsplit = "dev"\nlimit = 3\n[reader]\nname = "faulty:Reader"\n'
    )
    return request.param[1]


def ifqa(*arguments):
    done = ifqa_here(*arguments, folder=".")
    return done.returncode, done.stdout, " ".join(done.stderr.split())


@pytest.mark.parametrize("faulty", FAULTS.values(), ids=FAULTS, indirect=True)
def test_the_run_ends_with_one_line(faulty):
    code, out, err = ifqa("run", "mine")
    assert (code, out, "Traceback" in err) == (2, "", False)
    assert faulty in err
    assert not Path("experiments/mine/score").exists()


@pytest.mark.parametrize("faulty", [FAULTS["an import that fails"]], indirect=True)
@pytest.mark.parametrize(
    "arguments", [["list"], ["list", "experiments"], ["list", "readers"], ["check", "sample-llm"]]
)
def test_a_command_that_does_not_name_it_imports_nothing_of_it(faulty, arguments):
    code, _, err = ifqa(*arguments)
    assert (code, "faulty" in err) == (0, False)


@pytest.mark.parametrize("faulty", [FAULTS["an import that fails"]], indirect=True)
def test_a_report_skips_its_experiment_in_one_line(faulty):
    code, _, err = ifqa("report")
    assert (code, err.count("skipping experiment mine")) == (0, 1)
