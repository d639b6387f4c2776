"""Consistency of a system's answers to an influence graph's questions, whether the answers are
right or wrong.

Answers are signs: more is 1, less -1, no effect 0. A missing or invalid answer is never consistent.
Cases are found by the questions' words and gold answers, so no file of graphs is needed:

- Transitivity (Tandon et al. 2019, section 6): a question over two or more hops, and a chain of
  one-hop questions from its change to its effect. The question's answer must be the product of the
  chain's. Chains whose gold answers break this rule do not count.
- Disjunctive consistency (same source): two one-hop questions with the same change or the same
  effect, and opposite gold answers. One answer must be "more", the other "less".
- Symmetry (Asai and Hajishirzi 2020): two questions that differ by swapping "more" and "less" in
  the change, the effect or both. One swap must reverse the answer, two must keep it. Pairs whose
  gold answers break this rule do not count.

A perfect reader scores 100% in each. A reader that picks one of three answers at random scores 1/3,
2/9 and 1/3: whatever the other answers, one of three equals their product, and two of nine pairs
are a "more" and a "less".
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from ifqa.companions.wiqa.direction_lexicon import opposite
from ifqa.companions.wiqa.graphs import letters
from ifqa.companions.wiqa.release import split_stem
from ifqa.formatting import one_decimal
from ifqa.protocols import SetMeasure
from ifqa.records import Prediction, Question
from ifqa.scoring.measures.exact_match import normalize

SIGNS = {"more": 1, "less": -1, "no effect": 0}
#: Scores of a reader that picks one of the three choices at random.
CHANCE = {"transitivity": 1 / 3, "disjunctive": 2 / 9, "symmetry": 1 / 3}


class GraphAnswer(NamedTuple):
    """A question of a graph, its hops, and the signs of its gold answer and of the system's answer
    (None if it has none).
    """

    stem: str
    hops: int
    gold: int
    sign: int | None


FitCount = tuple[int, int]  # consistent cases, all cases
Rule = Callable[[Sequence[GraphAnswer]], FitCount]


def count_transitive(graph: Sequence[GraphAnswer]) -> FitCount:
    """Count the chains whose answer is the product of the answers to its hops."""
    ends = [_ends(question.stem) for question in graph]
    steps: dict[str, list[tuple[str, GraphAnswer]]] = {}
    for question, (change, effect) in zip(graph, ends, strict=True):
        if question.hops == 1:
            steps.setdefault(change, []).append((effect, question))
    fit = chains = 0
    for question, (change, effect) in zip(graph, ends, strict=True):
        reached: list[tuple[str, int, int | None]] = [(change, 1, 1)] if question.hops > 1 else []
        for _ in range(question.hops):
            reached = [
                (target, gold * step.gold, _multiply(sign, step.sign))
                for place, gold, sign in reached
                for target, step in steps.get(place, ())
            ]
        signs = [sign for place, gold, sign in reached if place == effect and gold == question.gold]
        chains += len(signs)
        fit += sum(sign is not None and sign == question.sign for sign in signs)
    return fit, chains


def count_disjunctive(graph: Sequence[GraphAnswer]) -> FitCount:
    """Count the pairs of one-hop questions with opposite gold answers that get opposite answers."""
    fit = pairs = 0
    hops = [(question, *_ends(question.stem)) for question in graph if question.hops == 1]
    for (first, change, effect), (second, other_change, other_effect) in combinations(hops, 2):
        if (change == other_change) != (effect == other_effect) and first.gold * second.gold == -1:
            pairs += 1
            fit += _multiply(first.sign, second.sign) == -1
    return fit, pairs


def count_symmetric(graph: Sequence[GraphAnswer]) -> FitCount:
    """Count the pairs of questions with "more" and "less" swapped whose answers are reversed, or
    equal, as required.
    """
    places: dict[tuple[str, str], list[int]] = {}
    for place, question in enumerate(graph):
        places.setdefault(_ends(question.stem), []).append(place)
    # Two places in the graph -> 1 if their answers must be equal, -1 if reversed
    pairs: dict[tuple[int, int], int] = {}
    for place, question in enumerate(graph):
        for ends, sign in _swapped(question.stem):
            for other in places.get(ends, ()):
                if question.gold == sign * graph[other].gold:
                    pairs[min(place, other), max(place, other)] = sign
    fitting = 0
    for (first, second), sign in pairs.items():
        one = graph[first].sign
        two = graph[second].sign
        if one is not None and two is not None and one == sign * two:
            fitting += 1
    return fitting, len(pairs)


def _swapped(stem: str) -> Iterator[tuple[tuple[str, str], int]]:
    """Change and effect of a question with "more" and "less" swapped in one or in both, and the
    sign of its answer.
    """
    change, effect = _ends(stem)
    other_change, other_effect = (letters(opposite(part)) for part in split_stem(stem))
    swaps = (
        (other_change, effect, -1),
        (change, other_effect, -1),
        (other_change, other_effect, 1),
    )
    for swapped_change, swapped_effect, sign in swaps:
        if swapped_change and swapped_effect:
            yield (swapped_change, swapped_effect), sign


def _multiply(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first * second


def _ends(stem: str) -> tuple[str, str]:
    change, effect = split_stem(stem)
    return letters(change), letters(effect)


def _make_measure(name: str, rule: Rule, about: str) -> SetMeasure:
    """A measure: the share of consistent cases in all graphs, which `rule` counts for each graph.

    None without cases.
    """
    # The bootstrap repeats each graph about a thousand times
    count = lru_cache(maxsize=1 << 14)(rule)

    def share(questions: Sequence[Question], predictions: Sequence[Prediction]) -> float | None:
        # A paragraph that is drawn twice has its graphs twice
        graphs: dict[tuple[str, str], list[GraphAnswer]] = {}
        for question, prediction in zip(questions, predictions, strict=True):
            hops = int(question.label("hops") or 0)
            gold = SIGNS[normalize(question.answers[0])]
            sign = None if prediction.error else SIGNS.get(normalize(prediction.answer))
            key = (question.group, dict(question.labels)["graph"])
            graphs.setdefault(key, []).append(GraphAnswer(question.text, hops, gold, sign))
        counts = [count(tuple(graph)) for graph in graphs.values()]
        fit = sum(fit for fit, _ in counts)
        cases = sum(cases for _, cases in counts)
        return fit / cases if cases else None

    about = f"how often {about}; chance {one_decimal(100 * CHANCE[name])}"
    return SetMeasure(name, share, in_tables=True, unit="group", about=about)


TRANSITIVITY = _make_measure(
    "transitivity",
    count_transitive,
    "an answer over several hops is the product of the answers to its hops",
)
DISJUNCTIVE = _make_measure(
    "disjunctive",
    count_disjunctive,
    "two influences known to be opposite are answered with a more and a less",
)
SYMMETRY = _make_measure(
    "symmetry",
    count_symmetric,
    'the answer is reversed when "more" and "less" are swapped in the change or the effect',
)
