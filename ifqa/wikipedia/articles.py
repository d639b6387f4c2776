"""Articles that are plain text already: JSON lines of `id`, `title` and `text`, as WikiExtractor writes them."""

from collections.abc import Iterator
from pathlib import Path

from ifqa.errors import IfqaError
from ifqa.files import field, read_jsonl, require, text_field, unicode_text
from ifqa.wikipedia.dump import Page


def read_articles(path: Path) -> Iterator[Page]:
    """The articles of a `.jsonl` file (also .bz2, .gz, .xz), or of all such files in a folder, sorted by name.

    An article may be empty; a number is taken as an id.

    Raises:
        IfqaError: nothing is there, or a line is not an article (named as file:line).
    """
    for file in article_files(path):
        for number, record in read_jsonl(file):
            where = f"{file}:{number}"
            if type(record.get("id")) is int:
                record["id"] = str(record["id"])
            page_id, title = text_field(record, "id", where), text_field(record, "title", where)
            text = unicode_text(field(record, "text", str, where), "text", where)
            if page_id.split() != [page_id]:
                raise IfqaError(f"{where}: id {page_id!r} holds white space; wanted an id without any")
            yield Page(page_id, title, text)


def article_files(path: Path) -> list[Path]:
    """The files that `read_articles` reads, in its order.

    Raises:
        IfqaError: nothing is there, or a folder without article files.
    """
    if not require(path, "articles").is_dir():
        return [path]
    files = sorted(file for file in path.glob("*.jsonl*") if file.suffix in {".jsonl", ".bz2", ".gz", ".xz"})
    if not files:
        raise IfqaError(f"{path} holds no .jsonl file; wanted article files (.jsonl, .jsonl.xz, .jsonl.gz, .jsonl.bz2)")
    return files
