"""Writes multiple-choice questions on which the reader `choice` learns what affects what, without
WIQA's own questions.

    python bench/choice_questions.py FOLDER --to data/choice [--each 3] [--seed 0]

FOLDER holds `causalqa/ecare-{train,dev}.jsonl.xz` (Du et al. 2022),
`wiqa/propara-{train,dev}-sentences.tsv` (Dalvi et al. 2018), `wiqa/influence-graphs-103.jsonl`
(made from ATOMIC) and `wiqa/test-*.jsonl`, questions of WIQA's test split. It writes ecare-train,
ecare-dev, made-train and made-dev (.jsonl) for the benchmark "file".

- e-CARE: which of two sentences is the cause, or the effect, of a third.
- Made from a procedure: the change is a thing in a sentence, the effect a thing in a later one.
  More of the first is said to mean more of the second. Each pair is asked in its four directions. A
  third of the changes are from another procedure: no effect.
- Made from graphs: the questions of an influence graph, after a paragraph of its nodes' own words.

A fifth of the graphs, and ProPara's own dev paragraphs, make made-dev. WIQA's paragraphs are
ProPara's: those of the test questions at hand are left out by their ids.
"""

import argparse
import csv
import hashlib
import json
import lzma
import random
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from ifqa.companions.wiqa.graphs import Graph, read_graphs
from ifqa.companions.wiqa.question_generation import effect_questions
from ifqa.companions.wiqa.release import read_wiqa_questions
from ifqa.storage.files import write_jsonl

CHOICES = ["more", "less", "no effect"]
MORE = [
    "more {}",
    "there is more {}",
    "a larger amount of {}",
    "an increase in {}",
    "{} increases",
    "MORE {}",
    "plenty of {}",
]
LESS = [
    "less {}",
    "there is less {}",
    "a smaller amount of {}",
    "a decrease in {}",
    "{} decreases",
    "LESS {}",
    "there is no {}",
]
_SKIP = frozenset(
    (
        "the a an some this these those its their it they more less all "
        "most other another each many"
    ).split()
)
_END = re.compile(
    r"(of|from|in|into|to|on|at|by|for|with|through|and|or|is|are|was|becomes?|begins?|starts?"
    r"|has|have|can|will|that|which|then|"
    r"\w{3,}(ed|es|ts|ls|ns|ms|ks|ds|ps|ys|rs|ing)|go|goes|move|form|fall|come|turn|use|grow"
    r"|make|eat|hatch|lay|get|rise|flow)\W*"
)

Row = dict[str, object]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--to", type=Path, required=True, help="folder of the files")
    parser.add_argument(
        "--each",
        type=int,
        default=3,
        help="pairs of things of a procedure, each asked in four directions",
    )
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    arguments.to.mkdir(parents=True, exist_ok=True)
    tests = (arguments.folder / "wiqa").glob("test-*.jsonl")
    left_out = {
        question.metadata.para_id for file in tests for question in read_wiqa_questions(file)
    }
    graphs = [*read_graphs(arguments.folder / "wiqa/influence-graphs-103.jsonl").values()]
    held = {graph.id for graph in graphs if hashlib.sha256(graph.id.encode()).digest()[0] % 5 == 0}
    for split in ("train", "dev"):
        rows = [*ecare(arguments.folder / f"causalqa/ecare-{split}.jsonl.xz")]
        print(
            f"ecare-{split}: {write_jsonl(arguments.to / f'ecare-{split}.jsonl', rows):,} questions"
        )
        draw = random.Random(f"{arguments.seed} {split}")
        procedures = read_procedures(
            arguments.folder / f"wiqa/propara-{split}-sentences.tsv", left_out
        )
        rows = [*from_procedures(procedures, arguments.each, draw)]
        rows += from_graphs(
            [graph for graph in graphs if (graph.id in held) == (split == "dev")], procedures, draw
        )
        draw.shuffle(rows)
        print(
            f"made-{split}: {write_jsonl(arguments.to / f'made-{split}.jsonl', rows):,} questions"
        )


def ecare(path: Path) -> Iterator[Row]:
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            choices = [row["hypothesis1"], row["hypothesis2"]]
            text = f"{row['premise']} What is the {row['ask-for']}?"
            yield {
                "id": row["index"],
                "question": text,
                "choices": choices,
                "answers": [choices[row["label"]]],
            }


