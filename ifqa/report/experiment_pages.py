"""A Markdown page for each experiment: scores, commands, environment, inputs and files (`ifqa report --pages`)."""

import gzip
import hashlib
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from ifqa.errors import IfqaError
from ifqa.formats.runs import read_qrels
from ifqa.pipeline.convert import convert
from ifqa.progress import duration
from ifqa.report.leaderboard import readers
from ifqa.report.result_tables import result_tables, verdict_of
from ifqa.report.results import Result
from ifqa.report.sanitize import plain_cell
from ifqa.report.table import Table
from ifqa.scoring.measures.gold_recall import GOLD_ANY
from ifqa.scoring.per_question import Content, Part, partial
from ifqa.storage.files import create, write
from ifqa.storage.resources import find_resource

RUNS, QRELS = "runs", "qrels"
_INDEX = """# Results

Written by `ifqa report --pages`. Each experiment has a page with its commands, its environment, the checksums of its inputs, and
its run and judgements to download. Scores are in percent over all questions, with 95% bootstrap intervals;
[Scoring](../scoring.md) explains every column and verdict.
"""


def pages(results: Sequence[Result]) -> dict[str, str]:
    """File name -> text: `index.md`, and a page for each experiment that has a file.

    Raises:
        IfqaError: an experiment is called "index".
    """
    named = [one for one in results if not one.experiment.variant]
    if any(one.experiment.name == "index" for one in named):
        raise IfqaError("experiment 'index': its page would take the place of index.md; rename experiments/index.toml")
    return {"index.md": _index(named)} | {f"{one.experiment.name}.md": _page(one) for one in named}


def is_page(name: str, text: str) -> bool:
    """Whether the text of a file of this name was written by `pages`, and may be overwritten."""
    if name == "index.md":
        return text.startswith(_INDEX.partition("\n\n")[0] + "\n\nWritten by `ifqa report --pages`")
    return text.startswith(f"# {name.removesuffix('.md')}\n") and "\n## Commands\n" in text


def exported(result: Result) -> tuple[str, str] | None:
    """The paths of a page's run and judgements, below the folder of pages; None if the experiment has none."""
    experiment = result.experiment
    if not (result.scores and experiment.corpus and "run" in result.made) or partial(result.scores):
        return None
    if result.made.get("own_passages"):
        return None  # the judgements are of the corpus's passages, and the run names others
    if not any(key.startswith(f"{GOLD_ANY.name}@") for key in result.scores["measures"]):
        return None  # the questions have no gold passages, by which a run is judged
    over = f"{experiment.benchmark}-{experiment.split.replace('/', '-')}-{experiment.corpus}"
    return f"{RUNS}/{experiment.name}.trec.gz", f"{QRELS}/{over}.qrels.gz"


def export(results: Iterable[Result], folder: Path) -> Iterator[Path]:
    """Write the runs that are finished here, and the judgements of every passage of their corpora, as gzip files.

    Raises:
        IfqaError: as `convert`.
    """
    judged: dict[Path, Result] = {}
    for one in results:
        if one.here and (paths := exported(one)):
            run, qrels = (folder / path for path in paths)
            judged[qrels] = one
            yield _packed((one.experiment.folder / "retrieve" / "run.trec").read_bytes(), run)
    for path, one in judged.items():
        yield _packed(_judgements(one), path)


def check_exported(results: Iterable[Result], folder: Path) -> None:
    """Check the content of exported runs and judgements, without their packing; nothing is written.

    A run is held against the SHA-256 in its record. Judgements are made again where the experiment is here; elsewhere they
    only have to be judgements.

    Raises:
        IfqaError: a file is missing, damaged, or of another content.
    """
    judged: dict[Path, list[Result]] = {}
    for one in results:
        if paths := exported(one):
            run, qrels = (folder / path for path in paths)
            judged.setdefault(qrels, []).append(one)
            if hashlib.sha256(_unpacked(run, one, folder)).hexdigest() != one.made["run"]:
                raise _stale(run, "is not the run that was scored", one, folder)
    for path, several in judged.items():
        found = _unpacked(path, several[0], folder)
        here = next((one for one in several if one.here), None)
        if here and found != _judgements(here):
            raise _stale(path, "has other judgements than the corpus gives", here, folder)
        if not _are_judgements(found):
            raise _stale(path, "holds no judgements", several[0], folder)


def _judgements(one: Result) -> bytes:
    """The judgements of every passage of an experiment's corpus, in TREC's format."""
    with TemporaryDirectory() as aside:  # a reader may have unpacked the exported file in its folder
        plain = Path(aside) / "judged.qrels"
        convert(f"{one.experiment.benchmark}:{one.experiment.split}", plain, form="qrels", corpus=one.experiment.corpus)
        return plain.read_bytes()


def _are_judgements(content: bytes) -> bool:
    with TemporaryDirectory() as aside:
        plain = Path(aside) / "judged.qrels"
        plain.write_bytes(content)
        try:
            return bool(read_qrels(plain))
        except IfqaError:
            return False


def _packed(content: bytes, to: Path) -> Path:
    """Write a gzip file whose bytes depend only on the content."""
    to.parent.mkdir(parents=True, exist_ok=True)
    with create(to) as handle:
        write(handle, gzip.compress(content, mtime=0))
    return to


def _unpacked(path: Path, one: Result, folder: Path) -> bytes:
    if not path.exists():
        raise _stale(path, "is not there", one, folder)
    try:
        return gzip.decompress(path.read_bytes())
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise _stale(path, f"is damaged ({error})", one, folder) from error


