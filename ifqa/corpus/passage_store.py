"""A folder of passages, and look-up of passages by id.

The shards `passages-00000.jsonl`, … have one `{"id", "title", "contents"}` per line, the format of
Pyserini's JsonCollection. `ids.hash.npy` has the sorted 64-bit hashes of all ids,
`ids.location.npy` the location of each hash's passage. Both are memory-mapped: 440 MB on disk for
27.5 million passages, of which a look-up touches a few pages.
"""

import json
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from io import BytesIO
from itertools import chain, groupby
from json.encoder import encode_basestring as quote
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ifqa.errors import DamagedArtifact, FormatError, IfqaError, MissingInput, PluginError
from ifqa.progress import bar
from ifqa.records import Passage
from ifqa.storage.artifacts import list_files
from ifqa.storage.files import (
    atomic_write,
    decode_object,
    require_file,
    text_field,
    typed_field,
    write_bytes,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ID_FIRST = re.compile(rb'\{"id": "([^"\\]+)"')  # the start of passage_line()
_SHARD = re.compile(r"passages-(\d{5,})\.jsonl")
HASHES, LOCATIONS = "ids.hash.npy", "ids.location.npy"
# Low bits of a location: the byte in the shard, up to 1 TB; the higher bits are the shard's number
OFFSET_BITS = 40
_READ = 4096  # bytes; nearly every passage of 100 words is shorter


def generated_passage_line(passage: Passage) -> bytes:
    """A passage that a retriever generated, as a line."""
    if passage.id.split() != [passage.id]:  # white space separates the columns of a TREC run
        problem = f"the passage with the title {passage.title!r} has the id {passage.id!r}"
        raise PluginError(f"{problem}; wanted a non-empty id without white space")
    return passage_line(passage.id, passage.title, passage.text)


def passage_line(passage_id: str, title: str, text: str) -> bytes:
    """A passage as a line of a shard: the same bytes as `files.json_line`, at a third of the
    cost.
    """
    line = f'{{"id": {quote(passage_id)}, "title": {quote(title)}, "contents": {quote(text)}}}\n'
    return line.encode("utf-8", "backslashreplace")


def shard_path(folder: Path, number: int) -> Path:
    """The file of a shard."""
    return folder / f"passages-{number:05d}.jsonl"


class PassageStore:
    """The passages of a folder that `write_id_index` indexed."""

    def __init__(self, folder: Path) -> None:
        """Open the store in milliseconds: only the arrays' headers are read."""
        import numpy as np

        self.path = folder
        self._shards = list_shards(require_file(folder, "passages folder"))
        files = [require_file(folder / name, "index of ids") for name in (HASHES, LOCATIONS)]
        self._hashes: NDArray[np.uint64]
        self._locations: NDArray[np.uint64]
        try:
            self._hashes, self._locations = (np.load(file, mmap_mode="r") for file in files)
        except (ValueError, EOFError) as error:
            raise DamagedArtifact(
                f"{folder}: the index of ids is damaged ({error}); rebuild the passages"
            ) from error
        if len(self._hashes) != len(self._locations):
            raise self._misfit(f"{len(self._hashes)} ids, {len(self._locations)} locations")

    def __len__(self) -> int:
        return len(self._hashes)

    def __iter__(self) -> Iterator[Passage]:
        """All passages, shard by shard, one in memory at a time."""
        return chain.from_iterable(map(read_shard, self._shards.values()))

    def get(self, ids: Sequence[str]) -> list[Passage]:
        """The passages of `ids`, in that order; raises MissingInput for an unknown id."""
        return get_passages([self], ids)

    def find(self, ids: Iterable[str]) -> dict[str, Passage]:
        """Id -> passage, for the ids in the store; each shard is read once, front to back."""
        import numpy as np

        located: list[tuple[int, str]] = []
        queries = sorted((hash_id(id_bytes(passage_id)), passage_id) for passage_id in set(ids))
        hashes = np.array([id_hash for id_hash, _ in queries], dtype=np.uint64)
        starts, ends = (
            np.searchsorted(self._hashes, hashes, side).tolist() for side in ("left", "right")
        )
        for start, end, (_, passage_id) in zip(starts, ends, queries, strict=True):
            located += [(int(location), passage_id) for location in self._locations[start:end]]
        passages: dict[str, Passage] = {}
        for number, group in groupby(sorted(located), key=lambda pair: pair[0] >> OFFSET_BITS):
            if number not in self._shards:
                raise self._misfit(f"shard {number} is missing")
            with open(self._shards[number], "rb", _READ) as handle:
                for location, passage_id in group:
                    try:
                        passage = read_at(handle, location)
                    except IfqaError as error:
                        raise self._misfit(str(error)) from error
                    if passage.id == passage_id:  # another id may have the same hash
                        passages[passage_id] = passage
        return passages

    def _misfit(self, detail: str) -> DamagedArtifact:
        hint = "if they were rebuilt meanwhile, run the same command again; if not, rebuild them"
        return DamagedArtifact(
            f"{self.path}: the index of ids does not fit the passages ({detail}); {hint}"
        )


class GeneratedPassages(PassageStore):
    """A file of passages that a retriever generated instead of searching the corpus.

    16 bytes per passage in memory.
    """

    def __init__(self, path: Path) -> None:
        """Read the file's ids; raises like `index_ids`."""
        self.path = require_file(path, "file of passages")
        self._shards = {0: path}
        self._hashes, self._locations = index_ids(self._shards)


def get_passages(stores: Sequence[PassageStore], ids: Sequence[str]) -> list[Passage]:
    """The passages of `ids`, in that order, each from the first store that has it.

    Raises MissingInput if none has.
    """
    passages: dict[str, Passage] = {}
    for store in stores:
        passages = store.find(dict.fromkeys(ids).keys() - passages.keys()) | passages
    for passage_id in ids:
        if passage_id not in passages:
            paths = ", ".join(str(store.path) for store in stores)
            raise MissingInput(
                f"no passage {passage_id!r} in {paths}; was the run made from different passages?"
            )
    return [passages[passage_id] for passage_id in ids]


def get_passage_lists(
    stores: Sequence[PassageStore], lists: Sequence[Sequence[str]]
) -> list[list[Passage]]:
    """The passages of each list of ids; each passage is looked up once."""
    ids = list(dict.fromkeys(chain.from_iterable(lists)))
    passages = dict(zip(ids, get_passages(stores, ids), strict=True))
    return [[passages[passage_id] for passage_id in group] for group in lists]


def list_shards(folder: Path) -> dict[int, Path]:
    """Shard number -> file, by number.

    Only files that the folder's manifest lists, if it has one.
    """
    numbered = ((_SHARD.fullmatch(path.name), path) for path in list_files(folder))
    return dict(sorted((int(match[1]), path) for match, path in numbered if match))


def count_passages(passages: Path) -> tuple[dict[int, Path], int]:
    """The shards of a passages folder by number, and the number of passages.

    Raises MissingInput if there are none.
    """
    shards = list_shards(require_file(passages, "passages folder"))
    count = 0
    for path in shards.values():
        with open(path, "rb") as handle:
            count += sum(1 for line in handle if line.strip())
    if not count:
        raise MissingInput(
            f"no passages in {passages}; wanted passages-*.jsonl; run: ifqa passages CORPUS"
        )
    return shards, count


def read_shard(path: Path) -> Iterator[Passage]:
    """The passages of a shard, one in memory at a time."""
    with open(path, "rb") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield parse_passage(line, f"{path}:{number}")


def read_at(handle: BinaryIO, location: int) -> Passage:
    """The passage at a location in an open shard."""
    offset = location & ((1 << OFFSET_BITS) - 1)
    handle.seek(offset)
    return parse_passage(handle.readline(), f"{handle.name}, byte {offset}")


def parse_passage(line: bytes, where: str) -> Passage:
    """The passage in a line of a shard.

    `where` ("file:line") opens the FormatError if the line is not a passage.
    """
    record = decode_object(line, where, json.loads)
    passage_id = text_field(record, "id", where)
    title = typed_field(record, "title", str, where)
    return Passage(passage_id, title, typed_field(record, "contents", str, where))


def id_bytes(passage_id: str) -> bytes:
    """The bytes of an id in a shard."""
    return passage_id.encode("utf-8", "surrogatepass")


def hash_id(passage_id: bytes) -> int:
    """The 64-bit hash by which the index is sorted."""
    return int.from_bytes(blake2b(passage_id, digest_size=8).digest(), "little")


def write_id_index(folder: Path) -> int:
    """Index the shards of a folder by id, and count the passages.

    Raises like `index_ids`, or MissingInput if there are none.
    """
    hashes, locations = index_ids(list_shards(folder))
    if not len(hashes):
        raise MissingInput(
            f"{folder} holds no passages; wanted passages-00000.jsonl, … with one passage per line"
        )
    import numpy as np

    for name, values in ((HASHES, hashes), (LOCATIONS, locations)):
        np.save(content := BytesIO(), values)
        with atomic_write(folder / name) as handle:
            write_bytes(handle, content.getvalue())
    return len(hashes)


def index_ids(shards: Mapping[int, Path]) -> "tuple[NDArray[np.uint64], NDArray[np.uint64]]":
    """The sorted hashes of all ids, and the location of each passage; both of shape (passages,).

    Takes 32 bytes per passage while the ids are sorted. Raises FormatError for a line that is not a
    passage, and for equal ids.
    """
    import numpy as np

    hashes = array("Q")
    locations = array("Q")
    with bar(
        "indexing ids", sum(path.stat().st_size for path in shards.values()), unit="bytes"
    ) as advance:
        for number, path in shards.items():
            offset = number << OFFSET_BITS
            with open(path, "rb") as handle:
                for line_number, line in enumerate(handle, start=1):
                    match = _ID_FIRST.match(line) if line.endswith(b"}\n") else None
                    passage_id = (
                        match[1]
                        if match
                        else id_bytes(parse_passage(line, f"{path}:{line_number}").id)
                    )
                    hashes.append(hash_id(passage_id))
                    locations.append(offset)
                    offset += len(line)
            advance(path.stat().st_size)
    order = np.argsort(np.frombuffer(hashes, dtype=np.uint64), kind="stable")
    ordered = np.frombuffer(hashes, dtype=np.uint64)[order]
    del hashes  # 220 MB for 27.5 million passages
    ordered_locations = np.frombuffer(locations, dtype=np.uint64)[order]
    _refuse_duplicates(shards, ordered, ordered_locations)
    return ordered, ordered_locations


def _refuse_duplicates(
    shards: Mapping[int, Path], hashes: "NDArray[np.uint64]", at: "NDArray[np.uint64]"
) -> None:
    """Raise for equal ids among equal hashes.

    Two of 27.5 million ids share a hash by chance in 1 of 50,000 corpora.
    """
    import numpy as np

    first_at: dict[str, str] = {}
    duplicates = np.flatnonzero(hashes[1:] == hashes[:-1])
    for location in sorted(set(at[duplicates].tolist() + at[duplicates + 1].tolist())):
        path = shards[location >> OFFSET_BITS]
        with open(path, "rb") as handle:
            passage = read_at(handle, location)
            handle.seek(0)
            number = handle.read(location & ((1 << OFFSET_BITS) - 1)).count(b"\n") + 1
        if passage.id in first_at:
            problem = (
                f"passage id {passage.id!r} appears twice: {first_at[passage.id]} and "
                f"{path}:{number} ({passage.title!r})"
            )
            mend = (
                "remove it from one source, or make two folders with a file "
                "of the same name one source"
            )
            raise FormatError(f"{problem}; {mend}")
        first_at[passage.id] = f"{path}:{number}"
