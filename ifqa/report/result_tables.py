"""The scores of experiments as tables, RESULTS.md and the README's table."""

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby

from rich.console import Console

from ifqa.config.expected import (
    NEAR,
    OFF,
    OK,
    OTHER_SET,
    PART,
    RETIRED,
    Expected,
    find_score,
    part_scores,
    verdict,
)
from ifqa.config.experiment import base_experiments
from ifqa.formatting import format_duration, one_decimal, pluralize
from ifqa.pipeline.probe import Loss
from ifqa.protocols import RankingMeasure
from ifqa.report.results_log import Entry
from ifqa.report.scores import Score, score_cell
from ifqa.report.table import NOT_RUN, STALE, Table, p_cell
from ifqa.scoring import stored_scores
from ifqa.scoring.scheme import GOLD_READ, MACRO, ScoringScheme, split_key
from ifqa.scoring.stored_scores import ScoreInterval

Cell = Callable[[Entry], str]

_EXPECTED = "published or expected"  # a column

_MAX_EXPECTED = 12  # expected values in a cell; beyond that, those of groups are in the group table
_WIDTH = 127  # characters per line of RESULTS.md's head
_LOSSES_NOTE = (
    "The reader was run again without the if-clause, with another question's if-clause, and "
    "with another question's passages. "
    "Loss: the drop in the measure over the questions that the probe can change, with its "
    "95% bootstrap interval and p from a "
    "paired randomisation test. Questions that do not split into two clauses, and in the "
    "last probe those without passages, are left out of both scores."
)
_SUMMARY_NOTE = (
    "The best row has the best headline score on a split, among experiments over the whole "
    "split that search a corpus, or among all if none searches. An experiment with the annotated "
    "passages is shown only where all experiments have them, and then its row says so."
)
READERS = "Every reader on every benchmark"
_READERS_NOTE = (
    "Closed book: the question alone. Given: the passages that come with the question. "
    "Retrieved: from the corpus. If several experiments fit a row, "
    "the first of them by name is shown."
)
_HEAD = """# Results

Written by `ifqa report` from finished experiments; do not edit. `ifqa report --check` fails if \
this file is stale.

Scores are in percent, over all questions of an experiment; a failed question counts as wrong. \
Brackets hold 95% bootstrap
intervals, or Wilson's if all questions or none score. There is none over fewer than ten \
questions, or than ten units that
are resampled as a whole (such as paragraphs), and none if the bootstrap has no spread otherwise.
"""
_JUDGED = "The verdict compares a score with a value published or measured before:"
#: Verdict -> its explanation.
_VERDICTS = {
    OK: "**OK**, within the tolerance",
    NEAR: "**near**, the expected value lies in the interval",
    OFF: "**off**, neither in the tolerance nor in the interval",
    RETIRED: (
        "**model retired**, no verdict, as the published value's model is no longer available"
    ),
    OTHER_SET: ("**another test set**, no verdict, as the published value is over other questions"),
}
#: What stands in the column of verdicts besides -> its explanation.
_STATES = {
    "PARTIAL": "**PARTIAL**: only some questions of the split were asked.",
    NOT_RUN: (
        "**Not run**: what a run needs besides this package is listed, whether it is here or not."
    ),
    STALE: "**Stale**: the scores are older than their settings, corpus or code.",
}


def result_tables(entries: Sequence[Entry]) -> list[Table]:
    """A table for each heading, those with measured rows first, and a table of how the scores were
    measured.
    """
    tables = [
        table for title, group in group_by_title(entries) for table in score_tables(title, group)
    ]
    return [*tables, provenance_table(entries)]


def group_by_title(entries: Sequence[Entry]) -> list[tuple[str, list[Entry]]]:
    """The entries by heading, headings with measured rows first."""
    titles: dict[str, list[Entry]] = {}
    for entry in entries:
        titles.setdefault(entry.experiment.table or _split_name(entry), []).append(entry)
    return sorted(
        titles.items(), key=lambda pair: (not any(entry.scores for entry in pair[1]), pair[0])
    )


