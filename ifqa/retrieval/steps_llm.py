"""Several steps of retrieval: a language model reads what was found, and says what to search for next.

The loop is that of IRCoT (Trivedi et al., ACL 2023, section 3: reason from the passages so far, search with the new sentence,
stop at an answer or after a number of steps), with a query asked for outright, as the follow-up questions of Self-Ask are (Press
et al., Findings of EMNLP 2023, section 3).
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import cast

from ifqa.errors import IfqaError
from ifqa.llms.cache import tokens_of
from ifqa.prompting.fitting import Fitted, fit
from ifqa.prompting.prompts import load_prompt, prompt_path
from ifqa.protocols import LanguageModel
from ifqa.records import Completion, Passage, Question, Request
from ifqa.retrieval.queries import Part, merged
from ifqa.retrieval.stepping import Stepping, Trail
from ifqa.settings import NotNegative, Positive, checked
from ifqa.spending import Usage
from ifqa.storage.files import sha256

ENOUGH = "enough"  # in the place of a query: what was found suffices


class LlmSteps(Stepping):
    """Searches with its one part, then again with the queries that a language model asks for, and fuses the rankings.

    The model gets the question, the queries so far and the best passages so far. The steps of a question end where the model
    says "enough" or repeats a query, where a step finds no passage that was not found before, or after `steps`. They end with
    what was found too where no query can be read from the completion ("unparsed" in `usage`), where a request failed ("retry":
    the next run asks again), and where the prompt does not fit the model's window ("too_long").
    """

    version = 1

    @checked("setting of retriever 'steps-llm'")
    def __init__(
        self,
        *,
        llm: LanguageModel,
        parts: Sequence[Part],
        passages: Callable[[Sequence[str]], list[Passage]],
        prompt: str = "next-query",
        steps: Positive = 3,
        look: Positive = 5,
        step_weight: NotNegative = 0.5,
        root: Path = Path(),
    ) -> None:
        """Keep part and model, and load the prompt.

        Args:
            llm: the language model of the experiment's [llm].
            parts: a single retriever.
            passages: returns the passages of a list of ids.
            prompt: a file `prompts/NAME.toml` that reads passages, and whose answer is a query or "enough".
            steps: searches for a question, at most; the model is asked before each but the first.
            look: the best passages, at most, that the model reads; fewer if its window is full.
            step_weight: of each later ranking, in a reciprocal rank fusion in which the first has weight 1.
            root: the folder above prompts/.

        Raises:
            IfqaError: there is not exactly one part, no such prompt, the prompt reads no passages or shows choices, or a setting
                is out of range.
        """
        super().__init__("steps-llm", parts, passages, steps, step_weight)
        self.llm, self.prompt, self._look = llm, load_prompt(prompt, root), look
        if not self.prompt.reads_passages or self.prompt.shows_choices:
            what = "shows choices" if self.prompt.shows_choices else "reads no passages"
            raise IfqaError(
                f"prompt {prompt!r} {what}, and retriever 'steps-llm' wants a query made from passages; take another"
            )
        self.trained_on = (*self.trained_on, *llm.trained_on)
        self._counts: Counter[str] = Counter()
        self._took = (0, 0)
        self._before = llm.spent

    def requests(self, questions: Sequence[Question], k: int) -> list[Request]:
        """As many requests as `search` sends at most, for an estimate, with stand-ins of the usual length as passages."""
        usual = [Passage("", "Some title", "passage " * 100)] * self._look
        fitted = [self._fitted(question, usual, [question.text]) for question in questions]
        return [one for own in fitted for one in own.requests(self.prompt.max_tokens, 0.0, self._steps - 1)]

    def usage(self) -> Usage:
        """Counts so far, for the manifest; "retry" is the number of questions to ask again."""
        names = ("retry", "not_asked", "too_long", "unparsed", "left_out", "cut")
        counts = {name: self._counts[name] for name in names}
        server = {"server": self.llm.server} if self.llm.server else {}
        own = {**counts, **server, "spent": asdict(self.llm.spent.since(self._before)), "took": self._took}
        return merged([super().usage(), cast(Usage, own)])

    @classmethod
    def fingerprint(cls, prompt: str = "next-query", root: Path = Path(), **_: object) -> str:
        """SHA-256 that changes with the prompt's file."""
        return hashlib.sha256(sha256(prompt_path(prompt, root)).encode()).hexdigest()

    def _queries(self, trails: Sequence[Trail]) -> list[str]:
        fitted = [
            self._fitted(trail.question, self.found(trail, self._look), [step.query for step in trail.steps])
            for trail in trails
        ]
        asked = [one.requests(self.prompt.max_tokens, 0.0, 1) for one in fitted]
        completions = self.llm.complete([request for own in asked for request in own])
        self._took = tokens_of(completions, self._took)
        self._counts["left_out"] += sum(one.left_out for one in fitted)
        self._counts["too_long"] += sum(not own for own in asked)
        came = iter(completions)
        return [self._query(trail, next(came)) if own else "" for trail, own in zip(trails, asked, strict=True)]

    def _fitted(self, question: Question, passages: Sequence[Passage], searched: Sequence[str]) -> Fitted:
        room = self.llm.window - self.prompt.max_tokens
        return fit(self.prompt, question.text, passages, [], self.llm.chat, self.llm.count, room, searched=searched)

    def _query(self, trail: Trail, completion: Completion) -> str:
        """The query in a completion; empty if there is none, or it says nothing new."""
        if completion.error:
            self._counts["retry"] += 1
            self._counts["not_asked"] += completion.error.startswith("not asked")
            return ""
        self._counts["cut"] += completion.finish == "length"
        parsed = self.prompt.parse(completion.text)
        if parsed.problem:
            self._counts["unparsed"] += 1
            return ""
        query = " ".join(parsed.answer.split())
        known = {" ".join(step.query.split()).casefold() for step in trail.steps}
        return "" if query.casefold() in {ENOUGH, *known} else query
