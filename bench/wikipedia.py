"""Measures the passage builder: markup left in the text, speed and memory.

    pip install mwparserfromhell
    python bench/wikipedia.py text    DUMP [MORE.xml ...]
    python bench/wikipedia.py speed   DUMP [MORE.xml ...] --copies 20
    python bench/wikipedia.py workers DUMP --copies 100
    python bench/wikipedia.py memory  DUMP --copies 330

`text` counts markup and numbers in the text. `speed` measures CPU seconds of all processes for a
multistream dump of copies of DUMP's pages with new page ids: `ifqa passages` from start to finished
folder, and mwparserfromhell's strip_code over the same pages, decompressed, parsed and split by
ifqa. `workers` measures wall time of one and two processes. `memory` measures the peak of all
processes, for 1 and `--copies` copies of DUMP. `peers.py` compares with WikiExtractor.
"""

import argparse
import bz2
import html
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing import Pool
from pathlib import Path

from ifqa.corpus.wikipedia.dump import Page, parse_pages
from ifqa.corpus.wikipedia.source import split_article
from ifqa.corpus.wikipedia.wikitext import Profile, to_text
from ifqa.corpus.work_units import SkippedPages
from ifqa.storage.files import unpack

MARKS = ["{{", "}}", "[[", "]]", "<ref", "{|", "|-", "'''", "style=", "File:", "&nbsp;", "&amp;"]
ENWIKI = 20e9  # bytes of enwiki-20220501-pages-articles-multistream.xml.bz2, about
PROFILES: tuple[Profile, ...] = ("release", "ifqa")


def pages_of(path: Path) -> Iterator[Page]:
    with path.open("rb") as handle, unpack(handle) as xml:
        yield from parse_pages(iter(lambda: xml.read(1 << 18), b""), str(path), SkippedPages())


def tokens(text: str) -> list[str]:
    return re.findall(r"\w+", html.unescape(text).lower())


def text(files: list[Path]) -> None:
    # A page may be in two files
    pages = list({page.id: page for file in files for page in pages_of(file)}.values())
    texts = {
        profile: {page.id: to_text(page.text, profile) for page in pages} for profile in PROFILES
    }
    for profile, text in texts.items():
        whole = "\n".join(text.values())
        words = len(whole.split())
        marks = {mark: count for mark in MARKS if (count := whole.count(mark))}
        share = sum(marks.values()) / words * 1e4
        numbers = sum(any(map(str.isdigit, token)) for token in tokens(whole))
        print(f"{profile}: {numbers:,} tokens with a digit")
        print(
            f"{profile}: {len(pages)} pages, {words:,} words, {share:.2f} marks of markup in "
            f"10,000 {marks or ''}"
        )


def copies_of(paths: Sequence[Path], copies: int, out: Path) -> tuple[Path, float]:
    """Write a multistream dump with copies of real dumps' pages, each copy with new ids.

    Returns its path and MB of XML.
    """
    dumps = [
        bz2.decompress(path.read_bytes()) if path.suffix == ".bz2" else path.read_bytes()
        for path in paths
    ]
    pages = [page for xml in dumps for page in re.findall(rb"  <page>.*?</page>\n", xml, re.DOTALL)]
    # With the first dump's description of its wiki, which WikiExtractor needs
    header = dumps[0][: dumps[0].index(b"  <page>")]
    with out.open("wb") as handle, Pool() as pool:
        handle.write(bz2.compress(header))
        for streams in pool.imap(
            _copy, ((pages, copy * (len(pages) + 100)) for copy in range(copies))
        ):
            handle.write(streams)
        handle.write(bz2.compress(b"</mediawiki>\n"))
    return out, sum(map(len, pages)) * copies / 1e6


def _copy(task: tuple[list[bytes], int]) -> bytes:
    pages, offset = task
    numbered = enumerate(pages, start=offset + 1)
    renamed = [
        re.sub(rb"<id>\d+</id>", b"<id>%d</id>" % number, page, count=1)
        for number, page in numbered
    ]
    return b"".join(
        bz2.compress(b"".join(renamed[at : at + 100])) for at in range(0, len(renamed), 100)
    )


def ifqa_command(folder: Path, dump: Path, profile: str, workers: int) -> list[str]:
    name = f"{profile}-{workers}"
    (folder / "indexes").mkdir(exist_ok=True)
    subprocess.run(["rm", "-rf", str(folder / "indexes" / name)], check=True)
    source = f'[[passages.sources]]\nformat = "dump"\npath = "{dump}"\nprofile = "{profile}"\n'
    (folder / f"indexes/{name}.toml").write_text(source)
    return [sys.executable, "-m", "ifqa", "passages", name, "--workers", str(workers)]


