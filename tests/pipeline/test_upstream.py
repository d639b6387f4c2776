import json
from dataclasses import asdict, replace

import pytest

from ifqa.config.corpus import Corpus, load_corpus
from ifqa.config.experiment import load_experiment, parse_experiment
from ifqa.errors import IfqaError
from ifqa.formats.runs import write_run
from ifqa.pipeline.run import CorpusBuild, Run
from ifqa.pipeline.stage_inputs import line_of, predictions_of, rankings_of
from ifqa.pipeline.stages import build_passages
from ifqa.pipeline.system import System, refuse_other_families, was_trained_on
from ifqa.pipeline.validation import check_predictions
from ifqa.records import Calculation, Hit, How, Prediction, Question, Term
from ifqa.storage.files import sha256, write_jsonl
from ifqa.storage.resources import list_resources

READER = (
    "class Trained:\n    'A reader.'\n    family = {family!r}\n    def answer(self, questions, passages): return []\n"
)
QUESTIONS = [Question("ifqa/full-dev/1", "If?", ("a",)), Question("ifqa/full-dev/2", "If so?", ("b",))]


@pytest.fixture
def experiment(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tables = {
        "benchmark": "ifqa",
        "split": "full-dev",
        "retriever": {"name": "gold"},
        "reader": {"name": "predictions", "path": "p"},
    }
    return parse_experiment("mine", tables, "mine.toml")


@pytest.mark.parametrize(
    ("trained", "split", "refused"),
    [
        ("ifqa/full", "full-dev", False),
        ("ifqa/full", "few-dev", True),
        ("ifqa/few", "full-test", True),
        ("other", "few-dev", False),
        ("", "few-dev", False),
    ],
)
def test_weights_of_a_family_are_refused_on_the_other(tmp_path, monkeypatch, trained, split, refused):
    name = f"reader_{trained.replace('/', '_')}_{split.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(READER.format(family=trained))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    tables = {"benchmark": "ifqa", "split": split, "reader": {"name": f"{name}:Trained"}}
    experiment = parse_experiment("mine", tables, "mine.toml")
    if refused:
        with pytest.raises(IfqaError, match=f"was trained on {trained} and may not be tested on"):
            _ = System(Run(experiment)).reader
    else:
        assert System(Run(experiment)).reader


def test_a_missing_ranking_is_empty_and_a_foreign_question_is_refused(experiment):
    path = experiment.folder / "retrieve" / "run.trec"
    write_run(path, {"ifqa/full-dev/2": [Hit("p", 1.0)]}, "t")
    assert list(rankings_of(experiment, QUESTIONS)) == [[], [Hit("p", 1.0)]]
    write_run(path, {"ifqa/few-dev/9": [Hit("p", 1.0)]}, "t")
    with pytest.raises(IfqaError, match="ifqa/few-dev/9 is not one of ifqa full-dev"):
        list(rankings_of(experiment, QUESTIONS))


def test_a_missing_prediction_fails_and_a_foreign_one_is_refused(experiment):
    path = experiment.folder / "read" / "predictions.jsonl"
    write_jsonl(path, [{"question_id": "ifqa/full-dev/2", "answer": "b"}])
    predictions = list(predictions_of(experiment, QUESTIONS))
    assert [one.failed for one in predictions] == [True, False]
    assert predictions[0].error == "no prediction"
    write_jsonl(path, [{"question_id": "ifqa/full-dev/2", "answer": "b"}] * 2)
    with pytest.raises(IfqaError, match=r"predictions\.jsonl:2: question ifqa/full-dev/2 is answered twice"):
        list(predictions_of(experiment, QUESTIONS))
    write_jsonl(path, [{"question_id": "ifqa/full-train/2", "answer": "b"}])
    with pytest.raises(IfqaError, match="ifqa/full-train/2 is not one of ifqa full-dev"):
        list(predictions_of(experiment, QUESTIONS))


def test_a_run_and_answers_in_another_order_are_refused(experiment):
    path = experiment.folder / "retrieve" / "run.trec"
    write_run(path, {one.id: [Hit("p", 1.0)] for one in reversed(QUESTIONS)}, "t")
    with pytest.raises(IfqaError, match="question ifqa/full-dev/1 comes out of its order in ifqa full-dev; retrieve"):
        list(rankings_of(experiment, QUESTIONS))
    path = experiment.folder / "read" / "predictions.jsonl"
    write_jsonl(path, [{"question_id": one.id, "answer": "b"} for one in reversed(QUESTIONS)])
    with pytest.raises(IfqaError, match="question ifqa/full-dev/1 comes out of its order in ifqa full-dev; read"):
        list(predictions_of(experiment, QUESTIONS))


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ({"question_id": "ifqa/full-dev/2"}, "answer: Field required"),
        ({"question_id": "ifqa/full-dev/2", "answer": None}, "answer: .* found None"),
        (
            {"question_id": "ifqa/full-dev/2", "answer": "b", "more": 1},
            "unknown key 'more'; wanted question_id, answer",
        ),
        ({"question_id": 2, "answer": "b"}, "question_id: .* found 2"),
        ({"question_id": "ifqa/full-dev/2", "answer": "b", "passage_ids": [1]}, "passage_ids.0: "),
        ({"question_id": "ifqa/full-dev/2", "answer": "b", "passage_scores": 1.0}, "passage_scores: "),
        ({"question_id": "ifqa/full-dev/2", "answer": "b", "score": "x"}, "score: .* valid number"),
        (
            {"question_id": "ifqa/full-dev/2", "answer": "b", "confidence": 1.5},
            "confidence: wanted 0 to 1, or none; found 1.5",
        ),
    ],
)
def test_a_line_that_is_no_prediction_is_named(experiment, line, complaint):
    path = experiment.folder / "read" / "predictions.jsonl"
    write_jsonl(path, [{"question_id": "ifqa/full-dev/1", "answer": "b"}, line])
    with pytest.raises(IfqaError, match=rf"predictions\.jsonl:2: .*{complaint}"):
        list(predictions_of(experiment, QUESTIONS))


