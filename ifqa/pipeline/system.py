"""`System`: an experiment's retriever and reader, held in memory to answer questions one after another."""

import threading
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

from ifqa.config.experiment import Experiment
from ifqa.corpus.store import PassageStore, fetch
from ifqa.errors import IfqaError
from ifqa.llms.streaming import TextCallback, streaming
from ifqa.pipeline.opening import Session, open_reader, open_retriever
from ifqa.pipeline.returned import check_predictions, check_rankings
from ifqa.pipeline.upstream import answer_of, queries_of
from ifqa.protocols import Advance, Reader, Retriever, silent
from ifqa.records import Answer, Passage, Prediction, Question, Ranking, SearchResult
from ifqa.settings import is_share
from ifqa.storage.files import unicode_text


class System:
    """An experiment's retriever and reader, each opened when it is first needed.

    Several threads may use a system at once. One thread searches at a time, and one reads at a time unless the reader is
    `concurrent`. The corpus must be built; `ifqa.pipeline.stages.open_system` builds it.

    Attributes:
        experiment: the settings.
        session: the budget and the language models; shared by the experiments of a command.
    """

    def __init__(self, experiment: Experiment, session: Session | None = None) -> None:
        self.experiment = experiment
        self.session = session or Session()
        self._searching, self._reading = threading.RLock(), threading.RLock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Drop retriever and reader and free their memory; they are opened again if they are used again."""
        for part in ("retriever", "reader", "_store"):
            vars(self).pop(part, None)

    @cached_property
    def retriever(self) -> Retriever:
        """The experiment's retriever.

        Raises:
            IfqaError: the experiment has none, or something that the retriever needs is missing.
        """
        if self.experiment.retriever is None:
            raise IfqaError(f"experiment {self.experiment.name} has no [retriever]")
        return open_retriever(self.experiment, self.session)

    @cached_property
    def reader(self) -> Reader:
        """The experiment's reader.

        Raises:
            IfqaError: the experiment has none, or something that the reader needs is missing.
        """
        if self.experiment.reader is None:
            raise IfqaError(f"experiment {self.experiment.name} has no [reader]")
        return open_reader(self.experiment, self.session)

    @cached_property
    def _store(self) -> list[PassageStore]:
        return [PassageStore(self.experiment.corpus_folder / "passages")] if self.experiment.corpus else []

    def open(self) -> Self:
        """Open retriever and reader now, not with the first question."""
        with self._searching, self._reading:
            _ = self.experiment.retriever and self.retriever
            _ = self.experiment.reader and self.reader
        return self

    def search(self, questions: Sequence[Question], k: int = 0) -> list[SearchResult]:
        """The best `k` passages of each question, best first; 0 for the experiment's own `k`.

        Raises:
            IfqaError: there is no retriever, or it breaks its protocol.
        """
        if type(k) is not int or k < 0:
            raise IfqaError(f"k: wanted a whole number of passages, or 0 for the experiment's k; found {k!r:.80}")
        with self._searching:
            retriever = self.retriever
            assert self.experiment.retriever is not None  # self.retriever has checked that
            depth = k or self.experiment.retriever["k"]
            rankings = retriever.search(queries_of(self.experiment, questions), depth)
            check_rankings(self.experiment.retriever["name"], questions, depth, rankings)
        return rankings

    def read(
        self,
        questions: Sequence[Question],
        passages: Sequence[Sequence[Passage]],
        scores: Sequence[Sequence[float]],
        advance: Advance = silent,
    ) -> list[Prediction]:
        """The reader's answer to each question from its passages, which are given best first, with their retrieval scores.

        Raises:
            IfqaError: there is no reader, or it breaks its protocol.
        """
        with self._reading:  # one thread opens the reader
            reader = self.reader
        with nullcontext() if reader.concurrent else self._reading:
            weights: dict[str, Any] = {"scores": scores} if reader.takes_scores else {}
            predictions = reader.answer(questions, passages, advance=advance, **weights)
        assert self.experiment.reader is not None  # self.reader has checked that
        check_predictions(self.experiment.reader["name"], questions, passages, predictions)
        return predictions

    def retrieve(self, questions: Sequence[str | Question], k: int = 0) -> list[Ranking]:
        """The best `k` passages of each question, with their texts; 0 for the experiment's own `k`.

        Raises:
            IfqaError: a question is empty, there is no retriever, or it breaks its protocol.
        """
        asked = as_questions(questions)
        with self._searching:
            rankings = self.search(asked, k)
            passages = self._passages(rankings)
        return [Ranking(*one) for one in zip(asked, map(tuple, rankings), map(tuple, passages), strict=True)]

    def answer(
        self, questions: Sequence[str | Question], threshold: float | None = None, heard: TextCallback | None = None
    ) -> list[Answer]:
        """Each question's answer, and the passages it was read from, most important first.

        An answer of less confidence than `threshold` is not given: its text is then the `candidate`. None is the reader's own
        threshold, 0 gives every answer. A reader without confidences always answers. While a language model that `streams`
        writes the first question's completion, `heard` is called with its text so far.

        Raises:
            IfqaError: a question is empty, the threshold is not from 0 to 1, there is no reader, or a part breaks its
                protocol.
        """
        if threshold is not None and not is_share(threshold):
            raise IfqaError(f"threshold: wanted a confidence from 0 to 1, or None; found {threshold!r:.80}")
        asked = as_questions(questions)
        reader = self.experiment.reader or {"passages": 0}
        top = [SearchResult(()) for _ in asked]
        if self.experiment.retriever:
            with self._searching:
                top = [ranking[: reader["passages"]] for ranking in self.search(asked)]
                passages = self._passages(top)
        else:
            passages = [[] for _ in asked]
        with streaming(heard):
            predictions = self.read(asked, passages, [[hit.score for hit in ranking] for ranking in top])
        least = self.reader.doubtful if threshold is None else threshold
        predictions = [one.below(least) for one in predictions]
        answers = [_answer(*one) for one in zip(asked, predictions, passages, strict=True)]
        return [replace(one, steps=tuple(own.steps or ())) for one, own in zip(answers, top, strict=True)]

    def ask(
        self, question: str | Question, threshold: float | None = None, heard: TextCallback | None = None
    ) -> Answer:
        """The answer to a question, as `answer` gives it."""
        return self.answer([question], threshold, heard)[0]

    def passage(self, passage_id: str) -> Passage | None:
        """The corpus's passage of an id; None if there is no such passage, or no corpus."""
        with self._searching:
            found = [store.find([passage_id]) for store in self._store]
        return next((one[passage_id] for one in found if passage_id in one), None)

    @property
    def size(self) -> int:
        """The number of passages of the corpus; 0 if there is no corpus."""
        with self._searching:
            return sum(len(store) for store in self._store)

    def _passages(self, rankings: Sequence[SearchResult]) -> list[list[Passage]]:
        """The passages of each ranking, from those that the retriever generated or from the corpus."""
        generated = {passage.id: passage for ranking in rankings for passage in ranking.generated or ()}
        ids = [hit.passage_id for ranking in rankings for hit in ranking]
        missing = list(dict.fromkeys(passage_id for passage_id in ids if passage_id not in generated))
        known = generated | dict(zip(missing, fetch(self._store, missing), strict=True))
        return [[known[hit.passage_id] for hit in ranking] for ranking in rankings]


