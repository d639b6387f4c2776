"""`ifqa publish`: folders for the model hub, with a card, the files, and what licences ask for.

Nothing is uploaded.
"""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ifqa.errors import ConfigError, unknown_name
from ifqa.models.cards import CARDS, SAMPLE, model_names, read_facts, write_notice
from ifqa.storage.artifacts import (
    lock,
    partial_folder,
    publish_draft,
    refuse_links,
    report_full_disk,
)
from ifqa.storage.resources import BUNDLED, read_licence

README = "README.md"  # the hub shows it as the card
_ORGANISATION = "YOUR_NAME"  # of the user on the hub


@dataclass(frozen=True)
class HubFolder:
    """What a repository of the hub needs.

    `copies` are files of this package, which keep their names; `texts` are written.
    """

    name: str
    kind: Literal["model", "dataset"]
    copies: tuple[Path, ...]
    texts: dict[str, str]

    @property
    def file_names(self) -> set[str]:
        """The names of all files of the folder."""
        return {path.name for path in self.copies} | self.texts.keys()

    def upload_command(self, folder: Path) -> str:
        """The command of huggingface_hub that uploads the folder."""
        repository = self.name if "ifqa" in self.name else f"ifqa-{self.name}"
        kind = "" if self.kind == "model" else f" --repo-type {self.kind}"
        return f"hf upload {_ORGANISATION}/{repository} {folder}{kind}"


def folder_names() -> list[str]:
    """The names of all that can be published."""
    return [*model_names(), SAMPLE]


def describe_folder(name: str) -> HubFolder:
    """The files of weights, or of the bundled sample, as the hub needs them.

    Raises ConfigError for an unknown name.
    """
    if name not in folder_names():
        raise unknown_name("model or data", name, folder_names())
    card = (CARDS / f"{name}.md").read_text(encoding="utf-8")
    texts = {README: card, "LICENSE": read_licence()}
    if name == SAMPLE:
        files = sorted(path for path in (BUNDLED / SAMPLE).iterdir() if path.is_file())
        return HubFolder(name, "dataset", tuple(files), texts)
    facts = read_facts(name)
    return HubFolder(name, "model", facts.files, {**texts, "NOTICE": write_notice(facts)})


def write_folders(names: Sequence[str], to: Path) -> Iterator[tuple[HubFolder, Path]]:
    """Write the folders TO/NAME; yields each with its path after it is written.

    `names` is empty for all. A folder is written aside and renamed, and takes the place of one that
    an earlier call wrote. Raises ConfigError for an unknown name, and before anything is written if
    a folder has other files; IfqaError if a path is a link, or the disk is full.
    """
    folders = [describe_folder(name) for name in dict.fromkeys(names or folder_names())]
    for described in folders:
        folder = to / described.name
        refuse_links(folder, folder)
        _refuse_other_files(described, folder)
    with lock(to):
        for described in folders:
            folder = to / described.name
            refuse_links(folder, folder)
            with report_full_disk(folder):
                _write(described, folder)
            yield described, folder


def _write(described: HubFolder, folder: Path) -> None:
    draft = partial_folder(folder)
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    for path in described.copies:
        shutil.copyfile(path, draft / path.name)
    for name, text in described.texts.items():
        (draft / name).write_text(text, encoding="utf-8")
    _refuse_other_files(described, folder)  # the user may have put a file there meanwhile
    publish_draft(folder)


def _refuse_other_files(described: HubFolder, folder: Path) -> None:
    """Raise ConfigError if replacing a folder would remove a file of the user's.

    Hidden files count: the folder may be a clone of a repository.
    """
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file; wanted a folder: name another with --to")
    present = {path.name for path in folder.glob("*")}
    others = sorted(present - described.file_names)
    missing = sorted(described.file_names - present)
    if folder.exists() and not others and missing:
        raise ConfigError(
            f"{folder} has no {missing[0]}, so that no earlier publish wrote it; "
            "wanted a new folder: name another with --to",
            mend="name another folder with --to",
        )
    if others:
        raise ConfigError(
            f"{folder} has {others[0]}, which is no file of {described.name}; "
            "wanted a new folder, or one of an earlier publish: name another with --to",
            found=others[0],
            mend="name another folder with --to",
        )
