"""Static embeddings: passages whose words mean what the question's words mean, at the cost of an index of words.

A text's vector is a sum of its tokens' vectors (`ifqa.retrieval.vectors.token_table`), so that one core encodes thousands of
passages a second. It finds less than BM25, and adds little to it (docs/retrieval.md).
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from rich.filesize import decimal

from ifqa.corpus.store import parse
from ifqa.errors import IfqaError
from ifqa.models.hub import NAME, identity_of, model_folder
from ifqa.progress import bar
from ifqa.protocols import Indexed, Place
from ifqa.records import Cost, Hit, Question, SearchResult
from ifqa.retrieval.vectors.encode import counted
from ifqa.retrieval.vectors.exact import Exact
from ifqa.retrieval.vectors.store import Filling, Ids, Vectors
from ifqa.retrieval.vectors.token_table import Table, Words, make_table
from ifqa.settings import Positive, Stored, check_stored, checked
from ifqa.storage.artifacts import identity
from ifqa.storage.files import cached_sha256, read_json, require, sha256, write_json

_FACTS, _TABLE = "static.json", "table.safetensors"
_SAMPLE = 50_000  # passages whose words are counted, and whose vectors choose the directions
_START, _PER_SECOND = 40, 5_500  # seconds for the table; passages a second on one core
_ID_BYTES = 16
_MEMORY = 900e6


class _Facts(Stored):
    model: str
    weights: str
    dimension: Positive
    table: str
    passages: Positive


class Static(Indexed):
    """Searches sums of tokens' vectors exactly."""

    version = 1
    resumes = True

    @checked("setting of retriever 'static'")
    def __init__(self, index: Path) -> None:
        """Open an index.

        Args:
            index: a folder that `build` filled.

        Raises:
            IfqaError: the index is missing or damaged, or its model is missing.
        """
        path = require(index / _FACTS, "static index")
        facts = check_stored(_Facts, read_json(path), str(path), "build it again: ifqa index CORPUS")
        if cached_sha256(require(index / _TABLE, "token table")) != facts.table:
            raise IfqaError(f"{index / _TABLE} is not the table that the index was built with; build it again")
        self._table = Table.read(index / _TABLE, Words(model_folder(facts.model)))
        self._ids, self._searcher = Ids(index), Exact(Vectors(index))

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """The `k` passages of each question with the highest cosine, best first; none for a question without words.

        Raises:
            IfqaError: `k` is below 1.
        """
        if k < 1:
            raise IfqaError(f"k, the number of passages to retrieve, must be at least 1; found {k}")
        vectors = self._table.vectors([question.text for question in questions])
        rankings: list[SearchResult] = []
        for vector, scores, rows in zip(vectors, *self._searcher.search(vectors, k), strict=True):
            ids = self._ids.of(rows.tolist()) if vector.any() else []
            rankings.append(SearchResult([Hit(one, score) for one, score in zip(ids, scores.tolist(), strict=False)]))
        return rankings

    @classmethod
    @checked("build setting of retriever 'static'", given=["passages", "folder"])
    def build(cls, passages: Path, folder: Path, *, model: Place = NAME, dimension: Positive = 256) -> None:
        """Make the table of tokens, and the vectors of a folder of passages.

        Args:
            passages: a folder with `passages-*.jsonl`.
            folder: gets the table and the vectors; those that a killed build left there are reused.
            model: an encoder of BERT's kind, a folder or a name on the hub, whose outputs for single tokens are the table.
            dimension: numbers in a vector, each of 2 bytes; below the model's own size.

        Raises:
            IfqaError: there are no passages, the model is missing or of another kind, or `dimension` is too large.
        """
        files, count = counted(passages)
        weights, words = identity_of(model), Words(model_folder(model))
        hashes = [sha256(path) for path in files.values()]
        key = identity({"version": cls.version, "weights": weights, "dimension": dimension, "passages": hashes})
        try:
            table = Table.read(folder / _TABLE, words, key)
        except IfqaError:  # none yet, or one for another build
            step = -(-count // _SAMPLE)
            table = make_table(model_folder(model), _sampled(files.values(), step), dimension)
            table.write(folder / _TABLE, key)
        made_with = sha256(folder / _TABLE)
        filling, keys = Filling(folder), {}
        with bar("static vectors", count) as advance:
            for (number, path), content in zip(files.items(), hashes, strict=True):
                keys[number] = identity({"table": made_with, "passages": content})
                done = filling.has(number, keys[number])
                if done is None:
                    own = [parse(line, where) for where, line in _lines(path)]
                    filling.add(number, keys[number], [one.id for one in own], table.vectors([one.text for one in own]))
                    done = len(own)
                advance(done)
        facts = {"model": model, "weights": weights, "dimension": dimension, "table": made_with}
        write_json(folder / _FACTS, facts | {"passages": filling.finish(keys)})

    @classmethod
    def forecast(cls, passages: int, *, dimension: int = 256, **_: object) -> Cost:
        """What `build` will take, extrapolated from 49,565 passages on one core."""
        disk = passages * (2 * dimension + _ID_BYTES)
        searched = f"; then {decimal(disk)} to read for each search"
        return Cost(_START + passages / _PER_SECOND, disk, _MEMORY, searched)

    @classmethod
    def built_from(cls, model: str = NAME, **_: object) -> str:
        """SHA-256 of the files of the model that `build` uses."""
        return identity_of(model)


def _lines(path: Path) -> Iterator[tuple[str, bytes]]:
    """The lines that hold passages, each with its place."""
    with open(path, "rb") as handle:
        for number, line in enumerate(handle, start=1):
            if line.strip():
                yield f"{path}:{number}", line


def _sampled(files: Iterable[Path], step: int) -> Iterator[str]:
    """The text of every `step`-th passage."""
    lines = (found for path in files for found in _lines(path))
    return (parse(line, where).text for where, line in islice(lines, 0, None, step))
