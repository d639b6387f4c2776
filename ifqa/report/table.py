"""Results as tables of plain text and Markdown: RESULTS.md and the table of a README."""

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from ifqa.config.declared import declared_for
from ifqa.config.expected import NEAR, OFF, OK, RETIRED, measured, part_of, verdict
from ifqa.config.names import bases
from ifqa.progress import duration, printable
from ifqa.protocols import RankingMeasure
from ifqa.report.results import Result
from ifqa.scoring import summary
from ifqa.scoring.declared import GOLD_READ, MACRO, Declared

Cell = Callable[[Result], str]

NOT_RUN, STALE = "not run", "stale"
_MOST = 12  # expected values of an experiment that one cell lists; of more, those of groups stand by group
_WIDTH = 127  # characters of a line of RESULTS.md's head
_HEAD = """# Results

Written by `ifqa report` from finished experiments; a change by hand is lost. `ifqa report --check` fails where this is stale.

Scores are in percent, over all questions of an experiment; a failed question counts as wrong. In brackets stand 95% bootstrap
intervals; where every question scores the same, the bootstrap knows of no other score, and the interval is that score alone.
{legend}

The verdict on a score beside what was published or measured before: **OK**, within the tolerance; **near**, the expected value
lies in the interval; **off**, neither; **model retired**, the model of the published value can be asked no more, and the value
judges nothing. **PARTIAL**: not all questions of the split. **Not run**, with what it takes. **Stale**: what is here is not of
what the experiment says now.
"""


@dataclass(frozen=True)
class Grid:
    """A table of plain text: each row has as many cells as there are columns; `note` goes below the table.

    `parts` are those of the columns that hold scores over parts of the questions.
    """

    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    parts: tuple[str, ...] = ()


def grids(results: Sequence[Result]) -> list[Grid]:
    """A table for each heading of the experiments, those with a measured row first, and a table of how they were made."""
    return [*(grid for title, some in by_title(results) for grid in grids_of(title, some)), how_made(results)]


def by_title(results: Sequence[Result]) -> list[tuple[str, list[Result]]]:
    """The headings of the experiments, each with its results, those with a measured row first."""
    found: dict[str, list[Result]] = {}
    for one in results:
        found.setdefault(one.experiment.table or f"{one.experiment.benchmark} {one.experiment.split}", []).append(one)
    return sorted(found.items(), key=lambda item: (not any(one.scores for one in item[1]), item[0]))


def grids_of(title: str, results: Sequence[Result]) -> list[Grid]:
    """The table of the results below a heading, and the table of their scores by group if there are groups."""
    return [_scores(title, results), *_by_group(title, results)]


def markdown(tables: Iterable[Grid], results: Sequence[Result]) -> str:
    """The text of RESULTS.md: the tables, below an explanation of their columns."""
    sections = []
    for one in tables:
        note = f"\n{plain_cell(one.note)}\n" if one.note else ""
        sections.append(f"## {plain_cell(one.title)}\n\n{markdown_table(one)}{note}")
    texts = (f'"{name[:1].upper()}{name[1:]}": {about}.' for name, about in legend(results).items())
    explained = textwrap.fill(" ".join(texts), _WIDTH, break_on_hyphens=False)
    return "\n".join([_HEAD.replace("{legend}\n", f"{explained}\n" if explained else ""), *sections])


def in_readme(results: Iterable[Result]) -> list[Result]:
    """What was measured on whole splits; without variants, whose files are not kept."""
    return [one for one in results if one.scores and not summary.partial(one.scores) and not one.experiment.variant]


def readme_table(results: Iterable[Result]) -> str:
    """The table for a README: what was measured on whole splits, without variants."""
    chosen = in_readme(results)
    measures = _rankings(chosen) | _answers(chosen)
    rows = tuple(
        (
            one.experiment.about.removesuffix(".") or one.experiment.name,
            _passages(one),
            *(cell(one) for cell in measures.values()),
            f"`ifqa run {one.experiment.name}`",
        )
        for one in sorted(chosen, key=lambda one: (one.experiment.table, one.experiment.name))
    )
    return markdown_table(Grid("", "", ("experiment", "passages", *measures, "command"), rows))


def _scores(title: str, results: Sequence[Result]) -> Grid:
    columns: dict[str, Cell] = {"experiment": lambda one: one.experiment.name, "verdict": verdict_of}
    columns |= _answers(results) | _rankings(results) | {"published or expected": _expectations}
    parts = _parts(results)
    columns |= parts | {"passages": _passages}
    cells = {column: [cell(one) for one in results] for column, cell in columns.items()}
    kept = {column: some for column, some in cells.items() if any(some) or column == "verdict"}  # no blank columns
    return Grid(title, _sources(results), tuple(kept), tuple(zip(*kept.values(), strict=True)), tuple(parts))


