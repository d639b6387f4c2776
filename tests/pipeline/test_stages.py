"""Each stage reuses its artifact if its inputs are the same, and else makes it from files, all or
nothing.
"""

import shutil
from pathlib import Path

import outside_plugins as toy
import pytest
from scored_experiments import benchmark, write

from ifqa.config.experiment import load_experiment
from ifqa.config.overrides import override
from ifqa.errors import IfqaError
from ifqa.pipeline import stages
from ifqa.pipeline.run import Run

pytestmark = pytest.mark.usefixtures("five")


@pytest.mark.parametrize(
    ("change", "redone"),
    [
        ({"about": "Another.", "table": "Table 3", "expected": {"EM": {"value": 1.0}}}, set()),
        ({"seed": 1}, {"score"}),
        ({"reader": toy.FILE | {"passages": 1}}, {"read", "score"}),
        ({"retriever": toy.GOLD | {"k": 1}}, {"retrieve", "read", "score"}),
        ({"limit": 3}, {"retrieve", "read", "score"}),
    ],
    ids=lambda value: "+".join(sorted(value)),
)
def test_a_changed_setting_redoes_just_what_depends_on_it(change, redone):
    tables = {"retriever": toy.GOLD, "reader": toy.FILE}
    stages.run(Run(toy.experiment(**tables)))
    before = toy.stamps("experiments/mine")
    stages.run(Run(toy.experiment(**tables | change)))
    after = toy.stamps("experiments/mine")
    assert {Path(path).parent.name for path in after if after[path] != before.get(path)} == redone


@pytest.mark.parametrize(
    ("stage", "tables", "complaint"),
    [
        (stages.retrieve, {"reader": toy.FILE}, r"experiment mine has no \[retriever\]"),
        (stages.read, {"retriever": toy.GOLD}, r"experiment mine has no \[reader\]"),
    ],
)
def test_a_stage_that_an_experiment_does_not_have_is_refused(stage, tables, complaint):
    with pytest.raises(IfqaError, match=f"^{complaint}$"):
        stage(Run(toy.experiment(**tables)))
    assert not Path("experiments").exists()


@pytest.mark.parametrize(
    ("tables", "complaint"),
    [
        ({"split": "few-dev"}, "run: ifqa data ifqa"),
        ({"retriever": {"name": "run", "path": "nowhere.trec"}}, "run not found: nowhere"),
        ({"reader": toy.FILE | {"path": "nowhere.jsonl"}}, "predictions not found: nowhere"),
        (
            {"reader": {"name": "outside_of_stages:Trained"}},
            "trained on ifqa/few and may not be tested on ifqa/full",
        ),
    ],
)
def test_mistakes_are_found_before_a_corpus_is_built(tables, complaint):
    trained = (
        "class Trained(Last):\n    @classmethod\n    def training_family(cls): return 'ifqa/few'\n"
    )
    toy.outside(toy.PLUGINS, trained)
    with pytest.raises(IfqaError, match=complaint):
        stages.run(
            Run(
                toy.experiment(
                    **{"corpus": "few", "retriever": toy.WORDS, "reader": toy.FILE, **tables}
                )
            )
        )
    assert not Path("indexes/few").exists()
    assert not Path("experiments").exists()


def test_scores_are_over_all_questions_when_a_prediction_is_missing():
    toy.answers({1: "captain1", 4: "nobody"})
    stages.run(Run(toy.experiment(reader=toy.FILE)))
    assert (
        toy.scores()["questions"],
        toy.scores()["n_failed"],
        toy.scores()["measures"]["EM"]["value"],
    ) == (5, 3, 20)
    scores = [
        (row["failed"], row["EM"]) for row in toy.rows("experiments/mine/score/per_question.jsonl")
    ]
    assert scores == [(1, 0), (0, 1), (1, 0), (1, 0), (0, 0)]


def test_gold_read_counts_only_passages_given_to_the_reader():
    lines = [
        f"ifqa/full-dev/{n} Q0 p{0 if n < 2 else n} 1 2.0 t\nifqa/full-dev/{n} Q0 p4 2 1.0 t\n"
        for n in range(4)
    ]
    write("run.trec", "".join(lines))
    run = {"name": "run", "path": "run.trec", "k": 5}
    stages.run(Run(toy.experiment(corpus="few", retriever=run, reader=toy.LAST | {"passages": 1})))
    per_question = toy.rows("experiments/mine/score/per_question.jsonl")
    assert [row["gold_read"] for row in per_question] == [True, False, True, True, False]
    assert toy.scores()["subsets"]["gold_read"]["questions"] == 3


