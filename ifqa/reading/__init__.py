"""Readers by name. A reader is one class with `answer(questions, passages) -> list[Prediction]`."""

PLUGINS = {
    "extractive": "ifqa.reading.span.reader:Extractive",
    "fid": "ifqa.reading.fid.reader:Fid",
    "llm": "ifqa.reading.llm:Llm",
    "predictions": "ifqa.reading.predictions:Predictions",
}
