"""Builds the corpus `data/causalqa/`: causal questions of ten datasets, in the original and in a random split.

`SPLIT/DATASET.jsonl` has a line for each question:

    {"id": "5", "question": "why is the sky blue", "context": "", "answers": ["..."], "rules": ["R1"]}

A dataset comes from its publisher's files in FOLDER/DATASET, else from the authors' release in FOLDER. Questions
without an answer are left out, in the paper of MS MARCO, Natural Questions, ELI5, SQuAD and NewsQA.

The random split draws each question on its own: it is for validation if a hash of seed, dataset and id falls into the
lowest tenth. So a file of any length takes the same memory, the order of the files does not matter, and a part has 10%
but for chance (PAQ: 76,961 ± 263). The authors' own draw cannot be rebuilt.
"""

import hashlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

from typing_extensions import TypedDict

from ifqa.benchmarks.causalqa import release
from ifqa.benchmarks.causalqa.benchmark import SPLITS
from ifqa.benchmarks.causalqa.rules import RULES, match_rules
from ifqa.errors import IfqaError, unknown_name
from ifqa.formats.causalqa_datasets import PUBLISHERS
from ifqa.formats.causalqa_files import Candidates, CausalTest, DatasetFile, FileReader, QuestionDetails, list_files
from ifqa.progress import bar
from ifqa.settings import check_shape
from ifqa.storage.artifacts import MANIFEST, Artifact, compute_fingerprint, damaged_files, read_manifest
from ifqa.storage.download import download_file
from ifqa.storage.files import (
    atomic_write,
    cached_by_file,
    cached_sha256,
    json_line,
    read_json,
    sha256,
    write_bytes,
    write_json,
)

VERSION = 2  # raised when the same files become other lines
STATE = ".facts.json"  # ends the name of a file that says that a dataset is complete, while others are made
_LISTED_FILES = 64  # files of a dataset whose names the manifest lists
_LARGE = 64_000_000  # bytes


class DatasetFacts(TypedDict):
    """What the manifest's `record` says of a dataset, and the state of one that is complete while others are made."""

    key: str  # the identity of what it was made from
    origin: str  # "publisher" or "release"
    questions: int  # all that were read; 0 of the authors' release, which has causal ones alone
    unanswered: int  # causal questions without an answer, which are left out
    splits: dict[str, list[int]]  # split -> questions, words of them, words of their first answers


class _ManifestRecord(TypedDict):
    datasets: dict[str, DatasetFacts]


class DatasetSource(NamedTuple):
    """Where a dataset is read from: "publisher" or "release", its parts, and what gives their questions."""

    origin: str
    parts: Sequence[DatasetFile]
    size: int
    questions: Callable[[FileReader, Sequence[DatasetFile], CausalTest], Candidates]
    inputs: dict[str, object]


