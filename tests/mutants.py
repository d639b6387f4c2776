"""Do the tests notice a fault? Draws small faults of the source by a seed, and runs the tests that reach each.

    pip install pytest-cov
    python tests/mutants.py reach OUT                      which tests reach which line; runs all tests under coverage
    python tests/mutants.py draw OUT --count 300 --seed 1  the mutants, as OUT/mutants.jsonl
    python tests/mutants.py run OUT                        OUT/results.jsonl; resumes where it was stopped
    python tests/mutants.py compare OUT OTHER              mutants that OUT's tests kill and OTHER's do not

Each mutant is written into the source while its tests run, so work in a checkout of its own. A mutant whose tests take over
60 seconds counts as killed by time; a mutant that no test reaches survives.
"""

import argparse
import ast
import collections
import json
import random
import sqlite3
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SECONDS = 60
COMPARE = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
ARITHMETIC = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "/", ast.Mod: "*"}


def replacement(node):
    """The faulty text of a node, or None if the node gets no fault."""
    text = ast.unparse
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return f"{text(left)} {COMPARE[type(op)]} {text(right)}"
        case ast.BoolOp(op=op, values=values):
            word = " or " if isinstance(op, ast.And) else " and "
            return "(" + word.join(f"({text(value)})" for value in values) + ")"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return f"({text(operand)})"
        case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC:
            return f"({text(left)}) {ARITHMETIC[type(op)]} ({text(right)})"
        case ast.Constant(value=bool(value)):
            return str(not value)
        case ast.Constant(value=int(value)):
            return str(value + 1)
        case ast.Return(value=ast.expr() as value) if text(value) != "None":
            return "return None"
        case ast.Raise() | ast.Expr(value=ast.Call()):
            return "pass"
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return f"({text(orelse)}) if ({text(test)}) else ({text(body)})"
    return None


def sites(path):
    """Places of one line in a module that can get a fault; annotations and f-strings get none."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = set()
    for node in ast.walk(tree):
        parts = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        if isinstance(node, ast.JoinedStr):  # before Python 3.12 the places within it are wrong
            parts.append(node)
        skipped |= {id(inner) for part in parts if isinstance(part, ast.AST) for inner in ast.walk(part)}
    for node in ast.walk(tree):
        if id(node) in skipped or getattr(node, "lineno", 0) != getattr(node, "end_lineno", None):
            continue
        if (fault := replacement(node)) is not None:
            yield {
                "file": str(path.relative_to(ROOT)),
                "line": node.lineno,
                "start": node.col_offset,
                "end": node.end_col_offset,
                "fault": fault,
            }


def draw(out, count, seed):
    """Draw mutants from all sites of the package, each as likely as the other."""
    every = [site for path in sorted((ROOT / "ifqa").rglob("*.py")) for site in sites(path)]
    drawn = random.Random(seed).sample(every, count)
    (out / "mutants.jsonl").write_text("".join(json.dumps(mutant) + "\n" for mutant in drawn), encoding="utf-8")
    print(f"{count} of {len(every):,} mutants")


def reach(out):
    """Run all tests under coverage, with each test as a context."""
    (ROOT / ".coverage").unlink(missing_ok=True)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-n",
        "2",
        "--dist",
        "loadfile",
        "--cov=ifqa",
        "--cov-context=test",
        "--cov-report=",
    ]
    code = subprocess.run([*command, "-p", "no:cacheprovider"], cwd=ROOT, check=False).returncode
    (ROOT / ".coverage").replace(out / "coverage.sqlite")
    sys.exit(code)


def tests_of_lines(out):
    """(file, line) -> the tests that run that line, those that run the least first."""
    database = sqlite3.connect(out / "coverage.sqlite")
    lines = collections.defaultdict(set)
    size = collections.Counter()
    rows = database.execute(
        "SELECT path, context, numbits FROM line_bits JOIN file ON file.id = file_id JOIN context ON context.id = context_id"
    )
    for path, context, bits in rows:
        test = context.rpartition("|")[0]
        if not test:
            continue
        name = path[path.rindex("/ifqa/") + 1 :]
        for number, byte in enumerate(bits):
            for bit in range(8):
                if byte >> bit & 1:
                    lines[name, number * 8 + bit].add(test)
                    size[test] += 1
    return {place: sorted(tests, key=lambda test: (size[test], test)) for place, tests in lines.items()}


def outcome(mutant, tests, arguments):
    """What the tests say of a mutant: killed, survived, time or unreached."""
    if not tests:
        return "unreached"
    path = ROOT / mutant["file"]
    source = path.read_bytes()
    lines = source.splitlines(keepends=True)
    line = lines[mutant["line"] - 1]
    lines[mutant["line"] - 1] = line[: mutant["start"]] + mutant["fault"].encode() + line[mutant["end"] :]
    arguments.write_text("\n".join(tests), encoding="utf-8")
    try:
        path.write_bytes(b"".join(lines))
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "-p",
            "no:cacheprovider",
            "--durations=0",
            f"@{arguments}",
        ]
        done = subprocess.run(command, cwd=ROOT, timeout=SECONDS, capture_output=True, check=False)
    except subprocess.TimeoutExpired:
        return "time"
    finally:
        path.write_bytes(source)
    return "survived" if done.returncode == 0 else "killed"


def run(out):
    """Run the tests of each mutant that has no result yet."""
    mutants = [json.loads(line) for line in (out / "mutants.jsonl").read_text(encoding="utf-8").splitlines()]
    results = out / "results.jsonl"
    results.touch()
    done = len(results.read_text(encoding="utf-8").splitlines())
    reached = tests_of_lines(out)
    for number, mutant in enumerate(mutants[done:], done + 1):
        tests = reached.get((mutant["file"], mutant["line"]), [])
        said = outcome(mutant, tests, out / "tests.txt")
        with results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(mutant | {"outcome": said, "tests": len(tests)}) + "\n")
        print(f"{number}/{len(mutants)} {said:9} {mutant['file']}:{mutant['line']} {mutant['fault']:.60}", flush=True)
    print(collections.Counter(row["outcome"] for row in rows_of(out)))


def rows_of(out):
    """The results of a folder."""
    return [json.loads(line) for line in (out / "results.jsonl").read_text(encoding="utf-8").splitlines()]


def compare(out, other):
    """Print the mutants that the tests of one folder kill and those of the other do not."""
    killed = ("killed", "time")
    pairs = list(zip(rows_of(out), rows_of(other), strict=True))
    lost = [after for before, after in pairs if before["outcome"] in killed and after["outcome"] not in killed]
    for row in lost:
        print(f"{row['outcome']:9} {row['file']}:{row['line']} {row['fault']}")
    before, after = (sum(row[side]["outcome"] in killed for row in pairs) for side in (0, 1))
    print(f"killed: {before} before, {after} after, {len(lost)} lost, of {len(pairs)}")


def main():
    """Run a verb of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("reach", "draw", "run", "compare"))
    parser.add_argument("out", type=Path)
    parser.add_argument("other", type=Path, nargs="?")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    out = options.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    match options.verb:
        case "reach":
            reach(out)
        case "draw":
            draw(out, options.count, options.seed)
        case "run":
            run(out)
        case "compare":
            compare(out, options.other)


if __name__ == "__main__":
    main()
