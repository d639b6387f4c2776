import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ifqa.corpus import passage_store
from ifqa.corpus.passage_store import (
    GeneratedPassages,
    PassageStore,
    generated_passage_line,
    write_id_index,
)
from ifqa.errors import IfqaError
from ifqa.records import Passage
from ifqa.storage.files import json_line


@given(st.text(), st.text(), st.text())
def test_a_passage_line_equals_the_line_that_json_writes(name, title, text):
    assert passage_store.passage_line(name, title, text) == json_line(
        {"id": name, "title": title, "contents": text}
    )


def write_shard(folder, number, passages):
    passage_store.shard_path(folder, number).write_bytes(
        b"".join(map(generated_passage_line, passages))
    )


def passages(*ids):
    return [
        Passage(passage_id, f"Title of {passage_id}", f"Text of {passage_id}.")
        for passage_id in ids
    ]


@pytest.fixture
def folder(tmp_path):
    write_shard(tmp_path, 0, passages("1-0", "1-1"))
    write_shard(tmp_path, 2, passages("gold/ab12", "genread/ifqa/full-dev/17/0"))
    write_id_index(tmp_path)
    return tmp_path


@pytest.mark.parametrize("passage_id", ["", "1 0", "1-0\n", "1\u00a00"])
def test_an_empty_id_or_an_id_with_white_space_is_refused(passage_id):
    with pytest.raises(IfqaError, match=r"passage with the title 'B' has the id"):
        generated_passage_line(Passage(passage_id, "B", "b"))


def test_passages_come_in_the_order_of_the_ids_or_of_the_shards(folder):
    ids = ["gold/ab12", "1-0", "gold/ab12", "1-1"]
    store = PassageStore(folder)
    assert store.get(ids) == passages(*ids)
    assert store.get([]) == []
    assert len(store) == 4
    assert list(store) == passages("1-0", "1-1", "gold/ab12", "genread/ifqa/full-dev/17/0")
    assert list(store.find(["1-1", "1-2"])) == ["1-1"]
    with pytest.raises(IfqaError, match=rf"no passage '9-9' in {folder}"):
        store.get(["1-0", "9-9"])


@pytest.mark.parametrize(
    ("shard", "where"), [(0, r"passages-00000\.jsonl:2"), (1, r"passages-00001\.jsonl:1")]
)
def test_the_error_for_a_duplicate_id_names_both_lines(tmp_path, shard, where):
    write_shard(tmp_path, 0, passages("a") + (passages("a") if shard == 0 else []))
    write_shard(tmp_path, 1, passages("a") if shard == 1 else passages("b"))
    with pytest.raises(
        IfqaError, match=rf"id 'a' appears twice: .*-00000\.jsonl:1 and .*{where} \('Title of a'\)"
    ):
        write_id_index(tmp_path)


def test_ids_with_the_same_hash_are_distinguished(tmp_path, monkeypatch):
    monkeypatch.setattr(passage_store, "hash_id", lambda passage_id: 7)
    write_shard(tmp_path, 0, passages("a", "b", "c"))
    write_id_index(tmp_path)
    assert PassageStore(tmp_path).get(["c", "a"]) == passages("c", "a")
    assert not PassageStore(tmp_path).find(["d"])
    write_shard(tmp_path, 0, passages("a", "b", "a"))
    with pytest.raises(IfqaError, match="'a' appears twice"):
        write_id_index(tmp_path)


@settings(max_examples=20)
@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda s: s.split() == [s]),
        st.text(),
    )
)
def test_all_written_passages_are_found_by_id(tmp_path_factory, texts):
    folder = tmp_path_factory.mktemp("passages")
    texts = {key: text.encode("utf-8", "replace").decode() for key, text in texts.items()} | {
        "long": "é" * 200_000
    }
    written = [Passage(key, key.upper(), text) for key, text in texts.items()]
    for number in range(3):
        write_shard(folder, number, written[number::3])
    assert write_id_index(folder) == len(written)
    assert PassageStore(folder).get(list(texts)) == written
    assert sorted(map(str, PassageStore(folder))) == sorted(map(str, written))


def test_passages_of_other_programs_are_indexed_too(tmp_path):
    lines = [
        {"title": "T", "contents": "a", "id": "x"},
        {"id": 'q\u00e9"', "contents": "b", "title": "U"},
    ]
    (tmp_path / "passages-00000.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert write_id_index(tmp_path) == 2
    assert PassageStore(tmp_path).get(['q\u00e9"', "x"]) == [
        Passage('q\u00e9"', "U", "b"),
        Passage("x", "T", "a"),
    ]
    for line, message in (
        ('{"id": "b", "con', "not JSON"),
        ('{"title": "B", "contents": "c"}', "key 'id' is missing"),
    ):
        (tmp_path / "passages-00000.jsonl").write_text(json.dumps(lines[0]) + "\n" + line + "\n")
        with pytest.raises(IfqaError, match=f"passages-00000.jsonl:2: {message}"):
            write_id_index(tmp_path)


def test_passages_without_a_matching_index_are_refused(tmp_path):
    with pytest.raises(IfqaError, match="holds no passages"):
        write_id_index(tmp_path)
    with pytest.raises(IfqaError, match="passages folder not found"):
        PassageStore(tmp_path / "no")
    write_shard(tmp_path, 0, passages("a", "b"))
    with pytest.raises(IfqaError, match="index of ids not found"):
        PassageStore(tmp_path)
    write_shard(tmp_path, 2, passages("c"))
    write_id_index(tmp_path)
    write_shard(tmp_path, 0, passages("other", "b"))
    with pytest.raises(IfqaError, match="does not fit the passages"):
        PassageStore(tmp_path).get(["b"])
    (tmp_path / "passages-00002.jsonl").unlink()
    with pytest.raises(IfqaError, match=r"does not fit the passages \(shard 2 is missing\)"):
        PassageStore(tmp_path).get(["c"])
    locations = (tmp_path / "ids.location.npy").read_bytes()
    for length in (0, 20, len(locations) - 8):
        (tmp_path / "ids.location.npy").write_bytes(locations[:length])
        with pytest.raises(IfqaError, match="index of ids is damaged"):
            PassageStore(tmp_path)


def test_passages_come_from_the_first_of_several_stores_that_has_them(folder):
    path = folder / "generated.jsonl"
    path.write_bytes(
        b"".join(map(generated_passage_line, [Passage("1-0", "New", "new"), *passages("g")]))
    )
    store = GeneratedPassages(path)
    assert (len(store), [passage.id for passage in store]) == (2, ["1-0", "g"])
    wanted = [*passages("1-1", "g"), Passage("1-0", "New", "new")]
    assert passage_store.get_passages([store, PassageStore(folder)], ["1-1", "g", "1-0"]) == wanted
    with pytest.raises(IfqaError, match=rf"no passage 'x' in {path}, {folder}; was the run"):
        passage_store.get_passages([store, PassageStore(folder)], ["g", "x"])
