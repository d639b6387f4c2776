"""THE MAIN PATH: dump -> passages -> index -> retrieve -> read -> score.

Each stage is a function here and a verb of the command line. Stages exchange files only. A stage reads the artifacts of the
stages before it. It makes its own artifact, unless that was made from exactly the same inputs before.
"""

import os
from collections.abc import Iterable
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from ifqa.config.corpus import Corpus, build_settings, load_corpus
from ifqa.config.experiment import Experiment
from ifqa.config.variants import write_resolved
from ifqa.corpus import sources
from ifqa.corpus.blocks import make_shard
from ifqa.corpus.forecast import require_room
from ifqa.corpus.id_index import write_id_index
from ifqa.corpus.shards import BAD, Shards
from ifqa.corpus.store import write_passages
from ifqa.errors import IfqaError
from ifqa.formats.runs import write_run
from ifqa.pipeline.opening import Session, refuse_other_families, was_trained_on
from ifqa.pipeline.provenance import (
    fingerprint,
    finished,
    inputs_of_index,
    inputs_of_passages,
    inputs_of_read,
    inputs_of_retrieve,
    inputs_of_score,
    up_to_date,
)
from ifqa.pipeline.system import System
from ifqa.pipeline.upstream import (
    is_prediction_for,
    passages_of,
    predictions_of,
    questions_of,
    rankings_of,
    sources_of,
    split_size,
)
from ifqa.plugins import load_indexed, settings_at
from ifqa.progress import bar, counted, say
from ifqa.records import Hit, Prediction
from ifqa.scoring import summary
from ifqa.scoring.declared import declared
from ifqa.storage.artifacts import lock, make, read_manifest, take_over
from ifqa.storage.files import json_line, write, write_json, write_jsonl
from ifqa.storage.torn import keep_whole_lines
from ifqa.workers.tasks import run as run_all

SEARCHED = 64  # questions in a call of a retriever


def build_passages(corpus: Corpus) -> Path:
    """Build shards of passages from a corpus's sources, `indexes/NAME/passages/passages-00000.jsonl` …, and an index of ids.

    Each shard is made from a block of the input, so its bytes do not depend on the number of workers. The finished shards of a
    killed build are reused.

    Raises:
        IfqaError: a source is missing or broken, holds no passage, two passages have the same id, or the disk is full.
    """
    found = sources_of(corpus)
    folder = corpus.folder / "passages"
    with make(folder, lambda: inputs_of_passages(corpus), resume="any") as work:
        if work is None:
            if any(map(sources.is_pipe, found)) and sources.something_is_piped_in():
                say(f"{folder} came by a pipe; remove it to build it from another one")
            return folder
        require_room(found, work.folder)
        shards, pipe = Shards(work.folder), sources.open_pipe(found)
        blocks = (block for source in found for block in sources.blocks(source, pipe))
        with bar(f"passages of {corpus.name}", sources.size(found), unit="bytes") as advance:
            todo = shards.unfinished(blocks, advance)
            for block, shard in run_all(make_shard, todo, workers=corpus.workers, engine=corpus.engine):
                shards.add(block.number, shard)
                advance(block.read)
        sums = shards.finish()
        if not sums["passages"]:
            raise IfqaError(f"corpus {corpus.name}: its sources hold no passage; check the sources in its file")
        if write_id_index(work.folder) != sums["passages"]:
            raise IfqaError(f"the shards in {work.folder} changed while they were indexed; run the same command again")
        work.record |= {**sums, "sources": sources.facts(found, pipe)}
        work.inputs = inputs_of_passages(corpus, work.record["sources"])
    several = [counted(sums[key], key.removesuffix("s")) for key in ("passages", "pages", "shards")]
    say(f"{folder}: {several[0]} of {several[1]} in {several[2]}")
    if shards.reused:
        say(f"{counted(shards.reused, 'block')} had been finished by an earlier build")
    if sums["bad"]:
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
    with make(folder, lambda: inputs_of_index(corpus, name), resume="any" if plugin and plugin.resumes else "") as work:
        if work is None:
            return folder
        assert table is not None  # or inputs_of_index had refused the name
        assert plugin is not None
        plugin.build(passages, work.folder, **settings_at(plugin.build, build_settings(table), corpus.root))
        work.record["passages"] = finished(passages, f"ifqa passages {corpus.name}")["record"]["passages"]
    say(f"{folder}: {counted(work.record['passages'], 'passage')} indexed")
    return folder


def retrieve(experiment: Experiment, session: Session | None = None) -> Path:
    """Retrieve a ranking for each question, `experiments/NAME/retrieve/run.trec`.

    A retriever that makes its passages also writes `passages.jsonl`.

    Raises:
        IfqaError: the index is not built, or was built from other passages than the corpus has now.
    """
    if experiment.retriever is None:
        raise IfqaError(f"experiment {experiment.name} has no [retriever]")
    questions, folder = questions_of(experiment), experiment.folder / "retrieve"
    _keep_resolved(experiment)
    with make(folder, lambda: inputs_of_retrieve(experiment), experiment.relatives("retrieve")) as work:
        if work is None:
            return folder
        system = System(experiment, session)
        retriever = system.retriever
        rankings: list[list[Hit]] = []
        with bar(f"searching {experiment.name}", len(questions)) as advance:
            for start in range(0, len(questions), SEARCHED):
                chunk = questions[start : start + SEARCHED]
                rankings += system.search(chunk)
                advance(len(chunk))
        work.record |= retriever.usage()
        if (made := retriever.made_passages(questions)) is not None:
            write_passages(work.folder / "passages.jsonl", made)
        by_question = dict(zip((question.id for question in questions), rankings, strict=True))
        write_run(work.folder / "run.trec", by_question, tag=f"ifqa-{experiment.retriever['name']}")
        work.record |= {"questions": len(questions), "hits": sum(map(len, rankings))}
        work.record |= {"trained_on_them": was_trained_on(retriever, experiment)}
    hits, asked = counted(work.record["hits"], "passage"), counted(len(questions), "question")
    say(f"{folder}: {hits} for {asked}{_again(work.record)}")
    return folder


