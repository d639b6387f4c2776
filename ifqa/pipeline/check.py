"""`ifqa check`: validate an experiment or a corpus, and estimate its time, disk, memory and cost.

The number of passages is estimated from a sample of the sources. The other rates were measured on a corpus of 410,612 passages
on two cores. They tell minutes from days; every estimate is printed with "about".
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

from ifqa.config.corpus import Corpus, build_settings, load_corpus
from ifqa.config.experiment import Experiment, load_experiment, retriever_tables, search_settings
from ifqa.config.variants import override
from ifqa.corpus.forecast import forecast
from ifqa.errors import IfqaError, unknown
from ifqa.pipeline.opening import opened, refuse_other_families
from ifqa.pipeline.provenance import (
    fingerprint,
    inputs_of_index,
    inputs_of_passages,
    inputs_of_read,
    inputs_of_retrieve,
    inputs_of_score,
    up_to_date,
)
from ifqa.pipeline.system import System
from ifqa.pipeline.upstream import passages_of, questions_of, rankings_of, sources_of
from ifqa.pipeline.verify import verify
from ifqa.plugins import load, load_indexed, takes
from ifqa.progress import counted, duration
from ifqa.records import Passage, Question, Request
from ifqa.retrieval.queries import rewrite
from ifqa.storage import artifacts
from ifqa.storage.resources import find_resource, list_resources
from ifqa.workers.machine import cores, total_memory


def check(name: str, changes: Mapping[str, object] = MappingProxyType({}), thorough: bool = False) -> Iterator[str]:
    """Check an experiment or a corpus, and yield lines that say what its work will take; nothing is written.

    Args:
        name: the experiment or corpus.
        changes: changes to an experiment, as `override` takes them.
        thorough: also hash every file of the artifacts that are there.

    Raises:
        IfqaError: nothing has that name; or, after the lines on the other parts, something is unknown, missing or too large
            for this machine.
    """
    if find_resource(f"indexes/{name}.toml") and not find_resource(f"experiments/{name}.toml"):
        if changes:
            raise IfqaError(
                f"{min(changes)} belongs to an experiment, and {name} is a corpus; change its indexes/{name}.toml"
            )
        corpus = load_corpus(name)
        yield from _corpus(corpus)
        yield from verify(corpus) if thorough else ()
        return
    try:
        experiment = load_experiment(name)
    except IfqaError as error:
        files = (f"experiments/{name}.toml", f"experiments/{name}/experiment.toml")
        if "/" in name or any(map(find_resource, files)):
            raise
        known = {*list_resources("experiments", ".toml"), *list_resources("indexes", ".toml")}
        raise unknown("experiment or corpus", name, known) from error
    changed = override(experiment, changes)
    yield from _experiment(changed)
    yield from verify(changed) if thorough else ()


def _corpus(corpus: Corpus) -> Iterator[str]:
    found = sources_of(corpus)
    folder = corpus.folder / "passages"
    workers = corpus.workers or cores()
    disk = seconds = memory = count = 0.0
    manifest = artifacts.read_manifest(folder)
    if manifest and artifacts.is_made(
        folder, inputs_of_passages(corpus)
    ):  # inputs_of_passages hashes, so only if needed
        count = manifest["record"]["passages"]
        yield f"corpus {corpus.name}: {counted(count, 'passage')}, built"
    elif (expected := forecast(found)) is None:
        yield f"corpus {corpus.name}: passages to build from a pipe; their number is known once it has been read"
    else:
        count, disk = expected.passages, expected.disk
        seconds, memory = expected.seconds(workers), expected.memory(workers)
        yield (
            f"corpus {corpus.name}: about {counted(expected.pages, 'page')} and {counted(count, 'passage')} to build "
            f"from {counted(len(corpus.sources), 'source')}, estimated from {expected.seen:.1%} of the input"
        )
        yield (
            f"  passages: about {_size(disk)} of disk, {_size(memory)} of memory, {duration(seconds)} with "
            f"{counted(workers, 'process', 'processes')}"
        )
    for name in corpus.indexes:
        if up_to_date(corpus.folder / name, partial(inputs_of_index, corpus, name)):
            yield f"  index {name}: built"
        else:
            table = corpus.indexes[name]
            taken = load_indexed(table["retriever"]).forecast(round(count), **build_settings(table))
            if taken is None:
                yield f"  index {name}: to build; time, disk and memory are unknown"
                continue
            yield (
                f"  index {name}: to build, about {_size(taken.disk)} of disk, {_size(taken.memory)} of memory, "
                f"{duration(taken.seconds)}{taken.about}"
            )
            disk, seconds, memory = disk + taken.disk, seconds + taken.seconds, max(memory, taken.memory)
    free = shutil.disk_usage(Path.cwd()).free
    if disk:
        yield (
            f"  in all about {_size(disk)} of disk ({_size(free)} free), {_size(memory)} of memory, {duration(seconds)}"
        )
    if disk > free:
        raise IfqaError(
            f"corpus {corpus.name} needs about {_size(disk)} of disk, {_size(free)} is free in {Path.cwd()}; "
            "make room or work on a larger disk"
        )
    if (here := total_memory()) and memory > here:
        raise IfqaError(
            f"corpus {corpus.name} needs about {_size(memory)} of memory, this machine has {_size(here)}; "
            "use fewer workers: [passages] workers = 1"
        )


def _experiment(experiment: Experiment) -> Iterator[str]:
    questions = questions_of(experiment)
    yield f"experiment {experiment.name}: {counted(len(questions), 'question')} of {experiment.benchmark} {experiment.split}"
    missing, system = [], System(experiment)
    for part in (_its_corpus, _its_retriever, _its_reader, _its_models):
        try:
            yield from part(system, questions)
        except IfqaError as error:  # the other parts are still checked
            missing.append(str(error))
    inputs_of = {"retrieve": inputs_of_retrieve, "read": inputs_of_read, "score": inputs_of_score}
    for stage in (*experiment.stages, "score"):
        made = up_to_date(experiment.folder / stage, partial(inputs_of[stage], experiment))
        yield f"  {stage}: {'made' if made else 'to do'}"
    if missing:
        raise IfqaError("; ".join(dict.fromkeys(missing)))


def _its_corpus(system: System, questions: Sequence[Question]) -> Iterator[str]:
    experiment = system.experiment
    if not experiment.corpus:
        return
    corpus = load_corpus(experiment.corpus, experiment.root)
    for index in experiment.indexes:
        if index not in corpus.indexes:
            raise IfqaError(
                f"corpus {corpus.name} has no [index.{index}]; it has: {', '.join(corpus.indexes) or 'none'}"
            )
    needed = replace(corpus, indexes={index: corpus.indexes[index] for index in experiment.indexes})
    yield from ("  " + line for line in _corpus(needed))


def _its_retriever(system: System, questions: Sequence[Question]) -> Iterator[str]:
    experiment = system.experiment
    if not experiment.retriever:
        return
    yield f"  retriever {experiment.retriever['name']}, {counted(experiment.retriever['k'], 'passage')} a question"
    fingerprint("retriever", experiment)
    if experiment.asks_llm("retriever"):
        yield f"    {_asking(system, _to_retrieve(system, questions))}"


def _its_reader(system: System, questions: Sequence[Question]) -> Iterator[str]:
    experiment = system.experiment
    if not experiment.reader:
        return
    reader = system.reader
    passages = len(questions) * experiment.reader["passages"]
    rate = reader.pace()
    taken = f": about {duration(passages / rate)}, no money" if rate else ""
    each = counted(experiment.reader["passages"], "passage")
    yield f"  reader {experiment.reader['name']}, {each} a question{taken}"
    if experiment.asks_llm("reader"):
        yield f"    {_asking(system, reader.requests(questions, _to_read(system, questions)))}"


def _its_models(system: System, questions: Sequence[Question]) -> Iterator[str]:
    experiment = system.experiment
    refuse_other_families(experiment)
    if experiment.llm:
        system.session.llm(experiment).ready()
    return iter(())


def _to_retrieve(system: System, questions: Sequence[Question]) -> list[Request]:
    """The requests that the retriever and its parts will send to a language model; no index is opened."""
    experiment = system.experiment
    assert experiment.retriever is not None
    requests: list[Request] = []
    for table in retriever_tables(experiment.retriever):
        if takes("retriever", table["name"], "llm"):
            llm = system.session.llm(experiment)
            part = opened(load("retriever", table["name"]), search_settings(table), experiment.root, llm=llm)
            requests += part.requests(rewrite(questions, table.get("query", "question")), table["k"])
    return requests


def _to_read(system: System, questions: Sequence[Question]) -> list[list[Passage]]:
    """The passages of each question for the reader; before retrieval, as many stand-ins of the usual length."""
    experiment = system.experiment
    assert experiment.reader is not None
    if not experiment.retriever:
        return [[] for _ in questions]
    count = experiment.reader["passages"]
    if up_to_date(experiment.folder / "retrieve", partial(inputs_of_retrieve, experiment)):
        return list(passages_of(experiment, (ranking[:count] for ranking in rankings_of(experiment, questions))))
    return [[Passage("", "Some title", "passage " * 100)] * count for _ in questions]


def _asking(system: System, requests: Sequence[Request]) -> str:
    """The calls, tokens and money that requests to the language model will take, as text."""
    experiment = system.experiment
    assert experiment.llm is not None
    llm, name = system.session.llm(experiment), f"{experiment.llm['name']} {experiment.llm.get('model', '')}".strip()
    taken = llm.estimate(requests)
    if not taken.calls:
        kept = counted(len(requests), "completion is", "completions are")
        return f"llm {name}: nothing to ask, {kept} kept from before"
    money = (
        "at an unknown price: add the model to a prices.toml here"
        if taken.cost is None
        else f"up to ${taken.cost:,.2f}"
    )
    return (
        f"llm {name}: {counted(taken.calls, 'call')}, about {counted(taken.prompt_tokens, 'token')} of prompts and up to "
        f"{taken.completion_tokens:,} of answers, {money}"
    )


def _size(count: float) -> str:
    if round(count) < 1000:  # round first: 999.6 kB is 1 MB
        return counted(count, "byte")
    for unit in ("kB", "MB", "GB"):
        count /= 1000
        if round(count) < 1000:
            return f"{count:.0f} {unit}"
    return f"{count / 1000:.1f} TB"