def _split_name(entry: Entry) -> str:
    return f"{entry.experiment.benchmark} {entry.experiment.split}"


def score_tables(title: str, entries: Sequence[Entry]) -> list[Table]:
    return [_score_table(title, entries), *_group_tables(title, entries)]


def results_markdown(tables: Iterable[Table], entries: Sequence[Entry]) -> str:
    """The text of RESULTS.md: an explanation of the columns, then the tables."""
    tables = list(tables)
    used = legend(entries, tables)
    texts = [f'"{name[:1].upper()}{name[1:]}": {about}.' for name, about in used.items()]
    verdicts = [text for word, text in _VERDICTS.items() if shows_verdict(tables, word)]
    judged = [f"{_JUDGED} {'; '.join(verdicts)}."] if verdicts else []
    states = [text for word, text in _STATES.items() if shows_verdict(tables, word)]
    paragraphs = [" ".join(texts), *judged, " ".join(states)]
    explained = [
        textwrap.fill(paragraph, _WIDTH, break_on_hyphens=False)
        for paragraph in paragraphs
        if paragraph
    ]
    head = _HEAD + "".join(f"\n{paragraph}\n" for paragraph in explained)
    return "\n".join([head, *(table.section() for table in tables)])


def shows_verdict(tables: Iterable[Table], word: str) -> bool:
    """Whether a verdict, such as OK or PARTIAL, stands in a table."""
    cells = [
        row[table.columns.index(column)]
        for table in tables
        for column in ("verdict", _EXPECTED)
        if column in table.columns
        for row in table.rows
    ]
    return any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", cell) for cell in cells)


def select_for_readme(entries: Iterable[Entry]) -> list[Entry]:
    """The entries scored on whole splits, except variants, because variants' files are not kept."""
    return [
        entry
        for entry in entries
        if entry.scores and not (_partial_notice(entry) or entry.experiment.variant)
    ]


def readme_table(entries: Iterable[Entry]) -> str:
    """The README's table of the entries that `select_for_readme` chooses."""
    chosen = select_for_readme(entries)
    columns: dict[str, Cell] = {
        "experiment": lambda entry: (
            entry.experiment.title
            or entry.experiment.about.removesuffix(".")
            or entry.experiment.name
        ),
        "passages": _passages_cell,
    }
    columns |= _ranking_columns(chosen) | _answer_columns(chosen)
    columns["command"] = lambda entry: f"`ifqa run {entry.experiment.name}`"
    chosen.sort(key=lambda entry: (entry.experiment.table, entry.experiment.name))
    rows = tuple(tuple(cell(entry) for cell in columns.values()) for entry in chosen)
    return Table("", "", tuple(columns), rows).markdown()


def _score_table(title: str, entries: Sequence[Entry]) -> Table:
    columns: dict[str, Cell] = {
        "experiment": lambda entry: entry.experiment.display_name,
        "verdict": verdict_cell,
    }
    columns |= _answer_columns(entries) | _ranking_columns(entries) | {_EXPECTED: _expected_cell}
    columns |= _subset_columns(entries) | {"passages": _passages_cell}
    cells = {column: [cell(entry) for entry in entries] for column, cell in columns.items()}
    # No blank columns
    cells = {column: texts for column, texts in cells.items() if any(texts) or column == "verdict"}
    return Table(
        title, _source_note(entries), tuple(cells), tuple(zip(*cells.values(), strict=True))
    )


def _group_tables(title: str, entries: Sequence[Entry]) -> Iterator[Table]:
    """Scores by group beside the expected ones, a row for each measure of each experiment.

    No table without groups.
    """
    groups = list(dict.fromkeys(group for entry in entries for group in _groups(entry)))
    if not groups:
        return
    rows = []
    for entry in entries:
        scheme = entry.experiment.scheme
        name = entry.experiment.display_name
        for key in scheme.table_keys([measure.name for measure in scheme.measures]):
            rows.append(
                (
                    name,
                    scheme.display_name(key),
                    *(_group_cell(entry, group, key) for group in groups),
                )
            )
        for depths, ranking in _depth_columns([scheme]):
            rows.append((name, depths, *(_depths_cell(entry, ranking, group) for group in groups)))
    kinds = dict.fromkeys(scheme.groups for scheme in _distinct_schemes(entries) if scheme.groups)
    rows = [row for row in rows if any(row[2:])]
    yield Table(
        f"{title}, by {' or '.join(kinds)}", "", ("experiment", "measure", *groups), tuple(rows)
    )


