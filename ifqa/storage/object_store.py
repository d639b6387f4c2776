"""Files of an object store (`s3://`, `gs://`), read with fsspec through the interface of an HTTP
server, so that both kinds of download resume alike.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from fnmatch import fnmatchcase
from glob import has_magic
from typing import Any

from ifqa.errors import ConfigError

_WANTED = (
    "wanted an address such as s3://bucket/folder, s3://bucket/file.bz2 or s3://bucket/wiki-*.bz2"
)
_ERRORS = {
    "aiohttp": "ClientError",
    "azure.core.exceptions": "AzureError",
    "botocore.exceptions": "BotoCoreError",
    "gcsfs.retry": "HttpError",
    "google.auth.exceptions": "GoogleAuthError",
}
_VERSIONS = (
    "ETag",
    "etag",
    "md5Hash",
    "generation",
    "mtime",
    "LastModified",
    "last_modified",
    "created",
)


class ObjectResponse(AbstractContextManager["ObjectResponse"]):
    """The rest of a file, from the start of a requested range on.

    `status` and `headers` are those that HTTP would have.
    """

    def __init__(self, url: str, requested: Mapping[str, str]) -> None:
        store, key = _open_store(url)
        with _store_errors():
            info = store.info(key)
            self._file = store.open(key, "rb")
            version = f'"{next((info[name] for name in _VERSIONS if info.get(name)), "")}"'
            size = info.get("size")
            same = requested.get("If-Range") == version != '""' and self._file.seekable()
            start = int(requested["Range"].removeprefix("bytes=").rstrip("-")) if same else 0
            if start:
                self._file.seek(start)
        self.status = 206 if start else 200
        self.headers = {
            "ETag": version,
            "Content-Range": f"bytes {start}-{(size or 1) - 1}/{size}" if start else "",
        }
        self.headers |= {"Content-Length": str(size - start)} if size is not None else {}

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read1(self, size: int) -> bytes:
        with _store_errors():
            return bytes(self._file.read(size))


def list_objects(url: str) -> Iterator[tuple[str, str, int | None]]:
    """Name, address and bytes of a file, of all files below a folder, or of those in a folder that
    match a pattern.

    Raises ConfigError for an address that cannot be read, and OSError if the store cannot be.
    """
    store, top = _open_store(url)
    parent, _, last = top.rpartition("/")
    with _store_errors():
        root = parent if has_magic(last) or store.isfile(top) else top
        for _, _, files in store.walk(
            root, maxdepth=None if root == top else 1, detail=True, on_error="raise"
        ):
            for name, info in files.items():
                path = str(info["name"])[len(root) :].strip("/")
                if ".." in path.split("/"):
                    raise ConfigError(
                        f"{info['name']}: '..' in the name of a file; rename it in the store"
                    )
                if root == top or fnmatchcase(name, last):
                    yield path, f"{url.partition('://')[0]}://{info['name']}", info.get("size")


def _open_store(url: str) -> Any:
    import fsspec

    if "@" in url.partition("://")[2].partition("/")[0] or "::" in url:
        raise ConfigError(
            f"{url.rpartition('@')[2]}: a key or a chain of stores in an address; {_WANTED}"
        )
    try:
        return fsspec.core.url_to_fs(url)
    except (ImportError, ValueError, TypeError) as error:
        # ImportError: "Install s3fs to access S3"
        raise ConfigError(f"{url}: {' '.join(str(error).split())}; {_WANTED}") from error


@contextmanager
def _store_errors() -> Iterator[None]:
    """Raise OSError for what the package of a store raises, which fsspec passes on."""
    try:
        yield
    except tuple(
        getattr(sys.modules[module], name)
        for module, name in _ERRORS.items()
        if module in sys.modules
    ) as error:
        raise OSError(" ".join(str(error).split())) from error
