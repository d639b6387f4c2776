"""Fusion-in-Decoder beside the original's method: every passage padded, encoded flat, the padding masked; decoded without a cache."""

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

from ifqa.reading.t5.model import BatchLimits, batch_limits, generate_answers

EOS = 1
QUESTIONS = [
    [[5, 6, 7, 8], [9]], [[10, 11, 12], [13, 14], [15, 16, 17, 18, 19, 20], [3]], [[21, 22]], [[30, 31, 32, 33]]
]  # fmt: skip
shapes = st.sampled_from(list(SHAPES))


@functools.cache
def model(shape="T5", seed=0):
    """Answers end after a few tokens: the head's row of EOS is longer than others."""
    made = small(seed, **SHAPES[shape])
    head = made.lm_head.weight.detach().clone()
    head[EOS] *= 3
    made.lm_head.weight = torch.nn.Parameter(head)
    return made


def features(questions, width=0):
    return dict(zip(("input_ids", "attention_mask"), flat(questions, width), strict=True))


def answers(network, questions, width=0, tokens=8, encoded=64, decoded=64, **how):
    counts = [len(question) for question in questions]
    limits = BatchLimits(encoded, decoded)
    return generate_answers(network, features(questions, width), counts, max_answer_tokens=tokens, limits=limits, **how)


@functools.cache
def original(network):
    return plain(network)


def greedy(network, question, tokens=8):
    """Token ids after the first, and the sum of their logarithms of probability: all is computed anew for each token."""
    t5 = original(network)
    with torch.no_grad():
        states, mask, _ = padded_states(t5, [question], width=11)
        made, score = [t5.config.decoder_start_token_id], 0.0
        while len(made) < tokens and t5.config.eos_token_id not in made[1:]:
            encoded = BaseModelOutput(last_hidden_state=states)
            logits = t5(
                encoder_outputs=encoded, attention_mask=mask, decoder_input_ids=torch.tensor([made]), use_cache=False
            ).logits  # fmt: skip
            best = logits[0, -1].log_softmax(-1).max(-1)
            made.append(int(best.indices))
            score += float(best.values)
    return made[1:], score


def attention(network, question):
    """Logits of each layer's cross-attention at the first position, averaged over layers, heads and a passage's tokens."""
    t5, taken, hooks = original(network), {}, []
    for layer, block in enumerate(t5.decoder.block):
        for name in ("q", "k"):
            linear = getattr(block.layer[1].EncDecAttention, name)
            hook = linear.register_forward_hook(lambda _, __, made, key=(layer, name): taken.update({key: made}))
            hooks.append(hook)
    with torch.no_grad():
        states, mask, width = padded_states(t5, [question], width=11)
        start = torch.tensor([[t5.config.decoder_start_token_id]])
        t5(encoder_outputs=BaseModelOutput(last_hidden_state=states), attention_mask=mask, decoder_input_ids=start)
    for hook in hooks:
        hook.remove()
    heads, scores = t5.config.num_heads, []
    for place, passage in enumerate(question):
        total = 0.0
        for layer in range(len(t5.decoder.block)):
            for head in range(heads):
                query, key = (taken[layer, name][0].unflatten(-1, (heads, -1))[:, head] for name in ("q", "k"))
                total += float((query @ key.T)[0, place * width : place * width + len(passage)].sum())
        scores.append(total / (len(passage) * len(t5.decoder.block) * heads))
    return scores


def near(expected):
    return pytest.approx(expected, rel=1e-4, abs=1e-4)


@settings(max_examples=10)
@given(shapes, questions_of_ids, st.integers(0, 9))
def test_answers_and_scores_equal_greedy_decoding_without_a_cache(shape, questions, seed):
    network = model(shape, seed % 3)
    for reading, question in zip(answers(network, questions), questions, strict=True):
        tokens, score = greedy(network, question)
        assert reading.tokens == tokens
        assert reading.score == near(score)
        assert reading.passage_scores == near(attention(network, question))


@settings(max_examples=10)
@given(shapes, questions_of_ids, st.integers(0, 20), st.integers(1, 80), st.integers(1, 80), st.randoms())
def test_padding_budgets_and_company_change_nothing(shape, questions, width, encoded, decoded, chance):
    expected = [answers(model(shape), [question])[0] for question in questions]
    order = chance.sample(range(len(questions)), len(questions))
    shuffled = [questions[n] for n in order]
    found = answers(model(shape), shuffled, width, encoded=encoded, decoded=decoded)
    for reading, n in zip(found, order, strict=True):
        assert reading.tokens == expected[n].tokens
        assert reading.score == near(expected[n].score)
        assert reading.passage_scores == near(expected[n].passage_scores)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("beams", [2, 4])
def test_beams_find_what_transformers_finds_over_padded_passages(shape, beams):
    t5 = original(model(shape)).requires_grad_(False)
    found = answers(model(shape), QUESTIONS, beams=beams)
    assert [one.passage_scores for one in found] == [near(attention(model(shape), question)) for question in QUESTIONS]
    for reading, question in zip(found, QUESTIONS, strict=True):
        states, mask, _ = padded_states(t5, [question], width=11)
        # fmt: off
        made = t5.generate(
            encoder_outputs=BaseModelOutput(last_hidden_state=states), attention_mask=mask, use_cache=False,
            generation_config=GenerationConfig(
                max_length=8, num_beams=beams, decoder_start_token_id=0, pad_token_id=0, eos_token_id=EOS
            ),
        )[0, 1:]
        # fmt: on
        made = made[: made.tolist().index(EOS) + 1] if EOS in made else made
        assert reading.tokens == made.tolist()
        logits = t5(
            encoder_outputs=BaseModelOutput(last_hidden_state=states), attention_mask=mask,
            decoder_input_ids=torch.cat([torch.zeros(1, dtype=torch.long), made[:-1]])[None],
        ).logits[0].log_softmax(-1)  # fmt: skip
        assert reading.score == near(float(logits.gather(1, made[:, None]).sum()))


