import errno
import json
import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from ifqa.errors import IfqaError
from ifqa.storage import artifacts
from ifqa.storage.artifacts import Artifact, list_files, lock, read_manifest, unlisted_files
from ifqa.storage.files import write_jsonl

INPUTS = {"stage": "test", "settings": {"k": 5}}
OTHER = {"stage": "other"}


def make(folder, inputs=INPUTS, rows=3, **options):
    with Artifact(folder).make(lambda: inputs, **options) as draft:
        write_jsonl(draft.folder / "rows.jsonl", ({"row": n} for n in range(rows)))
        draft.record["rows"] = rows


@pytest.fixture
def whole(tmp_path):
    """A finished artifact."""
    make(tmp_path / "a")
    return tmp_path / "a"


def names(folder):
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("error", "raised", "message"),
    [
        (ZeroDivisionError("zero"), ZeroDivisionError, "zero"),
        (OSError(errno.ENOSPC, "full"), IfqaError, "no room on the disk"),
        (OSError(errno.EFBIG, "full"), IfqaError, "no room on the disk"),
    ],
)
def test_a_failure_or_a_full_disk_leaves_what_was_there(whole, error, raised, message):
    with pytest.raises(raised, match=message), Artifact(whole).make(lambda: OTHER):
        raise error
    assert Artifact(whole).is_current_for(INPUTS)


@pytest.mark.parametrize(("resume", "inputs", "kept"), [("same", INPUTS, 1), ("same", OTHER, 0), ("", INPUTS, 0)])
def test_only_an_attempt_with_the_same_inputs_is_resumed(tmp_path, resume, inputs, kept):
    artifact = Artifact(tmp_path / "a")
    with pytest.raises(KeyboardInterrupt), artifact.make(lambda: INPUTS, resume=resume) as draft:
        (draft.folder / "half.txt").write_text("half")
        raise KeyboardInterrupt
    with artifact.make(lambda: inputs, resume=resume) as draft:
        assert (draft.folder / "half.txt").exists() == kept
    assert (tmp_path / "a/half.txt").exists() == kept


