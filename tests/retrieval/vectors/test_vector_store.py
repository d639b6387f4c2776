"""Arrays of passages on disk: equal with any number of processes and after a kill.

Damage is refused.
"""

import json
import multiprocessing
import shutil
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as configure
from hypothesis import strategies as st
from refusals import refused
from safetensors.torch import load_file, save_file
from tiny_encoder import WORDS, tiny
from vector_folder import all_vectors, folder_of

from ifqa.records import Passage
from ifqa.retrieval.dense import Dense
from ifqa.retrieval.vectors import vector_store as module
from ifqa.retrieval.vectors.encoders import EncoderSettings, open_encoder
from ifqa.retrieval.vectors.vector_store import Shards, ShardWriter, array_path, to_float16
from ifqa.storage.files import write_jsonl
from ifqa.workers import pool


def rows_of(count, first=0):
    """Vectors [first, 1], [first + 1, 1], ...; half precision holds whole numbers up to 2048."""
    return np.stack([np.arange(first, first + count), np.ones(count)], 1).astype(np.float16)


def shards(*sizes):
    return [
        rows_of(size, first)
        for size, first in zip(sizes, np.cumsum([0, *sizes]).tolist(), strict=False)
    ]


@configure(max_examples=20)
@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=6), seed=st.integers(0, 99))
def test_row_numbers_run_through_all_shards(tmp_path_factory, sizes, seed):
    folder = tmp_path_factory.mktemp("v")
    vectors = folder_of(folder, *shards(*sizes))
    assert (len(vectors), vectors.dimension()) == (sum(sizes), 2)
    rows = np.random.default_rng(seed).integers(0, sum(sizes), seed % 12).tolist()
    np.testing.assert_array_equal(all_vectors(folder)[:, 0], range(sum(sizes)))
    names = [f"{shard}-{row}" for shard, size in enumerate(sizes) for row in range(size)]
    assert vectors.ids(rows) == [names[row] for row in rows]
    firsts = [(first, shard[0, 0], len(shard)) for first, shard in vectors.vectors()]
    assert firsts == [(first, first, last - first) for first, last in vectors.bounds()]


# 70,000 is too large for half precision
@pytest.mark.parametrize("wrong", [np.nan, np.inf, 70_000.0])
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_a_vector_not_finite_in_half_precision_is_refused_by_id(wrong):
    vectors = rows_of(3).astype(np.float32)
    vectors[1, 0] = wrong
    with refused(r"the vector of passage b holds NaN or infinity \(one of 1\)"):
        to_float16(vectors, ["a", "b", "c"])


def test_only_a_whole_shard_of_the_same_key_is_reused(tmp_path):
    writer = ShardWriter(tmp_path)
    ids = ["東京-0", "wiki/Łódź#3 \ud800😀"]
    for number in range(5):
        writer.add(number, f"key{number}", ids, {"vectors": rows_of(2)})
    array_path(tmp_path, "vectors", 1).unlink()
    array_path(tmp_path, "ids", 2).write_bytes(b"cut")
    content = array_path(tmp_path, "vectors", 4).read_bytes()
    array_path(tmp_path, "vectors", 4).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with open(tmp_path / module.SHARDS_FILE, "ab") as handle:
        handle.write(b'{"foo": 1}\n{"shard": [0], "key": "key0"}\n{"shard": 5, "key": "half a li')
    writer = ShardWriter(tmp_path)
    assert [writer.count_finished(number, f"key{number}") for number in range(6)] == [
        2,
        None,
        None,
        2,
        None,
        None,
    ]
    assert writer.count_finished(0, "another key") is None
    writer.add(1, "key1", ids[::-1], {"vectors": rows_of(2, 2)})
    assert writer.finish({0: "key0", 1: "key1"}) == 4
    assert Shards(tmp_path).ids(range(4)) == [*ids, *ids[::-1]]
    (tmp_path / module.SHARDS_FILE).write_text("[]\n")
    assert ShardWriter(tmp_path).count_finished(0, "key0") is None


def test_a_kill_before_the_log_line_leaves_no_shard_under_its_old_key(tmp_path, monkeypatch):
    ShardWriter(tmp_path).add(0, "old", ["a", "b"], {"vectors": rows_of(2)})
    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
        patch.setattr(module, "write_bytes", lambda *_: 1 / 0)
        ShardWriter(tmp_path).add(0, "new", ["c", "d"], {"vectors": rows_of(2, 5)})
    if ShardWriter(tmp_path).count_finished(0, "old"):
        np.testing.assert_array_equal(np.load(array_path(tmp_path, "vectors", 0)), rows_of(2))


