"""The questions of a benchmark as records of other tools, their prompts, and their scores."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal

from ifqa.errors import ConfigError
from ifqa.plugins import open_benchmark
from ifqa.records import Prediction, Question
from ifqa.scoring.per_question import score_prediction
from ifqa.scoring.scheme import ScoringScheme, load_scheme

Record = Mapping[str, Any]
Shown = Literal["none", "gold"]  # the passages in the prompt

_INSTRUCTION = (
    "Answer the question in as few words as possible, on one line. Take what it supposes as true."
)


def load_records(benchmark: str, split: str, passages: Shown = "none") -> list[dict[str, Any]]:
    """A record for each question of a split, with its `prompt`.

    Paths start in the working directory. Raises IfqaError for an unknown or missing split, and for
    `passages` other than "none" and "gold".
    """
    if passages not in ("none", "gold"):
        raise ConfigError(f"passages: wanted none or gold, found {passages!r}")
    return [
        {
            "id": question.id,
            "question": question.text,
            "answers": list(question.answers),
            "passages": list(question.gold_passages),
            "choices": list(question.choices),
            "context": question.context,
            "group": question.group,
            "labels": [list(label) for label in question.labels],
            "benchmark": benchmark,
            "split": split,
            "prompt": prompt_text(question, passages),
        }
        for question in open_benchmark(benchmark).questions(split)
    ]


def as_question(record: Record) -> Question:
    """The question of a record."""
    return Question(
        record["id"],
        record["question"],
        tuple(record["answers"]),
        tuple(record["passages"]),
        choices=tuple(record["choices"]),
        context=record["context"],
        group=record["group"],
        labels=tuple((name, label) for name, label in record["labels"]),
    )


def prompt_text(question: Question, passages: Shown = "none") -> str:
    """A question as a prompt, after its context, its annotated passages if they are shown, and its
    choices.
    """
    texts = [question.context] if question.context.strip() else []
    texts += question.gold_passages if passages == "gold" else []
    parts = [_INSTRUCTION, *(f"Passage: {text}" for text in texts)]
    asked = f"Question: {question.text}"
    if question.choices:
        asked += "\nChoices: " + "; ".join(question.choices)
    return "\n\n".join([*parts, f"{asked}\nAnswer:"])


def first_line(text: str) -> str:
    """The answer in a model's text: its first line that is not blank, without "Answer:"."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line.removeprefix("Answer:").strip()


@cache
def scoring_scheme(benchmark: str, split: str) -> ScoringScheme:
    """How a benchmark's split is scored."""
    return load_scheme(benchmark, split=split)


def question_scores(record: Record, answer: str) -> dict[str, float]:
    """The benchmark's scores of one answer, from 0 to 1, by name; an empty answer scores as failed.

    Measures that do not apply to the question are left out.
    """
    scheme = scoring_scheme(record["benchmark"], record["split"])
    row = score_prediction(as_question(record), Prediction(record["id"], answer), scheme)
    names = [measure.name for measure in scheme.answers]
    return {name: float(row[name]) for name in names if name in row}


def set_score(name: str, records: Sequence[Record], answers: Sequence[str]) -> float:
    """A benchmark's score of many answers at once, such as `obeyed`, from 0 to 1; NaN if it is
    undefined.
    """
    scheme = scoring_scheme(records[0]["benchmark"], records[0]["split"])
    measure = next(measure for measure in scheme.sets if measure.name == name)
    score = measure.score(
        list(map(as_question, records)),
        [Prediction(record["id"], text) for record, text in zip(records, answers, strict=True)],
    )
    return float("nan") if score is None else score
