"""Measures variants of BM25: k1 and b, feedback from the first passages, word pairs, neighbouring
passages.

    python bench/lucene.py CORPUS [--split full-train] [--sample 600]

CORPUS has an index "bm25". The first row, the baseline of p, is BM25 with the question and its
repeated names (k1 = 0.9, b = 0.4). All rows start from this query:

    k1=X b=Y       another saturation and length normalisation
    rocchio N x W  adds the N words of the best 10 passages with the highest mean tf x idf, with W times the question's weight
                   (Rocchio 1971, without negatives)
    rm3 N x W      adds the N most probable words of the passages' language models, each passage weighted by its share of the
                   scores (Lavrenko and Croft 2001; Abdul-Jaleel et al. 2004)
    pairs W        adds W times the first score times the passage's share of the question's pairs of neighbouring words (a bag of
                   ordered windows, as in Metzler and Croft 2005)
    neighbours W   adds W times the better score of the passages before and after
"""

import argparse
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path

import numpy as np
from retrieval import judge, markdown, recall_table

from ifqa.corpus.passage_store import PassageStore
from ifqa.plugins import open_benchmark
from ifqa.records import Hit, Question
from ifqa.retrieval.bm25 import BM25
from ifqa.retrieval.linear_ranker import split_words
from ifqa.retrieval.queries import rewrite_questions
from ifqa.training.ranker import Ranker

FEEDBACK = 10  # passages that words come from
REPEATED = 4  # copies of the question in a query, so that an added word may weigh a fraction of it

Texts = Callable[[Sequence[Hit]], list[str]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus")
    parser.add_argument("--benchmark", default="ifqa")
    parser.add_argument("--split", default="full-train")
    parser.add_argument(
        "--sample", type=int, default=600, help="N of the questions, drawn with seed 0"
    )
    arguments = parser.parse_args()
    questions = open_benchmark(arguments.benchmark).questions(arguments.split)
    numbers = np.random.default_rng(0).choice(
        len(questions), min(arguments.sample, len(questions)), False
    )
    questions = [questions[number] for number in sorted(numbers.tolist())]
    folder = Path("indexes") / arguments.corpus
    store = PassageStore(folder / "passages")
    rows = dict(rankings(questions, folder / "bm25", store))
    print(markdown(recall_table(rows, judge(rows, questions, store))))


def rankings(
    questions: Sequence[Question], index: Path, store: PassageStore
) -> Iterator[tuple[str, list[list[Hit]]]]:
    """Each row: its name, and the questions' rankings."""
    queries = rewrite_questions(questions, "names")
    default = BM25(BM25.Settings(), index=index)
    first: list[list[Hit]] = default.search(queries, Ranker.retrieved)
    yield "k1=0.9 b=0.4", first
    for k1, b in product((0.6, 0.9, 1.2, 1.6), (0.2, 0.4, 0.6, 0.8)):
        if (k1, b) != (0.9, 0.4):
            bm25 = BM25(BM25.Settings(k1=k1, b=b), index=index)
            yield f"k1={k1} b={b}", bm25.search(queries, Ranker.retrieved)

    def texts(hits: Sequence[Hit]) -> list[str]:
        return [passage.text for passage in store.get([hit.passage_id for hit in hits])]

    seen = Counter(
        word for ranking in first for text in texts(ranking) for word in set(split_words(text))
    )
    ranked = sum(map(len, first))
    for count, weight, weigh in product((5, 10, 20), (0.25, 0.5), (rocchio, rm3)):
        weights = (weigh(ranking, texts, seen, ranked) for ranking in first)
        pairs = zip(queries, weights, strict=True)
        longer = [
            replace(query, text=expand(query.text, words, count, weight)) for query, words in pairs
        ]
        yield f"{weigh.__name__} {count} x {weight}", default.search(longer, Ranker.retrieved)
    for weight in (0.1, 0.25, 0.5):
        yield (
            f"pairs {weight}",
            [with_pairs(*pair, texts, weight) for pair in zip(questions, first, strict=True)],
        )
    for weight in (0.1, 0.25, 0.5):
        yield f"neighbours {weight}", [with_neighbours(ranking, weight) for ranking in first]


def rocchio(
    ranking: Sequence[Hit], texts: Texts, seen: Counter[str], ranked: int
) -> dict[str, float]:
    """Word -> its mean tf x idf in the first passages."""
    weights: dict[str, float] = defaultdict(float)
    for text in texts(ranking[:FEEDBACK]):
        for word, count in Counter(split_words(text)).items():
            weights[word] += math.log(1 + count) * math.log(ranked / seen[word])
    return weights


def rm3(ranking: Sequence[Hit], texts: Texts, seen: Counter[str], ranked: int) -> dict[str, float]:
    """Word -> its probability in the first passages, each weighted by its share of the scores.

    Words of at least 5% of all ranked passages are left out, as Anserini leaves out those of 10% of
    an index.
    """
    weights: dict[str, float] = defaultdict(float)
    for hit, text in zip(ranking[:FEEDBACK], texts(ranking[:FEEDBACK]), strict=True):
        words = split_words(text)
        for word, count in Counter(words).items():
            if seen[word] < ranked / 20:
                weights[word] += hit.score * count / len(words)
    return weights


def expand(text: str, weights: dict[str, float], count: int, weight: float) -> str:
    """A question, `REPEATED` times, and the `count` heaviest words that it lacks, together with
    `weight` times its weight.
    """
    known = set(split_words(text))
    new = [word for word in weights if word not in known and len(word) > 1]
    chosen = sorted(new, key=lambda word: (-weights[word], word))[:count]
    size = REPEATED * weight * len(text.split())  # words
    total = sum(weights[word] for word in chosen) or 1.0
    times = {word: round(size * weights[word] / total) for word in chosen}
    return " ".join([text] * REPEATED + [word for word in chosen for _ in range(times[word])])


def with_pairs(
    question: Question, ranking: Sequence[Hit], texts: Texts, weight: float
) -> list[Hit]:
    """A ranking reordered by its scores and the word pairs that question and passage share."""
    pairs = set(pairwise(split_words(question.text)))
    shares = [
        len(pairs.intersection(pairwise(split_words(text)))) / max(1, len(pairs))
        for text in texts(ranking)
    ]
    return reordered(ranking, [share * ranking[0].score for share in shares], weight)


def with_neighbours(ranking: Sequence[Hit], weight: float) -> list[Hit]:
    """A ranking reordered by its scores and the better score of the passages before and after.

    0 for unranked ones.
    """
    scores = {hit.passage_id: hit.score for hit in ranking}

    def neighbour_score(passage_id: str) -> float:
        page, _, number = passage_id.rpartition("-")
        if not (page and number.isdecimal()):
            return 0.0  # an annotated passage, which belongs to no article
        return max(scores.get(f"{page}-{int(number) + step}", 0.0) for step in (-1, 1))

    return reordered(ranking, [neighbour_score(hit.passage_id) for hit in ranking], weight)


def reordered(ranking: Sequence[Hit], added: Sequence[float], weight: float) -> list[Hit]:
    """A ranking by its scores and `weight` times what is added to each."""
    hits = [
        Hit(hit.passage_id, hit.score + weight * more)
        for hit, more in zip(ranking, added, strict=True)
    ]
    return sorted(hits, key=lambda hit: -hit.score)


if __name__ == "__main__":
    main()
