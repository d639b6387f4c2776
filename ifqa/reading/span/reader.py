"""Reader 'extractive', the default: a small span reader over all-MiniLM-L6-v2, trained on IfQA.

It needs no GPU and no key.
"""

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from ifqa.corpus.documents.chunking import parse_locator
from ifqa.corpus.sentences import sentence_span
from ifqa.errors import ConfigError, IfqaError, MissingInput
from ifqa.models.devices import resolve_device, resolve_precision
from ifqa.models.places import is_packaged, local_path, model_requirement
from ifqa.protocols import (
    PathSetting,
    ProgressCallback,
    RankedPassages,
    Reader,
    Requirement,
    no_progress,
)
from ifqa.reading.span.arithmetic import in_one_unit
from ifqa.reading.span.calibration import (
    CALIBRATION_FILE,
    confidence_features,
    load_calibration,
    load_document_thresholds,
    logistic,
)
from ifqa.reading.span.numbers import (
    MONTH_NAMES,
    NUMBER_WORDS,
    SCALES,
    SECONDS,
    Number,
    format_answer,
)
from ifqa.reading.span.weights import (
    fingerprint_weights,
    load_span_manifest,
    load_weights,
    resolve_encoder,
)
from ifqa.records import Calculation, Explanation, Passage, Prediction, Question, Term
from ifqa.scoring.measures.exact_match import normalize
from ifqa.settings import PluginSettings, Positive, Precision, Share
from ifqa.storage.files import sha256
from ifqa.storage.resources import BUNDLED

if TYPE_CHECKING:
    import torch

    from ifqa.reading.span.network import AnswerCandidate, EncodedPair

BUNDLED_WEIGHTS = BUNDLED / "weights" / "extractive"
LARGER_WEIGHTS = "extractive-large"
PASSAGE_CANDIDATES = 20  # candidates kept per passage
EMPTY_RELEVANCE = -50.0  # the relevance of a passage without text: below any other
#: An answer that leads by more than this in log probability also leads in float32: bfloat16 changed
#: the lead by at most 0.18 on 300 training questions with five passages each.
CLOSE_MARGIN = 0.5
_HOW_MANY = re.compile(r"\bhow many\b", re.IGNORECASE)
_COUNT = re.compile(rf"\d|\b(?:{'|'.join(NUMBER_WORDS)}|no|none|both|twice|half)\b", re.IGNORECASE)
_PERIODS = (*SECONDS, "month", "decade")  # units shown after a step's number; "years" is not shown
_SCALE = re.compile(r"[ -](?:thousand|million|billion|trillion)\b|%", re.IGNORECASE)
#: Words that belong to a step's number: "three years later", "2 more".
_STEP = re.compile(
    r"(?:[ "
    r"-](?:(?:thousand|million|billion|trillion|seconds?|minutes?|hours?|days?|weeks?|fortnights?|months?|years?"
    r"|decades?|per ?cent|more|fewer|less|additional|extra|other|earlier|later|sooner|longer"
    r"|shorter|older|younger|prior|before|after|ahead)\b)|%)*",
    re.IGNORECASE,
)


