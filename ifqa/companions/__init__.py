"""Companion benchmarks, each a whole: its questions, readers, trainers, measures and counts."""
