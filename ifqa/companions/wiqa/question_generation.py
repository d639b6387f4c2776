"""Generates questions from influence graphs, as in the paper (Tandon et al., EMNLP 2019, section
3).

A question asks how a change (a node that is not an outcome) affects another node. The answer is the
product of the signs of the path between them: more or less. Changes in the paragraph make in-para
questions, changes outside it out-of-para questions; a change from another paragraph has no effect.
Each phrasing of a node makes a question of its own.

Two choices are ours. The effect in a no-effect question is a node with incoming edges. Balancing
takes as many "more" as "less" questions of each type, and makes a third "no effect": the release
has these proportions.
"""

import logging
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import product
from pathlib import Path

from ifqa.companions.wiqa.graphs import OUTCOME, OUTSIDE, Graph, letters, read_graphs
from ifqa.companions.wiqa.release import (
    SPLITS,
    WiqaQuestion,
    new_wiqa_question,
    read_topics,
    read_wiqa_questions,
)
from ifqa.errors import FormatError
from ifqa.formatting import pluralize
from ifqa.progress import bar
from ifqa.storage.files import read_jsonl, write_jsonl
from ifqa.storage.resources import BUNDLED

logger = logging.getLogger(__name__)

FOLDER = BUNDLED / "wiqa"
SAMPLE = "sample-wiqa"  # the name of the bundled graphs
# Random pairs per no-effect question; with more than a few paragraphs, most pairs are valid
_TRIES = 50


def effect_questions(graph: Graph, *, first_hop: bool = False) -> Iterator[WiqaQuestion]:
    """A question for each path of a usable graph and each pair of phrasings of its two ends.

    `first_hop` adds the effect on X of the nodes outside the paragraph (Z -> X, V -> X), which
    transitivity needs. The bundled questions have them; the release does not.
    """
    for (source, target), chain in graph.chains.items() if graph.usable else ():
        outside = source in OUTSIDE
        if source in OUTCOME or (outside and chain.hops == 1 and not first_hop):
            continue
        kind = "EXOGENOUS_EFFECT" if outside else "INPARA_EFFECT"
        for number, (change, effect) in enumerate(
            product(graph.nodes[source], graph.nodes[target])
        ):
            name = f"influence_graph:{graph.paragraph_id}:{graph.id}:{source}-{target}#{number}"
            yield new_wiqa_question(
                graph, name, word_stem(change, effect), chain.answer, kind, len(chain.nodes)
            )


