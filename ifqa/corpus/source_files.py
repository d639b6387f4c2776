"""The files of a passage source: a file, the fitting files of a folder, or those that a pattern names."""

import re
from collections.abc import Iterator
from pathlib import Path

from ifqa.corpus.wikipedia.articles import article_files, files_below
from ifqa.corpus.wikipedia.published import how_to_get
from ifqa.errors import IfqaError
from ifqa.storage.resources import find_resource

_DUMP = re.compile(r".*\.xml(-p\d+p\d+)?(\.(bz2|gz|xz))?")
_PASSAGES = re.compile(r"[^.].*\.(jsonl|tsv)(\.(bz2|gz|xz))?")


_NONE = {
    "dump": "no dump (.xml, .xml.bz2, .xml.gz or .xml.xz)",
    "articles": "no article file (.jsonl, also .xz, .gz, .bz2; .parquet; WikiExtractor's wiki_00)",
    "passages": "no file of passages (.jsonl or .tsv, also .xz, .gz or .bz2)",
}


def source_files(path: str, kind: str) -> list[Path]:
    """The files of a source of a format ("dump", "articles", "passages"), in the order in which they are read.

    A pattern has `*`, `?` or `[...]` in its names, or `**` for all folders below; a file or folder of that very name goes
    before it. Files of a pattern, of dumps and of passages are ordered by the numbers in their names: part 2 before part 10.

    Raises:
        IfqaError: there is no such file, or the folder or the pattern has none that fits.
    """
    if re.search(r"[*?\[]", path) and not Path(path).exists():
        return _in_order(_matching(path), path, kind)
    place = _find(path)
    if not place.is_dir():
        return [place]
    if kind == "articles":
        return article_files(place)
    if kind == "dump":
        return _in_order((file for file in place.iterdir() if _DUMP.fullmatch(file.name)), path, kind)
    return _in_order((file for file in files_below(place) if _PASSAGES.fullmatch(file.name)), path, kind)


def _matching(pattern: str) -> Iterator[Path]:
    top = Path(Path(pattern).anchor or ".")
    if any("**" in part and part != "**" for part in Path(pattern).parts):  # a ValueError of pathlib up to Python 3.12
        raise IfqaError(f"passage source {pattern!r} is no pattern: wanted * in a name, or ** for all folders below")
    return top.glob(str(Path(pattern).relative_to(top)) if top.anchor else pattern)


def _in_order(found: Iterator[Path], path: str, kind: str) -> list[Path]:
    files = [file for file in found if file.is_file()]
    if not files:
        raise IfqaError(f"passage source not found: {path} holds {_NONE[kind]}; {how_to_get(path)}")
    return sorted(files, key=lambda file: (_numbered(file.name), _numbered(str(file.parent))))


def _numbered(name: str) -> list[tuple[int, str]]:
    return [(len(part), part) for part in re.findall(r"\d+|\D+", name)]


def _find(path: str) -> Path:
    found = find_resource(path) or (Path(path) if Path(path).is_dir() else None)
    if found is None:
        where = "is not there" if Path(path).is_absolute() else f"is not in {Path.cwd()}"
        raise IfqaError(f"passage source not found: {path} {where}; {how_to_get(path)}")
    return found