def _groups(entry: Entry) -> list[str]:
    """The groups in an experiment's scores, or, without scores, in its expected values."""
    scheme = entry.experiment.scheme
    if not scheme.groups:
        return []
    if entry.scores:
        return list(entry.scores.get("groups", {}))
    others = {"", MACRO, GOLD_READ, *(subset.name for subset in scheme.subsets)}
    parts = dict.fromkeys(split_key(expected.measure)[0] for expected in entry.experiment.expected)
    return [part for part in parts if part not in others]


def _group_cell(entry: Entry, group: str, key: str) -> str:
    cells = [_score_cell(entry, f"{group}.{key}")]
    for expected in entry.experiment.expected:
        if expected.measure == f"{group}.{key}":
            cells.append(f"expected {expected.value:g} {_judgement(entry, expected)}".rstrip())
    return "; ".join(filter(None, cells))


def _judgement(entry: Entry, expected: Expected) -> str:
    """The verdict on an expected value; empty without one, as beside PARTIAL."""
    judged = verdict(entry.scores, expected) if entry.scores else PART
    return "" if judged == PART else judged


def _source_note(entries: Sequence[Entry]) -> str:
    """The sources of a table's expected values.

    Several sources are listed with their experiments.
    """
    names: dict[str, dict[str, None]] = {}
    for entry in entries:
        for expected in entry.experiment.expected:
            if expected.source:
                names.setdefault(expected.source, {})[entry.experiment.display_name] = None
    if not names:
        return ""
    sources = (
        [f"{source} ({', '.join(of)})" for source, of in names.items()] if len(names) > 1 else names
    )
    return f"Expected values: {'; '.join(sources)}."


def verdict_cell(entry: Entry) -> str:
    """The worst verdict on the scores, the part of the split they cover, the reader's label and the
    ledger's mark.

    Without scores, the reason for that.
    """
    if entry.stale:
        return f"{STALE}: {entry.stale}"
    scores = entry.scores
    if scores is None:
        return f"{NOT_RUN}: needs {', '.join(entry.needs)}" if entry.needs else NOT_RUN
    verdicts = {verdict(scores, expected) for expected in entry.experiment.expected}
    worst = next((each for each in (OFF, NEAR, OK, RETIRED, OTHER_SET) if each in verdicts), "")
    failed = f"{scores['n_failed']:,} failed" if scores["n_failed"] else ""
    abstained = f"{scores['n_abstained']:,} abstained" if "n_abstained" in scores else ""
    unclear = scores["judge"]["unclear"] if "judge" in scores else 0
    no_verdict = f"{pluralize(unclear, 'verdict')} neither yes nor no" if unclear else ""
    notes = (
        worst,
        stored_scores.partial_notice(scores),
        failed,
        abstained,
        no_verdict,
        entry.facts.get("label", ""),
        entry.mark,
    )
    return "; ".join(filter(None, notes))


def _expected_cell(entry: Entry) -> str:
    """The expected values by what differs, with verdicts if several.

    Those for groups may be left to the group table.
    """
    values: dict[str, list[str]] = {}
    every = entry.experiment.expected
    groups = _groups(entry) if len(every) > _MAX_EXPECTED else []
    for expected in every:
        part, measure = split_key(expected.measure)
        if part in groups:
            continue
        name = f"{measure} ({part.replace('_', ' ')})" if part else measure
        tolerance = f" ± {expected.tolerance:g}" if expected.tolerance else ""
        is_judged = not expected.differs and len(every) > 1
        judgement = _judgement(entry, expected) if is_judged else ""
        values.setdefault(expected.differs, []).append(
            f"{name} {expected.value:g}{tolerance} {judgement}".rstrip()
        )
    return "; ".join(
        ", ".join(of) + (f" [{differs}]" if differs else "") for differs, of in values.items()
    )


