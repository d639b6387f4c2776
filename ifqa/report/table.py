"""Results as tables: RESULTS.md, and the one of a README."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from ifqa.config.expected import NEAR, OFF, OK, RETIRED, measured, verdict
from ifqa.progress import duration
from ifqa.report.results import Result
from ifqa.scoring import summary

NOT_RUN, STALE = "not run", "stale"
_DEPTHS = (1, 5, 20, 100)
_RECALL = "gold recall @" + " / @".join(map(str, _DEPTHS))
_HEAD = """# Results

Written by `ifqa report` from finished experiments; a change by hand is lost. `ifqa report --check` fails where this is stale.

Scores are in percent, over all questions of an experiment; a failed question counts as wrong. In brackets stand 95% bootstrap
intervals; where every question scores the same, the bootstrap knows of no other score, and the interval is that score alone.
"Gold recall @K": a gold passage is among the first K. "Numeric": the questions with a numeric answer. "Gold read": those for
which a gold passage was among those that the reader was given.

The verdict on a score beside what was published or measured before: **OK**, within the tolerance; **near**, the expected value
lies in the interval; **off**, neither; **model retired**, the model of the published value can be asked no more, and the value
judges nothing. **PARTIAL**: not all questions of the split. **Not run**, with what it takes. **Stale**: what is here is not of
what the experiment says now.
"""


@dataclass(frozen=True)
class Grid:
    """A table of plain text: `rows` have as many cells as `columns`; `note` stands below."""

    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def grids(results: Sequence[Result]) -> list[Grid]:
    """One table for each heading that experiments name, those with a measured row first, and one of how they were made."""
    by_title: dict[str, list[Result]] = {}
    for one in results:
        title = one.experiment.table or f"{one.experiment.benchmark} {one.experiment.split}"
        by_title.setdefault(title, []).append(one)
    order = sorted(by_title, key=lambda title: (not any(one.scores for one in by_title[title]), title))
    tables = [_scores(title, by_title[title]) for title in order]
    return [*tables, _made([one for title in order for one in by_title[title] if one.scores])]


def markdown(tables: Iterable[Grid]) -> str:
    """RESULTS.md."""
    sections = []
    for one in tables:
        note = f"\n{_cell(one.note)}\n" if one.note else ""
        sections.append(f"## {_cell(one.title)}\n\n{_markdown_table(one)}{note}")
    return "\n".join([_HEAD, *sections])


def readme_table(results: Iterable[Result]) -> str:
    """What was measured on whole splits, in the form for a README; without variants, whose files are not kept."""
    columns = ("experiment", "passages", _RECALL, "EM", "F1", "command")
    rows = tuple(
        (
            one.experiment.about.removesuffix(".") or one.experiment.name,
            _passages(one),
            _recall(one),
            _mean(one, "EM"),
            _mean(one, "F1"),
            f"`ifqa run {one.experiment.name}`",
        )
        for one in sorted(results, key=lambda one: (one.experiment.table, one.experiment.name))
        if one.scores and not summary.partial(one.scores) and not one.experiment.variant
    )
    return _markdown_table(Grid("", "", columns, rows))


def _scores(title: str, results: Sequence[Result]) -> Grid:
    cells = {column: [cell(one) for one in results] for column, cell in _COLUMNS.items()}
    told = {column: some for column, some in cells.items() if any(some) or column == "verdict"}  # no other of blanks
    return Grid(title, _sources(results), tuple(told), tuple(zip(*told.values(), strict=True)))


def _sources(results: Sequence[Result]) -> str:
    """Where the expected values of a table are from; with the experiments' names where they are from several places."""
    names: dict[str, dict[str, None]] = {}
    for one in results:
        for expected in one.experiment.expected:
            if expected.source:
                names.setdefault(expected.source, {})[one.experiment.name] = None
    if not names:
        return ""
    several = [f"{source} ({', '.join(of)})" for source, of in names.items()] if len(names) > 1 else list(names)
    return f"Expected values: {'; '.join(several)}."


