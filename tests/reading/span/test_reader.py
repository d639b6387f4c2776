"""The extractive reader with its shipped weights."""

import json
import math
import shutil
from dataclasses import replace

import pytest
import torch
from refusals import refused

from ifqa.reading.span.reader import (
    BUNDLED_WEIGHTS,
    EMPTY_RELEVANCE,
    Extractive,
    Sentence,
    used_skim,
)
from ifqa.reading.span.weights import fingerprint_weights
from ifqa.records import Passage, Question
from ifqa.settings import parse_settings

QUESTIONS = [
    Question("t/0", "If the Veldmar bridge had kept its original name, what would it be called?"),
    Question(
        "t/1",
        "If the club Oren Athletic had won two fewer league titles, how "
        "many titles would it have won?",
    ),
    Question(
        "t/2",
        "If Ida Marrow had not taken over the direction of the opera, who would have directed it?",
    ),
]
TEXTS = [
    [
        (
            "The Veldmar bridge, originally named the Anselm Crossing, was opened in 1911 and "
            "renamed in 1950."
        ),
        (
            "The river Tollen rises in the north and is known for its trout "
            "and its many small water mills."
        ),
    ],
    [
        "Oren Athletic is a football club founded in 1902. The club has won 14 league titles.",
        "The stadium holds people from all over the town, and its roof was built of timber. " * 6,
    ],
    [
        (
            "The opera was originally to be directed by Paul Lindqvist, but "
            "Ida Marrow took over in spring."
        )
    ],
]
PASSAGES = [
    [Passage(f"{'abc'[n]}{m}", "", text) for m, text in enumerate(row, 1)]
    for n, row in enumerate(TEXTS)
]


def extractive(**settings):
    return Extractive(Extractive.Settings(**settings))


def sentence_reader(**settings):
    return Sentence(Sentence.Settings(**settings))


@pytest.fixture(scope="module")
def reader():
    return extractive(precision="float32")


def test_spans_are_read_and_numbers_computed(reader):
    predictions = reader.answer(QUESTIONS, PASSAGES)
    assert [prediction.answer for prediction in predictions] == [
        "Anselm Crossing",
        "12",
        "Paul Lindqvist",
    ]
    assert [prediction.question_id for prediction in predictions] == ["t/0", "t/1", "t/2"]
    titled = [
        [replace(passage, title="Anselm Crossing 12") for passage in ranking]
        for ranking in PASSAGES
    ]
    assert reader.answer(QUESTIONS, titled) == predictions
    swapped = reader.answer(QUESTIONS, [ranking[::-1] for ranking in PASSAGES])
    assert [prediction.passage_ids for prediction in swapped] == [
        ("a1", "a2"),
        ("b1", "b2"),
        ("c1",),
    ]
    assert (reader.family, reader.manifest["settings"].keys() >= {"seed", "epochs", "rank"}) == (
        "ifqa/full",
        True,
    )
    assert sum(path.stat().st_size for path in BUNDLED_WEIGHTS.iterdir()) <= 6 * 2**20


def test_the_sentence_of_an_answer_can_be_the_answer(reader):
    spans = reader.answer(QUESTIONS, PASSAGES)
    sentences = sentence_reader(precision="float32").answer(QUESTIONS, PASSAGES)
    assert [sentence.answer for sentence in sentences] == [
        TEXTS[0][0],
        "The club has won 14 league titles.",
        TEXTS[2][0],
    ]
    for span, sentence in zip(spans, sentences, strict=True):
        assert (
            replace(sentence, answer=span.answer, completion=span.completion, how=span.how) == span
        )
        assert sentence.how == replace(span.how, calculation=None)
    withholding = sentence_reader(precision="float32", threshold=1.0)
    [withheld] = withholding.answer(QUESTIONS[:1], PASSAGES[:1])
    assert (withheld.answer, withheld.candidate) == ("", TEXTS[0][0])


