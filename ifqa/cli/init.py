"""`ifqa init`: a corpus, an experiment, articles or a folder of documents, and questions of one's own to start from."""

from pathlib import Path

import tomli_w

from ifqa.config.experiment import bases, experiment_name
from ifqa.corpus.documents.folder import existing
from ifqa.errors import IfqaError
from ifqa.storage.files import create, write
from ifqa.storage.resources import BUNDLED, find_resource

_START = BUNDLED / "start"


def files_of(name: str, docs: Path | None = None) -> dict[str, str]:
    """Path -> template of each file that `start` writes for a name."""
    experiment = {f"experiments/{name}.toml": "experiment.toml"}
    if docs is not None:
        return {f"indexes/{name}.toml": "documents.toml"} | experiment | {f"{name}/questions.csv": "empty.csv"}
    mine = {f"{name}/articles.jsonl": "articles.jsonl", f"{name}/questions.csv": "questions.csv"}
    return {f"indexes/{name}.toml": "corpus.toml"} | experiment | mine


def start(name: str, docs: Path | None = None, root: Path = Path()) -> list[Path]:
    """Write the files of a new experiment, whose comments say what to change; returns their paths.

    Args:
        name: of the experiment, of its corpus and of the folder with its files.
        docs: a folder of documents to search, or a file; None: three articles are written to start from.
        root: the folder that the names count from.

    Raises:
        IfqaError: the name is none for an experiment, there is no such folder, or a file is there already; nothing is
            written then.
    """
    name = experiment_name(name)
    if bases(name, root):
        raise IfqaError(f"experiment {name!r}: wanted a name without +KEY=VALUE, as variants have")
    if docs is not None:
        existing(docs, root)
    path_line = tomli_w.dumps({"path": str(docs.expanduser()) if docs else ""}).strip()
    files = files_of(name, docs)
    for path in files:
        there = next(
            (one for one in (root / path, find_resource(path, root)) if one and (one.exists() or one.is_symlink())),
            None,
        )
        if there:
            raise IfqaError(f"{there} is there already; name another: ifqa init NAME")
    for path, template in files.items():
        text = (_START / template).read_text(encoding="utf-8").replace("NAME", name)
        with create(root / path) as handle:
            write(handle, text.replace('path = "FOLDER"', path_line).encode())
    return [root / path for path in files]
