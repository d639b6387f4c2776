"""Milvus, as a file and behind a server of its own: what is found, resumed builds, changed corpora,
and refusals.
"""

import signal
import subprocess
import sys
import threading
import time
from concurrent import futures
from typing import Any

import grpc
import pytest
from milvus_server import milvus_server
from refusals import refused
from sentence_transformers import SparseEncoder
from tiny_encoder import WORDS, tiny, tiny_dpr, tiny_splade
from vector_folder import write_passages

from ifqa.records import Question
from ifqa.retrieval import milvus
from ifqa.retrieval.dense import Dense
from ifqa.retrieval.fusion import fuse_by_rank
from ifqa.retrieval.milvus import Milvus
from ifqa.settings import parse_settings

pytestmark = pytest.mark.slow

TEXTS = [
    f"{WORDS[n % 16]} {WORDS[n * 7 % 16]} {WORDS[n * n % 16]}" + " moon" * (n % 5)
    for n in range(60)
]
QUESTIONS = [
    Question(f"q/{n}", text)
    for n, text in enumerate(["red moon", "cat fish dog", TEXTS[17], "wolf \udc80"])
]
CPU: dict[str, Any] = {"precision": "float32", "device": "cpu"}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return {"model": tiny(folder / "dense"), "sparse_model": tiny_splade(folder / "sparse")}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with milvus_server(tmp_path_factory.mktemp("milvus")) as (address, _):
        yield address


def build(tmp_path, texts=TEXTS, name="index", **settings):
    passages = tmp_path / f"passages of {name} {len(list(tmp_path.iterdir()))}"
    write_passages(passages, texts)
    (tmp_path / name).mkdir(exist_ok=True)
    Milvus.build(passages, tmp_path / name, Milvus.BuildSettings(**CPU, **settings))
    return tmp_path / name


def open_index(index, **settings):
    return Milvus(Milvus.Settings(**settings), index=index)


def stop(*_, **__):
    raise KeyboardInterrupt


def ids(rankings):
    return [[hit.passage_id for hit in ranking] for ranking in rankings]


@pytest.fixture(scope="module")
def built(models, tmp_path_factory):
    return build(tmp_path_factory.mktemp("built"), **models)


@pytest.fixture(scope="module")
def alone(built):
    """What each field finds."""
    fields = ("dense", "sparse")
    return {field: open_index(built, fields=[field]).search(QUESTIONS, 60) for field in fields}


def test_the_dense_field_finds_what_its_own_index_finds(models, built, alone, tmp_path):
    passages = next(built.parent.glob("passages*"))
    settings = Dense.BuildSettings(model=models["model"], **CPU)
    Dense.build(passages, tmp_path / "dense", settings)
    dense = Dense(Dense.Settings(), index=tmp_path / "dense")
    for ranking, expected in zip(alone["dense"], dense.search(QUESTIONS, 60), strict=True):
        assert [hit.score for hit in ranking] == pytest.approx(
            [hit.score for hit in expected], rel=2e-3
        )


def test_the_sparse_field_finds_what_its_model_finds(models, alone):
    reference = SparseEncoder(models["sparse_model"], device="cpu")
    texts = [question.text.encode("utf-8", "replace").decode() for question in QUESTIONS]
    scores = reference.similarity(
        reference.encode_query(texts), reference.encode_document(TEXTS)
    ).numpy()
    for ranking, expected in zip(alone["sparse"], scores, strict=True):
        assert [hit.score for hit in ranking] == pytest.approx(
            sorted(expected[expected > 0], reverse=True), rel=1e-4
        )
        assert [expected[int(hit.passage_id[1:])] for hit in ranking] == pytest.approx(
            [hit.score for hit in ranking], rel=1e-4
        )


def test_fields_are_fused_by_rank(built, alone):
    fused = open_index(built, fields=["dense", "sparse"]).search(QUESTIONS, 10)
    for number, ranking in enumerate(fused):
        scores = fuse_by_rank([alone["dense"][number][:10], alone["sparse"][number][:10]], [1, 1])
        assert [hit.score for hit in ranking] == pytest.approx(
            sorted(scores.values(), reverse=True)[:10], abs=1e-6
        )


def test_an_index_is_known_by_the_files_of_all_its_encoders(models, tmp_path):
    context = tiny_dpr(tmp_path)
    cases: list[dict[str, Any]] = [{}, models, models | {"model": context}]
    fingerprints = [
        Milvus.build_fingerprint(Milvus.BuildSettings(**settings)) for settings in cases
    ]
    assert fingerprints[0] == ""
    assert len(set(fingerprints)) == 3
    fingerprints.append(Milvus.build_fingerprint(Milvus.BuildSettings(model=context)))
    assert len(set(fingerprints)) == 4


def test_bm25_ranks_passages_with_more_of_the_words_first(tmp_path):
    index = open_index(
        build(tmp_path, ["red moon", "red red moon moon", "a tree", "the moon and a tree"])
    )
    assert ids(index.search([Question("q", "Red moon")], 9)) == [["p1", "p0", "p3"]]
    assert all(hit.score > 0 for hit in index.search([Question("q", "moon")], 9)[0])
    assert index.search([], 9) == []


