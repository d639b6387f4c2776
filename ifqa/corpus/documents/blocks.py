"""Blocks of documents: files of a folder that become a shard of passages together."""

from collections.abc import Iterator, Mapping, Sequence

from ifqa.corpus.blocks import Block
from ifqa.corpus.documents import folder as documents
from ifqa.corpus.documents.reading import Documents, File, Made
from ifqa.corpus.wikipedia.dump import Tally

_FILES, _SIZE = 256, 8_000_000  # files in a block, and their bytes


def blocks(folder: documents.Folder, known: documents.Known, made: Mapping[str, Made]) -> Iterator[Block]:
    """Blocks of at most 256 files or 8 MB of them; the last one lists what is left out."""
    waiting: list[File] = []
    for file in documents.files(folder, known, made):
        if waiting and (len(waiting) == _FILES or sum(one.size for one in waiting) + file.size > _SIZE):
            yield _files_block(folder, waiting)
            waiting = []
        waiting.append(file)
    if waiting:
        yield _files_block(folder, waiting)
    counts, bad = documents.left_out(folder)
    if bad:
        yield Block(Documents((), folder.cutting), folder.path, 0, tally=Tally(counts, bad))


def _files_block(folder: documents.Folder, files: Sequence[File]) -> Block:
    where = f"{files[0].path}" + (f" and {len(files) - 1} more" if len(files) > 1 else "")
    return Block(Documents(tuple(files), folder.cutting), where, sum(file.size for file in files))
