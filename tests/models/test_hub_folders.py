"""`ifqa publish` lays out folders for the model hub, and removes nothing of the user's."""

import errno
import shutil

import pytest

from ifqa.errors import ConfigError, IfqaError
from ifqa.models.cards import CARDS, WEIGHTS
from ifqa.models.hub_folders import describe_folder, folder_names, write_folders
from ifqa.storage.resources import BUNDLED


def write(*names, to):
    return [folder for _, folder in write_folders(names, to)]


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_has_the_card_the_weights_the_licences(tmp_path):
    (folder,) = write("ranker", to=tmp_path)
    assert folder == tmp_path / "ranker"
    assert names_in(folder) == ["LICENSE", "NOTICE", "README.md", "ranker.json"]
    assert (folder / "README.md").read_text() == (CARDS / "ranker.md").read_text()
    assert (folder / "ranker.json").read_bytes() == (WEIGHTS / "ranker.json").read_bytes()


def test_the_folder_of_the_sample_has_its_metadata(tmp_path):
    (folder,) = write("sample", to=tmp_path)
    sample = [path.name for path in (BUNDLED / "sample").iterdir()]
    assert "croissant.json" in sample
    assert names_in(folder) == sorted([*sample, "LICENSE", "README.md"])


@pytest.mark.parametrize(
    ("config", "rows"),
    [("questions", {"train": 34, "dev": 83, "hard": 83}), ("causal", {"full": 60})],
)
def test_datasets_loads_the_folder_of_the_sample(tmp_path, config, rows):
    from datasets import load_dataset

    (folder,) = write("sample", to=tmp_path)
    splits = load_dataset(str(folder), config, cache_dir=str(tmp_path / "cache"))
    assert {name: split.num_rows for name, split in splits.items()} == rows


@pytest.mark.parametrize("name", folder_names())
def test_all_files_that_a_manifest_lists_are_in_the_folder(name):
    described = describe_folder(name)
    manifests = [path for path in described.copies if path.name == "manifest.json"]
    for path in manifests:
        assert {file.name for file in path.parent.iterdir()} <= described.file_names
    assert {"README.md", "LICENSE"} <= described.file_names


def test_without_names_there_is_a_folder_for_each(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "copyfile", lambda source, target: target.touch())
    assert [folder.name for folder in write(to=tmp_path)] == folder_names()


def test_a_folder_of_an_earlier_call_is_replaced(tmp_path):
    (folder,) = write("ranker", to=tmp_path)
    (folder / "README.md").write_text("old")
    write("ranker", to=tmp_path)
    assert (folder / "README.md").read_text() != "old"
    assert names_in(tmp_path) == [".lock", "ranker"]


@pytest.mark.parametrize("other", ["notes.txt", ".git"])
def test_a_folder_with_another_file_is_refused(tmp_path, other):
    (tmp_path / "ranker").mkdir()
    (tmp_path / "ranker" / other).touch()
    with pytest.raises(ConfigError, match=rf"ranker has {other}, .* name another with --to"):
        write("ranker", to=tmp_path)
    assert names_in(tmp_path / "ranker") == [other]


def test_nothing_is_written_if_any_folder_is_refused(tmp_path):
    (tmp_path / "sample").touch()
    with pytest.raises(ConfigError, match="sample is a file; wanted a folder"):
        write("ranker", "sample", to=tmp_path)
    assert names_in(tmp_path) == ["sample"]


def test_a_link_is_refused(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "ranker").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(IfqaError, match="is a link"):
        write("ranker", to=tmp_path)


def test_an_unknown_name_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="did you mean 'rerank'"):
        write("rerankr", to=tmp_path)


def test_a_full_disk_leaves_the_old_folder(tmp_path, monkeypatch):
    (folder,) = write("ranker", to=tmp_path)

    def fail(*_):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(shutil, "copyfile", fail)
    with pytest.raises(IfqaError, match="no room on the disk"):
        write("ranker", to=tmp_path)
    assert len(names_in(folder)) == 4


def test_the_command_of_an_upload_names_the_kind(tmp_path):
    assert (
        describe_folder("fid").upload_command(tmp_path)
        == f"hf upload YOUR_NAME/ifqa-fid {tmp_path}"
    )
    assert describe_folder("sample").upload_command(tmp_path).endswith(" --repo-type dataset")
