"""Golden files with outputs from before a change.

`python tests/golden/golden.py PART...` writes those of some parts, or all, again.

A difference means that users' artifacts are made again, or that completions are asked for again:
give the reason in the commit.
"""

import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import chdir
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent

EXPERIMENTS = ("sample", "sample-hard", "sample-hybrid", "sample-llm")
DERIVED = ("root", "measures", "plugins", "scheme")  # fields that no experiment file sets
# Left out if empty, so that older hashes stay valid
LATER = ("judge", "sample", "stratified", "title")


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8"
    )


def identities(out: Path) -> None:
    """Identities of the sample's corpus, fingerprints of plugins, and the resolved settings of each
    experiment file.
    """
    from ifqa.config.corpus import load_corpus
    from ifqa.config.experiment import load_experiment
    from ifqa.pipeline.corpus_build import CorpusBuild
    from ifqa.pipeline.index import Index
    from ifqa.pipeline.passages import PASSAGES
    from ifqa.pipeline.run import Run
    from ifqa.pipeline.stages import build_passages
    from ifqa.storage.artifacts import compute_fingerprint

    corpus = load_corpus("sample")
    build_passages(corpus)
    build = CorpusBuild(corpus)
    stages = [PASSAGES, *map(Index, corpus.indexes)]
    corpus_identities = {stage.name: compute_fingerprint(build.inputs(stage)) for stage in stages}
    plugins: dict[str, dict[str, Any]] = {}
    for name in EXPERIMENTS:
        run = Run(load_experiment(name))
        plugins[name] = {plugin.kind: run.fingerprint(plugin) for plugin in run.experiment.asked}
    write_json(out / "corpus.json", corpus_identities)
    write_json(out / "fingerprints.json", plugins)
    settings = {}
    for path in sorted((ROOT / "experiments").glob("*.toml")):
        resolved = _settings(load_experiment(path.stem))
        settings[path.stem] = sha(json.dumps(resolved, sort_keys=True, default=str).encode())
    write_json(out / "experiments.json", settings)


def _settings(experiment: Any) -> dict[str, object]:
    """An experiment's fields, with the sections of its plugins as a file has them."""
    values = {
        field.name: getattr(experiment, field.name)
        for field in fields(experiment)
        if field.name not in DERIVED
        and (field.name not in LATER or getattr(experiment, field.name))
    }
    values["expected"] = [asdict(expected) for expected in experiment.expected]
    for part in ("retriever", "reader", "llm"):
        values[part] = values[part] and values[part].section()
    return values


def passages(out: Path) -> None:
    """Passages of the sample and of our own pages, in both profiles, as written to shards."""
    from opened_sources import open_section

    for profile in ("ifqa", "release"):
        for name, path in (
            ("sample", "sample/encyclopedia.xml"),
            ("pages", str(HERE / "pages.xml")),
        ):
            source = {"format": "dump", "path": path, "profile": profile}
            shards = b"".join(unit.make_shard().lines for unit in open_section(source).work_units())
            lines = shards.decode().splitlines()
            kept = (
                lines
                if name == "pages"
                else [f"{json.loads(line)['id']} {sha(line.encode())}" for line in lines]
            )
            out.mkdir(parents=True, exist_ok=True)
            (out / f"{name}.{profile}.txt").write_text("\n".join(kept) + "\n", encoding="utf-8")


def completions(out: Path) -> None:
    """The keys of the completions of each prompt for two questions, as paths."""
    from opened_sources import open_section

    from ifqa.llms.cache import cache_key
    from ifqa.plugins import open_benchmark
    from ifqa.prompting.demonstrations import load_demos
    from ifqa.prompting.prompts import load_prompt
    from ifqa.records import Passage, Request
    from ifqa.storage.resources import list_resources

    questions = open_benchmark("sample").questions("hard")[:2]
    [unit, *_] = open_section({"format": "dump", "path": "sample/encyclopedia.xml"}).work_units()
    records = map(json.loads, unit.make_shard().lines.splitlines()[:3])
    some = [Passage(record["id"], record["title"], record["contents"]) for record in records]
    demos = load_demos("sample").demos[:2]
    kept = {}
    prompts = {name: load_prompt(name) for name in sorted(list_resources("prompts", ".toml"))}
    for name, prompt in prompts.items():
        if prompt.shows_choices:  # the sample's questions offer none
            continue
        for chat in (True, False):
            for question in questions:
                messages, text = prompt.render(question.text, some, demos, chat)
                request = Request(messages=tuple(messages), text=text, stop=("\n\n",), sample=1)
                key = cache_key("a-model", request)
                name_of = f"{name} {'chat' if chat else 'completion'} {question.id}"
                kept[name_of] = f"completions/{key[:2]}/{key}.json"
    write_json(out / "completions.json", kept)


PARTS: dict[str, Callable[[Path], None]] = {
    writer.__name__: writer for writer in (passages, completions, identities)
}


def produce(part: str, out: Path, work: Path) -> None:
    """Make the files of a part in `out`, from working folder `work`, which has only the bundled
    files of the package.
    """
    work.mkdir(parents=True, exist_ok=True)
    with chdir(work):
        PARTS[part](out)


def read_files(folder: Path) -> dict[str, str]:
    """Name -> text of every file below a folder."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in files}


if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        with tempfile.TemporaryDirectory() as aside:
            produce(part, Path(aside, "made"), Path(aside, "work"))
            shutil.rmtree(HERE / part, ignore_errors=True)
            shutil.copytree(Path(aside, "made"), HERE / part)
