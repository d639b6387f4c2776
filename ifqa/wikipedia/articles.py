"""Articles that are plain text already: JSON lines as WikiExtractor writes them, parquet files as Hugging Face has them.

Each is an `id`, a `title` and a `text`; other columns are passed over.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from ifqa.errors import IfqaError
from ifqa.files import field, read_jsonl, require, text_field, unicode_text
from ifqa.wikipedia.dump import Page

_ARTICLE_FILE = re.compile(r"[^.].*\.(jsonl(\.(bz2|gz|xz))?|parquet)|wiki_\d+(\.bz2)?")
_COLUMNS = ["id", "title", "text"]
_ROWS = 1000  # of a parquet file, in memory at a time


def article_files(path: Path) -> list[Path]:
    """The file, or the article files of a folder and its subfolders, sorted by path.

    Raises:
        IfqaError: nothing is there, or a folder without article files.
    """
    if not require(path, "articles").is_dir():
        return [path]
    files = sorted(file for file in path.rglob("*") if _ARTICLE_FILE.fullmatch(file.name) and file.is_file())
    if not files:
        raise IfqaError(
            f"{path} holds no article file; wanted .jsonl (also .xz, .gz, .bz2), .parquet, or WikiExtractor's wiki_00"
        )
    return files


def read_articles(file: Path) -> Iterator[tuple[Page, int]]:
    """The articles of a file, each with the number of bytes read so far; an article may be empty, an id a number.

    Raises:
        IfqaError: the file is missing or damaged, or something in it is not an article (named as file:line).
    """
    with open(require(file, "articles"), "rb") as handle:
        if file.suffix == ".parquet":
            records = _rows(file, handle)
        else:
            records = ((number, record, handle.tell()) for number, record in read_jsonl(file, handle))
        for number, record, position in records:
            where = f"{file}:{number}"
            if type(record.get("id")) is int:
                record["id"] = str(record["id"])
            page_id, title = text_field(record, "id", where), text_field(record, "title", where)
            text = unicode_text(field(record, "text", str, where), "text", where)
            if page_id.split() != [page_id]:
                raise IfqaError(f"{where}: id {page_id!r} holds white space; wanted an id without any")
            yield Page(page_id, title, text), position


def _rows(file: Path, handle: IO[bytes]) -> Iterator[tuple[int, dict[str, Any], int]]:
    """Number, values and, by their share of all rows, the bytes read of each row of a parquet file."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ModuleNotFoundError as error:
        raise IfqaError(f"{file}: parquet needs pyarrow; install it with: pip install 'ifqa[parquet]'") from error
    number, size = 0, file.stat().st_size
    try:
        table = ParquetFile(handle)
        if missing := sorted(set(_COLUMNS) - set(table.schema_arrow.names)):
            raise IfqaError(f"{file}: no column {missing[0]!r}; found {', '.join(table.schema_arrow.names)}")
        for batch in table.iter_batches(_ROWS, columns=_COLUMNS, use_threads=False):
            for record in batch.to_pylist():
                number += 1
                yield number, record, size * number // table.metadata.num_rows
    except (ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise IfqaError(f"{file}: not a whole parquet file ({error}); fetch it again") from error
