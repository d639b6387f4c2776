"""Compares ifqa with other programs that do the same work: seconds of both, and what differs in
their outputs.

    pip install -c constraints.txt bm25s PyStemmer
    python -m venv /tmp/we && /tmp/we/bin/pip install wikiextractor==3.1.0
    ifqa data flan-t5-small
    python bench/peers.py --dump DUMP [MORE.xml ...] --wikiextractor /tmp/we/bin/python \
        --corpus CORPUS --benchmark ifqa --split full-dev

    python bench/peers.py --size rehearsal ...          a minute, which says nothing about speed
    python bench/peers.py --only bm25 encoding ...      some of the comparisons

CORPUS has an index "bm25"; by default it is the sample. A peer that is not installed is left out,
with a line that says how to install it.

    wikitext    `ifqa passages` of a dump; WikiExtractor, as a program, which makes no passages
    bm25        `ifqa index` and `ifqa retrieve`; Pyserini's own commands; bm25s as commands
                (`bm25s_commands.py`), with its own analysis of texts and with Lucene's
    encoding    ifqa's dense encoder; `SentenceTransformer.encode`: all-MiniLM-L6-v2 in float32
    fid         the reader `fid` in float32; FiD's method with the same weights: a question at a
                time, its passages padded to 250 tokens, eager attention, and a decoder that attends
                to the padding; and the same padded to the longest passage, with SDPA
    server      `ifqa serve` with 8 clients; the same questions answered together in this process

All run on one core with one thread, in turns; every other round the order is reversed. Of wikitext
and bm25 each round is a process of its own, so its start counts; of the others, models are opened
before. Seconds are CPU seconds of all processes, the median of the rounds: on one core, other work
changes them less than the seconds on the clock. "times as fast" is the median of the rounds' ratios,
with the lowest and the highest; "on the clock" is the same of the seconds on the clock.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Any

from encoding import spread
from serve import content, in_process, load, process_of, sample_questions, server
from wikipedia import PROFILES, copies_of, ifqa_command, pages_of, tokens

import ifqa
from ifqa.corpus.passage_store import PassageStore
from ifqa.corpus.wikipedia.wikitext import to_text
from ifqa.errors import IfqaError, MissingInput
from ifqa.formats.runs import read_run
from ifqa.models.places import MINILM, model_folder
from ifqa.plugins import open_benchmark
from ifqa.records import Hit, Passage, Question
from ifqa.retrieval.vectors.encoders import EncoderSettings, open_encoder
from ifqa.scoring.gold_overlap import covers

REPOSITORY = Path(__file__).resolve().parents[1]
COMMANDS = Path(__file__).with_name("bm25s_commands.py")
CLIENTS = 8
READ = 5  # passages that FiD reads for a question
ANSWER_TOKENS = 50
HITS = 100  # for a question
CUTOFFS = (1, 5, 20)
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")

# Pyserini's modules run unchanged; the JVM is started before them because Pyserini itself needs a
# full JDK 21
PYSERINI = """
import runpy, sys
from ifqa.retrieval.jvm import start_jvm
start_jvm()
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""


@dataclass(frozen=True)
class Size:
    """How much each comparison does in a round."""

    copies: int  # of the dump's pages
    passages: int  # indexed
    questions: int  # searched for
    encoded: int  # passages
    read: int  # questions
    served: int  # questions


SIZES = {
    "rehearsal": Size(copies=1, passages=1_000, questions=20, encoded=16, read=1, served=8),
    "small": Size(copies=4, passages=10_000, questions=700, encoded=64, read=3, served=32),
    "full": Size(copies=10, passages=50_000, questions=700, encoded=512, read=24, served=400),
}


@dataclass(frozen=True)
class Cost:
    """Seconds of a round: on the clock, and of all its processes on a processor."""

    wall: float
    cpu: float


@dataclass(frozen=True)
class Way:
    """A program that does the work. `prepare` runs before each round and is not timed."""

    run: Callable[[], object]
    prepare: Callable[[], object] = lambda: None


@dataclass(frozen=True)
class Peer(Way):
    """Another program; `differs` says, after the rounds, what differs in the outputs."""

    name: str = ""
    differs: Callable[[], str] = lambda: ""


