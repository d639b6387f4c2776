"""Documents of every kind with a drawn structure, some of them damaged: none ends its reader's process or goes beyond its limits.

IFQA_DRAWN=200 draws so many of each kind; the tests draw a few.
"""

import html
import io
import json
import os
import zipfile
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mixed_documents import docx, epub, pdf

from ifqa.corpus.documents.decoding import Unreadable
from ifqa.corpus.documents.readers import Cutting, read_request
from ifqa.corpus.documents.worker import Worker

EXAMPLES = int(os.environ.get("IFQA_DRAWN", "8"))
SECONDS, MEMORY = 10.0, 1 << 30  # much less than a user's limits

WORDS = st.sampled_from(
    "the lamp of Bergen 1901 Smørås 東京 U.S. (x) a_b *c* `d` [e](f) <g> &h; | ; , \" ' # ## == -- \\ \x1b[31m \u2028 ﬁ é".split(
        " "
    )
)
TEXT = st.lists(WORDS, min_size=1, max_size=30).map(" ".join)
BLOCKS = st.lists(
    st.tuples(st.sampled_from(["text", "text", "heading", "item", "table", "code"]), TEXT), min_size=1, max_size=40
)


def markdown(blocks):
    marks = {"text": "", "heading": "## ", "item": "  * ", "table": "| a | b |\n|---|---|\n| ", "code": "```\n"}
    ends = {"table": " | x |", "code": "\n```"}
    return "\n\n".join(f"{marks[kind]}{text}{ends.get(kind, '')}" for kind, text in blocks)


def page(blocks):
    tags = {"text": "p", "heading": "h2", "item": "li", "table": "td", "code": "pre"}
    return "".join(f"<{tags[kind]}>{html.escape(text)}</{tags[kind]}>" for kind, text in blocks)


def rows(blocks, mark):
    return "name,what\n".replace(",", mark) + "\n".join(
        f'"{kind}"{mark}"{text.replace(chr(34), chr(34) * 2)}"' for kind, text in blocks
    )


def packed(write, *parts):
    made = io.BytesIO()
    write(made, *parts)
    return made.getvalue()


def shown(text):
    """The text without what XML or a PDF of Windows-1252 cannot hold."""
    return html.escape("".join(char for char in text if char.isprintable()))


def latin(text):
    return shown(text).encode("cp1252", "ignore").decode("cp1252")


MAKERS = {
    ".txt": lambda blocks: "\n\n".join(text for _, text in blocks).encode(),
    ".md": lambda blocks: markdown(blocks).encode(),
    ".rst": lambda blocks: "\n\n".join(f"{text}\n{'=' * len(text)}" if kind == "heading" else text for kind, text in blocks).encode(),
    ".html": lambda blocks: page(blocks).encode(),
    ".csv": lambda blocks: rows(blocks, ",").encode(),
    ".tsv": lambda blocks: rows(blocks, "\t").encode(),
    ".jsonl": lambda blocks: "\n".join(json.dumps({kind: text, "n": [1, {"m": None}]}) for kind, text in blocks).encode(),
    ".docx": lambda blocks: packed(docx, [("berschrift1" if kind == "heading" else "Standard", shown(text)) for kind, text in blocks]),
    ".epub": lambda blocks: packed(epub, [page(blocks[:5]), page(blocks[5:])]),
    ".pdf": lambda blocks: pdf(
        [[latin(text) for _, text in blocks[at : at + 8]] for at in range(0, len(blocks), 8)],
        [(latin(text), 0) for kind, text in blocks if kind == "heading" and latin(text).strip()],
    ),
}  # fmt: skip
MUTATIONS = st.lists(
    st.tuples(st.sampled_from(["cut", "double", "flip", "put"]), st.floats(0, 1), st.integers(1, 40)), max_size=2
)


def mutated(data, mutations):
    for what, share, length in mutations:
        at = int(share * len(data))
        part = data[at : at + length]
        put = {
            "cut": b"",
            "double": part * 50,
            "flip": bytes(byte ^ 0x55 for byte in part),
            "put": b"[<{\x07" * length + part,
        }
        data = data[:at] + put[what] + data[at + length :]
    return data


def repacked(data, mutations):
    """An archive of which one part is damaged before it is packed."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        for number, name in enumerate(old.namelist()):
            new.writestr(name, mutated(old.read(name), mutations if number == len(mutations) else ()))
    return made.getvalue()


@pytest.fixture(scope="module")
def worker():
    worker = Worker(f"{read_request.__module__}:{read_request.__name__}", SECONDS, MEMORY)
    yield worker
    worker.close()


@pytest.mark.parametrize("ending", MAKERS)
def test_a_drawn_document_is_read_or_left_out(ending, worker):
    outcomes = Counter()
    is_archive = ending in (".docx", ".epub")

    @settings(max_examples=EXAMPLES, derandomize=True, deadline=None, database=None)
    @given(BLOCKS, st.one_of(st.just([]), MUTATIONS), st.booleans())
    def read(blocks, mutations, inside):
        data = MAKERS[ending](blocks)
        data = repacked(data, mutations) if is_archive and inside else mutated(data, mutations)
        request = {"name": f"drawn{ending}", "suffix": ending, **vars(Cutting())}
        try:
            worker.read(request, data)
            outcomes["read"] += 1
        except Unreadable as error:
            outcomes[str(error).partition("(")[0]] += 1

    read()
    assert not [reason for reason in outcomes if reason.startswith(("it takes more than", "its reader ended"))]
    if EXAMPLES >= 100:
        print(ending, dict(outcomes.most_common(4)))
        assert outcomes["read"] >= 0.6 * outcomes.total()
