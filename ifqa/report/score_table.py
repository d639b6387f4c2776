"""A table of experiments' scores for a paper: intervals or significance marks, the best in bold, as
text, Markdown, LaTeX or CSV.
"""

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from io import StringIO
from statistics import fmean, stdev
from typing import NamedTuple

from ifqa.config.expected import count_scored, find_score
from ifqa.config.sweep import Variation
from ifqa.errors import ConfigError, unknown_name
from ifqa.formatting import is_formula, one_decimal, pluralize, printable_line
from ifqa.report.compare import ScoredExperiment, comparable_questions, measure_differences
from ifqa.report.table import Table, latex_text, markdown_cell
from ifqa.scoring.scheme import GOLD_READ, MACRO, split_key
from ifqa.scoring.statistics import holm_correction
from ifqa.scoring.stored_scores import partial_notice, row_score

LEVEL = 0.05  # of a significance mark
_MARK = "*"
_SEED = re.compile(r",? seed \d+")


@dataclass(frozen=True)
class Cell:
    """A score in percent, over `questions` questions, with its 95% interval.

    Or, over several seeds, their mean and standard deviation, without an interval. `questions` is
    None if their numbers differ; `seeds` says how many have the score, if not all. `p` is that of a
    paired test against another row, corrected by Holm's method over the rows.
    """

    value: float
    low: float | None = None
    high: float | None = None
    questions: int | None = None
    sd: float | None = None
    p: float | None = None
    seeds: int | None = None

    @property
    def differs(self) -> bool:
        return self.p is not None and self.p < LEVEL


@dataclass(frozen=True)
class ScoreRow:
    """A row: its name, the experiments that it is made of, and a cell for each column, or None."""

    name: str
    experiments: tuple[str, ...]
    seeds: tuple[int, ...]
    over: str  # which questions, in words
    cells: tuple[Cell | None, ...]
    # The questions of its runs, by fingerprint; equal words may mean others, if chosen by id
    questions: frozenset[str]
    # For each column the questions that its score counts, which may depend on the system
    counted: tuple[frozenset[str], ...]


