"""The command line as a user meets it: an error is one line and exit code 2, and changes no
file.
"""

import subprocess
import sys

import pytest
from command_line import ifqa_here as ifqa
from command_line import locking_process
from outside_plugins import EXPERIMENT, stamps
from scored_experiments import write


@pytest.fixture
def work(five, here):
    """An experiment of five questions, nothing built."""
    write("experiments/mine.toml", EXPERIMENT)
    return here


def assert_refused(done, *words):
    """One line on stderr, exit code 2, nothing on stdout."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    [complaint] = [line for line in done.stderr.splitlines() if line.startswith("ifqa: ")]
    assert "Traceback" not in done.stderr
    assert [word for word in words if word not in complaint] == []


def test_a_run_shows_the_scores_up_to_its_depth(work):
    first = ifqa("run", "mine", folder=work)
    assert first.returncode == 0, first.stderr
    # Its depth is 3
    assert [name in first.stdout for name in ("EM", "gold_any@1", "@5")] == [True, True, False]


def test_a_second_run_does_nothing(work):
    first = ifqa("run", "mine", folder=work)
    before = stamps("experiments/mine")
    again = ifqa("run", "mine", folder=work)
    assert again.stdout == first.stdout
    assert again.stderr.count("up to date") == 4
    assert stamps("experiments/mine") == before


def test_a_flag_runs_what_depends_on_it_in_a_folder_of_its_own(work):
    ifqa("run", "mine", folder=work)
    before = stamps("experiments/mine")
    other = ifqa("run", "mine", "--set", "reader.passages=2", folder=work)
    assert other.returncode == 0, other.stderr
    assert "experiments/mine+reader.passages=2/retrieve: copied from mine" in other.stderr
    assert "experiments/mine+reader.passages=2/read: 5 questions answered" in other.stderr
    assert stamps("experiments/mine") == before
    assert ifqa("run", "mine+reader.passages=2", folder=work).stderr.count("up to date") == 4


def test_an_experiment_that_fails_does_not_stop_the_next_one(work):
    write("experiments/broken.toml", EXPERIMENT.replace('corpus = "few"', 'corpus = "nowhere"'))
    done = ifqa(
        "run", "experiments/broken.toml", "experiments/mine.toml", "--limit", "2", folder=work
    )
    assert done.returncode == 2
    assert "ifqa: broken+limit=2: unknown corpus 'nowhere'" in done.stderr
    assert (
        "mine+limit=2: ifqa full-dev  PARTIAL: 2 of 5 questions (the first, no sample)\n"
        in done.stdout
    )
    refused = ifqa("run", "mine", "nothing-like-it", "--limit", "3", folder=work)
    assert_refused(refused, "nothing-like-it")
    assert not (work / "experiments/mine+limit=3").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ask", "  "], ["the question is empty"]),
        (["run", "mine", "--k", "many"], ["--k", "valid integer"]),
        (["run", "mine", "--set", "retriever.indx=1"], ["'indx'", "did you mean 'index'"]),
        (["run", "mine", "--set", "nonsense"], ["KEY=VALUE"]),
        (["run", "mine", "--k", "3", "--set", "k=4"], ["k is given twice"]),
        (["run", "mien"], ["did you mean 'mine'"]),
        (["rnu"], ["rnu"]),
        (["run", "\x1b]0;title\x07\x9b31mred"], ["]0;title"]),
        (["run", "mine", "--set", f"retriever.k1={'[' * 5000}"], ["--set retriever.k1="]),
        (["run", "mine", "--set", f"retriever.k1={'9' * 5000}"], ["--set retriever.k1="]),
        (["run", "mine", "--set", "split=few-dev"], ["few_split/dev.json", "ifqa data ifqa"]),
        (["data", "ifqa", "--from", "experiments"], ["found none of them"]),
    ],
)
def test_a_wrong_argument_is_refused_in_one_line(work, arguments, words):
    done = ifqa(*arguments, folder=work)
    assert_refused(done, *words)
    assert not set(done.stderr) & {"\x1b", "\x07", "\x9b"}


def test_a_second_process_on_an_experiment_is_refused(work):
    with locking_process(work / "experiments/mine") as other:
        assert other.stdout.readline() == "in\n"
        assert_refused(
            ifqa("run", "mine", folder=work), "another process is working in experiments/mine"
        )


def test_asking_for_help_loads_nothing_heavy(tmp_path):
    script = (
        "import sys, pkgutil, importlib, ifqa\nsys.argv = ['ifqa', '--help']\n"
        "from ifqa.cli.app import main\ntry: main()\nexcept SystemExit: pass\n"
        "heavy = {'torch', 'faiss', 'jnius', 'transformers', 'numpy', "
        "'pyserini', 'scipy', 'pydantic',"
        " 'importlib.metadata', 'ifqa.records', 'ifqa.protocols'} & set(sys.modules)\n"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
