"""WIQA: influence graphs of processes, "what if" questions made from them, and readers of these."""

#: Kind -> name -> "module:Class". The trainers' module imports no torch at the top, so that `ifqa
#: train NAME --help` is fast.
PLUGINS = {
    "benchmark": {
        "sample-wiqa": "ifqa.companions.wiqa.benchmark:SampleWiqa",
        "wiqa": "ifqa.companions.wiqa.benchmark:Wiqa",
    },
    "reader": {
        "adaboost": "ifqa.companions.wiqa.baselines:AdaBoost",
        "choice": "ifqa.companions.wiqa.choice_reader:Choice",
        "decomp-attn": "ifqa.companions.wiqa.baselines:DecompAttn",
        "graph": "ifqa.companions.wiqa.graph_reader:Graph",
        "majority": "ifqa.companions.wiqa.baselines:Majority",
        "polarity": "ifqa.companions.wiqa.baselines:Polarity",
    },
    "trainer": {
        "adaboost": "ifqa.companions.wiqa.trainers:AdaBoost",
        "decomp-attn": "ifqa.companions.wiqa.trainers:DecompAttn",
        "choice": "ifqa.companions.wiqa.trainers:Choice",
    },
}
