"""A local causal language model: batching changes no answer, each row ends on its own, and nothing
is computed twice.
"""

import functools
import json
import math
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tiny_chat
import torch
from hypothesis import given
from hypothesis import strategies as st
from openai_client import texts
from safetensors.torch import load_file
from tiny_t5 import save as save_t5
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    MambaConfig,
    MambaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from ifqa.errors import IfqaError
from ifqa.llms.cache import CompletionCache, request_seed
from ifqa.llms.generation import TokenSampler
from ifqa.llms.hf import HF, end_tokens
from ifqa.records import Estimate, Request, TokenUsage
from ifqa.settings import parse_settings

SHOWN = [
    ("system", "Be brief."),
    *[(who, tiny_chat.TEXTS[n][:60]) for n in range(2) for who in ("user", "assistant")],
]
SHARING = [
    Request(
        messages=(*SHOWN, ("user", f"{'Who? ' * n}Where would the boats land?")),
        max_tokens=6 + 5 * n,
    )
    for n in (3, 0, 5, 1)
]
QUESTIONS = [
    f"{n}: {'If Wick had no harbour, ' * n}where would the boats land?"
    for n in (0, 7, 1, 3, 12, 2, 5)
]


def chat(text, **settings):
    return Request(messages=(("user", text),), **{"max_tokens": 24} | settings)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_chat.save(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def open_model(folder, tmp_path):
    """Opens the tiny model in float32, with a store of the test's own."""
    base = {"model": str(folder), "store": str(tmp_path / "completions"), "precision": "float32"}
    return lambda root=Path(), **settings: HF(HF.Settings(**base | settings), root=root)


@functools.cache
def load(folder):
    return AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(
        folder
    ).eval()


def reference(folder, request):
    """What transformers itself answers to one request, greedily."""
    words, model = load(folder)
    if request.messages:
        chat = [{"role": role, "content": content} for role, content in request.messages]
        ids = words.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt")[
            "input_ids"
        ]
    else:
        ids = words(request.text, return_tensors="pt")["input_ids"]
    limits = {"max_new_tokens": request.max_tokens, "do_sample": False, "pad_token_id": 0}
    tokens = model.generate(ids, attention_mask=torch.ones_like(ids), **limits)[0, ids.shape[1] :]
    finish = "stop" if tokens[-1] == words.convert_tokens_to_ids(tiny_chat.END) else "length"
    return words.decode(tokens, skip_special_tokens=True), ids.shape[1], len(tokens), finish


def references(folder, requests):
    return [reference(folder, request) for request in requests]


def fail(model, monkeypatch, error, when):
    """Raise an error where `when` holds of the batches so far."""
    generate = model.model.generate
    batches = []

    def failing(**settings):
        batches.append(settings["input_ids"])
        if when(batches):
            raise error
        return generate(**settings)

    monkeypatch.setattr(model.model, "generate", failing)


def fields(completions):
    names = ("text", "prompt_tokens", "completion_tokens", "finish")
    return [tuple(getattr(completion, name) for name in names) for completion in completions]


@pytest.mark.slow
@pytest.mark.parametrize("batch_tokens", [0, 1, 300])
def test_batches_answer_as_transformers_does_one_at_a_time(open_model, folder, batch_tokens):
    model = open_model(batch_tokens=batch_tokens)
    different = [chat(text, max_tokens=5 + 9 * n) for n, text in enumerate(QUESTIONS)]
    for requests in (
        different,
        SHARING,
        [chat(f"Question {n}: Wick?", max_tokens=60) for n in range(8)],
    ):
        completions = fields(model.complete(requests))
        assert completions == references(folder, requests)
        assert len({text for text, *_ in completions}) > len(requests) // 2
    assert {finish for *_, finish in completions} == {"stop", "length"}


@pytest.fixture
def gpt2(tmp_path):
    """The folder of a model with absolute positions that has no chat template."""
    words = tiny_chat.tokenizer(template=None)
    folder = tmp_path / "gpt2"
    torch.manual_seed(1)
    size = {
        "vocab_size": len(words),
        "n_positions": 256,
        "n_embd": 32,
        "n_layer": 2,
        "n_head": 4,
        "bos_token_id": 0,
    }
    config = GPT2Config(
        **size, initializer_range=0.2, eos_token_id=words.convert_tokens_to_ids(tiny_chat.END)
    )
    GPT2LMHeadModel(config).save_pretrained(folder)
    words.save_pretrained(folder)
    return folder


