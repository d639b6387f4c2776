import errno
import json
import os
import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from command_line import locking_process
from refusals import refused

from ifqa.errors import IfqaError
from ifqa.storage import artifacts
from ifqa.storage.artifacts import Artifact, list_files, lock, read_manifest, unlisted_files
from ifqa.storage.files import write_jsonl

INPUTS: dict[str, object] = {"stage": "test", "settings": {"k": 5}}
OTHER: dict[str, object] = {"stage": "other"}


def make(folder, inputs=INPUTS, rows=3, **options):
    with Artifact(folder).make(lambda: inputs, **options) as draft:
        assert draft is not None
        write_jsonl(draft.folder / "rows.jsonl", ({"row": n} for n in range(rows)))
        draft.record["rows"] = rows
    return folder


@pytest.fixture
def finished(tmp_path):
    return make(tmp_path / "a")


def names(folder):
    return {path.name for path in folder.iterdir()}


FULL = (OSError(errno.ENOSPC, "full"), OSError(errno.EFBIG, "full"))


@pytest.mark.parametrize("error", [ZeroDivisionError("zero"), *FULL])
def test_a_failure_or_a_full_disk_leaves_the_old_artifact(finished, error):
    expected = pytest.raises((ZeroDivisionError, IfqaError), match=r"^zero$|no room on the disk")
    with expected, Artifact(finished).make(lambda: OTHER):
        raise error
    assert Artifact(finished).is_current_for(INPUTS)


@pytest.mark.parametrize(
    ("resume", "inputs", "kept"), [("same", INPUTS, 1), ("same", OTHER, 0), ("", INPUTS, 0)]
)
def test_only_a_build_with_the_same_inputs_is_resumed(tmp_path, resume, inputs, kept):
    artifact = Artifact(tmp_path / "a")
    with pytest.raises(KeyboardInterrupt), artifact.make(lambda: INPUTS, resume=resume) as draft:
        assert draft is not None
        (draft.folder / "half.txt").write_text("half")
        raise KeyboardInterrupt
    with artifact.make(lambda: inputs, resume=resume) as draft:
        assert draft is not None
        assert (draft.folder / "half.txt").exists() == kept
    assert (tmp_path / "a/half.txt").exists() == kept


