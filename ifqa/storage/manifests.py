"""Check that the JSON of a manifest has the keys and types that this version reads."""

import math
from collections.abc import Mapping
from pathlib import PurePath

from ifqa.errors import IfqaError

_NUMBER = (int, float)
_TYPES: dict[str, tuple[type, ...]] = {
    "files": (dict,), "at": (str,), "seconds": _NUMBER, "ifqa": (str,), "commit": (str,), "libraries": (dict,),
    "python": (str,), "hardware": (str,), "passages": (int,), "sources": (dict,), "questions": (int,), "hits": (int,),
    "label": (str,), "spent": (dict,), "took": (list,), "retry": (int,), "not_asked": (int,), "too_long": (int,),
    "unparsed": (int,), "cut": (int,),
}  # fmt: skip
_ALWAYS = {"files", "at", "seconds", "ifqa", "commit", "libraries", "python", "hardware"}
_OF_STAGE = {"passages": {"passages", "sources"}, "index": {"passages"}}
_SPENT: dict[str, tuple[type, ...]] = dict.fromkeys(
    ("calls", "cached", "prompt_tokens", "completion_tokens"), (int,)
) | {"cost": (int, float, type(None))}


def check_manifest(manifest: object) -> None:
    """Check both halves of a manifest.

    Raises:
        IfqaError: a key is missing or of another type; the message says which.
    """
    if not isinstance(manifest, dict) or not all(isinstance(manifest.get(half), dict) for half in ("inputs", "record")):
        raise IfqaError("wanted the tables 'inputs' and 'record'")
    record = manifest["record"]
    needed = _ALWAYS | _OF_STAGE.get(str(manifest["inputs"].get("stage")), set())
    _check(record, {key: kinds for key, kinds in _TYPES.items() if key in needed | record.keys()}, "record")
    if not record["files"]:
        raise IfqaError("record.files is empty")
    for name, facts in record["files"].items():
        if PurePath(name).is_absolute() or ".." in PurePath(name).parts:
            raise IfqaError(f"record.files.{name} is outside the folder")
        _check(facts, {"bytes": (int,), "sha256": (str,)}, f"record.files.{name}")
    for path, facts in record.get("sources", {}).items():
        if not isinstance(facts, list) or [type(fact) for fact in facts] != [int, int, str]:
            raise IfqaError(f"record.sources.{path} is not [bytes, time of change, SHA-256]")
    if "spent" in record:
        _check(record["spent"], _SPENT, "record.spent")
    if [type(tokens) for tokens in record.get("took", (0, 0))] != [int, int]:
        raise IfqaError("record.took is not two numbers of tokens")


def _check(table: object, types: Mapping[str, tuple[type, ...]], where: str) -> None:
    if not isinstance(table, dict):
        raise IfqaError(f"{where} is not a table")
    for key, kinds in types.items():
        if key not in table:
            raise IfqaError(f"{where}.{key} is missing")
        value = table[key]
        if not isinstance(value, kinds) or (isinstance(value, _NUMBER) and not 0 <= value < math.inf):
            names = " or ".join("null" if kind is type(None) else kind.__name__ for kind in kinds)
            raise IfqaError(f"{where}.{key} is {value!r:.40}; wanted {names}")
