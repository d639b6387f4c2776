"""AsciiDoc, Org and LaTeX: headings, lists, tables and marks, without their markup."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mixed_documents import runs, text_runs

from ifqa.corpus.documents.chunking import chunk_document
from ifqa.corpus.documents.readers import READERS


def sentences(suffix, content):
    """The lines of the passages of a document."""
    unit, _ = READERS[suffix]
    passages = chunk_document(f"a{suffix}", text_runs(suffix, content), unit, 10_000)
    return [line for passage in passages for line in passage.text.split("\n")]


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("= Mill\n:who: Nora\n\n== Part\nKept by {who}.", ["Mill. Part. Kept by Nora."]),
        ("* Ann\n** Bo\n* Cy\n\nEnd.", ["Ann.", "Bo.", "Cy.", "End."]),
        (". One\n.. a\n. Two\n\nText.\n\n. One", ["1. One.", "a. a.", "2. Two.", "Text.", "1. One."]),
        ("[start=4]\n. One\n. Two", ["4. One.", "5. Two."]),
        ("3. One\n4. Two", ["3. One.", "4. Two."]),
        ("Chair:: Nora\nDeputy::\n\n  Tom", ["Chair: Nora.", "Deputy: Tom."]),
        (
            ".Prices\n[cols=\"3*\",options=\"header\"]\n|===\n|Item |Old |New\n\n|Lamp\n|\n|30\n\n2+|Chair |99\n|===\nEnd.",
            ["Prices", "Item: Lamp; New: 30.", "Item: Chair; Old: Chair; New: 99.", "End."],
        ),
        ("|===\n|Item |Cost\n\n|Lamp |30\n|===", ["Item: Lamp; Cost: 30."]),
        ("|===\n.2+|Elm |3\n|4\n|Oak |5\n|===", ["Elm; 3.", "Elm; 4.", "Oak; 5."]),
        ("6 × 10^24^ kg, H~2~O, [line-through]#old# new", ["6 × 10^24 kg, H2O, new"]),
        ("See https://x.y/z[the site], <<a,part>> and link:b[it].", ["See the site, part and it."]),
        ("----\n*x*\n----\n////\nno\n////\n// no\nNOTE: Mind *it*.", ["*x* Note: Mind it."]),
    ],
)  # fmt: skip
def test_asciidoc_is_read_without_markup(content, shown):
    assert sentences(".adoc", content) == shown


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("#+TITLE: Mill\n* Part :tag:\nText.", ["Mill. Part. Text."]),
        ("- Ann\n- Bo\n  Carr\n\n1. One\n2. Two", ["Ann.", "Bo Carr.", "1. One.", "2. Two."]),
        ("- Chair :: Nora\n- [X] done", ["Chair: Nora.", "[X] done."]),
        (
            "| Item | Old | New |\n|---+---+---|\n| Lamp | | 30 |\n| Bed | 9 | |",
            ["Item: Lamp; New: 30.", "Item: Bed; Old: 9."],
        ),
        ("*Bold* /it/ =c= +old+ [[http://x][link]][fn:1] 10^24", ["Bold it c link [1] 10^24"]),
        ("# no\n:PROPERTIES:\n:ID: no\n:END:\nText.", ["Text."]),
        ("* A\na\n* COMMENT B\nb\n** C\nc\n* D\nd", ["A. a", "D. d"]),
        ("#+BEGIN_SRC\n*x*\n#+END_SRC\n#+BEGIN_COMMENT\nno\n#+END_COMMENT", ["*x*"]),
        ("a snake_case and 1 + 2 + 3 and /usr/bin", ["a snake_case and 1 + 2 + 3 and /usr/bin"]),
    ],
)
def test_org_is_read_without_markup(content, shown):
    assert sentences(".org", content) == shown


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (
            "\\documentclass{a}no\\title{The \\emph{Mill}}\n\\begin{document}\n\\section[s]{Part}\nText.\n\\end{document}",
            ["The Mill. Part. Text."],
        ),
        (
            "\\begin{enumerate}\n\\item One\n\\begin{enumerate}\\item in\\end{enumerate}\n\\item Two\n\\end{enumerate}",
            ["1. One.", "(a) in.", "2. Two."],
        ),
        (
            "\\begin{itemize}\\item Ann\n\\item Bo\\end{itemize}\n\\begin{description}\\item[Chair] Nora\\end{description}",
            ["Ann.", "Bo.", "Chair: Nora."],
        ),
        (
            "\\begin{tabular}{l|rr}\\toprule\nItem & Old & New \\\\ \\midrule\nLamp & & 30 \\\\ % no\n"
            "\\multicolumn{2}{c}{\\bf Chair} & 99\\\\[2pt]\n\\end{tabular}",
            ["Item: Lamp; New: 30.", "Item: Chair; Old: Chair; New: 99."],
        ),
        (
            "\\begin{tabular}{ll}{\\bf Item} & Cost\\\\\\hline Lamp & 30\\\\ Bed \\& desk & 40\\end{tabular}",
            ["Item: Lamp; Cost: 30.", "Item: Bed & desk; Cost: 40."],
        ),
        (
            "\\begin{tabularx}{\\textwidth}{lX}\\multirow{2}{*}{Elm} & 3\\\\ & 4\\\\\\end{tabularx}",
            ["Elm; 3.", "Elm; 4."],
        ),
        ("caf\\'e \\\"{u}ber \\c{c}a 5\\,\\% -- ``x''~y", ["café über ça 5 % – “x” y"]),
        ("10\\textsuperscript{24} \\sout{old} \\textbf{new}\\footnote{So.}", ["10^24 new (So.)"]),
        ("costs 5\\$, $x^2$ and \\(a_1\\), or $3", ["costs 5$, $x^2$ and \\(a_1\\), or $3"]),
        ("a % no\nb\\%c \\verb|x_%| see \\cite{k} \\href{u}{l}", ["a b%c x_% see [k] l"]),
        ("\\begin{verbatim}\n\\x % y\n\\end{verbatim}\n\\begin{comment}no\\end{comment}", ["\\x % y"]),
        ("\\newcommand{\\x}[1]{no}\\setlength{\\a}{2pt}\\includegraphics[w=1]{no}Text", ["Text"]),
        ("one\n\ntwo {un \\begin{closed", ["one two un closed"]),
    ],
)  # fmt: skip
def test_latex_is_read_without_commands(content, shown):
    assert sentences(".tex", content) == shown


def test_the_place_of_a_row_of_latex_is_its_line():
    table = (
        "x\n\n\\begin{tabular}{ll}\nItem & Cost \\\\\n\\midrule\nLamp & 30 \\\\\n\\end{tabular}\ny"
    )
    assert [(place, text) for place, _, text in runs(".tex", table)] == [
        (1, "x"),
        (6, "Item: Lamp; Cost: 30."),
        (8, "y"),
    ]


@given(
    st.text("\\{}[]$%&~'`|=*_+-#.:^ \nabu1", max_size=200),
    st.sampled_from([".adoc", ".org", ".tex"]),
)
def test_any_text_is_read(content, suffix):
    assert all(place > 0 for place, _, _ in runs(suffix, content))
