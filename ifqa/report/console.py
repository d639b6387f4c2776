"""What the command line prints: scores, and lists of experiments, corpora and plugins."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as Drawing

from ifqa.config.expected import NEAR, OFF, measured, verdict
from ifqa.config.experiment import Experiment, load_experiment
from ifqa.corpus.screening import KEYWORDS, Drawn
from ifqa.errors import IfqaError
from ifqa.pipeline.check import requirements
from ifqa.pipeline.run import Run
from ifqa.pipeline.screen import GoldScreened
from ifqa.pipeline.stage_inputs import answers_of, predictions_of
from ifqa.plugins import names, open_benchmark
from ifqa.progress import complain
from ifqa.records import Usage
from ifqa.report.answers import print_answer
from ifqa.report.sanitize import plain
from ifqa.report.scores import Scores, value_of
from ifqa.report.table import Table
from ifqa.scoring.scheme import GOLD_READ, Declared
from ifqa.scoring.score_files import Content, Row, partial, read_rows, read_scores, score_in
from ifqa.storage.artifacts import MANIFEST
from ifqa.storage.files import read_toml
from ifqa.storage.resources import list_resources

RIGHT, WRONG, PARTLY, ABSTAINED, NONE = "right", "wrong", "partly right", "abstained", "no answer"
_COMPUTED = "computed"  # whatever its kind
TURNS = (
    RIGHT,
    WRONG,
    _COMPUTED,
    ABSTAINED,
    PARTLY,
    NONE,
)  # the kinds of questions that `ifqa run --show N` shows in turn
_ANY = "any .csv or .jsonl"  # the splits of a benchmark that lists none: of ifqa's own, `file`
_LONGEST = 300  # characters of a passage that `ifqa screen` leaves out


def show_scores(run: Run, folder: Path) -> int:
    """Print an experiment's scores; returns the exit code."""
    experiment, scores = run.experiment, read_scores(folder)
    manifests = {stage: run.artifact(stage).manifest for stage in experiment.stages}
    records = {stage: manifest["record"] for stage, manifest in manifests.items() if manifest}
    console = Console(highlight=False)
    title = f"{experiment.name}: {experiment.benchmark} {experiment.split}  {partial(scores)}"
    console.print(plain(title.rstrip()), soft_wrap=True)
    by = experiment.scheme
    for number, table in enumerate(Scores(experiment.name, by, scores).tables()):
        if number:
            console.print()
        table.show(console)
    low = any(one.best == "low" for one in by.answers)
    worst = "0, or 1 where low is best, as an arrow marks" if low else "0"
    line = f"{scores['questions']:,} questions, {scores['n_failed']} failed (a failure scores {worst})"
    line += f", {scores['n_abstained']} abstained (0 too)" if "n_abstained" in scores else ""
    if "ceiling" in scores:
        chance = ", ".join(f"{value:.1f} @{name.partition('@')[2]}" for name, value in scores["chance"].items())
        line += f". Answer recall of the gold passages themselves: {scores['ceiling']:.1f}; of random ones: {chance}"
    console.print(line, soft_wrap=True)
    for line in _beside(experiment, scores, by):
        console.print(line, soft_wrap=True)
    for stage, record in records.items():
        for line in _spent(stage, record):
            console.print(line, soft_wrap=True)
    if read := records.get("read"):
        if read.get("trained_on_them"):
            console.print(
                "The reader was trained on these questions: its scores say nothing about other questions.",
                soft_wrap=True,
            )
        if label := read.get("label"):
            console.print(f"{plain(label)}.", soft_wrap=True)
    console.print(f"{plain(str(folder))}/per_question.jsonl has every question.", soft_wrap=True)
    return exit_code(experiment, scores)


def exit_code(experiment: Experiment, scores: Content) -> int:
    """1 if an expected score lies outside its tolerance, or a request failed for each question; else 0."""
    return int(all_failed(scores) or any(verdict(scores, one) in (NEAR, OFF) for one in experiment.expected))


def all_failed(record: Mapping[str, Any]) -> bool:
    """Whether a request failed for each question, by the record of a stage or the scores; a message then says so.

    Questions that a cap kept from being asked have not failed.
    """
    if not record.get("retry") or record["retry"] < record["questions"] or record["not_asked"] >= record["questions"]:
        return False
    complain("ifqa: each question had a failed request; what was answered is kept, and the same command asks again")
    return True


def scores_json(experiment: Experiment, folder: Path, scores: Content) -> dict[str, object]:
    """An experiment's scores and expected values, as JSON data."""
    expected = [
        {"measure": one.measure, "value": one.value, "tolerance": one.tolerance, "verdict": verdict(scores, one)}
        for one in experiment.expected
    ]
    head = {"experiment": experiment.name, "benchmark": experiment.benchmark, "split": experiment.split}
    return head | {"folder": str(folder), "scores": scores, "expected": expected}


