"""Probes: their questions, a reader's losses by them, and how they resume."""

import json
import re
from pathlib import Path

import pytest
from command_line import ifqa_here
from outside_plugins import GOLD, experiment, question, write
from scored_experiments import benchmark

from ifqa.config.experiment import load_experiment
from ifqa.errors import IfqaError
from ifqa.pipeline import stages
from ifqa.pipeline.probe import PROBES, probe, read_losses
from ifqa.pipeline.run import Run
from ifqa.records import Hit, Question
from ifqa.report.publish import PAGE, publish
from ifqa.report.result_tables import losses_table
from ifqa.report.table import render_text

pytestmark = pytest.mark.usefixtures("five")

#: Answers with the captain of the team that the question names, if a passage names him; reads two
#: questions at a time.
READS = """
import re
from pathlib import Path
from ifqa.records import Prediction
class Reads:
    chunk = 2
    def __init__(self, memory: bool = False) -> None: self.memory = memory
    def answer(self, questions, passages):
        if Path("stop").exists() and len(questions) == 1:
            raise KeyboardInterrupt
        with open("asked.txt", "a") as file:
            print(*(question.text for question in questions), sep="|", file=file)
        return [Prediction(q.id, self.captain(q.text, texts)) for q, texts in zip(questions, passages)]
    def captain(self, text, passages):
        team = re.search("team(.)", text)
        name = f"captain{team[1]}" if team else "nobody"
        return name if self.memory or any(name in passage.text for passage in passages) else "nobody"
"""
TABLES = (
    'benchmark = "ifqa"\nsplit = "full-dev"\n[retriever]\nname = "gold"\nk = 2\n[reader]\nname = '
    '"reads_here:Reads"\n'
)


@pytest.fixture
def mine(tmp_path):
    write("reads_here.py", READS)
    write("experiments/mine.toml", TABLES)
    return load_experiment("mine")


def batches():
    return Path("asked.txt").read_text().splitlines() if Path("asked.txt").exists() else []


def pairs(*texts):
    return [(Question(f"q/{n}", text), [Hit(f"p{n}", 1.0)]) for n, text in enumerate(texts)]


def test_each_probe_changes_one_thing():
    usual = pairs(
        "If Ann had left, who would lead?", "Who would lead if Bo were ill?", "Who leads?"
    )
    alone = PROBES["no-supposition"](usual, 0)
    assert [(question.id, question.text) for question, _ in alone] == [
        (f"q/{n}", "Who would lead?") for n in (0, 1)
    ]
    assert [hits for _, hits in alone] == [usual[0][1], usual[1][1]]
    swapped = PROBES["other-supposition"](usual, 0)
    texts = [question.text for question, _ in swapped]
    assert texts == ["If Bo were ill, who would lead?", "If Ann had left, who would lead?"]
    assert [hits for _, hits in swapped] == [usual[0][1], usual[1][1]]
    elsewhere = PROBES["other-passages"](usual, 0)
    assert [question for question, _ in elsewhere] == [question for question, _ in usual]
    assert all(
        hits != usual_hits for (_, hits), (_, usual_hits) in zip(elsewhere, usual, strict=True)
    )
    same = pairs("If Ann had left, who would lead?", "If Ann had left, what would be lost?")
    assert PROBES["other-supposition"](same, 0) == []
    assert (
        PROBES["other-passages"]([(question, [Hit("p", 1.0), *hits]) for question, hits in same], 0)
        == []
    )
    assert PROBES["other-passages"]([(question, []) for question, _ in same], 0) == []
    many = pairs(*(f"If team{n} had won, who would lead?" for n in range(9)))
    first, again, other = (PROBES["other-supposition"](many, seed) for seed in (0, 0, 1))
    assert first == again != other


def test_losses_are_paired_and_an_interrupted_probe_resumes(mine):
    stages.run(Run(mine))
    Path("asked.txt").unlink()
    write("stop", "")
    with pytest.raises(KeyboardInterrupt):  # at the last question of the first probe
        probe(Run(mine))
    assert (len(batches()), read_losses(Run(mine))) == (2, [])
    Path("stop").unlink()
    losses = probe(Run(mine))
    assert len(batches()) == 3 * 3
    assert [word for line in batches()[:3] for word in line.split("|")] == ["Who would lead?"] * 5
    assert {
        (loss.probe, loss.measure): (loss.before, loss.after, loss.loss) for loss in losses
    } == {(name, measure): (100.0, 0.0, 100.0) for name in PROBES for measure in ("EM", "F1")}
    assert {(loss.questions, loss.left_out, loss.low, loss.high) for loss in losses} == {
        (5, 0, None, None)
    }
    assert losses[0].p == pytest.approx(2 / 32, abs=0.02)  # of 32 swaps two are as large
    path = Path("experiments/mine/probe/score/losses.json")
    path.write_text(path.read_text() + " ")
    assert read_losses(Run(mine)) == []
    assert probe(Run(mine)) == losses == read_losses(Run(mine))
    assert len(batches()) == 3 * 3  # nothing is read again
    write("experiments/mine.toml", f"{TABLES}memory = true\n")
    assert read_losses(Run(load_experiment("mine"))) == []
    with pytest.raises(IfqaError, match="made from other inputs"):
        probe(Run(load_experiment("mine")))


