"""Runs the notebooks on the bundled sample and saves their outputs, so that they can be read
without running them.

    python experiments/notebooks/run.py [NAME ...]

Run it after a change to a notebook, or to a number that a notebook shows; a test fails until you
do. Each notebook runs in a new folder, so its outputs show nothing of this machine or of an earlier
run.
"""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

FOLDER = Path(__file__).parent
#: Offline, and with one thread, so that sums are always taken in the same order.
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "JUPYTER_PLATFORM_DIRS": "1",
    "OMP_NUM_THREADS": "1",
}
#: Variables that would bring a user's own configuration into the outputs.
SETTINGS = ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")


def opened(name: str) -> NotebookNode:
    """A notebook by its name."""
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def client(book: NotebookNode, workplace: Path) -> NotebookClient:
    """A client that runs a notebook's cells in a working directory."""
    where = {"metadata": {"path": str(workplace)}}
    return NotebookClient(
        book,
        kernel_name="python3",
        timeout=None,
        resources=where,
        record_timing=False,
        coalesce_streams=True,
    )


def tidy(book: NotebookNode) -> None:
    """Remove from a notebook that was run: progress on stderr, and the plain text of outputs that
    have HTML or an image.
    """
    book.metadata.language_info = NotebookNode(name="python")
    for cell in book.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
            for one in cell.outputs:
                if {"text/html", "image/png"} & one.get("data", {}).keys():
                    one.data.pop("text/plain", None)


def main(names: list[str]) -> None:
    """Run the named notebooks, or all, and write them in place."""
    for name in names or sorted(path.stem for path in FOLDER.glob("*.ipynb")):
        with TemporaryDirectory() as folder:
            os.environ |= ENVIRONMENT | dict.fromkeys(SETTINGS, f"{folder}/settings")
            book = opened(name)
            client(book, Path(folder)).execute()
        tidy(book)
        nbformat.write(book, FOLDER / f"{name}.ipynb")


if __name__ == "__main__":
    main(sys.argv[1:])
