"""Figures: what they draw, which names they show, and that nothing overlaps or leaves the page."""

import math
import re
from itertools import pairwise

import numpy as np
import pytest
from prediction_files import run_answers
from scipy.stats import binomtest

from ifqa.pipeline.run import Run
from ifqa.report import plots
from ifqa.report.scores import load_scores

plt = pytest.importorskip("matplotlib.pyplot")

SERIES = {
    "a": {"EM": (50.0, 40.0, 60.0), "F1": (60.0, 60.0, 60.0)},
    "b": {"F1": (1.0, 1.1, 2.0)},
}
LONG = [
    "sample-hard",
    "sample-hard+retriever.k=5+retriever.query=names",
    "sample-hard+retriever.query=presupposition+retriever.k1=1.2+retriever.b=0.75",
    "sample-hard+llm.model=Qwen2.5-Coder-1.5B-Instruct+llm.temperature=0.7",
]


@pytest.fixture(autouse=True)
def paper_style():
    with plt.rc_context():
        plt.switch_backend("agg")
        plots.use_paper_style()
        yield
        plt.close("all")


def legend_of(axes):
    legend = axes.get_legend()
    assert legend
    return legend


def test_intervals_are_drawn_in_rows_with_a_legend_for_more_than_one_series():
    _, (single, double) = plots.panels(2, 2.0)
    plots.draw_intervals(single, {"": {"EM": (50.0, 40.0, 60.0)}}, "score (%)")
    plots.draw_intervals(double, SERIES, "")
    assert single.get_legend() is None
    assert [text.get_text() for text in legend_of(double).get_texts()] == ["a", "b"]
    assert [tick.get_text() for tick in double.get_yticklabels()] == ["EM", "F1"]
    (points, _, _), (others, _, _) = double.containers
    assert list(points.get_xdata()) == [50.0, 60.0]
    assert 0 < points.get_ydata()[1] < 1 < others.get_ydata()[0]  # in one row, one over the other


def test_a_point_without_an_interval_is_hollow():
    _, [axes] = plots.panels(1, 2.0)
    row = {"few": (50.0, math.nan, math.nan), "many": (60.0, 50.0, 70.0)}
    plots.draw_intervals(axes, {"": row}, "")
    hollow = [line for line in axes.lines if line.get_markerfacecolor() == "white"]
    assert [np.asarray(line.get_xdata()).tolist() for line in hollow] == [[50.0]]


def test_too_few_values_have_no_interval():
    assert plots.percent([0.0, 1.0, 1.0, 1.0])[0] == 75
    assert all(map(math.isnan, plots.percent([0.0, 1.0] * 4)[1:]))
    assert not any(map(math.isnan, plots.percent([0.0, 1.0] * 5)))


@pytest.mark.parametrize("score", [0.0, 1.0])
def test_the_interval_of_a_figure_has_a_width_if_all_or_none_score(score):
    wilson = binomtest(int(30 * score), 30).proportion_ci(method="wilson")
    expected = (100 * score, 100 * wilson.low, 100 * wilson.high)
    assert plots.percent([score] * 30) == pytest.approx(expected)


@pytest.mark.usefixtures("here")
def test_an_interval_is_shown_where_the_table_shows_it():
    experiment = run_answers("mine", range(9), "limit = 12")
    scores = load_scores(Run(experiment), experiment.folder / "score")
    assert plots.shown_interval(scores, "EM") == tuple(scores["EM"])
    parts = {name: part["questions"] for name, part in scores.content["subsets"].items()}
    few = [name for name, count in parts.items() if 0 < count < 10]
    assert few
    for name in few:
        value, low, high = plots.shown_interval(scores, f"{name}.EM")
        assert value == scores[f"{name}.EM"].value
        assert math.isnan(low)
        assert math.isnan(high)


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (["a", "b"], ["a", "b"]),
        (["a"], ["a"]),
        (["a", "a+retriever.k=5"], ["a", "k=5"]),
        (["a+retriever.k=5", "a+reader.k=5"], ["retriever.k=5", "reader.k=5"]),
        (["a+k=1+b=2", "a+k=1+b=3"], ["b=2", "b=3"]),
        (["o+split=full-dev+nq-swap", "o"], ["split=full-dev+nq-swap", "o"]),
    ],
)
def test_variants_are_named_by_what_distinguishes_them(names, short):
    assert plots.short_names(names) == dict(zip(names, short, strict=True))


@pytest.mark.parametrize("columns", [1, 2])
def test_long_names_neither_overlap_nor_leave_the_figure(columns):
    short = plots.short_names(LONG)
    figure, panels = plots.panels(2, 2.4, columns)
    rows = {short[name]: (50.0, 40.0, 60.0) for name in LONG}
    plots.draw_intervals(panels[0], {name: {"EM": row} for name, row in rows.items()}, "score (%)")
    plots.draw_intervals(panels[1], {"a": rows, "b": rows}, "score (%)")
    figure.draw_without_rendering()
    for axes in panels:
        legend = legend_of(axes).get_window_extent()
        assert legend.x0 >= 0
        assert legend.x1 <= figure.bbox.width + 1
        assert axes.get_window_extent().width > figure.bbox.width / 8
        texts = [tick.get_window_extent() for tick in axes.get_yticklabels()]
        assert not any(above.overlaps(below) for above, below in pairwise(texts))
    first, second = [legend_of(axes).get_window_extent() for axes in panels]
    assert not first.overlaps(second)


@pytest.mark.parametrize(("columns", "width"), [(1, plots.COLUMN), (2, plots.PAGE)])
def test_a_saved_figure_is_as_wide_as_its_columns(tmp_path, columns, width):
    figure, [axes] = plots.panels(1, 2.0, columns)
    plots.draw_intervals(axes, SERIES, "score (%)")
    [pdf, *_] = plots.save(figure, str(tmp_path / "out"), "mine")
    assert pdf == tmp_path / "out/mine.pdf"
    box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ", pdf.read_bytes())
    assert box
    assert float(box[1]) == pytest.approx(72 * width)


def test_without_a_folder_nothing_is_saved(here):
    figure, _ = plots.panels(1, 2.0)
    assert plots.save(figure, "", "mine") == []
    assert [*here.iterdir()] == []


def test_a_missing_latex_is_told(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("PATH", "")
    figure, _ = plots.panels(1, 2.0)
    assert [path.suffix for path in plots.save(figure, str(tmp_path), "mine")] == [".pdf"]
    assert "mine.pgf is left out: it needs LaTeX" in caplog.text


def test_pgf_is_written_where_latex_is_installed(tmp_path):
    figure, [axes] = plots.panels(1, 2.0)
    plots.draw_intervals(axes, SERIES, "score")
    paths = plots.save(figure, str(tmp_path), "mine")
    if len(paths) == 1:
        pytest.skip("no LaTeX here")
    assert paths[1].read_text().startswith("%% Creator: Matplotlib, PGF backend")


def test_a_pgf_figure_prints_underscores_without_a_package():
    figure = "%% Creator\n\\begingroup%\n\\makeatletter%\n\\pgftext{gold_any@1}\n\\begingroup%\n"
    head, rest = plots.print_underscores(figure).split("\\makeatletter")
    assert head.endswith("\\begingroup%\n\\catcode`\\_=\\active\\def_{\\textunderscore}%\n")
    assert "\\catcode" not in rest
