"""`ifqa init`: a corpus, an experiment, articles and questions of one's own to start from."""

from pathlib import Path

from ifqa.config.names import bases, experiment_name
from ifqa.errors import IfqaError
from ifqa.storage.files import create, write
from ifqa.storage.resources import BUNDLED, find_resource

_START = BUNDLED / "start"


def files_of(name: str) -> dict[str, str]:
    """Path -> template of each file that `start` writes for a name."""
    return {
        f"indexes/{name}.toml": "corpus.toml",
        f"experiments/{name}.toml": "experiment.toml",
        f"{name}/articles.jsonl": "articles.jsonl",
        f"{name}/questions.csv": "questions.csv",
    }


def start(name: str, root: Path = Path()) -> list[Path]:
    """Write the files of a new experiment, whose comments say what to change; returns their paths.

    Raises:
        IfqaError: the name is none for an experiment, or a file is there already; nothing is written then.
    """
    name = experiment_name(name)
    if bases(name, root):
        raise IfqaError(f"experiment {name!r}: wanted a name without +KEY=VALUE, as variants have")
    files = files_of(name)
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
            write(handle, text.encode())
    return [root / path for path in files]