def _by_group(title: str, results: Sequence[Result]) -> Iterator[Grid]:
    """A table of scores by group beside the expected ones: a row for each measure of each experiment; none without groups."""
    groups = list(dict.fromkeys(group for one in results for group in _groups(one)))
    rows = []
    for one in results if groups else ():
        (by,) = _declared([one])
        for key in by.shown([measure.name for measure in by.measures]):
            rows.append((one.experiment.name, by.marked(key), *(_of_group(one, group, key) for group in groups)))
        for ranking in by.rankings:
            if ranking.tables:
                depths = f"{_title(ranking)} @{' / @'.join(map(str, ranking.tables))}"
                rows.append((one.experiment.name, depths, *(_depths(one, ranking, group) for group in groups)))
    if groups:
        kinds = dict.fromkeys(by.groups for by in _declared(results) if by.groups)
        yield Grid(f"{title}, by {' or '.join(kinds)}", "", ("experiment", "measure", *groups), tuple(
            row for row in rows if any(row[2:])
        ))  # fmt: skip


def _groups(one: Result) -> list[str]:
    """The groups of an experiment: of its scores, or without any of its expected values."""
    (by,) = _declared([one])
    if not by.groups:
        return []
    others = {"", MACRO, GOLD_READ, *(subset.name for subset in by.subsets)}
    expected = dict.fromkeys(each.measure.rpartition(".")[0] for each in one.experiment.expected)
    return list(one.scores.get("groups", {})) if one.scores else [part for part in expected if part not in others]


def _of_group(one: Result, group: str, key: str) -> str:
    expected = [each for each in one.experiment.expected if each.measure == f"{group}.{key}"]
    judged = [f"expected {each.value:g}" + (f" {verdict(one.scores, each)}" if one.scores else "") for each in expected]
    return "; ".join(filter(None, [_mean(one, f"{group}.{key}"), *judged]))


def _sources(results: Sequence[Result]) -> str:
    """The sources of a table's expected values; with the experiments' names if there are several sources."""
    names: dict[str, dict[str, None]] = {}
    for one in results:
        for expected in one.experiment.expected:
            if expected.source:
                names.setdefault(expected.source, {})[one.experiment.name] = None
    if not names:
        return ""
    several = [f"{source} ({', '.join(of)})" for source, of in names.items()] if len(names) > 1 else list(names)
    return f"Expected values: {'; '.join(several)}."


def verdict_of(one: Result) -> str:
    """The worst verdict on its scores, what part of the split they cover, and the reader's label; or why there are none."""
    if one.stale:
        return f"{STALE}: {one.stale}"
    if one.scores is None:
        return f"{NOT_RUN}: needs {', '.join(one.needs)}" if one.needs else NOT_RUN
    found = {verdict(one.scores, expected) for expected in one.experiment.expected}
    worst = next((each for each in (OFF, NEAR, OK, RETIRED) if each in found), "")
    failed = f"{one.scores['n_failed']:,} failed" if one.scores["n_failed"] else ""
    abstained = f"{one.scores['n_abstained']:,} abstained" if "n_abstained" in one.scores else ""
    return "; ".join(
        each for each in (worst, summary.partial(one.scores), failed, abstained, one.made.get("label", "")) if each
    )


def _expectations(one: Result) -> str:
    """The expected values, grouped by model; with the verdict on each if there are several. Many by group stand elsewhere."""
    models: dict[str, list[str]] = {}
    groups = _groups(one) if len(one.experiment.expected) > _MOST else []
    for expected in one.experiment.expected:
        if expected.measure.rpartition(".")[0] in groups:
            continue
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


def _declared(results: Iterable[Result]) -> list[Declared]:
    """The measures and subsets of the experiments' benchmarks, without duplicates."""
    named = {(e.benchmark, e.measures, e.root, e.split): e for e in (one.experiment for one in results)}
    return [declared_for(experiment) for experiment in named.values()]


def _answers(results: Sequence[Result]) -> dict[str, Cell]:
    """A column for each measure of answers that tables show."""
    several = _declared(results)
    shown = [(by, key) for by in several for key in by.shown([one.name for one in by.measures])]
    return {by.marked(key): partial(_mean, measure=key) for by, key in shown}