GOOD = rows_of(2, 2)
DAMAGED = [
    (np.hstack([GOOD, GOOD]), r"wanted float16 \(2, 2\), found float16 \(2, 4\)"),
    (GOOD[0], r"found float16 \(2,\)"),
    (GOOD[:1], r"found float16 \(1, 2\)"),
    (GOOD.astype(float), "found float64"),
    (np.array([{"a": 1}]), "is damaged"),
]


def test_damaged_vectors_are_refused(tmp_path):
    folder_of(tmp_path, *shards(2, 2))
    path = array_path(tmp_path, "vectors", 1)
    for content, message in ((path.read_bytes()[:-3], "is damaged"), (b"", "is damaged"), *DAMAGED):
        path.write_bytes(content) if isinstance(content, bytes) else np.save(path, content)
        with refused(message):
            Shards(tmp_path).dimension()


def test_missing_vectors_are_refused(tmp_path):
    folder_of(tmp_path, *shards(2, 2))
    array_path(tmp_path, "vectors", 1).unlink()
    with refused("vectors-00001.npy"):
        Shards(tmp_path).dimension()


def test_a_damaged_list_of_shards_is_refused(tmp_path):
    for line in ("{}", '{"shard": "0", "key": "k", "passages": 1, "sha256": []}'):
        (tmp_path / module.SHARDS_FILE).write_text(line + "\n")
        with refused(r"vectors\.jsonl:1: not as ifqa writes it \(.*\); build the index again"):
            Shards(tmp_path)


def test_a_missing_list_of_shards_is_refused(tmp_path):
    with refused("list of vector shards not found"):
        Shards(tmp_path)


def test_an_empty_list_of_shards_is_refused(tmp_path):
    (tmp_path / module.SHARDS_FILE).write_text("")
    with refused("holds no vectors; build the index again"):
        Shards(tmp_path)


def test_damaged_ids_are_refused(tmp_path):
    folder_of(tmp_path, *shards(2))
    array_path(tmp_path, "ids", 0).write_bytes(b"cut")
    with refused(r"ids-00000\.npy is damaged"):
        Shards(tmp_path).ids([0])


SHARDS = [
    [
        Passage(f"東京/{shard}-{n}_é", "moon", " ".join(WORDS[n : n + 1 + shard]))
        for n in range(size)
    ]
    for shard, size in enumerate((9, 4, 1))
]
TASKS = 3 + 1 + 1  # of up to four passages


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    return tiny(tmp_path_factory.mktemp("model"))


