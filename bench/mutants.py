"""Mutation test of the package: the share of small seeded changes of its code that the tests notice.

    pip install --target /tmp/coverage coverage
    PYTHONPATH=/tmp/coverage python bench/mutants.py --seed 7 --count 150 --out verdicts.jsonl

It copies the repository to a folder beside --out, and changes only that copy. The suite runs there
once under coverage.py, without the tests in SLOW; this finds which tests execute each line. Then each
mutant runs the tests that execute its line, the fastest first. A mutant is one changed operator,
constant, returned value or statement of a function. The functions are drawn first, so that long ones
do not dominate. --out has a verdict a line: noticed, timeout (counts as noticed), survived, or not
reached. A killed run goes on after the last verdict if it is started again. Other code needs another
--out. --list prints the mutants and runs nothing.
"""

import argparse
import ast
import contextlib
import hashlib
import importlib.util
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Models, servers, processes and browsers take long and reach lines that other tests reach too.
SLOW = (
    "docs experiments kills serve/page cli/test_model_servers.py llms/test_transformers_serve.py"
    " workers/test_ray.py test_wheel.py"
)
BUDGET = 0.1  # of the time of all tests is for one mutant; a share, as a busy machine slows all
FEW = 3  # tests that execute a line
Z = 1.959964  # of a 95% interval

# Old and new text.
OPERATORS = {
    ast.Lt: "<, <=",
    ast.LtE: "<=, <",
    ast.Gt: ">, >=",
    ast.GtE: ">=, >",
    ast.Eq: "==, !=",
    ast.NotEq: "!=, ==",
    ast.In: "in, not in",
    ast.NotIn: "not in, in",
    ast.Is: "is, is not",
    ast.IsNot: "is not, is",
    ast.And: "and, or",
    ast.Or: "or, and",
    ast.Add: "+, -",
    ast.Sub: "-, +",
    ast.Mult: "*, //",
    ast.FloorDiv: "//, *",
}
RETURNED = {"str": '""', "int": "0"}  # by the function's annotation; else None
LOGS = re.compile(r"(logger|logging|warnings)\.")


@dataclass(frozen=True)
class Mutant:
    """A piece of a file, from one byte to another, and what replaces it."""

    file: str
    function: str
    kind: str
    start: int
    end: int
    new: str
    lines: tuple[int, ...]  # of the statement's head and of the piece
    change: str


def is_docstring_or_log(statement):
    if not isinstance(statement, ast.Expr):
        return False
    value = statement.value
    return isinstance(value, ast.Constant) or bool(LOGS.match(ast.unparse(value)))


def code_nodes(node, statement, function):
    """Node, its statement and its function, without annotations, f-strings and messages."""
    if isinstance(node, ast.stmt):
        statement = node
    yield node, statement, function
    if isinstance(node, ast.JoinedStr | ast.Raise | ast.Assert) or is_docstring_or_log(node):
        return
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        function = node
    for field, value in ast.iter_fields(node):
        if field not in ("annotation", "returns"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from code_nodes(child, statement, function)


def span(node):
    """Line and column of a node's beginning and of its end."""
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)


def operator_edits(kind, operands, operators):
    for left, right, operator in zip(operands[:-1], operands[1:], operators, strict=True):
        if texts := OPERATORS.get(type(operator)):
            yield kind, (span(left)[1], span(right)[0]), *texts.split(", ")


def expression_edits(node):
    """Kind, ends, old text or None for all between them, and new text."""
    if isinstance(node, ast.Compare):
        yield from operator_edits("comparison", [node.left, *node.comparators], node.ops)
    elif isinstance(node, ast.BoolOp):
        yield from operator_edits("and, or", node.values, [node.op] * (len(node.values) - 1))
    elif isinstance(node, ast.BinOp):
        yield from operator_edits("arithmetic", [node.left, node.right], [node.op])
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "not", span(node), None, f"({ast.unparse(node.operand)})"
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield "True, False", span(node), None, str(not node.value)
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield "integer", span(node), None, str(node.value + 1)


