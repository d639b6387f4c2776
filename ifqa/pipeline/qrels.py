"""Relevance judgements by gold recall's rule: of a run's passages, or of all passages of a corpus.

A passage that covers a gold passage of a question is relevant to it (1). Judgements of a run depend
on what it retrieved; those of a corpus hold for every run over it.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from ifqa.config.corpus import load_corpus
from ifqa.config.experiment import Experiment
from ifqa.corpus.passage_store import list_shards, parse_passage
from ifqa.errors import MissingInput
from ifqa.formats.runs import write_qrels
from ifqa.formatting import pluralize
from ifqa.pipeline.corpus_build import CorpusBuild
from ifqa.pipeline.passages import open_store
from ifqa.pipeline.stage_outputs import passages_of
from ifqa.progress import bar, report
from ifqa.records import Hit, Question, gold_id
from ifqa.scoring.gold_overlap import GoldIndex, covers
from ifqa.workers.pool import map_tasks

_REPORT_LINES = 1_000  # passages between reports of progress within a shard

Judgements = dict[str, dict[str, int]]  # question id -> passage id -> relevance


def judge_run(
    experiment: Experiment,
    questions: Sequence[Question],
    rankings: Sequence[Sequence[Hit]],
    to: Path,
) -> str:
    """Write qrels of a run; returns a summary.

    A retrieved passage that covers a gold passage is relevant (1), any other is not (0).

    Passages that were not retrieved are not judged, except gold passages that the corpus holds
    under their ids `gold/…`: they are relevant whether retrieved or not.
    """
    judged: Judgements = {}
    held = set[str]()
    if experiment.corpus:
        golds = {gold_id(text) for question in questions for text in question.gold_passages}
        build = CorpusBuild(load_corpus(experiment.corpus, experiment.root))
        held = set(open_store(build).find(golds))
    for question, passages in zip(questions, passages_of(experiment, rankings), strict=True):
        if golds := set(question.gold_passages):
            judged[question.id] = {
                passage.id: int(any(covers(passage.text, gold) for gold in golds))
                for passage in passages
            }
            judged[question.id] |= {
                name: 1 for text in question.gold_passages if (name := gold_id(text)) in held
            }
    summary = _write(to, questions, judged)
    return f"{summary}; passages that the run did not retrieve are not judged"


def judge_corpus(corpus: str, questions: Sequence[Question], to: Path) -> str:
    """Write qrels of all passages of a corpus; returns a summary.

    Each passage that covers a gold passage is relevant (1); the others, which no line names, are
    not. The corpus is read once, shard by shard, by the processes that its file sets.
    """
    loaded = load_corpus(corpus)
    shards = list_shards(open_store(CorpusBuild(loaded)).path).values()
    golds = tuple(dict.fromkeys(text for question in questions for text in question.gold_passages))
    sizes = {str(path): path.stat().st_size for path in shards}
    relevant: dict[str, list[str]] = {}  # gold passage -> passages that cover it
    if golds:
        tasks = ((path, golds) for path in sizes)
        with bar(f"judging {corpus}", sum(sizes.values()), unit="bytes") as advance:
            for (path, _), pairs in map_tasks(_judge_shard, tasks, workers=loaded.workers):
                for gold, passage_id in pairs:
                    relevant.setdefault(gold, []).append(passage_id)
                advance(sizes[path])
    judged: Judgements = {}
    for question in questions:
        if question.gold_passages:
            covering = {name for gold in question.gold_passages for name in relevant.get(gold, ())}
            judged[question.id] = dict.fromkeys(sorted(covering), 1)
    summary = _write(to, questions, judged)
    return f"{summary}; all passages of {corpus} are judged: those without a line are not relevant"


def _judge_shard(task: tuple[str, tuple[str, ...]]) -> list[tuple[str, str]]:
    """Each gold passage with the id of a passage in a shard that covers it."""
    path, golds = task
    index = _gold_index(golds)
    pairs = []
    read = 0
    with open(path, "rb") as lines:
        for number, line in enumerate(lines, start=1):
            read += len(line)
            if number % _REPORT_LINES == 0:
                report(path, read)
            if line.strip():
                passage = parse_passage(line, f"{path}:{number}")
                pairs += [(gold, passage.id) for gold in index.covered_by(passage.text)]
    return pairs


@lru_cache(maxsize=1)  # a worker judges many shards by the same gold passages
def _gold_index(golds: tuple[str, ...]) -> GoldIndex:
    return GoldIndex(golds)


def _write(to: Path, questions: Sequence[Question], judged: Mapping[str, dict[str, int]]) -> str:
    """Write judgements of the questions that have gold passages; returns a summary.

    Tools average over the questions in qrels, so a question without a line would silently not
    count: its first gold passage gets the relevance 0 under the id `gold/…`.
    """
    if not judged:
        raise MissingInput(
            f"qrels judge by gold passages, and none of the {len(questions):,} questions has one"
        )
    lines = write_qrels(to, dict(_with_a_line_each(questions, judged)))
    relevant = sum(sum(grades.values()) for grades in judged.values())
    without = sum(not any(grades.values()) for grades in judged.values())
    left_out = (
        f"; {len(questions) - len(judged):,} left out: no gold passage"
        if len(judged) < len(questions)
        else ""
    )
    summary = f"{to}: {pluralize(lines, 'judgement')}, {relevant:,} relevant, of "
    summary += pluralize(len(judged), "question")
    return f"{summary}, {without:,} of them without a relevant passage{left_out}"


def _with_a_line_each(
    questions: Sequence[Question], judged: Mapping[str, dict[str, int]]
) -> Iterator[tuple[str, dict[str, int]]]:
    for question in questions:
        if question.id in judged:
            yield (
                question.id,
                judged[question.id] or {gold_id(question.gold_passages[0]): 0},
            )
