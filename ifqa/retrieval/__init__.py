"""Retrievers by name. A retriever is a class with `search(questions, k) -> list[SearchResult]`."""

PLUGINS = {
    "bm25": "ifqa.retrieval.bm25:BM25",
    "colbert": "ifqa.retrieval.colbert:ColBERT",
    "context": "ifqa.retrieval.context:Context",
    "dense": "ifqa.retrieval.dense:Dense",
    "fusion": "ifqa.retrieval.fusion:Fusion",
    "genread": "ifqa.retrieval.genread:GenRead",
    "gold": "ifqa.retrieval.gold:Gold",
    "ranker": "ifqa.retrieval.ranker:Ranker",
    "rerank": "ifqa.retrieval.rerank:Rerank",
    "run": "ifqa.retrieval.run:Run",
    "splade": "ifqa.retrieval.splade:Splade",
    "static": "ifqa.retrieval.static:Static",
    "steps": "ifqa.retrieval.steps:Steps",
    "steps-llm": "ifqa.retrieval.steps_llm:LlmSteps",
}
