"""Every shell and Python block of the docs runs as it stands: offline, without a key, on the
bundled sample.

The blocks of a page run in order in a folder of its own. The experiment `sample` has only a few
questions, except on pages that show scores of all. A block that cannot run has `<!-- not run:
REASON -->` above it. A block whose first line is a comment with a file's name is saved as that
file. A text block below a shell block has lines that its commands print; `...` stands for omitted
text.
"""

import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from ifqa.cli.app import main
from ifqa.storage import resources

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"(?:<!-- not run: (.+?) -->\n)?^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FEW = 10  # questions of `sample`
OF_ALL = {"plugins"}  # pages that show scores of all questions, with readers that take no time
# Pages that build the sample's indexes themselves; the others take some seconds less
BUILDS = {"index"}
NAMED = re.compile(r"# ([\w./-]+\.(?:py|toml|jsonl))\b")


class Block(NamedTuple):
    why_not: str  # it is not run
    kind: str  # "sh", "python", "toml", "text" or ""
    text: str


def blocks(page):
    return [Block(*match) for match in FENCE.findall(page.read_text(encoding="utf-8"))]


def commands(text):
    """The commands of a shell block without comments.

    Those that go on in the next line, and here-documents, are whole.
    """
    commands_found: list[str] = []
    end = ""
    for line in text.replace("\\\n", " ").splitlines():
        if end:  # within a here-document
            commands_found[-1] += "\n" + line
            end = "" if line == end else end
            continue
        line = re.sub(r"(^|\s)#.*", "", line).strip()
        if line:
            commands_found.append(line)
        if here := re.search(r"<<'?(\w+)'?", line):
            end = here[1]
    return commands_found


def not_printed(text, printed):
    """The lines of a text block that were not printed.

    `...` ends the beginning of a line, or stands for any lines.
    """
    lines = [_comparable(line) for line in printed.splitlines()]
    shown = [_comparable(line) for line in text.splitlines() if line.strip() not in ("", "...")]
    return [
        line
        for line in shown
        if line not in lines and not any(_begins(other, line) for other in lines)
    ]


def _comparable(line):
    # Its last digit depends on the processor
    return re.sub(r"confidence \d+%", "confidence N%", line).rstrip()


def _begins(line, shown):
    return shown.endswith("...") and line.startswith(shown.removesuffix("...").rstrip())


def run_command(line):
    words = shlex.split(line.partition("\n")[0])
    if words[0] == "ifqa" and not {"|", "||", "&&", ">", ">>", "test"} & set(words):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", words)
            with pytest.raises(SystemExit) as ended:
                main()
        assert ended.value.code in (0, None), line
    else:
        environment = os.environ | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        }
        done = subprocess.run(
            ["bash", "-ec", line], env=environment, check=True, capture_output=True, text=True
        )
        print(done.stdout, done.stderr)


@pytest.fixture
def _own_folder(page, sample_indexes, tmp_path, tmp_path_factory, monkeypatch):
    if page.stem not in BUILDS:
        shutil.copytree(sample_indexes, tmp_path / "indexes")
    if page.stem not in OF_ALL:  # all 83 questions of `sample` take a minute to read
        whole = (ROOT / "experiments" / "sample.toml").read_text(encoding="utf-8")
        few = tmp_path_factory.mktemp("few") / "experiments" / "sample.toml"
        few.parent.mkdir()
        few.write_text(f"limit = {FEW}\n" + whole.partition("[expected")[0])
        places = resources._resource_folders
        monkeypatch.setattr(
            resources,
            "_resource_folders",
            lambda root: [(every := places(root))[0], few.parent.parent, *every[1:]],
        )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    known = set(sys.modules)
    path = list(sys.path)
    yield
    for name in set(sys.modules) - known:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
    sys.path[:] = path


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.exists()], ids=lambda page: page.stem
)
@pytest.mark.usefixtures("_own_folder")
def test_the_blocks_of_a_page_run_as_they_stand(page, capsys):
    printed = None
    for why_not, kind, text in blocks(page):
        named = NAMED.match(text)
        if kind == "text" and printed is not None:
            assert not_printed(text, printed) == [], f"this is printed:\n{printed}"
        printed = None
        if kind in ("python", "toml", "json") and named:
            Path(named[1]).parent.mkdir(parents=True, exist_ok=True)
            Path(named[1]).write_text(text, encoding="utf-8")
        elif kind == "python" and not why_not:
            exec(compile(text, f"{page.name}, a block", "exec"), {"__name__": "__main__"})
        elif kind == "sh" and not why_not:
            capsys.readouterr()
            for line in commands(text):
                run_command(line)
            printed = "".join(capsys.readouterr())


def test_generated_docs_are_current():
    written = runpy.run_path(str(ROOT / "docs/write.py"))["written"]()
    stale = [
        path.name for path, text in written.items() if path.read_text(encoding="utf-8") != text
    ]
    assert stale == [], "run: python docs/write.py"


def test_the_site_builds_without_a_warning(tmp_path):
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--quiet",
        "--strict",
        "--site-dir",
        str(tmp_path / "site"),
    ]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


PATH = re.compile(r"`((?:ifqa/|bench/|docs/|tests/|[a-z_]+/)[\w/.-]*\.(?:py|md|toml|sh))`")


@pytest.mark.parametrize("page", sorted(path.name for path in (ROOT / "docs").glob("*.md")))
def test_the_files_that_a_page_names_exist(page):
    """A path starts at the root or in the package; names in capitals stand for a user's own."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    names = {name for name in PATH.findall(text) if name == name.lower()}
    users = ("experiments/mine", "indexes/", "prompts/", "data/", "models/", "experiments/", "my_")
    homes = (ROOT, ROOT / "ifqa")
    ours = [name for name in names if any((home / Path(name).parts[0]).is_dir() for home in homes)]
    missing = [name for name in ours if not any((home / name).exists() for home in homes)]
    assert [name for name in missing if not name.startswith(users)] == []
