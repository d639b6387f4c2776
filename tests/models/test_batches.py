"""Batches lose no text and no token, keep their budget, and have little padding."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from ifqa.models.devices import batches, to_device


def padded(lengths, left):
    """Features as a tokenizer returns them: text n's tokens are n * 1000 + 1, n * 1000 + 2, ...; 0 is padding."""
    ids, mask = torch.zeros(2, len(lengths), max(lengths), dtype=torch.int64)
    for text, length in enumerate(lengths):
        places = slice(max(lengths) - length, None) if left else slice(0, length)
        ids[text, places] = 1000 * text + torch.arange(1, length + 1)
        mask[text, places] = 1
    return {"input_ids": ids, "attention_mask": mask, "prompt_length": 3, "modality": "text"}


def tokens_of(batch):
    """Each row's tokens without padding."""
    return [row[kept.bool()].tolist() for row, kept in zip(batch["input_ids"], batch["attention_mask"], strict=True)]


@given(st.lists(st.integers(0, 20), min_size=1, max_size=30).filter(any), st.booleans(), st.integers(1, 200))
def test_every_text_is_in_one_batch_with_all_of_its_tokens_and_little_padding(lengths, left, budget):
    features, found, widths = padded(lengths, left), {}, []
    for places, batch in batches(features, len(lengths), budget):
        rows, width = batch["input_ids"].shape
        assert batch["attention_mask"].shape == (rows, width)
        assert (batch["prompt_length"], batch["modality"]) == (3, "text")
        assert width == max(1, *(lengths[place] for place in places))
        assert rows * width <= budget or rows == 1
        widths.append(width)
        assert not found.keys() & set(places)
        found |= dict(zip(places, tokens_of(batch), strict=True))
    assert [found[text] for text in range(len(lengths))] == tokens_of(features)
    assert widths == sorted(widths, reverse=True)


def test_texts_of_equal_length_keep_their_order_and_one_beyond_the_budget_is_alone():
    for lengths, budget, expected in [([2, 3, 2, 3, 2], 6, [[1, 3], [0, 2, 4]]), ([9, 2, 2], 4, [[0], [1, 2]])]:
        assert [places for places, _ in batches(padded(lengths, left=False), len(lengths), budget)] == expected


def test_features_without_a_mask_are_unchanged():
    bags = {"input_ids": torch.arange(5), "offsets": torch.tensor([0, 2])}
    assert list(batches(bags, 2, 1)) == [([0, 1], bags)]
    flat = {"input_ids": torch.arange(5), "attention_mask": torch.ones(5)}  # all texts in one row
    assert list(batches(flat, 2, 1)) == [([0, 1], flat)]


def test_only_tensors_are_sent_to_a_device():
    sent = to_device({"input_ids": torch.ones(1, 2), "prompt_length": 3, "modality": "text"}, "meta")
    assert sent["input_ids"].device.type == "meta"
    assert (sent["prompt_length"], sent["modality"]) == (3, "text")