class Extractive(Reader):
    """Takes a span of a passage, or computes an answer from a number in a passage and a number in
    the question.

    The candidates of all passages of a question share one softmax; probabilities of candidates with
    the same text, after SQuAD's normalisation, are summed. Spans are whole words and amounts;
    answers are computed from numbers of the same kind. Dates have the form of IfQA's answers; those
    from a user's own documents keep their form. There, a list that the question asks for is one
    candidate (`ifqa.reading.span.whole_lists`). Titles are not read (see
    `ifqa.reading.span.network`). Question and passage are cut to 256 tokens together, about 170
    words.
    """

    version = 7
    takes = ("root",)
    runtime_only = ("device", "batch_tokens", "encoder")
    model_settings: ClassVar = {"weights": "ifqa-extractive"}

    class Settings(PluginSettings):
        weights: PathSetting = ""
        """A folder that `ifqa train extractive` made, or "extractive-large": more right answers,
        with an encoder five times as large, to be fetched. Both it and the default, empty, ship
        with ifqa.
        """
        rank_weight: float = 1.0
        """A passage's place in the ranking lowers its candidates' scores by `rank_weight *
        log(place)`.
        """
        threshold: Share = 0.0
        """The reader abstains below this confidence, for which its weights need a calibration. With
        0, it answers every question, but a system opened with `ifqa.open` abstains where
        `answerable` is below the calibration's threshold, or over a user's own documents where it
        or the confidence is below those that were fitted on documents.
        """
        device: str = "auto"
        """The device: "cpu", "cuda", "mps", or "auto": CUDA if there is a GPU, else the CPU."""
        precision: Precision = "auto"
        """The precision: "float32"; "bfloat16", which changes about 3 answers in 100 (MiniLM); or
        "auto": bfloat16 where the processor supports it, then float32 for questions whose best two
        answers are close.
        """
        batch_tokens: Positive = 8192
        """Tokens read at a time, padding included; limits memory and never changes an answer."""
        encoder: PathSetting = ""
        """The encoder that the weights were trained on: "all-MiniLM-L6-v2", "all-mpnet-base-v2", or
        a folder; empty for the name in their manifest. Any other encoder is refused.
        """
        skim: Share | None = None
        """The default weights, which are quicker, read all passages of a question first; these
        weights then read only those with at least this part of the likeliest passage's probability.
        With 0, they read all passages. Unset, it is 0, but 0.01 for "extractive-large" over a
        user's own documents.
        """

    def __init__(self, settings: Settings, *, root: Path = Path()) -> None:
        import torch

        from ifqa.models.span_encoder import open_encoder
        from ifqa.reading.span.network import SpanModel

        self.folder = weights_folder(settings.weights)
        self.manifest = load_span_manifest(self.folder)
        self.family = self.manifest["family"]
        self.rank_weight = settings.rank_weight
        self.batch_tokens = settings.batch_tokens
        # weights of earlier versions were trained without a null candidate
        self._has_null = bool(self.manifest.get("settings", {}).get("without_gold"))
        self.trained_on: frozenset[str] = frozenset(self.manifest.get("sources", {}).values())
        place = resolve_device(settings.device)
        self._encoder = resolve_encoder(self.folder, settings.encoder, root).folder
        self._model = SpanModel(open_encoder(self._encoder))
        load_weights(self._model, self.folder)
        self._model.to(place).eval()
        self._precision = resolve_precision(settings.precision, place)
        self._close_precision = torch.float32 if settings.precision == "auto" else self._precision
        weights = fingerprint_weights(self.folder)
        self.calibration = load_calibration(self.folder, weights)
        self.gives_confidence = self.calibration is not None
        self.calibrated_on = self.calibration.sources if self.calibration else ()
        threshold = settings.threshold
        self.threshold = self.abstain_threshold = threshold
        if threshold and self.calibration is None:
            mend = f"fit it: ifqa train calibration --to {self.folder}"
            raise MissingInput(
                f"{self.folder} has no {CALIBRATION_FILE} for threshold = {threshold:g}; {mend}"
            )
        self.answerable_threshold = (
            self.calibration.answerable_threshold if self.calibration and not threshold else 0.0
        )
        self._documents = load_document_thresholds(self.folder, weights)
        if self._documents and self.calibration and not threshold:
            self.document_thresholds = (self._documents.confidence, self._documents.answerable)
        self._settings = settings
        self._root = root
        self._skim = used_skim(settings)
        if settings.skim:  # unset, the default weights are opened for the first document
            self.trained_on |= self._skimmer.trained_on
        # what ships was trained on English; the default has EM 15 in Norwegian, 10 in German, 0 in
        # Japanese: bench/languages.py
        self.language = "en" if self.folder.parent == BUNDLED_WEIGHTS.parent else ""

    @cached_property
    def _skimmer(self) -> "Extractive":
        """The reader with the default weights, opened when it is first needed.

        Raises:
            ConfigError: these weights are the default ones, or were trained on another split
                family. The default weights may then have seen the questions of a test.
        """
        if self.folder == BUNDLED_WEIGHTS:
            raise ConfigError(
                f"skim = {self._skim:g} is for other weights than the default ones, which would "
                "read everything twice; set reader.skim=0"
            )
        settings = self._settings
        skimmer = Extractive(
            Extractive.Settings(
                rank_weight=settings.rank_weight,
                device=settings.device,
                precision=settings.precision,
                batch_tokens=settings.batch_tokens,
            ),
            root=self._root,
        )
        if skimmer.family != self.family:
            raise ConfigError(
                f"skim = {self._skim:g} reads with the default weights, which were trained on "
                f"family {skimmer.family!r}; {self.folder} was trained on {self.family!r}; set "
                "reader.skim=0"
            )
        return skimmer

    @property
    def advice(self) -> str:
        """How many answers the larger weights would have right of those measured with these."""
        if not self._documents or self.folder != BUNDLED_WEIGHTS:
            return ""
        folder = weights_folder(LARGER_WEIGHTS)
        larger = load_document_thresholds(folder, fingerprint_weights(folder))
        if not larger or larger.measured != self._documents.measured:
            return ""
        return (
            f"of {larger.measured} questions about documents the larger weights answer "
            f"{larger.right} right, these {self._documents.right}, at four times the cost: "
            f"ifqa data all-mpnet-base-v2, then --set reader.weights={LARGER_WEIGHTS}"
        )

    def read(
        self,
        questions: Sequence[Question],
        passages: RankedPassages,
        advance: ProgressCallback = no_progress,
    ) -> list["ReadAnswer"]:
        """Predictions before confidence and abstention."""
        readings: Sequence[_Reading] = self._encode(questions, passages)
        if self._skim:
            readings = self._without_unlikely(readings)
        answers = self._read(readings, self._precision)
        if self._precision != self._close_precision:
            close = [
                n
                for n, answer in enumerate(answers)
                if answer.features.get("margin", 0.0) < CLOSE_MARGIN
            ]
            for n, answer in zip(
                close, self._read([readings[n] for n in close], self._close_precision), strict=True
            ):
                answers[n] = answer
        advance(len(questions))
        return answers

    def _without_unlikely(self, readings: Sequence["_Reading"]) -> Sequence["_Reading"]:
        is_asked_for = self._settings.skim is not None
        skimmed = [
            reading for reading in readings if is_asked_for or _is_of_documents(reading.ranking)
        ]
        if not skimmed:
            return readings
        likely = self._skimmer.likely_passages(
            [reading.question for reading in skimmed],
            [reading.ranking for reading in skimmed],
            self._skim,
        )
        skipped = {
            id(reading): frozenset(range(len(reading.pairs))) - places
            for reading, places in zip(skimmed, likely, strict=True)
        }
        return [
            reading._replace(skipped=skipped.get(id(reading), frozenset())) for reading in readings
        ]

    def likely_passages(
        self, questions: Sequence[Question], passages: RankedPassages, part: float
    ) -> list[frozenset[int]]:
        """For each question, the places of the passages with at least this part of the likeliest
        passage's probability.

        A passage's probability is the sum of its candidates'. The only passage of a question is not
        read.
        """
        readings = self._encode(questions, passages)
        several = [reading for reading in readings if len(reading.pairs) > 1]
        candidates = self._candidates_of(several, self._precision)
        likely = []
        for reading in readings:
            scores = [
                _log_sum([score for score, *_ in candidates[id(pair)]])
                - _rank_penalty(self.rank_weight, place)
                for place, pair in enumerate(reading.pairs)
                if id(pair) in candidates
            ]
            if not scores:
                likely.append(frozenset(range(len(reading.pairs))))
                continue
            least = max(scores) + math.log(part)
            likely.append(frozenset(n for n, score in enumerate(scores) if score >= least))
        return likely

    def _encode(self, questions: Sequence[Question], passages: RankedPassages) -> list["_Reading"]:
        from ifqa.reading.span.network import encode_pair

        # a pair in several rankings is read once
        encode = cache(partial(encode_pair, self._encoder))
        readings = []
        for question, ranking in zip(questions, passages, strict=True):
            # dates from a user's own documents, whose ids are locators, keep their form
            pairs = [
                encode(question.text, passage.text, parse_locator(passage.id) is not None)
                for passage in ranking
            ]
            readings.append(_Reading(question, ranking, pairs))
        return readings

    def _read(self, readings: Sequence["_Reading"], dtype: "torch.dtype") -> list["ReadAnswer"]:
        """`read` in `dtype`."""
        candidates = self._candidates_of(readings, dtype)
        return [
            _choose(
                reading.question,
                reading.ranking,
                [
                    (pair, [] if place in reading.skipped else candidates[id(pair)])
                    for place, pair in enumerate(reading.pairs)
                ],
                self.rank_weight,
            )
            for reading in readings
        ]

    def _candidates_of(
        self, readings: Sequence["_Reading"], dtype: "torch.dtype"
    ) -> dict[int, list["AnswerCandidate"]]:
        """The best candidates of each pair that is not skipped, by the pair's `id`."""
        unique = {
            id(pair): pair
            for reading in readings
            for place, pair in enumerate(reading.pairs)
            if place not in reading.skipped
        }
        return dict(zip(unique, self._candidates([*unique.values()], dtype), strict=True))

    def _candidates(
        self,
        pairs: Sequence["EncodedPair"],
        dtype: "torch.dtype",
        advance: ProgressCallback = no_progress,
    ) -> list[list["AnswerCandidate"]]:
        """The best candidates of each pair, best first."""
        import torch

        from ifqa.reading.span.network import rank_candidates

        best: list[list[AnswerCandidate]] = [[] for _ in pairs]
        self._model.encoder.cast(dtype)
        with torch.inference_mode():
            for batch in _batches([len(pair.ids) for pair in pairs], self.batch_tokens):
                spans, computed = self._model([pairs[index] for index in batch])
                for row, index in enumerate(batch):
                    best[index] = rank_candidates(
                        pairs[index], spans[row], computed[row], PASSAGE_CANDIDATES
                    )
                advance(len(batch))
        return best

    def relevance(
        self, pairs: Sequence[tuple[str, str]], advance: ProgressCallback = no_progress
    ) -> list[float]:
        """A score for each (question, passage text) of how likely the passage is to hold the
        answer, for the retriever 'rerank'.

        It is the log of the sum of the candidates' exponentiated scores, to which the passage's
        softmax share is proportional.
        """
        from ifqa.reading.span.network import encode_pair

        candidates = self._candidates(
            [encode_pair(self._encoder, *pair) for pair in pairs], self._precision, advance
        )
        return [_log_sum([score for score, *_ in ranked]) for ranked in candidates]

    def answer(
        self,
        questions: Sequence[Question],
        passages: RankedPassages,
        advance: ProgressCallback = no_progress,
    ) -> list[Prediction]:
        """Predictions.

        The passage that contributes most to the answer comes first; the rest follow by their best
        candidates.
        """
        rated = self.read_rated(questions, passages, advance)
        return [answer.prediction for answer in rated]

    def read_rated(
        self,
        questions: Sequence[Question],
        passages: RankedPassages,
        advance: ProgressCallback = no_progress,
    ) -> list["ReadAnswer"]:
        """`read` with confidence and abstention."""
        return [
            answer._replace(prediction=self.rate(answer))
            for answer in self.read(questions, passages, advance)
        ]

    def rate(self, answer: "ReadAnswer") -> Prediction:
        """The prediction with its confidence, or an abstention below the threshold."""
        confidence = (
            self.calibration.confidence(answer.features)
            if self.calibration and answer.features
            else None
        )
        answerable = answer.prediction.answerable if self._has_null else None
        return replace(
            answer.prediction, confidence=confidence, answerable=answerable
        ).abstain_below(self.threshold)

    @classmethod
    def requirements(cls, settings: Settings, root: Path) -> Iterator[Requirement]:
        """The named weights, and their encoder if it is not part of this installation."""
        weights = settings.weights
        encoder = settings.encoder
        folder = weights_folder(weights)
        if folder != BUNDLED_WEIGHTS:
            yield model_requirement(weights)
        if not encoder and (folder / "manifest.json").exists():
            try:
                encoder = load_span_manifest(folder)["encoder"]["name"]
            except IfqaError as error:
                yield Requirement(f"the manifest of {weights}", str(error))
        if encoder and not is_packaged(encoder):
            yield model_requirement(encoder, root)

    @classmethod
    def training_family(cls, settings: Settings, root: Path) -> str:
        return str(load_span_manifest(weights_folder(settings.weights))["family"])

    @classmethod
    def fingerprint(cls, settings: Settings, root: Path) -> str:
        folder = weights_folder(settings.weights)
        files = [fingerprint_weights(folder)]
        if (folder / CALIBRATION_FILE).exists():
            files.append(sha256(folder / CALIBRATION_FILE))
        # The part stored for documents makes no reading stale, as the thresholds next to it do not
        if settings.skim:
            files.append(fingerprint_weights(BUNDLED_WEIGHTS))
        if len(files) == 1:
            return files[0]
        return hashlib.sha256(" ".join(files).encode()).hexdigest()


