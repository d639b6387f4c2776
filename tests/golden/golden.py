"""Compares the program's outputs with golden files from before a change: `python tests/golden/golden.py compare`.

    make       write all golden files again
    compare    produce everything in a temporary folder and list differences; exit code 1 if there are any

Both take names of parts to limit them. A difference means that users' artifacts are made again, or that completions are asked for
again: give the reason in the commit.
"""

import argparse
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "stand_ins"))

EXPERIMENTS = ("sample", "sample-hard", "sample-hybrid", "sample-llm")
DERIVED = ("root", "measures", "plugins", "scheme")  # fields that no experiment file sets


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


def identities(out: Path) -> None:
    """Identities of the sample's corpus, fingerprints of plugins, and the resolved settings of each experiment file."""
    from ifqa.config.corpus import load_corpus
    from ifqa.config.experiment import load_experiment
    from ifqa.pipeline.run import CorpusBuild, Run
    from ifqa.pipeline.stages import build_passages
    from ifqa.storage.artifacts import compute_fingerprint

    corpus = load_corpus("sample")
    build_passages(corpus)
    corpus_identities = {"passages": compute_fingerprint(CorpusBuild(corpus).inputs("passages"))}
    for index in corpus.indexes:
        corpus_identities[index] = compute_fingerprint(CorpusBuild(corpus).inputs(index))
    plugins: dict[str, dict[str, Any]] = {}
    for name in EXPERIMENTS:
        experiment = load_experiment(name)
        plugins[name] = {kind: Run(experiment).fingerprint(kind) for kind in ("retriever", "reader")}
    write_json(out / "corpus.json", corpus_identities)
    write_json(out / "fingerprints.json", plugins)
    settings = {}
    for path in sorted((ROOT / "experiments").glob("*.toml")):
        resolved = {key: value for key, value in asdict(load_experiment(path.stem)).items() if key not in DERIVED}
        settings[path.stem] = sha(json.dumps(resolved, sort_keys=True, default=str).encode())
    write_json(out / "experiments.json", settings)


def passages(out: Path) -> None:
    """Passages of the sample and of our own pages, in both profiles, as written to shards."""
    from ifqa.corpus.sources import open_source

    for profile in ("ifqa", "release"):
        for name, path in (("sample", "sample/encyclopedia.xml"), ("pages", str(HERE / "pages.xml"))):
            source = {"format": "dump", "path": path, "profile": profile}
            shards = b"".join(unit.make_shard().lines for unit in open_source(source).work_units())
            lines = shards.decode().splitlines()
            kept = lines if name == "pages" else [f"{json.loads(line)['id']} {sha(line.encode())}" for line in lines]
            out.mkdir(parents=True, exist_ok=True)
            (out / f"{name}.{profile}.txt").write_text("\n".join(kept) + "\n", encoding="utf-8")


def sample_passages() -> Iterator[Any]:
    from ifqa.corpus.sources import open_source
    from ifqa.records import Passage

    for unit in open_source({"format": "dump", "path": "sample/encyclopedia.xml"}).work_units():
        for line in unit.make_shard().lines.splitlines():
            record = json.loads(line)
            yield Passage(record["id"], record["title"], record["contents"])


def completions(out: Path) -> None:
    """The keys of the completions of each prompt for two questions, as paths."""
    from ifqa.llms.cache import cache_key
    from ifqa.plugins import open_benchmark
    from ifqa.prompting.demonstrations import load_demos
    from ifqa.prompting.prompts import load_prompt
    from ifqa.records import Request
    from ifqa.storage.resources import list_resources

    questions = open_benchmark("sample").questions("hard")[:2]
    some = list(islice(sample_passages(), 3))
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


PARTS: dict[str, Callable[[Path], None]] = {writer.__name__: writer for writer in (passages, completions, identities)}


def produce(part: str, out: Path, work: Path) -> None:
    """Make the files of a part in `out`, from working folder `work`, which has only the bundled files of the package."""
    before = Path.cwd()
    work.mkdir(parents=True, exist_ok=True)
    os.chdir(work)
    try:
        PARTS[part](out)
    finally:
        os.chdir(before)


def differences(old: Path, new: Path) -> list[str]:
    """A line for each file that is missing, new or different."""
    files = {path.relative_to(root) for root in (old, new) for path in root.rglob("*") if path.is_file()}
    report = []
    for file in sorted(files):
        if not (old / file).exists() or not (new / file).exists():
            report.append(f"{file}: {'new' if (new / file).exists() else 'missing'}")
        elif (old / file).read_bytes() != (new / file).read_bytes():
            lines = [(root / file).read_text(encoding="utf-8").splitlines() for root in (old, new)]
            unequal = (n for n, (before, after) in enumerate(zip(*lines, strict=False), 1) if before != after)
            first = next(unequal, min(map(len, lines)) + 1)
            report.append(f"{file}:{first}: differs")
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["make", "compare"])
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; none: all")
    chosen = parser.parse_args()
    parts = chosen.parts or list(PARTS)
    if strange := set(parts) - set(PARTS):
        parser.error(f"unknown part {min(strange)}")
    different = []
    with tempfile.TemporaryDirectory() as aside:
        for part in parts:
            new = Path(aside) / "made" / part
            produce(part, new, Path(aside) / "work" / part)
            if chosen.verb == "make":
                shutil.rmtree(HERE / part, ignore_errors=True)
                shutil.copytree(new, HERE / part)
            different += [f"{part}/{line}" for line in differences(HERE / part, new)]
    for line in different:
        print(line)
    print(f"{len(different)} files differ" if different else f"all as before: {', '.join(parts)}")
    return bool(different)


if __name__ == "__main__":
    sys.exit(main())
