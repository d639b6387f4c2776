"""Sources of passages: MediaWiki dumps, articles, a user's documents, passages cut already, and a benchmark's gold passages."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import BufferedReader
from pathlib import Path
from typing import Annotated, Any, NotRequired, TypedDict

from pydantic import Field

from ifqa.corpus.blocks import PACKED, Block, BlockSettings, cut
from ifqa.corpus.documents import folder as documents_of
from ifqa.corpus.documents.blocks import blocks as document_blocks
from ifqa.corpus.documents.reading import Made
from ifqa.corpus.pipe import Pipe, something_is_piped_in
from ifqa.corpus.source_files import source_files
from ifqa.corpus.store import hash_id, id_bytes
from ifqa.corpus.wikipedia import multistream, wikitext
from ifqa.corpus.wikipedia.articles import read_articles
from ifqa.corpus.wikipedia.dump import BLOCK, Disambiguation, Tally, parse_pages
from ifqa.corpus.wikipedia.ready import read_passages
from ifqa.corpus.wikipedia.wikitext import Profile
from ifqa.errors import IfqaError, unknown
from ifqa.identities import gold_id, questions_identity
from ifqa.records import Passage, Question
from ifqa.settings import Positive, check_settings, settings_of
from ifqa.storage.files import cached_sha256, unpack


class Source(TypedDict):
    """A table [[passages.sources]] of a corpus file; the keyword arguments of its format stand beside these keys."""

    format: str
    path: NotRequired[str]  # every format but "gold"
    benchmark: NotRequired[str]  # "gold" alone has this key and the next two
    splits: NotRequired[list[str]]
    questions: NotRequired[list[list[Question]]]  # of each split; filled in by the pipeline


Known = Mapping[str, Sequence[int | str]]  # path -> bytes, time of change (ns) and SHA-256 of a file
PIPE = "-"
_SMALL = 64_000_000  # bytes: a source of at most this size is hashed by every command, like a small artifact


def open_pipe(sources: Sequence[Source]) -> Pipe | None:
    """Standard input if a source reads it, else None.

    Raises:
        IfqaError: nothing is piped in.
    """
    if not any(map(is_pipe, sources)):
        return None
    if not something_is_piped_in():
        raise IfqaError('path = "-": nothing is piped in; wanted something like: bzcat DUMP | ifqa passages CORPUS')
    return Pipe(sys.stdin.buffer)


def dump(
    path: str,
    profile: Profile = "ifqa",
    disambiguation: Disambiguation = "keep",
    words: Positive = 100,
    wrap: bool = True,
    *,
    pipe: Pipe | None = None,
) -> Iterator[Block]:
    """Read MediaWiki pages-articles dumps: .xml, plain or packed with bzip2 (one stream or many), gzip or xz.

    Args:
        path: a file; a folder or a pattern (`enwiki-*.xml-p*.bz2`) for several files, read in the order of the numbers
            in their names; "-" for standard input.
        profile: "ifqa" gives text like that of the IfQA release, "release" also repeats the release's losses.
        disambiguation: "keep" or "drop" disambiguation pages.
        words: words of a passage, split at white space.
        wrap: fill an article's last passage up to `words` with the article's first words.
        pipe: standard input, if `path` is "-".
    """
    settings: BlockSettings = {"profile": profile, "disambiguation": disambiguation, "words": words, "wrap": wrap}
    settings["text"] = wikitext.VERSION
    if pipe is not None:
        return _in_turn(BufferedReader(pipe), "standard input", lambda: pipe.count, settings)
    return (block for file in source_files(path, "dump") for block in _dump_blocks(file, settings))


def _dump_blocks(file: Path, settings: BlockSettings) -> Iterator[Block]:
    header = multistream.header(file)
    if header is not None:
        for streams in multistream.cut(file, header, PACKED):
            yield Block(streams, streams.where, len(streams.data), settings)
    else:
        with open(file, "rb") as handle:
            yield from _in_turn(handle, str(file), handle.tell, settings)


def _in_turn(
    handle: BufferedReader, where: str, position: Callable[[], int], settings: BlockSettings
) -> Iterator[Block]:
    """Blocks of a dump that can only be read from its first byte on: this process unpacks and parses it."""
    tally = Tally()
    with unpack(handle) as xml:
        chunks = iter(lambda: xml.read(BLOCK), b"")
        pages = parse_pages(chunks, where, tally, disambiguation=settings["disambiguation"])
        yield from cut(((page, position()) for page in pages), where, settings, tally)


def articles(
    path: str, words: Positive = 100, wrap: bool = True, share: Annotated[float, Field(gt=0, le=1)] = 1.0
) -> Iterator[Block]:
    """Read articles of plain text: JSON lines, WikiExtractor's JSON, or parquet.

    Args:
        path: a file; a folder, whose subfolders are read too, or a pattern for several files.
        words, wrap: as for `dump`.
        share: fraction of the articles to keep, above 0 and up to 1. The hash of its id decides whether an article is
            kept, so a larger share contains every smaller share.
    """
    for file in source_files(path, "articles"):
        tally = Tally()
        pages = (one for one in read_articles(file, tally) if hash_id(id_bytes(one[0].id)) < share * 2**64)
        yield from cut(pages, str(file), {"words": words, "wrap": wrap}, tally)


def passages(path: str) -> Iterator[Block]:
    """Read passages that are cut already: DPR's `psgs_w100.tsv`, or JSON lines of id, contents and optionally title.

    Args:
        path: a file; a folder, whose subfolders are read too, or a pattern for several files, in the order of the numbers
            in their names.
    """
    for file in source_files(path, "passages"):
        yield from cut(read_passages(file), str(file), {})


def gold(benchmark: str, splits: list[str], *, questions: Sequence[Sequence[Question]]) -> Iterator[Block]:
    """Take the gold passages of a benchmark's splits unchanged, each text once, with an empty title.

    Args:
        benchmark, splits: where the questions come from.
        questions: the questions of each split, read by the caller.
    """
    texts = dict.fromkeys(text for split in questions for question in split for text in question.gold_passages)
    yield from cut(((Passage(gold_id(text), "", text), 0) for text in texts), f"gold passages of {benchmark}", {})


#: Format -> the function whose arguments are its settings. That of documents gives their folder, the others give blocks.
FORMATS: dict[str, Callable[..., Any]] = {
    "dump": dump,
    "articles": articles,
    "documents": documents_of.folder,
    "passages": passages,
    "gold": gold,
}


def check(sources: Sequence[Source]) -> None:
    """Refuse sources that cannot be read, before any work is done.

    Raises:
        IfqaError: a format or a setting is unknown, a file is missing, or two sources are standard input.
    """
    for source in sources:
        _check(source)
    if sum(map(is_pipe, sources)) > 1:
        raise IfqaError('two sources are standard input (path = "-"), which can be read only once; keep one of them')


def _check(source: Source) -> None:
    kind = source.get("format", "")
    if not isinstance(kind, str) or kind not in FORMATS:
        raise unknown("format of a passage source", str(kind), FORMATS)
    settings = {key: value for key, value in source.items() if key != "format"}
    check_settings(
        f"setting of a {kind!r} source", FORMATS[kind], settings, given=["pipe", "questions"], beside=["format"]
    )
    if source["format"] == "documents":
        documents_of.check(folder_of(source))
    files_of(source)


def blocks(
    source: Source, pipe: Pipe | None = None, known: Known | None = None, made: Mapping[str, Made] | None = None
) -> Iterator[Block]:
    """The blocks of a source; each becomes a shard of passages.

    Args:
        source: the source.
        pipe: standard input, if the source is that.
        known, made: of a source of documents, the files of an earlier build, and their passages that can be used again.
    """
    if source["format"] == "documents":
        return document_blocks(folder_of(source), known or {}, made or {})
    settings = {key: value for key, value in source.items() if key != "format"}
    found: Iterator[Block] = FORMATS[source["format"]](**settings, **({"pipe": pipe} if is_pipe(source) else {}))
    return found


def folder_of(source: Source) -> documents_of.Folder:
    """The folder of a source of documents."""
    return documents_of.folder(**{key: value for key, value in source.items() if key != "format"})  # type: ignore[arg-type]


def is_pipe(source: Source) -> bool:
    """Whether a source is standard input."""
    return source["format"] == "dump" and bool(source["path"] == PIPE)


def files_of(source: Source) -> list[Path]:
    """The files of a source in the order they are read; none for `gold` and for a pipe, and for documents, which have many."""
    if source["format"] in ("gold", "documents") or is_pipe(source):
        return []
    return source_files(source["path"], source["format"])


def identify(source: Source, known: Known) -> dict[str, object]:
    """A source's settings and the SHA-256 of its files: its identity, which does not depend on where the files are.

    Args:
        source: the source.
        known: path -> [bytes, modified (ns), SHA-256] of files hashed before. Only sources over 64 MB use it: hashing
            20 GB takes a minute; and documents, by the key of a file. A pipe's hash is known only from here, and None until
            the pipe has been read.
    """
    settings = {**settings_of(FORMATS[source["format"]]), **source}
    if source["format"] == "dump":
        settings["text"] = wikitext.VERSION
    if source["format"] == "gold":
        return {**settings, "questions": [questions_identity(split) for split in source["questions"]]}
    files: list[int | str | None]
    if source["format"] == "documents":
        files = [documents_of.identity(folder_of(source), known)]
    elif is_pipe(source):
        files = [known[PIPE][2] if PIPE in known else None]
    else:
        paths = files_of(source)
        known = {} if sum(path.stat().st_size for path in paths) <= _SMALL else known
        files = [file_facts(path, known)[2] for path in paths]
    return {**{key: value for key, value in settings.items() if key != "path"}, "files": files}


def size(sources: Sequence[Source]) -> int | None:
    """Bytes of all files of the sources; None if a source is a pipe."""
    if any(map(is_pipe, sources)):
        return None
    folders = [folder_of(source) for source in sources if source["format"] == "documents"]
    several = sum(path.stat().st_size for source in sources for path in files_of(source))
    return several + sum(map(documents_of.size, folders))


def facts(sources: Sequence[Source], pipe: Pipe | None) -> dict[str, tuple[int, int, str]]:
    """Path -> bytes, time of change (ns) and SHA-256 of every file that was read: what `identify` takes as known."""
    known = {str(p): file_facts(p, {}) for source in sources for p in files_of(source)}
    return known | ({PIPE: pipe.facts()} if pipe else {})


def file_facts(path: Path, known: Known) -> tuple[int, int, str]:
    """Bytes, time of change (ns) and SHA-256 of a file; the hash is taken from `known` if the first two are equal."""
    stat = path.stat()
    before = known.get(str(path)) if isinstance(known, Mapping) else None
    if before and before[:2] == [stat.st_size, stat.st_mtime_ns]:
        return stat.st_size, stat.st_mtime_ns, str(before[2])
    return stat.st_size, stat.st_mtime_ns, cached_sha256(path)
