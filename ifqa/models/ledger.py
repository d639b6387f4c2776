"""The ledger: which questions of which benchmark a model was trained on, by published evidence or
by its own manifest.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from pydantic import Field
from typing_extensions import TypedDict

from ifqa.models.places import MODELS, local_path
from ifqa.settings import StrictModel, Text, parse_section
from ifqa.storage.files import cached_sha256, read_json, read_toml
from ifqa.storage.resources import BUNDLED

LEDGER = "ledger.toml"
#: Files of a model's folder, and the keys in them that name the model or the model that it started
#: from.
_NAMING_FILES = ("manifest.json", "adapter_config.json", "config.json")
_NAMING_KEYS = ("base_model_name_or_path", "_name_or_path", "name", "model")


class Exposure(StrictModel):
    """Questions that a model was trained on."""

    benchmark: Text
    questions: Text
    evidence: Text


class _Listed(StrictModel):
    names: list[Text]
    unknown: bool = False  # what it was trained on; goes before other entries with its name
    seen: list[Exposure] = Field(default_factory=list)


class _Ledger(StrictModel):
    model: list[_Listed] = Field(default_factory=list)


class ModelFacts(TypedDict):
    """What a model's files say of it, kept with the scores, because the ledger may be read when the
    files are gone.
    """

    names: list[str]  # its name, and those of the models that it started from, without local paths
    trained_on: dict[str, list[str]]  # split family -> files of questions


def read_model_facts(name: str, root: Path = Path()) -> ModelFacts:
    """The names and the training of a model: a name on the hub or at a server, a file, or a folder
    of weights or an adapter.
    """
    names = dict[str, None]()
    trained_on = dict[str, list[str]]()
    queue = [name]
    while queue:
        if (current := queue.pop()) in names:
            continue
        names[current] = None
        path = local_path(current, root)
        if os.path.isfile(path):  # noqa: PTH113 - Path's own raises an error for a name that is too long
            names |= dict.fromkeys(
                model.name for model in MODELS.values() if model.sha256 == cached_sha256(path)
            )
        for file in _NAMING_FILES:
            content = read_json(path / file) if os.path.isfile(path / file) else {}  # noqa: PTH113
            queue += _names_in(content)
            if isinstance(content, Mapping) and isinstance(
                sources := content.get("sources"), Mapping
            ):
                files = trained_on.setdefault(str(content.get("family", "")), [])
                files += [Path(source).name for source in sources]
    portable = dict.fromkeys(
        Path(each).name if Path(each).is_absolute() else each for each in names
    )
    return {"names": [*portable], "trained_on": trained_on}


def _names_in(content: object) -> Iterator[str]:
    """The models that a manifest or configuration names, at any depth."""
    if isinstance(content, Mapping):
        yield from (
            content[key]
            for key in _NAMING_KEYS
            if isinstance(content.get(key), str) and content[key]
        )
        for part in content.values():
            yield from _names_in(part)


def describe_exposure(models: Mapping[str, ModelFacts], benchmark: str, root: Path = Path()) -> str:
    """The mark of scores on a benchmark: what of it the models have seen, and of which that is
    unknown; empty if nothing.

    A benchmark that the ledger never names, such as the bundled sample, has only the marks of
    models with a manifest.
    """
    ledger = _read_ledger(root)
    seen = list[str]()
    unknown = list[str]()
    for name, facts in models.items():
        listed = _find_listed(ledger, facts["names"])
        if any(model.unknown for model in listed):
            listed = []
        questions = [
            exposure.questions
            for model in listed
            for exposure in model.seen
            if exposure.benchmark == benchmark
        ]
        for family, files in facts["trained_on"].items():
            if family.partition("/")[0] == benchmark:
                questions.append(" ".join(filter(None, [family.partition("/")[2], *files])))
        if questions:
            seen.append(f"{name} has seen {benchmark}: {'; '.join(questions)}")
        elif not listed and not facts["trained_on"]:
            unknown.append(name)
    if unknown and any(
        exposure.benchmark == benchmark for model in ledger for exposure in model.seen
    ):
        seen.append(f"unknown what {' and '.join(unknown)} has seen")
    return "; ".join(seen)


def list_exposures(names: Iterable[str], root: Path = Path()) -> list[Exposure]:
    """The ledger's entries for a model that has any of these names: its own, or a base model's.

    `root` may have a ledger.toml that adds to the package's.
    """
    listed = _find_listed(_read_ledger(root), list(names))
    return [exposure for model in listed for exposure in model.seen]


def _find_listed(ledger: Iterable[_Listed], names: Sequence[str]) -> list[_Listed]:
    return [
        model
        for model in ledger
        if any(_matches(part, name) for part in model.names for name in names)
    ]


def _matches(listed: str, name: str) -> bool:
    """Whether a name is the listed one, after "=", or has it as a part."""
    if listed.startswith("="):
        return name == listed[1:]
    part, whole = (f"-{re.sub('[^a-z0-9]+', '-', text.lower())}-" for text in (listed, name))
    return part in whole


def _read_ledger(root: Path) -> list[_Listed]:
    """The models of the package's ledger, and of one below `root`."""
    places = dict.fromkeys((BUNDLED / LEDGER, root / LEDGER))
    paths = [path for path in places if path.is_file()]
    return [
        model for path in paths for model in _parse_ledger(path.absolute(), path.stat().st_mtime_ns)
    ]


@cache
def _parse_ledger(path: Path, _changed: int) -> list[_Listed]:
    return parse_section(_Ledger, read_toml(path), str(path)).model
