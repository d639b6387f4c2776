import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ifqa.corpus.store
from ifqa.corpus.store import PassageFile, PassageStore, fetch, made_line, passage_line, shard_path, write_id_index
from ifqa.errors import IfqaError
from ifqa.records import Passage
from ifqa.storage.files import json_line


@given(st.text(), st.text(), st.text())
def test_a_passage_line_equals_the_line_that_json_writes(passage_id, title, text):
    expected = json_line({"id": passage_id, "title": title, "contents": text})
    assert passage_line(passage_id, title, text) == expected


def write_passages(path: Path, passages: list[Passage]) -> None:
    lines = b"".join(map(made_line, passages))
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(lines)


def write_shard(folder: Path, number: int, passages: list[Passage]) -> None:
    write_passages(shard_path(folder, number), passages)


def passages(*ids: str) -> list[Passage]:
    return [Passage(passage_id, f"Title of {passage_id}", f"Text of {passage_id}.") for passage_id in ids]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_shard(tmp_path, 0, passages("1-0", "1-1"))
    write_shard(tmp_path, 2, passages("gold/ab12", "genread/ifqa/full-dev/17/0"))
    write_id_index(tmp_path)
    return tmp_path


def test_a_shard_is_a_json_collection_as_pyserini_reads_it(tmp_path: Path) -> None:
    write_shard(tmp_path, 7, [Passage("1-0", "Été", 'a "b"\nc')])
    line = (tmp_path / "passages-00007.jsonl").read_text(encoding="utf-8")
    assert line == '{"id": "1-0", "title": "Été", "contents": "a \\"b\\"\\nc"}\n'


@pytest.mark.parametrize("passage_id", ["", " ", "1 0", "1\t0", "1-0\n", "1\u00a00"])
def test_an_empty_id_or_an_id_with_white_space_is_refused(tmp_path: Path, passage_id: str) -> None:
    with pytest.raises(IfqaError, match=r"passage with the title 'B' has the id"):
        write_shard(tmp_path, 0, [Passage("1", "A", "a"), Passage(passage_id, "B", "b")])
    assert not (tmp_path / "passages-00000.jsonl").exists()


def test_passages_come_in_the_order_of_the_ids(folder: Path) -> None:
    ids = ["gold/ab12", "1-0", "gold/ab12", "1-1"]
    assert PassageStore(folder).get(ids) == passages(*ids)
    assert PassageStore(folder).get([]) == []


def test_a_store_has_a_length_and_membership(folder: Path) -> None:
    store = PassageStore(folder)
    assert len(store) == 4
    assert list(store) == passages("1-0", "1-1", "gold/ab12", "genread/ifqa/full-dev/17/0")
    assert list(store.find(["1-1", "1-2"])) == ["1-1"]


def test_the_error_for_an_unknown_id_names_the_id_and_the_store(folder: Path) -> None:
    with pytest.raises(IfqaError, match=rf"no passage '9-9' in {folder}"):
        PassageStore(folder).get(["1-0", "9-9"])


@pytest.mark.parametrize(("shard", "where"), [(0, r"passages-00000\.jsonl:2"), (1, r"passages-00001\.jsonl:1")])
def test_the_error_for_a_duplicate_id_names_both_lines(tmp_path: Path, shard: int, where: str) -> None:
    write_shard(tmp_path, 0, passages("a") + (passages("a") if shard == 0 else []))
    write_shard(tmp_path, 1, passages("a") if shard == 1 else passages("b"))
    with pytest.raises(
        IfqaError, match=rf"id 'a' appears twice: .*passages-00000\.jsonl:1 and .*{where} \('Title of a'\)"
    ):
        write_id_index(tmp_path)


def test_ids_with_the_same_hash_are_distinguished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ifqa.corpus.store, "hash_id", lambda passage_id: 7)
    write_shard(tmp_path, 0, passages("a", "b", "c"))
    write_id_index(tmp_path)
    assert PassageStore(tmp_path).get(["c", "a"]) == passages("c", "a")
    assert not PassageStore(tmp_path).find(["d"])
    write_shard(tmp_path, 0, passages("a", "b", "a"))
    with pytest.raises(IfqaError, match="'a' appears twice"):
        write_id_index(tmp_path)


