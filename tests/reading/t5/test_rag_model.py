"""RAG's decoding, against enumeration and against transformers."""

import functools
import math
from itertools import chain

import enumerated_rag
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from tiny_t5 import SHAPES, flat, plain, questions_of_ids, small

from ifqa.reading.t5.fusion_in_decoder import BatchLimits
from ifqa.reading.t5.rag_model import generate_rag_answers

QUESTIONS = [
    [[5, 6, 7, 8], [9], [12, 13]],
    [[10, 11, 12], [13, 14], [15, 16, 17, 18]],
    [[3], [30, 31], [9, 9, 9]],
]
UNPADDED = [
    [[5, 6, 7], [9, 8, 7], [12, 13, 4]],
    [[10, 11, 12], [13, 14, 2], [15, 16, 17]],
    [[3, 30, 31], [9, 9, 9], [20, 3, 4]],
]
SCORES = [[1.0, 2.0, 0.5], [0.3, 0.1, 1.0], [0.0, 0.0, 0.0]]
MOST = 6


@functools.cache
def model(shape="T5", seed=0, vocabulary=40, longer=1.5):
    """Answers end after a few tokens: the head's row of `</s>` is longer.

    Padding has the probability of a mean token.
    """
    network = small(seed, **SHAPES[shape], vocabulary=vocabulary)
    head = network.lm_head.weight.detach().clone()
    head[enumerated_rag.EOS] *= longer
    head[enumerated_rag.PAD] = 0
    network.lm_head.weight = torch.nn.Parameter(head)
    return network


def answers(
    network, questions, scores, most=MOST, encoded=64, decoded=64, width=0, beams=1, temperature=1.0
):
    ids, mask = flat(questions, width)
    features = {"input_ids": ids % network.config.vocab_size, "attention_mask": mask}
    return generate_rag_answers(
        network,
        features,
        [len(question) for question in questions],
        scores=[*chain.from_iterable(scores)],
        beams=beams,
        temperature=temperature,
        max_answer_tokens=most,
        limits=BatchLimits(encoded, decoded),
    )


def draw_scores(chance, questions, bound=2):
    return [[chance.uniform(-bound, bound) for _ in question] for question in questions]


near = functools.partial(pytest.approx, rel=1e-4, abs=1e-4)
small_questions = st.lists(
    st.lists(st.lists(st.integers(2, 4), min_size=1, max_size=4), min_size=1, max_size=3),
    min_size=1,
    max_size=2,
)


@settings(max_examples=8)
@given(small_questions, st.integers(0, 2), st.floats(0.5, 3), st.randoms())
def test_beams_for_all_answers_find_the_best_answer(questions, seed, temperature, chance):
    network = model("T5", seed, vocabulary=5)
    every = enumerated_rag.all_answers(5, 3)
    scores = draw_scores(chance, questions)
    best = answers(network, questions, scores, 4, beams=len(every), temperature=temperature)
    for answer, question, row in zip(best, questions, scores, strict=True):
        with torch.no_grad():
            tables = enumerated_rag.tables_of_all(plain(network), question, every)
        priors = enumerated_rag.log_prior(row, temperature)
        tokens = tuple(answer.tokens)
        totals = {tokens: enumerated_rag.likelihood(tables[tokens], priors) for tokens in every}
        assert answer.score == near(math.log(max(totals.values())))
        assert totals[tokens] == near(max(totals.values()))
        assert answer.passage_scores == near(enumerated_rag.posterior(tables[tokens], priors))


@pytest.mark.parametrize("beams", [1, 2, 3])
def test_answers_are_those_of_transformers(beams):
    # transformers' RAG-Sequence scores the `</s>` with which its beams pad ended hypotheses, so
    # here none ends
    network = model("untied head", longer=0.0)
    rag = enumerated_rag.transformers_rag(network, 3)
    options = {
        "num_beams": beams,
        "max_length": MOST,
        "do_sample": False,
        "pad_token_id": 0,
        "eos_token_id": 1,
    }
    options |= {"length_penalty": 0.0, "early_stopping": "never"} if beams > 1 else {}
    # transformers' beams of RAG-Sequence read padding too
    for question, row in zip(UNPADDED, SCORES, strict=True):
        ids, mask = flat([question])
        expected = rag.generate(
            context_input_ids=ids * mask,
            context_attention_mask=mask.long(),
            doc_scores=torch.tensor([row]),
            n_docs=3,
            use_cache=False,
            **options,
        )[0, 1:].tolist()
        [answer] = answers(network, [question], [row], beams=beams)
        assert answer.tokens == expected


@settings(max_examples=10)
@given(
    st.sampled_from(list(SHAPES)),
    questions_of_ids,
    st.integers(1, 3),
    st.integers(0, 20),
    st.integers(1, 80),
    st.integers(1, 80),
    st.randoms(),
)
def test_batches_change_nothing(shape, questions, beams, width, encoded, decoded, chance):
    network = model(shape)
    scores = draw_scores(chance, questions)
    rows = zip(questions, scores, strict=True)
    alone = [answers(network, [question], [row], beams=beams)[0] for question, row in rows]
    order = chance.sample(range(len(questions)), len(questions))
    shuffled = answers(
        network,
        [questions[n] for n in order],
        [scores[n] for n in order],
        encoded=encoded,
        decoded=decoded,
        width=width,
        beams=beams,
    )
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
