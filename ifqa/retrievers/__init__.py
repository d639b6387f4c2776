"""Retrievers by name. A retriever is one class with `search(questions, k) -> list[list[Hit]]`."""

PLUGS = {
    "bm25": "ifqa.retrievers.bm25:BM25",
    "gold": "ifqa.retrievers.gold:Gold",
    "run": "ifqa.retrievers.run:Run",
}
