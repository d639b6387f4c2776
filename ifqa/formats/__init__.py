"""File formats of other tools: TREC runs and qrels, ctxs JSON, questions, annotation tasks, and
CausalQA's datasets.
"""
