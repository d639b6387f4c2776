"""What an experiment's models have seen of its benchmark: the mark beside its scores."""

from collections.abc import Iterator, Mapping

from ifqa.config.corpus import build_settings
from ifqa.config.experiment import retriever_sections, search_settings
from ifqa.models.ledger import ModelFacts, describe_exposure, read_model_facts
from ifqa.pipeline.run import Run
from ifqa.protocols import IndexedRetriever, Trainable


def collect_models(run: Run) -> dict[str, ModelFacts]:
    """The models that an experiment's settings name, and what their files say of them."""
    return {name: read_model_facts(name, run.experiment.root) for name in dict.fromkeys(_model_names(run))}


def exposure_mark(run: Run, models: Mapping[str, ModelFacts] | None = None) -> str:
    """What the models have seen of the experiment's benchmark; `models` as they were when it was run."""
    facts = collect_models(run) if models is None else models
    return describe_exposure(facts, run.experiment.benchmark, run.experiment.root)


def _model_names(run: Run) -> Iterator[str]:
    experiment, plugins = run.experiment, run.plugins
    if experiment.retriever:
        indexes = run.corpus.corpus.indexes if run.corpus else {}
        for section in retriever_sections(experiment.retriever):
            retriever, built = plugins.retriever(section["name"]), indexes.get(section.get("index", ""))
            is_built = built and issubclass(retriever, IndexedRetriever)
            yield from _names(retriever, build_settings(built) if built and is_built else search_settings(section))
    if experiment.reader:
        yield from _names(plugins.reader(experiment.reader["name"]), experiment.reader_settings)
    if experiment.llm:
        yield from _names(plugins.llm(experiment.llm["name"]), experiment.llm_settings)


def _names(plugin: type[Trainable], settings: Mapping[str, object]) -> Iterator[str]:
    for setting, default in plugin.model_settings.items():
        if name := settings.get(setting) or default:
            yield str(name)
