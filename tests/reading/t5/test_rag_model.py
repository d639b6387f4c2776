"""RAG: its decoding against a search of all answers, its likelihoods and gradients against enumeration, both against transformers'."""

import copy
import functools
import math

import enumerated_rag
import pytest
import tiny_t5
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from tiny_t5 import SHAPES, flat, plain, questions_of_ids, small
from transformers import DynamicCache, EncoderDecoderCache

from ifqa.reading.t5.model import BatchLimits, FusionInDecoder
from ifqa.reading.t5.rag_model import Mixture, convert_to_marginal, generate_rag_answers, restore_t5

MODES = ["sequence", "token"]
QUESTIONS = [[[5, 6, 7, 8], [9], [12, 13]], [[10, 11, 12], [13, 14], [15, 16, 17, 18]], [[3], [30, 31], [9, 9, 9]]]
EQUAL = [
    [[5, 6, 7], [9, 8, 7], [12, 13, 4]],
    [[10, 11, 12], [13, 14, 2], [15, 16, 17]],
    [[3, 30, 31], [9, 9, 9], [20, 3, 4]],
]
SCORES = [[1.0, 2.0, 0.5], [0.3, 0.1, 1.0], [0.0, 0.0, 0.0]]
WAYS = [("sequence", "thorough"), ("sequence", "fast"), ("token", "thorough")]
MOST = 6


@functools.cache
def model(shape="T5", seed=0, vocabulary=40, longer=1.5):
    """Answers end after a few tokens: the head's row of `</s>` is longer. Padding has the probability of a mean token."""
    made = small(seed, **SHAPES[shape], vocabulary=vocabulary)
    head = made.lm_head.weight.detach().clone()
    head[enumerated_rag.EOS] *= longer
    head[enumerated_rag.PAD] = 0
    made.lm_head.weight = torch.nn.Parameter(head)
    return made


def answers(network, questions, scores, way, most=MOST, encoded=64, decoded=64, width=0, beams=1, temperature=1.0):
    ids, mask = flat(questions, width)
    features = {"input_ids": ids % network.config.vocab_size, "attention_mask": mask}
    counts, several = [len(question) for question in questions], [score for own in scores for score in own]
    return generate_rag_answers(
        network, features, counts, scores=several, mixture=Mixture(*way, temperature), max_answer_tokens=most, beams=beams,
        limits=BatchLimits(encoded, decoded),
    )  # fmt: skip


def near(expected):
    return pytest.approx(expected, rel=1e-4, abs=1e-4)


small_questions = st.lists(
    st.lists(st.lists(st.integers(2, 4), min_size=1, max_size=4), min_size=1, max_size=3), min_size=1, max_size=2
)


@settings(max_examples=8)
@given(small_questions, st.sampled_from(MODES), st.integers(0, 2), st.floats(0.5, 3), st.randoms())
def test_with_beams_for_all_answers_the_best_of_all_is_found(questions, mode, seed, temperature, chance):
    network, every = model("T5", seed, vocabulary=5), enumerated_rag.all_answers(5, 3)
    scores = [[chance.uniform(-2, 2) for _ in question] for question in questions]
    found = answers(network, questions, scores, (mode, "thorough"), 4, beams=len(every), temperature=temperature)
    for reading, question, score in zip(found, questions, scores, strict=True):
        with torch.no_grad():
            tables = enumerated_rag.tables_of_all(plain(network), question, every)
        priors = enumerated_rag.log_prior(score, temperature)
        totals = {one: enumerated_rag.likelihood(tables[one], priors, mode) for one in every}
        best = max(every, key=lambda one: totals[one])
        assert reading.score == near(math.log(totals[best]))
        assert totals[tuple(reading.tokens)] == near(totals[best])
        assert reading.passage_scores == near(enumerated_rag.posterior(tables[tuple(reading.tokens)], priors, mode))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("beams", [1, 2, 3])
