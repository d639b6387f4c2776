"""Scans are read by ocrmypdf if that is asked for; corpora without it stay as they were."""

import pytest
from mixed_documents import pdf
from opened_sources import documents

from ifqa.corpus.documents import ocr
from ifqa.corpus.work_units import FileRecord
from ifqa.errors import MissingInput


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/scan.pdf").write_bytes(pdf([[], []]))
    (tmp_path / "docs/text.pdf").write_bytes(pdf([["A text."]]))
    return tmp_path / "docs"


def program(tmp_path, monkeypatch, script):
    """An ocrmypdf of a shell script; its last two arguments are the scan and the file to write."""
    path = tmp_path / "bin/ocrmypdf"
    path.parent.mkdir()
    path.write_text(f"#!/bin/sh\nwhile [ $# -gt 2 ]; do shift; done\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(path.parent), prepend=":")


def records(folder) -> dict[str, FileRecord]:
    [unit, *_] = documents(str(folder), ocr=True).work_units()
    return {record.key.rpartition("/")[2]: record for record in unit.make_shard().files}


@pytest.fixture
def wheel_program(tmp_path, monkeypatch):
    """A program that reads the same text in every scan; the file to which it adds each scan."""
    (tmp_path / "read.pdf").write_bytes(pdf([["Ruth Hallam built the wheel."]]))
    program(tmp_path, monkeypatch, f'cat "$1" >> {tmp_path}/scans; cp {tmp_path}/read.pdf "$2"')
    return tmp_path / "scans"


@pytest.mark.usefixtures("wheel_program")
def test_a_scan_gets_its_text(folder):
    assert [(name, record.words, record.reason) for name, record in records(folder).items()] == [
        ("scan.pdf", 5, ""),
        ("text.pdf", 2, ""),
    ]


def test_only_scans_are_given_to_the_program(folder, wheel_program):
    records(folder)
    assert wheel_program.read_bytes() == (folder / "scan.pdf").read_bytes()


@pytest.fixture
def mixed(folder):
    """A PDF of two pages of which the second is a picture."""
    picture = "q 400 0 0 400 100 200 cm BI /W 1 /H 1 /CS /G /BPC 8 ID \x20 EI Q"
    stream = f"BT /F1 11 Tf 60 780 Td () Tj ET {picture}"
    empty = b"BT /F1 11 Tf 60 780 Td () Tj 0 -16 Td ET"
    content = pdf([["A cover."], [""]])
    assert content.count(empty) == 1
    (folder / "mixed.pdf").write_bytes(content.replace(empty, stream.encode()))
    return folder


@pytest.mark.usefixtures("wheel_program")
def test_pages_without_text_get_theirs(mixed):
    assert records(mixed)["mixed.pdf"].words == 5


def test_pages_without_text_are_told_if_they_cannot_be_read(mixed, tmp_path, monkeypatch):
    program(tmp_path, monkeypatch, "exit 2")
    record = records(mixed)["mixed.pdf"]
    assert record.words == 2
    assert record.unread == "1 page without text (ocrmypdf cannot read it (exit code 2))"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (
            'echo "page 1"; echo "  InputFileError: broken" >&2; exit 2',
            "ocrmypdf cannot read it (InputFileError: broken)",
        ),
        ("exit 0", "ocrmypdf cannot read it (exit code 0)"),
        ("/bin/sleep 60", "ocrmypdf takes more than 0.5 seconds to read it"),
        ('cp "$1" "$2"', "no text on its 2 pages: if they were scanned, --ocr reads them"),
    ],
)
def test_a_scan_that_cannot_be_read_is_left_out_with_the_reason(
    folder, tmp_path, monkeypatch, script, reason
):
    monkeypatch.setattr(ocr, "SECONDS", 0.5 if "sleep" in script else 60)
    program(tmp_path, monkeypatch, script)
    assert records(folder)["scan.pdf"].reason == reason


def test_without_the_program_the_command_to_install_it_is_told(folder, monkeypatch):
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(
        MissingInput, match="ocrmypdf is not installed; install it: apt install ocrmypdf"
    ):
        documents(str(folder), ocr=True).check()


def test_only_a_corpus_with_ocr_has_another_identity(folder):
    plain = documents(str(folder))
    scanned = documents(str(folder), ocr=True)
    assert "ocr" not in plain.identity({})
    assert "ocr" not in plain.chunking.identity
    assert scanned.identity({}) == plain.identity({}) | {"ocr": True}
    assert scanned.key_prefix != plain.key_prefix