@dataclass(frozen=True)
class ScoreTable:
    """Scores of experiments, a row for each.

    Attributes:
        columns: the keys of the scores, such as "EM" or "numeric.EM".
        titles: the title of each column.
        low_is_best: whether the lowest score of a column is the best.
        rows: the rows, in order.
        notes: what the marks mean, and what a reader has to know of a row.
        intervals: whether cells show intervals.
    """

    columns: tuple[str, ...]
    titles: tuple[str, ...]
    low_is_best: tuple[bool, ...]
    rows: tuple[ScoreRow, ...]
    notes: tuple[str, ...]
    intervals: bool = True

    @cached_property
    def best(self) -> set[tuple[int, int]]:
        """Row and column of the best scores, as they are shown, among the rows over the same
        questions. A column in which these rows count different ones has none.
        """
        best: set[tuple[int, int]] = set()
        for questions in {row.questions for row in self.rows}:
            for column, is_low in enumerate(self.low_is_best):
                shown = {
                    number: float(one_decimal(cell.value))
                    for number, row in enumerate(self.rows)
                    if row.questions == questions and (cell := row.cells[column])
                }
                counted = {self.rows[number].counted[column] for number in shown}
                if len(shown) > 1 and len(counted) == 1:
                    wanted = (min if is_low else max)(shown.values())
                    best |= {(row, column) for row, value in shown.items() if value == wanted}
        return best

    @property
    def shows_questions(self) -> bool:
        """Whether the rows are over different questions, which then have a column."""
        return len({row.over for row in self.rows}) > 1

    def table(self) -> Table:
        """The table for the terminal and Markdown."""
        lead = ["", "questions"] if self.shows_questions else [""]
        titles = [
            f"{title} ↓" if is_low else title
            for title, is_low in zip(self.titles, self.low_is_best, strict=True)
        ]
        rows = []
        for row in self.rows:
            over = [row.over] if self.shows_questions else []
            rows.append((row.name, *over, *map(self._text, row.cells)))
        bold = frozenset((row, column + len(lead)) for row, column in self.best)
        left = tuple(range(len(lead)))
        return Table("", self._note(), (*lead, *titles), tuple(rows), left, bold=bold)

    def _note(self) -> str:
        over = [] if self.shows_questions else [f"Over {self.rows[0].over}."]
        return "\n".join([*over, *self.notes])

    def _text(self, cell: Cell | None) -> str:
        if cell is None:
            return "–"
        mark = _MARK if cell.differs else ""
        if cell.sd is not None:
            return f"{one_decimal(cell.value)} ± {one_decimal(cell.sd)}{mark}"
        text = one_decimal(cell.value) + mark
        return f"{text} {self._interval(cell)}".rstrip()

    def _interval(self, cell: Cell) -> str:
        if not self.intervals or cell.low is None or cell.high is None:
            return ""
        return f"[{one_decimal(cell.low)}, {one_decimal(cell.high)}]"

    def markdown(self) -> str:
        """The table and its notes in Markdown."""
        table = self.table()
        notes = "".join(f"\n{markdown_cell(line)}\n" for line in table.note.splitlines())
        return f"{table.markdown()}{notes}"

    def latex(self) -> str:
        """A `tabular` for LaTeX with the package booktabs, and its notes below; all texts are
        escaped.
        """
        lead = ["", "questions"] if self.shows_questions else [""]
        titles = [
            latex_text(title) + (r" $\downarrow$" if is_low else "")
            for title, is_low in zip(self.titles, self.low_is_best, strict=True)
        ]
        lines = [
            "% needs \\usepackage{booktabs}",
            f"\\begin{{tabular}}{{{'l' * len(lead)}{'r' * len(titles)}}}",
            "\\toprule",
            _latex_row([*map(latex_text, lead), *titles]),
            "\\midrule",
        ]
        for number, row in enumerate(self.rows):
            over = [latex_text(row.over)] if self.shows_questions else []
            cells = [
                self._latex_cell(cell, (number, column) in self.best)
                for column, cell in enumerate(row.cells)
            ]
            lines.append(_latex_row([latex_text(row.name), *over, *cells]))
        lines += ["\\bottomrule", "\\end{tabular}"]
        notes = self._note().splitlines()
        if notes:  # outside of the tabular, whose last column they would widen
            lines += ["\\par\\smallskip", "\\begin{minipage}{0.95\\linewidth}\\footnotesize"]
            lines += [f"{latex_text(line)}\\par" for line in notes]
            lines.append("\\end{minipage}")
        return "\n".join([*lines, ""])

    def _latex_cell(self, cell: Cell | None, is_best: bool) -> str:
        if cell is None:
            return "--"
        value = one_decimal(cell.value)
        text = f"\\textbf{{{value}}}" if is_best else value
        text += "$^{*}$" if cell.differs else ""
        if cell.sd is not None:
            return f"{text} {{\\footnotesize $\\pm$ {one_decimal(cell.sd)}}}"
        interval = self._interval(cell)
        return f"{text} {{\\footnotesize {interval}}}" if interval else text

    def csv(self) -> str:
        """The numbers, for each column the value, the ends of its interval, the questions, the
        standard deviation over seeds, p, and the seeds if not all count. A blank cell: there is
        none.
        """
        cells = [asdict(cell) for row in self.rows for cell in row.cells if cell]
        parts = [
            field.name
            for field in fields(Cell)
            if any(cell[field.name] is not None for cell in cells)
        ]
        file = StringIO()
        writer = csv.writer(file, lineterminator="\n")
        head = [f"{title} {part}".removesuffix(" value") for title in self.titles for part in parts]
        writer.writerow(map(_csv_text, ["name", "experiments", "questions", *head]))
        for row in self.rows:
            numbers: list[str] = []
            for cell in row.cells:
                content = asdict(cell) if cell else {}
                for part in parts:
                    number = content.get(part)
                    numbers.append("" if number is None else str(round(number, 6)))
            texts = [row.name, " ".join(row.experiments), row.over]
            writer.writerow([*map(_csv_text, texts), *numbers])
        return file.getvalue()

    def to_dict(self) -> dict[str, object]:
        """The table as plain data, with each number."""
        rows: list[dict[str, object]] = []
        for row in self.rows:
            scores = {
                key: {name: number for name, number in asdict(cell).items() if number is not None}
                for key, cell in zip(self.columns, row.cells, strict=True)
                if cell
            }
            rows.append(
                {
                    "name": row.name,
                    "experiments": list(row.experiments),
                    "seeds": list(row.seeds),
                    "over": row.over,
                    "scores": scores,
                }
            )
        return {"columns": list(self.columns), "rows": rows, "notes": list(self.notes)}


