"""Figures for papers, drawn by the notebooks: one or two columns wide, with 95% intervals, readable
without colour.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ifqa.report.scores import Score
from ifqa.scoring.statistics import Interval, mean_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMN, PAGE = 3.3, 6.9  # inches: the width of one column, and of both, of a two-column paper

#: Okabe and Ito's colours (2008), distinct in every kind of colour blindness; without the yellow,
#: too light for a line.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def use_paper_style() -> None:
    """Set matplotlib's defaults: small type that stays text in a PDF, no box around the axes."""
    import matplotlib.pyplot as plt
    from cycler import cycler

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


def percent(values: Sequence[float], seed: int = 0) -> Interval:
    """Mean and 95% bootstrap interval of scores from 0 to 1, in percent."""
    mean, low, high = mean_interval(values, seed)
    return 100 * mean, 100 * low, 100 * high


def with_ends(score: Interval | Score) -> Interval:
    """A score with its interval; one without an interval has its value for both ends."""
    value, low, high = score
    return value, value if low is None else low, value if high is None else high


def draw_intervals(
    axes: "Axes", series: Mapping[str, Mapping[str, Interval | Score]], label: str
) -> None:
    """Draw a row for each name, in order of appearance, with a point and its interval for each
    series that has the name.

    Args:
        axes: the axes to draw on.
        series: name of the series -> name of the row -> interval, whose ends are None for a score
            without one; a legend names the series if there are several.
        label: label of the horizontal axis, with its unit.
    """
    names = list(dict.fromkeys(name for values in series.values() for name in values))
    apart = 0.36 / max(len(series) - 1, 1)  # of a row's height, between two series
    for number, (title, values) in enumerate(series.items()):
        rows = [names.index(name) + apart * (number - (len(series) - 1) / 2) for name in values]
        means = [mean for mean, _, _ in values.values()]
        ends = [
            [max(mean - low, 0) for mean, low, _ in map(with_ends, values.values())],
            [max(high - mean, 0) for mean, _, high in map(with_ends, values.values())],
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
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)  # the first row on top
    axes.set_xlabel(label)
    axes.grid(axis="x", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    if len(series) > 1:
        axes.legend(
            loc="lower center",
            bbox_to_anchor=(0.5, 1.0),
            ncols=len(series),
            handletextpad=0.3,
            columnspacing=1,
        )
