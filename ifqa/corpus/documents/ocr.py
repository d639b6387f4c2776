"""Adds text to scanned PDF files by the program ocrmypdf."""

import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from ifqa.corpus.documents.decoding import UnreadableFile
from ifqa.errors import MissingInput

SECONDS = 900.0  # for a file; a page takes a few


def require_program() -> None:
    """Raise MissingInput if ocrmypdf is not installed."""
    if shutil.which("ocrmypdf") is None:
        raise MissingInput(
            "ocr: ocrmypdf is not installed; install it: apt install ocrmypdf, or brew "
            "install ocrmypdf"
        )


def add_text(content: bytes) -> bytes:
    """A PDF with text over its scanned pages.

    UnreadableFile if ocrmypdf fails or takes too long.
    """
    with TemporaryDirectory(prefix="ifqa-ocr-") as folder:
        scan, readable, log = (Path(folder, name) for name in ("scan.pdf", "readable.pdf", "log"))
        scan.write_bytes(content)
        command = [
            "ocrmypdf",
            "--skip-text",
            "--output-type=pdf",
            "--jobs=1",
            "--quiet",
            str(scan),
            str(readable),
        ]
        # A pipe would wait for programs that a killed ocrmypdf leaves behind
        with open(log, "wb") as output:
            try:
                code = subprocess.call(
                    command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, timeout=SECONDS
                )
            except subprocess.TimeoutExpired as error:
                raise UnreadableFile(
                    f"ocrmypdf takes more than {SECONDS:g} seconds to read it"
                ) from error
        if code or not readable.is_file():
            lines = [
                f"exit code {code}",
                *filter(str.strip, log.read_text(errors="replace").split("\n")),
            ]
            raise UnreadableFile(f"ocrmypdf cannot read it ({lines[-1].strip()[:200]})")
        return readable.read_bytes()
