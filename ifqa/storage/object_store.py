"""Copies files of an object store (`s3://`, `gs://`) into `data/objects`, by fsspec.

Beside a copy, `.NAME.tag` has its version in the store, and `.NAME.part` what an interrupted run has copied so far.
"""

import os
import re
import sys
from collections.abc import Callable
from glob import has_magic
from pathlib import Path, PurePosixPath
from typing import Any

from ifqa.errors import ConfigError, ServiceError
from ifqa.progress import bar
from ifqa.storage.artifacts import lock, report_full_disk
from ifqa.storage.download import RemoteFile
from ifqa.storage.files import write_bytes

OBJECTS = Path("data/objects")
_CHUNK = 1 << 20


def copy_objects(url: str, names: re.Pattern[str]) -> list[Path]:
    """The local copies of a file, of a pattern's files, or of those of a folder's files whose names match `names`.

    A file is copied again only if its version in the store has changed. Raises ConfigError for an unknown kind of store or a
    missing package, ServiceError if the store cannot be read.
    """
    import fsspec

    try:
        store, top = fsspec.core.url_to_fs(url)
        store.invalidate_cache()
        every = filter(store.isfile, store.glob(top)) if has_magic(top) else store.find(top)
        keys = [key for key in every if has_magic(top) or key == top or names.fullmatch(PurePosixPath(key).name)]
        files = [RemoteFile(key, _local_path(url, key), store.size(key)) for key in keys]
        with lock(OBJECTS), bar(f"copy of {url}", sum(file.size or 0 for file in files), unit="bytes") as advance:
            for file in files:
                _copy(store, file, advance)
    except (ImportError, ValueError) as error:
        raise ConfigError(f"{url}: {error}") from error
    except _store_errors() as error:
        raise ServiceError(
            f"cannot read {url} ({' '.join(str(error).split())}); run the same command again to go on"
        ) from error
    return [file.path for file in files]


def _store_errors() -> tuple[type[Exception], ...]:
    """What reading a store can raise: fsspec passes on what the package of a store raises."""
    names = {"aiohttp": "ClientError", "azure.core.exceptions": "AzureError", "botocore.exceptions": "BotoCoreError"}
    loaded = [getattr(sys.modules[module], name) for module, name in names.items() if module in sys.modules]
    return (OSError, *loaded)


def _local_path(url: str, key: str) -> Path:
    parts = [part for part in key.split("://")[-1].split("/") if part]
    if ".." in parts or "." in parts:
        raise ValueError(f"the file name {key!r} cannot be used here")
    return OBJECTS.joinpath(url.split("://")[0], *parts)


def _copy(store: Any, file: RemoteFile, advance: Callable[[float], None]) -> None:
    """Copy a file, unless its version is here; a partial copy of the same version is continued."""
    part, tag, version = file.sidecar("part"), file.sidecar("tag"), str(store.checksum(file.url))
    known = tag.exists() and tag.read_text(encoding="utf-8") == version
    if known and file.path.exists() and not part.exists():
        advance(file.size or 0)
        return
    file.path.parent.mkdir(parents=True, exist_ok=True)
    with report_full_disk(file.path), open(part, "ab" if known else "wb") as target:
        tag.write_text(version, encoding="utf-8")
        advance(target.tell())
        with store.open(file.url, "rb") as source:
            source.seek(target.tell())
            while chunk := source.read(_CHUNK):
                write_bytes(target, chunk)
                advance(len(chunk))
        target.flush()
        os.fsync(target.fileno())
        if target.tell() != file.size:
            raise OSError(f"{file.url} has {file.size:,} bytes in the store, {target.tell():,} were read")
    os.replace(part, file.path)
