"""Fusion-in-Decoder against the original's method: padded passages, encoded flat, the padding
masked, decoded without a cache.
"""

import copy
import functools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from tiny_t5 import SHAPES, flat, padded_forward, padded_states, plain, questions_of_ids, small
from transformers import GenerationConfig
from transformers.modeling_outputs import BaseModelOutput

from ifqa.reading.t5.fusion_in_decoder import BatchLimits, GeneratedAnswer, generate_answers

EOS = 1
QUESTIONS = [
    [[5, 6, 7, 8], [9]],
    [[10, 11, 12], [13, 14], [15, 16, 17, 18, 19, 20], [3]],
    [[21, 22]],
    [[30, 31, 32, 33]],
]
shapes = st.sampled_from(list(SHAPES))


@functools.cache
def model(shape="T5", seed=0):
    """Answers end after a few tokens: the head's row of EOS is longer than others."""
    network = small(seed, **SHAPES[shape])
    head = network.lm_head.weight.detach().clone()
    head[EOS] *= 3
    network.lm_head.weight = torch.nn.Parameter(head)
    return network


def answers(network, questions, width=0, limits=None, beams=1):
    features = dict(zip(("input_ids", "attention_mask"), flat(questions, width), strict=True))
    counts = [len(question) for question in questions]
    limits = limits or BatchLimits(64, 64)
    return generate_answers(
        network, features, counts, max_answer_tokens=8, beams=beams, limits=limits
    )


@functools.cache
def original(network):
    return plain(network)


def greedy(network, question):
    """Token ids after the first, and their log-probability.

    Each token is computed without a cache.
    """
    t5 = original(network)
    with torch.no_grad():
        states, mask, _ = padded_states(t5, [question], width=11)
        tokens = [t5.config.decoder_start_token_id]
        score = 0.0
        while len(tokens) < 8 and t5.config.eos_token_id not in tokens[1:]:
            encoded = BaseModelOutput(last_hidden_state=states)
            logits = t5(
                encoder_outputs=encoded,
                attention_mask=mask,
                decoder_input_ids=torch.tensor([tokens]),
                use_cache=False,
            ).logits
            best = logits[0, -1].log_softmax(-1).max(-1)
            tokens.append(int(best.indices))
            score += float(best.values)
    return tokens[1:], score


def attention(network, question):
    """Logits of each layer's cross-attention at the first position, averaged over layers, heads and
    a passage's tokens.
    """
    t5 = original(network)
    outputs = {}
    hooks = []
    for layer, block in enumerate(t5.decoder.block):
        for name in ("q", "k"):
            linear = getattr(block.layer[1].EncDecAttention, name)
            hooks.append(
                linear.register_forward_hook(
                    lambda *call, key=(layer, name): outputs.update({key: call[2]})
                )
            )
    with torch.no_grad():
        states, mask, width = padded_states(t5, [question], width=11)
        start = torch.tensor([[t5.config.decoder_start_token_id]])
        t5(
            encoder_outputs=BaseModelOutput(last_hidden_state=states),
            attention_mask=mask,
            decoder_input_ids=start,
        )
    for hook in hooks:
        hook.remove()
    heads = t5.config.num_heads
    scores = []
    for place, passage in enumerate(question):
        total = 0.0
        for layer in range(len(t5.decoder.block)):
            for head in range(heads):
                query, key = (
                    outputs[layer, name][0].unflatten(-1, (heads, -1))[:, head]
                    for name in ("q", "k")
                )
                total += float(
                    (query @ key.T)[0, place * width : place * width + len(passage)].sum()
                )
        scores.append(total / (len(passage) * len(t5.decoder.block) * heads))
    return scores


def expected_answer(network, question):
    tokens, score = greedy(network, question)
    return GeneratedAnswer(tokens, score, attention(network, question))


near = functools.partial(pytest.approx, rel=1e-4, abs=1e-4)


def assert_same(answers, expected):
    for answer, other in zip(answers, expected, strict=True):
        assert answer.tokens == other.tokens
        assert answer.score == near(other.score)
        assert answer.passage_scores == near(other.passage_scores)


@settings(max_examples=10)
@given(shapes, questions_of_ids, st.integers(0, 9))
def test_decoding_equals_greedy_decoding_without_a_cache(shape, questions, seed):
    network = model(shape, seed % 3)
    expected = [expected_answer(network, question) for question in questions]
    assert_same(answers(network, questions), expected)


@settings(max_examples=10)
@given(
    shapes,
    questions_of_ids,
    st.integers(0, 20),
    st.integers(1, 80),
    st.integers(1, 80),
    st.randoms(),
)
def test_batches_change_nothing(shape, questions, width, encoded, decoded, chance):
    expected = [answers(model(shape), [question])[0] for question in questions]
    order = chance.sample(range(len(questions)), len(questions))
    shuffled = answers(
        model(shape), [questions[n] for n in order], width, BatchLimits(encoded, decoded)
    )
    assert_same(shuffled, [expected[n] for n in order])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("beams", [2, 4])
