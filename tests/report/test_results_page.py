"""The page of results as a text, for a server: of the experiments below any folder."""

import pytest
from answered import run_answers

from ifqa.report.html_page import results_page
from ifqa.report.publish import PAGE, publish


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    run_answers("mine", range(20), wrong="a very telling mistake")
    return tmp_path


def test_the_results_of_another_folder_are_those_of_its_own_report(folder, monkeypatch):
    list(publish(None, [], check=False))
    written = PAGE.read_text(encoding="utf-8")
    monkeypatch.chdir(folder)
    text = results_page(folder / "project")
    assert text == written
    assert "<b>24.1</b> <small>[15.7, 33.7]</small>" in text
    assert "a very telling mistake" in text
    assert "a very telling mistake" not in results_page(folder)


def test_a_served_page_leads_to_the_page_to_ask_on(folder):
    ask = '<a href="/">Ask</a>'
    assert ask in results_page(served=True)
    assert ask not in results_page()
    assert "EM and F1, sample dev" in results_page()
