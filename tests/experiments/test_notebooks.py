"""The notebooks run on the sample and with other parameters, and their saved outputs equal those of a run."""

import base64
import re
import runpy
import shutil
from pathlib import Path

import plots
import pytest

from ifqa.config.experiment import load_experiment
from ifqa.config.overrides import override, write_resolved

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

FOLDER = Path(__file__).parents[2] / "experiments" / "notebooks"
RUN = runpy.run_path(str(FOLDER / "run.py"))
FIGURES = {"questions": 2, "closed_vs_open_book": 1, "retrieval": 3, "errors": 1, "causalqa": 1, "wiqa": 2}  # of each
#: Cells of `retrieval` whose numbers, or whole outputs, differ on another CPU, because the vectors' precision does.
NUMBERS_DIFFER, ALL_DIFFERS = {"table", "compared"}, {"apart"}
#: A cell that deletes what earlier notebooks defined; %reset also collects garbage, which takes half a second.
FORGET = """
kept = globals().get("kept", {*globals(), "kept"})
for _ in globals().keys() - kept:
    del globals()[_]
"""
FEW = 12  # questions; reading the whole sample with the span reader takes half a minute

#: Each notebook as it is, or with other parameters: (notebook, parameters), and what is then printed somewhere.
RUNS = {
    "questions": ("questions", "", "sample: train, dev, hard"),
    "closed_vs_open_book": ("closed_vs_open_book", "", "8 questions; closed book: sample-closed-book, open book: sample-llm"),
    "closed_vs_open_book of others": (
        "closed_vs_open_book",
        'open_book = "sample-llm+limit=4"\nclosed_book = "sample-closed-book+limit=4"',
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
        f'experiment = "sample-hard+limit={FEW}"\nfactual_of = "sample-llm"\nexamples = 1',
        f"sample-hard+limit={FEW}: {FEW} questions; the real world's answer is told of 7",
    ),
    "causalqa of a part": (
        "causalqa",
        'benchmark, split = "sample-causal", "dev"\n'
        'retrieved, context = "sample-causal+limit=4", "sample-causal-context+limit=4"',
        "45 questions of sample-causal dev",
    ),
    "wiqa": ("wiqa", "", "93 questions of sample-wiqa test, 3 paragraphs"),
}  # fmt: skip


def code_cells(book):
    return [cell for cell in book.cells if cell.cell_type == "code"]


def parameters(book):
    first = code_cells(book)[0]
    assert first.metadata.get("tags") == ["parameters"]
    return first


@pytest.fixture(scope="module")
def workplace(sample_indexes, tmp_path_factory):
    """A working directory for all runs, with indexes and a few variants of experiments; each run makes what is missing."""
    folder = tmp_path_factory.mktemp("notebooks")
    shutil.copytree(sample_indexes, folder / "indexes")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, limit in (
            ("sample-hard", FEW), ("sample-llm", 4), ("sample-closed-book", 4), ("sample-causal", 4), ("sample-causal-context", 4)
        ):  # fmt: skip
            write_resolved(override(load_experiment(name), {"limit": limit}))
    return folder


@pytest.fixture(scope="module")
def kernel(workplace, tmp_path_factory):
    """One kernel for all runs, so that models and libraries are loaded once."""
    with pytest.MonkeyPatch.context() as patch:
        for variable, value in RUN["ENVIRONMENT"].items():
            patch.setenv(variable, value)
        for variable in RUN["SETTINGS"]:
            patch.setenv(variable, str(tmp_path_factory.mktemp("jupyter")))
        client = RUN["client"](nbformat.v4.new_notebook(), workplace)
        with client.setup_kernel():
            yield client


@pytest.fixture(scope="module", params=RUNS)
def ran(request, kernel):
    """A notebook's name, the notebook after a run, whether its parameters are unchanged, and the expected output."""
    name, replaced, printed = RUNS[request.param]
    book = RUN["opened"](name)
    if replaced:
        parameters(book).source = replaced
    kernel.nb = book
    kernel.reset_execution_trackers()
    for number, cell in enumerate([nbformat.v4.new_code_cell(FORGET), *book.cells], start=-1):
        kernel.execute_cell(cell, number)
    return name, book, not replaced, printed


