"""The sample benchmark: questions of this project on its own small encyclopedia, in the format of IfQA.

`dev` has one question on each article, in the manner of IfQA. `hard` has questions that were written to be hard: most name
nothing directly. A language model wrote both from the articles alone, before a system was run on them.
"""

from typing import ClassVar

from ifqa.benchmarks.ifqa import IfQA
from ifqa.storage.resources import BUNDLED


class Sample(IfQA):
    """The bundled questions on the bundled encyclopedia: `train`, `dev` and `hard`."""

    name = "sample"
    paths: ClassVar[dict[str, str]] = {"train": "train.json", "dev": "dev.json", "hard": "hard.json"}
    downloads: ClassVar[dict[str, tuple[str, str | None]]] = {}
    missing = "the installation is broken; install ifqa again"

    def __init__(self) -> None:
        super().__init__()
        self.folder = BUNDLED / "sample"

    def family(self, split: str) -> str:
        """The name of the sample: it has one family, whose splits share no question."""
        return self.name

    def _train(self, split: str) -> str:
        return "train"  # 9 of the 83 questions of `dev`, and 9 of `hard`, share a gold passage with it
