"""Companion benchmarks, each self-contained: questions, readers, trainers, measures and counts."""
