"""What stages find when they start: questions, sources, and the files of the stages before; and what plugins must give."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import cast

from ifqa.config.corpus import Corpus
from ifqa.config.experiment import Experiment
from ifqa.corpus import sources
from ifqa.corpus.sources import Source
from ifqa.corpus.store import PassageFile, PassageStore, Store, fetch
from ifqa.errors import IfqaError
from ifqa.formats.runs import read_run
from ifqa.plugins import open_benchmark
from ifqa.records import Answer, Hit, Passage, Prediction, Question
from ifqa.retrieval.queries import rewrite
from ifqa.settings import with_fractions
from ifqa.storage.files import read_jsonl, unicode_text
from ifqa.storage.resources import find_resource


def questions_of(experiment: Experiment) -> list[Question]:
    """The experiment's questions, in the benchmark's order.

    Raises:
        IfqaError: the split's file is missing or wrong, or a question that the experiment names is not in it.
    """
    questions = open_benchmark(experiment.benchmark, experiment.root).questions(experiment.split)
    if missing := set(experiment.questions) - {question.id for question in questions}:
        raise IfqaError(
            f"experiment {experiment.name}: {experiment.benchmark} {experiment.split} has no question {min(missing)!r}; "
            "its ids are as ifqa/full-dev/17"
        )
    if experiment.questions:
        questions = [question for question in questions if question.id in set(experiment.questions)]
    return questions[: experiment.limit or None]


def split_size(experiment: Experiment) -> int:
    """How many questions its split has, of which it may ask some only."""
    return len(questions_of(replace(experiment, limit=0, questions=())))


def queries_of(experiment: Experiment, questions: Sequence[Question]) -> list[Question]:
    """The questions as the experiment's retriever is asked them."""
    assert experiment.retriever is not None
    return rewrite(questions, experiment.retriever.get("query", "question"))


def sources_of(corpus: Corpus) -> list[Source]:
    """A corpus's sources, checked, with paths from its root and with the questions whose gold passages are one.

    Raises:
        IfqaError: a format or a setting is wrong, or what a source names is not there.
    """
    found = [
        Source(**{**source, "path": _below(corpus.root, source["path"])}) if _is_relative(source) else source
        for source in corpus.sources
    ]
    sources.check(found)
    return [_with_questions(_read_as_settings(source), corpus.root) for source in found]


def _read_as_settings(source: Source) -> Source:
    return cast(Source, with_fractions(sources.FORMATS[source["format"]], source))


def _is_relative(source: Source) -> bool:
    path = source.get("path")
    return isinstance(path, str) and path != sources.PIPE and not Path(path).is_absolute()


def _below(root: Path, path: str) -> str:
    """A path from the root, or a tracked file of that name; as it is where the root is the working directory."""
    return path if root == Path() else str(find_resource(path, root) or root / path)


def _with_questions(source: Source, root: Path) -> Source:
    if source["format"] != "gold":
        return source
    benchmark = open_benchmark(source["benchmark"], root)
    if not source["splits"]:
        known = ", ".join(benchmark.splits)
        raise IfqaError(
            "setting of a 'gold' source 'splits': wanted at least one split"
            f" of {source['benchmark']}{f' ({known})' if known else ''}, found an empty list"
        )
    return {**source, "questions": [benchmark.questions(split) for split in source["splits"]]}


def check_rankings(retriever: str, questions: Sequence[Question], k: int, rankings: Sequence[Sequence[Hit]]) -> None:
    """Hold a retriever to its protocol.

    Raises:
        IfqaError: there is not one ranking a question, or one has more than `k` passages, a passage twice, an id that no
            run can hold, or a score that is no number.
    """
    name = f"retriever {retriever!r}"
    if not isinstance(rankings, list) or len(rankings) != len(questions):
        found = f"{len(rankings)} rankings" if isinstance(rankings, list) else type(rankings).__name__
        raise IfqaError(f"{name} must give a list of one ranking a question: {len(questions)} wanted, found {found}")
    for question, ranking in zip(questions, rankings, strict=True):
        if not isinstance(ranking, list | tuple) or not all(isinstance(hit, Hit) for hit in ranking):
            raise IfqaError(f"{name} gave {question.id} {ranking!r:.80}; wanted a list of ifqa.Hit(passage_id, score)")
        ids = [hit.passage_id for hit in ranking]
        if len(ids) > k:
            raise IfqaError(f"{name} gave {question.id} {len(ids)} passages; wanted at most k = {k}")
        if len(set(ids)) < len(ids):
            raise IfqaError(f"{name} gave {question.id} a passage twice")
        for hit in ranking:
            if not isinstance(hit.passage_id, str) or hit.passage_id.split() != [hit.passage_id]:
                raise IfqaError(
                    f"{name} gave {question.id} the passage id {hit.passage_id!r}; wanted one without white space"
                )
            if not isinstance(hit.score, Real) or not math.isfinite(hit.score):
                raise IfqaError(
                    f"{name} gave {question.id} the score {hit.score!r} for {hit.passage_id}; wanted a number"
                )


