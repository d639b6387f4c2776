"""Measures the speed of reading and training with Fusion-in-Decoder, for the original method and
each optimisation.

    python bench/fid.py all --json fid.json        all tables, on an H200 or similar
    python bench/fid.py read [--shape base large] [--passages 5 20 100] [--questions N]
    python bench/fid.py train [--shape large] [--passages 100]
    python bench/fid.py read --device cpu --shape small --passages 5 --questions 4
    python bench/fid.py check                      all ways of reading give the same answers (tiny, float32)

It needs torch, transformers 5 (its T5 has SDPA), numpy and this repository. Weights and token ids
are random, in T5's shapes; speed does not depend on their values. Inputs have 130 to 220 tokens,
165 on average, like a question with a title and 100 words. Every way generates `--answer` tokens
per question, because no token ends an answer. Tokenising is not timed. A table takes more than a
minute on an H200, and there are seven; each row is printed and stored when it is measured. The two
rows before the bfloat16 baseline are not compared with it. The first line names the device; figures
of a CPU say nothing about a GPU. On a busy CPU set OMP_NUM_THREADS=1: threads that wait for each
other made some figures ten times worse.

`read`: a row for each way; each optimisation is added to those above it. The baselines work as
FiD's test_reader.py does: passages padded to 250, eager attention, one question at a time (its
per_gpu_batch_size), and a decoder that attends to the padding. They run in float32 (TF32 off) and
in bfloat16, and each again with the best of 4, 16 and 64 questions together. Ways that read few
questions at a time are timed on the first few questions. A row is the median of its rounds. Tokens
are those of the passages without padding. Peak memory is torch's, weights included, and empty on a
CPU.

FLOPs are those the task needs, the same for every way: padding and recomputation are not counted.
With d for d_model, i for heads x d_kv, L for a passage's tokens, S for those of all of a question's
passages, T for the answer's:

    encoder            2 x its weights (without embeddings) a token; 4 L i a token and layer for attention
    cross-attention    4 d i a token of S and layer for keys and values, once; 4 S i a token of T and layer
    rest of the decoder    2 x its other weights a token of T; 2 i T (T + 1) a layer for attention; 2 d vocabulary a token of T

A training step takes three times that, plus the encoder once more with `recompute`. "of peak" is
the share of the speed of a large matrix product on the device, in float32 or bfloat16, whichever is
faster.

`train`: a step of one question with passages of 250 tokens: forward, backward and AdamW; weights
float32, autocast bfloat16.
"""

import argparse
import gc
import json
import platform
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import fid_ways as ways
import torch
import transformers

from ifqa.reading.t5.fusion_in_decoder import batch_limits


def main(flags: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["read", "train", "all", "check"])
    parser.add_argument(
        "--shape",
        nargs="+",
        choices=list(ways.SHAPES),
        help="base and large to read, large to train",
    )
    parser.add_argument(
        "--passages", nargs="+", type=int, help="per question; 5, 20 and 100 to read, 100 to train"
    )
    parser.add_argument(
        "--questions", type=int, default=0, help="to read; 0 for 2,400 passages in all, 24 to 256"
    )
    parser.add_argument(
        "--answer", type=int, default=6, help="tokens generated or trained on per question"
    )
    parser.add_argument("--rounds", type=int, default=3, help="rounds per way; the median counts")
    parser.add_argument(
        "--seconds",
        type=float,
        default=3.0,
        help="no round of a way starts after this many seconds",
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="a file for the numbers")
    arguments = parser.parse_args(flags)
    torch.set_float32_matmul_precision("highest")  # no TF32
    if arguments.what == "check":
        ways.check()
        return
    device = torch.device(arguments.device)
    peaks = {kind: peak(device, getattr(torch, kind)) for kind in ("float32", "bfloat16")}
    name = (
        torch.cuda.get_device_name(device)
        if device.type == "cuda"
        else f"CPU, {torch.get_num_threads()} threads"
    )
    header = {
        "device": name, "torch": torch.__version__, "transformers": transformers.__version__,
        "python": platform.python_version(), "peak": peaks,
        "command": " ".join(["python bench/fid.py", *(flags or sys.argv[1:])]),
    }  # fmt: skip
    rates = ", ".join(f"{kind} {rate / 1e12:,.2f} TFLOP/s" for kind, rate in peaks.items())
    versions = (
        f"torch {header['torch']}, transformers {header['transformers']}, Python {header['python']}"
    )
    print(f"{name}: {rates}; {versions}\n`{header['command']}`", flush=True)
    tables: dict[str, Any] = {**header, "read": [], "train": []}
    for part, shapes, passages in (
        ("read", ["base", "large"], [5, 20, 100]),
        ("train", ["large"], [100]),
    ):
        for shape in (arguments.shape or shapes) if arguments.what in (part, "all") else []:
            model = ways.network(shape, device, arguments.seed)
            for count in arguments.passages or passages:
                measure = measure_reading if part == "read" else measure_training
                for row in measure(model, shape, count, max(peaks.values()), arguments):
                    tables[part].append(row)
                    if arguments.json:
                        arguments.json.write_text(json.dumps(tables, indent=1) + "\n")
            del model


