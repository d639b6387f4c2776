"""`System`: an experiment's retriever and reader, opened and held in memory to answer questions one
after another.
"""

import hashlib
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import Self

from ifqa.clauses import question_advice
from ifqa.config.experiment import ConfiguredReader
from ifqa.corpus.documents.indexed_file import IndexedFile
from ifqa.corpus.languages import (
    ENGLISH,
    NAMES,
    detect_language,
    is_plainly_english,
    passage_language,
)
from ifqa.corpus.passage_store import PassageStore, get_passages
from ifqa.corpus.sentences import split_sentences
from ifqa.errors import ConfigError, IfqaError, PluginError
from ifqa.llms.streaming import TextCallback, streaming
from ifqa.pipeline.opening import open_model, open_reader, open_retriever, open_stores
from ifqa.pipeline.plugin_output import check_predictions, check_rankings
from ifqa.pipeline.run import Run
from ifqa.pipeline.searched import CorpusSummary, searched_documents, summarize_corpus
from ifqa.pipeline.session import Session
from ifqa.pipeline.stage_outputs import answer_of, stores_of, with_evidence
from ifqa.protocols import LanguageModel, ProgressCallback, Reader, Retriever, no_progress
from ifqa.records import Ablation, Answer, Passage, Prediction, Question, Ranking, SearchResult
from ifqa.retrieval.queries import rewrite_questions
from ifqa.scoring.measures.exact_match import normalize
from ifqa.settings import is_share
from ifqa.storage.files import unicode_text
from ifqa.tracing import captures_content, span

_WITHHELD = (
    "It is mostly wrong there, so only passages are shown; a threshold of 0 shows its answer too."
)