def weights_folder(weights: str, root: Path = Path()) -> Path:
    """The folder of weights: the default for "" and "shipped"."""
    return BUNDLED_WEIGHTS if weights in ("", "shipped") else local_path(weights, root)


def used_skim(settings: Extractive.Settings) -> float:
    """The setting `skim`; if it is unset, that of these weights for a user's own documents."""
    if settings.skim is not None:
        return settings.skim
    folder = weights_folder(settings.weights)
    documents = load_document_thresholds(folder, fingerprint_weights(folder))
    return documents.skim if documents else 0.0


class ReadAnswer(NamedTuple):
    """A prediction; a failure has neither features nor shares."""

    prediction: Prediction
    features: Mapping[str, float]  # of the confidence
    # The text and the probability of each candidate answer, the likeliest first
    shares: Mapping[str, float]
    # A text -> where it was read, if it is a candidate answer
    explain: Callable[[str], Explanation | None] = lambda text: None


#: A candidate: score, normalised text, text, the passage's place, and source.
_Scored = tuple[float, str, str, int, tuple[int, ...]]


class _Reading(NamedTuple):
    """A question, its passages, and each as the network reads them."""

    question: Question
    ranking: Sequence[Passage]
    pairs: Sequence["EncodedPair"]
    skipped: frozenset[int] = frozenset()  # places of passages that are not read


