"""GenRead (Yu et al. 2023): a language model writes the passages that the reader answers from."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from ifqa.errors import IfqaError
from ifqa.llms.budget import UsageMeter
from ifqa.prompting.context_window import fit_prompt
from ifqa.prompting.prompts import load_prompt, prompt_path
from ifqa.protocols import LanguageModel, Retriever
from ifqa.records import Completion, Passage, Question, Request, SearchResult, Usage
from ifqa.retrieval.parts import in_order
from ifqa.settings import Temperature, checked
from ifqa.storage.files import sha256


class GenRead(Retriever):
    """Ranks passages that a language model wrote for a question, in the order in which the model returned them.

    As published: one passage at temperature 0, of up to 300 tokens, with blanks for newlines (GenRead mainfunc.py:141-150,
    inference.py:33-47). Several passages need a temperature above 0 (0.95 in GenRead; inference.py:50-66).

    Args:
        llm: the language model of the experiment's [llm].
        prompt: a file `prompts/NAME.toml` that reads no passages.
        temperature: of sampling. 0 gives the likeliest text, a single passage whatever `k` is.

    Raises:
        IfqaError: there is no such prompt, or the temperature is out of range.
    """

    version = 1

    @checked("setting of retriever 'genread'")
    def __init__(
        self,
        llm: LanguageModel,
        prompt: str = "genread-generate",
        temperature: Temperature = 0.0,
        root: Path = Path(),
    ) -> None:
        self.llm, self.prompt, self.temperature = llm, load_prompt(prompt, root), temperature
        self.trained_on = llm.trained_on
        if self.prompt.reads_passages:
            raise IfqaError(f"prompt {prompt!r} reads passages, and retriever 'genread' makes them; take another")
        self._meter = UsageMeter(llm, ("retry", "not_asked", "too_long"))

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """Up to `k` passages of each question, scored 1, 1/2, 1/3, …; fewer where the model failed or wrote nothing."""
        requests = [self.requests([question], k) for question in questions]
        completions = self._meter.complete([request for of_question in requests for request in of_question])
        rest = iter(completions)
        return [
            self._result(question, [next(rest) for _ in of_question])
            for question, of_question in zip(questions, requests, strict=True)
        ]

    def _result(self, question: Question, completions: Sequence[Completion]) -> SearchResult:
        errors = [completion.error for completion in completions if completion.error]
        self._meter.counts["retry"] += bool(errors)
        self._meter.counts["not_asked"] += any(error.startswith("not asked") for error in errors)
        self._meter.counts["too_long"] += not completions
        answers = (self.prompt.parse(completion.text).answer for completion in completions if not completion.error)
        texts = (" ".join(answer.split()) for answer in answers)
        passages = [Passage(f"genread/{question.id}/{n}", "", text) for n, text in enumerate(texts) if text]
        return in_order(passages, len(passages))

    def requests(self, questions: Sequence[Question], k: int) -> list[Request]:
        """All requests that `search` will make, for an estimate; none for a question longer than the model's window."""
        prompts = [fit_prompt(self.prompt, question.text, (), self.llm) for question in questions]
        samples = k if self.temperature else 1
        return [request for prompt in prompts for request in prompt.requests(self.temperature, samples)]

    def usage(self) -> Usage:
        """Counts so far, for the manifest; "retry" is the number of questions to ask again."""
        return self._meter.usage()

    @classmethod
    def fingerprint(cls, prompt: str = "genread-generate", root: Path = Path(), **_: object) -> str:
        """SHA-256 that changes with the prompt's file."""
        return hashlib.sha256(sha256(prompt_path(prompt, root)).encode()).hexdigest()
