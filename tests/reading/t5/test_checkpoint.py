"""Opening checkpoints of T5: which formats are supported, and the one-line error for every other file."""

import json
import pickle
import shutil

import pytest
import sentencepiece
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from tiny_t5 import TEXTS, config, flat, model, plain, save, tokenizer
from transformers import BertConfig, BertForMaskedLM, ByT5Tokenizer

from ifqa.errors import IfqaError
from ifqa.reading.t5.checkpoint import Conventions, checkpoint_folder, open_checkpoint, tokenizer_folder
from ifqa.reading.t5.generation import Budget, read
from ifqa.reading.t5.readers import Fid
from ifqa.records import Passage, Question

CROSS_BIAS = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
QUESTIONS = [
    [list(range(5, 35)), list(range(40, 52)), [7, 8, 9]],
    [list(range(60, 75))],
    [list(range(20, 32)), list(range(5, 45))],
]


def pickled(folder, zipped=True):
    """A T5 whose weights are in `pytorch_model.bin`, with one that transformers ignores, as t5-base's."""
    tensors = plain(open_checkpoint(str(save(folder))).model).state_dict() | {CROSS_BIAS: torch.ones(32, 4)}
    (folder / "model.safetensors").unlink()
    torch.save(tensors, folder / "pytorch_model.bin", _use_new_zipfile_serialization=zipped)
    return tensors


def logits_of(network, started):
    ids, mask = flat(QUESTIONS)
    counts = torch.tensor([len(question) for question in QUESTIONS])
    with torch.no_grad():
        return network(passage_ids=ids, passage_mask=mask, counts=counts, decoder_input_ids=started).logits


def answers(network, tokens=10):
    features = dict(zip(("input_ids", "attention_mask"), flat(QUESTIONS), strict=True))
    counts = [len(question) for question in QUESTIONS]
    return read(network, features, counts, max_answer_tokens=tokens, room=Budget(64, 128))


def test_the_manifest_gives_family_sources_and_conventions(tmp_path):
    save(tmp_path / "ours")
    manifest = {"family": "ifqa/full", "sources": {"a": "12", "b": "34"}}
    manifest["conventions"] = {"max_tokens": 99, "titles": False}
    (tmp_path / "ours" / "manifest.json").write_text(json.dumps(manifest))
    opened = open_checkpoint(str(tmp_path / "ours"))
    assert opened.manifest.family == "ifqa/full"
    assert opened.manifest.sources == {"a": "12", "b": "34"}
    assert opened.conventions == Conventions(max_tokens=99, titles=False, encoder_eos=True)
    assert not opened.model.training
    assert opened.model.dtype == torch.float32


def test_an_untied_lm_head_stays_untied_from_the_embeddings(tmp_path):
    """T5 v1.1 and Flan-T5 have an untied head and do not scale its input; transformers 5 reports head and embeddings as tied."""
    folder = save(tmp_path / "flan", gated=True)
    tensors = load_file(folder / "model.safetensors")
    tensors["lm_head.weight"] = torch.randn(tensors["shared.weight"].shape)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    settings_ = json.loads((folder / "config.json").read_text()) | {"tie_word_embeddings": False}
    del settings_["scale_decoder_outputs"]
    (folder / "config.json").write_text(json.dumps(settings_))
    network = open_checkpoint(str(folder)).model
    assert torch.equal(network.lm_head.weight, tensors["lm_head.weight"])
    assert torch.equal(network.shared.weight, tensors["shared.weight"])
    started = torch.tensor([[0, 5]] * 3)
    tops = []
    handle = network.decoder.register_forward_hook(lambda _, __, made: tops.append(made.last_hidden_state))
    logits = logits_of(network, started)
    handle.remove()
    torch.testing.assert_close(logits, tops[0] @ tensors["lm_head.weight"].T)
    network.save_pretrained(tmp_path / "again")
    tokenizer().save_pretrained(tmp_path / "again")
    assert torch.equal(logits_of(open_checkpoint(str(tmp_path / "again")).model, started), logits)


