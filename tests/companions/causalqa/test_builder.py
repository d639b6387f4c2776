"""The corpus of causal questions: the authors' release and ELI5's file, interrupted builds, damaged
and hostile files.
"""

import json
import zipfile
from pathlib import Path

import pytest
from causal_release import write_eli5, write_release
from command_line import ifqa_here
from refusals import refused

from ifqa.companions.causalqa import builder
from ifqa.companions.causalqa.benchmark import CausalQA
from ifqa.companions.causalqa.builder import build_causalqa
from ifqa.companions.causalqa.release import DATASETS, SPLITS
from ifqa.errors import IfqaError

ARCHIVE = "Webis-CausalQA-22-v-1.0.zip"
SQUAD = "Webis-CausalQA-22-v-1.0/input/original-splits/squad2_train_original_split.csv"


def read_corpus(root):
    """The corpus's files, and the counts of its manifest."""
    place = root / "data/causalqa"
    manifest = json.loads((place / "manifest.json").read_text())
    files = {path.relative_to(place).as_posix(): path.read_bytes() for path in place.glob("*/*")}
    return files, manifest["record"]["datasets"]


def parse(content):
    return [json.loads(line) for line in content.splitlines()]


def assert_refused(folder, message):
    with refused(message):
        list(build_causalqa(folder / "out", folder))
    assert not (folder / "out/data/causalqa").exists()


@pytest.mark.parametrize("packed", [False, True])
def test_the_authors_release_keeps_its_splits(packed, tmp_path):
    write_release(tmp_path / "release", packed)
    lines = list(build_causalqa(tmp_path, tmp_path / "release"))
    files, facts = read_corpus(tmp_path)
    assert [line.split(":")[0] for line in lines] == list(DATASETS)
    assert (
        "eli5: absent, the release has only its ids; put train_eli5.jsonl or "
        f"eli5-train-kilt.jsonl into {tmp_path}"
    ) in lines[4]
    assert lines[1] == "gooaq: absent, the release has no file of it"
    assert lines[0].startswith("paq: 8 causal, 0 left out without an answer; original-train 4,")
    assert lines[6].startswith("squad2: 6 causal, 2 left out without an answer")
    assert parse(files["random-valid/squad2.jsonl"])[1] == {
        "id": "1",
        "question": "Why, valid 1?",
        "context": 'A "lamp",\nhot.',
        "answers": ["hot", "hot 1"],
        "rules": ["R1"],
    }
    assert [row["id"] for row in parse(files["original-train/paq.jsonl"])] == [
        "0.0",
        "0.1",
        "1.2",
        "1.3",
    ]
    assert facts["squad2"]["splits"]["original-train"] == [3, 9, 3]


@pytest.mark.parametrize("kilt", [False, True])
def test_eli5s_file_gives_the_questions_of_the_releases_ids_in_its_splits(kilt, tmp_path):
    write_release(tmp_path)
    write_eli5(
        tmp_path / "eli5",
        kilt,
        **({"input": "why \ud83d\t?"} if kilt else {"title": "why \ud83d", "selftext": " ? "}),
    )
    lines = list(build_causalqa(tmp_path, tmp_path))
    assert lines[4].startswith("eli5: 3 causal, 1 left out without an answer; original-train 2,")
    files, _ = read_corpus(tmp_path)
    for family in ("original", "random"):
        train, valid = (parse(files[f"{family}-{part}/eli5.jsonl"]) for part in ("train", "valid"))
        assert [row["id"] for row in (*train, *valid)] == ["q0", "q3", "q6"]
        answers = ["heat 3", "it burns"]
        assert train[1] == {
            "id": "q3",
            "question": "why ? ?",
            "context": "",
            "answers": answers,
            "rules": ["R1"],
        }
    table = tmp_path / SQUAD.replace("squad2_train", "eli5_train")
    table.write_text(table.read_text() + "q77\nq78\nq78\n")
    assert (
        "without an answer, 2 ids not in its file; " in list(build_causalqa(tmp_path, tmp_path))[4]
    )


def test_a_repeated_id_becomes_unique(tmp_path):
    write_release(tmp_path)
    path = tmp_path / SQUAD
    path.write_text(path.read_text() + "1,Why again?,why,c,c,hot\n")
    list(build_causalqa(tmp_path, tmp_path))
    questions = CausalQA(tmp_path).questions("original-train/squad2")
    assert [question.id.rpartition("/")[2] for question in questions] == ["0", "1", "2", "1.4"]


