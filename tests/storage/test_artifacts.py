import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ifqa.errors import IfqaError
from ifqa.storage import artifacts
from ifqa.storage.files import write_jsonl

INPUTS = {"stage": "test", "settings": {"k": 5}}


def make(folder, inputs=INPUTS, rows=3, **options):
    with artifacts.Artifact(folder).make(lambda: inputs, **options) as draft:
        write_jsonl(draft.folder / "rows.jsonl", ({"row": n} for n in range(rows)))
        draft.record["rows"] = rows


def test_a_manifest_has_inputs_and_record(tmp_path):
    make(tmp_path / "a")
    manifest = artifacts.read_manifest(tmp_path / "a")
    assert manifest["inputs"] == INPUTS
    assert manifest["record"]["rows"] == 3
    assert set(manifest["record"]["files"]) == {"rows.jsonl"}
    assert artifacts.Artifact(tmp_path / "a").is_made_from(INPUTS)
    assert not artifacts.Artifact(tmp_path / "a").is_made_from(INPUTS | {"settings": {"k": 6}})
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "a"]


def test_a_failure_leaves_what_was_there(tmp_path):
    make(tmp_path / "a")
    before = (tmp_path / "a" / "rows.jsonl").read_bytes()
    with pytest.raises(ZeroDivisionError), artifacts.Artifact(tmp_path / "a").make(lambda: {"stage": "other"}):
        raise ZeroDivisionError
    assert artifacts.Artifact(tmp_path / "a").is_made_from(INPUTS)
    assert (tmp_path / "a" / "rows.jsonl").read_bytes() == before


@pytest.mark.parametrize(("inputs", "kept"), [(INPUTS, True), ({"stage": "other"}, False)])
def test_only_an_attempt_with_the_same_inputs_is_resumed(tmp_path, inputs, kept):
    with (
        pytest.raises(KeyboardInterrupt),
        artifacts.Artifact(tmp_path / "a").make(lambda: INPUTS, resume="same") as draft,
    ):
        (draft.folder / "half.txt").write_text("half")
        raise KeyboardInterrupt
    with artifacts.Artifact(tmp_path / "a").make(lambda: inputs, resume="same") as draft:
        assert (draft.folder / "half.txt").exists() == kept


def test_leftovers_are_removed_unless_resuming(tmp_path):
    with pytest.raises(KeyboardInterrupt), artifacts.Artifact(tmp_path / "a").make(lambda: INPUTS) as draft:
        (draft.folder / "half.txt").write_text("half")
        raise KeyboardInterrupt
    make(tmp_path / "a")
    assert {path.name for path in (tmp_path / "a").iterdir()} == {"rows.jsonl", "manifest.json"}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG])
def test_a_full_disk_raises_a_one_line_error_and_keeps_the_old_artifact(tmp_path, number):
    make(tmp_path / "a")
    with (
        pytest.raises(IfqaError, match="no room on the disk"),
        artifacts.Artifact(tmp_path / "a").make(lambda: {"stage": "other"}),
    ):
        raise OSError(number, "full")
    assert artifacts.Artifact(tmp_path / "a").is_made_from(INPUTS)


def read_only(monkeypatch, folder):
    """As if the file system of a folder were read-only, for whoever runs this."""
    opened, made = os.open, os.mkdir

    def open_(path, flags, *more, **named):
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) and Path(path).is_relative_to(folder):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return opened(path, flags, *more, **named)

    def mkdir(path, *more, **named):
        if Path(path).is_relative_to(folder) and not Path(path).exists():
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return made(path, *more, **named)

    monkeypatch.setattr(os, "open", open_)
    monkeypatch.setattr(os, "mkdir", mkdir)


def test_artifacts_can_be_used_on_a_read_only_file_system(tmp_path, monkeypatch):
    make(tmp_path / "a")
    read_only(monkeypatch, tmp_path)
    with artifacts.lock(tmp_path), artifacts.Artifact(tmp_path / "a").make(lambda: INPUTS) as draft:
        assert draft is None
    with (
        pytest.raises(OSError, match=r"Read-only file system.*partial"),
        artifacts.Artifact(tmp_path / "b").make(lambda: INPUTS),
    ):
        pass
    with (
        pytest.raises(OSError, match=r"Read-only file system.*partial"),
        artifacts.Artifact(tmp_path / "new" / "a").make(dict),
    ):
        pass