def _latex_row(cells: Sequence[str]) -> str:
    return f"{' & '.join(cells)} \\\\"


def _csv_text(text: str) -> str:
    """A text as a cell that no spreadsheet computes, on one line."""
    line = printable_line(text)
    return f"'{line}" if is_formula(line) else line


class NamedRow(NamedTuple):
    """A row to make: its name, the experiments of a sweep's row, and the experiment that the sweep
    varies.
    """

    name: str
    variation: Variation
    base: str = ""


def matching_rows(rows: Sequence[NamedRow], name: str) -> list[int]:
    """The numbers of the rows that a name means: theirs, their values in a sweep, their
    experiment's, or that of the experiment that they vary.
    """
    for names in (
        [row.name for row in rows],
        [row.variation.label for row in rows],
        [row.variation.experiments[0].name for row in rows],
        [row.base for row in rows],
    ):
        if name and name in names:
            return [number for number, known in enumerate(names) if known == name]
    return []


def make_score_table(
    rows: Sequence[NamedRow],
    columns: Sequence[str] = (),
    against: str = "",
    intervals: bool | None = None,
    titles: Mapping[str, str] | None = None,
) -> ScoreTable:
    """The scores of finished experiments.

    Args:
        rows: at least one; no two with the same name.
        columns: keys such as "EM", "gold_any@20" or "numeric.EM"; if empty, those that tables of
            results show.
        against: the experiment or the name of a row with which the others are compared: a paired
            randomisation test for each, corrected by Holm's method within each column. A row over
            several seeds is not compared, nor a column over questions that differ between systems.
        intervals: whether to show 95% intervals; by default if nothing is compared.
        titles: column -> its title, if it has another.

    Raises:
        IfqaError: an experiment is not scored, or not as its file says; a column, a key of
            `titles` or the row `against` is unknown; compared experiments have different questions.
    """
    scored = [[ScoredExperiment(run) for run in row.variation.experiments] for row in rows]
    columns = [*dict.fromkeys(columns)] or _usual_columns(scored)
    _check_columns(scored, columns)
    if strange := (titles or {}).keys() - {*columns}:
        names = [f'"{row.name}"' if "," in row.name else row.name for row in rows]
        raise unknown_name("row or column", min(strange), [*names, *columns])
    cells = [[_cell(runs, column) for column in columns] for runs in scored]
    notes = _seed_notes(rows) + _missing_seeds(rows, cells, columns)
    shows_intervals = not against if intervals is None else intervals
    if shows_intervals and any(cell and cell.low is not None for row in cells for cell in row):
        notes.append("Brackets hold 95% intervals.")
    if against:
        notes += _compare(rows, scored, columns, _find_row(rows, against), cells)
    notes += _row_notes(rows, scored) + _other_questions(rows, scored)
    return ScoreTable(
        tuple(columns),
        tuple((titles or {}).get(column, column) for column in columns),
        tuple(_low_is_best(scored, column) for column in columns),
        tuple(
            ScoreRow(
                row.name,
                tuple(run.name for run in runs),
                row.variation.seeds,
                _over(runs),
                tuple(cells_of_row),
                _questions(runs),
                tuple(
                    frozenset(_counted_questions(run, column) for run in runs) for column in columns
                ),
            )
            for row, runs, cells_of_row in zip(rows, scored, cells, strict=True)
        ),
        tuple(notes),
        shows_intervals,
    )


