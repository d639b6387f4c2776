"""Reader 'extractive', the default: a small span reader over all-MiniLM-L6-v2, trained on IfQA; no GPU, no key."""

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ifqa.corpus.documents.chunking import parse_locator
from ifqa.corpus.sentences import sentence_span
from ifqa.errors import IfqaError
from ifqa.models.devices import resolve_device, resolve_precision
from ifqa.models.hub import is_packaged, model_requirement
from ifqa.protocols import PathSetting, ProgressCallback, Reader, Requirement, no_progress
from ifqa.reading.span.calibration import CALIBRATION_FILE as CALIBRATION
from ifqa.reading.span.calibration import confidence_features, load_calibration
from ifqa.reading.span.numbers import MONTH_NAMES, SCALES, Number, format_answer
from ifqa.reading.span.weights import fingerprint_weights, load_span_manifest, load_weights, resolve_encoder
from ifqa.records import Calculation, Explanation, Passage, Prediction, Question, Term
from ifqa.scoring.measures.exact_match import normalize
from ifqa.settings import Positive, Precision, Share, check_arguments
from ifqa.storage.files import sha256
from ifqa.storage.resources import BUNDLED

if TYPE_CHECKING:
    import torch

    from ifqa.reading.span.network import AnswerCandidate, EncodedPair

BUNDLED_WEIGHTS = BUNDLED / "weights" / "extractive"
PASSAGE_CANDIDATES = 20  # candidates kept per passage
EMPTY_RELEVANCE = -50.0  # the relevance of a passage without text: below that of any other
#: Of two answers' log probabilities: bfloat16 changed their difference by at most 0.18 on 300 training questions, five passages
#: each, so that a larger lead than this is the same in float32.
CLOSE_MARGIN = 0.5
_PERIODS = ("day", "week", "fortnight", "month", "decade")  # shown with a step's number, while years are bare
_SCALE = re.compile(r"[ -](?:thousand|million|billion|trillion)\b|%", re.IGNORECASE)
#: What tells the step a number is: "three years later", "2 more".
_STEP = re.compile(
    r"(?:[ -](?:(?:thousand|million|billion|trillion|days?|weeks?|fortnights?|months?|years?|decades?|per ?cent|more|fewer|less"
    r"|additional|extra|other|earlier|later|sooner|longer|shorter|older|younger|prior|before|after|ahead)\b)|%)*",
    re.IGNORECASE,
)