class System:
    """An experiment's retriever and reader, each opened on first use.

    Several threads may use a system at once. One thread searches at a time, and one reads at a time
    unless the reader is `concurrent`. The corpus must be built; `ifqa.pipeline.stages.open_system`
    builds it. A missing part, or a plugin that breaks its protocol, raises `IfqaError`. The
    experiments of a command share a `session`.
    """

    def __init__(self, run: Run, session: Session | None = None) -> None:
        self.run = run
        self.experiment = run.experiment
        self.session = session or Session()
        self._searching = threading.RLock()
        self._reading = threading.RLock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Free the retriever and reader; the next use opens them again."""
        for part in ("retriever", "reader", "_store", "ranked_stores"):
            vars(self).pop(part, None)

    @cached_property
    def retriever(self) -> Retriever:
        return open_retriever(self.run, self.session)

    @cached_property
    def reader(self) -> Reader:
        return open_reader(self.run, self.session, self.find)

    @property
    def model(self) -> LanguageModel:
        """The experiment's language model, which its retriever and reader share."""
        return open_model(self.run, self.session)

    @cached_property
    def _store(self) -> list[PassageStore]:
        return open_stores(self.run)

    @cached_property
    def ranked_stores(self) -> list[PassageStore]:
        """The stores of the passages that the experiment's finished run names."""
        return stores_of(self.experiment) if self.experiment.retriever else []

    def open(self) -> Self:
        """Open the retriever and the reader now, not with the first question."""
        # One lock after the other: a reader that searches takes both in the other order
        with self._searching:
            _ = self.experiment.retriever and self.retriever
        with self._reading:
            _ = self.experiment.reader and self.reader
        return self

    def search(self, questions: Sequence[Question], k: int = 0) -> list[SearchResult]:
        """The best `k` passages of each question, best first; 0 for the experiment's own `k`."""
        if type(k) is not int or k < 0:
            raise ConfigError(
                "k: wanted a whole number of passages, or 0 for the experiment's k; "
                f"found {k!r:.80}"
            )
        with self._searching:
            retriever = self.retriever
            configured = self.run.require_retriever()
            depth = k or configured.k
            corpus = self.experiment.corpus
            attributes = {
                "gen_ai.operation.name": "retrieval",
                "gen_ai.data_source.id": corpus or None,
                "gen_ai.retrieval.top_k": depth,
                "ifqa.retriever": configured.name,
                "ifqa.questions": len(questions),
            }
            if captures_content():
                attributes["gen_ai.retrieval.query.text"] = "\n".join(
                    question.text for question in questions
                )
            with span(f"retrieval {corpus or configured.name}", attributes):
                rankings = retriever.search(rewrite_questions(questions, configured.query), depth)
            check_rankings(configured.name, questions, depth, rankings)
        return rankings

    def find(self, texts: Sequence[str], k: int) -> list[list[Passage]]:
        """The `k` best passages of the corpus for each text, best first: a `Search`."""
        questions = [Question(f"search/{_digest(text)}", text) for text in texts]
        with self._searching:
            size = max(step.plugin.chunk for step in self.run.require_retriever().steps)
            rankings = list[SearchResult]()
            for start in range(0, len(questions), size):
                rankings += self.search(questions[start : start + size], k)
            if any(ranking.generated for ranking in rankings):
                name = self.run.require_retriever().name
                raise PluginError(
                    f"retriever {name!r} writes passages of its own, so a reader cannot search "
                    "with it; name one that searches the corpus"
                )
            return self._passages(rankings)

    def read(
        self,
        questions: Sequence[Question],
        passages: Sequence[Sequence[Passage]],
        scores: Sequence[Sequence[float]],
        advance: ProgressCallback = no_progress,
    ) -> list[Prediction]:
        """The reader's answer to each question from its passages, best first, with their retrieval
        scores.
        """
        searches = self.run.require_reader().takes("search")
        if searches:
            with self._searching:  # before the reader's libraries, as `open` does
                _ = self.retriever
        with self._reading:  # so that only one thread opens the reader
            reader = self.reader
        with nullcontext() if reader.concurrent else self._reading:
            weights = {"scores": scores} if reader.takes_scores else {}
            name = self.run.require_reader().name
            with span(f"read {name}", {"ifqa.reader": name, "ifqa.questions": len(questions)}):
                predictions = reader.answer(questions, passages, advance=advance, **weights)
        if searches:
            passages = self._with_cited(passages, predictions)
        check_predictions(name, questions, passages, predictions)
        return predictions

    def _with_cited(
        self, passages: Sequence[Sequence[Passage]], predictions: Sequence[Prediction]
    ) -> list[list[Passage]]:
        """The passages that each question's reader was given, and those of the corpus that its
        prediction cites.
        """
        if len(passages) != len(predictions):  # which is refused
            return [list(given) for given in passages]
        known = [{passage.id for passage in given} for given in passages]
        cited = [
            [passage_id for passage_id in prediction.passage_ids if passage_id not in ids]
            for prediction, ids in zip(predictions, known, strict=True)
        ]
        with self._searching:
            unknown = list(dict.fromkeys(chain.from_iterable(cited)))
            found = {
                passage_id: passage
                for store in self._store
                for passage_id, passage in store.find(unknown).items()
            }
        return [
            [*given, *(found[passage_id] for passage_id in ids if passage_id in found)]
            for given, ids in zip(passages, cited, strict=True)
        ]

    def retrieve(self, questions: Sequence[str | Question], k: int = 0) -> list[Ranking]:
        """The best `k` passages of each question, with their texts.

        0 for the experiment's own `k`.
        """
        parsed = as_questions(questions)
        with self._searching:
            rankings = self.search(parsed, k)
            passages = self._passages(rankings)
        return [
            Ranking(*parts)
            for parts in zip(parsed, map(tuple, rankings), map(tuple, passages), strict=True)
        ]

    def answer(
        self,
        questions: Sequence[str | Question],
        threshold: float | None = None,
        on_text: TextCallback | None = None,
    ) -> list[Answer]:
        """Each question's answer and the passages it was read from, most important first.

        An answer whose confidence is below `threshold` is withheld: `text` is empty, and the answer
        is in `candidate`. None leaves it to the reader; 0 withholds no answer. If the question, or
        the passage that its answer was read from, is in another language than the reader's, or if
        the text is not a question, the answer has a `note`; it then has only passages, unless a
        threshold is given. While a language model that `streams` writes the first question's
        completion, `on_text` is called with its text so far.

        Raises:
            ConfigError: `threshold` is not a share, or is above 0 for a reader without confidences.
        """
        if threshold is not None:
            self._check_threshold(threshold)
        parsed = as_questions(questions)
        depth = self.run.require_reader().passages
        with span(f"answer {self.experiment.name}", {"ifqa.questions": len(parsed)}):
            with self._searching:
                rankings = (
                    self.search(parsed)
                    if self.experiment.retriever
                    else [SearchResult(()) for _ in parsed]
                )
                top = [ranking[:depth] for ranking in rankings]
                passages = self._passages(top)
            with streaming(on_text):
                predictions = self.read(
                    parsed, passages, [[hit.score for hit in ranking] for ranking in top]
                )
            if self.run.require_reader().takes("search"):
                passages = self._with_cited(passages, predictions)
        answers = []
        for question, prediction, texts in zip(parsed, predictions, passages, strict=True):
            by_id = {passage.id: passage for passage in texts}
            evidence = [by_id[passage_id] for passage_id in prediction.passage_ids]
            answers.append(self._judge(question, prediction, evidence, threshold))
        return answers

    def _check_threshold(self, threshold: float) -> None:
        if not is_share(threshold):
            raise ConfigError(
                f"threshold: wanted a confidence from 0 to 1, or None; found {threshold!r:.80}"
            )
        with self._reading:
            reader = self.reader
        if threshold and not reader.gives_confidence:
            why = reader.uncalibrated or f"reader {self.run.require_reader().name!r} gives none"
            raise ConfigError(f"threshold = {threshold:g} needs a confidence: {why}")

    def _judge(
        self,
        question: Question,
        prediction: Prediction,
        evidence: Sequence[Passage],
        threshold: float | None,
    ) -> Answer:
        """The answer of a prediction, or none where it would mean little.

        `evidence` and `threshold` as in `answer`.
        """
        abstained = prediction.abstain_below(*self.thresholds(threshold))
        answer = answer_of(question, abstained, evidence)
        if answer.confidence is None and not answer.error:
            answer = replace(answer, uncalibrated=self.reader.uncalibrated)
        # With choices or a context, one word may ask
        is_bare = not (question.choices or question.context)
        advice = question_advice(question.text) if is_bare else ""
        note = advice or self._language_note(answer)
        if not note or threshold is not None or prediction.error:
            return replace(answer, note=note)
        withheld = Answer(question, "", note=advice or f"{note} {_WITHHELD}")
        return with_evidence(withheld, evidence)

    def thresholds(self, threshold: float | None = None) -> tuple[float, float]:
        """The confidence and the `answerable` below which an answer is withheld.

        A `threshold` is one of confidence alone.
        """
        if threshold is not None:
            return threshold, 0.0
        with self._reading:
            reader = self.reader
        if reader.document_thresholds and self.searched.folders:
            return reader.document_thresholds
        return reader.abstain_threshold, reader.answerable_threshold

    def _language_note(self, answer: Answer) -> str:
        """What to say if a question, or the passage that its answer was read from, is not in the
        reader's language.

        Empty if both are, or if the passage's language is not certain.
        """
        language = self.reader.language
        if not language:
            return ""
        languages = {"this question is": detect_language(answer.question.text)}
        if passage := answer.supporting:
            known = ENGLISH if is_plainly_english(passage.text) else passage_language(passage.text)
            languages["this passage is"] = known or language
        for what, other in languages.items():
            if other != language:
                return f"The reader was trained on {NAMES[language]}; {what} in {NAMES[other]}."
        return ""

    def ask(
        self,
        question: str | Question,
        threshold: float | None = None,
        on_text: TextCallback | None = None,
    ) -> Answer:
        return self.answer([question], threshold, on_text)[0]

    def why(self, answer: Answer, threshold: float | None = None) -> list[Ablation]:
        """What an answer becomes without each passage in turn, and without each sentence of the
        passage that supports it.

        Only a reader that names the supporting passage has sentences left out. `threshold` is as in
        `answer`. Without an answer or a retriever there is nothing to leave out. ConfigError for a
        reader that searches, which could find again what was left out.
        """
        if not (self.experiment.retriever and answer.text):
            return []
        refuse_ablations(self.run.require_reader())
        question = answer.question
        with self._searching:
            ranking = self.search([question])[0][: self.run.require_reader().passages]
            [passages] = self._passages([ranking])
        without = [
            (passage, "", [other for other in passages if other is not passage])
            for passage in passages
        ]
        for passage in passages:
            sentences = split_sentences(passage.text)
            if answer.how and passage.id == answer.how.passage_id and len(sentences) > 1:
                for n, sentence in enumerate(sentences):
                    rest = replace(passage, text="".join(sentences[:n] + sentences[n + 1 :]))
                    left = [rest if other is passage else other for other in passages]
                    without.append((passage, sentence.strip(), left))
        score = {hit.passage_id: hit.score for hit in ranking}
        rows = [left for _, _, left in without]
        predictions = self.read(
            [question] * len(rows), rows, [[score[part.id] for part in left] for left in rows]
        )
        thresholds = self.thresholds(threshold)
        ablations = []
        for (passage, sentence, _), prediction in zip(without, predictions, strict=True):
            text = prediction.abstain_below(*thresholds).answer
            same = normalize(text) == normalize(answer.text)
            ablations.append(Ablation(passage, sentence, text, prediction.confidence, same))
        return ablations

    def passage(self, passage_id: str) -> Passage | None:
        """The corpus's passage with an id; None if there is no such passage or no corpus."""
        with self._searching:
            passages = [store.find([passage_id]) for store in self._store]
        return next((stored[passage_id] for stored in passages if passage_id in stored), None)

    @cached_property
    def searched(self) -> CorpusSummary:
        return summarize_corpus(self.run)

    @cached_property
    def documents(self) -> Mapping[str, IndexedFile]:
        """The files of the searched folder of documents, by their names as in the ids of their
        passages.
        """
        return searched_documents(self.run)

    @property
    def size(self) -> int:
        """The number of passages in the corpus; 0 without a corpus."""
        with self._searching:
            return sum(len(store) for store in self._store)

    def _passages(self, rankings: Sequence[SearchResult]) -> list[list[Passage]]:
        """The passages of each ranking, from those that the retriever generated or from the
        corpus.
        """
        generated = {
            passage.id: passage for ranking in rankings for passage in ranking.generated or ()
        }
        ids = [hit.passage_id for ranking in rankings for hit in ranking]
        missing = list(
            dict.fromkeys(passage_id for passage_id in ids if passage_id not in generated)
        )
        known = generated | dict(
            zip(missing, get_passages(self._store, missing) if missing else (), strict=True)
        )
        return [[known[hit.passage_id] for hit in ranking] for ranking in rankings]


def refuse_ablations(reader: ConfiguredReader) -> None:
    """Refuse to leave out passages for a reader that searches: it could find them again."""
    if reader.takes("search"):
        raise ConfigError(
            f"reader {reader.name!r} searches, so it could find again what is left out; the steps "
            "of its answer tell what it searched for"
        )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def as_questions(questions: Iterable[str | Question]) -> list[Question]:
    """Questions from texts, with ids `ask/0`, ….

    IfqaError for other types, an empty question or half a surrogate pair.
    """
    if isinstance(questions, str) or not isinstance(questions, Iterable):
        raise IfqaError(f"wanted a list of questions, found {questions!r:.80}")
    parsed = []
    for number, text in enumerate(questions):
        if not isinstance(text, str | Question):
            raise IfqaError(f"wanted a text or a Question, found {text!r:.80}")
        question = text if isinstance(text, Question) else Question(f"ask/{number}", text.strip())
        if not question.text.strip():
            raise IfqaError('the question is empty; wanted something like: ifqa ask "If ..., ...?"')
        unicode_text(question.text, "text", f"question {question.id}")
        parsed.append(question)
    return parsed
