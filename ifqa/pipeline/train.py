"""`ifqa train`: train weights on a benchmark's questions and the passages retrieved for them."""

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from ifqa.config.corpus import CorpusConfig, load_corpus
from ifqa.config.experiment import load_experiment
from ifqa.config.overrides import override
from ifqa.corpus.passage_store import PassageStore
from ifqa.errors import ConfigError
from ifqa.pipeline.run import Run
from ifqa.pipeline.stage_outputs import passages_of, rankings_of
from ifqa.pipeline.stages import build_index, build_passages, prepare, retrieve
from ifqa.pipeline.system import System
from ifqa.plugins import Plugins, load_plugin, open_benchmark
from ifqa.protocols import NO_DATA, Trainer, TrainingData
from ifqa.reading.llm import Llm
from ifqa.records import Hit, Passage, Question
from ifqa.retrieval.queries import rewrite_questions
from ifqa.storage.artifacts import lock
from ifqa.storage.files import sha256
from ifqa.training.checkpoints import rank_and_world_size, refuse_foreign_weights, report_full_disk
from ifqa.training.trainer import configure_trainer

logger = logging.getLogger(__name__)

# For each question, its passages and their scores
Retrieved = tuple[list[list[Passage]], list[list[float]]]
# questions, their split, most passages for each
Retrieve = Callable[[Sequence[Question], str, int], Retrieved]


def train(
    name: str,
    benchmark: str,
    split: str,
    folder: Path,
    settings: dict[str, object],
    corpus: str = "",
    dev: str = "",
    experiment: str = "",
) -> Path:
    """Run the trainer `name` on a split and the passages retrieved for it.

    The weights go into `folder`, which is returned, unless the trainer returns another place.

    The passages come from the index bm25 of `corpus` or the retriever of `experiment`; without
    either, they are the texts that come with the questions. The split `dev` of the same family, if
    any, chooses the best checkpoint.
    """
    refuse_foreign_weights(folder)  # before passages are retrieved, which takes long
    trainer = configure_trainer(load_plugin("trainer", name), **settings)
    if trainer.fits_reader and not experiment:
        raise ConfigError("--reader llm: wanted an experiment with the model: --experiment NAME")
    source = open_benchmark(benchmark)
    splits: dict[str, TrainingData] = {}
    for each in filter(None, (split, dev)):
        questions = source.questions(each)
        files = {str(path): sha256(path) for path in source.files(each)}
        splits[each] = TrainingData(questions, [[] for _ in questions], source.family(each), files)
    families = [part.family for part in splits.values()]
    if all(families) and len(set(families)) > 1:
        names = " and ".join(families)
        raise ConfigError(
            f"{split} and {dev} belong to {names}, which share questions; "
            "name a dev split of one family"
        )
    trainer.check_data(splits[split], folder)
    depth = trainer.retrieved
    if trainer.fits_reader:
        depth = _open_reader(trainer, experiment)
    with _main_process_first():
        if experiment:
            retrieved = _by_experiment(experiment, benchmark)
        else:
            retrieved = _by_bm25(load_corpus(corpus), trainer.query) if corpus else _use_contexts
        for each, part in splits.items():
            logger.info(
                f"{folder}: finding passages for {len(part.questions):,} questions of {each}"
            )
            rankings, scores = retrieved(part.questions, each, depth)
            splits[each] = replace(part, rankings=rankings, scores=scores)
    with _lock(folder), report_full_disk(folder):
        written = trainer.train(splits[split], folder, splits[dev] if dev else NO_DATA)
    return written if isinstance(written, Path) else folder


def _open_reader(trainer: Trainer, name: str) -> int:
    """Open the experiment's reader for a trainer that fits it; returns how many passages it reads.

    ConfigError if the experiment has no reader 'llm'.
    """
    run = Run(load_experiment(name))
    configured = run.require_reader()
    trainer.opened_reader = System(run).reader
    if not isinstance(trainer.opened_reader, Llm):
        raise ConfigError(f"experiment {name}: its reader is {configured.name}; wanted llm")
    return configured.passages


def _by_bm25(corpus: CorpusConfig, query: str) -> Retrieve:
    if "bm25" not in corpus.indexes:  # checked before passages are built, which takes long
        raise ConfigError(
            f"corpus {corpus.name} has no [index.bm25]; it has: "
            f"{', '.join(corpus.indexes) or 'none'}"
        )
    with _lock(corpus.folder):
        build_passages(corpus)
        index = build_index(corpus, "bm25")
    bm25 = Plugins().retriever("bm25")
    retriever = bm25(bm25.Settings(), index=index)
    store = PassageStore(corpus.folder / "passages")

    def search(questions: Sequence[Question], split: str, depth: int) -> Retrieved:
        rankings = retriever.search(rewrite_questions(questions, query), depth)
        return [store.get([hit.passage_id for hit in ranking]) for ranking in rankings], _scores(
            rankings
        )

    return search


def _use_contexts(questions: Sequence[Question], split: str, depth: int) -> Retrieved:
    """As each question's passage, returns the text that comes with it, if any."""
    passages = [
        [Passage("", "", question.context)] if question.context.strip() else []
        for question in questions
    ]
    return passages, [[0.0] * len(texts) for texts in passages]


def _by_experiment(name: str, benchmark: str) -> Retrieve:
    """Retrieves passages with an experiment's retriever.

    Each split's run is kept in a variant's folder.
    """
    experiment = load_experiment(name)
    if experiment.benchmark != benchmark or experiment.retriever is None:
        raise ConfigError(
            f"experiment {name} retrieves no passages for questions of {benchmark}; name another"
        )

    def search(questions: Sequence[Question], split: str, depth: int) -> Retrieved:
        variant = replace(override(experiment, {"split": split}), reader=None)
        with _lock(variant.folder):
            run = Run(variant)
            prepare(run)
            retrieve(run)
        top = [ranking[:depth] for ranking in rankings_of(variant, questions)]
        return list(passages_of(variant, top)), _scores(top)

    return search


def _scores(rankings: Sequence[Sequence[Hit]]) -> list[list[float]]:
    return [[hit.score for hit in ranking] for ranking in rankings]


def _lock(folder: Path) -> AbstractContextManager[None]:
    """The folder's lock; on several GPUs the first process takes it for all."""
    return lock(folder) if rank_and_world_size()[0] == 0 else nullcontext()


def _main_process_first() -> AbstractContextManager[None]:
    """On several GPUs, the first process runs the block before the others, and builds what is
    missing.
    """
    if rank_and_world_size()[1] == 1:
        return nullcontext()
    from accelerate import PartialState

    first: AbstractContextManager[None] = PartialState().main_process_first()
    return first
