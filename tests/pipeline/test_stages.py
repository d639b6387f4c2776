"""Each stage reuses its artifact if its inputs are the same, and else makes it from files, all or nothing."""

import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest
from outside_plugins import (
    FILE,
    GOLD,
    LAST,
    PLUGINS,
    WORDS,
    answers,
    experiment,
    five_questions,
    interrupted,
    outside,
    question,
    rows,
    scores,
    searching,
    stamps,
)
from scored_experiments import benchmark, write

from ifqa.config.experiment import load_experiment
from ifqa.config.overrides import override
from ifqa.errors import IfqaError
from ifqa.pipeline import chunk_runner, stages
from ifqa.pipeline.run import Run
from ifqa.storage.artifacts import read_manifest


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    yield from five_questions(tmp_path, monkeypatch)


def test_every_stage_leaves_its_files_and_says_what_it_made():
    assert stages.run(Run(experiment(retriever=GOLD, reader=FILE))) == Path("experiments/mine/score")
    files = {stage: {path.name for path in Path("experiments/mine", stage).iterdir()} for stage in ("retrieve", "read", "score")}  # fmt: skip
    assert files == {
        "retrieve": {"run.trec", "passages.jsonl", "manifest.json"},
        "read": {"predictions.jsonl", "manifest.json"},
        "score": {"scores.json", "per_question.jsonl", "manifest.json"},
    }
    made = {stage: read_manifest(Path("experiments/mine", stage)) for stage in files}
    assert {stage: one["inputs"]["stage"] for stage, one in made.items()} == {stage: stage for stage in files}
    assert (made["retrieve"]["record"]["questions"], made["retrieve"]["record"]["hits"]) == (5, 5)
    assert made["read"]["record"]["questions"] == 5


def test_a_second_run_touches_no_file():
    mine = searching(reader=FILE)
    stages.run(Run(mine))
    before = stamps("experiments") | stamps("indexes")
    stages.run(Run(mine))
    assert stamps("experiments") | stamps("indexes") == before


@pytest.mark.parametrize(
    ("change", "redone"),
    [
        ({"about": "Another.", "table": "Table 3", "expected": {"EM": {"value": 1.0}}}, set()),
        ({"seed": 1}, {"score"}),
        ({"measures": ["accuracy"]}, {"score"}),
        ({"reader": FILE | {"passages": 1}}, {"read", "score"}),
        ({"reader": FILE | {"path": "others.jsonl"}}, {"read", "score"}),
        ({"retriever": GOLD | {"k": 1}}, {"retrieve", "read", "score"}),
        ({"limit": 3}, {"retrieve", "read", "score"}),
    ],
    ids=lambda value: "+".join(sorted(value)),
)
def test_a_changed_setting_redoes_just_what_depends_on_it(change, redone):
    answers(dict.fromkeys(range(5), "captain0"), "others.jsonl")
    tables = {"retriever": GOLD, "reader": FILE}
    stages.run(Run(experiment(**tables)))
    before = stamps("experiments/mine")
    stages.run(Run(experiment(**tables | change)))
    after = stamps("experiments/mine")
    assert {Path(path).parent.name for path in after if after[path] != before.get(path)} == redone


def test_stages_one_by_one_make_what_a_run_makes():
    stages.run(Run(experiment("whole", retriever=GOLD, reader=FILE)))
    parts = experiment("parts", retriever=GOLD, reader=FILE)
    for name, stage in (("retrieve", stages.retrieve), ("read", stages.read), ("score", stages.score)):
        assert stage(Run(parts)) == stage(Run(parts)) == Path("experiments/parts", name)
    for file in ("retrieve/run.trec", "retrieve/passages.jsonl", "read/predictions.jsonl", "score/scores.json"):
        assert Path("experiments/parts", file).read_bytes() == Path("experiments/whole", file).read_bytes()


@pytest.mark.parametrize(
    ("stage", "tables", "complaint"),
    [
        (stages.retrieve, {"reader": FILE}, r"experiment mine has no \[retriever\]"),
        (stages.read, {"retriever": GOLD}, r"experiment mine has no \[reader\]"),
        (
            lambda mine: stages.open_system(mine).ask("If so, who?"),
            {"retriever": GOLD},
            r"experiment mine has no \[reader\]",
        ),
    ],
    ids=["retrieve", "read", "ask"],
)
def test_a_stage_that_an_experiment_does_not_have_is_refused(stage, tables, complaint):
    with pytest.raises(IfqaError, match=f"^{complaint}$"):
        stage(Run(experiment(**tables)))
    assert not Path("experiments").exists()


