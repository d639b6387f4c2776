"""Rehearses a whole Wikipedia: writes a dump of its shape, and measures each step of docs/wikipedia.md.

    python bench/rehearsal.py write FOLDER [--parts 4] [--articles DIR] [--workers 2]
    python bench/rehearsal.py measure FOLDER --parts 1 2 4 [--kills] [--questions ifqa:full-dev]
    python bench/rehearsal.py report FOLDER [--graph FILE.svg]

`write` makes FOLDER/data/rehearsal/, a multistream dump in parts of about a million passages each.
The pages have the lengths of Wikipedia's (lognormal, 372 words in the mean), infoboxes, links,
references, tables, categories and as many redirects as articles. Their text is that of DIR's
articles, cut at paragraphs, with words changed so that the vocabulary grows as in language: a page
gets as many new words as Heaps' law, fitted on the articles, has at that place. Two pages of the
first part stand in each later one again, with a newer revision.

`measure` builds the corpus of the first N parts by `ifqa passages` and `ifqa index`, and retrieves
700 questions by BM25 and by `ranker`, each a process of its own. It writes a line for each step into
FOLDER/measured.jsonl: wall and CPU seconds, the peak of the memory of all its processes together,
and the bytes on disk. It also counts the passages' vocabulary, for Heaps' law, and compares the
shards that corpora have in common. --kills builds the smallest corpus again, kills (SIGKILL) its
passages and its index half-way, and goes on; shards and rankings must be those of before.

`report` prints the table, and the growth of each step: seconds ~ passages ** exponent, fitted on all
sizes. The text is not Wikipedia's, so nothing is said of answers or of gold recall.
"""

import argparse
import bz2
import hashlib
import html
import json
import math
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from wikipedia import resident

from ifqa.progress import bar
from ifqa.storage.files import read_json, read_jsonl, read_lines

DUMP = Path("data/rehearsal")
PASSAGES_A_PART = 1_000_000
MEAN_WORDS = 372  # of an article: 21 million passages of 100 words in 5.8 million articles
SPREAD = 1.2  # the standard deviation of the logarithm of an article's words
PAGES_A_STREAM = 100  # as Wikimedia packs them
PAGES_A_PART = PASSAGES_A_PART * 100 // (MEAN_WORDS + 50)  # an article's last passage is filled up
HEAD = (
    '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">\n'
    "  <siteinfo>\n    <sitename>Wikipedia</sitename>\n    <dbname>enwiki</dbname>\n"
    '    <namespaces>\n      <namespace key="0" case="first-letter" />\n'
    "    </namespaces>\n  </siteinfo>\n"
)
TAIL = "</mediawiki>\n"
SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
REPEATED = (5, 17)  # pages of the first part that each later part has again
NAME = re.compile(r"\b[A-Z][a-z]{3,}\b")
SENTENCE = re.compile(r"(?<=[a-z])\. (?=[A-Z])")
STEPS = ("passages", "index", "retrieve bm25", "retrieve ranker")
MARK = "REHEARSAL_RUN"

