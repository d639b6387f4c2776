"""Runs the prompts on 200 questions of full-dev with one language model: the IfQA paper's Table 3 in small, with paired tests.

    python bench/prompts.py --model models/FILE.gguf [--only NAME ...] [--shots 0 2 4] [--set SETTING=VALUE ...]

The questions are drawn by a seed, with full-dev's share of numeric ones, into data/ifqa-dev-200.jsonl. BM25 searches
`ifqa-gold-articles`. Each run is an experiment of its own, which resumes. The demonstrations are prompts/demos/sample.jsonl.
Seconds are those of the stage that reads, with GenRead's passages among them, and mean nothing for a resumed run.
"""

import argparse
import random
import time
from pathlib import Path

import ifqa
from ifqa.benchmarks.file import write_questions
from ifqa.report.scores import Scores
from ifqa.scoring.measures.numeric import is_numeric
from ifqa.scoring.statistics import count_wins, paired_randomization

QUESTIONS, COUNT, SEED = Path("data/ifqa-dev-200.jsonl"), 200, 23
#: Row -> its experiment, its prompt, and the row that it is tested against.
ROWS = {
    "closed book": ("table3-full-qa-prompt", "closed-book", ""),
    "closed book, chain of thought": ("table3-full-cot", "closed-book-cot", "closed book"),
    "GenRead": ("table3-full-genread", "genread-read", "closed book"),
    "BM25, five passages": ("ifqa-dev-bm25", "open-book", "closed book"),
    "BM25, chain of thought": ("ifqa-dev-bm25", "open-book-cot", "BM25, five passages"),
    "gold passages": ("ifqa-dev-gold", "open-book", "BM25, five passages"),
    "gold passages, chain of thought": ("ifqa-dev-gold", "open-book-cot", "gold passages"),
    "gold passages, three steps": ("ifqa-dev-gold", "counterfactual", "gold passages"),
    "gold passages, calculator": ("ifqa-dev-gold", "counterfactual-calculator", "gold passages"),
}


def draw_questions() -> None:
    questions = ifqa.questions("ifqa", "full-dev")
    numeric = [question for question in questions if is_numeric(question.answers)]
    other = [question for question in questions if not is_numeric(question.answers)]
    share, draw = round(COUNT * len(numeric) / len(questions)), random.Random(SEED)
    drawn = {question.id for question in draw.sample(numeric, share) + draw.sample(other, COUNT - share)}
    write_questions(QUESTIONS, [question for question in questions if question.id in drawn])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--only", nargs="*", default=list(ROWS), choices=ROWS, metavar="NAME")
    parser.add_argument("--shots", nargs="*", type=int, default=[0])
    parser.add_argument("--set", nargs="*", default=[], metavar="SETTING=VALUE")
    arguments = parser.parse_args()
    if not QUESTIONS.exists():
        draw_questions()
    settings: dict[str, object] = dict(pair.split("=", 1) for pair in arguments.set)
    scores: dict[str, Scores] = {}
    print("| prompt | shots | EM | F1 | numeric EM | other EM | failed | against | EM | p | won, lost | seconds |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for shots in arguments.shots:
        for name in arguments.only:
            experiment, prompt, rival = ROWS[name]
            shown: dict[str, object] = {"reader.demos": "sample", "reader.shots": shots} if shots else {}
            start = time.perf_counter()
            run = ifqa.run(
                experiment, benchmark="file", split=str(QUESTIONS), reader="llm", prompt=prompt, model=arguments.model,
                settings=settings | shown | ({"reader.passages": 5} if name.startswith("BM25") else {}),
            )  # fmt: skip
            seconds = time.perf_counter() - start
            scores[f"{name} {shots}"] = run
            rivals = [f"{rival} {shots}", f"{name} 0"]
            against = next((key for key in rivals if key in scores and scores[key] is not run), "")
            cells = format_row(run), format_test(run, scores.get(against), against), f"{seconds:.0f}"
            print(f"| {name} | {shots} | {' | '.join(cells)} |", flush=True)


def format_row(run: Scores) -> str:
    em, f1 = run["EM"], run["F1"]
    cells = [f"{em.value:.1f} [{em.low:.1f}, {em.high:.1f}]", f"{f1.value:.1f} [{f1.low:.1f}, {f1.high:.1f}]"]
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