@settings(max_examples=20)
@given(st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda s: s.split() == [s]), st.text()))
def test_all_written_passages_are_found_by_id(tmp_path_factory: pytest.TempPathFactory, texts: dict[str, str]) -> None:
    folder = tmp_path_factory.mktemp("passages")
    texts = {key: text.encode("utf-8", "replace").decode() for key, text in texts.items()} | {"long": "é" * 200_000}
    written = [Passage(key, key.upper(), text) for key, text in texts.items()]
    for number in range(3):
        write_shard(folder, number, written[number::3])
    assert write_id_index(folder) == len(written)
    assert PassageStore(folder).get(list(texts)) == written
    assert sorted(map(str, PassageStore(folder))) == sorted(map(str, written))


def test_the_index_is_two_plain_arrays_sorted_by_hash(folder: Path) -> None:
    hashes = np.load(folder / "ids.hash.npy", allow_pickle=False)
    locations = np.load(folder / "ids.location.npy", allow_pickle=False)
    assert hashes.dtype == locations.dtype == np.uint64
    assert (np.sort(hashes) == hashes).all()
    second = len((folder / "passages-00000.jsonl").read_bytes().splitlines()[0]) + 1
    assert second in locations


def test_passages_of_other_programs_are_indexed_too(tmp_path: Path) -> None:
    lines = [{"title": "T", "contents": "a", "id": "x"}, {"id": 'q\u00e9"', "contents": "b", "title": "U"}]
    (tmp_path / "passages-00000.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert write_id_index(tmp_path) == 2
    assert PassageStore(tmp_path).get(['q\u00e9"', "x"]) == [Passage('q\u00e9"', "U", "b"), Passage("x", "T", "a")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id": "b", "title": "B", "con', "passages-00000.jsonl:2: not a line of JSON"),
        ('{"title": "B", "contents": "c"}', "passages-00000.jsonl:2: key 'id' is missing"),
        ("[1]", "passages-00000.jsonl:2: wanted a JSON object"),
    ],
)
def test_the_error_for_an_invalid_line_names_file_and_line(tmp_path: Path, line: str, message: str) -> None:
    write_shard(tmp_path, 0, passages("a"))
    with open(tmp_path / "passages-00000.jsonl", "a", encoding="utf-8") as shard:
        shard.write(line + "\n")
    with pytest.raises(IfqaError, match=message):
        write_id_index(tmp_path)


def test_an_empty_or_missing_folder_or_a_missing_index_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IfqaError, match="holds no passages"):
        write_id_index(tmp_path)
    with pytest.raises(IfqaError, match="passages folder not found"):
        PassageStore(tmp_path / "no")
    write_shard(tmp_path, 0, passages("a"))
    with pytest.raises(IfqaError, match="index of ids not found"):
        PassageStore(tmp_path)


def test_a_cut_index_or_the_index_of_other_passages_is_refused(folder: Path) -> None:
    write_shard(folder, 0, passages("another", "1-1"))
    with pytest.raises(IfqaError, match="does not fit the passages"):
        PassageStore(folder).get(["1-1"])
    (folder / "passages-00002.jsonl").unlink()
    with pytest.raises(IfqaError, match=r"does not fit the passages \(shard 2 is missing\)"):
        PassageStore(folder).get(["gold/ab12"])
    data = (folder / "ids.location.npy").read_bytes()
    for length in (0, 20, len(data) - 8):
        (folder / "ids.location.npy").write_bytes(data[:length])
        with pytest.raises(IfqaError, match="index of ids is damaged"):
            PassageStore(folder)


def test_passages_come_from_the_first_of_several_stores_that_has_them(folder: Path, tmp_path: Path) -> None:
    made = tmp_path / "made" / "passages.jsonl"
    write_passages(made, [Passage("1-0", "Made", "made"), *passages("g")])
    store = PassageFile(made)
    assert (len(store), [passage.id for passage in store]) == (2, ["1-0", "g"])
    found = fetch([store, PassageStore(folder)], ["1-1", "g", "1-0"])
    assert found == [*passages("1-1", "g"), Passage("1-0", "Made", "made")]
    with pytest.raises(IfqaError, match=rf"no passage 'x' in {made}, {folder}; was the run"):
        fetch([store, PassageStore(folder)], ["g", "x"])


def test_a_file_of_passages_with_a_duplicate_id_is_refused(tmp_path: Path) -> None:
    write_passages(tmp_path / "passages.jsonl", passages("a", "b", "a"))
    with pytest.raises(IfqaError, match=r"'a' appears twice: .*passages\.jsonl:1 and .*passages\.jsonl:3"):
        PassageFile(tmp_path / "passages.jsonl")