def test_a_model_with_absolute_positions_continues_a_text(gpt2, tmp_path):
    model = HF(
        HF.Settings(model=str(gpt2), store=str(tmp_path), batch_tokens=400, precision="float32")
    )
    assert not model.chat
    assert model.window == 256
    shared = [Request(text=tiny_chat.TEXTS[0][:60] + " Who?" * n, max_tokens=9) for n in (1, 4, 0)]
    for requests in ([Request(text=text, max_tokens=20) for text in QUESTIONS[:-1]], shared):
        assert fields(model.complete(requests)) == references(gpt2, requests)


def test_a_model_without_a_chat_template_takes_no_messages(gpt2, tmp_path):
    model = HF(
        HF.Settings(model=str(gpt2), store=str(tmp_path), batch_tokens=400, precision="float32")
    )
    with pytest.raises(IfqaError, match="has no chat template and takes no messages"):
        model.complete([chat("Who?")])


def test_an_answer_ends_before_its_first_stop_string(open_model):
    model = open_model()
    [whole] = model.complete([chat("Wick?", max_tokens=40)])
    pieces = {
        whole.text[at : at + length]
        for length in (1, 2, 5)
        for at in range(len(whole.text) - length)
    }
    parts = sorted(part for part in pieces if part.isascii())
    completions = model.complete(
        [chat("Wick?", max_tokens=40, stop=("never", part, "")) for part in parts]
    )
    assert texts(completions) == [whole.text[: whole.text.index(part)] for part in parts]
    assert {completion.finish for completion in completions} == {"stop"}
    assert (
        min(completion.completion_tokens for completion in completions)
        < 5
        < whole.completion_tokens
    )


def test_samples_depend_only_on_the_request(open_model, tmp_path):
    numbered = enumerate([*QUESTIONS, QUESTIONS[0]])
    requests = [chat(text, temperature=0.7, sample=n, max_tokens=9 + n) for n, text in numbered]
    together = open_model().complete([*requests, *map(chat, QUESTIONS)])[: len(requests)]
    single = open_model(batch_tokens=1, store=str(tmp_path / "other"))
    backwards = [single.complete([request])[0].text for request in reversed(requests)]
    assert backwards == texts(reversed(together))
    samples = open_model().complete([chat("Wick?", temperature=0.7, sample=n) for n in range(8)])
    assert len({sample.text for sample in samples}) == 8
    cold = open_model().complete([chat(text, temperature=1e-9) for text in QUESTIONS])
    assert texts(cold) == texts(open_model().complete(list(map(chat, QUESTIONS))))
    others = [
        ("Wick", 0.5, 0),
        ("Wick?", 0.6, 0),
        ("Wick?", 0.5, 1),
        ("Wick?", 0.5, 0),
        ("Wick?", 0.5, 0),
    ]
    assert (
        len({request_seed(chat(text, temperature=heat, sample=n)) for text, heat, n in others}) == 4
    )


@given(st.lists(st.floats(-4, 4), min_size=2, max_size=6), st.sampled_from([0.5, 1.0, 2.0]))
def test_samples_follow_the_models_probabilities(logits, temperature):
    count = 1000
    requests = [
        Request(text="x", temperature=temperature, sample=n, max_tokens=3) for n in range(count)
    ]
    draws = TokenSampler([Request(text="x"), *requests], "cpu")
    logits_of = torch.tensor(logits).repeat(count + 1, 1)
    for _ in range(3):
        left = draws(torch.empty(0), logits_of.clone())
        assert left[0].tolist() == logits_of[0].tolist()
        shares = torch.bincount(left[1:].argmax(1), minlength=len(logits)) / count
        assert torch.allclose(shares, (logits_of[0] / temperature).softmax(0), atol=0.07)


def test_nothing_is_computed_twice(open_model, tmp_path, monkeypatch):
    model = open_model()
    steps: list[float] = []
    requests = [chat("Who?"), chat("Where?"), chat("Who?")]
    assert model.estimate(requests) == Estimate(
        2, *(sum(len(model.ids(request)) for request in requests[:2]), 48), 0.0
    )
    first = model.complete(requests, steps.append)
    assert first[0] == first[2]
    assert sorted(steps) == [1, 2]
    prompts, answers = (
        sum(counts) for counts in zip(*(fields(first)[n][1:3] for n in range(2)), strict=True)
    )
    assert model.spent == TokenUsage(2, 1, prompts, answers, 0.0)
    stored = CompletionCache(tmp_path / "completions").get(model.name, requests)
    assert [stored[request].text for request in requests] == texts(first)
    again = open_model()
    monkeypatch.setattr(again.model, "generate", None)
    completions = again.complete(requests)
    assert completions == [replace(completion, cached=True) for completion in first]
    assert again.spent == TokenUsage(0, 3, 0, 0, 0.0)
    assert again.complete([]) == []