def measure_reading(
    model: Any, shape: str, passages: int, top: float, arguments: Any
) -> Iterator[dict[str, Any]]:
    """Print the table of all ways, row by row; `top` is the device's peak in FLOP/s."""
    questions = arguments.questions or max(24, min(256, 2400 // passages))
    inputs = ways.draw(questions, passages, arguments.seed)
    sizes = f"{passages} passages, {arguments.answer} tokens an answer, up to {questions} questions"
    print(f"\n### Reading: {shape}, {sizes}\n")
    print(
        "| way | questions together | questions/s | passages/s | tokens/s | peak GB | of "
        "peak | x float32 | x bfloat16 |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|", flush=True)
    rates: dict[str, float] = {}
    model.eval()
    for way in ways.WAYS:
        model.to(getattr(torch, way.precision)).set_attn_implementation(way.attention)
        best = _best(way, model, inputs, arguments)
        row = {
            "shape": shape,
            "passages": passages,
            "way": way.name,
            "precision": way.precision,
        } | best
        if not best:
            print(f"| {way.name} | out of memory | | | | | | | |", flush=True)
            yield row
            continue
        rate = rates[way.name] = best["rate"]
        work = ways.flops(model, inputs, arguments.answer if way.answers else 0) / questions
        share = work * rate / top
        tokens_rate = int(inputs.mask.sum()) / questions * rate
        ratios = [
            f"{rate / rates[name]:.2f}" if name in rates else "" for name in (ways.FP32, ways.BF16)
        ]
        cells = [f"{each:,.{2 if each < 100 else 0}f}" for each in (rate, rate * passages)]
        cells += [
            f"{tokens_rate:,.0f}",
            _gigabytes(best["memory"]),
            f"{100 * share:.1f} %",
            *ratios,
        ]
        print(f"| {way.name} | {best['at_a_time'] or 'all'} | {' | '.join(cells)} |", flush=True)
        yield row | {"share": share, "tokens_rate": tokens_rate}
    print("\nOurs against")
    for name in (ways.FP32, ways.FP32_BEST, ways.BF16, ways.BF16_BEST):
        if name in rates and ways.OURS in rates:
            print(f"- {rates[ways.OURS] / rates[name]:.2f} x {name}", flush=True)


def _best(way: ways.Way, model: Any, inputs: ways.Inputs, arguments: Any) -> dict[str, Any]:
    """The row of a way with its best number of questions at a time.

    Empty if memory is too small.
    """
    sizes = [size for size in way.at_a_time if size <= inputs.questions] or [inputs.questions]
    if len(sizes) > 1:
        rates = {
            size: _timed(way, model, inputs, size, arguments, 1).get("rate", 0.0) for size in sizes
        }
        sizes = [max(rates, key=lambda size: rates[size])]
    return _timed(way, model, inputs, sizes[0], arguments, arguments.rounds)


def _timed(
    way: ways.Way, model: Any, inputs: ways.Inputs, at_a_time: int, arguments: Any, rounds: int
) -> dict[str, Any]:
    """Questions per second and peak memory, after a warm-up; empty if memory is too small."""
    size = at_a_time or inputs.questions
    part = inputs.part(0, max(size, min(inputs.questions, 8) // size * size))
    times: list[float] = []
    with _memory(model.device) as memory, torch.inference_mode():
        room = batch_limits(model, 1)  # once, as the reader does
        run = partial(way.run, model, part, at_a_time, arguments.answer, room)
        try:
            way.run(model, part.part(0, max(2, size)), at_a_time, arguments.answer, room)
            while len(times) < rounds and sum(times) < arguments.seconds:
                times.append(_seconds(model.device, run))
        except torch.OutOfMemoryError:
            return {}
    rate = part.questions / statistics.median(times)
    return {
        "at_a_time": at_a_time,
        "questions": part.questions,
        "seconds": times,
        "memory": memory[0],
        "rate": rate,
    }


def measure_training(
    model: Any, shape: str, passages: int, top: float, arguments: Any
) -> Iterator[dict[str, Any]]:
    """Print the table of training, with and without recomputing the encoder's layers."""
    device = model.device
    generator = torch.Generator().manual_seed(arguments.seed)
    ids = torch.randint(3, ways.VOCABULARY, (passages, ways.LENGTH), generator=generator)
    inputs = ways.Inputs(ids, torch.ones_like(ids, dtype=torch.bool), passages)
    # Without padding, attention would skip the mask that real passages need
    inputs.mask[0, -1] = False
    batch = {"passage_ids": ids.to(device), "passage_mask": inputs.mask.to(device)}
    batch |= {"counts": torch.tensor([passages]), "labels": ids[:1, : arguments.answer].to(device)}
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=device.type == "cuda")
    work = ways.flops(model, inputs, arguments.answer)
    encoder = ways.flops(model, inputs, 0)

    def step() -> None:
        with torch.autocast(device.type, torch.bfloat16):
            loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    print(
        f"\n### Training: {shape}, one question of {passages} passages of {ways.LENGTH} "
        "tokens a step\n"
    )
    print("| recompute | s/step | tokens/s | peak GB | of peak |\n|---|--:|--:|--:|--:|")
    for recompute in (False, True):
        warnings.filterwarnings("ignore", ".gradient_checkpointing", FutureWarning)  # its old name
        model.encoder.gradient_checkpointing_disable()
        if recompute:
            model.encoder.gradient_checkpointing_enable({"use_reentrant": False})
        times: list[float] = []
        with _memory(device) as memory:
            try:
                step()
                while len(times) < arguments.rounds and sum(times) < arguments.seconds:
                    times.append(_seconds(device, step))
            except torch.OutOfMemoryError:
                times = []
        optimizer.zero_grad(set_to_none=True)
        row = {"shape": shape, "passages": passages, "recompute": recompute}
        line = f"| {'yes' if recompute else 'no'} |"
        if not times:
            print(f"{line} out of memory | | | |", flush=True)
            yield row
            continue
        seconds = statistics.median(times)
        share = (3 * work + recompute * encoder) / seconds / top
        rate = f"{ids.numel() / seconds:,.0f}"
        gigabytes = _gigabytes(memory[0])
        print(f"{line} {seconds:.3f} | {rate} | {gigabytes} | {100 * share:.1f} % |", flush=True)
        yield row | {"seconds": times, "memory": memory[0], "share": share}


def peak(device: torch.device, kind: torch.dtype) -> float:
    """FLOP/s of a large matrix product, the best of a few."""
    size, times = (8192, 10) if device.type == "cuda" else (1024, 3)
    left = torch.randn(size, size, device=device, dtype=kind)
    return 2 * size**3 / min(_seconds(device, lambda: left @ left) for _ in range(times))


def _seconds(device: torch.device, run: Callable[[], Any]) -> float:
    wait = partial(torch.cuda.synchronize, device) if device.type == "cuda" else lambda: None
    wait()
    started = time.perf_counter()
    run()
    wait()
    return time.perf_counter() - started


@contextmanager
def _memory(device: torch.device) -> Iterator[list[int]]:
    """Yields a list that holds, at the end, the peak bytes torch allocated inside; 0 on a CPU."""
    gc.collect()
    peak = [0]
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    yield peak
    if device.type == "cuda":
        peak[0] = torch.cuda.max_memory_allocated(device)


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f}" if size else ""


if __name__ == "__main__":
    main()
