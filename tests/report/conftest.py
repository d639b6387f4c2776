from pathlib import Path

import pytest

from ifqa.report import results_log
from ifqa.storage.resources import list_resources


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """Work in an empty folder.

    Report only its experiments and the sample's, as reading all shipped ones takes a second.
    """
    monkeypatch.chdir(tmp_path)

    def list_few(folder, suffix, root=Path()):
        files = list_resources(folder, suffix, root)
        root = root.absolute()
        return {
            name: path
            for name, path in files.items()
            if name.startswith("sample") or path.is_relative_to(root)
        }

    monkeypatch.setattr(results_log, "list_resources", list_few)