def read_procedures(path: Path, left_out: Collection[str]) -> list[list[str]]:
    """The sentences of each paragraph, but for those with the ids `left_out`."""
    paragraphs: dict[str, list[str]] = {}
    with open(path, encoding="utf-8", newline="") as file:
        for name, _, sentence in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            if name not in left_out:
                paragraphs.setdefault(name, []).append(sentence.strip())
    return [*paragraphs.values()]


def things(sentence: str) -> list[str]:
    """What a sentence is about: its first words up to a verb or a preposition, its last ones back
    to one, or all of it.
    """
    words = re.findall(r"[A-Za-z][\w'-]*", sentence.lower())
    first = [word for word in take(words) if word not in _SKIP and not _END.fullmatch(word)]
    last = [word for word in reversed([*take(words[::-1])]) if word not in _SKIP]
    whole = words[words[0] in _SKIP :] if 2 < len(words) <= 9 else []
    return [
        " ".join(part)
        for part in (first, last, whole)
        if 0 < len(part) <= (9 if part is whole else 3)
    ]


def take(words: Sequence[str]) -> Iterator[str]:
    for place, word in enumerate(words):
        if place and _END.fullmatch(word):
            return
        yield word


def from_procedures(
    procedures: Sequence[Sequence[str]], each: int, draw: random.Random
) -> Iterator[Row]:
    for sentences in procedures:
        mentions = [
            (place, thing) for place, sentence in enumerate(sentences) for thing in things(sentence)
        ]
        pairs = [
            (change, effect)
            for place, change in mentions
            for later, effect in mentions
            if place < later and change != effect
        ]
        for change, effect in draw.sample(pairs, min(each, len(pairs))):
            yield from in_four_directions(" ".join(sentences), change, effect, draw)
        for _ in range(min(each, len(pairs)) * 2):
            foreign = [thing for sentence in draw.choice(procedures) for thing in things(sentence)]
            words = set(" ".join(sentences).lower().split())
            if (
                foreign := [thing for thing in foreign if not words & set(thing.split())]
            ) and mentions:
                stem = ask(
                    draw.choice(foreign),
                    draw.choice(mentions)[1],
                    draw.choice([1, -1]),
                    draw.choice([1, -1]),
                    draw,
                )
                yield row(" ".join(sentences), stem, "no effect")


def in_four_directions(
    paragraph: str, change: str, effect: str, draw: random.Random
) -> Iterator[Row]:
    for sign in (1, -1):
        for other in (1, -1):
            yield row(
                paragraph,
                ask(change, effect, sign, other, draw),
                "more" if sign == other else "less",
            )


def ask(change: str, effect: str, sign: int, other: int, draw: random.Random) -> str:
    change = draw.choice(MORE if sign > 0 else LESS).format(change)
    effect = draw.choice((MORE if other > 0 else LESS)[:6]).format(effect)
    return f"suppose {change} happens, how will it affect {effect}."


def from_graphs(
    graphs: Sequence[Graph], procedures: Sequence[Sequence[str]], draw: random.Random
) -> Iterator[Row]:
    for graph in graphs:
        paragraph = (
            ". ".join(graph.nodes[name][0] for name in ("Z", "X", "Y", "A") if name in graph.nodes)
            + "."
        )
        questions = [*effect_questions(graph, first_hop=True)]
        for question in draw.sample(questions, min(len(questions), 12)):
            yield row(
                paragraph, question.question.stem, question.question.answer_label.replace("_", " ")
            )
        for _ in range(4):
            sentence = draw.choice(draw.choice(procedures))
            words = set(paragraph.lower().split())
            foreign = [thing for thing in things(sentence) if not words & set(thing.split())]
            if foreign and "A" in graph.nodes:
                effect = draw.choice(graph.nodes["A"])
                change = draw.choice(MORE + LESS).format(foreign[0])
                yield row(
                    paragraph,
                    f"suppose {change} happens, how will it affect {effect}.",
                    "no effect",
                )


def row(paragraph: str, question: str, answer: str) -> Row:
    return {"question": question, "context": paragraph, "choices": CHOICES, "answers": [answer]}


if __name__ == "__main__":
    main()
