"""The command line as a user meets it: an error is one line and exit code 2, and changes no file."""

import bz2
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import ifqa_here as ifqa
from dumps import HEAD, TAIL, page

READER = '''
from ifqa.records import Prediction
class First:
    """Answers with the first word of the best passage."""
    def __init__(self, shout: bool = False) -> None: self.shout = shout
    def answer(self, questions, passages):
        words = [several[0].text.split()[0] if several else "" for several in passages]
        return [Prediction(q.id, w.upper() if self.shout else w, passage_ids=tuple(p.id for p in several))
                for q, w, several in zip(questions, words, passages)]
'''


def dump(pages=20):
    texts = [" ".join(f"word{n} number{i} of{i % 7} page{n * i}" for i in range(60)) for n in range(1, pages + 1)]
    return HEAD + "".join(page(n, f"Page {n}", text) for n, text in enumerate(texts, start=1)) + TAIL


@pytest.fixture
def work(tmp_path):
    """A corpus of 20 pages and an experiment of 10 questions on it, nothing built."""
    return make_work(tmp_path)


def make_work(tmp_path):
    for name in ("indexes", "experiments", "data/ifqa/full_split"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "dump.xml.bz2").write_bytes(bz2.compress(dump().encode()))
    (tmp_path / "my_reader.py").write_text(READER)
    (tmp_path / "indexes/mine.toml").write_text(
        '[[passages.sources]]\nformat = "dump"\npath = "dump.xml.bz2"\n[index.bm25]\nretriever = "bm25"\n'
    )
    (tmp_path / "experiments/mine.toml").write_text(
        'benchmark = "ifqa"\nsplit = "full-dev"\ncorpus = "mine"\n[retriever]\nname = "bm25"\nk = 10\n[reader]\nname = "my_reader:First"\n'
    )
    questions = [
        {"idx": n, "question": f"If word{n} had number5, what of page{n * 5}?", "answers": [f"word{n}"], "context": [f"word{n} number0"]}
        for n in range(1, 11)
    ]  # fmt: skip
    (tmp_path / "data/ifqa/full_split/dev.json").write_text(json.dumps(questions))
    return tmp_path


@pytest.fixture(scope="module")
def first_run(tmp_path_factory):
    """A folder like `work`, and the run of the experiment in it, which built the corpus too."""
    folder = make_work(tmp_path_factory.mktemp("template"))
    done = ifqa("run", "mine", folder=folder)
    assert done.returncode == 0, done.stderr
    return folder, done


@pytest.fixture
def built(first_run, tmp_path):
    """A copy of that folder that a test may change."""
    return Path(shutil.copytree(first_run[0], tmp_path / "built"))


def content(folder):
    """Path -> bytes of every file below a folder, without locks, partial folders and .pyc files."""
    files = [path for path in folder.rglob("*") if path.is_file() and ".partial" not in str(path)]
    return {path: path.read_bytes() for path in files if path.suffix != ".pyc" and not path.name.endswith(".lock")}


