"""The verbs to use before a first run: `init` writes an experiment to start from, `notebooks`
copies the notebooks, `doctor` checks the installation.
"""

import logging
import os
import platform
import shutil
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from itertools import starmap
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

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
    ("datasets", "training rerankers and dense retrievers", "train"),
    ("pyarrow", "articles in Parquet files", "parquet"),
    ("xllamacpp", "GGUF files", "llama-cpp"),
    ("ray", "scale-out", "ray"),
    ("pymilvus", "a shared index", "milvus"),
    ("opentelemetry-sdk", "traces", "tracing"),
    ("jupyter", "the notebooks", "notebooks"),
    ("matplotlib", "the notebooks' figures", "notebooks"),
    ("inspect-ai", "tasks of inspect, and its logs", "inspect"),
    ("lm-eval", "tasks of lm-eval", "lm-eval"),
)
_FAISS = (  # of which one is enough, and two hide each other
    ("faiss-cpu", "approximate search", "cpu"),
    ("faiss-gpu", "approximate search on a GPU", "gpu"),
)
_REACH_SECONDS = 5  # until a server must have answered


def init(
    name: Annotated[
        str, Argument(help="Name of the experiment, its corpus and the folder of its files.")
    ] = "mine",
    docs: Docs = None,
    draft: Annotated[
        int | None,
        Option(
            min=1,
            help="With --docs: number of questions that the language model --model drafts.",
        ),
    ] = None,
    changes: Mapping[str, object] = MappingProxyType({}),
) -> None:
    """Write an experiment, a corpus and questions to start from.

    The files have comments; no file is overwritten. With --docs the corpus
    consists of your documents, and no articles are written. With --draft a
    language model writes questions about your documents, with answers, for you
    to read and correct. Some questions have no answer in your documents.
    """
    from ifqa.config.corpus import resolve_documents
    from ifqa.config.experiment import base_experiments, experiment_name

    name = experiment_name(name)
    if base_experiments(name):
        raise ConfigError(
            f"experiment {name!r}: wanted a name without +KEY=VALUE, which marks variants"
        )
    if draft and not docs:
        raise ConfigError("--draft wants documents to ask about: add --docs FOLDER", mend="--docs")
    if changes and not draft:
        raise ConfigError(
            f"{min(changes)} is for the language model that drafts questions; wanted: "
            "--docs FOLDER --draft 60"
        )
    questions = f"{name}/questions.csv"
    templates = {
        f"indexes/{name}.toml": "documents.toml" if docs else "corpus.toml",
        f"experiments/{name}.toml": "experiment.toml",
    }
    if not draft:
        templates[questions] = "empty.csv" if docs else "questions.csv"
    if not docs:
        templates[f"{name}/articles.jsonl"] = "articles.jsonl"
        hint = (
            f"try it: ifqa run {name} --show 3; then put your own "
            f"articles and questions into {name}/"
        )
    else:
        resolve_documents(docs)
        hint = f"put your questions into {questions}, then: ifqa run {name} --show 3"
    files = {path: _fill(template, name, docs) for path, template in templates.items()}
    if draft:
        _draft(name, files, docs or (), draft, changes)
        return
    for path in files:
        _refuse_existing(path)
    _write(files)
    logger.info(hint)


def notebooks(
    folder: Annotated[Path, Argument(help="Folder to copy them to; it is created.")],
    force: Annotated[bool, Option("--force", help="Overwrite existing notebooks.")] = False,
) -> None:
    """Copy the notebooks, which show experiments in figures.

    The first cell of each notebook names the experiments: those of the bundled
    sample, until you name yours. Open the notebooks in or below the folder that
    has experiments/.
    """
    from ifqa.storage.files import atomic_write, write_bytes
    from ifqa.storage.resources import BUNDLED, list_resources

    shipped = list_resources("experiments/notebooks", ".ipynb", BUNDLED)
    targets = {path: folder / path.name for path in shipped.values()}
    if not force and (existing := next(filter(Path.exists, targets.values()), None)):
        raise ConfigError(f"{existing} is there already; overwrite the notebooks with --force")
    for path, target in targets.items():
        with atomic_write(target) as handle:
            write_bytes(handle, path.read_bytes())
        print_line(target)
    logger.info(f"open them with: jupyter lab {folder} (pip install 'ifqa[notebooks]')")


def _draft(
    name: str,
    files: Mapping[str, str],
    docs: Sequence[Path],
    count: int,
    changes: Mapping[str, object],
) -> None:
    """Write an experiment and its corpus, and have a language model draft its questions.

    An earlier attempt with the same arguments, which was interrupted, goes on: its files are those
    that would be written, and the questions are written last.
    """
    import tomllib

    from ifqa.pipeline.check import estimate_requests
    from ifqa.pipeline.draft import (
        README_TITLE,
        Drafter,
        drafting_run,
        drawn_passages,
        write_drafts,
    )
    from ifqa.pipeline.stages import open_system

    questions = f"{name}/questions.csv"
    readme = f"{name}/README.md"
    new = {path: text for path, text in files.items() if not _has_content(path, text)}
    for path in (*new, questions):
        _refuse_existing(path)
    if not _begins_with(readme, README_TITLE):
        _refuse_existing(readme)
    sections = tomllib.loads(files[f"experiments/{name}.toml"])
    run = drafting_run(name, sections, changes)
    _write(new)
    with open_system(run) as system:
        passages = drawn_passages(run, count)
        if not passages:
            raise MissingInput(
                f"corpus {name}: no passage has prose to ask about; wanted documents with whole "
                "sentences"
            )
        drafter = Drafter(system, passages, count)
        work = estimate_requests(run, system, drafter.requests(), "drafts, if all tries are needed")
        logger.info(str(work).strip())
        drafted = drafter.draft()
        for line in drafted.summary():
            logger.info(line)
        if not drafted.kept:
            raise IfqaError(
                f"no draft can be kept, so {questions} was not written; try another model"
            )
        folders = ", ".join(map(str, docs))
        write_drafts(Path(questions), Path(readme), drafted, system.model.name, folders)
    for path in (questions, readme):
        print_line(path)
    logger.info(
        f"read {questions} and strike out bad rows, then: "
        f"ifqa calibrate {questions} --experiment {name}"
    )


