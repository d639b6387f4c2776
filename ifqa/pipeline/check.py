"""`ifqa check`: requirements of an experiment or a corpus, and estimates of time, disk, memory and
cost.

The number of passages is estimated from a sample of the sources: about a dozen files of a dump, or
the first 20,000 gold passages. The other rates were measured on a corpus of 410,612 passages on two
cores; they only tell minutes from days.
"""

import os
import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import psutil
from rich.filesize import decimal

from ifqa.config.corpus import ConfiguredIndex, CorpusConfig, load_corpus
from ifqa.config.experiment import ConfiguredJudge, load_experiment
from ifqa.config.overrides import override
from ifqa.corpus.sources import BuildEstimate, estimate_build, published_build
from ifqa.errors import ConfigError, IfqaError, ServiceError
from ifqa.formatting import format_duration, pluralize
from ifqa.models.places import FIRST_USE
from ifqa.pipeline.corpus_build import CorpusBuild
from ifqa.pipeline.index import Index
from ifqa.pipeline.judge import judge_requests, judged_answers, require_judge
from ifqa.pipeline.opening import refuse_other_families
from ifqa.pipeline.passages import PASSAGES
from ifqa.pipeline.read import READ
from ifqa.pipeline.retrieve import RETRIEVE
from ifqa.pipeline.run import Run
from ifqa.pipeline.score import SCORE
from ifqa.pipeline.served import refuse_other_server
from ifqa.pipeline.session import Session
from ifqa.pipeline.stage_outputs import passages_of, predictions_of, rankings_of
from ifqa.pipeline.stages import will_ask
from ifqa.pipeline.system import System
from ifqa.plugins import ConfiguredPlugin, Plugins
from ifqa.protocols import LanguageModel, Requirement, Retriever
from ifqa.records import BuildCost, Estimate, Passage, Prediction, Request
from ifqa.retrieval.composition import Part
from ifqa.retrieval.queries import rewrite_questions
from ifqa.storage.artifacts import compute_fingerprint
from ifqa.storage.resources import describe_environment, find_resource
from ifqa.workers.hardware import cores
from ifqa.workers.pool import Engine, Workers, ask_nodes

_FETCH = re.compile(r"ifqa data [\w.-]+")  # the command in a message that fetches what is missing


@dataclass(frozen=True)
class Work:
    """A part of the work and its estimates in seconds, bytes and US dollars; None if unknown."""

    what: str
    made: bool = False
    passages: int | None = None
    seconds: float | None = None
    disk: float | None = None
    memory: float | None = None
    calls: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None
    note: str = ""

    def __str__(self) -> str:
        facts = [
            pluralize(self.passages, "passage") if self.passages is not None else "",
            f"{decimal(round(self.disk))} of disk" if self.disk else "",
            f"{decimal(round(self.memory))} of memory" if self.memory else "",
            format_duration(self.seconds) if self.seconds is not None and not self.made else "",
        ]
        if self.calls:
            prompt = self.prompt_tokens or 0
            facts.append(str(Estimate(self.calls, prompt, self.completion_tokens or 0, self.cost)))
        facts = [*filter(None, facts)]
        listed = ", ".join(filter(None, [*facts, self.note]))
        if self.made:
            return f"  done   {self.what}" + (f": {listed}" if listed else "")
        about = "about " if facts else ""
        return f"  to do  {self.what}" + (f": {about}{listed}" if listed else "")


Finding = str | Work | Requirement
_SHARED = "once, with a run above"
_STAND_IN = "some answer of a few words, before there is one"


def total_work(work: Sequence[Work], runs: int) -> Work | None:
    """The calls, tokens and cost of several runs together; None if they ask no language model."""
    asked = [part for part in work if part.calls is not None]
    if not asked:
        return None
    costs = [part.cost for part in asked]
    return Work(
        f"all {runs} runs together",
        calls=sum(part.calls or 0 for part in asked),
        prompt_tokens=sum(part.prompt_tokens or 0 for part in asked),
        completion_tokens=sum(part.completion_tokens or 0 for part in asked),
        cost=None if None in costs else sum(cost or 0.0 for cost in costs),
        note="" if any(part.calls for part in asked) else "all completions are in the cache",
    )


