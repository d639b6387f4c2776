"""Reads articles of plain text: JSON lines as WikiExtractor writes them, parquet files as on Hugging Face.

Each article has an `id`, a `title` and a `text`; other columns are ignored.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import IO

from ifqa.corpus.wikipedia.dump import LONGEST, Page
from ifqa.corpus.work_units import Tally
from ifqa.errors import IfqaError
from ifqa.storage.files import field, read_jsonl, require, text_field, unicode_text

_COLUMNS = ["id", "title", "text"]
_ROWS = 10  # rows of a parquet file in memory: a text that the file has once may be in all rows
_ROWS_SIZE = 1 << 28  # bytes of these rows; ten articles at MediaWiki's limit are 20 MB


def read_articles(file: Path, tally: Tally | None = None) -> Iterator[tuple[Page, int]]:
    """The articles of a file, each with the number of bytes read so far; an article may be empty, an id a number.

    An article without usable id, title or text, or of more than 16 million characters, is left out. `tally` counts it
    and lists its place in the file.

    Raises:
        IfqaError: the file is missing, empty or damaged, or its records are not of id, title and text.
    """
    tally = tally or Tally()
    if not require(file, "articles").stat().st_size:
        raise IfqaError(f"{file} is empty; fetch it again, or remove it")
    with open(file, "rb") as handle:
        if file.suffix == ".parquet":
            records = _rows(file, handle)
        else:
            records = ((number, record, handle.tell()) for number, record in read_jsonl(file, handle))
        for number, record, position in records:
            where = f"{file}:{number}"
            for key in _COLUMNS:
                if key not in record:
                    raise IfqaError(
                        f"{where}: key {key!r} is missing; found {', '.join(map(repr, record)) or 'no keys'}"
                    )
            try:
                page = _page(record, where)
            except IfqaError as error:
                tally.left_out["bad"] += 1
                title = str(record["title"]).encode("utf-8", "replace").decode()
                tally.note(str(record["id"])[:100], title[:200], str(error))
            else:
                yield page, position


def _page(record: dict[str, object], where: str) -> Page:
    if type(record["id"]) is int:
        record["id"] = str(record["id"])
    page_id, title = text_field(record, "id", where), text_field(record, "title", where)
    text = unicode_text(field(record, "text", str, where), "text", where)
    if page_id.split() != [page_id]:
        raise IfqaError(f"{where}: id {page_id!r} holds white space; wanted an id without any")
    if len(text) > LONGEST:
        raise IfqaError(f"{where}: a text of more than {LONGEST:,} characters")
    return Page(page_id, title, text)


def _rows(file: Path, handle: IO[bytes]) -> Iterator[tuple[int, dict[str, object], int]]:
    """Number and values of each row of a parquet file, and the bytes read, estimated from the share of rows."""
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
            if batch.nbytes > _ROWS_SIZE:
                rows = f"{file}:{number + 1}: {len(batch)} rows of {batch.nbytes:,} bytes"
                raise IfqaError(f"{rows}; wanted one article a row, of a few MB at most")
            for record in batch.to_pylist():
                number += 1
                yield number, record, size * number // table.metadata.num_rows
    except (ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise IfqaError(f"{file}: not a whole parquet file ({error}); fetch it again") from error