def cost(command: list[str], folder: Path) -> tuple[float, float]:
    """CPU seconds of a command and its children, and its wall time in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    subprocess.run(command, check=True, capture_output=True, cwd=folder, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (
        after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        time.monotonic() - began,
    )


def speed(dump: Path, megabytes: float, folder: Path, rounds: int) -> None:
    commands: dict[str, list[str]] = {
        profile: ifqa_command(folder, dump, profile, 1) for profile in PROFILES
    }
    commands["mwparserfromhell"] = [sys.executable, __file__, "strip_code", str(dump)]
    script = f"import bz2; h = bz2.open({str(dump)!r})\nwhile h.read(1 << 20): pass"
    commands["bz2 alone"] = [sys.executable, "-c", script]
    least = dict.fromkeys(commands, float("inf"))
    for round_ in range(rounds):
        for name, command in commands.items():
            if name == "mwparserfromhell" and round_:
                continue
            if name in PROFILES:
                ifqa_command(folder, dump, name, 1)
            least[name] = min(least[name], cost(command, folder)[0])
    rates = {name: megabytes / seconds for name, seconds in least.items()}
    for name, rate in rates.items():
        ratio = f"{rate / rates['mwparserfromhell']:5.2f} x mwparserfromhell"
        print(f"{name:17} {rate:6.2f} MB of XML a CPU second; {ratio}")
    for profile in PROFILES:
        minutes = least[profile] * ENWIKI / dump.stat().st_size / 16 / 60
        print(
            f"{profile}: all of enwiki (20 GB) in about {minutes:.0f} minutes of 16 such "
            "cores, if its pages are alike"
        )


def strip_code(dump: Path) -> None:
    import mwparserfromhell

    for page in pages_of(dump):
        split_article(mwparserfromhell.parse(page.text).strip_code())


def two_workers(dump: Path, folder: Path, rounds: int) -> None:
    for profile in PROFILES:
        walls: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(rounds):
            for workers in walls:
                walls[workers].append(cost(ifqa_command(folder, dump, profile, workers), folder)[1])
        one_process = min(walls[1])
        two = min(walls[2])
        print(
            f"{profile}: one process {one_process:.1f} s, two {two:.1f} s: "
            f"{one_process / two:.2f} x"
        )


def memory(dumps: list[tuple[Path, float]], folder: Path) -> None:
    for dump, megabytes in dumps:
        command = ifqa_command(folder, dump, "ifqa", 2)
        environment = {
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parents[1]),
            "IFQA_MEMORY_TEST": str(dump),
        }
        null = subprocess.DEVNULL
        child = subprocess.Popen(command, cwd=folder, env=environment, stdout=null, stderr=null)
        peak, process_peak = 0, 0
        while child.poll() is None:
            sizes = resident(f"IFQA_MEMORY_TEST={dump}".encode())
            peak = max(peak, sum(sizes))
            process_peak = max(process_peak, *sizes, 0)
            time.sleep(0.02)
        in_all = f"at most {peak / 1e6:.0f} MB in all processes together"
        print(f"{megabytes:7.1f} MB of XML: {in_all}, {process_peak / 1e6:.0f} MB in one")


def resident(mark: bytes) -> list[int]:
    """Resident bytes of each process that has the mark in its environment."""
    sizes = []
    for process in Path("/proc").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            if process.name.isdigit() and mark in (process / "environ").read_bytes().split(b"\0"):
                sizes.append(
                    int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
                )
    return sizes


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=["text", "speed", "workers", "memory", "strip_code"])
    parser.add_argument("dumps", nargs="+", type=Path)
    parser.add_argument("--copies", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    dumps = arguments.dumps
    if arguments.part == "strip_code":
        return strip_code(dumps[0])
    if arguments.part == "text":
        return text(dumps)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copied, megabytes = copies_of(dumps, arguments.copies, folder / "many.xml.bz2")
        packed = copied.stat().st_size / 1e6
        print(
            f"{arguments.copies} copies: {megabytes:.1f} MB of XML, {packed:.1f} MB compressed",
            flush=True,
        )
        if arguments.part == "speed":
            speed(copied, megabytes, folder, arguments.rounds)
        elif arguments.part == "workers":
            two_workers(copied, folder, arguments.rounds)
        else:
            memory([copies_of(dumps, 1, folder / "one.xml.bz2"), (copied, megabytes)], folder)
    return None


if __name__ == "__main__":
    main()
