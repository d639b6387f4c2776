"""RAG's decoding, likelihoods and gradients, against enumeration and against transformers."""

import copy
import functools
import math
from itertools import chain

import enumerated_rag
import pytest
import tiny_t5
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from tiny_t5 import SHAPES, flat, plain, questions_of_ids, small
from torch.nn.utils.rnn import pad_sequence

from ifqa.reading.t5.fusion_in_decoder import BatchLimits, FusionInDecoder
from ifqa.reading.t5.rag_model import convert_to_marginal, generate_rag_answers, restore_t5

QUESTIONS = [[[5, 6, 7, 8], [9], [12, 13]], [[10, 11, 12], [13, 14], [15, 16, 17, 18]], [[3], [30, 31], [9, 9, 9]]]
UNPADDED = [
    [[5, 6, 7], [9, 8, 7], [12, 13, 4]],
    [[10, 11, 12], [13, 14, 2], [15, 16, 17]],
    [[3, 30, 31], [9, 9, 9], [20, 3, 4]],
]
SCORES = [[1.0, 2.0, 0.5], [0.3, 0.1, 1.0], [0.0, 0.0, 0.0]]
MOST = 6


@functools.cache
def model(shape="T5", seed=0, vocabulary=40, longer=1.5):
    """Answers end after a few tokens: the head's row of `</s>` is longer. Padding has the probability of a mean token."""
    network = small(seed, **SHAPES[shape], vocabulary=vocabulary)
    head = network.lm_head.weight.detach().clone()
    head[enumerated_rag.EOS] *= longer
    head[enumerated_rag.PAD] = 0
    network.lm_head.weight = torch.nn.Parameter(head)
    return network


def answers(network, questions, scores, most=MOST, encoded=64, decoded=64, width=0, beams=1, temperature=1.0):
    ids, mask = flat(questions, width)
    features = {"input_ids": ids % network.config.vocab_size, "attention_mask": mask}
    return generate_rag_answers(
        network, features, [len(question) for question in questions], scores=[*chain.from_iterable(scores)], beams=beams,
        temperature=temperature, max_answer_tokens=most, limits=BatchLimits(encoded, decoded),
    )  # fmt: skip


def draw_scores(chance, questions, bound=2):
    return [[chance.uniform(-bound, bound) for _ in question] for question in questions]


near = functools.partial(pytest.approx, rel=1e-4, abs=1e-4)
small_questions = st.lists(
    st.lists(st.lists(st.integers(2, 4), min_size=1, max_size=4), min_size=1, max_size=3), min_size=1, max_size=2
)


@settings(max_examples=8)
@given(small_questions, st.integers(0, 2), st.floats(0.5, 3), st.randoms())
def test_beams_for_all_answers_find_the_best_answer(questions, seed, temperature, chance):
    network, every = model("T5", seed, vocabulary=5), enumerated_rag.all_answers(5, 3)
    scores = draw_scores(chance, questions)
    best = answers(network, questions, scores, 4, beams=len(every), temperature=temperature)
    for answer, question, row in zip(best, questions, scores, strict=True):
        with torch.no_grad():
            tables = enumerated_rag.tables_of_all(plain(network), question, every)
        priors, tokens = enumerated_rag.log_prior(row, temperature), tuple(answer.tokens)
        totals = {tokens: enumerated_rag.likelihood(tables[tokens], priors) for tokens in every}
        assert answer.score == near(math.log(max(totals.values())))
        assert totals[tokens] == near(max(totals.values()))
        assert answer.passage_scores == near(enumerated_rag.posterior(tables[tokens], priors))


@pytest.mark.parametrize("beams", [1, 2, 3])
def test_answers_are_those_of_transformers(beams):
    # transformers' RAG-Sequence scores the `</s>` with which its beams pad ended hypotheses, so here none ends
    network = model("untied head", longer=0.0)
    rag = enumerated_rag.transformers_rag(network, 3)
    options = {"num_beams": beams, "max_length": MOST, "do_sample": False, "pad_token_id": 0, "eos_token_id": 1}
    options |= {"length_penalty": 0.0, "early_stopping": "never"} if beams > 1 else {}
    for question, row in zip(UNPADDED, SCORES, strict=True):  # transformers' beams of RAG-Sequence read padding too
        ids, mask = flat([question])
        expected = rag.generate(
            context_input_ids=ids * mask, context_attention_mask=mask.long(), doc_scores=torch.tensor([row]), n_docs=3,
            use_cache=False, **options,
        )[0, 1:].tolist()  # fmt: skip
        [answer] = answers(network, [question], [row], beams=beams)
        assert answer.tokens == expected


