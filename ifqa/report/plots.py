"""Figures for papers, drawn by the notebooks: one or two columns wide, with 95% intervals, readable
without colour, saved as PDF and PGF.
"""

import logging
import math
import shutil
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ifqa.config.expected import find_score
from ifqa.report.scores import Scores, is_too_few
from ifqa.scoring.intervals import report_interval
from ifqa.scoring.scheme import split_key
from ifqa.scoring.statistics import Interval, mean_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

logger = logging.getLogger(__name__)

COLUMN, PAGE = 3.3, 6.9  # inches: the width of one column, and of both, of a two-column paper

#: Okabe and Ito's colours (2008), distinct in every kind of colour blindness; without the yellow,
#: too light for a line.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_TEX = ("xelatex", "lualatex", "pdflatex")  # by which matplotlib measures text for PGF
_LABEL_WIDTH, _LABEL_LINES = 24, 2  # characters and lines of the name of a row
_LEGEND_LINE = 0.25  # inches: a legend of one line


def use_paper_style() -> None:
    """Set matplotlib's defaults: small type that stays text in a PDF, no box around the axes."""
    import matplotlib.pyplot as plt
    from matplotlib.rcsetup import cycler

    plt.rcParams |= {
        "font.size": 8,
        "legend.fontsize": 7,
        "legend.frameon": False,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.prop_cycle": cycler(color=COLOURS, marker=MARKERS),
        "lines.markersize": 4,
        "lines.linewidth": 1.2,
        "hatch.linewidth": 0.6,
        "figure.constrained_layout.use": True,
        "figure.dpi": 150,
        "savefig.dpi": 300,
        "pdf.fonttype": 42,
    }


def panels(
    count: int, height: float, columns: int = 2, **settings: Any
) -> "tuple[Figure, list[Axes]]":
    """A figure of a paper's two columns with panels side by side, or of one with panels below each
    other.

    Args:
        count: number of panels.
        height: of a panel, in inches.
        columns: 2 or 1.
        settings: of matplotlib's `subplots`, such as sharey=True.
    """
    import matplotlib.pyplot as plt

    shape = (1, count) if columns == 2 else (count, 1)
    size = (PAGE, height) if columns == 2 else (COLUMN, height * count)
    figure, axes = plt.subplots(*shape, figsize=size, squeeze=False, **settings)
    return figure, list(axes.flat)


def save(figure: "Figure", folder: str, name: str) -> list[Path]:
    """Save a figure as FOLDER/NAME.pdf and FOLDER/NAME.pgf, exactly as wide as it was made.

    Returns the written files: none if `folder` is empty, and no PGF without LaTeX, by which
    matplotlib measures its text. A PGF file is typeset by the paper's own LaTeX, in its fonts.
    """
    import matplotlib.pyplot as plt

    if not folder:
        return []
    Path(folder).mkdir(parents=True, exist_ok=True)
    paths = [Path(folder, f"{name}.pdf")]
    figure.savefig(paths[0], metadata={"CreationDate": None})
    program = next(filter(shutil.which, _TEX), "")
    if program:
        paths.append(Path(folder, f"{name}.pgf"))
        with plt.rc_context({"pgf.texsystem": program, "pgf.rcfonts": False}):
            figure.savefig(paths[1], backend="pgf")
        text = print_underscores(paths[1].read_text(encoding="utf-8"))
        paths[1].write_text(text, encoding="utf-8")
    else:
        logger.warning(f"{name}.pgf is left out: it needs LaTeX ({', '.join(_TEX)}), found none")
    return paths


def print_underscores(pgf: str) -> str:
    """A PGF figure in whose texts "_" is printed, as in "gold_any@20".

    matplotlib leaves it to the package underscore, without which LaTeX takes it for a subscript.
    """
    begin = "\\begingroup%\n"
    return pgf.replace(begin, begin + "\\catcode`\\_=\\active\\def_{\\textunderscore}%\n", 1)


def percent(values: Sequence[float], seed: int = 0) -> Interval:
    """Mean and 95% interval of scores from 0 to 1, in percent: that of tables.

    The ends are NaN for too few scores.
    """
    mean, low, high = report_interval(mean_interval(values, seed), len(values), is_share=True)
    return 100 * mean, 100 * low, 100 * high


