"""The benchmark `sample-causal`: 60 causal questions of this project on the bundled encyclopedia.

A language model read the articles and wrote the questions, the answers and their classes before any system was run on them.
A record of bundled/sample/causal.json:

    {"split": "dev", "id": 0, "type": "cause", "article": "Alaska Purchase", "question": "Why was there so little left ...?",
     "answers": ["the otters had been hunted almost to extinction", ...], "context": "Russian traders had come ..."}

`type` is a class of the paper's typology that can be told from question and answer: cause, goal, purpose, enablement, result or
verification. `context` is a paragraph of the article, word for word.
"""

from functools import cache
from pathlib import Path

from ifqa.benchmarks.causalqa.benchmark import ANSWERED, FOUND
from ifqa.errors import unknown
from ifqa.protocols import Benchmark
from ifqa.records import Question
from ifqa.scoring.measures.gold_recall import GOLD_ANY
from ifqa.storage.files import read_json
from ifqa.storage.resources import BUNDLED


class SampleCausal(Benchmark):
    """The bundled causal questions: 45 in `dev`, 15 in `train`; scored by class of the typology."""

    name = "sample-causal"
    groups = "class"
    measures = (*ANSWERED, GOLD_ANY, FOUND)
    folder = BUNDLED / "sample"
    splits = ("train", "dev")

    def files(self, split: str) -> list[Path]:
        """The one file, which has both splits.

        Raises:
            IfqaError: there is no such split.
        """
        if split not in self.splits:
            raise unknown(f"split of {self.name}", split, self.splits)
        return [self.folder / "causal.json"]

    def questions(self, split: str) -> list[Question]:
        """The questions of a split, by class.

        Raises:
            IfqaError: there is no such split.
        """
        (path,) = self.files(split)
        return [question for of, question in _read(path) if of == split]

    def family(self, split: str) -> str:
        """The name of the sample: it has one family, whose splits share no question."""
        return self.name


@cache
def _read(path: Path) -> list[tuple[str, Question]]:
    return [
        (
            one["split"],
            Question(
                id=f"sample-causal/{one['split']}/{one['id']}",
                text=one["question"],
                answers=tuple(one["answers"]),
                gold_passages=(one["context"],),
                context=one["context"],
                group=one["type"],
                labels=(("article", one["article"]),),
            ),
        )
        for one in read_json(path)
    ]
