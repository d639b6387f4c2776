"""Benchmarks by name: classes with a method `questions(split)` that declare their measures."""

PLUGINS = {
    "ifqa": "ifqa.benchmarks.ifqa:IfQA",
    "sample": "ifqa.benchmarks.sample:Sample",
}