def _spent(stage: str, record: Usage) -> Iterator[str]:
    """The tokens and cost of a stage that asked a language model, and how many questions failed."""
    if "spent" not in record:
        return
    spent = record["spent"]
    cost = "at an unknown price" if spent["cost"] is None else f"${spent['cost']:,.4f}"
    tokens = f"{spent['prompt_tokens']:,} + {spent['completion_tokens']:,} tokens"
    took = "{:,} + {:,}".format(*record.get("took", (0, 0)))
    yield (
        f"To {stage}: {spent['calls']:,} requests, {tokens}, {cost}; {spent['cached']:,} completions kept from before; all "
        f"answers together took {took} tokens."
    )
    counts = {
        "questions with an incomplete answer, which the next run retries": record.get("retry"),
        "questions whose completion was cut off at its token limit": record.get("cut"),
        "questions not asked, as the model's window has no room for one": record.get("too_long"),
        "questions whose completions have no answer by the prompt's rule": record.get("unparsed"),
        "passages left out because the model's window was full": record.get("left_out"),
    }
    if notes := [f"{count:,} {what}" for what, count in counts.items() if count]:
        yield f"  {'; '.join(notes)}."


def _beside(experiment: Experiment, scores: Content, by: Declared) -> Iterator[str]:
    """Lines below the scores: scores over the questions whose gold passage was read, and the expected values."""
    some = scores["subsets"].get(GOLD_READ, {"questions": 0, "measures": {}})
    found = [f"{plain(by.marked(key))} {value_of(some['measures'][key])}" for key in by.shown(some["measures"])]
    if some["questions"] and found:
        yield f"The reader was given a gold passage for {some['questions']:,} of the questions; over these {', '.join(found)}."
    for one in experiment.expected:
        found_here = value_of(measured(scores, one.measure))
        tolerance = f" ± {one.tolerance:g}" if one.tolerance else ""
        of = f" ({plain(one.source)})" if one.source else ""
        yield f"{plain(one.measure)} {found_here}, expected {one.value:g}{tolerance}{of}: {verdict(scores, one)}"


def show_examples(run: Run, folder: Path, count: int) -> None:
    """Print `count` questions of an experiment, chosen by `ifqa.report.examples`, each with its answer and first evidence.

    Args:
        run: of an experiment with a reader.
        folder: its score folder.
        count: from 1; fewer are printed if the experiment has fewer questions.
    """
    experiment, questions = run.experiment, run.questions
    said = predictions_of(experiment, questions)
    computed = {one.question_id for one in said if one.how and one.how.calculation}
    by = experiment.scheme
    kinds = choose(read_rows(folder), by, count, computed)
    answers = {one.question.id: one for one in answers_of(experiment, questions, kinds)}
    for question_id, kind in kinds.items():
        answer = answers[question_id]
        print_answer(answer, answer.evidence[:1], kind, " / ".join(answer.question.answers))


def list_json() -> dict[str, Any]:
    """The names of experiments, corpora, benchmarks and plugins as JSON data; experiments and corpora with descriptions."""
    listed: dict[str, Any] = {
        "experiments": {
            name: {"about": _about(path)} | _state(name)
            for name, path in sorted(list_resources("experiments", ".toml").items())
        },
        "corpora": {name: _about(path) for name, path in sorted(list_resources("indexes", ".toml").items())},
    }
    listed["variants"] = sorted(path.parent.name for path in Path("experiments").glob("*/experiment.toml"))
    listed["benchmarks"] = {name: list(open_benchmark(name).splits) for name in names("benchmark")}
    listed |= {f"{kind}s": list(names(kind)) for kind in ("retriever", "reader", "llm", "measure")}
    for kind, folder, ending in (("prompts", "prompts", ".toml"), ("demonstrations", "prompts/demos", ".jsonl")):
        listed[kind] = sorted(list_resources(folder, ending))
    return listed


def _about(path: Path) -> str:
    """The description in a file; if the file cannot be read, the reason."""
    try:
        return str(read_toml(path).get("about", ""))
    except IfqaError as error:
        return f"cannot be read: {error}"
    except OSError as error:  # a folder of that name, or a link to nothing
        return f"cannot be read: {error.strerror}"


def _state(name: str) -> dict[str, object]:
    """Whether an experiment was scored or can run here; else what it needs first."""
    try:
        experiment = load_experiment(name)
        needs = [need.what for need in requirements(Run(experiment)) if not need.here]
    except (IfqaError, OSError) as error:
        return {"state": "broken", "needs": [str(error)]}
    scored = (experiment.folder / "score" / MANIFEST).exists()
    return {"state": "scored" if scored else "needs" if needs else "ready", "needs": needs}


