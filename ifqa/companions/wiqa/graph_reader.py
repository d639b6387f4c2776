"""Reader 'graph': follows a change through the steps of a paragraph to its effect, without
training.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ifqa.companions.wiqa.direction_lexicon import direction, polarity
from ifqa.companions.wiqa.options import OptionReader
from ifqa.companions.wiqa.release import CHOICES
from ifqa.corpus.sentences import split_sentences
from ifqa.models.devices import resolve_device
from ifqa.models.loading import silence_transformers, weights_fingerprint
from ifqa.models.places import MINILM, minilm_folder
from ifqa.protocols import ProgressCallback, RankedPassages, Requirement, no_progress
from ifqa.records import Explanation, Passage, Prediction, Question
from ifqa.settings import PluginSettings, Share

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_WORD = re.compile(r"[\w'’]+")
_AMOUNTS = frozenset("more less fewer most least much little many few".split())
#: WIQA's wording, and how people shorten it.
_FORM = re.compile(
    r"\s*suppose (.+?)(?: happens)?,? how (?:will|would) (?:it|this|that) affect (.+?)[.?!]*\s*",
    re.I | re.S,
)
_WANTED = "suppose CHANGE happens, how will it affect EFFECT."


class CausalPath(NamedTuple):
    """The two steps of a passage that a question is about."""

    passage: Passage
    # Of the change, the mean of the cosines with the passage and with the nearest step
    similarity: float
    change: tuple[int, int]  # start and end of the step nearest to the change, in characters
    effect: tuple[int, int]


class Graph(OptionReader):
    """Answers "suppose CHANGE happens, how will it affect EFFECT." with more, less or no effect.

    It takes the passage that is nearest to change and effect together, by the cosine of
    all-MiniLM-L6-v2 with the passage and with its nearest sentence. If the change is not about that
    passage, the answer is "no effect". Otherwise the sentence nearest to the change and the one
    nearest to the effect are the ends of a path, which is the explanation. The answer is "more" if
    change and effect both say more than the passage does, or both less, by the lexicon of the
    reader 'polarity'; a description without a direction says more.
    """

    name = "graph"
    version = 1
    runtime_only = ("device",)

    class Settings(PluginSettings):
        least: Share = 0.28
        """The mean of the two cosines from which a change has an effect; the default fits the
        bundled training questions.
        """
        device: str = "auto"
        """The device: "cpu", "cuda", "mps", or "auto": CUDA if there is a GPU, else the CPU."""

    def __init__(self, settings: Settings) -> None:
        from sentence_transformers import SentenceTransformer

        silence_transformers()
        self._least = settings.least
        device = resolve_device(settings.device)
        self._encoder = SentenceTransformer(str(minilm_folder()), device=device)

    def answer(
        self,
        questions: Sequence[Question],
        passages: RankedPassages,
        advance: ProgressCallback = no_progress,
    ) -> list[Prediction]:
        """As `OptionReader.answer`.

        A question that offers no choices is given "more", "less" and "no effect".
        """
        offered = tuple(text for _, text in CHOICES.values())
        questions = [
            question if question.choices else replace(question, choices=offered)
            for question in questions
        ]
        return super().answer(questions, passages, advance)

    def _choose(self, questions: Sequence[Question], passages: RankedPassages) -> list[Prediction]:
        return [
            self._follow(question, ranking)
            for question, ranking in zip(questions, passages, strict=True)
        ]

    def _follow(self, question: Question, passages: Sequence[Passage]) -> Prediction:
        form = _FORM.fullmatch(question.text)
        by_direction = {direction(choice): choice for choice in question.choices}
        if not form:
            return Prediction(question.id, "", error=f"reader 'graph' wants: {_WANTED}")
        if by_direction.keys() != {1, 0, -1}:
            return Prediction(
                question.id, "", error="the choices do not offer more, less and no effect"
            )
        path = self._path(form.groups(), passages)
        if path is None:
            return Prediction(question.id, "", error="there is no passage to read")
        signs = [_polarity_beside(path.passage.text, description) for description in form.groups()]
        sign = signs[0] * signs[1] if path.similarity >= self._least else 0
        steps = min(path.change + path.effect), max(path.change + path.effect)
        return Prediction(
            question.id,
            by_direction[sign],
            passage_ids=(path.passage.id,),
            how=Explanation(path.passage.id, steps, path.effect),
        )

    def _path(self, ends: Sequence[str], passages: Sequence[Passage]) -> CausalPath | None:
        paths = []
        end_vectors = self._encode(ends)
        for passage in passages:
            sentences = split_sentences(passage.text)
            starts = accumulate(map(len, sentences), initial=0)
            spans = [
                (start, start + len(text.rstrip()))
                for start, text in zip(starts, sentences, strict=False)
            ]
            if spans:
                # [change and effect, passage and its sentences]
                similarity = end_vectors @ self._encode([passage.text, *sentences]).T
                first, last = (spans[int(row.argmax())] for row in similarity[:, 1:])
                change, effect = (similarity[:, 0] + similarity[:, 1:].max(1)) / 2
                paths.append(
                    (float(change + effect), CausalPath(passage, float(change), first, last))
                )
        return max(paths, key=lambda path: path[0])[1] if paths else None

    def _encode(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        return self._encoder.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)

    @classmethod
    def requirements(cls, settings: Settings, root: Path) -> list[Requirement]:
        return [Requirement(MINILM)]

    @classmethod
    def fingerprint(cls, settings: Settings, root: Path) -> str:
        return weights_fingerprint(minilm_folder())


def _polarity_beside(passage: str, description: str) -> int:
    """1 if a description says more than a passage, else -1: "the beans lose water" is more, where
    the passage says the same.
    """
    words = {word.lower() for word in _WORD.findall(passage)} - _AMOUNTS
    return (
        polarity(" ".join(word for word in _WORD.findall(description) if word.lower() not in words))
        or 1
    )
