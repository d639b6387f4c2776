"""What the command line prints: scores, and lists of experiments, corpora and plugins."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import cast

from rich.console import Console

from ifqa.config.expected import NEAR, OFF, find_score, verdict
from ifqa.config.experiment import Experiment, load_experiment
from ifqa.errors import IfqaError
from ifqa.formatting import one_decimal, pluralize
from ifqa.outside_plugins import Kind
from ifqa.pipeline.check import requirements
from ifqa.pipeline.read import READ
from ifqa.pipeline.run import Run
from ifqa.pipeline.score import SCORE
from ifqa.pipeline.stage_outputs import answers_of, predictions_of
from ifqa.pipeline.stages import stages_of
from ifqa.plugins import (
    known_names,
    load_measure,
    load_plugin,
    open_benchmark,
    plugin_names,
)
from ifqa.progress import write_line
from ifqa.records import StageUsage
from ifqa.report.answers import show_answer
from ifqa.report.exposure import exposure_mark, seen_mark
from ifqa.report.results_log import outside_plugins
from ifqa.report.scores import Scores, read_content, score_cell
from ifqa.report.table import sanitize
from ifqa.scoring.scheme import GOLD_READ, ScoringScheme
from ifqa.scoring.stored_scores import (
    QuestionRow,
    ScoresJson,
    judge_notice,
    partial_notice,
    read_rows,
    row_score,
)
from ifqa.storage.artifacts import MANIFEST, StageRecord
from ifqa.storage.files import read_jsonl, read_toml
from ifqa.storage.resources import list_resources

RIGHT = "right"
WRONG = "wrong"
PARTLY = "partly right"
ABSTAINED = "abstained"
NONE = "no answer"
_COMPUTED = "computed"  # whether right or wrong
#: Kind of names -> the folder and the ending of their files, which have descriptions.
_FILES = {
    "experiments": ("experiments", ".toml"),
    "corpora": ("indexes", ".toml"),
    "prompts": ("prompts", ".toml"),
    "demonstrations": ("prompts/demos", ".jsonl"),
}
_PLUGINS = ("benchmark", "retriever", "reader", "llm", "measure")
# `ifqa run --show N` shows questions of each kind in turn
KINDS = (RIGHT, WRONG, _COMPUTED, ABSTAINED, PARTLY, NONE)


def show_scores(run: Run, folder: Path) -> int:
    """Print an experiment's scores; returns the exit code."""
    experiment = run.experiment
    scores = read_content(experiment, folder)
    scheme = run.experiment.scheme
    console = Console(highlight=False)
    title = (
        f"{experiment.name}: {experiment.benchmark} {experiment.split}  {partial_notice(scores)}"
    )
    console.print(sanitize(title.rstrip()), soft_wrap=True)
    for number, table in enumerate(Scores(experiment.name, scheme, scores).tables()):
        if number:
            console.print()
        table.show(console)
    low = any(measure.best == "low" for measure in scheme.answers)
    worst = "0; 1 where an arrow marks that low is best" if low else "0"
    line = (
        f"{scores['questions']:,} questions, {scores['n_failed']} failed (a failure scores {worst})"
    )
    line += f", {scores['n_abstained']} abstained (also 0)" if "n_abstained" in scores else ""
    if "ceiling" in scores:
        chance = ", ".join(
            f"{one_decimal(score)} @{key.partition('@')[2]}"
            for key, score in scores["chance"].items()
        )
        line += (
            f". Answer recall of the gold passages themselves: {one_decimal(scores['ceiling'])}; "
            f"of random ones: {chance}"
        )
    lines = [line, *_comparison_lines(experiment, scores, scheme)]
    for stage in stages_of(run):
        if manifest := run.artifact(stage.name).manifest:
            lines += _usage_lines(stage.name, manifest["record"], experiment.asked_model)
    scoring = run.artifact(SCORE.name).manifest
    if experiment.judge and scoring:
        lines += _usage_lines("judge", scoring["record"], experiment.judge.name)
        lines.append(sanitize(judge_notice(scores)))
    reading = run.artifact(READ.name).manifest if experiment.reader else None
    if reading:
        lines += _reader_lines(reading["record"])
    lines += [f"{sanitize(mark)}."] if (mark := exposure_mark(run)) else []
    for line in (*lines, f"{sanitize(str(folder))}/per_question.jsonl has every question."):
        console.print(line, soft_wrap=True)
    return exit_code(experiment, scores)


def _reader_lines(record: StageRecord) -> Iterator[str]:
    """What a reader says of itself, and of the questions that it has seen."""
    if mark := seen_mark(record):
        yield f"{mark[0].upper()}{mark[1:]}: its scores say nothing about other questions."
    if label := record.get("label"):
        yield f"{sanitize(label)}."


def exit_code(experiment: Experiment, scores: ScoresJson) -> int:
    """1 if a score is outside its expected tolerance, or every question had a failed request.

    Else 0.
    """
    return int(
        all_failed(scores)
        or any(verdict(scores, expected) in (NEAR, OFF) for expected in experiment.expected)
    )


