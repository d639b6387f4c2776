"""Reader 'llm': a language model with a prompt, demonstrations, and a vote over samples."""

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ifqa.errors import ConfigError
from ifqa.llms.budget import UsageMeter
from ifqa.plugins import open_benchmark
from ifqa.prompting.context_window import FittedPrompt, Order, fit_prompt
from ifqa.prompting.demonstrations import Demos, demos_path, draw_demos, load_demos
from ifqa.prompting.prompts import load_prompt, prompt_path
from ifqa.protocols import Cut, LanguageModel, ProgressCallback, RankedPassages, Reader, no_progress
from ifqa.records import Completion, Prediction, Question, Request, StageUsage
from ifqa.scoring.measures.exact_match import normalize
from ifqa.settings import Natural, PluginSettings, Positive, Temperature
from ifqa.storage.files import sha256


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


class Llm(Reader):
    """Asks a language model each question, with the best passages that fit its window, and parses
    the answer from its text.

    A prediction fails if the question exceeds the window, the request fails, the prompt's rule
    finds no answer in the completion ("unparsed: …"), or the answer is none of the choices that the
    prompt shows.
    """

    version = 2
    takes = ("llm", "root")
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

    def __init__(self, settings: Settings, *, llm: LanguageModel, root: Path = Path()) -> None:
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
        if "/" in demos and not shots:
            raise ConfigError(
                f"reader 'llm': demos = {demos!r} needs the number of questions to show; set shots"
            )
        self.llm = llm
        self.samples = settings.samples
        self.temperature = settings.temperature
        self.order = settings.order
        self.prompt = load_prompt(settings.prompt, root)
        self._demos = demos
        self._shots = shots
        self._seed = settings.seed
        self._root = root
        self.family = self._load_demos([]).family if demos else ""
        self.trained_on = llm.trained_on
        self.label = llm.label
        self.concurrent = llm.concurrent
        self._meter = UsageMeter(llm)

    def answer(
        self,
        questions: Sequence[Question],
        passages: RankedPassages,
        advance: ProgressCallback = no_progress,
    ) -> list[Prediction]:
        """Predictions with the passages shown.

        With several samples, `score` is the log of the share that agree.
        """
        return self.answer_prompts(questions, self.fitted(questions, passages), advance)

    def answer_prompts(
        self,
        questions: Sequence[Question],
        fitted: Sequence[FittedPrompt],
        advance: ProgressCallback,
    ) -> list[Prediction]:
        """`answer` for the questions' fitted prompts."""
        requests = self._requests(fitted)
        completions = iter(
            self._meter.complete(requests, lambda done: advance(done / self.samples))
        )
        predictions = []
        for question, prompt in zip(questions, fitted, strict=True):
            self._meter.counts["left_out"] += prompt.left_out
            if prompt.problem:
                self._meter.counts["too_long"] += 1
                advance(1)
                predictions.append(
                    Prediction(question.id, "", error=f"not asked: {prompt.problem}")
                )
            else:
                samples = [next(completions) for _ in range(self.samples)]
                ids = tuple(passage.id for passage in prompt.passages)
                predictions.append(replace(self._vote(question, samples), passage_ids=ids))
        return predictions

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
            for request in prompt.requests(self.temperature, self.samples)
        ]

    def usage(self) -> StageUsage:
        return self._meter.usage()

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
        rule_version = load_prompt(settings.prompt, root).rule_version
        digests = filter(None, (*map(sha256, files), rule_version))
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

    def _vote(self, question: Question, completions: Sequence[Completion]) -> Prediction:
        complete = [completion for completion in completions if not completion.error]
        self._meter.count_failures(completions)
        if not complete:
            return Prediction(question.id, "", error=completions[0].error)
        self._meter.counts["cut"] += any(completion.finish == "length" for completion in complete)
        parsed = []
        for completion in complete:
            cut: Cut = "no"
            if completion.finish == "length":
                cut = "in text" if completion.reasoning else self.llm.cut
            parsed.append(
                (self.prompt.parse(completion.text, question.choices, cut), completion.text)
            )
        # Choices such as "+" would be normalised to nothing
        key = str if self.prompt.shows_choices else normalize
        votes = Counter(key(answer.answer) for answer, _ in parsed if not answer.problem)
        if not votes:
            self._meter.counts["unparsed"] += 1
            return Prediction(
                question.id, "", completion=parsed[0][1], error=f"unparsed: {parsed[0][0].problem}"
            )
        best, count = votes.most_common(1)[0]
        answer, text = next(
            pair for pair in parsed if not pair[0].problem and key(pair[0].answer) == best
        )
        score = math.log(count / len(completions)) if self.samples > 1 else None
        return Prediction(
            question.id, answer.answer, completion=text, score=score, factual=answer.factual
        )
