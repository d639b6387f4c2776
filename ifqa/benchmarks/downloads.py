"""Fetches benchmark files from their publisher or a folder into `data/NAME/`, and verifies their SHA-256."""

from collections.abc import Iterator
from pathlib import Path

from ifqa.errors import MissingInput
from ifqa.protocols import Benchmark
from ifqa.storage.download import DownloadError, RemoteFile, download_all
from ifqa.storage.files import sha256


def fetch_files(benchmark: Benchmark, source: Path | None = None) -> Iterator[str]:
    """Fetch a benchmark's missing or changed files; yields a line of output for each file.

    `source` is a folder with the release's files under their names; None downloads them from the publisher.
    """
    if not benchmark.downloads:
        yield f"{benchmark.name}: nothing to fetch: its questions are bundled or your own"
    if source and not source.is_dir():
        raise MissingInput(f"--from {source}: no such folder")
    if source and not any((source / file).exists() for file in benchmark.downloads):
        raise MissingInput(f"--from {source}: wanted {', '.join(benchmark.downloads)} in it, found none of them")
    for file, (url, checksum) in benchmark.downloads.items():
        path = benchmark.folder / file
        if path.exists() and checksum in (None, sha256(path)):
            yield f"{path}: there already"
        elif source and not (source / file).exists():
            yield f"{path}: left out, because it is not in {source}"
        else:
            origin = (source / file).absolute().as_uri() if source else url
            remote = RemoteFile(origin, path, algorithm="sha256", checksum=checksum or "")
            try:
                download_all([remote], benchmark.folder.parent)
            except DownloadError as error:
                hint = f"download it elsewhere and put it at {path}, or use: ifqa data --from FOLDER"
                raise MissingInput(f"{error.reason}; {hint}") from error
            yield f"{path}: {'verified' if checksum else 'fetched; its publisher gives no checksum'} ({sha256(path)[:12]}…)"