@pytest.mark.parametrize("file", ["generation_config.json", "config.json"])
def test_what_a_checkpoint_says_of_generation_changes_no_answer(tmp_path, file):
    folder = save(tmp_path / "odd")
    expected = answers(open_checkpoint(str(folder)).model)
    said = json.loads((folder / file).read_text()) | {
        "num_beams": 4, "repetition_penalty": 3.0, "no_repeat_ngram_size": 1, "min_length": 9, "max_new_tokens": 2,
        "length_penalty": 9.0, "bad_words_ids": [[expected[0].tokens[0]]], "suppress_tokens": [expected[1].tokens[0]],
        "forced_eos_token_id": 1, "do_sample": True, "temperature": 9.0,
    }  # fmt: skip
    (folder / file).write_text(json.dumps(said))
    opened = open_checkpoint(str(folder)).model
    assert answers(opened) == expected
    opened.save_pretrained(tmp_path / "again")
    tokenizer().save_pretrained(tmp_path / "again")
    assert answers(open_checkpoint(str(tmp_path / "again")).model) == expected


def test_without_a_decoder_start_token_decoding_starts_with_padding(tmp_path):
    folder = save(tmp_path / "old")
    expected = answers(open_checkpoint(str(folder)).model)
    said = json.loads((folder / "config.json").read_text())
    del said["decoder_start_token_id"]
    (folder / "config.json").write_text(json.dumps(said))
    (folder / "generation_config.json").unlink()
    assert answers(open_checkpoint(str(folder)).model) == expected


def test_a_plain_t5_of_pickled_weights_opens(tmp_path):
    pickled(tmp_path / "t5")
    started = torch.tensor([[0, 5]] * 3)
    again = open_checkpoint(str(tmp_path / "t5")).model
    assert torch.equal(
        logits_of(again, started), logits_of(open_checkpoint(str(save(tmp_path / "plain"))).model, started)
    )


def refused(name, *words, **how):
    """Assert that opening the checkpoint fails with a one-line error that contains `words`; return the message."""
    with pytest.raises(IfqaError) as error:
        open_checkpoint(str(name), **how)
    line = str(error.value)
    assert "\n" not in line
    assert len(line) < 600
    for word in words:
        assert word in line
    return line


def test_a_missing_folder_raises_a_one_line_error_that_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for name in (tmp_path / "nowhere", "no/such/folder", "nobody/has-this", ""):
        line = refused(name, "--checkpoint", "ifqa train fid")
        assert ("uses this model if no checkpoint is named" in line) == (name == "")
    refused("", "google/flan-t5-base")


def test_an_empty_folder_or_another_architecture_raises_a_one_line_error(tmp_path):
    refused(tmp_path, "config.json", "--checkpoint", "ifqa train fid")
    small = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, vocab_size=50)
    BertForMaskedLM(small).save_pretrained(tmp_path / "bert")
    refused(tmp_path / "bert", "wanted a model of type t5, found bert", "--checkpoint")


def test_an_unfinished_training_raises_a_one_line_error(tmp_path):
    (tmp_path / "inputs.json").write_text("{}")
    refused(tmp_path, "not finished", "ifqa train fid")


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '"t5"', "null", '{"model_type": "t5", "d_model": "wide"}'])
def test_a_broken_config_raises_a_one_line_error(tmp_path, text):
    save(tmp_path / "ours")
    (tmp_path / "ours" / "config.json").write_text(text)
    refused(tmp_path / "ours", str(tmp_path))


@pytest.mark.parametrize(
    "text",
    [
        "{", "[]", "7", "null", '{"conventions": []}', '{"conventions": 3}', '{"conventions": {"colour": 1}}',
        '{"conventions": {"max_tokens": "many"}}', '{"conventions": {"titles": "yes"}}',
        '{"conventions": {"max_tokens": true}}', '{"sources": []}', '{"sources": {"a": [1]}}', '{"family": 3}',
    ],
)  # fmt: skip
def test_a_broken_manifest_raises_a_one_line_error(tmp_path, text):
    save(tmp_path / "ours")
    (tmp_path / "ours" / "manifest.json").write_text(text)
    refused(tmp_path / "ours", "manifest.json")


