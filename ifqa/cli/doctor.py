"""`ifqa doctor`: the installation, what is missing of it, whether it works; and which data are here."""

import os
import platform
import shutil
from collections.abc import Callable
from importlib import metadata
from itertools import starmap
from pathlib import Path

from rich.filesize import decimal

from ifqa.cli.options import Json, print_json, print_line
from ifqa.errors import IfqaError
from ifqa.llms.credentials import KEY
from ifqa.protocols import Requirement
from ifqa.version import __version__
from ifqa.workers.machine import total_memory

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
_DATA = {  # of `ifqa data NAME`
    "ifqa": "the questions of IfQA",
    "causalqa": "the questions of Webis-CausalQA-22",
    "wiqa": "the questions of WIQA",
    "enwiki": "a dump of English Wikipedia",
    "psgs_w100": "DPR's 21 million passages of Wikipedia",
}


def doctor(json: Json = False) -> None:
    """Show the installation: Python, Java, torch, models; and whether they work together."""
    from ifqa.pipeline.check import fields_of, line_of

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
    needs = [*starmap(_package, _PACKAGES), *vital, key, *starmap(_data, _DATA.items())]
    problems = [need.how for need in vital if not need.here]
    if all(map(_version, ("faiss-cpu", "faiss-gpu"))):
        problems.append("faiss-cpu and faiss-gpu are both installed and hide each other: pip uninstall one of them")
    if json:
        print_json({**facts, "needs": list(map(fields_of, needs)), "problems": problems, "ready": not problems})
    else:
        print_line(", ".join(f"{name}: {fact}" for name, fact in facts.items()))
        for need in needs:
            print_line(line_of(need))
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


def _working(what: str, start: Callable[[], str]) -> Requirement:
    """A part that is started to see whether it works."""
    try:
        return Requirement(f"{what}, {start()}")
    except IfqaError as error:
        return Requirement(what, str(error))


def _java() -> str:
    from ifqa.retrieval.jvm import java

    system = java().autoclass("java.lang.System")
    return f"{system.getProperty('java.version')} from {system.getProperty('java.home')}"


def _encoder() -> str:
    from ifqa.models.hub import encoder_folder

    return str(encoder_folder())


def _data(name: str, purpose: str) -> Requirement:
    from ifqa.corpus.wikipedia.published import begun

    here = not begun(name) and any(Path("data", name).glob("[!.]*"))
    mend = f"{'go on with' if begun(name) else 'fetch with'}: ifqa data {name}"
    return Requirement(f"data/{name}, {purpose}", "" if here else mend)


def _accelerator() -> str:
    """The accelerator that models run on; empty for none."""
    import torch

    if torch.cuda.is_available():
        return f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}"
    return "Apple MPS" if torch.backends.mps.is_available() else ""
