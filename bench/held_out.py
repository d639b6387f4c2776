r"""Holds out 600 questions of IfQA full-train, for choices in a retriever's training.

    python bench/held_out.py
    FROM="--benchmark file --split data/held-out/train.jsonl --corpus held-out-train"
    ifqa train dense $FROM --to models/dense-held-out --set learning_rate=5e-5
    ifqa index held-out-pool
    python bench/retrieval.py held-out-pool --benchmark file --split data/held-out/held.jsonl \
        --control
    ifqa train rerank $FROM --to models/rerank-held-out
    python bench/retrieval.py ifqa-gold-articles --benchmark file \
        --split data/held-out/held.jsonl --control \
        --only bm25 --asked question weighted --ranker --rerank 30 --rerank-asked weighted --model models/rerank-held-out

It writes the questions as two files of the benchmark "file", and two corpora. `held-out-train` has
only the gold passages of the 1,800 training questions, so no gold passage of a held-out question is
a negative in training. `held-out-pool` has the passages of `ifqa-pool-50k`, and a dense index of
`models/dense-held-out`.
"""

import logging
import random
from pathlib import Path

from ifqa.benchmarks.file import write_questions
from ifqa.plugins import open_benchmark

logger = logging.getLogger(__name__)

HELD = 600
TRAIN = """about = "The gold passages of the questions of IfQA full-train that are not held out."

[[passages.sources]]
format = "gold"
benchmark = "file"
splits = ["data/held-out/train.jsonl"]

[index.bm25]
retriever = "bm25"
"""


def main() -> None:
    questions = open_benchmark("ifqa").questions("full-train")
    order = list(range(len(questions)))
    random.Random("fold").shuffle(order)
    held = set(order[:HELD])
    for name, is_held in {"held": True, "train": False}.items():
        path = Path(f"data/held-out/{name}.jsonl")
        count = write_questions(
            path, [question for n, question in enumerate(questions) if (n in held) == is_held]
        )
        logger.info(f"{path}: {count:,} questions")
    pool = Path("indexes/ifqa-pool-50k.toml").read_text(encoding="utf-8")
    corpora = {
        "held-out-train": TRAIN,
        "held-out-pool": f'{pool.rstrip()}\nmodel = "models/dense-held-out"\n',
    }
    for name, text in corpora.items():
        Path(f"indexes/{name}.toml").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
