"""Reader 'llm': a language model with a prompt, demonstrations, and a vote over samples.

Its answers are as accountable as the span reader's: each names the sentence that it rests on, and
has a confidence if one was fitted for the model.
"""

import hashlib
import math
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from ifqa.errors import ConfigError, MissingInput, SchemaRefused
from ifqa.llms.budget import UsageMeter
from ifqa.plugins import open_benchmark
from ifqa.prompting.context_window import FittedPrompt, Order, fit_prompt
from ifqa.prompting.demonstrations import Demos, demos_path, draw_demos, load_demos
from ifqa.prompting.parsing import ParsedAnswer
from ifqa.prompting.prompts import load_prompt, prompt_path
from ifqa.prompting.quotes import find_quote
from ifqa.protocols import (
    Cut,
    LanguageModel,
    ProgressCallback,
    RankedPassages,
    Reader,
    Resource,
    no_progress,
)
from ifqa.reading.llm_confidence import (
    ONE_ANSWER,
    LlmCalibration,
    Sampling,
    calibration_path,
    calibrations_of,
    llm_features,
    load_llm_calibration,
)
from ifqa.reading.llm_evidence import explain_afterwards, explain_quote
from ifqa.reading.span.reader import BUNDLED_WEIGHTS, Extractive, ReadAnswer
from ifqa.reading.span.weights import fingerprint_weights
from ifqa.records import Completion, Passage, Prediction, Question, Quote, Request, StageUsage
from ifqa.scoring.measures.exact_match import normalize
from ifqa.settings import Natural, PluginSettings, Positive, Share, Temperature
from ifqa.storage.files import sha256

_NOT_SAID = "the model says that they do not have it"


class DemoSettings(PluginSettings):
    """The settings of a prompt and of its demonstrations."""

    prompt: str = "open-book"
    """A file `prompts/NAME.toml`; a prompt without passages is closed-book."""
    demos: str = ""
    """Demonstrations: a file `prompts/demos/NAME.jsonl`, or `benchmark/split` to draw from its
    questions; empty for none.
    """
    shots: Natural = 0
    """How many demonstrations to show; 0 for all in the file, or none without `demos`."""
    seed: int = 0
    """The seed for choosing demonstrations."""

    @property
    def draws_demos(self) -> bool:
        """Whether demonstrations are drawn from a split's questions."""
        return "/" in self.demos

    @property
    def sampling(self) -> Sampling:
        """How answers are sampled."""
        return ONE_ANSWER


