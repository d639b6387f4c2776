"""The results of experiments as tables, RESULTS.md and the README's table."""

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from ifqa.config.expected import NEAR, OFF, OK, RETIRED, find_score, part_scores, verdict
from ifqa.config.experiment import base_experiments
from ifqa.formatting import format_duration
from ifqa.pipeline.probe import Loss
from ifqa.protocols import RankingMeasure
from ifqa.report.results_log import Result
from ifqa.report.table import NOT_RUN, STALE, Table, p_cell
from ifqa.scoring import score_files
from ifqa.scoring.scheme import GOLD_READ, MACRO, ScoringScheme
from ifqa.scoring.score_files import ScoreInterval

Cell = Callable[[Result], str]

_MAX_EXPECTED = 12  # expected values in a cell; beyond that, those of groups are in the group table
_WIDTH = 127  # characters per line of RESULTS.md's head
_LOSSES_NOTE = (
    "The reader was run again without the if-clause, with another question's if-clause, and with another question's passages. "
    "Loss: the drop in the measure over the questions that the probe can change, with its 95% bootstrap interval and p of a "
    "paired randomisation test. Questions that do not split into two clauses, and in the last probe those without passages, are "
    "left out of both scores."
)
_SUMMARY_NOTE = (
    "The best row has the highest headline score of a split, among experiments over the whole split that search a corpus, or "
    "among all if none searches. Experiments with the annotated passages are left out."
)
READERS = "Every reader on every benchmark"
_READERS_NOTE = (
    "Closed book: the question alone. Given: the passages that come with the question. Retrieved: from the corpus. The "
    "first experiment by name is shown."
)
_HEAD = """# Results

Written by `ifqa report` from finished experiments; do not edit. `ifqa report --check` fails if this file is stale.

Scores are in percent, over all questions of an experiment; a failed question counts as wrong. Brackets hold 95% bootstrap
intervals; if every question scores the same, the interval has zero width.
{legend}

The verdict compares a score with a value published or measured before: **OK**, within the tolerance; **near**, the expected value
lies in the interval; **off**, neither; **model retired**, no verdict, as the published value's model is no longer available.
**PARTIAL**: not all questions of the split. **Not run**: with its requirements. **Stale**: older than
its settings, corpus or code.
"""


def result_tables(results: Sequence[Result]) -> list[Table]:
    """A table for each heading, those with measured rows first, and a table of how results were measured."""
    return [
        *(table for title, some in group_by_title(results) for table in score_tables(title, some)),
        provenance_table(results),
    ]


def group_by_title(results: Sequence[Result]) -> list[tuple[str, list[Result]]]:
    """The results by heading, headings with measured rows first."""
    titles: dict[str, list[Result]] = {}
    for result in results:
        experiment = result.experiment
        titles.setdefault(experiment.table or f"{experiment.benchmark} {experiment.split}", []).append(result)
    return sorted(titles.items(), key=lambda pair: (not any(result.scores for result in pair[1]), pair[0]))


def score_tables(title: str, results: Sequence[Result]) -> list[Table]:
    """The table of the results below a heading, and a table of their scores by group if there are groups."""
    return [_score_table(title, results), *_group_tables(title, results)]


def results_markdown(tables: Iterable[Table], results: Sequence[Result]) -> str:
    """The text of RESULTS.md: an explanation of the columns, then the tables."""
    texts = (f'"{name[:1].upper()}{name[1:]}": {about}.' for name, about in legend(results).items())
    explained = textwrap.fill(" ".join(texts), _WIDTH, break_on_hyphens=False)
    head = _HEAD.replace("{legend}\n", f"{explained}\n" if explained else "")
    return "\n".join([head, *(table.section() for table in tables)])


def select_for_readme(results: Iterable[Result]) -> list[Result]:
    """The results on whole splits, without variants, whose files are not kept."""
    return [
        result for result in results if result.scores and not _partial_notice(result) and not result.experiment.variant
    ]


def readme_table(results: Iterable[Result]) -> str:
    """The README's table: results on whole splits, without variants."""
    chosen = select_for_readme(results)
    columns: dict[str, Cell] = {
        "experiment": lambda result: result.experiment.about.removesuffix(".") or result.experiment.name,
        "passages": _passages_cell,
    }
    columns |= _ranking_columns(chosen) | _answer_columns(chosen)
    columns["command"] = lambda result: f"`ifqa run {result.experiment.name}`"
    ordered = sorted(chosen, key=lambda result: (result.experiment.table, result.experiment.name))
    rows = tuple(tuple(cell(result) for cell in columns.values()) for result in ordered)
    return Table("", "", tuple(columns), rows).markdown()