def test_a_resumed_build_does_not_read_a_complete_dataset_again(tmp_path, monkeypatch):
    write_release(tmp_path)
    write_eli5(tmp_path / "eli5")
    list(build_causalqa(tmp_path / "whole", tmp_path))
    parsed = []
    match = builder.match_rules

    def interrupt(question):
        parsed.append(question)
        if len(parsed) == 16 + 2:  # the second question of the second dataset
            raise KeyboardInterrupt
        return match(question)

    monkeypatch.setattr(builder, "match_rules", interrupt)
    with pytest.raises(KeyboardInterrupt):
        list(build_causalqa(tmp_path, tmp_path))
    assert not (tmp_path / "data/causalqa").exists()
    lines = list(build_causalqa(tmp_path, tmp_path))
    assert len(parsed) == 16 + 2 + 3 + 12  # the interrupted dataset starts again
    assert read_corpus(tmp_path) == read_corpus(tmp_path / "whole")
    assert sorted(path.name for path in (tmp_path / "data/causalqa").iterdir()) == [
        "manifest.json",
        *SPLITS,
    ]
    assert list(build_causalqa(tmp_path, tmp_path)) == lines
    assert len(parsed) == 33, "nothing to do"


def test_an_interrupted_build_of_other_files_is_not_reused(tmp_path, monkeypatch):
    write_release(tmp_path)
    path = tmp_path / SQUAD
    content = path.read_text()
    path.write_text(content + "4,why\n")
    with pytest.raises(IfqaError, match="fewer cells"):
        list(build_causalqa(tmp_path, tmp_path))
    path.write_text(content)
    paq = path.with_name("paq_train_original_split.csv")
    paq.write_text(paq.read_text().replace("why train 0", "why other 0"))
    list(build_causalqa(tmp_path, tmp_path))
    assert b"why other 0" in read_corpus(tmp_path)[0]["original-train/paq.jsonl"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["causalqa", "--from", "nowhere"], "--from nowhere: no such folder"),
        (
            ["causalqa", "--from", "."],
            (
                "--from .: wanted Webis-CausalQA-22-v-1.0, or its .zip, with the files of a "
                "dataset; found none"
            ),
        ),
        (["ifqa", "--seed", "3"], "No such option: --seed"),
    ],
)
def test_an_invalid_command_is_refused(arguments, message, tmp_path):
    process = ifqa_here("data", *arguments, folder=tmp_path)
    assert (process.returncode, process.stdout) == (2, "")
    assert message in process.stderr


def test_the_statistics_are_those_of_the_files_next_to_the_papers(tmp_path):
    process = ifqa_here("stats", "causal-corpus", folder=tmp_path)
    assert (process.returncode, "run: ifqa data causalqa" in process.stderr) == (2, True)
    write_release(tmp_path)
    write_eli5(tmp_path / "eli5")
    list(build_causalqa(tmp_path, tmp_path))
    files, facts = read_corpus(tmp_path)
    for name, fact in facts.items():
        for split in SPLITS:
            records = parse(files[f"{split}/{name}.jsonl"])
            words = [
                (len(record["question"].split()), len(record["answers"][0].split()))
                for record in records
            ]
            assert fact["splits"][split] == [
                len(records),
                sum(q for q, _ in words),
                sum(a for _, a in words),
            ]
    process = ifqa_here("stats", "causal-corpus", folder=tmp_path)
    assert process.returncode == 0, process.stderr
    rows = [line.split() for line in process.stdout.splitlines()]
    for row in (
        "eli5 - 3 - 5.0 2.0",
        "paper 64,875,601 769,606 1.2% 9.6 2.7",
        "squad2 3 3 3 3",
        "paper - 252 - 321",
    ):
        assert row.split() in rows
    squad2 = json.loads(ifqa_here("stats", "causal-corpus", "--json", folder=tmp_path).stdout)[
        "squad2"
    ]
    assert squad2["splits"]["original-valid"] == {
        "questions": 3,
        "question_words": 9,
        "answer_words": 3,
    }
    assert squad2["paper"]["original"] == 252
    path = tmp_path / "data/causalqa/manifest.json"
    manifest = json.loads(path.read_text())
    assert manifest["record"]["absent"].keys() == set(DATASETS) - {"paq", "squad2", "eli5"}
    manifest["record"]["datasets"] = {"gooaq": 3}
    path.write_text(json.dumps(manifest))
    process = ifqa_here("stats", "causal-corpus", folder=tmp_path)
    assert process.returncode == 2
    assert "manifest.json: 'record': not as ifqa writes it (datasets.gooaq" in process.stderr


