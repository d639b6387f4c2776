"""Variants: an experiment with settings changed by flags, under a name of its own.

A flag never changes `experiments/NAME/`. It makes the folder `experiments/NAME+k=5/`, which holds an `experiment.toml` with
all settings.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ifqa.config.expected import expected_sections
from ifqa.config.experiment import Experiment, parse_experiment
from ifqa.errors import IfqaError, unknown_name
from ifqa.models.causal_lm import is_local_model
from ifqa.storage.files import atomic_write, write_bytes

NO_READER = "none"  # as a reader's name: no reader; only the retrieved passages are scored
_LONGEST = 200  # bytes of a folder's name


def override(experiment: Experiment, changes: Mapping[str, object]) -> Experiment:
    """The experiment with settings changed, under a name that lists the changes; the same experiment if nothing changes.

    Settings in a plugin's `runtime_only`, such as a language model's cap, do not change the name: the answers stay the same. A
    model on this machine is asked in this process, unless the experiment or a change names a server or another plugin.

    A variant has no expected scores; only if nothing but the language model changes, it keeps those of retired models. It is
    listed in the same table of results, unless its split is another.

    Args:
        experiment: the experiment to change.
        changes: "k" (passages retrieved), "retriever" and "reader" (plugin names; "none" for no reader), "limit" (first N
            questions), or "section.setting" such as "retriever.k1", "reader.passages" or "llm.model".

    Raises:
        IfqaError: a change is unknown, given twice, or out of range.
    """
    if "k" in changes and "retriever.k" in changes:
        raise IfqaError(f"k is given twice: --k {changes['k']} and retriever.k={changes['retriever.k']}")
    changed = _apply_changes(experiment, changes)
    if changed == experiment:
        return experiment
    named = [key for key in changes if key.partition(".")[0] == "llm"]
    if named and not changed.asks_llm("retriever") and not changed.asks_llm("reader"):  # a flag was forgotten
        plugins = " and ".join(repr(table["name"]) for table in (changed.retriever, changed.reader) if table)
        raise IfqaError(f"{min(named)} is a setting of a language model, but {plugins} ask none; add --reader llm")
    silent = {f"llm.{key}" for key in changed.plugins.llm(changed.llm["name"]).runtime_only} if changed.llm else set()
    telling = [key for key in sorted(changes) if key not in silent and _is_effective(experiment, changes, key, changed)]
    if not telling:
        return changed
    name = experiment.name + "".join(f"+{key}={_folder_part(key, changes[key])}" for key in telling)
    if len(name.encode()) > _LONGEST:
        raise IfqaError(
            f"so many changes make too long a name ({name[:60]}…); write them into a file experiments/NAME.toml"
        )
    only_llm = all(key.partition(".")[0] == "llm" for key in telling)
    beside = tuple(score for score in changed.expected if score.retired) if only_llm else ()
    table = changed.table if changed.split == experiment.split else ""
    return replace(changed, name=name, expected=beside, table=table)


def _is_effective(experiment: Experiment, changes: Mapping[str, object], key: str, changed: Experiment) -> bool:
    """Whether the experiment would differ without this change."""
    try:
        return _apply_changes(experiment, {other: changes[other] for other in changes if other != key}) != changed
    except IfqaError:  # the other changes are refused without it
        return True


def _apply_changes(experiment: Experiment, changes: Mapping[str, object]) -> Experiment:
    tables = as_sections(experiment)
    for key, value in sorted(changes.items(), key=lambda change: (change[0] != "llm.name", change[0])):  # names first
        section, _, setting = {"k": "retriever.k", "llm": "llm.name"}.get(key, key).partition(".")
        table = tables.get(section)
        if section == "llm" and setting:
            other_plugin = (
                setting == "name" and table and table.get("name") != value
            )  # which has none of these settings
            tables["llm"] = {**({} if other_plugin else table or {}), setting: value}
        elif section in ("retriever", "reader") and setting and setting != "name":
            if table is None:
                raise IfqaError(f"experiment {experiment.name} has no [{section}] whose {setting} could change")
            tables[section] = {**table, setting: value}
        elif (key, value) == ("reader", NO_READER):
            tables.pop("reader", None)
        elif key in ("retriever", "reader"):  # of the old plugin's settings only k and passages are kept
            if table is None or table["name"] != value:
                kept = {count: table[count] for count in ("k", "passages") if table and table.get(count)}
                tables[section] = {"name": value} | kept
        elif key == "limit" and value == 0:
            raise IfqaError("--limit must be a whole number from 1, found 0")
        elif key in ("limit", "seed", "split", "corpus"):
            tables[key] = value
        else:
            known = "k limit seed split corpus retriever reader llm retriever.… reader.… llm.…".split()
            raise unknown_name("setting", key, known)
    named = "llm.name" in changes or "llm" in changes
    asked = tables.get("llm", {})
    usual = (
        "llm.model" in changes and not named and asked.get("name", "openai") == "openai" and not asked.get("base_url")
    )
    if usual and is_local_model(
        str(asked["model"]), experiment.root
    ):  # a model on this machine, and no server is named
        tables["llm"] = {"name": "hf", "model": changes["llm.model"]} | {
            key.removeprefix("llm."): value for key, value in changes.items() if key.startswith("llm.")
        }
    if tables.get("reader") and not tables["reader"].get("passages") and "reader.passages" not in changes:
        tables["reader"] = {key: value for key, value in tables["reader"].items() if key != "passages"}
    return parse_experiment(
        experiment.name, tables, f"experiment {experiment.name}", experiment.root, experiment.plugins
    )


def write_resolved(experiment: Experiment) -> None:
    """Write `experiment.toml` into the folder of a variant, unless it is there already."""
    import tomli_w

    path = experiment.folder / "experiment.toml"
    text = tomli_w.dumps(as_sections(experiment))
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        with atomic_write(path) as handle:
            write_bytes(handle, text.encode())


def as_sections(experiment: Experiment) -> dict[str, Any]:
    """The experiment as tables, which `parse_experiment` reads back as the same experiment."""
    settings = "about table benchmark split corpus seed limit retriever reader llm questions measures".split()
    tables = {key: getattr(experiment, key) for key in settings} | {"expected": expected_sections(experiment.expected)}
    tables = {key: list(value) if isinstance(value, tuple) else value for key, value in tables.items()}
    return {key: value for key, value in tables.items() if value or key == "seed"}


def _folder_part(key: str, value: object) -> str:
    """A value as a part of a folder's name on any file system; with a hash if characters had to be replaced."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    if key in ("retriever", "reader"):  # "my_module:Class"; no plugin of ifqa has a dot in its name
        text = text.replace(":", ".")
    safe = re.sub(r"[^\w.-]+", "_", text)[:40]
    return safe if safe == text else f"{safe}~{hashlib.sha256(text.encode()).hexdigest()[:8]}"
