"""The lines that a passage's id names are those on which its text stands, in each kind of file."""

import csv
import io
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.corpus.documents.chunking import parse_locator
from ifqa.corpus.documents.readers import read_request, suffix_of

#: Name of a file -> its text. Each word @ is to be read from the line on which it stands.
FILES = {
    "text.txt": "Heading @\n=======\n\nOne @\ntwo @.\n\n- an item @\n  goes on @\n",
    "quoted.csv": 'name,note,n\nr1,"@\n@\n\n@",1\nr2,@,2\nr3,"@ ""x""\n@",3\n',
    "quoted.tsv": 'name\tnote\tn\nr1\t"@\n@"\t1\nr2\t@\t2\nr3\t"open @\t3\nr4\t@\t4\n',
    "rows.json": '[\n{"a": "@",\n\n"b": "@", "c":\n"@"},\n{"a": "@"\n}, {"a": "@",\n"b": ["@",\n"@"]}]',
    "values.json": '{"a": "@",\n"b": {"c": ["@",\n"@"]}}',
    "lines.jsonl": '{"a": "@", "b": "@"}\n\n{"a": "@"}\n',
    "page.html": (
        "<h1>A @\n heading @</h1>\n<p>One @ <b\nclass=x>bold @</b> two\n@ <i>@</i></p>\n"
        "<table><tr><th>A</th>\n<th>B</th></tr>\n<tr><td>@\n@</td>\n<td>@</td></tr>\n"
        "<tr><td>@</td><td>7 <b>@\n@</b></td></tr><tr><td>@</td><td>@</td></tr></table>\n"
        "<ul><li>item @\n<li>item\n@ <sup>2</sup> @</ul>\n<pre>code @\ncode @</pre>"
        "<dl><dt>term @\n<dd>definition @\n</dl>"
    ),
    "page.md": (
        "# Heading @\n\nOne @\ntwo @  \nthree @\n\n| A | B |\n|---|---|\n| @ | @ |\n| @ | @ |\n\n"
        "- item @\n  goes on @\n- item @\n\n> quoted @\n> quoted @\n\n```\ncode @\ncode @\n```\n\n"
        "<table><tr><td>@\n</td><td>\n@</td></tr><tr><td>@</td><td>@</td></tr></table>\n"
    ),
    "page.rst": (
        "Heading @\n=========\n\nOne @\ntwo @\n\n+------+------+\n| A    | B    |\n+======+======+\n"
        "| @    | x    |\n| @    | @    |\n+------+------+\n| @    | y    |\n+------+------+\n\n"
        "=============  ========\nA              B\n=============  ========\n@      x\n"
        "               @\n@      @\n=============  ========\n\n"
        '.. csv-table:: @\n   :header: A, B\n\n   @, "x\n   @"\n   @, y\n\n'
        ".. list-table:: @\n\n   * - A @\n     - B\n       @\n   * - C\n     - @\n\n"
        ".. raw:: html\n\n   <p>@ <b>x\n   @</b></p>\n\nterm @\n   definition @\n   goes on @\n"
    ),
    "page.adoc": (
        "= Heading @\n\nOne @\ntwo @\n\n|===\n| A | B\n\n| @\n| x\n@\n| @ goes on\n\non @ | y\n|===\n"
        "* item @\n* item @\n\nterm @:: definition @\n"
    ),
    "page.org": "* Heading @\n\nOne @\ntwo @\n\n| A | B |\n|---+---|\n| @ | @ |\n| @ | x |\n- item @\n",
    "page.tex": (
        "\\section{A @\nheading @}\n\nOne @\\footnote{A note @\non two @ lines @} end @.\nTwo @\n"
        "\\begin{equation}\nx @\n= y @\n\\end{equation}\nand @ % comment\n$a @\n+ b @$ end @\n\n"
        "\\begin{tabular}{ll}\nA & B \\\\ \\hline\n@ & x\n@ \\\\\n@ &\n@ \\\\\n\\end{tabular}\n"
        "\\caption{One @\ntwo @}\n\\begin{itemize}\n\\item one @\ngoes on @\n\\end{itemize}\n"
        "\\begin{verbatim}\ncode @\ncode @\n\\end{verbatim}\n"
    ),
    "settings.ini": "[part]\na = @\nb = @\n  goes on @\n; this comment is prose: @\n",
    "settings.properties": "a = @\nb = x \\\n  @ \\\n  @\nc = @\n",
    "settings.yaml": (
        "a: @\nb: |\n  One @\n  two @\n\nc: >-\n  One @\n  two @\nd: [@, @,\n  @]\ne:\n  - f: @\n"
        "    g: @\n    h: 'One @\n      two @'\n  - f: @\ni: One @\n  two @\nj:\n- a long value @ of\n"
        "  several words @\n- another long value @ of words\n"
    ),
    "settings.toml": (
        'a = "@"\nb = """\nOne @\ntwo @"""\nc = ["@",\n  "@"]\n[[d]]\ne = "@"\nf = "@"\n\n'
        'g = ["@",\n"@"]\n[[d]]\ne = "@"\n[h]\ni = [\n  {j = "@"},\n  {j = "@"},\n]\n'
    ),
    "dates.ics": (
        "BEGIN:VCALENDAR\nX-WR-CALNAME:Calendar\nBEGIN:VEVENT\nSUMMARY:One @\nLOCATION:Hall @\n"
        "DESCRIPTION:Two @\n three @\nDTSTART:20240314T100000Z\nEND:VEVENT\nBEGIN:VEVENT\n"
        "SUMMARY:Four @\nEND:VEVENT\nEND:VCALENDAR\n"
    ),
    "people.vcf": (
        "BEGIN:VCARD\nFN:Nora @\nTITLE:Deputy @\nNOTE:Keeps @\n  books @\nEND:VCARD\n"
        "BEGIN:VCARD\nFN:Tom @\nEND:VCARD\n"
    ),
}  # fmt: skip


