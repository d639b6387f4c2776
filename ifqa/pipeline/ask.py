"""One question: its answer, and the passages it was read from."""

from dataclasses import dataclass

from ifqa.config.experiment import Experiment
from ifqa.errors import IfqaError
from ifqa.pipeline.inputs import open_reader, open_retriever, passages_of, queries_of
from ifqa.pipeline.stages import prepare
from ifqa.records import Passage, Prediction, Question


@dataclass(frozen=True)
class Asked:
    """One question's answer, and the passages it was read from, the most telling first."""

    prediction: Prediction
    evidence: list[Passage]


def ask(experiment: Experiment, text: str) -> Asked:
    """Answer one question with an experiment's retriever and reader, building the corpus first if it is not there.

    Raises:
        IfqaError: the question is empty, or the experiment has no reader.
    """
    if not text.strip():
        raise IfqaError('the question is empty; wanted something like: ifqa ask "If ..., ...?"')
    if experiment.reader is None:
        raise IfqaError(f"experiment {experiment.name} has no [reader]")
    prepare(experiment)
    question = Question("ask", text.strip())
    passages: list[Passage] = []
    if experiment.retriever:
        retriever = open_retriever(experiment)
        found = retriever.search(queries_of(experiment, [question]), experiment.retriever["k"])[0]
        ranking = found[: experiment.reader["passages"]]
        known = {passage.id: passage for passage in retriever.made_passages([question]) or ()}
        stored = iter(next(passages_of(experiment, [[hit for hit in ranking if hit.passage_id not in known]])))
        passages = [known[hit.passage_id] if hit.passage_id in known else next(stored) for hit in ranking]
    prediction = open_reader(experiment).answer([question], [passages])[0]
    by_id = {passage.id: passage for passage in passages}
    return Asked(prediction, [by_id[passage_id] for passage_id in prediction.passage_ids])