def test_a_prediction_is_read_back_as_it_was_written(experiment):
    whole = Prediction("ifqa/full-dev/1", "a", "So: a.", ("p", "q"), "", -0.5, (2.0, 1), "b", confidence=0.25)
    abstention = Prediction("ifqa/full-dev/2", "", confidence=0.0, candidate="c")
    path = experiment.folder / "read" / "predictions.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(line_of(whole) + line_of(abstention))
    assert list(predictions_of(experiment, QUESTIONS)) == [whole, abstention]


def test_a_line_without_confidence_has_the_keys_of_older_files():
    plain = Prediction("ifqa/full-dev/1", "a")
    later = ("how", "confidence", "candidate")
    assert json.loads(line_of(plain)) == {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in asdict(plain).items()
        if key not in later
    }


BUILT = Term("1951", "1951", "passage", 3, 7)
LATER = Term("a year later", "1", "question", 2, 14)


@pytest.mark.parametrize("calculation", [None, Calculation("1952", "plus", (BUILT, LATER))])
def test_how_an_answer_was_got_is_read_back_as_it_was_written(experiment, calculation):
    whole = Prediction("ifqa/full-dev/1", "1952", how=How("p", (0, 9), (3, 7), calculation))
    path = experiment.folder / "read" / "predictions.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(line_of(whole))
    assert next(predictions_of(experiment, QUESTIONS)) == whole