@pytest.mark.parametrize(
    "ids", [{}, {"pad_token_id": 1}, {"pad_token_id": 38, "eos_token_id": 37}, {"decoder_start_token_id": 5}]
)
def test_special_tokens_may_be_others_and_padding_within_an_answer_counts(ids):
    network, within = copy.deepcopy(model()), 0
    for name, token in ids.items():
        setattr(network.config, name, token)
    if ids:
        network.lm_head.weight.data[37] = model().lm_head.weight.data[EOS] * 0.9
    else:
        network.lm_head.weight.data[0] *= 3
    for reading, question in zip(answers(network, QUESTIONS), QUESTIONS, strict=True):
        tokens, score = greedy(network, question)
        within += tokens.count(0)
        assert reading.tokens == tokens
        assert reading.score == near(score)
    assert within or ids


def test_weights_that_are_no_numbers_are_said():
    broken = copy.deepcopy(model())
    broken.decoder.block[0].layer[2].DenseReluDense.wi.weight.data[0, 0] = float("nan")
    with refused(r"the reader's probabilities are no numbers"):
        answers(broken, QUESTIONS)


def fail_beyond(monkeypatch, network, name, size, error):
    """Let a method of a model raise where its inputs are larger than so much, as a full device does."""
    whole, asked = getattr(network, name), []

    def limited(*given, **named):
        inputs = given[0] if given else named["encoder_outputs"].last_hidden_state
        asked.append(inputs.shape[:2].numel())
        if asked[-1] > size:
            raise error
        return whole(*given, **named)

    monkeypatch.setattr(network, name, limited)
    return asked


#: What torch says on a GPU and, as a plain RuntimeError, on a CPU.
FULL = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB"),
    RuntimeError("[enforce fail at alloc_cpu.cpp:125] err == 0. DefaultCPUAllocator: can't allocate memory: you tried"),
]


@pytest.mark.parametrize("error", FULL)
@pytest.mark.parametrize("name", ["encode", "generate"])
def test_batches_are_halved_with_a_message_if_memory_runs_out(monkeypatch, capsys, name, error):
    network, limits = copy.deepcopy(model()), BatchLimits(256, 256)
    expected = answers(network, QUESTIONS, encoded=256, decoded=256)
    asked = fail_beyond(monkeypatch, network, name, 20, error)
    found = generate_answers(network, features(QUESTIONS), [2, 4, 1, 1], max_answer_tokens=8, limits=limits)
    for reading, other in zip(found, expected, strict=True):
        assert reading.tokens == other.tokens
        assert reading.passage_scores == near(other.passage_scores)
    lines = capsys.readouterr().err.splitlines()
    assert lines
    assert all("out of memory" in line and "going on with batches of" in line for line in lines)
    assert limits.encoded <= 20
    tried = len(asked)
    generate_answers(
        network, features(QUESTIONS), [2, 4, 1, 1], max_answer_tokens=8, limits=limits
    )  # it is known by now
    assert max(asked[tried:]) <= 20
    assert not capsys.readouterr().err


@pytest.mark.parametrize("error", [FULL[0], MemoryError()])
def test_a_question_that_never_fits_raises_a_one_line_error(monkeypatch, error):
    network = copy.deepcopy(model())
    fail_beyond(monkeypatch, network, "encode", 0, error)
    with refused(r"one question with 4 passages does not fit into the memory of cpu; "):
        answers(network, QUESTIONS[:2])


def test_another_error_of_the_runtime_is_none_of_memory(monkeypatch):
    network = copy.deepcopy(model())
    monkeypatch.setattr(network, "encode", lambda *_: torch.ones(2, 3) @ torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="shapes"):
        answers(network, QUESTIONS)


def test_several_tokens_may_end_an_answer():
    network, first = copy.deepcopy(model()), [answer.tokens[0] for answer in answers(model(), QUESTIONS)]
    network.config.eos_token_id = [EOS, first[0], first[1]]
    assert [answer.tokens for answer in answers(network, QUESTIONS)][:2] == [first[:1], first[1:2]]


def test_what_fits_is_the_given_tokens_or_what_suits_the_device():
    assert batch_limits(model(), 1, 512).encoded == 512
    assert batch_limits(model(), 1).encoded > 512
    assert batch_limits(model(), 1).decoded >= batch_limits(model(), 1).encoded


LABELS = torch.tensor([[4, 9, 1], [30, 1, -100], [1, -100, -100]])


def close(found, expected, tolerance=1e-5):
    """Equal to so much of the greatest number there, or of one."""
    torch.testing.assert_close(found, expected, rtol=0, atol=tolerance * max(1.0, float(expected.detach().abs().max())))


@pytest.mark.parametrize("shape", SHAPES)
def test_loss_and_gradients_equal_the_padded_original(shape):
    network = small(gain=1.5, **SHAPES[shape]).train()
    ids, mask = flat(QUESTIONS[:3], width=8)
    alone, whole = zip(QUESTIONS[:3], LABELS, strict=True), plain(network)
    expected = sum(padded_forward(whole, [one], 8, labels=label[None, label > 0]).loss for one, label in alone) / 3
    expected.backward()
    gradients = dict(whole.named_parameters())
    found = network(passage_ids=ids, passage_mask=mask, counts=torch.tensor([2, 4, 1]), labels=LABELS).loss
    close(found, expected)
    found.backward()
    for name, weight in network.named_parameters():
        close(weight.grad, gradients[name].grad)
