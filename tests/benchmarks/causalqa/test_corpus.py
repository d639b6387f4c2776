"""The corpus of causal questions: the random split, builds that are killed or interrupted, absent datasets."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from causal_publishers import WRITERS, lines, write_publishers
from command_line import ifqa_here
from hypothesis import given, settings
from hypothesis import strategies as st

from ifqa.benchmarks.causalqa import corpus
from ifqa.benchmarks.causalqa.corpus import build, splits_of
from ifqa.errors import IfqaError
from ifqa.formats.publishers.publisher import Rest


def content(root):
    """The corpus's files, and the inputs and counts of its manifest."""
    place = root / "data/causalqa"
    manifest = json.loads((place / "manifest.json").read_text())
    files = {path.relative_to(place).as_posix(): path.read_bytes() for path in place.glob("*/*")}
    return files, manifest["inputs"], manifest["record"]["datasets"]


@given(st.text("ab0 é\n", min_size=1), st.sampled_from(["train", "valid", "both", ""]), st.integers(0, 9))
def test_a_question_is_in_one_random_part_and_in_its_original_one(number, split, seed):
    found = splits_of(Rest(number, "", ["x"], split), "paq", seed)
    [random] = [name for name in found if name.startswith("random-")]
    original = [name for name in found if name.startswith("original-")]
    part = random.removeprefix("random-")
    assert original == {"": [], "both": [f"original-{part}"]}.get(split, [f"original-{split}"])
    assert splits_of(Rest(number, "other", ["y"], split), "paq", seed) == found  # of id, dataset and seed alone


def test_a_tenth_is_for_validation_whatever_the_seed():
    for seed in range(3):
        drawn = [splits_of(Rest(str(n), "", (), ""), "paq", seed)[0] for n in range(20_000)]
        assert 1850 < drawn.count("random-valid") < 2150  # 2,000 with a standard deviation of 42
    one, other = ([splits_of(Rest(str(n), "", (), ""), "paq", seed)[0] for n in range(999)] for seed in (0, 1))
    assert one != other
    assert [splits_of(Rest(str(n), "", (), ""), "eli5", 0)[0] for n in range(999)] != one


@settings(max_examples=8)
@given(st.permutations(range(12)))
def test_the_random_part_of_a_question_does_not_depend_on_the_order(tmp_path_factory, order):
    folder = tmp_path_factory.mktemp("order")
    write = {n: {"id": n, "question": "why", "answer": f"a {n}"} for n in range(12)}
    (folder / "gooaq").mkdir()
    (folder / "gooaq/gooaq.jsonl").write_bytes(lines([write[n] for n in order]))
    list(build(folder, folder))
    found = {
        part: {json.loads(line)["id"] for line in content(folder)[0][f"random-{part}/gooaq.jsonl"].splitlines()}
        for part in ("train", "valid")
    }
    assert found["valid"] == {
        str(n) for n in range(12) if splits_of(Rest(str(n), "", (), ""), "gooaq", 0) == ["random-valid"]
    }
    assert found["train"] == {str(n) for n in range(12)} - found["valid"]


KILLED = """
import os, signal, sys
import ifqa.storage.files as files
at, plain, written = int(sys.argv.pop(1)), files.write, 0
def write(handle, data):
    global written
    written += 1
    if written == at:
        plain(handle, data[: len(data) // 2])
        handle.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    plain(handle, data)
files.write = write
sys.path.insert(0, "")
from ifqa.cli.app import main
main()
"""


@pytest.fixture(scope="module")
def publishers(tmp_path_factory):
    return write_publishers(tmp_path_factory.mktemp("publishers"))


