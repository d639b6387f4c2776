"""Runs the prompts on 200 questions of full-dev with one language model: the IfQA paper's Table 3
in small, with paired tests.

    python bench/prompts.py --model models/FILE.gguf [--only NAME ...] [--shots 0 2 4] \
        [--set SETTING=VALUE ...]

The questions are drawn by a seed, with full-dev's share of numeric ones, into
data/ifqa-dev-COUNT.jsonl; a smaller draw is part of a larger. BM25 searches `ifqa-gold-articles`.
Each run is an experiment of its own, which resumes. The demonstrations are
prompts/demos/sample.jsonl. Seconds are those of the whole run, and mean nothing for a resumed one.
"""

import argparse
import random
import time
from pathlib import Path

import tomli_w

import ifqa
from ifqa.benchmarks.file import write_questions
from ifqa.cli.options import settings_of_flags
from ifqa.report.scores import Scores
from ifqa.scoring.measures.numeric import is_numeric
from ifqa.scoring.statistics import count_wins, paired_randomization

SEED = 23
#: Row -> its retriever, its prompt, and the row that it is tested against.
ROWS = {
    "closed book": ("", "closed-book", ""),
    "closed book, chain of thought": ("", "closed-book-cot", "closed book"),
    "GenRead": ("genread", "genread-read", "closed book"),
    "BM25, five passages": ("bm25", "open-book", "closed book"),
    "BM25, chain of thought": ("bm25", "open-book-cot", "BM25, five passages"),
    "gold passages": ("gold", "open-book", "BM25, five passages"),
    "gold passages, chain of thought": ("gold", "open-book-cot", "gold passages"),
    "gold passages, three steps": ("gold", "counterfactual", "gold passages"),
}


def draw_questions(path: Path, count: int) -> None:
    questions = ifqa.questions("ifqa", "full-dev")
    numeric = [question for question in questions if is_numeric(question.answers)]
    other = [question for question in questions if not is_numeric(question.answers)]
    share = round(count * len(numeric) / len(questions))
    draw = random.Random(SEED)
    draw.shuffle(numeric)
    draw.shuffle(other)
    drawn = {question.id for question in numeric[:share] + other[: count - share]}
    write_questions(path, [question for question in questions if question.id in drawn])


def write_experiment(row: str, questions: Path) -> str:
    """Write `experiments/NAME.toml` for a row; returns NAME."""
    retriever, prompt, _ = ROWS[row]
    sections: dict[str, object] = {"about": row, "benchmark": "file", "split": str(questions)}
    sections["reader"] = {"name": "llm", "prompt": prompt} | ({"passages": 5} if retriever else {})
    sections["llm"] = {"name": "openai", "model": "unset"}  # --model sets it, and with it the class
    if retriever:
        sections["retriever"] = {"name": retriever, "k": 1 if retriever == "genread" else 5}
    if retriever == "bm25":
        sections["corpus"] = "ifqa-gold-articles"
    name = "-".join(part for part in (questions.stem, retriever, prompt) if part)
    Path("experiments").mkdir(exist_ok=True)
    Path(f"experiments/{name}.toml").write_text(tomli_w.dumps(sections))
    return name


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", required=True)
    parser.add_argument("--count", type=int, default=200, help="questions")
    parser.add_argument("--only", nargs="*", default=list(ROWS), choices=ROWS, metavar="NAME")
    parser.add_argument("--shots", nargs="*", type=int, default=[0])
    parser.add_argument("--set", nargs="*", default=[], metavar="SETTING=VALUE")
    arguments = parser.parse_args()
    path = Path(f"data/ifqa-dev-{arguments.count}.jsonl")
    if not path.exists():
        draw_questions(path, arguments.count)
    settings = settings_of_flags(arguments.set)
    scores: dict[str, Scores] = {}
    print(
        "| prompt | shots | EM | F1 | numeric EM | other EM | failed | against | EM | p | "
        "won, lost | seconds |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for shots in arguments.shots:
        for name in arguments.only:
            rival = ROWS[name][2]
            shown: dict[str, object] = (
                {"reader.demos": "sample", "reader.shots": shots} if shots else {}
            )
            start = time.perf_counter()
            run = ifqa.run(
                write_experiment(name, path), model=arguments.model, settings=settings | shown
            )
            seconds = time.perf_counter() - start
            scores[f"{name} {shots}"] = run
            rivals = [f"{rival} {shots}", f"{name} 0"]
            against = next((key for key in rivals if key in scores and scores[key] is not run), "")
            cells = (
                format_row(run),
                format_test(run, scores.get(against), against),
                f"{seconds:.0f}",
            )
            print(f"| {name} | {shots} | {' | '.join(cells)} |", flush=True)


def format_row(run: Scores) -> str:
    em = run["EM"]
    f1 = run["F1"]
    cells = [
        f"{em.value:.1f} [{em.low:.1f}, {em.high:.1f}]",
        f"{f1.value:.1f} [{f1.low:.1f}, {f1.high:.1f}]",
    ]
    cells += [f"{run[f'{part}.EM'].value:.1f}" for part in ("numeric", "other")]
    return " | ".join([*cells, str(run.n_failed)])


def format_test(run: Scores, rival: Scores | None, name: str) -> str:
    if rival is None:
        return " | | | "
    values, others = ([float(row["EM"]) for row in scores.rows] for scores in (run, rival))
    won, lost, _ = count_wins(values, others)
    change = 100 * (sum(values) - sum(others)) / len(values)
    return f"{name} | {change:+.1f} | {paired_randomization(values, others):.3f} | {won}, {lost}"


if __name__ == "__main__":
    main()