class Extractive(Reader):
    """Takes a span of a passage, or computes an answer from a number of a passage and a number of the question.

    The candidates of all passages of a question share one softmax. Probabilities of candidates with the same normalised
    text (SQuAD's normalisation) are summed. A span is of whole words and amounts. An answer is computed from numbers of one kind.
    Dates are written as IfQA's answers are, and as the file has them where the passage is of a user's own documents. Titles are
    not read (see `ifqa.reading.span.network`). Question and passage are cut to 256 tokens together, about 170 words.

    Args:
        weights: a folder that `ifqa train extractive` made; empty for the weights that ship with ifqa.
        rank_weight: `-rank_weight * log(place)` of a passage in the ranking is added to its candidates' scores.
        device: "cpu", "cuda", "mps", or "auto": CUDA if there is a GPU, else the CPU.
        threshold: the reader abstains below this confidence, which weights with a calibration give; 0 answers every question.
            An opened system asks with the calibration's own threshold.
        precision: "float32"; "bfloat16", with about 3 other answers in 100 (MiniLM); or "auto": where the processor multiplies in
            bfloat16, questions are read in it, and those whose best two answers are close again in float32.
        batch_tokens: tokens read at a time, padding included; limits memory and never changes an answer.
        encoder: the encoder that the weights were trained on: "all-MiniLM-L6-v2", "all-mpnet-base-v2", or a folder; empty for the
            one that their manifest names. Another one is refused.
    """

    version = 4
    runtime_only = ("device", "batch_tokens", "encoder")

    @check_arguments("setting of reader 'extractive'")
    def __init__(
        self,
        weights: PathSetting = "",
        rank_weight: float = 1.0,
        threshold: Share = 0.0,
        device: str = "auto",
        precision: Precision = "auto",
        batch_tokens: Positive = 8192,
        encoder: PathSetting = "",
        root: Path = Path(),
    ) -> None:
        import torch

        from ifqa.models.encoders import open_encoder
        from ifqa.reading.span.network import SpanModel

        self.folder = Path(weights) if weights else BUNDLED_WEIGHTS
        self.manifest = load_span_manifest(self.folder)
        self.family = self.manifest["family"]
        self.rank_weight, self.batch_tokens = rank_weight, batch_tokens
        self.trained_on = frozenset(self.manifest.get("sources", {}).values())
        place = resolve_device(device)
        self._encoder = resolve_encoder(self.folder, encoder, root).folder
        self._model = SpanModel(open_encoder(self._encoder))
        load_weights(self._model, self.folder)
        self._model.to(place).eval()
        self._first = resolve_precision(precision, place)
        self._second = torch.float32 if precision == "auto" else self._first
        self.calibration = load_calibration(self.folder, fingerprint_weights(self.folder))
        self.threshold = threshold
        if threshold and self.calibration is None:
            raise IfqaError(
                f"{self.folder} has no {CALIBRATION}, without which there is no confidence to hold against threshold = "
                f"{threshold:g}; fit it: ifqa train calibration --to {self.folder}"
            )
        self.abstain_threshold = threshold or (self.calibration.threshold if self.calibration else 0.0)

    def read(
        self,
        questions: Sequence[Question],
        passages: Sequence[Sequence[Passage]],
        advance: ProgressCallback = no_progress,
    ) -> list[tuple[Prediction, Mapping[str, float]]]:
        """What `answer` gives, before confidence and abstention, with the features of confidence; none of a failure."""
        from ifqa.reading.span.network import encode_pair

        asked = []
        for question, ranking in zip(questions, passages, strict=True):
            pairs = []
            for passage in ranking:
                is_document = (
                    parse_locator(passage.id) is not None
                )  # of a user's own, which writes dates in its own way
                pairs.append(encode_pair(self._encoder, question.text, passage.text, as_written=is_document))
            asked.append((question, ranking, pairs))
        answers = self._read(asked, self._first)
        if self._first != self._second:
            close = [n for n, (_, found) in enumerate(answers) if found.get("margin", 0.0) < CLOSE_MARGIN]
            for n, again in zip(close, self._read([asked[n] for n in close], self._second), strict=True):
                answers[n] = again
        advance(len(questions))
        return answers

    def _read(
        self, asked: Sequence[tuple[Question, Sequence[Passage], Sequence["EncodedPair"]]], dtype: "torch.dtype"
    ) -> list[tuple[Prediction, Mapping[str, float]]]:
        """The same, computed in `dtype`, of questions with their passages and with the pairs that both make."""
        candidates = iter(self._candidates([pair for *_, pairs in asked for pair in pairs], dtype))
        return [
            _choose(question, ranking, [(pair, next(candidates)) for pair in pairs], self.rank_weight)
            for question, ranking, pairs in asked
        ]

    def _candidates(
        self, pairs: Sequence["EncodedPair"], dtype: "torch.dtype", advance: ProgressCallback = no_progress
    ) -> list[list["AnswerCandidate"]]:
        """The best candidates of each pair, best first; `advance` gets the number of further pairs done."""
        import torch

        from ifqa.reading.span.network import rank_candidates

        best: list[list[AnswerCandidate]] = [[] for _ in pairs]
        self._model.encoder.cast(dtype)
        with torch.inference_mode():
            for batch in _batches([len(pair.ids) for pair in pairs], self.batch_tokens):
                spans, computed = self._model([pairs[index] for index in batch])
                for row, index in enumerate(batch):
                    best[index] = rank_candidates(pairs[index], spans[row], computed[row], PASSAGE_CANDIDATES)
                advance(len(batch))
        return best

    def relevance(self, pairs: Sequence[tuple[str, str]], advance: ProgressCallback = no_progress) -> list[float]:
        """How much of an answer each passage holds, for the retriever 'rerank'; a score for each (question, passage text).

        It is the logarithm of the summed exponentials of the candidates' scores, the passage's share of the softmax in `answer`.
        """
        from ifqa.reading.span.network import encode_pair

        candidates = self._candidates([encode_pair(self._encoder, *pair) for pair in pairs], self._first, advance)
        shares = []
        for scores in ([score for score, *_ in candidate] for candidate in candidates):
            best = max(scores, default=0.0)
            shares.append(
                best + math.log(sum(math.exp(score - best) for score in scores)) if scores else EMPTY_RELEVANCE
            )
        return shares

    def answer(
        self,
        questions: Sequence[Question],
        passages: Sequence[Sequence[Passage]],
        advance: ProgressCallback = no_progress,
    ) -> list[Prediction]:
        """One prediction a question, in their order; `passages` are each question's, best first.

        The prediction's passages begin with the passage that contributes most to the answer; the others follow by their
        best candidate. A question without passages is a failed prediction, "no passages".
        """
        predictions = []
        for prediction, found in self.read(questions, passages, advance):
            sure = self.calibration.confidence(found) if self.calibration and found else None
            predictions.append(replace(prediction, confidence=sure).abstain_below(self.threshold))
        return predictions

    @classmethod
    def requirements(
        cls, *, weights: str = "", encoder: str = "", root: Path = Path(), **_: object
    ) -> Iterator[Requirement]:
        """The weights that are named, and their encoder if it is not part of this installation."""
        folder = root / weights if weights else BUNDLED_WEIGHTS
        if weights:
            yield model_requirement(weights, root)
        if not encoder and (folder / "manifest.json").exists():
            try:
                encoder = load_span_manifest(folder)["encoder"]["name"]
            except IfqaError as error:
                yield Requirement(f"the manifest of {weights}", str(error))
        if encoder and not is_packaged(encoder):
            yield model_requirement(encoder, root)

    @classmethod
    def training_family(cls, weights: str = "", **_: object) -> str:
        """The split family the weights were trained on, read without loading them."""
        return str(load_span_manifest(Path(weights) if weights else BUNDLED_WEIGHTS)["family"])

    @classmethod
    def fingerprint(cls, weights: str = "", **_: object) -> str:
        """SHA-256 over the weights' files, and over the calibration's if there is one."""
        folder = Path(weights) if weights else BUNDLED_WEIGHTS
        own, calibration = fingerprint_weights(folder), folder / CALIBRATION
        return hashlib.sha256(f"{own} {sha256(calibration)}".encode()).hexdigest() if calibration.exists() else own