def findings_json(name: str, findings: Sequence[Finding], problem: str) -> dict[str, object]:
    """The findings of `check` and its error ("" for none), as JSON data."""
    needs = [requirement_json(need) for need in findings if isinstance(need, Requirement)]
    work = [asdict(part) for part in findings if isinstance(part, Work)]
    missing = sum(not need["here"] for need in needs)
    fetch = fetch_commands(str(need["how"]) for need in needs)
    report = {"name": name, "work": work, "needs": needs, "missing": missing}
    return {**report, "fetch": fetch, "problem": problem}


def requirement_json(need: Requirement) -> dict[str, object]:
    return {"what": need.name, "here": need.present, "how": need.remedy}


def check(
    name: str,
    changes: Mapping[str, object] = MappingProxyType({}),
    root: Path = Path(),
    engine: str | None = None,
    shared: set[str] | None = None,
    session: Session | None = None,
) -> Iterator[Finding]:
    """Check an experiment or a corpus; yields its estimates and requirements, and writes nothing.

    `changes` change an experiment's settings, as in `override`. With `engine` "ray", the
    requirements are those of each node of the cluster, and differences of its versions from this
    machine's. `shared` has the fingerprints of the stages of earlier checks, whose work this one
    shares, and gets those of this one; `session` has the models that they opened. The last line
    names the commands that fetch what is missing. IfqaError if the name is unknown; or, after all
    other checks, if something is wrong, too large for this machine, or missing and not to be
    fetched by ifqa.
    """
    parts: list[Callable[[], Iterable[Finding]]]
    problems: list[str] = []
    if _is_corpus(name, root):
        if changes:
            raise ConfigError(
                f"{min(changes)} belongs to an experiment; {name} is a corpus: "
                f"edit indexes/{name}.toml"
            )
        build = CorpusBuild(load_corpus(name, root))
        corpus = build.corpus
        yield f"corpus {name}"
        parts = [partial(_check_corpus, build, corpus.indexes, problems)]
        here = partial(_corpus_requirements, corpus, corpus.indexes)
    else:
        run = Run(override(load_experiment(name, root), changes))
        experiment = run.experiment
        yield f"experiment {experiment.name}: {experiment.benchmark} {experiment.split}"
        system = System(run, session)
        parts = []
        if run.corpus:
            parts.append(partial(_check_corpus, run.corpus, experiment.indexes, problems))
        if conversion := _pending_conversion(run):
            parts.append(partial(_work_after_conversion, run, conversion))
        else:
            parts += [
                partial(_check_retrieval, run, system, set() if shared is None else shared),
                partial(_check_reading, run, system, set() if shared is None else shared),
                partial(_check_scoring, run, system),
            ]
        here = partial(requirements, run)
    Workers(engine=cast("Engine", engine or "local"))  # raises for an unknown engine
    parts.append(
        partial(_node_requirements, name, changes, root.absolute()) if engine == "ray" else here
    )
    yield from _check_parts(parts, problems)


def _check_parts(
    parts: Iterable[Callable[[], Iterable[Finding]]], problems: list[str]
) -> Iterator[Finding]:
    """The findings of all parts, and the commands that fetch what is missing.

    IfqaError has the problems that no command of ifqa mends, each once.
    """
    missing: list[Requirement] = []
    for part in parts:
        try:
            for finding in part():
                if isinstance(finding, Requirement) and not finding.present:
                    missing.append(finding)
                yield finding
        except IfqaError as error:
            problems.append(str(error))
    for need in missing:
        if not any(need.name in problem or need.remedy in problem for problem in problems):
            problems.append(f"{need.name}: {need.remedy}")
    if commands := fetch_commands(problems):
        yield f"  fetch    {' && '.join(commands)}"
    if lacking := [problem for problem in dict.fromkeys(problems) if not _is_fetched(problem)]:
        raise IfqaError("; ".join(lacking))


def fetch_commands(problems: Iterable[str]) -> list[str]:
    """The commands by which these problems say that ifqa fetches what is missing, each once."""
    found = (command for problem in problems for command in _FETCH.findall(problem))
    return list(dict.fromkeys(found))


def _is_fetched(problem: str) -> bool:
    """Whether something is only missing until ifqa fetches it."""
    return bool(_FETCH.search(problem)) or FIRST_USE in problem