def test_the_likelihood_of_a_text_is_the_product_of_its_tokens_with_the_ends(open_model, folder):
    model = open_model()
    request = chat("Who?", stop=("\n",))
    answers = ["Ada", "by rail to the other harbour", ""]
    words, network = load(folder)
    prompt = model.ids(request)
    ends = sorted(model._ends | {words("\n", add_special_tokens=False)["input_ids"][-1]})
    assert len(ends) > 1
    for answer, likelihood in zip(answers, model.log_likelihoods(request, answers), strict=True):
        tokens = words(answer, add_special_tokens=False)["input_ids"]
        shares = (
            network(torch.tensor([prompt + tokens]))
            .logits[0, len(prompt) - 1 :]
            .softmax(-1)
            .double()
        )
        expected = (
            math.prod([shares[n, token].item() for n, token in enumerate(tokens)])
            * shares[-1, ends].sum().item()
        )
        assert math.exp(likelihood) == pytest.approx(expected, rel=1e-4)


def test_a_completion_has_the_log_probabilities_of_its_tokens(open_model, folder):
    model = open_model()
    request = chat("Who?", logprobs=True)
    (completion,) = model.complete([request])
    _, network = load(folder)
    prompt = torch.tensor([model.ids(request)])
    limits = {"max_new_tokens": request.max_tokens, "do_sample": False, "pad_token_id": 0}
    whole = network.generate(prompt, attention_mask=torch.ones_like(prompt), **limits)
    tokens = whole[0, prompt.shape[1] :]
    logits = network(whole).logits[0, prompt.shape[1] - 1 : -1]
    expected = logits.log_softmax(-1)[range(len(tokens)), tokens].tolist()
    found = [logprob for _, logprob in completion.logprobs]
    assert found == pytest.approx(expected[: len(found)], abs=2e-3)
    assert completion.logprobs[-1][0] == len(completion.text)


def test_a_sampled_token_has_its_probability_at_temperature_1():
    requests = [chat("Who?", temperature=0.5, logprobs=True), chat("Where?")]
    sampler = TokenSampler(requests, "cpu")
    logits = torch.randn(2, 50)
    chosen = sampler(torch.zeros(2, 1), logits.clone()).argmax(-1)
    expected = logits.log_softmax(-1)[range(2), chosen]
    assert [sampler.logprobs(row) for row in range(2)] == [[value] for value in expected.tolist()]


def test_a_batch_has_log_probabilities_only_where_they_are_wanted(open_model):
    model = open_model()
    wanted, unwanted = model.complete([chat("Who?", logprobs=True), chat("Where?")])
    assert wanted.logprobs
    assert not unwanted.logprobs


def test_likelihoods_that_cannot_be_computed_are_empty(open_model, tmp_path):
    model = open_model()
    answers = ["Ada", "by rail to the other harbour"]
    assert model.log_likelihoods(chat("Who? " * model.window), answers) == []
    assert model.log_likelihoods(chat("Who?", max_tokens=1), ["Ada " * model.window]) == []
    assert model.log_likelihoods(chat("Who?"), []) == []
    model._ends = frozenset()
    assert model.log_likelihoods(chat("Who?"), answers) == []
    words = tiny_chat.tokenizer()
    folder = tmp_path / "mamba"
    config = MambaConfig(vocab_size=len(words), hidden_size=32, num_hidden_layers=2, state_size=4)
    MambaForCausalLM(config).save_pretrained(folder)
    words.save_pretrained(folder)
    assert (
        HF(HF.Settings(model=str(folder), store=str(tmp_path))).log_likelihoods(
            chat("Who?"), answers
        )
        == []
    )


def test_an_end_or_a_stop_string_that_the_tokenizer_lacks_changes_no_likelihood(open_model):
    model = open_model()
    answers = ["Ada", "by rail to the other harbour", ""]
    expected = model.log_likelihoods(chat("Who?"), answers)
    assert model.log_likelihoods(chat("Who?", stop=("",)), answers) == pytest.approx(expected)
    # One at a time
    assert open_model(batch_tokens=1).log_likelihoods(chat("Who?"), answers) == pytest.approx(
        expected
    )
    model.model.generation_config.eos_token_id = [*model._ends, 10**6]
    assert end_tokens(model.model, model.tokenizer) == model._ends