@pytest.mark.parametrize("at", [40, 70])
def test_a_build_that_is_killed_resumes_to_the_same_bytes(at, publishers, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    (tmp_path / "whole").mkdir()
    list(build(tmp_path / "whole", publishers))
    command = [sys.executable, "-c", KILLED, str(at), "data", "causalqa", "--from", str(publishers)]
    killed = subprocess.run(command, cwd=tmp_path, env=environment, check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert not (tmp_path / "data/causalqa").exists()
    list(build(tmp_path, publishers))
    assert content(tmp_path) == content(tmp_path / "whole")


def test_a_resumed_build_reads_no_complete_dataset_twice(tmp_path, monkeypatch):
    write_publishers(tmp_path, "paq", "eli5")
    parsed, plain = [], corpus.matched

    def matched(question, rules):
        parsed.append(question)
        if len(parsed) == 14:  # the fourth question of the second dataset
            raise KeyboardInterrupt
        return plain(question, rules)

    monkeypatch.setattr(corpus, "matched", matched)
    with pytest.raises(KeyboardInterrupt):
        list(build(tmp_path, tmp_path))
    told = list(build(tmp_path, tmp_path))
    assert len(parsed) == 10 + 4 + 10  # the dataset that was interrupted begins again
    assert told[0].startswith("paq: 10 questions, 4 causal")
    assert told[4].startswith("eli5: 10 questions, 3 causal, 1 without an answer")


def test_what_an_interrupted_build_left_of_another_file_is_not_used(tmp_path, monkeypatch):
    write_publishers(tmp_path, "hotpotqa", "triviaqa")
    whole = (tmp_path / "triviaqa/unfiltered-web-dev.json").read_text()
    (tmp_path / "triviaqa/unfiltered-web-dev.json").write_text("{")
    with pytest.raises(IfqaError, match=r"unfiltered-web-dev.json:1: the JSON ends too early"):
        list(build(tmp_path, tmp_path))
    (tmp_path / "triviaqa/unfiltered-web-dev.json").write_text(whole.replace("lamp 6", "lamp 60"))
    list(build(tmp_path, tmp_path))
    files, _, _ = content(tmp_path)
    assert b"why does lamp 60 glow" in files["original-valid/triviaqa.jsonl"]


def test_a_dataset_that_was_built_before_is_copied(tmp_path, monkeypatch):
    write_publishers(tmp_path, "paq", "squad2")
    list(build(tmp_path, tmp_path))
    before, _, _ = content(tmp_path)
    write_publishers(tmp_path, "eli5")
    parsed, plain = [], corpus.matched
    monkeypatch.setattr(corpus, "matched", lambda question, rules: parsed.append(question) or plain(question, rules))
    told = list(build(tmp_path, tmp_path))
    after, _, facts = content(tmp_path)
    assert len(parsed) == 10
    assert before.items() < after.items()
    assert facts["paq"]["questions"] == 10
    assert told == list(build(tmp_path, tmp_path))  # nothing to do
    list(build(tmp_path, tmp_path, seed=1))
    assert len(parsed) == 10 + 30
    assert content(tmp_path)[0].keys() == after.keys()


def test_a_dataset_whose_folder_is_gone_leaves_the_corpus(tmp_path):
    write_publishers(tmp_path / "both", "squad2", "eli5")
    list(build(tmp_path, tmp_path / "both"))
    write_publishers(tmp_path / "one", "squad2")
    told = list(build(tmp_path, tmp_path / "one"))
    files, _, _ = content(tmp_path)
    assert {Path(name).name for name in files} == {"squad2.jsonl"}
    assert f"eli5: absent, {tmp_path / 'one/eli5'} is not there; wanted in it: train_eli5.jsonl" in told[4]


def test_absent_datasets_are_named_in_output_and_manifest(tmp_path):
    write_publishers(tmp_path, "squad2")
    told = ifqa_here("data", "causalqa", "--from", ".", folder=tmp_path)
    assert told.returncode == 0, told.stderr
    assert [line.split(":")[0] for line in told.stdout.splitlines()] == list(WRITERS)
    assert sum(": absent, " in line for line in told.stdout.splitlines()) == 9
    absent = json.loads((tmp_path / "data/causalqa/manifest.json").read_text())["record"]["absent"]
    assert absent.keys() == WRITERS.keys() - {"squad2"}


def test_the_rules_choose_other_questions(tmp_path):
    questions = ["Who was affected?", "Whyalla is in which state?", "Why?", "Who?"]
    (tmp_path / "gooaq").mkdir()
    records = [{"id": n, "question": question, "answer": "x"} for n, question in enumerate(questions)]
    (tmp_path / "gooaq/gooaq.jsonl").write_bytes(lines(records))
    found = {}
    for rules in ("notebook", "fixed"):
        told = ifqa_here("data", "causalqa", "--from", ".", "--rules", rules, folder=tmp_path)
        assert told.returncode == 0, told.stderr
        files, _, _ = content(tmp_path)
        lines_of = (files[f"random-{part}/gooaq.jsonl"].splitlines() for part in ("train", "valid"))
        found[rules] = {int(json.loads(line)["id"]) for several in lines_of for line in several}
    assert found == {"notebook": {1, 2}, "fixed": {0, 2}}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["causalqa", "--from", "nowhere"], "--from nowhere: no such folder"),
        (["causalqa", "--from", "."], "--from .: wanted folders named paq, gooaq, msmarco"),
        (["causalqa", "--from", ".", "--rules", "notebok"], "unknown reading of the rules 'notebok'; did you mean 'notebook'?"),
        (["sample", "--rules", "fixed"], "--rules does not go with sample"),
        (["ifqa", "--seed", "3"], "--seed does not go with ifqa; leave it out"),
    ],
)  # fmt: skip
def test_a_command_that_cannot_be_done_gets_one_line(arguments, said, tmp_path):
    told = ifqa_here("data", *arguments, folder=tmp_path)
    assert (told.returncode, told.stdout) == (2, "")
    assert said in told.stderr