def shown_interval(scores: Scores, measure: str) -> Interval:
    """A score and the ends of its interval, in percent; NaN where the tables have no interval, such
    as for too few questions.

    `measure` is that of `Scores`: "EM", or "numeric.EM" for a subset or a group.
    """
    value, low, high = scores[measure]
    parts = scores.content["subsets"] | scores.content.get("groups", {})
    part = parts.get(split_key(measure)[0])
    questions = part["questions"] if part else scores.questions
    if low is None or high is None or is_too_few(find_score(scores.content, measure), questions):
        return value, math.nan, math.nan
    return value, low, high


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Experiment -> its name in a figure: what distinguishes variants of one experiment.

    ["a", "a+retriever.k=5"] become "a" and "k=5"; names that would be equal keep their keys.
    """
    parts = {name: _settings(name) for name in names}
    common = set.intersection(*map(set, parts.values())) if len(parts) > 1 else set()
    rest = {
        name: [part for part in several if part not in common] or several[:1]
        for name, several in parts.items()
    }
    short = {name: ", ".join(map(_without_section, several)) for name, several in rest.items()}
    if len(set(short.values())) == len(short):
        return short
    return {name: ", ".join(several) for name, several in rest.items()}


def _settings(name: str) -> list[str]:
    """The experiment and the settings in a variant's name; a value may hold a "+"."""
    parts: list[str] = []
    for part in name.split("+"):
        if parts and "=" not in part:
            parts[-1] += f"+{part}"
        else:
            parts.append(part)
    return parts


def _without_section(setting: str) -> str:
    """`retriever.k=5` as `k=5`."""
    key, equals, value = setting.partition("=")
    return f"{key.rpartition('.')[2]}={value}" if equals else setting


def draw_intervals(axes: "Axes", series: Mapping[str, Mapping[str, Interval]], label: str) -> None:
    """Draw a row for each name, in order of appearance, with a point and its interval for each
    series that has the name.

    A point without an interval (NaN) is hollow.

    Args:
        axes: the axes to draw on.
        series: name of the series -> name of the row -> interval; a legend names the series if
            there are several.
        label: label of the horizontal axis, with its unit.
    """
    names = list(dict.fromkeys(name for values in series.values() for name in values))
    apart = 0.36 / max(len(series) - 1, 1)  # of a row's height, between two series
    for number, (title, values) in enumerate(series.items()):
        rows = [names.index(name) + apart * (number - (len(series) - 1) / 2) for name in values]
        means = [mean for mean, _, _ in values.values()]
        ends = [
            [_length(low, mean) for mean, low, _ in values.values()],
            [_length(mean, high) for mean, _, high in values.values()],
        ]
        colour = COLOURS[number % len(COLOURS)]
        marker = MARKERS[number % len(MARKERS)]
        axes.errorbar(
            means,
            rows,
            xerr=ends,
            fmt=marker,
            color=colour,
            capsize=2,
            elinewidth=1,
            clip_on=False,
            label=title,
        )
        points = zip(values.values(), rows, strict=True)
        for point in [(mean, row) for (mean, low, _), row in points if math.isnan(low)]:
            axes.plot(*point, marker, color=colour, mfc="white", clip_on=False, zorder=3)
    axes.set_yticks(range(len(names)), list(map(_wrap, names)))
    axes.set_ylim(len(names) - 0.5, -0.5)  # the first row on top
    axes.set_xlabel(label)
    axes.grid(axis="x", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    if len(series) > 1:
        add_legend(axes)


def _length(low: float, high: float) -> float:
    """The length of an interval's side; 0 if it has none."""
    return 0.0 if math.isnan(high - low) else max(high - low, 0.0)


def add_legend(axes: "Axes") -> None:
    """Put a legend over the axes, in as many columns as fit into their share of the figure.

    The figure grows by what the legend needs beyond one line.
    """
    handles, labels = axes.get_legend_handles_labels()
    figure = axes.get_figure(root=True)
    place = axes.get_subplotspec()
    assert figure is not None
    room = figure.bbox.width / (place.get_gridspec().ncols if place else 1)
    engine = figure.get_layout_engine()
    figure.set_layout_engine("none")  # it would shrink the axes to nothing beside a wide legend
    for columns in range(len(labels), 0, -1):
        legend = axes.legend(
            handles,
            list(map(_wrap, labels)),
            loc="lower right",  # so it spreads over the names of rows, which stand to the left
            bbox_to_anchor=(1.0, 1.0),
            ncols=columns,
            handletextpad=0.3,
            columnspacing=1,
        )
        box = legend.get_window_extent(figure.canvas.get_renderer())  # type: ignore[attr-defined]
        if box.width <= room:
            break
    figure.set_layout_engine(engine)
    extra = box.height / figure.dpi - _LEGEND_LINE
    figure.set_figheight(figure.get_figheight() + max(extra, 0))


def _wrap(name: str) -> str:
    """A name on two short lines; the rest is cut."""
    lines = textwrap.wrap(name, _LABEL_WIDTH, break_on_hyphens=True) or [""]
    if len(lines) > _LABEL_LINES:
        lines = [*lines[: _LABEL_LINES - 1], lines[_LABEL_LINES - 1][: _LABEL_WIDTH - 1] + "…"]
    return "\n".join(lines)
