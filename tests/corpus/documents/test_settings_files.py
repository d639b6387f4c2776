"""INI, Java properties, YAML and TOML: each value with its keys, lists of mappings as rows."""

import pytest
from mixed_documents import runs, text_runs

from ifqa.corpus.documents.chunking import chunk_document
from ifqa.corpus.documents.readers import READERS


def sentences(suffix, content):
    """The lines of the passages of a document."""
    unit, _ = READERS[suffix]
    passages = chunk_document(f"a{suffix}", text_runs(suffix, content), unit, 10_000)
    return [line for passage in passages for line in passage.text.split("\n")]


@pytest.mark.parametrize(
    ("suffix", "content", "shown"),
    [
        (".ini", "a = 1\n[server]\nport: 80\n", ["a: 1.", "server › port: 80."]),
        (".cfg", "[x]\nurl = \"http://a:1\"\nlong = a\n  b\n", ["x › url: http://a:1.", "x › long: a b."]),
        (".conf", "# The port of the server.\n#Port 22\nPort 23\n", ["The port of the server.", "Port 23."]),
        (".conf", "# port = 22 is the default\nlisten http://x;", ["listen http://x;"]),
        (".properties", "# no\na.b = c \\\n  d\nk\\u00e9y:v\nx y", ["a.b: c d.", "kéy: v.", "x: y."]),
        (".yaml", "a:\n  b: 1\n  c: [x, y]\n", ["a › b: 1.", "a › c: x, y."]),
        (
            ".yml",
            "people:\n- name: Nora\n  age: 3\n- name: Tom\n  home: {town: Leeds}\n",
            ["people › name: Nora; age: 3.", "people › name: Tom; home › town: Leeds."],
        ),
        (
            ".yaml",
            "- name: Nora\n  phones:\n  - {kind: home, n: 1}\n  age: 3\n",
            ["name: Nora.", "phones › kind: home; n: 1.", "name: Nora; age: 3."],
        ),
        (
            ".yaml",
            "steps:\n- Do this thing first, then that.\n- Do that thing next.\n",
            ["steps: Do this thing first, then that.", "steps: Do that thing next."],
        ),
        (".yaml", "- a: |\n    one\n    two\n  b: 2\n", ["a: one two; b: 2."]),
        (".yaml", "a: &x hi\nb: *x\nc: &y {d: 1}\ne: *y\n", ["a: hi.", "b: hi.", "c › d: 1.", "e: *y."]),
        (".yaml", "a: !Ref x\n---\nb: null\nc: ~\nd: 2\n", ["a: x.", "d: 2."]),
        (".yaml", "# The port of the server.\na: |\n  # not a comment this is\n", ["The port of the server.", "a: # not a comment this is."]),
        (".yaml", "a: {{ b }}\n{% if c %}\n", ["a: {{ b }}.", "{% if c %}."]),
        (".toml", "a = 1\n[x.y]\nb = [\"c\", # no\n \"d\"]\n", ["a: 1.", "x › y › b: c, d."]),
        (
            ".toml",
            "[[people]]\nname = \"Nora\"\nage = 3\n[[people]]\nname = \"Tom\"\n",
            ["people › name: Nora; age: 3.", "people › name: Tom."],
        ),
        (".toml", "x = [{a = 1, b = 2}]\ny.z = true\n", ["x › a: 1; b: 2.", "y › z: true."]),
        (".toml", "a = \"\"\"x [\n# y\n\"\"\"\nb = 2026-01-02\n", ["a: x [ # y.", "b: 2026-01-02."]),
        (".toml", "a = \nb = 2\n", ["a =.", "b = 2."]),
        (".ndjson", '{"a": 1, "b": 2}\n{"a": 3, "b": 4}\n', ["a: 1; b: 2.", "a: 3; b: 4."]),
        (".json", '{"a": 1, "b": 2}\n{"a": 3, "b": 4}\n', ["a: 1; b: 2.", "a: 3; b: 4."]),
    ],
)  # fmt: skip
def test_a_setting_is_a_sentence_with_its_keys(suffix, content, shown):
    assert sentences(suffix, content) == shown


@pytest.mark.parametrize(
    ("suffix", "content", "lines"),
    [
        (".ini", "[a]\n\nb = 1\nc = 2\n", [3, 4]),
        (".yaml", "a:\n\n  b: 1\n  c:\n  - x\n  - y\n", [3, 5]),
        (".toml", "[a]\n\nb = 1\nc = [\n 1]\nd = 2\n", [3, 4, 6]),
        (".properties", "a=1\\\n2\nb=3\n", [1, 3]),
    ],
)
def test_the_place_of_a_setting_is_its_line(suffix, content, lines):
    assert [place for place, _, _ in runs(suffix, content)] == lines


def test_an_alias_of_yaml_repeats_no_collection():
    bomb = "a0: &a0 [x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30)
    )
    assert sum(len(text) for _, _, text in runs(".yaml", bomb)) < 3 * len(bomb)
