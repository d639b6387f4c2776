"""THE MAIN PATH: dump -> passages -> index -> retrieve -> read -> score.

Each stage is a function here and a verb of the command line. It reads the artifacts of earlier
stages and writes its own, unless the latter is current. `workers` search and read, by default this
process alone; the files do not depend on them. A stage raises IfqaError if an input is missing or
stale.
"""

import logging
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice, repeat, takewhile
from pathlib import Path
from typing import Any, Literal

from ifqa.config.corpus import CorpusConfig, build_settings
from ifqa.config.overrides import write_resolved
from ifqa.corpus.languages import LANGUAGE_SAMPLE, majority_language
from ifqa.corpus.passage_store import PassageStore, write_id_index
from ifqa.corpus.shard_writer import BAD, CorpusWriter, read_bad_pages, read_file_records
from ifqa.corpus.sources import require_room, total_size, user_folders
from ifqa.corpus.work_units import BuildReport, make_shard
from ifqa.errors import DamagedArtifact, MissingInput
from ifqa.formatting import pluralize
from ifqa.pipeline.chunk_runner import ask
from ifqa.pipeline.run import LLM_STAGES, CorpusBuild, Run, Stage
from ifqa.pipeline.stage_outputs import passages_of, predictions_of, rankings_of
from ifqa.pipeline.system import Session, System, refuse_other_families
from ifqa.plugins import resolve_paths
from ifqa.progress import bar
from ifqa.records import Prediction
from ifqa.scoring import per_question
from ifqa.scoring.aggregation import Aggregator
from ifqa.scoring.stored_scores import QuestionRow
from ifqa.settings import default_settings
from ifqa.storage.artifacts import Draft, lock
from ifqa.storage.files import write_json, write_jsonl
from ifqa.workers.pool import Workers, map_tasks

logger = logging.getLogger(__name__)


def build_passages(corpus: CorpusConfig) -> Path:
    """Build a corpus's shards of passages, `indexes/NAME/passages/passages-00000.jsonl` …, and an
    index of their ids.

    Each shard is made from a block of the input, so its bytes do not depend on the number of
    workers. A killed build resumes after its last finished shard.
    """
    build = CorpusBuild(corpus)
    passages = build.artifact("passages")
    sources = build.sources
    known = dict[str, Sequence[int | str]]()
    folder = passages.folder

    def current_inputs() -> dict[str, object]:
        return CorpusBuild(corpus).inputs_of_passages(known)

    with passages.make(lambda: build.inputs("passages"), current_inputs, resume="any") as draft:
        if draft is None:
            return folder
        require_room(sources, draft.folder)
        shards = CorpusWriter(draft.folder)
        before = build.built_files
        earlier = {} if passages.damage else before
        units = (
            (number, unit)
            for number, source in enumerate(sources)
            for unit in source.work_units(earlier)
        )
        with bar(f"passages of {corpus.name}", total_size(sources), unit="bytes") as advance:
            todo = shards.unfinished(units, advance)
            for unit, shard in map_tasks(
                make_shard, todo, workers=corpus.workers, engine=corpus.engine
            ):
                shards.add(unit.number, shard)
                advance(unit.read)
        shards.drop_repeated_pages()
        sums = shards.finish()
        after = read_file_records(draft.folder)
        done = BuildReport(
            corpus.name, sums["left_out"], read_bad_pages(draft.folder), folder / BAD, before, after
        )
        if not sums["passages"]:
            reasons = "; ".join(dict.fromkeys(source.explain_empty(done) for source in sources))
            raise MissingInput(f"corpus {corpus.name}: its sources hold no passage; {reasons}")
        if write_id_index(draft.folder) != sums["passages"]:
            raise DamagedArtifact(
                f"the shards in {draft.folder} changed while they were indexed; build them again"
            )
        if (
            not corpus.language
            and user_folders(corpus.sources)
            and (language := _detect(draft.folder, sums["passages"]))
        ):
            draft.record["language"] = language
        facts = {
            path: file_facts for source in sources for path, file_facts in source.facts().items()
        }
        draft.record |= {**sums, "sources": facts}
        known |= {**build.known, **{key: file.facts for key, file in after.items()}}
        draft.inputs = build.inputs_of_passages(known | facts)
    pages = pluralize(sums["pages"], sources[0].unit)
    built = pluralize(sums["shards"], "shard")
    logger.info(f"{folder}: {pluralize(sums['passages'], 'passage')} of {pages} in {built}")
    if shards.reused:
        logger.info(f"{pluralize(shards.reused, 'block')} had been finished by an earlier build")
    for line in dict.fromkeys(line for source in sources for line in source.summary(done)):
        logger.info(line)
    return folder


