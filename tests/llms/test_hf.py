"""A local causal language model: batching changes no answer, each row ends on its own, and nothing is computed twice."""

import functools
import shutil

import huggingface_hub.constants
import pytest
import tiny_chat
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from tiny_t5 import save as save_t5
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    Qwen2Config,
    Qwen2Model,
)

from ifqa.errors import IfqaError
from ifqa.llms.cache import CompletionCache
from ifqa.llms.generation import Draws, seed
from ifqa.llms.hf import HF
from ifqa.plugins import load
from ifqa.records import Estimate, Request, Spent
from ifqa.settings import check_settings

QUESTIONS = [f"{n}: {'If Wick had no harbour, ' * n}where would the boats land?" for n in (0, 7, 1, 3, 12, 2, 5)]


def asked(text, **settings):
    return Request(messages=(("user", text),), **{"max_tokens": 24} | settings)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_chat.save(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    """A model of another family, with absolute positions and no chat template."""
    folder = tmp_path_factory.mktemp("models") / "gpt2"
    words = tiny_chat.tokenizer(template=None)
    torch.manual_seed(1)
    GPT2LMHeadModel(
        GPT2Config(
            vocab_size=len(words), n_positions=256, n_embd=32, n_layer=2, n_head=4, initializer_range=0.2,
            bos_token_id=0, eos_token_id=words.convert_tokens_to_ids(tiny_chat.END),
        )
    ).save_pretrained(folder)  # fmt: skip
    words.save_pretrained(folder)
    return folder


@pytest.fixture
def opened(folder, tmp_path):
    """Opens the tiny model in float32, with a store of the test's own."""
    base = {"model": str(folder), "store": str(tmp_path / "completions"), "precision": "float32"}
    return lambda **settings: HF(**base | settings)


@functools.cache
def loaded(folder):
    return AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder).eval()


def alone(folder, request):
    """What transformers itself answers to one request, greedily."""
    words, model = loaded(folder)
    if request.messages:
        chat = [{"role": role, "content": content} for role, content in request.messages]
        ids = words.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt")["input_ids"]
    else:
        ids = words(request.text, return_tensors="pt")["input_ids"]
    made = model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=request.max_tokens, do_sample=False, pad_token_id=0
    )[0, ids.shape[1] :]
    return words.decode(made, skip_special_tokens=True), ids.shape[1], len(made)


def shown(completion):
    return completion.text, completion.prompt_tokens, completion.completion_tokens


@pytest.mark.parametrize("batch_tokens", [0, 1, 300])
def test_batches_answer_as_transformers_does_one_at_a_time(opened, folder, batch_tokens):
    requests = [asked(text, max_tokens=5 + 9 * n) for n, text in enumerate(QUESTIONS)]
    found = opened(batch_tokens=batch_tokens).complete(requests)
    assert [shown(one) for one in found] == [alone(folder, one) for one in requests]
    assert len({one.text for one in found}) == len(requests)


def test_the_states_of_the_last_tokens_reach_the_output_layer_in_one_piece(opened):
    model, pieces = opened(batch_tokens=1000), []
    model.model.get_output_embeddings().register_forward_hook(
        lambda layer, given, logits: pieces.append(given[0].is_contiguous())
    )
    model.complete([asked(text, max_tokens=2) for text in QUESTIONS])
    assert pieces
    assert all(pieces)


def test_a_model_without_a_chat_template_continues_a_text(gpt2, tmp_path):
    model = HF(model=str(gpt2), store=str(tmp_path), batch_tokens=400, precision="float32")
    requests = [Request(text=text, max_tokens=20) for text in QUESTIONS]
    assert not model.chat
    assert model.window == 256
    assert [shown(one) for one in model.complete(requests[:-1])] == [alone(gpt2, one) for one in requests[:-1]]
    with pytest.raises(IfqaError, match="has no chat template and takes no messages"):
        model.complete([asked("Who?")])


def test_an_answer_ends_at_the_end_token_or_at_max_tokens(opened):
    found = opened().complete([asked(f"Question {n}: Wick?", max_tokens=60) for n in range(8)])
    ended = [one for one in found if one.finish == "stop"]
    assert {one.finish for one in found} == {"stop", "length"}
    assert all(one.completion_tokens == 60 for one in found if one.finish == "length")
    assert all(one.completion_tokens <= 60 and tiny_chat.END not in one.text for one in ended)