def _check_corpus(
    build: CorpusBuild, indexes: Collection[str], problems: list[str]
) -> Iterator[Finding]:
    """The passages and indexes of a corpus; what is missing is appended to `problems`."""
    corpus = build.corpus
    workers = build.corpus.workers or cores()
    todo = list[Work]()
    for name in indexes:
        build.index(name)  # raises if the corpus has no such index
    what = f"passages of {corpus.name}"
    sources_missing = False
    if build.is_current(PASSAGES):
        count = build.finished(PASSAGES)["record"]["passages"]
        yield Work(what, True, count)
    else:
        expected, how = _estimate_passages(build, problems)
        sources_missing = expected.seen == 0
        count = round(expected.passages)
        seconds = expected.seconds(workers)
        memory = expected.memory(workers)
        note = f"with {pluralize(workers, 'worker')}, {how}"
        todo.append(Work(what, False, count, seconds, expected.disk, memory, note=note))
        yield todo[0]
    for name in indexes:
        index = build.index(name)
        what = f"index {name} of {corpus.name}"
        # The passages decide whether an index is current
        if not sources_missing and build.is_current(Index(name)):
            yield Work(what, True)
        elif cost := _estimate_index(index, count, problems):
            note = cost.about.strip(" ;,")
            todo.append(Work(what, False, None, cost.seconds, cost.disk, cost.memory, note=note))
            yield todo[-1]
        else:
            yield Work(what)
    folder = corpus.root.absolute()
    disk = sum(part.disk or 0.0 for part in todo)
    memory = max([part.memory or 0.0 for part in todo], default=0.0)
    if len(todo) > 1:
        yield Work(
            f"all of {corpus.name}",
            False,
            None,
            sum(part.seconds or 0 for part in todo),
            disk,
            memory,
        )
    if disk > (free := shutil.disk_usage(folder).free):
        needs = f"corpus {corpus.name} needs about {decimal(round(disk))} of disk"
        raise IfqaError(f"{needs}, but {decimal(free)} is free in {folder}; make room")
    if memory > (available := psutil.virtual_memory().total):
        needs = f"corpus {corpus.name} needs about {decimal(round(memory))} of memory"
        has = f"this machine has {decimal(round(available))}"
        raise IfqaError(f"{needs}, but {has}; use fewer workers: [passages] workers = 1")


def _estimate_passages(build: CorpusBuild, problems: list[str]) -> tuple[BuildEstimate, str]:
    """The cost of a corpus's passages, and what it is estimated from.

    A published source that is not fetched yet has a known size; that it is missing is appended to
    `problems`. Raises IfqaError for any other source that cannot be read.
    """
    try:
        expected = estimate_build(build.sources)
    except IfqaError as error:
        published = published_build(build.corpus.sources)
        if published is None:
            raise
        problems.append(str(error))
        return published, "from the published size, by measured rates"
    return expected, f"estimated from {expected.seen:.1%} of the input"


def _estimate_index(index: ConfiguredIndex, passages: int, problems: list[str]) -> BuildCost | None:
    """The cost of an index; None if unknown.

    An error, such as that of an encoder which cannot be reached, is appended to `problems`: the
    other indexes keep their estimates.
    """
    try:
        return index.plugin.forecast(passages, index.local_settings)
    except IfqaError as error:
        problems.append(str(error))
    try:
        return index.plugin.expected_cost(passages, index.local_settings)
    except IfqaError as error:
        problems.append(str(error))
    return None


def _pending_conversion(run: Run) -> str:
    """What opening the experiment's language model would write first.

    Empty if nothing, or if it asks none.
    """
    model = run.experiment.llm
    if not (model and run.experiment.asks_llm):
        return ""
    return model.plugin.conversion(model.local_settings, model.root)


def _work_after_conversion(run: Run, conversion: str) -> Iterator[Finding]:
    """The stages of an experiment whose language model has to be converted, which only a run does.

    Nothing is estimated.
    """
    yield Work(
        f"{conversion}, once, by the first run; what the model takes is estimated after that"
    )
    if retriever := run.experiment.retriever:
        yield Work(f"retrieve with {retriever.name}")
    if reader := run.experiment.reader:
        yield Work(f"read with {reader.name}")
    yield Work(f"score {pluralize(len(run.questions), 'question')}")


def _check_retrieval(run: Run, system: System, shared: set[str]) -> Iterator[Finding]:
    retriever = run.experiment.retriever
    if retriever is None:
        return
    refuse_other_server(run, RETRIEVE)
    done = run.is_current(RETRIEVE)
    is_shared = _is_shared(run, [retriever], shared)
    note = _SHARED if is_shared and not done else ""
    yield Work(f"retrieve with {retriever.name}", done, note=note)
    if done or is_shared:
        return
    if retriever.taking("llm"):
        yield estimate_requests(run, system, _requests_to_retrieve(run, system), "retriever")


