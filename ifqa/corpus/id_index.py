"""The index of passages by id: of a folder, written once all shards are written, or of one file, held in memory."""

import re
from array import array
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from ifqa.corpus.store import HASHES, LOCATIONS, OFFSET_BITS, PassageStore, hash_id, id_bytes, parse, read_at, shards_of
from ifqa.errors import IfqaError
from ifqa.progress import bar
from ifqa.storage.files import create, require, write

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ID_FIRST = re.compile(rb'\{"id": "([^"\\]+)"')  # how passage_line() begins


def write_id_index(folder: Path) -> int:
    """Index the shards of a folder by id; returns the number of passages.

    Raises:
        IfqaError: there are no passages, or as `index_ids`.
    """
    hashes, locations = index_ids(shards_of(folder))
    if not len(hashes):
        raise IfqaError(f"{folder} holds no passages; wanted passages-00000.jsonl, … with a passage a line")
    _write_array(folder / HASHES, hashes)
    _write_array(folder / LOCATIONS, locations)
    return len(hashes)


class PassageFile(PassageStore):
    """A file of passages that a retriever wrote itself instead of finding them in the corpus; 16 bytes a passage in memory."""

    def __init__(self, path: Path) -> None:
        """Read the file's ids.

        Raises:
            IfqaError: the file is missing, or as `index_ids`.
        """
        self.path = require(path, "file of passages")
        self._shards = {0: path}
        self._hashes, self._locations = index_ids(self._shards)


def index_ids(shards: Mapping[int, Path]) -> "tuple[NDArray[np.uint64], NDArray[np.uint64]]":
    """The sorted hashes of the ids of all passages, and the location of each passage; (passages,) both.

    Memory: 32 bytes a passage while the ids are sorted.

    Raises:
        IfqaError: a line is not a passage, or two passages have the same id (both are named).
    """
    import numpy as np

    hashes, locations = array("Q"), array("Q")
    with bar("indexing ids", sum(path.stat().st_size for path in shards.values()), unit="bytes") as advance:
        for number, path in shards.items():
            offset = number << OFFSET_BITS
            with open(path, "rb") as handle:
                for line_number, line in enumerate(handle, start=1):
                    match = _ID_FIRST.match(line) if line.endswith(b"}\n") else None
                    passage_id = match[1] if match else id_bytes(parse(line, f"{path}:{line_number}").id)
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
    shards: Mapping[int, Path], hashes: "NDArray[np.uint64]", locations: "NDArray[np.uint64]"
) -> None:
    """Refuse equal ids among equal hashes. Two of 27.5 million ids share a hash by chance in 1 of 50,000 corpora."""
    import numpy as np

    first_at: dict[str, str] = {}
    duplicates = np.flatnonzero(hashes[1:] == hashes[:-1])
    for location in sorted(set(locations[duplicates].tolist() + locations[duplicates + 1].tolist())):
        path = shards[location >> OFFSET_BITS]
        with open(path, "rb") as handle:
            passage = read_at(handle, location)
            handle.seek(0)
            number = handle.read(location & ((1 << OFFSET_BITS) - 1)).count(b"\n") + 1
        if passage.id in first_at:
            raise IfqaError(
                f"passage id {passage.id!r} appears twice: {first_at[passage.id]} and {path}:{number} "
                f"({passage.title!r}); if two sources have the same article, remove it from one source"
            )
        first_at[passage.id] = f"{path}:{number}"


def _write_array(path: Path, values: "NDArray[np.uint64]") -> None:
    import numpy as np

    header = BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(values))
    with create(path) as handle:
        write(handle, header.getvalue())
        for start in range(0, len(values), 1 << 20):
            write(handle, values[start : start + (1 << 20)].tobytes())