def test_an_answer_ends_early_at_a_newline_and_is_cut_before_it(opened):
    model = opened()
    whole = model.complete([asked(text, max_tokens=150) for text in QUESTIONS])
    found = model.complete([asked(text, max_tokens=150, stop=("\n",)) for text in QUESTIONS])
    assert [one.text for one in found] == [one.text.split("\n")[0] for one in whole]
    for one, other in zip(found, whole, strict=True):
        if "\n" in other.text:
            assert one.finish == "stop"
            assert one.completion_tokens < other.completion_tokens
    assert sum("\n" in one.text for one in whole) > 3


def test_any_part_of_an_answer_can_be_a_stop_string(opened):
    model = opened()
    whole = model.complete([asked("Wick?", max_tokens=40)])[0].text
    parts = {whole[start : start + length] for length in (1, 2, 5) for start in range(len(whole) - length)}
    parts = sorted(part for part in parts if part.isascii())
    found = model.complete([asked("Wick?", max_tokens=40, stop=("never", part, "")) for part in parts])
    assert [one.text for one in found] == [whole[: whole.index(part)] for part in parts]
    assert {one.finish for one in found} == {"stop"}


def test_draws_depend_only_on_the_request(opened, tmp_path):
    requests = [
        asked(text, temperature=0.7, sample=n, max_tokens=9 + n) for n, text in enumerate([*QUESTIONS, QUESTIONS[0]])
    ]
    together = opened().complete([*requests, *map(asked, QUESTIONS)])[: len(requests)]
    one_at_a_time = opened(batch_tokens=1, store=str(tmp_path / "other"))
    assert [one_at_a_time.complete([one])[0].text for one in reversed(requests)] == [
        one.text for one in reversed(together)
    ]
    samples = opened().complete([asked("Wick?", temperature=0.7, sample=n) for n in range(8)])
    assert len({one.text for one in samples}) == 8
    cold = opened().complete([asked(text, temperature=1e-9) for text in QUESTIONS])
    assert [one.text for one in cold] == [one.text for one in opened().complete(list(map(asked, QUESTIONS)))]


@given(st.lists(st.floats(-4, 4), min_size=2, max_size=6), st.sampled_from([0.5, 1.0, 2.0]))
def test_draws_follow_the_models_probabilities(logits, temperature):
    count = 1000
    requests = [Request(text="x", temperature=temperature, sample=n, max_tokens=3) for n in range(count)]
    draws = Draws([Request(text="x"), *requests], "cpu")
    given = torch.tensor(logits).repeat(count + 1, 1)
    for _ in range(3):
        left = draws(torch.empty(0), given.clone())
        assert left[0].tolist() == given[0].tolist()
        shares = torch.bincount(left[1:].argmax(1), minlength=len(logits)) / count
        assert torch.allclose(shares, (given[0] / temperature).softmax(0), atol=0.07)


def test_seeds_differ_by_every_part_of_a_request():
    base = asked("Wick?", temperature=0.5)
    others = [
        asked("Wick", temperature=0.5),
        asked("Wick?", temperature=0.6),
        asked("Wick?", temperature=0.5, sample=1),
    ]
    assert len({seed(one) for one in [base, *others]}) == 4
    assert seed(base) == seed(asked("Wick?", temperature=0.5))


def test_nothing_is_computed_twice(opened, tmp_path, monkeypatch):
    model, heard = opened(), []
    requests = [asked("Who?"), asked("Where?"), asked("Who?")]
    assert model.estimate(requests) == Estimate(2, *(sum(len(model.ids(one)) for one in requests[:2]), 48), 0.0)
    first = model.complete(requests, heard.append)
    assert first[0] == first[2]
    assert sorted(heard) == [1, 2]
    tokens = [sum(getattr(one, name) for one in first[:2]) for name in ("prompt_tokens", "completion_tokens")]
    assert model.spent == Spent(2, 1, *tokens, 0.0)
    assert [CompletionCache(tmp_path / "completions").get(model.name, [one])[one].text for one in requests] == [
        one.text for one in first
    ]

    again = opened()
    monkeypatch.setattr(again.model, "generate", None)
    found = again.complete(requests)
    assert [one.text for one in found] == [one.text for one in first]
    assert all(one.cached for one in found)
    assert again.spent == Spent(0, 3, 0, 0, 0.0)
    assert again.complete([]) == []