def _is_shared(run: Run, plugins: Sequence[ConfiguredPlugin[Any]], shared: set[str]) -> bool:
    """Whether an earlier check counted the stage that these plugins make; else notes it.

    IfqaError if one of their files is missing.
    """
    inputs: dict[str, object] = {plugin.kind: run.fingerprint(plugin) for plugin in plugins}
    inputs |= {"questions": run.questions_identity, "corpus": run.experiment.corpus}
    stage = compute_fingerprint(inputs)
    if stage in shared:
        return True
    shared.add(stage)
    return False


def _check_reading(run: Run, system: System, shared: set[str]) -> Iterator[Finding]:
    refuse_other_families(run)
    configured = run.experiment.reader
    if configured is None:
        return
    refuse_other_server(run, READ)
    what = f"read with {configured.name}"
    done = run.is_current(READ)
    is_shared = _is_shared(run, run.experiment.asked, shared)
    yield Work(what, done, note=_SHARED if is_shared and not done else "")
    if done or is_shared:
        return
    reader = system.reader
    if configured.takes("llm"):
        yield estimate_requests(
            run, system, reader.requests(run.questions, _passages_to_read(run)), "reader"
        )


def _check_scoring(run: Run, system: System) -> Iterator[Finding]:
    done = run.is_current(SCORE)
    yield Work(f"score {pluralize(len(run.questions), 'question')}", done)
    if run.experiment.judge and not done:
        yield from _check_judge(run, run.experiment.judge, system.session)
    if will_ask(run):
        yield from _check_servers(system.model)


def _check_judge(run: Run, judge: ConfiguredJudge, session: Session) -> Iterator[Finding]:
    """What judging the answers takes; before reading, at most: each question has an answer that is
    no exact match.
    """
    require_judge(run)
    what = f"llm {judge.model.name} {judge.name} of the judge"
    if judge.model.plugin.conversion(judge.model.local_settings, judge.model.root):
        yield Work(what, note="its weights are converted by the first run")
        return
    model = session.model(judge.model)
    if run.is_current(READ):
        predictions = list(predictions_of(run.experiment, run.questions))
    else:
        predictions = [Prediction(question.id, _STAND_IN) for question in run.questions]
    answers = judged_answers(run.questions, predictions)
    requests = judge_requests(run, [each for each in answers if not each.is_exact], model)
    yield _asked_work(what, model, [request for request in requests if request])
    yield from _check_servers(model)


def _check_servers(llm: LanguageModel) -> Iterator[Finding]:
    """The servers of a language model; ServiceError if one lacks something."""
    llm.check_ready()
    servers = list(llm.check_servers())
    yield from servers
    if lacking := [f"{server.name}: {server.remedy}" for server in servers if not server.present]:
        raise ServiceError("; ".join(lacking))


def _requests_to_retrieve(run: Run, system: System) -> list[Request]:
    """The requests that the retriever and its parts will send to a language model.

    No index is opened.
    """
    requests: list[Request] = []
    for step in run.require_retriever().steps:
        if step.takes("llm"):
            parts = [Part(Retriever(), part.k) for part in step.parts]
            retriever = step.open(llm=system.model, parts=parts, passages=list)
            questions = rewrite_questions(run.questions, step.query)
            requests += retriever.requests(questions, step.k)
    return requests


def _passages_to_read(run: Run) -> list[list[Passage]]:
    """The passages of each question for the reader.

    Before retrieval, stand-ins of the usual number and length.
    """
    experiment = run.experiment
    count = run.require_reader().passages
    if experiment.retriever and run.is_current(RETRIEVE):
        rankings = rankings_of(experiment, run.questions)
        return list(passages_of(experiment, (ranking[:count] for ranking in rankings)))
    stand_ins = (
        [Passage("", "Some title", "passage " * 100)] * count if experiment.retriever else []
    )
    return [stand_ins for _ in run.questions]


def estimate_requests(run: Run, system: System, requests: Sequence[Request], asker: str) -> Work:
    name = f"{run.require_model().name} {run.experiment.llm_setting('model', '')}".strip()
    return _asked_work(f"llm {name} of the {asker}", system.model, requests)