def test_completions_before_an_interrupt_are_stored(open_model, monkeypatch):
    model = open_model(batch_tokens=1)
    requests = list(map(chat, QUESTIONS))
    fail(model, monkeypatch, KeyboardInterrupt(), lambda batches: len(batches) == 3)
    with pytest.raises(KeyboardInterrupt):
        model.complete(requests)
    assert open_model().estimate(requests).calls == len(QUESTIONS) - 2


def test_models_that_may_answer_differently_have_different_names(open_model, tmp_path):
    names = {open_model().name, open_model(precision="auto").name}
    for number, settings in enumerate([{"seed": 1}, {}]):
        model_folder = tiny_chat.save(tmp_path / str(number) / "tiny", **settings)
        if not settings:
            (model_folder / "chat_template.jinja").write_text("{{ messages[0]['content'] }}")
        names.add(open_model(model=str(model_folder)).name)
    assert all(name.startswith("tiny@") for name in names)
    assert len(names) == 4


def test_a_model_that_was_moved_keeps_its_name(folder, open_model, tmp_path):
    moved = tiny_chat.save(tmp_path / "elsewhere" / "tiny")
    assert open_model(model=str(moved)).name == open_model().name
    fingerprint = HF.fingerprint(HF.Settings(model=str(folder), window=3), Path())
    assert HF.fingerprint(HF.Settings(model=str(moved)), Path()) == fingerprint


class Command:
    def __reduce__(self):
        return print, ("run",)


def test_a_model_that_answers_badly_says_so_before_it_starts(folder, open_model, tmp_path, caplog):
    shutil.copytree(folder, tmp_path / "models/smollm2")
    open_model(model="smollm2", root=tmp_path)
    assert "answered none of 100 questions" in caplog.text
    assert "qwen2.5-coder-0.5b-ifqa" in caplog.text
    caplog.clear()
    open_model(model="models/smollm2", root=tmp_path)
    assert not caplog.text


def test_pickled_weights_are_read_as_tensors_only(folder, open_model, tmp_path, capsys):
    other = shutil.copytree(folder, tmp_path / "tiny")
    weights = load_file(other / "model.safetensors")
    (other / "model.safetensors").unlink()
    torch.save(weights, other / "pytorch_model.bin")
    assert fields(open_model(model=str(other)).complete([chat("Who?")])) == fields(
        open_model().complete([chat("Who?")])
    )
    torch.save(weights | {"more": Command()}, other / "pytorch_model.bin")
    with pytest.raises(IfqaError, match="does not load as a causal language model"):
        open_model(model=str(other))
    assert "run" not in capsys.readouterr().out


def test_a_request_beyond_the_window_fails_alone(open_model):
    model = open_model(window=100)
    room = 100 - len(model.ids(chat("Who?")))
    requests = [
        chat("Who?", max_tokens=room),
        chat("Who?", max_tokens=room + 1),
        chat("land " * 100),
    ]
    fits, over, long = model.complete(requests)
    assert not fits.error
    assert (
        f"a prompt of {100 - room} tokens and an answer of up to {room + 1} do not fit"
        in over.error
    )
    assert "do not fit into the model's window of 100" in long.error
    assert model.spent.calls == 1
    assert model.estimate([chat("Who? Or where?"), requests[2]]).calls == 1
    assert open_model(window=100).complete([requests[1]])[0].error == over.error


def test_a_prompt_too_large_for_memory_fails_alone(open_model, monkeypatch):
    requests = list(map(chat, QUESTIONS))
    model = open_model()
    fail(model, monkeypatch, torch.OutOfMemoryError("CUDA out of memory."), bool)
    errors = [completion.error for completion in model.complete(requests)]
    assert all("tokens does not fit into the memory of cpu" in error for error in errors)
    assert open_model().estimate(requests).calls == len(QUESTIONS)


def test_a_batch_too_large_for_memory_is_halved(open_model, tmp_path, monkeypatch, capsys):
    requests = list(map(chat, QUESTIONS))
    error = torch.OutOfMemoryError("CUDA out of memory.")
    expected = open_model(store=str(tmp_path / "other")).complete(requests)
    model = open_model()
    capsys.readouterr()
    fail(model, monkeypatch, error, lambda batches: len(batches[-1]) > 2)
    assert model.complete(requests) == expected
    lines = capsys.readouterr().err.splitlines()
    assert lines
    for line in lines:
        assert re.match("out of memory with .*continuing with batches of", line)


def test_damaged_weights_are_refused(open_model):
    model = open_model()
    with torch.no_grad():
        model.model.lm_head.weight.fill_(float("nan"))
    with pytest.raises(IfqaError, match="NaN"):
        model.complete([chat("Who?")])


