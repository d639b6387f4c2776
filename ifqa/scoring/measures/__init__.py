"""Measures by name: objects of the types `Measure`, `RankingMeasure` and `SetMeasure` of `ifqa.protocols`."""

PLUGINS = {
    "accuracy": "ifqa.scoring.measures.accuracy:ACCURACY",
    "answer": "ifqa.scoring.measures.answer_recall:ANSWER",
    "contains": "ifqa.scoring.measures.contains:CONTAINS",
    "EM": "ifqa.scoring.measures.exact_match:EM",
    "F1": "ifqa.scoring.measures.f1:F1",
    "gold_all": "ifqa.scoring.measures.gold_recall:GOLD_ALL",
    "gold_any": "ifqa.scoring.measures.gold_recall:GOLD_ANY",
}
