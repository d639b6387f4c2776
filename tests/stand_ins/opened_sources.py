"""A passage source as a section of a corpus file opens it."""

from pathlib import Path

from ifqa.corpus.documents.source import Documents
from ifqa.corpus.sources import open_source, parse_source
from ifqa.plugins import Plugins, open_benchmark


def questions_of(benchmark, splits):
    """The questions of each split."""
    return [open_benchmark(benchmark).questions(split) for split in splits]


def open_section(section, root=Path()):
    """The source of a section [[passages.sources]]; IfqaError as for a corpus file."""
    return open_source(parse_source(section, "a corpus", Plugins(root)), questions_of)


def documents(path, **settings):
    """A folder of documents as a source, unchecked."""
    return Documents(Documents.Settings(path=path, **settings))
