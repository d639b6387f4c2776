"""What the command line shows: scores, one answer with its evidence, and what there is to name."""

import re
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ifqa.experiment import Experiment
from ifqa.files import list_resources, read_json, read_jsonl
from ifqa.inputs import passages_of, questions_of
from ifqa.plugins import load, names
from ifqa.records import Hit, Passage
from ifqa.stages import Asked

OK, NEAR, OFF = "OK", "near", "off"


def show_scores(experiment: Experiment, folder: Path) -> int:
    """Print an experiment's scores; returns the exit code: 1 if an expected score lies outside its tolerance, else 0."""
    scores = read_json(folder / "scores.json")
    verdicts = {name: verdict(scores["measures"], name, row) for name, row in experiment.expected.items()}
    console = Console(highlight=False)
    console.print(scores_table(experiment, scores, verdicts))
    line = f"{scores['questions']:,} questions, {scores['n_failed']} failed (a failure scores 0)"
    if "ceiling" in scores:
        chance = ", ".join(f"{value:.1f} @{name.partition('@')[2]}" for name, value in scores["chance"].items())
        line += (
            f". Answer recall: at most {scores['ceiling']:.1f} (the answer is in the gold passages); by chance {chance}"
        )
    console.print(line, soft_wrap=True)
    console.print(f"{folder}/per_question.jsonl has every question.", soft_wrap=True)
    return int(OFF in verdicts.values())


def scores_table(experiment: Experiment, scores: dict[str, Any], verdicts: dict[str, str]) -> Table:
    """A row for each measure: all questions with the 95% interval, numeric ones, the others, and the expected value."""
    partial = f"  PARTIAL: the first {experiment.limit} questions only" if scores["partial"] else ""
    table = Table(title=f"{experiment.name}: {scores['split']}{partial}", title_justify="left")
    table.add_column("measure")
    counts = {
        "all": scores["questions"],
        "numeric": scores["numeric"]["questions"],
        "other": scores["other"]["questions"],
    }
    for column in ("all", "95% interval", "numeric", "other"):
        table.add_column(f"{column} ({counts[column]})" if column in counts else column, justify="right")
    if verdicts:
        table.add_column("expected")
    for name, mean in scores["measures"].items():
        parts = [scores[part]["measures"].get(name) for part in ("numeric", "other")]
        row = [
            name,
            f"{mean['value']:.1f}",
            f"{mean['low']:.1f} - {mean['high']:.1f}",
            *(f"{p['value']:.1f}" if p else "" for p in parts),
        ]
        if verdicts:
            expected = experiment.expected.get(name)
            row.append(f"{expected['value']:.1f} ± {expected.get('tolerance', 0)} {verdicts[name]}" if expected else "")
        table.add_row(*row)
    return table


def verdict(measures: dict[str, dict[str, float]], name: str, expected: dict[str, Any]) -> str:
    """OK within the tolerance of the expected value, near within its 95% interval, else off (also if not measured)."""
    found = measures.get(name)
    if found is None:
        return OFF
    if abs(found["value"] - expected["value"]) <= expected.get("tolerance", 0):
        return OK
    return NEAR if found["low"] <= expected["value"] <= found["high"] else OFF


def show_answer(question: str, asked: Asked) -> None:
    """Print a question's answer and its evidence, the answer marked where it stands."""
    console = Console(highlight=False)
    _print_answer(console, question, asked.prediction.answer or f"none ({asked.prediction.error})", asked.evidence[:3])


def show_examples(experiment: Experiment, count: int = 3) -> None:
    """Print the first answered questions of an experiment that was read, each with its first piece of evidence."""
    console = Console(highlight=False)
    predictions = [record for _, record in read_jsonl(experiment.folder / "read" / "predictions.jsonl")]
    for question, record in list(zip(questions_of(experiment), predictions, strict=False))[:count]:
        evidence = next(passages_of(experiment, [[Hit(passage_id, 0.0) for passage_id in record["passage_ids"][:1]]]))
        _print_answer(
            console, question.text, f"{record['answer']}   (wanted: {' / '.join(question.answers)})", evidence
        )


def _print_answer(console: Console, question: str, answer: str, evidence: list[Passage]) -> None:
    console.print(f"[bold]Question[/bold]  {escape(question)}", soft_wrap=True)
    console.print(f"[bold]Answer[/bold]    {escape(answer)}", soft_wrap=True)
    for number, passage in enumerate(evidence):
        label = "[bold]In fact[/bold]   " if number == 0 else " " * 10
        title = f"{passage.title} · " if passage.title else ""
        console.print(f"{label}[dim]{escape(title)}{escape(passage.id)}[/dim]", soft_wrap=True)
        console.print(f"          {mark(passage.text, answer.partition('   (')[0])}", soft_wrap=True)
    console.print()


def mark(text: str, answer: str) -> str:
    """The text for the screen, nothing in it taken as markup, with the answer in bold wherever it stands as words."""
    if not answer.strip():
        return escape(text)
    parts = re.split(rf"(?i)(?<!\w)({re.escape(answer)})(?!\w)", text)
    return "".join(
        f"[bold green]{escape(part)}[/bold green]" if n % 2 else escape(part) for n, part in enumerate(parts)
    )


def show_list() -> None:
    """Print experiments and corpora with what each is about, and the plugs by name."""
    from ifqa.files import read_toml

    console = Console(highlight=False)
    for folder in ("experiments", "indexes"):
        table = Table(
            title={"experiments": "experiments", "indexes": "corpora"}[folder], title_justify="left", show_header=False
        )
        for name, path in sorted(list_resources(folder, ".toml").items()):
            table.add_row(name, escape(read_toml(path).get("about", "")))
        console.print(table)
    benchmarks = [f"{name} ({', '.join(load('benchmark', name).files)})" for name in names("benchmark")]
    console.print(f"benchmarks: {', '.join(benchmarks)}", soft_wrap=True)
    for kind in ("retriever", "reader"):
        console.print(f"{kind}s: {', '.join(names(kind))}", soft_wrap=True)
