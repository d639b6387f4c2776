"""The page of all results, as text for a server."""

import tempfile
from pathlib import Path

from ifqa.report.browse import browse
from ifqa.report.page import write_page
from ifqa.report.records import read_records
from ifqa.report.results import gather
from ifqa.report.table import grids


def results_page(root: Path = Path(), served: bool = False) -> str:
    """The HTML text of the results below the working directory.

    Raises:
        IfqaError: a record, or a file of a finished experiment, is damaged.
    """
    results = gather(read_records())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report.html")
        write_page(path, grids(results), [], browse([one.experiment for one in results if one.here]), "")
        return path.read_text(encoding="utf-8")