def test_a_passage_in_several_rankings_of_a_question_is_read_once(monkeypatch):
    reader = extractive(precision="float32")
    question = QUESTIONS[0]
    (first, second) = PASSAGES[0]
    rankings = [[first, second], [second], [second, first]]
    alone = [reader.read([question], [ranking])[0] for ranking in rankings]
    counts = []
    candidates = reader._candidates

    def counted(pairs, dtype):
        counts.append(len(pairs))
        return candidates(pairs, dtype)

    monkeypatch.setattr(reader, "_candidates", counted)
    together = reader.read([question] * 3, rankings)
    assert counts == [2]
    assert [answer.prediction.answer for answer in together] == [
        answer.prediction.answer for answer in alone
    ]
    for ours, other in zip(together, alone, strict=True):
        assert ours.features == pytest.approx(other.features, abs=1e-4)
        assert sum(ours.shares.values()) == pytest.approx(1)
        assert next(iter(ours.shares)) == ours.prediction.answer


def test_a_passages_relevance_is_its_share_of_the_softmax():
    """A second passage, without the answer, makes it less probable by the factor 1 + exp(its
    relevance - the first's).
    """
    reader = extractive(precision="float32", rank_weight=0.0)
    question = QUESTIONS[0]
    (first, second) = PASSAGES[0]
    relevant, other, empty = reader.relevance(
        [(question.text, text) for text in (first.text, second.text, "")]
    )
    assert relevant > other > empty == EMPTY_RELEVANCE
    alone, together = (
        each.features for each in reader.read([question] * 2, [[first], [first, second]])
    )
    factor = math.exp(alone["log_probability"] - together["log_probability"])
    assert factor == pytest.approx(1 + math.exp(other - relevant), rel=1e-4)


def test_the_null_candidate_has_the_score_0(weights_without):
    reader = extractive(precision="float32", rank_weight=0.0)
    question = QUESTIONS[0]
    masses = [
        math.exp(share)
        for share in reader.relevance([(question.text, each.text) for each in PASSAGES[0]])
    ]
    [prediction] = reader.answer([question], PASSAGES[:1])
    assert prediction.answerable == pytest.approx(sum(masses) / (1 + sum(masses)), rel=1e-4)
    old = extractive(weights=weights_without("without_gold"), precision="float32", rank_weight=0.0)
    assert old.answer([question], PASSAGES[:1]) == [replace(prediction, answerable=None)]


@pytest.fixture
def weights_without(tmp_path):
    """Copies the bundled weights, as if their training had not had a setting.

    Returns the folder.
    """

    def copy(setting):
        folder = shutil.copytree(BUNDLED_WEIGHTS, tmp_path / "weights")
        manifest = json.loads((folder / "manifest.json").read_text())
        del manifest["settings"][setting]
        (folder / "manifest.json").write_text(json.dumps(manifest))
        return str(folder)

    return copy


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_an_answer_does_not_depend_on_the_batch(precision):
    together = extractive(precision=precision).answer(QUESTIONS, PASSAGES)
    small = extractive(precision=precision, batch_tokens=1)
    alone = [
        small.answer([question], [ranking])[0]
        for question, ranking in zip(QUESTIONS, PASSAGES, strict=True)
    ]
    for predictions in (small.answer(QUESTIONS, PASSAGES), alone):
        for prediction, expected in zip(predictions, together, strict=True):
            # bfloat16 has three digits, and the last of them depends on the batch
            close = {
                name: pytest.approx(getattr(expected, name), abs=0.02)
                for name in ("confidence", "answerable")
            }
            assert prediction == replace(expected, **close)


