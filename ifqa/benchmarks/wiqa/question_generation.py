"""Questions from influence graphs, as the paper derives them (Tandon et al., EMNLP 2019, section 3).

A question asks how a change, a node that is no outcome, affects another node. If a path leads from the first to the second, the
answer is the product of the path's signs: more or less. Changes within the paragraph make in-para questions, those outside of
it out-of-para questions. A change from another paragraph has no effect. Each phrasing of a node makes a question of its own.

What the paper leaves open is decided here. An effect of a no-effect question is a node that something affects. Balancing draws
at random as many "more" as "less" of each type, and "no effect" as a third of all: the release has these proportions.
"""

import logging
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import product
from pathlib import Path

from ifqa.benchmarks.wiqa.graphs import OUTCOME, OUTSIDE, Graph, letters, read_graphs
from ifqa.benchmarks.wiqa.release import SPLITS, WiqaQuestion, new_wiqa_question, read_topics, read_wiqa_questions
from ifqa.errors import IfqaError
from ifqa.formatting import pluralize
from ifqa.progress import bar
from ifqa.storage.files import read_jsonl, write_jsonl
from ifqa.storage.resources import BUNDLED

logger = logging.getLogger(__name__)

FOLDER = BUNDLED / "wiqa"
SAMPLE = "sample-wiqa"  # names the bundled graphs
_TRIES = 50  # draws for each no-effect question that is wanted; most are possible, unless there are few paragraphs


def effect_questions(graph: Graph, *, first_hop: bool = False) -> Iterator[WiqaQuestion]:
    """Every question with an effect: each path of a usable graph, in each phrasing of its two ends.

    `first_hop` also asks for the nodes right after those outside the paragraph (Z -> X, V -> X). No released question does, and
    transitivity needs the answers.
    """
    for (source, target), chain in graph.chains.items() if graph.usable else ():
        outside = source in OUTSIDE
        if source in OUTCOME or (outside and chain.hops == 1 and not first_hop):
            continue
        kind = "EXOGENOUS_EFFECT" if outside else "INPARA_EFFECT"
        for number, (change, effect) in enumerate(product(graph.nodes[source], graph.nodes[target])):
            name = f"influence_graph:{graph.paragraph_id}:{graph.id}:{source}-{target}#{number}"
            yield new_wiqa_question(graph, name, _stem(change, effect), chain.answer, kind, len(chain.nodes))