def read(experiment: Experiment, session: Session | None = None) -> Path:
    """Answer each question from its ranking, `experiments/NAME/read/predictions.jsonl`.

    Without a retriever the reader gets no passages.

    Raises:
        IfqaError: there is no run yet, a passage of the run is in no store, or the reader was trained on another split family.
    """
    if experiment.reader is None:
        raise IfqaError(f"experiment {experiment.name} has no [reader]")
    _keep_resolved(experiment)
    _take_over(experiment, "retrieve")
    questions, folder = questions_of(experiment), experiment.folder / "read"
    with make(folder, lambda: inputs_of_read(experiment), experiment.relatives("read"), resume="same") as work:
        if work is None:
            return folder
        path = work.folder / "predictions.jsonl"
        system = System(experiment, session)
        reader = system.reader
        done = keep_whole_lines(path, reader.chunk, lambda n, line: is_prediction_for(questions[n : n + 1], line))
        if done:
            say(f"{folder}: going on after {done:,} of {counted(len(questions), 'question')}")
        top = [ranking[: experiment.reader["passages"]] for ranking in rankings_of(experiment, questions)]
        passages = passages_of(experiment, top[done:])
        with open(path, "ab") as handle, bar(f"reading {experiment.name}", len(questions)) as advance:
            advance(done)
            for start in range(done, len(questions), reader.chunk):
                chunk = questions[start : start + reader.chunk]
                for prediction in system.read(chunk, list(islice(passages, reader.chunk)), advance):
                    write(handle, json_line(asdict(prediction)))
                handle.flush()
                os.fsync(handle.fileno())
        work.record |= {"questions": len(questions), "trained_on_them": was_trained_on(reader, experiment)}
        work.record |= {"label": reader.label, **reader.usage()}
    say(f"{folder}: {counted(len(questions), 'question')} answered{_again(work.record)}")
    return folder


def score(experiment: Experiment) -> Path:
    """Score run and predictions over all questions, `experiments/NAME/score/scores.json` and `per_question.jsonl`.

    Raises:
        IfqaError: an earlier stage is not finished, or its files are of other questions.
    """
    _keep_resolved(experiment)
    for stage in ("retrieve", "read"):
        _take_over(experiment, stage)
    questions, folder = questions_of(experiment), experiment.folder / "score"
    with make(folder, lambda: inputs_of_score(experiment), experiment.relatives("score")) as work:
        if work is None:
            return folder
        by = declared(experiment.benchmark, experiment.measures, experiment.root)
        texts: Iterable[list[str] | None] = [None] * len(questions)
        if experiment.retriever:
            several = passages_of(experiment, rankings_of(experiment, questions))
            texts = ([passage.text for passage in passages] for passages in several)
        depth = experiment.retriever["k"] if experiment.retriever else 0
        given = experiment.reader["passages"] if experiment.reader else 0
        predictions = predictions_of(experiment, questions) if experiment.reader else []
        answers: list[Prediction | None] = [*predictions] or [None] * len(questions)
        rows = [
            summary.row(question, by, found, depth, given, prediction)
            for question, found, prediction in zip(questions, texts, answers, strict=True)
        ]
        scores = summary.summarise(rows, questions, by, depth, experiment.seed, predictions)
        found = (read_manifest(experiment.folder / stage) for stage in experiment.stages)
        worst = max((one["record"] for one in found if one), key=lambda record: record.get("retry", 0))
        scores["not_asked"], scores["retry"] = worst.get("not_asked", 0), worst.get("retry", 0)
        scores["of"] = split_size(experiment)
        write_jsonl(work.folder / "per_question.jsonl", rows)
        write_json(work.folder / "scores.json", scores)
    return folder


def run(experiment: Experiment, session: Session | None = None) -> Path:
    """Run every stage of an experiment that is not up to date, in order; returns the score folder.

    The experiments of a command share a `session`, and with it their language models and their budget.
    """
    session = session or Session()
    questions_of(experiment)
    prepare(experiment)
    with lock(experiment.folder):
        if experiment.retriever:
            retrieve(experiment, session)
        if experiment.reader:
            read(experiment, session)
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
    if experiment.corpus:
        corpus = load_corpus(experiment.corpus, experiment.root)
        parts = {"passages": partial(inputs_of_passages, corpus)}
        parts |= {index: partial(inputs_of_index, corpus, index) for index in experiment.indexes}
        if all(up_to_date(corpus.folder / part, inputs_of) for part, inputs_of in parts.items()):
            for part in parts:  # no lock: several experiments may read a finished corpus at once
                say(f"{corpus.folder / part}: nothing to do, made from exactly this before")
            return
        with lock(corpus.folder):
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
    """The number of questions that the next run asks a language model again, as the end of a message; empty for none."""
    return f"; {made['retry']:,} of them not wholly, which the next run asks again" if made.get("retry") else ""


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
