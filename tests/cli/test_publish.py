"""`ifqa publish` as a command: what it prints, and its exit codes."""

import json
import sys

import pytest

from ifqa.cli.app import main

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def publish(monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["ifqa", "publish", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code or 0, capsys.readouterr()

    return run


def test_the_folder_is_printed_with_the_command_that_uploads_it(publish):
    code, printed = publish("--to", "hub", "ranker")
    assert (code, printed.out) == (0, "hub/ranker\n")
    assert printed.err == "upload it with: hf upload YOUR_NAME/ifqa-ranker hub/ranker\n"


def test_json_has_the_folders(publish):
    _, printed = publish("--to", "hub", "sample", "--json", "--quiet")
    (folder,) = json.loads(printed.out)["folders"]
    assert (folder["folder"], folder["kind"]) == ("hub/sample", "dataset")


def test_a_folder_with_other_files_is_refused_in_one_line(publish, here):
    (here / "hub/ranker").mkdir(parents=True)
    (here / "hub/ranker/notes.txt").touch()
    code, printed = publish("--to", "hub", "ranker")
    assert (code, printed.out) == (2, "")
    assert printed.err.count("\n") == 1