def _score_table(title: str, results: Sequence[Result]) -> Table:
    columns: dict[str, Cell] = {"experiment": lambda result: result.experiment.name, "verdict": verdict_cell}
    columns |= _answer_columns(results) | _ranking_columns(results) | {"published or expected": _expected_cell}
    parts = _subset_columns(results)
    columns |= parts | {"passages": _passages_cell}
    cells = {column: [cell(result) for result in results] for column, cell in columns.items()}
    kept = {column: some for column, some in cells.items() if any(some) or column == "verdict"}  # no blank columns
    return Table(title, _source_note(results), tuple(kept), tuple(zip(*kept.values(), strict=True)))


def _group_tables(title: str, results: Sequence[Result]) -> Iterator[Table]:
    """Scores by group beside the expected ones, a row for each measure of each experiment; no table without groups."""
    groups = list(dict.fromkeys(group for result in results for group in _groups(result)))
    if not groups:
        return
    rows = []
    for result in results:
        scheme, name = result.experiment.scheme, result.experiment.name
        for key in scheme.table_keys([measure.name for measure in scheme.measures]):
            rows.append((name, scheme.display_name(key), *(_group_cell(result, group, key) for group in groups)))
        for depths, ranking in _depth_columns([scheme]):
            rows.append((name, depths, *(_depths_cell(result, ranking, group) for group in groups)))
    kinds = dict.fromkeys(scheme.groups for scheme in _distinct_schemes(results) if scheme.groups)
    measured_rows = tuple(row for row in rows if any(row[2:]))
    yield Table(f"{title}, by {' or '.join(kinds)}", "", ("experiment", "measure", *groups), measured_rows)


def _groups(result: Result) -> list[str]:
    """The groups in an experiment's scores, or without scores in its expected values."""
    scheme = result.experiment.scheme
    if not scheme.groups:
        return []
    if result.scores:
        return list(result.scores.get("groups", {}))
    others = {"", MACRO, GOLD_READ, *(subset.name for subset in scheme.subsets)}
    expected = dict.fromkeys(expected.measure.rpartition(".")[0] for expected in result.experiment.expected)
    return [part for part in expected if part not in others]


def _group_cell(result: Result, group: str, key: str) -> str:
    expected = [expected for expected in result.experiment.expected if expected.measure == f"{group}.{key}"]
    judged = [
        f"expected {each.value:g}" + (f" {verdict(result.scores, each)}" if result.scores else "") for each in expected
    ]
    return "; ".join(filter(None, [_score_cell(result, f"{group}.{key}"), *judged]))


def _source_note(results: Sequence[Result]) -> str:
    """The sources of a table's expected values; several sources are listed with their experiments."""
    names: dict[str, dict[str, None]] = {}
    for result in results:
        for expected in result.experiment.expected:
            if expected.source:
                names.setdefault(expected.source, {})[result.experiment.name] = None
    if not names:
        return ""
    sources = [f"{source} ({', '.join(of)})" for source, of in names.items()] if len(names) > 1 else names
    return f"Expected values: {'; '.join(sources)}."


def verdict_cell(result: Result) -> str:
    """The worst verdict on the scores, the part of the split they cover, and the reader's label; or why there are no scores."""
    if result.stale:
        return f"{STALE}: {result.stale}"
    scores = result.scores
    if scores is None:
        return f"{NOT_RUN}: needs {', '.join(result.needs)}" if result.needs else NOT_RUN
    verdicts = {verdict(scores, expected) for expected in result.experiment.expected}
    worst = next((each for each in (OFF, NEAR, OK, RETIRED) if each in verdicts), "")
    failed = f"{scores['n_failed']:,} failed" if scores["n_failed"] else ""
    abstained = f"{scores['n_abstained']:,} abstained" if "n_abstained" in scores else ""
    notes = (worst, score_files.partial_notice(scores), failed, abstained, result.made.get("label", ""))
    return "; ".join(filter(None, notes))


def _expected_cell(result: Result) -> str:
    """The expected values, grouped by model, with a verdict on each if there are several; the group table has those of groups."""
    models: dict[str, list[str]] = {}
    every = result.experiment.expected
    groups = _groups(result) if len(every) > _MAX_EXPECTED else []
    for expected in every:
        part, _, measure = expected.measure.rpartition(".")
        if part in groups:
            continue
        name = f"{measure} ({part.replace('_', ' ')})" if part else measure
        tolerance = f" ± {expected.tolerance:g}" if expected.tolerance else ""
        judged = result.scores and not expected.retired and len(every) > 1
        judgement = f" {verdict(result.scores, expected)}" if result.scores and judged else ""
        models.setdefault(expected.retired, []).append(f"{name} {expected.value:g}{tolerance}{judgement}")
    return "; ".join(", ".join(values) + (f" [{model}]" if model else "") for model, values in models.items())


