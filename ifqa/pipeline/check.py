"""`ifqa check`: validate an experiment or a corpus, list what it needs, and estimate its time, disk, memory and cost.

The number of passages is estimated from a sample of the sources. The other rates were measured on a corpus of 410,612 passages
on two cores. They tell minutes from days; every estimate is printed with "about".
"""

import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple, get_args

from ifqa.config.corpus import build_settings, load_corpus
from ifqa.config.experiment import load_experiment, retriever_tables, search_settings
from ifqa.config.overrides import override
from ifqa.corpus.sources import estimate
from ifqa.errors import IfqaError, unknown
from ifqa.pipeline.requirements import corpus_requirements, requirements
from ifqa.pipeline.run import CorpusBuild, Run
from ifqa.pipeline.stage_inputs import passages_of, rankings_of
from ifqa.pipeline.system import System, opened, refuse_other_families
from ifqa.progress import counted, duration
from ifqa.protocols import Requirement, Retriever
from ifqa.records import Passage, Question, Request
from ifqa.retrieval.parts import Part
from ifqa.retrieval.queries import rewrite
from ifqa.storage.artifacts import Artifact, damaged, strangers
from ifqa.storage.files import cached_sha256
from ifqa.storage.resources import find_resource, list_resources
from ifqa.workers.machine import cores, total_memory

Kind = Literal["", "forecasts", "stages", "needs", "verified"]


class Finding(NamedTuple):
    """A line for people; and for programs its fields, below the key `kind` of the JSON. The header's kind is empty."""

    line: str
    kind: Kind = ""
    fields: Mapping[str, object] = MappingProxyType({})


def as_json(name: str, found: Iterable[Finding], problem: str) -> dict[str, object]:
    """What `check` found, as JSON data: the fields of each kind of finding, and the error, which is empty for none."""
    several = list(found)
    kinds = [kind for kind in get_args(Kind) if kind and (kind != "verified" or kind in {one.kind for one in several})]
    by_kind = {kind: [dict(one.fields) for one in several if one.kind == kind] for kind in kinds}
    missing = sum(not need["here"] for need in by_kind["needs"])
    return {"name": name, **by_kind, "missing": missing, "problem": problem}


