"""Where passages come from: a dump, articles, ready passages, a benchmark's gold contexts; several make a corpus."""

import hashlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, NotRequired, TypedDict

from pydantic import Field

from ifqa.corpus.blocks import PACKED, Block, BlockSettings, cut
from ifqa.corpus.store import hash_id, id_bytes
from ifqa.corpus.wikipedia import multistream
from ifqa.corpus.wikipedia.articles import article_files, read_articles
from ifqa.corpus.wikipedia.dump import BLOCK, Disambiguation, Tally, parse_pages
from ifqa.corpus.wikipedia.ready import read_passages
from ifqa.corpus.wikipedia.wikitext import Profile
from ifqa.errors import IfqaError, unknown
from ifqa.records import Passage, Question, gold_id, questions_identity
from ifqa.settings import Positive, check_settings, settings_of
from ifqa.storage.files import known_sha256, unpack
from ifqa.storage.resources import find_resource

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class Source(TypedDict):
    """A [[passages.sources]]; settings of the format stand beside these."""

    format: str
    path: NotRequired[str]  # of all but "gold"
    benchmark: NotRequired[str]  # of "gold", and its splits with their questions
    splits: NotRequired[list[str]]
    questions: NotRequired[list[list[Question]]]


Known = Mapping[str, Sequence[int | str]]  # path -> bytes, time of change (ns) and SHA-256 of a file

PIPE = "-"


class Pipe(RawIOBase):
    """Standard input, which can be read only once: so its bytes are counted and hashed on the way."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._digest = hashlib.sha256()
        self.count = 0

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Into the buffer, what comes."""
        room = memoryview(buffer)
        data = self._source.read(len(room))
        room[: len(data)] = data
        self._digest.update(data)
        self.count += len(data)
        return len(data)

    def facts(self) -> tuple[int, int, str]:
        """Bytes so far, 0 and SHA-256, as `file_facts` gives them."""
        return self.count, 0, self._digest.hexdigest()


def something_is_piped_in() -> bool:
    """Whether standard input is there and no terminal."""
    return sys.stdin is not None and not sys.stdin.isatty()


def open_pipe(sources: Sequence[Source]) -> Pipe | None:
    """Standard input, if one of the sources is that.

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
    """MediaWiki pages-articles dumps: .xml, packed with bzip2 (one stream or many), gzip or xz.

    Args:
        path: a file; a folder or a pattern (`enwiki-*.xml-p*.bz2`) for several, in the order of the numbers in their
            names; "-" for standard input.
        profile: "ifqa" for text like that of the IfQA release, "release" for its losses too, "full" for all that is seen.
        disambiguation: "keep" or "drop" disambiguation pages.
        words: white-space words in a passage.
        wrap: whether an article's last passage goes on with the article's start to reach `words`.
        pipe: standard input.
    """
    settings: BlockSettings = {"profile": profile, "disambiguation": disambiguation, "words": words, "wrap": wrap}
    if pipe is not None:
        return _in_turn(BufferedReader(pipe), "standard input", lambda: pipe.count, settings)
    return (block for file in _dump_files(path) for block in _dump_blocks(file, settings))


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
    """Blocks of pages, where only the first byte is known to begin one: unpacked and parsed here, one after the other."""
    tally = Tally()
    with unpack(handle) as xml:
        chunks = iter(lambda: xml.read(BLOCK), b"")
        pages = parse_pages(chunks, where, tally, disambiguation=settings["disambiguation"])
        yield from cut(((page, position()) for page in pages), where, settings, tally)


def articles(
    path: str, words: Positive = 100, wrap: bool = True, share: Annotated[float, Field(gt=0, le=1)] = 1.0
) -> Iterator[Block]:
    """Articles of plain text: JSON lines, WikiExtractor's JSON, parquet; a folder stands for all such files in it.

    Args:
        path: a file or a folder.
        words, wrap: as for `dump`.
        share: of the articles, 0 to 1, for a smaller pool; the hash of its id decides whether an article is in, so a
            larger share holds every smaller one.
    """
    for file in article_files(_find(path)):
        tally = Tally()
        pages = (one for one in read_articles(file, tally) if hash_id(id_bytes(one[0].id)) < share * 2**64)
        yield from cut(pages, str(file), {"words": words, "wrap": wrap}, tally)


def passages(path: str) -> Iterator[Block]:
    """Passages that are cut already: DPR's `psgs_w100.tsv`, or JSON lines of id, contents and perhaps title."""
    file = _passage_file(path)
    yield from cut(read_passages(file), str(file), {})


def gold(benchmark: str, splits: list[str], *, questions: Sequence[Sequence[Question]]) -> Iterator[Block]:
    """The gold passages of a benchmark's splits as they are, each text once, with the title left empty.

    Args:
        benchmark, splits: where the questions are from.
        questions: those of each split, which the caller has from the benchmark.
    """
    texts = dict.fromkeys(text for split in questions for question in split for text in question.gold_passages)
    yield from cut(((Passage(gold_id(text), "", text), 0) for text in texts), f"gold passages of {benchmark}", {})


FORMATS: dict[str, Callable[..., Iterator[Block]]] = {
    "dump": dump,
    "articles": articles,
    "passages": passages,
    "gold": gold,
}