def show_list() -> None:
    """Print what `list_json` gives: a table of experiments, a table of corpora, and a line for each other kind."""
    console, listed = Console(highlight=False), list_json()
    table = Drawing(title="experiments", title_justify="left", show_header=False)
    for name, listing in listed.pop("experiments").items():
        needs = f"needs {', '.join(listing['needs'])}" if listing["state"] == "needs" else listing["state"]
        table.add_row(plain(name), plain(listing["about"]), plain(needs))
    console.print(table)
    console.print(
        "scored: it was scored here; ready: it can run here; else what it needs first (ifqa check NAME says more)"
    )
    table = Drawing(title="corpora", title_justify="left", show_header=False)
    for name, about in listed.pop("corpora").items():
        table.add_row(plain(name), plain(about))
    console.print(table)
    benchmarks = [  # a part of a split, "original-valid/paq", is named by --json alone
        f"{name} ({', '.join(one for one in splits if one.partition('/')[0] not in splits or '/' not in one) or _ANY})"
        for name, splits in listed["benchmarks"].items()
    ]
    for kind, several in (listed | {"benchmarks": benchmarks}).items():
        if several:
            console.print(f"{kind}: {plain(', '.join(several))}", soft_wrap=True)


def kind_of(row: Row, by: Declared) -> str:
    """Right, wrong and so on, by the benchmark's headline measure of single answers; empty if none was taken of this row.

    An answer that is neither best nor worst is partly right.

    Args:
        row: a row of `per_question.jsonl` of an experiment with a reader.
        by: what scores the experiment.
    """
    if row.get("failed"):
        return NONE
    if row.get("abstained"):
        return ABSTAINED
    key = by.headline([one.name for one in by.answers if one.name in row])
    if not key:
        return ""
    score, best = score_in(row, key), by.best(key)
    return RIGHT if score == best else WRONG if score == 1 - best else PARTLY


def choose(rows: Iterable[Row], by: Declared, count: int, computed: Collection[str] = ()) -> dict[str, str]:
    """Question id -> its kind, for `count` questions, in the order in which they are shown.

    In turn the first question of each of `TURNS` that was not chosen yet, in the questions' order. `computed` are the ids of the
    questions with a computed answer.
    """
    kinds = {str(row["id"]): kind_of(row, by) for row in rows}
    left: dict[str, list[str]] = {turn: [] for turn in (*TURNS, "")}
    for question_id, kind in reversed(kinds.items()):  # the next one is the last of its list
        left[kind].append(question_id)
        if question_id in computed:
            left[_COMPUTED].append(question_id)
    chosen: dict[str, str] = {}
    while len(chosen) < min(count, len(kinds)):
        for several in left.values():
            while several and several[-1] in chosen:
                several.pop()
            if several and len(chosen) < count:
                question_id = several.pop()
                chosen[question_id] = kinds[question_id]
    return chosen


def screened_json(drawn: Drawn, gold: Mapping[str, GoldScreened], examples: int) -> dict[str, object]:
    """Counts and shares, and examples, as JSON data."""
    kept = drawn.keywords.total()
    return {
        "passages": drawn.passages,
        "kept": kept,
        "share": kept / drawn.passages,
        "keywords": {name: drawn.keywords[name] for name in KEYWORDS},
        "gold": {
            split: {"passages": len(one.kept) + len(one.left), "kept": len(one.kept), "share": _number(one.share)}
            for split, one in gold.items()
        },
        "kept_examples": [
            {"id": passage.id, "keyword": why.keyword, "sentence": why.sentence}
            for _, passage, why in drawn.kept[:examples]
        ],
        "left_examples": [{"id": passage.id, "text": passage.text} for _, passage in drawn.left[:examples]],
    }


def _number(share: float) -> float | None:
    return share if share == share else None


def show_screened(name: str, drawn: Drawn, gold: Mapping[str, GoldScreened], examples: int) -> None:
    """Print the share of passages that `ifqa screen` keeps, by keyword and of gold passages, and examples each way."""
    console = Console(highlight=False)
    kept, total = drawn.keywords.total(), drawn.passages
    rows = [(name, f"{total:,}", f"{kept:,}", f"{100 * kept / total:.1f}")]
    for keyword in KEYWORDS:
        count = drawn.keywords[keyword]
        rows.append((f"  {keyword}", "", f"{count:,}", f"{100 * count / total:.1f}"))
    for split, judged in gold.items():
        counts = (f"{len(judged.kept) + len(judged.left):,}", f"{len(judged.kept):,}")
        rows.append((f"gold of {split}", *counts, f"{100 * judged.share:.1f}"))
    Table("", "", ("", "passages", "kept", "%"), tuple(rows)).show(console, gap=2)
    if examples:
        console.print("\n[italic]kept: keyword, sentence[/italic]")
        for _, passage, why in drawn.kept[:examples]:
            console.print(f"{plain(passage.id)}  [bold]{why.keyword}[/bold]  {plain(why.sentence)}", soft_wrap=True)
        console.print("\n[italic]left out[/italic]")
        for _, passage in drawn.left[:examples]:
            console.print(f"{plain(passage.id)}  {plain(passage.text[:_LONGEST])} …", soft_wrap=True)
    for split, one in gold.items() if examples else ():
        console.print(f"\n[italic]gold passages of {plain(split)} that are left out[/italic]")
        for text in one.left[:examples]:
            console.print(f"{plain(text[:_LONGEST])} …", soft_wrap=True)