def test_a_folder_without_a_datasets_files_is_refused(tmp_path):
    (tmp_path / "squad2").mkdir()
    (tmp_path / "squad2/train.tar.gz").write_bytes(b"")
    with pytest.raises(IfqaError, match=r"squad2: wanted train-v2.0.json and dev-v2.0.json; found train.tar$"):
        list(build(tmp_path, tmp_path))


def test_a_half_surrogate_pair_does_not_stop_a_build(tmp_path):
    (tmp_path / "gooaq").mkdir()
    (tmp_path / "gooaq/gooaq.jsonl").write_bytes(b'{"id": 1, "question": "why \\ud83d", "answer": "a\\tb"}\n')
    list(build(tmp_path, tmp_path))
    [line] = b"".join(content(tmp_path)[0][f"random-{part}/gooaq.jsonl"] for part in ("train", "valid")).splitlines()
    assert json.loads(line) == {"id": "1", "question": "why ?", "context": "", "answers": ["a b"], "rules": ["R1"]}


def test_the_statistics_stand_beside_the_papers(publishers, tmp_path):
    list(build(tmp_path, publishers))
    told = ifqa_here("stats", "causal-corpus", folder=tmp_path)
    assert told.returncode == 0, told.stderr
    rows = [line.split() for line in told.stdout.splitlines()]
    assert ["eli5", "10", "3", "1", "30.0%", "6.0", "2.0"] in rows
    assert ["paper", "64,875,601", "769,606", "-", "1.2%", "9.6", "2.7"] in rows
    assert ["all", "103", "35", "8", "34.0%", "5.1", "2.0"] in rows
    assert ["squad2", "2", "1", "2", "1"] in rows
    assert ["paper", "-", "252", "-", "321"] in rows
    found = json.loads(ifqa_here("stats", "causal-corpus", "--json", folder=tmp_path).stdout)
    assert found["newsqa"]["splits"]["original-valid"] == {"questions": 1, "question_words": 5, "answer_words": 2}
    assert found["newsqa"]["paper"]["original"] == 29


def test_statistics_of_a_corpus_that_is_not_there_are_refused(tmp_path):
    told = ifqa_here("stats", "causal-corpus", folder=tmp_path)
    assert told.returncode == 2
    assert "run: ifqa data causalqa --from FOLDER" in told.stderr


def test_a_manifest_of_another_shape_is_refused_in_one_line(tmp_path):
    write_publishers(tmp_path, "gooaq")
    list(build(tmp_path, tmp_path))
    path = tmp_path / "data/causalqa/manifest.json"
    manifest = json.loads(path.read_text())
    manifest["record"]["datasets"] = {"gooaq": 3}
    path.write_text(json.dumps(manifest))
    told = ifqa_here("stats", "causal-corpus", folder=tmp_path)
    assert told.returncode == 2
    assert "manifest.json: 'record': not as ifqa writes it (datasets.gooaq" in told.stderr


def test_counts_of_the_build_are_those_of_the_files(publishers, tmp_path):
    list(build(tmp_path, publishers))
    files, _, facts = content(tmp_path)
    for name, own in facts.items():
        for split in corpus.SPLITS:
            records = [json.loads(line) for line in files[f"{split}/{name}.jsonl"].splitlines()]
            words = [(len(one["question"].split()), len(one["answers"][0].split())) for one in records]
            assert own["splits"][split] == [len(records), sum(q for q, _ in words), sum(a for _, a in words)]
