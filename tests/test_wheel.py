"""What is in the distributions, and what is not."""

import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
LIST = ROOT / "tests/wheel.txt"


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


def wheel_content(folder):
    """The names in a wheel of this checkout, with no version in them."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    return sorted(re.sub(r"^ifqa-[^/]+\.dist-info/", "ifqa.dist-info/", name) for name in names)


def test_the_wheel_has_the_files_of_the_list(tmp_path):
    listed = LIST.read_text().splitlines()
    content = wheel_content(tmp_path)
    renew = "if this is meant, commit the files and run: python tests/test_wheel.py"
    assert content == listed, renew


if __name__ == "__main__":  # writes the list again; read the difference before you commit it
    with tempfile.TemporaryDirectory() as folder:
        LIST.write_text("\n".join(wheel_content(Path(folder))) + "\n")
