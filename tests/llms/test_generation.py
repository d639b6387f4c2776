"""The beginning that prompts share: computed once, with the answers that each prompt gets alone."""

import pytest
import tiny_chat
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import GPT2Config, GPT2LMHeadModel, Qwen2Config, Qwen2ForCausalLM

from ifqa.llms.generation import Caches, common
from ifqa.llms.hf import HF
from ifqa.records import Request

SHOWN = [("system", "Be brief."), *[(who, tiny_chat.TEXTS[n][:60]) for n in range(2) for who in ("user", "assistant")]]
REQUESTS = [
    Request(messages=(*SHOWN, ("user", f"{'Who? ' * n}Where would the boats land?")), max_tokens=6 + 5 * n)
    for n in (3, 0, 5, 1)
]


@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=6), min_size=1, max_size=5))
def test_the_shared_beginning_is_the_longest_that_leaves_a_token_of_each(prompts):
    n = common(prompts)
    longest = min(map(len, prompts)) - 1
    assert n <= longest
    assert len({tuple(one[:n]) for one in prompts}) == 1
    assert n == longest or len({tuple(one[: n + 1]) for one in prompts}) > 1


def opened(folder, store, **settings):
    return HF(model=str(folder), store=str(store), precision="float32", **settings)


@pytest.mark.parametrize("batch_tokens", [0, 400])
def test_answers_with_a_shared_beginning_are_those_of_single_prompts(tmp_path, batch_tokens):
    folder = tiny_chat.save(tmp_path / "tiny")
    alone = opened(folder, tmp_path / "alone")
    expected = [alone.complete([one])[0] for one in REQUESTS]
    model = opened(folder, tmp_path / "together", batch_tokens=batch_tokens)
    found = model.complete(REQUESTS)
    assert [(one.text, one.prompt_tokens, one.finish) for one in found] == [
        (one.text, one.prompt_tokens, one.finish) for one in expected
    ]
    assert len({one.text for one in found}) > 1


def test_the_beginning_is_computed_once_for_all_batches(tmp_path, monkeypatch):
    model = opened(tiny_chat.save(tmp_path / "tiny"), tmp_path / "a", batch_tokens=300)
    seen, forward = [], model.model.forward

    def counted(**given):
        seen.append(given["input_ids"].shape)
        return forward(**given)

    base, whole = [], model.model.base_model.forward
    monkeypatch.setattr(model.model, "forward", counted)
    monkeypatch.setattr(model.model.base_model, "forward", lambda *_, **given: base.append(given) or whole(**given))
    model.complete(REQUESTS)
    shortest = min(len(model.ids(one)) for one in REQUESTS)
    shared = [
        one["input_ids"].shape[1] for one in base if one.get("input_ids") is not None and len(one["input_ids"]) == 1
    ]
    assert max(shared) > shortest // 2
    first = [shape for shape in seen if shape[1] > 1]
    assert len(first) > 1
    assert all(shape[1] < max(len(model.ids(one)) for one in REQUESTS) - max(shared) + 1 for shape in first)


def test_a_model_with_absolute_positions_counts_them_over_the_padding(tmp_path):
    words = tiny_chat.tokenizer(template=None)
    torch.manual_seed(1)
    settings = {"vocab_size": len(words), "n_positions": 256, "n_embd": 32, "n_layer": 2, "n_head": 4}
    GPT2LMHeadModel(GPT2Config(**settings, initializer_range=0.2)).save_pretrained(tmp_path / "gpt2")
    words.save_pretrained(tmp_path / "gpt2")
    requests = [Request(text=tiny_chat.TEXTS[0] + " Who?" * n, max_tokens=9) for n in (1, 4, 0)]
    together, alone = opened(tmp_path / "gpt2", tmp_path / "a"), opened(tmp_path / "gpt2", tmp_path / "b")
    assert [one.text for one in together.complete(requests)] == [alone.complete([one])[0].text for one in requests]


def test_a_model_with_a_sliding_window_keeps_its_own_cache(tmp_path):
    words = tiny_chat.tokenizer()
    config = Qwen2Config(
        vocab_size=len(words), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, use_sliding_window=True, sliding_window=8, max_window_layers=1,
    )  # fmt: skip
    caches = Caches(Qwen2ForCausalLM(config), [[1] * 40, [1] * 50])
    assert caches.shared == 0
    assert caches.cache(2, 60) is None
