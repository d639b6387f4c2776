"""Files of other tools: runs, passages with texts, questions, judgements."""
