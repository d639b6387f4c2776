"""`ifqa train`: train weights on a benchmark's questions and the passages retrieved for them."""

import importlib
import importlib.util
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from ifqa.config.corpus import Corpus, load_corpus
from ifqa.config.experiment import load_experiment
from ifqa.config.overrides import override
from ifqa.corpus.store import PassageStore
from ifqa.errors import IfqaError
from ifqa.models.devices import resolve_device
from ifqa.pipeline.run import Run
from ifqa.pipeline.stage_inputs import passages_of, rankings_of
from ifqa.pipeline.stages import build_index, build_passages, prepare, retrieve
from ifqa.plugins import load, open_benchmark
from ifqa.progress import complain, say
from ifqa.protocols import Benchmark
from ifqa.records import Hit, Passage
from ifqa.settings import check_settings
from ifqa.storage.artifacts import lock
from ifqa.storage.files import sha256
from ifqa.training.material import Material
from ifqa.training.resume import MANIFEST, refuse_strangers, world

_MODULES = {
    "extractive": "ifqa.training.span.trainer",
    "calibration": "ifqa.training.span.calibration",
    "fid": "ifqa.training.fid",
    "rerank": "ifqa.training.rerank",
    "dense": "ifqa.training.dense",
    "rag": "ifqa.training.rag",
    "unifiedqa": "ifqa.training.unifiedqa",
    "llm": "ifqa.training.llm.trainer",
    "adaboost": "ifqa.training.choice.adaboost",
    "decomp-attn": "ifqa.training.choice.decomp_attn",
    "choice": "ifqa.training.choice.bert",
}
#: Passages that a training question's negatives are drawn from.
DEPTH = {"extractive": 20, "calibration": 20, "rerank": 20, "dense": 100, "llm": 20}
_NEEDS = {
    "calibration": ("sklearn",),
    "rerank": ("peft", "datasets", "accelerate"),
    "dense": ("datasets", "accelerate"),
    "fid": ("accelerate",),
    "rag": ("accelerate",),
    "unifiedqa": ("accelerate",),
    "llm": ("peft", "accelerate"),
    "adaboost": ("sklearn",),
    "decomp-attn": ("accelerate",),
    "choice": ("accelerate",),
}
#: Those that passages are retrieved for. Their `refuse` raises before that what needs no rankings.
_REFUSING = ("extractive", "calibration", "rerank", "dense", "fid", "rag", "unifiedqa", "llm")
GIVEN = ("material", "folder", "seed", "progress")
Ranked = tuple[list[list[Passage]], list[list[float]]]  # the passages of each question, and their scores
Retrieve = Callable[[str, int], Ranked]  # of a split, and most passages of a question


