"""How a system's answers to questions of one influence graph fit together, whether they are right or wrong.

An answer is a sign: more is 1, less -1, no effect 0. A missing answer, or one that is not offered, fits with nothing. What
belongs together is told from the words of the questions and from their gold answers, so no file of graphs is needed:

- Transitivity (Tandon et al. 2019, section 6): a question over two hops or more, and one-hop questions that lead from its
  change to its effect. Its answer is the product of theirs. Chains whose gold answers do not multiply are no chains.
- Disjunctive consistency (the same): two one-hop questions with the same change or the same effect, and opposite gold answers.
  One answer is "more", the other "less".
- Symmetry (Asai and Hajishirzi 2020): two questions of which one is the other with "more" and "less" exchanged in the change, in
  the effect or in both. Exchanged once, the answer turns round; exchanged twice, it stays. Pairs whose gold answers say
  otherwise are left out.

So a perfect reader has 100% in each. A reader that draws one of the three answers at random has 1/3, 2/9 and 1/3: whatever the
other answers are, one of three fits their product; and two of nine pairs are a "more" and a "less".
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from ifqa.benchmarks.wiqa.graphs import letters
from ifqa.protocols import SetMeasure
from ifqa.reading.multiple_choice.wiqa_question import opposite, split_stem
from ifqa.records import Prediction, Question
from ifqa.scoring.measures.exact_match import normalize

SIGNS = {"more": 1, "less": -1, "no effect": 0}
#: What a reader has that draws one of the three choices.
CHANCE = {"transitivity": 1 / 3, "disjunctive": 2 / 9, "symmetry": 1 / 3}


class GraphAnswer(NamedTuple):
    """A question of a graph, its hops, and the signs of its gold answer and of a system's; None if the system has none."""

    stem: str
    hops: int
    gold: int
    sign: int | None


FitCount = tuple[int, int]  # how many fit, of how many
Rule = Callable[[Sequence[GraphAnswer]], FitCount]


def count_transitive(graph: Sequence[GraphAnswer]) -> FitCount:
    """Answers over several hops that are the product of the answers to the hops, each chain counted once."""
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
    """Pairs of one-hop questions with opposite gold answers that get opposite answers."""
    fit = pairs = 0
    hops = [(question, *_ends(question.stem)) for question in graph if question.hops == 1]
    for (first, change, effect), (second, other_change, other_effect) in combinations(hops, 2):
        if (change == other_change) != (effect == other_effect) and first.gold * second.gold == -1:
            pairs += 1
            fit += _multiply(first.sign, second.sign) == -1
    return fit, pairs


def count_symmetric(graph: Sequence[GraphAnswer]) -> FitCount:
    """Pairs of questions with "more" and "less" exchanged whose answers turn round, or stay, as they should."""
    ends = [_ends(question.stem) for question in graph]
    places: dict[tuple[str, str], list[int]] = {}
    for place, both in enumerate(ends):
        places.setdefault(both, []).append(place)
    pairs: dict[tuple[int, int], int] = {}
    for place, (change, effect) in enumerate(ends):
        less, lower = (letters(opposite(part)) for part in split_stem(graph[place].stem))
        for other_change, other_effect, sign in ((less, effect, -1), (change, lower, -1), (less, lower, 1)):
            for other in places.get((other_change, other_effect), ()) if other_change and other_effect else ():
                if graph[place].gold == sign * graph[other].gold:
                    pairs[min(place, other), max(place, other)] = sign
    signs = [(graph[first].sign, graph[second].sign, sign) for (first, second), sign in pairs.items()]
    return sum(a is not None and b is not None and a == sign * b for a, b, sign in signs), len(signs)


def _multiply(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first * second


def _ends(stem: str) -> tuple[str, str]:
    change, effect = split_stem(stem)
    return letters(change), letters(effect)


def _make_measure(name: str, rule: Rule, about: str) -> SetMeasure:
    """A measure over a set of answers from a rule for one graph: of all cases in all graphs, how many fit; None without any."""
    tally = lru_cache(maxsize=1 << 14)(rule)  # a bootstrap asks for the same answers a thousand times

    def share(questions: Sequence[Question], predictions: Sequence[Prediction]) -> float | None:
        graphs: dict[tuple[str, str], list[GraphAnswer]] = {}  # a paragraph that is drawn twice has its graphs twice
        for question, prediction in zip(questions, predictions, strict=True):
            labels = dict(question.labels)
            sign = None if prediction.error else SIGNS.get(normalize(prediction.answer))
            answered = GraphAnswer(
                question.text, int(labels.get("hops") or 0), SIGNS[normalize(question.answers[0])], sign
            )
            graphs.setdefault((question.group, labels["graph"]), []).append(answered)
        tallies = [tally(tuple(graph)) for graph in graphs.values()]
        fit, cases = sum(fit for fit, _ in tallies), sum(cases for _, cases in tallies)
        return fit / cases if cases else None

    about = f"{about}; chance {100 * CHANCE[name]:.1f}"
    return SetMeasure(name, share, in_tables=True, unit="group", about=about)


TRANSITIVITY = _make_measure(
    "transitivity", count_transitive, "how often an answer over several hops is the product of the answers to its hops"
)
DISJUNCTIVE = _make_measure(
    "disjunctive",
    count_disjunctive,
    "how often two influences known to be opposite are answered with a more and a less",
)
SYMMETRY = _make_measure(
    "symmetry",
    count_symmetric,
    'how often the answer turns round when "more" and "less" are exchanged in the change or the effect',
)