ARTICLES: list[list[str]] = []  # of this process: the paragraphs of each article


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["write", "measure", "report"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--parts", type=int, nargs="+", default=[1])
    parser.add_argument("--pages", type=int, default=PAGES_A_PART, help="articles of a part")
    parser.add_argument("--articles", type=Path, default=Path("data/articles"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--kills", action="store_true", help="kill a build of the smallest on its way"
    )
    parser.add_argument("--questions", default="ifqa:full-dev", help="BENCHMARK:SPLIT")
    parser.add_argument("--graph", type=Path, help="draw the growth of the steps")
    arguments = parser.parse_args()
    if arguments.what == "write":
        write_dump(
            arguments.folder,
            max(arguments.parts),
            arguments.pages,
            arguments.articles,
            arguments.workers,
        )
    elif arguments.what == "measure":
        for parts in arguments.parts:
            measure(arguments.folder, parts, arguments.questions)
        if arguments.kills:
            build_with_kills(arguments.folder, min(arguments.parts))
        print("\n".join(report(arguments.folder)))
    else:
        print("\n".join(report(arguments.folder)))
        if arguments.graph:
            draw(arguments.folder, arguments.graph)


# The dump


def write_dump(folder: Path, parts: int, pages: int, articles: Path, workers: int) -> None:
    """Write the parts that are not there yet, each aside and renamed."""
    target = folder / DUMP
    target.mkdir(parents=True, exist_ok=True)
    load_articles(articles)
    law = heaps_law(paragraph for article in ARTICLES for paragraph in article)
    words = sum(len(paragraph.split()) for article in ARTICLES for paragraph in article)
    print(f"{len(ARTICLES):,} articles, {words:,} words; vocabulary = {law[0]:.1f} n^{law[1]:.3f}")
    for part in range(1, parts + 1):
        first = (part - 1) * pages
        file = part_file(target, part)
        if file.exists():
            continue
        streams = range(first, first + pages, PAGES_A_STREAM)
        make = partial(make_stream, law=law, words=words)
        draft = file.with_name(f".{file.name}.tmp")
        with (
            Pool(workers) as pool,  # forked: the articles are there already
            open(draft, "wb") as handle,
            bar(f"part {part}", len(streams)) as advance,
        ):
            handle.write(bz2.compress(HEAD.encode()))
            for packed in pool.imap(make, streams, chunksize=4):
                handle.write(packed)
                advance(1)
            if part > 1:
                again = "".join(page_xml(number, law, words, part) for number in REPEATED)
                handle.write(bz2.compress(again.encode()))
            handle.write(bz2.compress(TAIL.encode()))
        draft.rename(file)


def part_file(folder: Path, part: int) -> Path:
    return folder / f"rehearsal-pages-articles-multistream{part}.xml.bz2"


def load_articles(folder: Path) -> None:
    for file in sorted(folder.glob("*.jsonl*")):
        for _, line in read_lines(file):
            paragraphs = json.loads(line)["text"].split("\n")
            ARTICLES.append([paragraph for paragraph in paragraphs if paragraph])


def heaps_law(paragraphs: Iterator[str]) -> tuple[float, float]:
    """K and beta of vocabulary = K n^beta, fitted on texts from a million words on."""
    return fit_power(list(vocabulary_growth(paragraphs)))


def vocabulary_growth(texts: Iterator[str], first: int = 1_000_000) -> Iterator[tuple[int, int]]:
    """Pairs of words read and different words among them, each at twice the words before."""
    seen: set[str] = set()
    count = 0
    mark = first
    for text in texts:
        words = text.split()
        count += len(words)
        seen.update(words)
        if count >= mark:
            yield count, len(seen)
            mark *= 2
    yield count, len(seen)


def fit_power(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Factor and exponent of y = factor x^exponent, by least squares of the logarithms."""
    x, y = np.log(np.array(pairs, float)).T
    exponent, intercept = np.polyfit(x, y, 1)
    return float(np.exp(intercept)), float(exponent)


def make_stream(first: int, law: tuple[float, float], words: int) -> bytes:
    """A bzip2 stream of pages and of redirects to them."""
    last = first + PAGES_A_STREAM
    return bz2.compress(
        "".join(page_xml(number, law, words) for number in range(first, last)).encode()
    )


def page_xml(number: int, law: tuple[float, float], words: int, part: int = 1) -> str:
    """An article and a redirect to it; the same for a number each time, but for its revision."""
    draw = random.Random(number)
    paragraphs = draw_paragraphs(draw)
    position = number * MEAN_WORDS
    length = sum(len(paragraph.split()) for paragraph in paragraphs)
    # Heaps' law, less what the articles' own words give while they are not used up
    used = 1 - math.exp(-position / words)
    rate = law[0] * law[1] * (position + 1) ** (law[1] - 1) * used
    paragraphs = with_new_words(
        paragraphs, round(rate * length + draw.random() - 0.5), number, draw
    )
    title = f"{new_word(number, 0)} {new_word(number, 1)}"
    revision = part * 10**9 + number
    text = html.escape(wikitext(title, paragraphs, draw), quote=False)
    return (
        f"  <page>\n    <title>{title}</title>\n    <ns>0</ns>\n    <id>{2 * number + 1}</id>\n"
        f"    <revision>\n      <id>{revision}</id>\n"
        "      <timestamp>2022-05-01T00:00:00Z</timestamp>\n"
        "      <model>wikitext</model>\n      <format>text/x-wiki</format>\n"
        f'      <text xml:space="preserve">{text}</text>\n    </revision>\n  </page>\n'
        f"  <page>\n    <title>{title.lower()}</title>\n    <ns>0</ns>\n"
        f'    <id>{2 * number + 2}</id>\n    <redirect title="{title}" />\n'
        f"    <revision>\n      <id>{revision}</id>\n      <model>wikitext</model>\n"
        f"      <text>#REDIRECT [[{title}]]</text>\n    </revision>\n  </page>\n"
    )


def draw_paragraphs(draw: random.Random) -> list[str]:
    """Paragraphs in a row of one article, until a drawn length is reached."""
    wanted = draw.lognormvariate(math.log(MEAN_WORDS) - SPREAD**2 / 2, SPREAD)
    article = draw.choice(ARTICLES)
    start = draw.randrange(len(article))
    chosen: list[str] = []
    length = 0
    for place in range(start, start + len(article)):
        words = article[place % len(article)].split()
        missing = int(wanted) - length
        chosen.append(" ".join(words[: max(8, missing)]))
        length += len(words)
        if length >= wanted:
            break
    return chosen


def with_new_words(
    paragraphs: list[str], count: int, number: int, draw: random.Random
) -> list[str]:
    """The paragraphs with `count` of their names changed into words that no other page has."""
    names = sorted({name for paragraph in paragraphs for name in NAME.findall(paragraph)})
    chosen = draw.sample(names, min(max(0, count), len(names)))
    if not chosen:
        return paragraphs
    replaced = {name: new_word(number, 2 + place) for place, name in enumerate(chosen)}
    pattern = re.compile(r"\b(" + "|".join(chosen) + r")\b")
    return [pattern.sub(lambda found: replaced[found[1]], paragraph) for paragraph in paragraphs]


def new_word(number: int, place: int) -> str:
    """A capitalised word of its own for each page and place."""
    digest = int.from_bytes(hashlib.blake2b(f"{number} {place}".encode(), digest_size=6).digest())
    word = ""
    while digest:
        digest, syllable = divmod(digest, len(SYLLABLES))
        word += SYLLABLES[syllable]
    return word.capitalize()


def wikitext(title: str, paragraphs: Sequence[str], draw: random.Random) -> str:
    """The markup of a page."""
    lines = [
        "{{Short description|A page}}",
        f"{{{{Infobox thing\n| name = {title}\n| image = {title}.jpg\n| caption = The [[{title}]]"
        f"\n| established = {{{{start date|{draw.randrange(1700, 2020)}|5|1}}}}"
        f"\n| population = {draw.randrange(10**6):,}\n| website = {{{{URL|example.org}}}}\n}}}}",
        f"'''{title}''' is the subject of this page.",
    ]
    for place, paragraph in enumerate(paragraphs):
        if place and place % 3 == 0:
            lines.append(f"== Part {place // 3} ==")
        lines.append(with_links(paragraph, draw))
    if draw.random() < 0.2:
        lines.append(table(draw))
    lines += [
        "== References ==",
        "{{Reflist}}",
        navigation(draw),
        f"[[Category:Pages of {title[0]}]]",
    ]
    return "\n\n".join(lines)


def with_links(paragraph: str, draw: random.Random) -> str:
    """Some names as links, and a reference after each sentence."""

    def link(found: re.Match[str]) -> str:
        chance = draw.random()
        if chance < 0.15:
            return f"[[{found[0]}]]"
        return f"[[{found[0]} (name)|{found[0]}]]" if chance < 0.25 else found[0]

    def cite(found: re.Match[str]) -> str:
        number = draw.randrange(10**9)
        source = (
            f"{{{{cite web |url=https://example.org/{number} |title=Source {number} |last=Author "
            f"|first=An |date=1 May {1950 + number % 70} |work=The Example |access-date=2 May 2022}}}}"
        )
        return f".<ref>{source}</ref> "

    return SENTENCE.sub(cite, NAME.sub(link, paragraph))


def navigation(draw: random.Random) -> str:
    links = " * ".join(
        f"[[{draw.choice(SYLLABLES)}{draw.choice(SYLLABLES)}]]"
        for _ in range(draw.randrange(5, 60))
    )
    return f"{{{{Navbox\n| name = Things\n| title = [[Things]]\n| list1 = {links}\n}}}}"


def table(draw: random.Random) -> str:
    rows = [
        f"|-\n| {year} || {draw.randrange(1000)} || [[{draw.choice(SYLLABLES).capitalize()}]]"
        for year in range(2000, 2000 + draw.randrange(3, 12))
    ]
    return '{| class="wikitable"\n! Year !! Count !! Place\n' + "\n".join(rows) + "\n|}"


# The steps


def measure(folder: Path, parts: int, questions: str) -> None:
    """Build the corpus of the first parts, and search it; done steps are not repeated."""
    name = f"rehearsal-{parts}"
    write_settings(folder, name, parts, questions)
    commands = {
        "passages": ["passages", name],
        "index": ["index", name],
        "retrieve bm25": ["retrieve", f"{name}-bm25"],
        "retrieve ranker": ["retrieve", f"{name}-ranker"],
    }
    for step in STEPS:
        if any(row["step"] == step and row["parts"] == parts for row in measured(folder)):
            continue
        row: dict[str, object] = {"step": step, "parts": parts}
        row |= run_ifqa(folder, commands[step])
        manifest = read_json(folder / "indexes" / name / "passages" / "manifest.json")
        row["passages"] = manifest["record"]["passages"]
        row["pages"] = manifest["record"]["pages"]
        row["disk"] = disk_of(folder, name, step)
        with open(folder / "measured.jsonl", "a", encoding="utf-8") as handle:
            handle.write(json.dumps(row) + "\n")
        print(json.dumps(row), flush=True)
    check_shards(folder, parts)


def build_with_kills(folder: Path, parts: int) -> None:
    """Build a measured corpus again, each step killed half-way; compare shards and rankings."""
    name = f"rehearsal-{parts}"
    shards = shard_sums(folder, parts)
    run = folder / "experiments" / f"{name}-bm25" / "retrieve" / "run.trec"
    ranking = run.read_bytes()
    shutil.rmtree(folder / "indexes" / name)
    shutil.rmtree(run.parents[1])
    for step in ("passages", "index"):
        [cpu] = [
            float(row["cpu"])
            for row in measured(folder)
            if (row["step"], row["parts"]) == (step, parts)
        ]
        # Half-way on two idle cores; wall seconds may be of a busy machine
        done = run_ifqa(folder, [step, name], kill_after=cpu / 4)
        if done:
            print(f"{step} ended before it was killed")
        again = run_ifqa(folder, [step, name])
        print(f"{step}: {again['wall']} s after the kill")
    run_ifqa(folder, ["retrieve", f"{name}-bm25"])
    same = (shard_sums(folder, parts) == shards, run.read_bytes() == ranking)
    print(f"after the kills: the same shards {same[0]}, the same ranking {same[1]}")


def write_settings(folder: Path, name: str, parts: int, questions: str) -> None:
    # One source, as a dump in parts is: within it a page may stand again in a later part
    source = {"format": "dump", "path": f"{DUMP}/*multistream[1-{parts}].xml.bz2"}
    corpus = {"passages": {"sources": [source]}, "index": {"bm25": {"retriever": "bm25"}}}
    (folder / "indexes").mkdir(exist_ok=True)
    (folder / "indexes" / f"{name}.toml").write_text(tomli_w.dumps(corpus), encoding="utf-8")
    benchmark, _, split = questions.partition(":")
    (folder / "experiments").mkdir(exist_ok=True)
    for retriever in ("bm25", "ranker"):
        experiment = {
            "benchmark": benchmark,
            "split": split,
            "corpus": name,
            "retriever": {"name": retriever, "k": 100},
        }
        path = folder / "experiments" / f"{name}-{retriever}.toml"
        path.write_text(tomli_w.dumps(experiment), encoding="utf-8")


def run_ifqa(folder: Path, command: Sequence[str], kill_after: float = 0.0) -> dict[str, object]:
    """Run a verb; its wall and CPU seconds, and the peak bytes of all its processes together."""
    mark = f"{os.getpid()}-{time.time_ns()}"
    environment = os.environ | {MARK: mark}
    before = os.times()
    started = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "ifqa", *command, "--quiet"],
        cwd=folder,
        env=environment,
        start_new_session=True,
    )
    peak = 0
    while process.poll() is None:
        peak = max(peak, sum(resident(f"{MARK}={mark}".encode())))
        if kill_after and time.monotonic() - started > kill_after:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            print(f"killed after {kill_after:.0f} s: {' '.join(command)}", flush=True)
            return {}
        time.sleep(0.5)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    after = os.times()
    cpu = (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
    return {"wall": round(time.monotonic() - started, 1), "cpu": round(cpu, 1), "peak": peak}


def disk_of(folder: Path, name: str, step: str) -> int:
    """Bytes that a step wrote."""
    places = {
        "passages": folder / "indexes" / name / "passages",
        "index": folder / "indexes" / name / "bm25",
        "retrieve bm25": folder / "experiments" / f"{name}-bm25" / "retrieve",
        "retrieve ranker": folder / "experiments" / f"{name}-ranker" / "retrieve",
    }
    return sum(path.stat().st_size for path in places[step].rglob("*") if path.is_file())


def check_shards(folder: Path, parts: int) -> None:
    """Compare the shards of a corpus with those of the smaller ones, which have the same pages."""
    files = shard_sums(folder, parts)
    for other in {int(row["parts"]) for row in measured(folder)} - {parts}:
        theirs = shard_sums(folder, other)
        shared = sorted(files.keys() & theirs.keys())
        differ = [name for name in shared if files[name] != theirs[name]]
        print(
            f"{len(shared)} shards of {parts} and {other} parts, {len(differ)} differ: {differ[:3]}"
        )
    texts = (
        json.loads(line)["contents"]
        for name in sorted(files)
        for _, line in read_lines(folder / "indexes" / f"rehearsal-{parts}" / "passages" / name)
    )
    pairs = list(vocabulary_growth(texts))
    factor, exponent = fit_power(pairs)
    print(f"vocabulary of {parts} parts = {factor:.1f} n^{exponent:.3f}: {pairs}")


def shard_sums(folder: Path, parts: int) -> Mapping[str, str]:
    manifest = read_json(folder / "indexes" / f"rehearsal-{parts}" / "passages" / "manifest.json")
    files = manifest["record"]["files"]
    return {
        name: facts["sha256"]
        for name, facts in files.items()
        if name.endswith(".jsonl") and name.startswith("passages-")
    }


def measured(folder: Path) -> list[dict[str, Any]]:
    path = folder / "measured.jsonl"
    return [dict(row) for _, row in read_jsonl(path)] if path.exists() else []


# The report


def report(folder: Path) -> Iterator[str]:
    yield "| passages | step | wall, s | CPU, s | memory, MB | disk, MB |"
    yield "|---|---|---|---|---|---|"
    rows = measured(folder)
    for row in sorted(rows, key=lambda row: (row["parts"], STEPS.index(row["step"]))):
        yield (
            f"| {row['passages']:,} | {row['step']} | {row['wall']:,.0f} | "
            f"{row['cpu']:,.0f} | {row['peak'] / 1e6:,.0f} | {row['disk'] / 1e6:,.0f} |"
        )
    for step in STEPS:
        whole = [row for row in rows if row["step"] == step]
        if len(whole) > 1:
            _, exponent = fit_power([(row["passages"], row["cpu"]) for row in whole])
            yield f"{step}: CPU seconds ~ passages ^ {exponent:.2f}"


def draw(folder: Path, target: Path) -> None:
    """The growth of CPU seconds and of memory, in logarithms."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(9, 3.6))
    for panel, key, label in zip(
        panels, ("cpu", "peak"), ("CPU seconds", "peak memory, MB"), strict=True
    ):
        for step in STEPS:
            rows = [row for row in measured(folder) if row["step"] == step]
            rows = sorted(rows, key=lambda row: row["passages"])
            scale = 1e6 if key == "peak" else 1
            sizes = [row["passages"] / 1e6 for row in rows]
            panel.plot(sizes, [row[key] / scale for row in rows], marker="o", label=step)
        panel.set(xscale="log", yscale="log", xlabel="million passages", ylabel=label)
        panel.minorticks_off()
        panel.set_xticks(sizes, [f"{size:.1f}" for size in sizes])
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncols=len(STEPS))
    figure.tight_layout(rect=(0, 0, 1, 0.92))
    figure.savefig(target)


if __name__ == "__main__":
    main()
