"""Fetches what Wikipedia's passages are made from: a dump from Wikimedia or a mirror, or DPR's passages (`psgs_w100`).

A dump lies on the server as WIKI/DATE/; its dumpstatus.json lists the files of each job with sizes and SHA-1. The job
`articlesmultistreamdump` makes the articles: numbered parts of a large wiki, one file of a small one.
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

from ifqa.errors import IfqaError
from ifqa.formatting import pluralize
from ifqa.settings import StoredModel, parse_stored
from ifqa.storage.artifacts import partial_folder, refuse_links
from ifqa.storage.download import DownloadError, RemoteFile, download_all, read_url
from ifqa.storage.files import read_json, write_json
from ifqa.storage.resources import find_resource

logger = logging.getLogger(__name__)

WIKIMEDIA = "https://dumps.wikimedia.org"
PASSAGES = "psgs_w100"
RECORD = "dump.json"  # beside a dump's files: its date, where it is from, and the size and SHA-1 of each file
_JOB = "articlesmultistreamdump"
_PSGS = RemoteFile(
    "https://dl.fbaipublicfiles.com/dpr/wikipedia_split/psgs_w100.tsv.gz",
    Path("psgs_w100.tsv.gz"),
    # Its publisher gives no checksum. These are of Hugging Face's `datasets`, datasets/wiki_dpr/dataset_infos.json; the size is
    # also that of ir_datasets, ir_datasets/etc/downloads.json, "dpr-w100".
    4_694_541_059,
    "sha256",
    "c39b020c855a2b5c25ffef3abe4a3b6f9b829ad7dbc14ec3d163d34d7c53ea8d",
)
_LARGEST_LISTING = 1 << 24  # bytes of a list of files


class _File(StoredModel):
    size: Annotated[int, Field(ge=1)]
    sha1: Annotated[str, Field(pattern="^[0-9a-f]{40}$")]


class _Dump(StoredModel):
    date: str
    url: str
    files: Annotated[dict[str, _File], Field(min_length=1)]


def is_published(name: str) -> bool:
    """Whether a name is of a wiki's dump ("enwiki", "zh_yuewiki") or of DPR's passages."""
    return name == PASSAGES or re.fullmatch(r"[a-z][a-z_]*wiki", name) is not None


def fetch_hint(path: str) -> str:
    """How to get a source that is not there: the command that fetches what lies below data/NAME/, if one does."""
    parts = Path(path).parts
    names = [name for before, name in pairwise(parts) if before == "data" and is_published(name)]
    return f"fetch it with: ifqa data {names[-1]}" if names else "put it there or name another in the corpus file"


def fetch_source(name: str, date: str = "", url: str = "", root: Path = Path()) -> Iterator[str]:
    """Fetch a wiki's dump or DPR's passages into `data/NAME/`, which appears when all of it is there and checked.

    What a stopped fetch left is in `data/.NAME.partial/`, and the next one goes on with it. Yields lines for the user.

    Args:
        name: "enwiki", another wiki's, or "psgs_w100".
        date: of the dump, YYYYMMDD; empty for the newest that is finished, or the one that was begun.
        url: a mirror, with the publisher's layout below it; for psgs_w100 the folder of the file.
        root: `data/` is in it.

    Raises:
        IfqaError: there is no such dump, a file cannot be fetched or is not the published one, the disk has no room, or another
            dump is in the way.
    """
    if url and not re.match(r"https?://\S+$", url):
        raise IfqaError(f"--url {url}: wanted an address that begins with https:// or http://")
    if date and not re.fullmatch(r"\d{8}", date):
        raise IfqaError(f"--date {date}: wanted the date of a dump as YYYYMMDD, such as 20260801")
    if name == PASSAGES and date:
        raise IfqaError(f"--date is for a wiki's dump, and {PASSAGES} is of one date; leave it out")
    if name == PASSAGES:
        yield from _fetch_passages(url.rstrip("/"), root)
    else:
        yield from _fetch_dump(name, date, url.rstrip("/"), root)
    missing = not find_resource(f"indexes/{name}.toml", root)
    begin = f'write indexes/{name}.toml with path = "data/{name}" (docs/wikipedia.md), then: ' if missing else ""
    yield f"next: {begin}ifqa passages {name}"


def _fetch_passages(url: str, root: Path) -> Iterator[str]:
    place = root / "data" / PASSAGES / _PSGS.path
    there = place.exists()
    download_all([replace(_PSGS, url=f"{url}/{_PSGS.path}" if url else _PSGS.url, path=place)], root / "data")
    yield f"{place}: {'there already' if there else 'verified by the SHA-256 of Hugging Face datasets'}"


def _fetch_dump(wiki: str, date: str, url: str, root: Path) -> Iterator[str]:
    folder = root / "data" / wiki
    refuse_links(folder)
    draft, there = partial_folder(folder), folder.is_dir() and any(folder.iterdir())
    if there and not (folder / RECORD).exists():
        raise IfqaError(f"{folder} is there, and no {RECORD} in it says which dump it holds; move it to fetch another")
    place = folder if there else draft
    dump = _read_record(place)
    if dump and date not in ("", dump.date):
        what = "holds" if there else "has begun"
        raise IfqaError(f"{place} {what} the dump of {dump.date}; remove it, or name no --date to keep it")
    if dump is None:
        dump = _find_dump(wiki, date, url or WIKIMEDIA)
        write_json(draft / RECORD, dump.model_dump())
    base = f"{url or dump.url}/{wiki}/{dump.date}"
    files = [
        RemoteFile(f"{base}/{name}", place / name, facts.size, "sha1", facts.sha1) for name, facts in dump.files.items()
    ]
    total = sum(facts.size for facts in dump.files.values())
    logger.info(f"{wiki} of {dump.date}: {pluralize(len(files), 'file')}, {total:,} bytes, from {base}")
    try:
        download_all(files, root / "data")
    except DownloadError as error:
        if error.status != 404:
            raise
        raise IfqaError(
            f"{error.reason}; if the dump is gone, take a mirror: --url, or remove {place} to fetch another"
        ) from error
    if not there:
        os.rename(draft, folder)  # also over an empty folder
    state = "there already" if there else "each file verified by its published SHA-1"
    yield f"{folder}: dump of {dump.date}, {pluralize(len(files), 'file')}, {total:,} bytes, {state}"


def _read_record(folder: Path) -> _Dump | None:
    path = folder / RECORD
    if not path.exists():
        return None
    return parse_stored(_Dump, read_json(path), str(path), f"remove {folder} to fetch the dump again")


def _find_dump(wiki: str, date: str, url: str) -> _Dump:
    """The dump of a date, or the newest that is finished; as the server lists it."""
    try:
        dates = [date] if date else _list_dates(f"{url}/{wiki}/")
        for day in dates:
            if dump := _read_listing(wiki, day, url, must=bool(date)):
                return dump
    except DownloadError as error:
        wanted = (
            "wanted a wiki's name (dewiki), and a --date that the server keeps"
            if error.status == 404
            else "try again later"
        )
        raise IfqaError(f"{error}; {wanted}, or take a mirror: --url") from error
    raise IfqaError(f"{url}/{wiki}/: the articles of {', '.join(dates)} are not finished; take another --date or --url")


def _list_dates(url: str) -> list[str]:
    """The dates in a wiki's list of dumps, newest first."""
    dates = re.findall(r'href="(?:[^"]*/)?(\d{8})/?"', read_url(url, _LARGEST_LISTING).decode("utf-8", "replace"))
    if not dates:
        raise IfqaError(f"{url} lists no dump; wanted links to folders such as 20260801/; take another --url")
    return sorted(set(dates), reverse=True)


def _read_listing(wiki: str, date: str, url: str, must: bool) -> _Dump | None:
    """A dump, with the files of its articles; None if they are not finished, or not begun and no `must`."""
    where, name = f"{url}/{wiki}/{date}/dumpstatus.json", f"{wiki}-{date}-pages-articles-multistream"
    try:
        status = read_url(where, _LARGEST_LISTING)
    except DownloadError as error:
        if must or error.status != 404:
            raise
        return None
    try:
        job = json.loads(status)["jobs"][_JOB]
        if job["status"] != "done":
            return None
        files = {
            file: _File(size=facts["size"], sha1=facts["sha1"])
            for file, facts in job["files"].items()
            if re.fullmatch(rf"{name}\d*\.xml(-p\d+p\d+)?\.bz2", file)  # without the index files
        }
        return _Dump(date=date, url=url, files=files)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:  # no JSON, or of another layout
        raise IfqaError(
            f"{where}: wanted the job {_JOB!r} with files of a size and a SHA-1 each; take another --date or --url"
        ) from error
