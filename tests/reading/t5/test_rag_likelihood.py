"""RAG's likelihoods, posteriors and gradients against enumeration of the passages, and against transformers' RAG."""

import copy
import functools
import math

import enumerated_rag
import pytest
import tiny_t5
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_t5 import SHAPES, flat, plain, questions_of_ids, small

from ifqa.reading.t5.model import FusionInDecoder
from ifqa.reading.t5.rag_model import as_marginal, as_t5

MODES = ["sequence", "token"]
QUESTIONS = [[[5, 6, 7, 8], [9], [12, 13]], [[10, 11, 12], [13, 14], [15, 16, 17, 18]]]
SCORES = [[1.0, 2.0, 0.5], [0.3, 0.1, 1.0]]
LABELS = [[5, 6, 1], [7, 1]]
TEMPERATURE = 0.7


@functools.cache
def model(shape="T5"):
    return small(0, **SHAPES[shape])


def batch(questions, labels, scores):
    ids, mask = flat(questions)
    width = max(map(len, labels))
    padded = torch.tensor([[*label, *[-100] * (width - len(label))] for label in labels])
    return {
        "passage_ids": ids, "passage_mask": mask, "counts": torch.tensor([len(one) for one in questions]),
        "labels": padded, "scores": torch.tensor([score for own in scores for score in own]),
    }  # fmt: skip


def near(expected):
    return pytest.approx(expected, rel=1e-4, abs=1e-4)


@settings(max_examples=10)
@given(st.sampled_from(list(SHAPES)), questions_of_ids, st.sampled_from(MODES), st.floats(0.2, 5), st.randoms())
def test_the_loss_is_that_of_enumerated_passages(shape, questions, mode, temperature, chance):
    labels = [[*(chance.randrange(2, 40) for _ in range(chance.randrange(4))), 1] for _ in questions]
    scores = [[chance.uniform(-3, 3) for _ in one] for one in questions]
    network = as_marginal(copy.deepcopy(model(shape)), mode, temperature)
    t5, expected = plain(model(shape)), []
    with torch.no_grad():
        found = float(network(**batch(questions, labels, scores)).loss)
        for question, label, own in zip(questions, labels, scores, strict=True):
            logs = [enumerated_rag.logs(t5, passage, label).tolist() for passage in question]
            priors = enumerated_rag.log_prior(own, temperature)
            expected.append(-math.log(enumerated_rag.likelihood(logs, priors, mode)))
    assert found == near(sum(expected) / len(expected))


@pytest.mark.parametrize("mode", MODES)
def test_gradients_are_those_of_enumerated_passages(mode):
    network = as_marginal(copy.deepcopy(model("untied head")), mode, TEMPERATURE).train()
    network(**batch(QUESTIONS, LABELS, SCORES)).loss.backward()
    t5, losses = plain(model("untied head")), []
    temperature = torch.tensor(TEMPERATURE, requires_grad=True)
    for question, label, own in zip(QUESTIONS, LABELS, SCORES, strict=True):
        weights = (torch.tensor(own) / temperature).softmax(0)
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
    ids, mask = flat(QUESTIONS)
    labels = torch.tensor([[0, *label, *[0] * (3 - len(label))] for label in LABELS])  # padding is their start too
    with torch.no_grad():
        other = enumerated_rag.transformers_rag(network, mode, 3)(
            context_input_ids=ids * mask, context_attention_mask=mask.long(), doc_scores=torch.tensor(SCORES),
            labels=labels, n_docs=3,
        )  # fmt: skip
        loss = as_marginal(network, mode, 1.0)(**batch(QUESTIONS, LABELS, SCORES)).loss
    assert float(loss) == near(float(other.loss.mean()))


def test_a_trained_network_is_saved_as_a_plain_t5(tmp_path):
    network = small()
    names = set(network.state_dict())
    assert as_t5(as_marginal(network, "token", 2.5)) == near(2.5)
    assert type(network) is FusionInDecoder
    assert set(network.state_dict()) == names
    network.save_pretrained(tmp_path)
    assert tiny_t5.FusionInDecoder.from_pretrained(tmp_path, output_loading_info=True)[1]["unexpected_keys"] == set()
