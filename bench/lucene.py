"""Prints what BM25's own means find: k1 and b, feedback from the first passages, pairs of words, neighbouring passages.

    python bench/lucene.py CORPUS [--split full-train] [--sample 600]

CORPUS has an index "bm25". The first row, with which p compares, is BM25 asked the question and its names once more (k1 = 0.9,
b = 0.4). All others are asked the same. The rows:

    k1=X b=Y       another saturation and length normalisation
    rocchio N x W  the N words of the best 10 passages with the highest mean of tf x idf are asked too, with W of the weight of
                   the question (Rocchio 1971, without negatives)
    rm3 N x W      the same with the N likeliest words of the passages' language models, each passage weighted by its share of
                   the scores (Lavrenko and Croft 2001; Abdul-Jaleel et al. 2004)
    pairs W        W times the share of the question's pairs of neighbouring words that a passage has is added, as a part of
                   the first score (a bag of ordered windows, as in Metzler and Croft 2005)
    neighbours W   W times the best score of the passages before and after it is added to that of a passage
"""

import argparse
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from ranker import DEPTH
from retrieval import judged, markdown, scored

from ifqa.corpus.passage_store import PassageStore
from ifqa.plugins import load_plugin, open_benchmark
from ifqa.records import Hit, Question
from ifqa.retrieval.linear_ranker import split_words
from ifqa.retrieval.queries import rewrite_questions

FEEDBACK = 10  # passages that words are taken from
REPEATED = 4  # times that a question is written down, so that a word may count a part of it

Texts = Callable[[Sequence[Hit]], list[str]]


def main() -> None:
    """Rank, score, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("--benchmark", default="ifqa")
    parser.add_argument("--split", default="full-train")
    parser.add_argument("--sample", type=int, default=600, help="N of the questions, drawn with seed 0")
    arguments = parser.parse_args()
    questions = open_benchmark(arguments.benchmark).questions(arguments.split)
    drawn = np.random.default_rng(0).choice(len(questions), min(arguments.sample, len(questions)), False)
    questions = [questions[number] for number in sorted(drawn.tolist())]
    folder = Path("indexes") / arguments.corpus
    store = PassageStore(folder / "passages")
    rows = dict(rankings(questions, folder / "bm25", store))
    print(markdown(scored(rows, judged(rows, questions, store))))


def rankings(questions: Sequence[Question], index: Path, store: PassageStore) -> Iterator[tuple[str, list[list[Hit]]]]:
    """Each row: its name, and the questions' rankings."""
    given, bm25 = rewrite_questions(questions, "names"), load_plugin("retriever", "bm25")
    usual = bm25(index)
    first: list[list[Hit]] = usual.search(given, DEPTH)
    yield "k1=0.9 b=0.4", first
    for k1 in (0.6, 0.9, 1.2, 1.6):
        for b in (0.2, 0.4, 0.6, 0.8):
            if (k1, b) != (0.9, 0.4):
                yield f"k1={k1} b={b}", bm25(index, k1=k1, b=b).search(given, DEPTH)

    def texts(hits: Sequence[Hit]) -> list[str]:
        return [one.text for one in store.get([hit.passage_id for hit in hits])]

    seen = Counter(word for ranking in first for text in texts(ranking) for word in set(split_words(text)))
    ranked = sum(map(len, first))
    for count in (5, 10, 20):
        for weight in (0.25, 0.5):
            for name, chosen in (("rocchio", rocchio), ("rm3", rm3)):
                asked = [
                    replace(question, text=expanded(question.text, chosen(ranking, texts, seen, ranked), count, weight))
                    for question, ranking in zip(given, first, strict=True)
                ]
                yield f"{name} {count} x {weight}", usual.search(asked, DEPTH)
    for weight in (0.1, 0.25, 0.5):
        yield f"pairs {weight}", [with_pairs(*pair, texts, weight) for pair in zip(questions, first, strict=True)]
    for weight in (0.1, 0.25, 0.5):
        yield f"neighbours {weight}", [with_neighbours(ranking, weight) for ranking in first]


def rocchio(ranking: Sequence[Hit], texts: Texts, seen: Counter[str], ranked: int) -> dict[str, float]:
    """Word -> its mean tf x idf in the first passages."""
    found: dict[str, float] = defaultdict(float)
    for text in texts(ranking[:FEEDBACK]):
        for word, count in Counter(split_words(text)).items():
            found[word] += math.log(1 + count) * math.log(ranked / seen[word])
    return found


def rm3(ranking: Sequence[Hit], texts: Texts, seen: Counter[str], ranked: int) -> dict[str, float]:
    """Word -> its probability in the first passages, each weighted by its share of the scores.

    Words that one in twenty of all ranked passages has are left out, as Anserini leaves out those of a tenth of an index.
    """
    found: dict[str, float] = defaultdict(float)
    for hit, text in zip(ranking[:FEEDBACK], texts(ranking[:FEEDBACK]), strict=True):
        own = split_words(text)
        for word, count in Counter(own).items():
            if seen[word] < ranked / 20:
                found[word] += hit.score * count / len(own)
    return found


def expanded(text: str, weights: dict[str, float], count: int, weight: float) -> str:
    """A question, `REPEATED` times, with the `count` heaviest words that it lacks, in all `weight` as heavy as it is."""
    own = set(split_words(text))
    new = sorted((word for word in weights if word not in own and len(word) > 1), key=lambda one: (-weights[one], one))
    chosen = new[:count]
    room = REPEATED * weight * len(text.split())  # words
    total = sum(weights[word] for word in chosen) or 1.0
    times = {word: round(room * weights[word] / total) for word in chosen}
    return " ".join([text] * REPEATED + [word for word in chosen for _ in range(times[word])])


def with_pairs(question: Question, ranking: Sequence[Hit], texts: Texts, weight: float) -> list[Hit]:
    """A ranking, reordered by its scores and the pairs of words that question and passage share."""
    pairs = set(pairwise(split_words(question.text)))
    shares = [len(pairs.intersection(pairwise(split_words(text)))) / max(1, len(pairs)) for text in texts(ranking)]
    return reordered(ranking, [share * ranking[0].score for share in shares], weight)


def with_neighbours(ranking: Sequence[Hit], weight: float) -> list[Hit]:
    """A ranking, reordered by its scores and the better one of the passages before and after; 0 for those not in it."""
    scores = {hit.passage_id: hit.score for hit in ranking}

    def beside(one: str) -> float:
        page, _, number = one.rpartition("-")
        if not (page and number.isdecimal()):
            return 0.0  # an annotated passage, which belongs to no article
        return max(scores.get(f"{page}-{int(number) + step}", 0.0) for step in (-1, 1))

    return reordered(ranking, [beside(hit.passage_id) for hit in ranking], weight)


def reordered(ranking: Sequence[Hit], added: Sequence[float], weight: float) -> list[Hit]:
    """A ranking by its scores and `weight` times what is added to each."""
    hits = [Hit(hit.passage_id, hit.score + weight * more) for hit, more in zip(ranking, added, strict=True)]
    return sorted(hits, key=lambda hit: -hit.score)


if __name__ == "__main__":
    main()
