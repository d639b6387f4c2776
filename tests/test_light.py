"""The light installation: what it lists is enough for BM25, ranker and a served language model."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from openai_server import Reply, serving

ROOT = Path(__file__).parents[1]
LIGHT = ROOT / "constraints-light.txt"

#: Runs ifqa as if only the listed packages were installed.
PROGRAM = """
import re, sys
from importlib.machinery import PathFinder
from importlib.metadata import packages_distributions

def key(name):
    return re.sub(r"[-_.]+", "-", name).lower()

listed = {key(name) for name in sys.argv.pop(1).split(",")} | {"ifqa", "coverage"}
owners = packages_distributions()

class OnlyListed(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        owner = owners.get(name.partition(".")[0])
        if owner and not listed & set(map(key, owner)):
            return None
        return PathFinder.find_spec(name, path, target)

    @classmethod
    def find_distributions(cls, *context):
        found = PathFinder.find_distributions(*context)
        return (each for each in found if key(each.metadata["Name"]) in listed)

sys.meta_path[sys.meta_path.index(PathFinder)] = OnlyListed
from ifqa.cli.app import main
main()
"""


def pinned(path):
    """The lines of a file that pin a version."""
    return [line for line in path.read_text().splitlines() if "==" in line and line[0] != "#"]


def names(path):
    return [re.sub(r"[-_.]+", "-", line.partition("==")[0]).lower() for line in pinned(path)]


def light(*arguments):
    """Run a verb with only the listed packages; the finished process."""
    command = [sys.executable, "-c", PROGRAM, ",".join(names(LIGHT)), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_the_versions_are_those_of_the_constraints():
    assert set(pinned(LIGHT)) <= set(pinned(ROOT / "constraints.txt"))


def test_torch_is_not_listed():
    assert not {"torch", "transformers", "sentence-transformers"} & set(names(LIGHT))


@pytest.mark.slow
def test_a_served_model_answers_from_a_folder(here):
    Path("docs").mkdir()
    Path("docs/mill.txt").write_text("The sluice of the mill is kept by Tom Ferris.")
    settings = ["reader.prompt=short", "reader.span_reader=false", "llm.model=m"]
    with serving(lambda *_: Reply(text="Tom Ferris")) as server:
        settings.append(f"llm.base_url={server.url}")
        flags = [part for setting in settings for part in ("--set", setting)]
        asked = light("ask", "--docs", "docs", "--reader", "llm", *flags, "Who keeps the sluice?")
    assert asked.returncode == 0, asked.stderr
    assert "Tom Ferris" in asked.stdout


@pytest.mark.slow
def test_a_reader_that_needs_torch_says_so_in_one_line(here):
    Path("docs").mkdir()
    Path("docs/mill.txt").write_text("The sluice of the mill is kept by Tom Ferris.")
    asked = light("ask", "--docs", "docs", "Who keeps the sluice?")
    assert asked.returncode == 2
    assert asked.stderr.splitlines()[-1] == (
        "ifqa: this needs torch, which a light installation lacks; "
        "install the whole of ifqa (docs/installing.md)"
    )


@pytest.mark.slow
def test_the_server_says_what_it_needs_in_one_line(here):
    served = light("serve")
    assert served.returncode == 2
    [line] = served.stderr.splitlines()
    assert "which a light installation lacks" in line


@pytest.mark.slow
def test_doctor_tells_a_light_installation(here):
    assert "verdict: light: BM25, ranker and a served language model" in light("doctor").stdout
