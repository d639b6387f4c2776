"""Finds pages that a dump holds twice, and leaves out the copy of the earlier revision.

A dump that is written in parts while its wiki is edited may repeat a page, and so do parts of two
dates in one folder. Passages of both copies would have the same ids, which only shows when all are
written: after 27 million passages of enwiki.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping

from ifqa.corpus.passage_store import hash_id, id_bytes, parse_passage

Repeats = Mapping[
    int, set[tuple[int, int]]
]  # shard -> hash of a page's id, and which of its copies in the shard is left out


def page_revisions(pages: Iterable[tuple[str, int]]) -> bytes:
    """The hash of each page's id and the number of its revision, 8 bytes each, in the order of the
    pages.
    """
    revisions = array("Q")
    for page_id, revision in pages:
        revisions.append(hash_id(id_bytes(page_id)))
        revisions.append(revision)
    return revisions.tobytes()


def find_repeats(shards: Mapping[int, tuple[int, bytes]]) -> Repeats:
    """The copies to leave out: all but the one of the latest revision, or the last one of equal
    revisions.

    `shards` maps a shard to its source, whose pages have ids of their own, and to its
    `page_revisions`.
    """
    import numpy as np

    parts = {
        shard: np.frombuffer(revisions, dtype=np.uint64).reshape(-1, 2)
        for shard, (_, revisions) in shards.items()
    }
    if not parts:
        return {}
    pages = np.concatenate([part[:, 0] for part in parts.values()])
    revisions = np.concatenate([part[:, 1] for part in parts.values()])
    owners = np.concatenate(
        [np.full(len(part), shard, dtype=np.int64) for shard, part in parts.items()]
    )
    sources = np.concatenate(
        [np.full(len(part), shards[shard][0], dtype=np.int64) for shard, part in parts.items()]
    )
    # The copy to keep is the last of its page
    order = np.lexsort((np.arange(len(pages)), revisions, pages, sources))
    same = (pages[order][1:] == pages[order][:-1]) & (sources[order][1:] == sources[order][:-1])
    left_out = set(order[:-1][same].tolist())
    repeats: dict[int, set[tuple[int, int]]] = {}
    if not left_out:
        return repeats
    repeated = set(pages[sorted(left_out)].tolist())
    seen: Counter[tuple[int, int]] = Counter()
    for place in np.flatnonzero(
        np.isin(pages, np.array(sorted(repeated), dtype=np.uint64))
    ).tolist():
        copy = int(owners[place]), int(pages[place])
        if place in left_out:
            repeats.setdefault(copy[0], set()).add((copy[1], seen[copy]))
        seen[copy] += 1
    return repeats


def drop_copies(
    lines: bytes, copies: set[tuple[int, int]], where: str
) -> tuple[bytes, dict[str, str]]:
    """A shard's lines without the passages of some copies, and id and title of the pages that were
    left out.
    """
    kept: list[bytes] = []
    dropped: dict[str, str] = {}
    seen: Counter[int] = Counter()
    for number, line in enumerate(lines.splitlines(keepends=True), start=1):
        passage = parse_passage(line, f"{where}:{number}")
        page_id, _, place = passage.id.rpartition("-")
        page = hash_id(id_bytes(page_id))
        if place == "0":
            seen[page] += 1
        if (page, seen[page] - 1) in copies:
            dropped[page_id] = passage.title
        else:
            kept.append(line)
    return b"".join(kept), dropped
