"""The notebooks run on the sample and with other parameters, and their saved outputs equal those of
a run.
"""

import base64
import re
import runpy
import shutil
from pathlib import Path

import pytest

from ifqa.config.experiment import load_experiment
from ifqa.config.overrides import override, write_resolved

pytestmark = pytest.mark.slow

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

FOLDER = Path(__file__).parents[2] / "experiments" / "notebooks"
RUN = runpy.run_path(str(FOLDER / "run.py"))
FIGURES = {
    "questions": 2,
    "closed_vs_open_book": 1,
    "retrieval": 3,
    "errors": 1,
    "causalqa": 1,
    "wiqa": 2,
}
#: Cells whose numbers, or whole outputs, depend on the CPU: it decides the precision of vectors,
#: and so of confidences.
NUMBERS_DIFFER = {"answer", "ask", "compared", "table"}
ALL_DIFFERS = {"apart"}
#: A cell that deletes earlier notebooks' names; %reset also collects garbage, which takes half a
#: second.
FORGET = """
kept = globals().get("kept", {*globals(), "kept"})
for _ in globals().keys() - kept:
    del globals()[_]
"""
FEW = 12  # questions; reading the whole sample with the span reader takes half a minute

#: Test id -> (notebook, replaced parameters, expected output).
RUNS = {
    "questions": ("questions", "", "sample: train, dev, hard"),
    "closed_vs_open_book": (
        "closed_vs_open_book",
        "",
        "83 questions; closed book: sample-closed-book, open book: sample-llm",
    ),
    "closed_vs_open_book of others": (
        "closed_vs_open_book",
        (
            'open_book = "sample-llm+limit=4"\nclosed_book = '
            '"sample-closed-book+limit=4"\nfactual_of = ""'
        ),
        "4 questions; closed book: sample-closed-book+limit=4, open book: sample-llm+limit=4",
    ),
    "retrieval": ("retrieval", "", "83 questions; sample-hard, sample-hybrid"),
    "retrieval of others": (
        "retrieval",
        'experiments = ["sample-llm+limit=4"]\nvaried = "sample-llm+limit=4"',
        "4 questions; sample-llm+limit=4",
    ),
    "errors of a part": (
        "errors",
        f'experiment = "sample-hard+limit={FEW}"\nfactual_of = "sample-llm-steps"\nexamples = 1',
        f"sample-hard+limit={FEW}: {FEW} questions; the real world's answer is told of 81",
    ),
    "causalqa of a part": (
        "causalqa",
        'benchmark, split = "sample-causal", "dev"\n'
        'retrieved, context = "sample-causal+limit=4", "sample-causal-context+limit=4"',
        "45 questions of sample-causal dev",
    ),
    "wiqa": ("wiqa", "", "93 questions of sample-wiqa test, 3 paragraphs"),
}


def code_cells(book):
    return [cell for cell in book.cells if cell.cell_type == "code"]


def parameters_cell(book):
    cell = code_cells(book)[0]
    assert cell.metadata.get("tags") == ["parameters"]
    return cell


@pytest.fixture(scope="module")
def workplace(sample_llm_run, tmp_path_factory):
    """A working directory for all runs, with indexes, `sample-llm` and variants of experiments.

    Runs add the rest.
    """
    folder = tmp_path_factory.mktemp("notebooks")
    for part in ("indexes", "experiments"):
        shutil.copytree(sample_llm_run / part, folder / part)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in (
            "sample-hard",
            "sample-llm",
            "sample-closed-book",
            "sample-causal",
            "sample-causal-context",
        ):
            write_resolved(
                override(load_experiment(name), {"limit": FEW if name == "sample-hard" else 4})
            )
    return folder