def all_failed(record: Mapping[str, object]) -> bool:
    """Whether every question had a failed request, by a stage's record or the scores.

    Prints a message if so.
    """
    keys = ("retry", "stored_failures", "questions", "not_asked")
    retry, stored, questions, not_asked = (int(str(record.get(key) or 0)) for key in keys)
    failed = retry + stored >= questions > not_asked  # questions beyond the cost cap were not asked
    if failed:
        again = "run the same command again to retry (completed answers are kept)"
        if not retry:
            again = "these failures are stored; --retry-failed asks again"
        write_line(f"ifqa: every question had a failed request; {again}")
    return failed


def scores_json(run: Run, folder: Path, scores: ScoresJson) -> dict[str, object]:
    experiment = run.experiment
    expected: list[dict[str, object]] = []
    for score in experiment.expected:
        content = {"measure": score.measure, "value": score.value, "tolerance": score.tolerance}
        expected.append(content | {"verdict": verdict(scores, score)})
    head = {
        "experiment": experiment.name,
        "benchmark": experiment.benchmark,
        "split": experiment.split,
    }
    return head | {
        "folder": str(folder),
        "scores": scores,
        "expected": expected,
        "seen": exposure_mark(run),
    }


def _usage_lines(stage: str, record: StageUsage, model: str) -> Iterator[str]:
    """The tokens and cost of a stage that used the language model `model`, and its failure
    counts.
    """
    if "spent" not in record:
        return
    usage = record["spent"]
    cost = "at an unknown price" if usage["cost"] is None else f"${usage['cost']:,.4f}"
    tokens = f"{usage['prompt_tokens']:,} + {usage['completion_tokens']:,} tokens"
    if cached := usage.get("cached_prompt_tokens"):
        tokens += f" ({cached:,} cached by the server)"
    answer_tokens = "{:,} + {:,}".format(*record.get("took", (0, 0)))
    yield (
        f"To {stage}: {usage['calls']:,} requests to {sanitize(model)}, {tokens}, {cost}; "
        f"{usage['cached']:,} completions from the cache; "
        f"all answers together took {answer_tokens} tokens."
    )
    if "searches" in record:
        searches = pluralize(record["searches"], "search", "searches")
        yield f"  It made {searches} and {pluralize(record['computations'], 'computation')}."
    counts = {
        "questions with an incomplete answer, which the next run retries": record.get("retry"),
        "questions whose failed request is stored (--retry-failed asks again)": record.get(
            "stored_failures"
        ),
        "questions whose completion was cut off at its token limit (--max-tokens, --thinking)": (
            record.get("cut")
        ),
        "questions not asked because they exceed the model's context window": record.get(
            "too_long"
        ),
        "questions whose completion has no answer that the prompt's rule can parse": record.get(
            "unparsed"
        ),
        "passages left out because the context window was full": record.get("left_out"),
    }
    if notes := [f"{count:,} {problem}" for problem, count in counts.items() if count]:
        yield f"  {'; '.join(notes)}."


def _comparison_lines(
    experiment: Experiment, scores: ScoresJson, scheme: ScoringScheme
) -> Iterator[str]:
    """Lines below the scores: the scores over questions whose reader got a gold passage, and the
    expected values.
    """
    subset = scores["subsets"].get(GOLD_READ, {"questions": 0, "measures": {}})
    count = subset["questions"]
    means = subset["measures"]
    cells = [
        f"{sanitize(scheme.display_name(key))} {score_cell(means[key])}"
        for key in scheme.table_keys(means)
    ]
    if count and cells:
        yield (
            f"The reader was given a gold passage for {count:,} of the questions; "
            f"over these, {', '.join(cells)}."
        )
    for expected in experiment.expected:
        measured = score_cell(find_score(scores, expected.measure))
        tolerance = f" ± {expected.tolerance:g}" if expected.tolerance else ""
        source = f" ({sanitize(expected.source)})" if expected.source else ""
        wanted = f"expected {expected.value:g}{tolerance}{source}"
        yield f"{sanitize(expected.measure)} {measured}, {wanted}: {verdict(scores, expected)}"


def show_examples(run: Run, folder: Path, count: int) -> None:
    """Print up to `count` questions chosen by `choose_examples`, with answer and first passage.

    `folder` is the score folder.
    """
    experiment = run.experiment
    questions = run.questions
    predictions = predictions_of(experiment, questions)
    computed = {row.question_id for row in predictions if row.how and row.how.calculation}
    kinds = choose_examples(read_rows(folder), experiment.scheme, count, computed)
    answers = {answer.question.id: answer for answer in answers_of(experiment, questions, kinds)}
    for answer, kind in ((answers[question_id], kind) for question_id, kind in kinds.items()):
        show_answer(answer, passages=1, kind=kind, wanted=" / ".join(answer.question.answers))


