"""Opening T5 checkpoints, and the one-line errors for files that do not open.

Published checkpoints are compared with a reference implementation, FiD on the T5 of transformers
3.0.2, written from the descriptions of both.
"""

import functools
import json
import math
import pickle
import shutil
from pathlib import Path

import pytest
import sentencepiece
import torch
from safetensors.torch import load_file, save_file
from tiny_t5 import TEXTS, config, flat, model, plain, save, tokenizer
from transformers import BertConfig, BertForMaskedLM

from ifqa.errors import IfqaError
from ifqa.reading.t5.checkpoint import Conventions, open_checkpoint
from ifqa.reading.t5.fusion_in_decoder import BatchLimits, generate_answers
from ifqa.reading.t5.readers import Fid

HEADS = 4
LAYERS = 3
WIDTH = 40
CROSS_BIAS = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
QUESTIONS = [
    [list(range(5, 35)), list(range(40, 52)), [7, 8, 9]],
    [list(range(60, 75))],
    [list(range(20, 32)), list(range(5, 45))],
]


@functools.cache
def network_of(seed):
    return model(seed, vocabulary=len(tokenizer()), num_layers=LAYERS, num_decoder_layers=LAYERS)


def save_published(folder, seed=0, zipped=True, without=(), **changes):
    """Write a checkpoint folder in the layout of facebookresearch/FiD, with a tokenizer added.

    Return the tensors.
    """
    folder.mkdir()
    tensors = {}
    for name, tensor in network_of(seed).state_dict().items():
        if name.startswith("encoder."):
            name = "encoder." + name
            for layer in range(LAYERS):
                name = name.replace(f"block.{layer}.layer", f"block.{layer}.module.layer")
        tensors[name] = tensor.clone()
    tensors[CROSS_BIAS] = 2 * torch.randn(32, HEADS, generator=torch.Generator().manual_seed(seed))
    tensors = {name: tensor for name, tensor in (tensors | changes).items() if name not in without}
    torch.save(tensors, folder / "pytorch_model.bin", _use_new_zipfile_serialization=zipped)
    settings = {
        "architectures": ["T5ForConditionalGeneration"],
        "d_ff": 64,
        "d_kv": 8,
        "d_model": 32,
        "decoder_start_token_id": 0,
        "dropout_rate": 0.1,
        "eos_token_id": 1,
        "initializer_factor": 1.0,
        "is_encoder_decoder": True,
        "layer_norm_epsilon": 1e-06,
        "model_type": "t5",
        "n_positions": 512,
        "num_heads": HEADS,
        "num_layers": LAYERS,
        "output_past": True,
        "pad_token_id": 0,
        "relative_attention_num_buckets": 32,
        "vocab_size": len(tokenizer()),
        "task_specific_params": {
            "summarization": {"early_stopping": True, "min_length": 30, "num_beams": 4}
        },
    }
    (folder / "config.json").write_text(json.dumps(settings))
    tokenizer().save_pretrained(folder)
    return tensors


def bias(weight, queries, keys, both):
    """Relative position bias, [1, heads, queries, keys].

    If not `both`, keys after the query get distance 0.
    """
    apart = torch.arange(keys)[None] - torch.arange(queries)[:, None]
    buckets, first = (16, 16 * (apart > 0)) if both else (32, 0)
    distance = apart.abs() if both else (-apart).clamp(min=0)
    half = buckets // 2
    far = (
        half
        + (torch.log(distance.float() / half) / math.log(128 / half) * (buckets - half))
        .clamp(min=0)
        .long()
    )
    return weight[
        first + torch.where(distance < half, distance, far.clamp(max=buckets - 1))
    ].permute(2, 0, 1)[None]