def statement_edits(node, function):
    if isinstance(node, ast.Return) and node.value:
        # None in place of a false constant would hardly be a change.
        if not isinstance(node.value, ast.Constant) or node.value.value:
            annotated = ast.unparse(function.returns) if function.returns else ""
            yield "return", span(node.value), None, RETURNED.get(annotated, "None")
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await):
        if not is_docstring_or_log(node):
            yield "removed call", span(node), None, "pass"
    elif isinstance(node, ast.Raise):
        yield "removed raise", span(node), None, "pass"
    # `not` has a kind of its own.
    elif isinstance(node, ast.If | ast.IfExp) and not isinstance(node.test, ast.UnaryOp):
        yield "branches", span(node.test), None, f"not ({ast.unparse(node.test)})"


def mutants_of(path):
    """The mutants of a file by function; a nested function belongs to its outer one."""
    source = path.read_bytes()
    starts = [0]
    for line in source.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    found = defaultdict(list)
    for name, function in functions(ast.parse(source)):
        parts = (code_nodes(statement, statement, function) for statement in function.body)
        for node, statement, inner in chain.from_iterable(parts):
            for kind, ends, old, new in [*expression_edits(node), *statement_edits(node, inner)]:
                start, end = (starts[line - 1] + column for line, column in ends)
                text = source[start:end].decode()
                change = f"{text} -> {new}"
                if old:
                    change = f"{ast.unparse(node)[:60]}: {old} -> {new}"
                    new = re.sub(
                        re.escape(old).replace(r"\ ", r"\s+"), lambda _, new=new: new, text, count=1
                    )
                lines = sorted({statement.lineno, *range(ends[0][0], ends[1][0] + 1)})
                file = str(path.relative_to(ROOT))
                change = " ".join(change.split())
                mutant = Mutant(file, name, kind, start, end, new, tuple(lines), change)
                found[name].append(mutant)
    return found


