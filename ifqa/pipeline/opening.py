"""Opens an experiment's retriever and reader, and refuses what was trained on its questions' other
split family.
"""

import logging
from collections.abc import Collection, Iterator
from functools import partial
from typing import Any

from ifqa.config.experiment import ConfiguredRetriever
from ifqa.corpus.passage_store import PassageStore, get_passages
from ifqa.errors import ConfigError, IfqaError
from ifqa.formatting import pluralize
from ifqa.pipeline.passages import PASSAGES
from ifqa.pipeline.run import Run
from ifqa.pipeline.session import Session
from ifqa.plugins import ConfiguredPlugin
from ifqa.protocols import LanguageModel, Reader, Retriever, Search, Trainable
from ifqa.retrieval.composition import Part
from ifqa.storage.files import sha256

logger = logging.getLogger(__name__)


def open_retriever(run: Run, session: Session) -> Retriever:
    """The experiment's retriever, with its index and its parts.

    IfqaError if it has none, or one of the retriever's inputs is missing.
    """
    return _open_step(run.require_retriever(), run, session)


def open_reader(run: Run, session: Session, search: Search) -> Reader:
    """The experiment's reader, which may `search` with the experiment's retriever.

    IfqaError if it has none, or one of the reader's inputs is missing.
    """
    configured = run.require_reader()
    resources: dict[str, object] = {"search": search}
    if configured.takes("llm"):
        resources["llm"] = open_model(run, session)
    reader = configured.open(**resources)
    _refuse_other_family(configured, reader.trained_verb, reader.family, run)
    _refuse_unknown_questions(configured, reader, run)
    log_label(configured.name, reader.label)
    return reader


def open_model(run: Run, session: Session) -> LanguageModel:
    """The experiment's language model.

    IfqaError if it has none, it cannot be opened, or it was tuned on another split family.
    """
    configured = run.require_model()
    model = session.model(configured)
    _refuse_other_family(configured, model.trained_verb, model.family, run)
    return model


def _open_step(step: ConfiguredRetriever, run: Run, session: Session) -> Retriever:
    """Open a retriever of the experiment's [retriever] with its parts."""
    resources = dict[str, object]()
    if step.parts:
        resources["parts"] = [
            Part(
                _open_step(part, run, session),
                part.k,
                1.0 if part.weight is None else part.weight,
                part.query,
            )
            for part in step.parts
        ]
    if step.takes("passages"):
        resources["passages"] = partial(get_passages, open_stores(run))
    if step.takes("corpus"):
        [resources["corpus"]] = open_stores(run)
    if step.takes("llm"):
        resources["llm"] = open_model(run, session)
    if step.index and run.corpus:
        resources["index"] = run.corpus.folder / step.index
    retriever = step.open(**resources)
    _refuse_other_family(step, retriever.trained_verb, retriever.family, run)
    _refuse_unknown_questions(step, retriever, run)
    return retriever


def open_stores(run: Run) -> list[PassageStore]:
    """The store of the corpus's passages; none without a corpus."""
    return [PassageStore(run.corpus.folder / PASSAGES.name)] if run.corpus else []


def _refuse_unknown_questions(
    configured: ConfiguredPlugin[Any], plugin: Trainable, run: Run
) -> None:
    """Refuse a plugin's file that has questions outside the split."""
    if not plugin.question_ids:
        return
    known = dict.fromkeys(question.id for question in run.split)
    foreign = [question_id for question_id in plugin.question_ids if question_id not in known]
    if not foreign:
        return
    file = configured.section().get("path", configured.name)
    raise IfqaError(
        f"{file} has {pluralize(len(foreign), 'question')}, "
        f"of {len(plugin.question_ids):,}, "
        f"that {run.experiment.benchmark} {run.experiment.split} does not have: "
        f"{', '.join(foreign[:3])}"
        f"{', …' if foreign[3:] else ''}; wanted ids such as {next(iter(known))}"
    )


def log_label(reader: str, label: str) -> None:
    if label:
        logger.info(f"reader {reader!r}: {label}")


def trained_plugins(run: Run) -> Iterator[ConfiguredPlugin[Any]]:
    """The plugins that may have seen the questions: the retrievers, the reader, and a language
    model if they ask it.

    For a retriever with an index, whose `build` names the model, it is the index.
    """
    experiment = run.experiment
    indexes = run.corpus.corpus.indexes if run.corpus else {}
    for step in experiment.retriever.steps if experiment.retriever else ():
        if not step.index:
            yield step
        elif step.index in indexes:
            yield indexes[step.index]
    if experiment.reader:
        yield experiment.reader
    if experiment.llm and experiment.asks_llm:
        yield experiment.llm


def refuse_other_families(run: Run) -> None:
    """Refuse weights of another split family before anything is built.

    A `System` checks again when it opens them.
    """
    for configured in trained_plugins(run):
        plugin = configured.plugin
        family = plugin.training_family(configured.local_settings, configured.root)
        _refuse_other_family(configured, plugin.trained_verb, family, run)


def _refuse_other_family(
    configured: ConfiguredPlugin[Any], trained_verb: str, family: str, run: Run
) -> None:
    """IfQA's split families divide the same questions, so a model of one family has seen test
    questions of the other.
    """
    tested = run.benchmark.family(run.experiment.split)
    if family != tested and family.partition("/")[0] == tested.partition("/")[0]:
        raise ConfigError(
            f"{configured} {trained_verb} {family} and may not be tested on {tested}, "
            "which holds the same questions; take that family's training split"
        )


def was_trained_on(plugin: Trainable, run: Run) -> bool:
    """Whether a plugin's weights were trained on the experiment's own questions.

    Its scores then mean little.
    """
    return _has_questions(plugin.trained_on, run)


def was_calibrated_on(plugin: Trainable, run: Run) -> bool:
    """Whether a plugin's confidence was fitted on the experiment's own questions."""
    return _has_questions(plugin.calibrated_on, run)


def _has_questions(digests: Collection[str], run: Run) -> bool:
    """Whether any of the files with these SHA-256 has the experiment's own questions."""
    if not digests:
        return False
    return any(sha256(path) in digests for path in run.benchmark.files(run.experiment.split))