def _fill(template: str, name: str, docs: Sequence[Path] | None) -> str:
    """A template with the name, and with the folders of documents."""
    from ifqa.storage.resources import BUNDLED

    text = (BUNDLED / "start" / template).read_text(encoding="utf-8").replace("NAME", name)
    return _name_folders(text, docs) if docs else text


def _refuse_existing(path: str) -> None:
    """Refuse to overwrite a file, or to hide one that ships.

    Raises:
        ConfigError: it is there, if only as a link.
    """
    from ifqa.storage.resources import find_resource

    for existing in (Path(path), find_resource(path)):
        if existing and (existing.exists() or existing.is_symlink()):
            raise ConfigError(f"{existing} exists; choose another name: ifqa init NAME")


def _has_content(path: str, text: str) -> bool:
    """Whether a file is there with this content."""
    file = Path(path)
    return file.is_file() and not file.is_symlink() and file.read_bytes() == text.encode()


def _begins_with(path: str, title: str) -> bool:
    """Whether a file is there that begins with this line."""
    file = Path(path)
    return file.is_file() and file.read_bytes().startswith(f"{title}\n".encode())


def _write(files: Mapping[str, str]) -> None:
    """Write files and print their paths, and beside them the schemas that they name."""
    from ifqa.storage.files import atomic_write, write_bytes
    from ifqa.storage.resources import BUNDLED

    for path, text in files.items():
        with atomic_write(Path(path)) as handle:
            write_bytes(handle, text.encode())
        print_line(path)
    # For editors; one of an earlier version is replaced
    for path, schema in _SCHEMAS.items():
        with atomic_write(Path(path)) as handle:
            write_bytes(handle, (BUNDLED / "schemas" / schema).read_bytes())


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
    """Check the installation: Python, Java, torch, models and servers."""
    import psutil
    from rich.filesize import decimal

    from ifqa.models.places import minilm_folder
    from ifqa.pipeline.check import requirement_json

    accelerator = _accelerator()
    facts = {
        "ifqa": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "memory": decimal(round(psutil.virtual_memory().total)),
        "disk free": decimal(shutil.disk_usage(Path.cwd()).free),
        "accelerator": accelerator or "none, models run on the CPU",
    }
    vital = [_working("Java", _java), _working("the encoder", minilm_folder)]
    installed = [package for package in _FAISS if _version(package[0])]
    faiss = installed or [_FAISS["CUDA" in accelerator]]
    needs = [*starmap(_package, (*_PACKAGES, *faiss)), *vital, _model_hub(), _model_server()]
    problems = [need.remedy for need in vital if not need.present]
    if len(installed) > 1:
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
        ready = (
            "ready: BM25, dense retrieval and the default reader can run here"
            if find_spec("torch")
            else "light: BM25, ranker and a served language model can run here, nothing with torch"
        )
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


def _model_hub() -> "Requirement":
    """Hugging Face's hub, from which models are downloaded at first use."""
    from huggingface_hub import constants

    from ifqa.protocols import Requirement

    remedy = ""
    if constants.HF_HUB_OFFLINE:
        remedy = "HF_HUB_OFFLINE is set, so no model is downloaded; unset it"
    elif fault := _unreachable(constants.ENDPOINT):
        remedy = f"{fault}; without it, put a model's folder here and name it"
    return Requirement(f"the model hub, {constants.ENDPOINT}, for models named by it", remedy)


def _model_server() -> "Requirement":
    """The server of language models that the environment names, and its key."""
    from ifqa.llms import credentials
    from ifqa.protocols import Requirement

    named = os.environ.get(credentials.ADDRESS, "")
    where = "api.openai.com"
    remedy = ""
    try:
        url = credentials.resolve_address("")
        if named:
            where = f"{credentials.server_origin(url)} ({credentials.ADDRESS})"
        credentials.key_for(url)
        remedy = _unreachable(url) if named else ""
    except IfqaError as error:
        remedy = str(error)
    return Requirement(f"language models of {where}", remedy)


def _unreachable(url: str) -> str:
    """Why a server does not answer; empty if it does, with whatever status."""
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    try:
        urlopen(Request(url, method="HEAD"), timeout=_REACH_SECONDS).close()
    except HTTPError as error:
        error.close()
        return ""
    except (OSError, ValueError) as error:
        return f"{url} does not answer ({getattr(error, 'reason', error)})"
    return ""


def _java() -> str:
    from ifqa.retrieval.jvm import load_jnius

    system = load_jnius().autoclass("java.lang.System")
    return f"{system.getProperty('java.version')} from {system.getProperty('java.home')}"


def _accelerator() -> str:
    """The accelerator for models; empty without one, or without torch."""
    if find_spec("torch") is None:
        return ""
    import torch

    if torch.cuda.is_available():
        return f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}"
    return "Apple MPS" if torch.backends.mps.is_available() else ""
