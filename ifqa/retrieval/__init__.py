"""Retrievers by plugin name.

A retriever is a class with `search(questions, k) -> list[SearchResult]`.
"""

PLUGINS = {
    "bm25": "ifqa.retrieval.bm25:BM25",
    "context": "ifqa.retrieval.question_texts:Context",
    "dense": "ifqa.retrieval.dense:Dense",
    "fusion": "ifqa.retrieval.fusion:Fusion",
    "genread": "ifqa.retrieval.genread:GenRead",
    "gold": "ifqa.retrieval.question_texts:Gold",
    "milvus": "ifqa.retrieval.milvus:Milvus",
    "ranker": "ifqa.retrieval.linear_ranker:Ranker",
    "rerank": "ifqa.retrieval.rerank:Rerank",
    "run": "ifqa.retrieval.run_file:RunFile",
    "sparse": "ifqa.retrieval.sparse:Sparse",
}