def test_other_errors_of_a_model_are_not_swallowed(open_model, monkeypatch):
    model = open_model()
    fail(model, monkeypatch, RuntimeError("shapes do not match"), bool)
    with pytest.raises(RuntimeError, match="shapes"):
        model.complete([chat("Who?")])


def test_the_way_of_sampling_of_the_models_folder_is_ignored(open_model, tmp_path):
    other = tiny_chat.save(tmp_path / "tiny")
    requests = list(map(chat, QUESTIONS))
    settings = (
        '{"do_sample": true, "temperature": 3.0, "repetition_penalty": 9.0, "top_k": '
        '2, "eos_token_id": [2, 1]}'
    )
    (other / "generation_config.json").write_text(settings)
    end = AutoTokenizer.from_pretrained(other).decode([1])
    expected = [completion.text.split(end)[0] for completion in open_model().complete(requests)]
    assert texts(open_model(model=str(other)).complete(requests)) == expected


def test_without_system_role_its_text_goes_before_the_first_message(open_model, tmp_path):
    refuses = (
        "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}"
    )
    other = tiny_chat.save(tmp_path / "tiny", template=refuses + tiny_chat.TEMPLATE)
    system = Request(messages=(("system", "Be brief."), ("user", "Who?")), max_tokens=9)
    folded = Request(messages=(("user", "Be brief.\n\nWho?"),), max_tokens=9)
    model = open_model(model=str(other))
    assert model.complete([system])[0].text == open_model().complete([folded])[0].text
    [system_only] = model.complete([Request(messages=(("system", "Be brief."),))])
    assert system_only.error == "the model's chat template refuses the messages: no system"


def test_tokens_of_a_text(open_model, folder):
    model = open_model()
    tokens = AutoTokenizer.from_pretrained(folder)("Wick was dug")["input_ids"]
    assert (model.count("Wick was dug"), model.count(""), model.count("\ud800")) == (
        len(tokens),
        0,
        model.count("?"),
    )


def test_settings_out_of_range_are_refused():
    cases: list[tuple[dict[str, Any], str]] = [
        ({"precision": "int8"}, "'precision': unknown value 'int8'"),
        ({"window": -1}, "'window': wanted a whole number from 0"),
        ({"batch_tokens": -5}, "'batch_tokens': wanted a whole number from 0"),
    ]
    for settings, message in cases:
        with pytest.raises(IfqaError, match=message):
            parse_settings(HF.Settings, {"model": "m"} | settings, "setting")


def test_settings_that_do_not_fit_are_refused(open_model):
    cases: list[tuple[dict[str, Any], str]] = [
        ({"model": " "}, "model is empty"),
        ({"window": 600}, "window is 600, but .* has only 512"),
        ({"device": "tpu"}, "unknown device"),
    ]
    for settings, message in cases:
        with pytest.raises(IfqaError, match=message):
            open_model(**settings)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("T5", "is not a causal language model but T5ForConditionalGeneration|FusionInDecoder"),
        ("headless", "is not a causal language model but Qwen2Model"),
        ("half", "1 weights are missing or have a wrong shape, such as lm_head.weight"),
        ("no tokenizer", "has no tokenizer"),
        ("torn", "does not load as a causal language model"),
        ("another's tokenizer", "the tokenizer of .* has 320 tokens and the model 310"),
        ("code of its own", "does not load as a causal language model"),
    ],
)
def test_another_kind_of_model_is_refused_in_one_line(tmp_path, kind, message):
    folder = tmp_path / "model"
    if kind == "T5":
        save_t5(folder)
    else:
        tiny_chat.save(folder, **({"vocab_size": 310} if kind == "another's tokenizer" else {}))
    config = folder / "config.json"
    weights = folder / "model.safetensors"
    if kind in ("headless", "half"):
        Qwen2ForCausalLM(Qwen2Config.from_pretrained(folder)).model.save_pretrained(folder)
    if kind == "half":
        config.write_text(config.read_text().replace("Qwen2Model", "Qwen2ForCausalLM"))
    elif kind == "no tokenizer":
        (folder / "tokenizer.json").unlink()
    elif kind == "torn":
        weights.write_bytes(weights.read_bytes()[:1000])
    elif kind == "code of its own":
        code = {"AutoConfig": "a.B", "AutoModelForCausalLM": "a.C"}
        config.write_text(json.dumps({"model_type": "my_own", "auto_map": code}))
    with pytest.raises(IfqaError, match=message) as raised:
        HF(HF.Settings(model=str(folder), store=str(tmp_path)))
    assert "\n" not in str(raised.value)
