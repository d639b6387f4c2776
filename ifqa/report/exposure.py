"""What an experiment's models have seen of its benchmark: the mark beside its scores."""

from collections.abc import Iterator, Mapping

from ifqa.config.corpus import build_settings, load_corpus
from ifqa.config.experiment import Experiment, retriever_sections, search_settings
from ifqa.models.ledger import ModelFacts, describe_exposure, read_model_facts
from ifqa.plugins import Plugins
from ifqa.protocols import IndexedRetriever, Trainable


def collect_models(experiment: Experiment) -> dict[str, ModelFacts]:
    """The models that an experiment's settings name, and what their files say of them."""
    return {name: read_model_facts(name, experiment.root) for name in dict.fromkeys(_model_names(experiment))}


def exposure_mark(experiment: Experiment, models: Mapping[str, ModelFacts] | None = None) -> str:
    """What the models have seen of the experiment's benchmark; `models` as they were when it was run."""
    return describe_exposure(
        collect_models(experiment) if models is None else models, experiment.benchmark, experiment.root
    )


def _model_names(experiment: Experiment) -> Iterator[str]:
    plugins = Plugins()
    if experiment.retriever:
        corpus = load_corpus(experiment.corpus, experiment.root) if experiment.corpus else None
        for section in retriever_sections(experiment.retriever):
            retriever = plugins.retriever(section["name"])
            index = corpus.indexes.get(section.get("index", "")) if corpus else None
            built = index is not None and issubclass(retriever, IndexedRetriever)
            yield from _names(retriever, build_settings(index) if index and built else search_settings(section))
    if experiment.reader:
        yield from _names(plugins.reader(experiment.reader["name"]), experiment.reader_settings)
    if experiment.llm:
        yield from _names(plugins.llm(experiment.llm["name"]), experiment.llm_settings)


def _names(plugin: type[Trainable], settings: Mapping[str, object]) -> Iterator[str]:
    for setting, default in plugin.model_settings.items():
        if name := settings.get(setting) or default:
            yield str(name)
