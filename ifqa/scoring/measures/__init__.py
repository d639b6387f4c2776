"""Measures by name: objects of the types `Measure`, `RankingMeasure`, `SetMeasure` and
`ColumnMeasure`.
"""

PLUGINS = {
    "accuracy": "ifqa.scoring.measures.exact_match:ACCURACY",
    "AURC": "ifqa.scoring.measures.confidence:AURC",
    "AUROC": "ifqa.scoring.measures.confidence:AUROC",
    "answer": "ifqa.scoring.measures.answer_recall:ANSWER",
    "Brier": "ifqa.scoring.measures.confidence:BRIER",
    "contains": "ifqa.scoring.measures.exact_match:CONTAINS",
    "ECE": "ifqa.scoring.measures.confidence:ECE",
    "EM": "ifqa.scoring.measures.exact_match:EM",
    "EM-50": "ifqa.scoring.measures.confidence:EM_50",
    "EM-80": "ifqa.scoring.measures.confidence:EM_80",
    "F1": "ifqa.scoring.measures.exact_match:F1",
    "gold_all": "ifqa.scoring.measures.gold_recall:GOLD_ALL",
    "gold_any": "ifqa.scoring.measures.gold_recall:GOLD_ANY",
}
