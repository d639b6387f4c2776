"""`System`: an experiment's retriever and reader, opened and held in memory to answer questions one
after another.
"""

import logging
import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from numbers import Real
from pathlib import Path
from typing import Self, TypeVar

from ifqa.config.experiment import RetrieverSettings, search_settings
from ifqa.corpus.documents.indexed_file import IndexedFile, indexed_files
from ifqa.corpus.languages import NAMES, detect_language
from ifqa.corpus.passage_store import PassageStore, get_passages
from ifqa.corpus.sentences import split_sentences
from ifqa.corpus.sources import user_folders
from ifqa.errors import ConfigError, IfqaError, PluginError
from ifqa.formats.runs import check_order
from ifqa.formatting import pluralize
from ifqa.llms.budget import Budget
from ifqa.llms.streaming import TextCallback, streaming
from ifqa.pipeline.run import Run
from ifqa.pipeline.stage_outputs import answer_of, valid_prediction
from ifqa.plugins import accepted_arguments, resolve_paths
from ifqa.protocols import (
    LanguageModel,
    Plugin,
    ProgressCallback,
    Reader,
    Retriever,
    Trainable,
    no_progress,
)
from ifqa.records import (
    Ablation,
    Answer,
    Explanation,
    Hit,
    Passage,
    Prediction,
    Question,
    Ranking,
    SearchResult,
)
from ifqa.retrieval.composition import Part
from ifqa.retrieval.queries import rewrite_questions
from ifqa.scoring.measures.exact_match import normalize
from ifqa.settings import is_share
from ifqa.storage.files import json_line, sha256, unicode_text
from ifqa.tracing import captures_content, span

logger = logging.getLogger(__name__)

_P = TypeVar("_P", bound=Plugin)
_WITHHELD = (
    "It is mostly wrong there, so only passages are shown; a threshold of 0 shows its answer too."
)


class Session:
    """The budget and the opened language models that a command's experiments share, or the calls of
    an opened system.

    Stages and experiments that name a model with the same settings share it; the budget's caps hold
    for all together.
    """

    def __init__(self) -> None:
        self.budget = Budget()
        self._lock = threading.Lock()
        self._models: dict[bytes, LanguageModel] = {}

    def llm(self, run: Run) -> LanguageModel:
        """The experiment's language model.

        IfqaError if it cannot be opened, or was tuned on another split family.
        """
        settings = run.experiment.llm_settings
        root = run.experiment.root
        key = json_line({"root": str(root.absolute()), **run.llm})
        with self._lock:
            if key not in self._models:
                self._models[key] = open_plugin(
                    run.plugins.llm(run.llm["name"]), settings, root, budget=self.budget
                )
            model = self._models[key]
        _refuse_other_family(
            f"language model {run.llm['name']!r} {model.trained_verb}", model.family, run
        )
        return model