def _passages_cell(result: Result) -> str:
    experiment, count = result.experiment, result.made.get("passages")
    if experiment.retriever is None:
        return "none"
    return f"{count:,} ({experiment.corpus})" if count else experiment.corpus or experiment.retriever["name"]


def _distinct_schemes(results: Iterable[Result]) -> list[ScoringScheme]:
    """The scoring schemes of the experiments, without duplicates."""
    named = {(e.benchmark, e.measures, e.root, e.split): e for e in (result.experiment for result in results)}
    return [experiment.scheme for experiment in named.values()]


def _answer_columns(results: Sequence[Result]) -> dict[str, Cell]:
    """A column for each measure of answers that tables show."""
    shown = [
        (scheme, key)
        for scheme in _distinct_schemes(results)
        for key in scheme.table_keys([measure.name for measure in scheme.measures])
    ]
    return {scheme.display_name(key): partial(_score_cell, measure=key) for scheme, key in shown}


def _ranking_columns(results: Sequence[Result]) -> dict[str, Cell]:
    """A column for each measure of rankings, over the depths that tables show."""
    return {
        column: partial(_depths_cell, measure=measure) for column, measure in _depth_columns(_distinct_schemes(results))
    }


def _depth_columns(schemes: Iterable[ScoringScheme]) -> Iterator[tuple[str, RankingMeasure]]:
    for scheme in schemes:
        for measure in scheme.rankings:
            if measure.tables:
                yield f"{_title(measure)} @{' / @'.join(map(str, measure.tables))}", measure


def _subset_columns(results: Sequence[Result]) -> dict[str, Cell]:
    """A column for each subset that tables show: the headline measure over it."""
    columns: dict[str, Cell] = {}
    for scheme in _distinct_schemes(results):
        if key := scheme.headline([measure.name for measure in scheme.measures]):
            for part in [*(subset.name for subset in scheme.subsets if subset.in_tables), GOLD_READ, MACRO]:
                columns[f"{scheme.display_name(key)}, {part.replace('_', ' ')}"] = partial(
                    _score_cell, measure=f"{part}.{key}"
                )
    return columns


def legend(results: Sequence[Result]) -> dict[str, str]:
    """Measure or subset -> its explanation, for columns that have one."""
    schemes, texts = _distinct_schemes(results), dict[str, str]()
    for scheme in schemes:
        texts |= {f"{_title(measure)} @K": measure.about for measure in scheme.rankings if measure.tables}
        texts |= {
            measure.name: measure.about
            for measure in scheme.measures
            if measure.name in scheme.table_keys([measure.name])
        }
        texts |= {subset.name.replace("_", " "): subset.about for subset in scheme.subsets if subset.in_tables}
    if any(result.scores and GOLD_READ in result.scores["subsets"] for result in results):
        texts["gold read"] = "questions for which the reader was given a gold passage"
    if any(scheme.groups for scheme in schemes):
        texts["macro"] = "the unweighted mean over the groups of a benchmark"
    if any("↓" in column for column in _answer_columns(results)):
        texts["↓"] = "low is best"
    return {name: about for name, about in texts.items() if about}


def _title(measure: RankingMeasure) -> str:
    return (measure.title or measure.name) + (" ↓" if measure.best == "low" else "")


def _depths_cell(result: Result, measure: RankingMeasure, part: str = "") -> str:
    at = f"{part}.{measure.name}" if part else measure.name
    means = [find_score(result.scores, f"{at}@{k}") if result.scores else None for k in measure.tables]
    return " / ".join(f"{mean['value']:.1f}" if mean else "-" for mean in means) if any(means) else ""


def _score_cell(result: Result, measure: str) -> str:
    if result.scores is None or (mean := find_score(result.scores, measure)) is None:
        return ""
    part = measure.rpartition(".")[0]
    over = part_scores(result.scores, part) if part else None
    of = f" of {over['questions']:,}" if over and "questions" in over else ""
    return f"{_format_score(mean)}{of}"


def provenance_table(results: Sequence[Result]) -> Table:
    """A row for each measured result: what it is and how it was measured."""
    columns = ("experiment", "what it is", "date", "hardware", "commit", "time", "cost", "notes")
    rows = tuple(_provenance_row(result) for _, some in group_by_title(results) for result in some if result.scores)
    return Table("How they were measured", "", columns, rows)


