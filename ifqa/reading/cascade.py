"""Reader 'cascade': the span reader where it is confident, else a language model."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from ifqa.errors import ConfigError
from ifqa.plugins import Plugins, code_fingerprint
from ifqa.protocols import (
    LanguageModel,
    PathSetting,
    ProgressCallback,
    RankedPassages,
    Reader,
    Requirement,
    no_progress,
)
from ifqa.records import Prediction, Question, Request, StageUsage
from ifqa.settings import Natural, check_arguments


class Cascade(Reader):
    """Asks a language model only where 'extractive' is unsure: an LLM cascade (Chen et al. 2023, FrugalGPT, section 3).

    If a completion has no answer, the span reader's answer stays. The language model's answers have no confidence. If a request
    fails, so does the prediction, and the next run retries it.

    Args:
        llm: the language model of the experiment's [llm].
        sure: the lowest confidence, above 0 and up to 1, at which the span reader's answer stands.
        weights: the span reader's, with a calibration; empty for those that ship with ifqa.
        prompt, demos, shots, seed: as in the reader 'llm'.
    """

    version = 1
    chunk = 128  # questions: large enough for batches of a model in this process
    trained_verb = "was trained on, or shows,"
    model_settings: ClassVar = {"weights": "ifqa-extractive"}

    @check_arguments("setting of reader 'cascade'")
    def __init__(
        self, llm: LanguageModel, sure: Annotated[float, Field(gt=0, le=1)] = 0.5, weights: PathSetting = "",
        prompt: str = "open-book", demos: str = "", shots: Natural = 0, seed: int = 0, root: Path = Path(),
    ) -> None:  # fmt: skip
        self.family = self.training_family(weights=weights, demos=demos, root=root)
        self._span = Plugins().reader("extractive")(weights=weights, threshold=sure, root=root)
        self._llm = Plugins().reader("llm")(llm=llm, prompt=prompt, demos=demos, shots=shots, seed=seed, root=root)
        self.trained_on = (*self._span.trained_on, *self._llm.trained_on)
        self.label = self._llm.label

    def answer(
        self, questions: Sequence[Question], passages: RankedPassages, advance: ProgressCallback = no_progress
    ) -> list[Prediction]:
        predictions = self._span.answer(questions, passages)
        unsure = [n for n, prediction in enumerate(predictions) if prediction.abstained or prediction.failed]
        advance(len(questions) - len(unsure))
        answers = self._llm.answer([questions[n] for n in unsure], [passages[n] for n in unsure], advance)
        for n, answer in zip(unsure, answers, strict=True):
            candidate = predictions[n].candidate
            if candidate and answer.error.startswith("unparsed"):
                predictions[n] = replace(predictions[n], answer=candidate, candidate="")
            else:
                predictions[n] = answer
        return predictions

    def requests(self, questions: Sequence[Question], passages: RankedPassages) -> list[Request]:
        """The requests for the case that the span reader is unsure of every question: an upper bound."""
        return self._llm.requests(questions, passages)

    def usage(self) -> StageUsage:
        return self._llm.usage()

    @classmethod
    def requirements(cls, *, weights: str = "", root: Path = Path(), **_: object) -> Iterable[Requirement]:
        return Plugins().reader("extractive").requirements(weights=weights, root=root)

    @classmethod
    def training_family(cls, **settings: object) -> str:
        """The split family of the span reader's weights and of the demonstrations, without a model."""
        families = {Plugins().reader(name).training_family(**settings) for name in ("extractive", "llm")} - {""}
        if len(families) > 1:
            both = " and ".join(sorted(families))
            raise ConfigError(f"reader 'cascade': weights and demonstrations come from {both}; wanted one split family")
        return "".join(families)

    @classmethod
    def fingerprint(
        cls, weights: str = "", prompt: str = "open-book", demos: str = "", root: Path = Path(), **_: object
    ) -> str:
        """SHA-256 over the code and files of both readers."""
        span, llm = Plugins().reader("extractive"), Plugins().reader("llm")
        parts = [code_fingerprint(span), span.fingerprint(weights=weights)]
        parts += [code_fingerprint(llm), llm.fingerprint(prompt=prompt, demos=demos, root=root)]
        return hashlib.sha256(" ".join(parts).encode()).hexdigest()