def _choose(
    question: Question, passages: Sequence[Passage], candidates: Sequence[tuple["EncodedPair", Sequence["AnswerCandidate"]]],
    rank_weight: float,
) -> tuple[Prediction, Mapping[str, float]]:  # fmt: skip
    """The prediction from the candidates of each passage, and the features of its confidence."""
    if not passages:
        return Prediction(question.id, "", error="no passages"), {}
    scored = [
        (score - rank_weight * math.log(place + 1), normalize(text), text.strip(), place, source)
        for place, (_, several) in enumerate(candidates)
        for score, text, source in several
    ]
    best = max((score for score, *_ in scored), default=0.0)
    weights: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    forms: dict[str, str] = {}  # normalised text -> text of its best candidate
    order: dict[int, float] = {}
    sources: dict[tuple[str, int], tuple[int, ...]] = {}  # and place of a passage -> that of the best one there
    for score, key, text, place, source in sorted(scored, key=lambda candidate: -candidate[0]):
        weights[key][place] += math.exp(score - best)
        forms.setdefault(key, text)
        order.setdefault(place, score)
        sources.setdefault((key, place), source)
    weights.pop("", None)
    if not weights:
        ids = tuple(passage.id for passage in passages)
        return Prediction(question.id, "", passage_ids=ids, error="no text in the passages"), {}
    chosen = max(weights, key=lambda key: sum(weights[key].values()))
    evidence = max(weights[chosen], key=lambda place: weights[chosen][place])
    places = sorted(range(len(passages)), key=lambda place: (place != evidence, -order.get(place, -math.inf)))
    ids = tuple(passages[place].id for place in places)
    how = explain(candidates[evidence][0], passages[evidence].id, forms[chosen], sources[chosen, evidence])
    compared = [(score, key, place) for score, key, _, place, _ in scored]
    found = confidence_features(question.text, [passage.text for passage in passages], compared, chosen)
    return Prediction(question.id, forms[chosen], completion=forms[chosen], passage_ids=ids, how=how), found


