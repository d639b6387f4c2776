"""Benchmarks by name. A benchmark is one class with `questions(split)` and `score(question, prediction)`."""

PLUGS = {
    "ifqa": "ifqa.benchmarks.ifqa:IfQA",
    "sample": "ifqa.benchmarks.sample:Sample",
}
