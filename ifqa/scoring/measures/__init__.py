"""Measures by name: objects of the types `Measure`, `RankingMeasure` and `SetMeasure` of `ifqa.protocols`."""

PLUGINS = {
    "accuracy": "ifqa.scoring.measures.accuracy:ACCURACY",
    "answer": "ifqa.scoring.measures.answer_recall:ANSWER",
    "contains": "ifqa.scoring.measures.contains:CONTAINS",
    "EM": "ifqa.scoring.measures.exact_match:EM",
    "F1": "ifqa.scoring.measures.f1:F1",
    "gold_all": "ifqa.scoring.measures.gold_recall:GOLD_ALL",
    "gold_any": "ifqa.scoring.measures.gold_recall:GOLD_ANY",
    "ROUGE-L": "ifqa.scoring.measures.rouge_l:ROUGE_L",
    "ROUGE-L-P": "ifqa.scoring.measures.rouge_l:ROUGE_L_PRECISION",
    "ROUGE-L-R": "ifqa.scoring.measures.rouge_l:ROUGE_L_RECALL",
    "ROUGE-L-words": "ifqa.scoring.measures.rouge_l:ROUGE_L_WORDS",
}
