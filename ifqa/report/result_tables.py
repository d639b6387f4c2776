"""The results of experiments as tables, and the texts of RESULTS.md and of a README made of them."""

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

_MOST = 12  # expected values of an experiment that one cell lists; of more, those of groups stand by group
_WIDTH = 127  # characters of a line of RESULTS.md's head
_LOSSES_NOTE = (
    "The reader read again: without the if-clause, with another question's if-clause, with another question's passages. "
    "Loss: how much the measure falls over the questions that the probe can change, with its 95% bootstrap interval and p of a "
    "paired randomisation test. Questions that do not split into two clauses, and in the last probe those without passages, are "
    "left out before and after alike."
)
_SUMMARY_NOTE = (
    "The best row has the highest headline score of a split, among experiments over the whole split that search a corpus; if "
    "none searches, among all. Experiments that are given the annotated passages are left out."
)
READERS = "Every reader on every benchmark"
_READERS_NOTE = (
    "Closed book: the question alone. Given: the passages that come with the question. Retrieved: those found in the corpus. Of "
    "several experiments the first by name is shown."
)
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


def result_tables(results: Sequence[Result]) -> list[Table]:
    """A table for each heading of the experiments, those with a measured row first, and a table of how they were made."""
    return [*(table for title, some in by_title(results) for table in tables_of(title, some)), how_made(results)]


def by_title(results: Sequence[Result]) -> list[tuple[str, list[Result]]]:
    """The headings of the experiments, each with its results, those with a measured row first."""
    titles: dict[str, list[Result]] = {}
    for result in results:
        experiment = result.experiment
        titles.setdefault(experiment.table or f"{experiment.benchmark} {experiment.split}", []).append(result)
    return sorted(titles.items(), key=lambda pair: (not any(result.scores for result in pair[1]), pair[0]))


def tables_of(title: str, results: Sequence[Result]) -> list[Table]:
    """The table of the results below a heading, and the table of their scores by group if there are groups."""
    return [_scores(title, results), *_by_group(title, results)]


def results_markdown(tables: Iterable[Table], results: Sequence[Result]) -> str:
    """The text of RESULTS.md: the tables, below an explanation of their columns."""
    texts = (f'"{name[:1].upper()}{name[1:]}": {about}.' for name, about in legend(results).items())
    explained = textwrap.fill(" ".join(texts), _WIDTH, break_on_hyphens=False)
    head = _HEAD.replace("{legend}\n", f"{explained}\n" if explained else "")
    return "\n".join([head, *(table.section() for table in tables)])


def in_readme(results: Iterable[Result]) -> list[Result]:
    """What was measured on whole splits; without variants, whose files are not kept."""
    return [result for result in results if result.scores and not _part(result) and not result.experiment.variant]


def readme_table(results: Iterable[Result]) -> str:
    """The table for a README: what was measured on whole splits, without variants."""
    chosen = in_readme(results)
    columns: dict[str, Cell] = {
        "experiment": lambda result: result.experiment.about.removesuffix(".") or result.experiment.name,
        "passages": _passages,
    }
    columns |= _rankings(chosen) | _answers(chosen)
    columns["command"] = lambda result: f"`ifqa run {result.experiment.name}`"
    ordered = sorted(chosen, key=lambda result: (result.experiment.table, result.experiment.name))
    rows = tuple(tuple(cell(result) for cell in columns.values()) for result in ordered)
    return Table("", "", tuple(columns), rows).markdown()


def _scores(title: str, results: Sequence[Result]) -> Table:
    columns: dict[str, Cell] = {"experiment": lambda result: result.experiment.name, "verdict": verdict_of}
    columns |= _answers(results) | _rankings(results) | {"published or expected": _expectations}
    parts = _parts(results)
    columns |= parts | {"passages": _passages}
    cells = {column: [cell(result) for result in results] for column, cell in columns.items()}
    kept = {column: some for column, some in cells.items() if any(some) or column == "verdict"}  # no blank columns
    return Table(title, _sources(results), tuple(kept), tuple(zip(*kept.values(), strict=True)))


