"""Readers by name. A reader is one class with `answer(questions, passages) -> list[Prediction]`."""

PLUGS = {
    "extractive": "ifqa.readers.extractive:Extractive",
    "fid": "ifqa.readers.fid:Fid",
    "llm": "ifqa.readers.llm:Llm",
    "predictions": "ifqa.readers.predictions:Predictions",
}
