"""What an error tells apart: found, wanted, and how to mend it."""

import json
import pickle

import pytest
from command_line import ifqa_here

from ifqa.config.experiment import load_experiment, parse_experiment
from ifqa.errors import ConfigError, IfqaError, MissingInput, unknown_name
from ifqa.serve.middleware import error_response
from ifqa.storage.artifacts import Artifact


def parts_of(action):
    with pytest.raises(IfqaError) as caught:
        action()
    return caught.value.parts()


def test_an_error_without_parts_has_its_message_alone():
    assert (str(IfqaError("it is wrong")), IfqaError("it is wrong").parts()) == ("it is wrong", {})


def test_an_unknown_name_is_mended_by_the_nearest_known_one():
    error = unknown_name("reader", "fud", ["fid", "llm"])
    assert error.parts() == {"found": "fud", "wanted": "known: fid, llm", "mend": "fid"}


def test_a_wrong_setting_tells_what_was_wanted():
    sections = {"benchmark": "sample", "split": "dev", "reader": {"name": "llm", "samples": 0}}
    assert parts_of(lambda: parse_experiment("x", sections, "x.toml")) == {
        "found": "0",
        "wanted": "a whole number from 1",
    }


@pytest.mark.usefixtures("here")
def test_an_unknown_experiment_is_mended_by_a_known_one():
    assert parts_of(lambda: load_experiment("sampel"))["mend"] == "sample"


def test_a_missing_stage_is_mended_by_a_command(tmp_path):
    missing = Artifact(tmp_path / "read")
    assert parts_of(lambda: missing.require("ifqa read mine"))["mend"] == "ifqa read mine"


def test_the_parts_of_an_error_come_back_from_another_process():
    error = ConfigError("x: wanted a, found b", found="b", wanted="a")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.parts()) == (str(error), error.parts())


def test_the_server_has_the_parts_in_the_problem_details():
    response = error_response(MissingInput("no model; fetch it with: x", mend="x"))
    problem = json.loads(bytes(response.body))
    assert (problem["detail"], problem["mend"]) == ("no model; fetch it with: x", "x")
    assert "found" not in problem


def test_the_command_line_has_the_parts_in_json(tmp_path):
    done = ifqa_here("run", "sampel", "--json", folder=tmp_path)
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["kind"], error["found"]) == (2, "ConfigError", "sampel")
    assert error["mend"] == "sample"
    assert done.stderr.startswith(f"ifqa: {error['message']}")


def test_without_json_an_error_writes_nothing_to_stdout(tmp_path):
    assert ifqa_here("run", "sampel", folder=tmp_path).stdout == ""
