"""Figures as files: only the kinds that can be written, and the same bytes for the same figure."""

import pytest

from ifqa.errors import IfqaError
from ifqa.report import plots
from ifqa.report.plots import check_figure, save


@pytest.mark.parametrize("suffix", [".svg", ".png", ".pdf"])
def test_the_same_figure_is_written_in_the_same_bytes(tmp_path, suffix):
    matplotlib = pytest.importorskip("matplotlib.figure")
    for name in ("a", "b"):
        figure = matplotlib.Figure(figsize=(1, 1))
        figure.subplots().plot([0, 1], [1, 0])
        save(figure, tmp_path / f"{name}{suffix}")
    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


def test_a_figure_of_another_suffix_is_refused(tmp_path):
    for name in ("stats.jpg", "stats"):
        with pytest.raises(IfqaError, match=r"wanted one of .svg, .png, .pdf"):
            check_figure(tmp_path / name)


def test_a_figure_without_matplotlib_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setattr(plots, "find_spec", lambda name: None)
    with pytest.raises(IfqaError, match=r"pip install 'ifqa\[notebooks\]'"):
        check_figure(tmp_path / "stats.svg")