Scored = Sequence[Sequence[ScoredExperiment]]  # the runs of each row


def _usual_columns(scored: Scored) -> list[str]:
    """The measures that tables of results show, of answers and then of rankings."""
    columns: dict[str, None] = {}
    runs = [run for row in scored for run in row]
    for run in runs:
        columns |= dict.fromkeys(run.experiment.scheme.table_keys(run.scores["measures"]))
    for run in runs:
        for measure in run.experiment.scheme.rankings:
            keys = [f"{measure.name}@{depth}" for depth in measure.tables]
            columns |= dict.fromkeys(key for key in keys if key in run.scores["measures"])
    return [*columns]


def _check_columns(scored: Scored, columns: Sequence[str]) -> None:
    """Raise ConfigError for a column in which no row has a score."""
    runs = [run for row in scored for run in row]
    for column in columns:
        if not any(find_score(run.scores, column) for run in runs):
            known = dict.fromkeys(key for run in runs for key in run.scores["measures"])
            parts = dict.fromkeys(part for run in runs for part in run.scores["subsets"])
            subsets = [f"{part}.{key}" for part in parts for key in known]
            raise unknown_name("score of these experiments", column, [*known, *subsets])


def _low_is_best(scored: Scored, column: str) -> bool:
    _, key = split_key(column)
    schemes = [run.experiment.scheme for row in scored for run in row]
    return any(key in scheme.keys([key]) and not scheme.best_value(key) for scheme in schemes)


def _cell(runs: Sequence[ScoredExperiment], column: str) -> Cell | None:
    means = [find_score(run.scores, column) for run in runs]
    values = [mean["value"] for mean in means if mean]
    if not values:
        return None
    counts = {
        count_scored(run.scores, column) for run, mean in zip(runs, means, strict=True) if mean
    }
    questions = counts.pop() if len(counts) == 1 else None
    first = means[0]
    if len(runs) == 1 and first:
        return Cell(first["value"], first.get("low"), first.get("high"), questions)
    sd = stdev(values) if len(values) > 1 else None
    seeds = len(values) if len(values) < len(runs) else None
    return Cell(fmean(values), questions=questions, sd=sd, seeds=seeds)


def _missing_seeds(
    rows: Sequence[NamedRow], cells: Sequence[Sequence[Cell | None]], columns: Sequence[str]
) -> list[str]:
    """A note on each mean over fewer seeds than its row has."""
    return [
        f"{row.name}: {column} is defined for {cell.seeds} of {len(row.variation.seeds)} seeds, "
        "and is their mean."
        for row, cells_of_row in zip(rows, cells, strict=True)
        for column, cell in zip(columns, cells_of_row, strict=True)
        if cell and cell.seeds
    ]


def _over(runs: Sequence[ScoredExperiment]) -> str:
    """The questions that a row is over; of several runs without their seeds."""
    experiment = runs[0].experiment
    split = f"{experiment.benchmark} {experiment.split}"
    notices = [partial_notice(run.scores) for run in runs]
    if len(runs) > 1:
        notices = [_SEED.sub("", notice) for notice in notices]
    partial = "; ".join(dict.fromkeys(filter(None, notices)))
    if partial:
        return f"{split}, {partial}"
    return f"{pluralize(runs[0].scores['questions'], 'question')} of {split}"


def _questions(runs: Sequence[ScoredExperiment]) -> frozenset[str]:
    return frozenset(run.run.questions_identity for run in runs)


def _counted_questions(run: ScoredExperiment, column: str) -> str:
    """The ids of the questions that a score counts: of "gold_read.EM", those whose reader got a
    gold passage.
    """
    part, key = split_key(column)
    rows = [
        row
        for row in run.rows.values()
        if part not in run.scores["subsets"] or part in row["subsets"]
    ]
    # A measure of sets has no score in the rows, and counts all
    scored = [row["id"] for row in rows if row_score(row, key) is not None]
    return " ".join(sorted(scored or [row["id"] for row in rows]))


