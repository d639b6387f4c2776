"""Several steps of retrieval: what was found says what to search for next.

`steps` asks for the names in the best passages that the question lacks; `steps-llm` lets a language model read the passages.
The loop is that of IRCoT (Trivedi et al., ACL 2023, section 3: reason from the passages so far, search with the new sentence,
stop at an answer or after a number of steps), with a query asked for outright, as the follow-up questions of Self-Ask are (Press
et al., Findings of EMNLP 2023, section 3).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from ifqa.errors import IfqaError
from ifqa.llms.budget import UsageMeter
from ifqa.prompting.context_window import FittedPrompt, fit_prompt
from ifqa.prompting.prompts import load_prompt
from ifqa.protocols import LanguageModel
from ifqa.records import Completion, Passage, Question, Request, SearchResult, StageUsage, Step
from ifqa.retrieval.composition import (
    FetchPassages,
    Part,
    SinglePart,
    complete_requests,
    fuse_by_rank,
    join_generated,
    look_up_passages,
    merge_usage,
    prompt_hash,
    top_hits,
)
from ifqa.retrieval.queries import content_terms
from ifqa.settings import NotNegative, Positive, check_arguments

STOP = "enough"  # in the place of a query: what was found suffices


@dataclass(frozen=True, slots=True)
class SearchTrace:
    """The searches for a question so far: a ranking and a step of each."""

    question: Question
    rankings: list[SearchResult] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    def add(self, query: str, ranking: SearchResult) -> None:
        """Add a search; the passages of its step are those that no earlier ranking has."""
        before = {hit.passage_id for earlier in self.rankings for hit in earlier}
        self.rankings.append(ranking)
        self.steps.append(Step(query, tuple(hit.passage_id for hit in ranking if hit.passage_id not in before)))


class IterativeRetriever(SinglePart):
    """Searches with its one part, then again with the queries of `_queries`, and fuses the rankings.

    The searches for a question end where there is no next query, where a search finds nothing new, or after `steps` of them.
    The best `look` passages give the next query. Each later ranking has the weight `step_weight` in a reciprocal rank fusion in
    which the first has weight 1.
    """

    default_parts: ClassVar[list[dict[str, str]]] = [{"name": "bm25"}]

    def __init__(
        self, name: str, parts: Sequence[Part], passages: FetchPassages, steps: int, look: int, step_weight: float
    ) -> None:
        super().__init__(name, parts)
        self._fetch, self._steps, self._look, self._weight = passages, steps, look, step_weight

    def _queries(self, traces: Sequence[SearchTrace]) -> list[str]:
        """The next query of each question; empty for one whose searches end."""
        raise NotImplementedError

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """The `k` best passages of each question, best first, and the steps.

        Raises:
            IfqaError: a passage of the part's ranking is missing, or the part generates other passages of the same ids for
                another query.
        """
        traces = [SearchTrace(question) for question in questions]
        going, queries = traces, [question.text for question in questions]
        for step in range(self._steps):
            if step:
                queries = self._queries(going)
            pairs = [(trace, query) for trace, query in zip(going, queries, strict=True) if query]
            if not pairs:
                break
            rankings = self._part.search([replace(trace.question, text=query) for trace, query in pairs])
            for (trace, query), ranking in zip(pairs, rankings, strict=True):
                trace.add(query, ranking)
            going = [trace for trace, _ in pairs if trace.steps[-1].passage_ids]
        return [self._fused(trace, k) for trace in traces]

    def _best(self, trace: SearchTrace) -> list[Passage]:
        """The best passages so far, `look` at most."""
        return look_up_passages(self._fused(trace, self._look), self._fetch)

    def _fused(self, trace: SearchTrace, k: int) -> SearchResult:
        fused = fuse_by_rank(trace.rankings, [1.0] + [self._weight] * (len(trace.rankings) - 1))
        conflict = f"{self._name}: its part made another passage {{}} for the query of a later step"
        generated = join_generated(trace.rankings, f"{conflict}; wanted a part that finds its passages, as bm25 does")
        return SearchResult(top_hits(fused, k), generated, trace.steps)


class Steps(IterativeRetriever):
    """Searches again with the question and the names in its best passages that no query had yet; see `IterativeRetriever`."""

    version = 1

    @check_arguments("setting of retriever 'steps'")
    def __init__(
        self,
        *,
        parts: Sequence[Part],
        passages: FetchPassages,
        steps: Positive = 2,
        look: Positive = 3,
        names: Positive = 8,
        step_weight: NotNegative = 0.5,
    ) -> None:
        """Keep the part. A query has at most `names` names; those in most of the passages come first."""
        super().__init__("steps", parts, passages, steps, look, step_weight)
        self._names = names

    def _queries(self, traces: Sequence[SearchTrace]) -> list[str]:
        queries = []
        for trace in traces:
            known = " ".join(step.query for step in trace.steps).casefold()
            counted = Counter(name for passage in self._best(trace) for name in content_terms(passage.text))
            new = [name for name, _ in counted.most_common() if name.casefold() not in known and not name.isdecimal()]
            queries.append(" ".join([trace.question.text, *new[: self._names]]) if new else "")
        return queries


class LlmSteps(IterativeRetriever):
    """Searches again with the queries that a language model asks for; see `IterativeRetriever`.

    The model gets the question, the queries so far and the best passages so far. The searches for a question end too where it
    says "enough" or repeats a query, where no query can be read from the completion ("unparsed" in `usage`), where a request
    failed ("retry": the next run asks again), and where the prompt does not fit the model's window ("too_long").
    """

    version = 1

    @check_arguments("setting of retriever 'steps-llm'")
    def __init__(
        self,
        *,
        llm: LanguageModel,
        parts: Sequence[Part],
        passages: FetchPassages,
        prompt: str = "next-query",
        steps: Positive = 3,
        look: Positive = 5,
        step_weight: NotNegative = 0.5,
        root: Path = Path(),
    ) -> None:
        """Keep part and model, and load the prompt, which reads passages, and whose answer is a query or "enough".

        Raises:
            IfqaError: there is not exactly one part, no such prompt, or the prompt reads no passages or shows choices.
        """
        super().__init__("steps-llm", parts, passages, steps, look, step_weight)
        self.llm, self.prompt = llm, load_prompt(prompt, root)
        if not self.prompt.reads_passages or self.prompt.shows_choices:
            raise IfqaError(
                f"prompt {prompt!r}: retriever 'steps-llm' wants one that reads passages and shows no choices; take another"
            )
        self.trained_on = (*self.trained_on, *llm.trained_on)
        self._meter = UsageMeter(llm)

    def requests(self, questions: Sequence[Question], k: int) -> list[Request]:
        """As many requests as `search` sends at most, for an estimate, with stand-ins of the usual length as passages."""
        usual = [Passage("", "Some title", "passage " * 100)] * self._look
        prompts = [self._fitted(question, usual, [question.text]) for question in questions]
        return [request for prompt in prompts for request in prompt.requests(samples=self._steps - 1)]

    def usage(self) -> StageUsage:
        """Counts so far, for the manifest; "retry" is the number of questions to ask again."""
        return merge_usage([super().usage(), self._meter.usage()])

    @classmethod
    def fingerprint(cls, prompt: str = "next-query", root: Path = Path(), **_: object) -> str:
        """A hash that changes with the prompt's file."""
        return prompt_hash(prompt, root)

    def _queries(self, traces: Sequence[SearchTrace]) -> list[str]:
        prompts = [
            self._fitted(trace.question, self._best(trace), [step.query for step in trace.steps]) for trace in traces
        ]
        completions = complete_requests(self._meter, [prompt.requests() for prompt in prompts])
        self._meter.counts["left_out"] += sum(prompt.left_out for prompt in prompts)
        return [self._query(trace, completion) for trace, completion in zip(traces, completions, strict=True)]

    def _fitted(self, question: Question, passages: Sequence[Passage], searched: Sequence[str]) -> FittedPrompt:
        return fit_prompt(self.prompt, question.text, passages, self.llm, searched=searched)

    def _query(self, trace: SearchTrace, completions: Sequence[Completion]) -> str:
        """The query in a completion; empty if there is none, or it says nothing new."""
        for completion in completions:
            if completion.error:
                break
            self._meter.counts["cut"] += completion.finish == "length"
            parsed = self.prompt.parse(completion.text)
            self._meter.counts["unparsed"] += bool(parsed.problem)
            query = " ".join(parsed.answer.split())
            known = {" ".join(step.query.split()).casefold() for step in trace.steps}
            return "" if parsed.problem or query.casefold() in {STOP, *known} else query
        return ""