def _detect(folder: Path, count: int) -> str | None:
    """The language of most passages of a sample; None for English."""
    step = -(-count // LANGUAGE_SAMPLE)
    return majority_language(
        passage.text for passage in islice(PassageStore(folder), 0, None, step)
    )


def build_index(corpus: CorpusConfig, name: str, workers: Workers | None = None) -> Path:
    """Build an index of the corpus's passages, `indexes/NAME/INDEX/`.

    `workers` replace the index's settings `engine` and `workers`; an index without these is built
    by this process.
    """
    build = CorpusBuild(corpus)
    build.require_index(name)
    artifact = build.artifact(name)
    table = corpus.indexes[name]
    plugin = corpus.plugins.indexed_retriever(table["retriever"])
    resume: Literal["", "any"] = "any" if plugin.resumes else ""
    with artifact.make(
        lambda: build.inputs(name), lambda: CorpusBuild(corpus).inputs(name), resume=resume
    ) as draft:
        if draft is None:
            return artifact.folder
        settings = resolve_paths(
            plugin.build, build.language_of(name) | build_settings(table), corpus.root
        )
        if workers and {"engine", "workers"} <= default_settings(plugin.build).keys():
            settings |= {"engine": workers.engine, "workers": workers.number}
        plugin.build(build.artifact("passages").folder, draft.folder, **settings)
        draft.record["passages"] = build.passages["record"]["passages"]
    logger.info(f"{artifact.folder}: {pluralize(draft.record['passages'], 'passage')} indexed")
    return artifact.folder


def retrieve(run: Run, session: Session | None = None, workers: Workers | None = None) -> Path:
    """Write each question's ranking to `experiments/NAME/retrieve/run.trec`, and generated passages
    to `passages.jsonl`.
    """
    _ = run.retriever  # raises if there is none
    return _ask_all(run, "retrieve", session, workers)


def read(run: Run, session: Session | None = None, workers: Workers | None = None) -> Path:
    """Answer each question from its ranking, or without passages.

    Writes `experiments/NAME/read/predictions.jsonl`.
    """
    _ = run.reader  # raises if there is none
    return _ask_all(run, "read", session, workers)


def _ask_all(
    run: Run, stage: Literal["retrieve", "read"], session: Session | None, workers: Workers | None
) -> Path:
    folder = run.artifact(stage).folder
    with _make_stage(run, stage, resume="same") as draft:
        if draft is None:
            return folder
        ask(draft, run, stage, session, workers or Workers())
    logger.info(f"{folder}: {'; '.join(_summary(stage, draft.record))}")
    return folder


def _summary(stage: str, record: Mapping[str, Any]) -> Iterator[str]:
    """What a stage has done, in phrases.

    A question without an answer is not counted as answered.
    """
    questions = record["questions"]
    if stage == "read":
        answered = questions - record.get("failed", 0)
        of = f" of {questions:,}" if answered < questions else ""
        yield (
            f"{answered:,}{of} questions answered"
            if of
            else f"{pluralize(questions, 'question')} answered"
        )
    else:
        yield f"{pluralize(record['hits'], 'passage')} for {pluralize(questions, 'question')}"
    if record.get("unparsed"):
        yield f"{record['unparsed']:,} with a completion that could not be parsed"
    if record.get("stored_failures"):
        yield f"{pluralize(record['stored_failures'], 'stored failure')}: --retry-failed asks again"
    if record.get("retry"):
        yield f"{record['retry']:,} incomplete; the next run retries them"


def score(run: Run) -> Path:
    """Score run and predictions over all questions.

    Writes `scores.json` and `per_question.jsonl` in the score folder.
    """
    with _make_stage(run, "score") as draft:
        if draft is not None:
            aggregator = Aggregator(
                run.experiment.scheme, run.retriever["k"] if run.experiment.retriever else 0
            )
            write_jsonl(draft.folder / "per_question.jsonl", _rows(run, aggregator))
            scores = aggregator.scores(run.experiment.seed)
            manifests = (run.artifact(stage).manifest for stage in run.experiment.stages)
            records = [manifest["record"] for manifest in manifests if manifest]
            worst = max(records, key=lambda record: record.get("retry", 0))
            scores["not_asked"] = worst.get("not_asked", 0)
            scores["retry"] = worst.get("retry", 0)
            if stored := max(record.get("stored_failures", 0) for record in records):
                scores["stored_failures"] = stored
            scores["of"] = len(run.split)
            write_json(draft.folder / "scores.json", scores)
    return run.artifact("score").folder


def _rows(run: Run, aggregator: Aggregator) -> Iterator[QuestionRow]:
    """The row of each question, from the files of earlier stages.

    Each row is added to `aggregator`.
    """
    experiment = run.experiment
    questions = run.questions
    texts: Iterable[list[str] | None] = repeat(None, len(questions))
    predictions: Iterable[Prediction | None] = repeat(None, len(questions))
    if experiment.retriever:
        retrieved = passages_of(experiment, rankings_of(experiment, questions))
        texts = ([passage.text for passage in passages] for passages in retrieved)
    if experiment.reader:
        predictions = predictions_of(experiment, questions)
    depth = run.retriever["k"] if experiment.retriever else 0
    read_depth = run.reader["passages"] if experiment.reader else 0
    for question, ranked, prediction in zip(questions, texts, predictions, strict=True):
        row = per_question.score_question(
            question, aggregator.scheme, ranked, depth, read_depth, prediction
        )
        aggregator.add(row, question, prediction)
        yield row


def run(run: Run, session: Session | None = None, workers: Workers | None = None) -> Path:
    """Run the stages of an experiment that are not current, in order; returns the score folder."""
    session = session or Session()
    _ = run.questions  # raises before anything is built
    prepare(run)
    with _lock_folder(run):
        if run.experiment.retriever:
            retrieve(run, session, workers)
        if run.experiment.reader:
            read(run, session, workers)
        return score(run)


def prepare(run: Run) -> None:
    """Check an experiment, then build its corpus, so that mistakes are found before hours of
    work.
    """
    experiment = run.experiment
    for stage in experiment.stages:
        run.fingerprint(LLM_STAGES[stage])
    refuse_other_families(run)
    for stage in experiment.stages:
        run.refuse_other_server(stage)
    if experiment.llm and run.will_ask():
        run.plugins.llm(run.llm["name"]).require_access(
            root=experiment.root, **experiment.llm_settings
        )
    build_corpus(run)


def build_corpus(run: Run) -> None:
    """Build the passages and indexes that an experiment searches, unless they are current."""
    experiment = run.experiment
    if run.corpus:
        corpus = run.corpus.corpus
        parts = ["passages", *experiment.indexes]
        if all(map(run.corpus.is_current, parts)):
            # no lock, so that several experiments can read a finished corpus at once
            logger.info(f"{corpus.folder}: up to date")
            return
        # Of several processes, the first builds and the others reuse it
        with lock(corpus.folder, wait=True):
            build_passages(corpus)
            for index in experiment.indexes:
                build_index(corpus, index)
        run.corpus = CorpusBuild(corpus, run.questions_of)


def open_system(run: Run) -> System:
    """Build an experiment's corpus if it is missing, and open its retriever and reader."""
    prepare(run)
    return System(run)


@contextmanager
def _lock_folder(run: Run) -> Iterator[None]:
    """Lock an experiment's folder.

    After a failure, a new folder that holds only copied stages is removed.
    """
    folder = run.experiment.folder
    was_there = folder.exists()
    done = False
    with lock(folder):
        try:
            yield
            done = True
        finally:
            copies = {stage for stage in run.experiment.stages if run.artifact(stage).copied}
            nothing = {".lock", "experiment.toml"} | copies
            if (
                not (done or was_there)
                and folder.is_dir()
                and {path.name for path in folder.iterdir()} <= nothing
            ):
                shutil.rmtree(folder)


@contextmanager
def _make_stage(run: Run, stage: Stage, resume: Literal["", "same"] = "") -> Iterator[Draft | None]:
    """Make a stage of an experiment, unless it is current or can be copied from its base or a
    variant.

    A missing earlier stage is copied, so that `ifqa read --reader X` can read the base's run.
    """
    _ = run.questions  # raises before anything is written
    with _lock_folder(run):
        for earlier in takewhile(lambda name: name != stage, run.experiment.stages):
            folders = [folder for folder in run.siblings(earlier) if folder.exists()]
            if folders and not run.artifact(earlier).folder.exists():
                run.artifact(earlier).copy(run.inputs(earlier), folders)
        if stage in LLM_STAGES:
            run.refuse_other_server(stage)
        run.inputs(stage)  # raises before anything is written
        is_known = stage == "score" and (run.experiment.folder / "experiment.toml").exists()
        # So that later commands find the variant by its name
        if run.experiment.variant and not is_known:
            write_resolved(run.experiment)
        with run.artifact(stage).make(
            lambda: run.inputs(stage),
            lambda: Run(run.experiment).inputs(stage),
            run.siblings(stage),
            resume,
        ) as draft:
            yield draft
        run.forget_inputs(stage)
