"""The stage that scores the run and the predictions over all questions."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import repeat

from ifqa.pipeline.judge import counts_of, judge_answers, judge_inputs
from ifqa.pipeline.read import READ, rankings_identity
from ifqa.pipeline.retrieve import RETRIEVE
from ifqa.pipeline.run import Run
from ifqa.pipeline.session import Session
from ifqa.pipeline.stage import Stage
from ifqa.pipeline.stage_outputs import passages_of, predictions_of, rankings_of
from ifqa.plugins import code_fingerprint, source_file
from ifqa.records import Passage, Prediction, fingerprint_questions
from ifqa.scoring import per_question
from ifqa.scoring.aggregation import aggregate_rows
from ifqa.scoring.measures.judged import Verdict, with_verdicts
from ifqa.scoring.scheme import ScoringScheme
from ifqa.scoring.stored_scores import QuestionRow, read_scores
from ifqa.storage.artifacts import Draft
from ifqa.storage.files import sha256, write_json, write_jsonl
from ifqa.workers.pool import Workers


class Score(Stage[Run]):
    """Writes `scores.json`, and a row for each question to `per_question.jsonl`."""

    def needs(self, run: Run) -> Sequence[Stage[Run]]:
        stages = (RETRIEVE, READ)
        return [stage for stage in stages if stage.plugin(run.experiment)]

    def command(self, run: Run) -> str:
        return f"ifqa run {run.experiment.name}"

    def inputs(self, run: Run) -> dict[str, object]:
        """The questions, their benchmark and unit, the added measures, the run, passages and
        predictions, and the scorer's version; of a part of the split also the split's size.
        """
        experiment = run.experiment
        benchmark = run.benchmark
        inputs: dict[str, object] = {
            "stage": self.name,
            "version": per_question.VERSION,
            "seed": experiment.seed,
            "benchmark": {
                "name": experiment.benchmark,
                "code": code_fingerprint(type(benchmark)),
            },
            **_measures(run),
            **_unit(run),
            "questions": run.questions_identity,
        }
        # A part says nothing of the split that it is taken from, which may have grown
        if len(run.questions) < len(run.split) and not self._older_with_size(run):
            inputs["split_size"] = len(run.split)
        # A subset of questions depends on it
        if split := benchmark.training_split(experiment.split):
            inputs["training"] = fingerprint_questions(
                run.questions_of(experiment.benchmark, split)
            )
        inputs |= rankings_identity(run)
        if experiment.reader:
            inputs["predictions"] = run.identity(READ)
        if experiment.judge:
            inputs["judge"] = judge_inputs(run, experiment.judge)
        return inputs

    def _older_with_size(self, run: Run) -> bool:
        """Whether there are scores of an earlier version, without the size among their inputs, but
        over a split of today's size: they stay current.
        """
        artifact = run.artifact(self.name)
        if (
            artifact.manifest is None
            or artifact.damage
            or "split_size" in artifact.manifest["inputs"]
        ):
            return False
        return read_scores(artifact.folder).get("of") == len(run.split)

    def make(
        self,
        run: Run,
        draft: Draft,
        session: Session | None = None,
        workers: Workers | None = None,
    ) -> list[str]:
        experiment = run.experiment
        predictions: list[Prediction] = []
        if experiment.reader:
            predictions = list(predictions_of(experiment, run.questions))
        scheme = experiment.scheme
        verdicts: dict[str, Verdict] = {}
        if experiment.judge:
            judgement = judge_answers(run, predictions, session)
            verdicts = judgement.verdicts
            scheme = replace(scheme, measures=with_verdicts(scheme.measures, verdicts))
            draft.record |= judgement.usage
        rows = _score_rows(run, scheme, predictions)
        for row in rows:
            if row["id"] in verdicts:
                row["verdict"] = verdicts[row["id"]]
        write_jsonl(draft.folder / "per_question.jsonl", rows)
        depth = experiment.retriever.k if experiment.retriever else 0
        aggregator = aggregate_rows(rows, run.questions, scheme, depth, predictions)
        scores = aggregator.scores(experiment.seed) | _failures(run)
        if experiment.judge:
            scores["judge"] = counts_of(experiment.judge.name, verdicts)
        selection = {"selection": run.selection} if run.selection else {}
        write_json(draft.folder / "scores.json", scores | {"of": len(run.split)} | selection)
        return []


def _score_rows(
    run: Run, scheme: ScoringScheme, predictions: Sequence[Prediction]
) -> list[QuestionRow]:
    """The row of each question, from the files of earlier stages."""
    experiment = run.experiment
    depth = experiment.retriever.k if experiment.retriever else 0
    read_depth = experiment.reader.passages if experiment.reader else 0
    ranked: Iterable[list[Passage] | None] = repeat(None, len(run.questions))
    if experiment.retriever:
        ranked = passages_of(experiment, rankings_of(experiment, run.questions))
    answered = predictions or repeat(None, len(run.questions))
    rows = []
    for question, passages, prediction in zip(run.questions, ranked, answered, strict=True):
        texts = None if passages is None else [passage.text for passage in passages]
        row = per_question.score_question(question, scheme, texts, depth, read_depth, prediction)
        rows.append(row)
    return rows


def _failures(run: Run) -> dict[str, int]:
    """The questions that earlier stages could not answer and may ask again."""
    manifests = [run.artifact(stage.name).manifest for stage in SCORE.needs(run)]
    records = [manifest["record"] for manifest in manifests if manifest]
    worst = max(records, key=lambda record: record.get("retry", 0))
    failures = {"not_asked": worst.get("not_asked", 0), "retry": worst.get("retry", 0)}
    stored = max(record.get("stored_failures", 0) for record in records)
    return failures | ({"stored_failures": stored} if stored else {})


def _measures(run: Run) -> dict[str, object]:
    """The measures that the experiment adds, and the SHA-256 of each module outside this package
    that defines any.
    """
    experiment = run.experiment
    scheme = experiment.scheme
    modules = {name.partition(":")[0] for name in experiment.measures if ":" in name}
    modules |= {_defining_module(measure.score) for measure in scheme.measures}
    modules |= {_defining_module(subset.holds) for subset in scheme.subsets}
    files = {
        name: sha256(source_file(name))
        for name in sorted(modules)
        if name.partition(".")[0] != "ifqa"
    }
    named = {"measures": list(experiment.measures)} if experiment.measures else {}
    return named | ({"measured_by": files} if files else {})


def _unit(run: Run) -> dict[str, object]:
    """The unit of the split's intervals, if that is not the question."""
    unit = run.benchmark.unit(run.experiment.split)
    return {} if unit == "question" else {"unit": unit}


def _defining_module(function: Callable[..., object]) -> str:
    """The module of a function, of the function in a `partial`, or of the class of a callable
    object.
    """
    while isinstance(function, partial):
        function = function.func
    return function.__module__ if inspect.isroutine(function) else type(function).__module__


SCORE = Score("score")