def assert_refused(done, *words):
    """One line on stderr, exit code 2, nothing on stdout."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    [complaint] = [line for line in done.stderr.splitlines() if line.startswith("ifqa: ")]
    assert "Traceback" not in done.stderr
    assert [word for word in words if word not in complaint] == []


def test_a_second_run_does_nothing_and_a_flag_makes_a_folder_of_its_own_and_runs_what_depends_on_it(built, first_run):
    first, before = first_run[1], content(built / "experiments/mine")
    assert [name in first.stdout for name in ("EM", "gold_any@10", "@20")] == [True, True, False]  # its depth is 10
    again = ifqa("run", "mine", folder=built)
    assert (again.stdout, again.stderr.count("up to date")) == (first.stdout, 4)
    shout = ifqa("run", "mine", "--set", "reader.shout=true", folder=built)
    assert shout.returncode == 0, shout.stderr
    assert "experiments/mine+reader.shout=true/retrieve: copied from mine" in shout.stderr
    assert "experiments/mine+reader.shout=true/read: 10 questions answered" in shout.stderr
    assert content(built / "experiments/mine") == before
    assert ifqa("run", "mine+reader.shout=true", folder=built).stderr.count("up to date") == 4


def test_an_experiment_that_fails_does_not_stop_the_next_one(built):
    (built / "experiments/broken.toml").write_text(
        (built / "experiments/mine.toml").read_text().replace('corpus = "mine"', 'corpus = "nowhere"')
    )
    done = ifqa("run", "experiments/broken.toml", "experiments/mine.toml", "--limit", "2", folder=built)
    assert done.returncode == 2
    assert "ifqa: broken+limit=2: unknown corpus 'nowhere'" in done.stderr
    assert "mine+limit=2: ifqa full-dev  PARTIAL: 2 of 10 questions\n" in done.stdout
    refused = ifqa("run", "mine", "nothing-like-it", "--limit", "3", folder=built)
    assert_refused(refused, "nothing-like-it")
    assert not (built / "experiments/mine+limit=3").exists()


def test_a_bad_dump_is_refused_and_what_was_built_stays(work):
    assert ifqa("passages", "mine", folder=work).returncode == 0
    before = content(work / "indexes")
    path = work / "dump.xml.bz2"
    path.write_bytes(bz2.compress(bz2.decompress(path.read_bytes())[:9000]))
    assert_refused(ifqa("passages", "mine", folder=work), "dump.xml.bz2")
    assert content(work / "indexes") == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ask", "  "], ["the question is empty"]),
        (["run", "mine", "--k", "many"], ["--k", "valid integer"]),
        (["run", "mine", "--set", "retriever.k11=1"], ["'k11'", "did you mean 'k1'"]),
        (["run", "mine", "--set", "nonsense"], ["KEY=VALUE"]),
        (["run", "mine", "--k", "3", "--set", "k=4"], ["k is given twice"]),
        (["run", "mien"], ["did you mean 'mine'"]),
        (["rnu"], ["rnu"]),
        (["run", "\x1b]0;title\x07\x9b31mred"], ["]0;title"]),
        (["run", "mine", "--set", f"retriever.k1={'[' * 5000}"], ["--set retriever.k1="]),
        (["run", "mine", "--set", f"retriever.k1={'9' * 5000}"], ["--set retriever.k1="]),
        (["run", "mine", "--set", "split=few-dev"], ["few_split/dev.json", "ifqa data ifqa"]),
        (["data", "--from", "experiments"], ["found none of them"]),
    ],
)
def test_a_wrong_argument_is_refused_in_one_line(work, arguments, words):
    done = ifqa(*arguments, folder=work)
    assert_refused(done, *words)
    assert not set(done.stderr) & {"\x1b", "\x07", "\x9b"}


def test_a_full_disk_gives_a_one_line_error_and_keeps_what_was_built(work):
    assert ifqa("passages", "mine", folder=work).returncode == 0
    before = content(work / "indexes")
    (work / "dump.xml.bz2").write_bytes(bz2.compress(dump(pages=200).encode()))
    limited = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)); from ifqa.cli.app import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", limited, "passages", "mine"], cwd=work, capture_output=True, text=True, timeout=120
    )
    assert_refused(done, "no room on the disk")
    assert content(work / "indexes") == before


def test_a_second_process_on_an_experiment_is_refused(built):
    holder = "import sys; from pathlib import Path; from ifqa.storage import artifacts\nwith artifacts.lock(Path('experiments/mine')): print('in', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", holder], cwd=built, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "in\n"
        assert_refused(ifqa("run", "mine", folder=built), "another process is working in experiments/mine")
        other.kill()


def test_importing_ifqa_and_asking_for_help_loads_nothing_heavy(tmp_path):
    script = (
        "import sys, pkgutil, importlib, ifqa\n"
        "sys.argv = ['ifqa', '--help']\n"
        "from ifqa.cli.app import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'faiss', 'jnius', 'transformers', 'numpy', 'pyserini', 'scipy', 'pydantic',"
        " 'importlib.metadata', 'ifqa.records', 'ifqa.protocols'} & set(sys.modules)\n"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
