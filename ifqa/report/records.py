"""`experiments/RESULTS.jsonl`: recorded scores of finished experiments, one record a line."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import NotRequired, TypedDict, cast

from pydantic import Field

from ifqa.errors import IfqaError
from ifqa.scoring.stored import scores_in
from ifqa.scoring.summary import VERSION, Content
from ifqa.settings import Natural, NotNegative, Stored, check_stored
from ifqa.storage.files import json_line, read_jsonl, text_field, unicode_text

RECORDS = Path("experiments/RESULTS.jsonl")
_KEYS = {"experiment", "version", "tables", "inputs", "scores", "made"}
_LATER = {"identities"}  # keys that older records lack


class How(TypedDict, total=False):
    """How scores were made; `run` and the keys after it are there only where they apply."""

    at: str  # ISO time
    hardware: str
    python: str
    commit: str
    seconds: dict[str, float]  # by stage
    libraries: dict[str, str]  # versions
    inputs: dict[str, str]  # file -> SHA-256: the benchmark's, the corpus's, the reader's weights
    run: str  # SHA-256 of run.trec
    own_passages: bool  # whether the run names passages that the retriever made
    passages: int  # of the corpus
    model: str
    server: str  # scheme, host and port of who was asked
    cost: float | None  # of the last attempt in US dollars; None where the price is unknown
    tokens: int  # of all answers
    label: str
    trained_on_them: bool


class Record(TypedDict):
    """A line of RESULTS.jsonl; `identities` are as `made.identities` gives them."""

    experiment: str
    version: int
    tables: dict[str, object]
    inputs: str
    scores: Content
    made: How
    sha256: str
    identities: NotRequired[dict[str, str]]


class _How(Stored):
    at: str
    hardware: str
    python: str
    commit: str
    seconds: dict[str, NotNegative]
    libraries: dict[str, str] = Field(default_factory=dict)
    inputs: dict[str, str] = Field(default_factory=dict)
    run: str = ""
    own_passages: bool = False
    passages: Natural = 0
    model: str = ""
    cost: NotNegative | None = None
    tokens: Natural = 0
    label: str = ""
    trained_on_them: bool = False


class _Record(Stored):
    version: int
    tables: dict[str, object]
    inputs: str
    made: _How
    identities: dict[str, str] = Field(default_factory=dict)


def read_records(root: Path = Path()) -> dict[str, Record]:
    """The results by experiment that are recorded below `root`.

    Raises:
        IfqaError: a line is no record, was changed by hand, or another line records the same experiment.
    """
    found: dict[str, Record] = {}
    for number, line in read_jsonl(root / RECORDS) if (root / RECORDS).exists() else ():
        where = f"{RECORDS}:{number}"
        name = text_field(line, "experiment", where)
        unicode_text(json.dumps(line, ensure_ascii=False), "experiment", where)
        content = {key: value for key, value in line.items() if key != "sha256"}
        if line.get("sha256") != _sha256(content) or content.keys() - _LATER != _KEYS:
            raise IfqaError(f"{where}: the record of {name} was changed by hand; take the line out, and report again")
        record = _checked(line, where)
        if found.setdefault(name, record) != record:
            raise IfqaError(f"{where}: there is another record of {name}; keep one of them, and report again")
    return found


def _checked(line: Mapping[str, object], where: str) -> Record:
    """A line, checked; the scores only if they are of the current scorer, because older ones may have another shape."""
    check_stored(_Record, line, where)
    if line["version"] == VERSION:
        scores_in(line["scores"], f"{where}: scores")
    return cast(Record, line)


def sealed(content: Mapping[str, object]) -> Record:
    """A record with the hash that shows a change by hand."""
    own = {key: value for key, value in content.items() if key != "sha256"}
    return cast(Record, own | {"sha256": _sha256(own)})


def _sha256(content: Mapping[str, object]) -> str:
    return hashlib.sha256(json_line(content)).hexdigest()


def outside_plugins(tables: object) -> set[str]:
    """The plugins "my_module:Class" that an experiment's tables name; loading such a plugin runs the module's code."""
    if isinstance(tables, Mapping):
        named = [tables.get("name"), tables.get("benchmark")]
        named += tables["measures"] if isinstance(tables.get("measures"), list) else []
        own = {name for name in named if isinstance(name, str) and ":" in name}
        return own.union(*map(outside_plugins, tables.values()))
    return set[str]().union(*map(outside_plugins, tables)) if isinstance(tables, list) else set()