def check_predictions(
    reader: str,
    questions: Sequence[Question],
    passages: Sequence[Sequence[Passage]],
    predictions: Sequence[Prediction],
) -> None:
    """Hold a reader to its protocol.

    Raises:
        IfqaError: there is not one prediction with a text for each question, in their order, or its evidence is not among
            the passages it was given.
    """
    if not isinstance(predictions, list | tuple):
        raise IfqaError(f"reader {reader!r} must give a list of ifqa.Prediction, found {type(predictions).__name__}")
    if strangers := [one for one in predictions if not isinstance(one, Prediction)]:
        raise IfqaError(
            f"reader {reader!r} gave {strangers[0]!r:.80}; wanted ifqa.Prediction(question.id, answer) for each question"
        )
    if [one.question_id for one in predictions] != [question.id for question in questions]:
        raise IfqaError(f"reader {reader!r} must give one prediction a question, in their order")
    for one, several in zip(predictions, passages, strict=True):
        if not isinstance(one.passage_ids, list | tuple):
            raise IfqaError(
                f"reader {reader!r} gave {one.question_id} the passage_ids {one.passage_ids!r:.80}; wanted a tuple of ids"
            )
        if strange := set(one.passage_ids) - {passage.id for passage in several}:
            raise IfqaError(
                f"reader {reader!r} gave {one.question_id} the evidence {min(strange)!r}, which it was not given"
            )
        texts: dict[str, object] = {  # of a reader from outside they may be anything
            "answer": one.answer,
            "factual": one.factual,
            "completion": one.completion,
            "error": one.error,
        }
        for key, text in texts.items():
            if not isinstance(text, str):
                raise IfqaError(f"reader {reader!r} gave {one.question_id} the {key} {text!r}; wanted text")
            unicode_text(text, key, f"reader {reader!r}, {one.question_id}")


def rankings_of(experiment: Experiment, questions: Sequence[Question]) -> list[list[Hit]]:
    """The ranking of each question in the experiment's run: empty where nothing was found, or for a closed book."""
    if not experiment.retriever:
        return [[] for _ in questions]
    path = experiment.folder / "retrieve" / "run.trec"
    rankings = read_run(path)
    if strange := rankings.keys() - {question.id for question in questions}:
        raise IfqaError(
            f"{path}: question {min(strange)} is not one of {experiment.benchmark} {experiment.split}; retrieve again"
        )
    return [rankings.get(question.id, []) for question in questions]


def passages_of(experiment: Experiment, rankings: Iterable[Sequence[Hit]]) -> Iterator[list[Passage]]:
    """The passages of each ranking, from the corpus or from what the retriever made."""
    stores: list[Store] = []
    made = experiment.folder / "retrieve" / "passages.jsonl"
    if made.exists():
        stores.append(PassageFile(made))
    if experiment.corpus:
        stores.append(PassageStore(experiment.corpus_folder / "passages"))
    for ranking in rankings:
        yield fetch(stores, [hit.passage_id for hit in ranking])


def predictions_of(experiment: Experiment, questions: Sequence[Question]) -> list[Prediction]:
    """One prediction for each question: a missing one is a failed one; one of another split is an error."""
    path = experiment.folder / "read" / "predictions.jsonl"
    predictions = {}
    for number, record in read_jsonl(path):
        lists = {name: tuple(record.get(name, ())) for name in ("passage_ids", "passage_scores")}
        prediction = Prediction(**record | lists)
        predictions[prediction.question_id] = prediction
        if len(predictions) != number:
            raise IfqaError(f"{path}:{number}: question {prediction.question_id} is answered twice")
    if strange := predictions.keys() - {question.id for question in questions}:
        raise IfqaError(
            f"{path}: question {min(strange)} is not one of {experiment.benchmark} {experiment.split}; read again"
        )
    return one_for_each(questions, predictions)


def one_for_each(questions: Sequence[Question], predictions: Mapping[str, Prediction]) -> list[Prediction]:
    """The prediction of each question, from those by question id; a missing one is a failed one."""
    return [predictions.get(one.id, Prediction(one.id, "", error="no prediction")) for one in questions]


def answers_of(experiment: Experiment) -> Iterator[Answer]:
    """What was answered to each question, with the passages it was read from."""
    questions = questions_of(experiment)
    predictions = predictions_of(experiment, questions)
    evidence = passages_of(experiment, ([Hit(one, 0.0) for one in each.passage_ids] for each in predictions))
    for question, told, passages in zip(questions, predictions, evidence, strict=True):
        yield Answer(question, told.answer, tuple(passages), told.factual, told.error)