def list_json() -> dict[str, object]:
    """The names of experiments, corpora, benchmarks and plugins as JSON data.

    Experiments and corpora with descriptions.
    """
    experiments, corpora = (
        sorted(list_resources(folder, ".toml").items()) for folder in ("experiments", "indexes")
    )
    return {
        "experiments": {name: _listing(name, path) for name, path in experiments},
        "corpora": {name: _about(path) for name, path in corpora},
        "variants": sorted(
            path.parent.name for path in Path("experiments").glob("*/experiment.toml")
        ),
        "benchmarks": {name: _splits(name) for name in sorted(known_names("benchmark"))},
        **{f"{kind}s": sorted(known_names(kind)) for kind in ("retriever", "reader")},
        **{f"{kind}s": list(known_names(kind)) for kind in ("llm", "measure")},
        "prompts": sorted(list_resources("prompts", ".toml")),
        "demonstrations": sorted(list_resources("prompts/demos", ".jsonl")),
    }


def describe_names(kind: str, names: Iterable[str]) -> dict[str, str]:
    """Name -> description of each name of a kind that `list_json` lists.

    A plugin from outside is not imported for a list, as that runs its code.
    """
    files: Mapping[str, Path] = {}
    if kind in _FILES:
        files = list_resources(*_FILES[kind])
    plugin = kind.removesuffix("s")
    ours = plugin_names(plugin) if plugin in _PLUGINS else {}
    abouts = {}
    for name in names:
        if name in files:
            abouts[name] = _about(files[name])
        elif name in ours and plugin == "measure":
            abouts[name] = load_measure(name).about
        elif name in ours:
            abouts[name] = _summary(load_plugin(cast("Kind", plugin), name))
        else:
            abouts[name] = known_names(plugin).get(name, "") if plugin in _PLUGINS else ""
    return abouts


def _summary(plugin: type[object]) -> str:
    """The first paragraph of a class's docstring."""
    return " ".join((plugin.__doc__ or "").partition("\n\n")[0].split())


def _splits(benchmark: str) -> list[str]:
    """The known splits of a benchmark; none of one from outside, which a list does not import."""
    is_ours = benchmark in plugin_names("benchmark")
    return list(open_benchmark(benchmark).splits) if is_ours else []


def _listing(name: str, path: Path) -> dict[str, object]:
    """An experiment's description, whether it was scored or can run here, and what it needs.

    A plugin from outside is not imported for a list, as that runs its code.
    """
    try:
        if plugins := outside_plugins(read_toml(path)):
            return {"about": _about(path), "state": "plugin", "needs": sorted(plugins)}
        experiment = load_experiment(name)
        needs = [need.name for need in requirements(Run(experiment)) if not need.present]
    except (IfqaError, OSError) as error:
        return {"about": _about(path), "state": "broken", "needs": [str(error)]}
    state = "needs" if needs else "ready"
    if (experiment.folder / "score" / MANIFEST).exists():
        state = "scored"
    return {"about": _about(path), "state": state, "needs": needs}


def _about(path: Path) -> str:
    """The description in a file, or why the file cannot be read."""
    try:
        if path.suffix == ".jsonl":  # demonstrations: the first line describes them
            return str(next((line for _, line in read_jsonl(path)), {}).get("about", ""))
        return str(read_toml(path).get("about", ""))
    except IfqaError as error:
        return f"cannot be read: {error}"
    except OSError as error:  # a folder of that name, or a link to nothing
        return f"cannot be read: {error.strerror}"


def outcome_of(row: QuestionRow, scheme: ScoringScheme) -> str:
    """A row's outcome by the headline measure of answers.

    Partly right between best and worst, empty without a measure.
    """
    if row.get("failed"):
        return NONE
    if row.get("abstained"):
        return ABSTAINED
    key = scheme.headline([measure.name for measure in scheme.answers if measure.name in row])
    if not key:
        return ""
    score = row_score(row, key)
    best = scheme.best_value(key)
    if score == best:
        return RIGHT
    return WRONG if score == 1 - best else PARTLY


def choose_examples(
    rows: Iterable[QuestionRow], scheme: ScoringScheme, count: int, computed: Collection[str] = ()
) -> dict[str, str]:
    """Question id -> its kind, for `count` questions in display order: the next question of each of
    `KINDS` in turn.

    `computed` are the ids of the questions with a computed answer.
    """
    kinds = {row["id"]: outcome_of(row, scheme) for row in rows}
    turns: dict[str, list[str]] = {turn: [] for turn in (*KINDS, "")}
    for question_id, kind in kinds.items():
        turns[kind].append(question_id)
        if question_id in computed:
            turns[_COMPUTED].append(question_id)
    chosen: dict[str, str] = {}
    while len(chosen) < min(count, len(kinds)):
        for turn in turns.values():
            first = next((question_id for question_id in turn if question_id not in chosen), None)
            if first is not None and len(chosen) < count:
                chosen[first] = kinds[first]
    return chosen
