"""The Python API: its examples run, its objects print, and it works below any root."""

import doctest
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from openai_server import Reply, serving

import ifqa
from ifqa import api
from ifqa.storage.resources import list_resources

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def workplace(sample_llm_run, tmp_path_factory):
    """The working directory of this module, with the sample's indexes and `sample-llm`."""
    folder = tmp_path_factory.mktemp("api")
    for part in ("indexes", "experiments"):
        shutil.copytree(sample_llm_run / part, folder / part)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield folder


EXAMPLES = [example for example in doctest.DocTestFinder().find(api) if example.examples]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda test: test.name)
def test_the_examples_in_docstrings_run_as_shown(example, workplace):
    failures: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(
        example, out=failures.append
    )
    assert "".join(failures) == ""


def test_importing_imports_nothing_else_until_it_is_used():
    program = (
        "import sys, ifqa; print(sorted(one for one in sys.modules if one.startswith('ifqa.'))); "
        "print(ifqa.Question)"
    )
    output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert output == "['ifqa.version']\n<class 'ifqa.records.Question'>\n"


def test_all_public_names_resolve():
    assert all(getattr(ifqa, name) is not None for name in ifqa.__all__)


def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="no attribute 'opne'; it has: Ablation, Answer, "):
        _ = ifqa.opne


def test_a_folder_of_documents_is_opened_in_place_of_a_corpus(workplace):
    Path("mill").mkdir()
    Path("mill/handbook.md").write_text(
        "# Safety\n\nIf the brake fails, the sluice is closed by Tom Ferris.\n"
    )
    with ifqa.open(docs="mill") as system:
        [ranking] = system.retrieve(
            ["If Tom Ferris had been away, who would have closed the sluice?"], k=1
        )
    assert ranking.hits[0].passage_id.startswith("handbook.md")


def test_several_folders_are_opened_together(workplace):
    for name in ("tower", "farm"):
        Path(name).mkdir()
        Path(name, "notes.md").write_text(f"The {name} is kept by Tom Ferris.\n")
    with ifqa.open(docs=["tower", Path("farm")]) as system:
        answer = system.ask("Who keeps the tower?")
    assert answer.evidence[0].source == "tower/notes.md, line 1"


def test_scores_print_and_become_plain_data_a_frame_and_html(workplace):
    scores = ifqa.run("sample-llm")
    assert "EM" in list(scores)
    assert f"{scores['EM']}" == "15.7 [8.4, 24.1]"
    assert "\nEM              15.7   8.4 - 24.1          3.2       23.1            16.2\n" in str(
        scores
    )
    content: Any = scores.to_dict()
    assert content["measures"]["EM"]["value"] == pytest.approx(100 * 13 / 83)
    frame = scores.to_frame()
    numeric = frame[(frame.over == "numeric") & (frame.measure == "EM")]
    assert numeric.value.item() == scores["numeric.EM"].value == pytest.approx(100 / 31, abs=0.005)
    assert "<td>EM</td><td>15.7</td>" in scores._repr_html_()
    copied: Any = scores.to_dict()
    copied["measures"].clear()
    assert "EM" in scores.content["measures"]
    few = ifqa.run("sample-llm", limit=2)
    assert (few.questions, few.name) == (2, "sample-llm+limit=2")
    with pytest.raises(
        ifqa.IfqaError, match="unknown measure of sample-llm 'EMM'; did you mean 'EM'"
    ):
        scores["EMM"]


def test_scores_have_a_row_and_an_outcome_for_each_question(workplace):
    scores = ifqa.run("sample-llm")
    questions = ifqa.questions("sample", "hard")
    assert [row["id"] for row in scores.rows] == [question.id for question in questions]
    rows: Any = scores.rows  # the type lacks the keys of measures
    assert sum(row["EM"] for row in rows) / 83 == pytest.approx(scores["EM"].value / 100, abs=5e-5)
    outcomes = scores.outcomes()
    wrong = {row["id"]: row["answer"] for row in rows if not row["EM"]}
    assert {
        question_id for question_id, outcome in outcomes.items() if outcome != "right"
    } == wrong.keys()
    assert "rows" not in repr(scores)
    assert "answered the real world" not in outcomes.values()
    factual = scores.outcomes(factual=wrong)
    assert {outcome for question_id, outcome in factual.items() if wrong.get(question_id)} == {
        "answered the real world"
    }
    gold = {question.id: question.answers[0] for question in questions[:8]}
    assert set(ifqa.evaluate(gold, split="hard").outcomes().values()) == {"right", "no answer"}


