"""Benchmarks by name: classes with a method `questions(split)` that declare their measures."""

PLUGINS = {
    "causalqa": "ifqa.benchmarks.causalqa.benchmark:CausalQA",
    "file": "ifqa.benchmarks.file:File",
    "ifqa": "ifqa.benchmarks.ifqa:IfQA",
    "obedience": "ifqa.benchmarks.obedience:Obedience",
    "sample": "ifqa.benchmarks.ifqa:Sample",
    "sample-causal": "ifqa.benchmarks.causalqa.benchmark:SampleCausal",
    "sample-wiqa": "ifqa.benchmarks.wiqa.benchmark:SampleWiqa",
    "wiqa": "ifqa.benchmarks.wiqa.benchmark:Wiqa",
}
