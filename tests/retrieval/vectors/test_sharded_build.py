"""Encoding gives the same vectors in the same rows with any number of processes and after interruptions."""

import json
import multiprocessing
import shutil

import numpy as np
import pytest
import torch
from refusals import refused
from safetensors.torch import load_file, save_file
from tiny_encoder import tiny
from vector_folder import all_vectors

from ifqa.records import Passage
from ifqa.retrieval.dense import Dense
from ifqa.retrieval.vectors import vector_store as module
from ifqa.retrieval.vectors.encoders import EncoderSettings, open_encoder
from ifqa.retrieval.vectors.vector_store import Shards, array_path
from ifqa.workers import tasks

THINGS = "red blue green cat dog bird sun moon tree rock fish ship gold".split()
SHARDS = [
    [Passage(f"東京/{shard}-{n} é".replace(" ", "_"), "moon", " ".join(THINGS[n : n + 1 + shard])) for n in range(size)]
    for shard, size in enumerate((9, 4, 1))
]
PIECES = 3 + 1 + 1  # of four passages


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    return tiny(tmp_path_factory.mktemp("model"))


@pytest.fixture
def passages(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PIECE", 4)
    (tmp_path / "passages").mkdir()
    for number, shard in enumerate(SHARDS):
        write(tmp_path / "passages", number, shard)
    return tmp_path / "passages"


@pytest.fixture
def encoded(monkeypatch):
    """The numbers of the encoded pieces; after `encoded.left` pieces the next piece is interrupted."""

    class Encoded(list):
        left = 10**6

    done = Encoded()

    def counted(piece, real=module.encode_piece):
        if len(done) == done.left:
            raise KeyboardInterrupt
        done.append(piece.number)
        return real(piece)

    monkeypatch.setattr(module, "encode_piece", counted)
    return done


def write(folder, number, shard):
    lines = [json.dumps({"id": one.id, "title": one.title, "contents": one.text}) + "\n" for one in shard]
    (folder / f"passages-{number:05d}.jsonl").write_text("".join(lines), encoding="utf-8")


def settings(model, **more):
    return {"model": model, "precision": "float32", "device": "cpu"} | more


def encode(passages, folder, settings, **more):
    Dense.build(passages, folder, **settings, **more)
    return json.loads((folder / "dense.json").read_text())


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_rows_and_ids_are_those_of_the_passages(tmp_path, passages, model, encoded):
    facts = encode(passages, tmp_path / "out", settings(model))
    every = [one for shard in SHARDS for one in shard]
    assert facts["passages"] == len(every)
    assert facts["model"] == model
    assert len(facts["weights"]) == 64
    assert encoded == list(range(PIECES))
    assert Shards(tmp_path / "out").ids(range(len(every))) == [one.id for one in every]
    expected = open_encoder(EncoderSettings(**settings(model))).encode_passages(every)
    np.testing.assert_allclose(all_vectors(tmp_path / "out"), expected, atol=1e-3)


def test_after_a_kill_only_the_rest_is_encoded_to_the_same_bytes(tmp_path, passages, model, encoded, capsys):
    encode(passages, tmp_path / "whole", settings(model))
    encoded.clear()
    encoded.left = 2
    with pytest.raises(KeyboardInterrupt):
        encode(passages, tmp_path / "out", settings(model))
    encoded.left = 10**6
    encode(passages, tmp_path / "out", settings(model))
    assert encoded == list(range(PIECES))
    assert "8 passages had been encoded by an earlier build" in capsys.readouterr().err
    assert files(tmp_path / "out") == files(tmp_path / "whole")


def test_only_changed_passages_are_encoded_again(tmp_path, passages, model, encoded):
    encode(passages, tmp_path / "out", settings(model))
    encoded.clear()
    write(passages, 1, [*SHARDS[1][:3], Passage("new", "", "ship")])
    (passages / "passages-00002.jsonl").unlink()
    assert encode(passages, tmp_path / "out", settings(model))["passages"] == 13
    assert encoded == [3]
    assert not array_path(tmp_path / "out", "vectors", 4).exists()
    assert Shards(tmp_path / "out").ids([12]) == ["new"]


def test_changed_passage_settings_or_weights_encode_everything_again(tmp_path, passages, model, encoded):
    other = str(shutil.copytree(model, tmp_path / "model"))
    for change in ({}, {"titles": "yes"}, {"passage_prefix": "other: "}, {"max_tokens": 5}, {"precision": "bfloat16"}):
        encode(passages, tmp_path / "out", settings(other, **change))
        assert len(encoded) == PIECES
        encoded.clear()
    encode(
        passages, tmp_path / "out", settings(other, **change, query_prefix="other: ")
    )  # which changes questions alone
    assert encoded == []
    weights = load_file(f"{other}/model.safetensors")
    torch.manual_seed(1)
    weights = {name: torch.randn_like(one) for name, one in weights.items()}
    save_file(weights, f"{other}/model.safetensors", {"format": "pt"})
    encode(passages, tmp_path / "out", settings(other))
    assert len(encoded) == PIECES
    expected = open_encoder(EncoderSettings(**settings(other))).encode_passages(SHARDS[0][:1])
    np.testing.assert_allclose(all_vectors(tmp_path / "out")[:1], expected, atol=1e-3)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_two_processes_make_the_same_bytes(tmp_path, passages, model, monkeypatch):
    """The processes are forks, so that nothing is imported again."""
    torch.set_num_threads(1)  # of several threads a fork has one
    monkeypatch.setattr(tasks.multiprocessing, "get_context", lambda _, real=multiprocessing.get_context: real("fork"))
    encode(passages, tmp_path / "one", settings(model))
    encode(passages, tmp_path / "two", settings(model), workers=2)
    assert files(tmp_path / "two") == files(tmp_path / "one")


def test_blank_lines_are_no_passages_and_a_bad_line_is_named(tmp_path, passages, model):
    encode(passages, tmp_path / "out", settings(model))
    expected = all_vectors(tmp_path / "out")
    path = passages / "passages-00001.jsonl"
    path.write_bytes(path.read_bytes() + b"\n \n")  # an empty piece of its own
    assert encode(passages, tmp_path / "out", settings(model))["passages"] == 14
    np.testing.assert_array_equal(all_vectors(tmp_path / "out"), expected)
    path.write_bytes(path.read_bytes() + b'{"id": "x", "title": "", "contents": \n')
    with refused(r"passages-00001\.jsonl:7: not JSON"):
        encode(passages, tmp_path / "out", settings(model))
    (tmp_path / "empty").mkdir()
    for folder, said in (
        ("nowhere", "passages folder not found"),
        ("empty", r"no passages in .*wanted passages-\*\.jsonl"),
    ):
        with refused(said):
            encode(tmp_path / folder, tmp_path / "out", settings(model))
    cost = Dense.forecast(1000, **settings(model))
    assert (cost.seconds > 0, cost.disk, cost.memory > 1e6) == (True, 1000 * (2 * 32 + 16), True)
    assert Dense.forecast(1000, **settings(model), factory="SQ8").disk > 1000 * 32