def no_effect_questions(
    graph: Graph, others: Sequence[Graph], number: int, draw: random.Random
) -> list[WiqaQuestion]:
    """Up to `number` questions whose change is from another paragraph's graph.

    The change must not be a node of `graph`, nor the effect a node of the other graph.
    """
    changes = [(other, change) for other in others for change in other.changes]
    affected = {target for _, target in graph.chains}
    affected_texts = [
        text for name in graph.nodes if name in affected for text in graph.nodes[name]
    ]
    spellings = {letters(text) for texts in graph.nodes.values() for text in texts}
    drawn: dict[tuple[str, str], None] = {}
    pairs = len(changes) * len(affected_texts)
    for place in draw.sample(range(pairs), min(pairs, _TRIES * number)):
        if len(drawn) == number:
            break
        (other, change) = changes[place // len(affected_texts)]
        effect = affected_texts[place % len(affected_texts)]
        foreign = other.paragraph_id != graph.paragraph_id
        if foreign and letters(change) not in spellings and not other.named(effect):
            drawn[change, effect] = None
    name = f"out_of_para:{graph.paragraph_id}:{graph.id}"
    return [
        new_wiqa_question(
            graph,
            f"{name}:{number}",
            word_stem(change, effect),
            "no_effect",
            "OUTOFPARA_DISTRACTOR",
            0,
        )
        for number, (change, effect) in enumerate(drawn)
    ]


def word_stem(change: str, effect: str) -> str:
    return f"suppose {change} happens, how will it affect {effect.removesuffix('.')}."


def balance_labels(questions: Sequence[WiqaQuestion], seed: int) -> list[WiqaQuestion]:
    """Choose at random as many "more" as "less" of each type, and at most a third "no effect".

    Keeps the order.
    """
    draw = random.Random(seed)
    places: dict[tuple[str, str], list[int]] = {}
    for place, question in enumerate(questions):
        places.setdefault((question.kind, question.question.answer_label), []).append(place)
    drawn: list[int] = []
    for kind in ("in_para", "out_of_para"):
        more, less = (places.get((kind, label), []) for label in ("more", "less"))
        count = min(len(more), len(less))
        drawn += draw.sample(more, count) + draw.sample(less, count)
    rest = places.get(("no_effect", "no_effect"), [])
    drawn += draw.sample(rest, min(len(rest), len(drawn) // 2))
    return [questions[place] for place in sorted(drawn)]


def make_balanced_questions(graphs: Sequence[Graph], seed: int) -> list[WiqaQuestion]:
    """Balanced questions from a split's graphs; changes without effect are from the same split."""
    questions: list[WiqaQuestion] = []
    with bar("questions from graphs", len(graphs)) as advance:
        for graph in graphs:
            with_effect = [*effect_questions(graph)]
            draw = random.Random(f"{seed}:{graph.id}")
            questions += with_effect + no_effect_questions(
                graph, graphs, (len(with_effect) + 1) // 2, draw
            )
            advance(1)
    return balance_labels(questions, seed)


def assign_splits(paragraphs: Iterable[str], seed: int, known: Mapping[str, str]) -> dict[str, str]:
    """Paragraph -> split: as `known`, else by a hash with the seed: 80% train, 10% dev, 10%
    test.
    """
    names = {*paragraphs}
    splits = {name: known[name] for name in names if name in known}
    rest = sorted(
        names - splits.keys(), key=lambda name: sha256(f"{seed}:{name}".encode()).digest()
    )
    ends = [round(0.8 * len(rest)), round(0.9 * len(rest))]
    return splits | {
        name: SPLITS[sum(place >= end for end in ends)] for place, name in enumerate(rest)
    }


def write_questions(root: Path, sources: Sequence[str], seed: int) -> Iterator[str]:
    """Write data/wiqa/made-{train,dev,test}.jsonl, and their graphs to made-graphs.jsonl.

    Yields a line for each file.

    A paragraph of the sample, or of the release's files if they are in data/wiqa, keeps its split,
    so no training question is made from a test paragraph. A hash divides the other paragraphs.

    `sources` are files of graphs, or "sample-wiqa" for the bundled graphs; `seed` is for the split
    and all random choices.

    Raises:
        IfqaError: a file is missing or in another format, or no graph leads to an outcome; nothing
            is written.
    """
    graphs: dict[str, Graph] = {}
    lines: list[dict[str, object]] = []
    for source in sources:
        path = FOLDER / "graphs.jsonl" if source == SAMPLE else Path(source)
        parsed = read_graphs(path)
        if duplicate := next((name for name in parsed if name in graphs), None):
            raise FormatError(
                f"{path}: graph_id {duplicate!r} is in two of the files; wanted unique ids"
            )
        graphs |= parsed
        lines += [record for _, record in read_jsonl(path)]
    usable = {name: graph for name, graph in graphs.items() if graph.usable}
    if not usable:
        raise FormatError(
            f"{', '.join(sources)}: no graph leads to its outcome; wanted "
            "'Y_affects_outcome' more or less"
        )
    if unusable := len(graphs) - len(usable):
        logger.info(
            f"{pluralize(unusable, 'graph')} left out: marked as having no effect on the outcome"
        )
    folder = root / "data" / "wiqa"
    splits = assign_splits(
        (graph.paragraph_id for graph in usable.values()), seed, read_known_splits(folder)
    )
    by_split = {
        name: [graph for graph in usable.values() if splits[graph.paragraph_id] == name]
        for name in SPLITS
    }
    questions = {
        name: make_balanced_questions(split_graphs, seed) for name, split_graphs in by_split.items()
    }
    for name, split_graphs in by_split.items():
        path = folder / f"made-{name}.jsonl"
        count = write_jsonl(path, (question.record() for question in questions[name]))
        paragraphs = pluralize(len({graph.paragraph_id for graph in split_graphs}), "paragraph")
        yield (
            f"{path}: {pluralize(count, 'question')} from "
            f"{pluralize(len(split_graphs), 'graph')}, {paragraphs}"
        )
    write_jsonl(
        folder / "made-graphs.jsonl", (line for line in lines if line["graph_id"] in usable)
    )
    yield f"{folder / 'made-graphs.jsonl'}: {pluralize(len(usable), 'graph')}"


def read_known_splits(folder: Path) -> dict[str, str]:
    """Paragraph -> split, from the sample and the release's files in a folder."""
    known = {
        record["para_id"]: record["split"] for _, record in read_jsonl(FOLDER / "processes.jsonl")
    }
    if (topics := folder / "topics.tsv").exists():
        known |= {
            name: topic.split
            for name, topic in read_topics(topics).items()
            if topic.split in SPLITS
        }
    for name in SPLITS:
        if (path := folder / f"{name}.jsonl").exists():
            known |= dict.fromkeys(
                (question.metadata.para_id for question in read_wiqa_questions(path)), name
            )
    return known
