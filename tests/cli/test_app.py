"""The command line as a user meets it: an error is one line and exit code 2, and changes no file."""

import bz2
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import ifqa_here as ifqa

READER = '''
from ifqa.records import Prediction

class First:
    """Answers with the first word of the best passage."""

    def __init__(self, shout: bool = False) -> None:
        self.shout = shout

    def answer(self, questions, passages):
        words = [several[0].text.split()[0] if several else "" for several in passages]
        return [Prediction(q.id, w.upper() if self.shout else w, passage_ids=tuple(p.id for p in several))
                for q, w, several in zip(questions, words, passages)]
'''

PAGE = """  <page><title>Page {n}</title><ns>0</ns><id>{n}</id>
    <revision><id>{n}</id><text>{words}</text></revision></page>
"""


def dump(pages=20):
    body = "".join(
        PAGE.format(n=n, words=" ".join(f"word{n} number{i} of{i % 7} page{n * i}" for i in range(60)))
        for n in range(1, pages + 1)
    )
    return f'<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/">\n<siteinfo></siteinfo>\n{body}</mediawiki>\n'


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
    write_questions(tmp_path)
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


def write_questions(folder, split="full_split/dev.json", count=10, **changes):
    records = [
        {
            "idx": n,
            "question": f"If word{n} had number5, what of page{n * 5}?",
            "answers": [f"word{n}"],
            "context": [f"word{n} number0"],
        }
        | changes
        for n in range(1, count + 1)
    ]
    path = folder / "data/ifqa" / split
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(records))


def content(folder):
    """Path -> bytes of every file below a folder, without locks, partial folders and .pyc files."""
    return {
        path.relative_to(folder): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
        and path.suffix not in (".lock", ".pyc")
        and path.name != ".lock"
        and ".partial" not in str(path)
    }