class Sentence(Extractive):
    """Answers with the sentence that 'extractive' takes its answer from, for questions that ask for
    a clause, such as why.

    The settings are those of 'extractive'. Confidence and threshold hold for the short answer: they
    are fitted on those.
    """

    def read(
        self,
        questions: Sequence[Question],
        passages: RankedPassages,
        advance: ProgressCallback = no_progress,
    ) -> list[ReadAnswer]:
        answers = super().read(questions, passages, advance)
        for n, (answer, ranking) in enumerate(zip(answers, passages, strict=True)):
            if how := answer.prediction.how:
                text = next(passage.text for passage in ranking if passage.id == how.passage_id)
                sentence = text[slice(*how.sentence)]
                how = replace(how, calculation=None)
                prediction = replace(
                    answer.prediction, answer=sentence, completion=sentence, how=how
                )
                answers[n] = answer._replace(prediction=prediction)
        return answers


def _choose(
    question: Question,
    passages: Sequence[Passage],
    candidates: Sequence[tuple["EncodedPair", Sequence["AnswerCandidate"]]],
    rank_weight: float,
) -> ReadAnswer:
    """The answer from the candidates of each passage; one that was not read has none."""
    if not passages:
        return ReadAnswer(Prediction(question.id, "", error="no passages"), {}, {})
    scored = [
        (score - _rank_penalty(rank_weight, place), normalize(text), text.strip(), place, source)
        for place, (_, ranked) in enumerate(candidates)
        for score, text, source in ranked
    ]
    scored = _keep_counts(question.text, scored)
    best = max((score for score, *_ in scored), default=0.0)
    weights: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    forms: dict[str, str] = {}  # normalised text -> text of its best candidate
    order: dict[int, float] = {}  # passage -> its best score
    # Normalised text, passage -> source of the best candidate
    sources: dict[tuple[str, int], tuple[int, ...]] = {}
    for score, key, text, place, source in sorted(scored, key=lambda candidate: -candidate[0]):
        weights[key][place] += math.exp(score - best)
        forms.setdefault(key, text)
        order.setdefault(place, score)
        sources.setdefault((key, place), source)
    weights.pop("", None)
    if not weights:
        ids = tuple(passage.id for passage in passages)
        return ReadAnswer(
            Prediction(question.id, "", passage_ids=ids, error="no text in the passages"), {}, {}
        )
    totals = {key: sum(weights[key].values()) for key in weights}
    chosen, *_ = likeliest = sorted(totals, key=lambda key: -totals[key])

    def evidence_for(key: str) -> int:
        """The place of the passage that contributes most to an answer."""
        return max(weights[key], key=lambda place: weights[key][place])

    def explain_text(text: str) -> Explanation | None:
        key = normalize(text)
        if key not in totals:
            return None
        place = evidence_for(key)
        pair, _ = candidates[place]
        return explain(pair, passages[place].id, forms[key], sources[key, place])

    evidence = evidence_for(chosen)
    places = sorted(
        range(len(passages)), key=lambda place: (place != evidence, -order.get(place, -math.inf))
    )
    ids = tuple(passages[place].id for place in places)
    compared = [(score, key, place) for score, key, _, place, _ in scored]
    features = confidence_features(
        question.text, [passage.text for passage in passages], compared, chosen
    )
    # Against the null candidate's score of 0
    answerable = logistic(_log_sum([score for score, *_ in scored]))
    prediction = Prediction(
        question.id,
        forms[chosen],
        completion=forms[chosen],
        passage_ids=ids,
        how=explain_text(chosen),
        answerable=answerable,
    )
    everything = sum(totals.values())
    shares = {forms[key]: totals[key] / everything for key in likeliest}
    return ReadAnswer(prediction, features, shares, explain_text)


