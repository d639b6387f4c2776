"""The log probabilities of tokens, as servers tell them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.llms.logprobs import locate_tokens, parse_tokens, span_logprobs
from ifqa.records import Completion

CHAT = {"content": [{"token": "Old", "logprob": -0.5}, {"token": "ham", "logprob": -0.25}]}
OLDER = {"tokens": ["Old", "ham"], "token_logprobs": [-0.5, -0.25]}


@pytest.mark.parametrize("logprobs", [CHAT, OLDER])
def test_both_forms_of_the_api_are_read(logprobs):
    assert parse_tokens(logprobs) == [(b"Old", -0.5), (b"ham", -0.25)]


def test_the_tokens_of_one_character_count_as_one():
    content = [
        {"token": "\ufffd", "logprob": -1.0, "bytes": [0xC3]},
        {"token": "\ufffd", "logprob": -2.0, "bytes": [0xA9]},
        {"token": "t", "logprob": -3.0, "bytes": [0x74]},
    ]
    tokens = locate_tokens("ét", parse_tokens({"content": content}))
    assert tokens == ((1, -3.0), (2, -3.0))


@pytest.mark.parametrize(
    "logprobs",
    [
        None,
        [],
        {},
        {"content": None},
        {"content": ["Old"]},
        {"content": [{"token": "Old", "logprob": None}]},
        {"content": [{"token": "Old", "logprob": math.nan}]},
        {"content": [{"token": "Old", "logprob": True}]},
        {"content": [{"token": 3, "logprob": -1.0}]},
        {"tokens": ["Old"], "token_logprobs": []},
        {"tokens": ["Old"], "token_logprobs": [None]},
    ],
)
def test_a_malformed_list_counts_as_none(logprobs):
    assert parse_tokens(logprobs) == []


def test_tokens_of_thoughts_are_left_out():
    tokens = [(b"<think>", -9.0), (b"so", -9.0), (b"</think>", -9.0), (b"19", -1.0), (b"05", -2.0)]
    assert locate_tokens("1905", tokens) == ((2, -1.0), (4, -2.0))


def test_an_end_token_is_left_out():
    assert locate_tokens("19", [(b"19", -1.0), (b"<|im_end|>", -4.0)]) == ((2, -1.0),)


def test_tokens_of_another_text_are_none():
    assert locate_tokens("1905", [(b"1906", -1.0)]) == ()


TOKENS = st.lists(st.tuples(st.text("aé😀 \n", min_size=1, max_size=4), st.floats(-20, 0)))


@given(TOKENS, st.data())
def test_a_part_of_the_text_has_the_tokens_that_overlap_it(tokens, data):
    text = "".join(token for token, _ in tokens)
    raw = [(token.encode(), logprob) for token, logprob in tokens]
    completion = Completion(text, logprobs=locate_tokens(text, raw))
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    expected = list[float]()
    place = 0
    for token, logprob in tokens:
        if place < end and place + len(token) > start:
            expected.append(round(logprob, 4))
        place += len(token)
    assert span_logprobs(completion, start, end) == expected