def changed(folder, change):
    tensors = load_file(folder / "model.safetensors")
    save_file(change(tensors), folder / "model.safetensors", metadata={"format": "pt"})


def test_missing_truncated_or_misshapen_weights_raise_a_one_line_error(tmp_path):
    whole = save(tmp_path / "whole")
    for name in ("gone", "cut", "fewer", "more", "shape", "layers"):
        shutil.copytree(whole, tmp_path / name)
    (tmp_path / "gone" / "model.safetensors").unlink()
    refused(tmp_path / "gone", "does not load", "--checkpoint")
    file = tmp_path / "cut" / "model.safetensors"
    file.write_bytes(file.read_bytes()[:9999])
    refused(tmp_path / "cut", "does not load")
    key = "decoder.final_layer_norm.weight"
    changed(tmp_path / "fewer", lambda tensors: {name: one for name, one in tensors.items() if name != key})
    refused(tmp_path / "fewer", "1 weights are missing or do not fit", key)
    changed(tmp_path / "more", lambda tensors: tensors | {"decoder.projection": torch.ones(2)})
    refused(tmp_path / "more", "decoder.projection")
    changed(tmp_path / "shape", lambda tensors: tensors | {key: torch.ones(31)})
    refused(tmp_path / "shape", str(tmp_path / "shape"))
    config(vocabulary=81, num_layers=4).save_pretrained(tmp_path / "layers")
    refused(tmp_path / "layers", "encoder.block")


