"""`ifqa check`: validate an experiment or a corpus, list what it needs, and estimate its time, disk, memory and cost.

The number of passages is estimated from a sample of the sources. The other rates were measured on a corpus of 410,612 passages
on two cores. They tell minutes from days; every estimate is printed with "about".
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from ifqa.config.corpus import load_corpus
from ifqa.config.experiment import load_experiment, retriever_tables, search_settings
from ifqa.config.overrides import override
from ifqa.errors import IfqaError, unknown
from ifqa.pipeline.corpus_check import check_corpus
from ifqa.pipeline.findings import Finding, all_of, forecasted, found_needs
from ifqa.pipeline.ready import needs, needs_of_corpus
from ifqa.pipeline.run import CorpusBuild, Run
from ifqa.pipeline.stage_inputs import passages_of, rankings_of
from ifqa.pipeline.system import System, opened, refuse_other_families
from ifqa.pipeline.verify import verify
from ifqa.progress import counted, duration
from ifqa.protocols import Retriever
from ifqa.records import Passage, Question, Request
from ifqa.retrieval.parts import Part
from ifqa.retrieval.queries import rewrite
from ifqa.storage.resources import find_resource, list_resources


def check(name: str, changes: Mapping[str, object] = MappingProxyType({}), thorough: bool = False) -> Iterator[Finding]:
    """Check an experiment or a corpus, and yield what its work will take and what it needs; nothing is written.

    Args:
        name: the experiment or corpus.
        changes: changes to an experiment, as `override` takes them.
        thorough: also hash every file of the artifacts that are there.

    Raises:
        IfqaError: nothing has that name; or, after the lines on all parts, something is unknown, missing or too large
            for this machine.
    """
    if find_resource(f"indexes/{name}.toml") and not find_resource(f"experiments/{name}.toml"):
        if changes:
            raise IfqaError(
                f"{min(changes)} belongs to an experiment, and {name} is a corpus; change its indexes/{name}.toml"
            )
        build = CorpusBuild(load_corpus(name))
        indexes = build.corpus.indexes
        parts = [lambda: check_corpus(build, indexes), lambda: found_needs(needs_of_corpus(build, indexes))]
        yield from all_of(*parts, *([lambda: _verified(build)] if thorough else []))
        return
    try:
        experiment = load_experiment(name)
    except IfqaError as error:
        files = (f"experiments/{name}.toml", f"experiments/{name}/experiment.toml")
        if "/" in name or any(map(find_resource, files)):
            raise
        known = {*list_resources("experiments", ".toml"), *list_resources("indexes", ".toml")}
        raise unknown("experiment or corpus", name, known) from error
    changed = Run(override(experiment, changes))
    yield from all_of(lambda: _experiment(changed), *([lambda: _verified(changed)] if thorough else []))


def _verified(of: Run | CorpusBuild) -> Iterator[Finding]:
    for line, fields in verify(of):
        yield Finding(line, "verified", fields)


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
    yield from found_needs(needs(run))
    if problems:
        raise IfqaError("; ".join(dict.fromkeys(problems)))


def _its_corpus(run: Run, system: System, questions: Sequence[Question]) -> Iterator[Finding]:
    experiment = run.experiment
    if not run.corpus:
        return
    for index in experiment.indexes:
        run.corpus.require_index(index)
    for found in check_corpus(run.corpus, experiment.indexes):
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