def _keep_counts(question_text: str, scored: list[_Scored]) -> list[_Scored]:
    """The candidates with a number if the question asks "how many": "days" is no answer to "how
    many days".

    All of them if none has a number, or the question asks for something else.
    """
    if not _HOW_MANY.search(question_text):
        return scored
    return [candidate for candidate in scored if _COUNT.search(candidate[2])] or scored


def _is_of_documents(ranking: Sequence[Passage]) -> bool:
    """Whether the passages are from a user's own documents, whose ids are locators."""
    return all(parse_locator(passage.id) is not None for passage in ranking)


def _rank_penalty(rank_weight: float, place: int) -> float:
    return rank_weight * math.log(place + 1)


def _log_sum(scores: Sequence[float]) -> float:
    """The log of the sum of the exponentiated scores."""
    best = max(scores, default=EMPTY_RELEVANCE)
    return best + math.log(sum(math.exp(score - best) for score in scores) or 1.0)


def explain(
    pair: "EncodedPair", passage_id: str, answer: str, source: tuple[int, ...]
) -> Explanation:
    """The sentence, span and calculation of a candidate with the text `answer` and the `source` of
    `rank_candidates`.
    """
    if len(source) == 2:
        items = pair.items(*source)
        span = (items[0][0], items[-1][1]) if items else pair.span(*source)
        return Explanation(passage_id, sentence_span(pair.text, *span), span, items=items)
    row, number, step = source
    first = pair.numbers[row][0]
    span = first.start, first.end
    return Explanation(
        passage_id,
        sentence_span(pair.text, *span),
        span,
        _calculation(pair, answer, row, number, step),
    )