def build_causalqa(root: Path, folder: Path | None, rules: str = "notebook", seed: int = 0) -> Iterator[str]:
    """Build the corpus in `root`/data; yields a line for each dataset, the absent ones too. An error leaves it as it was.

    `folder` has the publishers' files, or the authors' release; None fetches the release into data/causalqa-release. `rules` is a
    reading of the rules, and `seed` that of the random split.
    """
    if rules not in RULES:
        raise unknown_name("reading of the rules", rules, RULES)
    if folder is None:
        folder = root / "data" / "causalqa-release"
        if not (folder.is_dir() and release.find_release(folder)):
            download_file(release.URL, folder / Path(release.URL).name)
    if not folder.is_dir():
        raise IfqaError(f"--from {folder}: no such folder")
    sources, absent = find_sources(folder)
    if not sources:
        raise IfqaError(
            f"--from {folder}: wanted folders named {', '.join(PUBLISHERS)} in it, or {release.NAME}-v-1.0; found none of them"
        )
    place = root / "data" / "causalqa"
    common = {"version": VERSION, "rules": rules, "seed": seed}
    common["patterns"] = {name: pattern.pattern for name, pattern in RULES[rules].items()}

    def inputs() -> dict[str, object]:
        present, _ = find_sources(folder)
        return {"stage": "causalqa", **common, "datasets": {name: source.inputs for name, source in present.items()}}

    told: dict[str, DatasetFacts] = {}
    with Artifact(place).make(inputs, resume="any") as draft:
        if draft is None:
            told = read_facts(place)
        else:
            for name, source in sources.items():
                key = compute_fingerprint({**common, "dataset": source.inputs})
                state = draft.folder / f"{name}{STATE}"
                facts = _read_state(state, key) or _copy_finished(place, draft.folder, name, key)
                if facts is None:
                    state.unlink(missing_ok=True)
                    facts = _write_dataset(draft.folder, name, source, key, rules, seed)
                    write_json(state, facts)
                told[name] = facts
            for path in [*draft.folder.glob(f"*{STATE}*"), *draft.folder.glob("*/*.jsonl*")]:
                if path.parent == draft.folder or path.stem not in told:  # of a dataset that an earlier attempt had
                    path.unlink()
            draft.record |= {"datasets": told, "absent": absent}
            draft.record["questions"] = sum(count_causal(facts) for facts in told.values())
    for name in PUBLISHERS:
        yield f"{name}: absent, {absent[name]}" if name in absent else _summary_line(name, told[name])


def find_sources(folder: Path) -> tuple[dict[str, DatasetSource], dict[str, str]]:
    """Dataset -> source of those in a folder; and dataset -> why it is absent."""
    released = release.find_release(folder)
    sources, absent = {}, {}
    for name, publisher in PUBLISHERS.items():
        place = folder / name
        if place.is_dir():
            available = list_files(place)
            chosen = publisher.choose_files(available)
            if not chosen:
                names = ", ".join(part.base for part in available[:5]) or "no files"
                raise IfqaError(f"{place}: wanted {publisher.wanted}; found {names}")
            facts = _fingerprint_parts(chosen, publisher.fingerprint_lines(place))
            sources[name] = DatasetSource("publisher", chosen, publisher.size(chosen), publisher.questions, facts)
        elif name in released and release.has_texts(released[name]):
            chosen, questions = released[name], partial(release.read_candidates, name)
            sources[name] = DatasetSource(
                "release", chosen, sum(part.size for part in chosen), questions, _fingerprint_parts(chosen)
            )
        elif name in released:
            absent[name] = f"the release has its ids alone; put {publisher.wanted} into {place}"
        else:
            absent[name] = f"{place} is not there; wanted in it: {publisher.wanted}"
    return sources, absent


def _fingerprint_parts(chosen: Sequence[DatasetFile], aside: Iterable[str] = ()) -> dict[str, object]:
    """The identity of a source: one SHA-256 over the names and the SHA-256 of its files, and of a few files the names."""
    files = {path: _sha256(path) for path in {part.path for part in chosen}}
    digest = hashlib.sha256()
    for line in (*(f"{part.name} {files[part.path]}" for part in chosen), *aside):
        digest.update(f"{line}\n".encode("utf-8", "surrogateescape"))
    names = {path.name: files[path] for path in sorted(files)} if len(files) <= _LISTED_FILES else {}
    return {"parts": len(chosen), "sha256": digest.hexdigest(), "files": names}


@cached_by_file()
def _sha256(path: Path) -> str:
    return cached_sha256(path) if path.stat().st_size > _LARGE else sha256(path)  # a bar for a large one alone


def _read_state(state: Path, key: str) -> DatasetFacts | None:
    """The facts of a dataset that an earlier attempt completed from the same; else None."""
    facts = check_shape(DatasetFacts, read_json(state), str(state), "remove it") if state.exists() else None
    return facts if facts and facts["key"] == key else None


def _copy_finished(finished: Path, folder: Path, name: str, key: str) -> DatasetFacts | None:
    """Copy a dataset's files from the finished corpus, if they were made from the same, and give its facts; else None."""
    manifest, facts = read_manifest(finished), read_facts(finished).get(name)
    if manifest is None or facts is None or facts["key"] != key:
        return None
    if any(path.endswith(f"/{name}.jsonl") for path in damaged_files(finished, manifest)):
        return None
    for split in SPLITS:
        (folder / split).mkdir(exist_ok=True)
        shutil.copyfile(finished / split / f"{name}.jsonl", folder / split / f"{name}.jsonl")
    return facts


