"""GenRead (Yu et al. 2023): a language model generates the passages."""

import hashlib
from collections.abc import Sequence
from itertools import chain, islice
from pathlib import Path

from ifqa.errors import ConfigError
from ifqa.llms.budget import UsageMeter
from ifqa.prompting.context_window import fit_prompt
from ifqa.prompting.prompts import load_prompt, prompt_path
from ifqa.protocols import LanguageModel, Retriever
from ifqa.records import Completion, Passage, Question, Request, SearchResult, StageUsage
from ifqa.retrieval.composition import rank_in_order
from ifqa.settings import PluginSettings, Temperature
from ifqa.storage.files import sha256


class GenRead(Retriever):
    """Ranks passages that a language model generates for a question, in the order of its
    completions.

    As published: a single passage at temperature 0, up to 300 tokens, newlines replaced by spaces
    (GenRead mainfunc.py:141-150, inference.py:33-47). Several passages need a temperature above 0
    (0.95 in GenRead; inference.py:50-66). Raises IfqaError if the prompt is missing or reads
    passages.
    """

    version = 1
    takes_any_text = False
    takes = ("llm", "root")
    # questions: each completion is stored as it arrives, so parts would gain nothing
    chunk = 1 << 30

    class Settings(PluginSettings):
        prompt: str = "genread-generate"
        """The prompt, a file `prompts/NAME.toml`, which must not read passages."""
        temperature: Temperature = 0.0
        """The temperature of the samples; 0 for a single passage, the most likely one."""

    def __init__(self, settings: Settings, *, llm: LanguageModel, root: Path = Path()) -> None:
        self.llm = llm
        self.prompt = load_prompt(settings.prompt, root)
        self.temperature = settings.temperature
        self.trained_on = llm.trained_on
        if self.prompt.reads_passages:
            raise ConfigError(
                f"prompt {settings.prompt!r} reads passages, but retriever 'genread' has none to "
                "show; choose another prompt"
            )
        self._meter = UsageMeter(llm, ("retry", "stored_failures", "not_asked", "too_long"))

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """Up to `k` passages of each question, scored 1, 1/2, 1/3, ….

        Fewer if the model failed or wrote nothing.
        """
        completions = _complete_requests(
            self._meter, [self.requests([question], k) for question in questions]
        )
        rankings = []
        for question, question_completions in zip(questions, completions, strict=True):
            parsed = [
                self.prompt.parse(completion.text)
                for completion in question_completions
                if not completion.error
            ]
            texts = [" ".join(response.answer.split()) for response in parsed]
            passages = [
                Passage(f"genread/{question.id}/{n}", "", text)
                for n, text in enumerate(texts)
                if text
            ]
            rankings.append(rank_in_order(passages, len(passages)))
        return rankings

    def requests(self, questions: Sequence[Question], k: int) -> list[Request]:
        """The requests that `search` will send, for an estimate.

        None for a question longer than the context window.
        """
        prompts = [fit_prompt(self.prompt, question.text, (), self.llm) for question in questions]
        samples = k if self.temperature else 1
        return [
            request for prompt in prompts for request in prompt.requests(self.temperature, samples)
        ]

    def usage(self) -> StageUsage:
        """Counts so far, for the manifest.

        "retry" counts questions that the next run asks again.
        """
        return self._meter.usage()

    @classmethod
    def fingerprint(cls, settings: Settings, root: Path) -> str:
        """A fingerprint of the prompt's file."""
        return hashlib.sha256(sha256(prompt_path(settings.prompt, root)).encode()).hexdigest()


def _complete_requests(
    meter: UsageMeter, requests: Sequence[Sequence[Request]]
) -> list[list[Completion]]:
    """The completions of each question's requests, sent as one batch.

    Failed and unsent questions are counted.
    """
    stream = iter(meter.complete([*chain.from_iterable(requests)]))
    completions = [list(islice(stream, len(question_requests))) for question_requests in requests]
    for question_completions in completions:
        meter.count_failures(question_completions)
        meter.counts["too_long"] += not question_completions
    return completions