def test_completions_before_an_interrupt_are_stored(opened, monkeypatch):
    model = opened(batch_tokens=1)
    generate, calls = model.model.generate, []

    def interrupted(**settings):
        calls.append(settings)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return generate(**settings)

    monkeypatch.setattr(model.model, "generate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.complete(list(map(asked, QUESTIONS)))
    assert opened().estimate(list(map(asked, QUESTIONS))).calls == len(QUESTIONS) - 2


def test_a_models_name_depends_on_weights_and_template(folder, opened, tmp_path):
    names = {opened().name, opened(precision="auto").name}
    for number, settings in enumerate([{"seed": 1}, {"template": tiny_chat.TEMPLATE.replace("user", "one")}, {}]):
        made = tiny_chat.save(tmp_path / str(number) / "tiny", **settings)
        if not settings:
            (made / "chat_template.jinja").write_text("{{ messages[0]['content'] }}")
        names.add(opened(model=str(made)).name)
    assert all(name.startswith("tiny@") for name in names)
    assert len(names) == 4  # the template lacks the replaced word, so it stays the same
    moved = tiny_chat.save(tmp_path / "elsewhere" / "tiny")
    assert opened(model=str(moved)).name == opened().name
    assert HF.fingerprint(str(moved)) == HF.fingerprint(str(folder), window=3)


class Command:
    def __reduce__(self):
        return print, ("run",)


def test_pickled_weights_are_read_as_tensors_only(folder, opened, tmp_path, capsys):
    other = shutil.copytree(folder, tmp_path / "tiny")
    weights = load_file(other / "model.safetensors")
    (other / "model.safetensors").unlink()
    torch.save(weights, other / "pytorch_model.bin")
    found = opened(model=str(other)).complete([asked("Who?")])
    assert [one.text for one in found] == [one.text for one in opened().complete([asked("Who?")])]
    torch.save(weights | {"more": Command()}, other / "pytorch_model.bin")
    with pytest.raises(IfqaError, match="does not load as a causal language model"):
        opened(model=str(other))
    assert "run" not in capsys.readouterr().out


def test_a_request_beyond_the_window_fails_alone(opened):
    model = opened(window=100)
    room = 100 - len(model.ids(asked("Who?")))
    fits, over, long = model.complete(
        [asked("Who?", max_tokens=room), asked("Who?", max_tokens=room + 1), asked("land " * 100)]
    )
    assert not fits.error
    assert f"a prompt of {100 - room} tokens and an answer of up to {room + 1} do not fit" in over.error
    assert "do not fit into the model's window of 100" in long.error
    assert model.spent.calls == 1
    assert model.estimate([asked("Who? Or where?"), asked("land " * 100)]).calls == 1
    assert opened(window=100).complete([asked("Who?", max_tokens=room + 1)])[0].error == over.error


def too_large(model, rows, monkeypatch):
    """Make a model's memory too small for more than `rows` rows."""
    generate = model.model.generate

    def limited(**settings):
        if len(settings["input_ids"]) > rows:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return generate(**settings)

    monkeypatch.setattr(model.model, "generate", limited)


def test_a_batch_that_exceeds_the_memory_is_halved(opened, tmp_path, monkeypatch, capsys):
    requests = list(map(asked, QUESTIONS))
    expected = opened(store=str(tmp_path / "other")).complete(requests)
    model = opened()
    too_large(model, 2, monkeypatch)
    assert model.complete(requests) == expected
    said = capsys.readouterr().err.splitlines()
    assert said
    assert all(line.startswith("out of memory with ") and "going on with batches of" in line for line in said)


def test_a_prompt_too_large_for_the_memory_fails_alone(opened, monkeypatch):
    model = opened()
    too_large(model, 0, monkeypatch)
    found = model.complete(list(map(asked, QUESTIONS)))
    assert all("tokens does not fit into the memory of cpu" in one.error for one in found)
    assert opened().estimate(list(map(asked, QUESTIONS))).calls == len(QUESTIONS)


def test_other_errors_of_a_model_are_not_swallowed(opened, monkeypatch):
    model = opened()

    def broken(**settings):
        raise RuntimeError("shapes do not match")

    monkeypatch.setattr(model.model, "generate", broken)
    with pytest.raises(RuntimeError, match="shapes"):
        model.complete([asked("Who?")])


def test_damaged_weights_are_refused(opened):
    model = opened()
    with torch.no_grad():
        model.model.lm_head.weight.fill_(float("nan"))
    with pytest.raises(IfqaError, match="NaN"):
        model.complete([asked("Who?")])


def test_penalties_and_sampling_of_the_models_folder_are_ignored(folder, opened, tmp_path):
    other = tiny_chat.save(tmp_path / "tiny")
    (other / "generation_config.json").write_text(
        '{"do_sample": true, "temperature": 3.0, "repetition_penalty": 9.0, "top_k": 2, "eos_token_id": [2, 1]}'
    )
    words = AutoTokenizer.from_pretrained(other)
    found = opened(model=str(other)).complete(list(map(asked, QUESTIONS)))
    assert [one.text for one in found] == [
        one.text.split(words.decode([1]))[0] for one in opened().complete(list(map(asked, QUESTIONS)))
    ]


def test_without_system_role_its_text_goes_before_the_first_message(opened, tmp_path):
    refuses = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}"
    other = tiny_chat.save(tmp_path / "tiny", template=refuses + tiny_chat.TEMPLATE)
    system = Request(messages=(("system", "Be brief."), ("user", "Who?")), max_tokens=9)
    folded = Request(messages=(("user", "Be brief.\n\nWho?"),), max_tokens=9)
    model = opened(model=str(other))
    assert model.complete([system])[0].text == opened().complete([folded])[0].text
    [alone] = model.complete([Request(messages=(("system", "Be brief."),))])
    assert alone.error == "the model's chat template refuses the messages: no system"


