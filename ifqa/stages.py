"""THE MAIN PATH: dump -> passages -> index -> retrieve -> read -> score.

Each arrow is a function here and a verb of the command line. They meet only on disk: each reads what the one before has
finished, and either finds that its own artifact was made from exactly that already, or makes it.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from ifqa import artifacts, sources
from ifqa.errors import IfqaError
from ifqa.experiment import Corpus, Experiment, check_sources, load_corpus, write_resolved
from ifqa.files import json_line, keep_whole_lines, sha256, write, write_json, write_jsonl, write_run
from ifqa.inputs import open_reader, open_retriever, passages_of, predictions_of, questions_of, rankings_of
from ifqa.passages import PassageStore, write_id_index, write_passages, write_shard
from ifqa.plugins import check_settings, load
from ifqa.progress import bar, say
from ifqa.provenance import finished, wanted_index, wanted_passages, wanted_read, wanted_retrieve, wanted_score
from ifqa.records import Passage, Prediction, Question
from ifqa.scoring import summary

SHARD = 20_000  # passages; a shard ends with an article, so its content depends on the input alone
NEGATIVES = 20  # passages a training question's negatives are drawn from
TRAIN_GIVEN = ("questions", "rankings", "folder", "setting", "sources", "seed", "progress")
CHUNK = 32  # questions a reader is given at a time, after which their predictions are safe on disk


def build_passages(corpus: Corpus) -> Path:
    """Sources to shards of passages, `indexes/NAME/passages/passages-00000.jsonl` …, and an index of their ids.

    Raises:
        IfqaError: a source is missing or broken, holds no passage, or two passages have the same id.
    """
    check_sources(corpus)
    folder = corpus.folder / "passages"
    wanted = wanted_passages(corpus)
    if _is_made(folder, wanted):
        return folder
    left_out: Counter[str] = Counter()
    with artifacts.make(folder, wanted) as work, bar(f"passages of {corpus.name}", None) as advance:
        articles = (article for source in corpus.sources for article in sources.read(source, left_out))
        counts = [write_shard(work.folder, n, shard) for n, shard in enumerate(_shards(articles, advance))]
        if not sum(counts):
            raise IfqaError(
                f"corpus {corpus.name}: its sources hold no passage; look at what indexes/{corpus.name}.toml names"
            )
        write_id_index(work.folder)
        work.made |= {"passages": sum(counts), "shards": len(counts), "left_out": dict(left_out)}
        work.made["sources"] = {str(p): sources.file_facts(p, {}) for s in corpus.sources for p in sources.files_of(s)}
    say(f"{folder}: {sum(counts):,} passages in {len(counts)} shards")
    return folder


def build_index(corpus: Corpus, name: str) -> Path:
    """Passages to one of the corpus's indexes, `indexes/NAME/INDEX/`.

    Raises:
        IfqaError: the corpus has no such index, or its passages are not built.
    """
    if name not in corpus.indexes:
        raise IfqaError(f"corpus {corpus.name} has no [index.{name}]; it has: {', '.join(corpus.indexes) or 'none'}")
    settings = dict(corpus.indexes[name])
    plug = load("retriever", settings.pop("retriever"))
    passages, folder = corpus.folder / "passages", corpus.folder / name
    wanted = wanted_index(corpus, name)
    if _is_made(folder, wanted):
        return folder
    with artifacts.make(folder, wanted) as work:
        plug.build(passages, work.folder, **settings)
        work.made["passages"] = finished(passages, "")["made"]["passages"]
    say(f"{folder}: {work.made['passages']:,} passages indexed")
    return folder


def retrieve(experiment: Experiment) -> Path:
    """Questions to rankings, `experiments/NAME/retrieve/run.trec`; and `passages.jsonl` where the retriever makes text.

    Raises:
        IfqaError: the index is not built, or was built from other passages than the corpus has now.
    """
    if experiment.retriever is None:
        raise IfqaError(f"experiment {experiment.name} has no [retriever]")
    folder, wanted = experiment.folder / "retrieve", wanted_retrieve(experiment)
    if _is_made(folder, wanted, experiment):
        return folder
    questions = questions_of(experiment)
    with artifacts.make(folder, wanted) as work:
        retriever = open_retriever(experiment)
        say(f"{folder}: searching for {len(questions):,} questions")
        rankings = retriever.search(questions, experiment.retriever["k"])
        if hasattr(retriever, "made_passages"):
            write_passages(work.folder / "passages.jsonl", retriever.made_passages(questions))
        ids = [question.id for question in questions]
        write_run(
            work.folder / "run.trec", dict(zip(ids, rankings, strict=True)), tag=f"ifqa-{experiment.retriever['name']}"
        )
        work.made |= {"questions": len(questions), "hits": sum(map(len, rankings))}
    say(f"{folder}: {work.made['hits']:,} passages for {len(questions):,} questions")
    return folder


def read(experiment: Experiment) -> Path:
    """Rankings to answers, `experiments/NAME/read/predictions.jsonl`; without a retriever the reader gets no passage.

    Raises:
        IfqaError: there is no run yet, a passage of it is in no store, or the reader was trained in another setting.
    """
    if experiment.reader is None:
        raise IfqaError(f"experiment {experiment.name} has no [reader]")
    folder, wanted = experiment.folder / "read", wanted_read(experiment)
    if _is_made(folder, wanted, experiment):
        return folder
    questions = questions_of(experiment)
    with artifacts.make(folder, wanted, resume=True) as work:
        rankings = rankings_of(experiment, questions)
        reader = open_reader(experiment)
        path = work.folder / "predictions.jsonl"
        done = keep_whole_lines(path, multiple_of=CHUNK)
        if done:
            say(f"{folder}: going on after {done:,} of {len(questions):,} questions")
        top = [ranking[: experiment.reader["passages"]] for ranking in rankings[done:]]
        passages = passages_of(experiment, top)
        with open(path, "ab") as handle, bar(f"reading {experiment.name}", len(questions)) as advance:
            advance(done)
            for start in range(done, len(questions), CHUNK):
                chunk = questions[start : start + CHUNK]
                for prediction in reader.answer(chunk, list(islice(passages, CHUNK))):
                    write(handle, json_line(asdict(prediction)))
                handle.flush()
                os.fsync(handle.fileno())
                advance(len(chunk))
        work.made["questions"] = len(questions)
    say(f"{folder}: {len(questions):,} questions answered")
    return folder


def score(experiment: Experiment) -> Path:
    """Run and predictions to `experiments/NAME/score/scores.json` and `per_question.jsonl`, over all of the questions.

    Raises:
        IfqaError: a stage before is not done, or its files are of other questions.
    """
    folder, wanted = experiment.folder / "score", wanted_score(experiment)
    if _is_made(folder, wanted, experiment):
        return folder
    questions = questions_of(experiment)
    benchmark = load("benchmark", experiment.benchmark)()
    with artifacts.make(folder, wanted) as work:
        rows: list[dict[str, Any]] = [{"id": question.id} | summary.kind(question) for question in questions]
        if experiment.retriever:
            rankings = rankings_of(experiment, questions)
            texts = ([passage.text for passage in ranking] for ranking in passages_of(experiment, rankings))
            for row, question, found in zip(rows, questions, texts, strict=True):
                row |= summary.retrieval(question, found, experiment.retriever["k"])
        if experiment.reader:
            for row, question, prediction in zip(rows, questions, predictions_of(experiment, questions), strict=True):
                row |= {
                    "failed": float(prediction.failed),
                    **benchmark.score(question, prediction),
                    "answer": prediction.answer,
                }
        depth = experiment.retriever["k"] if experiment.retriever else None
        scores = summary.summarise(rows, questions, depth, experiment.seed)
        scores |= {"experiment": experiment.name, "split": f"{experiment.benchmark}/{experiment.split}"}
        scores |= {"partial": bool(experiment.limit)}
        write_jsonl(work.folder / "per_question.jsonl", rows)
        write_json(work.folder / "scores.json", scores)
    return folder


def run(experiment: Experiment) -> Path:
    """Every stage of an experiment that is not done, in order; the score folder."""
    questions_of(experiment)  # what is wrong with them is said before hours of building
    with artifacts.lock(experiment.folder):
        if experiment.retriever and "index" in experiment.retriever:
            build(load_corpus(experiment.corpus), experiment.retriever["index"])
        if experiment.retriever:
            retrieve(experiment)
        if experiment.reader:
            read(experiment)
        return score(experiment)


def build(corpus: Corpus, index: str) -> Path:
    """The passages and one index of a corpus; the index folder."""
    build_passages(corpus)
    return build_index(corpus, index)


@dataclass(frozen=True)
class Asked:
    """One question's answer, and the passages it was read from, the most telling first."""

    prediction: Prediction
    evidence: list[Passage]