class Llm(Reader):
    """Asks a language model each question, with the best passages that fit its window, and parses
    the answer from its text.

    A prediction fails if the question exceeds the window, the request fails, the prompt's rule
    finds no answer in the completion ("unparsed: …"), or the answer is none of the choices that the
    prompt shows. It abstains if the model says that no passage has the answer.

    An answer's sentence is the one that the model quotes, if the prompt asks for a quote (which is
    looked up in the passages), else the one that the span reader finds for the answer afterwards.
    Its confidence is fitted for the model, prompt and samples (`ifqa train calibration`);
    without that it has none.
    """

    # Answers are as in version 2: the sentence behind an answer does not change it
    version = 2
    takes: ClassVar[tuple[Resource, ...]] = ("llm", "root")
    trained_verb = "shows demonstrations of"
    # questions: each completion is stored as it arrives, so parts would gain nothing
    chunk = 1 << 30

    class Settings(DemoSettings):
        samples: Positive = 1
        """Answers sampled per question; the most frequent wins, on a tie the first
        (self-consistency; Wang et al. 2023). More than 1 needs a temperature.
        """
        temperature: Temperature = 0.0
        """The temperature of the samples; 0 for the most likely answer."""
        order: Order = "best first"
        """The order of the passages: "best first", or "best last", with the best passage next to
        the question.
        """
        span_reader: bool = True
        """Whether the span reader reads the passages, too. It finds the sentence of an answer
        without a quote, and the confidence counts what it says.
        """
        threshold: Share = 0.0
        """The reader abstains below this confidence, for which the model and the prompt need a
        calibration.
        """

        @property
        def sampling(self) -> Sampling:
            return Sampling(self.samples, self.temperature)

    def __init__(
        self,
        settings: Settings,
        *,
        llm: LanguageModel,
        root: Path = Path(),
    ) -> None:
        demos = settings.demos
        shots = settings.shots
        if settings.samples > 1 and not settings.temperature:
            raise ConfigError(
                f"reader 'llm': {settings.samples} samples at temperature 0 are the same; "
                "set temperature = 0.7"
            )
        if shots and not demos:
            raise ConfigError(
                "reader 'llm': shots needs demos: a file, or benchmark/split, such as "
                "ifqa/full-train"
            )
        if settings.draws_demos and not shots:
            raise ConfigError(
                f"reader 'llm': demos = {demos!r} needs the number of questions to show; set shots"
            )
        self.llm = llm
        self.sampling = settings.sampling
        self.samples, self.temperature = self.sampling
        self.order = settings.order
        self.prompt = load_prompt(settings.prompt, root)
        if self.prompt.writes_question:
            raise ConfigError(
                f"prompt {settings.prompt!r} has a model write questions, for `ifqa init --draft`; "
                "choose one that answers them"
            )
        self.prompt_name = self.calibrated_name(settings.prompt)
        self.prompt_sha256 = sha256(prompt_path(settings.prompt, root))
        self._demos = demos
        self._shots = shots
        self._seed = settings.seed
        self._root = root
        self.family = self._load_demos([]).family if demos else ""
        self.trained_on = llm.trained_on
        self.label = llm.label
        self._reads_along = settings.span_reader and self.prompt.reads_passages
        self.concurrent = llm.concurrent
        self._reading = threading.Lock()  # the span reader reads in one thread at a time
        self._meter = UsageMeter(llm)
        self.calibration, self.uncalibrated = self._load_calibration()
        self.gives_confidence = self.calibration is not None
        self.calibrated_on = self.calibration.sources if self.calibration else ()
        self.threshold = self.abstain_threshold = settings.threshold
        if self.threshold and self.calibration is None:
            raise MissingInput(
                f"reader 'llm': threshold = {self.threshold:g} needs a confidence: "
                f"{self.uncalibrated}"
            )

    def answer(
        self,
        questions: Sequence[Question],
        passages: RankedPassages,
        advance: ProgressCallback = no_progress,
    ) -> list[Prediction]:
        """Predictions with the passages shown, the one with the supporting sentence first.

        With several samples, `score` is the log of the share that agree.
        """
        replies = self.ask(questions, passages, advance)
        return [self.rate(reply) for reply in self.explain(replies)]

    def ask(
        self,
        questions: Sequence[Question],
        passages: RankedPassages,
        advance: ProgressCallback = no_progress,
    ) -> list["Reply"]:
        """What the model replies, before support and confidence."""
        fitted = self.fitted(questions, passages)
        requests = self._requests(fitted)
        try:
            answered = self._meter.complete(requests, lambda done: advance(done / self.samples))
        except SchemaRefused:
            if self.prompt.needs_schema:
                raise
            # Nothing was asked yet; the same fields are asked for as lines
            fitted = self.fitted(questions, passages)
            requests = self._requests(fitted)
            answered = self._meter.complete(requests, lambda done: advance(done / self.samples))
        completions = iter(answered)
        replies = []
        for question, prompt in zip(questions, fitted, strict=True):
            self._meter.counts["left_out"] += prompt.left_out
            if prompt.problem:
                self._meter.counts["too_long"] += 1
                advance(1)
                failed = Prediction(question.id, "", error=f"not asked: {prompt.problem}")
                replies.append(Reply(question, failed, prompt))
            else:
                samples = [next(completions) for _ in range(self.samples)]
                replies.append(self.vote(question, prompt, samples))
        return replies

    def explain(
        self, replies: Sequence["Reply"], read: Sequence[ReadAnswer] | None = None
    ) -> list["Reply"]:
        """The replies with the sentences that their answers rest on.

        `read` is what the span reader says of the same passages; without it, they are read now.
        """
        if read is None:
            read = self._read_along(replies)
        return [self._explain(reply, read[n] if read else None) for n, reply in enumerate(replies)]

    def _read_along(self, replies: Sequence["Reply"]) -> list[ReadAnswer]:
        """What the span reader says of the passages that the model was shown.

        Empty if it does not read along.
        """
        if not self._reads_along:
            return []
        questions = [reply.question for reply in replies]
        shown = [reply.prompt.passages for reply in replies]
        with self._reading:
            return self._span.read_rated(questions, shown)

    @property
    def span_weights(self) -> str:
        """The hash of the weights of the span reader that reads along; empty if none does."""
        return fingerprint_weights(BUNDLED_WEIGHTS) if self._reads_along else ""

    @cached_property
    def _span(self) -> Extractive:
        """The span reader, opened when it first reads."""
        return Extractive(Extractive.Settings(), root=self._root)

    def _explain(self, reply: "Reply", read: ReadAnswer | None) -> "Reply":
        """A reply with the sentence that its answer rests on.

        The passage of that sentence becomes the first of its passages.
        """
        prediction = reply.prediction
        passages = reply.prompt.passages
        if prediction.failed:
            return reply
        how = None
        if prediction.answer and prediction.quote:
            how = explain_quote(prediction.quote, prediction.answer, passages)
        if prediction.answer and how is None and read:
            how = explain_afterwards(prediction.answer, passages, read)
        places = prediction.quote.places if prediction.quote else ()
        first = [how.passage_id] if how else []
        first += [place.passage_id for place in places]
        ids = dict.fromkeys([*first, *(passage.id for passage in passages)])
        explained = replace(prediction, how=how, passage_ids=tuple(ids))
        return replace(reply, prediction=explained, read=read)

    def features(self, reply: "Reply") -> dict[str, float]:
        """The features of an answer's confidence; empty without an answer."""
        if not reply.prediction.answer:
            return {}
        return llm_features(
            reply.question, reply.prediction, reply.completion, reply.agreement, reply.read
        )

    def rate(self, reply: "Reply") -> Prediction:
        """The prediction with its confidence, or an abstention below the threshold."""
        prediction = reply.prediction
        if self.calibration is None or not prediction.answer:
            return prediction
        confidence = self.calibration.confidence(self.features(reply))
        return replace(prediction, confidence=confidence).abstain_below(self.threshold)

    @classmethod
    def calibrated_name(cls, prompt: str) -> str:
        """The name under which a calibration for a prompt is stored."""
        return prompt

    def _load_calibration(self) -> tuple[LlmCalibration | None, str]:
        """The model's calibration for the prompt, or why its answers have no confidence."""
        path = calibration_path(self._root, self.llm.name, self.prompt_name, self.sampling)
        problem = ""
        if path.exists():  # else the weights need not be hashed
            calibration, problem = load_llm_calibration(
                path, self.prompt_sha256, self.span_weights, self.sampling
            )
            if calibration:
                return calibration, ""
        mend = "fit it: ifqa train calibration --reader llm --experiment NAME"
        which = f"{self.llm.name} with the prompt {self.prompt_name}"
        if self.sampling != ONE_ANSWER:
            which += f", {self.sampling}"
        because = f" ({problem})" if problem else ""
        return None, f"not calibrated for {which}{because}; {mend}"

    def fitted(self, questions: Sequence[Question], passages: RankedPassages) -> list[FittedPrompt]:
        """The prompt for each question, with the passages that fit the window."""
        demos = self._load_demos(questions).demos if self._demos else ()
        return [
            fit_prompt(
                self.prompt, question.text, ranking, self.llm, demos, self.order, question.choices
            )
            for question, ranking in zip(questions, passages, strict=True)
        ]

    def requests(self, questions: Sequence[Question], passages: RankedPassages) -> list[Request]:
        return self._requests(self.fitted(questions, passages))

    def _requests(self, fitted: Sequence[FittedPrompt]) -> list[Request]:
        return [
            request
            for prompt in fitted
            for request in prompt.requests(self.temperature, self.samples, logprobs=True)
        ]

    def usage(self) -> StageUsage:
        return self._meter.usage()

    @classmethod
    def draws(cls, settings: Settings) -> bool:
        return settings.draws_demos

    @classmethod
    def training_family(cls, settings: DemoSettings, root: Path) -> str:
        """The split family of the demonstrations, without a model; empty without demonstrations."""
        demos = settings.demos
        if "/" not in demos:
            return load_demos(demos, root).family if demos else ""
        benchmark, split = demos.split("/", 1)
        return open_benchmark(benchmark, root).family(split)

    @classmethod
    def fingerprint(cls, settings: DemoSettings, root: Path) -> str:
        demos = settings.demos
        files = [prompt_path(settings.prompt, root)]
        if "/" in demos:
            benchmark, split = demos.split("/", 1)
            files += open_benchmark(benchmark, root).files(split)
        elif demos:
            files.append(demos_path(demos, root))
        prompt = load_prompt(settings.prompt, root)
        # They name the span reader's weights
        files += calibrations_of(root, cls.calibrated_name(settings.prompt), settings.sampling)
        digests = filter(None, (*map(sha256, files), prompt.rule_version))
        return hashlib.sha256(" ".join(digests).encode()).hexdigest()

    def _load_demos(self, questions: Sequence[Question]) -> Demos:
        """The demonstrations.

        None is drawn from `questions`, because some questions are in both splits.
        """
        if "/" not in self._demos:
            written = load_demos(self._demos, self._root)
            if self._shots > (count := len(written.demos)):
                wanted = f"wanted {self._shots} demonstrations"
                raise ConfigError(f"{wanted}, found {count} in {self._demos!r}; ask for fewer")
            return replace(written, demos=written.demos[: self._shots or None])
        benchmark, split = self._demos.split("/", 1)
        source = open_benchmark(benchmark, self._root)
        texts = [question.text for question in questions]
        return draw_demos(
            source.questions(split), self._shots, self._seed, source.family(split), texts
        )

    def cut_of(self, completion: Completion) -> Cut:
        """What the text of a completion may lack, because it was cut at its limit."""
        if completion.finish != "length":
            return "no"
        return "in text" if completion.reasoning else self.llm.cut

    def vote(
        self, question: Question, prompt: FittedPrompt, completions: Sequence[Completion]
    ) -> "Reply":
        """The reply that most samples agree on; failures are counted."""
        complete = [completion for completion in completions if not completion.error]
        self._meter.count_failures(completions)
        ids = tuple(passage.id for passage in prompt.passages)
        if not complete:
            failed = Prediction(question.id, "", error=completions[0].error, passage_ids=ids)
            return Reply(question, failed, prompt)
        self._meter.counts["cut"] += any(completion.finish == "length" for completion in complete)
        parsed = []
        for completion in complete:
            cut = self.cut_of(completion)
            parsed.append((self.prompt.parse(completion.text, question.choices, cut), completion))
        # Choices such as "+" would be normalised to nothing
        key = str if self.prompt.shows_choices else normalize
        votes = Counter(key(answer.answer) for answer, _ in parsed if not answer.problem)
        if not votes:
            self._meter.counts["unparsed"] += 1
            first, completion = parsed[0]
            failed = Prediction(
                question.id,
                "",
                completion=completion.text,
                passage_ids=ids,
                error=f"unparsed: {first.problem}",
            )
            return Reply(question, failed, prompt)
        best, count = votes.most_common(1)[0]
        answer, completion = next(
            pair for pair in parsed if not pair[0].problem and key(pair[0].answer) == best
        )
        agreement = count / len(completions)
        prediction = Prediction(
            question.id,
            answer.answer,
            completion=completion.text,
            passage_ids=ids,
            score=math.log(agreement) if self.samples > 1 else None,
            factual=answer.factual,
            candidate=answer.guess,
            abstention=_NOT_SAID if answer.not_said else "",
            quote=_quote_of(answer, prompt.shown, self.prompt.asks_quote),
            change=answer.change,
        )
        return Reply(question, prediction, prompt, completion, agreement)


def _quote_of(answer: ParsedAnswer, shown: Sequence[Passage], asks_quote: bool) -> Quote | None:
    """What a model quotes for its answer, looked up; None if it was not asked to, or abstains."""
    if not asks_quote or (answer.not_said and not answer.quote):
        return None
    return find_quote(answer.quote, shown, answer.passage)


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply to a question, as a prediction, with what its confidence counts.

    `completion` is the one that the answer was parsed from, empty after a failure; `agreement` is
    the share of the samples with the same answer; `read` is what the span reader says.
    """

    question: Question
    prediction: Prediction
    prompt: FittedPrompt
    completion: Completion = field(default_factory=Completion)
    agreement: float = 1.0
    read: ReadAnswer | None = None
