"""Fusion-in-Decoder's network beside the original's method: every passage padded, encoded flat, the padding masked."""

import functools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_t5 import SHAPES, flat, padded_forward, plain, questions_of_ids, small

from ifqa.reading.t5.model import fuse

model = functools.cache(lambda shape: small(gain=1.5, **SHAPES[shape]))
original = functools.cache(lambda shape: plain(model(shape)))
shapes = st.sampled_from(list(SHAPES))
QUESTIONS = [
    [[5, 6, 7, 8], [9]], [[10, 11, 12], [13, 14], [15, 16, 17, 18, 19, 20], [3]], [[21, 22]]
]  # fmt: skip
LABELS = torch.tensor([[4, 9, 1], [30, 1, -100], [1, -100, -100]])


def counts(questions):
    return torch.tensor([len(question) for question in questions])


def close(found, expected, tolerance=1e-5):
    """Equal to so much of the greatest number there, or of one."""
    torch.testing.assert_close(found, expected, rtol=0, atol=tolerance * max(1.0, float(expected.detach().abs().max())))


@pytest.mark.parametrize("shape", SHAPES)
def test_with_one_passage_it_is_plain_t5(shape):
    ids = torch.tensor([[5, 6, 7, 8, 9], [10, 11, 12, 0, 0]])
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    started = torch.tensor([[0, 4, 5], [0, 30, 31]])
    expected = original(shape)(input_ids=ids, attention_mask=mask, decoder_input_ids=started)
    inputs = {"passage_ids": ids, "passage_mask": mask.bool(), "counts": torch.tensor([1, 1])}
    close(model(shape)(decoder_input_ids=started, **inputs).logits, expected.logits)


@settings(max_examples=20)
@given(shapes, questions_of_ids, st.integers(0, 14), st.data())
def test_logits_are_those_of_the_padded_original(shape, questions, width, data):
    size = (len(questions), data.draw(st.integers(1, 5)))
    started = torch.randint(0, 40, size, generator=torch.Generator().manual_seed(data.draw(st.integers(0, 99))))
    ids, mask = flat(questions, width)
    network = model(shape)
    with torch.no_grad():
        expected = padded_forward(original(shape), questions, decoder_input_ids=started)
        found = network(passage_ids=ids, passage_mask=mask, counts=counts(questions), decoder_input_ids=started)
    close(found.logits, expected.logits)


@pytest.mark.parametrize("shape", SHAPES)
def test_loss_and_gradients_equal_the_padded_original(shape):
    network = small(gain=1.5, **SHAPES[shape]).train()
    ids, mask = flat(QUESTIONS, width=8)
    alone, whole = zip(QUESTIONS, LABELS, strict=True), plain(network)
    expected = sum(padded_forward(whole, [one], 8, labels=label[None, label > 0]).loss for one, label in alone) / 3
    expected.backward()
    gradients = dict(whole.named_parameters())
    found = network(passage_ids=ids, passage_mask=mask, counts=counts(QUESTIONS), labels=LABELS).loss
    close(found, expected)
    found.backward()
    for name, weight in network.named_parameters():
        close(weight.grad, gradients[name].grad)


@settings(max_examples=20)
@given(questions_of_ids, st.integers(0, 14))
def test_fusing_puts_passages_after_one_another_without_padding(questions, width):
    ids, mask = flat(questions, width)
    hidden = torch.stack([ids, -ids], dim=2).float()  # of each token its id and that with a minus
    states, fused = fuse(hidden, mask, [len(question) for question in questions])
    expected = [[token for passage in question for token in passage] for question in questions]
    assert [row[kept].int().tolist() for row, kept in zip(states[..., 0], fused, strict=True)] == expected
    assert [row[kept].int().neg().tolist() for row, kept in zip(states[..., 1], fused, strict=True)] == expected
    assert fused.shape == (len(expected), max(map(len, expected)))
    assert not states[~fused].any()


def test_gradients_through_fuse_reach_all_tokens_but_padding():
    hidden = torch.randn(2, 3, 4, requires_grad=True)
    mask = torch.tensor([[True, False, False], [True, True, True]])
    fuse(hidden, mask, [2])[0].sum().backward()
    assert hidden.grad is not None
    assert torch.equal(hidden.grad[..., 0] == 1, mask)
