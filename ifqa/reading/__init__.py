"""Readers by name: each is a class with `answer(questions, passages) -> list[Prediction]`."""

PLUGINS = {
    "adaboost": "ifqa.reading.multiple_choice.baselines:AdaBoost",
    "cascade": "ifqa.reading.cascade:Cascade",
    "choice": "ifqa.reading.multiple_choice.bert:Choice",
    "decomp-attn": "ifqa.reading.multiple_choice.baselines:DecompAttn",
    "extractive": "ifqa.reading.span.reader:Extractive",
    "fid": "ifqa.reading.t5.readers:Fid",
    "graph": "ifqa.reading.multiple_choice.graph:Graph",
    "llm": "ifqa.reading.llm:Llm",
    "majority": "ifqa.reading.multiple_choice.baselines:Majority",
    "polarity": "ifqa.reading.multiple_choice.baselines:Polarity",
    "predictions": "ifqa.reading.predictions:Predictions",
    "rag": "ifqa.reading.t5.readers:Rag",
    "sentence": "ifqa.reading.span.reader:Sentence",
    "unifiedqa": "ifqa.reading.t5.readers:UnifiedQA",
}