@dataclass(frozen=True)
class Comparison:
    """Work that several programs do. `cpu` gives the CPU seconds that they have taken so far."""

    what: str
    ours: Way
    peers: Sequence[Peer]
    cpu: Callable[[], float] = lambda: sum(os.times()[:4])


@dataclass(frozen=True)
class Task:
    """What all comparisons need: the user's choices, and a folder for files."""

    arguments: argparse.Namespace
    size: Size
    folder: Path


def take_turns(
    ways: Mapping[str, Way], rounds: int, cpu: Callable[[], float]
) -> dict[str, list[Cost]]:
    """The costs of each way's rounds; every other round the order is reversed."""
    costs: dict[str, list[Cost]] = {name: [] for name in ways}
    for number in range(rounds):
        order = list(ways)
        if number % 2:
            order.reverse()
        for name in order:
            ways[name].prepare()
            cpu_before = cpu()
            began = time.perf_counter()
            ways[name].run()
            wall = time.perf_counter() - began
            costs[name].append(Cost(wall, cpu() - cpu_before))
    return costs


def table_row(what: str, peer: str, ours: list[Cost], theirs: list[Cost], differs: str) -> str:
    pairs = list(zip(ours, theirs, strict=True))
    cells = [
        what,
        peer,
        f"{median(cost.cpu for cost in ours):.1f}",
        f"{median(cost.cpu for cost in theirs):.1f}",
        span([their.cpu / our.cpu for our, their in pairs]),
        span([their.wall / our.wall for our, their in pairs]),
        differs,
    ]
    return f"| {' | '.join(cells)} |"


def span(ratios: Sequence[float]) -> str:
    """The median with the lowest and the highest."""
    return f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def run_command(command: Sequence[object], folder: Path) -> None:
    """Run a command in a folder; its output is printed only if it fails.

    Importing Pyserini's search builds an OpenAI client, which requires a key but never uses it.
    """
    environment = os.environ | dict.fromkeys(THREADS, "1")
    environment |= {
        "PYTHONPATH": str(REPOSITORY),
        "PYTHONUTF8": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "OPENAI_API_KEY": "unused",
    }
    process = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=environment,
        text=True,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if process.returncode:
        raise SystemExit(
            f"{' '.join(process.args[:4])} ended with {process.returncode}:\n"
            f"{process.stdout[-4000:]}"
        )


def run_ifqa(folder: Path, *words: object) -> None:
    run_command([sys.executable, "-m", "ifqa", *words, "--quiet"], folder)


def remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)


def tell(line: str) -> None:
    """Print a line beside the table."""
    print(line, file=sys.stderr, flush=True)


def installed(package: str, install: str) -> str:
    """Name and version of a package; empty, with a line that says how to install it, if missing."""
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        tell(f"{package} is not installed and is left out; {install}")
        return ""


# Wikitext


def wikitext(task: Task) -> Iterator[Comparison]:
    if not task.arguments.dump:
        tell("wikitext is left out; name a dump: --dump FILE")
        return
    name = wikiextractor_version(task.arguments.wikiextractor)
    if not name:
        return
    dump = task.folder / "dump.xml.bz2"
    _, megabytes = copies_of(task.arguments.dump, task.size.copies, dump)
    passages = ifqa_command(task.folder, dump, "ifqa", 1)
    ours = Way(
        partial(run_command, passages, task.folder),
        partial(ifqa_command, task.folder, dump, "ifqa", 1),  # removes the passages
    )
    peers = []
    for flags in ([], ["--no-templates"]):
        extracted = task.folder / "-".join(["extracted", *flags])
        command = [task.arguments.wikiextractor, "-m", "wikiextractor.WikiExtractor"]
        command += ["--json", "--quiet", "--processes", "1", *flags]
        command += ["--output", str(extracted), str(dump)]
        peers.append(
            Peer(
                partial(run_command, command, task.folder),
                partial(remove, extracted),
                " ".join([name, *flags]),
                partial(shared_tokens, extracted, dump),
            )
        )
    yield Comparison(f"wikitext to text, {megabytes:.0f} MB of XML", ours, peers)


