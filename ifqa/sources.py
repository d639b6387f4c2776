"""Where passages come from: a dump, article JSON lines, a benchmark's gold contexts; several together make a corpus."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

from ifqa.artifacts import identity
from ifqa.errors import IfqaError
from ifqa.files import find_resource, sha256
from ifqa.plugins import check_settings, load, settings_of, unknown
from ifqa.records import Passage, Question, gold_id
from ifqa.wikipedia.articles import article_files, read_articles
from ifqa.wikipedia.dump import Disambiguation, Page, read_pages
from ifqa.wikipedia.splitter import split
from ifqa.wikipedia.wikitext import to_text

Source = Mapping[str, Any]


def dump(
    path: str, disambiguation: Disambiguation = "keep", words: int = 100, wrap: bool = True, *, left_out: Counter[str]
) -> Iterator[list[Passage]]:
    """The passages of each article of a MediaWiki pages-articles dump (.xml, .bz2, .gz, .xz).

    Args:
        path: the dump file.
        disambiguation: "keep" or "drop" disambiguation pages.
        words: white-space words in a passage.
        wrap: whether an article's last passage goes on with the article's start to reach `words`.
        left_out: counts what is passed over, by reason.
    """
    for page in read_pages(_find(path), disambiguation=disambiguation, left_out=left_out):
        yield _passages(Page(page.id, page.title, to_text(page.text)), words, wrap)


def articles(path: str, words: int = 100, wrap: bool = True, *, left_out: Counter[str]) -> Iterator[list[Passage]]:
    """The passages of each article of JSON lines with `id`, `title` and plain `text`; a folder stands for all in it."""
    for page in read_articles(_find(path)):
        yield _passages(page, words, wrap)


def gold(benchmark: str, splits: list[str], *, left_out: Counter[str]) -> Iterator[list[Passage]]:
    """The gold passages of a benchmark's splits as they are, each text once, with the title left empty."""
    seen: set[str] = set()
    for question in (question for part in splits for question in load("benchmark", benchmark)().questions(part)):
        new = [text for text in question.gold_passages if text not in seen]
        seen.update(new)
        yield [Passage(gold_id(text), "", text) for text in dict.fromkeys(new)]


FORMATS: dict[str, Callable[..., Iterator[list[Passage]]]] = {"dump": dump, "articles": articles, "gold": gold}


def check(source: Source) -> None:
    """Refuse a source that cannot be read, before anything is.

    Raises:
        IfqaError: its format or a setting is unknown, or what it names is not there.
    """
    kind = source.get("format", "")
    if not isinstance(kind, str) or kind not in FORMATS:
        raise unknown("format of a passage source", str(kind), FORMATS)
    settings = {key: value for key, value in source.items() if key != "format"}
    check_settings(f"setting of a {kind!r} source", FORMATS[kind], settings, given=["left_out"])
    if source.get("words", 1) < 1:
        raise IfqaError(f"setting of a {kind!r} source 'words': wanted at least 1, found {source['words']}")
    if source.get("disambiguation", "keep") not in get_args(Disambiguation):
        raise unknown(
            f"setting of a {kind!r} source 'disambiguation'", str(source["disambiguation"]), get_args(Disambiguation)
        )
    if kind == "gold":
        if not isinstance(source["splits"], list) or not all(isinstance(part, str) for part in source["splits"]):
            raise IfqaError(f"setting of a 'gold' source 'splits': wanted a list of names, found {source['splits']!r}")
        for part in source["splits"]:
            load("benchmark", source["benchmark"])().path(part)
    else:
        files_of(source)


def read(source: Source, left_out: Counter[str]) -> Iterator[list[Passage]]:
    """The passages of a source, a list for each article or question."""
    return FORMATS[source["format"]](
        **{key: value for key, value in source.items() if key != "format"}, left_out=left_out
    )


def files_of(source: Source) -> list[Path]:
    """The files a source is read from, in order (none for `gold`, whose questions are its identity)."""
    if source["format"] == "gold":
        return []
    path = _find(source["path"])
    return article_files(path) if source["format"] == "articles" else [path]


def identify(source: Source, known: Mapping[str, Any]) -> dict[str, Any]:
    """A source's settings and the SHA-256 of what it reads, by which its passages are known.

    Args:
        source: the source.
        known: path -> [bytes, modified (ns), SHA-256] of files hashed before; hashing 20 GB takes a minute.
    """
    source = settings_of(FORMATS[source["format"]]) | dict(source)
    if source["format"] == "gold":
        benchmark = load("benchmark", source["benchmark"])()
        return {**source, "questions": [questions_identity(benchmark.questions(part)) for part in source["splits"]]}
    return {**source, "files": {path.name: file_facts(path, known)[2] for path in files_of(source)}}


def file_facts(path: Path, known: Mapping[str, Any]) -> tuple[int, int, str]:
    """Bytes, time of change (ns) and SHA-256 of a file; not hashed again while the first two are as `known`."""
    stat = path.stat()
    before = known.get(str(path)) if isinstance(known, Mapping) else None
    if before and before[:2] == [stat.st_size, stat.st_mtime_ns]:
        return stat.st_size, stat.st_mtime_ns, str(before[2])
    return stat.st_size, stat.st_mtime_ns, sha256(path)


def questions_identity(questions: list[Question]) -> str:
    """SHA-256 over everything the questions hold."""
    return identity({"questions": [asdict(question) for question in questions]})


def _find(path: str) -> Path:
    found = find_resource(path) or (Path(path) if Path(path).is_dir() else None)
    if found is None:
        raise IfqaError(
            f"passage source not found: {path} is not in {Path.cwd()}; put it there or name another in the corpus file"
        )
    return found


def _passages(page: Page, words: int, wrap: bool) -> list[Passage]:
    return [
        Passage(f"{page.id}-{n}", page.title, text) for n, text in enumerate(split(page.text, words=words, wrap=wrap))
    ]