def _write_dataset(folder: Path, name: str, source: DatasetSource, key: str, rules: str, seed: int) -> DatasetFacts:
    """Write the causal questions of a source, and count them."""
    released, counts = source.origin == "release", {split: [0, 0, 0] for split in SPLITS}
    facts: DatasetFacts = {"key": key, "origin": source.origin, "questions": 0, "unanswered": 0, "splits": counts}
    seen = 0.0
    with ExitStack() as stack:
        handles = {split: stack.enter_context(atomic_write(folder / split / f"{name}.jsonl")) for split in SPLITS}
        advance = stack.enter_context(bar(name, source.size, unit="bytes"))
        reading = stack.enter_context(FileReader())
        candidates = source.questions(reading, source.parts, lambda question: bool(match_rules(question, rules)))
        for number, candidate in enumerate(stack.enter_context(closing(candidates)), start=1):
            if number % 1024 == 0:
                advance(reading.position - seen)
                seen = reading.position
            facts["questions"] += not released
            names = match_rules(candidate.question, rules)
            if not (names or released):
                continue
            details = candidate.details()
            answers = [text for answer in details.answers if (text := _clean(answer))]
            if not answers:
                facts["unanswered"] += not details.split.startswith("original-")  # the release has each twice
                continue
            line, words = _json_record(candidate.question, details, answers, names)
            for split in question_splits(details, name, seed):
                write_bytes(handles[split], line)
                for place, more in enumerate((1, *words)):
                    counts[split][place] += more
    return facts


def _json_record(
    question: str, details: QuestionDetails, answers: list[str], names: Sequence[str]
) -> tuple[bytes, tuple[int, int]]:
    """A line of the corpus, and the words of the question and of the first answer."""
    record = {
        "id": "_".join(_clean(details.id).split()), "question": _clean(question), "context": _clean(details.context),
        "answers": answers, "rules": list(names),
    }  # fmt: skip
    return json_line(record), (len(question.split()), len(answers[0].split()))


def _clean(text: str) -> str:
    """The text without tabs, which part answers from one another, blanks around it, and half surrogate pairs (? instead)."""
    return text.replace("\t", " ").strip().encode("utf-8", "replace").decode()


def question_splits(details: QuestionDetails, dataset: str, seed: int) -> list[str]:
    """The names of the splits that a question goes to."""
    if details.split in SPLITS:
        return [details.split]
    drawn = hashlib.blake2b(f"{seed}\n{dataset}\n{details.id}".encode("utf-8", "replace"), digest_size=8).digest()
    part = "valid" if int.from_bytes(drawn) < 2**64 // 10 else "train"
    original = part if details.split == "both" else details.split
    return [f"random-{part}", *([f"original-{original}"] if original else [])]


def read_facts(place: Path) -> dict[str, DatasetFacts]:
    """What a finished corpus's manifest says of its datasets; empty if there is none."""
    manifest = read_manifest(place)
    if manifest is None:
        return {}
    where, mend = f"{place / MANIFEST}: 'record'", f"remove the folder {place} to make it anew"
    return check_shape(_ManifestRecord, manifest["record"], where, mend)["datasets"]


def count_causal(facts: DatasetFacts) -> int:
    """Causal questions of a dataset: all are in the random split."""
    return sum(facts["splits"][split][0] for split in SPLITS if split.startswith("random"))


def _summary_line(name: str, facts: DatasetFacts) -> str:
    read = f"{facts['questions']:,} questions, " if facts["origin"] == "publisher" else "from the release, "
    sizes = ", ".join(f"{split} {facts['splits'][split][0]:,}" for split in SPLITS)
    return f"{name}: {read}{count_causal(facts):,} causal, {facts['unanswered']:,} without an answer left out; {sizes}"
