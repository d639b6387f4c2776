"""Benchmarks by name: classes with a method `questions(split)` that declare their measures."""

PLUGINS = {
    "file": "ifqa.benchmarks.file:File",
    "ifqa": "ifqa.benchmarks.ifqa:IfQA",
    "obedience": "ifqa.benchmarks.obedience:Obedience",
    "sample": "ifqa.benchmarks.ifqa:Sample",
}
