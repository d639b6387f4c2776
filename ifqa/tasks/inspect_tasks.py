"""Tasks of inspect: `ifqa/questions` and `ifqa/obedience`, found by the entry point `inspect_ai`.

inspect eval ifqa/questions -T benchmark=ifqa -T split=full-dev -T passages=gold --model ...
"""

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.scorer import (
    Metric,
    SampleScore,
    Score,
    Scorer,
    Target,
    mean,
    metric,
    scorer,
    stderr,
)
from inspect_ai.solver import TaskState, generate

from ifqa.tasks.questions import Shown, first_line, load_records, question_scores, set_score

_CONFIG = GenerateConfig(max_tokens=256)


@task
def questions(benchmark: str = "sample", split: str = "dev", passages: Shown = "none") -> Task:
    """The questions of any benchmark of ifqa, scored by its own measures.

    Args:
        benchmark: such as "sample", "ifqa" or "file".
        split: such as "dev" or "full-dev"; the path of the questions for "file".
        passages: "gold" shows the annotated passages.
    """
    return Task(
        dataset=_dataset(benchmark, split, passages),
        solver=generate(),
        scorer=answer_scores(),
        config=_CONFIG,
    )


@task
def obedience(split: str = "sample-dev") -> Task:
    """Does a model answer by the supposition, or by what it remembers?

    Args:
        split: parts joined by "+", such as "full-dev+nq-swap".
    """
    return Task(
        dataset=_dataset("obedience", split, "none"),
        solver=generate(),
        scorer=obedience_scores(),
        config=_CONFIG,
    )


def _dataset(benchmark: str, split: str, passages: Shown) -> MemoryDataset:
    samples = [
        Sample(
            id=record["id"],
            input=record["prompt"],
            target=record["answers"],
            metadata={key: record[key] for key in record if key != "prompt"},
        )
        for record in load_records(benchmark, split, passages)
    ]
    return MemoryDataset(samples, name=f"{benchmark}:{split}")


@scorer(metrics={"*": [mean(), stderr()]})
def answer_scores() -> Scorer:
    """Each answer's scores by the benchmark's measures."""

    async def score(state: TaskState, target: Target) -> Score:
        answer = first_line(state.output.completion)
        return Score(value=question_scores(state.metadata, answer), answer=answer)

    return score


def _share(name: str) -> Metric:
    def share(scores: list[SampleScore]) -> float:  # inspect looks at this annotation
        records = [score.sample_metadata or {} for score in scores]
        return set_score(name, records, [score.score.answer or "" for score in scores])

    return share


@metric
def obeyed() -> Metric:
    """How often the answer is right, and not the one that the twin gets."""
    return _share("obeyed")


@metric
def real_world() -> Metric:
    """How often it is wrong, and the twin's answer or a true one."""
    return _share("real_world")


@metric
def right() -> Metric:
    """How often the answer is right, whatever the twin gets."""
    return _share("right")


@scorer(metrics=[obeyed(), real_world(), right()])
def obedience_scores() -> Scorer:
    """Keeps each answer; the metrics compare it with its twin's. Its value: whether it is right."""

    async def score(state: TaskState, target: Target) -> Score:
        answer = first_line(state.output.completion)
        return Score(value=question_scores(state.metadata, answer).get("right", 0.0), answer=answer)

    return score