def test_a_second_process_is_kept_out(tmp_path):
    script = (
        "import sys; from pathlib import Path; from ifqa.storage import artifacts\n"
        f"with artifacts.lock(Path({str(tmp_path)!r})): print('in', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "in\n"
        with pytest.raises(IfqaError, match="another process is at work in"), artifacts.lock(tmp_path):
            pass
        other.kill()
    with artifacts.lock(tmp_path):  # a killed process holds nothing
        pass


def test_a_process_that_waits_goes_on_when_the_other_ends(tmp_path):
    script = (
        "from pathlib import Path; from ifqa.storage import artifacts\n"
        f"with artifacts.lock(Path({str(tmp_path)!r}), wait=True): print('in')"
    )
    with artifacts.lock(tmp_path):
        other = subprocess.Popen(
            [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert other.stderr.readline() == f"another process is at work in {tmp_path}; waiting until it ends\n"
    assert other.communicate() == ("in\n", "")


def test_a_lock_may_be_taken_again_by_its_own_process(tmp_path):
    script = (
        "from pathlib import Path; from ifqa.storage import artifacts\n"
        f"with artifacts.lock(Path({str(tmp_path)!r})): pass"
    )
    with artifacts.lock(tmp_path):
        with artifacts.lock(tmp_path):
            pass
        other = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "another process is at work in" in other.stderr, "the inner lock's end is not the outer's"


def test_only_an_artifact_of_the_same_inputs_is_taken_over(tmp_path):
    base, folder = tmp_path / "base" / "a", tmp_path / "variant" / "a"
    make(base)
    with artifacts.Artifact(folder).make(lambda: INPUTS, others=[base]) as draft:
        assert draft is None
    assert artifacts.Artifact(folder).is_made_from(INPUTS)
    assert (folder / "rows.jsonl").read_text() == (base / "rows.jsonl").read_text()
    assert not artifacts.Artifact(tmp_path / "variant" / "b").copy({"stage": "other"}, [base])


def test_a_whole_artifact_is_not_made_again(tmp_path):
    make(tmp_path / "a")
    with artifacts.Artifact(tmp_path / "a").make(lambda: INPUTS) as draft:
        assert draft is None
    (tmp_path / "a" / "rows.jsonl").write_text("cut\n")
    with artifacts.Artifact(tmp_path / "a").make(lambda: INPUTS) as draft:
        assert draft is not None


def test_a_finished_temporary_folder_is_moved_into_place(tmp_path):
    make(tmp_path / "a")
    (tmp_path / "a").rename(tmp_path / ".a.partial")
    with artifacts.Artifact(tmp_path / "a").make(lambda: INPUTS) as draft:
        assert draft is None
    assert artifacts.Artifact(tmp_path / "a").is_made_from(INPUTS)


def test_an_input_that_changes_during_the_work_is_refused(tmp_path):
    answers = iter([INPUTS, {"stage": "changed"}])
    with (
        pytest.raises(IfqaError, match="changed while it was being made"),
        artifacts.Artifact(tmp_path / "a").make(lambda: next(answers)),
    ):
        pass
    assert not (tmp_path / "a").exists()


def test_a_broken_manifest_is_named(tmp_path):
    make(tmp_path / "a")
    (tmp_path / "a" / "manifest.json").write_text(json.dumps({"record": {}}))
    with pytest.raises(IfqaError, match="not as ifqa writes it"):
        artifacts.Artifact(tmp_path / "a").is_made_from(INPUTS)


def damage(path):
    """Other bytes of the same size, and a time of change of their own."""
    data = path.read_bytes()
    path.write_bytes(bytes([data[0] ^ 1]) + data[1:])


def test_damage_of_equal_size_is_reported_and_made_again(tmp_path, capsys):
    make(tmp_path / "a")
    damage(tmp_path / "a" / "rows.jsonl")
    assert not artifacts.Artifact(tmp_path / "a").is_made_from(INPUTS)
    assert list(artifacts.damaged(tmp_path / "a", artifacts.read_manifest(tmp_path / "a"))) == ["rows.jsonl"]
    make(tmp_path / "a")
    assert "rows.jsonl is not as it was written; it is made again" in capsys.readouterr().err
    assert artifacts.Artifact(tmp_path / "a").is_made_from(INPUTS)


def test_a_large_artifact_is_hashed_only_if_thorough(tmp_path, monkeypatch):
    make(tmp_path / "a")
    damage(tmp_path / "a" / "rows.jsonl")
    monkeypatch.setattr(artifacts, "_SMALL", 1)
    manifest = artifacts.read_manifest(tmp_path / "a")
    assert list(artifacts.damaged(tmp_path / "a", manifest)) == []
    assert list(artifacts.damaged(tmp_path / "a", manifest, thorough=True)) == ["rows.jsonl"]


@pytest.fixture
def elsewhere(tmp_path):
    """A folder with a file that no artifact may touch."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    yield folder
    assert [path.name for path in folder.iterdir()] == ["mine.txt"]
    assert (folder / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("link", "resume"), [(".a.partial", ""), (".a.old", ""), (".a.partial/within", "any"), (".a.partial/b/c", "any")]
)
def test_a_link_that_would_be_followed_is_refused(tmp_path, elsewhere, link, resume):
    place = tmp_path / "work" / link
    place.parent.mkdir(parents=True)
    place.symlink_to(elsewhere)
    with pytest.raises(IfqaError, match="is a link, and its target is not part of"):
        make(tmp_path / "work" / "a", resume=resume)
    assert place.is_symlink()


@pytest.mark.parametrize("place", [".a.partial", ".a.old"])
def test_a_link_that_a_killed_build_left_is_removed_and_not_followed(tmp_path, elsewhere, place):
    left = tmp_path / "work" / place / "input-1"
    left.mkdir(parents=True)
    (left / "folder").symlink_to(elsewhere)
    (left / "file").symlink_to(elsewhere / "mine.txt")
    make(tmp_path / "work" / "a")
    assert artifacts.Artifact(tmp_path / "work" / "a").is_made_from(INPUTS)
    assert not left.exists()


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"files": 3}, "files"),
        ({"files": {}}, "files"),
        ({"files": {"a": 5}}, "files.a"),
        ({"files": {"a": {"bytes": "9", "sha256": ""}}}, "files.a.bytes"),
        ({"files": {"../a": {"bytes": 9, "sha256": ""}}}, "files.../a"),
        ({"files": {"/a": {"bytes": 9, "sha256": ""}}}, "files./a"),
        ({"at": None}, "at"),
        ({"seconds": float("inf")}, "seconds"),
        ({"spent": 3}, "spent"),
        ({"spent": {}}, "spent.calls"),
        ({"label": float("inf")}, "label"),
        ({"passages": "x"}, "passages"),
        ({"sources": {"a.xml": 3}}, "sources.a.xml"),
    ],
)
def test_a_manifest_with_a_value_of_another_type_is_refused(tmp_path, changes, place):
    make(tmp_path / "a")
    path = tmp_path / "a" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["record"] |= changes
    path.write_text(json.dumps(manifest))
    with pytest.raises(IfqaError) as refused:
        artifacts.Artifact(tmp_path / "a").is_made_from(INPUTS)
    assert f"manifest.json: not as ifqa writes it (record.{place}: " in str(refused.value)
    assert "; remove the folder" in str(refused.value)


@pytest.mark.parametrize(
    ("stage", "key"), [("test", "at"), ("test", "files"), ("passages", "sources"), ("index", "passages")]
)
def test_a_manifest_without_a_key_that_its_stage_records_is_refused(tmp_path, stage, key):
    with artifacts.Artifact(tmp_path / "a").make(lambda: {"stage": stage}) as draft:
        write_jsonl(draft.folder / "rows.jsonl", [{"row": 1}])
        draft.record |= {"passages": 1, "sources": {"a.xml": [1, 2, "3"]}}
    path = tmp_path / "a" / "manifest.json"
    manifest = json.loads(path.read_text())
    assert artifacts.read_manifest(tmp_path / "a") == manifest
    del manifest["record"][key]
    path.write_text(json.dumps(manifest))
    with pytest.raises(IfqaError, match=rf"not as ifqa writes it \(record\.{key}: "):
        artifacts.read_manifest(tmp_path / "a")


@pytest.mark.parametrize("inputs", [INPUTS, {"stage": "other"}], ids=["damaged", "of other inputs"])
@pytest.mark.parametrize("name", ["notes.txt", "more/notes.txt"])
def test_a_folder_that_holds_a_foreign_file_is_not_replaced(tmp_path, inputs, name):
    make(tmp_path / "a")
    damage(tmp_path / "a" / "rows.jsonl")
    notes = tmp_path / "a" / name
    notes.parent.mkdir(exist_ok=True)
    notes.write_text("mine")
    with pytest.raises(IfqaError, match=f"{name} is in no manifest, and would be removed .*; move it elsewhere"):
        make(tmp_path / "a", inputs)
    assert notes.read_text() == "mine"
    assert not (tmp_path / ".a.partial").exists(), "it is said before the work"
    notes.unlink()
    make(tmp_path / "a", inputs)


def test_a_folder_without_a_manifest_is_not_replaced(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "thesis.txt").write_text("mine")
    with pytest.raises(IfqaError, match=r"thesis\.txt is in no manifest"):
        make(tmp_path / "a")
    assert (tmp_path / "a" / "thesis.txt").read_text() == "mine"


def test_a_foreign_file_that_comes_during_the_work_is_kept(tmp_path):
    make(tmp_path / "a")
    with (
        pytest.raises(IfqaError, match=r"late\.txt is in no manifest"),
        artifacts.Artifact(tmp_path / "a").make(lambda: {"stage": "other"}) as draft,
    ):
        write_jsonl(draft.folder / "rows.jsonl", [{"row": 1}])
        (tmp_path / "a" / "late.txt").write_text("mine")
    (tmp_path / "a" / "late.txt").rename(tmp_path / "late.txt")
    with artifacts.Artifact(tmp_path / "a").make(lambda: {"stage": "other"}) as draft:
        assert draft is None, "the work was finished"


def test_hidden_files_and_empty_folders_do_not_stop_a_stage(tmp_path):
    make(tmp_path / "a")
    (tmp_path / "a" / ".DS_Store").write_text("")
    (tmp_path / "a" / "empty").mkdir()
    make(tmp_path / "a", {"stage": "other"})
    assert artifacts.Artifact(tmp_path / "a").is_made_from({"stage": "other"})


def test_only_listed_files_are_an_artifacts_own(tmp_path):
    make(tmp_path / "a")
    assert artifacts.strangers(tmp_path / "a") == []
    (tmp_path / "a" / "more.jsonl").write_text("{}\n")
    assert artifacts.files_of(tmp_path / "a") == [tmp_path / "a" / "rows.jsonl"]
    assert artifacts.strangers(tmp_path / "a") == ["more.jsonl"]
    (tmp_path / "a" / "manifest.json").unlink()
    assert {path.name for path in artifacts.files_of(tmp_path / "a")} == {"rows.jsonl", "more.jsonl"}
    assert artifacts.files_of(tmp_path / "nowhere") == []


def test_foreign_files_are_not_taken_over(tmp_path):
    make(tmp_path / "base" / "a")
    (tmp_path / "base" / "a" / "notes.txt").write_text("mine")
    assert artifacts.Artifact(tmp_path / "variant" / "a").copy(INPUTS, [tmp_path / "base" / "a"])
    assert {path.name for path in (tmp_path / "variant" / "a").iterdir()} == {"rows.jsonl", "manifest.json"}


def test_a_finished_stage_is_taken_over_from_a_locked_folder(tmp_path):
    make(tmp_path / "base" / "a")
    script = (
        "import sys; from pathlib import Path; from ifqa.storage import artifacts\n"
        f"with artifacts.lock(Path({str(tmp_path / 'base')!r})): print('in', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "in\n"
        assert artifacts.Artifact(tmp_path / "variant" / "a").copy(INPUTS, [tmp_path / "base" / "a"])
        other.kill()
    assert artifacts.Artifact(tmp_path / "variant" / "a").is_made_from(INPUTS)


def test_an_artifact_with_a_broken_manifest_is_passed_over(tmp_path, capsys):
    for name in ("broken", "whole"):
        make(tmp_path / name / "a")
    (tmp_path / "broken" / "a" / "manifest.json").write_text("{")
    others = [tmp_path / "broken" / "a", tmp_path / "whole" / "a"]
    assert not artifacts.Artifact(tmp_path / "variant" / "a").copy(INPUTS, others[:1])
    assert artifacts.Artifact(tmp_path / "variant" / "a").copy(INPUTS, others)
    assert "not taken over from broken: " in capsys.readouterr().err


def test_an_artifact_replaced_during_the_copy_is_not_taken_over(tmp_path, monkeypatch):
    make(tmp_path / "base" / "a")
    copy = artifacts.shutil.copy2

    def copy_and_replace(source, target):
        copy(source, target)
        if source.name == "rows.jsonl":
            make(tmp_path / "base" / "a", {"stage": "other"}, rows=4)

    monkeypatch.setattr(artifacts.shutil, "copy2", copy_and_replace)
    assert not artifacts.Artifact(tmp_path / "variant" / "a").copy(INPUTS, [tmp_path / "base" / "a"])
    assert not (tmp_path / "variant" / "a").exists()