def _passages_cell(entry: Entry) -> str:
    experiment = entry.experiment
    count = entry.facts.get("passages")
    if experiment.retriever is None:
        return "none"
    return (
        f"{count:,} ({experiment.corpus})"
        if count
        else experiment.corpus or experiment.retriever.name
    )


def _distinct_schemes(entries: Iterable[Entry]) -> list[ScoringScheme]:
    """The scoring schemes of the experiments, without duplicates."""
    named = {
        (e.benchmark, e.measures, e.root, e.split, e.judge and e.judge.name): e
        for e in (entry.experiment for entry in entries)
    }
    return [experiment.scheme for experiment in named.values()]


def _answer_columns(entries: Sequence[Entry]) -> dict[str, Cell]:
    columns: dict[str, Cell] = {}
    for scheme in _distinct_schemes(entries):
        for key in scheme.table_keys([measure.name for measure in scheme.measures]):
            columns[scheme.display_name(key)] = partial(_score_cell, measure=key)
    return columns


def _ranking_columns(entries: Sequence[Entry]) -> dict[str, Cell]:
    pairs = _depth_columns(_distinct_schemes(entries))
    return {column: partial(_depths_cell, measure=measure) for column, measure in pairs}


def _depth_columns(schemes: Iterable[ScoringScheme]) -> Iterator[tuple[str, RankingMeasure]]:
    for scheme in schemes:
        for measure in scheme.rankings:
            if measure.tables:
                yield f"{_title(measure)} @{' / @'.join(map(str, measure.tables))}", measure


def _subset_columns(entries: Sequence[Entry]) -> dict[str, Cell]:
    """A column for each subset that tables show: the headline measure over it."""
    columns: dict[str, Cell] = {}
    for scheme in _distinct_schemes(entries):
        if key := scheme.headline([measure.name for measure in scheme.measures]):
            for part in [
                *(subset.name for subset in scheme.subsets if subset.in_tables),
                GOLD_READ,
                MACRO,
            ]:
                title = f"{scheme.display_name(key)}, {part.replace('_', ' ')}"
                columns[title] = partial(_score_cell, measure=f"{part}.{key}")
    return columns


def legend(entries: Sequence[Entry], tables: Sequence[Table]) -> dict[str, str]:
    """Measure or subset -> its explanation, for those that have one and that the tables show."""
    schemes = _distinct_schemes(entries)
    texts = dict[str, str]()
    for scheme in schemes:
        keys = scheme.table_keys([measure.name for measure in scheme.measures])
        texts |= {
            f"{_title(measure)} @K": measure.about for measure in scheme.rankings if measure.tables
        }
        texts |= {
            measure.name: measure.about for measure in scheme.measures if measure.name in keys
        }
        texts |= {
            subset.name.replace("_", " "): subset.about
            for subset in scheme.subsets
            if subset.in_tables
        }
    if any(entry.scores and GOLD_READ in entry.scores["subsets"] for entry in entries):
        texts["gold read"] = "questions for which the reader was given a gold passage"
    if any(scheme.groups for scheme in schemes):
        texts["macro"] = "the unweighted mean over the groups of a benchmark"
    if any("↓" in column for column in _answer_columns(entries)):
        texts["↓"] = "low is best"
    shown = " | ".join(_terms(tables))
    return {
        name: about
        for name, about in texts.items()
        if about and re.search(rf"(?<!\w){re.escape(name.removesuffix(' @K'))}(?!\w)", shown)
    }


def _terms(tables: Iterable[Table]) -> Iterator[str]:
    """What tables name: their columns, and the measures that rows are about."""
    for table in tables:
        yield from table.columns
        if "measure" in table.columns:
            yield from (row[table.columns.index("measure")] for row in table.rows)