@dataclass(frozen=True, slots=True)
class CorpusSummary:
    """The searched corpus: its number of passages, its folders of documents, and the numbers of
    files read and left out.
    """

    corpus: str  # empty if the experiment retrieves nothing
    passages: int = 0
    folders: tuple[str, ...] = ()
    files: int = 0
    left_out: int = 0

    def __str__(self) -> str:
        if not self.corpus:
            return "nothing: the experiment retrieves no passages"
        if not self.folders:
            return f"{pluralize(self.passages, 'passage')} of the corpus {self.corpus}"
        left = f"; {pluralize(self.left_out, 'file')} left out" if self.left_out else ""
        read = f"{pluralize(self.files, 'file')}, {pluralize(self.passages, 'passage')}"
        return f"{read} in {', '.join(self.folders)}{left} (corpus {self.corpus})"


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
        for part in ("retriever", "reader", "_store"):
            vars(self).pop(part, None)

    @cached_property
    def retriever(self) -> Retriever:
        """The experiment's retriever.

        IfqaError if it has none, or one of the retriever's inputs is missing.
        """
        return _open_retriever(self.run.retriever, self.run, self.session)

    @cached_property
    def reader(self) -> Reader:
        """The experiment's reader.

        IfqaError if it has none, or one of the reader's inputs is missing.
        """
        run = self.run
        experiment = self.experiment
        name = run.reader["name"]
        llm = {"llm": self.session.llm(run)} if run.plugins.takes("reader", name, "llm") else {}
        reader = open_plugin(
            run.plugins.reader(name), experiment.reader_settings, experiment.root, **llm
        )
        _refuse_other_family(f"reader {name!r} {reader.trained_verb}", reader.family, run)
        _refuse_unknown_questions(run.reader, reader, run)
        log_label(name, reader.label)
        return reader

    @cached_property
    def _store(self) -> list[PassageStore]:
        return [PassageStore(self.run.corpus.folder / "passages")] if self.run.corpus else []

    def open(self) -> Self:
        """Open the retriever and the reader now, not with the first question."""
        with self._searching, self._reading:
            _ = self.experiment.retriever and self.retriever
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
            table = self.run.retriever
            depth = k or table["k"]
            corpus = self.experiment.corpus
            attributes = {
                "gen_ai.operation.name": "retrieval",
                "gen_ai.data_source.id": corpus or None,
                "gen_ai.retrieval.top_k": depth,
                "ifqa.retriever": table["name"],
                "ifqa.questions": len(questions),
            }
            if captures_content():
                attributes["gen_ai.retrieval.query.text"] = "\n".join(
                    question.text for question in questions
                )
            with span(f"retrieval {corpus or table['name']}", attributes):
                rankings = retriever.search(
                    rewrite_questions(questions, table.get("query", "question")), depth
                )
            check_rankings(table["name"], questions, depth, rankings)
        return rankings

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
        with self._reading:  # so that only one thread opens the reader
            reader = self.reader
        with nullcontext() if reader.concurrent else self._reading:
            weights = {"scores": scores} if reader.takes_scores else {}
            name = self.run.reader["name"]
            with span(f"read {name}", {"ifqa.reader": name, "ifqa.questions": len(questions)}):
                predictions = reader.answer(questions, passages, advance=advance, **weights)
        check_predictions(self.run.reader["name"], questions, passages, predictions)
        return predictions

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

        An answer whose confidence is below `threshold` is withheld: its text is then the
        `candidate`. None leaves it to the reader; 0 withholds no answer. A reader without
        confidences always answers. If question or documents are in another language than the
        reader's, the answer has a `note`, and by default there are only passages. While a language
        model that `streams` writes the first question's completion, `on_text` is called with its
        text so far.
        """
        if threshold is not None and not is_share(threshold):
            raise ConfigError(
                f"threshold: wanted a confidence from 0 to 1, or None; found {threshold!r:.80}"
            )
        parsed = as_questions(questions)
        depth = self.run.reader["passages"]
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
        thresholds = self.thresholds(threshold)
        answers = []
        for question, prediction, texts in zip(parsed, predictions, passages, strict=True):
            by_id = {passage.id: passage for passage in texts}
            evidence = tuple(by_id[passage_id] for passage_id in prediction.passage_ids)
            note = self._language_note(question)
            if note and threshold is None and not prediction.error:
                answers.append(Answer(question, "", evidence, note=f"{note} {_WITHHELD}"))
            else:
                answer = answer_of(question, prediction.abstain_below(*thresholds), evidence)
                answers.append(replace(answer, note=note))
        return answers

    def thresholds(self, threshold: float | None = None) -> tuple[float, float]:
        """The confidence and the `answerable` below which an answer is withheld.

        A `threshold` is one of confidence alone.
        """
        with self._reading:
            own = self.reader.abstain_threshold, self.reader.answerable_threshold
        return own if threshold is None else (threshold, 0.0)

    def _language_note(self, question: Question) -> str:
        """What to say if a question or the documents are not in the reader's language.

        Empty if they are.
        """
        language = self.reader.language
        build = self.run.corpus if self.experiment.retriever else None
        if not language:
            return ""
        languages = {"this question is": detect_language(question.text)}
        languages |= {"these documents are": build.language} if build else {}
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
        `answer`. Without an answer or a retriever there is nothing to leave out.
        """
        if not (self.experiment.retriever and answer.text):
            return []
        question = answer.question
        with self._searching:
            ranking = self.search([question])[0][: self.run.reader["passages"]]
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
        build = self.run.corpus
        if not (self.experiment.retriever and build):
            return CorpusSummary("")
        manifest = build.artifact("passages").manifest
        record = dict(manifest["record"]) if manifest else {}
        counts = [
            count if isinstance(count := record.get(key), int) else 0
            for key in ("passages", "pages", "bad")
        ]
        folders = user_folders(build.corpus.sources)
        if not folders:
            return CorpusSummary(build.corpus.name, counts[0])
        return CorpusSummary(build.corpus.name, counts[0], folders, *counts[1:])

    @cached_property
    def documents(self) -> Mapping[str, IndexedFile]:
        """The files of the searched folder of documents, by their names as in the ids of their
        passages.
        """
        build = self.run.corpus
        return (
            indexed_files(build.sources, build.built_files)
            if self.searched.folders and build
            else {}
        )

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


