"""The stage that answers each question from its ranking, or without passages."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from ifqa.config.experiment import ConfiguredReader, Experiment
from ifqa.corpus.passage_store import get_passage_lists
from ifqa.formatting import pluralize
from ifqa.pipeline.asking import AskingStage, Chunk, ChunkResult, Facts
from ifqa.pipeline.passages import PASSAGES
from ifqa.pipeline.retrieve import RETRIEVE
from ifqa.pipeline.run import Run
from ifqa.pipeline.stage import Stage
from ifqa.pipeline.stage_outputs import prediction_line, rankings_of
from ifqa.pipeline.system import System
from ifqa.protocols import ProgressCallback, Reader
from ifqa.records import Hit


class Read(AskingStage):
    """Writes each question's prediction to `predictions.jsonl`."""

    activity: ClassVar[str] = "reading"
    file: ClassVar[str] = "predictions.jsonl"

    def plugin(self, experiment: Experiment) -> ConfiguredReader | None:
        return experiment.reader

    def needs(self, run: Run) -> Sequence[Stage[Run]]:
        return (RETRIEVE,) if run.experiment.retriever else ()

    def current_inputs(self, run: Run) -> dict[str, object]:
        """The reader, the questions, their rankings, and the passages."""
        return {
            "stage": self.name,
            "reader": run.fingerprint(run.require_reader()),
            "questions": run.questions_identity,
            **rankings_identity(run),
        }

    def chunk_size(self, run: Run) -> int:
        return run.require_reader().plugin.chunk

    def rankings(self, run: Run) -> Iterator[Sequence[Hit]]:
        depth = run.require_reader().passages
        return (ranking[:depth] for ranking in rankings_of(run.experiment, run.questions))

    def opened(self, system: System) -> Reader:
        return system.reader

    def ask_chunk(self, system: System, chunk: Chunk, advance: ProgressCallback) -> ChunkResult:
        ids = [[hit.passage_id for hit in ranking] for ranking in chunk.rankings]
        scores = [[hit.score for hit in ranking] for ranking in chunk.rankings]
        passages = get_passage_lists(system.ranked_stores, ids)
        predictions = system.read(chunk.questions, passages, scores, advance)
        failed = sum(prediction.failed for prediction in predictions)
        lines = b"".join(map(prediction_line, predictions))
        return {self.file: lines}, {"failed": failed, "label": system.reader.label}

    def totals(self, total: Facts) -> dict[str, object]:
        return {"label": total["label"], "failed": total["failed"]}

    def summary(self, record: Mapping[str, Any]) -> str:
        """A question without an answer is not counted as answered."""
        questions = record["questions"]
        failed = record.get("failed", 0)
        if failed:
            return f"{questions - failed:,} of {questions:,} questions answered"
        return f"{pluralize(questions, 'question')} answered"


def rankings_identity(run: Run) -> dict[str, str]:
    """The identities of the run that is read, and of the passages."""
    ranked = {"run": run.identity(RETRIEVE)} if run.experiment.retriever else {}
    return ranked | ({"passages": run.corpus.identity(PASSAGES)} if run.corpus else {})


READ = Read("read")
