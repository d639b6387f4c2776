"""Whether bm25s, which needs no Java, could stand in for Lucene's BM25.

    pip install bm25s PyStemmer
    python bench/bm25s_parity.py ifqa-pool-50k

CORPUS has an index "bm25". Both search the questions of IfQA's full-dev with k1 = 0.9 and b = 0.4.
For bm25s, texts are analysed as Lucene's English analyzer does: words in lower case, without a
possessive "'s" and without its stop words, stemmed by Porter.

It prints for how many questions both have the same first passage, first five and first twenty, and
the gold recall of each. Lucene keeps the length of a passage in one byte, so scores that are close
come in another order.
"""

import argparse
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import bm25s
import Stemmer

from ifqa.benchmarks.ifqa import IfQA
from ifqa.corpus.passage_store import PassageStore
from ifqa.plugins import Plugins
from ifqa.records import Question
from ifqa.scoring.gold_overlap import covers

CUTOFFS = (1, 5, 20)
DEPTH = 100
WORD = re.compile(r"[^\W_]+(?:['’.][^\W_]+)*")
POSSESSIVE = re.compile(r"['’]s?$")
# org.apache.lucene.analysis.en.EnglishAnalyzer.ENGLISH_STOP_WORDS_SET
STOP_WORDS = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then "
    "there these they this to was will with".split()
)


def analyzer() -> Callable[[str], list[str]]:
    stemmer = Stemmer.Stemmer("porter")

    def analyze(text: str) -> list[str]:
        words = (POSSESSIVE.sub("", word) for word in WORD.findall(text.lower()))
        return list(stemmer.stemWords([word for word in words if word and word not in STOP_WORDS]))

    return analyze


def search_lucene(folder: Path, questions: Sequence[Question]) -> list[list[str]]:
    bm25 = Plugins().retriever("bm25")
    retriever = bm25(bm25.Settings(), index=folder)
    rankings = retriever.search(questions, DEPTH)
    return [[hit.passage_id for hit in ranking] for ranking in rankings]


def search_bm25s(
    ids: Sequence[str], texts: Sequence[str], questions: Sequence[Question]
) -> list[list[str]]:
    analyze = analyzer()
    index = bm25s.BM25(method="lucene", k1=0.9, b=0.4)
    index.index([analyze(text) for text in texts], show_progress=False)
    queries = [analyze(question.text) for question in questions]
    rows, _ = index.retrieve(queries, k=DEPTH, show_progress=False)
    return [[ids[row] for row in ranking] for ranking in rows]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus")
    corpus = Path("indexes") / parser.parse_args().corpus
    questions = list(IfQA(Path()).questions("full-dev"))
    passages = list(PassageStore(corpus / "passages"))
    texts = {passage.id: f"{passage.title} {passage.text}".strip() for passage in passages}
    rankings = {
        "Lucene": search_lucene(corpus / "bm25", questions),
        "bm25s": search_bm25s(list(texts), list(texts.values()), questions),
    }
    for cutoff in CUTOFFS:
        pairs = zip(*rankings.values(), strict=True)
        same = sum(one[:cutoff] == other[:cutoff] for one, other in pairs)
        print(f"same first {cutoff}: {same} of {len(questions)} questions")
    for name, ranked in rankings.items():
        for cutoff in CUTOFFS:
            found = sum(
                any(covers(texts[each], gold) for each in ranking[:cutoff] for gold in golds)
                for ranking, golds in zip(
                    ranked, (question.gold_passages for question in questions), strict=True
                )
            )
            print(f"{name} @{cutoff}: {100 * found / len(questions):.1f}")


if __name__ == "__main__":
    main()
