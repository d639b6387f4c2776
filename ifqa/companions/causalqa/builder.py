"""Builds the corpus `data/causalqa/`: the causal questions of ten datasets, in the original and in
the authors' random split.

`benchmark.py` shows a line of its files, SPLIT/DATASET.jsonl. The questions are those of the
authors' release. ELI5, of which the release has only ids, is read from its publisher's file.
Questions without an answer are left out; the paper leaves them out only of MS MARCO, Natural
Questions, ELI5, SQuAD and NewsQA.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from typing_extensions import TypedDict

from ifqa.companions.causalqa import release
from ifqa.companions.causalqa.release import DATASETS, ELI5, SPLITS, ReleaseFile
from ifqa.companions.causalqa.rules import RULES, match_rules
from ifqa.errors import FormatError, MissingInput
from ifqa.progress import bar
from ifqa.settings import check_shape
from ifqa.storage.artifacts import MANIFEST, Artifact, read_manifest
from ifqa.storage.download import RemoteFile, download_all
from ifqa.storage.files import (
    atomic_write,
    cached_sha256,
    json_line,
    read_json,
    write_bytes,
    write_json,
)

VERSION = 3  # increment when the same input files give different lines
STATE = "facts.json"  # during a build: the facts of the complete datasets
_ROWS = 1000  # between two moves of the progress bar


class DatasetFacts(TypedDict):
    """Counts of a complete dataset, kept in the manifest's `record` and, during a build, in the
    state file.
    """

    unanswered: int  # questions without an answer, which are left out
    missing: int  # ids of the release that are not in ELI5's file
    # Split -> numbers of questions, of their words, and of their first answers' words
    splits: dict[str, list[int]]


class _ManifestRecord(TypedDict):
    datasets: dict[str, DatasetFacts]


def build_causalqa(root: Path, folder: Path | None) -> Iterator[str]:
    """Build the corpus in `root`/data; yields a line for each dataset, present or absent.

    An error leaves the old corpus.

    `folder` has the authors' release, and ELI5's file in its folder `eli5`; None fetches the
    release into data/causalqa-release.
    """
    if folder is None:
        folder = root / "data" / "causalqa-release"
        if not (folder.is_dir() and release.find_release(folder)):
            download_all([RemoteFile(release.URL, folder / Path(release.URL).name)], folder)
    if not folder.is_dir():
        raise MissingInput(f"--from {folder}: no such folder")
    released = release.find_release(folder)
    eli5 = release.find_eli5(folder / ELI5)
    absent = {name: "the release has no file of it" for name in DATASETS if name not in released}
    if ELI5 in released and not eli5:
        wanted = f"train_eli5.jsonl or eli5-train-kilt.jsonl into {folder / ELI5}"
        absent[ELI5] = f"the release has only its ids; put {wanted}"
    if not released.keys() - absent.keys():
        raise MissingInput(
            f"--from {folder}: wanted {release.NAME}-v-1.0, or its .zip, with the files of a "
            "dataset; found none"
        )
    place = root / "data" / "causalqa"

    def inputs() -> dict[str, object]:
        paths = {file.path for files in released.values() for file in files.values()} | (
            {eli5} if eli5 else set()
        )
        return {
            "stage": "causalqa",
            "version": VERSION,
            "patterns": {name: pattern.pattern for name, pattern in RULES["notebook"].items()},
            "files": {
                path.relative_to(folder).as_posix(): cached_sha256(path) for path in sorted(paths)
            },
        }

    with Artifact(place).make(inputs, resume="same") as draft:
        if draft is None:
            datasets = read_facts(place)
        else:
            state = draft.folder / STATE
            datasets = (
                _check_record(read_json(state), str(state), "remove it") if state.exists() else {}
            )
            for name in DATASETS:
                if name not in absent and name not in datasets:
                    datasets[name] = _write_dataset(draft.folder, name, released[name], eli5)
                    write_json(state, {"datasets": datasets})
            state.unlink()
            draft.record |= {"datasets": datasets, "absent": absent}
            draft.record["questions"] = sum(map(count_causal, datasets.values()))
    for name in DATASETS:
        yield (
            f"{name}: absent, {absent[name]}"
            if name in absent
            else _summary_line(name, datasets[name])
        )


def _write_dataset(
    folder: Path, name: str, files: dict[str, ReleaseFile], eli5: Path | None
) -> DatasetFacts:
    """Write and count the questions of a dataset."""
    counts = {split: [0, 0, 0] for split in SPLITS}
    facts: DatasetFacts = {"unanswered": 0, "missing": 0, "splits": counts}
    with ExitStack() as stack:
        handles = {
            split: stack.enter_context(atomic_write(folder / split / f"{name}.jsonl"))
            for split in SPLITS
        }
        advance = stack.enter_context(bar(f"{name}, questions", None))
        ids: dict[str, list[str]] = {}
        if name == ELI5 and eli5:
            ids = release.read_ids(files)
            questions = release.read_eli5(eli5, ids)
        else:
            questions = (
                ([split], row)
                for split, file in files.items()
                for row in release.read_questions(name, file)
            )
        for number, (splits, row) in enumerate(questions, start=1):
            if number % _ROWS == 0:  # to move the bar takes longer than to write a question
                advance(_ROWS)
            answers = [text for answer in row.answers if (text := _clean(answer))]
            if not answers:
                # The release lists each question twice.
                facts["unanswered"] += any(split.startswith("random-") for split in splits)
                continue
            record = {
                "id": "_".join(_clean(row.id).split()),
                "question": _clean(row.question),
                "context": _clean(row.context),
                "answers": answers,
                "rules": list(match_rules(row.question)),
            }
            line = json_line(record)
            sizes = (1, len(row.question.split()), len(answers[0].split()))
            for split in splits:
                write_bytes(handles[split], line)
                counts[split][:] = map(sum, zip(counts[split], sizes, strict=True))
        facts["missing"] = len(ids)
    if ids and not count_causal(facts):
        raise FormatError(
            f"{eli5}: has none of the release's {len(ids):,} ids; wanted the training "
            "questions of ELI5"
        )
    return facts


def _clean(text: str) -> str:
    """The stripped text with spaces for tabs, which separate answers in the release, and "?" for
    lone surrogates.
    """
    return text.replace("\t", " ").strip().encode("utf-8", "replace").decode()


def read_facts(place: Path) -> dict[str, DatasetFacts]:
    """Dataset -> facts, from the manifest of a finished corpus; empty if there is none."""
    if (manifest := read_manifest(place)) is None:
        return {}
    return _check_record(
        manifest["record"],
        f"{place / MANIFEST}: 'record'",
        f"remove the folder {place} to rebuild it",
    )


def _check_record(record: object, where: str, mend: str) -> dict[str, DatasetFacts]:
    return check_shape(_ManifestRecord, record, where, mend)["datasets"]


def count_causal(facts: DatasetFacts) -> int:
    """Number of questions in a dataset; all are in the random split."""
    return sum(facts["splits"][split][0] for split in SPLITS if split.startswith("random"))


def _summary_line(name: str, facts: DatasetFacts) -> str:
    missing = f", {facts['missing']:,} ids not in its file" if facts["missing"] else ""
    sizes = ", ".join(f"{split} {facts['splits'][split][0]:,}" for split in SPLITS)
    return (
        f"{name}: {count_causal(facts):,} causal, {facts['unanswered']:,} left out without an "
        f"answer{missing}; {sizes}"
    )
