"""Open-domain counterfactual question answering: dump -> passages -> index -> retrieve -> read ->
score -> report.

    import ifqa
    with ifqa.open("sample") as system:
        answer = system.ask("If ..., ...?")
        rankings = system.retrieve(["If ..., ...?"], k=20)

Nothing is imported before it is used, so `import ifqa` takes milliseconds.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from ifqa.version import __version__

if TYPE_CHECKING:
    from ifqa.api import Corpus, answers, ask, compare, evaluate, open, questions, run
    from ifqa.errors import IfqaError
    from ifqa.pipeline.system import System
    from ifqa.records import (
        Ablation,
        Answer,
        Calculation,
        Evidence,
        Explanation,
        Hit,
        Passage,
        Prediction,
        Question,
        Quote,
        QuotedPlace,
        Ranking,
        Step,
        Term,
    )
    from ifqa.report.compare import Comparison
    from ifqa.report.scores import Scores

__all__ = [
    "Ablation",
    "Answer",
    "Calculation",
    "Comparison",
    "Corpus",
    "Evidence",
    "Explanation",
    "Hit",
    "IfqaError",
    "Passage",
    "Prediction",
    "Question",
    "Quote",
    "QuotedPlace",
    "Ranking",
    "Scores",
    "Step",
    "System",
    "Term",
    "__version__",
    "answers",
    "ask",
    "compare",
    "evaluate",
    "open",
    "questions",
    "run",
]

_HOMES = {
    "ifqa.api": ("Corpus", "answers", "ask", "compare", "evaluate", "open", "questions", "run"),
    "ifqa.errors": ("IfqaError",),
    "ifqa.pipeline.system": ("System",),
    "ifqa.records": (
        "Ablation",
        "Answer",
        "Calculation",
        "Evidence",
        "Explanation",
        "Hit",
        "Passage",
        "Prediction",
        "Question",
        "Quote",
        "QuotedPlace",
        "Ranking",
        "Step",
        "Term",
    ),
    "ifqa.report.compare": ("Comparison",),
    "ifqa.report.scores": ("Scores",),
}


def __getattr__(name: str) -> object:
    for module, names in _HOMES.items():
        if name in names:
            return vars(import_module(module))[name]
    raise AttributeError(f"module 'ifqa' has no attribute {name!r}; it has: {', '.join(__all__)}")


def __dir__() -> list[str]:
    return __all__
