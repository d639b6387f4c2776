"""Blocks of documents: files of a folder that become a shard of passages together."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ifqa.corpus.blocks import Block
from ifqa.corpus.documents import folder as documents
from ifqa.corpus.documents.reading import Documents, File, Made
from ifqa.corpus.wikipedia.dump import Tally

_FILES, _SIZE = 256, 8_000_000  # files in a block, and their bytes
_LISTED = (
    1_000_000  # characters of names that a block lists as left out: it is a line of the log, whose length is bounded
)


def blocks(folder: documents.Folder, known: documents.Known, made: Mapping[str, Made]) -> Iterator[Block]:
    """Blocks of at most 256 files or 8 MB of them; the last ones list what is left out."""
    waiting: list[File] = []
    for file in documents.files(folder, known, made):
        if waiting and (len(waiting) == _FILES or sum(one.size for one in waiting) + file.size > _SIZE):
            yield _files_block(folder, waiting)
            waiting = []
        waiting.append(file)
    if waiting:
        yield _files_block(folder, waiting)
    listed, length = list[dict[str, str]](), 0
    for one in documents.left_out(folder):
        length += len(one["id"]) + 100  # and the reason
        listed.append(one)
        if length >= _LISTED:
            yield _list_block(folder, listed)
            listed, length = [], 0
    if listed:
        yield _list_block(folder, listed)


def _list_block(folder: documents.Folder, listed: list[dict[str, str]]) -> Block:
    tally = Tally(Counter(one["kind"] for one in listed), listed)
    return Block(Documents((), folder.cutting), folder.path, 0, tally=tally)


def _files_block(folder: documents.Folder, files: Sequence[File]) -> Block:
    where = f"{files[0].path}" + (f" and {len(files) - 1} more" if len(files) > 1 else "")
    return Block(Documents(tuple(files), folder.cutting), where, sum(file.size for file in files))