def test_beam_search_equals_transformers_over_padded_passages(shape, beams):
    t5 = original(model(shape)).requires_grad_(False)
    special = {"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": EOS}
    expected = []
    for question in QUESTIONS:
        states, mask, _ = padded_states(t5, [question], width=11)
        tokens = t5.generate(
            encoder_outputs=BaseModelOutput(last_hidden_state=states),
            attention_mask=mask,
            use_cache=False,
            generation_config=GenerationConfig(max_length=8, num_beams=beams, **special),
        )[0, 1:]
        tokens = tokens[: tokens.tolist().index(EOS) + 1] if EOS in tokens else tokens
        logits = (
            t5(
                encoder_outputs=BaseModelOutput(last_hidden_state=states),
                attention_mask=mask,
                decoder_input_ids=torch.cat([torch.zeros(1, dtype=torch.long), tokens[:-1]])[None],
            )
            .logits[0]
            .log_softmax(-1)
        )
        score = float(logits.gather(1, tokens[:, None]).sum())
        expected.append(GeneratedAnswer(tokens.tolist(), score, attention(model(shape), question)))
    assert_same(answers(model(shape), QUESTIONS, beams=beams), expected)


@pytest.mark.parametrize(
    "ids",
    [
        {},
        {"pad_token_id": 1},
        {"pad_token_id": 38, "eos_token_id": 37},
        {"decoder_start_token_id": 5},
    ],
)
def test_special_tokens_may_differ(ids):
    network = copy.deepcopy(model())
    within = 0
    for name, token in ids.items():
        setattr(network.config, name, token)
    if ids:
        network.lm_head.weight.data[37] = model().lm_head.weight.data[EOS] * 0.9
    else:
        network.lm_head.weight.data[0] *= 3
    for answer, question in zip(answers(network, QUESTIONS), QUESTIONS, strict=True):
        tokens, score = greedy(network, question)
        within += tokens.count(0)
        assert answer.tokens == tokens
        assert answer.score == near(score)
    assert within or ids


def test_nan_weights_are_refused():
    broken = copy.deepcopy(model())
    broken.decoder.block[0].layer[2].DenseReluDense.wi.weight.data[0, 0] = float("nan")
    with refused(r"the reader's probabilities are not numbers"):
        answers(broken, QUESTIONS)


def fail_beyond(monkeypatch, network, name, size, error):
    """Let a method raise if its inputs are larger than `size`, as on a full device.

    Returns the sizes it is called with.
    """
    method = getattr(network, name)
    sizes = []

    def limited(*args, **kwargs):
        inputs = args[0] if args else kwargs["encoder_outputs"].last_hidden_state
        sizes.append(inputs.shape[:2].numel())
        if sizes[-1] > size:
            raise error
        return method(*args, **kwargs)

    monkeypatch.setattr(network, name, limited)
    return sizes


#: Torch's errors on a GPU and on a CPU.
FULL = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB"),
    RuntimeError(
        "[enforce fail at alloc_cpu.cpp:125] err == 0. DefaultCPUAllocator: "
        "can't allocate memory: you tried"
    ),
]


@pytest.mark.parametrize("error", FULL)
@pytest.mark.parametrize("name", ["encode", "generate"])
def test_batches_are_halved_with_a_message_if_memory_runs_out(monkeypatch, capsys, name, error):
    network = copy.deepcopy(model())
    limits = BatchLimits(256, 256)
    expected = answers(network, QUESTIONS, limits=BatchLimits(256, 256))
    sizes = fail_beyond(monkeypatch, network, name, 20, error)
    assert_same(answers(network, QUESTIONS, limits=limits), expected)
    lines = capsys.readouterr().err.splitlines()
    assert lines
    assert all("out of memory" in line and "continuing with batches of" in line for line in lines)
    assert limits.encoded <= 20
    sizes.clear()
    answers(network, QUESTIONS, limits=limits)  # with the halved limits
    assert max(sizes) <= 20
    assert not capsys.readouterr().err


@pytest.mark.parametrize("error", [FULL[0], MemoryError()])
def test_a_question_that_never_fits_raises_a_one_line_error(monkeypatch, error):
    network = copy.deepcopy(model())
    fail_beyond(monkeypatch, network, "encode", 0, error)
    with refused(r"a question with 4 passages does not fit into the memory of cpu; "):
        answers(network, QUESTIONS[:2])


def test_other_runtime_errors_are_raised(monkeypatch):
    network = copy.deepcopy(model())
    monkeypatch.setattr(network, "encode", lambda *_: torch.ones(2, 3) @ torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="shapes"):
        answers(network, QUESTIONS)


def test_several_tokens_may_end_an_answer():
    network = copy.deepcopy(model())
    first = [answer.tokens[0] for answer in answers(model(), QUESTIONS)]
    network.config.eos_token_id = [EOS, first[0], first[1]]
    assert [answer.tokens for answer in answers(network, QUESTIONS)][:2] == [first[:1], first[1:2]]


LABELS = torch.tensor([[4, 9, 1], [30, 1, -100], [1, -100, -100]])


def assert_close(tensor, expected):
    """Equal within 1e-5 of the greatest entry, or of 1."""
    torch.testing.assert_close(
        tensor, expected, rtol=0, atol=1e-5 * max(1.0, float(expected.detach().abs().max()))
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_training_equals_that_of_the_padded_original(shape):
    network = small(gain=1.5, **SHAPES[shape]).train()
    ids, mask = flat(QUESTIONS[:3], width=8)
    rows = zip(QUESTIONS[:3], LABELS, strict=True)
    t5 = plain(network)
    expected = (
        sum(padded_forward(t5, [row], 8, labels=label[None, label > 0]).loss for row, label in rows)
        / 3
    )
    expected.backward()
    loss = network(
        passage_ids=ids, passage_mask=mask, counts=torch.tensor([2, 4, 1]), labels=LABELS
    ).loss
    assert_close(loss, expected)
    loss.backward()
    gradients = dict(t5.named_parameters())
    for name, weight in network.named_parameters():
        assert_close(weight.grad, gradients[name].grad)