def original(tensors, question, started):
    """Logits [tokens, vocabulary] after the tokens `started`, and the passages' scores, of FiD with
    transformers 3.0.2.
    """

    def norm(name, hidden):
        return (
            hidden
            * torch.rsqrt(hidden.pow(2).mean(-1, keepdim=True) + 1e-6)
            * tensors[f"{name}layer_norm.weight"]
        )

    def attend(name, hidden, source, added, first=None):
        q, k, v = (
            (states @ tensors[f"{name}.{linear}.weight"].T)
            .unflatten(-1, (HEADS, -1))
            .transpose(1, 2)
            for linear, states in (("q", hidden), ("k", source), ("v", source))
        )
        logits = q @ k.transpose(2, 3) + added
        if first is not None:
            first.append(logits[0, :, 0])
        return (logits.softmax(-1) @ v).transpose(1, 2).flatten(2) @ tensors[f"{name}.o.weight"].T

    def feed(name, hidden):
        inner = (norm(f"{name}.", hidden) @ tensors[f"{name}.DenseReluDense.wi.weight"].T).relu()
        return inner @ tensors[f"{name}.DenseReluDense.wo.weight"].T

    ids, mask = flat([question], WIDTH)
    hidden = tensors["shared.weight"][ids]
    table = tensors[
        "encoder.encoder.block.0.module.layer.0.SelfAttention.relative_attention_bias.weight"
    ]
    within = bias(table, WIDTH, WIDTH, both=True) - 1e9 * ~mask[:, None, None]
    for layer in range(LAYERS):
        name = f"encoder.encoder.block.{layer}.module.layer"
        normed = norm(f"{name}.0.", hidden)
        hidden = hidden + attend(f"{name}.0.SelfAttention", normed, normed, within)
        hidden = hidden + feed(f"{name}.1", hidden)
    states = norm("encoder.encoder.final_", hidden).reshape(1, -1, 32)

    hidden = tensors["shared.weight"][started][None]
    count = len(started)
    first: list[torch.Tensor] = []
    table = tensors["decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"]
    causal = bias(table, count, count, both=False) - 1e9 * torch.ones(count, count).triu(1)
    across = torch.zeros(())
    if CROSS_BIAS in tensors:
        across = bias(tensors[CROSS_BIAS], count, states.shape[1], both=False)
    across = across - 1e9 * ~mask.view(1, 1, 1, -1)
    for layer in range(LAYERS):
        name = f"decoder.block.{layer}.layer"
        normed = norm(f"{name}.0.", hidden)
        hidden = hidden + attend(f"{name}.0.SelfAttention", normed, normed, causal)
        hidden = hidden + attend(
            f"{name}.1.EncDecAttention", norm(f"{name}.1.", hidden), states, across, first
        )
        hidden = hidden + feed(f"{name}.2", hidden)
    logits = norm("decoder.final_", hidden)[0] * 32**-0.5 @ tensors["lm_head.weight"].T
    attention = torch.stack(first).unflatten(-1, mask.shape).masked_fill(~mask, 0.0)
    return logits, (attention.sum((0, 1, 3)) / (mask.sum(1) * LAYERS * HEADS)).tolist()


def logits_of(network, started):
    ids, mask = flat(QUESTIONS)
    counts = torch.tensor([len(question) for question in QUESTIONS])
    with torch.no_grad():
        return network(
            passage_ids=ids, passage_mask=mask, counts=counts, decoder_input_ids=started
        ).logits


def answers(network, tokens=10):
    features = dict(zip(("input_ids", "attention_mask"), flat(QUESTIONS), strict=True))
    counts = [len(question) for question in QUESTIONS]
    return generate_answers(
        network, features, counts, max_answer_tokens=tokens, limits=BatchLimits(64, 128)
    )


@pytest.mark.parametrize(("seed", "zipped", "without"), [(0, True, ()), (1, False, (CROSS_BIAS,))])
def test_a_published_checkpoint_equals_the_original(tmp_path, seed, zipped, without):
    tensors = save_published(tmp_path / "nq", seed, zipped=zipped, without=without)
    opened = open_checkpoint(str(tmp_path / "nq"))
    assert opened.conventions == Conventions(encoder_eos=False)
    started = torch.tensor([[0, *range(10, 20)]] * 3)
    for question, logits in zip(QUESTIONS, logits_of(opened.model, started), strict=True):
        torch.testing.assert_close(
            logits, original(tensors, question, started[0])[0], rtol=1e-4, atol=1e-4
        )
    for question, answer in zip(QUESTIONS, answers(opened.model), strict=True):
        tokens = [0]
        score = 0.0
        while len(tokens) < 10 and 1 not in tokens:
            logits, attention = original(tensors, question, tokens)
            best = logits[-1].log_softmax(-1).max(-1)
            tokens.append(int(best.indices))
            score += float(best.values)
            assert answer.passage_scores == pytest.approx(attention, rel=1e-4, abs=1e-4)
        assert answer.tokens == tokens[1:]
        assert answer.score == pytest.approx(score, rel=1e-4)


