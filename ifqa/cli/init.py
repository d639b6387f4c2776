"""`ifqa init`: a corpus, an experiment, articles or a folder of documents, and questions of one's own to start from."""

from pathlib import Path
from typing import Annotated

import typer

from ifqa.cli.options import Docs, print_line
from ifqa.errors import IfqaError
from ifqa.progress import say


def init(
    name: Annotated[
        str, typer.Argument(help="Name of the new experiment, of its corpus and of the folder with its files.")
    ] = "mine",
    docs: Docs = None,
) -> None:
    """Write a corpus, an experiment, articles and questions to start from, with comments; no file is overwritten.

    With --docs the corpus is that of your documents, and no articles are written.
    """
    for path in start(name, docs):
        print_line(path)
    if docs is None:
        say(f"try it: ifqa run {name} --show 3; then put your own articles and questions into the folder {name}")
    else:
        say(f"put your questions into {name}/questions.csv, then: ifqa run {name} --show 3")


def start(name: str, docs: Path | None = None, root: Path = Path()) -> list[Path]:
    """Write the files of a new experiment, whose comments say what to change; returns their paths.

    `name` is that of the experiment, of its corpus and of the folder with its files. `docs` is a folder of documents to search,
    or a file; without it, three articles are written to start from. If a file is there already, nothing is written.
    """
    import tomli_w

    from ifqa.config.experiment import bases, experiment_name
    from ifqa.corpus.documents.folder import existing
    from ifqa.storage.files import create, write
    from ifqa.storage.resources import BUNDLED, find_resource

    name = experiment_name(name)
    if bases(name, root):
        raise IfqaError(f"experiment {name!r}: wanted a name without +KEY=VALUE, as variants have")
    templates = {
        f"indexes/{name}.toml": "documents.toml" if docs else "corpus.toml",
        f"experiments/{name}.toml": "experiment.toml",
        f"{name}/questions.csv": "empty.csv" if docs else "questions.csv",
    }
    if docs is not None:
        existing(docs, root)
    else:
        templates[f"{name}/articles.jsonl"] = "articles.jsonl"
    for path in templates:
        for place in (root / path, find_resource(path, root)):
            if place and (place.exists() or place.is_symlink()):
                raise IfqaError(f"{place} is there already; name another: ifqa init NAME")
    path_line = tomli_w.dumps({"path": str(docs.expanduser()) if docs else ""}).strip()
    for path, template in templates.items():
        text = (BUNDLED / "start" / template).read_text(encoding="utf-8").replace("NAME", name)
        with create(root / path) as handle:
            write(handle, text.replace('path = "FOLDER"', path_line).encode())
    return [root / path for path in templates]
