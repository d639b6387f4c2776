"""What an experiment's models have seen of its benchmark: the mark beside its scores."""

from collections.abc import Mapping

from ifqa.models.ledger import ModelFacts, describe_exposure, read_model_facts
from ifqa.pipeline.opening import trained_plugins
from ifqa.pipeline.run import Run
from ifqa.storage.artifacts import StageRecord


def collect_models(run: Run) -> dict[str, ModelFacts]:
    """The models that an experiment's settings name, and what their files say of them."""
    models: dict[str, ModelFacts] = {}
    for plugin in trained_plugins(run):
        settings = plugin.section()
        for setting, default in plugin.plugin.model_settings.items():
            if (name := str(settings.get(setting) or default)) and name not in models:
                models[name] = read_model_facts(name, run.experiment.root)
    return models


def seen_mark(record: StageRecord) -> str:
    """That the reader was trained on the scored questions, or its confidence fitted on them.

    `record` is that of the stage that read them. Empty if neither was.
    """
    if record.get("trained_on_them"):
        return "the reader was trained on these questions"
    return (
        "the confidence was fitted on these questions" if record.get("calibrated_on_them") else ""
    )


def exposure_mark(run: Run, models: Mapping[str, ModelFacts] | None = None) -> str:
    """What the models have seen of the experiment's benchmark.

    `models` as they were when it was run.
    """
    facts = collect_models(run) if models is None else models
    return describe_exposure(facts, run.experiment.benchmark, run.experiment.root)
