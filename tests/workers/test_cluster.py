"""A Ray cluster of two nodes on this machine: a node dies, and what each node has is checked."""

import os
from pathlib import Path

import pytest
import tasks
from ray.cluster_utils import Cluster
from refusals import refused

from ifqa.pipeline.check import check, inspect_node
from ifqa.workers.pool import map_tasks

VERSIONS = ("ifqa", "commit", "python", "libraries")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]


@pytest.fixture
def nodes(monkeypatch):
    """A cluster, and its second node."""
    paths = [str(Path(__file__).parents[2]), str(Path(tasks.__file__).parent)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    second = cluster.add_node(num_cpus=1)
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    yield cluster, second
    cluster.shutdown()


def test_a_node_that_dies_takes_no_result_with_it(nodes):
    cluster, second = nodes
    results = []
    for result in map_tasks(tasks.slow_square, range(24), engine="ray"):
        results.append(result)
        if len(results) == 4:
            cluster.remove_node(second, allow_graceful=False)
    assert sorted(results) == [(n, n * n) for n in range(24)]


def test_check_says_what_each_node_lacks(nodes, monkeypatch, tmp_path):
    monkeypatch.setattr(
        "ifqa.pipeline.check.describe_environment", lambda _: dict.fromkeys(VERSIONS, "other")
    )
    lines: list[str] = []
    with refused("the same versions as here: ifqa 0."):
        for finding in check("sample", engine="ray"):
            lines.append(str(finding))
    here = [
        line
        for line in lines
        if line.startswith("  here     node ") and line.endswith(": sample dev")
    ]
    assert len(set(here)) == 2
    differing = [
        line
        for line in lines
        if "the same versions as here: ifqa 0." in line and ", here other; " in line
    ]
    assert len(differing) == 2
    (missing,), _ = inspect_node(("sample", {}, tmp_path / "elsewhere"))
    assert str(missing).startswith(f"  missing  {tmp_path}/elsewhere: ")
    assert "every node must see this folder under this path" in missing.remedy