def test_tokens_of_a_text_and_of_a_prompt(opened, folder):
    words, model = AutoTokenizer.from_pretrained(folder), opened()
    assert model.count("Wick was dug") == len(words("Wick was dug")["input_ids"])
    assert model.count("") == 0
    assert model.count("\ud800") == model.count("?")
    assert len(model.ids(asked("Who?"))) == alone(folder, asked("Who?"))[1]


def test_it_is_a_plugin_whose_settings_are_checked(opened):
    assert load("llm", "hf") is HF
    check_settings("setting of llm 'hf'", HF.__init__, {"model": "x", "window": 3, "store": "y"})
    for settings, said in [
        ({"precision": "int8"}, "'precision': unknown value 'int8'"), ({"window": -1}, "'window': wanted a whole number from 0"),
        ({"batch_tokens": -5}, "'batch_tokens': wanted a whole number from 0"), ({"model": " "}, "model is empty"),
        ({"window": 600}, "window is 600, and .* has no more than 512"), ({"device": "tpu"}, "unknown device"),
    ]:  # fmt: skip
        with pytest.raises(IfqaError, match=said):
            opened(**settings)


def test_a_missing_model_is_reported_in_one_line(monkeypatch, tmp_path):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(IfqaError, match="'nobody/no-such-model' is not here and cannot be fetched"):
        HF(model="nobody/no-such-model", store=str(tmp_path))


def bert(kind):
    def save(folder):
        kind(
            BertConfig(vocab_size=320, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
        ).save_pretrained(folder)
        tiny_chat.tokenizer().save_pretrained(folder)

    return save


def headless(folder):
    tiny_chat.save(folder)
    Qwen2Model(Qwen2Config.from_pretrained(folder)).save_pretrained(folder)


def half(folder):
    """A model whose config.json says causal, without the last layer's weights."""
    headless(folder)
    config = folder / "config.json"
    config.write_text(config.read_text().replace("Qwen2Model", "Qwen2ForCausalLM"))


def no_tokenizer(folder):
    tiny_chat.save(folder)
    (folder / "tokenizer.json").unlink()


def torn(folder):
    weights = tiny_chat.save(folder) / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])


def anothers_tokenizer(folder):
    tiny_chat.save(folder, vocab_size=310)


def foreign_code(folder):
    config = tiny_chat.save(folder) / "config.json"
    config.write_text('{"model_type": "my_own", "auto_map": {"AutoConfig": "a.B", "AutoModelForCausalLM": "a.C"}}')


@pytest.mark.parametrize(
    ("save", "said"),
    [
        (bert(BertForMaskedLM), "is no causal language model but BertForMaskedLM"),
        (bert(BertModel), "is no causal language model but BertModel"),
        (save_t5, "is no causal language model but T5ForConditionalGeneration|FusionInDecoder"),
        (headless, "is no causal language model but Qwen2Model"),
        (half, "its files lack 1 weights or hold them in another shape: lm_head.weight"),
        (no_tokenizer, "has no tokenizer"),
        (torn, "does not load as a causal language model"),
        (anothers_tokenizer, "the tokenizer of .* has 320 tokens and the model 310"),
        (foreign_code, "does not load as a causal language model"),
    ],
)
def test_another_kind_of_model_is_refused_in_one_line(tmp_path, save, said):
    save(tmp_path / "model")
    with pytest.raises(IfqaError, match=said) as raised:
        HF(model=str(tmp_path / "model"), store=str(tmp_path))
    assert "\n" not in str(raised.value)