def _other_questions(rows: Sequence[NamedRow], scored: Scored) -> list[str]:
    """Notes on rows over different questions that the same words describe."""
    alike: dict[str, dict[str, frozenset[str]]] = {}
    for row, runs in zip(rows, scored, strict=True):
        alike.setdefault(_over(runs), {})[row.name] = _questions(runs)
    return [
        f"{'; '.join(questions)}: not all over the same questions, though as many."
        for questions in alike.values()
        if len({*questions.values()}) > 1
    ]


def _seed_notes(rows: Sequence[NamedRow]) -> list[str]:
    seeds = dict.fromkeys(row.variation.seeds for row in rows if len(row.variation.seeds) > 1)
    return [
        f"± is the standard deviation over {len(numbers)} seeds, {numbers[0]} to {numbers[-1]}; "
        "the score is their mean."
        for numbers in seeds
    ]


def _row_notes(rows: Sequence[NamedRow], scored: Scored) -> list[str]:
    """What a reader has to know of the rows, each note once, with the rows that it is about."""
    names: dict[str, list[str]] = {}
    for row, runs in zip(rows, scored, strict=True):
        for note in _warnings(runs):
            names.setdefault(note, []).append(row.name)
    notes = []
    for note, about in names.items():
        is_of_all = len(about) == len(rows) > 1
        notes.append(f"{'All rows' if is_of_all else '; '.join(about)}: {note}.")
    return notes


def _warnings(runs: Sequence[ScoredExperiment]) -> list[str]:
    """What a reader has to know of a row's models."""
    return [*dict.fromkeys(mark for run in runs for mark in run.marks)]


def _find_row(rows: Sequence[NamedRow], name: str) -> int:
    found = matching_rows(rows, name)
    if len(found) > 1:
        named = ", ".join(rows[number].name for number in found)
        raise ConfigError(f"--against {name} means {named}; wanted one of them")
    if not found:
        names = [*(row.name for row in rows), *(row.variation.experiments[0].name for row in rows)]
        raise unknown_name("row", name, [*dict.fromkeys(names)])
    return found[0]


def _compare(
    rows: Sequence[NamedRow],
    scored: Scored,
    columns: Sequence[str],
    against: int,
    cells: list[list[Cell | None]],
) -> list[str]:
    """Test every other row against one, put p into the cells, and return the notes about it."""
    name = rows[against].name
    if len(scored[against]) > 1:
        raise ConfigError(f"--against {name}: wanted a row of one run; it has several seeds")
    first = scored[against][0]
    notes = [
        f"{_MARK} differs from {name}: p < {LEVEL} in a paired randomisation test, corrected by "
        "Holm's method over the rows of a column."
    ]
    tested = [n for n, runs in enumerate(scored) if n != against and len(runs) == 1]
    if len(tested) < len(rows) - 1:
        notes.append("Rows over several seeds are not compared.")
    untested = []
    for number, column in enumerate(columns):
        ps = {
            row: p for row in tested if (p := _paired_p(first, scored[row][0], column)) is not None
        }
        if not ps:
            untested.append(column)
        for row, p in zip(ps, holm_correction([*ps.values()]), strict=True):
            cell = cells[row][number]
            cells[row][number] = replace(cell, p=p) if cell else None
    if untested and tested:
        notes.append(f"Not compared: {', '.join(untested)}.")
    return notes


def _paired_p(a: ScoredExperiment, b: ScoredExperiment, column: str) -> float | None:
    """The p-value of two experiments in a column; None if there is no test of that column."""
    part, key = split_key(column)
    questions = comparable_questions(a, b)
    if part in (MACRO, GOLD_READ):
        return None
    if part:
        questions = [
            question
            for question in questions
            if part in a.rows[question.id]["subsets"] or part == question.group
        ]
    differences = measure_differences(a, b, questions, [key]) if questions else []
    return differences[0].p if differences else None
