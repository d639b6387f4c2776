"""`ifqa runs`: the finished runs below the working directory, newest first, with their scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ifqa.config.experiment import Experiment
from ifqa.formatting import pluralize
from ifqa.report.results_log import Entry, local_entries
from ifqa.report.scores import Score, score_cell
from ifqa.report.table import STALE, Table
from ifqa.scoring.stored_scores import ScoresJson, partial_notice


@dataclass(frozen=True)
class FinishedRun:
    """A scored run, and when it was scored, as ISO time."""

    at: str
    entry: Entry

    @property
    def over(self) -> str:
        """Its questions: how many, and of what; or why its scores are stale."""
        entry = self.entry
        split = f"{entry.experiment.benchmark} {entry.experiment.split}"
        if entry.scores is None:
            return f"{split}, {STALE}: {entry.stale}"
        notice = partial_notice(entry.scores)
        if notice:
            return f"{split}, {notice}"
        return f"{split}, {pluralize(entry.scores['questions'], 'question')}"

    def to_dict(self) -> dict[str, object]:
        """The run as plain data, with all its scores."""
        experiment = self.entry.experiment
        return {
            "experiment": experiment.name,
            "name": experiment.display_name,
            "at": self.at,
            "benchmark": experiment.benchmark,
            "split": experiment.split,
            "stale": self.entry.stale,
            "scores": self.entry.scores,
            "seen": self.entry.mark,
        }


def finished_runs(words: Sequence[str] = (), root: Path = Path()) -> list[FinishedRun]:
    """The scored runs, newest first, that have each of the words in their name, description,
    benchmark, split, retriever, reader or model, whatever the case.
    """
    runs = [
        FinishedRun(at, entry)
        for at, entry in local_entries(root)
        if all(word.casefold() in _searched_text(entry.experiment) for word in words)
    ]
    return sorted(runs, key=lambda run: (run.at, run.entry.experiment.name), reverse=True)


def runs_table(runs: Sequence[FinishedRun]) -> Table:
    """A row for each run: when, which, the scores that tables of results show, and over what."""
    rows = []
    for run in runs:
        scores = run.entry.scores
        shown = _scores_text(run.entry.experiment, scores) if scores else ""
        at = run.at[:16].replace("T", " ")
        rows.append((at, run.entry.experiment.name, shown, run.over, run.entry.mark))
    columns = ("scored (UTC)", "experiment", "scores", "over", "")
    return Table("", "", columns, tuple(rows), left=(0, 1, 2, 3, 4))


def _searched_text(experiment: Experiment) -> str:
    plugins = [f"{plugin.kind} {plugin.name}" for plugin in experiment.asked]
    texts = (
        experiment.name,
        experiment.title,
        experiment.about,
        experiment.benchmark,
        experiment.split,
        experiment.corpus,
        experiment.asked_model,
        *plugins,
    )
    return " ".join(texts).casefold()


def _scores_text(experiment: Experiment, scores: ScoresJson) -> str:
    """The headline with its interval, and the other measures of tables: "EM 57.3 [53.6, 61.0], F1
    60.2".
    """
    scheme = experiment.scheme
    measures = scores["measures"]
    keys = scheme.table_keys(measures)
    for ranking in scheme.rankings:
        depths = [f"{ranking.name}@{depth}" for depth in ranking.tables]
        keys += [key for key in depths if key in measures][-1:]
    texts = []
    for number, key in enumerate(keys):
        mean = measures[key]
        text = score_cell(mean)
        if number == 0:
            text = str(Score(mean["value"], mean.get("low"), mean.get("high")))
        texts.append(f"{scheme.display_name(key)} {text}")
    return ", ".join(texts)
