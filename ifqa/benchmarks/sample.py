"""The sample: this project's own questions on its own small encyclopedia, in the format of IfQA."""

from collections.abc import Mapping
from typing import ClassVar

from ifqa.benchmarks.ifqa import IfQA
from ifqa.storage.resources import BUNDLED


class Sample(IfQA):
    """The bundled questions on the bundled encyclopedia: `train` and `dev`, written by this project."""

    name = "sample"
    files: ClassVar[dict[str, str]] = {"train": "train.json", "dev": "dev.json"}
    splits = tuple(files)
    downloads: Mapping[str, tuple[str, str | None]] = {}
    missing = "the installation is broken; install ifqa again"

    def __init__(self) -> None:
        self.folder = BUNDLED / "sample"

    def setting(self, split: str) -> str:
        """The sample has one setting: its parts share no question."""
        return self.name
