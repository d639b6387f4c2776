"""One training in a folder: what counts as finished, and what is refused."""

import json

import pytest
from refusals import refused
from safetensors import SafetensorError

from ifqa.training import checkpoints

pytestmark = pytest.mark.slow

INPUTS = {"family": "ifqa/full", "settings": {"epochs": 1}}


@pytest.fixture
def finished(tmp_path):
    """A folder with a finished training of `INPUTS`, whose weights are two files, and a file of the
    user's.
    """
    assert checkpoints.begin_training(tmp_path, INPUTS)
    (tmp_path / checkpoints.CHECKPOINTS).mkdir()
    (tmp_path / "encoder").mkdir()
    for name in ("model.safetensors", "encoder/model.safetensors", "mine.safetensors"):
        (tmp_path / name).write_bytes(b"weights")
    checkpoints.finish_training(tmp_path, INPUTS, {"steps": 3}, ["model*.safetensors", "encoder/*"])
    return tmp_path


def test_a_finished_training_is_not_repeated(finished):
    (finished / "mine.safetensors").unlink()
    assert not checkpoints.begin_training(finished, INPUTS)
    record = json.loads((finished / checkpoints.MANIFEST).read_text())["record"]
    assert (record["steps"], sorted(record["files"])) == (
        3,
        ["encoder/model.safetensors", "model.safetensors"],
    )
    assert not (finished / checkpoints.INPUTS).exists()
    assert not (finished / checkpoints.CHECKPOINTS).exists()


@pytest.mark.parametrize("name", ["model.safetensors", "encoder/model.safetensors"])
@pytest.mark.parametrize("altered", [b"Weights", None])
def test_missing_or_altered_weights_are_trained_again(finished, name, altered, capsys):
    if altered is None:
        (finished / name).unlink()
    else:
        (finished / name).write_bytes(altered)
    assert checkpoints.begin_training(finished, INPUTS)
    assert f"{name} is missing or altered; training again" in capsys.readouterr().err
    with refused(r"another training \(changed: settings\)"):
        checkpoints.begin_training(finished, {**INPUTS, "settings": {"epochs": 2}})


def test_a_whole_number_of_an_older_manifest_is_the_same_setting(tmp_path):
    checkpoints.begin_training(tmp_path, {"settings": {"warmup": 1000}})
    assert checkpoints.begin_training(tmp_path, {"settings": {"warmup": 1000.0}})


FOREIGN = (
    "checkpoints/checkpoint-5/weights.bin model.safetensors pytorch_model.bin "
    "ctx_encoder/model.safetensors"
).split()


@pytest.mark.parametrize("name", [*FOREIGN, checkpoints.MANIFEST, checkpoints.INPUTS])
def test_foreign_files_are_refused_and_kept(tmp_path, name):
    precious = tmp_path / name
    precious.parent.mkdir(parents=True, exist_ok=True)
    precious.write_text("[1]")
    with refused(f"{'checkpoints' if 'point-' in name else name} is not from a training of ifqa"):
        checkpoints.begin_training(tmp_path, INPUTS)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [precious]
    assert precious.read_text() == "[1]"


def checkpoint(folder, step, best=None):
    """A complete checkpoint of a training in `folder`, with a file in a folder of its own."""
    path = checkpoints.checkpoint_folder(folder, step)
    (path / "encoder").mkdir(parents=True)
    (path / "encoder/model.safetensors").write_bytes(bytes(9999))
    (path / "trainer_state.json").write_text(json.dumps({"best_global_step": best}))
    checkpoints.mark_complete(path)
    return path


def remove(path):
    path.unlink()


def empty(path):
    path.write_bytes(b"")


def cut(path):
    path.write_bytes(path.read_bytes()[:-5])


def overwrite(path):
    path.write_bytes(bytes([1]) * path.stat().st_size)


def test_without_a_checkpoint_a_training_begins_anew(tmp_path):
    checkpoints.remove_damaged_checkpoints(tmp_path)
    assert checkpoints.newest_checkpoint(tmp_path) is None


