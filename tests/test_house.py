"""The structure of the package: imports point one way."""

import ast
from collections import defaultdict
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "ifqa"

# Nine layers. A part imports only parts of its own layer, without a cycle, and of the layers below it. `plugins` loads classes by
# name, so it can stand low.
LAYERS = [
    ["__main__", "__init__", "cli"],
    ["serve", "api"],
    ["report"],
    ["pipeline", "training"],
    ["retrieval", "reading", "llms", "benchmarks", "config"],
    ["corpus", "scoring", "prompting", "models", "formats"],
    ["plugins", "storage", "workers"],
    ["protocols", "settings"],
    ["records", "errors", "formatting", "progress", "version"],
]


def modules():
    """Dotted name -> file of every module; a folder's `__init__` has the folder's name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def imports():
    """Module -> modules of the package that it imports, at its top or within a function."""
    known = modules()
    found = {}
    for name, path in known.items():
        targets = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                targets |= {f"{node.module}.{name.name}" for name in node.names} & known.keys() or {node.module}
            elif isinstance(node, ast.Import):
                targets |= {name.name for name in node.names}
        found[name] = (targets & known.keys()) - {name}
    return found


def part(name):
    """The folder or file right below the package that a module lies in."""
    return name.split(".")[1] if "." in name else "__init__"


def part_imports():
    """Part -> the other parts it imports."""
    found = defaultdict(set)
    for name, targets in imports().items():
        found[part(name)] |= {part(target) for target in targets} - {part(name)}
    return dict(found)


def cycles(graph):
    """All import cycles; each cycle that is found is cut at one import, and the search goes on."""
    graph = {name: set(targets) for name, targets in graph.items()}
    found = []
    while True:
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            cycle = error.args[1]  # each is imported by the next
            found.append(" <- ".join(cycle))
            graph[cycle[1]].discard(cycle[0])
        else:
            return found


def level(name):
    return next(n for n, layer in enumerate(LAYERS) if name in layer)


def test_imports_point_one_way():
    between = [(one, other) for one, targets in imports().items() for other in targets if part(one) != part(other)]
    assert [f"{one} may not import {other}" for one, other in between if level(part(other)) < level(part(one))] == []


def test_imports_have_no_cycle():
    assert cycles(imports()) == []
    assert cycles(part_imports()) == []


def test_a_cycle_is_found():
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) != []


@pytest.mark.parametrize("kind", ["retriever", "reader", "llm"])
def test_plugins_do_not_import_one_another(kind):
    from ifqa.plugins import plugin_names

    plugins = {target.partition(":")[0] for target in plugin_names(kind).values()}
    for plugin in plugins:
        assert not imports()[plugin] & plugins


def test_no_file_lies_deeper_than_three_folders():
    assert [path for path in modules().values() if len(path.relative_to(PACKAGE).parts) > 3] == []


def test_the_readme_has_at_most_12000_bytes():
    assert len((ROOT / "README.md").read_bytes()) <= 12_000