def test_artifacts_can_be_used_on_a_read_only_file_system(whole, tmp_path, monkeypatch):
    def read_only(call, writes):
        def refuse(path, *more, **named):
            if Path(path).is_relative_to(tmp_path) and writes(path, *more):
                raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
            return call(path, *more, **named)

        monkeypatch.setattr(os, call.__name__, refuse)

    read_only(os.open, lambda path, flags, *_: flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
    read_only(os.mkdir, lambda path, *_: not Path(path).exists())
    with lock(tmp_path), Artifact(whole).make(lambda: INPUTS) as draft:
        assert draft is None
    for folder in (tmp_path / "b", tmp_path / "new/a"):
        with pytest.raises(OSError, match=r"Read-only file system.*partial"):
            make(folder)


@contextmanager
def another_process(folder, options="", code="print('in', flush=True); sys.stdin.read()"):
    script = (
        "import sys; from pathlib import Path; from ifqa.progress import show_messages\n"
        "from ifqa.storage.artifacts import lock; show_messages()\n"
        f"with lock(Path({str(folder)!r}){options}): {code}"
    )
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([sys.executable, "-c", script], text=True, **pipes) as other:
        yield other
        other.kill()


def test_a_second_process_is_kept_out_and_may_take_over_what_is_finished(whole, tmp_path):
    with another_process(tmp_path) as other:
        assert other.stdout.readline() == "in\n"
        with pytest.raises(IfqaError, match="another process is working in"), lock(tmp_path):
            pass
        assert Artifact(tmp_path / "variant/a").copy(INPUTS, [whole])
    with lock(tmp_path):  # a killed process holds nothing
        pass
    assert Artifact(tmp_path / "variant/a").is_current_for(INPUTS)


def test_a_lock_may_be_taken_again_by_its_own_process_and_waited_for_by_another(tmp_path):
    with ExitStack() as processes:
        with lock(tmp_path):
            with lock(tmp_path):
                pass
            other = processes.enter_context(another_process(tmp_path, code="pass"))
            assert "another process is working in" in other.communicate()[1], "the inner lock's end is not the outer's"
            other = processes.enter_context(another_process(tmp_path, options=", wait=True", code="print('in')"))
            assert other.stderr.readline() == f"another process is working in {tmp_path}; waiting until it ends\n"
        assert other.communicate() == ("in\n", "")


def test_a_whole_artifact_of_the_same_inputs_is_taken_over_without_foreign_files(whole, tmp_path, capsys):
    folder, broken = tmp_path / "variant/a", tmp_path / "broken/a"
    (whole / "notes.txt").write_text("mine")
    make(broken)
    (broken / "manifest.json").write_text("{")
    assert not Artifact(folder).copy(OTHER, [whole])
    assert not Artifact(folder).copy(INPUTS, [broken])
    assert "not copied from broken: " in capsys.readouterr().err
    with Artifact(folder).make(lambda: INPUTS, others=[broken, whole]) as draft:
        assert draft is None
    assert Artifact(folder).is_current_for(INPUTS)
    assert not Artifact(folder).is_current_for(INPUTS | {"settings": {"k": 6}})
    assert read_manifest(folder)["record"]["rows"] == 3
    assert names(folder) == {"rows.jsonl", "manifest.json"}
    assert names(tmp_path / "variant") == {".lock", "a"}
    assert (folder / "rows.jsonl").read_text() == (whole / "rows.jsonl").read_text()


def test_an_artifact_replaced_during_the_copy_is_not_taken_over(whole, tmp_path, monkeypatch):
    copy = artifacts.shutil.copy2

    def copy_and_replace(source, target):
        copy(source, target)
        if source.name == "rows.jsonl":
            make(whole, OTHER, rows=4)

    monkeypatch.setattr(artifacts.shutil, "copy2", copy_and_replace)
    assert not Artifact(tmp_path / "variant/a").copy(INPUTS, [whole])
    assert not (tmp_path / "variant/a").exists()


def test_an_input_that_changes_during_the_work_is_refused(tmp_path):
    answers, artifact = iter([INPUTS, OTHER]), Artifact(tmp_path / "a")
    with pytest.raises(IfqaError, match="changed while it was being made"), artifact.make(lambda: next(answers)):
        pass
    assert not (tmp_path / "a").exists()


def damage(path):
    """Other bytes of the same size, and a time of change of their own."""
    content = path.read_bytes()
    path.write_bytes(bytes([content[0] ^ 1]) + content[1:])


def test_a_whole_artifact_is_not_made_again_and_a_damaged_one_is(whole, tmp_path, monkeypatch, capsys):
    with Artifact(whole).make(lambda: INPUTS) as draft:
        assert draft is None
    damage(whole / "rows.jsonl")
    assert not Artifact(whole).is_current_for(INPUTS)
    assert Artifact(whole).damage == "rows.jsonl"
    with monkeypatch.context() as patch:
        patch.setattr(artifacts, "_SMALL", 1)  # a large one is hashed only when it is copied
        assert Artifact(whole).damage == ""
        assert not Artifact(tmp_path / "variant/a").copy(INPUTS, [whole])
    make(whole)
    assert "rows.jsonl is missing or was changed; building the artifact again" in capsys.readouterr().err
    assert Artifact(whole).is_current_for(INPUTS)
    (whole / "rows.jsonl").write_text("cut\n")
    assert not Artifact(whole).is_current_for(INPUTS)


@pytest.fixture
def elsewhere(tmp_path):
    """A folder with a file that no artifact may touch."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    yield folder
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"mine.txt": "mine"}


@pytest.mark.parametrize(("link", "resume"), [("a", ""), (".a.partial", ""), (".a.old", ""), (".a.partial/b/c", "any")])
def test_a_link_that_would_be_followed_is_refused(tmp_path, elsewhere, link, resume):
    place = tmp_path / "work" / link
    place.parent.mkdir(parents=True)
    place.symlink_to(elsewhere)
    with pytest.raises(IfqaError, match="is a link, and its target is not part of"):
        make(tmp_path / "work/a", resume=resume)
    assert place.is_symlink()


@pytest.mark.parametrize("place", [".a.partial", ".a.old"])
def test_a_link_that_a_killed_build_left_is_removed_and_not_followed(tmp_path, elsewhere, place):
    left = tmp_path / "work" / place / "input-1"
    left.mkdir(parents=True)
    (left / "folder").symlink_to(elsewhere)
    (left / "file").symlink_to(elsewhere / "mine.txt")
    make(tmp_path / "work/a")
    assert Artifact(tmp_path / "work/a").is_current_for(INPUTS)
    assert not left.exists()


@pytest.mark.parametrize(
    ("stage", "changes", "place"),
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
def test_a_manifest_that_lacks_a_key_or_has_a_value_of_another_type_is_refused(tmp_path, stage, changes, place):
    with Artifact(tmp_path / "a").make(lambda: {"stage": stage}) as draft:
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
    with pytest.raises(IfqaError) as refused:
        Artifact(tmp_path / "a").is_current_for(INPUTS)
    assert f"manifest.json: not as ifqa writes it (record.{place}: " in str(refused.value)
    assert "; remove the folder" in str(refused.value)


@pytest.mark.parametrize(("inputs", "name"), [(INPUTS, "notes.txt"), (OTHER, "more/notes.txt")])
def test_a_folder_that_holds_a_foreign_file_is_not_replaced(whole, tmp_path, inputs, name):
    damage(whole / "rows.jsonl")
    notes = whole / name
    notes.parent.mkdir(exist_ok=True)
    notes.write_text("mine")
    with pytest.raises(IfqaError, match=f"{name} was not written by ifqa, and would be removed .*; move it elsewhere"):
        make(whole, inputs)
    assert notes.read_text() == "mine"
    assert not (tmp_path / ".a.partial").exists(), "it is said before the work"
    notes.unlink()
    make(whole, inputs)
    (whole / "manifest.json").unlink()
    with pytest.raises(IfqaError, match=r"rows\.jsonl was not written by ifqa"):
        make(whole, inputs)
    assert (whole / "rows.jsonl").exists()


def test_a_foreign_file_that_comes_during_the_work_is_kept(whole, tmp_path):
    refused = pytest.raises(IfqaError, match=r"late\.txt was not written by ifqa")
    with refused, Artifact(whole).make(lambda: OTHER) as draft:
        write_jsonl(draft.folder / "rows.jsonl", [{"row": 1}])
        (whole / "late.txt").write_text("mine")
    (whole / "late.txt").rename(tmp_path / "late.txt")
    with Artifact(whole).make(lambda: OTHER) as draft:
        assert draft is None, "the work was finished, and its folder waited to be moved into place"
    assert Artifact(whole).is_current_for(OTHER)


def test_only_listed_files_are_an_artifacts_own_and_hidden_ones_and_empty_folders_do_not_matter(whole, tmp_path):
    assert unlisted_files(whole) == []
    (whole / "more.jsonl").write_text("{}\n")
    assert list_files(whole) == [whole / "rows.jsonl"]
    assert unlisted_files(whole) == ["more.jsonl"]
    (whole / "more.jsonl").unlink()
    (whole / ".DS_Store").write_text("")
    (whole / "empty").mkdir()
    make(whole, OTHER)
    assert Artifact(whole).is_current_for(OTHER)
    (whole / "manifest.json").unlink()
    assert list_files(whole) == [whole / "rows.jsonl"]
    assert list_files(tmp_path / "nowhere") == []
