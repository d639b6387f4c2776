"""THE MAIN PATH: dump -> passages -> index -> retrieve -> read -> score.

Each stage is a type in a file of its own, and a verb of the command line. It reads the files of
earlier stages and writes its own, unless these are current. Here is how the stages run. `workers`
search and read, by default this process alone; the files do not depend on them. A stage raises
IfqaError if an input is missing or stale.
"""

import logging
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ifqa.config.corpus import CorpusConfig
from ifqa.config.overrides import write_resolved
from ifqa.pipeline.asking import AskingStage
from ifqa.pipeline.corpus_build import CorpusBuild
from ifqa.pipeline.index import Index
from ifqa.pipeline.judge import refuse_other_judge, require_judge
from ifqa.pipeline.opening import refuse_other_families
from ifqa.pipeline.passages import PASSAGES
from ifqa.pipeline.read import READ
from ifqa.pipeline.retrieve import RETRIEVE
from ifqa.pipeline.run import Run
from ifqa.pipeline.score import SCORE
from ifqa.pipeline.served import refuse_other_server
from ifqa.pipeline.session import Session
from ifqa.pipeline.stage import Resolved, Stage
from ifqa.pipeline.system import System
from ifqa.storage.artifacts import lock
from ifqa.workers.pool import Workers

logger = logging.getLogger(__name__)

#: The stages that ask a plugin each question; an experiment has one of them, or both.
ASKING: Sequence[AskingStage] = (RETRIEVE, READ)


def build_passages(corpus: CorpusConfig) -> Path:
    """Build a corpus's shards of passages, `indexes/NAME/passages/passages-00000.jsonl` …, and an
    index of their ids.

    A killed build resumes after its last finished shard.
    """
    return _make(PASSAGES, CorpusBuild(corpus))


def build_index(corpus: CorpusConfig, name: str, workers: Workers | None = None) -> Path:
    """Build an index of the corpus's passages, `indexes/NAME/INDEX/`.

    `workers` replace the index's settings `engine` and `workers`; an index without these is built
    by this process.
    """
    return _make(Index(name), CorpusBuild(corpus), workers=workers)


def retrieve(run: Run, session: Session | None = None, workers: Workers | None = None) -> Path:
    """Write each question's ranking to `experiments/NAME/retrieve/run.trec`, and generated passages
    to `passages.jsonl`.
    """
    run.require_retriever()
    return make_stage(RETRIEVE, run, session, workers)


def read(run: Run, session: Session | None = None, workers: Workers | None = None) -> Path:
    """Answer each question from its ranking, or without passages.

    Writes `experiments/NAME/read/predictions.jsonl`.
    """
    run.require_reader()
    return make_stage(READ, run, session, workers)


def score(run: Run, session: Session | None = None) -> Path:
    """Score run and predictions over all questions, and have the experiment's judge, if it has
    one, judge the answers.

    Writes `scores.json` and `per_question.jsonl` in the score folder.
    """
    refuse_other_judge(run)
    return make_stage(SCORE, run, session)


def run(run: Run, session: Session | None = None, workers: Workers | None = None) -> Path:
    """Run the stages of an experiment that are not current, in order; returns the score folder."""
    session = session or Session()
    _ = run.questions  # raises before anything is built
    if run.experiment.judge and not run.is_current(SCORE):
        require_judge(run)
    prepare(run)
    with _lock_folder(run):
        for stage in stages_of(run):
            make_stage(stage, run, session, workers)
        return score(run, session)


def stages_of(run: Run) -> list[AskingStage]:
    """The stages of an experiment before scoring: retrieve, read or both."""
    return [stage for stage in ASKING if stage.plugin(run.experiment)]


def will_ask(run: Run) -> bool:
    """Whether a stage that uses a language model still has to run."""
    return any(stage.asker(run) and not run.is_current(stage) for stage in stages_of(run))


def prepare(run: Run) -> None:
    """Check an experiment, then build its corpus, so that mistakes are found before hours of
    work.
    """
    for stage in stages_of(run):
        plugin = stage.plugin(run.experiment)
        if plugin:
            run.fingerprint(plugin)  # raises if one of its files is missing
    refuse_other_families(run)
    for stage in stages_of(run):
        refuse_other_server(run, stage)
    if will_ask(run):
        model = run.require_model()
        model.plugin.require_access(model.local_settings, model.root)
    build_corpus(run)


def build_corpus(run: Run) -> None:
    """Build the passages and indexes that an experiment searches, unless they are current."""
    build = run.corpus
    if build is None:
        return
    indexes = [Index(name) for name in run.experiment.indexes]
    if all(map(build.is_current, [PASSAGES, *indexes])):
        # no lock, so that several experiments can read a finished corpus at once
        logger.info(f"{build.corpus.folder}: up to date")
        return
    # Of several processes, the first builds and the others reuse it
    with lock(build.corpus.folder, wait=True):
        build.refresh()  # another process may have built it meanwhile
        for stage in (PASSAGES, *indexes):
            _make(stage, build)


def open_system(run: Run) -> System:
    """Build an experiment's corpus if it is missing, and open its retriever and reader."""
    prepare(run)
    return System(run)


def make_stage(
    stage: Stage[Run],
    run: Run,
    session: Session | None = None,
    workers: Workers | None = None,
) -> Path:
    """Make a stage of an experiment, unless it is current or can be copied from its base or a
    variant.

    A missing earlier stage is copied, so that `ifqa read --reader X` can read the base's run.
    """
    _ = run.questions  # raises before anything is written
    experiment = run.experiment
    with _lock_folder(run):
        for earlier in stage.needs(run):
            folders = [folder for folder in run.siblings(earlier.name) if folder.exists()]
            artifact = run.artifact(earlier.name)
            if folders and not artifact.folder.exists():
                artifact.copy(run.inputs(earlier), folders)
        refuse_other_server(run, stage)
        run.inputs(stage)  # raises before anything is written
        # So that later commands find the variant by its name
        is_written = (run.folder / "experiment.toml").exists()
        if experiment.variant and (isinstance(stage, AskingStage) or not is_written):
            write_resolved(experiment)
        folder = _make(stage, run, run.siblings(stage.name), session, workers)
        run.forget_inputs()
    return folder


def _make(
    stage: Stage[Any],
    resolved: Resolved,
    others: Iterable[Path] = (),
    session: Session | None = None,
    workers: Workers | None = None,
) -> Path:
    """Make a stage's artifact, unless it is current; returns its folder.

    `others` are folders of the same artifact elsewhere, from which it may be copied.
    """
    artifact = resolved.artifact(stage.name)
    lines: list[str] = []
    with artifact.make(
        lambda: resolved.inputs(stage),
        lambda draft: stage.inputs_again(resolved, draft),
        others,
        stage.resumes(resolved),
    ) as draft:
        if draft is not None:
            lines = stage.make(resolved, draft, session, workers)
    for line in lines:
        logger.info(line)
    return artifact.folder


@contextmanager
def _lock_folder(run: Run) -> Iterator[None]:
    """Lock an experiment's folder.

    After a failure, a new folder that holds only copied stages is removed.
    """
    folder = run.folder
    was_there = folder.exists()
    done = False
    with lock(folder):
        try:
            yield
            done = True
        finally:
            copies = {stage.name for stage in stages_of(run) if run.artifact(stage.name).copied}
            nothing = {".lock", "experiment.toml"} | copies
            if (
                not (done or was_there)
                and folder.is_dir()
                and {path.name for path in folder.iterdir()} <= nothing
            ):
                shutil.rmtree(folder)
