"""Benchmarks by name. A benchmark is one class with `questions(split)`, and it declares its measures."""

PLUGINS = {
    "ifqa": "ifqa.benchmarks.ifqa:IfQA",
    "sample": "ifqa.benchmarks.sample:Sample",
}
