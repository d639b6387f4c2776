"""The verbs of `ifqa train` are made from the trainers, without importing what trains."""

import subprocess
import sys
from pathlib import Path

import pytest
from command_line import ifqa_here

from ifqa.plugins import load_plugin, plugin_names
from ifqa.settings import setting_fields

HEAVY = ("torch", "transformers", "sklearn", "faiss")


@pytest.fixture(scope="module")
def helps() -> dict[str, str]:
    """The help of each verb, of one process that then says which heavy libraries it has
    imported.
    """
    code = (
        "import sys\nfrom ifqa.cli.app import parser\n"
        f"for name in {[*plugin_names('trainer')]!r}:\n    parser()(['train', name, "
        "'--help'], standalone_mode=False)\n    print('=' * 9)\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code],
        env={"COLUMNS": "2000", "TERM": "dumb", "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=True,
    )
    *texts, heavy = shown.stdout.split("=" * 9)
    assert heavy.strip() == "[]"
    return dict(zip(plugin_names("trainer"), texts, strict=True))


def settings_in_help(text: str) -> tuple[str, set[str]]:
    """The setting of the example, and all that are listed after it."""
    sentence = text.partition("Change a setting, such as ")[2].partition(". Repeatable")[0]
    example, _, listed = sentence.partition("; the settings are ")
    return example.partition("=")[0], set(listed.split(", "))


@pytest.mark.parametrize("name", plugin_names("trainer"))
def test_the_help_has_every_setting(name: str, helps: dict[str, str]) -> None:
    settings = setting_fields(load_plugin("trainer", name).Settings)
    flags = {setting for setting in settings if f"--{setting} " in helps[name]}
    _, listed = settings_in_help(helps[name])
    assert listed == {*settings} - flags


@pytest.mark.parametrize("name", plugin_names("trainer"))
def test_the_example_of_the_help_changes_a_listed_setting(name: str, helps: dict[str, str]) -> None:
    example, listed = settings_in_help(helps[name])
    assert example in listed


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("extractive", {"--reading", "--corpus", "--seed", "--seeds"}),
        ("fid", {"--recipe", "--dev", "--experiment", "--corpus", "--seed", "--seeds"}),
        ("choice", {"--seed", "--seeds"}),
    ],
)
def test_a_trainer_has_the_flags_that_it_declares(
    name: str, flags: set[str], helps: dict[str, str]
) -> None:
    common = {"--benchmark", "--split", "--to", "--set", "--quiet", "--help"}
    words = {word for word in helps[name].split() if word.startswith("--") and word[2:].isalpha()}
    assert words == common | flags


def test_a_trainer_of_the_user_is_a_verb(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "class Marker:\n    def __init__(self, *, text: str = 'a'): self.text = text\n"
        "    benchmark, split, corpus = 'sample', 'train', None\n"
        "    def train(self, data, folder, dev):\n        folder.mkdir(parents=True, "
        "exist_ok=True)\n"
        "        (folder / 'mark').write_text(f'{self.text} {len(data.questions)}')\n"
    )
    done = ifqa_here("train", "mine:Marker", "--set", "text=b", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "models/Marker\n"), done.stderr
    assert (tmp_path / "models/Marker/mark").read_text() == "b 34"
    assert ifqa_here("train", "mine:Marker", "--set", "txt=b", folder=tmp_path).returncode == 2
    done = ifqa_here("train", "fidd", folder=tmp_path)
    assert (done.returncode, "Did you mean 'fid'" in done.stderr) == (2, True), done.stderr


def test_each_seed_is_trained_into_a_folder_of_its_own(tmp_path: Path) -> None:
    Path(tmp_path, "mine.py").write_text(
        "class Marker:\n    benchmark, split, corpus = 'sample', 'train', None\n"
        "    def __init__(self, seed: int = 0): self.seed = seed\n"
        "    def train(self, data, folder, dev):\n        folder.mkdir(parents=True, exist_ok=True)\n"
        "        (folder / 'made').write_text(str(self.seed))\n"
    )
    command = ["train", "mine:Marker", "--seed", "4", "--seeds", "2"]
    assert ifqa_here(*command, folder=tmp_path).returncode == 0
    assert ifqa_here(*command, "--to", "{seed}/m", folder=tmp_path).returncode == 0
    for name, seed in {"models/Marker-4": "4", "models/Marker-5": "5", "5/m": "5"}.items():
        assert (tmp_path / name / "made").read_text() == seed
