"""Time and memory to read documents of 1 to 32 MB of each kind, and hostile archives and PDFs.

    python bench/growth.py [--largest 32] [--kinds rows.csv,prose.html] [--hostile]

Each file is read in its own process, as `ifqa` reads documents. Seconds are CPU seconds, with the start of the process; a ratio
is to the seconds of half the size.
"""

import argparse
import io
import json
import random
import threading
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

from ifqa.corpus.documents.decoding import UnreadableFile
from ifqa.corpus.documents.readers import Chunking, read_request
from ifqa.corpus.documents.worker import Worker

WORDS = "lamp keeper harbour in the of rope storm. Night grain 1901 said".split()
WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def prose(size: int) -> str:
    drawn = random.Random(0)
    return "\n".join(" ".join(drawn.choices(WORDS, k=12)) for _ in range(size // 65))


def log(size: int) -> str:
    return "\n".join(f"2026-01-01 12:00:{n % 60:02d} INFO worker[{n}] took {n % 97} ms" for n in range(size // 46))


def table(size: int) -> str:
    return "a,b,c\n" + "\n".join(f"{n},lamp {n % 7},keeper of {n}" for n in range(size // 28))


def wide_table(size: int) -> str:
    return "\n".join(["a,b", *(f'{n},"{prose(1_000_000)}"' for n in range(max(size // 1_000_000, 1)))])


def objects(size: int) -> str:
    return "\n".join(json.dumps({"key" * 60: n, "text": "the lamp of the keeper"}) for n in range(size // 230))


KINDS: dict[str, Callable[[int], str]] = {
    "prose.txt": prose,
    "words.txt": lambda size: "lamp " * (size // 5),
    "lines.log": log,
    "prose.md": lambda size: "# T\n\n" + prose(size).replace("storm.\n", "storm.\n\n"),
    "headings.md": lambda size: "# x\n" * (size // 4),
    "bars.md": lambda size: "|" * size,
    "prose.rst": prose,
    "headings.rst": lambda size: "x\n===\n\n" * (size // 7),
    "prose.html": lambda size: "<p>" + prose(size).replace("\n", "</p>\n<p>"),
    "headings.html": lambda size: "<h2>x</h2><p>The lamp.</p>" * (size // 27),
    "nested.html": lambda size: "<div>" * (size // 5) + "x",
    "rows.csv": table,
    "wide.csv": wide_table,
    "keys.jsonl": objects,
}


def word(text: str, packing: int = zipfile.ZIP_DEFLATED, before: str = "", encoding: str = "utf-8") -> bytes:
    buffer = io.BytesIO()
    body = f"{before}<w:document {WORD}><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:document>"
    with zipfile.ZipFile(buffer, "w", packing) as archive:
        archive.writestr("word/document.xml", f'<?xml version="1.0" encoding="{encoding}"?>{body}'.encode(encoding))
    return buffer.getvalue()


def entities(levels: int) -> str:
    """Nested entities: each level has ten times as many characters."""
    lines = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, levels))
    return f'<!DOCTYPE x [<!ENTITY e0 "lamp">{lines}]>'


def pdf(repeats: int, pages: int) -> bytes:
    """A PDF whose pages share one compressed text."""
    stream = zlib.compress(b"BT /F1 1 Tf 60 780 Td " + b"(The lamp of the keeper) Tj 0 -1 Td " * repeats + b"ET", 9)
    kids = " ".join(f"{n} 0 R" for n in range(5, 5 + pages))
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 842] /Contents 4 0 R /Resources << /Font << /F1 3 0 R >> >> >>"
    objects_ = [
        b"<< /Type /Catalog /Pages 2 0 R >>", f"<< /Type /Pages /Count {pages} /Kids [{kids}] >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(stream), stream),
        *[page] * pages,
    ]  # fmt: skip
    bodies = b"".join(b"%d 0 obj\n%s\nendobj\n" % (n, body) for n, body in enumerate(objects_, start=1))
    return b"%%PDF-1.4\n%btrailer\n<< /Size %d /Root 1 0 R >>\n%%%%EOF\n" % (bodies, len(objects_) + 1)


HOSTILE: dict[str, Callable[[], bytes]] = {
    "bzip2.docx": lambda: word("a" * 500_000_000, zipfile.ZIP_BZIP2),
    "deflate.docx": lambda: word("a" * 500_000_000),
    "entities.docx": lambda: word("&e8;", before=entities(9)),
    "utf-16.docx": lambda: word("&e8;", before=entities(9), encoding="utf-16"),
    "text.pdf": lambda: pdf(2_000_000, 1),
    "pages.pdf": lambda: pdf(20_000, 1_000),
}


def measure(name: str, content: bytes) -> tuple[float, int, str]:
    """CPU seconds, peak memory of the process in MB, and the number of passages or the error."""
    worker = Worker(f"{read_request.__module__}:{read_request.__name__}")
    before = getrusage(RUSAGE_CHILDREN)
    peak, done = 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.02):
            with suppress(OSError, AttributeError, IndexError):  # it has not started, or has ended
                status = Path(f"/proc/{worker._process.pid}/status").read_text()  # type: ignore[union-attr]
                peak = int(status.partition("VmHWM:")[2].split()[0]) // 1024

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        facts, _ = worker.read({"name": name, "suffix": Path(name).suffix, **vars(Chunking())}, content)
        outcome = f"{facts['passages']:,} passages"
    except UnreadableFile as error:
        outcome = str(error)
    worker.close()
    done.set()
    watching.join()
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, peak, outcome


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=int, default=32, help="MB")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--hostile", action="store_true", help="only the hostile files")
    arguments = parser.parse_args()
    if arguments.hostile:
        for name, make in HOSTILE.items():
            content = make()
            seconds, peak, outcome = measure(name, content)
            print(f"{name}: {len(content):,} bytes, {seconds:.1f} s, {peak or '?'} MB: {outcome[:120]}", flush=True)
        return
    for name in arguments.kinds.split(","):
        size, before, parts = 1, 0.0, list[str]()
        while size <= arguments.largest:
            seconds, peak, outcome = measure(name, KINDS[name](size * 1_000_000).encode())
            ratio = f" x{seconds / before:.1f}" if before else ""
            parts.append(f"{size} MB {seconds:.1f} s{ratio}")
            size, before = size * 2, seconds
        print(f"{name}: {', '.join(parts)}; {peak or '?'} MB at the largest; {outcome}", flush=True)


if __name__ == "__main__":
    main()