def _title(measure: RankingMeasure) -> str:
    return (measure.title or measure.name) + (" ↓" if measure.best == "low" else "")


def _depths_cell(entry: Entry, measure: RankingMeasure, part: str = "") -> str:
    name = f"{part}.{measure.name}" if part else measure.name
    means = [
        find_score(entry.scores, f"{name}@{k}") if entry.scores else None for k in measure.tables
    ]
    return " / ".join(map(score_cell, means)) if any(means) else ""


def _score_cell(entry: Entry, measure: str) -> str:
    if entry.scores is None or (mean := find_score(entry.scores, measure)) is None:
        return ""
    part, _ = split_key(measure)
    over = part_scores(entry.scores, part) if part else None
    of = f" of {over['questions']:,}" if over and "questions" in over else ""
    return f"{_format_score(mean)}{of}"


def provenance_table(entries: Sequence[Entry]) -> Table:
    """A row for each measured experiment: its description and how it was measured."""
    columns = ("experiment", "what it is", "date", "hardware", "commit", "time", "cost", "notes")
    rows = tuple(
        _provenance_row(entry)
        for _, group in group_by_title(entries)
        for entry in group
        if entry.scores
    )
    return Table("How they were measured", "", columns, rows)


def _provenance_row(entry: Entry) -> tuple[str, ...]:
    facts = entry.facts
    experiment = entry.experiment
    varied = base_experiments(experiment.name, experiment.root)
    changed = f" Changed: {experiment.name.removeprefix(f'{varied[-1]}+')}." if varied else ""
    time = ", ".join(
        f"{stage} {format_duration(seconds)}" for stage, seconds in facts["seconds"].items()
    )
    cost = "$0"
    if "tokens" in facts:
        last = "at an unknown price" if facts.get("cost") is None else f"${facts['cost']:,.2f}"
        cost = f"{last} in the last attempt, {facts['tokens']:,} tokens in all"
    asked = facts.get("served_as") or facts.get("model")
    notes = [f"asked {asked}"] if asked else []
    notes += ["trained on these questions"] if "trained_on_them" in facts else []
    notes += ["confidence fitted on these questions"] if "calibrated_on_them" in facts else []
    hardware = f"{facts['hardware']}, Python {facts['python']}"
    about = experiment.about + changed
    name = experiment.name
    return (
        f"{experiment.title} ({name})" if experiment.title else name,
        about,
        facts["at"][:10],
        hardware,
        facts["commit"],
        time,
        cost,
        "; ".join(notes),
    )


def _headline(entry: Entry) -> tuple[str, ScoreInterval] | None:
    """The headline measure of answers and its score.

    None without a reader, or for one trained on the questions.
    """
    if not entry.scores or not entry.experiment.reader or "trained_on_them" in entry.facts:
        return None
    scheme = entry.experiment.scheme
    key = scheme.headline(scheme.table_keys(entry.scores["measures"]))
    mean = find_score(entry.scores, key)
    return (key, mean) if mean else None


def summary_table(entries: Sequence[Entry]) -> Table:
    """The best experiment on each split of each benchmark, by the headline measure, with its
    verdict.
    """
    best: dict[str, tuple[tuple[bool, bool, float], Entry]] = {}
    for entry in entries:
        headline = _headline(entry)
        if headline and not _partial_notice(entry):
            split = _split_name(entry)
            order = _summary_order(entry, *headline)
            if split not in best or order > best[split][0]:
                best[split] = order, entry
    rows = [_summary_row(split, entry) for split, (_, entry) in best.items()]
    columns = ("questions", "best row", "score", "verdict")
    return Table("Summary", _SUMMARY_NOTE, columns, tuple(sorted(rows)))


def _summary_order(entry: Entry, key: str, mean: ScoreInterval) -> tuple[bool, bool, float]:
    """What makes an entry a better row: passages that were retrieved, a corpus, the score."""
    experiment = entry.experiment
    value = mean["value"]
    if not experiment.scheme.best_value(key):
        value = -value
    return not _has_gold(entry), bool(experiment.corpus), value