def functions(tree, prefix=""):
    """Name and node of each function that lies in no other."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name, node
        else:
            inner = f"{prefix}{node.name}." if isinstance(node, ast.ClassDef) else prefix
            yield from functions(node, inner)


def draw(seed, count):
    """A function, then a kind of change, then a change, each with equal chances."""
    rng = random.Random(seed)
    places = [
        mutants
        for path in sorted((ROOT / "ifqa").rglob("*.py"))
        for mutants in mutants_of(path).values()
    ]
    drawn = {}  # in order
    while len(drawn) < count:
        mutants = rng.choice(places)
        kind = rng.choice(sorted({mutant.kind for mutant in mutants}))
        drawn[rng.choice([mutant for mutant in mutants if mutant.kind == kind])] = True
    return list(drawn)


# What follows here are hooks of pytest, which loads this file as a plugin.


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    if "MUTANTS_MAP" in os.environ:
        import coverage

        coverage.Coverage.current().switch_context(item.nodeid)
    return (yield)


def pytest_runtest_logreport(report):
    if "MUTANTS_MAP" in os.environ and "PYTEST_XDIST_WORKER" not in os.environ:
        with open(os.environ["MUTANTS_MAP"], "a") as file:
            outcome = [report.nodeid, report.duration, report.outcome]
            file.write(json.dumps(outcome) + "\n")


def pytest_sessionfinish():
    if "MUTANTS_MAP" in os.environ:
        import coverage

        current = coverage.Coverage.current()
        current.stop()
        current.save()


def pytest_collection_modifyitems(items):
    if "MUTANTS_TESTS" in os.environ:
        wanted = json.loads(Path(os.environ["MUTANTS_TESTS"]).read_text())
        # The fastest files first; within a file the usual order, so that fixtures are made once.
        rank = {name: place for place, name in enumerate(dict.fromkeys(map(file_of, wanted)))}
        chosen = set(wanted)
        items[:] = [item for item in items if item.nodeid in chosen]
        items.sort(key=lambda item: rank[file_of(item.nodeid)])


def file_of(test):
    return test.partition("::")[0]


def copy_repository(copy):
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.check_output(listed, cwd=ROOT, text=True).split("\0"):
        if name and (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)


def code_digest():
    """The SHA-256 of the package and its tests."""
    digest = hashlib.sha256()
    for folder in ("ifqa", "tests"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def run_pytest(work, arguments, limit=None, **environment):
    """The exit status, None past the limit in seconds, and what pytest prints."""
    copy = work / "copy"
    options = [
        "-q",
        "--no-header",
        "--color=no",
        "-p",
        "no:cacheprovider",
        f"--basetemp={work}/tmp",
    ]
    paths = os.pathsep.join([str(copy), str(copy / "bench")])
    # Compiled modules are kept: each run would compile the package again.
    usual = {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "", "PYTHONPATH": paths}
    with open(work / "printed.txt", "w+") as printed:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, *arguments],
            cwd=copy,
            env=os.environ | usual | {"PYTEST_PLUGINS": "mutants"} | environment,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # also what the tests left running
            process.wait()
        printed.seek(0)
        return status, printed.read()


def make_map(work, processes):
    """Run the suite under coverage.py: which tests execute a line, and the time of each."""
    import coverage

    copy = work / "copy"
    copy_repository(copy)
    # Tests start processes whose PYTHONPATH has only the copy.
    (copy / "coverage").symlink_to(Path(coverage.__file__).parent)
    (copy / "sitecustomize.py").write_text(
        f"import os\nos.environ['COVERAGE_PROCESS_START'] = {str(work / 'settings.ini')!r}\n"
        "import coverage\ncoverage.process_startup()\n"
    )
    (work / "settings.ini").write_text(
        f"[run]\nparallel = true\ndata_file = {work}/coverage\ninclude = {copy}/ifqa/*\n"
        "context = ${PYTEST_CURRENT_TEST}\ndisable_warnings = no-data-collected\n"
    )
    (work / "outcomes.jsonl").unlink(missing_ok=True)
    ignored = [f"--ignore=tests/{path}" for path in SLOW.split()]
    workers = ["-n", str(processes), "--dist", "loadfile", "--no-loadscope-reorder"]
    _, printed = run_pytest(work, workers + ignored, MUTANTS_MAP=str(work / "outcomes.jsonl"))
    print(printed[-3000:], flush=True)
    (copy / "sitecustomize.py").unlink()
    (copy / "coverage").unlink()
    data = coverage.Coverage(data_file=str(work / "coverage"), config_file=False)
    data.combine([str(work)])
    data.save()
    (work / "outcomes.jsonl").rename(work / "map.jsonl")


def read_times(work):
    """Test -> seconds, for the tests that pass without a mutant."""
    times = defaultdict(float)
    failed = set()
    for line in (work / "map.jsonl").read_text().splitlines():
        test, seconds, outcome = json.loads(line)
        times[test] += seconds
        if outcome != "passed":
            failed.add(test)
    return {test: seconds for test, seconds in times.items() if test not in failed}


def choose_tests(mutant, work, times):
    """The tests for a mutant, the fastest first, and whether any of them executes its line.

    What a module runs when it is imported, or keeps after the first call, is credited to few tests
    or none, so the tests of its folder follow.
    """
    from coverage import CoverageData

    data = CoverageData(str(work / "coverage"))
    data.read()
    contexts = data.contexts_by_lineno(str(work / "copy" / mutant.file))
    names = {name for line in mutant.lines for name in contexts.get(line, [])}
    found = {re.sub(r" \((setup|call|teardown)\)$", "", name) for name in names} & times.keys()
    folder = set()
    if "" in names or len(found) < FEW:
        parts = Path(mutant.file).parts
        beginning = f"tests/{parts[1]}/" if len(parts) > 2 else f"tests/test_{parts[1]}"
        folder = {test for test in times if test.startswith(beginning)} - found
    budget = BUDGET * sum(times.values())
    chosen = {}
    for tests in (found, folder):
        for test in sorted(tests, key=lambda test: (times[test], test)):
            if not chosen or sum(chosen.values()) + times[test] <= budget:
                chosen[test] = times[test]
    return chosen, bool(found)


def try_mutant(mutant, work, times):
    """The verdict, the test that noticed and the seconds that it took."""
    chosen, reached = choose_tests(mutant, work, times)
    if not chosen:
        return {"verdict": "not reached", "tests": 0}
    limit = 120 + 3 * sum(chosen.values())
    (work / "tests.json").write_text(json.dumps(list(chosen)))
    path = work / "copy" / mutant.file
    source = path.read_bytes()
    # The time and size of the changed file may be those of the compiled one.
    compiled = Path(importlib.util.cache_from_source(path))
    started = time.monotonic()
    try:
        path.write_bytes(source[: mutant.start] + mutant.new.encode() + source[mutant.end :])
        compiled.unlink(missing_ok=True)
        files = dict.fromkeys(map(file_of, chosen))
        tests_file = str(work / "tests.json")
        status, printed = run_pytest(work, ["-x", *files], limit, MUTANTS_TESTS=tests_file)
    finally:
        path.write_bytes(source)
        compiled.unlink(missing_ok=True)
    by = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", printed, re.MULTILINE)
    passed = "survived" if reached else "not reached"
    verdict = {None: "timeout", 0: passed}.get(status, "noticed")
    seconds = round(time.monotonic() - started, 1)
    return {
        "verdict": verdict,
        "tests": len(chosen),
        "reached": reached,
        "by": by[1] if by else "",
        "status": status,
        "seconds": seconds,
    }


def wilson(successes, total):
    """The 95% interval of a share."""
    share = successes / total
    middle = (share + Z * Z / (2 * total)) / (1 + Z * Z / total)
    half = Z * (share * (1 - share) / total + Z * Z / (4 * total * total)) ** 0.5
    half /= 1 + Z * Z / total
    return middle - half, middle + half


def summarise(rows):
    counts = Counter(row["verdict"] for row in rows)
    noticed = counts["noticed"] + counts["timeout"]
    low, high = wilson(noticed, len(rows))
    for row in rows:
        if row["verdict"] in ("survived", "not reached"):
            print(f"{row['verdict']}: {place(row)}")
    for kind in sorted({row["kind"] for row in rows}):
        of_kind = [row["verdict"] in ("noticed", "timeout") for row in rows if row["kind"] == kind]
        print(f"{kind}: {sum(of_kind)} of {len(of_kind)} noticed")
    print(", ".join(f"{verdict} {number}" for verdict, number in counts.most_common()))
    print(f"noticed {noticed} of {len(rows)}: {noticed / len(rows):.1%} [{low:.1%}, {high:.1%}]")


def place(row):
    return (
        f"{row['file']}:{row['lines'][-1]} {row['function']} ({row['kind']}) {row['change'][:150]}"
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--processes", type=int, default=2, help="of the run under coverage.py")
    parser.add_argument("--out", type=Path, default=Path("build/mutants.jsonl"))
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    options = parser.parse_args()
    mutants = draw(options.seed, options.count)
    if options.list:
        print("\n".join(place(asdict(mutant)) for mutant in mutants))
        return
    work = options.out.resolve().with_suffix(".work")
    code = work / "code.txt"
    if not (work / "map.jsonl").exists():
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        code.write_text(code_digest())
        make_map(work, options.processes)
    if code.read_text() != code_digest():
        sys.exit(f"{work} is of other code: name another --out")
    copy_repository(work / "copy")  # a killed run may have left a mutant
    times = read_times(work)
    rows = []
    if options.out.exists():
        rows = [json.loads(line) for line in options.out.read_text().splitlines()]
    for mutant, row in zip(mutants, rows, strict=False):
        if mutant.change != row["change"]:
            sys.exit(f"{options.out} is of another seed: name another --out")
    with open(options.out, "a") as out:
        for mutant in mutants[len(rows) :]:
            rows.append(asdict(mutant) | try_mutant(mutant, work, times))
            out.write(json.dumps(rows[-1]) + "\n")
            out.flush()
            print(f"{len(rows)} {rows[-1]['verdict']}: {place(rows[-1])}", flush=True)
    summarise(rows)


if __name__ == "__main__":
    main()
