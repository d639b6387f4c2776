import json
import os
import pickle
import statistics

import pyarrow
import pytest
from pyarrow import parquet
from refusals import refused

from ifqa.config.corpus import load_corpus
from ifqa.config.experiment import load_experiment
from ifqa.corpus.passage_store import PassageStore
from ifqa.errors import IfqaError
from ifqa.formats.ctxs import read_ctxs
from ifqa.formats.questions import read_questions
from ifqa.formats.runs import read_run
from ifqa.pipeline import stages
from ifqa.pipeline.convert import convert
from ifqa.pipeline.run import Run
from ifqa.pipeline.stage_outputs import passages_of
from ifqa.plugins import open_benchmark
from ifqa.records import gold_id
from ifqa.scoring.gold_overlap import covers
from ifqa.scoring.per_question import score_ranking

GOLD = 'benchmark = "sample"\nsplit = "dev"\n[retriever]\nname = "gold"\n'
CLOSED = 'benchmark = "sample"\nsplit = "dev"\n[reader]\nname = "predictions"\npath = "p.jsonl"\n'


@pytest.fixture
def folder(importable):
    (importable / "experiments").mkdir()
    (importable / "experiments/mine.toml").write_text(GOLD)
    return importable


@pytest.fixture
def run_folder(folder):
    stages.retrieve(Run(load_experiment("mine")))
    return folder


def test_a_run_becomes_ctxs_with_its_texts(run_folder):
    assert convert("mine", run_folder / "out/x.json") == run_folder / "out/x.json"
    questions = Run(load_experiment("mine")).questions
    entries = json.loads((run_folder / "out/x.json").read_text())
    fields = [(entry["id"], entry["question"], tuple(entry["answers"])) for entry in entries]
    assert fields == [(question.id, question.text, question.answers) for question in questions]
    golds = [tuple(dict.fromkeys(question.gold_passages)) for question in questions]
    assert [tuple(ctx["text"] for ctx in entry["ctxs"]) for entry in entries] == golds


def test_a_run_becomes_trec_as_it_is(run_folder):
    convert("mine", run_folder / "all.trec")
    run = run_folder / "experiments/mine/retrieve/run.trec"
    assert (run_folder / "all.trec").read_bytes() == run.read_bytes()


def test_a_run_is_cut_at_k(run_folder):
    convert("mine", run_folder / "one.trec", k=1)
    convert("mine", run_folder / "one.json", k=1)
    run = run_folder / "experiments/mine/retrieve/run.trec"
    assert read_run(run_folder / "one.trec") == {
        question: hits[:1] for question, hits in read_run(run).items()
    }
    assert {len(ranking) for _, ranking in read_ctxs(run_folder / "one.json")} == {1}


def test_an_existing_file_is_kept_unless_forced(run_folder):
    (run_folder / "x.json").write_text("precious")
    with pytest.raises(IfqaError, match=r"x\.json is there already; overwrite it with --force"):
        convert("mine", run_folder / "x.json")
    assert (run_folder / "x.json").read_text() == "precious"
    convert("mine", run_folder / "x.json", force=True)
    assert list(read_ctxs(run_folder / "x.json"))


def test_what_is_no_regular_file_is_not_overwritten(run_folder):
    (run_folder / "folder.json").mkdir()
    os.mkfifo(run_folder / "x.trec")
    for name in ("folder.json", "x.trec"):
        with pytest.raises(IfqaError, match=f"{name} is not a regular file"):
            convert("mine", run_folder / name, force=True)
    assert (run_folder / "x.trec").is_fifo()


def test_a_name_without_a_suffix_is_a_folder_for_datasets(run_folder):
    convert("sample:dev", run_folder / "questions")
    assert (run_folder / "questions/data/dev.jsonl").is_file()
    with pytest.raises(IfqaError, match="questions is there already; overwrite it with --force"):
        convert("sample:dev", run_folder / "questions")
    convert("mine", run_folder / "questions", force=True)
    assert (run_folder / "questions/data/mine.jsonl").is_file()


def test_a_folder_of_others_is_never_replaced(run_folder):
    with pytest.raises(IfqaError, match="experiments is a folder that ifqa did not write"):
        convert("sample:dev", run_folder / "experiments", force=True)
    assert (run_folder / "experiments/mine.toml").is_file()


def test_a_link_is_followed(run_folder):
    (run_folder / "link.trec").symlink_to(run_folder / "target.trec")
    for name in ("link.trec", "y.trec"):
        convert("mine", run_folder / name)
    assert (run_folder / "link.trec").is_symlink()
    assert (run_folder / "target.trec").read_bytes() == (run_folder / "y.trec").read_bytes()


