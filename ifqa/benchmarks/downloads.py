"""Fetches benchmark files from their publisher or a folder into `data/NAME/`, and verifies their
SHA-256.
"""

from collections.abc import Iterator
from pathlib import Path

from ifqa.errors import DamagedArtifact, MissingInput
from ifqa.protocols import Benchmark
from ifqa.storage.download import DownloadError, RemoteFile, download_all
from ifqa.storage.files import atomic_write, read_lines, sha256, write_bytes

RECORD = "SHA256SUMS"  # in a benchmark's folder; `sha256sum -c` reads it


def fetch_files(benchmark: Benchmark, source: Path | None = None) -> Iterator[str]:
    """Fetch a benchmark's missing or changed files; yields a line of output for each file.

    `source` is a folder with the release's files under their names; None downloads them from the
    publisher.
    """
    if not benchmark.downloads:
        yield f"{benchmark.name}: nothing to fetch: its questions are bundled or your own"
        return
    if source and not source.is_dir():
        raise MissingInput(f"--from {source}: no such folder")
    if source and not any((source / file).exists() for file in benchmark.downloads):
        raise MissingInput(
            f"--from {source}: wanted {', '.join(benchmark.downloads)} in it, found none of them"
        )
    for file, (url, checksum) in benchmark.downloads.items():
        path = benchmark.folder / file
        if path.exists() and checksum is None:
            _check_recorded_checksum(benchmark.folder, file)
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
                hint = (
                    f"download it elsewhere and put it at {path}, or use: ifqa data "
                    f"{benchmark.name} --from FOLDER"
                )
                raise MissingInput(f"{error.reason}; {hint}") from error
            if checksum is None:
                _check_recorded_checksum(benchmark.folder, file)
            yield (
                f"{path}: {'verified' if checksum else 'fetched; its publisher gives no checksum'} "
                f"({sha256(path)[:12]}…)"
            )


def _check_recorded_checksum(folder: Path, file: str) -> None:
    """Record the SHA-256 of a file whose publisher gives none.

    DamagedArtifact if it differs from one recorded earlier.
    """
    record = folder / RECORD
    lines = [line for _, line in read_lines(record)] if record.exists() else []
    known = {name: checksum for checksum, _, name in (line.partition("  ") for line in lines)}
    digest = sha256(folder / file)
    if known.setdefault(file, digest) != digest:
        raise DamagedArtifact(
            f"{folder / file}: SHA-256 is {digest[:12]}…, but {record} has "
            f"{known[file][:12]}…; remove the file to fetch it "
            f"again, or remove its line from {record.name} to keep it"
        )
    if len(known) > len(lines):
        with atomic_write(record) as handle:
            write_bytes(
                handle,
                "".join(f"{checksum}  {name}\n" for name, checksum in known.items()).encode(),
            )