def _stale(path: Path, what: str, one: Result, folder: Path) -> IfqaError:
    again = "" if one.here else f"ifqa run {one.experiment.name}, then "
    return IfqaError(f"{path} {what}; write it again: {again}ifqa report --pages {folder}")


def _index(results: Sequence[Result]) -> str:
    linked = {one.experiment.name: f"[{one.experiment.name}]({one.experiment.name}.md)" for one in results}
    sections = [_INDEX]
    for table in [*readers(results), *result_tables(results)]:
        text = table.section()
        for name, link in linked.items():
            text = text.replace(f"\n| {name} |", f"\n| {link} |")
        sections.append(text)
    return "\n".join(sections)


def _page(one: Result) -> str:
    experiment = one.experiment
    parts = [f"# {experiment.name}\n\n{_paragraph(experiment.about)}\n"]
    parts.append(f"Verdict: {plain_cell(verdict_of(one)) or 'measured; no expected value'}.\n")
    if experiment.expected:
        rows = tuple(
            (each.measure, f"{each.value:g}", f"{each.tolerance:g}", each.retired, each.source)
            for each in experiment.expected
        )
        columns = ("measure", "value", "tolerance", "model that is gone", "source")
        parts.append(f"## Expected\n\n{_table(columns, rows)}")
    if one.scores:
        parts.append(f"## Scores\n\n{_scores(one)}")
    parts.append(f"## Commands\n\n{_commands(one)}")
    if one.scores:
        parts.append(f"## How it was made\n\n{_circumstances(one)}")
    if paths := exported(one):
        parts.append(f"## Files\n\n{_files(one, *paths)}")
    return "\n".join(parts)


def _scores(one: Result) -> str:
    assert one.scores is not None
    parts: list[tuple[str, Content | Part]] = [("all", one.scores), *one.scores["subsets"].items()]
    parts += one.scores.get("groups", {}).items()
    keys = one.experiment.scheme.keys(one.scores["measures"])
    columns = ("measure", *(f"{name.replace('_', ' ')} ({part['questions']:,})" for name, part in parts))
    rows = []
    for key in keys:
        means = [part["measures"].get(key) for _, part in parts]
        rows.append(
            (key, *(f"{mean['value']:.1f} [{mean['low']:.1f}, {mean['high']:.1f}]" if mean else "" for mean in means))
        )
    abstained = f", {one.scores['n_abstained']:,} abstained" if "n_abstained" in one.scores else ""
    note = f"\n{one.scores['questions']:,} questions, {one.scores['n_failed']:,} failed{abstained}.\n"
    return _table(columns, rows) + note


def _commands(one: Result) -> str:
    experiment = one.experiment
    fetch = f"ifqa data {experiment.benchmark}\n" if not experiment.benchmark.startswith(("sample", "file")) else ""
    needed = f"It needs {', '.join(one.needs)}.\n\n" if one.needs and not one.scores else ""
    text = f"{needed}```sh\n{fetch}ifqa check {experiment.name}\nifqa run {experiment.name}\n```\n"
    for file in (f"experiments/{experiment.name}.toml", f"indexes/{experiment.corpus}.toml"):
        if path := find_resource(file):
            content = path.read_text(encoding="utf-8").strip()
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", content)), default=0))  # longer than any within
            text += f"\n`{file}`:\n\n{fence}toml\n{content}\n{fence}\n"
    return text


def _paragraph(text: str) -> str:
    """Plain text as a Markdown paragraph: however it begins, it is no heading, list, quote, rule or code block."""
    return re.sub(r"^(?:(?=[#>+~=`_!:-])|(\d+)(?=[.)]))", r"\1\\", plain_cell(text))


def _circumstances(one: Result) -> str:
    made = one.made
    facts = {
        "date": made["at"][:10],
        "hardware": made["hardware"],
        "Python": made["python"],
        "commit": made["commit"],
        "time": ", ".join(f"{stage} {duration(taken)}" for stage, taken in made["seconds"].items()),
    }
    facts |= {"passages": f"{made['passages']:,}"} if "passages" in made else {}
    facts |= {"model": made["model"]} if "model" in made else {}
    facts |= {"server": made["server"]} if "server" in made else {}
    facts |= {"trained on these questions": "yes"} if "trained_on_them" in made else {}
    text = _table(("", ""), list(facts.items()))
    if libraries := made.get("libraries"):
        text += f"\n{_table(('library', 'version'), list(libraries.items()))}"
    if inputs := made.get("inputs"):
        text += f"\n{_table(('input', 'SHA-256'), [(name, f'`{sha256}`') for name, sha256 in inputs.items()])}"
    return text


def _files(one: Result, run: str, qrels: str) -> str:
    by = one.experiment.scheme
    depths = next((each.tables for each in by.rankings if each.name == "gold_any"), ())
    assert one.scores is not None
    known = [k for k in depths if f"gold_any@{k}" in one.scores["measures"]]
    measures = " ".join([*(f"Success@{k}" for k in known), "nDCG@10", "RR@10"])
    lead = "ir_measures gives gold recall (`gold_any@K`) as Success@K" if known else "With ir_measures"
    return (
        f"- [{run}]({run}): the run, in TREC's format\n"
        f"- [{qrels}]({qrels}): every passage of the corpus that holds a gold passage of a question\n\n"
        f"{lead}:\n\n"
        f"```sh\ngunzip -k {run} {qrels}\n"
        f"ir_measures {qrels.removesuffix('.gz')} {run.removesuffix('.gz')} {measures}\n```\n"
    )


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return Table("", "", tuple(columns), tuple(map(tuple, rows))).markdown()
