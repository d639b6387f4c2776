"""The work to read a document grows as its bytes: lines of Python that run, counted, since times differ from run to run."""

import sys

import pytest

from ifqa.corpus.documents.cutting import cut
from ifqa.corpus.documents.reading import READERS

PROSE = "The keeper lit the lamp at nine and wrote it down.\n"
DOCUMENTS = {
    "lines.log": lambda n: "".join(f"12:00:{line} worker {line} took 9 ms\n" for line in range(n)),
    "prose.txt": lambda n: PROSE * n,
    "paragraph.txt": lambda n: PROSE.replace("\n", " ") * n,
    "headings.md": lambda n: "# x\n" * n,
    "bars.md": lambda n: "|" * n,
    "headings.rst": lambda n: "x\n===\n\n" * n,
    "rows.csv": lambda n: "name,what\n" + "".join(f"{row},lamp\n" for row in range(n)),
    "wide.csv": lambda n: f'name,what\n1,"{PROSE * n}"\n',
    "keys.jsonl": lambda n: "".join(f'{{"{"key" * 50}": {row}}}\n' for row in range(n)),
    "headings.html": lambda n: "<h2>x</h2><p>The lamp.</p>" * n,
    "nested.html": lambda n: "<div>" * n + "The lamp.",
}


def steps(name, data):
    """Lines of Python that run while a document is cut into passages."""
    unit, reader = READERS["." + name.rpartition(".")[2]]
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        count += event == "line"
        return trace

    sys.settrace(trace)
    try:
        for _ in cut(name, reader(data.encode(), ()), unit):
            pass
    finally:
        sys.settrace(None)
    return count


@pytest.mark.parametrize("name", DOCUMENTS)
def test_twice_the_bytes_are_twice_the_work(name):
    once, twice = (steps(name, DOCUMENTS[name](n)) for n in (2_000, 4_000))
    assert twice < 2.3 * once
