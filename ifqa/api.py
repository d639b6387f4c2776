"""The Python API: the functions of `import ifqa`.

Each takes `root`, the folder that all paths are relative to.

The keyword arguments of `open`, `ask` and `run` are the command line's flags (`ifqa run --help`).
Any other setting goes into `settings`, as with --set: {"retriever.k1": 1.2}. Wrong or missing input
raises `IfqaError`, whose message says how to mend it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Self, Unpack

from ifqa.config.corpus import DocsPaths, ensure_docs_corpus, load_corpus
from ifqa.config.experiment import load_experiment
from ifqa.config.flags import FLAGS, Changes
from ifqa.config.overrides import override
from ifqa.corpus.passage_store import PassageStore
from ifqa.errors import ConfigError, IfqaError, unknown_name
from ifqa.pipeline import stages
from ifqa.pipeline.corpus_build import CorpusBuild
from ifqa.pipeline.passages import open_store
from ifqa.pipeline.read import READ
from ifqa.pipeline.run import Run
from ifqa.pipeline.score import SCORE
from ifqa.pipeline.stage_outputs import answers_of, prediction_for_each
from ifqa.pipeline.system import System
from ifqa.plugins import open_benchmark
from ifqa.records import Answer, Passage, Prediction, Question
from ifqa.report.compare import Comparison, compare_pair
from ifqa.report.scores import Scores, load_scores
from ifqa.scoring import per_question
from ifqa.scoring.aggregation import aggregate_rows
from ifqa.scoring.scheme import load_scheme
from ifqa.storage.artifacts import lock

Settings = Mapping[str, object]
#: Answers to score: question id -> answer; predictions; or a function that answers a question.
Answers = Mapping[str, str] | Iterable[Prediction] | Callable[[Question], str | Prediction]


def open(
    experiment: str = "sample",
    *,
    docs: DocsPaths | None = None,
    root: str | Path = ".",
    settings: Settings | None = None,
    **changes: Unpack[Changes],
) -> System:
    """Open a system: a retriever and a reader in memory, which answer any number of questions from
    several threads.

    A missing corpus is built first. `docs` is a folder of documents to search instead, or a list of
    folders, as `ifqa ask --docs` does: only files that changed are read again. A cap on a language
    model's cost holds for this system alone.

    Examples:
        >>> import ifqa
        >>> question = ifqa.questions("sample", "dev")[3]
        >>> print(question.text)
        If Jane Austen had kept the title of the oldest version, written at Steventon in about
        1795, by what name would "Sense and Sensibility" be known?
        >>> with ifqa.open("sample") as system:
        ...     answer = system.ask(question)
        ...     [ranking] = system.retrieve([question], k=3)
        >>> print(answer)
        Elinor and Marianne
        >>> print(answer.evidence[0].title)
        Sense and Sensibility
        >>> [hit.passage_id for hit in ranking.hits]
        ['141-0', '254-0', '254-4']
    """
    run = _load_run(experiment, root, settings, changes)
    if docs is not None:
        if "corpus" in changes:
            raise ConfigError("docs and corpus are given; wanted one of them")
        run = Run(override(run.experiment, {"corpus": ensure_docs_corpus(docs, run.experiment)}))
    return stages.open_system(run).open()


def ask(
    question: str,
    experiment: str = "sample",
    *,
    root: str | Path = ".",
    settings: Settings | None = None,
    threshold: float | None = None,
    **changes: Unpack[Changes],
) -> Answer:
    """Answer one question; `threshold` is that of `System.answer`.

    For several questions, `open` a system.
    """
    with stages.open_system(_load_run(experiment, root, settings, changes)) as system:
        return system.ask(question, threshold)


def run(
    experiment: str = "sample",
    *,
    root: str | Path = ".",
    settings: Settings | None = None,
    **changes: Unpack[Changes],
) -> Scores:
    """Run the unfinished stages of an experiment, and return its scores.

    Examples:
        >>> import ifqa
        >>> scores = ifqa.run("sample-llm")
        >>> scores.questions, round(scores["EM"].value, 2)
        (83, 15.66)
        >>> scores.rows[15]["answer"], scores.rows[15]["EM"]
        ('Noel Odell', 1.0)
        >>> list(scores.outcomes().values()).count("reading miss")
        38

        With the reader "none" only the retrieved passages are scored:

        >>> list(ifqa.run("sample-llm", reader="none"))[:2]
        ['gold_any@1', 'gold_any@5']
    """
    chosen = _load_run(experiment, root, settings, changes)
    return load_scores(chosen, stages.run(chosen))


def evaluate(
    answers: Answers,
    benchmark: str = "sample",
    split: str = "dev",
    *,
    measures: Iterable[str] = (),
    seed: int = 0,
    root: str | Path = ".",
) -> Scores:
    """Score answers over all questions of a split.

    A missing answer counts as failed. Nothing is written.

    Examples:
        >>> import ifqa
        >>> ifqa.evaluate(lambda question: question.answers[0])["EM"].value
        100.0
        >>> ifqa.evaluate({"sample/dev/1": "nobody"}).n_failed
        82

    `answers` maps question ids to answers, lists predictions, or is a function that answers a
    question. `measures` names further measures, in addition to the benchmark's. `seed` is the
    bootstrap's.
    """
    if not (callable(answers) or isinstance(answers, Iterable)) or isinstance(answers, str):
        raise IfqaError(
            f"wanted answers by question id, predictions or a function, found {answers!r:.80}"
        )
    split_questions = questions(benchmark, split, root=root)
    scheme = load_scheme(benchmark, tuple(measures), _check_root(root), split)
    by_question: dict[str, Prediction] = {}
    for prediction in _predictions(answers, split_questions):
        texts = (
            (prediction.question_id, prediction.answer)
            if isinstance(prediction, Prediction)
            else (None,)
        )
        if not all(isinstance(text, str) for text in texts):
            raise IfqaError(
                f"wanted a text or a Prediction for each answer, found {prediction!r:.80}"
            )
        if prediction.question_id in by_question:
            raise IfqaError(
                f"question {prediction.question_id} is answered twice; give one prediction for each"
            )
        by_question[prediction.question_id] = prediction
    ids = [question.id for question in split_questions]
    if unknown := by_question.keys() - set(ids):
        raise unknown_name(f"question of {benchmark} {split}", min(unknown), ids[:5])
    predictions = prediction_for_each(split_questions, by_question)
    pairs = zip(split_questions, predictions, strict=True)
    rows = [
        per_question.score_question(question, scheme, prediction=prediction)
        for question, prediction in pairs
    ]
    scores = aggregate_rows(rows, split_questions, scheme, None, predictions).scores(seed)
    return Scores(
        f"{benchmark} {split}", scheme, scores | {"not_asked": 0, "retry": 0, "of": len(ids)}, rows
    )


def answers(experiment: str = "sample", *, root: str | Path = ".") -> list[Answer]:
    """The answers of a finished experiment, with the passages that each was read from.

    Examples:
        >>> import ifqa
        >>> _ = ifqa.run("sample-llm")
        >>> answer = ifqa.answers("sample-llm")[15]
        >>> print(answer, "/", answer.question.answers[0], "/", answer.evidence[0].title)
        Noel Odell / Noel Odell / Mount Everest
    """
    run = _load_run(experiment, root, None, {})
    run.require_reader()
    run.artifact(READ.name).require(f"ifqa run {experiment}")
    run.inputs(SCORE)  # raises if a stage is older than the settings
    return list(answers_of(run.experiment, run.questions))


def compare(
    first: str,
    second: str,
    measure: str = "",
    *,
    count: int = 5,
    common: bool = False,
    root: str | Path = ".",
) -> Comparison:
    """The differences between the scores of two finished experiments, with a paired test.

    Examples:
        >>> import ifqa
        >>> _ = ifqa.run("sample-closed-book"), ifqa.run("sample-llm")
        >>> difference = ifqa.compare("sample-closed-book", "sample-llm")["EM"]
        >>> round(difference.delta, 2), difference.won, difference.lost
        (14.46, 13, 1)

    It lists up to `count` questions that differ in `measure`, by default the headline measure. If
    the experiments' questions differ, `common` compares over those that both have.
    """
    folder = _check_root(root)
    return compare_pair(
        load_experiment(first, folder), load_experiment(second, folder), measure, count, common
    )


def questions(
    benchmark: str = "sample", split: str = "dev", *, root: str | Path = "."
) -> list[Question]:
    """The questions of a benchmark's split.

    Examples:
        >>> import ifqa
        >>> len(ifqa.questions("sample", "dev"))
        83
    """
    return open_benchmark(benchmark, _check_root(root)).questions(split)


class Corpus:
    """The passages of a corpus. `build` builds them.

    Examples:
        >>> import ifqa
        >>> corpus = ifqa.Corpus("sample").build()
        >>> len(corpus), corpus["284-2"].title, corpus.indexes
        (426, 'Liverpool and Manchester Railway', ['bm25', 'dense'])
    """

    def __init__(self, name: str = "sample", *, root: str | Path = ".") -> None:
        """Read `indexes/NAME.toml`."""
        self.settings = load_corpus(name, _check_root(root))
        self.name = name

    def build(self) -> Self:
        """Build missing passages and indexes."""
        vars(self).pop("_store", None)  # the build may replace its passages
        with lock(self.settings.folder):
            stages.build_passages(self.settings)
            for index in self.settings.indexes:
                stages.build_index(self.settings, index)
        return self

    @property
    def indexes(self) -> list[str]:
        return list(self.settings.indexes)

    def __len__(self) -> int:
        return len(self._store)

    def __iter__(self) -> Iterator[Passage]:
        return iter(self._store)

    def __getitem__(self, passage_id: str) -> Passage:
        return self._store.get([passage_id])[0]

    @cached_property
    def _store(self) -> PassageStore:
        """The passage store.

        It is checked against the corpus file only once, because the check may read every source.
        """
        return open_store(CorpusBuild(self.settings))


def _predictions(answers: Answers, questions: list[Question]) -> Iterator[Prediction]:
    if isinstance(answers, Mapping):
        yield from (Prediction(question_id, text) for question_id, text in answers.items())
    elif callable(answers):
        for question in questions:
            answer = answers(question)
            yield answer if isinstance(answer, Prediction) else Prediction(question.id, answer)
    else:
        yield from answers


def _load_run(name: str, root: str | Path, settings: Settings | None, changes: Changes) -> Run:
    """An experiment's run, with settings changed by `changes` (the flags) and `settings`."""
    if unknown := changes.keys() - FLAGS:
        raise unknown_name("argument", min(unknown), [*FLAGS, "root", "settings"])
    if settings is not None and not (
        isinstance(settings, Mapping) and all(isinstance(key, str) for key in settings)
    ):
        raise ConfigError(
            f'settings: wanted a dictionary such as {{"retriever.k1": 1.2}}, found {settings!r:.80}'
        )
    by_flag = {FLAGS[flag].setting: value for flag, value in changes.items() if value is not None}
    return Run(override(load_experiment(name, _check_root(root)), by_flag | dict(settings or {})))


def _check_root(root: str | Path) -> Path:
    if not isinstance(root, str | Path) or not Path(root).is_dir():
        raise ConfigError(f"root: wanted the path of a folder, found {root!r:.80}")
    return Path(root)