def test_a_line_has_no_key_that_older_files_lack_where_it_is_empty():
    assert set(json.loads(line_of(Prediction("q", "a")))) == {
        "question_id", "answer", "completion", "passage_ids", "error", "score", "passage_scores", "factual",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"span": [3]}, r"how\.span"),
        ({"sentence": "all"}, r"how\.sentence"),
        ({"passage_id": None}, r"how\.passage_id"),
        ({"calculation": {"result": "1", "rule": "plus", "terms": []}}, "does not fit 0 terms"),
        ({"calculation": {"result": "1", "rule": "", "terms": [{"text": "1"}]}}, r"how\.calculation\.terms\.0\.value"),
    ],
)
def test_a_line_that_tells_an_answer_wrongly_is_named(experiment, change, complaint):
    told = {"passage_id": "p", "sentence": [0, 9], "span": [3, 7], "calculation": None} | change
    write_jsonl(
        experiment.folder / "read" / "predictions.jsonl",
        [{"question_id": "ifqa/full-dev/1", "answer": "b", "how": told}],
    )
    with pytest.raises(IfqaError, match=rf"predictions\.jsonl:1: .*{complaint}"):
        list(predictions_of(experiment, QUESTIONS))


def test_a_reader_of_its_own_training_questions_is_known(tmp_path, monkeypatch):
    path = tmp_path / "data/ifqa/full_split/train.json"
    path.parent.mkdir(parents=True)
    path.write_text("[]")
    (tmp_path / "knows_it.py").write_text(
        READER.format(family="ifqa/full") + f"    trained_on = {{{sha256(path)!r}}}\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    tables = {"benchmark": "ifqa", "split": "full-train", "reader": {"name": "knows_it:Trained"}}
    experiment = parse_experiment("mine", tables, "mine.toml")
    assert was_trained_on(System(Run(experiment)).reader, Run(experiment))
    path.write_text("[1]")
    assert not was_trained_on(System(Run(experiment)).reader, Run(experiment))


@pytest.mark.parametrize(
    ("predictions", "complaint"),
    [
        ([Prediction("ifqa/full-dev/1", "a")], "one prediction a question"),
        ([Prediction("ifqa/full-dev/2", "a"), Prediction("ifqa/full-dev/1", "a")], "in their order"),
        (
            [Prediction("ifqa/full-dev/1", "a"), Prediction("ifqa/full-dev/2", None)],
            "ifqa/full-dev/2: answer: .* found None",
        ),
        (
            [replace(Prediction(one.id, "a"), confidence=float("nan")) for one in QUESTIONS],
            "ifqa/full-dev/1: confidence: wanted 0 to 1",
        ),
        ([Prediction(one.id, "a", candidate="b") for one in QUESTIONS], "a candidate beside an answer or an error"),
    ],
)
def test_a_reader_is_held_to_its_protocol(predictions, complaint):
    with pytest.raises(IfqaError, match=complaint):
        check_predictions("mine", QUESTIONS, [[]] * len(QUESTIONS), predictions)


@pytest.mark.parametrize(
    ("tables", "split", "refused"),
    [
        ({"reader": {"name": "extractive"}}, "few-dev", "reader 'extractive'"),
        ({"reader": {"name": "extractive"}}, "full-dev", ""),
        ({"retriever": {"name": "rerank", "parts": [{"name": "gold"}]}}, "few-test", "retriever 'rerank'"),
        ({"retriever": {"name": "fusion", "parts": [{"name": "rerank", "parts": [{"name": "gold"}]}]}}, "few-test", "'rerank'"),
        ({"retriever": {"name": "rerank", "parts": [{"name": "gold"}]}}, "full-test", ""),
        ({"retriever": {"name": "gold"}}, "few-test", ""),
        ({"reader": {"name": "llm", "demos": "ifqa/full-train", "shots": 2}, "llm": {"model": "m"}}, "few-dev", "reader 'llm'"),
        ({"reader": {"name": "llm", "demos": "sample"}, "llm": {"model": "m"}}, "few-dev", ""),
    ],
)  # fmt: skip
def test_weights_of_the_other_family_are_refused_before_any_build(tables, split, refused):
    experiment = parse_experiment("mine", {"benchmark": "ifqa", "split": split, **tables}, "mine.toml")
    if not refused:
        refuse_other_families(Run(experiment))
        return
    with pytest.raises(
        IfqaError,
        match=f"{refused} (was trained on|shows demonstrations of) ifqa/full and may not be tested on ifqa/few",
    ):
        refuse_other_families(Run(experiment))


def test_every_tracked_experiment_may_be_tested_on_its_split():
    tested = set()
    for name in list_resources("experiments", ".toml"):
        experiment = load_experiment(name)
        if not (experiment.reader or {}).get("checkpoint"):  # those are yet to be trained or fetched
            refuse_other_families(Run(experiment))
            tested.add(name)
    assert "sample" in tested


def test_a_retriever_may_look_through_the_whole_corpus(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "my_looking.py").write_text(
        "class All:\n    'All of them.'\n    def __init__(self, corpus):\n        self.ids = [one.id for one in corpus]\n    def search(self, questions, k): return []\n"
    )
    (tmp_path / "few.jsonl").write_text('{"id": "a", "contents": "x"}\n{"id": "b", "contents": "y"}\n')
    (tmp_path / "indexes").mkdir()
    (tmp_path / "indexes/few.toml").write_text('[[passages.sources]]\nformat = "passages"\npath = "few.jsonl"\n')
    build_passages(load_corpus("few"))
    tables = {"benchmark": "sample", "split": "dev", "corpus": "few", "retriever": {"name": "my_looking:All"}}
    assert System(Run(parse_experiment("mine", tables, "mine.toml"))).retriever.ids == ["a", "b"]
    with pytest.raises(IfqaError, match="name the corpus that has them"):
        parse_experiment("mine", tables | {"corpus": ""}, "mine.toml")


def test_a_dense_model_of_the_other_family_is_refused_before_indexing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("indexes", "model"):
        (tmp_path / folder).mkdir()
    (tmp_path / "model/config.json").write_text("{}")
    (tmp_path / "model/manifest.json").write_text('{"family": "ifqa/full"}')
    (tmp_path / "indexes/few.toml").write_text(
        '[[passages.sources]]\nformat = "gold"\nbenchmark = "ifqa"\nsplits = ["few-train"]\n'
        '[index.dense]\nretriever = "dense"\nmodel = "model"\n'
    )
    tables = {"benchmark": "ifqa", "split": "few-dev", "corpus": "few", "retriever": {"name": "dense"}}
    with pytest.raises(IfqaError, match="retriever 'dense' was trained on ifqa/full and may not"):
        refuse_other_families(Run(parse_experiment("mine", tables, "mine.toml")))


@pytest.mark.parametrize("key", ["answer", "factual", "completion", "error", "candidate"])
@pytest.mark.parametrize("text", ["half \ud800", 3, None])
def test_a_readers_text_that_cannot_be_encoded_is_refused(key, text):
    predictions = [replace(Prediction(question.id, "a"), **{key: text}) for question in QUESTIONS]
    with pytest.raises(IfqaError, match="reader 'mine'"):
        check_predictions("mine", QUESTIONS, [[]] * len(QUESTIONS), predictions)


@pytest.mark.parametrize(
    ("benchmark", "split", "complaint"),
    [
        ("sampel", "dev", "unknown benchmark 'sampel'; did you mean 'sample'"),
        ("sample", "dve", "unknown split of sample 'dve'; did you mean 'dev'"),
        ("ifqa", "full-dev", "dev.json is not there; run: ifqa data ifqa"),
    ],
)
def test_gold_passages_of_questions_that_are_not_there_are_refused(tmp_path, monkeypatch, benchmark, split, complaint):
    monkeypatch.chdir(tmp_path)
    source = {"format": "gold", "benchmark": benchmark, "splits": [split]}
    with pytest.raises(IfqaError, match=complaint):
        _ = CorpusBuild(Corpus("mine", (source,), {})).sources


def test_gold_passages_of_no_split_are_refused_with_the_known_splits(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = {"format": "gold", "benchmark": "sample", "splits": []}
    wanted = r"'splits': wanted at least one split of sample \(train, dev, hard\)$"
    with pytest.raises(IfqaError, match=wanted) as caught:
        _ = CorpusBuild(Corpus("none", (source,), {})).sources
    assert "\n" not in str(caught.value)
