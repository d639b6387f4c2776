"""Downloads a Wikipedia dump from Wikimedia or a mirror, or DPR's passages (`psgs_w100`).

A dump is the folder WIKI/DATE/ of the server; its dumpstatus.json lists the files of each job with
size and SHA-1. The articles are those of `articlesmultistreamdump`: numbered parts for a large
wiki, one file for a small one.
"""

import json
import logging
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated

from pydantic import Field

from ifqa.errors import ConfigError, IfqaError, MissingInput, ServiceError
from ifqa.formatting import pluralize
from ifqa.settings import StoredModel, parse_stored
from ifqa.storage.artifacts import partial_folder, refuse_links
from ifqa.storage.download import DownloadError, RemoteFile, download_all, read_url
from ifqa.storage.files import read_json, write_json
from ifqa.storage.resources import find_resource

logger = logging.getLogger(__name__)

WIKIMEDIA = "https://dumps.wikimedia.org"
PASSAGES = "psgs_w100"
RECORD = "dump.json"  # in a dump's folder: its date, its URL, and the size and SHA-1 of each file
_JOB = "articlesmultistreamdump"
_PSGS_URL = "https://dl.fbaipublicfiles.com/dpr/wikipedia_split/psgs_w100.tsv.gz"
# DPR publishes no checksum. Size and SHA-256 are from Hugging Face's `datasets`,
# datasets/wiki_dpr/dataset_infos.json; ir_datasets has the same size
# (ir_datasets/etc/downloads.json, "dpr-w100").
_PSGS_SHA256 = "c39b020c855a2b5c25ffef3abe4a3b6f9b829ad7dbc14ec3d163d34d7c53ea8d"
_PSGS = RemoteFile(_PSGS_URL, Path("psgs_w100.tsv.gz"), 4_694_541_059, "sha256", _PSGS_SHA256)
# DPR's own count (Karpukhin et al. 2020), and that of docs/scale.md
_PUBLISHED_PASSAGES = {PASSAGES: 21_015_324, "enwiki": 27_500_000}
_LARGEST_LISTING = 1 << 24  # bytes of a list of files


class _File(StoredModel):
    size: Annotated[int, Field(ge=1)]
    sha1: Annotated[str, Field(pattern="^[0-9a-f]{40}$")]


class _Dump(StoredModel):
    date: str
    url: str
    files: Annotated[dict[str, _File], Field(min_length=1)]


def is_published(name: str) -> bool:
    """Whether a name is a wiki's ("enwiki", "zh_yuewiki"), or that of DPR's passages."""
    return name == PASSAGES or re.fullmatch(r"[a-z][a-z_]*wiki", name) is not None


def fetch_hint(path: str) -> str:
    """Advice for a missing source, such as the command that downloads data/NAME/."""
    name = _published_name(path)
    if name:
        return f"fetch it with: ifqa data {name}"
    return "put it there or name another in the corpus file"


def published_passages(path: str) -> int | None:
    """The number of passages in a published source that is not fetched yet; None if unknown."""
    return _PUBLISHED_PASSAGES.get(_published_name(path))


def _published_name(path: str) -> str:
    """The wiki, or `psgs_w100`, that belongs into a path below data/; empty if none does."""
    names = [
        name
        for parent, name in pairwise(Path(path).parts)
        if parent == "data" and is_published(name)
    ]
    return names[-1] if names else ""


def fetch_source(name: str, date: str = "", url: str = "") -> Iterator[str]:
    """Download a wiki's dump or DPR's passages into `data/NAME/`, which is created once all files
    are complete and checked.

    An interrupted download stays in `data/.NAME.partial/`, and the next one resumes it. Yields
    lines for the user.

    Args:
        name: a wiki's name ("enwiki"), or "psgs_w100".
        date: the date of the dump, YYYYMMDD; empty for that of an interrupted download, or else of
            the newest finished dump.
        url: a mirror with the publisher's layout; for psgs_w100 the folder of the file.
    """
    if url and not re.match(r"https?://\S+$", url):
        raise ConfigError(f"--url {url}: wanted an address that begins with https:// or http://")
    if date and not re.fullmatch(r"\d{8}", date):
        raise ConfigError(f"--date {date}: wanted the date of a dump as YYYYMMDD, such as 20260801")
    if name != PASSAGES:
        yield from _fetch_dump(name, date, url.rstrip("/"))
    elif date:
        raise ConfigError(
            f"--date is for a wiki's dump, and {PASSAGES} has only one date; leave it out"
        )
    else:
        yield from _fetch_passages(url.rstrip("/"))
    missing = not find_resource(f"indexes/{name}.toml")
    step = (
        f'write indexes/{name}.toml with path = "data/{name}" (docs/wikipedia.md), then: '
        if missing
        else ""
    )
    yield f"next: {step}ifqa passages {name}"