def check(sources: Sequence[Source]) -> None:
    """Refuse sources that cannot be read, before anything is.

    Raises:
        IfqaError: a format or a setting is unknown, what one names is not there, or two are standard input.
    """
    for source in sources:
        _check(source)
    if sum(map(is_pipe, sources)) > 1:
        raise IfqaError('two sources are standard input (path = "-"), which can be read only once; give one of them')


def _check(source: Source) -> None:
    kind = source.get("format", "")
    if not isinstance(kind, str) or kind not in FORMATS:
        raise unknown("format of a passage source", str(kind), FORMATS)
    settings = {key: value for key, value in source.items() if key != "format"}
    check_settings(
        f"setting of a {kind!r} source", FORMATS[kind], settings, given=["pipe", "questions"], beside=["format"]
    )
    files_of(source)


def blocks(source: Source, pipe: Pipe | None = None) -> Iterator[Block]:
    """A source in the pieces its shards are made of."""
    settings = {key: value for key, value in source.items() if key != "format"}
    return FORMATS[source["format"]](**settings, **({"pipe": pipe} if is_pipe(source) else {}))


def is_pipe(source: Source) -> bool:
    """Whether a source is standard input."""
    return source["format"] == "dump" and bool(source["path"] == PIPE)


def files_of(source: Source) -> list[Path]:
    """The files a source is read from, in order (none for `gold`, whose questions are its identity, and for a pipe)."""
    if source["format"] == "gold" or is_pipe(source):
        return []
    if source["format"] == "dump":
        return _dump_files(source["path"])
    path = source["path"]
    return article_files(_find(path)) if source["format"] == "articles" else [_passage_file(path)]


def identify(source: Source, known: Known) -> dict[str, object]:
    """A source's settings and the SHA-256 of what it reads, by which its passages are known, wherever it lies.

    Args:
        source: the source.
        known: path -> [bytes, modified (ns), SHA-256] of files hashed before; hashing 20 GB takes a minute. What came
            by a pipe can only be known so, and is None until it has been read.
    """
    settings = {**settings_of(FORMATS[source["format"]]), **source}
    if source["format"] == "gold":
        return {**settings, "questions": [questions_identity(split) for split in source["questions"]]}
    if is_pipe(source):
        files = [known[PIPE][2] if PIPE in known else None]
    else:
        files = [file_facts(path, known)[2] for path in files_of(source)]
    return {**{key: value for key, value in settings.items() if key != "path"}, "files": files}


def size(sources: Sequence[Source]) -> int | None:
    """Bytes of all that is read; None where a pipe is among it."""
    if any(map(is_pipe, sources)):
        return None
    return sum(path.stat().st_size for source in sources for path in files_of(source))


def facts(sources: Sequence[Source], pipe: Pipe | None) -> dict[str, tuple[int, int, str]]:
    """What `identify` takes as known: path -> bytes, time of change and SHA-256 of all that was read."""
    known = {str(p): file_facts(p, {}) for source in sources for p in files_of(source)}
    return known | ({PIPE: pipe.facts()} if pipe else {})


def file_facts(path: Path, known: Known) -> tuple[int, int, str]:
    """Bytes, time of change (ns) and SHA-256 of a file; not hashed again while the first two are as `known`."""
    stat = path.stat()
    before = known.get(str(path)) if isinstance(known, Mapping) else None
    if before and before[:2] == [stat.st_size, stat.st_mtime_ns]:
        return stat.st_size, stat.st_mtime_ns, str(before[2])
    return stat.st_size, stat.st_mtime_ns, known_sha256(path)


def _dump_files(path: str) -> list[Path]:
    """The file, or those of a folder or of a pattern, by the numbers in their names: part 2 before part 10.

    Raises:
        IfqaError: there is none.
    """
    if re.search(r"[*?\[]", path) and not Path(path).exists():
        top = Path(Path(path).anchor or ".")
        if any("**" in part and part != "**" for part in Path(path).parts):  # pathlib's ValueError, up to Python 3.12
            raise IfqaError(f"passage source {path!r} is no pattern: wanted * in a name, or ** for all folders below")
        found = top.glob(str(Path(path).relative_to(top)) if top.anchor else path)
    elif not _find(path).is_dir():
        return [_find(path)]
    else:
        found = (file for file in _find(path).iterdir() if re.search(r"\.xml(-p\d+p\d+)?(\.(bz2|gz|xz))?$", file.name))
    files = [file for file in found if file.is_file()]
    if not files:
        raise IfqaError(f"passage source not found: {path} holds no dump; wanted .xml, .xml.bz2, .xml.gz or .xml.xz")
    return sorted(files, key=lambda file: (_in_order(file.name), _in_order(str(file.parent))))


def _in_order(name: str) -> list[tuple[int, str]]:
    return [(len(part), part) for part in re.findall(r"\d+|\D+", name)]


def _passage_file(path: str) -> Path:
    if (file := _find(path)).is_dir():
        raise IfqaError(f"passage source {path} is a folder; wanted a file, psgs_w100.tsv or JSON lines")
    return file


def _find(path: str) -> Path:
    found = find_resource(path) or (Path(path) if Path(path).is_dir() else None)
    if found is None:
        raise IfqaError(
            f"passage source not found: {path} is not in {Path.cwd()}; put it there or name another in the corpus file"
        )
    return found
