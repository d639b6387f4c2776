"""The stage that ranks passages for each question."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, ClassVar

from ifqa.config.experiment import ConfiguredRetriever, Experiment
from ifqa.corpus.passage_store import generated_passage_line
from ifqa.formats.runs import format_ranking
from ifqa.formatting import pluralize
from ifqa.pipeline.asking import AskingStage, Chunk, ChunkResult, Facts
from ifqa.pipeline.index import Index
from ifqa.pipeline.passages import PASSAGES
from ifqa.pipeline.run import Run
from ifqa.pipeline.stage import Stage
from ifqa.pipeline.system import System
from ifqa.protocols import ProgressCallback, Retriever
from ifqa.records import Hit, Passage, SearchResult


class Retrieve(AskingStage):
    """Writes each question's ranking to `run.trec`, and generated passages to `passages.jsonl`."""

    activity: ClassVar[str] = "searching"
    file: ClassVar[str] = "run.trec"
    shared_file: ClassVar[str] = "passages.jsonl"

    def plugin(self, experiment: Experiment) -> ConfiguredRetriever | None:
        return experiment.retriever

    def needs(self, run: Run) -> Sequence[Stage[Run]]:
        return ()

    def current_inputs(self, run: Run) -> dict[str, object]:
        """The search settings, the questions, and the identities of the indexes, which must fit the
        current passages.
        """
        retriever = run.require_retriever()
        inputs: dict[str, object] = {
            "stage": self.name,
            "retriever": run.fingerprint(retriever),
            "questions": run.questions_identity,
        }
        build = run.corpus
        if build is None:
            return inputs
        indexes = {name: build.identity(Index(name)) for name in run.experiment.indexes}
        if indexes:
            inputs["indexes"] = indexes
        if retriever.taking("passages") or retriever.taking("corpus"):
            inputs["passages"] = build.identity(PASSAGES)
        return inputs

    def chunk_size(self, run: Run) -> int:
        return max(step.plugin.chunk for step in run.require_retriever().steps)

    def rankings(self, run: Run) -> Iterator[Sequence[Hit]]:
        return repeat((), len(run.questions))

    def opened(self, system: System) -> Retriever:
        return system.retriever

    def ask_chunk(self, system: System, chunk: Chunk, advance: ProgressCallback) -> ChunkResult:
        rankings = system.search(chunk.questions)
        advance(len(chunk.questions))
        tag = f"ifqa-{system.run.require_retriever().name}"
        pairs = zip(chunk.questions, rankings, strict=True)
        lines = [format_ranking(question.id, hits, tag) for question, hits in pairs]
        parts = {self.file: b"".join(lines)}
        if any(ranking.generated is not None for ranking in rankings):
            parts[self.shared_file] = _generated_lines(rankings)
        return parts, {"hits": sum(map(len, rankings))}

    def totals(self, total: Facts) -> dict[str, object]:
        return {"hits": total["hits"]}

    def summary(self, record: Mapping[str, Any]) -> str:
        questions = pluralize(record["questions"], "question")
        return f"{pluralize(record['hits'], 'passage')} for {questions}"


def _generated_lines(rankings: Sequence[SearchResult]) -> bytes:
    """The lines of the passages that the retriever generated, each id once."""
    unique: dict[str, Passage] = {}
    for ranking in rankings:
        for passage in ranking.generated or ():
            unique.setdefault(passage.id, passage)
    return b"".join(map(generated_passage_line, unique.values()))


RETRIEVE = Retrieve("retrieve")
