"""Identities of questions and of gold passages, by their content."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import fields
from operator import attrgetter

from ifqa.records import Question

GOLD = "gold/"  # ids of gold passages begin with it


def gold_id(text: str) -> str:
    """The id of a gold passage: `gold/` and 12 hex digits of the SHA-1 of its text. Benchmarks give gold passages no ids."""
    return GOLD + hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:12]


_FIELDS = tuple(field.name for field in fields(Question))
_VALUES = attrgetter(*_FIELDS)
_LATER = ("context", "group", "labels")  # left out where empty, so older questions keep their identity
_identities: dict[int, str] = {}  # by Python's hash of the questions: a command asks several times for a split's


def questions_identity(questions: Iterable[Question]) -> str:
    """SHA-256 of all fields of the questions; the same as `ifqa.storage.artifacts.identity({"questions": [...]})`."""
    several = tuple(questions)
    key = hash(several)
    if key not in _identities:
        digest = hashlib.sha256(b'{"questions": [')
        for number, question in enumerate(several):  # so that a large split is never one string
            both = zip(_FIELDS, _VALUES(question), strict=True)
            record = {name: value for name, value in both if value or name not in _LATER}
            comma = ", " if number else ""
            digest.update((comma + json.dumps(record, sort_keys=True, ensure_ascii=False)).encode())
        digest.update(b"]}")
        _identities[key] = digest.hexdigest()
    return _identities[key]