def ask(experiment: Experiment, text: str) -> Asked:
    """Answer one question with an experiment's retriever and reader, building the corpus first if it is not there.

    Raises:
        IfqaError: the question is empty, or the experiment has no reader.
    """
    if not text.strip():
        raise IfqaError('the question is empty; wanted something like: ifqa ask "If ..., ...?"')
    if experiment.reader is None:
        raise IfqaError(f"experiment {experiment.name} has no [reader]")
    question = Question("ask", text.strip())
    passages: list[Passage] = []
    if experiment.retriever:
        if "index" in experiment.retriever:
            build(load_corpus(experiment.corpus), experiment.retriever["index"])
        ranking = open_retriever(experiment).search([question], experiment.reader["passages"])
        passages = next(passages_of(experiment, ranking))
    prediction = open_reader(experiment).answer([question], [passages])[0]
    by_id = {passage.id: passage for passage in passages}
    return Asked(prediction, [by_id[passage_id] for passage_id in prediction.passage_ids])


def train_extractive(
    benchmark: str, split: str, corpus: Corpus, folder: Path, seed: int, settings: dict[str, Any]
) -> Path:
    """Train the span reader on a benchmark's split, with BM25's best passages of a corpus as negatives.

    Raises:
        IfqaError: a setting is unknown, the corpus has no index named bm25, or the folder holds another training.
    """
    from ifqa.training.extractive import train

    check_settings("training setting", train, settings, given=TRAIN_GIVEN)
    source = load("benchmark", benchmark)()
    questions = source.questions(split)
    index = build(corpus, "bm25")
    say(f"{folder}: searching negatives for {len(questions):,} questions")
    rankings = load("retriever", "bm25")(index).search(questions, NEGATIVES)
    store = PassageStore(corpus.folder / "passages")
    negatives = [store.get([hit.passage_id for hit in ranking]) for ranking in rankings]
    files = {str(source.path(split)): sha256(source.path(split))}
    with artifacts.lock(folder):
        train(
            questions,
            negatives,
            folder,
            setting=source.setting(split),
            sources=files,
            seed=seed,
            progress=say,
            **settings,
        )
    return folder


def _is_made(folder: Path, wanted: dict[str, Any], experiment: Experiment | None = None) -> bool:
    """Whether an artifact is there, made from exactly this; taken over from the experiment this one is a variant of."""
    if experiment and experiment.base:
        write_resolved(experiment)
        if not artifacts.is_made(folder, wanted) and artifacts.take_over(
            folder, wanted, Path("experiments") / experiment.base / folder.name
        ):
            say(f"{folder}: taken over from {experiment.base}")
            return True
    if artifacts.is_made(folder, wanted):
        say(f"{folder}: nothing to do, made from exactly this before")
        return True
    return False


def _shards(articles: Iterator[list[Passage]], advance: Callable[[float], None]) -> Iterator[list[Passage]]:
    """Passages in shards of about SHARD, never cutting an article, so what is in one does not depend on who builds it."""
    shard: list[Passage] = []
    for article in articles:
        shard += article
        advance(len(article))
        if len(shard) >= SHARD:
            yield shard
            shard = []
    if shard:
        yield shard
