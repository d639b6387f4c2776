"""Readers by name: each is a class with `answer(questions, passages) -> list[Prediction]`."""

PLUGINS = {
    "extractive": "ifqa.reading.span.reader:Extractive",
    "fid": "ifqa.reading.fid:Fid",
    "llm": "ifqa.reading.llm:Llm",
    "predictions": "ifqa.reading.predictions:Predictions",
    "unifiedqa": "ifqa.reading.unifiedqa:UnifiedQA",
}
