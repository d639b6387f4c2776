"""Readers by name: each is a class with `answer(questions, passages) -> list[Prediction]`."""

PLUGINS = {
    "agent": "ifqa.reading.agent.reader:Agent",
    "cascade": "ifqa.reading.cascade:Cascade",
    "extractive": "ifqa.reading.span.reader:Extractive",
    "fid": "ifqa.reading.t5.readers:Fid",
    "llm": "ifqa.reading.llm:Llm",
    "predictions": "ifqa.reading.predictions:Predictions",
    "rag": "ifqa.reading.t5.readers:Rag",
    "sentence": "ifqa.reading.span.reader:Sentence",
    "unifiedqa": "ifqa.reading.t5.readers:UnifiedQA",
}