def passages(name, text, words):
    request = {"name": name, "suffix": suffix_of(name), "words": words, "overlap": 0, "columns": ()}
    _, lines = read_request(request, text.encode())
    return [json.loads(line) for line in lines.splitlines()]


def numbered(text):
    """A text with the number of its line in each word @."""
    lines = text.split("\n")
    return "\n".join(
        line.replace("@", f"at{number}line") for number, line in enumerate(lines, start=1)
    )


def lines_of(passage):
    """The numbers of the lines that a passage's text stands on."""
    return [int(number) for number in re.findall(r"at(\d+)line", passage["contents"])]


@pytest.mark.parametrize("words", [3, 100])
@pytest.mark.parametrize("name", FILES)
def test_a_passage_stands_on_the_lines_that_its_id_names(name, words):
    for passage in passages(name, numbered(FILES[name]), words):
        locator = parse_locator(passage["id"])
        assert locator
        outside = [n for n in lines_of(passage) if not locator.first <= n <= locator.last]
        assert not outside, passage


@pytest.mark.parametrize("name", FILES)
def test_each_marked_word_is_read(name):
    text = numbered(FILES[name])
    read = {n for passage in passages(name, text, 100) for n in lines_of(passage)}
    assert read == {int(number) for number in re.findall(r"at(\d+)line", text)}


CELLS = st.lists(st.sampled_from(["@", "@\n@", "\n@ x\n\n@", 'a "b"', "7"]), min_size=2, max_size=2)


@given(st.lists(CELLS, min_size=1, max_size=9), st.integers(1, 30))
def test_any_quoted_cells_stand_on_the_lines_of_their_passages(rows, words):
    csv.writer(content := io.StringIO(), lineterminator="\n").writerows([("A", "B"), *rows])
    for passage in passages("a.csv", numbered(content.getvalue()), words):
        locator = parse_locator(passage["id"])
        assert locator
        assert all(locator.first <= n <= locator.last for n in lines_of(passage))