def test_questions_that_do_not_split_are_left_out_before_and_after():
    benchmark(*map(question, range(4)), question(4) | {"question": "Who leads team4?"})
    write("reads_here.py", READS)
    knows = experiment("knows", retriever=GOLD, reader={"name": "reads_here:Reads", "memory": True})
    stages.run(Run(knows))
    losses = {loss.probe: loss for loss in probe(Run(knows)) if loss.measure == "EM"}
    counts = {name: (loss.questions, loss.left_out) for name, loss in losses.items()}
    assert counts == {
        "no-supposition": (4, 1),
        "other-supposition": (4, 1),
        "other-passages": (5, 0),
    }
    # It answers from memory
    assert (losses["other-passages"].loss, losses["other-passages"].p) == (0.0, 1.0)
    assert losses["other-supposition"].loss == 100.0


@pytest.mark.parametrize(
    ("tables", "complaint"),
    [
        ({"retriever": GOLD}, "has no \\[reader\\]"),
        ({"reader": {"name": "reads_here:Reads"}}, "is not there yet"),
    ],
)
def test_what_was_not_read_cannot_be_probed(tables, complaint):
    write("reads_here.py", READS)
    with pytest.raises(IfqaError, match=complaint):
        probe(Run(experiment("mine", **tables)))
    assert not Path("experiments/mine/probe").exists()


def test_the_verbs_tables_fit_into_80_columns(mine):
    name = "mine+limit=3+seed=17"
    for verb in ("run", "probe"):
        shown = ifqa_here(verb, "mine", "--limit", "3", "--set", "seed=17", folder=".")
        assert shown.returncode == 0
    lines = shown.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line for line in lines if line.split(":")[0] in PROBES] == [
        f"{probe}: 3 questions" for probe in PROBES
    ]
    assert re.search(r"^EM +100\.0 +0\.0 +100\.0 +0\.\d+", shown.stdout, re.MULTILINE)
    assert read_losses(Run(load_experiment(name)))


def test_the_verb_and_the_page_show_probes(mine):
    ran, probed = (
        ifqa_here(verb, "mine", "--limit", "3", "--json", folder=".") for verb in ("run", "probe")
    )
    assert (ran.returncode, probed.returncode) == (0, 0)
    report = json.loads(probed.stdout)
    assert [loss["probe"] for loss in report["losses"]] == [
        name for name in PROBES for _ in range(2)
    ]
    variant = load_experiment("mine+limit=3")
    table = losses_table({variant.name: read_losses(Run(variant))})
    assert re.search(
        r"no-supposition +EM +3 +0 +100\.0 +0\.0 +100\.0 +0\.\d+",
        render_text(table.show),
    )
    assert read_losses(Run(mine)) == []
    assert table.rows[0][:4] == ("mine+limit=3", "no-supposition", "EM", "3")
    list(publish(None, ["mine+limit=3"], False))
    assert "What readers lose without the supposition" in PAGE.read_text()


PARROT = """
import os
from ifqa.records import Completion
class Parrot:
    chat = True
    def complete(self, requests):
        if os.environ.get("DOWN"):
            return [Completion(error="server down") for _ in requests]
        with open('prompts.txt', 'a') as file:
            file.writelines(f'{request.messages[-1][1]!r}\\n' for request in requests)
        return [Completion('Answer: captain1') for _ in requests]
"""


def test_a_probes_requests_to_a_language_model_are_estimated_first(capsys):
    write("parrot_here.py", PARROT)
    reader = {"name": "llm", "prompt": "open-book", "shots": 0}
    asks = experiment("asks", retriever=GOLD, reader=reader, llm={"name": "parrot_here:Parrot"})
    stages.run(Run(asks))
    Path("prompts.txt").unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOWN", "1")
        probe(Run(asks))
    assert (
        capsys.readouterr().err.count(
            "5 questions failed, which counts as wrong; a new run asks again"
        )
        == 3
    )
    losses = probe(Run(asks))
    told = [line for line in capsys.readouterr().err.splitlines() if "llm parrot_here" in line]
    assert [re.findall(r"llm parrot_here:Parrot .*: about (\d+) calls", line) for line in told] == [
        ["5"],
        ["5"],
        ["5"],
    ]
    prompts = Path("prompts.txt").read_text().splitlines()
    assert (len(prompts), sum("If team" in prompt for prompt in prompts)) == (15, 10)
    assert {(row.measure, row.before, row.loss) for row in losses if row.measure == "EM"} == {
        ("EM", 20.0, 0.0)
    }