def test_answers_are_those_of_transformers(mode, beams):
    # transformers' RAG-Sequence scores the `</s>` with which its beams pad hypotheses that end, so here none ends
    network = model("untied head", longer=0.0 if mode == "sequence" else 1.5)
    other, lengths = enumerated_rag.transformers_rag(network, mode, 3), set()
    how = {"num_beams": beams, "max_length": MOST, "do_sample": False, "pad_token_id": 0, "eos_token_id": 1}
    how |= {"length_penalty": 0.0, "early_stopping": "never"} if beams > 1 else {}
    if mode == "token":
        how |= {"decoder_start_token_id": 0, "bos_token_id": 0}
    for question, score in zip(EQUAL, SCORES, strict=True):  # transformers' beams of RAG-Sequence read padding too
        ids, mask = flat([question])
        # RAG's own caches are for the layers of the question's encoder
        caches = {"past_key_values": EncoderDecoderCache(DynamicCache(), DynamicCache())} if mode == "token" else {}
        made = other.generate(
            context_input_ids=ids * mask, context_attention_mask=mask.long(), doc_scores=torch.tensor([score]), n_docs=3,
            use_cache=mode == "token", **caches, **how,
        )  # fmt: skip
        expected = made[0, 1:].tolist()
        expected = expected[: expected.index(1) + 1] if 1 in expected else expected
        assert 0 not in expected  # transformers would take it for padding
        [found] = answers(network, [question], [score], (mode, "thorough"), beams=beams)
        assert found.tokens == expected
        lengths.add(len(expected))
    assert len(lengths) == {"sequence": 1, "token": 2}[mode]


@settings(max_examples=10)
@given(
    st.sampled_from(list(SHAPES)), questions_of_ids, st.sampled_from(WAYS), st.integers(1, 3), st.integers(0, 20),
    st.integers(1, 80), st.integers(1, 80), st.randoms(),
)  # fmt: skip
def test_padding_budgets_and_company_change_nothing(shape, questions, way, beams, width, encoded, decoded, chance):
    scores = [[chance.uniform(-2, 2) for _ in question] for question in questions]
    network = model(shape)
    alone = [
        answers(network, [question], [score], way, beams=beams)[0]
        for question, score in zip(questions, scores, strict=True)
    ]
    order = chance.sample(range(len(questions)), len(questions))
    found = answers(
        network, [questions[n] for n in order], [scores[n] for n in order], way, encoded=encoded, decoded=decoded,
        width=width, beams=beams,
    )  # fmt: skip
    for reading, n in zip(found, order, strict=True):
        assert reading.tokens == alone[n].tokens
        assert reading.score == near(alone[n].score)
        assert reading.passage_scores == near(alone[n].passage_scores)


@settings(max_examples=8)
@given(questions_of_ids, st.integers(1, 3), st.integers(0, 2), st.randoms())
def test_fast_decoding_counts_only_passages_whose_beam_has_the_answer(questions, beams, seed, chance):
    network, t5 = model("T5", seed), plain(model("T5", seed))
    scores = [[chance.uniform(-2, 2) for _ in question] for question in questions]
    for question, score in zip(questions, scores, strict=True):
        [found] = answers(network, [question], [score], ("sequence", "fast"), beams=beams)
        priors, totals = enumerated_rag.log_prior(score), {}
        for place, passage in enumerate(question):
            made = t5.generate(
                torch.tensor([passage]), num_beams=beams, num_return_sequences=beams, max_length=MOST, do_sample=False, use_cache=False,
                **({"length_penalty": 0.0, "early_stopping": "never"} if beams > 1 else {}),
            )  # fmt: skip
            for row in made[:, 1:].tolist():
                tokens = tuple(row[: row.index(1) + 1] if 1 in row else row)
                logs = enumerated_rag.logs(t5, passage, tokens)
                totals.setdefault(tokens, {})[place] = priors[place] + float(logs.detach().sum())
        best = max(totals, key=lambda one: sum(map(math.exp, totals[one].values())))
        assert tuple(found.tokens) == best
        assert found.score == near(math.log(sum(map(math.exp, totals[best].values()))))
        assert sum(share > 0 for share in found.passage_scores) == len(totals[best])


@pytest.mark.parametrize("way", WAYS)
def test_weights_that_are_no_numbers_are_refused(way):
    network = small()
    with torch.no_grad():
        network.shared.weight[5] = torch.nan
    with refused("no numbers"):
        answers(network, QUESTIONS, SCORES, way)


