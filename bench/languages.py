"""Asks 120 questions in Norwegian, German and Japanese about real texts in these languages.

Half of them have an answer there.

    python bench/languages.py FOLDER [--packages UNPACKED] [--language en] [--together] \
        [--search bm25] [--model multilingual-e5-small] [--set retriever.method=rrf] [--cross] \
        [--to answers.jsonl]

It gathers the files of language-questions-files.tsv into FOLDER/docs, as own_questions.py does, a
folder for each language. A language model wrote the questions from the files alone, before any
system had read them. Those of the part "fit" are there to choose thresholds, those of the part
"measure" to judge them.

By default it asks about each folder as `ifqa ask --docs` does, whatever the language. `--language
en` indexes all texts with the analyzer of English, `--together` as a single folder; `--search` only
searches, with another retriever. `--model` makes a dense index too, for `--search dense` and
`--search fusion`. `--cross` asks 20 English questions about the German folder, those with an answer
in other words.

It prints for each language and part, with 95% bootstrap intervals over questions:
- for questions with an answer: how often the first passage, or one of the first five, contains it,
  and EM if every answer counts;
- the confidence above which right answers exceed wrong ones most, and by how many;
- right and wrong answers, of all questions, by the threshold fitted for English, and those that are
  given by default.
"""

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import tomli_w
from own_questions import gather, percent

import ifqa
from ifqa.cli.options import settings_of_flags
from ifqa.corpus.languages import NAMES
from ifqa.errors import IfqaError
from ifqa.records import Answer, Question
from ifqa.scoring.measures.exact_match import exact_match
from ifqa.scoring.statistics import mean_interval
from ifqa.storage.files import read_jsonl, write_jsonl

HERE = Path(__file__).parent
DEPTH = 5


class Row(NamedTuple):
    """A question, the rank of the first passage with its answer (0: none), the answers without and
    with a threshold.
    """

    question: Question
    rank: int
    answer: Answer
    default: Answer


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--packages", type=Path, help="folder of unpacked packages")
    parser.add_argument("--language", help="index all texts in this language")
    parser.add_argument("--together", action="store_true", help="index all texts as one folder")
    parser.add_argument("--search", default="", help="only search, with this retriever")
    parser.add_argument("--model", default="", help="the encoder of a dense index")
    parser.add_argument("--set", action="append", help="a setting of the retriever")
    parser.add_argument("--cross", action="store_true", help="ask in English about German texts")
    parser.add_argument("--to", type=Path, help="file for the answers")
    arguments = parser.parse_args()
    print(
        "\n".join(
            gather(
                arguments.folder / "docs", HERE / "language-questions-files.tsv", arguments.packages
            )
        )
    )
    file = "cross-language-questions.jsonl" if arguments.cross else "language-questions.jsonl"
    asked: dict[tuple[str, str], list[Question]] = {}
    for _, record in read_jsonl(HERE / file):
        question = Question(
            str(record["id"]), str(record["question"]), tuple(map(str, record["answers"]))
        )
        asked.setdefault((str(record["language"]), str(record["part"])), []).append(question)
    rows = []
    for (language, part), questions in asked.items():
        found, least = ask(arguments, "" if arguments.together else language, questions)
        print(
            f"\n{NAMES[language]}, {part}",
            *figures(found, least, bool(arguments.search)),
            sep="\n",
            flush=True,
        )
        rows += found
    if arguments.to:
        write_jsonl(arguments.to, map(row_json, rows))


def ask(
    arguments: argparse.Namespace, folder: str, questions: Sequence[Question]
) -> tuple[list[Row], float]:
    """Ask about a folder of `docs`.

    Returns the reader's threshold of `answerable` for English too.
    """
    work = arguments.folder / f"work-{arguments.language or 'detected'}"
    (work / "indexes").mkdir(parents=True, exist_ok=True)
    name = folder or "all"
    docs = (arguments.folder / "docs" / folder).resolve()
    sources = {"passages": {"sources": [{"format": "documents", "path": str(docs)}]}}
    language = {"language": arguments.language} if arguments.language else {}
    indexes = {"bm25": {"retriever": "bm25"}}
    if arguments.model:
        indexes["dense"] = {"retriever": "dense", "model": arguments.model}
    corpus = {**language, **sources, "index": indexes}
    (work / "indexes" / f"{name}.toml").write_text(tomli_w.dumps(corpus), encoding="utf-8")
    search = {"retriever": arguments.search} if arguments.search else {}
    settings = settings_of_flags(arguments.set)
    with ifqa.open(root=work, corpus=name, settings=settings, **search) as system:
        rankings = system.retrieve(questions, DEPTH)
        answers = defaults = [Answer(question, "") for question in questions]
        if not search:
            answers = system.answer(questions, threshold=0)
            defaults = system.answer(questions)
        least = system.reader.answerable_threshold
    ranks = []
    for question, ranking in zip(questions, rankings, strict=True):
        holds = [
            any(squeeze(gold) in squeeze(one.text) for gold in question.answers)
            for one in ranking.passages
        ]
        ranks.append(holds.index(True) + 1 if True in holds else 0)
    return [Row(*parts) for parts in zip(questions, ranks, answers, defaults, strict=True)], least


def squeeze(text: str) -> str:
    """A text without blanks, which a broken line of Japanese has within words."""
    return re.sub(r"\s+", "", text).casefold()


def figures(rows: Sequence[Row], least: float, only_search: bool) -> Iterator[str]:
    have = [row for row in rows if row.question.answers]
    shares = {f"answer recall @{k}": [float(0 < row.rank <= k) for row in have] for k in (1, DEPTH)}
    if not only_search:
        english = [
            row.answer if (row.answer.answerable or 0.0) >= least else Answer(row.question, "")
            for row in rows
        ]
        default = [row.default for row in rows]
        shares["EM, every answer"] = [right(row.answer) for row in have]
        for name, answers in {
            f"answerable from {least:.3f}": english,
            "by default": default,
        }.items():
            shares[f"right {name}, of all"] = [right(answer) for answer in answers]
            shares[f"wrong {name}, of all"] = [
                float(bool(answer.text)) - right(answer) for answer in answers
            ]
        best, gain = best_threshold([row.answer for row in rows])
        yield f"  best threshold: {best:.3f}, {gain:+.0f} of {len(rows)}"
    for name, values in shares.items():
        yield f"  {name}: {percent(mean_interval(values))}"


def right(answer: Answer) -> float:
    return exact_match(answer.text, answer.question.answers) if answer.question.answers else 0.0


def best_threshold(answers: Sequence[Answer]) -> tuple[float, float]:
    """The confidence from which on right answers exceed wrong ones most, and by how many."""
    best = 1.0
    gain = 0.0
    total = 0.0
    for answer in sorted(answers, key=lambda answer: -(answer.confidence or 0.0)):
        total += 2 * right(answer) - 1
        if total > gain:
            best = answer.confidence or 0.0
            gain = total
    return best, gain


def row_json(row: Row) -> dict[str, object]:
    answer = row.answer
    question = row.question
    facts = {
        "id": question.id,
        "question": question.text,
        "answers": list(question.answers),
        "rank": row.rank,
    }
    return facts | {
        "answer": answer.text,
        "confidence": answer.confidence,
        "default": row.default.text,
    }


if __name__ == "__main__":
    try:
        main()
    except IfqaError as error:
        raise SystemExit(f"error: {error}") from error
