"""The house stays as the README draws it: imports point one way, files are short, the tree and the options are true."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

from ifqa.plugins import names

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "ifqa"
MODULES = sorted(PACKAGE.rglob("*.py"))

# A folder may import those below it. `plugins` names what it loads by strings, so it stands low.
LAYERS = [
    ["__main__"],
    ["cli"],
    ["report"],
    ["pipeline"],
    ["config"],
    ["benchmarks"],
    ["training"],
    ["retrieval", "reading"],
    ["prompting"],
    ["llms"],
    ["models"],
    ["formats"],
    ["scoring"],
    ["corpus"],
    ["storage"],
    ["workers", "plugins"],
    ["settings"],
    ["records", "errors", "progress", "__init__"],
]
PLUGIN_KINDS = ["retriever", "reader", "llm"]


def part(module):
    """The name a module has in LAYERS: its own, or its folder's."""
    return module.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(module):
    """What of ifqa a module imports, as dotted names."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "ifqa":
            yield from [f"{node.module}.{name.name}" for name in node.names] if node.module == "ifqa" else [node.module]


def level(name):
    return next(n for n, layer in enumerate(LAYERS) if name in layer)


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_one_way(module):
    own = part(module)
    for name in imported(module):
        other = name.split(".")[1]
        if other == "__version__" or other == own:
            continue
        assert level(other) > level(own), f"{own} may not import {name}"


@pytest.mark.parametrize("kind", PLUGIN_KINDS)
def test_plugins_do_not_import_one_another(kind):
    plugins = {target.partition(":")[0] for target in names(kind).values()}
    for plugin in plugins:
        module = ROOT / (plugin.replace(".", "/") + ".py")
        assert not plugins.intersection(imported(module)) - {plugin}


def test_no_file_is_too_long_to_read():
    assert {str(path): n for path in MODULES if (n := len(path.read_text().splitlines())) > 300} == {}


def test_the_readme_draws_the_tree_as_it_is():
    tree = (ROOT / "README.md").read_text().split("## The tree")[1].split("```")[1]
    drawn, folders = set(), []
    for line in tree.splitlines():
        match = re.match(r"( *)(\S+)(?: +\S|$)", line)
        if not match:
            continue
        depth = len(match[1]) // 2
        folders = [*folders[:depth], match[2]]
        drawn.add("".join(folders))
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    there = {
        path
        for path in tracked
        if path.startswith("ifqa/") and path.endswith(".py") and not path.endswith("__init__.py")
    }
    assert there - drawn == set(), "not in the README's tree"
    assert {path for path in drawn if not (ROOT / path).exists()} == set(), "in the README's tree, but not there"


def test_the_readme_names_every_verb():
    from typer.main import get_command

    from ifqa.cli.app import app

    readme = (ROOT / "README.md").read_text()
    for verb in get_command(app).commands:
        assert f"ifqa {verb}" in readme, verb