LEARNT, LABELS, TEMPERATURE = QUESTIONS[:2], [[5, 6, 1], [7, 1]], 0.7
small_of = functools.cache(lambda shape: small(0, **SHAPES[shape]))


def batch(questions, labels, scores):
    ids, mask = flat(questions)
    width = max(map(len, labels))
    padded = torch.tensor([[*label, *[-100] * (width - len(label))] for label in labels])
    return {
        "passage_ids": ids, "passage_mask": mask, "counts": torch.tensor([len(question) for question in questions]),
        "labels": padded, "scores": torch.tensor([score for own in scores for score in own]),
    }  # fmt: skip


@settings(max_examples=10)
@given(st.sampled_from(list(SHAPES)), questions_of_ids, st.sampled_from(MODES), st.floats(0.2, 5), st.randoms())
def test_the_loss_is_that_of_enumerated_passages(shape, questions, mode, temperature, chance):
    labels = [[*(chance.randrange(2, 40) for _ in range(chance.randrange(4))), 1] for _ in questions]
    scores = [[chance.uniform(-3, 3) for _ in question] for question in questions]
    network = convert_to_marginal(copy.deepcopy(small_of(shape)), mode, temperature)
    t5, expected = plain(small_of(shape)), []
    with torch.no_grad():
        found = float(network(**batch(questions, labels, scores)).loss)
        for question, label, score in zip(questions, labels, scores, strict=True):
            logs = [enumerated_rag.logs(t5, passage, label).tolist() for passage in question]
            priors = enumerated_rag.log_prior(score, temperature)
            expected.append(-math.log(enumerated_rag.likelihood(logs, priors, mode)))
    assert found == near(sum(expected) / len(expected))


@pytest.mark.parametrize("mode", MODES)
def test_gradients_are_those_of_enumerated_passages(mode):
    network = convert_to_marginal(copy.deepcopy(small_of("untied head")), mode, TEMPERATURE).train()
    network(**batch(LEARNT, LABELS, SCORES[:2])).loss.backward()
    t5, losses = plain(small_of("untied head")), []
    temperature = torch.tensor(TEMPERATURE, requires_grad=True)
    for question, label, score in zip(LEARNT, LABELS, SCORES[:2], strict=True):
        weights = (torch.tensor(score) / temperature).softmax(0)
        probabilities = torch.stack([enumerated_rag.logs(t5, passage, label) for passage in question]).exp()
        if mode == "sequence":
            losses.append(-(weights @ probabilities.prod(1)).log())
        else:
            losses.append(-(weights @ probabilities).log().sum())
    (sum(losses) / len(losses)).backward()
    found = dict(network.named_parameters())
    assert float(found.pop("log_temperature").grad) == near(float(temperature.grad) * TEMPERATURE)
    for name, one in t5.named_parameters():
        torch.testing.assert_close(found[name].grad, one.grad, rtol=1e-3, atol=1e-4)
    assert max(float(one.grad.abs().max()) for one in found.values()) > 0.1


@pytest.mark.parametrize("mode", MODES)
def test_the_loss_is_that_of_transformers(mode):
    network = small(0, **SHAPES["untied head"])
    ids, mask = flat(LEARNT)
    labels = torch.tensor([[0, *label, *[0] * (3 - len(label))] for label in LABELS])  # padding is their start too
    with torch.no_grad():
        other = enumerated_rag.transformers_rag(network, mode, 3)(
            context_input_ids=ids * mask, context_attention_mask=mask.long(), doc_scores=torch.tensor(SCORES[:2]),
            labels=labels, n_docs=3,
        )  # fmt: skip
        loss = convert_to_marginal(network, mode, 1.0)(**batch(LEARNT, LABELS, SCORES[:2])).loss
    assert float(loss) == near(float(other.loss.mean()))


def test_a_trained_network_is_saved_as_a_plain_t5(tmp_path):
    network = small()
    names = set(network.state_dict())
    assert restore_t5(convert_to_marginal(network, "token", 2.5)) == near(2.5)
    assert type(network) is FusionInDecoder
    assert set(network.state_dict()) == names
    network.save_pretrained(tmp_path)
    assert tiny_t5.FusionInDecoder.from_pretrained(tmp_path, output_loading_info=True)[1]["unexpected_keys"] == set()