def _has_gold(entry: Entry) -> bool:
    """Whether the reader is given the annotated passages."""
    retriever = entry.experiment.retriever
    return retriever is not None and retriever.name == "gold"


def _summary_row(split: str, entry: Entry) -> tuple[str, ...]:
    headline = _headline(entry)
    assert headline
    key, mean = headline
    score = f"{entry.experiment.scheme.display_name(key)} {_format_score(mean)}"
    given = "with the annotated passages" if _has_gold(entry) else ""
    verdict_text = "; ".join(filter(None, (given, verdict_cell(entry))))
    return split, entry.experiment.display_name, score, verdict_text


def reader_tables(entries: Sequence[Entry]) -> list[Table]:
    """A row for each measured reader, split and kind of passages; no table without measurements.

    Excludes variants, single questions and readers trained on the questions. Experiments on whole
    splits are preferred, then the first name, so that no score decides which experiment is shown.
    """
    rows: dict[tuple[str, str, str], tuple[str, ...]] = {}
    for entry in sorted(entries, key=lambda entry: (_partial_notice(entry), entry.experiment.name)):
        experiment = entry.experiment
        headline = _headline(entry)
        if headline and experiment.reader and not experiment.variant and not experiment.questions:
            retriever = experiment.retriever.name if experiment.retriever else ""
            searched = (
                "given"
                if retriever in ("gold", "context")
                else f"retrieved from {experiment.corpus}"
            )
            key = (
                _split_name(entry),
                searched if retriever else "closed book",
                experiment.reader.name,
            )
            score = f"{_format_score(headline[1])} {_partial_notice(entry)}".rstrip()
            rows.setdefault(key, (*key, headline[0], score, experiment.display_name))
    columns = ("questions", "passages", "reader", "measure", "score", "experiment")
    return (
        [Table(READERS, _READERS_NOTE, columns, tuple(rows[key] for key in sorted(rows)))]
        if rows
        else []
    )


def _partial_notice(entry: Entry) -> str:
    return stored_scores.partial_notice(entry.scores) if entry.scores else ""


def _format_score(mean: ScoreInterval) -> str:
    return str(Score(mean["value"], mean.get("low"), mean.get("high")))


def show_losses(losses: Sequence[Loss], console: Console) -> None:
    """Print an experiment's losses, a table for each probe, so that they fit into 80 columns."""
    columns = ("measure", "before", "after", "loss", "p")
    for probe, of_probe in groupby(losses, key=lambda loss: loss.probe):
        rows = list(of_probe)
        left_out = f", {rows[0].left_out:,} left out" if rows[0].left_out else ""
        cells = tuple(
            (
                loss.measure,
                one_decimal(loss.before),
                one_decimal(loss.after),
                str(Score(loss.loss, loss.low, loss.high)),
                p_cell(loss.p),
            )
            for loss in rows
        )
        title = f"{probe}: {pluralize(rows[0].questions, 'question')}{left_out}"
        Table(title, "", columns, cells).show(console, gap=2)
    console.print(_LOSSES_NOTE)


def losses_table(losses: Mapping[str, Sequence[Loss]]) -> Table:
    """The losses under the probes of `ifqa probe`: a row for each probe and measure of each
    experiment.
    """
    rows = []
    for name, loss in ((name, loss) for name, probed in losses.items() for loss in probed):
        counts = (
            f"{loss.questions:,}",
            f"{loss.left_out:,}",
            one_decimal(loss.before),
            one_decimal(loss.after),
        )
        interval = str(Score(loss.loss, loss.low, loss.high))
        rows.append((name, loss.probe, loss.measure, *counts, interval, p_cell(loss.p)))
    columns = (
        "experiment",
        "probe",
        "measure",
        "questions",
        "left out",
        "before",
        "after",
        "loss",
        "p",
    )
    return Table(
        "What readers lose without the supposition",
        _LOSSES_NOTE,
        columns,
        tuple(rows),
        left=(0, 1, 2),
    )
