"""Trainers: what `ifqa train` runs, a class for each kind of model."""

#: Name -> "module:Class". Their modules import no torch at the top, so that `ifqa train NAME
#: --help` is fast.
PLUGINS = {
    "extractive": "ifqa.training.extractive:Extractive",
    "calibration": "ifqa.training.calibration:CalibrationTrainer",
    "rerank": "ifqa.training.rerank:Rerank",
    "ranker": "ifqa.training.ranker:Ranker",
    "dense": "ifqa.training.dense:Dense",
    "fid": "ifqa.training.t5:Fid",
    "unifiedqa": "ifqa.training.t5:UnifiedQA",
    "llm": "ifqa.training.llm:Llm",
}
