"""Iterative retrieval: each search after the first derives its query from the passages found so far.

`steps` adds names from the best passages to the question; `steps-llm` has a language model read the passages and write the
query. The loop is IRCoT's (Trivedi et al., ACL 2023, section 3: reason from the passages so far, search with the new sentence,
stop at an answer or a maximum number of steps), with explicit queries like the follow-up questions of Self-Ask (Press et al.,
Findings of EMNLP 2023, section 3).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from ifqa.errors import ConfigError
from ifqa.llms.budget import UsageMeter
from ifqa.prompting.context_window import FittedPrompt, fit_prompt
from ifqa.prompting.prompts import load_prompt
from ifqa.protocols import LanguageModel
from ifqa.records import Completion, Passage, Question, Request, SearchResult, StageUsage, Step
from ifqa.retrieval import composition
from ifqa.retrieval.composition import FetchPassages, Part, SinglePart
from ifqa.retrieval.queries import content_terms
from ifqa.settings import NotNegative, Positive, check_arguments

STOP = "enough"  # in place of a query: the passages suffice


@dataclass(frozen=True, slots=True)
class SearchTrace:
    """The searches for a question so far, each with its ranking and its step."""

    question: Question
    rankings: list[SearchResult] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    def add(self, query: str, ranking: SearchResult) -> None:
        """Add a search; its step has the passages that are new."""
        seen = {hit.passage_id for earlier in self.rankings for hit in earlier}
        self.rankings.append(ranking)
        self.steps.append(Step(query, tuple(hit.passage_id for hit in ranking if hit.passage_id not in seen)))


class IterativeRetriever(SinglePart):
    """Searches with its part, then again with the queries of `_next_queries`, and fuses the rankings.

    The next query comes from the best `look` passages. The searches for a question end if there is no next query, if a search
    finds nothing new, or after `steps` searches. The rankings are fused by reciprocal rank, the first with weight 1, the others
    with `step_weight`.
    """

    default_parts: ClassVar[list[dict[str, str]]] = [{"name": "bm25"}]

    def __init__(
        self, name: str, parts: Sequence[Part], passages: FetchPassages, steps: int, look: int, step_weight: float
    ) -> None:
        super().__init__(name, parts)
        self._fetch, self._steps, self._look, self._weight = passages, steps, look, step_weight

    def _next_queries(self, traces: Sequence[SearchTrace]) -> list[str]:
        """The next query of each question; empty to end its searches."""
        raise NotImplementedError

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """The `k` best passages of each question, best first, and the steps.

        Raises IfqaError if the part generates different passages with the same id for two queries.
        """
        traces = [SearchTrace(question) for question in questions]
        active, queries = traces, [question.text for question in questions]
        for step in range(self._steps):
            if step:
                queries = self._next_queries(active)
            pairs = [(trace, query) for trace, query in zip(active, queries, strict=True) if query]
            if not pairs:
                break
            rankings = self._part.search([replace(trace.question, text=query) for trace, query in pairs])
            for (trace, query), ranking in zip(pairs, rankings, strict=True):
                trace.add(query, ranking)
            active = [trace for trace, _ in pairs if trace.steps[-1].passage_ids]
        return [self._fuse(trace, k) for trace in traces]

    def _top_passages(self, trace: SearchTrace) -> list[Passage]:
        """The best `look` passages so far."""
        return composition.look_up_passages(self._fuse(trace, self._look), self._fetch)

    def _fuse(self, trace: SearchTrace, k: int) -> SearchResult:
        fused = composition.fuse_by_rank(trace.rankings, [1.0] + [self._weight] * (len(trace.rankings) - 1))
        conflict = f"{self._name}: its part generated different passages with the id {{}}"
        generated = composition.join_generated(
            trace.rankings, f"{conflict}; use a part that searches a corpus, such as bm25"
        )
        return SearchResult(composition.top_hits(fused, k), generated, trace.steps)


class Steps(IterativeRetriever):
    """Searches again with the question and new names from its best passages; see `IterativeRetriever`."""

    version = 1

    @check_arguments("setting of retriever 'steps'")
    def __init__(
        self, *, parts: Sequence[Part], passages: FetchPassages, steps: Positive = 2, look: Positive = 3,
        names: Positive = 8, step_weight: NotNegative = 0.5,
    ) -> None:  # fmt: skip
        """A query gets at most `names` names, the most frequent first."""
        super().__init__("steps", parts, passages, steps, look, step_weight)
        self._names = names

    def _next_queries(self, traces: Sequence[SearchTrace]) -> list[str]:
        queries = []
        for trace in traces:
            known = " ".join(step.query for step in trace.steps).casefold()
            counts = Counter(name for passage in self._top_passages(trace) for name in content_terms(passage.text))
            new = [name for name, _ in counts.most_common() if name.casefold() not in known and not name.isdecimal()]
            queries.append(" ".join([trace.question.text, *new[: self._names]]) if new else "")
        return queries


class LlmSteps(IterativeRetriever):
    """Searches again with queries that a language model writes; see `IterativeRetriever`.

    The model gets the question, the queries so far and the best passages so far. The searches also end if the model says "enough"
    or repeats a query, if a completion holds no query ("unparsed" in `usage`), if a request fails ("retry": the next run sends it
    again), or if the prompt exceeds the context window ("too_long").
    """

    version = 1

    @check_arguments("setting of retriever 'steps-llm'")
    def __init__(
        self, *, llm: LanguageModel, parts: Sequence[Part], passages: FetchPassages, prompt: str = "next-query",
        steps: Positive = 3, look: Positive = 5, step_weight: NotNegative = 0.5, root: Path = Path(),
    ) -> None:  # fmt: skip
        """Load the prompt; its answer is a query or "enough".

        Raises IfqaError if there is not exactly one part, or the prompt is missing, reads no passages or shows choices.
        """
        super().__init__("steps-llm", parts, passages, steps, look, step_weight)
        self.llm, self.prompt = llm, load_prompt(prompt, root)
        if not self.prompt.reads_passages or self.prompt.shows_choices:
            wanted = "a prompt that reads passages and shows no choices"
            raise ConfigError(f"prompt {prompt!r}: retriever 'steps-llm' needs {wanted}")
        self.trained_on = (*self.trained_on, *llm.trained_on)
        self._meter = UsageMeter(llm)

    def requests(self, questions: Sequence[Question], k: int) -> list[Request]:
        """The most requests that `search` may send, for an estimate, with placeholder passages of typical length."""
        placeholders = [Passage("", "Some title", "passage " * 100)] * self._look
        prompts = [self._fit_prompt(question, placeholders, [question.text]) for question in questions]
        return [request for prompt in prompts for request in prompt.requests(samples=self._steps - 1)]

    def usage(self) -> StageUsage:
        """Counts so far, for the manifest; "retry" counts questions that the next run asks again."""
        return composition.merge_usage([super().usage(), self._meter.usage()])

    @classmethod
    def fingerprint(cls, prompt: str = "next-query", root: Path = Path(), **_: object) -> str:
        """A fingerprint of the prompt's file."""
        return composition.prompt_hash(prompt, root)

    def _next_queries(self, traces: Sequence[SearchTrace]) -> list[str]:
        queries = [[step.query for step in trace.steps] for trace in traces]
        pairs = zip(traces, queries, strict=True)
        prompts = [self._fit_prompt(trace.question, self._top_passages(trace), known) for trace, known in pairs]
        completions = composition.complete_requests(self._meter, [prompt.requests() for prompt in prompts])
        self._meter.counts["left_out"] += sum(prompt.left_out for prompt in prompts)
        return [self._parse_query(trace, completion) for trace, completion in zip(traces, completions, strict=True)]

    def _fit_prompt(self, question: Question, passages: Sequence[Passage], queries: Sequence[str]) -> FittedPrompt:
        return fit_prompt(self.prompt, question.text, passages, self.llm, searched=queries)

    def _parse_query(self, trace: SearchTrace, completions: Sequence[Completion]) -> str:
        """The query in the question's completion; empty if there is none or it is not new."""
        if not completions or completions[0].error:
            return ""
        self._meter.counts["cut"] += completions[0].finish == "length"
        parsed = self.prompt.parse(completions[0].text)
        self._meter.counts["unparsed"] += bool(parsed.problem)
        query = " ".join(parsed.answer.split())
        known = {" ".join(step.query.split()).casefold() for step in trace.steps}
        return "" if parsed.problem or query.casefold() in {STOP, *known} else query
