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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

from ifqa.benchmarks.wiqa.graphs import letters
from ifqa.protocols import SetMeasure
from ifqa.reading.multiple_choice.wiqa_question import opposite, parts
from ifqa.records import Prediction, Question
from ifqa.scoring.measures.exact_match import normalize

SIGNS = {"more": 1, "less": -1, "no effect": 0}


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A question of a graph: its parts, compared by their letters, its hops, and the signs of two answers to it.

    `found` is the sign of a system's answer; None if there is none. Two of them are never equal, which makes them quick to find
    in a cache.
    """

    graph: str
    stem: str
    change: str
    effect: str
    hops: int
    gold: int
    found: int | None


Tally = tuple[int, int]  # how many fit, of how many
Rule = Callable[[Sequence[Asked]], Tally]


def transitive(graph: Sequence[Asked]) -> Tally:
    """Answers over several hops that are the product of the answers to the hops, each chain counted once."""
    steps: dict[str, list[Asked]] = {}
    for one in graph:
        if one.hops == 1:
            steps.setdefault(one.change, []).append(one)
    fit = chains = 0
    for one in graph:
        ends: list[tuple[str, int, int | None]] = [(one.change, 1, 1)] if one.hops > 1 else []
        for _ in range(one.hops):
            ends = [
                (step.effect, gold * step.gold, _times(found, step.found))
                for at, gold, found in ends
                for step in steps.get(at, ())
            ]
        products = [found for at, gold, found in ends if at == one.effect and gold == one.gold]
        chains += len(products)
        fit += sum(found is not None and found == one.found for found in products)
    return fit, chains


def _times(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first * second


def disjunctive(graph: Sequence[Asked]) -> Tally:
    """Pairs of one-hop questions with opposite gold answers that get opposite answers."""
    fit = pairs = 0
    for first, second in combinations([question for question in graph if question.hops == 1], 2):
        if (first.change == second.change) != (first.effect == second.effect) and first.gold * second.gold == -1:
            pairs += 1
            fit += _times(first.found, second.found) == -1
    return fit, pairs


def symmetric(graph: Sequence[Asked]) -> Tally:
    """Pairs of questions with "more" and "less" exchanged whose answers turn round, or stay, as they should."""
    places: dict[tuple[str, str], list[int]] = {}
    for place, one in enumerate(graph):
        places.setdefault((one.change, one.effect), []).append(place)
    pairs: dict[tuple[int, int], int] = {}
    for place, one in enumerate(graph):
        for change, effect, sign in exchanged(one.stem):
            for other in places.get((change, effect), ()):
                if one.gold == sign * graph[other].gold:
                    pairs[min(place, other), max(place, other)] = sign
    found = [(graph[one].found, graph[other].found, sign) for (one, other), sign in pairs.items()]
    return sum(a is not None and b is not None and a == sign * b for a, b, sign in found), len(found)


@lru_cache(maxsize=1 << 16)
def exchanged(stem: str) -> tuple[tuple[str, str, int], ...]:
    """The letters of change and effect with "more" and "less" exchanged in one or both, and -1 or 1 for the answer's sign."""
    (change, effect), (less, lower) = _both(stem), [letters(opposite(part)) for part in parts(stem)]
    pairs = [(less, effect, -1)] * bool(less) + [(change, lower, -1)] * bool(lower)
    return (*pairs, *([(less, lower, 1)] if less and lower else []))


@lru_cache(maxsize=1 << 16)
def _both(stem: str) -> tuple[str, str]:
    change, effect = parts(stem)
    return letters(change), letters(effect)


@lru_cache(maxsize=1 << 16)  # a bootstrap asks for the same answers a thousand times
def _asked(stem: str, labels: tuple[tuple[str, str], ...], gold: str, answer: str) -> Asked:
    told = dict(labels)
    signs = SIGNS[normalize(gold)], SIGNS.get(normalize(answer))
    return Asked(told["graph"], stem, *_both(stem), int(told.get("hops") or 0), *signs)


def graphs_of(questions: Sequence[Question], predictions: Sequence[Prediction]) -> Iterator[tuple[Asked, ...]]:
    """The questions by graph; a paragraph that a bootstrap draws twice has its graphs twice."""
    graphs: dict[tuple[str, str], list[Asked]] = {}
    for question, prediction in zip(questions, predictions, strict=True):
        answer = "" if prediction.error else prediction.answer
        answered = _asked(question.text, question.labels, question.answers[0], answer)
        graphs.setdefault((question.group, answered.graph), []).append(answered)
    yield from map(tuple, graphs.values())


def share(rule: Rule) -> Callable[[Sequence[Question], Sequence[Prediction]], float | None]:
    """A measure over a set of answers from a rule for one graph: of all cases in all graphs, how many fit; None without any."""
    kept = lru_cache(maxsize=1 << 14)(rule)

    def of(questions: Sequence[Question], predictions: Sequence[Prediction]) -> float | None:
        tallies = [kept(graph) for graph in graphs_of(questions, predictions)]
        fit, cases = (sum(tally[n] for tally in tallies) for n in (0, 1))
        return fit / cases if cases else None

    return of


#: What a reader has that draws one of the three choices.
CHANCE = {"transitivity": 1 / 3, "disjunctive": 2 / 9, "symmetry": 1 / 3}


def _measure(name: str, rule: Rule, about: str) -> SetMeasure:
    about = f"{about}; chance {100 * CHANCE[name]:.1f}"
    return SetMeasure(name, share(rule), in_tables=True, unit="group", about=about)


TRANSITIVITY = _measure(
    "transitivity", transitive, "how often an answer over several hops is the product of the answers to its hops"
)
DISJUNCTIVE = _measure(
    "disjunctive", disjunctive, "how often two influences known to be opposite are answered with a more and a less"
)
SYMMETRY = _measure(
    "symmetry",
    symmetric,
    'how often the answer turns round when "more" and "less" are exchanged in the change or the effect',
)