def _by_group(title: str, results: Sequence[Result]) -> Iterator[Table]:
    """A table of scores by group beside the expected ones: a row for each measure of each experiment; none without groups."""
    groups = list(dict.fromkeys(group for result in results for group in _groups(result)))
    if not groups:
        return
    rows = []
    for result in results:
        by, name = result.experiment.scheme, result.experiment.name
        for key in by.table_keys([measure.name for measure in by.measures]):
            rows.append((name, by.display_name(key), *(_of_group(result, group, key) for group in groups)))
        for depths, ranking in _depth_columns([by]):
            rows.append((name, depths, *(_depths(result, ranking, group) for group in groups)))
    kinds = dict.fromkeys(by.groups for by in _declared(results) if by.groups)
    measured_rows = tuple(row for row in rows if any(row[2:]))
    yield Table(f"{title}, by {' or '.join(kinds)}", "", ("experiment", "measure", *groups), measured_rows)


def _groups(result: Result) -> list[str]:
    """The groups of an experiment: of its scores, or without any of its expected values."""
    by = result.experiment.scheme
    if not by.groups:
        return []
    if result.scores:
        return list(result.scores.get("groups", {}))
    others = {"", MACRO, GOLD_READ, *(subset.name for subset in by.subsets)}
    expected = dict.fromkeys(expected.measure.rpartition(".")[0] for expected in result.experiment.expected)
    return [part for part in expected if part not in others]


def _of_group(result: Result, group: str, key: str) -> str:
    expected = [expected for expected in result.experiment.expected if expected.measure == f"{group}.{key}"]
    judged = [
        f"expected {each.value:g}" + (f" {verdict(result.scores, each)}" if result.scores else "") for each in expected
    ]
    return "; ".join(filter(None, [_mean(result, f"{group}.{key}"), *judged]))


def _sources(results: Sequence[Result]) -> str:
    """The sources of a table's expected values; with the experiments' names if there are several sources."""
    names: dict[str, dict[str, None]] = {}
    for result in results:
        for expected in result.experiment.expected:
            if expected.source:
                names.setdefault(expected.source, {})[result.experiment.name] = None
    if not names:
        return ""
    sources = [f"{source} ({', '.join(of)})" for source, of in names.items()] if len(names) > 1 else names
    return f"Expected values: {'; '.join(sources)}."


def verdict_of(result: Result) -> str:
    """The worst verdict on its scores, what part of the split they cover, and the reader's label; or why there are none."""
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


def _expectations(result: Result) -> str:
    """The expected values, grouped by model; with the verdict on each if there are several. Many by group stand elsewhere."""
    models: dict[str, list[str]] = {}
    every = result.experiment.expected
    groups = _groups(result) if len(every) > _MOST else []
    for expected in every:
        part, _, measure = expected.measure.rpartition(".")
        if part in groups:
            continue
        name = f"{measure} ({part.replace('_', ' ')})" if part else measure
        tolerance = f" ± {expected.tolerance:g}" if expected.tolerance else ""
        judged = result.scores and not expected.retired and len(every) > 1
        told = f" {verdict(result.scores, expected)}" if result.scores and judged else ""
        models.setdefault(expected.retired, []).append(f"{name} {expected.value:g}{tolerance}{told}")
    return "; ".join(", ".join(values) + (f" [{model}]" if model else "") for model, values in models.items())


def _passages(result: Result) -> str:
    experiment, count = result.experiment, result.made.get("passages")
    if experiment.retriever is None:
        return "none"
    return f"{count:,} ({experiment.corpus})" if count else experiment.corpus or experiment.retriever["name"]


def _declared(results: Iterable[Result]) -> list[ScoringScheme]:
    """The measures and subsets of the experiments' benchmarks, without duplicates."""
    named = {(e.benchmark, e.measures, e.root, e.split): e for e in (result.experiment for result in results)}
    return [experiment.scheme for experiment in named.values()]


