"""Run the notebooks on the bundled sample and keep what they show, so that they can be read without being run.

    python experiments/notebooks/run.py [NAME ...]

Do it after any change of a notebook, or of a number that one shows; a test says so. Each runs in a new folder, so that
nothing of this machine or of an earlier run is shown.
"""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

FOLDER = Path(__file__).parent
#: Nothing is fetched, and one thread adds up numbers in one order.
ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "JUPYTER_PLATFORM_DIRS": "1", "OMP_NUM_THREADS": "1"}
#: Where a user's own settings would change what is shown.
SETTINGS = ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")


def opened(name: str) -> NotebookNode:
    """A notebook by its name."""
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def client(book: NotebookNode, workplace: Path) -> NotebookClient:
    """What runs a notebook's cells in a working directory."""
    where = {"metadata": {"path": str(workplace)}}
    return NotebookClient(
        book, kernel_name="python3", timeout=None, resources=where, record_timing=False, coalesce_streams=True
    )


def tidy(book: NotebookNode) -> None:
    """Leave in a notebook that was run only what its reader looks at: no progress, no second form of what HTML shows."""
    book.metadata.language_info = NotebookNode(name="python")
    for cell in book.cells:
        if cell.cell_type == "code":
            cell.outputs = [one for one in cell.outputs if one.get("name") != "stderr"]
            for one in cell.outputs:
                if {"text/html", "image/png"} & one.get("data", {}).keys():
                    one.data.pop("text/plain", None)


def main(names: list[str]) -> None:
    """Run these, or all, and write them where they lie."""
    for name in names or sorted(path.stem for path in FOLDER.glob("*.ipynb")):
        with TemporaryDirectory() as folder:
            os.environ |= ENVIRONMENT | dict.fromkeys(SETTINGS, f"{folder}/settings")
            book = opened(name)
            client(book, Path(folder)).execute()
        tidy(book)
        nbformat.write(book, FOLDER / f"{name}.ipynb")


if __name__ == "__main__":
    main(sys.argv[1:])
