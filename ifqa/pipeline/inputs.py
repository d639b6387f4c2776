"""What stages find when they start: questions, plugs ready to use, and the files of the stages before."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

from ifqa.config.corpus import load_corpus
from ifqa.config.experiment import Experiment, retriever_tables, search_settings
from ifqa.corpus.store import PassageFile, PassageStore, Store, fetch
from ifqa.errors import IfqaError
from ifqa.formats.runs import read_run
from ifqa.plugins import load, takes
from ifqa.progress import say
from ifqa.protocols import LanguageModel, Learned, Reader, Retriever
from ifqa.records import Hit, Passage, Prediction, Question
from ifqa.retrieval.queries import Part, rewrite
from ifqa.storage.files import read_jsonl, sha256, unicode_text


def questions_of(experiment: Experiment) -> list[Question]:
    """The experiment's questions, in the benchmark's order.

    Raises:
        IfqaError: the split's file is missing or wrong, or a question that the experiment names is not in it.
    """
    questions = load("benchmark", experiment.benchmark)().questions(experiment.split)
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


def open_retriever(experiment: Experiment) -> Retriever:
    """The retriever, on its index where it has one, and with its parts; `search` wants `queries_of` the questions.

    Raises:
        IfqaError: something it needs is missing, or a model in it was trained in another family of the same benchmark.
    """
    assert experiment.retriever is not None
    return _open(experiment.retriever, experiment)


def _open(table: Mapping[str, Any], experiment: Experiment) -> Retriever:
    plug, given = load("retriever", table["name"]), dict[str, Any]()
    corpus = Path("indexes") / experiment.corpus
    if "parts" in table:
        given["parts"] = [
            Part(_open(part, experiment), part["k"], part["weight"], part.get("query", "question"))
            for part in table["parts"]
        ]
    if takes("retriever", table["name"], "passages"):
        stores: list[Store] = [PassageStore(corpus / "passages")] if experiment.corpus else []
        given["passages"] = partial(fetch, stores)
    if takes("retriever", table["name"], "corpus"):
        given["corpus"] = PassageStore(corpus / "passages")
    if takes("retriever", table["name"], "llm"):
        given["llm"] = open_llm(experiment)
    index = [corpus / table["index"]] if "index" in table else []
    retriever = plug(*index, **given, **search_settings(table))
    _refuse_other_family(f"retriever {table['name']!r}", retriever, experiment)
    return retriever


def reads_passages(table: Mapping[str, Any]) -> bool:
    """Whether the retriever of a table reads passages itself: those of some ids, as a reranker does, or all of them."""
    return any(takes("retriever", table["name"], argument) for argument in ("passages", "corpus"))


def queries_of(experiment: Experiment, questions: Sequence[Question]) -> list[Question]:
    """The questions as the experiment's retriever is asked them."""
    assert experiment.retriever is not None
    return rewrite(questions, experiment.retriever.get("query", "question"))


def open_reader(experiment: Experiment) -> Reader:
    """The reader; refused where its weights were trained in another family of the same benchmark."""
    assert experiment.reader is not None
    name = experiment.reader["name"]
    given = {"llm": open_llm(experiment)} if takes("reader", name, "llm") else {}
    reader = load("reader", name)(**given, **experiment.reader_settings)
    _refuse_other_family(f"reader {name!r}", reader, experiment)
    if reader.label:
        say(f"reader {name!r}: {reader.label}")
    return reader


def open_llm(experiment: Experiment) -> LanguageModel:
    """The experiment's language model: one and the same for all of its stages, so that a cap on its cost holds for all."""
    assert experiment.llm is not None
    return _open_llm(tuple(experiment.llm.items()))


@cache
def _open_llm(table: tuple[tuple[str, Any], ...]) -> LanguageModel:
    settings = dict(table)
    return load("llm", settings.pop("name"))(**settings)


def refuse_other_families(experiment: Experiment) -> None:
    """Refuse, before anything is built or loaded, what `open_retriever` and `open_reader` would refuse only then.

    Raises:
        IfqaError: a retriever's or the reader's weights were trained in another family of the same benchmark.
    """
    plugs: list[tuple[Literal["retriever", "reader"], str, dict[str, Any]]] = []
    if experiment.reader:
        plugs.append(("reader", experiment.reader["name"], experiment.reader_settings))
    for table in retriever_tables(experiment.retriever) if experiment.retriever else ():
        index = load_corpus(experiment.corpus).indexes.get(table["index"], {}) if "index" in table else {}
        built = {key: value for key, value in index.items() if key != "retriever"}
        plugs.append(("retriever", table["name"], built or search_settings(table)))
    for kind, name, settings in plugs:
        plug = load(kind, name)
        _refuse(f"{kind} {name!r} {plug.learnt}", plug.trained(**settings), experiment)


def _refuse_other_family(what: str, plug: Learned, experiment: Experiment) -> None:
    _refuse(f"{what} {plug.learnt}", plug.family, experiment)


def _refuse(what: str, trained: str, experiment: Experiment) -> None:
    """IfQA's families are re-cuts of the same questions, so a model of the one has seen test questions of the other."""
    benchmark = load("benchmark", experiment.benchmark)()
    known_benchmark = trained.partition("/")[0] == experiment.benchmark
    tested = benchmark.family(experiment.split) if known_benchmark else ""
    if tested and trained != tested:
        raise IfqaError(
            f"{what} {trained} and may not be tested on {tested}, "
            "which holds the same questions; take that family's training split"
        )


def was_trained_on(plug: Learned, experiment: Experiment) -> bool:
    """Whether a reader's or a retriever's weights come from the very questions of the experiment; its scores then mean little."""
    if not plug.trained_on:
        return False
    return any(
        sha256(path) in plug.trained_on for path in load("benchmark", experiment.benchmark)().files(experiment.split)
    )


def check_predictions(reader: str, questions: Sequence[Question], predictions: Sequence[Prediction]) -> None:
    """Hold a reader to its protocol.

    Raises:
        IfqaError: there is not one prediction with a text for each question, in their order.
    """
    if [one.question_id for one in predictions] != [question.id for question in questions]:
        raise IfqaError(f"reader {reader!r} must give one prediction a question, in their order")
    for one in predictions:
        for key in ("answer", "factual", "completion", "error"):
            if not isinstance(text := getattr(one, key), str):
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
        stores.append(PassageStore(Path("indexes") / experiment.corpus / "passages"))
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
    return [predictions.get(one.id, Prediction(one.id, "", error="no prediction")) for one in questions]