@settings(max_examples=10)
@given(
    st.sampled_from(list(SHAPES)), questions_of_ids, st.integers(1, 3), st.integers(0, 20),
    st.integers(1, 80), st.integers(1, 80), st.randoms(),
)  # fmt: skip
def test_padding_and_batching_change_nothing(shape, questions, beams, width, encoded, decoded, chance):
    network, scores = model(shape), draw_scores(chance, questions)
    rows = zip(questions, scores, strict=True)
    alone = [answers(network, [question], [row], beams=beams)[0] for question, row in rows]
    order = chance.sample(range(len(questions)), len(questions))
    shuffled = answers(
        network, [questions[n] for n in order], [scores[n] for n in order], encoded=encoded, decoded=decoded,
        width=width, beams=beams,
    )  # fmt: skip
    for answer, n in zip(shuffled, order, strict=True):
        assert answer.tokens == alone[n].tokens
        assert answer.score == near(alone[n].score)
        assert answer.passage_scores == near(alone[n].passage_scores)


def test_nan_weights_are_refused():
    network = small()
    with torch.no_grad():
        network.shared.weight[5] = torch.nan
    with refused("not numbers"):
        answers(network, QUESTIONS, SCORES)


TRAIN, LABELS, TEMPERATURE = QUESTIONS[:2], [[5, 6, 1], [7, 1]], 0.7
small_of = functools.cache(lambda shape: small(0, **SHAPES[shape]))


def batch(questions, labels, scores):
    ids, mask = flat(questions)
    return {
        "passage_ids": ids, "passage_mask": mask, "counts": torch.tensor([len(question) for question in questions]),
        "labels": pad_sequence([*map(torch.tensor, labels)], batch_first=True, padding_value=-100),
        "scores": torch.tensor([*chain.from_iterable(scores)]),
    }  # fmt: skip


@settings(max_examples=10)
@given(st.sampled_from(list(SHAPES)), questions_of_ids, st.floats(0.2, 5), st.randoms())
def test_the_loss_equals_enumeration_of_passages(shape, questions, temperature, chance):
    labels = [[*(chance.randrange(2, 40) for _ in range(chance.randrange(4))), 1] for _ in questions]
    scores = draw_scores(chance, questions, 3)
    network = convert_to_marginal(copy.deepcopy(small_of(shape)), temperature)
    t5, losses = plain(small_of(shape)), []
    with torch.no_grad():
        loss = float(network(**batch(questions, labels, scores)).loss)
        for question, label, row in zip(questions, labels, scores, strict=True):
            logs = [enumerated_rag.logs(t5, passage, label).tolist() for passage in question]
            priors = enumerated_rag.log_prior(row, temperature)
            losses.append(-math.log(enumerated_rag.likelihood(logs, priors)))
    assert loss == near(sum(losses) / len(losses))


def test_gradients_equal_enumeration_of_passages():
    network = convert_to_marginal(copy.deepcopy(small_of("untied head")), TEMPERATURE).train()
    network(**batch(TRAIN, LABELS, SCORES[:2])).loss.backward()
    t5, losses = plain(small_of("untied head")), []
    temperature = torch.tensor(TEMPERATURE, requires_grad=True)
    for question, label, row in zip(TRAIN, LABELS, SCORES[:2], strict=True):
        weights = (torch.tensor(row) / temperature).softmax(0)
        probabilities = torch.stack([enumerated_rag.logs(t5, passage, label) for passage in question]).exp()
        losses.append(-(weights @ probabilities.prod(1)).log())
    (sum(losses) / len(losses)).backward()
    gradients = {name: weight.grad for name, weight in network.named_parameters()}
    assert float(gradients.pop("log_temperature")) == near(float(temperature.grad) * TEMPERATURE)
    for name, weight in t5.named_parameters():
        torch.testing.assert_close(gradients[name], weight.grad, rtol=1e-3, atol=1e-4)
    assert max(float(gradient.abs().max()) for gradient in gradients.values()) > 0.1


def test_the_loss_equals_transformers():
    network = small(0, **SHAPES["untied head"])
    ids, mask = flat(TRAIN)
    labels = torch.tensor([[0, *label, *[0] * (3 - len(label))] for label in LABELS])  # they start with padding too
    with torch.no_grad():
        expected = enumerated_rag.transformers_rag(network, 3)(
            context_input_ids=ids * mask, context_attention_mask=mask.long(), doc_scores=torch.tensor(SCORES[:2]),
            labels=labels, n_docs=3,
        ).loss.mean()  # fmt: skip
        loss = convert_to_marginal(network, 1.0)(**batch(TRAIN, LABELS, SCORES[:2])).loss
    assert float(loss) == near(float(expected))


def test_a_trained_network_is_saved_as_a_plain_t5(tmp_path):
    network = small()
    names = set(network.state_dict())
    assert restore_t5(convert_to_marginal(network, 2.5)) == near(2.5)
    assert type(network) is FusionInDecoder
    assert set(network.state_dict()) == names
    network.save_pretrained(tmp_path)
    assert tiny_t5.FusionInDecoder.from_pretrained(tmp_path, output_loading_info=True)[1]["unexpected_keys"] == set()
