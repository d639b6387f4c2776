"""THE MAIN PATH: dump -> passages -> index -> retrieve -> read -> score.

Each stage is a function here and a verb of the command line. Stages exchange files only. A stage reads the artifacts of the
stages before it. It makes its own artifact, unless that was made from exactly the same inputs before.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

from ifqa.config.corpus import Corpus, build_settings, load_corpus
from ifqa.config.declared import declared_for
from ifqa.config.experiment import Experiment
from ifqa.config.variants import write_resolved
from ifqa.corpus import sources
from ifqa.corpus.blocks import make_shard
from ifqa.corpus.documents import told
from ifqa.corpus.forecast import require_room
from ifqa.corpus.id_index import write_id_index
from ifqa.corpus.pipe import something_is_piped_in
from ifqa.corpus.shards import BAD, Shards, bad_pages, known_files, made_files, why_none
from ifqa.errors import IfqaError
from ifqa.pipeline.asking import ask
from ifqa.pipeline.opening import Session, refuse_other_families
from ifqa.pipeline.provenance import (
    fingerprint,
    inputs_of_index,
    inputs_of_passages,
    inputs_of_read,
    inputs_of_retrieve,
    inputs_of_score,
    require_finished,
    up_to_date,
    will_ask,
)
from ifqa.pipeline.ready import require_key
from ifqa.pipeline.system import System
from ifqa.pipeline.tidying import tidying
from ifqa.pipeline.upstream import passages_of, predictions_of, questions_of, rankings_of, sources_of, split_size
from ifqa.plugins import load_indexed, settings_at
from ifqa.progress import bar, counted, say
from ifqa.records import Prediction
from ifqa.scoring import summary
from ifqa.scoring.collected import Collected
from ifqa.storage.artifacts import is_damaged, lock, make, read_manifest, take_over
from ifqa.storage.files import write_json, write_jsonl
from ifqa.workers.tasks import Workers
from ifqa.workers.tasks import run as run_all


def build_passages(corpus: Corpus) -> Path:
    """Build shards of passages from a corpus's sources, `indexes/NAME/passages/passages-00000.jsonl` …, and an index of ids.

    Each shard is made from a block of the input, so its bytes do not depend on the number of workers. The finished shards of a
    killed build are reused.

    Raises:
        IfqaError: a source is missing or broken, holds no passage, two passages have the same id, or the disk is full.
    """
    found = sources_of(corpus)
    folder = corpus.folder / "passages"
    with make(folder, lambda: inputs_of_passages(corpus), resume="any") as draft:
        if draft is None:
            if any(map(sources.is_pipe, found)) and something_is_piped_in():
                say(f"{folder} came by a pipe; remove it to build it from another one")
            return folder
        require_room(found, draft.folder)
        shards, pipe = Shards(draft.folder), sources.open_pipe(found)
        documents = any(source["format"] == "documents" for source in found)
        known, made = known_files(folder), {} if is_damaged(folder) else made_files(folder)
        blocks = (block for source in found for block in sources.blocks(source, pipe, known, made))
        with bar(f"passages of {corpus.name}", sources.size(found), unit="bytes") as advance:
            todo = shards.copied(shards.unfinished(blocks, advance), advance)
            for block, shard in run_all(make_shard, todo, workers=corpus.workers, engine=corpus.engine):
                shards.add(block.number, shard)
                advance(block.read)
        sums = shards.finish()
        if not sums["passages"]:
            none = ", ".join(f"no file in {source['path']}" for source in found if source["format"] == "documents")
            reasons = "; ".join(told.left_out(bad_pages(draft.folder))) or none if documents else ""
            raise IfqaError(
                f"corpus {corpus.name}: its sources hold no passage; {reasons or why_none(draft.folder, sums)}"
            )
        if write_id_index(draft.folder) != sums["passages"]:
            raise IfqaError(f"the shards in {draft.folder} changed while they were indexed; run the same command again")
        draft.record |= {**sums, "sources": sources.facts(found, pipe)}
        draft.inputs = inputs_of_passages(corpus, draft.record["sources"] | known_files(draft.folder))
        changes = told.changes(known, known_files(draft.folder))
    several = [counted(sums["passages"], "passage"), counted(sums["pages"], "file" if documents else "page")]
    say(f"{folder}: {several[0]} of {several[1]} in {counted(sums['shards'], 'shard')}")
    if shards.reused:
        say(f"{counted(shards.reused, 'block')} had been finished by an earlier build")
    if documents:
        say(f"{corpus.name}: {changes}")
        for line in told.left_out(bad_pages(folder), folder / BAD):
            say(line)
    elif sums["bad"]:
        say(f"{counted(sums['bad'], 'bad page')}: {folder / BAD}")
    return folder


def build_index(corpus: Corpus, name: str) -> Path:
    """Build one of the corpus's indexes from its passages, `indexes/NAME/INDEX/`.

    Raises:
        IfqaError: the corpus has no such index, or its passages are not built.
    """
    passages, folder = corpus.folder / "passages", corpus.folder / name
    table = corpus.indexes.get(name)
    plugin = load_indexed(table["retriever"]) if table else None
    with make(
        folder, lambda: inputs_of_index(corpus, name), resume="any" if plugin and plugin.resumes else ""
    ) as draft:
        if draft is None:
            return folder
        assert table is not None  # or inputs_of_index had refused the name
        assert plugin is not None
        plugin.build(passages, draft.folder, **settings_at(plugin.build, build_settings(table), corpus.root))
        draft.record["passages"] = require_finished(passages, f"ifqa passages {corpus.name}")["record"]["passages"]
    say(f"{folder}: {counted(draft.record['passages'], 'passage')} indexed")
    return folder


@tidying
def retrieve(experiment: Experiment, session: Session | None = None, workers: Workers | None = None) -> Path:
    """Retrieve a ranking for each question, `experiments/NAME/retrieve/run.trec`.

    A retriever that makes its passages also writes `passages.jsonl`. The files do not depend on `workers`, by default this
    process alone.

    Raises:
        IfqaError: the index is not built, or was built from other passages than the corpus has now.
    """
    if experiment.retriever is None:
        raise IfqaError(f"experiment {experiment.name} has no [retriever]")
    questions_of(experiment)  # complains before anything is written
    folder, others = experiment.folder / "retrieve", experiment.relatives("retrieve")
    _keep_resolved(experiment)
    with make(folder, lambda: inputs_of_retrieve(experiment), others, resume="same") as draft:
        if draft is None:
            return folder
        ask(draft, experiment, "retrieve", session, workers or Workers())
    hits, asked = counted(draft.record["hits"], "passage"), counted(draft.record["questions"], "question")
    say(f"{folder}: {hits} for {asked}{_again(draft.record)}")
    return folder


@tidying
def read(experiment: Experiment, session: Session | None = None, workers: Workers | None = None) -> Path:
    """Answer each question from its ranking, `experiments/NAME/read/predictions.jsonl`.

    Without a retriever the reader gets no passages. The file does not depend on `workers`, by default this process alone.

    Raises:
        IfqaError: there is no run yet, a passage of the run is in no store, or the reader was trained on another split family.
    """
    if experiment.reader is None:
        raise IfqaError(f"experiment {experiment.name} has no [reader]")
    _keep_resolved(experiment)
    _take_over(experiment, "retrieve")
    questions_of(experiment)
    folder, others = experiment.folder / "read", experiment.relatives("read")
    with make(folder, lambda: inputs_of_read(experiment), others, resume="same") as draft:
        if draft is None:
            return folder
        ask(draft, experiment, "read", session, workers or Workers())
    say(f"{folder}: {counted(draft.record['questions'], 'question')} answered{_again(draft.record)}")
    return folder


@tidying
def score(experiment: Experiment) -> Path:
    """Score run and predictions over all questions, `experiments/NAME/score/scores.json` and `per_question.jsonl`.

    Raises:
        IfqaError: an earlier stage is not finished, or its files are of other questions.
    """
    _keep_resolved(experiment)
    for stage in ("retrieve", "read"):
        _take_over(experiment, stage)
    questions_of(experiment)
    folder = experiment.folder / "score"
    with make(folder, lambda: inputs_of_score(experiment), experiment.relatives("score")) as draft:
        if draft is None:
            return folder
        by = declared_for(experiment)
        collected = Collected(by, experiment.retriever["k"] if experiment.retriever else 0)
        write_jsonl(draft.folder / "per_question.jsonl", _rows(experiment, collected))
        scores = collected.scores(experiment.seed)
        found = (read_manifest(experiment.folder / stage) for stage in experiment.stages)
        worst = max((one["record"] for one in found if one), key=lambda record: record.get("retry", 0))
        scores["not_asked"], scores["retry"] = worst.get("not_asked", 0), worst.get("retry", 0)
        scores["of"] = split_size(experiment)
        write_json(draft.folder / "scores.json", scores)
    return folder


def _rows(experiment: Experiment, collected: Collected) -> Iterator[summary.Row]:
    """The row of each question, from the files of the stages before; its numbers are collected."""
    questions = questions_of(experiment)
    texts: Iterable[list[str] | None] = repeat(None, len(questions))
    predictions: Iterable[Prediction | None] = repeat(None, len(questions))
    if experiment.retriever:
        several = passages_of(experiment, rankings_of(experiment, questions))
        texts = ([passage.text for passage in passages] for passages in several)
    if experiment.reader:
        predictions = predictions_of(experiment, questions)
    depth = experiment.retriever["k"] if experiment.retriever else 0
    given = experiment.reader["passages"] if experiment.reader else 0
    for question, found, prediction in zip(questions, texts, predictions, strict=True):
        row = summary.row(question, collected.by, found, depth, given, prediction)
        collected.add(row, question, prediction)
        yield row


@tidying
def run(experiment: Experiment, session: Session | None = None, workers: Workers | None = None) -> Path:
    """Run every stage of an experiment that is not up to date, in order; returns the score folder.

    The experiments of a command share a `session`, and with it their language models and their budget. `workers` retrieve and
    read, by default this process alone.
    """
    session = session or Session()
    questions_of(experiment)
    prepare(experiment)
    with lock(experiment.folder):
        if experiment.retriever:
            retrieve(experiment, session, workers)
        if experiment.reader:
            read(experiment, session, workers)
        return score(experiment)


def prepare(experiment: Experiment) -> None:
    """Build the corpus that an experiment needs, after the checks that find mistakes before hours of work.

    Raises:
        IfqaError: a file, a setting or a source is missing or wrong.
    """
    if experiment.retriever:
        fingerprint("retriever", experiment)
    if experiment.reader:
        fingerprint("reader", experiment)
    refuse_other_families(experiment)
    if will_ask(experiment):
        require_key(experiment)
    if experiment.corpus:
        corpus = load_corpus(experiment.corpus, experiment.root)
        parts = {"passages": partial(inputs_of_passages, corpus)}
        parts |= {index: partial(inputs_of_index, corpus, index) for index in experiment.indexes}
        if all(up_to_date(corpus.folder / part, inputs_of) for part, inputs_of in parts.items()):
            for part in parts:  # no lock: several experiments may read a finished corpus at once
                say(f"{corpus.folder / part}: nothing to do, made from exactly this before")
            return
        with lock(corpus.folder, wait=True):  # of several first questions, one builds and the others use what it built
            build_passages(corpus)
            for index in experiment.indexes:
                build_index(corpus, index)


def open_system(experiment: Experiment, session: Session | None = None) -> System:
    """Build an experiment's corpus if need be, and open its retriever and reader for questions of your own.

    Raises:
        IfqaError: as `prepare`.
    """
    prepare(experiment)
    return System(experiment, session)


def _again(made: dict[str, Any]) -> str:
    """What went wrong with a language model, as the end of a message: unparsed completions, and questions to ask again."""
    unparsed = f"; for {made['unparsed']:,} of them a completion could not be parsed" if made.get("unparsed") else ""
    return (
        f"{unparsed}; {made['retry']:,} of them not wholly, which the next run asks again"
        if made.get("retry")
        else unparsed
    )


def _keep_resolved(experiment: Experiment) -> None:
    """Write a variant's `experiment.toml`, so that later commands find the variant by its name."""
    if experiment.variant:
        write_resolved(experiment)


def _take_over(experiment: Experiment, stage: str) -> None:
    """Copy a variant's earlier stage from an experiment with the same inputs, so that `ifqa read --reader X` can read it."""
    inputs_of = {"retrieve": inputs_of_retrieve, "read": inputs_of_read}[stage]
    applies = experiment.retriever if stage == "retrieve" else experiment.reader
    if not (experiment.variant and applies) or (experiment.folder / stage).exists():
        return
    take_over(experiment.folder / stage, inputs_of(experiment), experiment.relatives(stage))
