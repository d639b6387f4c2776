"""Measures encoding speed against sentence-transformers' `encode`, and gold recall in each
precision.

    python bench/encoding.py speed CORPUS [--model NAME] [--passages 1000] [--rounds 3] \
        [--peak TFLOPS]
    python bench/encoding.py sparse CORPUS --model splade-tiny [--passages 1000] [--rounds 3]
    python bench/encoding.py recall CORPUS [--split full-dev] [--precisions float32 bfloat16]

`speed` times `SentenceTransformer(model).encode(texts)` with its defaults (float32, batches of 32)
and ours in each precision, in turns, on the same passages of a built corpus. The best round of each
counts. FLOPs are 2 x parameters x tokens (without the embeddings) + attention's 4 x layers x tokens
x length x width; `--peak` gives the share of a chip's peak. `recall` encodes the whole corpus in
each precision and prints gold recall of exact search, with p against float32. `sparse` times a
learned sparse encoder against `SparseEncoder(model).encode_document(texts)`, with equal batches.
"""

import argparse
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ifqa.corpus.passage_store import PassageStore
from ifqa.errors import IfqaError
from ifqa.models.places import MINILM, model_folder
from ifqa.plugins import open_benchmark
from ifqa.records import Passage
from ifqa.retrieval.vectors.encoders import EncoderSettings, open_encoder
from ifqa.retrieval.vectors.sparse_encoder import open_sparse_encoder, passage_weights
from ifqa.scoring.per_question import score_ranking
from ifqa.scoring.statistics import paired_randomization

CUTOFFS = (1, 5, 20)
SPARSE_BATCH = 16  # ifqa's on a processor


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["speed", "sparse", "recall"])
    parser.add_argument("corpus")
    parser.add_argument("--model", default=MINILM)
    parser.add_argument("--precisions", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--passages", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peak", type=float, help="the chip's peak in TFLOP/s")
    parser.add_argument("--split", default="full-dev")
    arguments = parser.parse_args()
    passages = list(PassageStore(Path("indexes") / arguments.corpus / "passages"))
    {"speed": speed, "sparse": sparse, "recall": recall}[arguments.what](passages, arguments)


def speed(passages: list[Passage], arguments: argparse.Namespace) -> None:
    """Print a line for each encoder, with its ratio to sentence-transformers."""
    from sentence_transformers import SentenceTransformer

    chosen = spread(passages, arguments.passages)
    texts = [passage.text for passage in chosen]
    encoders = _encoders(arguments)
    device = next(iter(encoders.values())).device
    plain = SentenceTransformer(str(model_folder(arguments.model)), device=device)
    ways: dict[str, Callable[[], Any]] = {
        "sentence-transformers": lambda: plain.encode(texts, show_progress_bar=False)
    }
    ways |= {name: partial(encoder.encode_passages, chosen) for name, encoder in encoders.items()}
    for encoder in (
        plain.encode(texts[:64]),
        *(encoder.encode_passages(chosen[:64]) for encoder in encoders.values()),
    ):
        assert len(encoder) == min(64, len(texts))
    best = best_seconds(ways, arguments.rounds)
    tokens = plain.tokenizer(texts, truncation=True, max_length=plain.max_seq_length)
    lengths = list(map(len, tokens["input_ids"]))
    flops = _flops(plain, lengths)
    print(
        f"{len(texts):,} passages, {sum(lengths):,} tokens, {device}, best of "
        f"{arguments.rounds} rounds"
    )
    for name, seconds in best.items():
        line = (
            f"{name:22} {len(texts) / seconds:10.1f} passages/s "
            f"{sum(lengths) / seconds:12,.0f} tokens/s "
        )
        line += (
            f"{best['sentence-transformers'] / seconds:6.2f} x "
            f"{flops / seconds / 1e12:8.3f} TFLOP/s"
        )
        print(
            line
            + (
                f" {flops / seconds / 1e10 / arguments.peak:6.1f} % of peak"
                if arguments.peak
                else ""
            )
        )


def sparse(passages: list[Passage], arguments: argparse.Namespace) -> None:
    from sentence_transformers import SparseEncoder

    chosen = spread(passages, arguments.passages)
    texts = [passage.text for passage in chosen]
    plain = SparseEncoder(str(model_folder(arguments.model)), device="cpu")
    ways: dict[str, Callable[[], Any]] = {
        "sentence-transformers": lambda: plain.encode_document(texts, batch_size=SPARSE_BATCH)
    }
    for precision in arguments.precisions:
        ours = open_sparse_encoder(arguments.model, precision, "cpu")
        ways[precision] = partial(passage_weights, ours, False, chosen)
    best = best_seconds(ways, arguments.rounds)
    for name, seconds in best.items():
        ratio = best["sentence-transformers"] / seconds
        print(f"{name:22} {len(texts) / seconds:8.1f} passages/s {ratio:6.2f} x")


def spread(passages: list[Passage], count: int) -> list[Passage]:
    """Passages from the whole corpus: lengths differ."""
    step = max(1, len(passages) // count)
    return passages[::step][:count]


def best_seconds(ways: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """The seconds of each way's best round; they run in turns."""
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for name, run in ways.items():
            started = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - started)
    return best


def recall(passages: list[Passage], arguments: argparse.Namespace) -> None:
    import numpy as np

    questions = open_benchmark("ifqa").questions(arguments.split)
    first: dict[int, list[float]] = {}
    for name, encoder in _encoders(arguments).items():
        vectors = encoder.encode_passages(passages).astype(np.float16).astype(np.float32)
        scores = encoder.encode_queries([question.text for question in questions]) @ vectors.T
        rankings = np.argsort(-scores, axis=1, kind="stable")[:, : max(CUTOFFS)]
        values: dict[int, list[float]] = {k: [] for k in CUTOFFS}
        for question, rows in zip(questions, rankings.tolist(), strict=True):
            measures = score_ranking(question, [passages[row].text for row in rows], CUTOFFS)
            for k in CUTOFFS:
                values[k].append(measures[f"gold_any@{k}"])
        first = first or values
        means = {k: 100 * sum(values[k]) / len(questions) for k in CUTOFFS}
        cells = [
            f"@{k} {means[k]:.2f} (p {paired_randomization(values[k], first[k]):.2f})"
            for k in CUTOFFS
        ]
        print(f"{name:10} {'  '.join(cells)}", flush=True)


def _encoders(arguments: argparse.Namespace) -> dict[str, Any]:
    encoders = {}
    for precision in arguments.precisions:
        settings = EncoderSettings(arguments.model, precision=precision, device=arguments.device)
        try:
            encoders[precision] = open_encoder(settings)
        except IfqaError as error:
            print(f"{precision}: {error}")
    return encoders


def _flops(model: Any, lengths: list[int]) -> float:
    config = model[0].config
    parameters = model[0].model.named_parameters()
    weights = sum(parameter.numel() for name, parameter in parameters if "embedding" not in name)
    attention = 4 * config.num_hidden_layers * config.hidden_size
    return float(sum(2 * weights * length + attention * length * length for length in lengths))


if __name__ == "__main__":
    main()