def test_a_checkpoint_opens_the_same_without_wrapped_layers_saved_again_or_pickled(tmp_path):
    tensors = save_published(tmp_path / "nq")
    opened = open_checkpoint(str(tmp_path / "nq")).model
    started = torch.tensor([[0, 5, 6, 7, 8]] * 3)
    opened.save_pretrained(tmp_path / "ours")
    tokenizer().save_pretrained(tmp_path / "ours")
    bare = {name.replace(".module.", "."): tensor for name, tensor in tensors.items()}
    torch.save(bare, tmp_path / "nq" / "pytorch_model.bin")
    for name in ("ours", "nq"):
        assert torch.equal(
            logits_of(open_checkpoint(str(tmp_path / name)).model, started),
            logits_of(opened, started),
        )
    folder = save(tmp_path / "t5")
    opened = open_checkpoint(str(folder)).model
    (folder / "model.safetensors").unlink()
    weights = plain(opened).state_dict() | {CROSS_BIAS: torch.ones(32, 4)}  # as t5-base's
    torch.save(weights, folder / "pytorch_model.bin")
    again = open_checkpoint(str(folder))
    assert torch.equal(logits_of(again.model, started), logits_of(opened, started))
    assert again.conventions == Conventions(encoder_eos=True)


def test_an_untied_lm_head_stays_untied_from_the_embeddings(tmp_path):
    """T5 v1.1 and Flan-T5 have an untied head and do not scale its input.

    Transformers 5 reports head and embeddings as tied.
    """
    folder = save(tmp_path / "flan", gated=True)
    tensors = load_file(folder / "model.safetensors")
    tensors["lm_head.weight"] = torch.randn(tensors["shared.weight"].shape)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    settings = json.loads((folder / "config.json").read_text()) | {"tie_word_embeddings": False}
    del settings["scale_decoder_outputs"]
    (folder / "config.json").write_text(json.dumps(settings))
    network = open_checkpoint(str(folder)).model
    assert torch.equal(network.lm_head.weight, tensors["lm_head.weight"])
    assert torch.equal(network.shared.weight, tensors["shared.weight"])
    started = torch.tensor([[0, 5]] * 3)
    states = []
    handle = network.decoder.register_forward_hook(
        lambda _, __, output: states.append(output.last_hidden_state)
    )
    logits = logits_of(network, started)
    handle.remove()
    torch.testing.assert_close(logits, states[0] @ tensors["lm_head.weight"].T)
    network.save_pretrained(tmp_path / "again")
    tokenizer().save_pretrained(tmp_path / "again")
    assert torch.equal(logits_of(open_checkpoint(str(tmp_path / "again")).model, started), logits)
    torch.save(tensors, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    assert torch.equal(logits_of(open_checkpoint(str(folder)).model, started), logits)


@pytest.mark.parametrize("file", ["generation_config.json", "config.json"])
def test_a_checkpoints_generation_settings_change_no_answer(tmp_path, file):
    folder = save(tmp_path / "odd")
    expected = answers(open_checkpoint(str(folder)).model)
    settings = json.loads((folder / file).read_text()) | {
        "num_beams": 4,
        "repetition_penalty": 3.0,
        "no_repeat_ngram_size": 1,
        "min_length": 9,
        "max_new_tokens": 2,
        "length_penalty": 9.0,
        "bad_words_ids": [[expected[0].tokens[0]]],
        "suppress_tokens": [expected[1].tokens[0]],
        "forced_eos_token_id": 1,
        "do_sample": True,
        "temperature": 9.0,
    }
    if file == "config.json":
        del settings["decoder_start_token_id"]  # decoding starts with padding
        (folder / "generation_config.json").unlink()
    (folder / file).write_text(json.dumps(settings))
    opened = open_checkpoint(str(folder)).model
    assert answers(opened) == expected
    opened.save_pretrained(tmp_path / "again")
    tokenizer().save_pretrained(tmp_path / "again")
    assert answers(open_checkpoint(str(tmp_path / "again")).model) == expected


def assert_refused(name, *words, **options):
    """Assert that opening the checkpoint fails with a one-line error that contains `words`.

    Return the message.
    """
    with pytest.raises(IfqaError) as caught:
        open_checkpoint(str(name), **options)
    message = str(caught.value)
    assert [word for word in words if word not in message] == []
    assert "\n" not in message
    assert len(message) < 600
    return message


@pytest.fixture
def offline(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


def test_a_missing_unfinished_or_other_model_is_refused_with_a_remedy(tmp_path, offline):
    for name in (tmp_path / "nowhere", "nobody/has-this"):
        assert_refused(name, "--checkpoint", "ifqa train fid")
    message = assert_refused("", "allenai/unifiedqa-v2", "ifqa train unifiedqa", reader="unifiedqa")
    assert "uses this model if no checkpoint is named" in message
    assert_refused(tmp_path, "config.json", "--checkpoint", "ifqa train fid")
    small = BertConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        vocab_size=50,
    )
    BertForMaskedLM(small).save_pretrained(tmp_path / "bert")
    assert_refused(tmp_path / "bert", "wanted type t5, found bert", "--checkpoint")
    (tmp_path / "inputs.json").write_text("{}")
    assert_refused(tmp_path, "unfinished training", "ifqa train fid")


CONFIGS = ["", "{", "[]", "null", '{"model_type": "t5", "d_model": "wide"}']
MANIFESTS = [
    "{",
    "[]",
    "null",
    '{"conventions": []}',
    '{"conventions": {"colour": 1}}',
    '{"conventions": {"max_tokens": "many"}}',
    '{"conventions": {"titles": "yes"}}',
    '{"conventions": {"max_tokens": true}}',
    '{"sources": {"a": [1]}}',
    '{"family": 3}',
]


@pytest.mark.parametrize(
    ("file", "texts"), [("config.json", CONFIGS), ("manifest.json", MANIFESTS)]
)
def test_a_broken_config_or_manifest_is_refused(tmp_path, file, texts):
    save(tmp_path / "ours")
    for text in texts:
        (tmp_path / "ours" / file).write_text(text)
        assert_refused(tmp_path / "ours", file if file == "manifest.json" else str(tmp_path))


def test_missing_truncated_or_misshapen_weights_raise_a_one_line_error(tmp_path):
    folder = save(tmp_path / "ours")
    key = "decoder.final_layer_norm.weight"
    file = folder / "model.safetensors"
    tensors = load_file(file)
    content = file.read_bytes()
    file.unlink()
    assert_refused(folder, "does not load", "--checkpoint")
    file.write_bytes(content[:9999])
    assert_refused(folder, "does not load")
    save_file(
        {name: tensor for name, tensor in tensors.items() if name != key},
        file,
        metadata={"format": "pt"},
    )
    assert_refused(folder, "1 weights missing or unfit", key)
    for name, size in (("decoder.projection", 2), (key, 31)):
        save_file(tensors | {name: torch.ones(size)}, file, metadata={"format": "pt"})
        assert_refused(folder, "ours")
    file.write_bytes(content)
    config(vocabulary=81, num_layers=4).save_pretrained(folder)
    assert_refused(folder, "encoder.block")


def test_damaged_published_weights_raise_a_one_line_error(tmp_path):
    query = "decoder.block.1.layer.1.EncDecAttention.q.weight"
    save_published(tmp_path / "nq", without=(query,))
    assert_refused(tmp_path / "nq", "missing", query)
    for content in (
        [1, 2],
        torch.ones(3),
        {"a": 1},
        {3: torch.ones(2)},
        {"model": {"a": torch.ones(1)}},
        5,
    ):
        torch.save(content, tmp_path / "nq" / "pytorch_model.bin")
        assert_refused(tmp_path / "nq", str(tmp_path))
    save_published(tmp_path / "wide", **{CROSS_BIAS: torch.ones(32, 5)})
    assert_refused(tmp_path / "wide", str(tmp_path))


class Code:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


@pytest.mark.parametrize("way", ["zip", "legacy", "pickle"])
def test_a_pickle_with_code_runs_nothing(tmp_path, way):
    tensors = save_published(tmp_path / "nq")
    ran = tmp_path / "ran"
    file = tmp_path / "nq" / "pytorch_model.bin"
    content = tensors | {"shared.weight": Code(str(ran))}
    if way == "pickle":
        file.write_bytes(pickle.dumps({"shared.weight": Code(str(ran))}, protocol=2))
    else:
        torch.save(content, file, _use_new_zipfile_serialization=way == "zip")
    assert_refused(tmp_path / "nq", "does not load as a T5")
    assert not ran.exists()


def test_a_missing_broken_or_too_large_tokenizer_raises_a_one_line_error(tmp_path, offline):
    ours = save(tmp_path / "ours")
    shutil.copytree(ours, tmp_path / "words")
    for file in ("tokenizer.json", "tokenizer_config.json"):
        (ours / file).unlink()
    assert_refused(
        ours, "no tokenizer of its own", "google-t5/t5-base", "--set reader.tokenizer=DIR"
    )
    assert_refused(ours, "nowhere", tokenizer=str(tmp_path / "nowhere"))
    assert len(open_checkpoint(str(ours), tokenizer=str(tmp_path / "words")).tokenizer) == len(
        tokenizer()
    )
    for text in ("", "{", "{}", "[]", '{"model": {"type": "Unigram"}}'):
        (ours / "tokenizer.json").write_text(text)
        assert_refused(ours, "tokenizer")
    shutil.copytree(tmp_path / "words", tmp_path / "larger")
    size = len(tokenizer())
    model(vocabulary=size - 1).save_pretrained(tmp_path / "larger")
    assert_refused(
        tmp_path / "larger", f"has {size} tokens and the model {size - 1}", "reader.tokenizer"
    )
    model(vocabulary=320).save_pretrained(tmp_path / "classes")
    # For some, AutoTokenizer builds an empty vocabulary
    for name in ('"T5Tokenizer"', '"Mine"', "3"):
        (tmp_path / "classes/tokenizer_config.json").write_text(f'{{"tokenizer_class": {name}}}')
        assert_refused(tmp_path / "classes", "no tokenizer of its own")


def assert_in_fingerprint(folder, file):
    settings = Fid.Settings(checkpoint=str(folder))
    before = Fid.fingerprint(settings, Path())
    (folder / file).write_bytes((folder / file).read_bytes() + b"\n")
    assert Fid.fingerprint(settings, Path()) != before


def test_a_sentencepiece_tokenizer_is_read(tmp_path):
    """Models uploaded to the hub before tokenizer.json existed have only this."""
    model(vocabulary=320).save_pretrained(tmp_path)
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(TEXTS),
        model_prefix=str(tmp_path / "spiece"),
        vocab_size=80,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        minloglevel=2,
    )
    opened = open_checkpoint(str(tmp_path)).tokenizer
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "spiece.model"))
    for text in [*TEXTS, "Ångström & Söhne,  1895"]:
        assert opened(text).input_ids == [*pieces.encode(text), 1]
    assert_in_fingerprint(tmp_path, "spiece.model")


def test_code_beside_a_tokenizer_is_not_run(tmp_path, offline):
    model().save_pretrained(tmp_path)
    (tmp_path / "mine.py").write_text("open('ran', 'w')")
    config = {"tokenizer_class": "Mine", "auto_map": {"AutoTokenizer": ["mine.Mine", None]}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    (tmp_path / "tokenizer.json").write_text("{}")
    assert_refused(tmp_path, f"the tokenizer of {tmp_path} does not load")