def test_the_release_is_fetched_once(tmp_path, monkeypatch):
    write_release(tmp_path / "server", packed=True)
    monkeypatch.setattr(builder.release, "URL", (tmp_path / "server" / ARCHIVE).as_uri())
    lines = list(build_causalqa(tmp_path, None))
    assert lines[6].startswith("squad2: 6 causal")
    assert (tmp_path / "data/causalqa-release" / ARCHIVE).is_file()
    monkeypatch.setattr(builder.release, "URL", "file:///nowhere.zip")
    assert list(build_causalqa(tmp_path, None)) == lines


WRONG_TABLES = {
    "renamed": (
        lambda text: text.replace("answer", "gold"),
        "original_split.csv:1: column 'answer' is missing; found id, question",
    ),
    "short": (
        lambda text: text + "4,why\n",
        "original_split.csv:9: found fewer cells than columns",
    ),
    "long": (
        lambda text: text + "4,why,why,c,c,a,b\n",
        "original_split.csv:9: found more cells than columns",
    ),
    "empty": (lambda text: "", "original_split.csv:1: column 'question' is missing"),
}


@pytest.mark.parametrize("fault", WRONG_TABLES)
def test_an_invalid_table_of_the_release_is_refused(fault, tmp_path):
    change, message = WRONG_TABLES[fault]
    write_release(tmp_path)
    path = tmp_path / SQUAD
    path.write_text(change(path.read_text()))
    assert_refused(tmp_path, message)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"answers": ["x"]}, "train_eli5.jsonl.bz2:4: 'answers' must be dict, found list"),
        ({"answers": {"text": [3]}}, "train_eli5.jsonl.bz2:4: 'text' must be str, found int"),
        ({"title": None}, "train_eli5.jsonl.bz2:4: 'title' must be str, found NoneType"),
        (
            {"input": "why", "id": "q3", "output": [3]},
            "'output' must be a list of objects, found int in it",
        ),
    ],
)
def test_an_invalid_record_of_eli5_is_refused(changed, message, tmp_path):
    write_release(tmp_path)
    write_eli5(tmp_path / "eli5", **changed)
    assert_refused(tmp_path, message)


def test_another_file_than_eli5s_is_refused(tmp_path):
    write_release(tmp_path)
    place = tmp_path / "eli5"
    place.mkdir()
    assert_refused(
        tmp_path, "eli5: wanted one file, train_eli5.jsonl or eli5-train-kilt.jsonl; found none"
    )
    (place / "validation.jsonl").write_text('{"q_id": "v1"}\n')
    assert_refused(
        tmp_path,
        r"validation.jsonl: has none of the release's 4 ids; wanted the training questions of ELI5",
    )
    write_eli5(place)
    assert_refused(tmp_path, "found train_eli5.jsonl.bz2, validation.jsonl")


def test_a_damaged_or_hostile_archive_is_refused(tmp_path):
    write_release(tmp_path, packed=True)
    path = tmp_path / ARCHIVE
    content = path.read_bytes()
    path.write_bytes(content.replace(b"Why, train 0?", b"Why, trEin 0?"))
    assert_refused(tmp_path, rf"{ARCHIVE}/{SQUAD}: the archive is damaged")
    path.write_bytes(content[:-9])
    assert_refused(tmp_path, rf"{ARCHIVE}: not a readable zip archive")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(SQUAD, "why " * 99)
    packed = bytearray(path.read_bytes())
    packed[30 + len(SQUAD)] = 0xFF  # no kind of block has this number
    path.write_bytes(packed)
    assert_refused(tmp_path, rf"{ARCHIVE}/{SQUAD}: the compressed data is truncated or damaged")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(SQUAD, "x" * (1 << 25))  # 33 kB that unpack to 34 MB
    assert_refused(tmp_path, rf"{ARCHIVE}/{SQUAD}:1: a line of more than")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(SQUAD, "id\n")
    packed = bytearray(path.read_bytes())
    packed[6] |= 1  # encrypted, in the member's header
    packed[packed.index(b"PK\1\2") + 8] |= 1  # and in the archive's list
    path.write_bytes(packed)
    assert_refused(tmp_path, "cannot be read .*encrypted.*; extract the archive and remove it")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../input/random-splits/../paq_train_random_split.csv", "id\n")
        archive.writestr("input/random-splits/squad2_train_original_split.csv", "id\n")
        archive.writestr("input/random-splits/other_train_random_split.csv", "id\n")
        # The ids alone are no dataset
        archive.writestr("input/random-splits/eli5_train_random_split.csv", "id\n")
    assert_refused(tmp_path, "wanted Webis-CausalQA-22-v-1.0, or its .zip")
    assert not Path(tmp_path / "input").exists()