@pytest.mark.parametrize(
    ("tables", "complaint"),
    [
        ({"split": "few-dev"}, "run: ifqa data ifqa"),
        ({"retriever": {"name": "run", "path": "nowhere.trec"}}, "run not found: nowhere"),
        ({"reader": FILE | {"path": "nowhere.jsonl"}}, "predictions not found: nowhere"),
        (
            {"reader": {"name": "outside_of_stages:Trained"}},
            "was trained on ifqa/few and may not be tested on ifqa/full",
        ),
    ],
    ids=["questions", "a run", "answers", "another setting"],
)
def test_mistakes_are_found_before_a_corpus_is_built(tables, complaint):
    outside(PLUGINS, "class Trained(Last):\n    @classmethod\n    def trained(cls): return 'ifqa/few'\n")
    with pytest.raises(IfqaError, match=complaint):
        stages.run(Run(experiment(**{"corpus": "few", "retriever": WORDS, "reader": FILE, **tables})))
    assert not Path("indexes/few").exists()
    assert not Path("experiments").exists()


def test_a_run_says_what_it_made_and_the_next_run_nothing_to_do(capsys):
    made = ["indexes/few/passages", "indexes/few/words", *(f"experiments/mine/{one}" for one in ("retrieve", "read"))]
    facts = ["5 passages of 0 pages in 1 shard", "5 passages indexed", "15 passages for 5 questions", "5 questions answered"]  # fmt: skip
    stages.run(Run(searching(reader=FILE)))
    said = [line for line in capsys.readouterr().err.splitlines() if ": imported " not in line]
    assert said == [": ".join(pair) for pair in zip(made, facts, strict=True)]
    stages.run(Run(searching(reader=FILE)))
    nothing = "nothing to do, made from exactly this before"
    assert capsys.readouterr().err.splitlines() == [f"{one}: {nothing}" for one in (*made, "experiments/mine/score")]


def test_progress_counts_all_that_there_is_to_do_and_no_more(monkeypatch):
    done = {}

    @contextmanager
    def bar(label, total, unit=""):
        yield lambda count=1: done.setdefault((label, total), []).append(count)

    for module in (chunk_runner, stages):
        monkeypatch.setattr(module, "bar", bar)
    stages.run(Run(searching(name="whole", reader=LAST)))
    stages.read(Run(interrupted()))
    stages.read(Run(experiment("counts", reader={"name": "outside_of_stages:Counts"})))
    size = Path("few.jsonl").stat().st_size
    assert {key: sum(counts) for key, counts in done.items()} == {
        ("passages of few", size): size,
        ("searching whole", 5): 5,
        ("reading whole", 5): 5,
        ("reading mine", 5): 4 + 4 + 1,  # up to the interruption; what is there then, and the rest
        ("reading undisturbed", 5): 5,
        ("reading counts", 5): 5,
    }


def test_scores_are_over_all_questions_when_a_prediction_is_missing():
    answers({1: "captain1", 4: "nobody"})
    stages.run(Run(experiment(reader=FILE)))
    assert (scores()["questions"], scores()["n_failed"], scores()["measures"]["EM"]["value"]) == (5, 3, 20)
    per_question = rows("experiments/mine/score/per_question.jsonl")
    assert [(one["id"][-1], one["failed"], one["EM"]) for one in per_question] == [
        ("0", 1, 0), ("1", 0, 1), ("2", 1, 0), ("3", 1, 0), ("4", 0, 0)
    ]  # fmt: skip


def test_absent_stages_are_not_scored():
    stages.run(Run(experiment("retrieves", retriever=GOLD)))
    stages.run(Run(experiment("reads", reader=FILE)))
    retrieves, reads = (scores(f"experiments/{name}/score") for name in ("retrieves", "reads"))
    assert retrieves["measures"]["gold_any@1"]["value"] == 100
    assert "EM" not in retrieves["measures"]
    assert reads["measures"]["EM"]["value"] == 60
    assert not [name for name in reads["measures"] if "@" in name]