def _fetch_passages(url: str) -> Iterator[str]:
    path = Path("data") / PASSAGES / _PSGS.path
    existed = path.exists()
    download_all(
        [replace(_PSGS, url=f"{url}/{_PSGS.path}" if url else _PSGS.url, path=path)], Path("data")
    )
    yield (
        f"{path}: "
        f"{'there already' if existed else 'verified by the SHA-256 of Hugging Face datasets'}"
    )


def _fetch_dump(wiki: str, date: str, url: str) -> Iterator[str]:
    folder = Path("data") / wiki
    refuse_links(folder)
    draft = partial_folder(folder)
    existed = folder.is_dir() and any(folder.iterdir())
    if existed and not (folder / RECORD).exists():
        raise IfqaError(
            f"{folder} exists without a {RECORD} that names its dump; move it to fetch another"
        )
    target = folder if existed else draft
    dump = _read_record(target)
    if dump and date not in ("", dump.date):
        state = "holds" if existed else "holds a part of"
        raise ConfigError(
            f"{target} {state} the dump of {dump.date}; remove it, or leave out --date to keep it"
        )
    if dump is None:
        dump = _find_dump(wiki, date, url or WIKIMEDIA)
        write_json(draft / RECORD, dump.model_dump())
    base = f"{url or dump.url}/{wiki}/{dump.date}"
    listed = dump.files.items()
    files = [
        RemoteFile(f"{base}/{name}", target / name, file.size, "sha1", file.sha1)
        for name, file in listed
    ]
    total = sum(file.size for _, file in listed)
    logger.info(
        f"{wiki} of {dump.date}: {pluralize(len(files), 'file')}, {total:,} bytes, from {base}"
    )
    try:
        download_all(files, Path("data"))
    except DownloadError as error:
        if error.status != 404:
            raise
        hint = f"if the dump is gone, take a mirror: --url, or remove {target} to fetch another"
        raise ServiceError(f"{error.reason}; {hint}") from error
    if not existed:
        os.rename(draft, folder)  # also replaces an empty folder
    state = "there already" if existed else "each file verified by its published SHA-1"
    count = pluralize(len(files), "file")
    yield f"{folder}: dump of {dump.date}, {count}, {total:,} bytes, {state}"


def _read_record(folder: Path) -> _Dump | None:
    path = folder / RECORD
    hint = f"remove {folder} to fetch the dump again"
    return parse_stored(_Dump, read_json(path), str(path), hint) if path.exists() else None


def _find_dump(wiki: str, date: str, url: str) -> _Dump:
    """The server's dump of a date, or its newest finished dump."""
    try:
        dates = [date] if date else _list_dates(f"{url}/{wiki}/")
        for day in dates:
            if dump := _read_listing(wiki, day, url, required=bool(date)):
                return dump
    except DownloadError as error:
        is_missing = error.status == 404
        hint = (
            "wanted a wiki's name (dewiki), and a --date that the server keeps"
            if is_missing
            else "try again later"
        )
        raise ServiceError(f"{error}; {hint}, or take a mirror: --url") from error
    problem = f"the articles of {', '.join(dates)} are not finished"
    raise MissingInput(f"{url}/{wiki}/: {problem}; take another --date or --url")


def _list_dates(url: str) -> list[str]:
    """The dates in a wiki's list of dumps, newest first."""
    dates = re.findall(
        r'href="(?:[^"]*/)?(\d{8})/?"', read_url(url, _LARGEST_LISTING).decode("utf-8", "replace")
    )
    if not dates:
        raise ServiceError(
            f"{url} lists no dump; wanted links to folders such as 20260801/; take another --url"
        )
    return sorted(set(dates), reverse=True)


def _read_listing(wiki: str, date: str, url: str, required: bool) -> _Dump | None:
    """A dump with its article files.

    None if they are not finished, or not listed at all and not `required`.
    """
    where = f"{url}/{wiki}/{date}/dumpstatus.json"
    name = f"{wiki}-{date}-pages-articles-multistream"
    try:
        status = read_url(where, _LARGEST_LISTING)
    except DownloadError as error:
        if required or error.status != 404:
            raise
        return None
    try:
        job = json.loads(status)["jobs"][_JOB]
        if job["status"] != "done":
            return None
        files = {
            file: _File(size=facts["size"], sha1=facts["sha1"])
            for file, facts in job["files"].items()
            if re.fullmatch(rf"{name}\d*\.xml(-p\d+p\d+)?\.bz2", file)  # not the index files
        }
        return _Dump(date=date, url=url, files=files)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        # not JSON, or another layout
        wanted = f"wanted the job {_JOB!r} whose files each have a size and a SHA-1"
        raise ServiceError(f"{where}: {wanted}; take another --date or --url") from error