def _answers(results: Sequence[Result]) -> dict[str, Cell]:
    """A column for each measure of answers that tables show."""
    shown = [(by, key) for by in _declared(results) for key in by.table_keys([measure.name for measure in by.measures])]
    return {by.display_name(key): partial(_mean, measure=key) for by, key in shown}


def _rankings(results: Sequence[Result]) -> dict[str, Cell]:
    """A column for each measure of rankings, over the depths that tables show."""
    return {column: partial(_depths, measure=measure) for column, measure in _depth_columns(_declared(results))}


def _depth_columns(schemes: Iterable[ScoringScheme]) -> Iterator[tuple[str, RankingMeasure]]:
    for by in schemes:
        for measure in by.rankings:
            if measure.tables:
                yield f"{_title(measure)} @{' / @'.join(map(str, measure.tables))}", measure


def _parts(results: Sequence[Result]) -> dict[str, Cell]:
    """A column for each subset that tables show: the headline measure over it."""
    columns: dict[str, Cell] = {}
    for by in _declared(results):
        if key := by.headline([measure.name for measure in by.measures]):
            for part in [*(subset.name for subset in by.subsets if subset.in_tables), GOLD_READ, MACRO]:
                columns[f"{by.display_name(key)}, {part.replace('_', ' ')}"] = partial(_mean, measure=f"{part}.{key}")
    return columns


def legend(results: Sequence[Result]) -> dict[str, str]:
    """Measure or subset -> an explanation, for those of the columns that have one."""
    schemes, texts = _declared(results), dict[str, str]()
    for by in schemes:
        texts |= {f"{_title(measure)} @K": measure.about for measure in by.rankings if measure.tables}
        texts |= {
            measure.name: measure.about for measure in by.measures if measure.name in by.table_keys([measure.name])
        }
        texts |= {subset.name.replace("_", " "): subset.about for subset in by.subsets if subset.in_tables}
    if any(result.scores and GOLD_READ in result.scores["subsets"] for result in results):
        texts["gold read"] = "those for which a gold passage was among those that the reader was given"
    if any(by.groups for by in schemes):
        texts["macro"] = "the mean over the groups of a benchmark, each of which counts the same"
    if any("↓" in column for column in _answers(results)):
        texts["↓"] = "low is best"
    return {name: about for name, about in texts.items() if about}


def _title(measure: RankingMeasure) -> str:
    return (measure.title or measure.name) + (" ↓" if measure.best == "low" else "")


def _depths(result: Result, measure: RankingMeasure, part: str = "") -> str:
    at = f"{part}.{measure.name}" if part else measure.name
    means = [find_score(result.scores, f"{at}@{k}") if result.scores else None for k in measure.tables]
    return " / ".join(f"{mean['value']:.1f}" if mean else "-" for mean in means) if any(means) else ""


def _mean(result: Result, measure: str) -> str:
    if result.scores is None or (mean := find_score(result.scores, measure)) is None:
        return ""
    part = measure.rpartition(".")[0]
    over = part_scores(result.scores, part) if part else None
    of = f" of {over['questions']:,}" if over and "questions" in over else ""
    return f"{_score(mean)}{of}"


def how_made(results: Sequence[Result]) -> Table:
    """A row for each measured result: what it is, and how it was made."""
    columns = ("experiment", "what it is", "date", "hardware", "commit", "time", "cost", "notes")
    rows = tuple(_how(result) for _, some in by_title(results) for result in some if result.scores)
    return Table("How they were made", "", columns, rows)


def _how(result: Result) -> tuple[str, ...]:
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
    notes += ["trained on these very questions"] if "trained_on_them" in facts else []
    hardware = f"{facts['hardware']}, Python {facts['python']}"
    about = experiment.about + changed
    return (experiment.name, about, facts["at"][:10], hardware, facts["commit"], time, cost, "; ".join(notes))