def _asked_work(what: str, model: LanguageModel, requests: Sequence[Request]) -> Work:
    """What requests to a model take, or that their completions are stored."""
    estimate = model.estimate(requests)
    if estimate.calls:
        return Work(what, **estimate._asdict())
    note = f"{pluralize(len(requests), 'completion is', 'completions are')} in the cache"
    return Work(what, True, calls=0, prompt_tokens=0, completion_tokens=0, cost=0.0, note=note)


def _is_corpus(name: str, root: Path) -> bool:
    """Whether a name is a corpus's; an experiment of the same name goes first."""
    return bool(
        find_resource(f"indexes/{name}.toml", root)
        and not find_resource(f"experiments/{name}.toml", root)
    )


def _requirements_of(name: str, changes: Mapping[str, object], root: Path) -> list[Requirement]:
    if _is_corpus(name, root):
        corpus = load_corpus(name, root)
        return _corpus_requirements(corpus, corpus.indexes)
    return requirements(Run(override(load_experiment(name, root), changes)))


def inspect_node(
    task: tuple[str, Mapping[str, object], Path],
) -> tuple[list[Requirement], dict[str, object]]:
    """The requirements on the machine that runs this, and its versions."""
    name, changes, root = task
    try:
        os.chdir(root)
        needs = _requirements_of(name, changes, Path())
    except (IfqaError, OSError) as error:
        needs = [
            Requirement(str(root), f"{error}; every node must see this folder under this path")
        ]
    return needs, _versions()


def _versions() -> dict[str, object]:
    environment = describe_environment(0)
    return {key: environment[key] for key in ("ifqa", "commit", "python", "libraries")}


def _node_requirements(
    name: str, changes: Mapping[str, object], root: Path
) -> Iterator[Requirement]:
    """Those of each node of the Ray cluster."""
    mine = _versions()
    for node, answer in ask_nodes(inspect_node, (name, changes, root)):
        if isinstance(answer, str):
            yield Requirement(f"node {node}", f"{answer}; install the same ifqa there as here")
            continue
        needs, versions = answer
        yield from (Requirement(f"node {node}: {need.name}", need.remedy) for need in needs)
        differing = [
            f"{key} {versions[key]}, here {mine[key]}" for key in mine if versions[key] != mine[key]
        ]
        yield Requirement(f"node {node}: the same versions as here", "; ".join(differing))


def requirements(run: Run) -> list[Requirement]:
    """The requirements of an experiment, without duplicates; nothing is loaded."""
    experiment = run.experiment
    plugins = run.plugins
    needs = [_split_requirement(experiment.benchmark, experiment.split, plugins)]
    if run.corpus:
        needs += _corpus_requirements(run.corpus.corpus, experiment.indexes)
    for step in experiment.retriever.steps if experiment.retriever else ():
        needs += step.requirements()
    if experiment.reader:
        needs += experiment.reader.requirements()
    if experiment.llm:
        needs += experiment.llm.requirements()
    if experiment.judge:
        needs += experiment.judge.model.requirements()
    return list(dict.fromkeys(needs))


def _corpus_requirements(corpus: CorpusConfig, indexes: Collection[str]) -> list[Requirement]:
    """The requirements of a corpus and of these indexes, without duplicates."""
    needs: list[Requirement] = []
    for source in corpus.sources:
        if splits := source.splits():
            needs += (
                _split_requirement(benchmark, split, corpus.plugins) for benchmark, split in splits
            )
            continue
        name = source.path or f"a source of {corpus.name}"
        remedy = ""
        try:
            _ = CorpusBuild(replace(corpus, sources=(source,))).sources
        except IfqaError as error:
            remedy = str(error)
            if corpus.about and not _FETCH.search(remedy):
                remedy += f" ({corpus.about.rstrip('.')})"
        needs.append(Requirement(name, remedy))
    for name in indexes:
        if name in corpus.indexes:
            index = corpus.indexes[name]
            needs += index.plugin.build_requirements(
                corpus.folder / name, index.local_settings, corpus.root
            )
    return list(dict.fromkeys(needs))


def _split_requirement(benchmark: str, split: str, plugins: Plugins) -> Requirement:
    name = f"{benchmark} {split}"
    try:
        files = plugins.benchmark(benchmark).files(split)
    except IfqaError as error:
        return Requirement(name, str(error).removeprefix(f"{name}: "))
    lacking = [str(path) for path in files if not path.exists()]
    return Requirement(name, f"{', '.join(lacking)} is missing; put it there" if lacking else "")