@pytest.fixture
def passages(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SHARD_PASSAGES", 4)
    (tmp_path / "passages").mkdir()
    for number, shard in enumerate(SHARDS):
        write(tmp_path / "passages", number, shard)
    return tmp_path / "passages"


@pytest.fixture
def encoded(monkeypatch):
    """The numbers of the encoded tasks; after `encoded.limit` tasks the next is interrupted."""

    class Encoded(list):
        limit = 10**6

    encoded = Encoded()

    def encode_task(task, real=module.encode_task):
        if len(encoded) == encoded.limit:
            raise KeyboardInterrupt
        encoded.append(task.number)
        return real(task)

    monkeypatch.setattr(module, "encode_task", encode_task)
    return encoded


def write(folder, number, shard):
    records = [
        {"id": passage.id, "title": passage.title, "contents": passage.text} for passage in shard
    ]
    write_jsonl(folder / f"passages-{number:05d}.jsonl", records)


CPU: dict[str, Any] = {"precision": "float32", "device": "cpu"}


def encode(passages, folder, model, **settings):
    Dense.build(passages, folder, Dense.BuildSettings(model=model, **CPU | settings))
    return json.loads((folder / "dense.json").read_text())


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_each_task_is_encoded_once(tmp_path, passages, model, encoded):
    facts = encode(passages, tmp_path / "out", model)
    assert facts["passages"] == 14
    assert facts["model"] == model
    assert len(facts["weights"]) == 64
    assert encoded == list(range(TASKS))


def test_rows_are_those_of_the_passages(tmp_path, passages, model):
    encode(passages, tmp_path / "out", model)
    expected = [passage for shard in SHARDS for passage in shard]
    assert Shards(tmp_path / "out").ids(range(14)) == [passage.id for passage in expected]
    vectors = open_encoder(EncoderSettings(model, **CPU)).encode_passages(expected)
    np.testing.assert_allclose(all_vectors(tmp_path / "out"), vectors, atol=1e-3)


def test_after_a_kill_only_the_rest_is_encoded_to_the_same_bytes(
    tmp_path, passages, model, encoded, capsys
):
    encode(passages, tmp_path / "whole", model)
    encoded.clear()
    encoded.limit = 2
    with pytest.raises(KeyboardInterrupt):
        encode(passages, tmp_path / "out", model)
    encoded.limit = 10**6
    encode(passages, tmp_path / "out", model)
    assert encoded == list(range(TASKS))
    assert "8 passages reused from an earlier build" in capsys.readouterr().err
    assert files(tmp_path / "out") == files(tmp_path / "whole")


def test_only_changed_passages_are_encoded_again(tmp_path, passages, model, encoded):
    encode(passages, tmp_path / "out", model)
    encoded.clear()
    write(passages, 1, [*SHARDS[1][:3], Passage("new", "", "ship")])
    (passages / "passages-00002.jsonl").unlink()
    assert encode(passages, tmp_path / "out", model)["passages"] == 13
    assert encoded == [3]
    assert not array_path(tmp_path / "out", "vectors", 4).exists()
    assert Shards(tmp_path / "out").ids([12]) == ["new"]


def test_changed_passage_settings_or_weights_encode_everything_again(
    tmp_path, passages, model, encoded
):
    other = str(shutil.copytree(model, tmp_path / "model"))
    for change in (
        {},
        {"titles": "yes"},
        {"passage_prefix": "other: "},
        {"max_tokens": 5},
        {"precision": "bfloat16"},
    ):
        encode(passages, tmp_path / "out", other, **change)
        assert len(encoded) == TASKS
        encoded.clear()
    # Does not change passages
    encode(passages, tmp_path / "out", other, **change, query_prefix="other: ")
    assert encoded == []
    torch.manual_seed(1)
    path = f"{other}/model.safetensors"
    save_file(
        {name: torch.randn_like(weight) for name, weight in load_file(path).items()},
        path,
        {"format": "pt"},
    )
    encode(passages, tmp_path / "out", other)
    assert len(encoded) == TASKS
    expected = open_encoder(EncoderSettings(other, **CPU)).encode_passages(SHARDS[0][:1])
    np.testing.assert_allclose(all_vectors(tmp_path / "out")[:1], expected, atol=1e-3)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_two_processes_write_the_same_bytes(tmp_path, passages, model, monkeypatch):
    """The processes are forks, so that nothing is imported again."""
    torch.set_num_threads(1)  # a fork has only one of several threads
    monkeypatch.setattr(
        pool.multiprocessing,
        "get_context",
        lambda _, real=multiprocessing.get_context: real("fork"),
    )
    for workers in (1, 2):
        encode(passages, tmp_path / f"{workers}", model, workers=workers)
    assert files(tmp_path / "2") == files(tmp_path / "1")


def test_blank_lines_are_skipped(tmp_path, passages, model):
    encode(passages, tmp_path / "out", model)
    expected = all_vectors(tmp_path / "out")
    path = passages / "passages-00001.jsonl"
    path.write_bytes(path.read_bytes() + b"\n \n")  # after a complete task
    assert encode(passages, tmp_path / "out", model)["passages"] == 14
    np.testing.assert_array_equal(all_vectors(tmp_path / "out"), expected)


def test_a_bad_line_is_named(tmp_path, passages, model):
    encode(passages, tmp_path / "out", model)
    path = passages / "passages-00001.jsonl"
    path.write_bytes(path.read_bytes() + b"\n \n")
    path.write_bytes(path.read_bytes() + b'{"id": "x", "title": "", "contents": \n')
    with refused(r"passages-00001\.jsonl:7: not JSON"):
        encode(passages, tmp_path / "out", model)


def test_a_folder_without_passages_is_refused(tmp_path, model):
    (tmp_path / "empty").mkdir()
    for name, message in (
        ("nowhere", "passages folder not found"),
        ("empty", r"no passages in .*wanted passages-\*"),
    ):
        with refused(message):
            encode(tmp_path / name, tmp_path / "out", model)


def test_the_forecast_counts_the_vectors(model):
    cost = Dense.forecast(1000, Dense.BuildSettings(model=model, **CPU))
    assert cost.seconds > 0
    assert cost.disk == 1000 * (2 * 32 + 16)
    assert cost.memory > 1e6


def test_the_forecast_counts_the_index(model):
    settings = Dense.BuildSettings(model=model, **CPU, factory="SQ8")
    assert Dense.forecast(1000, settings).disk > 1000 * 32
