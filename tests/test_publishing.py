"""The workflows run pinned actions, and a tag that is not the version's is refused."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda workflow: workflow.name)
def test_actions_are_pinned_by_commit(workflow):
    actions = re.findall(r"uses: (.+)", workflow.read_text())
    pinned = re.compile(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert [action for action in actions if not pinned.fullmatch(action)] == []


@pytest.mark.parametrize("tag", ["v99.0.0", "99.0.0", "vnext"])
def test_a_tag_that_is_not_the_version_is_refused_in_one_line(tag):
    command = [sys.executable, str(ROOT / ".ci/release"), "--tag", tag]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert re.fullmatch(r"not released: .+\n", done.stderr)