def as_questions(asked: Iterable[str | Question]) -> list[Question]:
    """Questions from texts, with ids `ask/0`, `ask/1`, …; given `Question`s are kept.

    Raises:
        IfqaError: `asked` is a single text, an element is neither text nor `Question`, or a question is empty or
            holds half a surrogate pair, which no tokenizer takes.
    """
    if isinstance(asked, str):
        raise IfqaError(f"wanted a list of questions, found a text; put it into a list: [{asked!r}]")
    if not isinstance(asked, Iterable):
        raise IfqaError(f"wanted a list of questions, found {asked!r:.80}")
    asked = list(asked)
    if strange := [one for one in asked if not isinstance(one, str | Question)]:
        raise IfqaError(f"wanted a text or a Question, found {strange[0]!r:.80}")
    questions = [one if isinstance(one, Question) else Question(f"ask/{n}", one.strip()) for n, one in enumerate(asked)]
    if not all(one.text.strip() for one in questions):
        raise IfqaError('the question is empty; wanted something like: ifqa ask "If ..., ...?"')
    for one in questions:
        unicode_text(one.text, "text", f"question {one.id}")
    return questions


def _answer(question: Question, prediction: Prediction, passages: Sequence[Passage]) -> Answer:
    by_id = {passage.id: passage for passage in passages}
    return answer_of(question, prediction, (by_id[passage_id] for passage_id in prediction.passage_ids))