def test_a_killed_build_goes_on_where_it_stopped(tmp_path, caplog):
    whole = open_index(build(tmp_path, name="whole")).search(QUESTIONS, 60)
    passages = next(tmp_path.glob("passages*"))
    code = (
        "import os, signal, sys; from pathlib import Path; from ifqa.retrieval import "
        "milvus; milvus._INSERT_PASSAGES = 10\n"
        "from pymilvus import MilvusClient; upsert, calls = MilvusClient.upsert, []\n"
        "def stop(*args, **options):\n    calls.append(upsert(*args, **options))\n"
        "    if len(calls) == 4: os.kill(os.getpid(), signal.SIGKILL)\n"
        "MilvusClient.upsert = stop; Path(sys.argv[2]).mkdir()\n"
        "settings = milvus.Milvus.BuildSettings()\n"
        "milvus.Milvus.build(Path(sys.argv[1]), Path(sys.argv[2]), settings)"
    )
    folder = tmp_path / "killed"
    command = [sys.executable, "-c", code, str(passages), str(folder)]
    assert subprocess.run(command).returncode == -signal.SIGKILL
    with caplog.at_level("INFO"):
        Milvus.build(passages, folder, Milvus.BuildSettings())
    assert "40 passages kept" in caplog.text
    assert open_index(folder).search(QUESTIONS, 60) == whole


def test_those_who_search_see_the_old_corpus_or_the_new_one_while_the_alias_moves(tmp_path, server):
    old = [f"moon old{n}" for n in range(40)]
    new = [f"moon new{n}" for n in range(40)]
    index = open_index(build(tmp_path, old, uri=server, collection="moved"))
    question = [Question("q", "moon")]
    seen = []
    done = threading.Event()

    def search():
        while not done.is_set():
            answers = index._client.search(
                "moved", data=["moon"], anns_field="bm25", limit=40, output_fields=["text"]
            )
            seen.append({hit["entity"]["text"].split()[1][:3] for hit in answers[0]})

    with futures.ThreadPoolExecutor(8) as pool:
        searches = [pool.submit(search) for _ in range(8)]
        time.sleep(0.3)
        build(tmp_path, new, uri=server, collection="moved")
        time.sleep(0.3)
        done.set()
        for future in searches:
            future.result()
    assert {frozenset(kinds) for kinds in seen} == {frozenset({"old"}), frozenset({"new"})}
    assert len(index.search(question, 40)[0]) == 40
    assert len(index._client.list_collections()) == 1, "the old collection stays"


def test_an_alias_of_somebody_elses_collection_is_refused(tmp_path, server):
    client = milvus.connect(server, tmp_path)
    client.create_collection("theirs", dimension=4)
    client.create_alias("theirs", "taken")
    for name in ("taken", "theirs"):
        with refused("'theirs', which ifqa did not make; set `collection`|alias"):
            build(tmp_path, uri=server, collection=name)
    assert client.has_collection("theirs")


def test_a_corpus_can_be_changed_in_place(tmp_path, server, caplog):
    settings = {"uri": server, "collection": "in_place", "replace": False}
    build(tmp_path, **settings)
    with caplog.at_level("INFO"):
        folder = build(tmp_path, ["zebra", *TEXTS[1:50]], **settings)
    assert "49 passages kept" in caplog.text
    index = open_index(folder)
    assert ids(index.search([Question("q", "zebra")], 5)) == [["p0"]]
    assert milvus.count_rows(index._client, "in_place") == 50


def test_another_build_that_changes_as_many_passages_in_place_is_noticed(tmp_path, server):
    settings = {"uri": server, "collection": "shared_in_place", "replace": False}
    mine = build(tmp_path, name="mine", **settings)
    theirs = build(tmp_path, ["zebra", *TEXTS[1:]], name="theirs", **settings)
    assert ids(open_index(theirs).search([Question("q", "zebra")], 5)) == [["p0"]]
    with refused("holds other passages, because another build changed them in place"):
        open_index(mine)


def test_the_same_passages_of_another_build_are_no_change(tmp_path, server):
    settings = {"uri": server, "collection": "shared_unchanged", "replace": False}
    mine = build(tmp_path, name="mine", **settings)
    build(tmp_path, name="theirs", **settings)
    assert open_index(mine).search(QUESTIONS, 5)


def test_a_collection_that_is_being_changed_is_not_searched(tmp_path, server, monkeypatch):
    settings = {"uri": server, "collection": "half_changed", "replace": False}
    folder = build(tmp_path, **settings)
    monkeypatch.setattr(milvus, "_insert", stop)
    with pytest.raises(KeyboardInterrupt):
        build(tmp_path, ["zebra", *TEXTS[1:]], name="other", **settings)
    with refused("is being changed"):
        open_index(folder)