def _rankings(results: Sequence[Result]) -> dict[str, Cell]:
    """A column for each measure of rankings, over the depths that tables show."""
    several = [one for by in _declared(results) for one in by.rankings if one.tables]
    return {f"{_title(one)} @{' / @'.join(map(str, one.tables))}": partial(_depths, measure=one) for one in several}


def _parts(results: Sequence[Result]) -> dict[str, Cell]:
    """A column for each subset that tables show: the headline measure over it."""
    columns: dict[str, Cell] = {}
    for by in _declared(results):
        key = by.headline([one.name for one in by.measures])
        for part in [*(one.name for one in by.subsets if one.in_tables), GOLD_READ, MACRO] if key else ():
            columns[f"{by.marked(key)}, {part.replace('_', ' ')}"] = partial(_mean, measure=f"{part}.{key}")
    return columns


def legend(results: Sequence[Result]) -> dict[str, str]:
    """Measure or subset -> an explanation, for those of the columns that have one."""
    several, texts = _declared(results), dict[str, str]()
    for by in several:
        texts |= {f"{_title(one)} @K": one.about for one in by.rankings if one.tables}
        texts |= {one.name: one.about for one in by.measures if one.name in by.shown([one.name])}
        texts |= {one.name.replace("_", " "): one.about for one in by.subsets if one.in_tables}
    if any(GOLD_READ in (one.scores or {"subsets": ()})["subsets"] for one in results):
        texts["gold read"] = "those for which a gold passage was among those that the reader was given"
    if any(by.groups for by in several):
        texts["macro"] = "the mean over the groups of a benchmark, each of which counts the same"
    if any("↓" in column for column in _answers(results)):
        texts["↓"] = "low is best"
    return {name: about for name, about in texts.items() if about}


def _title(measure: RankingMeasure) -> str:
    return (measure.title or measure.name) + (" ↓" if measure.best == "low" else "")


def _depths(one: Result, measure: RankingMeasure, part: str = "") -> str:
    at = f"{part}.{measure.name}" if part else measure.name
    means = [measured(one.scores, f"{at}@{k}") if one.scores else None for k in measure.tables]
    return " / ".join(f"{mean['value']:.1f}" if mean else "-" for mean in means) if any(means) else ""


def _mean(one: Result, measure: str) -> str:
    if one.scores is None or (mean := measured(one.scores, measure)) is None:
        return ""
    part = measure.rpartition(".")[0]
    found = part_of(one.scores, part) if part else None
    of = f" of {found['questions']:,}" if found and "questions" in found else ""
    return f"{mean['value']:.1f} [{mean['low']:.1f}, {mean['high']:.1f}]{of}"


def how_made(results: Sequence[Result]) -> Grid:
    """A row for each measured result: what it is, and how it was made."""
    columns = ("experiment", "what it is", "date", "hardware", "commit", "time", "cost", "notes")
    measured_ones = (one for _, several in by_title(results) for one in several if one.scores)
    return Grid("How they were made", "", columns, tuple(map(_how, measured_ones)))


def _how(one: Result) -> tuple[str, ...]:
    made = one.made
    varied = bases(one.experiment.name, one.experiment.root)
    changed = one.experiment.name.removeprefix(f"{varied[-1]}+") if varied else ""
    about = one.experiment.about + (f" Changed: {changed}." if changed else "")
    time = ", ".join(f"{stage} {duration(taken)}" for stage, taken in made["seconds"].items())
    cost = "$0"
    if "tokens" in made:
        last = "at an unknown price" if made.get("cost") is None else f"${made['cost']:,.2f}"
        cost = f"{last} in the last attempt, {made['tokens']:,} tokens in all"
    server = f" at {made['server']}" if "server" in made else ""
    notes = [f"asked {made['model']}{server}"] if "model" in made else []
    notes += ["trained on these very questions"] if "trained_on_them" in made else []
    hardware = f"{made['hardware']}, Python {made['python']}"
    return (one.experiment.name, about, made["at"][:10], hardware, made["commit"], time, cost, "; ".join(notes))


def markdown_table(grid: Grid) -> str:
    """A table in Markdown; its cells are plain text."""
    lines = ["| " + " | ".join(map(plain_cell, row)) + " |" for row in (grid.columns, *grid.rows)]
    lines.insert(1, "|" + "---|" * len(grid.columns))
    return "\n".join(lines) + "\n"


def plain_cell(text: str) -> str:
    """Text on one line as Markdown that shows it literally: it makes no cell, link, image or HTML."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|").replace("*", "\\*")
    text = " ".join(re.sub(r"\](?=[(\[:])", r"]\\", text).split())  # [text](url), [text][name], [name]: url
    return printable(text)  # the file may be read in a terminal