def test_gold_read_counts_only_passages_given_to_the_reader():
    lines = [f"ifqa/full-dev/{n} Q0 p{0 if n < 2 else n} 1 2.0 t\nifqa/full-dev/{n} Q0 p4 2 1.0 t\n" for n in range(4)]
    write("run.trec", "".join(lines))
    run = {"name": "run", "path": "run.trec", "k": 5}
    stages.run(Run(experiment(corpus="few", retriever=run, reader=LAST | {"passages": 1})))
    per_question = rows("experiments/mine/score/per_question.jsonl")
    assert [one["gold_read"] for one in per_question] == [True, False, True, True, False]
    assert scores()["subsets"]["gold_read"]["questions"] == 3


def test_a_limited_experiment_says_of_how_many_questions():
    stages.run(Run(experiment(reader=FILE, limit=2)))
    assert (scores()["questions"], scores()["of"], scores()["measures"]["EM"]["value"]) == (2, 5, 100)


def test_a_variants_read_takes_over_the_bases_retrieval(capsys):
    base = searching(reader=FILE)
    stages.run(Run(base))
    before = stamps("experiments/mine")
    variant = override(base, {"reader.passages": 1})
    searched = Path("searched.jsonl").read_text()
    stages.read(Run(variant))
    assert f"{variant.folder}/retrieve: taken over from mine" in capsys.readouterr().err
    assert (variant.folder / "retrieve/run.trec").read_bytes() == Path("experiments/mine/retrieve/run.trec").read_bytes()  # fmt: skip
    assert Path("searched.jsonl").read_text() == searched
    assert stamps("experiments/mine") == before


@pytest.mark.parametrize(
    ("tables", "taken"),
    [
        ({"retriever": GOLD, "reader": FILE}, {"retrieve", "read"}),
        ({"retriever": GOLD}, {"retrieve"}),
        ({"reader": FILE}, {"read"}),
    ],
    ids=["both", "no reader", "closed book"],
)
def test_a_variants_scores_take_over_the_stages_that_it_has(tables, taken):
    base = experiment(**tables)
    stages.run(Run(base))
    variant = override(base, {"seed": 7})
    assert stages.score(Run(variant)) == variant.folder / "score"
    assert {path.parent.name for path in variant.folder.glob("*/manifest.json")} == {*taken, "score"}


@pytest.mark.parametrize("stage", [stages.retrieve, stages.read, stages.score])
def test_any_first_stage_of_a_variant_makes_it_known_by_name(stage):
    base = experiment(retriever=GOLD, reader=FILE)
    stages.run(Run(base))
    variant = override(base, {"seed": 7})
    stage(Run(variant))
    assert load_experiment("mine+seed=7") == variant
    assert not Path("experiments/mine/experiment.toml").exists()


def test_a_stage_of_other_inputs_is_not_taken_over():
    base = experiment(retriever=GOLD, reader=FILE)
    stages.run(Run(base))
    with pytest.raises(IfqaError, match=r"make it with: ifqa retrieve mine\+k=1"):
        stages.read(Run(override(base, {"k": 1})))


def test_a_variants_own_stage_is_not_replaced_by_its_bases():
    base = experiment(retriever=GOLD, reader=FILE)
    variant = override(base, {"reader.passages": 1})
    stages.run(Run(variant))
    benchmark(*map(question, range(4)))
    answers(dict.fromkeys(range(4), "captain0"))
    stages.run(Run(base))
    before = stamps(variant.folder)
    with pytest.raises(IfqaError, match=r"was made from something else \(changed: questions\)"):
        stages.read(Run(variant))
    assert stamps(variant.folder) == before


def test_passages_that_no_manifest_lists_do_not_hide_those_of_the_corpus():
    mine = searching()
    stages.run(Run(mine))
    before = scores()
    write("experiments/mine/retrieve/passages.jsonl", '{"id": "p1", "title": "", "contents": "nothing"}\n')
    shutil.rmtree("experiments/mine/score")
    stages.run(Run(mine))
    assert scores() == before


def test_a_stage_is_copied_from_any_experiment_of_the_family_with_the_same_inputs(capsys):
    base = experiment(retriever=GOLD, reader=FILE)
    variant = override(base, {"reader.passages": 1})
    stages.run(Run(variant))
    stages.run(Run(override(variant, {"k": 1})))
    other = experiment("mine-too", retriever=GOLD, reader=FILE)
    stages.run(Run(other))
    capsys.readouterr()
    stages.run(Run(base))
    said = capsys.readouterr().err
    assert "experiments/mine/retrieve: taken over from mine+reader.passages=1" in said
    assert "experiments/mine/read: 5 questions answered" in said, "no file of another experiment is looked at"
