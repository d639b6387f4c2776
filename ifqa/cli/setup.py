"""The verbs to use before a first run: `init` writes an experiment to start from, `doctor` checks
the installation.
"""

import logging
import os
import platform
import shutil
from collections.abc import Callable, Sequence
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from ifqa.cli.options import Docs, Json, print_json, print_line
from ifqa.errors import ConfigError, IfqaError, MissingInput
from ifqa.version import __version__

if TYPE_CHECKING:
    from ifqa.protocols import Requirement

logger = logging.getLogger(__name__)

#: The JSON Schemas that `init` writes, as the files' first lines name them -> those that ship.
_SCHEMAS = {
    "experiments/experiment.schema.json": "experiment.json",
    "indexes/corpus.schema.json": "corpus.json",
}
_PACKAGES = (  # name, purpose, the extra that installs it
    ("pyserini", "BM25 through Lucene", ""),
    ("torch", "readers, dense retrieval", ""),
    ("sentence-transformers", "dense retrieval, reranking", ""),
    ("faiss-cpu", "approximate search", "cpu"),
    ("faiss-gpu", "approximate search on a GPU", "gpu"),
    ("datasets", "training rerankers and dense retrievers", "train"),
    ("pyarrow", "articles in Parquet files", "parquet"),
    ("xllamacpp", "GGUF files", "llama-cpp"),
    ("ray", "scale-out", "ray"),
    ("pymilvus", "a shared index", "milvus"),
    ("opentelemetry-sdk", "traces", "tracing"),
    ("jupyter", "the notebooks", "notebooks"),
)


def init(
    name: Annotated[
        str, Argument(help="Name of the experiment, its corpus and the folder of its files.")
    ] = "mine",
    docs: Docs = None,
) -> None:
    """Write an experiment, a corpus and questions to start from.

    The files have comments; no file is overwritten. With --docs the corpus
    consists of your documents, and no articles are written.
    """
    from ifqa.config.corpus import resolve_documents
    from ifqa.config.experiment import base_experiments, experiment_name
    from ifqa.storage.files import atomic_write, write_bytes
    from ifqa.storage.resources import BUNDLED, find_resource

    name = experiment_name(name)
    if base_experiments(name):
        raise ConfigError(
            f"experiment {name!r}: wanted a name without +KEY=VALUE, which marks variants"
        )
    templates = {
        f"indexes/{name}.toml": "documents.toml" if docs else "corpus.toml",
        f"experiments/{name}.toml": "experiment.toml",
        f"{name}/questions.csv": "empty.csv" if docs else "questions.csv",
    }
    if not docs:
        templates[f"{name}/articles.jsonl"] = "articles.jsonl"
        hint = (
            f"try it: ifqa run {name} --show 3; then put your own "
            f"articles and questions into {name}/"
        )
    else:
        resolve_documents(docs)
        hint = f"put your questions into {name}/questions.csv, then: ifqa run {name} --show 3"
    for path in templates:
        for existing in (Path(path), find_resource(path)):
            if existing and (existing.exists() or existing.is_symlink()):
                raise ConfigError(f"{existing} exists; choose another name: ifqa init NAME")
    for path, template in templates.items():
        text = (BUNDLED / "start" / template).read_text(encoding="utf-8").replace("NAME", name)
        if docs:
            text = _name_folders(text, docs)
        with atomic_write(Path(path)) as handle:
            write_bytes(handle, text.encode())
        print_line(path)
    # For editors; one of an earlier version is replaced
    for path, schema in _SCHEMAS.items():
        with atomic_write(Path(path)) as handle:
            write_bytes(handle, (BUNDLED / "schemas" / schema).read_bytes())
    logger.info(hint)


def _name_folders(text: str, docs: Sequence[Path]) -> str:
    """A template with the folders or files of documents in place of its FOLDER."""
    import tomli_w

    from ifqa.config.corpus import document_sources

    paths = {path.expanduser().resolve(): path.expanduser() for path in docs}
    first, *others = document_sources(list(paths.values()))
    del first["format"]  # the template has it
    text = text.replace('path = "FOLDER"', tomli_w.dumps(first).strip())
    sections = [f"[[passages.sources]]\n{tomli_w.dumps(source)}\n" for source in others]
    return text.replace("[index.bm25]", "".join([*sections, "[index.bm25]"]), 1)


def doctor(json: Json = False) -> None:
    """Check the installation: Python, Java, torch and models."""
    import psutil
    from rich.filesize import decimal

    from ifqa.llms.credentials import KEY
    from ifqa.models.places import minilm_folder
    from ifqa.pipeline.check import requirement_json
    from ifqa.protocols import Requirement

    facts = {
        "ifqa": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "memory": decimal(round(psutil.virtual_memory().total)),
        "disk free": decimal(shutil.disk_usage(Path.cwd()).free),
        "accelerator": _accelerator() or "none, models run on the CPU",
    }
    vital = [_working("Java", _java), _working("the encoder", minilm_folder)]
    key = Requirement(
        f"{KEY}, for language models on a server", "" if os.environ.get(KEY) else "set it"
    )
    needs = [*starmap(_package, _PACKAGES), *vital, key]
    problems = [need.remedy for need in vital if not need.present]
    if all(map(_version, ("faiss-cpu", "faiss-gpu"))):
        problems.append(
            "faiss-cpu and faiss-gpu are both installed and hide each other: "
            "pip uninstall one of them"
        )
    if json:
        print_json(
            {
                **facts,
                "needs": list(map(requirement_json, needs)),
                "problems": problems,
                "ready": not problems,
            }
        )
    else:
        print_line(", ".join(f"{name}: {fact}" for name, fact in facts.items()))
        for need in needs:
            print_line(need)
        ready = "ready: BM25, dense retrieval and the default reader can run here"
        print_line(f"verdict: {'not ready; see below' if problems else ready}")
    if problems:
        raise MissingInput("; ".join(problems))


def _package(name: str, purpose: str, extra: str) -> "Requirement":
    from ifqa.protocols import Requirement

    version = _version(name)
    mend = f"pip install 'ifqa[{extra}]'" if extra else f"pip install {name}"
    return Requirement(
        f"{name} {version}, for {purpose}".replace(" ,", ","), "" if version else mend
    )


def _version(name: str) -> str:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _working(what: str, start: Callable[[], object]) -> "Requirement":
    """A part of the installation as a requirement. The part is started to see whether it works."""
    from ifqa.protocols import Requirement

    try:
        return Requirement(f"{what}, {start()}")
    except IfqaError as error:
        return Requirement(what, str(error))


def _java() -> str:
    from ifqa.retrieval.jvm import load_jnius

    system = load_jnius().autoclass("java.lang.System")
    return f"{system.getProperty('java.version')} from {system.getProperty('java.home')}"


def _accelerator() -> str:
    """The accelerator for models; empty without one."""
    import torch

    if torch.cuda.is_available():
        return f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}"
    return "Apple MPS" if torch.backends.mps.is_available() else ""
