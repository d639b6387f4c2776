"""The structure of the package: imports point one way."""

import ast
from collections import defaultdict
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "ifqa"

# Ten layers. A part imports only parts of its own layer, without a cycle, and of the layers below
# it. `plugins` loads classes by name, so it can stand low.
LAYERS = [
    ["__main__", "__init__", "cli"],
    ["serve", "api", "tasks"],
    ["report"],
    ["companions"],
    ["pipeline", "training"],
    ["retrieval", "reading", "llms", "benchmarks", "config"],
    ["corpus", "scoring", "prompting", "models", "formats"],
    ["plugins", "outside_plugins", "storage", "workers"],
    ["protocols", "settings"],
    ["records", "errors", "clauses", "formatting", "progress", "tracing", "version"],
]


def modules():
    """Dotted name -> file of every module; a folder's `__init__` has the folder's name."""
    files = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return files


@cache
def parse(path):
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes_by_kind(path):
    """Kind -> the nodes of that kind in a file."""
    kinds = defaultdict(list)
    for node in ast.walk(parse(path)):
        kinds[type(node)].append(node)
    return kinds


@cache
def imports():
    """Module -> modules of the package that it imports, at its top or within a function."""
    known = modules()
    targets_of = {}
    for name, path in known.items():
        targets: set[str] = set()
        for node in ast.walk(parse(path)):
            if isinstance(node, ast.ImportFrom) and node.module:
                targets |= {f"{node.module}.{name.name}" for name in node.names} & known.keys() or {
                    node.module
                }
            elif isinstance(node, ast.Import):
                targets |= {name.name for name in node.names}
        targets_of[name] = (targets & known.keys()) - {name}
    return targets_of


def part(name):
    """The folder or file right below the package that a module lies in."""
    return name.split(".")[1] if "." in name else "__init__"


def part_imports():
    """Part -> the other parts it imports."""
    parts: defaultdict[str, set[str]] = defaultdict(set)
    for name, targets in imports().items():
        parts[part(name)] |= {part(target) for target in targets} - {part(name)}
    return dict(parts)


def cycles(graph):
    """All import cycles; each cycle found is cut at one import, and the search goes on."""
    graph = {name: set(targets) for name, targets in graph.items()}
    cycles_found = []
    while True:
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            cycle = error.args[1]  # each is imported by the next
            cycles_found.append(" <- ".join(cycle))
            graph[cycle[1]].discard(cycle[0])
        else:
            return cycles_found


def level(name):
    return next(n for n, layer in enumerate(LAYERS) if name in layer)


def test_imports_point_one_way():
    pairs = [(module, target) for module, targets in imports().items() for target in targets]
    upward = [pair for pair in pairs if level(part(pair[1])) < level(part(pair[0]))]
    assert [f"{module} may not import {target}" for module, target in upward] == []


def test_imports_have_no_cycle():
    assert cycles(imports()) == []
    assert cycles(part_imports()) == []


# A language model's answers are explained by the span reader
MADE_OF_OTHERS = {"ifqa.reading.agent.reader", "ifqa.reading.cascade", "ifqa.reading.llm"}


@pytest.mark.parametrize("kind", ["retriever", "reader", "llm"])
def test_a_plugin_imports_another_only_if_it_is_made_of_it(kind):
    from ifqa.plugins import plugin_names

    plugins = {target.partition(":")[0] for target in plugin_names(kind).values()}
    for plugin in plugins - MADE_OF_OTHERS:
        assert not imports()[plugin] & plugins


COMPANIONS = ("ifqa.companions.causalqa", "ifqa.companions.wiqa")


@pytest.mark.parametrize("companion", COMPANIONS)
def test_a_companion_is_imported_by_its_own_modules_alone(companion):
    """The door is `ifqa.plugins`, which names the package by a string."""
    pairs = [(module, target) for module, targets in imports().items() for target in targets]
    outside = [
        f"{module} may not import {target}"
        for module, target in pairs
        if f"{target}.".startswith(f"{companion}.") and not f"{module}.".startswith(f"{companion}.")
    ]
    assert outside == []


def test_each_companion_is_named_in_the_house_rules():
    folders = sorted(path.parent for path in (PACKAGE / "companions").glob("*/__init__.py"))
    assert [f"ifqa.companions.{folder.name}" for folder in folders] == list(COMPANIONS)


def test_tests_import_no_private_name():
    private = [
        f"{place} {name.name}"
        for place, node in nodes(ast.ImportFrom)
        if place.startswith(("tests", "bench")) and (node.module or "").startswith("ifqa")
        for name in node.names
        if name.name.startswith("_")
    ]
    assert private == []


def test_no_file_lies_deeper_than_three_folders():
    assert [path for path in modules().values() if len(path.relative_to(PACKAGE).parts) > 3] == []


def test_the_readme_has_at_most_12000_bytes():
    assert len((ROOT / "README.md").read_bytes()) <= 12_000


SOURCES = [
    path for folder in ("ifqa", "tests", "bench", "docs") for path in (ROOT / folder).rglob("*.py")
]


def nodes(kind):
    """File, line and node of each node of a kind in the repository's Python files."""
    for path in sorted(SOURCES):
        for node in nodes_by_kind(path).get(kind, ()):
            yield f"{path.relative_to(ROOT)}:{node.lineno}", node


def names(node):
    return {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}


def joins_statements(node):
    """Whether a tuple was assembled to save a line; swaps, and pairs of constants, may stand."""
    target = node.targets[0]
    value = node.value
    if not (isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)):
        return False
    if len(target.elts) != len(value.elts) or names(target) & names(value):
        return False
    return len(value.elts) > 2 or not all(isinstance(part, ast.Constant) for part in value.elts)


def test_each_name_is_assigned_by_a_statement_of_its_own():
    assert [place for place, node in nodes(ast.Assign) if joins_statements(node)] == []


def test_no_conditional_expression_is_within_another():
    nested = [
        place
        for place, node in nodes(ast.IfExp)
        if any(isinstance(child, ast.IfExp) and child is not node for child in ast.walk(node))
    ]
    assert nested == []