def test_a_run_older_than_its_experiment_is_refused(folder):
    with pytest.raises(IfqaError, match="is not there yet; make it with: ifqa retrieve"):
        convert("mine", folder / "x.json")
    stages.retrieve(Run(load_experiment("mine")))
    (folder / "experiments/mine.toml").write_text(GOLD + "k = 1\n")
    with pytest.raises(IfqaError, match="was made from other inputs"):
        convert("mine", folder / "x.json")
    assert not (folder / "x.json").exists()
    stages.retrieve(Run(load_experiment("mine")))


@pytest.mark.parametrize(
    ("source", "to", "settings", "complaint"),
    [
        ("mine", "x.csv", {}, "unknown format '.csv'"),
        ("mine", "x.tsv", {"k": 2}, "--k has no effect where mine becomes topics"),
        ("sample:dev", "x.trec", {}, "sample:dev: wanted an experiment with a run for trec"),
        ("sample:dve", "x.tsv", {}, "did you mean 'dev'"),
        ("smaple:dev", "x.tsv", {}, "did you mean 'sample'"),
        ("topics.tsv", "x.jsonl", {}, "would be empty: wanted questions with answers"),
        ("mine", "x.json", {"k": 0}, "--k, .* at least 1; found 0"),
        ("closed", "x.json", {}, "has no .retriever."),
        (
            "sample:dev",
            "x.qrels",
            {},
            "wanted an experiment, whose run is judged, or --corpus NAME",
        ),
        ("mine", "x.json", {"corpus": "gold"}, "--corpus is for .qrels; mine becomes ctxs"),
        ("sample:dev", "x.qrels", {"corpus": "no"}, "unknown corpus .no.; known"),
        ("sample:dev", "x.qrels", {"corpus": "gold", "k": 2}, "--k has no effect"),
        ("some/where", "x.tsv", {}, "file not found"),
        (
            "run.trec",
            "x.json",
            {},
            (
                "wanted an experiment with a run for ctxs; .* retriever "
                "'run' reads runs of other tools"
            ),
        ),
        (
            "wikipedia_passages_00",
            "x.tsv",
            {},
            "wanted a .jsonl, .json, .parquet, .csv, .tsv, .txt file",
        ),
    ],
)
def test_what_cannot_be_converted_is_refused_in_one_line(folder, source, to, settings, complaint):
    (folder / "experiments/closed.toml").write_text(CLOSED)
    (folder / "run.trec").write_text("q Q0 p 1 1.0 t\n")
    (folder / "topics.tsv").write_text("1\tIf so, what?\n")
    (folder / "wikipedia_passages_00").write_bytes(pickle.dumps([1]))
    with refused(complaint):
        convert(source, folder / to, **settings)


def test_the_questions_of_any_source_become_topics(run_folder):
    questions = [
        (question.id, question.text) for question in Run(load_experiment("mine")).questions
    ]
    convert("mine", run_folder / "x.json")
    for source in ("sample:dev", "mine", "x.json"):
        convert(source, run_folder / "x.tsv", force=True)
        assert [
            (question.id, question.text) for question in read_questions(run_folder / "x.tsv")
        ] == questions


def test_the_questions_of_a_file_of_the_user_become_topics(folder):
    (folder / "mine.csv").write_text("question,answers\nIf so?,a\n")
    convert("file:mine.csv", folder / "mine.tsv")
    assert (folder / "mine.tsv").read_text() == "file/mine/1-9993b76b\tIf so?\n"


@pytest.fixture
def corpus_run(folder):
    """A run over a corpus of gold passages stands in for BM25: every third passage for every
    question.
    """
    (folder / "indexes").mkdir()
    source = '[[passages.sources]]\nformat = "gold"\nbenchmark = "sample"\nsplits = ["dev"]\n'
    (folder / "indexes/gold.toml").write_text(source)
    stages.build_passages(load_corpus("gold"))
    ids = [passage.id for passage in PassageStore(folder / "indexes/gold/passages")]
    lines = []
    for number, question in enumerate(Run(load_experiment("mine")).questions):
        passage_ids = dict.fromkeys([ids[(number + step) % len(ids)] for step in range(0, 12, 3)])
        lines += [f"{question.id} Q0 {name} 1 {-rank} t\n" for rank, name in enumerate(passage_ids)]
    (folder / "other.trec").write_text("".join(lines))
    run = f'corpus = "gold"\n{GOLD.replace("gold", "run")}path = "other.trec"\n'
    (folder / "experiments/searched.toml").write_text(run)
    stages.retrieve(Run(load_experiment("searched")))
    return folder


def test_qrels_warn_that_other_passages_are_not_judged(corpus_run, capsys):
    convert("searched", corpus_run / "x.qrels")
    assert "passages that the run did not retrieve are not judged" in capsys.readouterr().err