def train(
    what: str, benchmark: str, split: str, corpus: str, folder: Path, seed: int | None, settings: dict[str, object],
    dev: str = "", experiment: str = "",
) -> Path:  # fmt: skip
    """Train a reader, the reranker, a dense retriever or a language model on a split and the passages retrieved for it.

    Args:
        what: a key of `_MODULES`: the `train` function of `ifqa.training` to call.
        benchmark, split: the training questions.
        corpus: the corpus whose index named bm25 gives the passages; empty for the texts that come with the questions.
        folder: where the weights are written.
        seed: seed of all random draws; None for the default, or the recipe's.
        settings: keyword arguments of that `train`.
        dev: split by which "fid", "rag" or "unifiedqa" chooses the best checkpoint; empty for none.
        experiment: the experiment whose retriever gives their passages instead; empty for none.

    Raises:
        IfqaError: a setting is unknown or cannot be met, the corpus has no index named bm25, an extra is not installed, the
            folder holds another training or weights of somebody else, or the two splits are of different split families.
    """
    for library in _NEEDS.get(what, ()):
        if importlib.util.find_spec(library) is None:
            raise IfqaError(f"training needs {library}; install it with: pip install 'ifqa[train]'")
    module = importlib.import_module(_MODULES[what])
    refuse_strangers(folder)  # before passages are retrieved, which takes long
    drawn = {} if seed is None else {"seed": seed}
    depth = DEPTH.get(what, 0)
    if what in ("dense", "fid", "rag", "unifiedqa"):  # settings override those of a recipe
        chosen = module.resolve(**settings, **drawn)
        depth = depth or chosen.passages
    else:
        check_settings("training setting", module.train, settings, given=GIVEN)
        if "device" in settings:
            resolve_device(str(settings["device"]))
    source = open_benchmark(benchmark)
    families = [source.family(one) for one in (split, dev)] if dev else []
    if all(families) and len(set(families)) > 1:
        raise IfqaError(
            f"{dev} is of {families[1]}, {split} of {families[0]}: they share questions; "
            "name a dev split of the same family"
        )
    questions, files = source.questions(split), {str(path): sha256(path) for path in source.files(split)}
    asked_of_dev = source.questions(dev) if dev else []
    if what in _REFUSING:
        none: list[list[Passage]] = [[] for _ in questions]
        module.refuse(Material(questions, none, source.family(split), files), folder, **drawn, **settings)
    with _first_alone():
        if experiment:
            retrieved = _by_experiment(experiment, benchmark)
        else:
            retrieved = _by_bm25(load_corpus(corpus), source, folder) if corpus else _contexts(source, folder)
        rankings, scores = retrieved(split, depth)
        given = {"dev": (asked_of_dev, *retrieved(dev, depth))} if dev else {}
    material = Material(questions, rankings, source.family(split), files, scores)
    with _lock(folder):
        try:
            module.train(material, folder, **given, **drawn, **settings)
        except KeyboardInterrupt:
            if not any(folder.rglob(MANIFEST)):
                complain(f"{folder}: stopped before its first checkpoint; the training will start anew")
            raise
    return folder


def _by_bm25(corpus: Corpus, source: Benchmark, folder: Path) -> Retrieve:
    """A function that retrieves passages with a corpus's BM25 index."""
    if "bm25" not in corpus.indexes:  # said before passages are built, which takes long
        raise IfqaError(f"corpus {corpus.name} has no [index.bm25]; it has: {', '.join(corpus.indexes) or 'none'}")
    with _lock(corpus.folder):
        build_passages(corpus)
        index = build_index(corpus, "bm25")
    retriever, store = load("retriever", "bm25")(index), PassageStore(corpus.folder / "passages")

    def search(split: str, depth: int) -> Ranked:
        questions = source.questions(split)
        say(f"{folder}: searching passages for {len(questions):,} questions of {split}")
        rankings = retriever.search(questions, depth)
        return [store.get([hit.passage_id for hit in ranking]) for ranking in rankings], _scores(rankings)

    return search


def _contexts(source: Benchmark, folder: Path) -> Retrieve:
    """A function that gives each question the text that comes with it, and no passage where there is none."""

    def search(split: str, depth: int) -> Ranked:
        contexts = [question.context for question in source.questions(split)]
        found = sum(1 for one in contexts if one.strip())
        say(
            f"{folder}: {found:,} of {len(contexts):,} questions of {split} come with a text; the others are read alone"
        )
        rankings = [[Passage("", "", one)] if one.strip() else [] for one in contexts]
        return rankings, [[0.0] * len(ranking) for ranking in rankings]

    return search


def _by_experiment(name: str, benchmark: str) -> Retrieve:
    """A function that retrieves passages with an experiment's retriever; each split's run is kept in a variant's folder."""
    experiment = load_experiment(name)
    if experiment.benchmark != benchmark or experiment.retriever is None:
        raise IfqaError(f"experiment {name} retrieves no passages for questions of {benchmark}; name another")

    def search(split: str, depth: int) -> Ranked:
        variant = replace(override(experiment, {"split": split}), reader=None)
        with _lock(variant.folder):
            run = Run(variant)
            prepare(run)
            retrieve(run)
        top = [ranking[:depth] for ranking in rankings_of(variant, run.questions)]
        return list(passages_of(variant, top)), _scores(top)

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