@pytest.mark.parametrize("stage", [stages.retrieve, stages.read, stages.score])
def test_any_first_stage_of_a_variant_makes_it_known_by_name(stage):
    base = toy.experiment(retriever=toy.GOLD, reader=toy.FILE)
    stages.run(Run(base))
    variant = override(base, {"seed": 7})
    assert stage(Run(variant)).parent == variant.folder
    assert load_experiment("mine+seed=7") == variant
    assert not Path("experiments/mine/experiment.toml").exists()


def test_a_variants_own_stage_is_not_replaced_by_its_bases():
    base = toy.experiment(retriever=toy.GOLD, reader=toy.FILE)
    variant = override(base, {"reader.passages": 1})
    stages.run(Run(variant))
    benchmark(*map(toy.question, range(4)))
    toy.answers(dict.fromkeys(range(4), "captain0"))
    stages.run(Run(base))
    before = toy.stamps(variant.folder)
    with pytest.raises(IfqaError, match=r"make it with: ifqa retrieve mine, with the same flags"):
        stages.read(Run(override(base, {"k": 1})))
    with pytest.raises(IfqaError, match=r"was made from other inputs \(changed: questions\)"):
        stages.read(Run(variant))
    assert toy.stamps(variant.folder) == before


def test_passages_that_no_manifest_lists_do_not_hide_those_of_the_corpus():
    mine = toy.searching()
    stages.run(Run(mine))
    before = toy.scores()
    write(
        "experiments/mine/retrieve/passages.jsonl",
        '{"id": "p1", "title": "", "contents": "nothing"}\n',
    )
    shutil.rmtree("experiments/mine/score")
    stages.run(Run(mine))
    assert toy.scores() == before


def test_a_stage_is_copied_from_any_experiment_of_the_family_with_the_same_inputs(capsys):
    base = toy.experiment(retriever=toy.GOLD, reader=toy.FILE)
    variant = override(base, {"reader.passages": 1})
    stages.run(Run(variant))
    stages.run(Run(override(variant, {"k": 1})))
    other = toy.experiment("mine-too", retriever=toy.GOLD, reader=toy.FILE)
    stages.run(Run(other))
    capsys.readouterr()
    stages.run(Run(base))
    messages = capsys.readouterr().err
    assert "experiments/mine/retrieve: copied from mine+reader.passages=1" in messages
    assert "experiments/mine/read: 5 questions answered" in messages, (
        "no file of another experiment is looked at"
    )


FAILS = """
from ifqa.errors import IfqaError
class Fails(Last):
    def answer(self, questions, passages): raise IfqaError("no more")
"""


@pytest.fixture
def failing():
    """Makes a variant whose reader fails."""
    toy.outside(toy.PLUGINS, FAILS)
    return lambda base, **changes: override(base, {"reader": "outside_of_stages:Fails", **changes})


@pytest.mark.parametrize("stage", [stages.read, stages.run])
def test_a_variant_whose_reading_fails_leaves_nothing(stage, failing):
    with pytest.raises(IfqaError, match="no more"):
        stage(Run(failing(toy.experiment(reader=toy.FILE))))
    assert list(Path("experiments").iterdir()) == []


def test_a_copied_stage_is_removed_with_the_folder(failing):
    base = toy.experiment(retriever=toy.GOLD, reader=toy.FILE)
    stages.retrieve(Run(base))
    with pytest.raises(IfqaError, match="no more"):
        stages.read(Run(failing(base)))
    assert [path.name for path in Path("experiments").iterdir()] == ["mine"]
    retriever = failing(base, **{"retriever.k": 1})
    with pytest.raises(IfqaError, match="no more"):
        stages.run(Run(retriever))
    # Retrieved here, and used by the next attempt
    assert (retriever.folder / "retrieve/run.trec").exists()


def test_a_finished_stage_stays():
    base = toy.experiment(reader=toy.FILE)
    stages.read(Run(base))
    Path("answers.jsonl").unlink()
    before = sorted(Path("experiments").rglob("*"))
    with pytest.raises(IfqaError, match=r"answers\.jsonl"):
        stages.read(Run(base))
    assert sorted(Path("experiments").rglob("*")) == before


def test_a_users_files_stay_when_a_reading_fails(failing):
    variant = failing(toy.experiment(reader=toy.FILE))
    variant.folder.mkdir(parents=True)
    (variant.folder / "notes.txt").write_text("mine")
    with pytest.raises(IfqaError, match="no more"):
        stages.read(Run(variant))
    assert (variant.folder / "notes.txt").read_text() == "mine"
    assert not (variant.folder / ".read.partial").exists()