def outputs(book):
    return [output for cell in code_cells(book) for output in cell.outputs]


def shown(book):
    """Cell id -> what a reader sees except figures: printed text and tables."""
    seen = {}
    for cell in code_cells(book):
        data = [output.get("data", {"stdout": output.get("text")}) for output in cell.outputs]
        seen[cell.id] = [{kind: value for kind, value in one.items() if kind != "image/png"} for one in data]
    return seen


def anywhere(seen):
    """The same, without outputs that differ on another CPU."""
    number = r"(?:&lt; )?[+-]?\d+\.?\d*"
    masked = {cell: re.sub(number, "#", str(seen[cell])) for cell in NUMBERS_DIFFER & seen.keys()}
    return {cell: value for cell, value in (seen | masked).items() if cell not in ALL_DIFFERS}


def test_a_notebook_runs_to_its_end_with_any_parameters_and_draws_its_figures(ran):
    name, book, _, printed = ran
    out, err = (
        "".join(output.text for output in outputs(book) if output.get("name") == stream)
        for stream in ("stdout", "stderr")
    )
    assert printed in out
    assert not [output for output in outputs(book) if output.output_type == "error"]
    warned = [line for line in err.splitlines() if "Warning" in line]
    assert [line for line in warned if "TqdmWarning" not in line] == []  # tqdm's, where there are no ipywidgets
    images = [output.data["image/png"] for output in outputs(book) if "image/png" in output.get("data", {})]
    assert len(images) == FIGURES[name]
    assert all(base64.b64decode(image).startswith(b"\x89PNG") for image in images)


def test_a_notebook_is_kept_with_what_a_run_shows_now(ran):
    """Except `errors` and `causalqa`, which take half a minute on all questions."""
    name, book, as_kept, _ = ran
    if as_kept:
        RUN["tidy"](book)
        kept = RUN["opened"](name)
        assert anywhere(shown(kept)) == anywhere(shown(book)), f"run: python experiments/notebooks/run.py {name}"


@pytest.mark.parametrize("name", FIGURES)
def test_a_notebook_is_kept_after_a_whole_run_with_nothing_of_the_machine(name):
    book = RUN["opened"](name)
    nbformat.validate(book)
    cells = code_cells(book)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert {output.get("name", "stdout") for output in outputs(book)} == {"stdout"}
    assert book.metadata.keys() == {"kernelspec", "language_info"}
    assert [cell.metadata for cell in book.cells if cell is not parameters(book)] == [{}] * (len(book.cells) - 1)
    places = ("/tmp", "/home", "/root", "/work", "site-packages", "Traceback")
    assert [place for place in places if place in str(shown(book))] == []


def test_intervals_are_drawn_in_rows_with_a_legend_for_several():
    from matplotlib.figure import Figure

    assert plots.percent([0.0, 1.0, 1.0, 1.0])[0] == 75
    one, two = Figure().subplots(1, 2)
    plots.draw_intervals(one, {"": {"EM": (50.0, 40.0, 60.0)}}, "score (%)")
    several = {"a": {"EM": (50.0, 40.0, 60.0), "F1": (60.0, 60.0, 60.0)}, "b": {"F1": (1.0, 1.1, 2.0)}}
    plots.draw_intervals(two, several, "")
    assert one.get_legend() is None
    assert [text.get_text() for text in two.get_legend().get_texts()] == ["a", "b"]
    assert [tick.get_text() for tick in two.get_yticklabels()] == ["EM", "F1"]
    (points, _, _), (others, _, _) = two.containers
    assert list(points.get_xdata()) == [50.0, 60.0]
    assert 0 < points.get_ydata()[1] < 1 < others.get_ydata()[0]  # in one row, one over the other