@pytest.mark.parametrize(
    ("question", "candidates", "answer"),
    [
        ("If it rained, how many days would it last?", ["days", "twelve"], "twelve"),
        ("If it rained, how many days would it last?", ["days", "4"], "4"),
        ("If it rained, how many days would it last?", ["days", "a week"], "days"),
        ("If it rained, what would it last?", ["days", "4"], "days"),
    ],
)
def test_how_many_is_answered_by_a_number_if_there_is_one(
    reader, monkeypatch, question, candidates, answer
):
    ranked = [(1.0 - place, text, (20, 20)) for place, text in enumerate(candidates)]
    monkeypatch.setattr("ifqa.reading.span.network.rank_candidates", lambda *_: ranked)
    passages = [Passage("p", "", "It lasts long, and then it ends as it began.")]
    (prediction,) = reader.answer([Question("t/0", question)], [passages])
    assert prediction.answer == answer


def test_no_passages_is_a_failed_prediction_among_others(reader):
    failed, answered = reader.answer(QUESTIONS[:2], [[], PASSAGES[1]])
    assert (failed.answer, failed.error, failed.failed) == ("", "no passages", True)
    assert answered == reader.answer(QUESTIONS[1:2], PASSAGES[1:2])[0]
    assert reader.answer([], []) == []


@pytest.mark.parametrize("text", ["", "...", "\U0001f600", "9" * 400])
def test_odd_passages_are_read_or_reported(reader, text):
    (prediction,) = reader.answer(QUESTIONS[:1], [[Passage("odd", "", text)]])
    assert prediction.failed == (not prediction.answer)
    assert prediction.passage_ids == ("odd",)
    long = Question("long", "If " + "very " * 400 + "long, what?")
    assert not reader.answer([long], [[Passage("p", "", "word " * 2000)]])[0].failed


def test_missing_and_broken_weights_and_settings_are_named(tmp_path):
    with refused("weights"):
        extractive(weights=str(tmp_path))
    for settings in ({"device": "abacus"}, {"precision": "float8"}, {"batch_tokens": 0}):
        with refused(next(iter(settings))):
            Extractive(parse_settings(Extractive.Settings, settings, "setting"))
    shutil.copy(BUNDLED_WEIGHTS / "manifest.json", tmp_path)
    (tmp_path / "adapter.safetensors").write_bytes(b"no")
    with refused("damaged weights"):
        extractive(weights=str(tmp_path))


def test_questions_whose_best_answers_are_close_are_read_again_in_float32(monkeypatch):
    def features_of(reader):
        return [answer.features for answer in reader.read(QUESTIONS, PASSAGES)]

    exact = features_of(extractive(precision="float32"))
    quick = features_of(extractive(precision="bfloat16"))
    reader = extractive(precision="bfloat16")
    reader._close_precision = torch.float32
    monkeypatch.setattr("ifqa.reading.span.reader.CLOSE_MARGIN", math.inf)
    assert features_of(reader) == exact
    monkeypatch.setattr("ifqa.reading.span.reader.CLOSE_MARGIN", -math.inf)
    assert features_of(reader) == quick
    assert quick != exact


@pytest.fixture
def copied_weights(tmp_path):
    """A copy of the default weights: to the reader they are other weights, with equal answers.

    Returns the folder.
    """
    return shutil.copytree(BUNDLED_WEIGHTS, tmp_path / "weights")


@pytest.fixture
def texts_read(monkeypatch):
    """Returns the texts of the passages that a reader reads from then on, in their order."""

    def watch(reader):
        texts: list[str] = []
        candidates = reader._candidates

        def recorded(pairs, dtype):
            texts.extend(pair.text for pair in pairs)
            return candidates(pairs, dtype)

        monkeypatch.setattr(reader, "_candidates", recorded)
        return texts

    return watch


def test_passages_that_may_have_the_answer_are_the_likely_ones(reader):
    everything, best = (
        reader.likely_passages(QUESTIONS[:1], PASSAGES[:1], part) for part in (1e-30, 0.9)
    )
    assert (everything, best) == ([{0, 1}], [{0}])