@pytest.fixture(scope="module")
def kernel(workplace, tmp_path_factory):
    """One kernel for all runs, so that models and libraries are loaded once."""
    with pytest.MonkeyPatch.context() as patch:
        for variable, setting in RUN["ENVIRONMENT"].items():
            patch.setenv(variable, setting)
        for variable in RUN["SETTINGS"]:
            patch.setenv(variable, str(tmp_path_factory.mktemp("jupyter")))
        client = RUN["client"](nbformat.v4.new_notebook(), workplace)
        with client.setup_kernel():
            yield client


@pytest.fixture(scope="module", params=RUNS)
def notebook_run(request, kernel):
    """A notebook's name, the notebook after a run, whether its parameters are unchanged, and the
    expected output.
    """
    name, replaced, printed = RUNS[request.param]
    book = RUN["opened"](name)
    if replaced:
        parameters_cell(book).source = f'{replaced}\nfigures = "figures"\ncolumns = 1\n'
    kernel.nb = book
    kernel.reset_execution_trackers()
    for number, cell in enumerate([nbformat.v4.new_code_cell(FORGET), *book.cells], start=-1):
        kernel.execute_cell(cell, number)
    return name, book, not replaced, printed


def outputs(book):
    return [output for cell in code_cells(book) for output in cell.outputs]


def visible_outputs(book):
    """Cell id -> printed text and tables."""
    texts = {}
    for cell in code_cells(book):
        bundles = [output.get("data", {"stdout": output.get("text")}) for output in cell.outputs]
        texts[cell.id] = [
            {kind: text for kind, text in bundle.items() if kind != "image/png"}
            for bundle in bundles
        ]
    return texts


def portable_outputs(book):
    """The visible outputs that are equal on every CPU."""
    texts = visible_outputs(book)
    number = r"(?:&lt; )?[+-]?\d+\.?\d*"
    masked = {cell: re.sub(number, "#", str(texts[cell])) for cell in NUMBERS_DIFFER & texts.keys()}
    return {cell: text for cell, text in (texts | masked).items() if cell not in ALL_DIFFERS}


def test_a_notebook_runs_with_any_parameters_and_draws_its_figures(notebook_run, workplace):
    name, book, is_unchanged, printed = notebook_run
    streams = {"stdout": "", "stderr": ""}
    for output in outputs(book):
        assert output.output_type != "error"
        if output.get("name") in streams:
            streams[output.name] += output.text
    assert printed in streams["stdout"]
    warnings = [line for line in streams["stderr"].splitlines() if "Warning" in line]
    # tqdm's, without ipywidgets
    assert [line for line in warnings if "TqdmWarning" not in line] == []
    images = [
        output.data["image/png"]
        for output in outputs(book)
        if "image/png" in output.get("data", {})
    ]
    assert len(images) == FIGURES[name]
    if not is_unchanged:
        assert len([*(workplace / "figures").glob("*.pdf")]) >= FIGURES[name]
    assert all(base64.b64decode(image).startswith(b"\x89PNG") for image in images)


def test_a_saved_notebook_has_the_outputs_of_a_run(notebook_run):
    """Except `errors` and `causalqa`, which take half a minute on all questions."""
    name, book, is_unchanged, _ = notebook_run
    if is_unchanged:
        RUN["tidy"](book)
        saved = portable_outputs(RUN["opened"](name))
        assert saved == portable_outputs(book), f"run: python experiments/notebooks/run.py {name}"


@pytest.mark.parametrize("name", FIGURES)
def test_a_notebook_is_saved_after_a_complete_run_without_traces_of_the_machine(name):
    book = RUN["opened"](name)
    nbformat.validate(book)
    cells = code_cells(book)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert {output.get("name", "stdout") for output in outputs(book)} == {"stdout"}
    assert book.metadata.keys() == {"kernelspec", "language_info"}
    assert [cell.metadata for cell in book.cells if cell is not parameters_cell(book)] == [{}] * (
        len(book.cells) - 1
    )
    places = ("/tmp", "/home", "/root", "/work", "site-packages", "Traceback")
    assert [place for place in places if place in str(visible_outputs(book))] == []