def all_of(*parts: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """The findings of all parts; the errors of those that fail are raised together after the last part."""
    problems = []
    for part in parts:
        try:
            yield from part()
        except IfqaError as error:
            problems.append(str(error))
    if problems:
        raise IfqaError("; ".join(dict.fromkeys(problems)))


def found_needs(needed: Sequence[Requirement]) -> Iterator[Finding]:
    """How many things are here, and a line for each."""
    here = sum(need.here for need in needed)
    yield Finding(f"  needs: {here} of {len(needed)} here" + (f", {len(needed) - here} missing" * (here < len(needed))))
    for need in needed:
        line = f"    {'here   ' if need.here else 'missing'}  {need.what}" + (f": {need.how}" if need.how else "")
        yield Finding(line, "needs", {"what": need.what, "here": need.here, "how": need.how})


def forecasted(line: str, what: str, **known: object) -> Finding:
    """A finding of how much work is left; what is not in `known` is unknown."""
    fields = dict.fromkeys(("seconds", "disk", "memory", "calls", "prompt_tokens", "completion_tokens", "cost"), None)
    return Finding(line, "forecasts", {"what": what, "made": False, **fields, **known})


def size(count: float) -> str:
    """Bytes in a readable unit: "275 kB"."""
    if round(count) < 1000:  # round first: 999.6 kB is 1 MB
        return counted(count, "byte")
    for unit in ("kB", "MB", "GB"):
        count /= 1000
        if round(count) < 1000:
            return f"{count:.0f} {unit}"
    return f"{count / 1000:.1f} TB"


def check(
    name: str, changes: Mapping[str, object] = MappingProxyType({}), thorough: bool = False, root: Path = Path()
) -> Iterator[Finding]:
    """Check an experiment or a corpus, and yield what its work will take and what it needs; nothing is written.

    Args:
        name: the experiment or corpus.
        changes: changes to an experiment, as `override` takes them.
        thorough: also hash every file of the artifacts that are there.
        root: the folder that names and paths count from.

    Raises:
        IfqaError: nothing has that name; or, after the lines on all parts, something is unknown, missing or too large
            for this machine.
    """
    if find_resource(f"indexes/{name}.toml", root) and not find_resource(f"experiments/{name}.toml", root):
        if changes:
            raise IfqaError(
                f"{min(changes)} belongs to an experiment, and {name} is a corpus; change its indexes/{name}.toml"
            )
        build = CorpusBuild(load_corpus(name, root))
        indexes = build.corpus.indexes
        parts = [lambda: _check_corpus(build, indexes), lambda: found_needs(corpus_requirements(build.corpus, indexes))]
        yield from all_of(*parts, *([lambda: verify(build)] if thorough else []))
        return
    try:
        experiment = load_experiment(name, root)
    except IfqaError as error:
        files = (f"experiments/{name}.toml", f"experiments/{name}/experiment.toml")
        if "/" in name or any(find_resource(file, root) for file in files):
            raise
        known = {*list_resources("experiments", ".toml", root), *list_resources("indexes", ".toml", root)}
        raise unknown("experiment or corpus", name, known) from error
    changed = Run(override(experiment, changes))
    yield from all_of(lambda: _experiment(changed), *([lambda: verify(changed)] if thorough else []))


def _experiment(run: Run) -> Iterator[Finding]:
    experiment = run.experiment
    what, questions, problems = f"{experiment.benchmark} {experiment.split}", list[Question](), []
    try:
        questions = run.questions
        yield Finding(f"experiment {experiment.name}: {counted(len(questions), 'question')} of {what}")
    except IfqaError as error:  # the other parts are still checked
        problems.append(str(error))
        yield Finding(f"experiment {experiment.name}: questions of {what}, which cannot be read")
    system = System(run)
    parts = [partial(part, run, system, questions) for part in (_its_corpus, _its_retriever, _its_reader, _its_models)]
    try:
        yield from all_of(*parts)
    except IfqaError as error:
        problems.append(str(error))
    for stage in (*experiment.stages, "score"):
        made = run.is_made(stage)
        yield Finding(f"  {stage}: {'made' if made else 'to do'}", "stages", {"stage": stage, "made": made})
    yield from found_needs(requirements(run))
    if problems:
        raise IfqaError("; ".join(dict.fromkeys(problems)))


def _its_corpus(run: Run, system: System, questions: Sequence[Question]) -> Iterator[Finding]:
    experiment = run.experiment
    if not run.corpus:
        return
    for index in experiment.indexes:
        run.corpus.require_index(index)
    for found in _check_corpus(run.corpus, experiment.indexes):
        yield found._replace(line=f"  {found.line}")


def _its_retriever(run: Run, system: System, questions: Sequence[Question]) -> Iterator[Finding]:
    experiment = run.experiment
    if not experiment.retriever:
        return
    name, k = experiment.retriever["name"], experiment.retriever["k"]
    line, what = f"  retriever {name}, {counted(k, 'passage')} a question", f"retriever {name}"
    if run.is_made("retrieve"):
        yield forecasted(f"{line}: done", what, made=True)
        return
    yield forecasted(line, what)
    run.fingerprint("retriever")
    if experiment.asks_llm("retriever"):
        yield asked_of_model(system, _to_retrieve(run, system, questions) if questions else None, "retriever")


def _its_reader(run: Run, system: System, questions: Sequence[Question]) -> Iterator[Finding]:
    experiment = run.experiment
    if not experiment.reader:
        return
    name, each = experiment.reader["name"], counted(experiment.reader["passages"], "passage")
    line, what = f"  reader {name}, {each} a question", f"reader {name}"
    if run.is_made("read"):
        yield forecasted(f"{line}: done", what, made=True)
        return
    try:
        reader = system.reader
    except IfqaError:
        yield forecasted(line, what)
        raise
    passages = len(questions) * experiment.reader["passages"]
    rate = reader.pace() if questions else None
    taken = f": about {duration(passages / rate)}, no money" if rate else ""
    known = {"seconds": passages / rate, "cost": 0.0} if rate else {}
    yield forecasted(line + taken, what, **known)
    if experiment.asks_llm("reader"):
        requests = reader.requests(questions, _to_read(run, questions)) if questions else None
        yield asked_of_model(system, requests, "reader")


def _its_models(run: Run, system: System, questions: Sequence[Question]) -> Iterator[Finding]:
    refuse_other_families(run)
    if run.will_ask():
        system.session.llm(run).ready()
    return iter(())


def _to_retrieve(run: Run, system: System, questions: Sequence[Question]) -> list[Request]:
    """The requests that the retriever and its parts will send to a language model; no index is opened."""
    experiment = run.experiment
    assert experiment.retriever is not None
    requests: list[Request] = []
    for table in retriever_tables(experiment.retriever):
        if run.plugins.takes("retriever", table["name"], "llm"):
            llm = system.session.llm(run)
            given = {
                "llm": llm,
                "parts": [Part(Retriever(), one["k"]) for one in table.get("parts", ())],
                "passages": list,
            }
            part = opened(run.plugins.retriever(table["name"]), search_settings(table), experiment.root, **given)
            requests += part.requests(rewrite(questions, table.get("query", "question")), table["k"])
    return requests


def _to_read(run: Run, questions: Sequence[Question]) -> list[list[Passage]]:
    """The passages of each question for the reader; before retrieval, as many stand-ins of the usual length."""
    experiment = run.experiment
    assert experiment.reader is not None
    if not experiment.retriever:
        return [[] for _ in questions]
    count = experiment.reader["passages"]
    if run.is_made("retrieve"):
        return list(passages_of(experiment, (ranking[:count] for ranking in rankings_of(experiment, questions))))
    return [[Passage("", "Some title", "passage " * 100)] * count for _ in questions]


def asked_of_model(system: System, requests: Sequence[Request] | None, asker: str) -> Finding:
    """The calls, tokens and money that requests to the language model will take; None for requests that are unknown."""
    experiment = system.experiment
    assert experiment.llm is not None
    llm, name = system.session.llm(experiment), f"{experiment.llm['name']} {experiment.llm.get('model', '')}".strip()
    line, what = f"    llm {name}: ", f"llm {name} of the {asker}"
    if requests is None:
        return forecasted(f"{line}what it is asked is known once the questions can be read", what)
    taken = llm.estimate(requests)
    known = {
        "calls": taken.calls,
        "prompt_tokens": taken.prompt_tokens,
        "completion_tokens": taken.completion_tokens,
        "cost": taken.cost if taken.calls else 0.0,
    }
    if not taken.calls:
        kept = counted(len(requests), "completion is", "completions are")
        return forecasted(f"{line}nothing to ask, {kept} kept from before", what, made=True, **known)
    money = (
        "at an unknown price: add the model to a prices.toml here"
        if taken.cost is None
        else f"up to ${taken.cost:,.2f}"
    )
    line += (
        f"{counted(taken.calls, 'call')}, about {counted(taken.prompt_tokens, 'token')} of prompts and up to "
        f"{taken.completion_tokens:,} of answers, {money}"
    )
    return forecasted(line, what, **known)


def _check_corpus(build: CorpusBuild, indexes: Collection[str]) -> Iterator[Finding]:
    corpus = build.corpus
    workers = corpus.workers or cores()
    disk = seconds = memory = 0.0
    count: float | None = None
    problems = []
    passages, what = build.artifact("passages"), f"passages of {corpus.name}"
    try:
        sources = build.sources
        built = passages.manifest and passages.is_made_from(build.inputs("passages"))  # it hashes, so only if needed
        expected = None if built else estimate(sources)
    except IfqaError as error:
        problems.append(str(error))
        yield forecasted(f"corpus {corpus.name}: passages to build, when their sources can be read", what)
    else:
        if passages.manifest and built:
            count = passages.manifest["record"]["passages"]
            yield forecasted(
                f"corpus {corpus.name}: {counted(count, 'passage')}, built", what, made=True, passages=count
            )
        elif expected:
            count, disk = expected.passages, expected.disk
            seconds, memory = expected.seconds(workers), expected.memory(workers)
            yield Finding(
                f"corpus {corpus.name}: about {counted(expected.pages, 'page')} and {counted(count, 'passage')} to build "
                f"from {counted(len(corpus.sources), 'source')}, estimated from {expected.seen:.1%} of the input"
            )
            line = (
                f"  passages: about {size(disk)} of disk, {size(memory)} of memory, {duration(seconds)} with "
                f"{counted(workers, 'process', 'processes')}"
            )
            yield forecasted(line, what, passages=round(count), seconds=seconds, disk=disk, memory=memory)
    for name in indexes:
        what = f"index {name} of {corpus.name}"
        if build.is_made(name):
            yield forecasted(f"  index {name}: built", what, made=True)
            continue
        table, taken = corpus.indexes[name], None
        try:
            if count is not None:
                taken = corpus.plugins.indexed(table["retriever"]).forecast(round(count), **build_settings(table))
        except IfqaError as error:
            problems.append(str(error))
        if taken is None:
            yield forecasted(f"  index {name}: to build; time, disk and memory are unknown", what)
            continue
        line = (
            f"  index {name}: to build, about {size(taken.disk)} of disk, {size(taken.memory)} of memory, "
            f"{duration(taken.seconds)}{taken.about}"
        )
        yield forecasted(line, what, seconds=taken.seconds, disk=taken.disk, memory=taken.memory)
        disk, seconds, memory = disk + taken.disk, seconds + taken.seconds, max(memory, taken.memory)
    place = corpus.root.absolute()
    free = shutil.disk_usage(place).free
    if disk:
        line = f"  in all about {size(disk)} of disk ({size(free)} free), {size(memory)} of memory, {duration(seconds)}"
        yield forecasted(line, f"corpus {corpus.name} in all", seconds=seconds, disk=disk, memory=memory)
    if disk > free:
        problems.append(
            f"corpus {corpus.name} needs about {size(disk)} of disk, {size(free)} is free in {place}; "
            "make room or work on a larger disk"
        )
    if (here := total_memory()) and memory > here:
        problems.append(
            f"corpus {corpus.name} needs about {size(memory)} of memory, this machine has {size(here)}; "
            "use fewer workers: [passages] workers = 1"
        )
    if problems:
        raise IfqaError("; ".join(problems))


def verify(of: Run | CorpusBuild) -> Iterator[Finding]:
    """Hash every file of an experiment and its corpus, or of a corpus with its sources; a line and fields for each artifact.

    Raises:
        IfqaError: a file is missing, or not as it was written, or a source is not as it was read; after the lines on
            the others.
    """
    wrong: list[Path] = []
    errors: list[str] = []
    for artifact in _artifacts(of):
        folder = artifact.folder
        if (manifest := artifact.manifest) is None:
            continue
        found = list(damaged(folder, manifest, thorough=True))
        wrong += [folder / name for name in found]
        count = len(manifest["record"]["files"])
        others = strangers(folder)
        besides = f"; in no manifest, and not read: {', '.join(others[:5])}" + (" …" if len(others) > 5 else "")
        line = f"  {folder}: {len(found) or 'none'} of {count:,} files damaged{besides if others else ''}"
        yield Finding(line, "verified", {"what": str(folder), "files": count, "damaged": found, "strangers": others})
    if wrong:
        errors.append(f"not as they were written: {_few(wrong)}; remove their folders, and run the same command again")
    build = of if isinstance(of, CorpusBuild) else of.corpus
    if build and (manifest := build.artifact("passages").manifest):
        corpus = build.corpus
        read = {str(facts[2]) for facts in manifest["record"].get("sources", {}).values()}
        paths = [path for source in build.sources for path in source.files()]
        changed = [path for path in paths if cached_sha256(path) not in read]
        what = f"sources of {corpus.folder / 'passages'}"
        line = f"  {what}: {len(changed) or 'none'} of {len(paths):,} files changed"
        yield Finding(line, "verified", {"what": what, "files": len(paths), "changed": [str(path) for path in changed]})
        if changed:
            errors.append(
                f"not as they were when the passages were built: {_few(changed)}; bring back the files of then, or "
                f"touch these and build the passages again: ifqa passages {corpus.name}"
            )
    if errors:
        raise IfqaError("; ".join(errors))


def _few(paths: Sequence[Path]) -> str:
    return ", ".join(map(str, paths[:5])) + (" …" if len(paths) > 5 else "")


def _artifacts(of: Run | CorpusBuild) -> Iterator[Artifact]:
    build = of if isinstance(of, CorpusBuild) else of.corpus
    if build:
        yield from map(build.artifact, ("passages", *build.corpus.indexes))
    if isinstance(of, Run):
        yield from map(of.artifact, (*of.experiment.stages, "score"))