def _calculation(pair: "EncodedPair", answer: str, row: int, number: int, step: int) -> Calculation:
    numbers = pair.numbers[row]
    # Prefer a stated "a year": it explains more
    if number == 0 and len(numbers) == 1 and numbers[0].unit != "list":
        number = next(
            (n for n, steps in enumerate(pair.computed[row]) if n and steps[step] == answer), 0
        )
    operand = pair.question_numbers[number]
    rule = "times" if operand.factor else ("plus", "minus")[step]
    terms = [_in_passage(pair, passage_number) for passage_number in numbers]
    step_term = _in_question(pair, operand)
    if len(numbers) == 2:  # the time between them, their difference, or their sum
        larger_first = terms if numbers[0].value >= numbers[1].value else terms[::-1]
        if number == 0:
            return Calculation(answer, rule, tuple(larger_first if step else terms))
        return Calculation(answer, f"minus, {rule}", (*larger_first, step_term))
    if numbers[0].unit == "list" and number == step == 0:
        return Calculation(answer, "", tuple(terms))
    if rule == "minus" and _is_less(numbers[0], operand):
        return Calculation(answer, rule, (step_term, *terms))
    return Calculation(answer, rule, (*terms, step_term))


def _is_less(passage: Number, question: Number) -> bool:
    """Whether the passage's number is smaller, so that it was subtracted from the question's."""
    if question.unit == "%" or (
        passage.unit != question.unit and passage.unit.startswith(("date", "month of"))
    ):
        return False
    both = in_one_unit(passage, question)
    return both is not None and both[0].value < both[1]


