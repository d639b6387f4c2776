"""`ifqa ask --docs FOLDER`: a corpus for a user's folder, `indexes/docs-NAME-HASH.toml`, written when it is first asked."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import tomli_w

from ifqa.config.corpus import load_corpus
from ifqa.config.experiment import Experiment
from ifqa.corpus.documents.folder import existing
from ifqa.errors import IfqaError
from ifqa.storage.artifacts import lock
from ifqa.storage.files import create, write

_ABOUT = """# The documents of a folder, as a corpus: `ifqa ask --docs` wrote this file once, and keeps what you change in it.
# Settings of [[passages.sources]], with their defaults: words = 100, overlap = 0, include = [], exclude = [], columns = [],
# max_mb = 50. What they mean: docs/own-documents.md.

"""


def corpus_of(
    path: str | Path, experiment: Experiment, include: Sequence[str] = (), exclude: Sequence[str] = ()
) -> str:
    """The name of the corpus of a folder, or of a file, of documents.

    The name has a hash of the absolute path and of the patterns. If there is no `indexes/NAME.toml`, it is written, with the
    indexes that the experiment searches; an index that it lacks is added to its end. The folder itself is not written to.

    Args:
        path: the folder or file; relative paths count from the working directory.
        experiment: whose retriever will search it.
        include, exclude: patterns of files, as `ifqa.corpus.documents.folder` takes them.

    Raises:
        IfqaError: there is no such folder, or the experiment's retriever searches no index.
    """
    if not experiment.indexes:
        raise IfqaError(f"--docs: experiment {experiment.name} searches no index; name another: -e sample")
    place = existing(path).resolve()
    name = _name(place, include, exclude)
    file = experiment.root / "indexes" / f"{name}.toml"
    indexes = load_corpus(experiment.corpus, experiment.root).indexes
    with lock(file.with_suffix(""), wait=True):
        if not file.exists():
            patterns = {"include": list(include), "exclude": list(exclude)}
            source = {"format": "documents", "path": str(place)} | {
                key: value for key, value in patterns.items() if value
            }
            about = tomli_w.dumps({"about": f"Documents of {place}."})
            _append(file, f"{_ABOUT}{about}\n[[passages.sources]]\n", source)
        known = load_corpus(name, experiment.root).indexes
        for index in experiment.indexes:
            if index not in known:
                _append(file, "\n", {"index": {index: dict(indexes[index])}})
    return name


def _name(place: Path, include: Sequence[str], exclude: Sequence[str]) -> str:
    made = json.dumps([str(place), *([sorted(include), sorted(exclude)] if include or exclude else [])])
    slug = re.sub(r"[^a-z0-9]+", "-", place.name.lower()).strip("-")[:40]
    return "-".join(filter(None, ["docs", slug, hashlib.sha256(made.encode()).hexdigest()[:8]]))


def _append(file: Path, text: str, tables: Mapping[str, object]) -> None:
    before = file.read_bytes() if file.exists() else b""
    with create(file) as handle:
        write(handle, before + text.encode() + tomli_w.dumps(tables, multiline_strings=False).encode())
