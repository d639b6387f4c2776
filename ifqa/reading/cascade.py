"""Reader 'cascade': the span reader where it is confident, else a language model, or both
together.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from ifqa.errors import ConfigError
from ifqa.plugins import code_fingerprint
from ifqa.prompting.context_window import FittedPrompt
from ifqa.prompting.demonstrations import Demo
from ifqa.protocols import (
    LanguageModel,
    PathSetting,
    ProgressCallback,
    RankedPassages,
    Reader,
    Requirement,
    no_progress,
)
from ifqa.reading.llm import DemoSettings, Llm, Reply
from ifqa.reading.span.reader import Extractive, ReadAnswer
from ifqa.records import Prediction, Question, Request, StageUsage
from ifqa.scoring.measures.exact_match import normalize
from ifqa.settings import PluginSettings

_CANDIDATES = 8  # the span reader's best answers, which compete
_UNKNOWN = 1e-3  # added to the span reader's probabilities, because it may lack the right answer


class SpanSettings(PluginSettings):
    """The settings of the cascade's span reader."""

    sure: Annotated[float, Field(gt=0, le=1)] = 0.5
    """The lowest confidence, above 0 and up to 1, at which the span reader's answer stands."""
    weights: PathSetting = ""
    """The span reader's weights, with a calibration; empty for those that ship with ifqa."""


class Cascade(Reader):
    """Asks a language model only where 'extractive' is unsure: an LLM cascade (Chen et al. 2023,
    FrugalGPT, section 3).

    Where the model gives the probability of an answer (hf) and the prompt wants the answer alone,
    both decide: of the model's own answer and the span reader's eight best, the one with the
    highest sum of both log probabilities wins (UnitedQA; Cheng et al., ACL 2021); the span reader's
    probabilities are raised by 0.001. A model that is replayed or served gives none: of its answer
    and the span reader's the one with the higher fitted confidence wins, and without a calibration
    (`ifqa train calibration --reader llm`) the model's stands. If a completion has no answer, the
    span reader's stays. Weighed answers have no confidence. If a request fails, so does the
    prediction, and the next run retries it.
    """

    version = 2
    takes = ("llm", "root")
    chunk = 128  # questions: large enough for batches of a model in this process
    trained_verb = "was trained on, or shows,"
    model_settings: ClassVar = {"weights": "ifqa-extractive"}

    class Settings(DemoSettings, SpanSettings):  # in a file, the fields of the last base come first
        pass

    def __init__(self, settings: Settings, *, llm: LanguageModel, root: Path = Path()) -> None:
        self.family = self.training_family(settings, root)
        self._span = Extractive(
            Extractive.Settings(weights=settings.weights, threshold=settings.sure), root=root
        )
        self._llm = Llm(
            Llm.Settings(
                prompt=settings.prompt,
                demos=settings.demos,
                shots=settings.shots,
                seed=settings.seed,
            ),
            llm=llm,
            root=root,
        )
        self.uncalibrated = self._llm.uncalibrated
        self.trained_on = (*self._span.trained_on, *self._llm.trained_on)
        self.calibrated_on = (*self._span.calibrated_on, *self._llm.calibrated_on)
        self.label = self._llm.label
        self._weighs = llm.weighs_answers and self._llm.prompt.wants_answer_alone

    def answer(
        self,
        questions: Sequence[Question],
        passages: RankedPassages,
        advance: ProgressCallback = no_progress,
    ) -> list[Prediction]:
        read = self._span.read_rated(questions, passages)
        predictions = [answer.prediction for answer in read]
        unsure = [
            n
            for n, prediction in enumerate(predictions)
            if prediction.abstained or prediction.failed
        ]
        advance(len(questions) - len(unsure))
        # Of a question's work that is done when the language model has answered
        share = 0.5 if self._weighs else 1.0
        replies = self._llm.ask(
            [questions[n] for n in unsure],
            [passages[n] for n in unsure],
            lambda done: advance(done * share),
        )
        explained = self._llm.explain(replies, [read[n] for n in unsure])
        for n, reply in zip(unsure, explained, strict=True):
            predictions[n] = self._decide(read[n], reply)
            advance(1.0 - share)
        return predictions

    def _decide(self, read: ReadAnswer, reply: Reply) -> Prediction:
        """The prediction of the span reader, which is unsure, or of the language model."""
        span = read.prediction
        own = self._llm.rate(reply)
        unparsed = own.error.startswith("unparsed")
        if not span.candidate or (own.failed and not unparsed):
            return own
        if self._weighs:
            return self._weigh(reply.question, span, own, read.shares, reply.prompt)
        as_answer = replace(span, answer=span.candidate, candidate="")
        if unparsed:
            return as_answer
        if own.confidence is None or span.confidence is None:
            return own
        return own if own.confidence >= span.confidence else as_answer

    def _weigh(
        self,
        question: Question,
        span: Prediction,
        own: Prediction,
        shares: Mapping[str, float],
        prompt: FittedPrompt,
    ) -> Prediction:
        """The prediction with the likeliest answer, of the span reader's candidates and the
        language model's `own`.
        """
        prior = dict([*shares.items()][:_CANDIDATES])
        if own.answer:
            forms = {normalize(text): text for text in shares}
            text = forms.get(normalize(own.answer), own.answer)
            prior[text] = shares.get(text, 0.0)
        completions = [
            self._llm.prompt.show(Demo(question.text, text), self._llm.llm.chat) for text in prior
        ]
        likelihoods = self._llm.llm.log_likelihoods(prompt.request, completions)
        scores = [
            log + math.log(share + _UNKNOWN)
            for log, share in zip(likelihoods, prior.values(), strict=False)
        ]
        best = [*prior][scores.index(max(scores))] if scores else own.answer or span.candidate
        if best == own.answer:
            return own
        how = span.how if best == span.candidate else None
        return replace(span, answer=best, completion=best, candidate="", confidence=None, how=how)

    def requests(self, questions: Sequence[Question], passages: RankedPassages) -> list[Request]:
        """The requests for the case that the span reader is unsure of every question: an upper
        bound.
        """
        return self._llm.requests(questions, passages)

    def usage(self) -> StageUsage:
        return self._llm.usage()

    @classmethod
    def draws(cls, settings: Settings) -> bool:
        return settings.draws_demos

    @classmethod
    def requirements(cls, settings: Settings, root: Path) -> Iterable[Requirement]:
        return Extractive.requirements(Extractive.Settings(weights=settings.weights), root)

    @classmethod
    def training_family(cls, settings: Settings, root: Path) -> str:
        """The split family of the span reader's weights and of the demonstrations, without a
        model.
        """
        span = Extractive.training_family(Extractive.Settings(weights=settings.weights), root)
        families = {span, Llm.training_family(settings, root)} - {""}
        if len(families) > 1:
            both = " and ".join(sorted(families))
            raise ConfigError(
                f"reader 'cascade': weights and demonstrations come from {both}; "
                "wanted one split family"
            )
        return "".join(families)

    @classmethod
    def fingerprint(cls, settings: Settings, root: Path) -> str:
        """SHA-256 over the code and files of both readers."""
        span = Extractive.Settings(weights=settings.weights)
        parts = [code_fingerprint(Extractive), Extractive.fingerprint(span, root)]
        parts += [code_fingerprint(Llm), Llm.fingerprint(settings, root)]
        return hashlib.sha256(" ".join(parts).encode()).hexdigest()