def assert_refused(done, *words):
    """One line on stderr, exit code 2, nothing on stdout."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    complaint = [line for line in done.stderr.splitlines() if line.startswith("ifqa: ")]
    assert len(complaint) == 1, done.stderr
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in complaint[0]


def test_a_second_run_does_nothing_and_prints_the_same(first_run):
    work, first = first_run
    assert "EM" in first.stdout
    assert "gold_any@10" in first.stdout
    assert "@20" not in first.stdout, "a run of depth 10 has no recall at 20"
    before = content(work)
    again = ifqa("run", "mine", folder=work)
    assert again.stdout == first.stdout
    assert again.stderr.count("nothing to do") == 5
    assert content(work) == before


def test_a_flag_makes_a_folder_of_its_own_and_runs_only_what_depends_on_it(built):
    before = content(built / "experiments/mine")
    shout = ifqa("run", "mine", "--set", "reader.shout=true", folder=built)
    assert shout.returncode == 0, shout.stderr
    assert "experiments/mine+reader.shout=true/retrieve: taken over from mine" in shout.stderr
    assert "experiments/mine+reader.shout=true/read: 10 questions answered" in shout.stderr
    assert ifqa("run", "mine", "--k", "3", folder=built).returncode == 0
    assert content(built / "experiments/mine") == before
    by_name = ifqa("run", "mine+k=3", folder=built)
    assert by_name.stderr.count("nothing to do") == 5


def test_the_retriever_in_the_docs_runs_is_compared_and_reported(built):
    page = (Path(__file__).parents[2] / "docs/plugins.md").read_text()
    (built / "my_overlap.py").write_text(page.split("```python\n# my_overlap.py\n")[1].split("```")[0])
    done = ifqa("run", "mine", "--retriever", "my_overlap:Overlap", folder=built)
    assert done.returncode == 0, done.stderr
    name = "mine+retriever=my_overlap.Overlap"
    run = (built / f"experiments/{name}/retrieve/run.trec").read_text().splitlines()
    assert len(run) == len({tuple(line.split()[:3]) for line in run}) == 30
    assert "B: mine+retriever=my_overlap.Overlap" in ifqa("compare", "mine", name, folder=built).stdout
    assert ifqa("report", folder=built).returncode == 0
    assert f"| {name} |" in (built / "experiments/RESULTS.md").read_text()
    assert name in (built / "experiments/report.html").read_text()
    (built / "my_overlap.py").write_text((built / "my_overlap.py").read_text() + "# changed\n")
    assert ifqa("report", folder=built).returncode == 0
    assert f"| {name} | stale: " in (built / "experiments/RESULTS.md").read_text()


def test_a_variant_runs_again_by_its_name_after_any_first_stage(built):
    assert ifqa("retrieve", "mine", "--k", "4", folder=built).returncode == 0
    assert ifqa("run", "mine+k=4", folder=built).returncode == 0


def test_a_limited_run_says_partial(built):
    done = ifqa("run", "mine", "--limit", "4", folder=built)
    assert "PARTIAL" in done.stdout
    assert json.loads((built / "experiments/mine+limit=4/score/scores.json").read_text())["questions"] == 4


def test_a_score_outside_its_tolerance_exits_with_1(built):
    with (built / "experiments/mine.toml").open("a") as file:
        file.write('[expected.EM]\nvalue = 1.0\ntolerance = 0.5\nsource = "here"\n')
    done = ifqa("run", "mine", folder=built)
    assert done.returncode == 1
    assert "off" in done.stdout


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


def test_a_stage_names_the_command_of_a_missing_earlier_stage(built):
    shutil.rmtree(built / "experiments/mine/score")
    for verb, missing, wanted in (
        ("score", "experiments/mine/read", "ifqa read mine"),
        ("read", "experiments/mine/retrieve", "ifqa retrieve mine"),
        ("retrieve", "indexes/mine/bm25", "ifqa index mine"),
        ("retrieve", "indexes/mine/passages", "ifqa passages mine"),
    ):
        shutil.rmtree(built / missing)
        assert_refused(ifqa(verb, "mine", folder=built), wanted)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda data: None, ["dump.xml.bz2", "not found"]),
        (lambda data: data[: len(data) // 2], ["dump.xml.bz2"]),
        (lambda data: bz2.compress(bz2.decompress(data)[:9000]), ["dump.xml.bz2"]),
        (lambda data: bz2.compress(b"<html>no dump</html>"), ["dump.xml.bz2", "html"]),
    ],
    ids=["missing", "truncated bz2", "XML cut in the middle", "not a dump"],
)
def test_a_bad_dump_is_refused_and_what_was_built_stays(work, spoil, words):
    assert ifqa("passages", "mine", folder=work).returncode == 0
    before = content(work / "indexes")
    path = work / "dump.xml.bz2"
    data = spoil(path.read_bytes())
    path.unlink() if data is None else path.write_bytes(data)
    assert_refused(ifqa("passages", "mine", folder=work), *words)
    assert content(work / "indexes") == before


def test_a_bad_line_of_articles_is_named(work):
    (work / "indexes/mine.toml").write_text('[[passages.sources]]\nformat = "articles"\npath = "a.jsonl"\n')
    (work / "a.jsonl").write_text('{"id": "1", "title": "A", "text": "one two"}\n{"id": "2", "title": "B"}\n')
    assert_refused(ifqa("passages", "mine", folder=work), "a.jsonl:2", "'text'")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"question": " "}, ["question 0", "'question' is empty"]),
        ({"answers": "5"}, ["'answers' must be list"]),
        ({"context": [5]}, ["'context' must be str"]),
        ({"idx": 3}, ["two questions have the id"]),
    ],
)
def test_bad_questions_are_refused(work, changes, words):
    write_questions(work, **changes)
    assert_refused(ifqa("run", "mine", folder=work), *words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ask", "  "], ["the question is empty"]),
        (["run", "mine", "--k", "0"], ["'k': wanted a whole number from 1, found 0"]),
        (["run", "mine", "--k", "many"], ["--k", "valid integer"]),
        (["run", "mine", "--retriever", "bm52"], ["did you mean 'bm25'"]),
        (["run", "mine", "--reader", "extractiv"], ["did you mean 'extractive'"]),
        (["run", "mine", "--set", "retriever.k11=1"], ["'k11'", "did you mean 'k1'"]),
        (["run", "mine", "--set", "nonsense"], ["KEY=VALUE"]),
        (["run", "mien"], ["did you mean 'mine'"]),
        (["passages", "mien"], ["did you mean 'mine'"]),
        (["rnu"], ["rnu"]),
        (["run", "mine", "--set", "split=few-dev"], ["few_split/dev.json", "ifqa data ifqa"]),
        (["data", "--from", "nowhere"], ["no such folder"]),
        (["data", "--from", "experiments"], ["found none of them"]),
        (["check", "mien"], ["did you mean 'mine'"]),
    ],
)
def test_a_wrong_argument_is_refused_in_one_line(work, arguments, words):
    assert_refused(ifqa(*arguments, folder=work), *words)


def test_an_index_of_other_passages_is_refused(built):
    (built / "dump.xml.bz2").write_bytes(bz2.compress(dump(pages=21).encode()))
    assert ifqa("passages", "mine", folder=built).returncode == 0
    assert_refused(ifqa("retrieve", "mine", folder=built), "built from other passages", "ifqa index mine")


def test_a_run_whose_passages_are_not_in_the_store_is_refused(built):
    (built / "run.trec").write_text("ifqa/full-dev/1 Q0 99-0 1 2.0 other\n")
    done = ifqa("run", "mine", "--retriever", "run", "--set", "retriever.path=run.trec", folder=built)
    assert_refused(done, "99-0")


def test_predictions_of_another_split_are_refused(built):
    (built / "p.jsonl").write_text('{"question_id": "ifqa/few-dev/1", "answer": "x"}\n')
    done = ifqa("run", "mine", "--reader", "predictions", "--set", "reader.path=p.jsonl", folder=built)
    assert_refused(done, "p.jsonl", "ifqa/few-dev/1")


def test_a_file_may_leave_out_any_number_of_questions(built):
    write_questions(built, count=70)
    (built / "p.jsonl").write_text('{"question_id": "ifqa/full-dev/70", "answer": "word70"}\n')
    done = ifqa("run", "mine", "--reader", "predictions", "--set", "reader.path=p.jsonl", folder=built)
    assert done.returncode == 0, done.stderr
    assert "70 questions, 69 failed" in done.stdout


def test_answers_from_a_file_are_scored_over_all_questions(built):
    (built / "p.jsonl").write_text('{"question_id": "ifqa/full-dev/1", "answer": "word1"}\n')
    done = ifqa("run", "mine", "--reader", "predictions", "--set", "reader.path=p.jsonl", folder=built)
    assert done.returncode == 0, done.stderr
    scores = json.loads((next((built / "experiments").glob("mine+reader*")) / "score/scores.json").read_text())
    assert scores["measures"]["EM"]["value"] == 10.0
    assert scores["n_failed"] == 9


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
        assert_refused(ifqa("run", "mine", folder=built), "another process is at work in experiments/mine")
        other.kill()


def test_data_is_taken_from_a_folder_and_verified(work):
    release = work / "release"
    (release / "full_split").mkdir(parents=True)
    (release / "full_split/train.json").write_text("[]")
    assert_refused(ifqa("data", "--from", "release", folder=work), "SHA256", "published is")
    assert not (work / "data/ifqa/full_split/train.json").exists()


def test_importing_ifqa_and_asking_for_help_loads_nothing_heavy(tmp_path):
    script = (
        "import sys, pkgutil, importlib, ifqa\n"
        "sys.argv = ['ifqa', '--help']\n"
        "from ifqa.cli.app import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'faiss', 'jnius', 'transformers', 'numpy', 'pyserini', 'scipy'} & set(sys.modules)\n"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_check_and_list_do_no_work(work):
    before = content(work)
    checked = ifqa("check", "mine", folder=work)
    assert checked.returncode == 0, checked.stderr
    assert "score 10 questions" in checked.stdout
    listed = ifqa("list", folder=work)
    assert "mine" in listed.stdout
    assert "bm25" in listed.stdout
    assert content(work) == before