def test_without_a_reader_only_the_ranking_is_scored(workplace):
    scores = ifqa.run("sample-llm", reader="none")
    whole = ifqa.run("sample-llm")
    assert {score: scores[score] for score in scores} == {
        name: whole[name] for name in whole if "@" in name
    }
    assert not (workplace / "experiments/sample-llm+reader=none/read").exists()
    with pytest.raises(ifqa.IfqaError, match="wanted the scores of an experiment with a reader"):
        scores.outcomes()
    with pytest.raises(ifqa.IfqaError, match="has no \\[reader\\]"):
        ifqa.answers(scores.name)


def test_an_experiments_answers_are_those_that_were_scored(workplace):
    scores = ifqa.run("sample-llm")
    answers = ifqa.answers("sample-llm")
    scored = [(row["id"], row["answer"]) for row in scores.rows]
    assert [(answer.question.id, answer.text) for answer in answers] == scored


def test_an_opened_system_gives_the_answers_of_the_experiment(workplace):
    ifqa.run("sample-llm")
    answers = ifqa.answers("sample-llm")[:12]
    with ifqa.open("sample-llm") as system:
        asked = system.answer([answer.question for answer in answers])
    # Only an opened reader knows how it could be calibrated
    assert [replace(answer, uncalibrated="") for answer in asked] == answers


def test_answers_of_an_experiment_that_was_not_run_are_refused(workplace):
    with pytest.raises(
        ifqa.IfqaError, match="sample/read is not there yet; make it with: ifqa run sample"
    ):
        ifqa.answers("sample")


def test_answers_of_an_index_that_has_changed_are_refused(workplace):
    ifqa.run("sample-llm")
    answers = ifqa.answers("sample-llm")
    text = list_resources("indexes", ".toml")["sample"].read_text()
    Path("indexes/sample.toml").write_text(text)
    assert ifqa.answers("sample-llm") == answers
    Path("indexes/sample.toml").write_text(
        text.replace('= "bm25"', '= "bm25"\nstemmer = "krovetz"')
    )
    with pytest.raises(ifqa.IfqaError, match="ifqa index sample"):
        ifqa.answers("sample-llm")
    Path("indexes/sample.toml").unlink()


def test_answers_of_any_form_are_scored_over_all_questions():
    questions = ifqa.questions("sample", "dev")
    right = {question.id: question.answers[0] for question in questions[:20]}
    by_id = ifqa.evaluate(right)
    assert (by_id.questions, by_id.n_failed, by_id["EM"].value) == (
        83,
        63,
        pytest.approx(100 * 20 / 83),
    )
    predictions = [ifqa.Prediction(*pair) for pair in right.items()]
    assert ifqa.evaluate(predictions).to_dict() == by_id.to_dict()
    assert ifqa.evaluate(lambda question: right.get(question.id, "")).to_dict() == by_id.to_dict()


def test_answers_that_cannot_be_scored_are_refused():
    for wrong, complaint in (
        ({"sample/dve/1": "x"}, "unknown question of sample dev 'sample/dve/1'; did you mean"),
        ([ifqa.Prediction("sample/dev/1", "x")] * 2, "question sample/dev/1 is answered twice"),
        ({"sample/dev/1": None}, "wanted a text or a Prediction for each answer, found"),
        (lambda question: 3, "wanted a text or a Prediction for each answer, found"),
        ({1: "x", "sample/dev/1": "x"}, "wanted a text or a Prediction for each answer, found"),
        (["x"], "wanted a text or a Prediction for each answer, found"),
        ("x", "wanted answers by question id, predictions or a function, found"),
    ):
        with pytest.raises(ifqa.IfqaError, match=complaint):
            ifqa.evaluate(wrong)  # type: ignore[arg-type]


