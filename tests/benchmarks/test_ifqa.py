"""The release as it is read: once a command, and again when its file changes."""

import json
import os
from pathlib import Path

import pytest
from scored_experiments import benchmark

from ifqa.benchmarks import ifqa
from ifqa.benchmarks.ifqa import IfQA
from ifqa.errors import IfqaError

RECORD = {"question": "If Ann had won, who would lead?", "answers": ["Bo"], "context": ["Bo came second."]}
FILE = Path("data/ifqa/full_split/dev.json")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    benchmark(RECORD, RECORD | {"answers": ["Cy", "Cyrus"]})


def test_a_split_is_parsed_once_and_nobody_can_change_it_for_the_next(monkeypatch):
    first = IfQA().questions("full-dev")
    monkeypatch.setattr(ifqa, "read_json", None)
    first.clear()
    again = IfQA().questions("full-dev")
    assert [(one.id, one.answers) for one in again] == [
        ("ifqa/full-dev/0", ("Bo",)),
        ("ifqa/full-dev/1", ("Cy", "Cyrus")),
    ]


def test_a_changed_file_is_read_again():
    IfQA().questions("full-dev")
    benchmark(RECORD | {"answers": ["Di"]})
    assert [one.answers for one in IfQA().questions("full-dev")] == [("Di",)]


def test_the_same_name_below_another_folder_is_another_file(tmp_path, monkeypatch):
    IfQA().questions("full-dev")
    stat = FILE.stat()
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    benchmark(RECORD, RECORD | {"answers": ["Ed", "Edwar"]})

    os.utime(FILE, ns=(stat.st_mtime_ns, stat.st_mtime_ns))
    assert FILE.stat().st_size == stat.st_size
    assert IfQA().questions("full-dev")[1].answers == ("Ed", "Edwar")


def test_a_wrong_file_is_refused_each_time():
    FILE.write_text(json.dumps([RECORD]))
    for _ in range(2):
        with pytest.raises(IfqaError, match="question 0: key 'idx' is missing"):
            IfQA().questions("full-dev")
