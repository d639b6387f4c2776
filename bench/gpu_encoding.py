"""Measures encoding and exact search on a device, with random weights in three encoders' shapes.

    python bench/gpu_encoding.py [--passages 20000] [--vectors 2000000] [--device cuda]

A row for each shape: passages a second in bfloat16, of 165 tokens in the mean (130 to 200), sorted
by length, in batches of 256; the median of three rounds after one that warms up. Then exact search:
milliseconds a question for 100 questions over `--vectors` random vectors of 384 and 768 numbers in
float16, and the memory that they take. Speed does not depend on the weights' values. The first line
names the device. It needs torch, transformers and numpy.
"""

import argparse
import platform
import time
from collections.abc import Callable

import numpy as np
import torch
from transformers import BertConfig, BertModel

SHAPES = {
    "all-MiniLM-L6-v2": {"hidden_size": 384, "num_hidden_layers": 6, "intermediate_size": 1536},
    "all-mpnet-base-v2": {"hidden_size": 768, "num_hidden_layers": 12, "intermediate_size": 3072},
    "DPR, both encoders alike": {},  # BERT-base
}
BATCH = 256
ROUNDS = 3
QUESTIONS = 100
DEPTH = 100


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--passages", type=int, default=20_000)
    parser.add_argument("--vectors", type=int, default=2_000_000)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()
    device = arguments.device
    name = torch.cuda.get_device_name() if device == "cuda" else platform.processor() or "CPU"
    print(f"{name}, torch {torch.__version__}", flush=True)
    print("| shape | passages a second | tokens a second |\n|---|---|---|", flush=True)
    lengths = np.sort(np.random.default_rng(0).integers(130, 201, arguments.passages))
    for shape, sizes in SHAPES.items():
        seconds = median_seconds(encoder(sizes, lengths, device), device)
        rate = len(lengths) / seconds
        print(f"| {shape} | {rate:,.0f} | {int(lengths.sum()) / seconds:,.0f} |", flush=True)
    print("| exact search | ms a question | GB |\n|---|---|---|", flush=True)
    for dimension in (384, 768):
        vectors = torch.randn(arguments.vectors, dimension, device=device).half()
        queries = torch.randn(QUESTIONS, dimension, device=device).half()

        def search(vectors: torch.Tensor = vectors, queries: torch.Tensor = queries) -> None:
            (queries @ vectors.T).topk(min(DEPTH, len(vectors)), 1)

        milliseconds = 1000 * median_seconds(search, device) / QUESTIONS
        size = vectors.numel() * vectors.element_size() / 1e9
        print(
            f"| {arguments.vectors:,} x {dimension} | {milliseconds:.3f} | {size:.1f} |", flush=True
        )


def encoder(sizes: dict[str, int], lengths: np.ndarray, device: str) -> Callable[[], None]:
    torch.manual_seed(0)
    network = BertModel(BertConfig(**sizes)).to(device, torch.bfloat16).eval()

    @torch.inference_mode()
    def encode() -> None:
        for start in range(0, len(lengths), BATCH):
            batch = torch.as_tensor(lengths[start : start + BATCH], device=device)
            longest = int(batch.max())
            tokens = torch.randint(1000, 20_000, (len(batch), longest), device=device)
            mask = torch.arange(longest, device=device) < batch.unsqueeze(1)
            network(input_ids=tokens, attention_mask=mask).last_hidden_state.mean(1)

    return encode


def median_seconds(work: Callable[[], None], device: str) -> float:
    times = []
    for _ in range(ROUNDS + 1):
        started = time.perf_counter()
        work()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - started)
    return float(np.median(times[1:]))


if __name__ == "__main__":
    main()
