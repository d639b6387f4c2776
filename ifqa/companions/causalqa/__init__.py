"""Webis-CausalQA-22: causal questions of ten datasets (Bondarenko et al., COLING 2022)."""

#: Kind -> name -> "module:Class".
PLUGINS = {
    "benchmark": {
        "causalqa": "ifqa.companions.causalqa.benchmark:CausalQA",
        "sample-causal": "ifqa.companions.causalqa.benchmark:SampleCausal",
    },
    "measure": {
        "ROUGE-L": "ifqa.companions.causalqa.measures:ROUGE_L",
        "ROUGE-L-P": "ifqa.companions.causalqa.measures:ROUGE_L_PRECISION",
        "ROUGE-L-R": "ifqa.companions.causalqa.measures:ROUGE_L_RECALL",
    },
}