def explain(pair: "EncodedPair", passage_id: str, answer: str, source: tuple[int, ...]) -> Explanation:
    """Where a candidate comes from: `answer` is its text, and `source` what `rank_candidates` gives with it."""
    if len(source) == 2:
        span = pair.offsets[source[0] - pair.start][0], pair.offsets[source[1] - pair.start][1]
        return Explanation(passage_id, sentence_span(pair.text, *span), span)
    row, number, step = source
    first = pair.numbers[row][0]
    span = first.start, first.end
    return Explanation(passage_id, sentence_span(pair.text, *span), span, _calculation(pair, answer, row, number, step))


def _calculation(pair: "EncodedPair", answer: str, row: int, number: int, step: int) -> Calculation:
    numbers = pair.numbers[row]
    if number == 0 and len(numbers) == 1 and numbers[0].unit != "list":  # perhaps a step of one that is said: "a year"
        number = next((n for n, steps in enumerate(pair.computed[row]) if n and steps[step] == answer), 0)
    operand = pair.asked[number]
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
    """Whether the question's number is the larger one, so that the passage's was subtracted from it."""
    if question.unit == "%" or (passage.unit != question.unit and passage.unit.startswith(("date", "month of"))):
        return False
    return passage.value * SCALES.get(passage.unit, 1) < question.value * SCALES.get(question.unit, 1)


def _in_passage(pair: "EncodedPair", number: Number) -> Term:
    end = number.end
    if scale := _SCALE.match(pair.text, end):
        end = scale.end()
    text = pair.text[number.start : end]
    if number.unit.startswith("date"):
        value = format_answer(pair.text, number.start, end, pair.question)
    else:
        value = text if text[0].isdigit() else _value(number)
    return Term(text, value, "passage", number.start, end)


def _in_question(pair: "EncodedPair", number: Number) -> Term:
    step = _STEP.match(pair.question, number.end)
    end = step.end() if step and number.end else number.end
    value = format_answer(pair.question, number.start, number.end) if number.unit.startswith("date") else _value(number)
    return Term(pair.question[number.start : end], value, "question", number.start, end)


def _value(number: Number) -> str:
    if number.unit.startswith("month of"):
        year, month = divmod(int(number.value), 12)
        return MONTH_NAMES[month] + ("" if number.unit.endswith("?") else f" {year}")
    digits = f"{number.value:,}" if number.value % 1 else str(int(number.value))
    if number.unit in SCALES:
        return f"{digits} {number.unit}"
    if number.unit in _PERIODS:
        return f"{digits} {number.unit}{'s' * (number.value != 1)}"
    return digits + "%" * (number.unit == "%")


def _batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Batches of pairs of similar length, as indexes; a batch has at most `batch_limits` tokens with padding, or one pair."""
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * (lengths[index] + 15) > budget:  # lengths are rounded up to a multiple of 16
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
