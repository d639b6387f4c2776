"""`ifqa report`: it shows finished runs, marks stale ones, and overwrites no file of the user."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import ifqa_here
from prediction_files import run_answers, write_answers
from scored_experiments import benchmark, scored

from ifqa.config.experiment import load_experiment, parse_experiment
from ifqa.config.overrides import override
from ifqa.errors import IfqaError
from ifqa.pipeline import stages
from ifqa.pipeline.run import Run
from ifqa.report import results_log
from ifqa.report.html_page import draw_figures, render_results
from ifqa.report.publish import BEGIN, END, PAGE, RESULTS, publish
from ifqa.report.results_log import RECORDS, Entry
from ifqa.scoring.stored_scores import read_scores
from ifqa.storage.resources import list_resources

README = f"# Mine\n\n{BEGIN}\nsomething stale\n{END}\n\nmore\n"


def marked(*names):
    return README.replace(BEGIN, f"<!-- written by ifqa report: {' '.join(names)} -->")


def write(into=None, shown=(), check=False):
    return list(publish(into, shown, check))


def write_with_readme():
    run_answers("mine", range(20), 'about = "Twenty are right."')
    Path("README.md").write_text(README)
    return write(Path("README.md"))


def test_all_files_have_the_same_scores():
    assert set(write_with_readme()) == {RECORDS, RESULTS, PAGE, Path("README.md")}
    for path in (RESULTS, Path("README.md")):
        assert "24.1 [15.7, 33.7]" in path.read_text(), path
    assert "<b>24.1</b> <small>[15.7, 33.7]</small>" in PAGE.read_text()


def test_the_readme_keeps_its_other_text():
    write_with_readme()
    readme = Path("README.md").read_text()
    assert readme.startswith("# Mine\n\n")
    assert readme.endswith(f"{END}\n\nmore\n")
    assert "something stale" not in readme


def test_writing_again_leaves_the_readme_alone():
    write_with_readme()
    readme = Path("README.md").read_text()
    write(Path("README.md"))
    assert Path("README.md").read_text() == readme


def test_scores_are_printed_as_json():
    run_answers("mine", range(20))
    printed = json.loads(ifqa_here("report", "--json", folder=".").stdout)
    assert set(printed["files"]) == {str(RECORDS), str(RESULTS), str(PAGE)}
    assert round(printed["experiments"]["mine"]["measures"]["EM"]["value"], 1) == 24.1
    assert printed["experiments"]["mine"]["made"]["at"]


def test_a_check_writes_nothing():
    run_answers("mine", range(20))
    Path("README.md").write_text(README)
    before = sorted(Path().rglob("*"))
    with pytest.raises(IfqaError, match="is stale"):
        write(check=True)
    assert sorted(Path().rglob("*")) == before


def test_a_check_passes_written_files():
    write_with_readme()
    assert write(Path("README.md"), check=True) == []


def test_a_check_refuses_a_changed_file():
    write_with_readme()
    Path("README.md").write_text(README)
    with pytest.raises(
        IfqaError, match=r"README.md is stale; write it again: ifqa report --into README.md"
    ):
        write(Path("README.md"), check=True)


def test_a_check_refuses_results_of_other_expectations():
    run_answers("mine", range(20))
    write()
    file = Path("experiments/mine.toml")
    file.write_text(file.read_text() + "\n[expected.EM]\nvalue = 24.1\ntolerance = 0.1\n")
    with pytest.raises(IfqaError, match=r"RESULTS.md is stale"):
        write(check=True)
    write()
    assert (
        "| mine | OK | 24.1 [15.7, 33.7] | 24.1 [15.7, 33.7] | EM 24.1 ± 0.1 |"
        in RESULTS.read_text()
    )


def test_a_check_refuses_a_stale_run():
    run_answers("mine", range(20))
    write()
    write_answers("mine", range(30))  # the run is stale now
    with pytest.raises(IfqaError, match="is stale"):
        write(check=True)
    write()
    assert "| mine | stale: " in RESULTS.read_text()
    assert "24.1" not in RESULTS.read_text()


def test_a_limited_variant_is_reported_only_if_named():
    run_answers("few", range(20), "limit = 2")  # a limit in an experiment's file is no variant
    experiment = run_answers("mine", range(20))
    stages.run(Run(override(experiment, {"limit": 2})))
    write()
    assert "| few | PARTIAL: 2 of 83 questions" in RESULTS.read_text()
    assert "mine+limit=2" not in RESULTS.read_text() + RECORDS.read_text() + PAGE.read_text()
    write(shown=["mine+limit=2"])
    assert "mine+limit=2" in PAGE.read_text()
    assert "| mine+limit=2 | PARTIAL: 2 of 83 questions" in RESULTS.read_text()
    assert "mine+limit=2" in RECORDS.read_text()
    assert write(shown=["mine+limit=2"], check=True) == []
    with pytest.raises(IfqaError, match=r"RESULTS.md is stale; write it again: ifqa report$"):
        write(check=True)


def test_a_file_that_cannot_take_the_table_is_refused_before_writing():
    run_answers("mine", range(20))
    for text in ("# Mine\n", README + README, f"{END}{BEGIN}", marked("mine") + README):
        Path("README.md").write_text(text)
        with pytest.raises(IfqaError, match="once; the table goes between them"):
            write(Path("README.md"))
    Path("latin.md").write_bytes(README.encode() + b"\xe9")
    for name, message in (
        ("none.md", "once; the table goes between them"),
        ("latin.md", r"latin\.md: not UTF-8"),
    ):
        with pytest.raises(IfqaError, match=message):
            write(Path(name))
    assert not RESULTS.exists()


def test_a_foreign_results_file_is_refused():
    run_answers("mine", range(20))
    RESULTS.write_text("# Results\n\nof mine\n")
    with pytest.raises(IfqaError, match="was not written by ifqa report"):
        write()
    assert RESULTS.read_text() == "# Results\n\nof mine\n"
    assert not PAGE.exists()


def write_through_a_link():
    run_answers("mine", range(20))
    Path("windows.md").write_bytes(marked("mine").replace("\n", "\r\n").encode())
    Path("link.md").symlink_to("windows.md")
    write(Path("link.md"))


def test_a_link_stays_a_link():
    write_through_a_link()
    assert Path("link.md").is_symlink()


def test_a_file_keeps_its_ends_of_lines():
    write_through_a_link()
    content = Path("windows.md").read_bytes()
    assert b"24.1" in content
    assert content.count(b"\n") == content.count(b"\r\n")
    assert write(Path("windows.md"), check=True) == []


def test_a_second_report_at_the_same_time_is_refused():
    run_answers("mine", range(20))
    first = publish(None, [], check=False)
    next(first)
    other = subprocess.run(
        [sys.executable, "-m", "ifqa", "report"], capture_output=True, text=True, timeout=120
    )
    assert other.returncode == 2
    assert "another process is working in experiments" in other.stderr
    assert len(list(first)) == 2
    write()


def test_this_repositorys_results_follow_from_its_records(monkeypatch):
    # All experiments that are shipped
    monkeypatch.setattr(results_log, "list_resources", list_resources)
    root = Path(__file__).parents[2]
    Path("experiments").mkdir()
    for name in ("experiments/RESULTS.md", "experiments/RESULTS.jsonl", "README.md"):
        Path(name).write_bytes((root / name).read_bytes())
    assert list(publish(Path("README.md"), (), True)) == []


def test_a_mark_names_the_fully_measured_experiments_of_its_table():
    for name in ("mine", "other", "third"):
        run_answers(name, range(20))
    write_answers("undone", range(20))
    run_answers("some", range(20), "limit = 5")
    stages.run(Run(override(load_experiment("mine"), {"limit": 5})))
    for name in ("undone", "nowhere", "some", "mine+limit=5"):
        Path("README.md").write_text(marked("mine", name))
        with pytest.raises(
            IfqaError, match=rf"experiments that have no row: {re.escape(name)}; name experiments"
        ):
            write(Path("README.md"))
        assert Path("README.md").read_text() == marked("mine", name)
    assert not RESULTS.exists()
    Path("README.md").write_text(marked("mine", "third"))
    write(Path("README.md"))
    text = Path("README.md").read_text()
    assert [name for name in ("mine", "other", "third") if f"`ifqa run {name}`" in text] == [
        "mine",
        "third",
    ]
    assert text.startswith(
        "# Mine\n\n<!-- written by ifqa report: mine third -->\n\n| experiment |"
    )
    assert text.endswith(f"{END}\n\nmore\n")
    assert write(Path("README.md"), check=True) == []
    Path("README.md").write_text(text.replace("mine third", "mine"))
    with pytest.raises(IfqaError, match=r"README\.md is stale"):
        write(Path("README.md"), check=True)


def run_two_of_three():
    run_answers("mine", range(20))
    run_answers("other", range(30), wrong="a very telling mistake")
    write_answers("undone", range(20))


def test_an_unfinished_experiment_cannot_be_shown():
    run_two_of_three()
    with pytest.raises(IfqaError, match="undone is not finished here"):
        write(shown=["undone"])


def test_a_finished_experiment_can_be_shown_alone():
    run_two_of_three()
    write(shown=["experiments/mine.toml"])
    assert "a very telling mistake" not in PAGE.read_text()
    write()
    assert "a very telling mistake" in PAGE.read_text(encoding="utf-8")


def test_only_a_served_page_links_to_the_server():
    run_two_of_three()
    write()
    ask = '<a href="/">Ask</a>'
    assert ask not in PAGE.read_text(encoding="utf-8")
    assert ask in render_results(served=True)


def test_results_are_shown_from_another_folder(tmp_path, monkeypatch):
    run_two_of_three()
    write()
    page = PAGE.read_text(encoding="utf-8")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert render_results(tmp_path) == page
    assert "a very telling mistake" not in render_results(tmp_path / "elsewhere")


def test_curves_are_of_the_rankings_that_tables_show():
    tables = {
        "benchmark": "sample",
        "split": "dev",
        "corpus": "sample",
        "retriever": {"name": "bm25"},
    }
    keys = [f"{name}@{k}" for name in ("gold_any", "gold_all", "answer") for k in (1, 5)]
    measures = {key: {"value": 50.0, "low": 40.0, "high": 60.0} for key in keys}
    scores: Any = {
        "questions": 83,
        "of": 83,
        "retry": 0,
        "not_asked": 0,
        "subsets": {},
        "measures": measures,
    }
    facts: Any = {"passages": 426}
    entries = [
        Entry(parse_experiment(name, tables, name), scores, facts) for name in ("one", "two")
    ]
    (figure,) = draw_figures(entries)
    assert "Gold recall at K, sample dev, 426 passages of sample" in figure
    assert figure.count("<polyline") == 2


def score_confidence():
    benchmark(
        *(
            {"question": f"If {n}, who?", "answers": ["Ann"], "context": [f"Ann {n}"]}
            for n in range(6)
        )
    )
    answers = {n: "Ann" if n < 3 else "Bob" for n in range(6)}
    sure = {0: 0.9, 1: 0.8, 2: 0.2, 3: 0.7, 4: 0.1}
    experiment = scored("sure", answers=answers, confidences=sure)
    return read_scores(experiment.folder / "score")


def test_confidence_has_no_auroc_without_retrieval():
    assert "AUROC" not in score_confidence()["measures"]  # nothing was retrieved


def test_the_risk_grows_with_coverage():
    scores = score_confidence()
    risks = {score["coverage"]: score["value"] for score in scores["sureness"]["risks"]}
    assert risks[5.0] == 0.0
    assert risks[50.0] == pytest.approx(100 / 3)
    assert risks[100.0] == 50.0


def test_answers_are_counted_by_confidence():
    scores = score_confidence()
    assert [score["confidence"] for score in scores["sureness"]["bins"]] == [
        0.0,
        10.0,
        20.0,
        70.0,
        80.0,
        90.0,
    ]
    assert [score["value"] for score in scores["sureness"]["bins"]] == [
        0.0,
        0.0,
        100.0,
        0.0,
        100.0,
        100.0,
    ]


def test_confidence_has_figures():
    score_confidence()
    write()
    assert "Risk at coverage, ifqa full-dev" in PAGE.read_text()
    assert "EM at confidence, ifqa full-dev" in PAGE.read_text()
    assert '"s":"90%"' in PAGE.read_text()