def test_an_argument_of_another_type_is_refused_in_one_line(workplace):
    system = ifqa.open("sample-llm")
    for call, complaint in (
        (lambda: ifqa.open(5), "experiment 5: wanted a name"),  # type: ignore[arg-type]
        (
            lambda: ifqa.open(docs="mill", corpus="sample"),
            "docs and corpus are given; wanted one of them",
        ),
        (
            lambda: ifqa.run("sample", modle="gpt"),  # type: ignore[call-arg]
            "unknown argument 'modle'; did you mean 'model'",
        ),
        (lambda: ifqa.open("sample", root="none"), "wanted the path of a folder"),
        (lambda: ifqa.Corpus(3), "corpus 3: wanted a name"),  # type: ignore[arg-type]
        (
            lambda: ifqa.open("sample", settings=[1]),  # type: ignore[arg-type]
            "settings: wanted a dictionary",
        ),
        (
            lambda: ifqa.open("sample", root=5),  # type: ignore[arg-type]
            "root: wanted the path of a folder, found 5",
        ),
        (
            lambda: ifqa.questions(None, "dev"),  # type: ignore[arg-type]
            "benchmark None: wanted a name",
        ),
        (
            lambda: system.retrieve(["If?"], k="3"),  # type: ignore[arg-type]
            "k: wanted a whole number of passages, .* found '3'",
        ),
        (lambda: system.retrieve(["If?"], k=-1), "found -1"),
        (
            lambda: system.ask("If \ud800 a, b?"),
            "question ask/0: 'text' holds half a surrogate pair",
        ),
    ):
        with pytest.raises(ifqa.IfqaError, match=complaint):
            call()
    assert not Path("none").exists()


def test_nothing_in_a_text_is_taken_as_html():
    question = ifqa.Question("q", f"If {HOSTILE}?")
    passage = ifqa.Evidence(f"p{HOSTILE}", HOSTILE, f"{HOSTILE} 42 {HOSTILE}")
    answer = ifqa.Answer(question, "42", (passage,), HOSTILE)
    ranking = ifqa.Ranking(question, (ifqa.Hit("p", 1.0),), (passage,))
    for shown in (answer._repr_html_(), ranking._repr_html_()):
        assert "<script" not in shown
        assert "&lt;script&gt;" in shown
    assert "<mark>42</mark>" in answer._repr_html_()


def test_systems_of_one_root_share_completions_but_not_caps(tmp_path, monkeypatch):
    """Counted by the server: each system keeps to its own cap, and no prompt is sent twice."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    (tmp_path / "prices.toml").write_text(
        'dated = "2026-01-02"\nsource = "there"\n[models]\n"m" = { input = 100, output = 400 }\n'
    )
    with serving(lambda *_: Reply(text="so", usage=(100, 40))) as server:  # $0.026 each
        (tmp_path / "experiments").mkdir()
        (tmp_path / "experiments/mine.toml").write_text(
            'benchmark = "sample"\nsplit = "dev"\n[reader]\nname = "llm"\nprompt = "closed-book"\n'
            f'[llm]\nmodel = "m"\nbase_url = "{server.url}"\nretries = 0\n'
        )
        texts = [f"If {n} were so, what?" for n in range(20)]
        with (
            ifqa.open("mine", root=tmp_path, max_cost=0.1) as small,
            ifqa.open("mine", root=tmp_path, max_cost=0.2) as large,
        ):
            first = small.answer(texts)
            second = large.answer(texts[10:])
            again = large.answer(texts[:1])
    spent = [system.model.spent for system in (small, large)]
    costs = [usage.cost for usage in spent if usage.cost is not None]
    assert len(costs) == 2
    assert 0 < costs[0] <= 0.1 < costs[1] <= 0.2
    assert server.requests == spent[0].calls + spent[1].calls
    assert (first[0].text, again[0].text, spent[1].cached) == ("so", "so", 1)
    assert any("the cap of $0.1 (max_cost)" in answer.error for answer in first)
    assert any("the cap of $0.2 (max_cost)" in answer.error for answer in second)
    assert (tmp_path / "completions").is_dir()
    assert not Path("completions").exists()