def _headline(result: Result) -> tuple[str, ScoreInterval] | None:
    """The headline measure of answers and its score; None without a reader, or for one trained on the questions."""
    if not result.scores or not result.experiment.reader or "trained_on_them" in result.made:
        return None
    by = result.experiment.scheme
    key = by.headline(by.table_keys(result.scores["measures"]))
    mean = find_score(result.scores, key)
    return (key, mean) if mean else None


def summary(results: Sequence[Result]) -> Table:
    """The best row of each split of a benchmark, by the headline measure, with its verdict."""
    best: dict[str, tuple[tuple[bool, bool, float], tuple[str, ...]]] = {}
    for result in results:
        experiment, scored = result.experiment, _headline(result)
        if scored and not _part(result):
            key, mean = scored
            gold = experiment.retriever is not None and experiment.retriever["name"] == "gold"
            worth = mean["value"] if experiment.scheme.best_value(key) else -mean["value"]
            order = (not gold, bool(experiment.corpus), worth)
            over = f"{experiment.benchmark} {experiment.split}"
            row = (over, experiment.name, f"{experiment.scheme.display_name(key)} {_score(mean)}", verdict_of(result))
            best[over] = max(best.get(over, (order, row)), (order, row), key=lambda pair: pair[0])
    rows = tuple(row for _, row in sorted(best.values(), key=lambda pair: pair[1]))
    return Table("Summary", _SUMMARY_NOTE, ("questions", "best row", "score", "verdict"), rows)


def readers(results: Sequence[Result]) -> list[Table]:
    """A row for each reader on each split and kind of passages where it was measured; no table if nothing was.

    Variants, experiments on single questions, and those on questions they were trained on are left out. Whole splits come first,
    then the name: no score decides which experiment is shown.
    """
    cells: dict[tuple[str, str, str], tuple[str, ...]] = {}
    for result in sorted(results, key=lambda result: (_part(result), result.experiment.name)):
        experiment, scored = result.experiment, _headline(result)
        if scored and experiment.reader and not experiment.variant and not experiment.questions:
            retriever = experiment.retriever["name"] if experiment.retriever else ""
            searched = "given" if retriever in ("gold", "context") else f"retrieved from {experiment.corpus}"
            kind = searched if retriever else "closed book"
            key = (f"{experiment.benchmark} {experiment.split}", kind, experiment.reader["name"])
            score = f"{_score(scored[1])} {_part(result)}".rstrip()
            cells.setdefault(key, (*key, scored[0], score, experiment.name))
    columns = ("questions", "passages", "reader", "measure", "score", "experiment")
    return [Table(READERS, _READERS_NOTE, columns, tuple(cells[key] for key in sorted(cells)))] if cells else []


def _part(result: Result) -> str:
    """What part of the split the scores cover; empty for all of it."""
    return score_files.partial_notice(result.scores) if result.scores else ""


def _score(mean: ScoreInterval) -> str:
    return f"{mean['value']:.1f} [{mean['low']:.1f}, {mean['high']:.1f}]"


def losses_table(losses: Mapping[str, Sequence[Loss]]) -> Table:
    """What readers lose under the probes of `ifqa probe`: a row for each probe and measure of each experiment."""
    rows = []
    for name, every in losses.items():
        for loss in every:
            counts = (f"{loss.questions:,}", f"{loss.left_out:,}", f"{loss.before:.1f}", f"{loss.after:.1f}")
            interval = f"{loss.loss:.1f} [{loss.low:.1f}, {loss.high:.1f}]"
            rows.append((name, loss.probe, loss.measure, *counts, interval, p_cell(loss.p)))
    columns = ("experiment", "probe", "measure", "questions", "left out", "before", "after", "loss", "p")
    return Table("What readers lose without the supposition", _LOSSES_NOTE, columns, tuple(rows), left=(0, 1, 2))
