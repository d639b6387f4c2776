"""The corpus from the authors' release: as an archive or unpacked, fetched, and next to a publisher's files."""

import json

import pytest
from causal_publishers import write_publishers, write_release

from ifqa.benchmarks.causalqa import builder
from ifqa.benchmarks.causalqa.benchmark import CausalQA
from ifqa.benchmarks.causalqa.builder import build_causalqa
from ifqa.errors import IfqaError


@pytest.mark.parametrize("packed", [False, True])
def test_the_authors_release_keeps_its_splits(packed, tmp_path):
    write_release(tmp_path / "release", packed)
    lines = list(build_causalqa(tmp_path, tmp_path / "release"))
    place = tmp_path / "data/causalqa"
    facts = json.loads((place / "manifest.json").read_text())["record"]["datasets"]
    assert "eli5: absent, the release has only its ids" in lines[4]
    assert lines[0].startswith("paq: from the release, 8 causal, 0 left out without an answer")
    assert lines[6].startswith("squad2: from the release, 6 causal, 2 left out without an answer")
    records = [json.loads(line) for line in (place / "random-valid/squad2.jsonl").read_bytes().splitlines()]
    assert records[1] == {
        "id": "1", "question": "Why, valid 1?", "context": 'A "lamp",\nhot.', "answers": ["hot", "hot 1"], "rules": ["R1"],
    }  # fmt: skip
    lines = (place / "original-train/paq.jsonl").read_bytes().splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["0.0", "0.1", "1.2", "1.3"]
    assert facts["squad2"]["splits"]["original-train"] == [3, 9, 3]


def test_a_publishers_dataset_replaces_the_releases_and_duplicate_ids_become_unique(tmp_path):
    write_release(tmp_path)
    path = tmp_path / "Webis-CausalQA-22-v-1.0/input/random-splits/squad2_train_random_split.csv"
    path.write_text(path.read_text() + "1,Why again?,why,c,c,hot\n")
    write_publishers(tmp_path, "eli5", "paq")
    lines = list(build_causalqa(tmp_path, tmp_path))
    assert lines[0].startswith("paq: 10 questions, 4 causal")
    assert lines[4].startswith("eli5: 10 questions, 3 causal")
    assert lines[6].startswith("squad2: from the release")
    questions = CausalQA(tmp_path).questions("random-train/squad2")
    assert [question.id.rpartition("/")[2] for question in questions] == ["0", "1", "2", "1.4"]


def test_a_release_with_other_columns_is_refused(tmp_path):
    write_release(tmp_path)
    path = tmp_path / "Webis-CausalQA-22-v-1.0/input/original-splits/squad2_train_original_split.csv"
    text, short = path.read_text(), "split.csv:9: found fewer cells than columns"
    renamed = "squad2_train_original_split.csv:1: column 'answer' is missing; found id, question"
    for changed, message in {text.replace("answer", "gold"): renamed, text + "4,why\n": short}.items():
        path.write_text(changed)
        with pytest.raises(IfqaError, match=message):
            list(build_causalqa(tmp_path, tmp_path))


def test_the_release_is_fetched_once(tmp_path, monkeypatch):
    write_release(tmp_path / "server", packed=True)
    monkeypatch.setattr(builder.release, "URL", (tmp_path / "server/Webis-CausalQA-22-v-1.0.zip").as_uri())
    lines = list(build_causalqa(tmp_path, None))
    assert lines[6].startswith("squad2: from the release, 6 causal")
    assert (tmp_path / "data/causalqa-release/Webis-CausalQA-22-v-1.0.zip").is_file()
    monkeypatch.setattr(builder.release, "URL", "file:///nowhere.zip")
    assert list(build_causalqa(tmp_path, None)) == lines
