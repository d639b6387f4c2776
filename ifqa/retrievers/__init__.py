"""Retrievers by name. A retriever is one class with `search(questions, k) -> list[list[Hit]]`."""

PLUGS = {
    "bm25": "ifqa.retrievers.bm25:BM25",
    "dense": "ifqa.retrievers.dense:Dense",
    "fusion": "ifqa.retrievers.fusion:Fusion",
    "genread": "ifqa.retrievers.genread:GenRead",
    "gold": "ifqa.retrievers.gold:Gold",
    "rerank": "ifqa.retrievers.rerank:Rerank",
    "run": "ifqa.retrievers.run:Run",
}
