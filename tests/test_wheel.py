"""What is in the distributions, and what is not."""

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent


@pytest.fixture
def checkout(tmp_path):
    """A copy of this checkout, with a user's own experiment and corpus beside the tracked files."""
    folder = tmp_path / "checkout"
    for name in ("ifqa", "experiments", "indexes", "prompts"):
        shutil.copytree(
            ROOT / name,
            folder / name,
            ignore=shutil.ignore_patterns("__pycache__", "*.safetensors"),
        )
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "CHANGELOG.md"):
        shutil.copy(ROOT / name, folder)
    for command in (["init", "--quiet"], ["add", "--all"]):
        subprocess.run(["git", "-C", str(folder), *command], check=True)
    for name in ("experiments/mine.toml", "indexes/docs-mine.toml"):
        (folder / name).write_text("private = true\n")
    return folder


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_untracked_files_are_in_no_distribution(tmp_path, checkout, kind):
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(tmp_path / "dist")]
    subprocess.run(command, cwd=checkout, capture_output=True, check=True)
    (built,) = (tmp_path / "dist").iterdir()
    if kind == "wheel":
        names = zipfile.ZipFile(built).namelist()
    else:
        with tarfile.open(built) as archive:
            names = archive.getnames()
    assert any(name.endswith("experiments/sample.toml") for name in names)
    assert not [name for name in names if name.endswith(("mine.toml", "docs-mine.toml"))]


def test_the_wheel_has_only_what_a_run_of_the_sample_needs(tmp_path):
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    names = zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist()
    tracked = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()
    package = {name for name in tracked if name.startswith("ifqa/")}
    tracked.remove("experiments/RESULTS.jsonl")  # of this repository's own runs
    tables = ("experiments/", "indexes/", "prompts/")
    # Nobody needs them to run
    tracked = [name for name in tracked if not name.startswith("bench/")]
    settings = {
        f"ifqa/bundled/{n}"
        for n in tracked
        if n.endswith((".toml", ".jsonl", ".ipynb")) and n.startswith(tables)
    }
    assert {name for name in names if ".dist-info/" not in name} == package | settings
