"""GenRead (Yu et al. 2023): a language model writes the passages that the reader answers from."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import cast

from ifqa.errors import IfqaError
from ifqa.llms.cache import tokens_of
from ifqa.prompting.context_window import fit_prompt
from ifqa.prompting.prompts import load_prompt, prompt_path
from ifqa.protocols import LanguageModel, Retriever
from ifqa.records import Passage, Question, Request, SearchResult
from ifqa.retrieval.parts import in_order
from ifqa.settings import Temperature, checked
from ifqa.spending import SpentTable, Usage
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
        self._failed = self._not_asked = self._too_long = 0
        self._took = (0, 0)
        self._before = llm.spent

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """Up to `k` passages of each question, scored 1, 1/2, 1/3, …; fewer where the model failed or wrote nothing."""
        asked = [self.requests([question], k) for question in questions]
        answered = self.llm.complete([request for several in asked for request in several])
        self._took = tokens_of(answered, self._took)
        completions = iter(answered)
        rankings = []
        for question, several in zip(questions, asked, strict=True):
            came = [next(completions) for _ in several]
            self._failed += any(one.error for one in came)
            self._too_long += not several
            self._not_asked += any(one.error.startswith("not asked") for one in came)
            texts = [" ".join(self.prompt.parse(one.text).answer.split()) for one in came if not one.error]
            passages = [Passage(f"genread/{question.id}/{n}", "", text) for n, text in enumerate(texts) if text]
            rankings.append(in_order(passages, len(passages)))
        return rankings

    def requests(self, questions: Sequence[Question], k: int) -> list[Request]:
        """All requests that `search` will make, for an estimate; none for a question longer than the model's window."""
        prompts = [fit_prompt(self.prompt, question.text, (), self.llm) for question in questions]
        samples = k if self.temperature else 1
        return [request for prompt in prompts for request in prompt.requests(self.temperature, samples)]

    def usage(self) -> Usage:
        """Counts so far, for the manifest; "retry" is the number of questions to ask again."""
        usage: Usage = {
            "retry": self._failed,
            "not_asked": self._not_asked,
            "too_long": self._too_long,
            "spent": cast(SpentTable, asdict(self.llm.spent.since(self._before))),
            "took": self._took,
        }
        if self.llm.server:
            usage["server"] = self.llm.server
        return usage

    @classmethod
    def fingerprint(cls, prompt: str = "genread-generate", root: Path = Path(), **_: object) -> str:
        """SHA-256 that changes with the prompt's file."""
        return hashlib.sha256(sha256(prompt_path(prompt, root)).encode()).hexdigest()
