"""`ifqa data synthetic`: the same lines from the same seed, kept where the reader agrees, resumed after a kill."""

import json
from pathlib import Path

import pytest
from command_line import ifqa_here

from ifqa.benchmarks.file import File
from ifqa.config.corpus import load_corpus
from ifqa.formats.questions import read_questions
from ifqa.pipeline import stages, synthetic
from ifqa.pipeline.synthetic import make_synthetic
from ifqa.records import Prediction
from ifqa.storage.files import write_jsonl

PLACE = Path("data/synthetic/little-0/questions.jsonl")


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """Nine articles of a sentence or two, in a passage each."""
    monkeypatch.chdir(tmp_path)
    texts = [f"The mill number {n} was built in {1900 + n}. Ann Lee won {n + 20} medals." for n in range(9)]
    articles = [{"id": f"{n}", "title": f"T{n}", "text": text} for n, text in enumerate(texts)]
    write_jsonl(Path("articles.jsonl"), articles)
    Path("indexes").mkdir()
    source = '[[passages.sources]]\nformat = "articles"\npath = "articles.jsonl"\nwrap = false\n'
    Path("indexes/little.toml").write_text(source)
    stages.build_passages(load_corpus("little"))


def lines():
    return [json.loads(line) for line in PLACE.read_text().splitlines()]


def test_lines_name_a_questions_source_and_are_read_everywhere(corpus):
    report = list(make_synthetic(Path(), "little", 0, check=False))
    assert report[0] == f"{PLACE}: 18 questions of 9 passages"
    first = lines()[0]
    assert (first["id"], first["label"], first["source"]) == ("0-0/year", "year", "ifqa data synthetic, corpus little")
    assert first["provenance"] == {"passage": "0-0", "rule": "year", "seed": 0}
    scored, read = File().questions(str(PLACE)), read_questions(PLACE)
    for line, question, reading in zip(lines(), scored, read, strict=True):
        assert line["question"] == question.text == reading.text
        assert tuple(line["answers"]) == question.answers == reading.answers
        assert tuple(line["passages"]) == question.gold_passages == reading.gold_passages
        assert reading.label("source") == question.label("source") == line["source"]
        assert question.label("label") == line["provenance"]["rule"]


class Knows:
    """A reader that knows the years alone; it stands in for the span reader."""

    @classmethod
    def fingerprint(cls):
        return "knows"

    def answer(self, questions, passages):
        right = {line["question"]: line["answers"][0] for line in Knows.lines if line["label"] == "year"}
        return [Prediction(question.id, right.get(question.text, "no")) for question in questions]


def test_questions_that_the_reader_answers_otherwise_are_left_out(corpus, monkeypatch):
    list(make_synthetic(Path(), "little", 0, check=False))
    Knows.lines = lines()
    monkeypatch.setattr(synthetic.Plugins, "reader", lambda *_: Knows)
    report = list(make_synthetic(Path(), "little", 0))
    assert {line["label"] for line in lines()} == {"year"}
    assert [" ".join(line.split()) for line in report[1:]] == ["year 9 made 9 kept", "number 9 made 0 kept"]


def test_a_killed_command_resumes_after_its_last_chunk(corpus, monkeypatch, capsys):
    list(make_synthetic(Path(), "little", 0, check=False))
    whole = PLACE.read_bytes()
    PLACE.unlink()
    monkeypatch.setattr(synthetic, "_CHUNK", 2)
    seeds = []

    def make(text, title, seed):
        seeds.append(seed)
        if len(seeds) == 6:
            raise KeyboardInterrupt
        return make_questions(text, title, seed)

    make_questions = synthetic.make_questions
    monkeypatch.setattr(synthetic, "make_questions", make)
    with pytest.raises(KeyboardInterrupt):
        list(make_synthetic(Path(), "little", 0, check=False))
    capsys.readouterr()
    list(make_synthetic(Path(), "little", 0, check=False))
    assert "resuming after 4 of 9 passages" in capsys.readouterr().err
    assert PLACE.read_bytes() == whole
    assert len(seeds) == 6 + 5


def test_the_command_draws_some_passages_and_with_another_seed_others(corpus):
    passages = []
    for seed in ("0", "1"):
        options = ("--from", "little", "--seed", seed, "--passages", "4", "--unchecked")
        path = f"data/synthetic/little-{seed}/questions.jsonl"
        report = ifqa_here("data", "synthetic", *options, folder=".").stdout
        assert report.startswith(f"{path}: 8 questions of 4 passages\n")
        passages.append({json.loads(line)["provenance"]["passage"] for line in Path(path).read_text().splitlines()})
    assert (len(passages[0]), len(passages[1]), passages[0] != passages[1]) == (4, 4, True)


@pytest.mark.parametrize(("arguments", "message"), [
    (["synthetic"], "Missing option '--from'"),
    (["ifqa", "--passages", "3"], "No such option: --passages"),
    (["synthetic", "--from", "nowhere"], "nowhere"),
    (["synthetic", "--from", "other"], "ifqa passages other"),
    (["synthetic", "--from", "little", "--rules", "fixed"], "No such option: --rules"),
])  # fmt: skip
def test_options_of_another_command_are_refused_in_one_line(corpus, arguments, message):
    Path("indexes/other.toml").write_text(Path("indexes/little.toml").read_text())
    done = ifqa_here("data", *arguments, folder=".")
    assert (done.returncode, done.stderr.count("\n"), message in done.stderr) == (2, 1, True)