@pytest.mark.parametrize(
    "name", ["encoder/model.safetensors", "trainer_state.json", "manifest.json"]
)
@pytest.mark.parametrize("damage", [remove, empty, cut, overwrite])
def test_a_damaged_checkpoint_is_named_in_one_line_and_the_one_before_is_used(
    tmp_path, name, damage, capsys
):
    before, damaged, incomplete = (checkpoint(tmp_path, step) for step in (9, 10, 11))
    remove(incomplete / "manifest.json")
    damage(damaged / name)
    checkpoints.remove_damaged_checkpoints(tmp_path)
    assert checkpoints.newest_checkpoint(tmp_path) == before
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[0] for line in lines] == [str(incomplete), str(damaged)]
    assert name in lines[1]


def test_whole_checkpoints_stay(tmp_path):
    kept = [checkpoint(tmp_path, step) for step in (9, 10)]
    checkpoints.remove_damaged_checkpoints(tmp_path)
    assert [path.exists() for path in kept] == [True, True]


def test_a_checkpoint_whose_manifest_lists_no_files_is_not_trusted(tmp_path):
    old = checkpoint(tmp_path, 9)
    (old / "manifest.json").write_text('{"step": 9}')
    checkpoints.remove_damaged_checkpoints(tmp_path)
    assert not old.exists()


@pytest.mark.parametrize("damage", [remove, overwrite])
def test_a_checkpoint_whose_best_weights_are_damaged_is_not_used(tmp_path, damage, capsys):
    best = checkpoint(tmp_path, 5, best=5)
    newest = checkpoint(tmp_path, 10, best=5)
    damage(best / "encoder/model.safetensors")
    checkpoints.remove_damaged_checkpoints(tmp_path)
    assert checkpoints.newest_checkpoint(tmp_path) is None
    assert (
        f"{newest}: the best weights are in checkpoint-5, where encoder/model.safetensors"
        in capsys.readouterr().err
    )


FULL_DISK = [
    RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 576 vs 534"),
    RuntimeError("PytorchStreamWriter failed writing file data/0: file write failed"),
    SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"),
]


@pytest.mark.parametrize("error", FULL_DISK)
def test_a_full_disk_is_one_line_whichever_library_writes(tmp_path, error):
    with refused("no room on the disk to write"), checkpoints.report_full_disk(tmp_path):
        raise error


def test_a_fault_of_a_network_is_not_taken_for_a_full_disk(tmp_path):
    with pytest.raises(RuntimeError, match="shapes"), checkpoints.report_full_disk(tmp_path):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")


def test_a_resumed_training_continues_its_log_and_a_new_one_begins_it_again(tmp_path, monkeypatch):
    def lines():
        return [json.loads(line) for line in (tmp_path / checkpoints.LOG).read_text().splitlines()]

    log = checkpoints.TrainingLog(tmp_path, 0, 40)
    log.add(10, loss=0.123456789, learning_rate=5e-5)
    log.add(20, loss=float("nan"))
    log.add(20, dev_EM=40.0)
    log.add(30, loss=0.1)
    assert [line["step"] for line in lines()] == [10, 20, 20, 30]
    assert (lines()[0]["loss"], lines()[0]["steps"], lines()[0]["learning_rate"]) == (
        0.123457,
        40,
        5e-5,
    )
    assert lines()[0]["steps_per_second"] > 0
    assert lines()[2] == {"step": 20, "steps": 40, "dev_EM": 40.0}
    with open(tmp_path / checkpoints.LOG, "ab") as handle:
        handle.write(b'{"step": 31, "lo')  # killed as it wrote
    checkpoints.TrainingLog(tmp_path, 20, 40).add(30, loss=0.2)
    assert [(line["step"], line.get("loss")) for line in lines()] == [
        (10, 0.123457),
        (20, None),
        (20, None),
        (30, 0.2),
    ]
    checkpoints.TrainingLog(tmp_path, 0, 40)
    assert lines() == []
