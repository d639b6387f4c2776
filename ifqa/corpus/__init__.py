"""Turns sources into passages: units of work, shards, and a store of passages by id."""

#: Sources of passages by the `format` of a section [[passages.sources]].
PLUGINS = {
    "dump": "ifqa.corpus.wikipedia.source:Dump",
    "articles": "ifqa.corpus.wikipedia.source:Articles",
    "documents": "ifqa.corpus.documents.source:Documents",
    "passages": "ifqa.corpus.ready_passages:PassageFiles",
    "gold": "ifqa.corpus.ready_passages:GoldPassages",
    "lucene": "ifqa.retrieval.stored_documents:StoredDocuments",
    "exported": "ifqa.corpus.exported:ExportedPassages",
}