def check_rankings(
    retriever: str, questions: Sequence[Question], k: int, rankings: Sequence[Sequence[Hit]]
) -> None:
    """Check a retriever's output.

    PluginError if a ranking is missing, too long, or holds something other than hits.
    """
    name = f"retriever {retriever!r}"
    if not isinstance(rankings, list) or len(rankings) != len(questions):
        what = len(rankings) if isinstance(rankings, list) else type(rankings).__name__
        problem = f"wanted {len(questions)}, found {what}"
        raise PluginError(
            f"{name} must return a list with one ranking for each question: {problem}"
        )
    for question, found_ranking in zip(questions, rankings, strict=True):
        ranking = found_ranking.hits if isinstance(found_ranking, SearchResult) else found_ranking
        gave = f"{name} gave {question.id}"
        if not isinstance(ranking, list | tuple) or not all(
            isinstance(hit, Hit) for hit in ranking
        ):
            raise PluginError(
                f"{gave} {ranking!r:.80}; wanted a list of ifqa.Hit(passage_id, score)"
            )
        if len(ranking) > k or len({hit.passage_id for hit in ranking}) < len(ranking):
            raise PluginError(
                f"{gave} {len(ranking)} passages; wanted at most k = {k}, and none twice"
            )
        for hit in ranking:
            name_fits = isinstance(hit.passage_id, str) and hit.passage_id.split() == [
                hit.passage_id
            ]
            if not (name_fits and isinstance(hit.score, Real) and math.isfinite(hit.score)):
                raise PluginError(
                    f"{gave} {hit!r:.80}; wanted an id without white space, "
                    "and a number as its score"
                )
        check_order(question.id, ranking)


def check_predictions(
    reader: str,
    questions: Sequence[Question],
    passages: Sequence[Sequence[Passage]],
    predictions: Sequence[Prediction],
) -> None:
    """Check a reader's output.

    PluginError unless each question has one prediction, which cites only its passages.
    """
    name = f"reader {reader!r}"
    if not isinstance(predictions, list | tuple) or not all(
        isinstance(each, Prediction) for each in predictions
    ):
        raise PluginError(
            f"{name} gave {predictions!r:.80}; wanted a list of "
            "ifqa.Prediction(question.id, answer)"
        )
    if [prediction.question_id for prediction in predictions] != [
        question.id for question in questions
    ]:
        raise PluginError(f"{name} must give one prediction for each question, in the same order")
    for prediction, read in zip(predictions, passages, strict=True):
        name = f"reader {reader!r}, {prediction.question_id}"
        if not isinstance(prediction.how, Explanation | None):
            raise PluginError(
                f"{name}: wanted ifqa.Explanation as `how`, found {prediction.how!r:.80}"
            )
        checked = valid_prediction(asdict(prediction), name)
        written = (
            checked.answer,
            checked.factual,
            checked.completion,
            checked.error,
            checked.candidate,
        )
        unicode_text(f"{''.join(written)}{checked.how and checked.how.calculation}", "answer", name)
        texts = {passage.id: passage.text for passage in read}
        cited = [*prediction.passage_ids, *([prediction.how.passage_id] if prediction.how else [])]
        if foreign := [passage_id for passage_id in cited if passage_id not in texts]:
            raise PluginError(
                f"{name}: cites passage {foreign[0]!r:.80}, which is not "
                "among the passages it was given"
            )
        if how := prediction.how:
            terms = how.calculation.terms if how.calculation else ()
            spans = [
                how.sentence,
                how.span,
                *((term.start, term.end) for term in terms if term.source == "passage"),
            ]
            length = len(texts[how.passage_id])
            if wrong := [span for span in spans if not 0 <= span[0] <= span[1] <= length]:
                limits = f"wanted places within the passage's {length} characters in `how`"
                raise PluginError(f"{name}: {limits}, found {wrong[0]}")


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


