"""Builds the corpus `data/causalqa/`: the causal questions of ten datasets, in the original and in a random split.

`benchmark.py` shows a line of its files, SPLIT/DATASET.jsonl. A dataset comes from its publisher's files in FOLDER/DATASET, else
from the authors' release in FOLDER. Questions without an answer are left out; the paper leaves them out only of MS MARCO,
Natural Questions, ELI5, SQuAD and NewsQA.

A question is in the random validation part if a hash of seed, dataset and id falls into the lowest tenth. So memory does not
depend on a file's length, the order of the files does not matter, and the part has about 10% (of PAQ: 76,961 ± 263). The
authors' own random split cannot be rebuilt.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

from typing_extensions import TypedDict

from ifqa.benchmarks.causalqa import release
from ifqa.benchmarks.causalqa.benchmark import SPLITS
from ifqa.benchmarks.causalqa.rules import RULES, match_rules
from ifqa.errors import FormatError, MissingInput, unknown_name
from ifqa.formats.causalqa_datasets import PUBLISHERS
from ifqa.formats.causalqa_files import Candidates, CausalTest, DatasetFile, Details, FileReader, list_files
from ifqa.progress import bar
from ifqa.settings import check_shape
from ifqa.storage.artifacts import MANIFEST, Artifact, compute_fingerprint, read_manifest
from ifqa.storage.download import download_file
from ifqa.storage.files import atomic_write, cached_sha256, json_line, read_json, write_bytes, write_json

VERSION = 2  # increment when the same input files give different lines
STATE = ".facts.json"  # suffix of the file that marks a dataset as complete during a build
_LISTED_FILES = 64  # the manifest lists a dataset's files if there are at most this many


class DatasetFacts(TypedDict):
    """Counts of a complete dataset, kept in the manifest's `record` and, during a build, in the dataset's state file."""

    key: str  # fingerprint of its inputs
    origin: str  # "publisher" or "release"
    questions: int  # questions read; 0 for the authors' release, which has only causal questions
    unanswered: int  # causal questions without an answer, which are left out
    splits: dict[str, list[int]]  # split -> numbers of questions, of their words, and of their first answers' words


class _ManifestRecord(TypedDict):
    datasets: dict[str, DatasetFacts]


class DatasetSource(NamedTuple):
    """Where a dataset is read from: "publisher" or "release", its files, and the reader of their questions."""

    origin: str
    parts: Sequence[DatasetFile]
    size: int
    questions: Callable[[FileReader, Sequence[DatasetFile], CausalTest], Candidates]
    inputs: dict[str, object]


def build_causalqa(root: Path, folder: Path | None, rules: str = "notebook", seed: int = 0) -> Iterator[str]:
    """Build the corpus in `root`/data; yields a line for each dataset, present or absent. An error leaves the old corpus.

    `folder` has the publishers' files or the authors' release; None fetches the release into data/causalqa-release. `rules` is a
    reading of the rules; `seed` determines the random split.
    """
    if rules not in RULES:
        raise unknown_name("reading of the rules", rules, RULES)
    if folder is None:
        folder = root / "data" / "causalqa-release"
        if not (folder.is_dir() and release.find_release(folder)):
            download_file(release.URL, folder / Path(release.URL).name)
    if not folder.is_dir():
        raise MissingInput(f"--from {folder}: no such folder")
    sources, absent = find_sources(folder)
    if not sources:
        names = ", ".join(PUBLISHERS)
        raise MissingInput(f"--from {folder}: wanted folders named {names}, or {release.NAME}-v-1.0 in it; found none")
    place = root / "data" / "causalqa"
    common = {"version": VERSION, "rules": rules, "seed": seed}
    common["patterns"] = {name: pattern.pattern for name, pattern in RULES[rules].items()}

    def inputs() -> dict[str, object]:
        present, _ = find_sources(folder)
        return {"stage": "causalqa", **common, "datasets": {name: source.inputs for name, source in present.items()}}

    datasets: dict[str, DatasetFacts] = {}
    with Artifact(place).make(inputs, resume="any") as draft:
        if draft is None:
            datasets = read_facts(place)
        else:
            for name, source in sources.items():
                key = compute_fingerprint({**common, "dataset": source.inputs})
                state = draft.folder / f"{name}{STATE}"
                facts = _read_state(state, key)
                if facts is None:
                    state.unlink(missing_ok=True)
                    facts = _write_dataset(draft.folder, name, source, key, rules, seed)
                    write_json(state, facts)
                datasets[name] = facts
            for path in [*draft.folder.glob(f"*{STATE}*"), *draft.folder.glob("*/*.jsonl*")]:
                if path.parent == draft.folder or path.stem not in datasets:  # left by an earlier attempt
                    path.unlink()
            draft.record |= {"datasets": datasets, "absent": absent}
            draft.record["questions"] = sum(map(count_causal, datasets.values()))
    for name in PUBLISHERS:
        yield f"{name}: absent, {absent[name]}" if name in absent else _summary_line(name, datasets[name])


def find_sources(folder: Path) -> tuple[dict[str, DatasetSource], dict[str, str]]:
    """For a folder: dataset -> source, and dataset -> why it is absent."""
    released = release.find_release(folder)
    sources, absent = {}, {}
    for name, publisher in PUBLISHERS.items():
        place = folder / name
        if place.is_dir():
            available = list_files(place)
            chosen = publisher.choose_files(available)
            if not chosen:
                names = ", ".join(part.base for part in available[:5]) or "no files"
                raise FormatError(f"{place}: wanted {publisher.wanted}; found {names}")
            inputs = _fingerprint_files(chosen, publisher.fingerprint_lines(place))
            sources[name] = DatasetSource("publisher", chosen, publisher.size(chosen), publisher.questions, inputs)
        elif name in released and release.has_texts(released[name]):
            chosen, questions = released[name], partial(release.read_candidates, name)
            size, inputs = sum(part.size for part in chosen), _fingerprint_files(chosen)
            sources[name] = DatasetSource("release", chosen, size, questions, inputs)
        elif name in released:
            absent[name] = f"the release has only its ids; put {publisher.wanted} into {place}"
        else:
            absent[name] = f"{place} is missing; wanted in it: {publisher.wanted}"
    return sources, absent


def _fingerprint_files(chosen: Sequence[DatasetFile], more_lines: Iterable[str] = ()) -> dict[str, object]:
    """A SHA-256 over the files' names, their hashes and `more_lines`; also each file's own hash, if there are few files."""
    files = {path: cached_sha256(path) for path in {part.path for part in chosen}}
    digest = hashlib.sha256()
    for line in (*(f"{part.name} {files[part.path]}" for part in chosen), *more_lines):
        digest.update(f"{line}\n".encode("utf-8", "surrogateescape"))
    names = {path.name: files[path] for path in sorted(files)} if len(files) <= _LISTED_FILES else {}
    return {"parts": len(chosen), "sha256": digest.hexdigest(), "files": names}


def _read_state(state: Path, key: str) -> DatasetFacts | None:
    """The facts of a dataset that an earlier attempt completed from the same inputs; None if there are none."""
    facts = check_shape(DatasetFacts, read_json(state), str(state), "remove it") if state.exists() else None
    return facts if facts and facts["key"] == key else None


def _write_dataset(folder: Path, name: str, source: DatasetSource, key: str, rules: str, seed: int) -> DatasetFacts:
    """Write and count the causal questions of a source."""
    released, counts = source.origin == "release", {split: [0, 0, 0] for split in SPLITS}
    facts: DatasetFacts = {"key": key, "origin": source.origin, "questions": 0, "unanswered": 0, "splits": counts}
    reported = 0.0
    with ExitStack() as stack:
        handles = {split: stack.enter_context(atomic_write(folder / split / f"{name}.jsonl")) for split in SPLITS}
        advance = stack.enter_context(bar(name, source.size, unit="bytes"))
        reader = stack.enter_context(FileReader())
        candidates = source.questions(reader, source.parts, lambda question: bool(match_rules(question, rules)))
        for number, candidate in enumerate(stack.enter_context(closing(candidates)), start=1):
            if number % 1024 == 0:
                advance(reader.position - reported)
                reported = reader.position
            facts["questions"] += not released
            names = match_rules(candidate.question, rules)
            if not (names or released):
                continue
            details = candidate.details()
            answers = [text for answer in details.answers if (text := _clean(answer))]
            if not answers:
                facts["unanswered"] += not details.split.startswith("original-")  # the release lists each twice
                continue
            record = {
                "id": "_".join(_clean(details.id).split()), "question": _clean(candidate.question),
                "context": _clean(details.context), "answers": answers, "rules": list(names),
            }  # fmt: skip
            line, sizes = json_line(record), (1, len(candidate.question.split()), len(answers[0].split()))
            for split in question_splits(details, name, seed):
                write_bytes(handles[split], line)
                counts[split][:] = map(sum, zip(counts[split], sizes, strict=True))
    return facts


def _clean(text: str) -> str:
    """The stripped text with spaces for tabs, which separate answers in the release, and "?" for lone surrogates."""
    return text.replace("\t", " ").strip().encode("utf-8", "replace").decode()


def question_splits(details: Details, dataset: str, seed: int) -> list[str]:
    """The splits that a question belongs to."""
    if details.split in SPLITS:
        return [details.split]
    digest = hashlib.blake2b(f"{seed}\n{dataset}\n{details.id}".encode("utf-8", "replace"), digest_size=8).digest()
    part = "valid" if int.from_bytes(digest) < 2**64 // 10 else "train"
    original = part if details.split == "both" else details.split
    return [f"random-{part}", *([f"original-{original}"] if original else [])]


def read_facts(place: Path) -> dict[str, DatasetFacts]:
    """Dataset -> facts, from the manifest of a finished corpus; empty if there is none."""
    if (manifest := read_manifest(place)) is None:
        return {}
    where, mend = f"{place / MANIFEST}: 'record'", f"remove the folder {place} to rebuild it"
    return check_shape(_ManifestRecord, manifest["record"], where, mend)["datasets"]


def count_causal(facts: DatasetFacts) -> int:
    """Number of causal questions in a dataset; all are in the random split."""
    return sum(facts["splits"][split][0] for split in SPLITS if split.startswith("random"))


def _summary_line(name: str, facts: DatasetFacts) -> str:
    total = f"{facts['questions']:,} questions, " if facts["origin"] == "publisher" else "from the release, "
    sizes = ", ".join(f"{split} {facts['splits'][split][0]:,}" for split in SPLITS)
    return f"{name}: {total}{count_causal(facts):,} causal, {facts['unanswered']:,} left out without an answer; {sizes}"