def test_artifacts_are_read_on_a_read_only_file_system(finished, tmp_path, monkeypatch):
    def refuse_writes(call, writes):
        def checked_call(path, *args, **kwargs):
            if Path(path).is_relative_to(tmp_path) and writes(path, *args):
                raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
            return call(path, *args, **kwargs)

        monkeypatch.setattr(os, call.__name__, checked_call)

    refuse_writes(os.open, lambda path, flags, *_: flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
    refuse_writes(os.mkdir, lambda path, *_: not Path(path).exists())
    with lock(tmp_path), Artifact(finished).make(lambda: INPUTS) as draft:
        assert draft is None
    for folder in (tmp_path / "b", tmp_path / "new/a"):
        with pytest.raises(OSError, match=r"Read-only file system.*partial"):
            make(folder)


def test_a_second_process_is_locked_out(tmp_path):
    with locking_process(tmp_path) as process:
        assert process.stdout.readline() == "in\n"
        with pytest.raises(IfqaError, match="another process is working in"), lock(tmp_path):
            pass
    with lock(tmp_path):  # the killed process's lock is free
        pass


def test_a_finished_artifact_may_be_copied_out_of_a_locked_folder(finished, tmp_path):
    with locking_process(tmp_path) as process:
        assert process.stdout.readline() == "in\n"
        assert Artifact(tmp_path / "variant/a").copy(INPUTS, [finished])
    assert Artifact(tmp_path / "variant/a").is_current_for(INPUTS)


def test_a_process_may_lock_twice(tmp_path):
    with lock(tmp_path):
        with lock(tmp_path):
            pass
        with locking_process(tmp_path, code="pass") as process:
            assert "another process is working in" in process.communicate()[1], (
                "the inner lock released the outer lock"
            )


def test_another_process_may_wait_for_a_lock(tmp_path):
    with ExitStack() as processes:
        with lock(tmp_path):
            process = processes.enter_context(
                locking_process(tmp_path, options=", wait=True", code="print('in')")
            )
            assert (
                process.stderr.readline()
                == f"another process is working in {tmp_path}; waiting until it ends\n"
            )
        assert process.communicate() == ("in\n", "")


def test_an_artifact_with_the_same_inputs_is_copied_without_foreign_files(
    finished, tmp_path, capsys
):
    folder = tmp_path / "variant/a"
    broken = make(tmp_path / "broken/a")
    (finished / "notes.txt").write_text("mine")
    (broken / "manifest.json").write_text("{")
    assert not Artifact(folder).copy(OTHER, [finished])
    assert not Artifact(folder).copy(INPUTS, [broken])
    assert "not copied from broken: " in capsys.readouterr().err
    with Artifact(folder).make(lambda: INPUTS, others=[broken, finished]) as draft:
        assert draft is None
    assert Artifact(folder).is_current_for(INPUTS)
    assert not Artifact(folder).is_current_for(INPUTS | {"settings": {"k": 6}})
    manifest = read_manifest(folder)
    assert manifest is not None
    record: Any = manifest["record"]
    assert record["rows"] == 3
    assert names(folder) == {"rows.jsonl", "manifest.json"}
    assert names(tmp_path / "variant") == {".lock", "a"}
    assert (folder / "rows.jsonl").read_text() == (finished / "rows.jsonl").read_text()


def test_an_artifact_replaced_during_the_copy_is_not_used(finished, tmp_path, monkeypatch):
    copy = artifacts.shutil.copy2

    def copy_and_replace(source, target):
        copy(source, target)
        if source.name == "rows.jsonl":
            make(finished, OTHER, rows=4)

    monkeypatch.setattr(artifacts.shutil, "copy2", copy_and_replace)
    assert not Artifact(tmp_path / "variant/a").copy(INPUTS, [finished])
    assert not (tmp_path / "variant/a").exists()


def test_an_input_that_changes_during_the_build_is_refused(tmp_path):
    inputs = iter([INPUTS, OTHER])
    artifact = Artifact(tmp_path / "a")
    with (
        pytest.raises(IfqaError, match="changed while it was being made"),
        artifact.make(lambda: next(inputs)),
    ):
        pass
    assert not (tmp_path / "a").exists()


def damage(path):
    """Change a byte, keep the size."""
    content = path.read_bytes()
    path.write_bytes(bytes([content[0] ^ 1]) + content[1:])


def test_only_a_damaged_artifact_is_built_again(finished, tmp_path, monkeypatch, capsys):
    with Artifact(finished).make(lambda: INPUTS) as draft:
        assert draft is None
    damage(finished / "rows.jsonl")
    assert not Artifact(finished).is_current_for(INPUTS)
    assert Artifact(finished).damage == "rows.jsonl"
    with monkeypatch.context() as patch:
        patch.setattr(artifacts, "_SMALL", 1)  # a large artifact is hashed only when it is copied
        assert Artifact(finished).damage == ""
        assert not Artifact(tmp_path / "variant/a").copy(INPUTS, [finished])
    make(finished)
    assert (
        "rows.jsonl is missing or was changed; building the artifact again"
        in capsys.readouterr().err
    )
    assert Artifact(finished).is_current_for(INPUTS)
    (finished / "rows.jsonl").write_text("cut\n")
    assert not Artifact(finished).is_current_for(INPUTS)


@pytest.fixture
def elsewhere(tmp_path):
    """A folder with a file that no artifact may touch."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    yield folder
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"mine.txt": "mine"}


@pytest.mark.parametrize(
    ("name", "resume"), [("a", ""), (".a.partial", ""), (".a.old", ""), (".a.partial/b/c", "any")]
)
def test_a_link_that_would_be_followed_is_refused(tmp_path, elsewhere, name, resume):
    link = tmp_path / "work" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(elsewhere)
    with pytest.raises(IfqaError, match="is a link, and its target is not part of"):
        make(tmp_path / "work/a", resume=resume)
    assert link.is_symlink()


@pytest.mark.parametrize("name", [".a.partial", ".a.old"])
def test_links_of_a_killed_build_are_removed_without_their_targets(tmp_path, elsewhere, name):
    folder = tmp_path / "work" / name / "input-1"
    folder.mkdir(parents=True)
    (folder / "folder").symlink_to(elsewhere)
    (folder / "file").symlink_to(elsewhere / "mine.txt")
    assert Artifact(make(tmp_path / "work/a")).is_current_for(INPUTS)
    assert not folder.exists()


@pytest.mark.parametrize(
    ("stage", "changes", "key"),
    [
        ("test", {"files": {}}, "files"),
        ("test", {"files": {"a": {"bytes": "9", "sha256": ""}}}, "files.a.bytes"),
        ("test", {"files": {"../a": {"bytes": 9, "sha256": ""}}}, "files.../a"),
        ("test", {"files": {"/a": {"bytes": 9, "sha256": ""}}}, "files./a"),
        ("test", {"at": None}, "at"),
        ("test", {"seconds": float("inf")}, "seconds"),
        ("test", {"spent": {}}, "spent.calls"),
        ("passages", {"sources": {"a.xml": 3}}, "sources.a.xml"),
        ("test", "at", "at"),
        ("passages", "sources", "sources"),
        ("index", "passages", "passages"),
    ],
)
def test_a_manifest_with_a_missing_or_wrong_key_is_refused(tmp_path, stage, changes, key):
    with Artifact(tmp_path / "a").make(lambda: {"stage": stage}) as draft:
        assert draft is not None
        write_jsonl(draft.folder / "rows.jsonl", [{"row": 1}])
        draft.record |= {"passages": 1, "sources": {"a.xml": [1, 2, "3"]}}
    path = tmp_path / "a/manifest.json"
    manifest = json.loads(path.read_text())
    assert read_manifest(tmp_path / "a") == manifest
    if isinstance(changes, str):
        del manifest["record"][changes]
    else:
        manifest["record"] |= changes
    path.write_text(json.dumps(manifest))
    with refused(
        rf"manifest\.json: not as ifqa writes it \(record\.{re.escape(key)}: .*; remove the folder"
    ):
        Artifact(tmp_path / "a").is_current_for(INPUTS)


@pytest.mark.parametrize(("inputs", "name"), [(INPUTS, "notes.txt"), (OTHER, "more/notes.txt")])
def test_a_folder_with_a_foreign_file_is_not_replaced(finished, tmp_path, inputs, name):
    damage(finished / "rows.jsonl")
    notes = finished / name
    notes.parent.mkdir(exist_ok=True)
    notes.write_text("mine")
    with pytest.raises(
        IfqaError,
        match=f"{name} was not written by ifqa, and would be removed .*; move it elsewhere",
    ):
        make(finished, inputs)
    assert notes.read_text() == "mine"
    assert not (tmp_path / ".a.partial").exists(), "the build started"
    notes.unlink()
    make(finished, inputs)
    (finished / "manifest.json").unlink()
    with pytest.raises(IfqaError, match=r"rows\.jsonl was not written by ifqa"):
        make(finished, inputs)
    assert (finished / "rows.jsonl").exists()


def test_a_foreign_file_put_there_during_the_build_is_kept(finished, tmp_path):
    with (
        refused(r"late\.txt was not written by ifqa"),
        Artifact(finished).make(lambda: OTHER) as draft,
    ):
        assert draft is not None
        write_jsonl(draft.folder / "rows.jsonl", [{"row": 1}])
        (finished / "late.txt").write_text("mine")
    (finished / "late.txt").rename(tmp_path / "late.txt")
    with Artifact(finished).make(lambda: OTHER) as draft:
        assert draft is None, "the finished draft was not published"
    assert Artifact(finished).is_current_for(OTHER)


def test_only_listed_files_belong_to_an_artifact(finished, tmp_path):
    assert unlisted_files(finished) == []
    (finished / "more.jsonl").write_text("{}\n")
    assert list_files(finished) == [finished / "rows.jsonl"]
    assert unlisted_files(finished) == ["more.jsonl"]
    assert list_files(tmp_path / "nowhere") == []


def test_hidden_files_in_an_artifact_are_ignored(finished):
    (finished / ".DS_Store").write_text("")
    (finished / "empty").mkdir()
    make(finished, OTHER)
    assert Artifact(finished).is_current_for(OTHER)


def test_without_a_manifest_all_but_hidden_files_belong_to_an_artifact(finished):
    (finished / ".DS_Store").write_text("")
    (finished / "empty").mkdir()
    make(finished, OTHER)
    (finished / "manifest.json").unlink()
    assert list_files(finished) == [finished / "rows.jsonl"]
