"""File formats of other tools: runs, retrieved passages with texts, questions, relevance judgements."""