def _provenance_row(result: Result) -> tuple[str, ...]:
    facts, experiment = result.made, result.experiment
    varied = base_experiments(experiment.name, experiment.root)
    changed = f" Changed: {experiment.name.removeprefix(f'{varied[-1]}+')}." if varied else ""
    time = ", ".join(f"{stage} {format_duration(taken)}" for stage, taken in facts["seconds"].items())
    cost = "$0"
    if "tokens" in facts:
        last = "at an unknown price" if facts.get("cost") is None else f"${facts['cost']:,.2f}"
        cost = f"{last} in the last attempt, {facts['tokens']:,} tokens in all"
    server = f" at {facts['server']}" if "server" in facts else ""
    notes = [f"asked {facts['model']}{server}"] if "model" in facts else []
    notes += ["trained on these questions"] if "trained_on_them" in facts else []
    hardware = f"{facts['hardware']}, Python {facts['python']}"
    about = experiment.about + changed
    return (experiment.name, about, facts["at"][:10], hardware, facts["commit"], time, cost, "; ".join(notes))


def _headline(result: Result) -> tuple[str, ScoreInterval] | None:
    """The headline measure of answers and its score; None without a reader, or for one trained on the questions."""
    if not result.scores or not result.experiment.reader or "trained_on_them" in result.made:
        return None
    scheme = result.experiment.scheme
    key = scheme.headline(scheme.table_keys(result.scores["measures"]))
    mean = find_score(result.scores, key)
    return (key, mean) if mean else None


def summary_table(results: Sequence[Result]) -> Table:
    """The best row of each split of a benchmark, by the headline measure, with its verdict."""
    best: dict[str, tuple[tuple[bool, bool, float], tuple[str, ...]]] = {}
    for result in results:
        experiment, scored = result.experiment, _headline(result)
        if scored and not _partial_notice(result):
            key, mean = scored
            gold = experiment.retriever is not None and experiment.retriever["name"] == "gold"
            worth = mean["value"] if experiment.scheme.best_value(key) else -mean["value"]
            order = (not gold, bool(experiment.corpus), worth)
            over = f"{experiment.benchmark} {experiment.split}"
            row = (
                over,
                experiment.name,
                f"{experiment.scheme.display_name(key)} {_format_score(mean)}",
                verdict_cell(result),
            )
            best[over] = max(best.get(over, (order, row)), (order, row), key=lambda pair: pair[0])
    rows = tuple(row for _, row in sorted(best.values(), key=lambda pair: pair[1]))
    return Table("Summary", _SUMMARY_NOTE, ("questions", "best row", "score", "verdict"), rows)


def reader_tables(results: Sequence[Result]) -> list[Table]:
    """A row for each measured reader, split and kind of passages; no table without measurements.

    Excludes variants, single questions and readers trained on the questions. Whole splits come first, then names: no score
    decides which experiment is shown.
    """
    cells: dict[tuple[str, str, str], tuple[str, ...]] = {}
    for result in sorted(results, key=lambda result: (_partial_notice(result), result.experiment.name)):
        experiment, scored = result.experiment, _headline(result)
        if scored and experiment.reader and not experiment.variant and not experiment.questions:
            retriever = experiment.retriever["name"] if experiment.retriever else ""
            searched = "given" if retriever in ("gold", "context") else f"retrieved from {experiment.corpus}"
            kind = searched if retriever else "closed book"
            key = (f"{experiment.benchmark} {experiment.split}", kind, experiment.reader["name"])
            score = f"{_format_score(scored[1])} {_partial_notice(result)}".rstrip()
            cells.setdefault(key, (*key, scored[0], score, experiment.name))
    columns = ("questions", "passages", "reader", "measure", "score", "experiment")
    return [Table(READERS, _READERS_NOTE, columns, tuple(cells[key] for key in sorted(cells)))] if cells else []


def _partial_notice(result: Result) -> str:
    """The part of the split that the scores cover; empty for the whole split."""
    return score_files.partial_notice(result.scores) if result.scores else ""


def _format_score(mean: ScoreInterval) -> str:
    return f"{mean['value']:.1f} [{mean['low']:.1f}, {mean['high']:.1f}]"


def losses_table(losses: Mapping[str, Sequence[Loss]]) -> Table:
    """The losses under the probes of `ifqa probe`: a row for each probe and measure of each experiment."""
    rows = []
    for name, every in losses.items():
        for loss in every:
            counts = (f"{loss.questions:,}", f"{loss.left_out:,}", f"{loss.before:.1f}", f"{loss.after:.1f}")
            interval = f"{loss.loss:.1f} [{loss.low:.1f}, {loss.high:.1f}]"
            rows.append((name, loss.probe, loss.measure, *counts, interval, p_cell(loss.p)))
    columns = ("experiment", "probe", "measure", "questions", "left out", "before", "after", "loss", "p")
    return Table("What readers lose without the supposition", _LOSSES_NOTE, columns, tuple(rows), left=(0, 1, 2))