def test_a_build_killed_before_its_drop_leaves_no_collection(tmp_path, server):
    settings = {"uri": server, "collection": "left_over"}
    build(tmp_path, **settings)
    changed = ["zebra", *TEXTS[1:]]
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("pymilvus.MilvusClient.drop_collection", stop)
        build(tmp_path, changed, **settings)
    client = milvus.connect(server, tmp_path)
    assert len([name for name in client.list_collections() if name.startswith("left_over_")]) == 2
    folder = build(tmp_path, changed, **settings)
    assert len([name for name in client.list_collections() if name.startswith("left_over_")]) == 1
    assert ids(open_index(folder).search([Question("q", "zebra")], 5)) == [["p0"]]


def test_a_build_that_did_not_end_is_named(tmp_path, server, caplog):
    settings = {"uri": server, "collection": "stopped"}
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(milvus, "_insert", stop)
        build(tmp_path, **settings)
    with caplog.at_level("INFO"):
        build(tmp_path, ["zebra", *TEXTS[1:]], **settings)
    assert "is of a build that did not end; if nobody builds it, drop it" in caplog.text


@pytest.fixture(scope="module")
def lite(tmp_path_factory):
    return build(tmp_path_factory.mktemp("lite"))


def test_a_file_serves_one_process(lite):
    open_index(lite)
    code = (
        "import sys; from pathlib import Path; from ifqa.retrieval.milvus import Milvus; "
        "Milvus(Milvus.Settings(), index=Path(sys.argv[1]))"
    )
    other = subprocess.run([sys.executable, "-c", code, str(lite)], capture_output=True, text=True)
    assert "ServiceError: cannot open" in other.stderr
    assert "another process has it open" in other.stderr.splitlines()[-1]


def test_an_unknown_field_is_refused(lite):
    with refused("has no field 'dense'; known: bm25"):
        open_index(lite, fields=["dense"])
    with refused("'fields': wanted a list with 'bm25', 'dense', 'sparse', found \\['colbert'\\]"):
        parse_settings(Milvus.Settings, {"fields": ["colbert"]}, "setting")


def test_a_lost_collection_is_refused(tmp_path, server):
    shared = build(tmp_path, name="shared", uri=server, collection="gone")
    client = milvus.connect(server, tmp_path)
    client.drop_alias("gone")
    [client.drop_collection(name) for name in client.list_collections() if name.startswith("gone")]
    with refused("gone_.* with 0 passages, wanted gone_.* with 60"):
        open_index(shared)


class _Refusing(grpc.GenericRpcHandler):
    """A server that refuses the token, as Milvus does with authentication.

    Or that never answers.
    """

    def __init__(self, silent):
        self.silent = silent

    def service(self, _details):
        def refuse(_request, context):
            if self.silent:
                time.sleep(5)
            context.abort(
                grpc.StatusCode.UNAUTHENTICATED,
                "auth check failure, please check api key root:hidden-key",
            )

        return grpc.unary_unary_rpc_method_handler(refuse)


@pytest.mark.parametrize(
    ("silent", "message"), [(False, "auth check failure"), (True, "milvus http.*")]
)
def test_a_failed_connection_is_one_line_without_the_token(silent, message, tmp_path, monkeypatch):
    monkeypatch.setenv(milvus.KEY_VARIABLE, "root:hidden-key")
    monkeypatch.setattr(milvus, "_SECONDS", 0.5)
    server = grpc.server(futures.ThreadPoolExecutor(4), handlers=[_Refusing(silent)])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        with refused(message) as caught:
            build(tmp_path, uri=f"http://127.0.0.1:{port}")
    finally:
        server.stop(None)
    assert "hidden" not in str(caught.value)


def test_an_answer_that_takes_too_long_is_one_line():
    server = grpc.server(futures.ThreadPoolExecutor(1), handlers=[_Refusing(silent=True)])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        with (
            grpc.insecure_channel(f"127.0.0.1:{port}") as channel,
            refused(r"milvus x: no answer \(Deadline Exceeded\)"),
            milvus.report_errors("x"),
        ):
            channel.unary_unary("/milvus.proto.milvus.MilvusService/Search")(b"", timeout=0.2)
    finally:
        server.stop(None)


def test_addresses_that_do_not_answer_or_may_not_get_the_token_are_refused(tmp_path, monkeypatch):
    settings = Milvus.BuildSettings(uri="http://127.0.0.1:1")
    [missing] = Milvus.build_requirements(tmp_path, settings, tmp_path)
    assert "milvus http://127.0.0.1:1: Fail connecting" in missing.remedy
    with refused("milvus: uri contains a password"):
        milvus.connect("http://root:key@cluster:19530", tmp_path)
    with refused("milvus: uri must begin with"):
        milvus.connect("cluster", tmp_path)
    monkeypatch.setenv(milvus.KEY_VARIABLE, "root:hidden-key")
    with refused(
        "MILVUS_TOKEN is not sent to http://cluster:19530; if you trust that server: "
        "export MILVUS_URI="
    ):
        milvus.connect("http://cluster:19530", tmp_path)
