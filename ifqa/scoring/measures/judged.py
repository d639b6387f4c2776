"""The measure "judged by MODEL": whether a language model says that an answer means the same as a
gold answer (Kamalloo et al., ACL 2023, and others).

The verdicts are made by the score stage (`ifqa.pipeline.judge`), which alone asks a model. The
measure decides nothing: it is never the headline, and no gate tests it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal

from ifqa.formatting import printable_line
from ifqa.protocols import AnyMeasure, Measure
from ifqa.records import Prediction, Question

JUDGED: Final = "judged by "  # begins the measure's name; the rest is the model's
#: Why an answer is the same as a gold answer, or why it is not. Only the first is given without a
#: model. "unclear" is a reply that is neither yes nor no, and "too long" an answer that does not
#: fit the model's window.
Verdict = Literal["exact match", "same", "different", "unclear", "too long"]
SAME: tuple[Verdict, ...] = ("exact match", "same")


def is_judged(key: str) -> bool:
    """Whether a key is that of a model's verdicts."""
    return key.startswith(JUDGED)


def judged_measure(model: str) -> Measure:
    """The measure of a model's verdicts, which are undefined until `with_verdicts` adds them."""
    return Measure(
        f"{JUDGED}{printable_line(model)}",
        _not_judged,
        in_tables=True,
        advisory=True,
        about="the answers that the named model says mean the same as a gold answer; "
        "an exact match is one without a question to the model",
    )


def with_verdicts(
    measures: Sequence[AnyMeasure], verdicts: Mapping[str, Verdict]
) -> tuple[AnyMeasure, ...]:
    """The measures, of which a judged one scores an answer by the verdict on its question's id."""

    def score(question: Question, prediction: Prediction) -> float | None:
        verdict = verdicts.get(question.id)
        return None if verdict is None else float(verdict in SAME)

    return tuple(
        replace(measure, score=score) if is_judged(measure.name) else measure
        for measure in measures
    )


def _not_judged(question: Question, prediction: Prediction) -> None:
    """No score: only a model can give one."""