def _verdict(one: Result) -> str:
    """The worst verdict on any of its scores, what they leave out, and its reader's label; or why there are none."""
    if one.stale:
        return f"{STALE}: {one.stale}"
    if one.scores is None:
        return f"{NOT_RUN}: needs {', '.join(one.needs)}" if one.needs else NOT_RUN
    found = {verdict(one.scores, expected) for expected in one.experiment.expected}
    worst = next((each for each in (OFF, NEAR, OK, RETIRED) if each in found), "")
    failed = f"{one.scores['n_failed']:,} failed" if one.scores["n_failed"] else ""
    return "; ".join(each for each in (worst, summary.partial(one.scores), failed, one.made.get("label", "")) if each)


def _expectations(one: Result) -> str:
    """The expected values, those of one model together; the verdict on each, where there are several."""
    models: dict[str, list[str]] = {}
    for expected in one.experiment.expected:
        subset, _, measure = expected.measure.rpartition(".")
        name = f"{measure} ({subset.replace('_', ' ')})" if subset else measure
        tolerance = f" ± {expected.tolerance:g}" if expected.tolerance else ""
        judged = ""
        if one.scores and not expected.retired and len(one.experiment.expected) > 1:
            judged = f" {verdict(one.scores, expected)}"
        models.setdefault(expected.retired, []).append(f"{name} {expected.value:g}{tolerance}{judged}")
    return "; ".join(", ".join(values) + (f" [{model}]" if model else "") for model, values in models.items())


def _passages(one: Result) -> str:
    if one.experiment.retriever is None:
        return "none"
    count = one.made.get("passages")
    return (
        f"{count:,} ({one.experiment.corpus})" if count else one.experiment.corpus or one.experiment.retriever["name"]
    )


def _recall(one: Result) -> str:
    means = [measured(one.scores, f"gold_any@{k}") if one.scores else None for k in _DEPTHS]
    return " / ".join(f"{mean['value']:.1f}" if mean else "-" for mean in means) if any(means) else ""


def _mean(one: Result, measure: str) -> str:
    if one.scores is None or (mean := measured(one.scores, measure)) is None:
        return ""
    subset = measure.rpartition(".")[0]
    count = f" of {one.scores[subset]['questions']:,}" if subset else ""
    return f"{mean['value']:.1f} [{mean['low']:.1f}, {mean['high']:.1f}]{count}"


_COLUMNS: dict[str, Callable[[Result], str]] = {
    "experiment": lambda one: one.experiment.name,
    "verdict": _verdict,
    "EM": partial(_mean, measure="EM"),
    "F1": partial(_mean, measure="F1"),
    _RECALL: _recall,
    "published or expected": _expectations,
    "EM, numeric": partial(_mean, measure="numeric.EM"),
    "EM, gold read": partial(_mean, measure="gold_read.EM"),
    "passages": _passages,
}


def _made(results: Sequence[Result]) -> Grid:
    columns = ("experiment", "what it is", "date", "hardware", "commit", "time", "cost", "notes")
    return Grid("How they were made", "", columns, tuple(_how(one) for one in results))


def _how(one: Result) -> tuple[str, ...]:
    made = one.made
    changed = one.experiment.name.partition("+")[2]
    about = one.experiment.about + (f" Changed: {changed}." if changed else "")
    time = ", ".join(f"{stage} {duration(taken)}" for stage, taken in made["seconds"].items())
    cost = "$0"
    if "tokens" in made:
        last = "at an unknown price" if made["cost"] is None else f"${made['cost']:,.2f}"
        cost = f"{last} in the last attempt, {made['tokens']:,} tokens in all"
    notes = [f"asked {made['model']}"] if "model" in made else []
    notes += ["trained on these very questions"] if "trained_on_them" in made else []
    hardware = f"{made['hardware']}, Python {made['python']}"
    return (one.experiment.name, about, made["at"][:10], hardware, made["commit"], time, cost, "; ".join(notes))


def _markdown_table(grid: Grid) -> str:
    lines = ["| " + " | ".join(map(_cell, row)) + " |" for row in (grid.columns, *grid.rows)]
    lines.insert(1, "|" + "---|" * len(grid.columns))
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """Text on one line that stays within its cell, and within Markdown."""
    return " ".join(text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|").replace("*", "\\*").split())
