"""`ifqa train`: train weights on a benchmark's questions and the passages retrieved for them."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from ifqa.config.corpus import Corpus, load_corpus
from ifqa.config.experiment import load_experiment
from ifqa.config.overrides import override
from ifqa.corpus.store import PassageStore
from ifqa.errors import IfqaError
from ifqa.pipeline.run import Run
from ifqa.pipeline.stage_inputs import passages_of, rankings_of
from ifqa.pipeline.stages import build_index, build_passages, prepare, retrieve
from ifqa.plugins import Plugins, load, open_benchmark
from ifqa.progress import complain, say
from ifqa.protocols import NO_DATA, Benchmark, TrainingData
from ifqa.records import Hit, Passage
from ifqa.retrieval.queries import rewrite
from ifqa.storage.artifacts import lock
from ifqa.storage.files import sha256
from ifqa.training.checkpoints import MANIFEST, refuse_strangers, world
from ifqa.training.trainer import configured

#: (the questions of a split, its name, most passages of each) -> the same with passages
Retrieve = Callable[[TrainingData, str, int], TrainingData]


def train(
    name: str, benchmark: str, split: str, folder: Path, settings: dict[str, object], corpus: str = "", dev: str = "",
    experiment: str = "",
) -> Path:  # fmt: skip
    """Train what a trainer trains on a split and the passages retrieved for it.

    Args:
        name: of the trainer, or "my_module:Class".
        benchmark, split: the training questions.
        folder: where the weights are written.
        settings: the trainer's; what is not named has the trainer's, or its recipe's, default.
        corpus: the corpus whose index named bm25 gives the passages; empty for the texts that come with the questions.
        dev: split by which the best checkpoint is chosen; empty for none.
        experiment: the experiment whose retriever gives the passages instead; empty for none.

    Raises:
        IfqaError: a setting is unknown or cannot be met, the corpus has no index named bm25, an extra is not installed, the
            folder holds another training or weights of somebody else, or the two splits are of different split families.
    """
    plugin = load("trainer", name)
    if lacking := [requirement for requirement in plugin.requirements(**settings) if not requirement.here]:
        raise IfqaError(f"training needs {lacking[0].what}; {lacking[0].how}")
    refuse_strangers(folder)  # before passages are retrieved, which takes long
    trainer = configured(plugin, **settings)
    source = open_benchmark(benchmark)
    families = [source.family(each) for each in (split, dev)] if dev else []
    if all(families) and len(set(families)) > 1:
        raise IfqaError(
            f"{dev} is of {families[1]}, {split} of {families[0]}: they share questions; "
            "name a dev split of the same family"
        )
    data = _data(source, split)
    dev_data = _data(source, dev) if dev else NO_DATA
    trainer.refuse(data, folder)
    with _first_alone():
        if experiment:
            retrieved = _by_experiment(experiment, benchmark)
        elif corpus:
            retrieved = _by_bm25(load_corpus(corpus), trainer.query, folder)
        else:
            retrieved = _contexts(folder)
        data = retrieved(data, split, trainer.retrieved)
        if dev:
            dev_data = retrieved(dev_data, dev, trainer.retrieved)
    with _lock(folder):
        try:
            trainer.train(data, folder, dev_data)
        except KeyboardInterrupt:
            if not any(folder.rglob(MANIFEST)):
                complain(f"{folder}: stopped before its first checkpoint; the training will start anew")
            raise
    return folder


def _data(source: Benchmark, split: str) -> TrainingData:
    """The questions of a split, without passages."""
    questions = source.questions(split)
    files = {str(path): sha256(path) for path in source.files(split)}
    return TrainingData(questions, [[] for _ in questions], source.family(split), files)


def _by_bm25(corpus: Corpus, query: str, folder: Path) -> Retrieve:
    """A function that retrieves passages with a corpus's BM25 index."""
    if "bm25" not in corpus.indexes:  # said before passages are built, which takes long
        raise IfqaError(f"corpus {corpus.name} has no [index.bm25]; it has: {', '.join(corpus.indexes) or 'none'}")
    with _lock(corpus.folder):
        build_passages(corpus)
        index = build_index(corpus, "bm25")
    retriever, store = Plugins().retriever("bm25")(index), PassageStore(corpus.folder / "passages")

    def search(data: TrainingData, split: str, depth: int) -> TrainingData:
        say(f"{folder}: searching passages for {len(data.questions):,} questions of {split}")
        rankings = retriever.search(rewrite(data.questions, query), depth)
        passages = [store.get([hit.passage_id for hit in ranking]) for ranking in rankings]
        return replace(data, rankings=passages, scores=_scores(rankings))

    return search


def _contexts(folder: Path) -> Retrieve:
    """A function that gives each question the text that comes with it, and no passage where there is none."""

    def search(data: TrainingData, split: str, depth: int) -> TrainingData:
        rankings = [
            [Passage("", "", text)] if text.strip() else [] for text in (each.context for each in data.questions)
        ]
        say(
            f"{folder}: {sum(map(len, rankings)):,} of {len(rankings):,} questions of {split} come with a text; "
            "the others are read alone"
        )
        return replace(data, rankings=rankings, scores=[[0.0] * len(ranking) for ranking in rankings])

    return search


def _by_experiment(name: str, benchmark: str) -> Retrieve:
    """A function that retrieves passages with an experiment's retriever; each split's run is kept in a variant's folder."""
    experiment = load_experiment(name)
    if experiment.benchmark != benchmark or experiment.retriever is None:
        raise IfqaError(f"experiment {name} retrieves no passages for questions of {benchmark}; name another")

    def search(data: TrainingData, split: str, depth: int) -> TrainingData:
        variant = replace(override(experiment, {"split": split}), reader=None)
        with _lock(variant.folder):
            run = Run(variant)
            prepare(run)
            retrieve(run)
        top = [ranking[:depth] for ranking in rankings_of(variant, run.questions)]
        return replace(data, rankings=list(passages_of(variant, top)), scores=_scores(top))

    return search


def _scores(rankings: Sequence[Sequence[Hit]]) -> list[list[float]]:
    return [[hit.score for hit in ranking] for ranking in rankings]


def _lock(folder: Path) -> AbstractContextManager[None]:
    """The folder's lock; on several GPUs the first process takes it for all processes of the training."""
    return lock(folder) if world()[0] == 0 else nullcontext()


def _first_alone() -> AbstractContextManager[None]:
    """On several GPUs, the first process runs the block first and makes what is missing; the others then find it."""
    if world()[1] == 1:
        return nullcontext()
    from accelerate import PartialState

    first: AbstractContextManager[None] = PartialState().main_process_first()
    return first