def wikiextractor_version(python: str) -> str:
    """Name and version of WikiExtractor; empty, with a line about it, if it is missing."""
    script = "from importlib.metadata import version; print(version('wikiextractor'))"
    try:
        process = subprocess.run(
            [python, "-c", script], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise SystemExit(f"--wikiextractor: wanted a Python, found no program {python}") from None
    if process.returncode == 0:
        return f"WikiExtractor {process.stdout.strip()}"
    tell(
        "WikiExtractor is not installed and is left out; install it in an environment of its own "
        "(python -m venv /tmp/we && /tmp/we/bin/pip install wikiextractor==3.1.0) and name its "
        "Python: --wikiextractor /tmp/we/bin/python"
    )
    return ""


def shared_tokens(extracted: Path, dump: Path) -> str:
    """The shares of our tokens and of theirs that the other has, in each profile, over the pages of
    both.
    """
    records = (
        json.loads(line)
        for path in extracted.rglob("wiki_*")
        for line in path.read_text(encoding="utf-8").splitlines()
    )
    texts = {record["id"]: record["text"] for record in records}
    # One copy of each page
    pages = {page.title: page for page in pages_of(dump) if page.id in texts}.values()
    shares = []
    for profile in PROFILES:
        ours = theirs = common = 0
        for page in pages:
            our_tokens = Counter(tokens(to_text(page.text, profile)))
            their_tokens = Counter(tokens(texts[page.id]))
            ours += our_tokens.total()
            theirs += their_tokens.total()
            common += (our_tokens & their_tokens).total()
        shares.append(f"{profile} {percent(common, ours)} and {percent(common, theirs)}")
    return f"shared of our words and of theirs: {'; '.join(shares)}"


def percent(part: int, whole: int) -> str:
    return f"{100 * part / max(1, whole):.2f}%"


# BM25


def bm25(task: Task) -> Iterator[Comparison]:
    folder = task.folder
    passages, questions = prepared_corpus(task)
    collection = folder / "collection"
    collection.mkdir()
    for shard in (folder / "indexes/peers/passages").glob("passages-*.jsonl"):
        (collection / shard.name).symlink_to(shard)
    count = f"{len(passages):,} passages"
    yield Comparison(
        f"BM25 index, {count}",
        Way(
            partial(run_ifqa, folder, "index", "peers", "--index", "bm25", "--workers", 1),
            partial(remove, folder / "indexes/peers/bm25"),
        ),
        list(indexing_peers(folder)),
    )
    for asked in (questions[:1], questions):
        topics = {str(number): {"title": each.text} for number, each in enumerate(asked)}
        (folder / "topics.json").write_text(json.dumps(topics), encoding="utf-8")
        (folder / "experiments/peers.toml").write_text(
            f'benchmark = "file"\nsplit = "questions.jsonl"\nlimit = {len(asked)}\n'
            f'corpus = "peers"\n\n[retriever]\nname = "bm25"\nk = {HITS}\n'
        )
        sizes = "1 question" if len(asked) == 1 else f"{len(asked):,} questions"
        yield Comparison(
            f"BM25 search, {sizes}, {HITS} hits each",
            Way(
                partial(run_ifqa, folder, "retrieve", "peers"),
                partial(remove, folder / "experiments/peers"),
            ),
            list(searching_peers(folder, passages, asked)),
        )


def prepared_corpus(task: Task) -> tuple[dict[str, str], list[Question]]:
    """Make a corpus "peers" of the chosen passages in the folder, and a file of the questions.

    Returns the text of each passage by id, and the questions.
    """
    arguments = task.arguments
    chosen = spread(read_passages(arguments.corpus), task.size.passages)
    questions = read_questions(arguments)[: task.size.questions]
    folder = task.folder
    for name in ("indexes", "experiments"):
        (folder / name).mkdir(exist_ok=True)
    write_lines(
        folder / "passages.jsonl",
        [{"id": each.id, "title": each.title, "contents": each.text} for each in chosen],
    )
    write_lines(
        folder / "questions.jsonl",
        [
            {"id": str(number), "question": each.text, "answers": each.answers or ("unknown",)}
            for number, each in enumerate(questions)
        ],
    )
    (folder / "indexes/peers.toml").write_text(
        '[[passages.sources]]\nformat = "passages"\npath = "passages.jsonl"\n\n'
        '[index.bm25]\nretriever = "bm25"\n'
    )
    run_ifqa(folder, "passages", "peers", "--workers", 1)
    return {each.id: each.text for each in chosen}, questions


@cache
def read_passages(corpus: str) -> list[Passage]:
    return list(PassageStore(Path("indexes") / corpus / "passages"))


def read_questions(arguments: argparse.Namespace) -> list[Question]:
    return list(open_benchmark(arguments.benchmark).questions(arguments.split))


def write_lines(path: Path, rows: Sequence[object]) -> None:
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    path.write_text("".join(lines), encoding="utf-8")


def pyserini_command(module: str, options: Mapping[str, object]) -> list[object]:
    command: list[object] = [sys.executable, "-c", PYSERINI, module, "--threads", 1]
    for name, value in options.items():
        command += [f"--{name}", value]
    return command


def bm25s_command(verb: str, analysis: str, *words: object) -> list[object]:
    return [sys.executable, COMMANDS, verb, *words, "--analysis", analysis]


@cache
def bm25s_versions() -> dict[str, str]:
    """Analysis -> the name of bm25s with it; empty if bm25s is not installed."""
    install = "pip install -c constraints.txt bm25s PyStemmer"
    names = [installed(package, install) for package in ("bm25s", "PyStemmer")]
    if not all(names):
        return {}
    return {
        "bm25s": f"{names[0]}, its own analysis",
        "lucene": f"{names[0]}, Lucene's analysis",
    }


def indexing_peers(folder: Path) -> Iterator[Peer]:
    options = {
        "collection": "JsonCollection",
        "generator": "DefaultLuceneDocumentGenerator",
        "input": folder / "collection",
        "index": folder / "pyserini",
    }
    pyserini = pyserini_command("pyserini.index.lucene", options)
    commands = {("pyserini", version_of("pyserini")): pyserini}
    for analysis, name in bm25s_versions().items():
        index = folder / f"bm25s-{analysis}"
        commands[index.name, name] = bm25s_command("index", analysis, folder / "collection", index)
    for (index_name, name), command in commands.items():
        yield Peer(
            partial(run_command, command, folder),
            partial(remove, folder / index_name),
            name,
            partial(compare_sizes, folder / "indexes/peers/bm25", folder / index_name),
        )


def compare_sizes(ours: Path, theirs: Path) -> str:
    return f"{megabytes_of(ours):.1f} and {megabytes_of(theirs):.1f} MB"


def megabytes_of(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def version_of(package: str) -> str:
    return f"{package} {version(package)}"


def searching_peers(
    folder: Path, passages: Mapping[str, str], questions: Sequence[Question]
) -> Iterator[Peer]:
    topics = folder / "topics.json"
    run = folder / "pyserini.trec"
    options = {
        "k1": 0.9,
        "b": 0.4,
        "hits": HITS,
        "index": folder / "pyserini",
        "topics": topics,
        "output": run,
    }
    command = [*pyserini_command("pyserini.search.lucene", options), "--bm25"]
    commands = {(run, version_of("pyserini")): command}
    for analysis, name in bm25s_versions().items():
        run = folder / f"bm25s-{analysis}.trec"
        index = folder / f"bm25s-{analysis}"
        commands[run, name] = bm25s_command("search", analysis, index, topics, run, "--k", HITS)
    for (run, name), command in commands.items():
        yield Peer(
            partial(run_command, command, folder),
            partial(run.unlink, missing_ok=True),
            name,
            partial(compare_runs, folder, run, passages, questions),
        )


def compare_runs(
    folder: Path, run: Path, passages: Mapping[str, str], questions: Sequence[Question]
) -> str:
    """How many rankings have the same first passages, and the gold recall of both."""
    ours = rankings_of(folder / "experiments/peers/retrieve/run.trec", len(questions))
    theirs = rankings_of(run, len(questions))
    pairs = list(zip(ours, theirs, strict=True))
    same = [
        f"first {cutoff} {sum(ids(our, cutoff) == ids(their, cutoff) for our, their in pairs)}"
        for cutoff in (*CUTOFFS, HITS)
    ]
    scores = sum(
        [f"{hit.score:.6f}" for hit in our] == [f"{hit.score:.6f}" for hit in their]
        for our, their in pairs
    )
    text = f"same of {len(questions)}: {', '.join(same)}, scores {scores}"
    if not any(question.gold_passages for question in questions):
        return text
    recalls = [
        " / ".join(f"{recall(side, questions, passages, cutoff):.1f}" for cutoff in CUTOFFS)
        for side in (ours, theirs)
    ]
    return f"{text}; gold recall @1 / @5 / @20 {recalls[0]} and {recalls[1]}"


def ids(ranking: Sequence[Hit], cutoff: int) -> list[str]:
    return [hit.passage_id for hit in ranking[:cutoff]]


def rankings_of(path: Path, count: int) -> list[list[Hit]]:
    """The rankings of a run by the question's number, which our ids follow with a digest."""
    numbered = {
        int(name.rpartition("/")[2].partition("-")[0]): hits
        for name, hits in read_run(path).items()
    }
    return [numbered.get(number, []) for number in range(count)]


def recall(
    rankings: Sequence[Sequence[Hit]],
    questions: Sequence[Question],
    passages: Mapping[str, str],
    cutoff: int,
) -> float:
    """Gold recall in percent."""
    found = 0
    for question, ranking in zip(questions, rankings, strict=True):
        texts = [passages[name] for name in ids(ranking, cutoff)]
        found += any(covers(text, gold) for gold in question.gold_passages for text in texts)
    return 100 * found / len(questions)


# Encoding


def encoding(task: Task) -> Iterator[Comparison]:
    import numpy as np
    from sentence_transformers import SentenceTransformer

    chosen = spread(read_passages(task.arguments.corpus), task.size.encoded)
    texts = [each.text for each in chosen]
    untitled = [Passage(each.id, "", each.text) for each in chosen]
    encoder = open_encoder(EncoderSettings(precision="float32", device="cpu"))
    plain = SentenceTransformer(str(model_folder(MINILM)), device="cpu")
    outputs: dict[str, Any] = {}

    def ours() -> None:
        outputs["ours"] = encoder.encode_passages(untitled)

    def theirs() -> None:
        outputs["theirs"] = plain.encode(texts, show_progress_bar=False)

    def cosines() -> str:
        first, second = (
            vectors / np.linalg.norm(vectors, axis=1, keepdims=True) for vectors in outputs.values()
        )
        return f"lowest cosine {(first * second).sum(1).min():.6f}"

    encoder.encode_passages(untitled[:8])
    plain.encode(texts[:8], show_progress_bar=False)
    peer = Peer(theirs, name=version_of("sentence-transformers"), differs=cosines)
    yield Comparison(f"encoding, {len(texts):,} passages", Way(ours), [peer])


# Fusion-in-Decoder


def fid(task: Task) -> Iterator[Comparison]:
    import fid_ways
    import torch

    from ifqa.reading.t5.checkpoint import encode_texts, open_checkpoint
    from ifqa.reading.t5.fusion_in_decoder import batch_limits
    from ifqa.reading.t5.readers import passage_inputs

    try:
        checkpoint = open_checkpoint("")
    except IfqaError as error:
        tell(f"fid is left out; {error}")
        return
    questions, passages = read_with(task)
    inputs = [
        text
        for question, ranking in zip(questions, passages, strict=True)
        for text in passage_inputs(question.text, ranking, checkpoint.conventions.titles)
    ]
    features = encode_texts(checkpoint.tokenizer, inputs, checkpoint.conventions)
    data = fid_ways.Inputs(features["input_ids"], features["attention_mask"], READ)
    model = checkpoint.model.float().eval()
    limits = batch_limits(model, 1)
    outputs: dict[str, list[str]] = {}

    def read(name: str, run: Callable[..., list[Any]], attention: str, at_a_time: int) -> None:
        model.set_attn_implementation(attention)
        with torch.inference_mode():
            answers = run(model, data, at_a_time, ANSWER_TOKENS - 1, limits)
        outputs[name] = checkpoint.tokenizer.batch_decode(answers, skip_special_tokens=True)

    def same_answers(name: str) -> str:
        same = sum(a == b for a, b in zip(outputs["ours"], outputs[name], strict=True))
        return f"{same} of {len(questions)} answers are the same"

    ways: dict[str, tuple[Callable[..., list[Any]], str]] = {
        "FiD's method": (fid_ways.original, "eager"),
        "FiD's method, padded to the longest, SDPA": (
            partial(fid_ways.original, length=0),
            "sdpa",
        ),
    }
    versions = f"transformers {version('transformers')}"
    peers = [
        Peer(
            partial(read, name, run, attention, 1),
            name=f"{name} ({versions})",
            differs=partial(same_answers, name),
        )
        for name, (run, attention) in ways.items()
    ]
    ours = Way(partial(read, "ours", fid_ways.ours, "sdpa", 0))
    with torch.inference_mode():  # the first batch is slower
        fid_ways.ours(model, data.part(0, 1), 0, 2, limits)
    yield Comparison(f"FiD, {len(questions)} questions, {READ} passages each", ours, peers)


def read_with(task: Task) -> tuple[list[Question], list[list[Passage]]]:
    """Questions, and the first passages that BM25 ranks for each."""
    from ifqa.retrieval.bm25 import BM25

    folder = Path("indexes") / task.arguments.corpus
    questions = read_questions(task.arguments)[: task.size.read]
    rankings = BM25(BM25.Settings(), index=folder / "bm25").search(questions, READ)
    store = PassageStore(folder / "passages")
    return questions, [store.get([hit.passage_id for hit in ranking]) for ranking in rankings]


# The server


def served(task: Task) -> Iterator[Comparison]:
    questions = list(islice(cycle(sample_questions()), task.size.served))
    experiment = task.arguments.experiment
    answers: dict[str, Any] = {}
    with ExitStack() as stack:
        system = stack.enter_context(ifqa.open(experiment))
        url, _ = stack.enter_context(server(experiment))
        process = process_of(url)

        def ours() -> None:
            answers["ours"], _, _ = load(url, questions, CLIENTS)

        def theirs() -> None:
            answers["theirs"], _ = in_process(system, questions, CLIENTS)

        def cpu() -> float:
            times = process.cpu_times()
            return sum(os.times()[:4]) + times.user + times.system

        def differences() -> str:
            pairs = zip(answers["ours"], answers["theirs"], strict=True)
            differ = sum(content(our) != content(their) for our, their in pairs)
            return f"{differ} of {len(questions)} answers differ"

        load(url, questions[:CLIENTS], CLIENTS)
        in_process(system, questions[:CLIENTS], CLIENTS)
        peer = Peer(theirs, name="the opened system, without a server", differs=differences)
        what = f"server, {len(questions)} questions, {CLIENTS} clients"
        yield Comparison(what, Way(ours), [peer], cpu)


COMPARISONS: dict[str, Callable[[Task], Iterator[Comparison]]] = {
    "wikitext": wikitext,
    "bm25": bm25,
    "encoding": encoding,
    "fid": fid,
    "server": served,
}


def use_one_core() -> None:
    """Keep this process and its children on one core, where the system lets us."""
    import torch

    torch.set_num_threads(1)
    os.environ |= dict.fromkeys(THREADS, "1")
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    else:
        tell("this system pins no process to a core: Java and the server may use more than one")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", choices=list(SIZES), default="full")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=list(COMPARISONS), default=list(COMPARISONS))
    parser.add_argument("--dump", nargs="+", type=Path, help="pages-articles, .xml or .xml.bz2")
    parser.add_argument(
        "--wikiextractor", default=sys.executable, help="a Python that has WikiExtractor"
    )
    parser.add_argument("--corpus", default="sample")
    parser.add_argument("--benchmark", default="sample")
    parser.add_argument("--split", default="dev")
    parser.add_argument("--experiment", default="sample", help="that the server opens")
    arguments = parser.parse_args()
    use_one_core()
    print(
        "| work | peer | ifqa, s | peer, s | times as fast | on the clock | outputs |\n"
        "|---|---|---|---|---|---|---|",
        flush=True,
    )
    for name in arguments.only:
        with tempfile.TemporaryDirectory() as folder:
            task = Task(arguments, SIZES[arguments.size], Path(folder))
            try:
                for comparison in COMPARISONS[name](task):
                    print_rows(comparison, arguments.rounds)
            except MissingInput as error:
                raise SystemExit(f"{name}: {error}") from None


def print_rows(comparison: Comparison, rounds: int) -> None:
    """Measure, and print a row for each peer."""
    ways = {"ifqa": comparison.ours} | {peer.name: peer for peer in comparison.peers}
    costs = take_turns(ways, rounds, comparison.cpu)
    for peer in comparison.peers:
        cells = (costs["ifqa"], costs[peer.name], peer.differs())
        print(table_row(comparison.what, peer.name, *cells), flush=True)


if __name__ == "__main__":
    main()