def test_qrels_judge_retrieved_passages_beside_gold_passages(corpus_run):
    convert("searched", corpus_run / "x.qrels")
    experiment = load_experiment("searched")
    questions = Run(experiment).questions
    run = read_run(corpus_run / "experiments/searched/retrieve/run.trec")
    rankings = [run[question.id] for question in questions]
    judged: dict[str, dict[str, int]] = {}
    for line in (corpus_run / "x.qrels").read_text().splitlines():
        question_id, _, passage_id, grade = line.split()
        judged.setdefault(question_id, {})[passage_id] = int(grade)
    for question, passages in zip(questions, passages_of(experiment, rankings), strict=True):
        expected = {
            passage.id: int(any(covers(passage.text, gold) for gold in question.gold_passages))
            for passage in passages
        }
        assert judged[question.id] == expected | {
            gold_id(text): 1 for text in question.gold_passages
        }


@pytest.mark.parametrize(("name", "corpus"), [("searched", ""), ("searched", "gold"), ("mine", "")])
def test_ir_measures_finds_our_gold_recall_in_our_files(corpus_run, name, corpus):
    import ir_measures
    from ir_measures import Success

    stages.retrieve(Run(load_experiment("mine")))
    convert(name, corpus_run / "x.qrels", corpus=corpus)
    convert(name, corpus_run / "x.trec")
    qrels = list(ir_measures.read_trec_qrels(str(corpus_run / "x.qrels")))
    run = list(ir_measures.read_trec_run(str(corpus_run / "x.trec")))
    experiment = load_experiment(name)
    questions = Run(experiment).questions
    rankings = [read_run(corpus_run / "x.trec")[question.id] for question in questions]
    texts = [
        [passage.text for passage in passages] for passages in passages_of(experiment, rankings)
    ]
    for k in (1, 3):
        ours = [
            score_ranking(*pair, depths=[k])[f"gold_any@{k}"]
            for pair in zip(questions, texts, strict=True)
        ]
        theirs = ir_measures.calc_aggregate([Success @ k], qrels, run)[Success @ k]
        assert theirs == pytest.approx(statistics.mean(ours))


def test_qrels_of_a_corpus_judge_all_its_passages(corpus_run):
    convert("sample:dev", corpus_run / "x.qrels", corpus="gold")
    passages = list(PassageStore(corpus_run / "indexes/gold/passages"))
    expected = {
        (question.id, passage.id)
        for question in open_benchmark("sample").questions("dev")
        for passage in passages
        if any(covers(passage.text, gold) for gold in question.gold_passages)
    }
    lines = [line.split() for line in (corpus_run / "x.qrels").read_text().splitlines()]
    assert {(line[0], line[2]) for line in lines} == expected
    assert {line[3] for line in lines} == {"1"}


def test_qrels_of_a_corpus_do_not_depend_on_a_run(corpus_run):
    for source in ("searched", "sample:dev"):
        convert(source, corpus_run / f"{source}.qrels", corpus="gold")
    assert (corpus_run / "searched.qrels").read_bytes() == (
        corpus_run / "sample:dev.qrels"
    ).read_bytes()


def test_a_question_without_a_relevant_passage_keeps_a_line(corpus_run, capsys):
    (corpus_run / "mine.jsonl").write_text(
        '{"question": "If so?", "answers": ["a"], "passages": ["words of no passage there"]}\n'
        '{"question": "If not?", "answers": ["a"]}\n'
    )
    convert("file:mine.jsonl", corpus_run / "x.qrels", corpus="gold")
    (line,) = (corpus_run / "x.qrels").read_text().splitlines()
    assert line.split()[3] == "0"
    assert "1 left out: no gold passage" in capsys.readouterr().err


@pytest.fixture
def tables(folder):
    """The same questions in three formats."""
    rows = [
        {
            "id": "1",
            "question": "If so, who?",
            "answers": ["Ada", "Ada Lovelace"],
            "passages": ["She | did."],
            "choices": [],
        },
        {
            "id": "2",
            "question": "=If not, who?",
            "answers": ["Bo"],
            "passages": [],
            "choices": ["Bo", "Cy"],
        },
    ]
    parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "q.parquet")
    table = (
        'id,question,answers,passages,choices\n1,"If so, who?",Ada | Ada Lovelace,She | '
        'did.,\n2,"=If not, who?",Bo,,"[""Bo"", ""Cy""]"\n'
    )
    (folder / "q.csv").write_text(table)
    (folder / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.mark.parametrize("name", ["q.csv", "q.parquet"])
def test_questions_in_a_table_become_those_of_json(tables, name):
    expected = read_questions(tables / "q.jsonl")
    assert read_questions(tables / name) == expected
    convert(str(tables / name), tables / "x.jsonl", force=True)
    assert read_questions(tables / "x.jsonl") == expected


@pytest.mark.usefixtures("tables")
def test_questions_in_parquet_have_their_answers():
    assert [question.answers for question in open_benchmark("file").questions("q.parquet")] == [
        ("Ada", "Ada Lovelace"),
        ("Bo",),
    ]
