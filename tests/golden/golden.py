"""Compares the program's outputs with golden files from before a change: `python tests/golden/golden.py compare`.

    make       write all golden files again (give the reason in the commit)
    compare    produce everything in a temporary folder and list differences; exit code 1 if there are any

Both take names of parts to limit them. Digits depend on the processor and on torch's version, so compare only on the machine
that made the files; the parts that `tests/golden/test_golden.py` runs are the same everywhere.
"""

import argparse
import contextlib
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
STEPS = 20
SINCE = ("root", "measures", "plugins", "scheme")  # fields added after the golden files were made; no file sets them


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


def as_before(scores: dict[str, Any]) -> dict[str, Any]:
    """Scores in the layout up to version 3: subsets were among the other keys, and "no_overlap" did not exist."""
    scores = scores | {"subsets": {name: part for name, part in scores["subsets"].items() if name != "no_overlap"}}
    flat: dict[str, Any] = {}
    for key, part_or_score in scores.items():
        flat |= part_or_score if key == "subsets" else {key: part_or_score}
    return flat


def run_experiment(name: str, out: Path) -> None:
    """The run, predictions and scores of an experiment, and the identity of each stage."""
    from ifqa.config.experiment import load_experiment
    from ifqa.pipeline import stages
    from ifqa.pipeline.run import Run
    from ifqa.storage.artifacts import compute_fingerprint, read_manifest
    from ifqa.storage.files import read_json
    from ifqa.storage.files import write_json as write_scores

    experiment = load_experiment(name)
    stages.run(Run(experiment))
    out.mkdir(parents=True, exist_ok=True)
    for file in ("retrieve/run.trec", "read/predictions.jsonl"):
        shutil.copy(experiment.folder / file, out / Path(file).name)
    write_scores(out / "scores.json", as_before(read_json(experiment.folder / "score" / "scores.json")))
    identities = {}
    for stage in (*experiment.stages, "score"):
        manifest = read_manifest(experiment.folder / stage)
        assert manifest is not None
        wanted = {key: value for key, value in manifest["inputs"].items() if key != "training"}
        # after the golden files were made, the layout of scores changed and a subset was added
        identities[stage] = compute_fingerprint(wanted | ({"version": 3} if stage == "score" else {}))
    write_json(out / "identities.json", identities)


def experiments(out: Path) -> None:
    for name in EXPERIMENTS:
        run_experiment(name, out / name)


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
        resolved = {key: value for key, value in asdict(load_experiment(path.stem)).items() if key not in SINCE}
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


def vectors(out: Path) -> None:
    """MiniLM's vectors of 50 passages in both precisions, and the passages that FAISS finds for ten questions."""
    import faiss
    import numpy as np

    from ifqa.plugins import open_benchmark
    from ifqa.retrieval.vectors.encoders import EncoderSettings, open_encoder

    some = list(islice(sample_passages(), 50))
    questions = [question.text for question in open_benchmark("sample").questions("hard")[:10]]
    digits = {}
    for precision in ("float32", "bfloat16"):
        encoder = open_encoder(EncoderSettings("all-MiniLM-L6-v2", precision=precision, device="cpu"))
        encoded = np.asarray(encoder.encode_passages(some), np.float32)
        queries = np.asarray(encoder.encode_queries(questions), np.float32)
        index = faiss.IndexFlatIP(encoded.shape[1])
        index.add(encoded)
        digits[precision] = {
            "passages": [[sha(row.tobytes()), *(round(float(number), 5) for number in row[:4])] for row in encoded],
            "questions": [sha(row.tobytes()) for row in queries],
            "faiss_ids": index.search(queries, 5)[1].tolist(),
        }
    write_json(out / "vectors.json", digits)


def sample_passages() -> Iterator[Any]:
    from ifqa.corpus.sources import open_source
    from ifqa.records import Passage

    for unit in open_source({"format": "dump", "path": "sample/encyclopedia.xml"}).work_units():
        for line in unit.make_shard().lines.splitlines():
            record = json.loads(line)
            yield Passage(record["id"], record["title"], record["contents"])


@contextlib.contextmanager
def every_loss() -> Iterator[list[float]]:
    """Collect the loss of each step of a training with one of transformers' trainers."""
    from ifqa.training import checkpoints

    losses: list[float] = []
    fit = checkpoints.run_trainer

    def fit_and_keep(trainer: Any, folder: Path) -> Any:
        trainer.args.logging_steps = 1
        output = fit(trainer, folder)
        losses.extend(float(entry["loss"]) for entry in trainer.state.log_history if "loss" in entry)
        return output

    checkpoints.run_trainer = fit_and_keep
    try:
        yield losses
    finally:
        checkpoints.run_trainer = fit


def weights_of(folder: Path) -> dict[str, str]:
    return {path.name: sha(path.read_bytes()) for path in sorted(folder.glob("*.safetensors"))}


def trainings(out: Path) -> None:
    """The losses of 20 steps of each trainer, and the SHA-256 of the final weights."""
    import tiny_t5

    from ifqa.plugins import open_benchmark
    from ifqa.protocols import TrainingData
    from ifqa.training import extractive_loop
    from ifqa.training.dense import Dense
    from ifqa.training.extractive import Extractive
    from ifqa.training.rerank import Rerank
    from ifqa.training.t5 import Fid
    from ifqa.training.trainer import configure_trainer

    every = open_benchmark("sample").questions("hard")[:40]
    pool = list(sample_passages())
    rankings = [pool[7 * n : 7 * n + 12] for n in range(len(every))]  # any passages will do as negatives
    data, seed = TrainingData(every, rankings, "ifqa/full"), 3
    results: dict[str, Any] = {}

    def keep(name: str, losses: list[float]) -> None:
        assert len(losses) >= STEPS, f"{name}: {len(losses)} steps"
        results[name] = {"losses": losses, "weights": weights_of(Path(name))}

    losses: list[float] = []
    step = extractive_loop._step
    extractive_loop._step = lambda *args: losses.append(step(*args)) or losses[-1]  # type: ignore[func-returns-value]
    try:
        configure_trainer(Extractive, seed=seed, epochs=4, practice=1, batch=8, rank=4).train(data, Path("extractive"))
    finally:
        extractive_loop._step = step
    keep("extractive", losses)
    with every_loss() as losses:
        configure_trainer(Rerank, seed=seed, epochs=2, batch=4, rank=4).train(data, Path("rerank"))
    keep("rerank", losses)
    with every_loss() as losses:
        configure_trainer(Dense, seed=seed, epochs=2, batch=4, max_tokens=64).train(data, Path("dense"))
    keep("dense", losses)
    tiny_t5.save("t5", texts=[*tiny_t5.TEXTS, *(question.text for question in every)])
    with every_loss() as losses:
        small = {"passages": 3, "steps": STEPS, "batch": 4, "max_tokens": 64}
        configure_trainer(Fid, seed=seed, model="t5", device="cpu", **small).train(data, Path("fid"))
    keep("fid", losses)
    for name, training in results.items():
        write_json(out / f"{name}.json", training)


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


_WRITERS = (passages, completions, identities, experiments, vectors, trainings)
PARTS: dict[str, Callable[[Path], None]] = {writer.__name__: writer for writer in _WRITERS}
PORTABLE = ("passages", "completions", "identities")  # their digits do not depend on the processor


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