@settings(max_examples=15)
@given(st.booleans(), st.integers(0, 99), st.binary(max_size=40))
def test_a_truncated_or_corrupt_pickle_raises_a_one_line_error(tmp_path_factory, zipped, share, behind):
    folder = tmp_path_factory.mktemp("cut") / "nq"
    pickled(folder, zipped)
    file = folder / "pytorch_model.bin"
    file.write_bytes(file.read_bytes()[: file.stat().st_size * share // 100] + behind)
    refused(folder, "does not load as a T5")


@pytest.mark.parametrize(
    "content", [[1, 2], torch.ones(3), {"a": 1}, {3: torch.ones(2)}, {"model": {"a": torch.ones(1)}}, 5]
)
def test_a_pickle_without_model_weights_raises_a_one_line_error(tmp_path, content):
    pickled(tmp_path / "nq")
    torch.save(content, tmp_path / "nq" / "pytorch_model.bin")
    refused(tmp_path / "nq", str(tmp_path))


class Code:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


@pytest.mark.parametrize("way", ["zip", "legacy", "pickle"])
def test_a_pickle_with_code_raises_a_one_line_error_and_runs_nothing(tmp_path, way):
    tensors = pickled(tmp_path / "nq")
    ran, file = tmp_path / "ran", tmp_path / "nq" / "pytorch_model.bin"
    content = tensors | {"shared.weight": Code(str(ran))}
    if way == "pickle":
        file.write_bytes(pickle.dumps({"shared.weight": Code(str(ran))}, protocol=2))
    else:
        torch.save(content, file, _use_new_zipfile_serialization=way == "zip")
    refused(tmp_path / "nq", "does not load as a T5")
    assert not ran.exists()


def test_a_missing_broken_or_too_large_tokenizer_raises_a_one_line_error(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    ours = save(tmp_path / "ours")
    shutil.copytree(ours, tmp_path / "words")
    for file in ("tokenizer.json", "tokenizer_config.json"):
        (ours / file).unlink()
    refused(ours, "no tokenizer of its own", "google-t5/t5-base", "--set reader.tokenizer=DIR")
    refused(ours, "nowhere", tokenizer=str(tmp_path / "nowhere"))
    assert len(open_checkpoint(str(ours), tokenizer=str(tmp_path / "words")).tokenizer) == len(tokenizer())
    for text in ("", "{", "{}", "[]", '{"model": {"type": "Unigram"}}'):
        (ours / "tokenizer.json").write_text(text)
        refused(ours, "tokenizer")
    shutil.copytree(tmp_path / "words", tmp_path / "larger")
    network = model(vocabulary=len(tokenizer()) - 1)
    network.save_pretrained(tmp_path / "larger")
    refused(
        tmp_path / "larger", f"has {len(tokenizer())} tokens and the model {len(tokenizer()) - 1}", "reader.tokenizer"
    )


def pieces(folder):
    """A T5 with only a SentencePiece file as its tokenizer, like models uploaded to the hub before tokenizer.json existed."""
    model(vocabulary=320).save_pretrained(folder)
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(TEXTS), model_prefix=str(folder / "spiece"), vocab_size=80, pad_id=0, eos_id=1, unk_id=2,
        bos_id=-1, minloglevel=2,
    )  # fmt: skip
    (folder / "spiece.vocab").unlink()
    return folder


def byte_wise(folder):
    """A byte-level T5 like ByT5: its tokenizer has no vocabulary file, only a class name in tokenizer_config.json."""
    words = ByT5Tokenizer(extra_ids=0)
    model(vocabulary=len(words)).save_pretrained(folder)
    words.save_pretrained(folder)
    return folder


def test_a_sentencepiece_model_reads_as_sentencepiece_does(tmp_path):
    folder = pieces(tmp_path / "pieces")
    words = open_checkpoint(str(folder)).tokenizer
    alone = sentencepiece.SentencePieceProcessor(model_file=str(folder / "spiece.model"))
    for text in [*TEXTS, "Ångström & Söhne,  1895"]:
        assert words(text).input_ids == [*alone.encode(text), 1]


def test_bytes_are_read_without_a_vocabulary(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    folder = byte_wise(tmp_path / "bytes")
    assert tokenizer_folder(folder, "") == folder
    assert open_checkpoint(str(folder)).tokenizer("née").input_ids == [*(byte + 3 for byte in "née".encode()), 1]
    reader = Fid(str(folder), device="cpu", max_answer_tokens=4)
    [said] = reader.answer([Question("q", "If so, who?")], [[Passage("p", "T", "Anna Berg.")]])
    assert (said.question_id, said.error) == ("q", "")


@pytest.mark.parametrize("table", ['{"tokenizer_class": "T5Tokenizer"}', '{"tokenizer_class": "Mine"}', '{"tokenizer_class": 3}', "{}", "[]"])  # fmt: skip
def test_a_tokenizer_class_without_the_vocabulary_it_needs_is_refused(tmp_path, monkeypatch, table):
    """For some of these configs, AutoTokenizer builds a tokenizer with an empty vocabulary."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    model(vocabulary=320).save_pretrained(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(table)
    refused(tmp_path, "no tokenizer of its own")


def test_code_beside_a_tokenizer_is_not_run_and_not_asked_about(tmp_path):
    folder = byte_wise(tmp_path / "bytes")
    (folder / "mine.py").write_text("open('ran', 'w')")
    table = {"tokenizer_class": "Mine", "auto_map": {"AutoTokenizer": ["mine.Mine", None]}}
    (folder / "tokenizer_config.json").write_text(json.dumps(table))
    (folder / "tokenizer.json").write_text("{}")
    refused(folder, f"the tokenizer of {folder} does not load")


@pytest.mark.parametrize(("made", "file"), [(pieces, "spiece.model"), (byte_wise, "tokenizer_config.json")])
def test_the_files_of_a_tokenizer_are_in_the_identity_of_a_checkpoint(tmp_path, made, file):
    folder = made(tmp_path / "t5")
    before = Fid.fingerprint(str(folder))
    (folder / file).write_bytes((folder / file).read_bytes() + b"\n")
    assert Fid.fingerprint(str(folder)) != before


def test_a_folder_is_found_without_loading_it(tmp_path):
    assert checkpoint_folder(str(save(tmp_path / "ours"))) == tmp_path / "ours"