def no_effect_questions(graph: Graph, others: Sequence[Graph], number: int, draw: random.Random) -> list[WiqaQuestion]:
    """Questions with a change of another paragraph's graph: `number` of them, or fewer if few of the draws are possible.

    A change with the words of a node of `graph`, or an effect that is one of the other graph, makes no question.
    """
    changes = [(other, change) for other in others for change in other.changes]
    affected = {target for _, target in graph.chains}
    affected_texts = [text for name in graph.nodes if name in affected for text in graph.nodes[name]]
    spellings = {letters(text) for texts in graph.nodes.values() for text in texts}
    drawn: dict[tuple[str, str], None] = {}
    pairs = len(changes) * len(affected_texts)
    for place in draw.sample(range(pairs), min(pairs, _TRIES * number)):
        if len(drawn) == number:
            break
        (other, change), effect = changes[place // len(affected_texts)], affected_texts[place % len(affected_texts)]
        foreign = other.paragraph_id != graph.paragraph_id
        if foreign and letters(change) not in spellings and not other.named(effect):
            drawn[change, effect] = None
    name = f"out_of_para:{graph.paragraph_id}:{graph.id}"
    return [
        new_wiqa_question(graph, f"{name}:{place}", _stem(change, effect), "no_effect", "OUTOFPARA_DISTRACTOR", 0)
        for place, (change, effect) in enumerate(drawn)
    ]


def _stem(change: str, effect: str) -> str:
    return f"suppose {change} happens, how will it affect {effect.removesuffix('.')}."


def balance_labels(items: Sequence[WiqaQuestion], seed: int) -> list[WiqaQuestion]:
    """As many "more" as "less" of each type, and at most a third "no effect", drawn at random; in the order given."""
    draw = random.Random(seed)
    places: dict[tuple[str, str], list[int]] = {}
    for place, item in enumerate(items):
        places.setdefault((item.kind, item.question.answer_label), []).append(place)
    kept: list[int] = []
    for kind in ("in_para", "out_of_para"):
        both = [places.get((kind, label), []) for label in ("more", "less")]
        least = min(map(len, both))
        kept += [place for those in both for place in draw.sample(those, least)]
    rest = places.get(("no_effect", "no_effect"), [])
    kept += draw.sample(rest, min(len(rest), len(kept) // 2))
    return [items[place] for place in sorted(kept)]


def make_balanced_questions(graphs: Sequence[Graph], seed: int) -> list[WiqaQuestion]:
    """Balanced questions of all graphs, whose paragraphs are one split: changes without effect come from among them too."""
    items: list[WiqaQuestion] = []
    with bar("questions from graphs", len(graphs)) as advance:
        for graph in graphs:
            with_effect = [*effect_questions(graph)]
            draw = random.Random(f"{seed}:{graph.id}")
            items += with_effect + no_effect_questions(graph, graphs, (len(with_effect) + 1) // 2, draw)
            advance(1)
    return balance_labels(items, seed)


def make_complete_questions(graphs: Sequence[Graph], seed: int) -> list[WiqaQuestion]:
    """All questions of each graph in one phrasing, drawn, of each node; half as many have no effect.

    So every chain is there with all of its hops, which the measures of consistency need.
    """
    chosen = []
    for graph in graphs:
        draw = random.Random(f"{seed}:{graph.id}")
        chosen.append(replace(graph, nodes={name: (draw.choice(texts),) for name, texts in graph.nodes.items()}))
    items: list[WiqaQuestion] = []
    for graph in chosen:
        with_effect = [*effect_questions(graph, first_hop=True)]
        foreign = [other for other in chosen if other.paragraph_id != graph.paragraph_id]
        draw = random.Random(f"{seed}:{graph.id}:no effect")
        items += with_effect + no_effect_questions(graph, foreign, len(with_effect) // 2, draw)
    return items


def assign_splits(paragraphs: Iterable[str], seed: int, known: Mapping[str, str]) -> dict[str, str]:
    """Paragraph -> split. Those that are not `known` go to train, dev and test by a hash of the seed: 80, 10 and 10 percent."""
    wanted = {*paragraphs}
    settled = {paragraph: known[paragraph] for paragraph in wanted if paragraph in known}
    free = sorted(wanted - settled.keys(), key=lambda paragraph: sha256(f"{seed}:{paragraph}".encode()).digest())
    ends = [round(0.8 * len(free)), round(0.9 * len(free))]
    return settled | {paragraph: SPLITS[sum(place >= end for end in ends)] for place, paragraph in enumerate(free)}


def write_questions(root: Path, sources: Sequence[str], seed: int) -> Iterator[str]:
    """Write data/wiqa/made-{train,dev,test}.jsonl, and their graphs to made-graphs.jsonl; yields a line for each file.

    A paragraph that the release has, in files that are there, or the sample stays in its split. So no question is made for
    training from a paragraph of a test split. Other paragraphs are divided by a hash.

    `sources` are files of graphs, or "sample-wiqa" for the bundled ones; `seed` is that of the split and of all draws.

    Raises:
        IfqaError: a file is missing or not as it should be, or no graph leads to an outcome; nothing is written then.
    """
    graphs: dict[str, Graph] = {}
    lines: list[dict[str, object]] = []
    for source in sources:
        path = FOLDER / "graphs.jsonl" if source == SAMPLE else Path(source)
        more = read_graphs(path)
        if twice := next((name for name in more if name in graphs), None):
            raise IfqaError(f"{path}: graph_id {twice!r} is in two of the files; give each graph its own")
        graphs |= more
        lines += [record for _, record in read_jsonl(path)]
    usable = {name: graph for name, graph in graphs.items() if graph.usable}
    if not usable:
        raise IfqaError(f"{', '.join(sources)}: no graph leads to its outcome; wanted 'Y_affects_outcome' more or less")
    if left := len(graphs) - len(usable):
        logger.info(f"{pluralize(left, 'graph')} left out: marked as without effect on the outcome")
    folder = root / "data" / "wiqa"
    parts = assign_splits((graph.paragraph_id for graph in usable.values()), seed, read_known_splits(folder))
    by_split = {name: [graph for graph in usable.values() if parts[graph.paragraph_id] == name] for name in SPLITS}
    derived = {name: make_balanced_questions(those, seed) for name, those in by_split.items()}
    for name, items in derived.items():
        path, those = folder / f"made-{name}.jsonl", by_split[name]
        write_jsonl(path, (item.record() for item in items))
        paragraphs = pluralize(len({graph.paragraph_id for graph in those}), "paragraph")
        yield f"{path}: {pluralize(len(items), 'question')} of {pluralize(len(those), 'graph')}, {paragraphs}"
    write_jsonl(folder / "made-graphs.jsonl", (line for line in lines if line["graph_id"] in usable))
    yield f"{folder / 'made-graphs.jsonl'}: {pluralize(len(usable), 'graph')}"


def read_known_splits(folder: Path) -> dict[str, str]:
    """Paragraph -> split, as far as the sample and the release's files in a folder tell."""
    known = {record["para_id"]: record["split"] for _, record in read_jsonl(FOLDER / "processes.jsonl")}
    if (topics := folder / "topics.tsv").exists():
        known |= {name: topic.split for name, topic in read_topics(topics).items() if topic.split in SPLITS}
    for name in SPLITS:
        if (path := folder / f"{name}.jsonl").exists():
            known |= dict.fromkeys((item.metadata.para_id for item in read_wiqa_questions(path)), name)
    return known