def open_plugin(
    plugin: type[_P], settings: Mapping[str, object], root: Path, **arguments: object
) -> _P:
    """Construct a plugin with its settings and those `arguments` that its constructor accepts."""
    taken = accepted_arguments(plugin.__init__, root=root, **arguments)
    return plugin(**taken, **resolve_paths(plugin.__init__, settings, root))


def _open_retriever(table: RetrieverSettings, run: Run, session: Session) -> Retriever:
    """Open a retriever with its index and its parts."""
    name = table["name"]
    experiment = run.experiment
    corpus = run.corpus.folder if run.corpus else Path()
    arguments = dict[str, object]()
    if "parts" in table:
        arguments["parts"] = [
            Part(
                _open_retriever(part, run, session),
                part["k"],
                part["weight"],
                part.get("query", "question"),
            )
            for part in table["parts"]
        ]
    if run.plugins.takes("retriever", name, "passages"):
        stores: list[PassageStore] = (
            [PassageStore(corpus / "passages")] if experiment.corpus else []
        )
        arguments["passages"] = partial(get_passages, stores)
    if run.plugins.takes("retriever", name, "corpus"):
        arguments["corpus"] = PassageStore(corpus / "passages")
    if run.plugins.takes("retriever", name, "llm"):
        arguments["llm"] = session.llm(run)
    if "index" in table:
        arguments["index"] = corpus / table["index"]
    retriever = open_plugin(
        run.plugins.retriever(name), search_settings(table), experiment.root, **arguments
    )
    _refuse_other_family(f"retriever {name!r} {retriever.trained_verb}", retriever.family, run)
    _refuse_unknown_questions(table, retriever, run)
    return retriever


def _refuse_unknown_questions(table: Mapping[str, object], plugin: Trainable, run: Run) -> None:
    """Refuse a plugin's file that has questions outside the split."""
    if not plugin.question_ids:
        return
    known = dict.fromkeys(question.id for question in run.split)
    if foreign := [question_id for question_id in plugin.question_ids if question_id not in known]:
        raise IfqaError(
            f"{table.get('path', table['name'])} has {pluralize(len(foreign), 'question')}, "
            f"of {len(plugin.question_ids):,}, "
            f"that {run.experiment.benchmark} {run.experiment.split} does not have: "
            f"{', '.join(foreign[:3])}"
            f"{', …' if foreign[3:] else ''}; wanted ids such as {next(iter(known))}"
        )


def log_label(reader: str, label: str) -> None:
    if label:
        logger.info(f"reader {reader!r}: {label}")


def refuse_other_families(run: Run) -> None:
    """Refuse weights of another split family before anything is built.

    A `System` checks again when it opens them.
    """
    for name, plugin, function, settings in run.trainables():
        root = run.experiment.root
        arguments = accepted_arguments(plugin.training_family, root=root) | resolve_paths(
            function, settings, root
        )
        _refuse_other_family(
            f"{name} {plugin.trained_verb}", plugin.training_family(**arguments), run
        )


def _refuse_other_family(what: str, trained: str, run: Run) -> None:
    """IfQA's split families divide the same questions, so a model of one family has seen test
    questions of the other.
    """
    tested = run.benchmark.family(run.experiment.split)
    if trained != tested and trained.partition("/")[0] == tested.partition("/")[0]:
        raise ConfigError(
            f"{what} {trained} and may not be tested on {tested}, "
            "which holds the same questions; take that family's training split"
        )


def was_trained_on(plugin: Trainable, run: Run) -> bool:
    """Whether a plugin's weights were trained on the experiment's own questions.

    Its scores then mean little.
    """
    if not plugin.trained_on:
        return False
    return any(
        sha256(path) in plugin.trained_on for path in run.benchmark.files(run.experiment.split)
    )