def test_the_only_passage_of_a_question_is_likely_without_being_read(reader, monkeypatch):
    monkeypatch.setattr(reader, "_candidates", lambda pairs, dtype: [] if not pairs else None)
    assert reader.likely_passages(QUESTIONS[2:], PASSAGES[2:], 0.9) == [{0}]
    assert reader.likely_passages(QUESTIONS[:1], [[]], 0.9) == [frozenset()]


def test_unlikely_passages_are_not_read(copied_weights, texts_read):
    reader = extractive(weights=str(copied_weights), precision="float32", skim=0.9)
    read = texts_read(reader)
    [prediction] = reader.answer(QUESTIONS[:1], PASSAGES[:1])
    assert read == TEXTS[0][:1]
    assert prediction.answer == "Anselm Crossing"
    assert prediction.passage_ids == ("a1", "a2")


def test_a_skimmed_answer_has_no_candidate_of_a_passage_that_is_not_read(copied_weights):
    skimmed, whole = (
        extractive(weights=str(copied_weights), precision="float32", skim=skim).read(
            QUESTIONS[:1], PASSAGES[:1]
        )[0]
        for skim in (0.9, 0.0)
    )
    assert any("Tollen" in text for text in whole.shares)
    assert not any("Tollen" in text for text in skimmed.shares)


@pytest.mark.parametrize(("weights", "skim"), [("extractive-large", 0.01), ("", 0.0)])
def test_over_documents_the_larger_weights_skim_unasked(weights, skim):
    assert used_skim(Extractive.Settings(weights=weights)) == skim


def test_a_skim_of_0_reads_all_passages():
    assert used_skim(Extractive.Settings(weights="extractive-large", skim=0.0)) == 0.0


@pytest.mark.parametrize(
    ("ids", "read"), [(["a.md#0:line=1", "a.md#1:line=2"], [0]), (["a1", "a2"], [0, 1])]
)
def test_unasked_only_passages_of_documents_are_skipped(copied_weights, texts_read, ids, read):
    thresholds = {"confidence": 0, "answerable": 0, "skim": 0.9}
    digest = fingerprint_weights(copied_weights)
    (copied_weights / "documents.json").write_text(json.dumps(thresholds | {"weights": digest}))
    reader = extractive(weights=str(copied_weights), precision="float32")
    texts = texts_read(reader)
    passages = [replace(passage, id=name) for passage, name in zip(PASSAGES[0], ids, strict=True)]
    reader.answer(QUESTIONS[:1], [passages])
    assert texts == [TEXTS[0][n] for n in read]


def test_the_default_weights_do_not_skim_for_themselves():
    with refused("set reader.skim=0"):
        extractive(skim=0.1)


def test_weights_of_another_split_family_are_not_skimmed_for(copied_weights):
    manifest = json.loads((copied_weights / "manifest.json").read_text())
    (copied_weights / "manifest.json").write_text(json.dumps(manifest | {"family": "few"}))
    with refused("trained on .few.; set reader.skim=0"):
        extractive(weights=str(copied_weights), skim=0.1)


def test_a_skimming_reader_has_seen_what_the_default_weights_have_seen(copied_weights):
    manifest = json.loads((copied_weights / "manifest.json").read_text())
    other = manifest | {"sources": {"mine.csv": "0" * 64}}
    (copied_weights / "manifest.json").write_text(json.dumps(other))
    skimming, alone = (extractive(weights=str(copied_weights), skim=skim) for skim in (0.1, 0.0))
    assert alone.trained_on == {"0" * 64}
    assert skimming.trained_on == {"0" * 64, *manifest["sources"].values()}


def test_a_skimming_readers_fingerprint_depends_on_the_default_weights(copied_weights):
    skimming, alone = (
        Extractive.fingerprint(
            Extractive.Settings(weights=str(copied_weights), skim=skim), copied_weights
        )
        for skim in (0.1, 0.0)
    )
    assert skimming != alone
