"""Fusion-in-Decoder's network beside the original's method: every passage padded, encoded flat, the padding masked."""

import functools

import pytest
import torch
from tiny_t5 import SHAPES, flat, padded_forward, plain, small

model = functools.cache(lambda shape: small(gain=1.5, **SHAPES[shape]))
original = functools.cache(lambda shape: plain(model(shape)))
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