def _in_passage(pair: "EncodedPair", number: Number) -> Term:
    end = number.end
    if scale := _SCALE.match(pair.text, end):
        end = scale.end()
    text = pair.text[number.start : end]
    if number.unit.startswith("date"):
        shown = format_answer(pair.text, number.start, end, pair.question)
    else:
        shown = (
            text if text[0].isdigit() and number.unit not in _PERIODS else _format_number(number)
        )
    return Term(text, shown, "passage", number.start, end)


def _in_question(pair: "EncodedPair", number: Number) -> Term:
    step = _STEP.match(pair.question, number.end)
    end = step.end() if step and number.end else number.end
    is_date = number.unit.startswith("date")
    shown = (
        format_answer(pair.question, number.start, number.end)
        if is_date
        else _format_number(number)
    )
    return Term(pair.question[number.start : end], shown, "question", number.start, end)


def _format_number(number: Number) -> str:
    if number.unit.startswith("month of"):
        year, month = divmod(int(number.value), 12)
        return MONTH_NAMES[month] + ("" if number.unit.endswith("?") else f" {year}")
    digits = f"{number.value:,}" if number.value % 1 else str(int(number.value))
    if number.unit in SCALES:
        return f"{digits} {number.unit}"
    if number.unit in _PERIODS:
        plural = "" if number.value == 1 else "s"
        return f"{digits} {number.unit}{plural}"
    return f"{digits}%" if number.unit == "%" else digits


def _batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Indexes of pairs of similar length.

    A batch has at most `budget` tokens with padding, or a single pair.
    """
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        # Lengths are rounded up to a multiple of 16
        if batch and (len(batch) + 1) * (lengths[index] + 15) > budget:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
